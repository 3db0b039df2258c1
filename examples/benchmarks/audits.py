"""Attacks on everything that is shipped, at the worst pairs that are known, against its claims.

Each line fits a classifier, a transformer or a search to two made-up neighbouring tables and bounds
from below what it loses. The settings are those in which the claims can be met: large penalties,
few steps, and no warm-up.

    python examples/benchmarks/audits.py --markdown docs/audits.md --csv docs/measured/audits.csv \
        --cache /tmp/audits.json

The CSV file has all lines; the page has the tightest one of each object and adjacency. ``--short``,
the default, takes minutes; ``--long`` takes hours. A line that the cache holds with as many runs is
not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _measured import markdown, write_csv
from scipy.special import ndtri
from sklearn.pipeline import make_pipeline

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaMLPClassifier,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
)
from skdp.accounting.numerics.trade_off import trade_off_lower
from skdp.audit import AuditResult, audit_epsilon
from skdp.audit.bounds import rate_upper
from skdp.audit.neighbours import given_pair, worst_case
from skdp.audit.runs import AuditedTable
from skdp.mechanisms.random_stream import RandomStream
from skdp.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skdp.preprocessing import DPPCA, DPQuantileClipper, DPStandardScaler

# Runs on each table, of what is cheap and should be tight; other lines take a share of them.
SHORT, LONG = 2_000, 100_000
EPSILON, DELTA = 16.0, 1e-5
START = "<!-- written by examples/benchmarks/audits.py -->\n\n"
COLUMNS = ("object", "fit", "adjacency", "attacker sees", "runs", "epsilon, at least")
COLUMNS += ("mu, at least", "tightness", "at most expected", "disproved")
RELATIONS = ("replace-one", "add-remove")
X, Y = np.zeros((10, 1)), np.arange(10) % 2


@dataclass(frozen=True)
class Case:
    """One line: what is audited, in words, on which tables, and by which share of the runs."""

    words: str
    model: Any
    release: str = "model"
    share: float = 1.0
    tables: tuple[Any, Any] = (X, Y)
    neighbour: Any = "worst-case"


def output_and_objective(adjacency: str) -> Iterator[Case]:
    """Yield the classifiers that minimise."""
    # An absent row is a row of zeros.
    plain = {"adjacency": adjacency, "data_norm": 1.0, "alpha": 10.0}
    plain["fit_intercept"] = adjacency == "replace-one"
    descent = plain | {"solver": "gd", "max_iter": 10}
    for cls in (OperaLogisticRegression, OperaSVC):
        yield Case("10 steps of descent", cls(EPSILON, DELTA, **descent))
        yield Case("minimiser", cls(EPSILON, DELTA, **plain), share=0.15)
    for cls in (ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC):
        yield Case("minimiser", cls(EPSILON, DELTA, **plain), share=0.15)


def noisy_gradients(adjacency: str) -> Iterator[Case]:
    """Yield the classifiers that take noisy steps, by sampler and calibration."""
    common = {"adjacency": adjacency, "data_norm": 1.0}
    # Of 11 rows; the smaller the lots, the less Gaussian is what add-remove claims of them.
    size = 8 if adjacency == "replace-one" else 9
    poisson = {"batch_size": size, "max_iter": 8}
    lots = {
        "3 full batches": {"batch_size": 11, "max_iter": 3},
        f"8 Poisson batches of {size}": poisson,
    }
    if adjacency == "replace-one":
        short = {"classes": [0, 1], "fit_intercept": False, "learning_rate_init": 1e-3}
        lots["8 batches of exactly 8"] = poisson | {"sampling": "uniform"} | short
    last = {"calibration": "hidden-state", "alpha": 10.0, "learning_rate_init": 0.05}
    last["fit_intercept"] = False
    for words, lot in lots.items():
        exact = 0.8 if "full" in words else 0.1
        pair = equal_rows() if "exactly" in words else ()
        for cls in (GrpuaSVC, GrpuaLogisticRegression):
            share = exact if cls is GrpuaSVC else 0.05
            own = common | lot
            yield Case(words, cls(EPSILON, DELTA, **own), "all", share, *pair)
            hidden = cls(EPSILON, DELTA, **own | last)
            yield Case(f"{words}, last iterate charged", hidden, "model", 0.15, *pair)
            composed = cls(EPSILON, DELTA, **own, calibration="composition")
            yield Case(f"{words}, the paper's calibration", composed, "model", 0.05, *pair)
        if "exactly" in words:
            continue
        clipped = common | lot | {"max_grad_norm": 0.1}
        # Of these the claim is least Gaussian, and a tight bound takes more runs.
        tails = adjacency == "add-remove" and "Poisson" in words
        clipping = DPSGDClassifier(EPSILON, DELTA, **clipped)
        yield Case(words, clipping, "all", 0.5 if tails else exact)
        yield Case(words, DPSGDClassifier(EPSILON, DELTA, **clipped), share=0.15)
        network = clipped | {"hidden_layer_sizes": (4,)}
        inside = f"{words}, a hidden layer of 4"
        yield Case(inside, DPSGDClassifier(EPSILON, DELTA, **network), "all", 0.15)
        if "full" in words:
            yield Case(inside, DPSGDClassifier(EPSILON, DELTA, **network), share=0.15)
            yield Case(inside, GrpuaMLPClassifier(EPSILON, DELTA, **network), "all", 0.15)
            ball = GrpuaMLPClassifier(EPSILON, DELTA, **network | {"max_grad_norm": None})
            yield Case(f"{inside} in a ball", ball, "all", 0.05)
        adam = DPSGDClassifier(None, DELTA, **clipped, noise_multiplier=1.0, solver="adam")
        yield Case(f"{words}, Adam", adam, share=0.05)


def equal_rows() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return equal rows, of which one has another label: what takes its place in a lot is its twin.

    A row that is drawn into a lot of fixed size displaces another one, which should be opposite.
    """
    labels = np.zeros(11, dtype=int)
    return (np.ones((11, 1)), np.append(labels[1:], 1)), (np.ones((11, 1)), labels)


