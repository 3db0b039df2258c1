"""Coverage of the intervals of `VariationalLogisticRegression` on simulated tables.

How often do they hold the true probability, against how often they say? On tables whose labels a
logistic model draws, in which the columns are independent, strongly correlated, or one-hot
categories, a label is rare, or rows are a third of `data_norm` at most: the share of fresh rows
whose 90 % interval holds their true probability; the excess of the expected log loss over that of
the truth; and the slope that a recalibration would multiply scores by. Beside it DP-SGD and
objective perturbation.

    # about five minutes; the file has all epsilons, the printed table .1 and 1
    python examples/benchmarks/variational_coverage.py --csv docs/measured/variational.csv
    python examples/benchmarks/variational_coverage.py --fast  # one table of each kind
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _measured import markdown, write_csv
from scipy.special import expit, logit, xlogy

from skdp import (
    DPSGDClassifier,
    ObjectivePerturbationLogisticRegression,
    VariationalLogisticRegression,
)

KINDS = {  # and bounds on row norms
    **{"independent": 4.0, "correlated": 4.5, "one-hot": 5.0**0.5},
    **{"rare label": 4.0, "loose bound": 12.0},
}
LONGEST = {"loose bound": 4.0}  # where rows are shorter
N_ROWS = 2000


COLUMNS = ["columns", "epsilon", "coverage", "uncorrected"]
COLUMNS += ["slope", "slope, DP-SGD", "slope, objective"]
COLUMNS += ["log loss", "log loss, DP-SGD", "log loss, objective"]


def shown(lines: list[list[str]]) -> list[list[str]]:
    """Return the lines of the page."""
    return [line for line in lines if line[1] in ("0.1", "1")]


def draw(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Return rows, clipped to their public bound."""
    if kind == "one-hot":
        shares = [0.4, 0.25, 0.15, 0.1, 0.07, 0.03]
        return np.hstack([np.eye(6)[rng.choice(6, n, p=shares)] for _ in range(5)])
    X = rng.standard_normal((n, 10))
    if kind == "correlated":
        X = rng.standard_normal((n, 1)) + 0.5 * X + 0.5
    return X / np.maximum(
        1.0, np.linalg.norm(X, axis=1, keepdims=True) / LONGEST.get(kind, KINDS[kind])
    )


def measure(clf: Any, X: Any, truth: Any) -> list[float]:
    """Return the excess log loss, the slope of a recalibration and the coverage."""
    p = np.clip(clf.predict_proba(X)[:, 1], 1e-12, 1.0 - 1e-12)
    excess = np.mean(xlogy(truth, truth / p) + xlogy(1.0 - truth, (1.0 - truth) / (1.0 - p)))
    columns, line = np.column_stack([np.ones_like(p), logit(p)]), np.array([0.0, 1.0])
    for _ in range(30):
        share = expit(columns @ line)
        hessian = (columns.T * (share * (1.0 - share))) @ columns + 1e-9 * np.eye(2)
        line = line + np.clip(np.linalg.solve(hessian, columns.T @ (truth - share)), -1.0, 1.0)
    if not hasattr(clf, "predict_interval"):
        return [float(excess), line[1], np.nan]
    low, high = clf.predict_interval(X, confidence=0.9).T
    return [float(excess), line[1], np.mean((low <= truth) & (truth <= high))]


def measurements(kind: str, epsilon: float, seed: int) -> Iterator[tuple[str, list[float]]]:
    rng = np.random.default_rng(seed)
    X, X_new = draw(kind, N_ROWS, rng), draw(kind, 4000, rng)
    weights = rng.standard_normal(X.shape[1])
    weights *= 1.8 / np.std(X_new @ weights)
    base = -3.0 if kind == "rare label" else 0.0
    truth, truth_new = (expit(base + (rows - X_new.mean(axis=0)) @ weights) for rows in (X, X_new))
    y = (rng.random(N_ROWS) < truth).astype(int)
    shared = {"data_norm": KINDS[kind], "classes": [0, 1], "random_state": seed}
    shared["adjacency"] = "add-remove"
    for name, clf in {
        "variational": VariationalLogisticRegression(epsilon, 1e-5, **shared),
        "noise ignored": VariationalLogisticRegression(epsilon, 1e-5, noise_aware=False, **shared),
        "DP-SGD": DPSGDClassifier(epsilon, 1e-5, **shared),
        "objective": ObjectivePerturbationLogisticRegression(epsilon, 1e-5, **shared),
    }.items():
        yield name, measure(clf.fit(X, y), X_new, truth_new)


def summary(kind: str, epsilon: float, seeds: int) -> list[str]:
    """Return a line of the table: means of coverage, medians of the others."""
    found: dict[str, list[list[float]]] = {}
    for seed in range(100, 100 + seeds):  # defaults were chosen on others
        for name, values in measurements(kind, epsilon, seed):
            found.setdefault(name, []).append(values)
    coverage = [np.mean(found[name], axis=0)[2] for name in ("variational", "noise ignored")]
    names = ("variational", "DP-SGD", "objective")
    excess, slopes, _ = np.transpose([np.median(found[name], axis=0) for name in names])
    numbers = [f"{number:.2f}" for number in (*coverage, *slopes)]
    return [kind, f"{epsilon:g}", *numbers, *(f"{number:.3f}" for number in excess)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="one table of each kind")
    parser.add_argument("--csv", type=Path, help="the file for all lines")
    arguments = parser.parse_args()
    seeds = 1 if arguments.fast else 20
    lines = [summary(kind, epsilon, seeds) for kind in KINDS for epsilon in (0.1, 0.5, 1.0, 3.0)]
    if arguments.csv:
        write_csv(arguments.csv, COLUMNS, lines)
    print(markdown(COLUMNS, shown(lines)))


if __name__ == "__main__":
    main()
