"""How often the intervals of `PrivateRegressionEvaluation` hold, and what its noise costs.

Populations are targets and predictions of ridge regressions on rows that they have not seen
(rings of Abalone, systolic pressure of Cardio) and of simulated costs whose spread grows with their
mean. Samples of n are drawn from each with replacement, released with normal noise, which that of
the evaluation on its fine grid is as good as, and every interval is held against the figure of the
population; of errors of the same sample without noise, those with noise are so many times the size.

    python examples/benchmarks/regression_evaluation.py           # about six minutes of a processor
    python examples/benchmarks/regression_evaluation.py --draws 20 --relation add-remove
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from regression import load_abalone
from sklearn.linear_model import Ridge

from skdp.metrics import PrivateRegressionResult
from skdp.metrics.errors import ErrorPlan, ErrorTables
from skdp.statistics.noise import UNIT

SIZES, EPSILONS = (500, 2000, 15_000, 50_000), (0.1, 1.0, 3.0)
FIGURES = (
    *("r2", "mean_absolute_error", "root_mean_squared_error", "mean_error"),
    "median_absolute_error",
)


class Population(NamedTuple):
    """Targets, predictions, and public numbers."""

    name: str
    truth: np.ndarray
    said: np.ndarray
    bounds: tuple[float, float]
    largest_error: float


def predict_half(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return targets and predictions of the half of the rows that is not learned from."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return y[test], Ridge().fit(X[train], y[train]).predict(X[test])


def load_pressure(directory: str) -> tuple[np.ndarray, np.ndarray]:
    """Return age, sex, height, weight, laboratory and habits, and the systolic pressure."""
    with gzip.open(Path(directory) / "cardio_train.csv.gz", "rt") as file:
        rows = np.array([line.strip().split(";") for line in file][1:], dtype=float)
    return np.delete(rows, [0, 5, 6, 12], axis=1), rows[:, 5]


def populations(directory: str) -> Iterator[Population]:
    """Yield them, targets and predictions within their bounds."""
    rng = np.random.default_rng(0)
    mean = np.exp(1.2 + 0.5 * rng.normal(size=200_000))
    tables = [("cost", mean * rng.gamma(2.0, 0.5, mean.size), mean, (0.0, 60.0), 20.0)]
    if directory:
        rings = predict_half(*load_abalone(directory))
        pressure = predict_half(*load_pressure(directory))
        tables += [
            ("Abalone", *rings, (1.0, 30.0), 29.0),
            ("Abalone to 10", *rings, (1.0, 30.0), 10.0),
            ("Cardio to 80", *pressure, (60.0, 240.0), 80.0),
        ]
    for name, truth, said, bounds, largest in tables:
        yield Population(name, np.clip(truth, *bounds), np.clip(said, *bounds), bounds, largest)


def figures_of(truth: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Return the figures of rows without noise."""
    error, spread = truth - said, truth.var()
    square, sizes = (error**2).mean(), np.abs(error)
    r2 = 1.0 - square / spread if spread > 0.0 else -math.inf
    return np.array([r2, sizes.mean(), square**0.5, error.mean(), np.median(sizes)])


def gaps_held(tables: ErrorTables, result: PrivateRegressionResult, rows: Population) -> list[bool]:
    """Return for each cell of the calibration curve with rows whether its gap is held."""
    low, high = rows.bounds
    points = result.calibration_curve()
    bins = tables.counts.shape[1]
    place = np.minimum((rows.said - low) / (high - low), 1 - 1e-12) * bins
    first = [(point.threshold - low) / (high - low) * bins for point in points]
    cells = np.searchsorted(np.round(first).astype(int), place.astype(int), side="right") - 1
    counts, sums = np.bincount(cells), np.bincount(cells, rows.truth - rows.said)
    held = []
    for point, count, total in zip(points, counts, sums, strict=False):
        gap = total / count if count else math.nan
        ends = (end - point.x for end in point.y.interval)
        if count >= 0.01 * cells.size:
            held.append(next(ends) <= gap <= next(ends))
    return held


def release(plan: ErrorPlan, exact: list[np.ndarray], rng: np.random.Generator) -> ErrorTables:
    """Return tables with normal noise of the plan's scales."""
    return plan.assemble(
        *(
            part / UNIT + noise.people * rng.standard_normal(part.shape)
            for part, noise in zip(exact, plan.releases, strict=True)
        )
    )


def measure(rows: Population, n: int, epsilon: float, relation: Any, draws: int) -> Any:
    """Return coverage, widths and error ratio of each figure, and coverage of calibration gaps."""
    rng = np.random.default_rng([n, round(10 * epsilon)])
    options = {"bounds": rows.bounds, "largest_error": rows.largest_error}
    plan = ErrorPlan.build(epsilon, 1e-6, relation, n, **options)
    wanted = figures_of(rows.truth, rows.said)
    found, gaps = [], []
    for draw in range(draws):
        drawn = rng.integers(rows.truth.size, size=n)
        truth, said = rows.truth[drawn], rows.said[drawn]
        tables = release(plan, plan.count(truth, said, None), rng)
        result: Any = PrivateRegressionResult(tables, None, 0.95)  # type: ignore[arg-type]
        noisy = [getattr(result, name) for name in FIGURES]
        ends = np.array([figure.interval for figure in noisy])
        held = (ends[:, 0] - 1e-9 <= wanted) & (wanted <= ends[:, 1] + 1e-9)
        plain = figures_of(truth, said)
        found.append([held, ends[:, 1] - ends[:, 0], np.array(noisy) - wanted, plain - wanted])
        if draw % 10 == 0:
            gaps += gaps_held(tables, result, rows)
    held, widths, noisy_errors, errors = np.array(found, dtype=float).transpose(1, 0, 2)
    ratio = np.sqrt((noisy_errors**2).mean(axis=0) / (errors**2).mean(axis=0))
    return held.mean(axis=0), np.median(widths, axis=0), ratio, float(np.mean(gaps))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"))
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--relation", default="add-remove replace-one")
    parser.add_argument("--population", help="one of them by name, for instance 'Cardio to 80'")
    arguments = parser.parse_args()
    print("| population | relation | n | epsilon | coverage | width | error ratio | gaps |")
    print("|---" * 8 + "|", flush=True)
    every, gaps = [], []
    for rows in populations(arguments.data):
        if arguments.population not in (None, rows.name):
            continue
        for relation in arguments.relation.split():
            for n in SIZES:
                for epsilon in EPSILONS:
                    found = measure(rows, n, epsilon, relation, arguments.draws)
                    every.append(found[0])
                    gaps.append(found[3])
                    shown = [" ".join(f"{part:.3g}" for part in each) for each in found[:3]]
                    cells = " | ".join([*shown, f"{found[3]:.3f}"])
                    start = f"| {rows.name} | {relation} | {n:,} | {epsilon:g} |"
                    print(f"{start} {cells} |", flush=True)
    for name, function in (("mean", np.mean), ("lowest", np.min), ("highest", np.max)):
        held = " ".join(f"{part:.3f}" for part in function(every, axis=0))
        print(f"{name} of {len(every)} cells: {held}, gaps {function(gaps):.3f}")


if __name__ == "__main__":
    main()
