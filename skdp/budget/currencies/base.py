"""The interface of all filters, and the (epsilon, delta) of a charge."""

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
    """A release to charge, under the adjacency of the ledger."""

    event: Event
    epsilon: float | None = None
    delta: float | None = None
    parts: tuple[Charge, ...] = ()  # of a plan: together they form the event

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
                raise ValueError(f"Charge: {name} must be in [0, {upper:g}), got {value!r}.")
            object.__setattr__(self, name, float(value))


class BudgetFilter(ABC):
    """Decide which releases still fit a budget if each may depend on all earlier results."""

    # A filter counts in two or three units. Every release has a price in them, prices add up, and a
    # release is granted if no sum exceeds its limit. The granted releases together are then
    # (epsilon, delta)-DP, even if releases and their parameters depend on earlier results
    # (Rogers, Roth, Ullman and Vadhan, 2016). Theorems 6 to 9 and 15 of
    # ``docs/proofs/budget_filters.md``.

    name: ClassVar[str]
    needs_pairs: ClassVar[bool] = False  # whether every charge is counted as a pair
    units: tuple[str, ...]
    # Sums must stay within one of the boxes; a first release may take the entire last one.
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
        """Zero cost."""
        return (Fraction(0),) * len(self.units)

    def price(self, charge: Charge, spent: Amounts, known: bool = True) -> Amounts:
        """Return the cost of a charge, given the spent amounts.

        With ``known=False``, the charge represents others of the same pair and cannot take all.
        """
        # While nothing is spent, a release with the budget's epsilon and delta, but not with nine
        # tenths of that epsilon, costs the entire budget if it would otherwise cost more.
        cost = self._price(charge, spent)
        if any(spent) or self.fits(spent, cost) or math.isinf(self.epsilon) or not known:
            return cost
        if self._takes_all(charge.event):
            return tuple(limit for limit in self.limits if limit is not None)
        return cost

    def fits(self, spent: Amounts, cost: Amounts) -> bool:
        """Return whether a cost fits the remaining budget, exactly."""
        return bool(self.holding(add(spent, cost)))

    def holding(self, spent: Amounts) -> list[Limits]:
        """Return the boxes that contain the spent amounts."""
        return [
            box
            for box in self.boxes
            if all(most is None or used <= most for most, used in zip(box, spent, strict=True))
        ]

    def guarantee(self, spent: Amounts) -> tuple[float, float]:
        """Return the (epsilon, delta) of everything granted so far, rounded up."""
        # For any amounts fixed in advance, everything granted before they were exceeded has it.
        if not any(spent):
            return 0.0, 0.0
        if self.is_spent(spent):
            return self.epsilon, self.delta
        epsilon, delta = self._guarantee(spent)
        if not self.fits(spent, self.nothing):
            return epsilon, min(delta, 1.0)
        return min(epsilon, self.epsilon), min(delta, self.delta)

    def reachable(self, spent: Amounts) -> Limits:
        """Return, for each unit, the largest sum that can still be reached."""
        columns = zip(*self.holding(spent), strict=True)
        most = [None if None in column else max(column) for column in columns]
        return tuple(most or spent)

    def write_limits(self) -> dict[str, Any]:
        """Return units and limits for the first row of a ledger."""
        boxes = [[None if most is None else str(most) for most in box] for box in self.boxes]
        return {"units": list(self.units), "limits": boxes[-1], "boxes": boxes}

    def adopt_limits(self, row: Mapping[str, Any]) -> bool:
        """Use the limits of a ledger's first row; return whether they are those of this version."""
        # Computed limits may differ in the last digit between machines; the recorded ones apply.
        boxes = tuple(
            tuple(None if text is None else Fraction(text) for text in box)
            for box in row.get("boxes", [row["limits"]])
        )
        if list(self.units) != row["units"] or not _are_close(boxes, self.boxes):
            return False
        self.boxes = boxes
        return True

    def is_spent(self, spent: Amounts) -> bool:
        """Return whether the entire budget is spent, maybe by one release."""
        # Then only the budget's pair is guaranteed: such a release may be above the filter's curve.
        return tuple(spent) == self.limits

    def curve(self, spent: Amounts) -> tuple[Fraction, Fraction, Fraction] | None:
        """Return ``mu^2, e, d`` if a mu-GDP and an (e, d)-DP release together dominate all."""
        return None

    def remaining(self, spent: Amounts) -> tuple[float, float]:
        """Return the (epsilon, delta) of the largest single release that would still fit."""
        # It is Gaussian unless all are counted as pairs; zeros if nothing fits.
        if math.isinf(self.epsilon):
            return math.inf, self.delta
        try:
            return self.allocate(spent, 1)
        except BudgetExceededError:
            return 0.0, 0.0

    def allocate(
        self, spent: Amounts, fits: int, mechanism: str = "gaussian"
    ) -> tuple[float, float]:
        """Return the (epsilon, delta) per release at which a number of releases are granted."""
        # "gaussian": releases with the exact noise for the pair. "any": only the pair is known.
        if isinstance(fits, bool) or not isinstance(fits, Integral) or fits < 1:
            raise ValueError(f"fits must be an integer >= 1, got {fits!r}.")
        if mechanism not in ("gaussian", "any"):
            raise ValueError(f"mechanism must be 'gaussian' or 'any', got {mechanism!r}.")
        if math.isinf(self.epsilon):
            raise ValueError("allocate requires a finite budget, got epsilon=inf.")
        if fits == 1 and not any(spent):
            return self.epsilon, self.delta
        left = self._left(spent)
        needs_delta = self.limits[-1] != 0 and (mechanism == "any" or left[0] == 0)
        if not any(left[:-1]) or (needs_delta and left[-1] == 0):
            raise BudgetExceededError(
                f"No budget is left for {fits} releases: end the study, or start a budget for "
                f"other records. Remaining {', '.join(self.units)}: "
                f"{', '.join(f'{float_up(x):.3g}' for x in left)}."
            )
        return self._allocate(left, int(fits), mechanism)

    def _takes_all(self, event: Event) -> bool:
        """Return whether an event needs the entire budget, and not much less."""
        # Much cheaper ones are refused, not charged with everything: charges are permanent.
        if not is_certified(event, self.adjacency, self.epsilon, self.delta):
            return False
        return not is_certified(event, self.adjacency, _NEARLY_ALL * self.epsilon, self.delta)

    def _left(self, spent: Amounts) -> Amounts:
        """Return the remaining amount in each unit of a limited budget."""
        return tuple(
            max(Fraction(0), (limit if limit is not None else before) - before)
            for before, limit in zip(spent, self.reachable(spent), strict=True)
        )

    @abstractmethod
    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        """Return the cost of a charge by this composition rule."""

    @abstractmethod
    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        """Return an upper bound on the (epsilon, delta) of a positive cost."""

    @abstractmethod
    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        """Divide the remaining amounts among equal releases."""


