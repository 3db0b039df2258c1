"""The contract that every filter keeps, and the pair that a charge stands for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, ClassVar

from skdp.accounting import Event
from skdp.accounting.analysis import Guarantee, analysis_of, exact_sum
from skdp.accounting.events import leaf_counts
from skdp.accounting.numerics.arithmetic import float_up, read_decimal, round_up
from skdp.accounting.value import check_guarantee
from skdp.base.parameters import Adjacency
from skdp.budget.currencies.profiles import float_down, is_certified, profile_of
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms.contribution import ADJACENCIES

Amounts = tuple[Fraction, ...]
Limits = tuple[Fraction | None, ...]

_NEARLY_ALL = 0.9  # of epsilon


@dataclass(frozen=True)
class Charge:
    """What is about to be released, in the adjacency of the ledger."""

    event: Event
    epsilon: float | None = None
    delta: float | None = None
    parts: tuple[Charge, ...] = ()  # of a plan: together they are the event

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise TypeError(f"Charge: event must be an Event, got {self.event!r}.")
        for name, upper in (("epsilon", math.inf), ("delta", 1.0)):
            value = getattr(self, name)
            if value is None:
                continue
            if not _is_number(value):
                raise TypeError(f"Charge: {name} must be a real number, got {value!r}.")
            check_guarantee(name, value)
            if not 0.0 <= float(value) < upper:
                raise ValueError(f"Charge: {name} must lie in [0, {upper:g}), got {value!r}.")
            object.__setattr__(self, name, float(value))


class BudgetFilter(ABC):
    """Decide which releases still fit a budget, when each may depend on all earlier results."""

    # A filter has a currency of two or three units. Every release has a price in it, prices add up,
    # and a release is granted as long as no sum exceeds its limit. What is granted is then
    # (epsilon, delta)-DP as a whole, however releases and their parameters were chosen on the way
    # (Rogers, Roth, Ullman and Vadhan, 2016). Theorems 6 to 9 and 15 of
    # ``docs/proofs/budget_filters.md``.

    name: ClassVar[str]
    needs_pairs: ClassVar[bool] = False  # whether every charge is counted as a pair
    units: tuple[str, ...]
    # Sums must keep within one of the boxes; a first release may take the last one whole.
    boxes: tuple[Limits, ...]

    def __init__(self, epsilon: float, delta: float, adjacency: Adjacency) -> None:
        self.epsilon, self.delta = as_float(epsilon), as_float(delta)
        self.adjacency: Adjacency = adjacency
        if not self.epsilon > 0.0:
            raise ValueError(f"epsilon must be a positive number, got {epsilon!r}.")
        if not 0.0 <= self.delta < 1.0:
            raise ValueError(f"delta must be a number in [0, 1), got {delta!r}.")
        if adjacency not in ADJACENCIES:
            raise ValueError(f"adjacency must be one of {ADJACENCIES}, got {adjacency!r}.")

    @property
    def limits(self) -> Limits:
        """The last box."""
        return self.boxes[-1]

    @property
    def nothing(self) -> Amounts:
        """The cost of nothing."""
        return (Fraction(0),) * len(self.units)

    def price(self, charge: Charge, spent: Amounts, known: bool = True) -> Amounts:
        """Return what a charge costs, given what is spent already.

        One that stands for others, of the same pair, is not known to be what takes all.
        """
        # While nothing is spent, a release that has the budget's epsilon and delta by itself, and
        # not nine tenths of that epsilon, costs the whole budget if it would otherwise cost more.
        cost = self._price(charge, spent)
        if any(spent) or self.fits(spent, cost) or math.isinf(self.epsilon) or not known:
            return cost
        if self._takes_all(charge.event):
            return tuple(limit for limit in self.limits if limit is not None)
        return cost

    def fits(self, spent: Amounts, cost: Amounts) -> bool:
        """Tell whether a cost fits what is left, exactly."""
        return bool(self.holding(add(spent, cost)))

    def holding(self, spent: Amounts) -> list[Limits]:
        """Return the boxes that hold what is spent."""
        return [
            box
            for box in self.boxes
            if all(most is None or used <= most for most, used in zip(box, spent, strict=True))
        ]

    def guarantee(self, spent: Amounts) -> tuple[float, float]:
        """Return the (epsilon, delta) that what was granted so far amounts to, rounded up."""
        # For any amounts fixed in advance, all that was granted before they were exceeded has this.
        if not any(spent):
            return 0.0, 0.0
        if self.is_spent(spent):
            return self.epsilon, self.delta
        epsilon, delta = self._guarantee(spent)
        if not self.fits(spent, self.nothing):
            return epsilon, min(delta, 1.0)
        return min(epsilon, self.epsilon), min(delta, self.delta)

    def reachable(self, spent: Amounts) -> Limits:
        """Return, unit by unit, the largest sum that could still be reached."""
        columns = zip(*self.holding(spent), strict=True)
        most = [None if None in column else max(column) for column in columns]
        return tuple(most or spent)

    def write_limits(self) -> dict[str, Any]:
        """Return what the first row of a ledger says of units and limits."""
        boxes = [[None if most is None else str(most) for most in box] for box in self.boxes]
        return {"units": list(self.units), "limits": boxes[-1], "boxes": boxes}

    def adopt_limits(self, row: Mapping[str, Any]) -> bool:
        """Take the limits of a ledger's first row; tell whether they are those of this version."""
        # Computed limits may differ in the last digit between machines: those of the creation
        # count.
        boxes = tuple(
            tuple(None if text is None else Fraction(text) for text in box)
            for box in row.get("boxes", [row["limits"]])
        )
        if list(self.units) != row["units"] or not _are_close(boxes, self.boxes):
            return False
        self.boxes = boxes
        return True

    def is_spent(self, spent: Amounts) -> bool:
        """Tell whether all of the budget is spent, maybe by one release that took it whole."""
        # The budget's pair is all that is promised then: such a release need not lie below the
        # filter's curve.
        return tuple(spent) == self.limits

    def curve(self, spent: Amounts) -> tuple[Fraction, Fraction, Fraction] | None:
        """Return ``mu^2, e, d`` if mu-GDP and (e, d)-DP releases side by side dominate all."""
        return None

    def remaining(self, spent: Amounts) -> tuple[float, float]:
        """Return the (epsilon, delta) of the largest single release that would still fit."""
        # A Gaussian one, unless all are counted as pairs; zeros if nothing would fit.
        if math.isinf(self.epsilon):
            return math.inf, self.delta
        try:
            return self.allocate(spent, 1)
        except BudgetExceededError:
            return 0.0, 0.0

    def allocate(
        self, spent: Amounts, fits: int, mechanism: str = "gaussian"
    ) -> tuple[float, float]:
        """Return the (epsilon, delta) with each of which a number of releases are granted."""
        # "gaussian": releases whose noise has the exact scale for the pair. "any": nothing but the
        # pair is known of them.
        if isinstance(fits, bool) or not isinstance(fits, Integral) or fits < 1:
            raise ValueError(f"fits must be an integer >= 1, got {fits!r}.")
        if mechanism not in ("gaussian", "any"):
            raise ValueError(f"mechanism must be 'gaussian' or 'any', got {mechanism!r}.")
        if math.isinf(self.epsilon):
            raise ValueError("allocate divides a finite budget, and epsilon is infinite here.")
        if fits == 1 and not any(spent):
            return self.epsilon, self.delta
        left = self._left(spent)
        needs_delta = self.limits[-1] != 0 and (mechanism == "any" or left[0] == 0)
        if not any(left[:-1]) or (needs_delta and left[-1] == 0):
            raise BudgetExceededError(
                f"Nothing is left to divide among {fits} releases: end here, or start a budget for "
                f"other records. Left of {', '.join(self.units)}: "
                f"{', '.join(f'{float_up(x):.3g}' for x in left)}."
            )
        return self._allocate(left, int(fits), mechanism)

    def _takes_all(self, event: Event) -> bool:
        """Tell whether an event by itself is what the budget allows, and not much less."""
        # Much cheaper ones are refused rather than charged with everything: charges are for ever.
        if not is_certified(event, self.adjacency, self.epsilon, self.delta):
            return False
        return not is_certified(event, self.adjacency, _NEARLY_ALL * self.epsilon, self.delta)

    def _left(self, spent: Amounts) -> Amounts:
        """Return what is left in each unit of a limited budget."""
        return tuple(
            max(Fraction(0), (limit if limit is not None else before) - before)
            for before, limit in zip(spent, self.reachable(spent), strict=True)
        )

    @abstractmethod
    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        """Return what a charge costs by the rule of this currency."""

    @abstractmethod
    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        """Return an upper bound on what a positive cost amounts to."""

    @abstractmethod
    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        """Divide what is left among equal releases."""


