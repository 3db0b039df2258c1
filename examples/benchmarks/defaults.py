r"""Regret of the defaults on simulated tables nobody tuned them on, and figures on open tables.

On every simulated table each estimator is fitted with its defaults and with a grid of one choice,
the penalty or the noise of a margin, from which step sizes follow. The regret is the ROC AUC of the
best of all of them, picked in hindsight on test rows, less that of the defaults: an upper bound,
since the best of noisy means is lucky. `measure` writes what one version of skdp reaches, `report`
compares two of them; the grid's levels do not follow from the defaults, so that `--no-grid` does
for one of the two:

    PYTHONPATH=older python examples/benchmarks/defaults.py measure before.json --no-grid
    python examples/benchmarks/defaults.py measure after.json
    python examples/benchmarks/defaults.py report before.json after.json --csv docs/measured

The report prints the lines of epsilon 1; the CSV files have all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _datasets import load_adult, load_bank, load_breast_cancer, load_cardio, load_heart
from _measured import markdown, write_csv
from _simulated_tables import FIRST_HELD_OUT, draw_table
from _support2 import load_support2
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.accounting.numerics import gaussian_profile

ESTIMATORS = (
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
    GrpuaLogisticRegression,
    DPSGDClassifier,
)
DESCENTS = (GrpuaLogisticRegression, DPSGDClassifier)
EPSILONS = (0.1, 1.0, 3.0)
# The grid: alpha times the signal-to-noise ratio, for rows of norm 1; the noise of a margin.
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
NOISES = (0.25, 0.5, 1.0, 2.0, 4.0)
# Rows whose fits are repeated with other noise count together at most so many.
ROWS_OF_ALL_DRAWS, MOST_DRAWS = 12_000, 6
OPEN_TABLES = (load_adult, load_bank, load_cardio, load_heart, load_support2)

REGRETS = ["estimator", "epsilon", "tables", "median before", "median after"]
REGRETS += ["95 % before", "95 % after", "mean before", "mean after"]
OPEN = ["estimator", "table", "epsilon", "AUC before", "AUC after"]
OPEN += ["log loss before", "log loss after", "slope before", "slope after"]

Row = dict[str, Any]


def delta_of(n_rows: int) -> float:
    return 1e-5 if n_rows < 1000 else 1e-6


def relation_of(estimator: type) -> str:
    """Return the relation that the tables of docs/defaults.md have it in."""
    return "add-remove" if estimator is DPSGDClassifier else "replace-one"


def ratio_of(estimator: type, n_rows: int, epsilon: float) -> float:
    """Return the signal-to-noise ratio of docs/defaults.md."""
    ratio = n_rows * gaussian_profile.mu(epsilon, delta_of(n_rows))
    return ratio / 2.0 if relation_of(estimator) == "replace-one" else ratio


def rules(estimator: type, n_rows: int, epsilon: float) -> Iterator[Any]:
    """Yield contexts in which a rule of the defaults is a constant of the grid.

    Estimators with other parameters would draw other noise, and the luckiest would look best.
    """
    if estimator in DESCENTS:
        yield from (patch("skdp.plans.defaults._weight_noise", lambda *_, v=v: v) for v in NOISES)
        return
    opera = estimator is OperaLogisticRegression
    rule = "_opera.default_output_penalty" if opera else "_objective.default_objective_penalty"
    # Half of epsilon is the most that objective perturbation may pay for a row's curvature.
    least = 0.27 / (n_rows * np.expm1(0.5 * epsilon))
    for level in PENALTIES:
        penalty = max(level / ratio_of(estimator, n_rows, epsilon), least)
        yield patch(f"skdp.estimators.{rule}", lambda *_, v=penalty: v)


def area(estimator: type, table: Any, epsilon: float, draws: int) -> float:
    """Return the mean ROC AUC over draws of the noise."""
    areas = []
    for seed in range(draws):
        delta = delta_of(len(table.y))
        relation = relation_of(estimator)
        model = estimator(epsilon, delta, adjacency=relation, data_norm=1.0, random_state=seed)
        model.fit(table.X / table.data_norm, table.y)
        scores = model.decision_function(table.X_test / table.data_norm)
        areas.append(roc_auc_score(table.y_test, scores))
    return float(np.mean(areas))


def measure_simulated(estimator: type, seeds: Iterable[int], grid: bool) -> Iterator[Row]:
    """Yield the area of the defaults, and the grid's best, for each table and epsilon."""
    for seed in seeds:
        table = draw_table(seed)
        n_rows = len(table.y)
        draws = min(MOST_DRAWS, max(1, ROWS_OF_ALL_DRAWS // n_rows))
        for epsilon in EPSILONS:
            found = area(estimator, table, epsilon, draws)
            row = {"seed": seed, "epsilon": epsilon, "n": n_rows, "defaults": round(found, 5)}
            best = found
            for rule in rules(estimator, n_rows, epsilon) if grid else ():
                with rule:
                    best = max(best, area(estimator, table, epsilon, draws))
            row |= {"best": round(best, 5)} if grid else {}
            yield row


def slope(y: Any, scores: Any) -> float:
    """Return the calibration slope: 1 is right, below 1 means too sure."""
    fitted = LogisticRegression(C=np.inf).fit(scores[:, None], y)
    return float(fitted.coef_[0, 0])


def measure_open(estimator: type, table: Any, seeds: int) -> Iterator[Row]:
    """Yield what the defaults reach on an open table."""
    for epsilon in EPSILONS:
        found = []
        for seed, (X, y, X_test, y_test) in enumerate(table.splits(seeds)):
            own = {"adjacency": relation_of(estimator), "data_norm": table.data_norm}
            model = estimator(epsilon, delta_of(len(y)), **own, random_state=seed).fit(X, y)
            scores = model.decision_function(X_test)
            loss = log_loss(y_test, model.predict_proba(X_test)[:, 1])
            found.append((roc_auc_score(y_test, scores), loss, slope(y_test, scores)))
        means = np.mean(found, axis=0)
        figures = zip(("auc", "log loss", "slope"), means.round(4).tolist(), strict=True)
        yield {"table": table.name, "epsilon": epsilon, "n": len(y), **dict(figures)}


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, list[Row]]]:
    """Return all rows of this version, by kind of table and estimator."""
    seeds = range(arguments.first, arguments.first + arguments.tables)
    opened = [load(arguments.data) for load in OPEN_TABLES] if arguments.seeds else []
    opened += [load_breast_cancer()] if arguments.seeds else []
    results: dict[str, dict[str, list[Row]]] = {"simulated": {}, "open": {}}
    for estimator in ESTIMATORS:
        name = estimator.__name__
        if arguments.only and name not in arguments.only:
            continue
        results["simulated"][name] = list(measure_simulated(estimator, seeds, arguments.grid))
        results["open"][name] = [
            row for table in opened for row in measure_open(estimator, table, arguments.seeds)
        ]
        print(name, flush=True)
    return results


