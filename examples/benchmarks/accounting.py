"""Speed and certainty of numerical accounting, against peers, on one thread.

    python examples/benchmarks/accounting.py --markdown docs/accounting_speed.md

Peers are optional: dp-accounting and prv-accountant are compared with if they can be imported. Each
does the whole work anew every time, from the description of the plan to epsilon; the noise differs
in the tenth digit between repetitions, so that no cache can answer. Calls alternate and medians are
compared, so that a busy machine disturbs all alike.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import contextlib
import importlib
import logging
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np

from skdp.accounting import (
    GaussianEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PrivacyValue,
    calibrate_noise_multiplier,
)
from skdp.mechanisms import analytic_gaussian_epsilon

Plan = tuple[float, float, int, float]  # sample rate, noise multiplier, steps, delta

PLANS: tuple[Plan, ...] = (
    (0.01, 4.0, 10_000, 1e-5),
    (0.01, 4.0, 40_000, 1e-5),
    (0.01, 2.0, 1_000, 1e-5),
    (0.004, 1.1, 15_000, 1e-5),
    (0.001, 0.6, 50_000, 1e-6),
    (0.1, 5.0, 500, 1e-6),
    (1.0, 10.0, 100, 1e-5),
    (0.02, 0.7, 500, 1e-5),
)
TARGETS = ((1.0, 1e-5, 0.01, 2_000), (3.0, 1e-6, 0.004, 15_000), (8.0, 1e-5, 0.02, 500))
GAUSSIAN = (1.0, 100.0, 10_000)
SAMPLED = (0.01, 1.0, 10_000)
DELTAS = (1e-5, 1e-10, 1e-12, 1e-13, 1e-14, 1e-15)


def skdp_epsilon(rate: float, sigma: float, steps: int, delta: float) -> PrivacyValue:
    step = PoissonSampledEvent(rate, GaussianEvent(sigma))
    return PLDAccountant().compose(step, count=steps).epsilon(delta)


def google_event(rate: float, sigma: float, steps: int) -> object:
    import dp_accounting as dp

    step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    return dp.SelfComposedDpEvent(step, steps)


def google_epsilon(rate: float, sigma: float, steps: int, delta: float) -> float:
    """Ask dp-accounting's PLD accountant with its default grid."""
    from dp_accounting import pld

    return pld.PLDAccountant().compose(google_event(rate, sigma, steps)).get_epsilon(delta)