def steep_slopes(adjacency: str) -> Case:
    """Return a pair on which the logistic loss has slopes near 1 from the second step on.

    The first, long step turns the weights to the many other rows; the rows that differ then lie on
    the wrong side, and are nearly opposite but for that.
    """
    tilt = 0.15
    one, other = ([-tilt, side * np.sqrt(1.0 - tilt**2)] for side in (1.0, -1.0))
    if adjacency == "add-remove":
        one, other = [-1.0, 0.0], [0.0, 0.0]
    others = np.repeat([[1.0, 0.0]], 500, axis=0)
    labels = np.ones(501, dtype=int)
    steps = {"batch_size": 501, "max_iter": 10, "learning_rate_init": 1e3, "alpha": 0.0}
    model = GrpuaLogisticRegression(
        EPSILON,
        DELTA,
        **{"adjacency": adjacency, "data_norm": 1.0, "fit_intercept": False},
        **{"classes": [0, 1], "average": False, **steps},
    )
    words = "10 full batches, rows on the wrong side"
    tables = np.vstack([others, one]), labels
    return Case(words, model, "all", 0.15, tables, (np.vstack([others, other]), labels))


def transformers() -> Iterator[Case]:
    """Yield the private transformers."""
    wide = {"lower": -1.0, "upper": 1.0}
    for adjacency in RELATIONS:
        own = {"epsilon": EPSILON, "delta": DELTA, "adjacency": adjacency}
        yield Case("directions", DPPCA(**own, data_norm=1.0), "all", 0.15)
        if adjacency == "add-remove":
            continue
        yield Case("directions", DPPCA(**own, data_norm=1.0), share=0.15)
        yield Case("means and variances", DPStandardScaler(**own, **wide), "all", 0.15)
        yield Case("means and variances", DPStandardScaler(**own, **wide), share=0.15)
        clipper = DPQuantileClipper(**own, **wide, smallest=0.1)
        yield Case("quantiles", clipper, "all", 0.15)
        yield Case("quantiles", clipper, share=0.15)
    # Rows at an angle, whose outer products and means are farthest apart.
    rows = np.zeros((11, 2))
    one, other = rows.copy(), rows.copy()
    one[-1], other[-1] = [1.0, 0.0], [-0.25, np.sqrt(1.0 - 0.0625)]
    centred = DPPCA(epsilon=EPSILON, delta=DELTA, data_norm=1.0, center=True)
    yield Case("directions and the mean", centred, "all", 0.15, (one, None), (other, None))


def searches() -> Iterator[Case]:
    """Yield the searches by method, and a pipeline."""
    tables = np.zeros((20, 1)), np.arange(20) % 2
    for adjacency in RELATIONS:
        common = {"data_norm": 1.0, "fit_intercept": adjacency == "replace-one"}
        inner = OperaSVC(**common, adjacency=adjacency)
        own = {"epsilon": EPSILON, "delta": DELTA, "adjacency": adjacency, "cv": 2}
        for method in ("random-stopping", "fixed", "holdout", "cv"):
            grid = PrivateGridSearchCV(inner, {"alpha": [10.0, 20.0]}, method=method, **own)
            yield Case(f"of `OperaSVC`, {method}", grid, share=0.01, tables=tables)
    random = PrivateRandomizedSearchCV(
        OperaSVC(data_norm=1.0), {"alpha": [10.0]}, n_iter=1, method="holdout", epsilon=EPSILON
    )
    yield Case("of `OperaSVC`, holdout", random, share=0.01, tables=tables)
    pipeline = make_pipeline(
        DPStandardScaler(epsilon=8.0, delta=DELTA / 2, row_norm=1.0),
        OperaSVC(epsilon=8.0, delta=DELTA / 2, data_norm=1.0, alpha=10.0),
    )
    labels = np.append(Y, 1)
    pair = (np.vstack([X, [[1.0]]]), labels), (np.vstack([X, [[-1.0]]]), labels)
    yield Case("`DPStandardScaler`, `OperaSVC`", pipeline, "model", 0.05, *pair)


