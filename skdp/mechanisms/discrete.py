"""Discrete Laplace and discrete Gaussian noise, drawn with exact probabilities.

Theorems are those of ``docs/proofs/discrete_noise.md``. Up to factors below any delta, noise on the
integers with parameter s is randomly rounded continuous noise of variance ``s^2 - r^2``. Rounding
is post-processing.
"""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.mechanisms.contribution import ROUND_UP
from skdp.mechanisms.random_stream import RandomStream

_WORDS_AT_ONCE = 512


def discrete_laplaces(stream: RandomStream, scale: int | Fraction, count: int) -> list[int]:
    """Return integers x with probability exactly proportional to ``e^(-|x| / scale)``.

    Canonne, Kamath and Steinke (2020), Algorithms 1 and 2, with integers only.
    """
    integers, exact = UniformIntegers(stream), Fraction(scale)
    return [discrete_laplace(integers, exact.numerator, exact.denominator) for _ in range(count)]


class UniformIntegers:
    """Uniform integers by rejection, from buffered bytes of a stream."""

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


def bernoulli_exp(integers: UniformIntegers, above: int, below: int) -> bool:
    """Return True with probability ``e^(-above / below)``, exactly (Algorithm 1)."""
    while above > below:
        if not bernoulli_exp(integers, 1, 1):
            return False
        above -= below
    # Events of probability above / (k below) happen until one does not: an alternating series.
    k = 1
    while integers.below(k * below) < above:
        k += 1
    return k % 2 == 1


def discrete_laplace(integers: UniformIntegers, above: int, below: int) -> int:
    """Return x with probability proportional to ``e^(-|x| below / above)`` (Algorithm 2)."""
    while True:
        rest = integers.below(above)
        if not bernoulli_exp(integers, rest, above):
            continue
        turns = 0
        while bernoulli_exp(integers, 1, 1):
            turns += 1
        # A geometric number of steps of 1 / above, of which whole ones of below / above count.
        size = (rest + above * turns) // below
        if integers.below(2) == 0:
            return size
        if size > 0:  # else zero would come up twice as often
            return -size


# The r of the proof, in steps of the grid: the omitted part is then below 1e-2100 per coordinate.
_RANDOM_ROUNDING = 16
# Random rounding moves a coordinate by more than this many r with a probability below 1e-1300.
_REACH = 80
# Binary digits of the released noise below the sensitivity's share of one coordinate; and of the
# secret noise, which with its tails stays an exact double.
_DIGITS, _SECRET_DIGITS = 20, 45
# Step of a grid of released noise, in units of its scale.
LARGEST_STEP = 2.0**-_DIGITS
# Covers the roundings of the few operations for the noise and its cost.
_MARGIN = 1e-12


def worth_on_grid(sigma: float, grid: float) -> float:
    """Return the deviation of equivalent continuous noise."""
    scale = sigma / grid
    return math.sqrt((scale - _RANDOM_ROUNDING) * (scale + _RANDOM_ROUNDING)) * grid


def scale_on_grid(sensitivity: float, multiplier: float, count: int) -> tuple[float, float, float]:
    """Return sensitivity, scale and grid of `count` rounded numbers for a multiplier."""
    step = min(sensitivity / math.sqrt(count), sensitivity * multiplier)
    grid = math.ldexp(1.0, math.frexp(step)[1] - 1 - _DIGITS)
    moved = (sensitivity + grid * math.sqrt(count)) * ROUND_UP
    continuous = multiplier * moved / grid * (1.0 + 3.0 * _MARGIN)
    scale = math.ceil(math.hypot(continuous, _RANDOM_ROUNDING) * (1.0 + _MARGIN))
    return moved, float(scale) * grid, grid


def secret_on_grid(sigma: float, count: int) -> tuple[float, float, float]:
    """Return scale, grid and distance to continuous noise, for `count` secret numbers.

    The continuous noise has at least deviation `sigma`; the distance is Euclidean.
    """
    grid = math.ldexp(1.0, math.frexp(sigma)[1] - 1 - _SECRET_DIGITS)
    scale = math.ceil(math.hypot(sigma / grid, _RANDOM_ROUNDING) * (1.0 + _MARGIN)) + 1
    return float(scale) * grid, grid, distance_on_grid(grid, count)


def distance_on_grid(grid: float, count: int) -> float:
    """Return the Euclidean distance of noise on a grid to continuous noise.

    The variance of the latter is no larger. It also covers `count` rounded numbers.
    """
    return _REACH * _RANDOM_ROUNDING * grid * math.sqrt(count) * ROUND_UP


def discrete_gaussians(stream: RandomStream, scale: int | Fraction, count: int) -> list[int]:
    """Return integers x with probability exactly proportional to ``e^(-x^2 / (2 scale^2))``.

    Canonne, Kamath and Steinke (2020), Algorithms 1 to 3, with integers only.
    """
    integers, spread = UniformIntegers(stream), Fraction(scale) ** 2
    nearby = max(int(scale), 1)
    # With t = nearby, (|x| - scale^2 / t)^2 / (2 scale^2) as a quotient of integers.
    factor, centre = nearby * spread.denominator, spread.numerator
    common = math.gcd(factor, centre)
    factor, centre = factor // common, centre // common
    below = 2 * nearby * factor * centre
    drawn: list[int] = []
    while len(drawn) < count:
        x = discrete_laplace(integers, nearby, 1)
        if bernoulli_exp(integers, (abs(x) * factor - centre) ** 2, below):
            drawn.append(x)
    return drawn
