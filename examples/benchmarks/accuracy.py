r"""Accuracy of the private estimators with their defaults on six public tables.

Every estimator is used untuned: only epsilon, delta and the public row norm are given. Adult has
the test split of UCI; the other tables are split 70/30 at random, once for each seed. The noise
differs from seed to seed as well. The breast cancer table ships with scikit-learn; the others are
read from the directory that --data or the environment variable SKDP_DATA names, and skipped
without it. Results of single fits are stored in a file, from which an interrupted run continues.
--markdown writes a page with ROC AUC, and all metrics to measured/NAME.csv next to it.

    python examples/benchmarks/accuracy.py --seeds 10 --results accuracy.json \
        --markdown docs/accuracy.md --pictures docs/images
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

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
KEYS = ("table", "encoding", "estimator", "epsilon", "adjacency")
METRICS = ("roc_auc", "roc_auc_sd", "accuracy", "log_loss", "brier_score", "slope", "seconds")
Record = dict[str, str]


class Facts(NamedTuple):
    """Facts of one encoded table; log_loss is that of a constant prediction, the prevalence."""

    table: str
    encoding: str
    n: int
    columns: int
    delta: str
    log_loss: str


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


def record(results: dict[str, Any], cell: Cell) -> Record:
    """Return one line of the CSV file, empty where a metric does not exist."""
    runs = results[cell.key]
    figures = ["" if v == "-" else v for v in (summary(results, cell, name) for name in FIGURES)]
    figures.insert(1, f"{np.std([run['ROC AUC'] for run in runs]):.4f}")
    timed = cell.relation != RELATIONS[1]
    seconds = f"{np.median([run['seconds'] for run in runs]):.2f}" if timed else ""
    private = cell.estimator in PRIVATE
    keys = (
        cell.table,
        cell.encoding,
        cell.estimator,
        f"{cell.epsilon:g}" if private else "",
        cell.relation if private else "",
    )
    return dict(zip((*KEYS, *METRICS), (*keys, *figures, seconds), strict=True))


def write_csv(records: list[Record], file: Path) -> None:
    """Write all metrics, one line per estimator, epsilon and adjacency."""
    file.parent.mkdir(exist_ok=True)
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, (*KEYS, *METRICS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def read_csv(file: Path) -> list[Record]:
    """Return the records of a file that `write_csv` wrote."""
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


class Lookup:
    """The metrics of all records, by table, encoding, estimator and epsilon."""

    def __init__(self, records: list[Record]):
        self.records = {tuple(each[key] for key in KEYS): each for each in records}

    def one(self, metric: str, table: str, encoding: str, estimator: str) -> str:
        """Return a metric of a fit without privacy."""
        return self.records[table, encoding, estimator, "", ""][metric]

    def both(
        self, metric: str, table: str, encoding: str, estimator: str, epsilon: float
    ) -> list[str]:
        """Return a metric under add-remove and replace-one."""
        keys = (table, encoding, estimator, f"{epsilon:g}")
        return [self.records[(*keys, adjacency)][metric] for adjacency in RELATIONS]


def markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return a table in markdown."""
    lines = [f"| {' | '.join(each)} |" for each in (head, *rows)]
    return ["", lines[0], "|---" * len(head) + "|", *lines[1:]]


def areas(facts: list[Facts], found: Lookup) -> list[str]:
    """Return one table of ROC AUC for each table and encoding."""
    lines = []
    for encoding in ENCODINGS:
        encoded = [each for each in facts if each.encoding == encoding]
        if encoded:
            lines += ["", f"## ROC AUC, {encoding} encoding"]
        for each in encoded:
            place = (each.table, encoding)
            rows = [
                [name, *[found.one("roc_auc", *place, name)] * len(EPSILONS)]
                for name in NOT_PRIVATE
            ] + [
                [name, *(" / ".join(found.both("roc_auc", *place, name, e)) for e in EPSILONS)]
                for name in PRIVATE
            ]
            lines += ["", f"### {each.table}, {encoding}: {each.columns} columns"]
            lines += markdown(["estimator", *(f"epsilon {e:g}" for e in EPSILONS)], rows)
    return lines


def slopes_and_seconds(facts: list[Facts], found: Lookup) -> list[str]:
    """Return two short tables: calibration slopes at epsilon 1, and run times."""
    declared = [each.table for each in facts if each.encoding == ENCODINGS[0]]
    with_slope = [name for name in PRIVATE if "SVC" not in name]
    not_private = [*NOT_PRIVATE][1]
    rows = [
        [
            table,
            found.one("slope", table, ENCODINGS[0], not_private),
            *(" / ".join(found.both("slope", table, ENCODINGS[0], n, 1.0)) for n in with_slope),
        ]
        for table in declared
    ]
    lines = [
        "",
        "## Calibration slopes",
        "",
        "The table shows slopes at epsilon 1 with the declared encoding. A slope of 1 is right, "
        "less is over-confident.",
        *markdown(["table", not_private, *with_slope], rows),
    ]

    def longest(encoding: str, name: str) -> str:
        times = [
            each["seconds"]
            for each in found.records.values()
            if (each["encoding"], each["estimator"]) == (encoding, name) and each["seconds"]
        ]
        return max(times, key=float, default="-")

    rows = [[name, *(longest(e, name) for e in ENCODINGS)] for name in (not_private, *PRIVATE)]
    head = ["estimator", *(f"{encoding} encoding" for encoding in ENCODINGS)]
    lines += [
        "",
        "## Run times",
        "",
        "The table shows the longest median time of a fit, in seconds, over all tables and values "
        "of epsilon.",
        *markdown(head, rows),
    ]
    return lines


