r"""Accuracy of the private estimators with their defaults on five public tables.

Every estimator is used untuned: only epsilon, delta and the public row norm are given. Adult has
the test split of UCI; the other tables are split 70/30 at random, once for each seed. The noise
differs from seed to seed as well. The breast cancer table ships with scikit-learn; the others are
read from the directory that --data or the environment variable SKDP_DATA names, and skipped
without it.

    python examples/benchmarks/accuracy.py --seeds 10 --markdown docs/accuracy.md \
        --pictures docs/images
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
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
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
)

PRIVATE = (
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
    GrpuaLogisticRegression,
    GrpuaSVC,
    DPSGDClassifier,
)
# Defaults, and under replace-one where that is not the default, so that all can be compared.
VARIANTS = tuple(
    (estimator, adjacency)
    for estimator in PRIVATE
    for adjacency in dict.fromkeys(("replace-one", estimator().adjacency))
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


@dataclass(frozen=True)
class Result:
    """What one estimator reached on one table at one epsilon."""

    table: str
    estimator: str
    adjacency: str
    epsilon: float | None
    accuracy: float
    spread: float
    area: float
    seconds: float

    def row(self) -> str:
        """Return a row of the table in markdown."""
        epsilon = "-" if self.epsilon is None else f"{self.epsilon:g}"
        return (
            f"| {self.estimator} | {self.adjacency} | {epsilon} | {self.accuracy:.4f} | "
            f"{self.spread:.4f} | {self.area:.4f} | {self.seconds:.2f} |"
        )


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


def training_size(table: Dataset) -> tuple[int, float]:
    """Return the number of training rows and the delta that goes with it."""
    n_train = len(table.y) if table.y_test is not None else round(0.7 * len(table.y))
    return n_train, 1e-5 if n_train < 1000 else 1e-6


def measure(table: Dataset, seeds: int) -> list[Result]:
    """Evaluate all estimators on one table, on the same splits."""
    delta = training_size(table)[1]
    # Without a split of its own a table gives every seed another one; one fit is enough otherwise.
    splits = 1 if table.y_test is not None else seeds
    results = []
    for name, make in (
        ("majority class", lambda: DummyClassifier(strategy="prior")),
        ("LogisticRegression (not private)", lambda: LogisticRegression(max_iter=5000)),
    ):
        results.append(Result(table.name, name, "-", None, *evaluate(make, table, splits)))
    for estimator, adjacency in VARIANTS:
        for epsilon in EPSILONS:
            make = partial(
                estimator, epsilon, delta, data_norm=table.data_norm, adjacency=adjacency
            )
            found = evaluate(make, table, seeds)
            results.append(Result(table.name, estimator.__name__, adjacency, epsilon, *found))
            print(results[-1].row(), flush=True)
    return results


def report(tables: list[Dataset], results: list[Result]) -> list[str]:
    """Return one section in markdown for each table."""
    lines = []
    for table in tables:
        n_train, delta = training_size(table)
        lines += [
            "",
            f"## {table.name}: n = {n_train}, {table.X.shape[1]} columns, delta = {delta:g}",
            "",
            "| estimator | adjacency | epsilon | accuracy | sd | ROC AUC | seconds |",
            "|---|---|---|---|---|---|---|",
            *(result.row() for result in results if result.table == table.name),
        ]
    return lines


def draw(results: list[Result], directory: Path) -> None:
    """Draw accuracy and ROC AUC against epsilon, one panel for each table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(result.table for result in results))
    colours = dict(
        zip(("Objective", "Opera", "Grpua", "DPSGD"), "C3 C0 C2 C1".split(), strict=True)
    )
    for measure_, label in (("accuracy", "accuracy"), ("area", "ROC AUC")):
        figure, axes = plt.subplots(1, len(names), figsize=(3.1 * len(names), 3.6), squeeze=False)
        for axis, name in zip(axes[0], names, strict=True):
            chosen = [result for result in results if result.table == name]
            for estimator, adjacency in VARIANTS:
                own = [
                    result
                    for result in chosen
                    if (result.estimator, result.adjacency) == (estimator.__name__, adjacency)
                ]
                style = "--" if "SVC" in estimator.__name__ else "-"
                family = next(key for key in colours if estimator.__name__.startswith(key))
                axis.plot(
                    [result.epsilon for result in own],
                    [getattr(result, measure_) for result in own],
                    marker="o",
                    markersize=3,
                    color=colours[family],
                    linestyle=":" if adjacency == "add-remove" else style,
                    label=f"{estimator.__name__}, {adjacency}",
                )
            for result in chosen:
                if result.epsilon is None:
                    axis.axhline(getattr(result, measure_), color="0.6", linewidth=0.8)
            axis.set(xscale="log", xlabel="epsilon", title=name)
            axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            axis.minorticks_off()
        axes[0][0].set_ylabel(f"{label} (grey: not private, majority)")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=8, frameon=False)
        figure.tight_layout(rect=(0.0, 0.13, 1.0, 1.0))
        figure.savefig(directory / f"{label.lower().replace(' ', '_')}_by_epsilon.png", dpi=110)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", help="names of the tables to run")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--pictures", type=Path, help="draw two pictures into this directory")
    arguments = parser.parse_args()
    tables = load_tables(arguments.data)
    if arguments.only:
        tables = [table for table in tables if table.name in arguments.only]
    results = [result for table in tables for result in measure(table, arguments.seeds)]
    lines = [
        "# Accuracy with default parameters",
        "",
        f"Means over {arguments.seeds} seeds (noise, and the split where the table has none of its "
        "own); `sd` is the standard deviation over seeds, `seconds` the median fit on one machine.",
        "Regenerate with `python examples/benchmarks/accuracy.py --seeds "
        f"{arguments.seeds} --markdown docs/accuracy.md --pictures docs/images`.",
        "Every estimator has seen the same splits; the first two are not private.",
        *report(tables, results),
    ]
    if arguments.pictures:
        draw(results, arguments.pictures)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
