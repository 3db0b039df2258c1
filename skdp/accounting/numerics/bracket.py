"""Searches along one parameter, each value of which gives a valid bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_SMALLEST = -744.0  # logarithm of the smallest positive float, rounded up


def golden_section(
    function: Callable[[float], float], left: float, right: float, iterations: int
) -> tuple[float, float]:
    """Minimise a function that falls and then rises.

    Parameters
    ----------
    function : callable
        Maps a float to a float; it may be infinite where it is large.
    left, right : float
        Ends of the interval.
    iterations : int
        How often the interval shrinks, by 0.618 each time.

    Returns
    -------
    tuple of two floats
        The best point evaluated and its value.
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
    """Minimise over a grid first, then between the neighbours of its best point.

    Parameters
    ----------
    function : callable
        Maps a float to a float; it may be infinite where it is large.
    grid : sequence of float
        Increasing points of the first scan, which stops once values have risen thrice in a row,
        or become infinite again.
    iterations : int, default=40
        Steps of golden-section search after it.

    Returns
    -------
    float
        The least value found.
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

    Parameters
    ----------
    epsilon_at : callable
        Maps a delta to an upper bound on epsilon that does not rise with delta.
    epsilon : float
        The epsilon to be reached, ``>= 0``.

    Returns
    -------
    float
        A delta at which the bound was evaluated and is at most ``epsilon``; 1 if there is none.
    """
    low, high = _SMALLEST, 0.0
    if epsilon_at(math.exp(low)) <= epsilon:
        return math.exp(low)
    while high - low > 1e-12 * max(1.0, -high):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if epsilon_at(math.exp(middle)) <= epsilon:
            high = middle
        else:
            low = middle
    return math.exp(high)
