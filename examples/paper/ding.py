"""The experiments of Ding et al., section V: accuracy and objective value against epsilon.

    python examples/paper/ding.py                    # half an hour: writes results/ding.json
    python examples/paper/ding.py --ipums ipums.csv  # with a user's own extract of IPUMS-BR
    python examples/paper/ding.py --fast             # a sample, measured now; writes nothing

The stochastic methods take n^2 steps of one row each, minutes a run. The figures simulate them by
20 n steps with 20/n of the variance in each step's noise, so that the noise in the last iterate has
the law that n^2 steps give it (``_lazy_noise.py``: all steps' noise has the same weight in it).
What remains of the row sampling is larger than after n^2 steps. All methods share their seeds.

skdp's estimators have the same penalty and no intercept, and otherwise their defaults. Accuracy is
that on held-out rows, the objective that of the training rows. For GRPUA as printed, epsilon and
delta are what its Algorithm 2 is given, those of one step: the claimed total has delta n/1000 > 1.
A method is called better where its mean is so by more than two standard errors.
"""

import argparse
import dataclasses
import itertools
import json
import math
import warnings
from pathlib import Path

import numpy as np
from _baselines import (
    OutPert,
    PrintedGrpua,
    PrintedOpera,
    SgdPert,
    gradient_descent,
    make_loss,
)
from _ding_tables import load_tables

from skdp import GrpuaLogisticRegression, GrpuaSVC, OperaLogisticRegression, OperaSVC
from skdp.losses.base import evaluate

TITLE = "Ding et al.: OPERA and GRPUA, section V"
RESULTS = Path(__file__).parent / "results" / "ding.json"
EPSILONS = (1e-9, 1e-7, 1e-5, 1e-3, 1e-2, 0.1, 1.0)
DELTA = PENALTY = 1e-3
LOSSES = {"logistic": "logistic regression", "hinge": "SVM (smoothed hinge, h = 0.5)"}
SKDP = {
    "logistic": (OperaLogisticRegression, GrpuaLogisticRegression),
    "hinge": (OperaSVC, GrpuaSVC),
}
NONPRIV, OUTPERT, SGDPERT = "NonPriv", "OutPert", "SgdPert"
OPERA, GRPUA = "OPERA as printed (sound, loose)", "GRPUA as printed, not private"
OPERA_SKDP, GRPUA_SKDP = "OPERA, skdp", "GRPUA, skdp"
FIGURES = {
    2: ("logistic", "accuracy"),
    3: ("logistic", "objective"),
    4: ("hinge", "accuracy"),
    5: ("hinge", "objective"),
}
METHODS = (NONPRIV, OUTPERT, SGDPERT, OPERA, GRPUA, OPERA_SKDP, GRPUA_SKDP)
# What the text says of all four figures: the better method, the other one; and why it is or is not.
SHORT = "**no guarantee**"
CONDITIONS = (
    ("Figures 2 and 3", "accuracy and objective of logistic regression"),
    ("Figures 4 and 5", "the same of an SVM (smoothed hinge, h = 0.5)"),
    ("better", "by more than two standard errors, at each epsilon below 1; two values at 1e-09"),
    ("OPERA, small epsilon", "the analytic noise stops growing, but no accuracy is left there"),
    ("GRPUA as printed", "**no guarantee**: its noise is too small by a factor of 2n, nearly none"),
    ("skdp", "NonPriv, then OPERA and GRPUA of skdp, each at epsilon 0.01, 0.1 and 1; sound"),
    ("Table I", "seconds on Adult"),
)
CLAIMS = (
    (OPERA, OUTPERT, ""),
    (OPERA, GRPUA, SHORT),
    (GRPUA, SGDPERT, SHORT),
)


def simulate(method, table, times):
    """Return last iterates of a stochastic method as after n^2 steps; see above."""
    n = len(table.signs)
    steps = min(20 * n, method.steps(n))
    sigma = method.noise_scale(n) * math.sqrt(steps / method.steps(n))
    return method.simulate(table.X, table.signs, times, steps, sigma)