def regrets(before: list[Row], after: list[Row]) -> np.ndarray:
    """Return epsilon and the regrets before and after; the best may be either's defaults."""
    rows = []
    for old, new in zip(before, after, strict=True):
        assert (old["seed"], old["epsilon"]) == (new["seed"], new["epsilon"])
        best = max(old["defaults"], new["defaults"], new["best"])
        rows.append((new["epsilon"], best - old["defaults"], best - new["defaults"]))
    return np.array(rows)


def compare_regrets(before: dict[str, Any], after: dict[str, Any]) -> list[list[str]]:
    """Return a line of regrets for each estimator and epsilon."""
    lines = []
    for name, rows in after["simulated"].items():
        found = regrets(before["simulated"][name][: len(rows)], rows)
        for epsilon in EPSILONS:
            own = found[found[:, 0] == epsilon, 1:]
            pairs = (np.median(own, axis=0), np.quantile(own, 0.95, axis=0), own.mean(axis=0))
            lines.append([name, f"{epsilon:g}", str(len(own))])
            lines[-1] += [f"{number:.4f}" for number in np.ravel(pairs)]
    return lines


def compare_open(before: dict[str, Any], after: dict[str, Any]) -> list[list[str]]:
    """Return a line of results on open tables for each estimator, table and epsilon."""
    lines = []
    for name, rows in after["open"].items():
        for old, new in zip(before["open"][name], rows, strict=True):
            lines.append([name, new["table"], f"{new['epsilon']:g}"])
            for key, digits in (("auc", 3), ("log loss", 3), ("slope", 2)):
                lines[-1] += [f"{each[key]:.{digits}f}" for each in (old, new)]
    return lines


def show(columns: list[str], lines: list[list[str]]) -> str:
    """Return a table of the lines of epsilon 1, without means of regrets."""
    place = columns.index("epsilon")
    kept = [name for name in columns if name != "epsilon" and not name.startswith("mean")]
    rows = [dict(zip(columns, line, strict=True)) for line in lines if line[place] == "1"]
    return markdown(kept, ([row[name] for name in kept] for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("measure", "report"))
    parser.add_argument("files", nargs="+", type=Path, help="one to write, or before and after")
    parser.add_argument("--tables", type=int, default=200, help="held-out simulated tables")
    parser.add_argument("--first", type=int, default=FIRST_HELD_OUT, help="seed of the first")
    parser.add_argument("--seeds", type=int, default=3, help="splits and draws on open tables")
    parser.add_argument("--data", help="directory of the open tables")
    parser.add_argument("--only", nargs="*", help="names of estimators")
    parser.add_argument("--csv", type=Path, help="report: the folder for files of all lines")
    parser.add_argument("--no-grid", dest="grid", action="store_false")
    arguments = parser.parse_args()
    if arguments.action == "measure":
        arguments.files[0].write_text(json.dumps(measure(arguments)) + "\n")
    else:
        before, after = (json.loads(file.read_text()) for file in arguments.files)
        tables = {"defaults_regret": (REGRETS, compare_regrets(before, after))}
        tables["defaults_open"] = OPEN, compare_open(before, after)
        for name, (columns, lines) in tables.items():
            print(show(columns, lines))
            if arguments.csv:
                write_csv(arguments.csv / f"{name}.csv", columns, lines)


if __name__ == "__main__":
    main()
