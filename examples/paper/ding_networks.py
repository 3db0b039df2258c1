"""Figure 6 of Ding et al.: networks of two hidden layers of 100 units on Heart and Cardio.

    python examples/paper/ding_networks.py         # writes results/ding_networks.json
    python examples/paper/ding_networks.py --fast  # a sample, measured now; writes nothing

The paper clips gradients to C = 1 and calibrates to a sensitivity of C, where one row that is
replaced moves a sum by 2C; it takes n^2 steps of one row. Both baselines take fewer steps of larger
lots here, with the noise that leaves their ratio of signal to noise over a whole run as printed:
T steps of b rows get ``b sqrt(T) / n^2`` of the noise that n^2 steps of one row get on n times a
gradient. SgdPert's is so large that it covers the factor of two as well: every fit is certified
by the privacy-loss distributions of its very steps, and refused where they cost more than epsilon.
GRPUA's is not private.

skdp's estimators have their defaults, but networks lots of at most 2,048 rows, to save time. Rows
are those of the other figures, of norm 1; every run divides them anew, and all methods share the
divisions. Accuracy is that on held-out rows, the objective the mean cross-entropy of the training
rows. A method is called better where its mean is so by more than two standard errors.
"""

import argparse
import json
import math
import time
import warnings
from pathlib import Path

import ding
import numpy as np
from _baselines import PrintedGrpua, SgdPert
from _ding_tables import load_medical_table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

from skdp import DPSGDClassifier, GrpuaMLPClassifier

TITLE = "Ding et al.: networks, section V-D"
RESULTS = Path(__file__).parent / "results" / "ding_networks.json"
LOSS = "network of two hidden layers of 100"
CONDITIONS = (
    ("network", "two hidden layers of 100; the linear models are for comparison"),
    ("runs", "12 on Heart, 2 on Cardio"),
    ("better", "by more than two standard errors; epsilon 0.01, 0.1, 1 and 10; two values at 0.01"),
    ("lists", "a value without privacy, then values at the four epsilons for each private method"),
    ("GRPUA as printed", "**no guarantee**: its noise is too small by a factor of 2n, nearly none"),
    ("DP-SGD", "replace-one unless stated otherwise; sound"),
    ("SgdPert", "sound: it has far more noise than its steps need, enough for 2C in place of C"),
)
EPSILONS = (1e-2, 0.1, 1.0, 10.0)
DELTA, HIDDEN = 1e-3, (100, 100)
STEPS, LOT = 300, 2048  # of the baselines
NONPRIV, NONPRIV_LINE = ding.NONPRIV, "NonPriv, linear"
SGDPERT, GRPUA = "SgdPert, certified", "GRPUA as printed, not private"
GRPUA_SKDP, DPSGD, ADD_REMOVE = "GRPUA, skdp", "DP-SGD, skdp", "DP-SGD, skdp, add-remove"
LINE, LINE_ADD_REMOVE = "DP-SGD, skdp, linear", "DP-SGD, skdp, linear, add-remove"
NETWORKS = (NONPRIV, GRPUA_SKDP, DPSGD, ADD_REMOVE)
LINES = (NONPRIV_LINE, LINE, LINE_ADD_REMOVE)
METHODS = (NONPRIV, SGDPERT, GRPUA, *NETWORKS[1:], *LINES)
QUANTITIES = ("accuracy", "objective")
CLAIMS = (
    ("GRPUA better than SgdPert", GRPUA, SGDPERT, ding.SHORT),
    ("GRPUA better than SgdPert, skdp's", GRPUA_SKDP, SGDPERT, "both are sound"),
    ("(not in the paper) linear DP-SGD better", LINE, DPSGD, "both are sound"),
)


def noise_multiplier(baseline, epsilon, n, lot):
    """Return a baseline's noise over the clipping norm; see the module."""
    return baseline(epsilon, DELTA).noise_scale(n) * lot * math.sqrt(STEPS) / n**2


def make(name, epsilon, n, seed):
    """Return a method's estimator for n rows."""
    if name == NONPRIV:
        return MLPClassifier(HIDDEN, alpha=1e-3, random_state=seed)  # the paper's penalty
    if name == NONPRIV_LINE:
        return LogisticRegression(max_iter=1000)
    fixed = {"delta": DELTA, "data_norm": 1.0, "classes": (-1, 1), "random_state": seed}
    lot = min(n, LOT)
    network = {"hidden_layer_sizes": HIDDEN, "batch_size": lot}
    if name == GRPUA_SKDP:
        return GrpuaMLPClassifier(epsilon, **network, **fixed)
    fixed["adjacency"] = "add-remove" if "add-remove" in name else "replace-one"
    if "linear" in name:
        return DPSGDClassifier(epsilon, **fixed)
    if name in (DPSGD, ADD_REMOVE):
        return DPSGDClassifier(epsilon, **network, **fixed)
    noise = noise_multiplier(SgdPert if name == SGDPERT else PrintedGrpua, epsilon, n, lot)
    return DPSGDClassifier(
        epsilon if name == SGDPERT else None,
        noise_multiplier=noise,
        max_grad_norm=1.0,
        max_iter=STEPS,
        **network,
        **fixed,
    )