def draw_weights(name, loss, epsilon, table, times):
    """Return the weights of independent runs of one method, of shape (times, n_features)."""
    options = {"loss": loss, "penalty": PENALTY, "random_state": 0}
    if name in (OUTPERT, OPERA):
        method = (OutPert if name == OUTPERT else PrintedOpera)(epsilon, DELTA, **options)
        return method.release(table.X, table.signs, times)
    if name in (SGDPERT, GRPUA):
        method = (SgdPert if name == SGDPERT else PrintedGrpua)(epsilon, DELTA, **options)
        return simulate(method, table, times)
    if name == NONPRIV:
        return gradient_descent(table.X, table.signs, make_loss(loss), PENALTY, 2000)[np.newaxis]
    estimator = SKDP[loss][name == GRPUA_SKDP]
    fixed = {"alpha": PENALTY, "fit_intercept": False, "data_norm": 1.0}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*delta")  # It exceeds 1/n, as in the paper.
        fits = [
            estimator(epsilon, DELTA, random_state=run, **fixed).fit(table.X, table.signs)
            for run in range(times)
        ]
    return np.concatenate([fit.coef_ for fit in fits])


def evaluate_runs(weights, loss, table):
    """Return the accuracy and the objective value of each run."""
    accuracies = ((table.X_test @ weights.T > 0) == (table.signs_test > 0)[:, np.newaxis]).mean(0)
    margins = table.signs[:, np.newaxis] * (table.X @ weights.T)
    penalties = 0.5 * PENALTY * (weights**2).sum(axis=1)
    return accuracies, evaluate(make_loss(loss), 0, margins).mean(0) + penalties


def measure(table, loss, epsilons, times):
    """Yield one record for each method and epsilon."""
    for name in METHODS:
        for epsilon in (None,) if name == NONPRIV else epsilons:
            weights = draw_weights(name, loss, epsilon, table, times)
            accuracies, objectives = evaluate_runs(weights, loss, table)
            yield {
                **{"table": table.name, "loss": loss, "method": name, "epsilon": epsilon},
                **{"runs": len(weights), "n": len(table.signs)},
                "accuracy": [float(f"{f(accuracies):.4g}") for f in (np.mean, np.std)],
                "objective": [float(f"{f(objectives):.4g}") for f in (np.mean, np.std)],
            }


def measure_sample(loss):
    """Return records of a few runs on 500 rows of the first table, in a second or two."""
    table = next(load_tables())
    few = dataclasses.replace(table, X=table.X[:500], signs=table.signs[:500])
    few = dataclasses.replace(few, name=f"{table.name}, {len(few.signs)} rows")
    return list(measure(few, loss, (1e-9, 1.0), 3))


def read_results():
    """Return what the last full runs wrote: records of the "figures" and lines of the "seconds"."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"figures": [], "seconds": []}


def write_results(results, path=RESULTS):
    """Write results one record a line."""
    parts = [
        f'"{key}": [\n' + ",\n".join(json.dumps(record) for record in records) + "\n]"
        for key, records in results.items()
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("{" + ",\n".join(parts) + "}\n")


def by_table(records, loss):
    """Yield each table's name, its records for a loss, and their epsilons."""
    for table in dict.fromkeys(record["table"] for record in records):
        own = [record for record in records if (record["table"], record["loss"]) == (table, loss)]
        yield table, own, sorted({record["epsilon"] for record in own} - {None})


def find(records, method, epsilon, quantity):
    """Return mean, deviation and number of runs of one method on one table."""
    wanted = (method, None if method.startswith(NONPRIV) else epsilon)
    found = next(record for record in records if (record["method"], record["epsilon"]) == wanted)
    return *found[quantity], found["runs"]


def gain(records, better, worse, epsilon, quantity):
    """Return by how many standard errors one method is ahead of another."""
    (a, spread, m), (b, other, n) = (
        find(records, method, epsilon, quantity) for method in (better, worse)
    )
    error = math.sqrt(spread**2 / m + other**2 / n) or 1e-12
    return (a - b if quantity == "accuracy" else b - a) / error


def check_claim(own, better, worse, places, quantity):
    """Return at how many epsilons one method is better than another, and the verdict."""
    held = sum(gain(own, better, worse, epsilon, quantity) > 2.0 for epsilon in places)
    a, b = (find(own, method, places[0], quantity)[0] for method in (better, worse))
    found = f"at {held} of {len(places)} epsilons; {a:.3g} and {b:.3g} at {places[0]:g}"
    return found, "reproduced" if held == len(places) else "in part" if held else "not found"


