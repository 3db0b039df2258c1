"""How often the intervals of `PrivateEvaluation` hold, how wide they are, and what noise costs.

Populations are scores and labels of real models on rows that they have not seen (Adult, Bank,
Cardio, SUPPORT2), of a tree, with ties, of a rare class and of a nearly perfect classifier. Samples
of n are drawn from each with replacement, released with the noise that `PrivateEvaluation` draws,
and every interval is held against the figure of the population.

    python examples/benchmarks/evaluation_coverage.py          # about half an hour
    python examples/benchmarks/evaluation_coverage.py --epsilon 0.5   # one of the four
    python examples/benchmarks/evaluation_coverage.py --fast   # one size and epsilon, 100 draws
    python examples/benchmarks/evaluation_coverage.py --width  # widths to expect, in seconds
"""

import sys
import time
from typing import Any

import numpy as np
from _score_populations import populations
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from skdp.mechanisms import RandomStream
from skdp.metrics import PrivateEvaluation, PrivateEvaluationResult
from skdp.metrics.calibration import calibration_cells
from skdp.metrics.record import FIGURES
from skdp.metrics.release import ReleasePlan

FAST = "--fast" in sys.argv
SIZES, EPSILONS, DRAWS = (500, 2000, 15_000, 50_000), (0.1, 0.5, 1.0, 3.0), 1000
if "--epsilon" in sys.argv:
    EPSILONS = (float(sys.argv[-1]),)
if FAST:
    SIZES, EPSILONS, DRAWS = (15_000,), (1.0,), 100


def truth(scores: Any, labels: Any) -> dict[str, float]:
    """Return the figures of a population that do not depend on bins."""
    said, ill = scores >= 0.5, labels == 1
    # As `calibration_slope` says: log odds beyond the outermost edge count as these.
    odds = np.clip(logit(np.clip(scores, 1e-9, 1 - 1e-9)), -6.0, 6.0)[:, None]
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
    show("coverage", [name[:8] for name in FIGURES])
    every, ratios, taken = [], {}, []
    for name, population in populations().items():
        known = truth(*population[:2])
        for n in SIZES:
            for epsilon in EPSILONS:
                held, _, milliseconds, errors = zip(
                    *measure(population, known, n, epsilon).values(), strict=True
                )
                every.append(held)
                taken.append(milliseconds)
                show(f"{name} {n} {epsilon}", held)
                if (n, epsilon) == (15_000, 1.0):
                    ratios[name] = [up / down if down > 1e-6 else np.nan for up, down in errors]
    show("mean coverage", np.mean(every, axis=0))
    show("lowest", np.min(every, axis=0))
    show("milliseconds", np.median(taken, axis=0))
    for name, row in ratios.items():
        show(f"error ratio {name}", row)


def expect() -> None:
    """Print the widths to expect of 95 % intervals, from public numbers."""
    names = ("accuracy", "sensitivity", "ppv", "roc_auc", "average_precision", "calibration_slope")
    show("n, positives, epsilon", [name[:8] for name in names])
    for n in SIZES:
        for prevalence in (0.02, 0.1, 0.3):
            for epsilon in EPSILONS:
                thresholds = (prevalence,)
                evaluation = PrivateEvaluation(epsilon, thresholds=thresholds)
                widths = evaluation.expected_widths(n, prevalence)
                show(f"{n} {prevalence} {epsilon}", [widths[name] for name in names])


def show(title: str, row: Any) -> None:
    """Print one line."""
    cells = (f"{part:>8}" if isinstance(part, str) else f"{part:8.3f}" for part in row)
    print(f"{title:28}" + " ".join(cells), flush=True)


if __name__ == "__main__":
    expect() if "--width" in sys.argv else main()
