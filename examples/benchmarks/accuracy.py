"""Accuracy of the private estimators with their defaults on five public tables.

Every estimator is used untuned: only epsilon, delta and the public row norm are given. Adult has
the test split of UCI; the other tables are split 70/30 at random, once for each seed. The noise
differs from seed to seed as well. The breast cancer table ships with scikit-learn; the others are
read from the directory that --data or the environment variable SKDP_DATA names, and skipped
without it.

    python examples/benchmarks/accuracy.py --seeds 10 --markdown docs/accuracy.md
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _datasets import Dataset, load_adult, load_bank, load_breast_cancer, load_cardio, load_heart
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaSVC,
    OperaLogisticRegression,
    OperaSVC,
)

PRIVATE = (
    OperaLogisticRegression,
    OperaSVC,
    GrpuaLogisticRegression,
    GrpuaSVC,
    DPSGDClassifier,
)
EPSILONS = (0.1, 0.5, 1.0, 3.0)


def load_tables(directory: str | None) -> list[Dataset]:
    loaders: tuple[Callable[..., Dataset], ...] = (load_adult, load_bank, load_cardio, load_heart)
    tables = []
    for loader in loaders:
        try:
            tables.append(loader(directory))
        except FileNotFoundError as missing:
            print(f"skipped: {missing}")
    return [*tables, load_breast_cancer()]


def evaluate(
    make: Callable[[], Any], table: Dataset, seeds: int
) -> tuple[float, float, float, float]:
    """Return mean and standard deviation of the accuracy, mean ROC AUC and seconds a fit."""
    accuracies, areas, seconds = [], [], []
    for X, y, X_test, y_test in table.splits(seeds):
        start = time.perf_counter()
        model = make().fit(X, y)
        seconds.append(time.perf_counter() - start)
        accuracies.append(model.score(X_test, y_test))
        score = getattr(
            model, "decision_function", lambda rows, m=model: m.predict_proba(rows)[:, 1]
        )
        areas.append(roc_auc_score(y_test, score(X_test)))
    spread = float(np.std(accuracies))
    return float(np.mean(accuracies)), spread, float(np.mean(areas)), float(np.median(seconds))


def report(tables: list[Dataset], seeds: int) -> list[str]:
    lines = []
    for table in tables:
        n_train = len(table.y) if table.y_test is not None else round(0.7 * len(table.y))
        delta = 1e-5 if n_train < 1000 else 1e-6
        lines += [
            "",
            f"## {table.name}: n = {n_train}, {table.X.shape[1]} columns, delta = {delta:g}",
            "",
            "| estimator | adjacency | epsilon | accuracy | sd | ROC AUC | seconds |",
            "|---|---|---|---|---|---|---|",
        ]
        for name, make in (
            ("majority class", lambda: DummyClassifier(strategy="prior")),
            ("LogisticRegression (not private)", lambda: LogisticRegression(max_iter=5000)),
        ):
            accuracy, spread, area, seconds = evaluate(make, table, min(seeds, 3))
            lines.append(
                f"| {name} | - | - | {accuracy:.4f} | {spread:.4f} | {area:.4f} | {seconds:.2f} |"
            )
        for estimator in PRIVATE:
            for epsilon in EPSILONS:
                make = partial(estimator, epsilon, delta, data_norm=table.data_norm)
                accuracy, spread, area, seconds = evaluate(make, table, seeds)
                lines.append(
                    f"| {estimator.__name__} | {estimator().adjacency} | {epsilon:g} | "
                    f"{accuracy:.4f} | {spread:.4f} | {area:.4f} | {seconds:.2f} |"
                )
                print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", help="names of the tables to run")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    arguments = parser.parse_args()
    tables = load_tables(arguments.data)
    if arguments.only:
        tables = [table for table in tables if table.name in arguments.only]
    lines = [
        "# Accuracy with default parameters",
        "",
        f"Means over {arguments.seeds} seeds (noise, and the split where the table has none of its "
        "own); `sd` is the standard deviation over seeds, `seconds` the median fit on one machine.",
        "Regenerate with `python examples/benchmarks/accuracy.py --seeds "
        f"{arguments.seeds} --markdown docs/accuracy.md`.",
        *report(tables, arguments.seeds),
    ]
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