def google_noise(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Calibrate with dp-accounting's PLD accountant, all else at its defaults."""
    import dp_accounting as dp
    from dp_accounting import pld

    return dp.calibrate_dp_mechanism(
        pld.PLDAccountant, lambda sigma: google_event(rate, sigma, steps), epsilon, delta
    )


def prv_epsilon(rate: float, sigma: float, steps: int, delta: float) -> float:
    """Ask prv-accountant for its upper bound, at the error bounds of its documentation."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    prv = PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=rate)
    accountant = PRVAccountant(
        prvs=[prv], max_self_compositions=[steps], eps_error=0.01, delta_error=1e-3 * delta
    )
    return accountant.compute_epsilon(delta=delta, num_self_compositions=[steps])[2]


PEERS: dict[str, tuple[str, Callable[[float, float, int, float], float]]] = {
    "dp-accounting": ("dp_accounting", google_epsilon),
    "prv-accountant": ("prv_accountant", prv_epsilon),
}


def importable() -> dict[str, Callable[[float, float, int, float], float]]:
    """Return the peers that can be imported."""
    found = {}
    for name, (module, epsilon) in PEERS.items():
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
            found[name] = epsilon
    return found


def median_seconds(*calls: Callable[[int], object], repeats: int) -> list[float]:
    """Time calls alternately, each told the number of the repetition; return medians."""
    times: list[list[float]] = [[] for _ in calls]
    for repeat in range(repeats):
        for call, record in zip(calls, times, strict=True):
            start = time.perf_counter()
            call(repeat)
            record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in times]


def attempt(epsilon: Callable[[float, float, int, float], float], plan: Plan) -> float | str:
    """Return an epsilon, or the kind of the exception."""
    try:
        return epsilon(*plan)
    except Exception as error:
        return type(error).__name__


def speed(repeats: int) -> list[str]:
    """Time epsilon(delta) for the eight plans."""
    peers = importable()
    names = [f"{name} | ratio | its epsilon less ours" for name in peers]
    lines = [
        "| " + " | ".join(["q", "sigma", "T", "delta", "skdp: epsilon", "width", "skdp", *names]),
        "|" + "---|" * (7 + 3 * len(peers)),
    ]
    lines[0] += " |"
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    for rate, sigma, steps, delta in PLANS:
        value = skdp_epsilon(rate, sigma, steps, delta)

        def varied(epsilon, rate=rate, sigma=sigma, steps=steps, delta=delta):
            return lambda repeat: epsilon(rate, sigma * (1 + 1e-10 * repeat), steps, delta)

        seconds = median_seconds(
            varied(skdp_epsilon), *map(varied, peers.values()), repeats=repeats
        )
        cells = [f"{rate:g}", f"{sigma:g}", f"{steps}", f"{delta:g}", f"{value.upper:.6f}"]
        cells += [f"{1 - value.lower / value.upper:.1e}", f"{1e3 * seconds[0]:.1f} ms"]
        for (name, epsilon), taken in zip(peers.items(), seconds[1:], strict=True):
            ratios[name].append(taken / seconds[0])
            excess = epsilon(rate, sigma, steps, delta) - value.upper
            cells += [f"{1e3 * taken:.0f} ms", f"{taken / seconds[0]:.0f} x", f"{excess:+.1e}"]
        lines.append("| " + " | ".join(cells) + " |")
    for name, found in ratios.items():
        lines += ["", f"Median ratio to {name}: **{statistics.median(found):.0f} x**."]
    return lines


def calibration(repeats: int) -> list[str]:
    """Time the search for the noise that meets a target."""
    peer = "dp-accounting" in importable()
    lines = [
        "| epsilon | delta | q | T | skdp: sigma | its epsilon | skdp | dp-accounting: sigma | "
        "dp-accounting | ratio |",
        "|" + "---|" * 10,
    ]
    for epsilon, delta, rate, steps in TARGETS:

        def ours(repeat: int, e=epsilon, d=delta, q=rate, t=steps) -> float:
            return calibrate_noise_multiplier(e * (1 + 1e-10 * repeat), d, q, t)

        def theirs(repeat: int, e=epsilon, d=delta, q=rate, t=steps) -> float:
            return google_noise(e * (1 + 1e-10 * repeat), d, q, t)

        [mine] = median_seconds(ours, repeats=repeats)
        sigma = ours(0)
        cells = [f"{epsilon:g}", f"{delta:g}", f"{rate:g}", f"{steps}", f"{sigma:.6f}"]
        cells += [f"{skdp_epsilon(rate, sigma, steps, delta):.6f}", f"{1e3 * mine:.0f} ms"]
        if peer:
            [other] = median_seconds(theirs, repeats=max(1, repeats // 3))
            cells += [f"{theirs(0):.6f}", f"{1e3 * other:.0f} ms", f"{other / mine:.0f} x"]
        else:
            cells += ["-", "-", "-"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def certainty() -> list[str]:
    """Compare upper bounds where rounding matters, with the truth or a certified lower bound."""
    peers = importable()
    lines = []
    for (rate, sigma, steps), truth in ((GAUSSIAN, "exact"), (SAMPLED, "at least")):
        lines += [
            f"q = {rate:g}, sigma = {sigma:g}, T = {steps}:",
            "",
            "| delta | " + " | ".join([truth, "skdp", "gap", *peers]) + " |",
            "|" + "---|" * (4 + len(peers)),
        ]
        for delta in DELTAS:
            plan = (rate, sigma, steps, delta)
            value = skdp_epsilon(*plan)
            least = value.lower
            if rate == 1.0:
                least = analytic_gaussian_epsilon(sigma, delta, np.sqrt(steps))
            cells = [f"{delta:g}", f"{least:.6f}", f"{value.upper:.6f}"]
            cells.append(f"{1 - value.lower / value.upper:.0e}")
            cells += [judged(attempt(epsilon, plan), least) for epsilon in peers.values()]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def judged(found: float | str, least: float) -> str:
    """Print a peer's upper bound, and by how much it falls below what is certain."""
    if isinstance(found, str):
        return found
    short = least - found
    return f"**{found:.6f}** ({short:.1e} too low)" if short > 1e-9 * least else f"{found:.6f}"


_PROBE = """
import time
start = time.perf_counter()
{imports}
imported = time.perf_counter()
{call}
print(imported - start, time.perf_counter() - imported)
"""
_OURS = _PROBE.format(
    imports="from skdp.accounting import PLDAccountant, PoissonSampledEvent, GaussianEvent",
    call="step = PoissonSampledEvent(0.01, GaussianEvent(4.0))\n"
    "PLDAccountant().compose(step, count=10_000).epsilon(1e-5)",
)
_THEIRS = _PROBE.format(
    imports="import dp_accounting as dp\nfrom dp_accounting import pld",
    call="step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(4.0))\n"
    "pld.PLDAccountant().compose(dp.SelfComposedDpEvent(step, 10_000)).get_epsilon(1e-5)",
)


def start_up(repeats: int) -> list[str]:
    """Time import and first call in new processes."""

    def probe(code: str) -> list[float]:
        command = [sys.executable, "-c", code]
        runs = [
            list(
                map(float, subprocess.run(command, check=True, capture_output=True).stdout.split())
            )
            for _ in range(repeats)
        ]
        return [statistics.median(column) for column in zip(*runs, strict=True)]

    lines = ["| | import | first call |", "|---|---|---|"]
    probes = {"skdp.accounting": _OURS}
    if "dp-accounting" in importable():
        probes["dp-accounting"] = _THEIRS
    for name, code in probes.items():
        imported, called = probe(code)
        lines.append(f"| {name} | {imported:.2f} s | {1e3 * called:.0f} ms |")
    return lines


def versions() -> str:
    """Name the libraries compared and what they stand on."""
    found = [f"Python {platform.python_version()}"]
    for name in ("skdp", "numpy", "scipy", *importable()):
        found.append(f"{name} {metadata.version(name)}")
    return ", ".join(found)


def findings(lines: list[str]) -> str:
    """Return the summary in markdown, from the lines of the tables."""
    medians = [line for line in lines if line.startswith("Median ratio to ")]
    found = [
        f"- Epsilon of a plan: skdp is {line.split('**')[1][:-2]} times as fast as "
        f"{line.split(':')[0].removeprefix('Median ratio to ')} (median)."
        for line in medians
    ]
    calibrated = lines[lines.index(_CALIBRATION) : lines.index(_CERTAINTY)]
    ratios = [line.split(" | ")[-1] for line in calibrated if line.endswith(" x |")]
    times = sorted(int(ratio.split()[0]) for ratio in ratios)
    found.append(f"- Noise for a target: {times[0]} to {times[-1]} times as fast as dp-accounting.")
    short = [float(part.split("(")[1]) for line in lines for part in line.split(" too low")[:-1]]
    if short:
        found.append(
            "- Upper bounds of dp-accounting can be too low for delta of 1e-10 and less, by up "
            f"to {max(short):.2f}.\n  Bounds of skdp are certified."
        )
    return "\n".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    options = f" --repeats {arguments.repeats} --markdown docs/accounting_speed.md"
    lines: list[str] = []
    for text, measure in (
        (_SPEED, lambda: speed(arguments.repeats)),
        (_CALIBRATION, lambda: calibration(arguments.repeats)),
        (_CERTAINTY, certainty),
        (_START, lambda: start_up(arguments.repeats)),
    ):
        found = measure()
        print("\n".join(found), flush=True)
        lines += [text, *found, ""]
    title = {"versions": versions(), "options": options, "repeats": arguments.repeats}
    lines = [_TITLE.format(findings=findings(lines), **title), *lines]
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines).rstrip() + "\n")


