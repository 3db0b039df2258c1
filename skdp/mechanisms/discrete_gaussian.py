"""Discrete Gaussian noise on a grid: drawn exactly, priced as the continuous noise it comes from.

Theorems and their numbers are in ``docs/proofs/discrete_noise.md``. Noise on the integers with
parameter s is, up to factors that no delta notices, continuous noise of variance ``s^2 - r^2`` that
is rounded at random; rounding is post-processing.
"""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.mechanisms.contribution import ROUND_UP
from skdp.mechanisms.discrete_laplace import UniformIntegers, bernoulli_exp, discrete_laplace
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


def worth_on_grid(sigma: float, grid: float) -> float:
    """Return the deviation of continuous noise that noise on a grid is worth."""
    scale = sigma / grid
    return math.sqrt((scale - _RANDOM_ROUNDING) * (scale + _RANDOM_ROUNDING)) * grid


def scale_on_grid(sensitivity: float, multiplier: float, count: int) -> tuple[float, float, float]:
    """Return sensitivity, scale and grid of `count` rounded numbers, worth the multiplier."""
    step = min(sensitivity / math.sqrt(count), sensitivity * multiplier)
    grid = math.ldexp(1.0, math.frexp(step)[1] - 1 - _DIGITS)
    moved = (sensitivity + grid * math.sqrt(count)) * ROUND_UP
    continuous = multiplier * moved / grid * (1.0 + 3.0 * _MARGIN)
    scale = math.ceil(math.hypot(continuous, _RANDOM_ROUNDING) * (1.0 + _MARGIN))
    return moved, float(scale) * grid, grid


def secret_on_grid(sigma: float, count: int) -> tuple[float, float, float]:
    """Return scale and grid of a secret of `count` numbers, and how near continuous noise it is.

    The continuous noise has at least deviation `sigma`; the distance is Euclidean.
    """
    grid = math.ldexp(1.0, math.frexp(sigma)[1] - 1 - _SECRET_DIGITS)
    scale = math.ceil(math.hypot(sigma / grid, _RANDOM_ROUNDING) * (1.0 + _MARGIN)) + 1
    return float(scale) * grid, grid, distance_on_grid(grid, count)


def distance_on_grid(grid: float, count: int) -> float:
    """Return how near noise on a grid is to continuous noise of no larger variance.

    So are `count` numbers that are rounded to the grid, noise included; the distance is Euclidean.
    """
    return _REACH * _RANDOM_ROUNDING * grid * math.sqrt(count) * ROUND_UP


def discrete_gaussians(stream: RandomStream, scale: int | Fraction, count: int) -> list[int]:
    """Return integers x, each with probability exactly proportional to ``e^(-x^2 / (2 scale^2))``.

    Canonne, Kamath and Steinke (2020), Algorithms 1 to 3, in integers alone.
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
