"""Results of accountants: numbers with proved bounds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Self

from skdp.accounting.events import Event
from skdp.base.parameters import Adjacency
from skdp.exceptions import ContradictionWarning


class PrivacyValue(float):
    """An epsilon or a delta, with the bounds that are proved about it.

    It is a float and can be used as one. It also unpacks as ``lower, upper = value``.

    Parameters
    ----------
    upper : float
        The value itself; at least the true cost if ``is_upper_bound``.
    lower : float, default=0.0
        Lower bound on the true cost of the dominating pairs; zero if none is proved. For samples
        of fixed size no release is known that attains the composition of these pairs.
    is_upper_bound : bool, default=True
        Whether the value is a proved upper bound. If not, it must not be reported as a guarantee,
        and no budget accepts it.
    is_differential_privacy : bool, default=True
        Whether the value is about differential privacy.
    proved_by : tuple of str, default=("", "")
        Short names of the methods that proved the lower and the upper bound, such as
        ``"inversion"``.

    Raises
    ------
    ValueError
        If ``lower`` exceeds ``upper``, or one of them is NaN.

    Examples
    --------
    >>> from skdp.accounting import PrivacyValue
    >>> epsilon = PrivacyValue(1.5, lower=1.4999)
    >>> lower, upper = epsilon
    >>> epsilon <= 2.0, upper - lower < 1e-3
    (True, True)
    """

    lower: float
    is_upper_bound: bool
    is_differential_privacy: bool
    proved_by: tuple[str, str]

    def __new__(
        cls,
        upper: float,
        lower: float = 0.0,
        *,
        is_upper_bound: bool = True,
        is_differential_privacy: bool = True,
        proved_by: tuple[str, str] = ("", ""),
    ) -> Self:
        """Check the order of the bounds."""
        value = super().__new__(cls, upper)
        if not lower <= value:
            raise ValueError(f"lower must be at most upper={float(value)!r}, got {lower!r}.")
        value.lower = float(lower)
        value.is_upper_bound = is_upper_bound
        value.is_differential_privacy = is_differential_privacy
        value.proved_by = proved_by
        return value

    @property
    def upper(self) -> float:
        """The value as a plain float."""
        return float(self)

    @property
    def is_guarantee(self) -> bool:
        """Whether the value may be reported, or charged to a budget."""
        return self.is_upper_bound and self.is_differential_privacy

    def __iter__(self) -> Iterator[float]:
        return iter((self.lower, self.upper))

    def __getnewargs_ex__(self) -> tuple[tuple[float, float], dict[str, Any]]:
        flags = {
            "is_upper_bound": self.is_upper_bound,
            "is_differential_privacy": self.is_differential_privacy,
            "proved_by": self.proved_by,
        }
        return (self.upper, self.lower), flags

    def __repr__(self) -> str:
        if not self.is_differential_privacy:
            return f"PrivacyValue({self.upper!r}, no differential privacy)"
        if not self.is_upper_bound:
            return f"PrivacyValue({self.upper!r}, no upper bound)"
        return f"PrivacyValue({self.upper!r}, lower={self.lower!r})"

    # numpy and json take a float subclass for a float; printing should too.
    __str__ = float.__repr__


def check_guarantee(name: str, value: float) -> None:
    """Refuse a PrivacyValue that is not a guarantee; accept plain floats."""
    if not isinstance(value, PrivacyValue) or value.is_guarantee:
        return
    if not value.is_differential_privacy:
        reason = "is not about differential privacy: it depends on the given data"
    else:
        reason = (
            "is an estimate or published formula, not an upper bound: the true cost may be larger"
        )
    raise ValueError(
        f"{name}={float(value)!r} {reason}. It cannot be charged or reported as a guarantee; use "
        "an accountant whose results are guarantees, such as PLDAccountant."
    )


Interval = tuple[float, float]


class Proved(tuple[float, float]):
    """Lower and upper bound, with the method that proved each."""

    by: tuple[str, str]

    def __new__(cls, interval: Interval, by: tuple[str, str]) -> Self:
        """Store the names with the bounds."""
        value = super().__new__(cls, interval)
        value.by = by
        return value


def named(interval: Interval, name: str) -> Proved:
    """Return an interval with both bounds proved by one method."""
    return Proved(interval, (name, name))


def provers(interval: Interval) -> tuple[str, str]:
    """Return the methods that proved each bound; empty if unknown."""
    return interval.by if isinstance(interval, Proved) else ("", "")


def meet(known: Interval, found: Interval) -> Proved:
    """Return the intersection of two intervals for the same number."""
    # If it is empty, one interval is wrong: warn, and cover both.
    lower = found if found[0] > known[0] else known
    upper = found if found[1] < known[1] else known
    if lower[0] > upper[1]:
        warn_of_contradiction(Proved((lower[0], upper[1]), (provers(lower)[0], provers(upper)[1])))
        lower, upper = upper, lower
    return Proved((lower[0], upper[1]), (provers(lower)[0], provers(upper)[1]))


def warn_of_contradiction(interval: Interval) -> None:
    """Warn that a lower bound exceeds an upper one."""
    lower, upper = interval
    below, above = provers(interval)
    warnings.warn(
        f"Two bounds on the same privacy cost contradict each other: at least {lower!r} by "
        f"{below or 'one method'}, at most {upper!r} by {above or 'another'}. One is wrong; the "
        "larger one is returned. Please report this bug.",
        ContradictionWarning,
        stacklevel=2,
    )


def is_narrow(interval: Interval, rtol: float, smallest: float = 0.0) -> bool:
    """Return whether bounds are relatively close and finite."""
    lower, upper = interval
    return math.isfinite(upper) and upper - lower <= rtol * max(upper, smallest)


_NARROW = 1e-3  # relative width of intervals with stored lower bounds


def note_certified(
    counts: Mapping[Event, int], adjacency: Adjacency, delta: float, epsilon: Interval
) -> None:
    """Store the lower bound of a narrow interval."""
    if 0.0 < epsilon[0] <= epsilon[1] and is_narrow(epsilon, _NARROW):
        _cell(frozenset(counts.items()), adjacency, delta)[:] = [epsilon[0]]


def certified_epsilon(
    counts: Mapping[Event, int], adjacency: Adjacency, delta: float
) -> float | None:
    """Return the stored lower bound for some leaves, or None."""
    kept = _cell(frozenset(counts.items()), adjacency, delta)
    return kept[0] if kept else None


@lru_cache(maxsize=512)
def _cell(leaves: frozenset[tuple[Event, int]], adjacency: Adjacency, delta: float) -> list[float]:
    return []
