"""How often the intervals of `PrivateEvaluation` hold, how wide they are, and what noise costs.

Populations are made up, of ten kinds (weak, tied, rare, perfect, heavy-tailed, tiny subgroups and
others), or scores and labels of real models on rows that they have not seen (Adult, Bank, Cardio,
SUPPORT2). Samples of n are drawn from each with replacement, released with noise from rounded
normal numbers, and every interval is held against the figure of the population.

    python examples/benchmarks/evaluation_coverage.py --made-up 100 200 300   # seeds, draws of each
    python examples/benchmarks/evaluation_coverage.py          # real models, about half an hour
    python examples/benchmarks/evaluation_coverage.py --epsilon 0.5   # one of the four
    python examples/benchmarks/evaluation_coverage.py --fast   # one size and epsilon, 100 draws
    python examples/benchmarks/evaluation_coverage.py --width  # widths to expect, in seconds

Constants were chosen on seeds 0 to 99; the table of the page is of seeds 100 to 199.
"""

import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from _score_kinds import KINDS, OfBins, Population, population, truth
from scipy.special import logit

from skdp.mechanisms.additive import AdditiveMechanism
from skdp.metrics import PrivateEvaluation, PrivateEvaluationResult
from skdp.metrics.calibration import calibration_cells
from skdp.metrics.release import ReleasePlan, ScoreTables
from skdp.metrics.result import FIGURES

FAST = "--fast" in sys.argv
SIZES, EPSILONS, DRAWS = (500, 2000, 15_000, 50_000), (0.1, 0.5, 1.0, 3.0), 1000
if "--epsilon" in sys.argv:
    EPSILONS = (float(sys.argv[-1]),)
if FAST:
    SIZES, EPSILONS, DRAWS = (15_000,), (1.0,), 100


RNG = np.random.default_rng(0)


def rounded(noise: AdditiveMechanism, count: int) -> list[int]:
    """Draw noise from normal numbers: there is nothing private, and the law is the same."""
    drawn: list[int] = np.rint(RNG.normal(0.0, float(noise.sigma), count)).astype(int).tolist()
    return drawn


def measure(given: Population, draws: int) -> dict[str, Any]:
    """Return of each figure: coverage, median width, milliseconds, share withheld, RMS errors."""
    known, of_bins = (
        truth(given.scores, given.labels, given.threshold),
        OfBins(given.scores, given.labels),
    )
    subgroups = None if given.share == 1.0 else ("A", "others")
    plan = ReleasePlan.build(
        *(given.epsilon, 1e-6, given.adjacency, given.n, np.arange(2)),
        thresholds=(given.threshold,),
        score_values=given.values,
        subgroups=subgroups,
    )
    rows: dict[str, list[Any]] = {name: [] for name in FIGURES}
    for _ in range(draws):
        drawn = RNG.integers(given.scores.size, size=given.n)
        scores, labels = given.scores[drawn, None], given.labels[drawn]
        members = (RNG.random(given.n) >= given.share).astype(int)
        located = plan.locate(scores, None, None)  # type: ignore[arg-type]
        exact = located.count(scores, labels, members, labels)
        tables = located.release(exact, None)  # type: ignore[arg-type]
        bins = tables.bins[0]
        ends = (-6.0, 6.0) if bins.atoms is not None else logit(bins.edges[[0, -1]])
        real = {
            **known,
            "calibration_slope": of_bins.slope(*ends),
            "expected_calibration_error": of_bins.error(bins.edges, calibration_cells(bins)),
        }
        results = [of(tables, given, subgroups)]
        if (given.n, given.epsilon) == (15_000, 1.0):  # where errors without noise are wanted
            steps = (part / 2.0**30 for part in exact)
            results.append(of(located.assemble(*steps), given, subgroups))
        for name, kept in rows.items():
            start = time.perf_counter()
            figure, *others = (getattr(result, name) for result in results)
            taken = (time.perf_counter() - start) / len(results)
            low, high = figure.interval
            held = not low - 1e-9 > real[name] and not real[name] > high + 1e-9
            withheld = bool(np.isnan(figure))
            errors = [float(one) - real[name] for one in (figure, *others)]
            kept.append([held, high - low, taken, withheld, *errors])
    found = {}
    for name, kept in rows.items():
        held, widths, taken, withheld, *errors = np.array(kept).T
        spread = [
            float(np.sqrt(np.nan_to_num(error[np.isfinite(error)] ** 2).sum() / error.size))
            for error in errors
        ]
        found[name] = (
            held.mean(),
            np.median(widths),
            1e3 * np.median(taken),
            withheld.mean(),
            spread,
        )
    return found


