"""Private hyper-parameter search on Adult and Cardio: what the whole of it costs, and gains.

Every row of the table spends the same total (epsilon, delta), the final model included:

- untuned: one fit with the defaults;
- told: one fit with the best candidate, as if somebody had told it. It is chosen by accuracy on the
  test rows, over all seeds: not private, and the most that a choice from this grid can gain;
- naive: a 3-fold search in which every fit gets its share of epsilon and delta by basic
  composition. Its choice by exact scores is not private either, and left unpaid;
- random-stopping, holdout, cv: the methods of `PrivateGridSearchCV`.

    SKDP_DATA=DATA python examples/benchmarks/search.py --seeds 5 --markdown docs/search_gains.md
    SKDP_DATA=DATA python examples/benchmarks/search.py --seeds 2 --numbers  # of candidates
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _datasets import Dataset, load_adult, load_cardio
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.exceptions import PrivacyWarning
from skdp.model_selection import PrivateGridSearchCV

DELTA = 1e-6
EPSILONS = (0.3, 1.0, 3.0)
METHODS = ("random-stopping", "holdout", "cv")
COLUMNS = ("untuned", "told", "naive", *METHODS)
FOLDS = 3

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """An estimator and its grid, in units of the public row norm R of a data set."""

    name: str
    estimator: Callable[[float], Any]
    grid: Callable[[float], dict[str, list[float]]]


PROBLEMS = (
    Problem(
        "OPERA, `alpha`",
        lambda norm: OperaLogisticRegression(data_norm=norm),
        lambda norm: {"alpha": [norm**2 * a for a in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)]},
    ),
    Problem(
        "OPERA, `data_norm` from a bound ten times too large",
        lambda norm: OperaLogisticRegression(data_norm=10.0 * norm),
        lambda norm: {"data_norm": [norm * a for a in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)]},
    ),
    Problem(
        "DP-SGD, `max_grad_norm` and `learning_rate_init`",
        lambda norm: DPSGDClassifier(data_norm=norm, adjacency="replace-one", max_iter=40),
        lambda norm: {
            "max_grad_norm": [0.1 * norm, 0.5 * norm],
            "learning_rate_init": [a / norm**2 for a in (1.0, 4.0, 16.0)],
        },
    ),
)


def accuracy_of(model: Any, split: Split) -> float:
    """Fit on the training part and return the accuracy on the test part."""
    X, y, X_test, y_test = split
    return float(np.mean(model.fit(X, y).predict(X_test) == y_test))


def naive(models: list[Any], epsilon: float, split: Split, seed: int) -> float:
    """Return the accuracy of a search that adds up epsilons and picks by exact scores."""
    X, y, _, _ = split
    n_fits = FOLDS * len(models) + 1
    share = {"epsilon": epsilon / n_fits, "delta": DELTA / n_fits}
    folds = np.random.default_rng(seed).integers(0, FOLDS, len(y))
    hits = []
    for model in models:
        model = clone(model).set_params(**share)
        parts = [folds == fold for fold in range(FOLDS)]
        hits.append(sum(int(np.sum(model.fit(X[~p], y[~p]).predict(X[p]) == y[p])) for p in parts))
    return accuracy_of(clone(models[int(np.argmax(hits))]).set_params(**share), split)


def measure(problem: Problem, dataset: Dataset, epsilon: float, seeds: int) -> dict[str, Any]:
    """Return the accuracies of each column, seed by seed."""
    common = {"epsilon": epsilon, "delta": DELTA}
    base, grid = problem.estimator(dataset.data_norm), problem.grid(dataset.data_norm)
    defaults = type(base)(data_norm=base.data_norm, adjacency="replace-one", **common)
    models = [clone(base).set_params(**common, **point) for point in ParameterGrid(grid)]
    found: dict[str, Any] = {name: [] for name in COLUMNS}
    for seed, split in enumerate(dataset.splits(seeds)):
        found["untuned"].append(accuracy_of(clone(defaults), split))
        found["told"].append([accuracy_of(clone(model), split) for model in models])
        found["naive"].append(naive(models, epsilon, split, seed))
        for method in METHODS:
            search = PrivateGridSearchCV(base, grid, method=method, cv=FOLDS, **common)
            found[method].append(accuracy_of(search, split))
    each = np.array(found["told"])
    found["told"] = each[:, int(np.argmax(each.mean(axis=0)))].tolist()
    return found


def inner_epsilons(epsilon: float) -> str:
    """Return what one training of six candidates gets, at delta = 1e-6, as a table row."""
    cells = []
    for method in METHODS:
        for shape in ((1e4, 10),):
            search = PrivateGridSearchCV(
                OperaLogisticRegression(),
                {"alpha": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]},
                method=method,
                cv=FOLDS,
                epsilon=epsilon,
                delta=DELTA,
            )
            event = search.privacy_plan(int(shape[0]), shape[1]).event
            cells.append(f"{_released_model(event, DELTA):.3f}")
    return f"| {epsilon:g} | {' | '.join(cells)} |"


def _released_model(event: Any, delta: float) -> float:
    """Return the epsilon that the released model alone was trained with."""
    from skdp.accounting import GaussianEvent, PLDAccountant

    last = event
    while not isinstance(last, GaussianEvent):
        parts = getattr(last, "events", None)
        # The refit comes last; without one, all trainings are alike and come first.
        first = type(last).__name__ != "ComposedEvent"
        last = (parts[0] if first else parts[-1]) if parts else last.event
    return float(PLDAccountant("replace-one").compose(last).epsilon(delta))


def table(problem: Problem, dataset: Dataset, seeds: int) -> list[str]:
    """Return one table: accuracies in percent, with the standard deviation over seeds."""
    lines = [
        f"## {dataset.name.capitalize()}, {problem.name}",
        "",
        "| epsilon | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for epsilon in EPSILONS:
        found = measure(problem, dataset, epsilon, seeds)
        cells = [
            f"{100 * np.mean(found[name]):.1f} ± {100 * np.std(found[name]):.1f}"
            for name in COLUMNS
        ]
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return [*lines, ""]


NUMBERS = (3, 6, 12)
ONE_LIST = {"alpha": (1e-4, 3e-2), "data_norm": (0.1, 30.0)}


def simulated(seed: int, rows: int = 6000) -> Split:
    """Return a split of a made-up table of eight columns, whose rows have norm 1 at most."""
    rng = np.random.default_rng(100 + seed)
    weights = rng.normal(size=8)
    X = np.clip(rng.normal(size=(rows + 5000, 8)), -2, 2) / np.sqrt(32)
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-6 * X @ weights))).astype(int)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def loss_and_seconds(split: Split, norm: float, name: str, count: int, epsilon: float) -> Any:
    """Return accuracy that each method gives up in a search of `count` values, and its time."""
    X, y, X_test, y_test = split
    scale = norm**2 if name == "alpha" else norm
    base = OperaLogisticRegression(data_norm=norm if name == "alpha" else 10.0 * norm)
    values = [scale * value for value in np.geomspace(*ONE_LIST[name], count)]
    common = {"epsilon": epsilon, "delta": DELTA}
    models = [clone(base).set_params(**{name: value}, **common) for value in values]
    told, found = max(accuracy_of(model, split) for model in models), []
    for method in ("random-stopping", "fixed", "holdout"):
        start = time.process_time()
        search = PrivateGridSearchCV(base, {name: values}, method=method, **common).fit(X, y)
        seconds = time.process_time() - start
        found.append((100 * (told - np.mean(search.predict(X_test) == y_test)), seconds))
    return found


def by_number(directory: Any, seeds: int) -> Any:
    """Yield rows of the table of numbers of candidates."""
    tables = [(1.0, [simulated(seed) for seed in range(seeds)])]
    for dataset in (load_adult(directory), load_cardio(directory)):
        splits = [(X[:20_000], y[:20_000], *rest) for X, y, *rest in dataset.splits(seeds)]
        tables.append((dataset.data_norm, splits))
    for count in NUMBERS:
        for epsilon in EPSILONS:
            each = [
                loss_and_seconds(split, norm, name, count, epsilon)
                for norm, splits in tables
                for split in splits
                for name in ONE_LIST
            ]
            cells = [
                f"{np.mean(lost):.1f} ± {np.std(lost) / len(lost) ** 0.5:.1f}, at most "
                f"{max(lost):.1f}; {np.mean(seconds):.2f} s"
                for lost, seconds in (np.transpose(column) for column in zip(*each, strict=True))
            ]
            yield f"| {count} | {epsilon:g} | {' | '.join(cells)} |"


ABOUT_NUMBERS = """## Number of candidates