def run(name, epsilon, table, seed):
    """Return accuracy, objective, the epsilon that a private fit claims, and seconds."""
    X, X_test = table.X.toarray(), table.X_test.toarray()
    start = time.perf_counter()
    with warnings.catch_warnings():
        # delta exceeds 1/n, as in the paper; scikit-learn's network may want more than 200 epochs.
        warnings.simplefilter("ignore")
        fitted = make(name, epsilon, len(X), seed).fit(X, table.signs.astype(int))
    took = time.perf_counter() - start
    spent = fitted.privacy_spent_.epsilon if hasattr(fitted, "privacy_spent_") else math.inf
    objective = log_loss(table.signs, fitted.predict_proba(X))
    return fitted.score(X_test, table.signs_test), objective, spent, took


def measure(name, runs, epsilons):
    """Yield one record for each method and epsilon on a table."""
    tables = [load_medical_table(name, seed) for seed in range(runs)]
    for method in METHODS:
        for epsilon in (None,) if method.startswith(NONPRIV) else epsilons:
            found = [run(method, epsilon, table, k) for k, table in enumerate(tables)]
            accuracies, objectives, spent, seconds = np.transpose(found)
            yield {
                **{"table": tables[0].name, "loss": LOSS, "method": method, "epsilon": epsilon},
                **{"runs": runs, "n": len(tables[0].signs)},
                "accuracy": [float(f"{f(accuracies):.4g}") for f in (np.mean, np.std)],
                "objective": [float(f"{f(objectives):.4g}") for f in (np.mean, np.std)],
                "spent": None if method.startswith(NONPRIV) else float(f"{max(spent):.4g}"),
                "seconds": float(f"{np.median(seconds):.3g}"),
            }


def measure_sample():
    """Return records of two runs on the smaller table."""
    return list(measure("Heart", 2, (0.1, 10.0)))


def read_results():
    """Return the records that the last full run wrote."""
    return json.loads(RESULTS.read_text())["figure"]


def compare(records, quantity):
    """Return (claim, what is found here, verdict) for each table."""
    lines = []
    for name, own, epsilons in ding.by_table(records, LOSS):
        for claim, better, worse, why in CLAIMS:
            found, verdict = ding.check_claim(own, better, worse, epsilons, quantity)
            told = why if "not in the paper" in claim else f"{verdict}; {why}"
            lines.append((f"{name}: {claim}", found, told))
        for group in (NETWORKS, LINES):
            values = [
                f"{ding.find(own, method, epsilon, quantity)[0]:.3g}"
                for method in group
                for epsilon in ((None,) if method.startswith(NONPRIV) else epsilons)
            ]
            names = "; ".join(group)
            lines.append((f"{name}: (not in the paper) {names}", ", ".join(values), "sound"))
    return lines


def rows():
    """Return (figure, the paper's claim, what is found here, verdict) as text."""
    records = read_results()
    lines = [
        (f"Figure 6, {quantity}, {table}", claim, *found)
        for quantity in QUANTITIES
        for line, *found in compare(records, quantity)
        for table, claim in [line.split(": ", 1)]
    ]
    for table, own, epsilons in ding.by_table(records, LOSS):
        costs = {each["epsilon"]: each["spent"] for each in own if each["method"] == SGDPERT}
        claim = "SgdPert costs epsilon " + ", ".join(f"{each:g}" for each in epsilons)
        found = ", ".join(f"{costs[epsilon]:.3g}" for epsilon in epsilons)
        lines.append((f"Figure 6, privacy, {table}", claim, found, "sound"))
    return lines


def show_figure(text):
    """Print the figure's numbers and claims, and draw it; the body of the figure's script."""
    parser = argparse.ArgumentParser(description="Figure 6 of Ding et al.")
    parser.add_argument("picture", nargs="?", help="file to draw into; needs matplotlib")
    parser.add_argument("--fast", action="store_true", help="measure a sample now")
    arguments = parser.parse_args()
    print(ding.told(text, arguments.fast))
    records = measure_sample() if arguments.fast else read_results()
    for quantity in QUANTITIES:
        ding.print_table(records, LOSS, quantity, METHODS)
    print("\nThe paper shows | found here | verdict")
    for quantity in QUANTITIES:
        for line in compare(records, quantity):
            print(" | ".join(line))
    if arguments.picture:
        ding.draw(records, LOSS, QUANTITIES, arguments.picture, METHODS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=12, help="on Heart; a sixth of them on Cardio")
    parser.add_argument("--fast", action="store_true", help="measure a sample, write nothing")
    arguments = parser.parse_args()
    if arguments.fast:
        print("\n".join(json.dumps(record) for record in measure_sample()))
        return
    records = []
    for name, runs in (("Heart", arguments.runs), ("Cardio", max(2, arguments.runs // 6))):
        for record in measure(name, runs, EPSILONS):
            print(json.dumps(record), flush=True)
            records.append(record)
            ding.write_results({"figure": records}, RESULTS)


if __name__ == "__main__":
    main()
