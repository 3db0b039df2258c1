"""How much noise the last-iterate bounds save against composition, and where they save none.

Both columns of noise meet the same target; one pays for every noisy gradient, by privacy-loss
distributions, the other for the last iterate alone. The loss is logistic on rows of norm 1 (its
gradients have norm at most 1 and its smoothness is 1/4), relation replace-one.

    python examples/benchmarks/hidden_state.py --markdown docs/hidden_state.md --csv docs/measured

The CSV files have runs of all lengths and fits with all epsilons; the page has some of them.
The page ends with the accuracy of default fits on the tables of ``accuracy.py``; those that need
files are read from the directory that --data or the environment variable SKDP_DATA names.
"""

from __future__ import annotations

import argparse
import re
import textwrap
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from _measured import markdown, write_csv
from accuracy import evaluate, load_tables

from skdp import GrpuaLogisticRegression, OperaLogisticRegression
from skdp.accounting import (
    Event,
    GaussianEvent,
    GDPAccountant,
    HiddenStateAccountant,
    LastIterateEvent,
    PLDAccountant,
    PoissonSampledEvent,
    RepeatedEvent,
    UniformSampledEvent,
    calibrate_event,
)
from skdp.accounting.numerics.counts import largest_likely_batch

EPSILON, DELTA = 1.0, 1e-6
N_ROWS = 1000
LOSS_SMOOTHNESS = 0.25

# What makes early steps be forgotten: the L2 penalty, and the radius of the projection.
SETTINGS: tuple[tuple[float, float | None], ...] = (
    (0.01, None),
    (0.001, None),
    (0.0, 1.0),
    (0.0, 10.0),
    (0.001, 1.0),
)


LENGTHS = (N_ROWS, 10 * N_ROWS, N_ROWS**2)
RUNS = (
    ("all rows", "full", N_ROWS, (100, 1000, 10**4, 10**5, 10**6)),
    ("uniform, 1 (the paper's)", "uniform", 1, LENGTHS),
    ("uniform, 32", "uniform", 32, LENGTHS),
    ("Poisson, 32", "poisson", 32, LENGTHS),
    ("Poisson, 1", "poisson", 1, LENGTHS),
)


def step_event(sampling: str, batch: int, noise: float) -> Event:
    """Return the event of one step; `noise` is that on the sum of gradients of norm 1."""
    if sampling == "full":
        return GaussianEvent(noise / 2.0)
    inner = GaussianEvent(noise)
    if sampling == "poisson":
        return PoissonSampledEvent(batch / N_ROWS, inner)
    return UniformSampledEvent(batch, N_ROWS, inner)


def run_event(
    sampling: str,
    batch: int,
    steps: int,
    penalty: float,
    radius: float | None,
    noise: float,
) -> LastIterateEvent:
    """Return the event of a run with step 1/M, or as long as Poisson batches permit."""
    step_size = 1.0 / (LOSS_SMOOTHNESS + penalty)
    if sampling == "poisson":
        largest = largest_likely_batch(0.01 * DELTA, N_ROWS, batch / N_ROWS, steps) / batch
        step_size = min(step_size, 1.999 / (LOSS_SMOOTHNESS * largest + 2.0 * penalty))
    return LastIterateEvent.from_units(
        step_event(sampling, batch, noise),
        steps,
        step_size=step_size,
        smoothness=LOSS_SMOOTHNESS + penalty,
        strong_convexity=penalty,
        diameter=None if radius is None else 2.0 * radius,
        noise=noise / batch,
        dataset_size=N_ROWS if sampling == "poisson" else None,
    )


def composed_noise(sampling: str, batch: int, steps: int) -> float:
    """Return the noise on the sum that pays for all steps."""
    return calibrate_event(
        lambda noise: RepeatedEvent(step_event(sampling, batch, noise), steps),
        EPSILON,
        DELTA,
        adjacency="replace-one",
    )


def hidden_noise(
    sampling: str, batch: int, steps: int, penalty: float, radius: float | None
) -> float:
    """Return the noise on the sum that pays for the last iterate."""
    return calibrate_event(
        partial(run_event, sampling, batch, steps, penalty, radius),
        EPSILON,
        DELTA,
        adjacency="replace-one",
        accountant=HiddenStateAccountant,
    )


