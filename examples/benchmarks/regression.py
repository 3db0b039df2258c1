r"""Private regression: what it explains of public tables, how fast, and whether intervals cover.

Defaults throughout; only public bounds are given. Tables are read from the directory that --data
or the environment variable SKDP_DATA names, and left out without it.

    python examples/benchmarks/regression.py --seeds 10 --runs 200 --time --widths 15
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
from skdp.reporting import coefficient_intervals

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


def draw_design(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    """Return rows of norm 1, alike in all directions, in some more, or with one-hot columns."""
    X = rng.standard_normal((n, d))
    if kind == "uneven":
        X *= np.linspace(1.0, 0.4, d)
    if kind == "one-hot":
        levels = d // 2
        X[:, :levels] = np.eye(levels + 1)[rng.integers(levels + 1, size=n)][:, :levels] * 2.0
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def intervals(
    n: int, d: int, kind: str, epsilon: float, relation: str, runs: int, error: float = 0.2
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return of estimable designs which coefficients are covered, and widths with and without."""
    rng = np.random.default_rng(0)
    covered: list[Any] = []
    widths, plain = [], []
    for _ in range(runs):
        X = draw_design(rng, n, d, kind)
        truth = rng.standard_normal(d)
        truth *= 0.8 / np.linalg.norm(truth)
        y = 0.1 + X @ truth + error * rng.standard_normal(n)
        model = PrivateRidge(epsilon, target_bounds=(-1.5, 1.5), adjacency=relation, data_norm=1.0)
        found = coefficient_intervals(model.fit(X, y))
        low, high = found["low"][:-1], found["high"][:-1]
        if np.isfinite(low).all():
            covered.append((low <= truth) & (truth <= high))
            widths.append(np.mean(high - low))
            inverse = np.linalg.inv(np.cov(X.T)) / n
            plain.append(np.mean(2.0 * 1.96 * error * np.sqrt(np.diag(inverse))))
    return covered, widths, plain


def compare_widths(runs: int, n: int = 30_000) -> None:
    """Print how much wider intervals are at epsilon 1, over designs of 3 to 20 columns."""
    print(f"\nmedian over designs of 3 to 20 columns, n = {n:,}, epsilon 1, targets of width 3\n")
    print("| relation | deviation of errors | estimable | coverage | width over that without |")
    print("|---" * 5 + "|")
    for relation, error in product(RELATIONS, (0.1, 0.2, 0.4)):
        ratios, held = [], []
        for d, kind in product((3, 5, 10, 15, 20), ("even", "uneven", "one-hot")):
            covered, widths, plain = intervals(n, d, kind, 1.0, relation, runs, error)
            ratios += [wide / bare for wide, bare in zip(widths, plain, strict=True)]
            held += [share for each in covered for share in each]
        share = len(ratios) / (15 * runs)
        found = f"{share:.2f} | {np.mean(held):.3f} | {np.median(ratios):.2f}"
        print(f"| {relation} | {error:g} | {found} |", flush=True)


def cover(n: int, d: int, kind: str, epsilon: float, relation: str, runs: int) -> str:
    """Return the share of estimable designs, coverage and width of 95 % intervals."""
    covered, widths, plain = intervals(n, d, kind, epsilon, relation, runs)
    if not covered:
        return "0.00 | - | - | -"
    share = len(covered) / runs
    ratio = np.median(widths) / np.median(plain)
    return f"{share:.2f} | {np.mean(covered):.3f} | {np.median(widths):.3f} | {ratio:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--widths", type=int, default=0, help="tables of each design, of 15")
    arguments = parser.parse_args()
    if arguments.data:
        explain(arguments.data, arguments.seeds)
    if arguments.time:
        time_fits()
    if arguments.widths:
        compare_widths(arguments.widths)
    if not arguments.runs:
        return
    print("\n95 % intervals, delta = 1e-6; widths over those without privacy\n")
    print("| n | d | design | epsilon | relation | estimable | coverage | width | ratio |")
    print("|---" * 9 + "|")
    sizes = ((2_000, 5), (30_000, 5), (30_000, 20), (50_000, 40))
    designs = product(sizes, ("even", "uneven", "one-hot"), (0.5, 1.0, 3.0), RELATIONS)
    for (n, d), kind, epsilon, relation in designs:
        runs = max(40, arguments.runs * 2_000 // n) if n > 2_000 else arguments.runs
        result = cover(n, d, kind, epsilon, relation, runs)
        print(f"| {n:,} | {d} | {kind} | {epsilon:g} | {relation} | {result} |", flush=True)


if __name__ == "__main__":
    main()
