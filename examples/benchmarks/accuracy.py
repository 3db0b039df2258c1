r"""Accuracy of the private estimators with their defaults on six public tables.

Every estimator is used untuned: only epsilon, delta and the public row norm are given. Adult has
the test split of UCI; the other tables are split 70/30 at random, once for each seed. The noise
differs from seed to seed as well. The breast cancer table ships with scikit-learn; the others are
read from the directory that --data or the environment variable SKDP_DATA names, and skipped
without it. Results of single fits are stored in a file, from which an interrupted run continues.

    python examples/benchmarks/accuracy.py --seeds 10 --results accuracy.json \
        --markdown docs/accuracy.md --pictures docs/images
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _datasets import LOADERS, Dataset, load_breast_cancer
from scipy.special import logit
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
)

PRIVATE = {
    cls.__name__: cls
    for cls in (
        ObjectivePerturbationLogisticRegression,
        ObjectivePerturbationSVC,
        OperaLogisticRegression,
        OperaSVC,
        GrpuaLogisticRegression,
        GrpuaSVC,
        DPSGDClassifier,
    )
}
NOT_PRIVATE = {
    "majority class": lambda: DummyClassifier(strategy="prior"),
    "LogisticRegression (not private)": lambda: LogisticRegression(max_iter=5000),
}
RELATIONS = ("add-remove", "replace-one")
ENCODINGS = ("declared", "auto")
EPSILONS = (0.1, 0.5, 1.0, 3.0, 8.0)
FIGURES = ("ROC AUC", "accuracy", "log loss", "Brier score", "slope")
COLUMNS = ("estimator", "epsilon", FIGURES[0], "sd", *FIGURES[1:], "seconds")


def load_tables(directory: str | None, encoding: str = "declared") -> list[Dataset]:
    """Return the tables that are there, encoded."""
    tables = []
    for loader in LOADERS:
        try:
            tables.append(loader(directory, encoding))
        except FileNotFoundError as missing:
            print(f"skipped: {missing}")
    return [*tables, load_breast_cancer(encoding)]


def training_size(table: Dataset) -> tuple[int, float]:
    """Return the number of training rows and the delta that goes with it."""
    n_train = len(table.y) if table.y_test is not None else round(0.7 * len(table.y))
    return n_train, 1e-5 if n_train < 1000 else 1e-6


def calibration_slope(y: Any, probabilities: Any) -> float:
    """Return the slope of a logistic regression of labels on the log odds that were foretold."""
    odds = logit(np.clip(probabilities, 1e-9, 1.0 - 1e-9))[:, None]
    if np.ptp(odds) == 0.0:
        return float("nan")
    return float(LogisticRegression(C=np.inf).fit(odds, y).coef_[0, 0])


def judge(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Return the figures of one fitted model; without probabilities there are two."""
    has_margin = hasattr(model, "decision_function")
    margin = model.decision_function(X) if has_margin else model.predict_proba(X)[:, 1]
    found = {"ROC AUC": roc_auc_score(y, margin), "accuracy": model.score(X, y)}
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)[:, 1]
        found["log loss"] = log_loss(y, p)
        found["Brier score"] = brier_score_loss(y, p)
        found["slope"] = calibration_slope(y, p)
    return {key: float(value) for key, value in found.items()}


def evaluate(
    make: Callable[[], Any], table: Dataset, seeds: int
) -> tuple[float, float, float, float]:
    """Return mean and standard deviation of the accuracy, mean ROC AUC and seconds a fit."""
    runs = [fit_and_judge(make, split) for split in table.splits(seeds)]
    accuracy, area, seconds = (
        [run[key] for run in runs] for key in ("accuracy", "ROC AUC", "seconds")
    )
    spread = float(np.std(accuracy))
    return float(np.mean(accuracy)), spread, float(np.mean(area)), float(np.median(seconds))


def fit_and_judge(make: Callable[[], Any], split: tuple[Any, ...]) -> dict[str, float]:
    X, y, X_test, y_test = split
    start = time.perf_counter()
    model = make().fit(X, y)
    seconds = time.perf_counter() - start
    return {**judge(model, X_test, y_test), "seconds": seconds}


@dataclass(frozen=True)
class Cell:
    """One estimator on one table; what it reached stands under its key in the results."""

    table: str
    encoding: str
    estimator: str
    relation: str = "-"
    epsilon: float = 0.0

    @property
    def key(self) -> str:
        """Name of the cell in the file of results."""
        return "|".join(map(str, (self.table, self.encoding, self.estimator, self.relation))) + (
            f"|{self.epsilon:g}"
        )

    def make(self, table: Dataset) -> Any:
        """Return the estimator, not fitted."""
        if self.estimator in NOT_PRIVATE:
            return NOT_PRIVATE[self.estimator]()
        delta = training_size(table)[1]
        cls = PRIVATE[self.estimator]
        return cls(self.epsilon, delta, data_norm=table.data_norm, adjacency=self.relation)


