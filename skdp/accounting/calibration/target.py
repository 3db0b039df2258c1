"""A privacy target, what a plan spends of it, and what to say when it cannot be met."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from numbers import Integral, Real

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.registry import resolve_accountant
from skdp.accounting.events import Event
from skdp.choices import Adjacency

_DIGITS = 6  # of the numbers in messages
# A rounded bound on delta may cost a little more than the epsilon it was computed for.
_INFLATIONS = (1.0, 1.0 + 1e-6, 1.0 + 1e-4, 1.01, 2.0)


def check_real(name: str, value: object) -> float:
    """Return a real number as a float, or say which parameter is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r}.")
    return float(value)


def check_positive(name: str, value: object) -> float:
    """Return a finite positive number as a float."""
    number = check_real(name, value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}.")
    return number


def check_rate(name: str, value: object) -> float:
    """Return a number in (0, 1] as a float."""
    number = check_real(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r}.")
    return number


def check_count(name: str, value: object) -> int:
    """Return an integer that is at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}.")
    return int(value)


def round_soundly(value: float, *, up: bool) -> float:
    """Round a positive number to six digits, in the direction that is sound."""
    context = Context(prec=_DIGITS, rounding=ROUND_UP if up else ROUND_DOWN)
    return float(context.create_decimal(Decimal(value)))


@dataclass(frozen=True)
class Target:
    """How much may be spent, and who counts.

    The accountant is the one whose bound must meet epsilon, in nats, at delta.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    accountant: str | type[Accountant]

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        delta = check_real("delta", self.delta)
        if not 0 <= delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta!r}.")
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "accountant", resolve_accountant(self.accountant))

    @classmethod
    def above_zero(
        cls, epsilon: float, delta: float, adjacency: Adjacency, accountant: str | type[Accountant]
    ) -> Target:
        """Return a target for Gaussian noise, which no plan meets at delta zero."""
        if check_real("delta", delta) == 0:
            raise ValueError("delta must lie in the open interval (0, 1), got 0.")
        return cls(epsilon, delta, adjacency, accountant)

    def __str__(self) -> str:
        return f"epsilon={self.epsilon!r} at delta={self.delta!r}"

    def supports(self, event: Event) -> bool:
        """Tell whether the accountant has a bound for the event."""
        return resolve_accountant(self.accountant)(self.adjacency).supports(event)

    def account(self, event: Event) -> Accountant:
        """Return an accountant of the event, or refuse one whose numbers are no guarantee."""
        cls = resolve_accountant(self.accountant)
        accountant = cls(self.adjacency).compose(event)
        if not accountant.is_differential_privacy:
            raise ValueError(
                f"{cls.__name__} ({cls.name!r}) returns numbers that are not differential "
                f"privacy, so nothing can be calibrated to them. Use accountant='pld'."
            )
        if not accountant.is_upper_bound:
            raise ValueError(
                f"{cls.__name__} ({cls.name!r}) returns numbers that are no upper bounds for this "
                f"plan; noise calibrated to them guarantees nothing. Use accountant='pld'."
            )
        return accountant

    def spent(self, event: Event) -> float:
        """Return what the event costs at the target's delta."""
        return self.account(event).epsilon(self.delta).upper

    def affords(self, event: Event) -> bool:
        """Tell whether the event stays within the target."""
        return self.spent(event) <= self.epsilon

    def shorten(self, make_event: Callable[[float], Event], value: float, *, up: bool) -> float:
        """Round a parameter to few digits if that still meets the target."""
        short = round_soundly(value, up=up)
        return short if self.affords(make_event(short)) else value

    def name_nearest(self, event: Event) -> str:
        """Name the nearest targets that the cheapest possible plan meets.

        Each number is rounded up, and so is itself a target that the plan meets.
        """
        accountant = self.account(event)
        found = []
        epsilon = accountant.epsilon(self.delta).upper
        if math.isfinite(epsilon):
            found.append(f"epsilon={round_soundly(epsilon, up=True)!r} at this delta")
        delta = accountant.delta(self.epsilon).upper
        for factor in _INFLATIONS:
            larger = round_soundly(delta * factor, up=True) if delta > 0.0 else 0.0
            if larger < 1.0 and accountant.epsilon(larger) <= self.epsilon:
                found.append(f"delta={larger!r} at this epsilon")
                break
        if not found:
            return "no epsilon at this delta and no delta below 1 at this epsilon is possible"
        return f"the nearest possible {'is' if len(found) == 1 else 'are'} {', or '.join(found)}"