def describe(penalty: float, radius: float | None) -> str:
    """Name a setting."""
    ball = "" if radius is None else f"ball of radius {radius:g}"
    ridge = f"penalty {penalty:g}" if penalty else ""
    return ", ".join(word for word in (ridge, ball) if word)


SAVINGS = ["batch", "steps", "composition", *(describe(*setting) for setting in SETTINGS)]
FITS = ["table", "n", "epsilon", "all iterates", "last iterate", "output perturbation"]


def savings() -> list[list[str]]:
    """Return the noise on the sum for each sampling and several lengths of runs."""
    lines = []
    for title, sampling, batch, lengths in RUNS:
        for steps in lengths:
            plain = composed_noise(sampling, batch, steps)
            line = [title, f"{steps:,}", f"{plain:.4g}"]
            for setting in SETTINGS:
                noise = hidden_noise(sampling, batch, steps, *setting)
                line.append(f"{noise:.4g} ({plain / noise:.2f} x)")
            lines.append(line)
            print(f"{title}, {steps}: done", flush=True)
    return lines


def show_savings(lines: list[list[str]]) -> str:
    """Return a table of the runs of two lengths."""
    shown = [line for line in lines if line[1] in ("10,000", "1,000,000")]
    return markdown(SAVINGS, shown).rstrip()


def no_gain() -> Iterator[str]:
    """Yield the cases in which composition is tight, or nearly so."""
    steps, penalty, radius = N_ROWS**2, 0.01, 1.0
    plain = composed_noise("full", N_ROWS, steps)
    # Theory's step D / (G sqrt(T)) has G of at least the norm of a gradient, which is 1.
    slow = 2.0 * radius / steps**0.5
    event = LastIterateEvent.from_units(
        step_event("full", N_ROWS, plain),
        steps,
        step_size=slow,
        smoothness=LOSS_SMOOTHNESS,
        diameter=2.0 * radius,
        noise=plain / N_ROWS,
    )
    ratio = GDPAccountant().compose(event).epsilon(DELTA) / EPSILON
    few = hidden_noise("full", N_ROWS, 20, penalty, None) / composed_noise("full", N_ROWS, 20)
    yield from (
        "| run | noise or epsilon relative to composition |",
        "|---|---|",
        "| step sizes 1/(m t), any number of steps | equal: attained by quadratics |",
        f"| step size D/sqrt(T), {steps:,} steps on all rows, radius {radius:g} | epsilon "
        f"{ratio:.4f} x that of composition |",
        f"| 20 steps of size 1/M on all rows, penalty {penalty:g} | noise {few:.4f} x |",
    )


def at_given_noise() -> Iterator[str]:
    """Yield epsilons of one run as it gets longer."""
    yield "| steps | epsilon of all iterates | epsilon of the last |"
    yield "|---|---|---|"
    for exponent in (2, 3, 4, 5, 6, 10):
        run = run_event("full", N_ROWS, 10**exponent, 0.01, None, 200.0)
        plain = PLDAccountant("replace-one").compose(run.step, run.steps).epsilon(DELTA)
        last = HiddenStateAccountant("replace-one").compose(run).epsilon(DELTA)
        yield f"| 10^{exponent} | {plain:.5g} | {last:.5g} |"


def cost() -> str:
    """Say how long the accountant takes."""
    seconds = []
    for sampling, batch in (("full", N_ROWS), ("poisson", 32), ("uniform", 32)):
        run = run_event(sampling, batch, 10**6, 0.01, None, 50.0)
        start = time.perf_counter()
        HiddenStateAccountant("replace-one").compose(run).epsilon(DELTA)
        seconds.append(time.perf_counter() - start)
    return (
        f"One evaluation took {1e3 * seconds[0]:.2g} ms on all rows, {1e3 * seconds[1]:.2g} ms on "
        f"Poisson batches and {1e3 * seconds[2]:.2g} ms on uniform ones (10^6 steps, one thread)."
    )


