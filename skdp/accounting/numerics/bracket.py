"""Searches along one parameter, each value of which gives a valid bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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
    """Return close points between which a function turns from positive to at most zero.

    It is taken to be so at ``low`` and ``high``; other ends were evaluated. It is never NaN.
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
    """Return a number; raise FloatingPointError if it is none and so on neither side of a bound."""
    if math.isnan(value):
        raise FloatingPointError("A bound could not be evaluated: it is not a number.")
    return value


def golden_section(
    function: Callable[[float], float], left: float, right: float, iterations: int
) -> tuple[float, float]:
    """Return the best point evaluated and its value, of a function that falls and then rises.

    It may be infinite where it is large. The interval shrinks by 0.618 in each iteration.
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
    """Return the least value on an increasing grid, then between the neighbours of its best point.

    The scan stops once values have risen thrice in a row, or become infinite again.
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
    """Return the smallest delta, up to rounding, at which a bound on epsilon holds.

    The bound was evaluated there, and does not rise with delta; 1 if there is none.
    """
    if epsilon_at(math.exp(_SMALLEST)) <= epsilon:
        return math.exp(_SMALLEST)
    return math.exp(
        narrow_bracket(lambda x: epsilon_at(math.exp(x)) - epsilon, _SMALLEST, 0.0, 1e-12, 1e-12)[1]
    )
