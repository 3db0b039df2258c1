r"""Networks against the line: ROC AUC of DPSGDClassifier with and without hidden layers.

All fits take their defaults; only epsilon, delta, the public row norm and the layers are given. The
tables and splits are those of accuracy.py.

    python examples/benchmarks/network_accuracy.py --seeds 3
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _datasets import Dataset, load_adult, load_bank, load_cardio
from accuracy import training_size
from sklearn.metrics import roc_auc_score

from skdp import DPSGDClassifier

LAYERS = {"line": (), "(32,)": (32,), "(100,)": (100,)}
EPSILONS = (1.0, 3.0, 8.0)


def areas(make: Callable[..., Any], table: Dataset, seeds: int) -> str:
    """Return mean and standard deviation of the ROC AUC, over noise and splits."""
    found = []
    for seed, (X, y, X_test, y_test) in enumerate(table.splits(seeds)):
        scores = make(random_state=seed).fit(X, y).predict_proba(X_test)[:, 1]
        found.append(roc_auc_score(y_test, scores))
    return f"{np.mean(found):.4f} ± {np.std(found):.4f}"


def measure(table: Dataset, seeds: int) -> None:
    """Print the rows of one table in markdown."""
    n_rows, delta = training_size(table)
    for epsilon in EPSILONS:
        cells = [
            areas(
                partial(
                    DPSGDClassifier,
                    epsilon,
                    delta,
                    data_norm=table.data_norm,
                    hidden_layer_sizes=layers,
                ),
                table,
                seeds,
            )
            for layers in LAYERS.values()
        ]
        print(f"| {table.name} (n = {n_rows}) | {epsilon:g} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"| table | epsilon | {' | '.join(LAYERS)} |")
    print("|---" * (2 + len(LAYERS)) + "|")
    for load in (load_bank, load_adult, load_cardio):
        measure(load(arguments.data), arguments.seeds)


if __name__ == "__main__":
    main()
