"""Attacks on the shipped classifiers at their worst pairs, held against their claims.

Each line fits a classifier to two made-up neighbouring tables, ten rows of zeros and one at the
norm bound, and bounds from below what it loses. The settings are those in which the claims can be
met: large penalties, few steps, and no warm-up.

    python examples/benchmarks/audits.py --short --markdown docs/audits.md

``--short`` takes 2,000 runs on each table, some minutes in all; otherwise it is 100,000.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
)
from skdp.audit import AuditResult, audit_epsilon
from skdp.reporting.trade_off import trade_off_lower

SHORT, LONG = 2_000, 100_000
EPSILON, DELTA = 16.0, 1e-5
HEADING = "## The shipped classifiers"
OUTPUT = (OperaLogisticRegression, OperaSVC)
OBJECTIVE = (ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC)
GRADIENT = (GrpuaLogisticRegression, GrpuaSVC)


def cases() -> Iterator[tuple[str, Any, str]]:
    """Yield what is audited, in words, and what the attacker sees."""
    for adjacency in ("replace-one", "add-remove"):
        common = {"adjacency": adjacency, "data_norm": 1.0}
        # An absent row is a row of zeros, or left out of sums.
        plain = common | {"fit_intercept": adjacency == "replace-one", "alpha": 10.0}
        for cls in OUTPUT:
            yield "minimiser", cls(EPSILON, DELTA, **plain), "model"
            descent = {"solver": "gd", "max_iter": 10}
            yield "10 steps of descent", cls(EPSILON, DELTA, **plain, **descent), "model"
        for cls in OBJECTIVE:
            yield "minimiser", cls(EPSILON, DELTA, **plain), "model"
        full = common | {"batch_size": 11, "max_iter": 5}
        lots = common | {"batch_size": 5, "max_iter": 20}
        for cls in GRADIENT:
            yield "5 full lots", cls(EPSILON, DELTA, **full), "all"
            last = cls(EPSILON, DELTA, **full, calibration="hidden-state", alpha=1.0)
            yield "5 full lots, last iterate paid for", last, "model"
            yield "20 Poisson lots", cls(EPSILON, DELTA, **lots), "model"
        if adjacency == "replace-one":
            uniform = GrpuaSVC(EPSILON, DELTA, **lots, sampling="uniform")
            yield "20 lots of fixed size", uniform, "model"
        clipped = DPSGDClassifier(EPSILON, DELTA, **full, max_grad_norm=0.1)
        yield "5 full lots", clipped, "all"
        poisson = DPSGDClassifier(EPSILON, DELTA, **lots, max_grad_norm=0.1)
        yield "20 Poisson lots", poisson, "all"
        yield "20 Poisson lots", poisson, "model"


def allowed_mu(model: Any, found: AuditResult) -> float:
    """Return the mu of the best test that the claimed curve allows at these false positives."""
    spent = model.privacy_plan(11, 2)
    epsilons = np.linspace(0.0, spent.epsilon, 200)
    deltas = np.array([float(spent.delta_at(epsilon)) for epsilon in epsilons])
    rate = found.false_positive_rate
    misses = trade_off_lower(epsilons, deltas, np.array([rate]))[0]
    return float(-ndtri(rate) - ndtri(misses))


def table(n_trials: int) -> Iterator[str]:
    """Yield the lines of the table, with the time it took."""
    X, y = np.zeros((10, 1)), np.arange(10) % 2
    began = time.perf_counter()
    yield "| classifier | fit | adjacency | attacker sees | epsilon, at least | mu, at least | "
    yield "tightness | of the curve | disproved |\n|---|---|---|---|---|---|---|---|---|\n"
    for words, model, release in cases():
        found = audit_epsilon(model, X, y, n_trials=n_trials, release=release, random_state=0)
        direct = "" if found.basis == "gaussian-guarantee" else " (event)"
        yield (
            f"| `{found.estimator}` | {words} | {found.adjacency} | {release} | "
            f"{found.epsilon_lower:.2f}{direct} | {found.mu_lower:.2f} | {found.tightness:.2f} | "
            f"{found.mu_lower / allowed_mu(model, found):.2f} | "
            f"{'YES' if found.violated else 'no'} |\n"
        )
    minutes = (time.perf_counter() - began) / 60.0
    yield f"\n{n_trials:,} runs on each table, confidence 0.999, {minutes:.0f} minutes.\n"


def main() -> None:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help=f"{SHORT:,} runs, not {LONG:,}")
    parser.add_argument("--runs", type=int, help="another number of runs on each table")
    parser.add_argument("--markdown", type=Path, help="the page whose last section to replace")
    arguments = parser.parse_args()
    lines = []
    for line in table(arguments.runs or (SHORT if arguments.short else LONG)):
        print(line, end="", flush=True)
        lines.append(line)
    if arguments.markdown:
        kept = arguments.markdown.read_text().partition(HEADING)[0].rstrip()
        claim = f"All claim epsilon = {EPSILON:g} at delta = {DELTA:g}."
        arguments.markdown.write_text(f"{kept}\n\n{HEADING}\n\n{claim}\n\n{''.join(lines)}")


if __name__ == "__main__":
    main()
