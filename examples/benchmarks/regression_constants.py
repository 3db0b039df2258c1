r"""Constants of PrivateLinearRegression, each changed alone, on simulated tables.

Printed is the mean over tables, relations and epsilons of the squared error of predictions beyond
that of ridge regression without privacy, in units of the targets' variance and at most 1.5. Tables
of seeds below 100 were for choosing; ``--first 100`` tries the choice on others. With
``--off-centre`` columns vary little around 1, under replace-one and with much budget.

    python examples/benchmarks/regression_constants.py --tables 60 --first 0
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from _simulated_tables import ENCODINGS, encode_rows
from sklearn.linear_model import Ridge

from skdp.mechanisms import RandomStream
from skdp.models import ScaledUnits
from skdp.plans.defaults import PublicNumbers
from skdp.plans.linear_regression import RegressionPlan, Tuning

CASES = ((0.15, "add-remove"), (0.4, "replace-one"), (1.0, "add-remove"), (1.0, "replace-one"))
TEST_ROWS = 3000
MUCH = ((2.0, "replace-one"), (10.0, "replace-one"), (20.0, "replace-one"))
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    *({"steps": value} for value in (20, 26, 40, 80)),
    *({"late": value} for value in (0.0, 1.0, 5.0)),
    *({"counts": value} for value in (0.1, 0.16)),
    *({"moments": value} for value in (0.15, 0.3)),
    *({"least_count": value} for value in (0.0, 2.0, 2.5, 3.5)),
    *({"told": value} for value in (0.0, 0.2, 0.5)),
    *({"floor": value} for value in (0.25, 0.35, 0.7)),
    *({"clip": value} for value in (0.3, 0.42)),
    *({"skew": value} for value in (0.0, 2.0)),
    *({"clips": (value, 8.0)} for value in (0.15, 0.35, 0.7)),
)


def draw_table(seed: int) -> tuple[Any, ...]:
    """Return rows, targets, the same to test on, bounds of targets and of rows."""
    rng = np.random.default_rng([19, seed])
    n = round(500.0 * 80.0 ** rng.random())
    widest = max(4.0, min(120.0, 6e5 / n))
    columns = round(4.0 * (widest / 4.0) ** rng.random())
    hidden, X, norm = encode_rows(rng, ENCODINGS[seed % len(ENCODINGS)], n + TEST_ROWS, columns)
    used = rng.random(hidden.shape[1]) < rng.choice([0.1, 0.3, 1.0])
    used[rng.integers(hidden.shape[1])] = True
    score = hidden @ (rng.normal(size=hidden.shape[1]) * used)
    score /= score.std()
    bends = (lambda s: s, np.tanh, lambda s: s + 0.5 * s**2)
    score = bends[rng.integers(3)](score)
    score = (score - score.mean()) / score.std()
    explained = rng.choice([0.2, 0.4, 0.6, 0.85])
    normal, heavy = rng.normal(size=len(score)), rng.standard_t(3, len(score)) / math.sqrt(3.0)
    error = (normal, heavy, rng.exponential(size=len(score)) - 1.0)[rng.integers(3)]
    y = math.sqrt(explained) * score + math.sqrt(1.0 - explained) * error
    low, high = np.quantile(y, [0.002, 0.998])
    wider = (high - low) * rng.uniform(0.0, 1.0, 2)
    bounds = low - wider[0], high + wider[1]
    y = np.clip(y, *bounds)
    return X[:n], y[:n], X[n:], y[n:], bounds, norm


def draw_off_centre(seed: int) -> tuple[Any, ...]:
    """Return the same of a table whose columns vary little around 1."""
    rng = np.random.default_rng([20, seed])
    n, d = round(1000.0 * 20.0 ** rng.random()), int(rng.integers(5, 31))
    X = 1.0 + rng.standard_normal((n + TEST_ROWS, d)) / 3.0
    y = X @ rng.standard_normal(d) / math.sqrt(d) + 0.1 * rng.standard_normal(len(X))
    norm = float(np.linalg.norm(X, axis=1).max())
    return X[:n], y[:n], X[n:], y[n:], (y.min() - 1.0, y.max() + 1.0), norm


def errors(first: int, tables: int, off_centre: bool = False) -> Iterator[list[float]]:
    """Yield the errors of each table and case, one for each change."""
    draw, cases = (draw_off_centre, MUCH) if off_centre else (draw_table, CASES)
    for seed in range(first, first + tables):
        X, y, X_test, y_test, (low, high), norm = draw(seed)
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        targets, truth = (y - middle) / half, (y_test - middle) / half
        best = max(Ridge(a).fit(X, y).score(X_test, y_test) for a in (0.01, 1.0, 10.0))
        length = np.maximum(norm, np.linalg.norm(X_test, axis=1))
        for epsilon, adjacency in cases:
            numbers = PublicNumbers(*X.shape, 1, epsilon, 1e-6, adjacency)
            found = []
            for change in CHANGES:
                tuning = replace(Tuning(), **change)
                plan = RegressionPlan.build(numbers, ScaledUnits(norm), True, tuning)
                stream = RandomStream.from_seed(seed)
                *weights, last, centre, _ = plan.carry_out(plan.bind(X, targets), stream)
                score = centre + X_test @ weights / length + last * plan.constant
                left = np.mean((np.clip(score, -1.0, 1.0) - truth) ** 2) / np.var(truth)
                found.append(min(float(left), 1.5) - (1.0 - best))
            yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--off-centre", action="store_true")
    arguments = parser.parse_args()
    table = np.array(list(errors(arguments.first, arguments.tables, arguments.off_centre)))
    beyond = table - table[:, :1]
    spread = beyond.reshape(arguments.tables, -1, len(CHANGES)).mean(axis=1).std(axis=0)
    print("| constant | error | beyond the default | standard error |\n|---|---|---|---|")
    for change, error, more, deviation in zip(
        CHANGES, table.mean(axis=0), beyond.mean(axis=0), spread, strict=True
    ):
        name = ", ".join(f"{key}={value}" for key, value in change.items()) or "default"
        uncertain = deviation / math.sqrt(arguments.tables)
        print(f"| {name} | {error:.5f} | {more:+.5f} | {uncertain:.5f} |")


if __name__ == "__main__":
    main()