def cells(table: str, encoding: str) -> Iterator[Cell]:
    """Yield what is measured on one table."""
    for name in NOT_PRIVATE:
        yield Cell(table, encoding, name)
    for name, epsilon, relation in product(PRIVATE, EPSILONS, RELATIONS):
        yield Cell(table, encoding, name, relation, epsilon)


def measure(table: Dataset, encoding: str, seeds: int, results: dict[str, Any], file: Path) -> None:
    """Add the runs that are not in the results yet."""
    for cell in cells(table.name, encoding):
        # Without noise, and on a table with a split of its own, one fit is enough.
        single = cell.estimator in NOT_PRIVATE and table.y_test is not None
        runs = results.setdefault(cell.key, [])
        wanted = 1 if single else seeds
        for j, split in enumerate(table.splits(wanted)):
            if j >= len(runs):
                runs.append(fit_and_judge(lambda cell=cell: cell.make(table), split))
        file.write_text(json.dumps(results, indent=0))
        areas = [run["ROC AUC"] for run in runs]
        print(f"{cell.key}: AUC {np.mean(areas):.4f}, sd {np.std(areas):.4f}", flush=True)


def summary(results: dict[str, Any], cell: Cell, figure: str) -> str:
    """Return a mean over seeds; of slopes, whose mean means little, the median."""
    values = [run[figure] for run in results.get(cell.key, []) if figure in run]
    if not values:
        return "-"
    if figure == "slope":
        return f"{np.nanmedian(values):.2f}" if np.isfinite(values).any() else "-"
    return f"{np.mean(values):.4f}"


def row(results: dict[str, Any], both: list[Cell]) -> str:
    """Return a row in markdown: each figure under both relations."""
    epsilon = f"{both[0].epsilon:g}" if both[0].epsilon else "-"
    figures = [" / ".join(summary(results, cell, name) for cell in both) for name in FIGURES]
    areas = [[run["ROC AUC"] for run in results[cell.key]] for cell in both]
    seconds = [run["seconds"] for run in results[both[0].key]]
    figures.insert(1, " / ".join(f"{np.std(a):.4f}" for a in areas))
    shown = [both[0].estimator, epsilon, *figures, f"{np.median(seconds):.2f}"]
    return f"| {' | '.join(shown)} |"


def report(tables: dict[str, list[Dataset]], results: dict[str, Any]) -> list[str]:
    """Return one section in markdown for each table and encoding."""
    lines = []
    for encoding, encoded in tables.items():
        for table in encoded:
            n_train, delta = training_size(table)
            entropy = log_loss(table.y, np.full(len(table.y), table.y.mean()))
            lines += [
                "",
                f"## {table.name}, {encoding} encoding: n = {n_train}, {table.X.shape[1]} columns, "
                f"delta = {delta:g}",
                "",
                f"A constant prediction, the prevalence, has log loss {entropy:.4f}.",
                "",
                f"| {' | '.join(COLUMNS)} |",
                "|---" * len(COLUMNS) + "|",
                *(row(results, [Cell(table.name, encoding, name)]) for name in NOT_PRIVATE),
                *(
                    row(results, [Cell(table.name, encoding, name, r, epsilon) for r in RELATIONS])
                    for name, epsilon in product(PRIVATE, EPSILONS)
                ),
            ]
    return lines


def findings(results: dict[str, Any]) -> list[str]:
    """Return the summary in markdown, or nothing if a table has not been measured."""

    def area(table: str, epsilon: float = 0.0, encoding: str = "declared") -> str:
        if not epsilon:
            cells = [Cell(table, encoding, "LogisticRegression (not private)")]
        else:
            name = "ObjectivePerturbationLogisticRegression"
            cells = [Cell(table, encoding, name, each, epsilon) for each in RELATIONS]
        return " / ".join(summary(results, cell, "ROC AUC") for cell in cells)

    def largest_loss(tables: list[str], epsilon: float) -> str:
        pairs = [[float(v) for v in area(t, epsilon).split(" / ")] for t in tables]
        exact = [float(area(t)) for t in tables]
        losses = [max(e - pair[j] for e, pair in zip(exact, pairs, strict=True)) for j in (0, 1)]
        return " / ".join(f"{each:.4f}" for each in losses)

    names = ["adult", "bank", "cardio", "support2", "heart", "breast-cancer"]
    if any(not results.get(Cell(t, "declared", next(iter(NOT_PRIVATE))).key) for t in names):
        return []
    lines = [
        "",
        "## Summary",
        "",
        "ROC AUC of `ObjectivePerturbationLogisticRegression` with the declared encoding, under "
        "add-remove / replace-one:",
        "",
        "| table | not private | epsilon 0.1 | epsilon 1 | epsilon 8 |",
        "|---|---|---|---|---|",
        *(f"| {t} | {' | '.join(area(t, e) for e in (0.0, 0.1, 1.0, 8.0))} |" for t in names),
        "",
        "- On adult, bank and cardio (30,162 to 49,000 rows) the loss of AUC at epsilon 1 is at "
        f"most {largest_loss(names[:3], 1.0)}.",
        f"- On support2 (6,374 rows) it is {largest_loss(['support2'], 1.0)}, and "
        f"{largest_loss(['support2'], 0.1)} at epsilon 0.1.",
        f"- On heart (212 rows) it is {largest_loss(['heart'], 0.1)} at epsilon 0.1.",
        "- On adult the auto encoding (415 columns instead of 126) has AUC "
        f"{area('adult', 0.1, 'auto')} at epsilon 0.1, and",
        f"  {area('adult', 8.0, 'auto')} at epsilon 8.",
    ]
    return lines


