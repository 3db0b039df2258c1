r"""Networks against the line: DPSGDClassifier with and without hidden layers.

Printed are ROC AUC and log loss, with a slash between them.

All fits take their defaults; only epsilon, delta, the public row norm and the layers are given. The
tables and splits are those of accuracy.py.

With --simulated, what other choices than the defaults are worth on simulated tables: means over
four truths, linear, additive, product and radial.

    python examples/benchmarks/network_accuracy.py --seeds 5 --csv docs/measured/networks.csv
    python examples/benchmarks/network_accuracy.py --simulated --seeds 1 \
        --csv docs/measured/networks_simulated.csv

The CSV files also have standard deviations and the smallest simulated tables.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _datasets import Dataset, load_adult, load_bank, load_cardio
from _measured import markdown, write_csv
from accuracy import training_size
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from skdp import DPSGDClassifier

LAYERS = {"line": (), "(32,)": (32,), "(100,)": (100,)}
EPSILONS = (1.0, 3.0, 8.0)
CHOICES: dict[str, dict[str, Any]] = {
    "line": {"hidden_layer_sizes": ()},
    "(32,), defaults": {},
    "(100,)": {"hidden_layer_sizes": (100,)},
    "(32, 32)": {"hidden_layer_sizes": (32, 32)},
    "tanh": {"activation": "tanh"},
    "per-layer": {"clipping": "per-layer"},
    "normalize": {"clipping": "normalize"},
    "adaptive clipping": {"max_grad_norm": "adaptive"},
    "cosine": {"learning_rate": "cosine", "decay_share": 1.0},
    "average='ema'": {"average": "ema"},
    "last iterate": {"average": False},
    "adam": {"solver": "adam"},
}
# Rows, epsilon, and how strongly labels follow the truth.
SIZES = ((1000, 1.0, 1.0), (4000, 1.0, 1.0), (10_000, 3.0, 1.0), (10_000, 3.0, 2.5))
TRUTHS = ("linear", "additive", "product", "radial")
COLUMNS = 20
FITS = ["table", "epsilon", *LAYERS]
CHOSEN = ["choice", *(f"n = {n}, epsilon {e:g}, strength {s:g}" for n, e, s in SIZES)]


Scores = tuple[float, float]


def score(model: Any, X: Any, y: Any) -> Scores:
    """Return the ROC AUC and the log loss of a fitted model."""
    chances = model.predict_proba(X)[:, 1]
    return roc_auc_score(y, chances), log_loss(y, chances)


def scores(table: Dataset, split: int, seeds: int) -> Iterator[tuple[tuple[float, str], Scores]]:
    """Yield (epsilon, layers) and what one fit each reaches on one of the splits."""
    X, y, X_test, y_test = list(table.splits(seeds))[split]
    delta = training_size(table)[1]
    for epsilon in EPSILONS:
        for name, layers in LAYERS.items():
            model = DPSGDClassifier(
                epsilon,
                delta,
                adjacency="add-remove",
                data_norm=table.data_norm,
                hidden_layer_sizes=layers,
                random_state=split,
            ).fit(X, y)
            yield (epsilon, name), score(model, X_test, y_test)


def simulate(truth: str, n_rows: int, strength: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return rows of norm at most 1 and noisy labels that follow a truth of a few columns."""
    X = np.clip(0.4 * rng.standard_normal((n_rows, COLUMNS)), -1.0, 1.0)
    turned = X @ np.linalg.qr(np.random.default_rng(1).standard_normal((COLUMNS, COLUMNS)))[0]
    signal = {
        "linear": turned[:, 0],
        "additive": np.sin(3.0 * X[:, 0]) + 2.0 * X[:, 1] ** 2 - 2.0 * np.abs(X[:, 2]) + X[:, 3],
        "product": 0.5 * turned[:, 0] + 2.0 * turned[:, 1] * turned[:, 2],
        "radial": (X[:, :5] ** 2).sum(axis=1),
    }[truth]
    chances = expit(strength * (signal - signal.mean()) / signal.std())
    return X / np.sqrt(COLUMNS), rng.random(n_rows) < chances


def compare_choices(seeds: int) -> list[list[str]]:
    """Return means over truths and seeds for other choices than the defaults."""
    rows = []
    for name, choice in CHOICES.items():
        rows.append([name])
        for n_rows, epsilon, strength in SIZES:
            found = []
            for seed, truth in product(range(seeds), TRUTHS):
                rng = np.random.default_rng([seed, TRUTHS.index(truth)])
                X, y = simulate(truth, n_rows + 5000, strength, rng)
                options = {"hidden_layer_sizes": (32,), "data_norm": 1.0, **choice}
                options["adjacency"] = "add-remove"
                model = DPSGDClassifier(epsilon, 1e-6, random_state=seed, **options)
                model.fit(X[:n_rows], y[:n_rows])
                found.append(score(model, X[n_rows:], y[n_rows:]))
            rows[-1].append("{:.3f} / {:.3f}".format(*np.mean(found, axis=0)))
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return rows


def report(tables: list[Dataset], found: dict[str, dict[Any, list[Scores]]]) -> list[list[str]]:
    """Return one row with means and standard deviations for each table and epsilon."""
    rows = []
    for table in tables:
        for epsilon in EPSILONS:
            rows.append([f"{table.name}, n = {training_size(table)[0]}", f"{epsilon:g}"])
            for each in (found[table.name][epsilon, name] for name in LAYERS):
                numbers = *np.mean(each, 0), *np.std(each, 0)
                rows[-1].append("{0:.4f} ± {2:.4f} / {1:.4f} ± {3:.4f}".format(*numbers))
    return rows


def show(columns: list[str], rows: list[list[str]]) -> str:
    """Return a table of means, of 4,000 and more simulated rows."""
    places = [place for place, name in enumerate(columns) if "n = 1000," not in name]
    shown = ([re.sub(" ± [0-9.]+", "", row[place]) for place in places] for row in rows)
    return markdown([columns[place] for place in places], shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--simulated", action="store_true", help="compare choices instead")
    parser.add_argument("--csv", type=Path, help="the file for all numbers")
    arguments = parser.parse_args()
    if arguments.simulated:
        rows = compare_choices(arguments.seeds)
        print(show(CHOSEN, rows))
        if arguments.csv:
            write_csv(arguments.csv, CHOSEN, rows)
        return
    tables = [load(arguments.data) for load in (load_bank, load_adult, load_cardio)]
    found: dict[str, dict[Any, list[Scores]]] = {table.name: defaultdict(list) for table in tables}
    for split in range(arguments.seeds):
        for table in tables:
            for key, reached in scores(table, split, arguments.seeds):
                found[table.name][key].append(reached)
                print(table.name, split, *key, reached, file=sys.stderr, flush=True)
        rows = report(tables, found)
        print(f"\nMeans over {split + 1} seeds\n\n{show(FITS, rows)}", flush=True)
        if arguments.csv:
            write_csv(arguments.csv, FITS, rows)


if __name__ == "__main__":
    main()