def cases() -> Iterator[Case]:
    """Yield all lines."""
    for adjacency in RELATIONS:
        yield from output_and_objective(adjacency)
        yield from noisy_gradients(adjacency)
        yield steep_slopes(adjacency)
    yield from transformers()
    yield from searches()


def expected_at_most(case: Case, found: AuditResult) -> float:
    """Return the bound on mu that the best test of the claimed curve has, at its expected errors.

    It is the largest of one-dimensional functions of the false-alarm rate. What an audit shows
    beyond it is luck; where it is below the claim, the curve is not Gaussian, or runs are few.
    """
    find = worst_case if isinstance(case.neighbour, str) else given_pair
    extra = () if isinstance(case.neighbour, str) else (case.neighbour,)
    pair = find(case.model, *case.tables, *extra)
    spent = AuditedTable(case.model, pair[0], RandomStream.from_seed(0)).spent
    epsilons = np.linspace(0.0, 1.5 * spent.epsilon, 40)
    deltas = np.array([float(spent.delta_at(epsilon)) for epsilon in epsilons])
    alarms = np.geomspace(1e-4, 0.9, 500)
    misses = trade_off_lower(epsilons, deltas, alarms)
    runs, failure = found.n_trials // 2, 0.5 * (1.0 - found.confidence)
    bounds = (ndtri(rate_upper(each * runs, runs, failure)) for each in (alarms, misses))
    return max(float(np.max(-sum(bounds))), 0.0)


def audit(case: Case, runs: int) -> dict[str, Any]:
    """Return what one line shows."""
    began = time.process_time()
    found = audit_epsilon(
        case.model,
        *case.tables,
        neighbour=case.neighbour,
        n_trials=max(20, int(case.share * runs)),
        release=case.release,
        random_state=0,
    )
    seconds = time.process_time() - began
    expected = expected_at_most(case, found) / found.mu_claimed
    return found.to_dict() | {"expected": expected, "seconds": seconds}


def cells_of(case: Case, record: dict[str, Any]) -> list[str]:
    """Return a line of the table, one text per column."""
    direct = "" if record["basis"] == "gaussian-guarantee" else " (event)"
    return [
        f"`{record['estimator']}`",
        case.words,
        record["adjacency"],
        case.release,
        f"{record['n_trials']:,}",
        f"{record['epsilon_lower']:.2f} of {record['claimed']:.1f}{direct}",
        f"{record['mu_lower']:.2f} of {record['mu_claimed']:.2f}",
        f"{record['tightness']:.2f}",
        f"{record['expected']:.2f}",
        "YES" if record["violated"] else "no",
    ]


def tightest(lines: list[list[str]]) -> list[list[str]]:
    """Return the line with the largest tightness of each object and adjacency, in order."""
    groups: dict[tuple[str, str], list[list[str]]] = {}
    for line in lines:
        groups.setdefault((line[0], line[2]), []).append(line)
    place = COLUMNS.index("tightness")
    best = [max(group, key=lambda line: float(line[place])) for group in groups.values()]
    return sorted(best, key=lines.index)


def write_markdown(lines: list[list[str]], minutes: float) -> str:
    """Return the tightest lines as a table without its last column, which the caption sums up."""
    disproved = sum(line[-1] == "YES" for line in lines)
    text = markdown(COLUMNS[:-1], (line[:-1] for line in tightest(lines)))
    counts = f"Claims disproved: {disproved} of {len(lines)}. Confidence 0.999"
    return f"{text}\n{counts}, {minutes:.0f} minutes of one core.\n"


def measure(runs: int, cache: Path | None) -> tuple[list[list[str]], float]:
    """Return all lines and the minutes they took; those not in the cache are run and stored."""
    known = json.loads(cache.read_text()) if cache and cache.exists() else {}
    seconds, lines = 0.0, []
    for case in cases():
        key = " ".join([case.words, case.release, repr(case.model), f"{runs} runs"])
        if key not in known:
            known[key] = audit(case, runs)
            if cache:
                cache.write_text(json.dumps(known, indent=1))
        seconds += known[key]["seconds"]
        lines.append(cells_of(case, known[key]))
        print(" | ".join(lines[-1]), flush=True)
    return lines, seconds / 60.0


def main() -> None:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--short", action="store_true", help=f"{SHORT:,} runs, the default")
    length.add_argument("--long", action="store_true", help=f"{LONG:,} runs")
    length.add_argument("--runs", type=int, help="another number of runs on each table")
    parser.add_argument("--cache", type=Path, help="a JSON file of lines that are done")
    parser.add_argument("--markdown", type=Path, help="the page whose last table to replace")
    parser.add_argument("--csv", type=Path, help="the file for all lines")
    arguments = parser.parse_args()
    runs = arguments.runs or (LONG if arguments.long else SHORT)
    lines, minutes = measure(runs, arguments.cache)
    if arguments.csv:
        write_csv(arguments.csv, COLUMNS, lines)
    if arguments.markdown:
        kept = arguments.markdown.read_text().partition(START)[0]
        arguments.markdown.write_text(f"{kept}{START}{write_markdown(lines, minutes)}")


if __name__ == "__main__":
    main()