def of(tables: ScoreTables, given: Population, subgroups: Any) -> PrivateEvaluationResult:
    """Return the result that is looked at."""
    price: Any = None
    part = None if subgroups is None else subgroups[0]
    return PrivateEvaluationResult(tables, price, 0.95, given.threshold, part)


def made_up(first: int, last: int, draws: int) -> None:
    """Print a line for each made-up population, and summaries."""
    show("coverage", [name[:8] for name in FIGURES])
    of_kind: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    withheld = []
    for seed in range(first, last):
        given = population(seed)
        held, _, _, hidden, _ = zip(*measure(given, draws).values(), strict=True)
        of_kind[given.kind].append(held)
        withheld.append(hidden)
        show(f"{seed} {given.kind} {given.n} {given.epsilon} {given.adjacency[:3]}", held)
    for kind, lines in of_kind.items():
        if lines:
            show(f"mean of {kind}", np.mean(lines, axis=0))
    every = np.array([line for lines in of_kind.values() for line in lines])
    show("mean coverage", every.mean(axis=0))
    for share in (0.0, 0.05, 0.95):
        show(f"quantile {share}", np.quantile(every, share, axis=0))
    show("withheld", np.mean(withheld, axis=0))


def main() -> None:
    """Print a line for each population, size and epsilon, and a summary."""
    show("coverage", [name[:8] for name in FIGURES])
    every, ratios, taken = [], {}, []
    from _score_populations import populations

    for name, (scores, labels, values) in populations().items():
        order = np.argsort(scores, kind="stable")
        whole = Population(name, scores[order], labels[order], 0, 0.0, "add-remove", 0.5, values)
        for n in SIZES:
            for epsilon in EPSILONS:
                cell = replace(whole, n=n, epsilon=epsilon)
                held, _, milliseconds, _, errors = zip(*measure(cell, DRAWS).values(), strict=True)
                every.append(held)
                taken.append(milliseconds)
                show(f"{name} {n} {epsilon}", held)
                if (n, epsilon) == (15_000, 1.0):
                    ratios[name] = [up / down if down > 1e-6 else np.nan for up, down in errors]
    show("mean coverage", np.mean(every, axis=0))
    show("lowest", np.min(every, axis=0))
    show("milliseconds", np.median(taken, axis=0))
    for name, row in ratios.items():
        show(f"error ratio {name}", row)


def expect() -> None:
    """Print the widths to expect of 95 % intervals, from public numbers."""
    names = ("accuracy", "sensitivity", "ppv", "roc_auc", "average_precision", "calibration_slope")
    show("n, positives, epsilon", [name[:8] for name in names])
    for n in SIZES:
        for prevalence in (0.02, 0.1, 0.3):
            for epsilon in EPSILONS:
                own = {"thresholds": (prevalence,), "adjacency": "add-remove"}
                evaluation = PrivateEvaluation(epsilon, **own)
                widths = evaluation.expected_widths(n, prevalence)
                show(f"{n} {prevalence} {epsilon}", [widths[name] for name in names])


def show(title: str, row: Any) -> None:
    """Print one line."""
    cells = (f"{part:>8}" if isinstance(part, str) else f"{part:8.3f}" for part in row)
    print(f"{title:28}" + " ".join(cells), flush=True)


if __name__ == "__main__":
    AdditiveMechanism.steps = rounded  # type: ignore[method-assign]
    if "--made-up" in sys.argv:
        made_up(*(int(part) for part in sys.argv[2:5]))
    else:
        expect() if "--width" in sys.argv else main()