def compare(records, loss, quantity):
    """Return (claim of the paper, what is found here, verdict) for each table and claim."""
    lines = []
    for table, own, epsilons in by_table(records, loss):
        places = [epsilon for epsilon in epsilons if epsilon < 1.0]
        for better, worse, why in CLAIMS:
            names = [method.split(" as ")[0] for method in (better, worse)]
            claim = f"{table}: {names[0]} better than {names[1]} at small epsilon"
            found, verdict = check_claim(own, better, worse, places, quantity)
            lines.append((claim, found, f"{verdict}; {why}" if why else verdict))
        shown = [(NONPRIV, None)]
        shown += [(method, epsilon) for method in METHODS[-2:] for epsilon in epsilons[-3:]]
        values = ", ".join(f"{find(own, *place, quantity)[0]:.3g}" for place in shown)
        lines.append((f"{table}: (not in the paper) NonPriv, OPERA, GRPUA", values, "sound"))
    return lines


def rows():
    """Return (figure or table, the paper's claim, what is found here, verdict) as text."""
    kept = read_results()
    lines = [
        (f"Figure {number}, {table}", claim.replace(" at small epsilon", ""), *found)
        for number, (loss, quantity) in FIGURES.items()
        for line, *found in compare(kept["figures"], loss, quantity)
        for table, claim in [line.split(": ", 1)]
    ]
    return lines + [("Table I", *line) for line in kept["seconds"]]


def print_table(records, loss, quantity, methods=METHODS):
    """Print mean and deviation of each method at each epsilon."""
    for table, own, epsilons in by_table(records, loss):
        print(f"\n{table}, {LOSSES.get(loss, loss)}: {quantity} at epsilon")
        print(" " * 32 + "".join(f"{epsilon:>19g}" for epsilon in epsilons))
        for method in methods:
            cells = [find(own, method, epsilon, quantity) for epsilon in epsilons]
            print(f"{method:32}" + "".join(f"{m:10.4g} +-{d:7.2g}" for m, d, _ in cells))


def draw(records, loss, quantities, path, methods=METHODS):
    """Draw means and deviations against epsilon, one panel for each table and quantity."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tables = list(by_table(records, loss))
    shape = (len(quantities), len(tables))
    figure, axes = pyplot.subplots(
        *shape, figsize=(5 * shape[1], 5 * shape[0]), squeeze=False, layout="constrained"
    )
    for ax, (quantity, panel) in zip(axes.flat, itertools.product(quantities, tables), strict=True):
        table, own, epsilons = panel
        for number, method in enumerate(methods):
            cells = [find(own, method, epsilon, quantity) for epsilon in epsilons]
            style = "--" if "printed" in method else ":" if "linear" in method else "-"
            means, spreads = [cell[0] for cell in cells], [cell[1] for cell in cells]
            ax.errorbar(epsilons, means, spreads, ls=style, color=f"C{number}", label=method)
        ax.set(xscale="log", xlabel="epsilon", title=table, ylabel=quantity)
        if quantity == "objective":
            ax.set_ylim(0.0, 2.5)  # As in the paper.
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    figure.savefig(path, dpi=70)
    print(f"wrote {path}")


QUICK = "A sample, measured now; what is found is said of it alone, in the last lines."


def told(text, fast):
    """Return what a script says of its figure: of a sample the title, without conclusions."""
    return f"{text.splitlines()[0]}\n\n{QUICK}" if fast else text


def show_figure(number, text):
    """Print a figure's numbers and claims, and draw it; the body of the figures' scripts."""
    parser = argparse.ArgumentParser(description=f"Figure {number} of Ding et al.")
    parser.add_argument("picture", nargs="?", help="file to draw into; needs matplotlib")
    parser.add_argument("--fast", action="store_true", help="measure a sample now")
    arguments = parser.parse_args()
    loss, quantity = FIGURES[number]
    print(told(text, arguments.fast))
    records = measure_sample(loss) if arguments.fast else read_results()["figures"]
    print_table(records, loss, quantity)
    print("\nThe paper shows | found here | verdict")
    for line in compare(records, loss, quantity):
        print(" | ".join(line))
    if arguments.picture:
        draw(records, loss, [quantity], arguments.picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--ipums", help="a user's own extract of IPUMS-BR")
    parser.add_argument("--fast", action="store_true", help="measure a sample, write nothing")
    arguments = parser.parse_args()
    if arguments.fast:
        print("\n".join(json.dumps(record) for loss in LOSSES for record in measure_sample(loss)))
        return
    records = []
    for table in load_tables(arguments.ipums):
        for loss in LOSSES:
            for record in measure(table, loss, EPSILONS, arguments.runs):
                print(json.dumps(record), flush=True)
                records.append(record)
    write_results({**read_results(), "figures": records})


if __name__ == "__main__":
    main()