def findings(found: Lookup) -> list[str]:
    """Return the summary in markdown, or nothing if a table has not been measured."""
    private, not_private = "ObjectivePerturbationLogisticRegression", [*NOT_PRIVATE][1]

    def area(table: str, epsilon: float = 0.0, encoding: str = "declared") -> str:
        if not epsilon:
            return found.one("roc_auc", table, encoding, not_private)
        return " / ".join(found.both("roc_auc", table, encoding, private, epsilon))

    def largest_loss(tables: list[str], epsilon: float) -> str:
        pairs = [[float(v) for v in area(t, epsilon).split(" / ")] for t in tables]
        exact = [float(area(t)) for t in tables]
        losses = [max(e - pair[j] for e, pair in zip(exact, pairs, strict=True)) for j in (0, 1)]
        return " / ".join(f"{each:.4f}" for each in losses)

    names = ["adult", "bank", "cardio", "support2", "heart", "breast-cancer"]
    if any((t, "declared", not_private, "", "") not in found.records for t in names):
        return []
    rows = [[t, *(area(t, e) for e in (0.0, 0.1, 1.0, 8.0))] for t in names]
    return [
        "",
        "## Summary",
        "",
        "ROC AUC of `ObjectivePerturbationLogisticRegression` with the declared encoding, under "
        "add-remove / replace-one:",
        *markdown(["table", "not private", "epsilon 0.1", "epsilon 1", "epsilon 8"], rows),
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


def conditions(facts: list[Facts], seeds: int) -> list[str]:
    """Return the conditions of the measurements, and the facts of the tables."""
    columns = {(each.table, each.encoding): f"{each.columns}" for each in facts}
    once = {each.table: each for each in facts}.values()
    rows = [
        [t.table, str(t.n), t.delta, *(columns.get((t.table, e), "-") for e in ENCODINGS)]
        for t in once
    ]
    rows = [[*each, t.log_loss] for each, t in zip(rows, once, strict=True)]
    return [
        "",
        "## Conditions",
        *markdown(
            ["condition", "value"],
            [
                [
                    "splits",
                    "adult has its published test set, the others are split 70/30 at random",
                ],
                [
                    "repetitions",
                    f"{seeds} seeds, of the noise and of the random splits; every estimator sees "
                    "the same splits",
                ],
                [
                    "encodings",
                    "declared (the schema's columns as they are) and auto (numeric columns as "
                    "curves)",
                ],
                [
                    "private estimators",
                    "two values per cell: add-remove / replace-one. Replace-one is the stronger "
                    "guarantee at the same epsilon",
                ],
                ["not private", "the first two rows of each table, with one value for all epsilon"],
                ["cells", "means over seeds; medians for slopes and seconds"],
                [
                    "script",
                    f"`python examples/benchmarks/accuracy.py --seeds {seeds} --markdown "
                    "docs/accuracy.md --pictures docs/images`",
                ],
            ],
        ),
        *markdown(
            ["table", "training rows", "delta"]
            + [f"columns, {encoding}" for encoding in ENCODINGS]
            + ["log loss of predicting the prevalence"],
            rows,
        ),
    ]


def page(facts: list[Facts], records: list[Record], seeds: int, file: str) -> list[str]:
    """Return the lines of the page; ``file`` is the CSV file to download."""
    found = Lookup(records)
    return [
        "# Accuracy with default parameters",
        "",
        "This page shows the accuracy of seven estimators with their default parameters on six "
        "public tables. Each is fitted at",
        "five values of epsilon, under both adjacency relations. Only epsilon, delta, the "
        "adjacency and the public row norm are",
        "given.",
        "",
        f"Download [all metrics as CSV]({file}): the tables below show only the most important "
        "ones.",
        *findings(found),
        *conditions(facts, seeds),
        "",
        "The CSV file has one line for each table, encoding, estimator, epsilon and adjacency. "
        "Its metrics are:",
        *markdown(
            ["column", "metric, on the test rows"],
            [
                ["`roc_auc`, `roc_auc_sd`", "ROC AUC, and its standard deviation over seeds"],
                ["`accuracy`", "share of correct predictions"],
                ["`log_loss`, `brier_score`", "of the probabilities; empty without them"],
                [
                    "`slope`",
                    "slope of a logistic regression of test labels on predicted log odds",
                ],
                ["`seconds`", "time of a fit on one machine, under add-remove only"],
            ],
        ),
        *slopes_and_seconds(facts, found),
        *areas(facts, found),
    ]


def publish(facts: list[Facts], records: list[Record], seeds: int, file: Path) -> None:
    """Write the page, and the CSV file next to it."""
    download = Path("measured") / f"{file.stem}.csv"
    write_csv(records, file.parent / download)
    file.write_text("\n".join(page(facts, records, seeds, download.as_posix())) + "\n")


def table_facts(table: Dataset, encoding: str) -> Facts:
    """Return the facts of a table that the page states."""
    n_train, delta = training_size(table)
    entropy = log_loss(table.y, np.full(len(table.y), table.y.mean()))
    return Facts(table.name, encoding, n_train, table.X.shape[1], f"{delta:g}", f"{entropy:.4f}")


class Picture(NamedTuple):
    """A metric against epsilon: a row of panels per adjacency, a column per table."""

    file: str
    metric: str
    title: str
    tables: tuple[str, ...]
    estimators: tuple[str, ...]
    lines: tuple[str, ...]
    width: float  # of a panel, in inches


def pictures(tables: Sequence[str]) -> list[Picture]:
    """Return the pictures of all estimators, and a smaller one for first pages."""
    # The majority class has a ROC AUC of 1/2, at a scale on which all others are alike.
    known, every = tuple(NOT_PRIVATE), tuple(PRIVATE)
    large = tuple(name for name in tables if name not in ("heart", "breast-cancer"))
    first = tuple(name for name in every if "SVC" not in name)
    return [
        Picture("roc_auc_by_epsilon", "roc_auc", "ROC AUC", tuple(tables), every, known[1:], 2.6),
        Picture("log_loss_by_epsilon", "log_loss", "log loss", tuple(tables), first, known, 2.6),
        Picture("roc_auc_overview", "roc_auc", "ROC AUC", large, first, known[1:], 2.4),
    ]


def draw(picture: Picture, records: list[Record], directory: Path) -> None:
    """Draw one picture of the declared encoding."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = dict(
        zip(("Objective", "Opera", "Grpua", "DPSGD"), "C3 C0 C2 C1".split(), strict=True)
    )
    found = {
        (each["table"], each["estimator"], each["adjacency"], each["epsilon"]): each[picture.metric]
        for each in records
        if each["encoding"] == "declared"
    }
    shape = len(RELATIONS), len(picture.tables)
    size = (picture.width * shape[1], 5.4)
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, sharex=True, sharey="col")
    for (r, relation), (j, name) in product(enumerate(RELATIONS), enumerate(picture.tables)):
        axis = axes[r][j]
        for estimator in picture.estimators:
            axis.plot(
                EPSILONS,
                [float(found[name, estimator, relation, f"{e:g}"]) for e in EPSILONS],
                marker="o",
                markersize=3,
                color=colours[next(key for key in colours if estimator.startswith(key))],
                linestyle="--" if "SVC" in estimator else "-",
                label=estimator,
            )
        for other in picture.lines:
            axis.axhline(float(found[name, other, "", ""]), color="0.6", linewidth=0.8)
        axis.set(xscale="log", title=name if r == 0 else None)
        axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axis.minorticks_off()
    for r, relation in enumerate(RELATIONS):
        axes[r][0].set_ylabel(f"{picture.title}, {relation}")
    grey = " and majority class" if len(picture.lines) > 1 else ""
    figure.supxlabel(f"epsilon (grey: not private{grey})", y=0.1)
    handles, labels = axes[0][0].get_legend_handles_labels()
    columns = 2 if shape[1] < 5 else 4
    figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False)
    figure.tight_layout(rect=(0.0, 0.08, 1.0, 1.0))
    figure.savefig(directory / f"{picture.file}.png", dpi=90 if shape[1] > 4 else 120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", help="names of the tables to run")
    parser.add_argument("--results", type=Path, default=Path("accuracy.json"))
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    parser.add_argument("--pictures", type=Path, help="draw pictures into this directory")
    arguments = parser.parse_args()
    file = arguments.results
    results = json.loads(file.read_text()) if file.exists() else {}
    tables = {encoding: load_tables(arguments.data, encoding) for encoding in ENCODINGS}
    for encoding, encoded in tables.items():
        chosen = [t for t in encoded if not arguments.only or t.name in arguments.only]
        for table in chosen:
            measure(table, encoding, arguments.seeds, results, file)
        tables[encoding] = chosen
    encoded = [table_facts(table, e) for e, each in tables.items() for table in each]
    records = [
        record(results, cell) for each in encoded for cell in cells(each.table, each.encoding)
    ]
    if arguments.pictures:
        for picture in pictures([table.name for table in tables["declared"]]):
            draw(picture, records, arguments.pictures)
    if arguments.markdown:
        publish(encoded, records, arguments.seeds, arguments.markdown)
    else:
        print("\n".join(page(encoded, records, arguments.seeds, "measured/accuracy.csv")))


if __name__ == "__main__":
    main()