_TITLE = """# Accounting: speed and certainty

This page compares the privacy accountants of skdp with dp-accounting and prv-accountant.

## Summary

{findings}

| condition | value |
|---|---|
| repetitions | medians of {repeats} runs, one thread |
| times | of one machine; compare the ratios, measured alternately in one process |
| versions | {versions} |
| script | `python examples/benchmarks/accounting.py{options}` |
"""
_SPEED = """## Epsilon of a plan

`PLDAccountant().compose(event).epsilon(delta)` is computed from the description of `T`
Poisson-sampled Gaussian steps under add-remove. *Width* is the relative distance of the two
certified bounds of skdp.

Peers are the `PLDAccountant` of dp-accounting at its default grid, and prv-accountant with an error
of 0.01. All take the same event, also for q = 1. There the event is Gaussian, which skdp
recognises.
"""
_CALIBRATION = """## Noise for a target

`calibrate_noise_multiplier(epsilon, delta, q, T)` is compared with `calibrate_dp_mechanism` of
dp-accounting and its `PLDAccountant`, both at their defaults. skdp stops within 1e-4 of the target
epsilon and never above it, dp-accounting within 1e-6 of its best sigma.
"""
_CERTAINTY = """## Rounding at small delta

An upper bound below the true value is not a bound. Bold results of peers are below it. *Gap* is the
relative distance of the two bounds of skdp.

- The first plan is exactly 1-GDP. Its epsilons are known, and skdp answers in closed form.
- For the second, the certified lower bound of skdp replaces the true value.
- All take the same Poisson-sampled event. If the first plan is given to dp-accounting as a Gaussian
  event, its bounds are valid.
"""
_START = """## Start-up time

Times in a new process. Importing `skdp.accounting` also imports the estimators and scikit-learn.
"""


if __name__ == "__main__":
    main()