def draw(names: list[str], encoding: str, results: dict[str, Any], directory: Path) -> None:
    """Draw ROC AUC and log loss against epsilon: a row of panels a relation, a column a table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = dict(
        zip(("Objective", "Opera", "Grpua", "DPSGD"), "C3 C0 C2 C1".split(), strict=True)
    )
    # That of the majority class is 1/2, where nothing else would be told apart.
    for figure_name, lines in (("ROC AUC", [*NOT_PRIVATE][1:]), ("log loss", [*NOT_PRIVATE])):
        size = (2.6 * len(names), 5.4)
        figure, axes = plt.subplots(
            2, len(names), figsize=size, squeeze=False, sharex=True, sharey="col"
        )
        for (r, relation), (j, name) in product(enumerate(RELATIONS), enumerate(names)):
            axis = axes[r][j]
            for estimator in PRIVATE:
                own = [Cell(name, encoding, estimator, relation, e) for e in EPSILONS]
                values = [summary(results, cell, figure_name) for cell in own]
                if "-" in values:
                    continue
                axis.plot(
                    EPSILONS,
                    list(map(float, values)),
                    marker="o",
                    markersize=3,
                    color=colours[next(key for key in colours if estimator.startswith(key))],
                    linestyle="--" if "SVC" in estimator else "-",
                    label=estimator,
                )
            for other in lines:
                value = summary(results, Cell(name, encoding, other), figure_name)
                axis.axhline(float(value), color="0.6", linewidth=0.8)
            axis.set(xscale="log", title=name if r == 0 else None)
            axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            axis.minorticks_off()
        for r, relation in enumerate(RELATIONS):
            axes[r][0].set_ylabel(f"{figure_name}, {relation}")
        grey = " and majority class" if len(lines) > 1 else ""
        figure.supxlabel(f"epsilon (grey: not private{grey})", fontsize=9, y=0.07)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=8, frameon=False)
        figure.tight_layout(rect=(0.0, 0.09, 1.0, 1.0))
        path = directory / f"{figure_name.lower().replace(' ', '_')}_by_epsilon.png"
        figure.savefig(path, dpi=90)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", help="names of the tables to run")
    parser.add_argument("--results", type=Path, default=Path("accuracy.json"))
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--pictures", type=Path, help="draw two pictures into this directory")
    arguments = parser.parse_args()
    file = arguments.results
    results = json.loads(file.read_text()) if file.exists() else {}
    tables = {encoding: load_tables(arguments.data, encoding) for encoding in ENCODINGS}
    for encoding, encoded in tables.items():
        chosen = [t for t in encoded if not arguments.only or t.name in arguments.only]
        for table in chosen:
            measure(table, encoding, arguments.seeds, results, file)
        tables[encoding] = chosen
    lines = [
        "# Accuracy with default parameters",
        "",
        "This page shows the accuracy of seven estimators with their default parameters on six "
        "public tables. Each is fitted at",
        "five values of epsilon, under both adjacency relations. Only epsilon, delta, the "
        "adjacency and the public row norm are",
        "given.",
        *findings(results),
        "",
        "## Conditions",
        "",
        "| condition | value |",
        "|---|---|",
        "| tables | adult, bank, cardio, support2, heart, breast-cancer; adult has its published "
        "test set, the others are split 70/30 at random |",
        f"| repetitions | {arguments.seeds} seeds, of the noise and of the random splits; every "
        "estimator sees the same splits |",
        "| encodings | declared (the schema's columns as they are) and auto (numeric columns as "
        "curves) |",
        "| private estimators | two values per cell: add-remove / replace-one. "
        "Replace-one is the stronger guarantee at the same epsilon |",
        "| not private | the first two rows of each table |",
        "| cells | means over seeds; medians for `slope` and `seconds` |",
        "| `sd` | standard deviation of ROC AUC over seeds |",
        "| `slope` | slope of a logistic regression of test labels on predicted log odds: 1 is "
        "right, less is over-confident |",
        "| `seconds` | time of a fit under add-remove on one machine |",
        "| script | `python examples/benchmarks/accuracy.py --seeds "
        f"{arguments.seeds} --markdown docs/accuracy.md --pictures docs/images` |",
        *report(tables, results),
    ]
    if arguments.pictures:
        names = [table.name for table in tables["declared"]]
        draw(names, "declared", results, arguments.pictures)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
