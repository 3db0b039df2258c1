r"""What delta = 0 costs: norm-exponential noise against Gaussian noise at delta = 1e-6.

Tables in markdown: the noise in each weight that is released by output perturbation, and ROC AUC on
simulated tables of growing width and on the open tables of ``_datasets.py``, which are read from
the directory that --data or the environment variable SKDP_DATA names. Both fits are untuned, for
replaced records, and get the same splits.

    python examples/benchmarks/pure.py --seeds 10 --csv docs/measured/pure.csv

The CSV file has all simulated tables; the printed ones have those of `SHOWN` columns.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _measured import markdown, write_csv
from accuracy import EPSILONS, load_tables, training_size
from sklearn.metrics import roc_auc_score

from skdp import ObjectivePerturbationLogisticRegression, OperaLogisticRegression
from skdp.mechanisms import analytic_gaussian_sigma

DELTA = 1e-6
WIDTHS = (2, 4, 8, 12, 16, 24, 32, 64)
SHOWN = (4, 16, 64)
ROWS = (2000, 20_000)
FAMILIES = (ObjectivePerturbationLogisticRegression, OperaLogisticRegression)
Split = tuple[Any, Any, Any, Any]


def print_noise() -> None:
    """Print the root mean square of each coordinate's noise, in units of the L2 sensitivity.

    Of norm-exponential noise of scale s in D dimensions it is ``sqrt(D + 1) s``.
    """
    rows = []
    for epsilon in EPSILONS:
        gaussian = analytic_gaussian_sigma(epsilon, DELTA)
        pure = [math.sqrt(width + 1.0) / epsilon for width in WIDTHS]
        turns = math.floor((gaussian * epsilon) ** 2 - 1.0)
        cells = [f"{noise:.3g}" for noise in (*pure, gaussian)]
        rows.append([f"{epsilon:g}", *cells, str(turns)])
    names = [f"D = {width}" for width in WIDTHS]
    print(markdown(["epsilon", *names, f"Gaussian, delta = {DELTA:g}", "less up to D ="], rows))


def simulate(n_rows: int, width: int, seeds: int) -> Iterator[Split]:
    """Yield tables whose labels follow a logistic law; rows have norm at most 1."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n_rows + 10_000, width))
        X /= 1.5 * np.sqrt(width)
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        direction = rng.standard_normal(width)
        direction *= 4.0 * math.sqrt(width) / np.linalg.norm(direction)
        y = (rng.uniform(size=len(X)) < 1.0 / (1.0 + np.exp(-(X @ direction)))).astype(int)
        yield X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def compare(family: Any, epsilon: float, data_norm: float, splits: list[Split]) -> str:
    """Return the mean ROC AUC without and with a delta, the larger one in bold if it is clear."""
    without, beside = (
        np.array(
            [
                roc_auc_score(
                    y_test,
                    family(epsilon, delta, data_norm=data_norm, classes=[0, 1])
                    .fit(X, y)
                    .decision_function(X_test),
                )
                for X, y, X_test, y_test in splits
            ]
        )
        for delta in (0.0, DELTA)
    )
    gap = without - beside
    cells = [f"{area.mean():.3f}" for area in (without, beside)]
    if cells[0] != cells[1] and abs(gap.mean()) > 2.0 * gap.std(ddof=1) / math.sqrt(len(gap)):
        better = int(gap.mean() < 0.0)
        cells[better] = f"**{cells[better]}**"
    return " / ".join(cells)


def tables(seeds: int, directory: str | None) -> Iterator[tuple[str, float, list[Split]]]:
    """Yield names, bounds on rows, and splits."""
    for n_rows in ROWS:
        for width in WIDTHS:
            yield f"n = {n_rows}, d = {width}", 1.0, list(simulate(n_rows, width, seeds))
    for table in load_tables(directory):
        name = f"{table.name}, n = {training_size(table)[0]}, d = {table.X.shape[1]}"
        yield name, table.data_norm, list(table.splits(seeds))


def shown(names: list[str]) -> list[str]:
    """Return the names of open tables and of simulated ones with few of the widths."""
    hidden = {f"n = {n_rows}, d = {width}" for n_rows in ROWS for width in set(WIDTHS) - set(SHOWN)}
    return [name for name in names if name not in hidden]


def main() -> None:
    """Print all tables, and write all rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", default=None)
    parser.add_argument("--csv", type=Path, help="the file for all rows")
    options = parser.parse_args()
    print_noise()
    columns = ["table", *(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)]
    found = []
    for family in FAMILIES:
        rows = {
            name: [name, *(compare(family, epsilon, data_norm, splits) for epsilon in EPSILONS)]
            for name, data_norm, splits in tables(options.seeds, options.data)
        }
        found += [[family.__name__, *row] for row in rows.values()]
        print(f"`{family.__name__}`:\n")
        print(markdown(columns, [rows[name] for name in shown(list(rows))]))
    if options.csv:
        write_csv(options.csv, ["estimator", *columns], found)


if __name__ == "__main__":
    main()
