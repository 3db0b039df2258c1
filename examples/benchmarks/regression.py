r"""PrivateRidge: what it explains of Abalone, and whether its intervals cover on simulated designs.

Defaults throughout; only public bounds are given. Abalone is read from the directory that --data
or the environment variable SKDP_DATA names, and left out without it.

    python examples/benchmarks/regression.py --seeds 20 --runs 200
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from skdp import PrivateRidge
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


def explain_abalone(directory: str, seeds: int) -> None:
    X, y = load_abalone(directory)
    norm = math.sqrt(len(LARGEST) + 1)
    print("\nR2 on test rows of Abalone (add-remove / replace-one), delta = 1e-5\n")
    print("| epsilon | PrivateRidge | not private |\n|---|---|---|")
    for epsilon in EPSILONS:
        found: dict[str, list[float]] = {name: [] for name in (*RELATIONS, "Ridge")}
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = np.split(order, [round(0.8 * len(y))])
            for relation in RELATIONS:
                model = PrivateRidge(epsilon, 1e-5, target_bounds=(1, 30), adjacency=relation)
                model.set_params(data_norm=norm).fit(X[train], y[train])
                found[relation].append(model.score(X[test], y[test]))
            found["Ridge"].append(Ridge(1e-6).fit(X[train], y[train]).score(X[test], y[test]))
        means = [f"{np.mean(found[name]):.3f}" for name in (*RELATIONS, "Ridge")]
        print(f"| {epsilon:g} | {means[0]} / {means[1]} | {means[2]} |", flush=True)


def draw_design(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    """Return rows of norm 1, alike in all directions, in some more, or with one-hot columns."""
    X = rng.standard_normal((n, d))
    if kind == "uneven":
        X *= np.linspace(1.0, 0.4, d)
    if kind == "one-hot":
        levels = d // 2
        X[:, :levels] = np.eye(levels + 1)[rng.integers(levels + 1, size=n)][:, :levels] * 2.0
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def cover(n: int, d: int, kind: str, epsilon: float, relation: str, runs: int) -> str:
    """Return the share of estimable designs, coverage and width of 95 % intervals."""
    rng = np.random.default_rng(0)
    covered: list[Any] = []
    widths, plain = [], []
    for _ in range(runs):
        X = draw_design(rng, n, d, kind)
        truth = rng.standard_normal(d)
        truth *= 0.8 / np.linalg.norm(truth)
        y = 0.1 + X @ truth + 0.2 * rng.standard_normal(n)
        model = PrivateRidge(epsilon, target_bounds=(-1.5, 1.5), adjacency=relation, data_norm=1.0)
        found = coefficient_intervals(model.fit(X, y))
        low, high = found["low"][:-1], found["high"][:-1]
        if np.isfinite(low).all():
            covered.append((low <= truth) & (truth <= high))
            widths.append(np.mean(high - low))
            inverse = np.linalg.inv(np.cov(X.T)) / n
            plain.append(np.mean(2.0 * 1.96 * 0.2 * np.sqrt(np.diag(inverse))))
    if not covered:
        return "0.00 | - | - | -"
    share = len(covered) / runs
    ratio = np.median(widths) / np.median(plain)
    return f"{share:.2f} | {np.mean(covered):.3f} | {np.median(widths):.3f} | {ratio:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.data:
        explain_abalone(arguments.data, arguments.seeds)
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
