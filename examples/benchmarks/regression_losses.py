r"""Regressors that minimise other losses than squares: what they explain of Abalone.

Defaults throughout; only public bounds are given. The quantile is the median. Abalone is read from
the directory that --data or the environment variable SKDP_DATA names.

    python examples/benchmarks/regression_losses.py --seeds 5
"""

from __future__ import annotations

import argparse
import math
import os
from typing import Any

import numpy as np
from regression import EPSILONS, LARGEST, RELATIONS, load_abalone

from skdp import (
    DPSGDRegressor,
    GrpuaHuberRegressor,
    ObjectivePerturbationHuberRegressor,
    OperaHuberRegressor,
)

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    X, y = load_abalone(arguments.data)
    public = {"delta": 1e-5, "target_bounds": (1, 30), "data_norm": math.sqrt(len(LARGEST) + 1)}
    print("\nR2 on test rows of Abalone (add-remove / replace-one), delta = 1e-5\n")
    print("| regressor | " + " | ".join(f"{epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---" * (1 + len(EPSILONS)) + "|")
    for name, model in regressors().items():
        cells = []
        for epsilon in EPSILONS:
            pair = []
            for relation in RELATIONS:
                model.set_params(epsilon=epsilon, adjacency=relation, **public)
                pair.append(f"{score(model, X, y, arguments.seeds):.3f}")
            cells.append(" / ".join(pair))
        print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
