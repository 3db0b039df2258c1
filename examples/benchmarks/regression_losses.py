r"""Regressors that minimise other losses than squares: what they explain of Abalone.

Defaults throughout; only public bounds are given. The quantile is the median. Abalone is read from
the directory that --data or the environment variable SKDP_DATA names.

    python examples/benchmarks/regression_losses.py --csv docs/measured/regression_losses.csv

The CSV file has all epsilons, the printed table those of `SHOWN`.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from _measured import markdown, write_csv
from regression import EPSILONS, LARGEST, RELATIONS, load_abalone

from skdp import (
    DPSGDRegressor,
    GrpuaHuberRegressor,
    ObjectivePerturbationHuberRegressor,
    OperaHuberRegressor,
)

COLUMNS = ["regressor", *(f"{epsilon:g}" for epsilon in EPSILONS)]
SHOWN = ("regressor", "0.15", "1", "8")
LOSSES = ("squared_error", "huber", "pseudo_huber", "quantile", "poisson")


def regressors() -> dict[str, Any]:
    """Return the regressors by the name of their row."""
    found: dict[str, Any] = {
        cls.__name__: cls()
        for cls in (ObjectivePerturbationHuberRegressor, GrpuaHuberRegressor, OperaHuberRegressor)
    }
    return found | {f'DPSGDRegressor(loss="{loss}")': DPSGDRegressor(loss=loss) for loss in LOSSES}


def score(model: Any, X: np.ndarray, y: np.ndarray, seeds: int) -> float:
    """Return the mean R2 on test rows, a fifth of the table."""
    scores = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [round(0.8 * len(y))])
        scores.append(model.fit(X[train], y[train]).score(X[test], y[test]))
    return float(np.mean(scores))


def shown(rows: list[list[str]]) -> list[list[str]]:
    """Return the columns of the page."""
    return [[row[COLUMNS.index(name)] for name in SHOWN] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--csv", type=Path, help="the file for all columns")
    arguments = parser.parse_args()
    X, y = load_abalone(arguments.data)
    public = {"delta": 1e-5, "target_bounds": (1, 30), "data_norm": math.sqrt(len(LARGEST) + 1)}
    rows = []
    for name, model in regressors().items():
        rows.append([f"`{name}`"])
        for epsilon in EPSILONS:
            pair = []
            for relation in RELATIONS:
                model.set_params(epsilon=epsilon, adjacency=relation, **public)
                pair.append(f"{score(model, X, y, arguments.seeds):.3f}")
            rows[-1].append(" / ".join(pair))
    if arguments.csv:
        write_csv(arguments.csv, COLUMNS, rows)
    print("R2 on test rows of Abalone (add-remove / replace-one), delta = 1e-5\n")
    print(markdown(SHOWN, shown(rows)))


if __name__ == "__main__":
    main()
