"""How often the intervals of `PrivateEvaluation` hold, how wide they are, and what noise costs.

Populations are scores and labels of real models on rows that they have not seen (Adult, Bank,
Cardio, SUPPORT2), of a tree, with ties, of a rare class and of a nearly perfect classifier. Samples
of n are drawn from each with replacement, released with the noise that `PrivateEvaluation` draws,
and every interval is held against the figure of the population.

    python examples/benchmarks/evaluation_coverage.py         # about half an hour
    python examples/benchmarks/evaluation_coverage.py --fast  # one size and epsilon, 100 draws
"""

import sys
import time
from typing import Any

import numpy as np
from _datasets import data_directory, load_adult, load_bank, load_cardio
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from skdp import ObjectivePerturbationLogisticRegression
from skdp.mechanisms import RandomStream
from skdp.metrics import PrivateEvaluationResult
from skdp.metrics.calibration import calibration_cells
from skdp.metrics.release import ReleasePlan
from skdp.metrics.result import FIGURES

FAST = "--fast" in sys.argv
SIZES, EPSILONS, DRAWS = (500, 2000, 15_000, 50_000), (0.1, 1.0, 3.0), 1000
if FAST:
    SIZES, EPSILONS, DRAWS = (15_000,), (1.0,), 100
VITALS = "age num.co meanbp hrt resp temp scoma crea sod wblc alb bili pafi".split()


def populations() -> dict[str, Any]:
    """Return scores, labels, and the values that scores can take where they are few."""
    rng, found = np.random.default_rng(0), {}
    adult = load_adult()
    private = ObjectivePerturbationLogisticRegression(
        1.0, 1e-6, data_norm=adult.data_norm, random_state=0
    )
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    for name, model in (("Adult", private), ("tree", tree)):
        scores = model.fit(adult.X, adult.y).predict_proba(adult.X_test)[:, 1]
        found[name] = scores, adult.y_test, np.unique(scores) if name == "tree" else None
    for name, load, model in (
        ("Bank", load_bank, LogisticRegression(max_iter=300)),
        ("Cardio", load_cardio, HistGradientBoostingClassifier(random_state=0)),
    ):
        X, y, X_test, y_test = next(load().splits(1))
        found[name] = model.fit(X, y).predict_proba(X_test)[:, 1], y_test, None
    found["SUPPORT2"] = support2()
    found["ties"] = np.round(20.0 * found["Cardio"][0]) / 20.0, y_test, np.arange(21) / 20.0
    rare = expit(rng.normal(-4.6, 1.2, 400_000))
    found["rare"] = rare, (rng.uniform(size=rare.size) < rare).astype(int), None
    labels = (rng.uniform(size=400_000) < 0.3).astype(int)
    found["perfect"] = expit(rng.normal(5.0 * (2 * labels - 1), 1.0)), labels, None
    return found


def support2() -> tuple[Any, Any, None]:
    """Return deaths in hospital, forecast from vital signs by half of the patients."""
    import pandas as pd

    frame = pd.read_csv(data_directory() / "support2.csv.gz", index_col=0)
    X = ((frame[VITALS] - frame[VITALS].median()) / frame[VITALS].std()).fillna(0).to_numpy()
    y = frame["hospdead"].to_numpy().astype(int)
    model = LogisticRegression().fit(X[::2].clip(-4, 4), y[::2])
    return model.predict_proba(X[1::2].clip(-4, 4))[:, 1], y[1::2], None


def truth(scores: Any, labels: Any) -> dict[str, float]:
    """Return the figures of a population that do not depend on bins."""
    said, ill = scores >= 0.5, labels == 1
    odds = np.clip(logit(np.clip(scores, 1e-9, 1 - 1e-9)), -5.0, 5.0)[:, None]
    slope = LogisticRegression(C=1e12, max_iter=1000, tol=1e-9).fit(odds, labels).coef_[0, 0]
    sensitivity, specificity = said[ill].mean(), (~said)[~ill].mean()
    return {
        **{"accuracy": (said == ill).mean(), "prevalence": ill.mean()},
        **{"sensitivity": sensitivity, "specificity": specificity},
        "balanced_accuracy": 0.5 * (sensitivity + specificity),
        **{"ppv": ill[said].mean(), "npv": (~ill)[~said].mean()},
        "roc_auc": roc_auc_score(labels, scores),
        "average_precision": average_precision_score(labels, scores),
        "brier_score": ((scores - labels) ** 2).mean(),
        "calibration_in_the_large": (labels - scores).mean(),
        "calibration_slope": slope,
    }