Loss of test accuracy, in points, against the best of one fit of each candidate at the full epsilon.

| condition | value |
|---|---|
| cells | mean and standard error, largest loss, processor seconds of one search |
| searches | {searches} per cell, {seeds} seeds |
| candidates | half: OPERA's `alpha`; half: its `data_norm`, from a bound ten times too large |
| tables | 20,000 rows of Adult and of Cardio, and 6,000 simulated rows |
| script | `examples/benchmarks/search.py --numbers` |

| candidates | epsilon | random-stopping | fixed | holdout |
|---|---|---|---|---|"""
INTRODUCTION = """# Gains of private search

This page compares a private search with a fit without tuning, at the same total epsilon.

## Summary

{findings}

## Conditions

| condition | value |
|---|---|
| cells | test accuracy in percent, mean and standard deviation over {seeds} seeds |
| privacy | replace-one, delta = 1e-6; the same epsilon in all columns, for tuning and model |
| search | six candidates, {folds} folds where there are folds, otherwise default parameters |
| script | `examples/benchmarks/search.py`, on {machine} in {minutes:.0f} minutes |

| column | meaning |
|---|---|
| `untuned` | one fit with the defaults of the estimator, which use only public numbers |
| `told` | **not private**: one fit with the candidate that is best on the test rows |
| `naive` | **not private**: {folds}-fold search and refit, epsilon and delta divided evenly |
| others | `PrivateGridSearchCV` with this method |

