r"""Intervals of coefficients of tables with categories: how many have some, and whether they cover.

Rows are drawn again from Abalone and SUPPORT2, which the directory --data or the environment
variable SKDP_DATA holds; errors are drawn from the residuals of the table, or with their rows. To
be covered are the coefficients of the whole table.

    python examples/benchmarks/regression_categories.py --data ../shared/data --runs 150
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skdp import PrivateRidge
from skdp.exceptions import PrivacyWarning
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    NumericColumn,
    NumericLabel,
    TableSchema,
)
from skdp.reporting import coefficient_intervals

RELATIONS = ("add-remove", "replace-one")
ENCODINGS: dict[str, dict[str, Any]] = {
    "Abalone": {},
    'Abalone, `drop="first"`': {"drop": "first"},
    "Abalone, one-hot": {"encoding": "one-hot"},
}
RACES = ["white", "black", "asian", "hispanic", "other"]


def load(directory: str) -> Iterator[tuple[str, TableSchema, Any]]:
    """Yield names, schemas and frames whose targets are within their bounds."""
    abalone = pd.read_csv(Path(directory) / "abalone.csv.gz")
    for name, fields in ENCODINGS.items():
        columns = [
            CategoricalColumn("sex", ["F", "I", "M"], **fields),
            NumericColumn("length", 0, 1, unit="200 mm"),
            NumericColumn("whole_weight", 0, 3, unit="200 g"),
        ]
        yield name, TableSchema(columns, label=NumericLabel("rings", 0, 30)), abalone
    support = pd.read_csv(Path(directory) / "support2.csv.gz", low_memory=False)
    columns = [
        NumericColumn("age", 18, 105, unit="years"),
        NumericColumn("num.co", 0, 10, unit="diseases"),
        CategoricalColumn("dzgroup", sorted(support["dzgroup"].unique())),
        CategoricalColumn("race", RACES, missing="ignore"),
        BooleanColumn("sex", values=["female", "male"]),
    ]
    for name, bounds in (("slos", (0.0, 3.0)), ("charges", (3.0, 7.0))):
        frame = support[support[name] > 0.0].reset_index(drop=True)
        frame[name] = np.log10(frame[name]).clip(*bounds)
        label = NumericLabel(name, bounds[0] - 0.5, bounds[1] + 0.5)
        yield f"SUPPORT2, {name}", TableSchema(columns, label=label), frame


def cover(
    schema: TableSchema, frame: Any, n: int, relation: str, runs: int, with_rows: bool
) -> tuple[float, Any]:
    """Return the share of tables with intervals, and which coefficients they cover, by table."""
    X, y = schema.split(frame[[*schema.features, schema.label.name]])
    exact = schema.pipeline(PrivateRidge(1e13, 1e-3, random_state=0)).fit(X, y)
    truth = coefficient_intervals(exact)["value"]
    fitted = exact[:-1].transform(X) @ exact[-1].coef_ + exact[-1].intercept_
    rng, covered = np.random.default_rng(1), []
    model = schema.pipeline(PrivateRidge(1.0, 1e-6, adjacency=relation))
    for seed in range(runs):
        rows = rng.integers(len(y), size=n)
        errors = rows if with_rows else rng.integers(len(y), size=n)
        target = fitted[rows] + (y - fitted)[errors]
        model[-1].set_params(random_state=seed)
        found = coefficient_intervals(model.fit(X.iloc[rows].reset_index(drop=True), target))
        if not found.reason:
            inside = (found["low"] <= truth) & (truth <= found["high"])
            covered.append(inside[~found.is_reference])
    return len(covered) / runs, np.array(covered)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), required=False)
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--rows", type=int, default=30_000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)  # of seeds
    print("| table, epsilon 1 | rows | with intervals | coverage, drawn errors | drawn rows |")
    print("|---" * 5 + "|")
    single = []
    for name, schema, frame in load(arguments.data):
        cells: dict[Any, str] = {}
        for relation, with_rows in product(RELATIONS, (False, True)):
            found = cover(schema, frame, arguments.rows, relation, arguments.runs, with_rows)
            cells[relation, with_rows] = f"{found[1].mean():.3f}"
            cells[relation] = f"{found[0]:.2f}"
            single += list(found[1].mean(axis=0))
        both = [
            " / ".join(cells[key] for key in keys)
            for keys in (RELATIONS, *([(r, rows) for r in RELATIONS] for rows in (False, True)))
        ]
        print(f"| {name} | {arguments.rows:,} | {' | '.join(both)} |", flush=True)
    print(f"\nSingle coefficients: {min(single):.3f} to {max(single):.3f}")


if __name__ == "__main__":
    main()