def accuracies(directory: str | None) -> list[list[str]]:
    """Return the accuracy of default fits that pay in different ways."""
    lines = []
    for table in load_tables(directory):
        n_train = len(table.y) if table.y_test is not None else round(0.7 * len(table.y))
        delta, seeds = (1e-5, 20) if n_train < 1000 else (1e-6, 3)
        for epsilon in (0.5, 1.0, 3.0):
            line = [table.name, str(n_train), f"{epsilon:g}"]
            for make in (
                GrpuaLogisticRegression,
                partial(GrpuaLogisticRegression, calibration="hidden-state"),
                OperaLogisticRegression,
            ):
                fit = partial(make, epsilon, delta, data_norm=table.data_norm)
                accuracy, spread, _, seconds = evaluate(fit, table, seeds)
                line.append(f"{accuracy:.3f} +- {spread:.3f} ({seconds:.2g} s)")
            lines.append(line)
        print(f"{table.name}: done", flush=True)
    return lines


def show_accuracies(lines: list[list[str]]) -> str:
    """Return a table of the fits with epsilon 1."""
    shown = [[*line[:2], *line[3:]] for line in lines if line[2] == "1"]
    return markdown([*FITS[:2], *FITS[3:]], shown).rstrip()


def wrapped(text: str) -> str:
    """Return a paragraph in lines of at most 119 characters."""
    whole = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    lines = textwrap.fill(whole, 119, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def report(saved: list[list[str]], fits: list[list[str]]) -> Iterator[str]:
    """Yield the page."""
    yield "# Noise saved by hiding iterates"
    yield ""
    yield wrapped(
        "See how much noise a fit saves if it releases only its last iterate. Tables show the "
        f"noise on the sum of gradients for epsilon = {EPSILON:g} at delta = {DELTA:g}, "
        f"replace-one, n = {N_ROWS}, logistic loss on rows of norm 1 (scaled units)."
    )
    yield ""
    yield wrapped(
        "*Composition* charges for every noisy gradient. The other columns charge only for the "
        'last iterate (`calibration="hidden-state"`), with step size 1/M; brackets contain the '
        "factor of noise saved. Script: `examples/benchmarks/hidden_state.py`. Theorem and "
        "conditions: [proofs](proofs/hidden_state.md)."
    )
    yield from (
        "",
        "## Noise by batch and number of steps",
        "",
        "Numbers of rows in a batch are expected ones for Poisson batches. "
        "[All lengths](measured/hidden_state.csv).",
        "",
        show_savings(saved),
        "",
        wrapped(
            "Noise on sampled batches stops falling once a single step can reveal that the changed "
            "row was in its batch. Small Poisson batches need steps shorter than 1/M: their sizes "
            "vary, and the step must not expand on any likely size."
        ),
        "",
        "## Epsilon of one run by length",
        "",
        "All rows, penalty 0.01, noise 200 on the sum:",
        "",
        *at_given_noise(),
        "",
        "## Cases without a gain",
        "",
        *no_gain(),
        "",
        wrapped(
            "Forgetting takes about `1/(eta m)` steps with a penalty m, or `D n/(eta gap)` steps "
            "in a set of diameter D. Shorter runs cost the same as their composition. Step sizes "
            "that decrease, or shrink with the length of the run, never reach this point. A run "
            'that stops early and averages its iterates, with `calibration="pld"`, then uses noise '
            "better."
        ),
        "",
        cost(),
        "",
        "## Default fits",
        "",
        wrapped(
            "Accuracy of default logistic regression on held-out rows at epsilon 1, and median "
            "seconds of a fit. Mean and standard deviation over seeds (20 on small tables, 3 on "
            "large ones). [Epsilon 0.5 and 3](measured/hidden_state_fits.csv)."
        ),
        "",
        show_accuracies(fits),
        "",
        wrapped(
            "Hiding iterates helps on small tables, where a run to the limit is short. Part of the "
            "gain is due to the ball, in which gradients differ less. On large tables with many "
            "columns it is slower, and averaged descent is more accurate."
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    parser.add_argument("--csv", type=Path, help="the folder for files of all lines")
    parser.add_argument("--data", help="directory of the data files")
    arguments = parser.parse_args()
    saved, fits = savings(), accuracies(arguments.data)
    if arguments.csv:
        write_csv(arguments.csv / "hidden_state.csv", SAVINGS, saved)
        write_csv(arguments.csv / "hidden_state_fits.csv", FITS, fits)
    text = "\n".join(report(saved, fits)) + "\n"
    if arguments.markdown:
        arguments.markdown.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