`told` is the largest gain that a free choice from the grid could have. `naive` does not
pay for its choice by exact scores. The default distribution of the number of runs was chosen after
looking at some Adult rows, which favours random stopping there a little.
"""


def findings(lines: list[str]) -> str:
    """Return the summary in markdown, from the rows at epsilon 1."""
    title, at_one = "", {}
    for line in lines:
        if line.startswith("## "):
            title = line[3:]
        elif line.startswith("| 1 | "):
            at_one[title] = line.strip("| ").split(" | ")[1:]
    names = [f"Adult, {problem.name}" for problem in PROBLEMS]
    alpha, norm, descent = (dict(zip(COLUMNS, at_one[name], strict=True)) for name in names)
    inner = " | ".join(at_one["Epsilon of the released model"])
    return "\n".join(
        [
            "Accuracy in percent at epsilon 1 on Adult, and the epsilon of the released model:",
            "",
            "| | untuned | random-stopping | holdout | cv |",
            "|---|---|---|---|---|",
            f"| OPERA's `alpha` | {alpha['untuned']} | {of_methods(alpha)} |",
            f"| DP-SGD | {descent['untuned']} | {of_methods(descent)} |",
            "| OPERA's `data_norm`, from a bound ten times too large "
            f"| {norm['untuned']} | {of_methods(norm)} |",
            f"| epsilon of the released model | 1 | {inner} |",
        ]
    )


def of_methods(cells: dict[str, str]) -> str:
    """Return the cells of the private methods."""
    return " | ".join(cells[method] for method in METHODS)


def main() -> None:
    """Run the benchmark and write its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=None, help="directory of the data sets")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--markdown", type=Path, default=None, help="page to write")
    parser.add_argument("--numbers", action="store_true", help="only the table of few and many")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    if arguments.numbers:
        for line in by_number(arguments.data, arguments.seeds):
            print(line, flush=True)
        return
    begin = time.perf_counter()
    lines = []
    for dataset in (load_adult(arguments.data), load_cardio(arguments.data)):
        for problem in PROBLEMS:
            print(dataset.name, problem.name, flush=True)
            lines += table(problem, dataset, arguments.seeds)
    lines += [
        "## Epsilon of the released model",
        "",
        "Epsilon at delta = 1e-6 of the training of the released model, if it is Gaussian, with",
        f"six candidates and {FOLDS} folds. The rest pays for the choice.",
        "",
        "| epsilon of the search | " + " | ".join(METHODS) + " |",
        "|---" * (len(METHODS) + 1) + "|",
        *(inner_epsilons(epsilon) for epsilon in EPSILONS),
        "",
    ]
    about = ABOUT_NUMBERS.format(searches=6 * arguments.seeds, seeds=arguments.seeds)
    lines += [about, *by_number(arguments.data, arguments.seeds), ""]
    head = INTRODUCTION.format(
        findings=findings(lines),
        seeds=arguments.seeds,
        folds=FOLDS,
        machine=f"{platform.system()} {platform.machine()}",
        minutes=(time.perf_counter() - begin) / 60.0,
    )
    page = "\n".join([head, *lines])
    print(page)
    if arguments.markdown is not None:
        arguments.markdown.write_text(page)


if __name__ == "__main__":
    main()
