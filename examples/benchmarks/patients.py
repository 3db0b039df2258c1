"""Patients with 1 to 40 rows: accuracy of each way to protect a whole patient, and speed.

Simulated studies: rows of one patient lie around a centre of its own, labels follow a logistic
rule with a patient's own shift, and the number of rows is skewed. Every column of the table has
the same guarantee for all rows of a patient; scores are AUC on one row each of other patients.

    python examples/benchmarks/patients.py --repeats 20
    python examples/benchmarks/patients.py --speed
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import (
    DPSGDClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.mechanisms import analytic_gaussian_epsilon, analytic_gaussian_sigma

MOST_ROWS, COLUMNS, DELTA = 40, 10, 1e-6
ESTIMATORS = (OperaLogisticRegression, ObjectivePerturbationLogisticRegression, DPSGDClassifier)
Study = tuple[np.ndarray, np.ndarray, np.ndarray]
Way = tuple[str, float, dict[str, Any] | None]


def draw_study(n_patients: int, alike: float, seed: int) -> Study:
    """Return rows of norm at most 1, labels and ids; `alike` is the share between patients."""
    rng = np.random.default_rng(seed)
    counts = np.clip(rng.lognormal(1.8, 1.0, n_patients).astype(int), 1, MOST_ROWS)
    ids = np.repeat(np.arange(n_patients), counts)
    between = rng.standard_normal((n_patients, COLUMNS))[ids]
    within = rng.standard_normal((ids.size, COLUMNS))
    X = np.sqrt(alike) * between + np.sqrt(1.0 - alike) * within
    rule = np.linspace(1.0, -1.0, COLUMNS)
    shift = rng.standard_normal(n_patients)[ids]
    y = (X @ rule + shift + rng.logistic(size=ids.size) > 0.5).astype(int)
    X /= np.maximum(4.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, y, ids


def ways(epsilon: float) -> Iterator[Way]:
    """Yield ways to protect a patient: name, epsilon of the fit, and settings with groups=."""
    yield "mean of rows", epsilon, {"unit_weighting": "mean"}
    yield "random row", epsilon, {"unit_weighting": "random-row"}
    for most in (3, 10):
        yield f"sum, cap {most}", epsilon, {"unit_weighting": "sum", "max_unit_rows": most}
    # A group of 40 has 40 times the mu of a row.
    sigma = MOST_ROWS * analytic_gaussian_sigma(epsilon, DELTA)
    yield "group of 40", analytic_gaussian_epsilon(sigma, DELTA), None


def fit(cls: Callable[..., Any], way: Way, study: Study) -> Any:
    """Fit one estimator in one way; None where that is refused."""
    _, epsilon, settings = way
    X, y, ids = study
    model = cls(epsilon, DELTA, classes=[0, 1], data_norm=1.0, adjacency="replace-one")
    if settings is None:
        return model.fit(X, y)
    return model.set_params(**settings).fit(X, y, groups=ids)


def score(model: Any, study: Study) -> float:
    """Return the AUC on one row of each patient."""
    X, y, ids = study
    rows = np.unique(ids, return_index=True)[1]
    return float(roc_auc_score(y[rows], model.decision_function(X[rows])))


def print_accuracy(repeats: int) -> None:
    """Print mean AUC, its standard error in brackets, in thousandths; of large studies fewer."""
    names = [name for name, *_ in ways(1.0)]
    print(f"| patients | alike | epsilon | estimator | {' | '.join(names)} |")
    print("|" + "---|" * (len(names) + 4))
    for n_patients, fewer in ((2000, 1), (10000, 4)):
        for alike in (0.2, 0.8):
            for epsilon in (0.1, 1.0):
                for cls in ESTIMATORS:
                    times = repeats // fewer
                    cells = [_cell(cls, way, n_patients, alike, times) for way in ways(epsilon)]
                    start = f"| {n_patients:,} | {alike} | {epsilon} | {cls.__name__}"
                    print(f"{start} | {' | '.join(cells)} |", flush=True)


def _cell(cls: Any, way: Any, n_patients: int, alike: float, repeats: int) -> str:
    test = draw_study(20000, alike, 10**6)
    found = []
    for seed in range(repeats):
        found.append(score(fit(cls, way, draw_study(n_patients, alike, seed)), test))
    error = np.std(found, ddof=1) / np.sqrt(repeats)
    return f".{1000 * np.mean(found):03.0f} ({1000 * error:.0f})"


def print_speed() -> None:
    """Print the time of a fit with groups= over that of one without, on the same rows."""
    X, y, ids = draw_study(20000, 0.5, 0)
    kinds = {"numbers": ids, "texts": np.char.add("patient ", ids.astype(str))}
    print(
        f"{len(y):,} rows of {ids.max() + 1:,} patients, milliseconds of the processor (best of 7)"
    )
    for cls, settings in (
        (OperaLogisticRegression, {"alpha": 1e-3}),
        (DPSGDClassifier, {"max_iter": 150}),
        (DPSGDClassifier, {"max_iter": 150, "batch_size": 1000}),
    ):
        model = cls(1.0, DELTA, classes=[0, 1], data_norm=1.0, **settings)
        times = {"none": _best(model, X, y)}
        # The same share of the table in each step.
        if "batch_size" in settings:
            share = settings["batch_size"] / len(y)
            model.set_params(batch_size=round(share * (ids.max() + 1)))
        times |= {kind: _best(model, X, y, groups=each) for kind, each in kinds.items()}
        found = ", ".join(f"{kind} {1000 * seconds:.0f}" for kind, seconds in times.items())
        print(f"{cls.__name__} {settings}: {found}; ratio {times['numbers'] / times['none']:.2f}")


def _best(model: Any, X: np.ndarray, y: np.ndarray, **groups: Any) -> float:
    times = []
    for _ in range(7):
        begin = time.process_time()
        model.fit(X, y, **groups)
        times.append(time.process_time() - begin)
    return min(times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--speed", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.speed:
        print_speed()
    else:
        print_accuracy(arguments.repeats)
