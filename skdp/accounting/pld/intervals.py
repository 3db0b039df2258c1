"""Lower and upper bounds on one number, and what two of them tell together."""

from __future__ import annotations

import math

Interval = tuple[float, float]


def meet(known: Interval, found: Interval) -> Interval:
    """Return what two bounds on the same number prove together.

    Parameters
    ----------
    known, found : tuple of float
        Lower and upper bounds.

    Returns
    -------
    tuple of float
        The intersection. If there is none, one of the two must be wrong, and both are covered.
    """
    lower, upper = max(known[0], found[0]), min(known[1], found[1])
    if lower > upper:
        return min(known[0], found[0]), max(known[1], found[1])
    return lower, upper


def is_narrow(interval: Interval, rtol: float, smallest: float = 0.0) -> bool:
    """Tell whether the bounds are relatively close.

    Parameters
    ----------
    interval : tuple of float
        Lower and upper bound.
    rtol : float
        Largest distance, relative to the upper bound.
    smallest : float, default=0.0
        Upper bounds below this one count as this one.

    Returns
    -------
    bool
        False for an infinite upper bound, to which nothing is close.
    """
    lower, upper = interval
    return math.isfinite(upper) and upper - lower <= rtol * max(upper, smallest)
