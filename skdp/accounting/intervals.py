"""Lower and upper bounds on one number, and what two of them tell together."""

from __future__ import annotations

import math
import warnings
from typing import Self

from skdp.exceptions import ContradictionWarning

Interval = tuple[float, float]


class Proved(tuple[float, float]):
    """Lower and upper bound, and the name of what proved each."""

    by: tuple[str, str]

    def __new__(cls, interval: Interval, by: tuple[str, str]) -> Self:
        """Keep the names beside the bounds."""
        value = super().__new__(cls, interval)
        value.by = by
        return value


def named(interval: Interval, name: str) -> Proved:
    """Return an interval whose two sides one method has proved."""
    return Proved(interval, (name, name))


def provers(interval: Interval) -> tuple[str, str]:
    """Return the names of what proved each side, empty where they are not kept."""
    return interval.by if isinstance(interval, Proved) else ("", "")


def meet(known: Interval, found: Interval) -> Proved:
    """Return the intersection of two bounds on the same number."""
    # If there is none, one of the two is wrong: a warning says so, and both are covered.
    lower = found if found[0] > known[0] else known
    upper = found if found[1] < known[1] else known
    if lower[0] > upper[1]:
        warn_of_contradiction(Proved((lower[0], upper[1]), (provers(lower)[0], provers(upper)[1])))
        lower, upper = upper, lower
    return Proved((lower[0], upper[1]), (provers(lower)[0], provers(upper)[1]))


def warn_of_contradiction(interval: Interval) -> None:
    """Say that a lower bound exceeds an upper one."""
    lower, upper = interval
    below, above = provers(interval)
    warnings.warn(
        f"Two bounds on the same privacy cost exclude each other: at least {lower!r} by "
        f"{below or 'one method'}, at most {upper!r} by {above or 'another'}. One is wrong; the "
        "larger is reported. Please report this as a bug.",
        ContradictionWarning,
        stacklevel=2,
    )


def is_narrow(interval: Interval, rtol: float, smallest: float = 0.0) -> bool:
    """Tell whether the bounds are relatively close; nothing is close to an infinite upper one."""
    lower, upper = interval
    return math.isfinite(upper) and upper - lower <= rtol * max(upper, smallest)
