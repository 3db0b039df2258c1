r"""Private regression: what it explains of public tables, and how fast.

Defaults throughout; only public bounds are given. Tables are read from the directory that --data
or the environment variable SKDP_DATA names, and left out without it.

    python examples/benchmarks/regression.py --seeds 10 --time
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

from skdp import PrivateLinearRegression, PrivateRidge, datasets
from skdp.preprocessing import TableSchema

EPSILONS = (0.15, 0.54, 1.0, 3.0, 8.0)
RELATIONS = ("add-remove", "replace-one")
# Upper bounds in the units of the table, 200 mm and 200 g each: lengths, then weights.
LARGEST = (0.9, 0.75, 0.4, 3.0, 1.5, 0.8, 1.1)


def load_abalone(directory: str) -> tuple[np.ndarray, np.ndarray]:
    """Return columns between -1 and 1, two of them for sex, and the number of rings."""
    with gzip.open(Path(directory) / "abalone.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    numbers = np.array([row[1:-1] for row in rows], dtype=float)
    numbers = 2.0 * np.clip(numbers / LARGEST, 0.0, 1.0) - 1.0
    sex = np.array([[row[0] == "M", row[0] == "F"] for row in rows], dtype=float)
    return np.column_stack([numbers, sex]), np.array([row[-1] for row in rows], dtype=float)


def load_tables(directory: str) -> dict[str, tuple[Any, ...]]:
    """Return rows as the ready schemas declare them, with a number of theirs to predict.

    Targets have public bounds; of charges and seconds the logarithm to base ten is predicted.
    """
    halves = [datasets.fetch_adult(path=directory, subset=name) for name in ("train", "test")]
    adult = pd.concat([half.frame for half in halves]).dropna().reset_index(drop=True)
    cardio, bank = (fetch(path=directory) for fetch in (datasets.fetch_cardio, datasets.fetch_bank))
    support = datasets.fetch_support2(path=directory)
    charges = pd.read_csv(Path(directory) / "support2.csv.gz", index_col=0)["charges"].to_numpy()
    billed = charges > 0.0
    seconds = np.log10(1.0 + bank.frame["duration"].to_numpy(float))
    patients, billed = support.frame[billed], np.log10(charges[billed])
    chosen: tuple[tuple[Any, ...], ...] = (
        ("Adult, hours", halves[0].schema, adult, "hours_per_week", None, (0, 100)),
        ("Adult, age", halves[0].schema, adult, "age", None, (16, 90)),
        ("Cardio, systolic", cardio.schema, cardio.frame, "ap_hi", None, (80, 200)),
        ("SUPPORT2, charges", support.schema, patients, "charges", billed, (3, 7)),
        ("Bank, duration", bank.schema, bank.frame, "duration", seconds, (0, 4)),
    )
    tables = {}
    for name, schema, frame, column, values, bounds in chosen:
        y = frame[column].to_numpy(float) if values is None else values
        kept = [other for other in schema.columns if other.name != column]
        crossed = [names for names in schema.interactions if column not in names]
        others = TableSchema(kept, interactions=crossed)
        X = others.preprocessor().fit_transform(frame[list(others.features)])
        tables[name] = np.ascontiguousarray(X), np.clip(y, *bounds), bounds, others.norm_bound
    return tables


def compare(
    X: Any, y: Any, bounds: Any, norm: float, epsilon: float, delta: float, seeds: int
) -> list[str]:
    """Return mean R2 on test rows of both regressors under both relations, and of ridge."""
    found: dict[Any, list[float]] = {}
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [round(0.8 * len(y))])
        for cls, relation in product((PrivateLinearRegression, PrivateRidge), RELATIONS):
            model = cls(epsilon, delta, target_bounds=bounds, adjacency=relation, data_norm=norm)
            score = model.fit(X[train], y[train]).score(X[test], y[test])
            found.setdefault((cls, relation), []).append(score)
        plain = Ridge(1e-3).fit(X[train], y[train]).score(X[test], y[test])
        found.setdefault("plain", []).append(plain)
    own, moments, plain = (np.mean(list(found.values()), axis=1)[i] for i in ([0, 1], [2, 3], 4))
    cells = [f"{pair[0]:.3f} / {pair[1]:.3f}" for pair in (own, moments)]
    return [*cells, f"{plain:.3f}", f"{own[0] / plain:.0%} / {own[1] / plain:.0%}"]


def explain(directory: str, seeds: int) -> None:
    """Print what is explained of Abalone by epsilon, and of larger tables at epsilon 1."""
    columns = "PrivateLinearRegression | PrivateRidge | not private | share of the first |"
    print(f"\nR2 on test rows (add-remove / replace-one)\n\n| Abalone, epsilon | {columns}")
    print("|---" * 5 + "|")
    X, y = load_abalone(directory)
    for epsilon in EPSILONS:
        cells = compare(X, y, (1, 30), math.sqrt(len(LARGEST) + 1), epsilon, 1e-5, seeds)
        print(f"| {epsilon:g} | {' | '.join(cells)} |", flush=True)
    print(f"\n| epsilon 1 | rows, columns | {columns}\n" + "|---" * 6 + "|")
    for name, (X, y, bounds, norm) in load_tables(directory).items():
        cells = compare(X, y, bounds, norm, 1.0, 1e-6, seeds)
        print(f"| {name} | {X.shape[0]:,}, {X.shape[1]} | {' | '.join(cells)} |", flush=True)


def time_fits(n: int = 1_000_000, d: int = 50) -> None:
    """Print seconds of processor time of one fit, the least of three, on columns even and not.

    One product of all columns by BLAS is what `PrivateRidge` cannot do without.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) / math.sqrt(d)
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    shared: dict[str, Any] = {"delta": 1e-7, "target_bounds": (-6.0, 6.0), "data_norm": 1.5}
    fits = Ridge(solver="lsqr"), PrivateRidge(**shared), PrivateLinearRegression(**shared)
    print(f"\nSeconds of processor time, n = {n:,}, d = {d}\n")
    print("| columns | X.T @ X | Ridge, lsqr | PrivateRidge | PrivateLinearRegression |")
    print("|---" * 5 + "|")
    for name, scales in (("alike", np.ones(d)), ("of 1 to .03", np.geomspace(1.0, 0.03, d))):
        rows = X * scales
        works = [lambda rows=rows: rows.T @ rows]
        works += [lambda rows=rows, model=model: model.fit(rows, y) for model in fits]
        spent: list[list[float]] = [[] for _ in works]
        for model in fits:
            model.fit(rows[:100], y[:100])
        for times, work in list(zip(spent, works, strict=True)) * 3:
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
        cells = [f"{min(times):.2f}" for times in spent]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--time", action="store_true")
    arguments = parser.parse_args()
    if arguments.data:
        explain(arguments.data, arguments.seeds)
    if arguments.time:
        time_fits()


if __name__ == "__main__":
    main()