def add(spent: Amounts, cost: Amounts) -> Amounts:
    """Return the sums unit by unit."""
    return tuple(before + more for before, more in zip(spent, cost, strict=True))


def as_float(value: Any) -> float:
    """Return a real number as a float, and what is none, or beyond floats, as "not a number"."""
    try:
        return float(value) if _is_number(value) else math.nan
    except OverflowError:
        return math.nan


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _are_close(boxes: tuple[Limits, ...], others: tuple[Limits, ...]) -> bool:
    """Tell whether limits differ by the rounding of different machines at most."""
    if [len(box) for box in boxes] != [len(box) for box in others]:
        return False
    return all(
        limit is other
        if limit is None or other is None
        else abs(limit - other) <= limit * Fraction(1, 10**9)
        for box, known in zip(boxes, others, strict=True)
        for limit, other in zip(box, known, strict=True)
    )


_ROUNDING = 1.01  # by how much a stated delta may be short of the proved one


def pair_of(charge: Charge, adjacency: Adjacency) -> Guarantee:
    """Return an (epsilon, delta) that a charge's event is proved to have."""
    event = charge.event
    if charge.epsilon is None and charge.delta is None:
        known = exact_sum(event, adjacency, read_decimal)
        if known is None:
            raise ValueError(
                f"This budget counts pairs (epsilon, delta), and {event!r} has a whole curve of "
                "them. Give the charge a delta, or an epsilon and a delta, to say which."
            )
        return known
    if charge.epsilon is None:
        assert charge.delta is not None
        epsilon = profile_of(event, adjacency, 1e-3).reach(float_down(read_decimal(charge.delta)))
        if math.isinf(epsilon):
            raise ValueError(f"{event!r} has no finite epsilon at delta={charge.delta!r}.")
        return Guarantee(round_up(Fraction(epsilon)), read_decimal(charge.delta))
    epsilon_typed = read_decimal(charge.epsilon)
    if charge.delta is not None and is_certified(event, adjacency, charge.epsilon, charge.delta):
        return Guarantee(epsilon_typed, read_decimal(charge.delta))
    known = exact_sum(event, adjacency, read_decimal)
    if charge.delta is None and known is not None and known[0] <= epsilon_typed:
        return Guarantee(epsilon_typed, known.delta)
    proved = profile_of(event, adjacency, 1e-3).delta(float_down(epsilon_typed))
    if charge.delta is not None and not proved <= _ROUNDING * charge.delta:
        raise ValueError(
            f"{event!r} is stated to be ({charge.epsilon!r}, {charge.delta!r})-DP, but at this "
            f"epsilon only delta={proved:.6g} is proved. State a pair that the event has, or leave "
            "epsilon out to have it derived from delta."
        )
    return Guarantee(epsilon_typed, round_up(Fraction(proved)))


def pairs_of_parts(charge: Charge, adjacency: Adjacency) -> list[tuple[Guarantee, int]]:
    """Return the pairs of a charge's parts, and how often each is there."""
    if charge.epsilon is None and charge.delta is None:
        parts = [
            (analysis_of(leaf, adjacency).stated(read_decimal), count)
            for leaf, count in leaf_counts(charge.event).items()
        ]
        if all(pair is not None for pair, _ in parts):
            return [(pair, count) for pair, count in parts if pair is not None]
    return [(pair_of(charge, adjacency), 1)]
