r"""Networks against the line: ROC AUC of DPSGDClassifier with and without hidden layers.

All fits take their defaults; only epsilon, delta, the public row norm and the layers are given. The
tables and splits are those of accuracy.py.

    python examples/benchmarks/network_accuracy.py --seeds 3
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from _datasets import Dataset, load_adult, load_bank, load_cardio
from accuracy import training_size
from sklearn.metrics import roc_auc_score

from skdp import DPSGDClassifier

LAYERS = {"line": (), "(32,)": (32,), "(100,)": (100,)}
EPSILONS = (1.0, 3.0, 8.0)


def areas(table: Dataset, split: int, seeds: int) -> Iterator[tuple[tuple[float, str], float]]:
    """Yield (epsilon, layers) and the ROC AUC of one fit each on one of the splits."""
    X, y, X_test, y_test = list(table.splits(seeds))[split]
    delta = training_size(table)[1]
    for epsilon in EPSILONS:
        for name, layers in LAYERS.items():
            model = DPSGDClassifier(
                epsilon,
                delta,
                data_norm=table.data_norm,
                hidden_layer_sizes=layers,
                random_state=split,
            ).fit(X, y)
            yield (epsilon, name), roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])


def report(tables: list[Dataset], found: dict[str, dict[Any, list[float]]]) -> None:
    """Print one row in markdown for each table and epsilon."""
    print(f"| table | epsilon | {' | '.join(LAYERS)} |")
    print("|---" * (2 + len(LAYERS)) + "|")
    for table in tables:
        for epsilon in EPSILONS:
            cells = [found[table.name][epsilon, name] for name in LAYERS]
            text = " | ".join(f"{np.mean(each):.4f} ± {np.std(each):.4f}" for each in cells)
            print(f"| {table.name}, n = {training_size(table)[0]} | {epsilon:g} | {text} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    tables = [load(arguments.data) for load in (load_bank, load_adult, load_cardio)]
    found: dict[str, dict[Any, list[float]]] = {table.name: defaultdict(list) for table in tables}
    for split in range(arguments.seeds):
        for table in tables:
            for key, area in areas(table, split, arguments.seeds):
                found[table.name][key].append(area)
                print(table.name, split, *key, f"{area:.4f}", file=sys.stderr, flush=True)
        print(f"\nMeans and standard deviations over {split + 1} seeds\n", flush=True)
        report(tables, found)


if __name__ == "__main__":
    main()