def add(spent: Amounts, cost: Amounts) -> Amounts:
    """Return the sums for each unit."""
    return tuple(before + more for before, more in zip(spent, cost, strict=True))


def as_float(value: Any) -> float:
    """Return a real number as a float; anything else, or beyond floats, as "not a number"."""
    try:
        return float(value) if _is_number(value) else math.nan
    except OverflowError:
        return math.nan


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _are_close(boxes: tuple[Limits, ...], others: tuple[Limits, ...]) -> bool:
    """Return whether limits differ at most by rounding on different machines."""
    if [len(box) for box in boxes] != [len(box) for box in others]:
        return False
    return all(
        limit is other
        if limit is None or other is None
        else abs(limit - other) <= limit * Fraction(1, 10**9)
        for box, known in zip(boxes, others, strict=True)
        for limit, other in zip(box, known, strict=True)
    )


_ROUNDING = 1.01  # factor by which the proved delta may exceed the stated one


def pair_of(charge: Charge, adjacency: Adjacency) -> Guarantee:
    """Return a proved (epsilon, delta) of a charge's event."""
    event = charge.event
    if charge.epsilon is None and charge.delta is None:
        known = exact_sum(event, adjacency, read_decimal)
        if known is None:
            raise ValueError(
                f"This budget adds up pairs (epsilon, delta), and {event!r} has a curve of them. "
                "Set delta of the charge, or epsilon and delta, to select a pair."
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
            f"epsilon only delta={proved:.6g} is proved. State a pair that the event has, or omit "
            "epsilon to have it computed from delta."
        )
    return Guarantee(epsilon_typed, round_up(Fraction(proved)))


def pairs_of_parts(charge: Charge, adjacency: Adjacency) -> list[tuple[Guarantee, int]]:
    """Return the pairs of a charge's parts, with their counts."""
    if charge.epsilon is None and charge.delta is None:
        parts = [
            (analysis_of(leaf, adjacency).stated(read_decimal), count)
            for leaf, count in leaf_counts(charge.event).items()
        ]
        if all(pair is not None for pair, _ in parts):
            return [(pair, count) for pair, count in parts if pair is not None]
    return [(pair_of(charge, adjacency), 1)]
