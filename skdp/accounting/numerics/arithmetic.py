"""Floating-point arithmetic: exact amounts, powers, quadrature and safe searches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53  # relative error of one rounded operation, at most
LARGEST_EXPONENT = 700.0  # nats of which the exponential is still a float
SMALLEST_TAIL = 1e-300  # a probability that is a normal number still, with room below
_BITS = 80  # that a rounded amount keeps


def read_decimal(number: float) -> Fraction:
    """Return the exact value of a number's decimal notation."""
    return Fraction(repr(float(number)))


def round_up(amount: Fraction) -> Fraction:
    """Return a dyadic fraction at least as large, short in sums."""
    numerator, denominator = amount.numerator, amount.denominator
    shift = _BITS - (numerator.bit_length() - denominator.bit_length())
    if numerator.bit_length() <= _BITS and denominator & (denominator - 1) == 0:
        return amount
    if shift >= 0:
        return Fraction(-(-(numerator << shift) // denominator), 1 << shift)
    return Fraction(-(-numerator // (denominator << -shift)) << -shift)


def float_up(amount: Fraction) -> float:
    """Return a non-negative amount as a float, rounded up."""
    try:
        nearest = float(amount)
    except OverflowError:
        return math.inf
    return nearest if nearest >= amount else math.nextafter(nearest, math.inf)


def decimal_up(amount: Fraction) -> float:
    """Return a float whose decimal notation is at least an amount."""
    number = float_up(amount)
    while math.isfinite(number) and read_decimal(number) < amount:
        number = math.nextafter(number, math.inf)
    return number


def log_mixture(rate: float, log_ratio: float | Array) -> Array:
    """Return ``log(1 - rate + rate e^log_ratio)`` to a few roundings.

    Rates above 1, for log ratios of at least 0, give the inverse function.
    """
    ratio = np.asarray(log_ratio, dtype=np.float64)
    if rate == 1.0:
        return ratio
    with np.errstate(all="ignore"):
        added = rate * np.expm1(ratio)
        # Next to -1 the sum cancels; 1 - rate is exact there.
        near = np.where(added < -0.5, np.log((1.0 - rate) + rate * np.exp(ratio)), np.log1p(added))
        shifted = ratio + math.log(rate)
        far = np.where(shifted < LARGEST_EXPONENT, np.log1p(np.exp(shifted) - rate), shifted)
    return np.where(ratio <= 300.0, near, far)


def log_rest(probability: float) -> float:
    """Return ``log(1 - probability)``."""
    return math.log1p(-probability) if probability < 1.0 else -math.inf


def power(gap: float, exponent: int) -> tuple[float, float]:
    """Return ``c^k`` and ``1 - c^k`` for ``c = 1 - gap``."""
    if gap == 0.0 or exponent == 0:
        return 1.0, 0.0
    if gap >= 1.0:
        return 0.0, 1.0
    logarithm = exponent * math.log1p(-gap)
    return math.exp(logarithm), -math.expm1(logarithm)


def sum_of_powers(gap: float, count: int) -> float:
    """Return ``1 + c + ... + c^(count - 1)`` for ``c = 1 - gap``."""
    return float(count) if gap == 0.0 else power(gap, count)[1] / gap


def squeeze(gap: float, count: int) -> float:
    """Return ``1 / (1 + c^2 + ... + c^(2 count - 2))`` for ``c = 1 - gap``.

    The squared Gaussian-DP parameter of hiding a distance of 1 by `count` contracting steps.
    """
    return 1.0 / count if gap == 0.0 else gap * (2.0 - gap) / power(gap, 2 * count)[1]


_DIGITS = 50
_NEWTON_STEPS = 2  # from double precision


@lru_cache(maxsize=8)
def gauss_legendre(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an accurate Gauss-Legendre rule of even length on [-1, 1].

    NumPy's weights are off by thousands of units in the last place.
    """
    guesses, _ = np.polynomial.legendre.leggauss(count)
    points, weights = np.empty(count), np.empty(count)
    with localcontext() as context:
        context.prec = _DIGITS
        for i, guess in enumerate(guesses[count // 2 :].tolist()):
            x = Decimal(guess)
            for _ in range(_NEWTON_STEPS):
                x -= _polynomial(count, x)[0] / _polynomial(count, x)[1]
            slope = _polynomial(count, x)[1]
            points[count // 2 + i] = float(x)
            weights[count // 2 + i] = float(2 / ((1 - x * x) * slope * slope))
    points[: count // 2] = -points[: count // 2 - 1 : -1]
    weights[: count // 2] = weights[: count // 2 - 1 : -1]
    return points, weights


@lru_cache(maxsize=8)
def unit_gauss_legendre(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rule on [0, 1]."""
    nodes, weights = gauss_legendre(count)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def _polynomial(count: int, x: Decimal) -> tuple[Decimal, Decimal]:
    """Return the Legendre polynomial and its derivative."""
    before, value = Decimal(1), x
    for k in range(2, count + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, count * (x * value - before) / (x * x - 1)


_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_SMALLEST = -744.0  # logarithm of the smallest positive float, rounded up
_EPSILON = 8.9e-16  # the least relative width of a bracket, a little above four roundings


def narrow_bracket(
    function: Callable[[float], float],
    low: float,
    high: float,
    rtol: float = _EPSILON,
    xtol: float = 1e-300,
) -> tuple[float, float]:
    """Return close points where a function turns from positive to at most zero.

    Signs at ``low`` and ``high`` are assumed; other ends were evaluated. It must never be NaN.
    """
    from scipy.optimize import brentq

    if not low < high:
        return low, high
    ends = [low, high]

    def evaluate(x: float) -> float:
        if x in ends:
            return 1.0 if x == ends[0] else -1.0
        value = refuse_nan(function(x))
        # Brent's method stops at zeros, where one side would be far: count them as beyond.
        ends[0 if value > 0.0 else 1] = x
        return value or -math.ulp(0.0)

    brentq(evaluate, low, high, xtol=xtol, rtol=max(rtol, _EPSILON), maxiter=1000, disp=False)
    return ends[0], ends[1]


def refuse_nan(value: float) -> float:
    """Return a number; raise FloatingPointError for NaN."""
    if math.isnan(value):
        raise FloatingPointError("A bound could not be evaluated: it is not a number.")
    return value


def golden_section(
    function: Callable[[float], float], left: float, right: float, iterations: int
) -> tuple[float, float]:
    """Return the best point and value of a function that falls, then rises.

    It may be infinite where large. The interval shrinks by 0.618 per iteration.
    """
    inner = [right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)]
    values = [function(inner[0]), function(inner[1])]
    best = min(zip(values, inner, strict=True))
    for _ in range(iterations):
        if values[0] <= values[1]:
            right, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = right - _GOLDEN * (right - left)
            values[0] = function(inner[0])
            best = min(best, (values[0], inner[0]))
        else:
            left, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = left + _GOLDEN * (right - left)
            values[1] = function(inner[1])
            best = min(best, (values[1], inner[1]))
    return best[1], best[0]


def minimise(
    function: Callable[[float], float], grid: Sequence[float], iterations: int = 40
) -> float:
    """Return the least value on an increasing grid and near its best point.

    The scan stops after three rises, or when values are infinite again.
    """
    values: list[float] = []
    for x in grid:
        values.append(function(x))
        if len(values) > 3 and values[-1] > values[-2] > values[-3] > values[-4]:
            break
        if len(values) > 1 and math.isinf(values[-1]) and math.isfinite(values[-2]):
            break
    k = min(range(len(values)), key=values.__getitem__)
    if not math.isfinite(values[k]):
        return values[k]
    left, right = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    return min(values[k], golden_section(function, left, right, iterations)[1])


def smallest_delta(epsilon_at: Callable[[float], float], epsilon: float) -> float:
    """Return the smallest delta for a bound on epsilon, up to rounding, or 1.

    The bound was evaluated there, and must not rise with delta.
    """
    if epsilon_at(math.exp(_SMALLEST)) <= epsilon:
        return math.exp(_SMALLEST)
    return math.exp(
        narrow_bracket(lambda x: epsilon_at(math.exp(x)) - epsilon, _SMALLEST, 0.0, 1e-12, 1e-12)[1]
    )