def measure(population: Any, known: dict[str, float], n: int, epsilon: float) -> dict[str, Any]:
    """Return coverage, median width, milliseconds and root mean square errors of each figure."""
    scores, labels, values = population
    rng, stream = np.random.default_rng(n), RandomStream.from_seed(round(10 * epsilon) + n)
    plan = ReleasePlan.build(
        *(epsilon, 1e-6, "add-remove", n, np.arange(2)), thresholds=(0.5,), score_values=values
    )
    places = plan.bins.places(scores)
    pairs = np.histogram(labels * plan.bins.count + places, np.arange(2 * plan.bins.count + 1))[0]
    gaps = calibration_cells(plan.bins) @ np.bincount(places, labels - scores, plan.bins.count)
    real = {**known, "expected_calibration_error": np.abs(gaps).sum() / len(scores)}
    rows: dict[str, list[Any]] = {name: [] for name in FIGURES}
    for _ in range(DRAWS):
        fine = rng.multinomial(n, pairs / len(scores)).reshape(1, 1, 2, -1)
        tables = [plan.release([fine, plan.coarsen(fine)], stream)]
        if (n, epsilon) == (15_000, 1.0):  # where errors without noise are wanted
            tables.append(plan.assemble(fine.astype(float), plan.coarsen(fine)))
        results = [PrivateEvaluationResult(table, None, 0.95, 0.5) for table in tables]
        for name, kept in rows.items():
            start = time.perf_counter()
            figure, *others = (getattr(result, name) for result in results)
            taken = (time.perf_counter() - start) / len(results)
            low, high = figure.interval
            held = low - 1e-12 <= real[name] <= high + 1e-12
            kept.append([held, high - low, taken, figure - real[name]])
            kept[-1] += [float(other) - real[name] for other in others]
    found = {}
    for name, kept in rows.items():
        held, widths, taken, *errors = np.array(kept).T
        spread = [float(np.sqrt(np.nanmean(error**2))) for error in errors]
        found[name] = held.mean(), np.median(widths), 1e3 * np.median(taken), spread
    return found


def main() -> None:
    """Print a line for each population, size and epsilon, and a summary."""
    found = populations()
    print(f"{'coverage':28}" + " ".join(f"{name[:8]:>8}" for name in FIGURES), flush=True)
    every, ratios, widths, taken = [], {}, {}, []
    for name, population in found.items():
        known = truth(*population[:2])
        for n in SIZES:
            for epsilon in EPSILONS:
                cell = measure(population, known, n, epsilon)
                every.append([cell[figure][0] for figure in FIGURES])
                taken.append([cell[figure][2] for figure in FIGURES])
                widths[name, n, epsilon] = [cell[figure][1] for figure in FIGURES]
                show(f"{name} {n} {epsilon}", every[-1])
                if (n, epsilon) == (15_000, 1.0):
                    ratios[name] = [
                        np.divide(*cell[figure][3]) if cell[figure][3][1] > 1e-6 else np.nan
                        for figure in FIGURES
                    ]
    show("mean coverage", np.mean(every, axis=0))
    show("lowest", np.min(every, axis=0))
    show("milliseconds", np.median(taken, axis=0))
    for name, row in ratios.items():
        show(f"error ratio {name}", row)
    for (name, n, epsilon), row in widths.items():
        show(f"width {name} {n} {epsilon}", row)


def show(title: str, row: Any) -> None:
    """Print one line."""
    print(f"{title:28}" + " ".join(f"{value:8.3f}" for value in row), flush=True)


if __name__ == "__main__":
    main()
