"""ROC AUC by the encoding of months, weekdays and hours, on simulated admissions.

The outcome follows the season, weekends and nights, and the years in a curve. Compared are the
waves of `DateColumn`, its first waves alone, and one category for each month, weekday and hour, at
the same norm. `ObjectivePerturbationLogisticRegression` keeps its defaults.

    python examples/benchmarks/dates.py --seeds 10
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import ObjectivePerturbationLogisticRegression
from skdp.preprocessing import CategoricalColumn, DateColumn

Rows = np.ndarray
BOUNDS = "2015-01-01", "2024-12-31"
PARTS = ("month", "weekday", "hour")
SIZES = {"month": 12, "weekday": 7, "hour": 24}


def admissions(n: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return dates with a time of day, and outcomes."""
    seconds = rng.integers(0, 3652 * 86400, n)
    dates = np.datetime64(BOUNDS[0], "s") + seconds.astype("m8[s]")
    place = places(dates)
    winter = np.cos(2 * np.pi * place["month"] / 12)
    score = 0.7 * winter + 0.7 * (place["weekday"] >= 5) + 0.7 * (place["hour"] < 7) - 1.5
    return dates, rng.random(n) < 1 / (1 + np.exp(-score))


def places(dates: Rows) -> dict[str, Rows]:
    """Return the place of dates in each cycle."""
    seconds = dates.astype(np.int64)
    months = dates.astype("M8[M]").astype(np.int64)
    return {
        "month": months % 12,
        "weekday": (seconds // 86400 + 3) % 7,
        "hour": seconds // 3600 % 24,
    }


def waves(dates: Rows) -> Rows:
    """Return the features of a column of dates."""
    return DateColumn("day", *BOUNDS, parts=PARTS).encode(dates)


def first_waves(dates: Rows) -> Rows:
    """Return one turn of each cycle."""
    turns = [2 * np.pi * own / SIZES[part] for part, own in places(dates).items()]
    return np.column_stack([f(turn) for turn in turns for f in (np.cos, np.sin)]) / np.sqrt(3)


def categories(dates: Rows) -> Rows:
    """Return centred categories of each cycle."""
    blocks = [
        CategoricalColumn(part, list(range(SIZES[part]))).encode(own)
        for part, own in places(dates).items()
    ]
    return np.hstack(blocks) / np.sqrt(3)


ENCODINGS: dict[str, Callable[[Rows], Rows]] = {
    "waves": waves,
    "first waves": first_waves,
    "categories": categories,
}


def area(encode: Callable[[Rows], Rows], n: int, epsilon: float, seed: int) -> float:
    """Return the ROC AUC on 20,000 other admissions."""
    rng = np.random.default_rng(seed)
    (X, y), (X_test, y_test) = admissions(n, rng), admissions(20_000, rng)
    settings: dict[str, Any] = {"data_norm": 1.0, "classes": [False, True], "random_state": seed}
    model = ObjectivePerturbationLogisticRegression(epsilon=epsilon, delta=1e-6, **settings)
    return float(roc_auc_score(y_test, model.fit(encode(X), y).decision_function(encode(X_test))))


def main() -> None:
    """Print one line of markdown for each encoding and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_500, 15_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 8.0])
    options = parser.parse_args()
    print(f"| rows | encoding | {' | '.join(map(str, options.epsilons))} |")
    for n in options.rows:
        for name, encode in ENCODINGS.items():
            runs = [
                [area(encode, n, epsilon, seed) for seed in range(options.seeds)]
                for epsilon in options.epsilons
            ]
            cells = " | ".join(f"{np.mean(run):.4f}" for run in runs)
            print(f"| {n:,} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
