"""How often intervals of `PrivateRegressionEvaluation` hold over a hundred populations.

Targets and predictions are weak, narrow, shifted, tied, heavy-tailed, rare, perfect or worse than
a constant; sizes, epsilons, relations, subgroups and largest errors, right and far too small, are
drawn from a seed of each. Even seeds were for choosing constants, odd ones are for trying them.

    python examples/benchmarks/regression_coverage.py                # half an hour of a processor
    python examples/benchmarks/regression_coverage.py --draws 100 --seeds 1 100 2
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from regression_evaluation import FIGURES, figures_of, release

from skdp.metrics import PrivateRegressionResult
from skdp.metrics.errors import ErrorPlan

ROWS = 100_000
SIZES, EPSILONS = (400, 1000, 3000, 10_000, 50_000), (0.1, 0.3, 1.0, 3.0, 8.0)
LARGEST = (1.0, 1.0, 0.5, 0.25, 0.1, 0.03)  # of the distance of the bounds
Rows = tuple[np.ndarray, np.ndarray]


def _linear(rng: np.random.Generator) -> Rows:
    """Return normal predictions and errors: weak and strong, narrow and wide, off and not."""
    wide, r2 = rng.choice([0.02, 0.08, 0.2]), rng.choice([0.0, 0.02, 0.3, 0.7, 0.95])
    middle, off = rng.choice([0.1, 0.5]), rng.choice([0.0, 0.0, 1.0]) * wide
    said = middle + wide * r2**0.5 * rng.normal(size=ROWS)
    return said + wide * (1.0 - r2) ** 0.5 * rng.normal(size=ROWS), said - off


def _worst(rng: np.random.Generator) -> Rows:
    """Return predictions worse than a constant: the wrong way round, or far from equal targets."""
    truth = 0.5 + rng.choice([0.002, 0.02, 0.1]) * rng.normal(size=ROWS)
    return truth, [1.0 - truth, np.full(ROWS, 0.2), rng.random(ROWS)][rng.integers(3)]


def _tied(rng: np.random.Generator) -> Rows:
    """Return targets of few values, and predictions of few values or one."""
    values = int(rng.choice([2, 3, 6]))
    truth = rng.integers(values, size=ROWS) / 10.0
    said = np.where(rng.random(ROWS) < rng.choice([0.0, 0.5, 0.9]), truth, truth.mean())
    return truth, said


def _perfect(rng: np.random.Generator) -> Rows:
    """Return predictions that are right, nearly, or but for few rows."""
    truth = np.clip(0.4 + 0.15 * rng.normal(size=ROWS), 0.0, 1.0)
    few = np.where(rng.random(ROWS) < 0.01, rng.choice([0.05, 0.5]), 0.0)
    return truth, truth + [np.zeros(ROWS), 1e-3 * rng.normal(size=ROWS), few][rng.integers(3)]


def _rare(rng: np.random.Generator) -> Rows:
    """Return targets of which few are large, foreseen by the model in part, or not at all."""
    large = rng.random(ROWS) < rng.choice([0.0005, 0.002, 0.01])
    truth = np.where(large, rng.choice([0.5, 1.0]), 0.05 + 0.01 * rng.normal(size=ROWS))
    known = large & (rng.random(ROWS) < rng.choice([0.0, 0.5, 1.0]))
    return truth, np.where(known, 0.5, 0.05 + 0.005 * rng.normal(size=ROWS))


def _tails(rng: np.random.Generator) -> Rows:
    """Return costs and stays: log-normal, gamma, Student and Pareto errors."""
    mean = rng.choice([0.02, 0.08]) * np.exp(0.5 * rng.normal(size=ROWS))
    errors = (
        mean * rng.gamma(rng.choice([0.5, 2.0]), 1.0, ROWS),
        mean * np.exp(rng.normal(size=ROWS) - 0.5),
        0.4 + 0.02 * rng.standard_t(2.5, ROWS),
        mean * rng.pareto(2.2, ROWS),
    )
    kind = rng.integers(4)
    return errors[kind], np.full(ROWS, 0.4) + 0.3 * mean if kind == 2 else mean


FAMILIES: tuple[Callable[[np.random.Generator], Rows], ...] = (
    *(_linear, _rare, _tails, _worst, _tied, _perfect),
)


class Case(NamedTuple):
    """A population with public numbers, and the share of a subgroup that figures are for."""

    name: str
    truth: np.ndarray
    said: np.ndarray
    plan: ErrorPlan
    share: float


def case_of(seed: int, run: int = 0) -> Case:
    """Return the population of a seed, with sizes and budgets of a run."""
    family = FAMILIES[seed // 2 % len(FAMILIES)]
    truth, said = (np.clip(part, 0.0, 1.0) for part in family(np.random.default_rng([7, seed])))
    rng = np.random.default_rng([11, seed, run])
    n, epsilon = int(rng.choice(SIZES)), float(rng.choice(EPSILONS))
    relation: Any = rng.choice(["add-remove", "replace-one"])
    largest, share = float(rng.choice(LARGEST)), float(rng.choice([1.0, 1.0, 1.0, 0.1, 0.02]))
    options: Any = {"bounds": (0.0, 1.0), "largest_error": largest}
    options["subgroups"] = None if share == 1.0 else ("few", "most")
    plan = ErrorPlan.build(epsilon, 1e-6, relation, n, **options)
    name = f"{seed}.{run} {family.__name__[1:]}, n {n}, epsilon {epsilon:g}, {relation}, "
    return Case(f"{name}largest {largest:g}, share {share:g}", truth, said, plan, share)


def measure(case: Case, draws: int) -> np.ndarray:
    """Return how often each figure is held, is below its interval, and is shown."""
    rng, plan = np.random.default_rng(draws), case.plan
    wanted, found = figures_of(case.truth, case.said), []
    for _ in range(draws):
        drawn = rng.integers(ROWS, size=plan.n)
        members = None
        if plan.subgroups is not None:
            members = (rng.random(plan.n) >= case.share).astype(np.int64)
        exact = plan.count(case.truth[drawn], case.said[drawn], None, members)
        result: Any = PrivateRegressionResult(release(plan, exact, rng), None, 0.95)  # type: ignore[arg-type]
        figures = [getattr(result.of(plan.subgroups and "few"), name) for name in FIGURES]
        low, high = np.array([figure.interval for figure in figures]).T
        held = (low - 1e-9 <= wanted) & (wanted <= high + 1e-9)
        found.append([held, wanted < low - 1e-9, ~np.isnan(figures), high - low])
    parts = np.array(found, dtype=float)
    return np.vstack([parts[:, :3].mean(axis=0), np.median(parts[:, 3], axis=0)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs=3, default=(1, 101, 2), help="as of range()")
    parser.add_argument("--below", type=float, default=0.92, help="coverage that is shown")
    arguments = parser.parse_args()
    every = []
    for seed in range(*arguments.seeds):
        for run in range(arguments.runs):
            case = case_of(seed, run)
            found = measure(case, arguments.draws)
            every.append(found)
            worst = found[0].min()
            if worst < arguments.below:
                cells = " | ".join(" ".join(f"{part:.3g}" for part in row) for row in found)
                print(f"{case.name}: {cells}", flush=True)  # held, below, shown, widths
    held = np.array(every)
    print("figures:", *FIGURES)
    for name, row in (("mean", held[:, 0].mean(axis=0)), ("lowest", held[:, 0].min(axis=0))):
        print(f"{name} of {len(held)} cells:", *(f"{part:.3f}" for part in row))
    print("shown:", *(f"{part:.3f}" for part in held[:, 2].mean(axis=0)))


if __name__ == "__main__":
    main()
