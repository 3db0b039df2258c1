"""Discrete Gaussian noise on a grid: drawn exactly, priced as the continuous noise it comes from.

Theorems and their numbers are in ``docs/proofs/discrete_noise.md``. Noise on the integers with
parameter s is, up to factors that no delta notices, continuous noise of variance ``s^2 - r^2`` that
is rounded at random; rounding is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdp.mechanisms.contribution import ROUND_UP
from skdp.mechanisms.random_stream import RandomStream

# The r of the proof, in steps of the grid: what is left out is then below 1e-2100 a coordinate.
_RANDOM_ROUNDING = 16
# Random rounding moves a coordinate by more than this many r with a probability below 1e-1300.
_REACH = 80
# Binary digits of the released noise below the sensitivity's share of one coordinate; and of the
# secret noise, which with its tails stays an exact double.
_DIGITS, _SECRET_DIGITS = 20, 45
# Of a grid of released noise, in units of its scale.
LARGEST_STEP = 2.0**-_DIGITS
# Covers the roundings of the few operations by which noise is chosen and priced.
_MARGIN = 1e-12
_WORDS_AT_ONCE = 512


@dataclass(frozen=True)
class Noise:
    """Scale of normal noise, and the sensitivity it is for; `grid` is 0 for continuous noise."""

    sensitivity: float
    sigma: float
    grid: float = 0.0

    @property
    def multiplier(self) -> float:
        """What the noise is worth, as continuous noise over the sensitivity, rounded down."""
        if self.grid == 0.0:
            return self.sigma / self.sensitivity
        scale = self.sigma / self.grid
        worth = math.sqrt((scale - _RANDOM_ROUNDING) * (scale + _RANDOM_ROUNDING))
        return worth * self.grid / self.sensitivity * (1.0 - _MARGIN)


def noise_on_grid(sensitivity: float, multiplier: float, count: int) -> Noise:
    """Return noise for `count` numbers, rounded to its grid, that is worth the multiplier.

    Rounding moves each number by at most half a step, so that it adds ``grid * sqrt(count)`` to the
    sensitivity, less than a millionth of it.
    """
    step = min(sensitivity / math.sqrt(count), sensitivity * multiplier)
    grid = math.ldexp(1.0, math.frexp(step)[1] - 1 - _DIGITS)
    moved = (sensitivity + grid * math.sqrt(count)) * ROUND_UP
    continuous = multiplier * moved / grid * (1.0 + 3.0 * _MARGIN)
    scale = math.ceil(math.hypot(continuous, _RANDOM_ROUNDING) * (1.0 + _MARGIN))
    return Noise(moved, float(scale) * grid, grid)


def secret_on_grid(sigma: float, count: int) -> tuple[float, float, float]:
    """Return scale and grid of a secret of `count` numbers, and how near continuous noise it is.

    The continuous noise has at least deviation `sigma`; the distance is Euclidean.
    """
    grid = math.ldexp(1.0, math.frexp(sigma)[1] - 1 - _SECRET_DIGITS)
    scale = math.ceil(math.hypot(sigma / grid, _RANDOM_ROUNDING) * (1.0 + _MARGIN)) + 1
    near = _REACH * _RANDOM_ROUNDING * grid * math.sqrt(count) * ROUND_UP
    return float(scale) * grid, grid, near


def discrete_gaussians(stream: RandomStream, scale: int, count: int) -> list[int]:
    """Return integers x, each with probability exactly proportional to ``e^(-x^2 / (2 scale^2))``.

    Canonne, Kamath and Steinke (2020), Algorithms 1 to 3, in integers alone.
    """
    integers = _UniformIntegers(stream)
    return [_discrete_gaussian(integers, scale) for _ in range(count)]


class _UniformIntegers:
    """Uniform integers by rejection, from a stream's bytes that are drawn many at a time."""

    def __init__(self, stream: RandomStream) -> None:
        self._stream = stream
        self._bytes, self._place = b"", 0

    def below(self, bound: int) -> int:
        """Return one of 0, 1, ..., `bound` - 1, all equally likely."""
        bits = (bound - 1).bit_length()
        size = (bits + 7) // 8
        while True:
            end = self._place + size
            if end > len(self._bytes):
                self._bytes, end = self._stream.words(_WORDS_AT_ONCE).tobytes(), size
            number = int.from_bytes(self._bytes[end - size : end], "little") >> (8 * size - bits)
            self._place = end
            if number < bound:
                return number


def _bernoulli_exp(integers: _UniformIntegers, above: int, below: int) -> bool:
    """Return True with probability ``e^(-above / below)``, exactly (Algorithm 1)."""
    while above > below:
        if not _bernoulli_exp(integers, 1, 1):
            return False
        above -= below
    # Coins of probability above / (k below) fall until one shows tails: an alternating series.
    k = 1
    while integers.below(k * below) < above:
        k += 1
    return k % 2 == 1


def _discrete_laplace(integers: _UniformIntegers, scale: int) -> int:
    """Return x with probability proportional to ``e^(-|x| / scale)`` (Algorithm 2)."""
    while True:
        rest = integers.below(scale)
        if not _bernoulli_exp(integers, rest, scale):
            continue
        turns = 0
        while _bernoulli_exp(integers, 1, 1):
            turns += 1
        size = rest + scale * turns
        if integers.below(2) == 0:
            return size
        if size > 0:  # else zero would come up twice as often
            return -size


def _discrete_gaussian(integers: _UniformIntegers, scale: int) -> int:
    """Return x with probability proportional to ``e^(-x^2 / (2 scale^2))`` (Algorithm 3)."""
    while True:
        x = _discrete_laplace(integers, scale)
        if _bernoulli_exp(integers, (abs(x) - scale) ** 2, 2 * scale * scale):
            return x
