"""Throughput of the random stream, the cost of discrete numerics, and an attack on last bits.

    python examples/benchmarks/randomness.py --markdown docs/security.md

Processor time depends on the machine; the ratios and shares do not.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import argparse
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _datasets import load_breast_cancer
from scipy.special import ndtr, ndtri
from sklearn.datasets import load_digits

from skdp import ObjectivePerturbationLogisticRegression, OperaLogisticRegression
from skdp.mechanisms import GaussianMechanism, RandomStream, record_releases
from skdp.mechanisms._ziggurat import ziggurat
from skdp.mechanisms.discrete import discrete_gaussians
from skdp.mechanisms.release import Release

HEADING = "## Measured"
NOISE = re.compile(r"Gaussian (?:vector|noise) of standard deviation (\S+)")
ESTIMATORS = (OperaLogisticRegression, ObjectivePerturbationLogisticRegression)


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the median processor time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def throughput() -> Iterator[str]:
    """Time what streams draw."""
    stream, count = RandomStream.from_entropy(), 1_000_000
    yield "| drawn | microseconds each |\n|---|---|\n"
    each = {
        "word of 64 bits": lambda: stream.words(count),
        "uniform": lambda: stream.uniform(count),
        "normal": lambda: stream.standard_normal(count),
    }
    for name, call in each.items():
        yield f"| {name} | {1e6 * seconds(call) / count:.4f} |\n"
    for digits in (21, 46, 90):
        took = seconds(lambda: discrete_gaussians(stream, 2**digits, 5_000)) / 5_000  # noqa: B023
        yield f"| discrete Gaussian of parameter 2^{digits} | {1e6 * took:.1f} |\n"


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's table in public units: constants, nothing is fitted."""
    if name == "breast cancer":
        data = load_breast_cancer()
        return data.X / data.data_norm, data.y
    X, y = load_digits(return_X_y=True)
    return X / 16.0 / 8.0, y


def cost(seeds: int) -> Iterator[str]:
    """Compare fits with both numerics: noise, accuracy on the rows, time."""
    yield "| table | estimator | weights | noise, discrete / float | accuracy, float | discrete |"
    yield " ms, float | discrete |\n|---|---|---|---|---|---|---|---|\n"
    for name in ("breast cancer", "digits"):
        X, y = table(name)
        for cls in ESTIMATORS:
            cells: dict[str, tuple[float, str, float]] = {}
            for numerics in ("float", "discrete"):
                model = cls(4.0, 1e-5, data_norm=1.0, numerics=numerics, classes=np.unique(y))
                with record_releases() as trace:
                    model.fit(X, y)
                scores = [model.fit(X, y).score(X, y) for _ in range(seeds)]
                spread = np.std(scores, ddof=1) / np.sqrt(seeds)
                shown = f"{np.mean(scores):.4f} +- {spread:.4f}"
                took = seconds(lambda: model.fit(X, y), 7)  # noqa: B023
                cells[numerics] = (trace.releases[0].sigma, shown, 1e3 * took)
            weights = trace.releases[0].value.size
            ratio = cells["discrete"][0] / cells["float"][0]
            yield f"| {name} | `{cls.__name__}` | {weights} | 1 + {ratio - 1:.1e} | "
            yield f"{cells['float'][1]} | {cells['discrete'][1]} | "
            yield f"{cells['float'][2]:.1f} | {cells['discrete'][2]:.1f} |\n"


def large_tables() -> Iterator[str]:
    """Print what worst-case rounding bounds add to the noise, by the plans alone."""
    yield "| rows | `OperaLogisticRegression`, float | discrete | "
    yield "`ObjectivePerturbationLogisticRegression`, float | discrete |\n|---|---|---|---|---|\n"
    for n_rows in (1_000, 30_000, 100_000, 1_000_000, 10_000_000):
        cells = []
        for cls in ESTIMATORS:
            for numerics in ("float", "discrete"):
                model = cls(1.0, 1e-8, data_norm=1.0, numerics=numerics)
                said = model.privacy_plan(n_rows, 100).mechanism
                cells.append(NOISE.findall(said)[0])
        yield f"| {n_rows:,} | {' | '.join(cells)} |\n"


def attack(trials: int) -> Iterator[str]:
    """Tell 0 and 1 apart by one release with noise 4, or by the gaps of a sampler."""
    sigma = 4.0
    noise = Release("noise", 1.0).on_grid(sigma, 1)

    def of_skdp(grid: float) -> Callable[[float], np.ndarray]:
        def release(value: float) -> np.ndarray:
            return GaussianMechanism(
                sensitivity=1.0,
                sigma=sigma,
                stream=RandomStream.from_entropy(),
                label="attacked",
                grid=grid,
            ).release(np.full(trials, value))

        return release

    releases = {
        "inversion of 53-bit uniforms, written naively": lambda value: (
            value + sigma * ndtri(np.random.default_rng().random(trials))
        ),
        '`numerics="float"`': of_skdp(0.0),
        '`numerics="discrete"`': of_skdp(noise.grid),
    }
    yield "| noise | releases of 0 that 1 cannot give | of 1 that 0 cannot give |\n|---|---|---|\n"
    for name, release in releases.items():
        zero, one = release(0.0), release(1.0)
        if "discrete" in name:  # all are multiples of the grid, and every multiple is possible
            shares = [np.mean(outputs % noise.grid != 0.0) for outputs in (zero, one)]
        else:
            fine = (np.abs(zero) < 0.5) & (zero * 2.0**53 % 1.0 != 0.0)
            gaps = in_a_gap if "naive" in name else in_a_gap_of_layers
            shares = [np.mean(fine), np.mean((np.abs(one) < 0.5) & gaps(one, sigma))]
        yield f"| {name} | {shares[0]:.3f} | {shares[1]:.3f} |\n"


def in_a_gap(outputs: np.ndarray, sigma: float) -> np.ndarray:
    """Tell which outputs are no sigma times the quantile of a multiple of 2**-53."""
    size = np.abs(outputs)
    near = np.round(ndtr(-size / sigma) * 2.0**53)[:, None] + np.arange(-40.0, 41.0)
    return ~(-sigma * ndtri(near * 2.0**-53) == size[:, None]).any(axis=1)


def in_a_gap_of_layers(outputs: np.ndarray, sigma: float) -> np.ndarray:
    """Tell which outputs are no sigma times a place in the middle of a layer's cells."""
    size, found = np.abs(outputs) / sigma, np.zeros(outputs.shape, dtype=bool)
    for width in ziggurat().widths:
        places = np.maximum(np.floor(size / width) + np.arange(-2.0, 3.0)[:, None], 0.0) + 0.5
        found |= (places * width == size).any(axis=0)
    return ~found


def main() -> None:
    """Print the tables, or put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100, help="fits for each accuracy")
    parser.add_argument("--trials", type=int, default=100_000, help="releases that are attacked")
    parser.add_argument("--markdown", type=Path, help="the page whose last section to replace")
    arguments = parser.parse_args()
    parts = (throughput(), cost(arguments.seeds), large_tables(), attack(arguments.trials))
    text = "\n".join("".join(part) for part in parts)
    print(text)
    if arguments.markdown:
        kept, _, section = arguments.markdown.read_text().partition(HEADING)
        words = section.strip().partition("\n\n|")[0]
        arguments.markdown.write_text(f"{kept}{HEADING}\n\n{words}\n\n{text}")


if __name__ == "__main__":
    main()
