"""The filter of two coordinates: squares of mu for Gaussian noise, pairs for the rest."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

from skdp.accounting.analysis import analysis_of, exact_sum, square_of
from skdp.accounting.events import leaf_counts
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import (
    decimal_up,
    float_up,
    narrow_bracket,
    read_decimal,
    round_up,
)
from skdp.base.parameters import Adjacency
from skdp.budget.currencies.base import (
    Amounts,
    BudgetFilter,
    Charge,
    Limits,
    add,
    as_float,
    pair_of,
)
from skdp.budget.currencies.filters import (
    gaussian_pair,
    largest_pure,
    root_up,
    slack_of_one,
    split_delta,
)
from skdp.budget.currencies.gaussian import approximate_gaussian, mu_squared_of_pure
from skdp.budget.currencies.profiles import decimal_down, float_down, shorten
from skdp.exceptions import UnsupportedEventError

_ROUND_UP = 1.0 + 2.0**-48  # relative: two terms, and two weights of a few units of rounding
_RTOL = 1e-13  # of roots
_LARGEST = 700.0  # beyond which exponentials overflow


def box_delta(epsilon: Fraction, mu: float, stated: Fraction) -> float:
    """Bound delta of a ``mu``-GDP with a ``stated``-DP release, for ``epsilon >= stated``."""
    # Their product is dominated by a Gaussian loss plus or minus ``stated``: (4) of the page.
    if mu == 0.0:
        return 0.0
    shift = min(float_up(stated), _LARGEST)
    near = gaussian_profile.delta(mu, float_down(epsilon - stated))
    far = gaussian_profile.delta(mu, float_down(epsilon + stated))
    return _ROUND_UP * (near / (1.0 + math.exp(-shift)) + far / (1.0 + math.exp(shift)))


def box_epsilon(mu: float, stated: Fraction, delta: float) -> float:
    """Return an upper bound on epsilon at delta, at least ``stated``."""
    low, width = float_up(stated), gaussian_profile.epsilon(mu, delta)
    if not math.isfinite(low + width):
        return math.inf

    def excess(more: float) -> float:
        return _excess(Fraction(low + more), mu, stated, delta)

    if excess(0.0) <= 0.0:
        return low
    while math.isfinite(low + width) and excess(width) > 0.0:
        width *= 1.01
    if not math.isfinite(low + width):
        return math.inf
    return low + narrow_bracket(excess, 0.0, width, _RTOL)[1]


def largest_mu(epsilon: Fraction, stated: Fraction, delta: float) -> float:
    """Return a lower bound on the mu at which `box_delta` is delta, or 0."""
    if stated >= epsilon or delta <= 0.0:
        return 0.0
    # Near is at least half of it.
    high = 1.01 * gaussian_profile.mu(float_down(epsilon - stated), min(0.5, 2.0 * delta))
    if _excess(epsilon, high, stated, delta) <= 0.0:
        return high
    return narrow_bracket(lambda mu: -_excess(epsilon, mu, stated, delta), 0.0, high, _RTOL)[0]


def _excess(epsilon: Fraction, mu: float, stated: Fraction, delta: float) -> float:
    """Return the logarithm of the profile over delta."""
    found = box_delta(epsilon, mu, stated)
    return math.log(found) - math.log(delta) if found > 0.0 else -math.inf


# Of delta; the proof page shows what other shares cost.
_STATED = Fraction(1, 4)  # for deltas of releases
_GAUSSIAN = Fraction(1, 2)  # for the box without stated epsilons
_STEPS = 6  # sixths of epsilon: those between 0 and 1 have a box each and share the rest


class MixedFilter(BudgetFilter):
    """Add up squares of mu, stated epsilons and deltas: for fits, searches and counts."""

    # A release costs ``(mu^2, 0, d)`` if it is mu-GDP except with probability d, or ``(0, e, d)``
    # if it is (e, d)-DP, whichever coordinate has room for more of its kind. Sums that stay within
    # a box ``(M^2, E, s)`` have ``delta(eps) <= s + p delta_G(eps - E; M) + (1 - p)
    # delta_G(eps + E; M)`` with ``p = 1/(1 + e^-E)``. Several boxes share delta: half of it is for
    # the one with ``E = 0``, which costs a study of Gaussian fits some 3 % of its epsilon. The one
    # with ``E = epsilon`` needs none. Accepting every release that leaves the profile below delta
    # would not be a filter: see the proof page, section 8.

    name = "mixed"
    units = ("mu squared", "epsilon", "delta")

    def __init__(
        self,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        stated_epsilon: float | None = None,
    ) -> None:
        super().__init__(epsilon, delta, adjacency)
        part = None if stated_epsilon is None else as_float(stated_epsilon)
        if part is not None and not 0.0 <= part <= self.epsilon < math.inf:
            raise ValueError(
                f"stated_epsilon must be between 0 and a finite epsilon={epsilon!r}, got "
                f"{stated_epsilon!r}."
            )
        self._curve, failure = split_delta(self, _STATED)
        if math.isinf(self.epsilon):
            self.boxes = ((None, None, failure),)
            return
        total = read_decimal(self.epsilon)
        steps = [total * step / _STEPS for step in range(_STEPS + 1)]
        parts = steps if part is None else [read_decimal(part)]
        shares = [self._share(each, len(parts)) for each in parts]
        self.boxes = tuple(
            (Fraction(largest_mu(total, each, share)) ** 2, each, failure)
            for each, share in zip(parts, shares, strict=True)
        )

    def curve(self, spent: Amounts) -> tuple[Fraction, Fraction, Fraction] | None:
        """Return a pair of releases that dominates everything granted."""
        return spent[0], spent[1], spent[2]

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[2], spent[2])
        try:
            square, failure = approximate_gaussian(charge.event, self.adjacency, slack)
            gaussian: list[Amounts] = [(square, Fraction(0), failure)]
        except UnsupportedEventError:
            gaussian = []
        if gaussian and self.fits(spent, gaussian[0]):
            if charge.epsilon is None and square_of(charge.event, self.adjacency) is not None:
                return gaussian[0]
            claim = self._claim(charge)
            if claim is not None and self._prefer([*gaussian, claim], spent) == gaussian[0]:
                return gaussian[0]  # the pair need not be proved
        apart = self._apart(charge, spent)
        counted = bool(apart) and apart[0][2] < 1
        stated = Charge(charge.event, None, decimal_down(apart[0][2])) if counted else charge
        found = gaussian + self._leaves(charge) + apart + self._pairs(stated, spent, slack)
        if not found:
            approximate_gaussian(charge.event, self.adjacency, slack)  # names the remedy
        fitting = [cost for cost in found if self.fits(spent, cost)]
        if apart and fitting and math.isfinite(self.epsilon):
            # For a plan, choose the cost that leaves most room for it and for its single parts.
            def room(cost: Amounts) -> Fraction | float:
                after = add(spent, cost)
                return min(self._repeats(after, cost), self._repeats(after, apart[0]))

            return max(fitting, key=room)
        return self._prefer(found, spent)

    def _claim(self, charge: Charge) -> Amounts | None:
        """Return the cost of a charge by its stated pair, proved or not."""
        if charge.epsilon is not None:
            return Fraction(0), read_decimal(charge.epsilon), read_decimal(charge.delta or 0.0)
        pair = exact_sum(charge.event, self.adjacency, read_decimal)
        return None if pair is None else (Fraction(0), *pair)

    def _leaves(self, charge: Charge) -> list[Amounts]:
        """Return the cost of a composition of Gaussian leaves and leaves that state a pair."""
        square, epsilon, failure = Fraction(0), Fraction(0), Fraction(0)
        for leaf, count in leaf_counts(charge.event).items():
            card = analysis_of(leaf, self.adjacency)
            one, pair = card.mu_squared(), card.stated(read_decimal)
            if one is not None:
                square += count * one
            elif pair is not None:
                epsilon, failure = epsilon + count * pair[0], failure + count * pair[1]
            else:
                return []
        both = square and epsilon
        return [(round_up(square), shorten(epsilon), shorten(failure))] if both else []

    def _apart(self, charge: Charge, spent: Amounts) -> list[Amounts]:
        """Return the total cost of the parts of a plan, one after the other."""
        after = spent
        with suppress(UnsupportedEventError):
            for part in charge.parts:
                after = add(after, self._price(part, after))
            cost = tuple(b - a for a, b in zip(spent, after, strict=True))
            return [cost] if charge.parts else []
        return []

    def _pairs(self, charge: Charge, spent: Amounts, slack: float) -> list[Amounts]:
        """Return the cost by the stated pair and, for a large delta, by one with less delta."""
        found: list[Amounts] = []
        left = self.limits[2] - spent[2]  # type: ignore[operator]
        for one in (charge, Charge(charge.event, None, slack)):
            with suppress(UnsupportedEventError, ValueError):
                epsilon, failure = pair_of(one, self.adjacency)
                found.append((Fraction(0), shorten(epsilon), shorten(failure)))
                if 2 * failure <= left:
                    break
        return found

    def _prefer(self, costs: list[Amounts], spent: Amounts) -> Amounts:
        """Return the first of the costs that fit most often."""
        if math.isinf(self.epsilon):
            return min(costs, key=lambda cost: self._guarantee(add(spent, cost))[0])

        # If delta is scarcest, the costs in it are equal and the other units decide.
        def often(cost: Amounts) -> tuple[Fraction | float, ...]:
            without_delta = (*cost[:2], Fraction(0))
            return self._repeats(spent, cost), self._repeats(spent, without_delta)

        return max(costs, key=often)

    def _repeats(self, spent: Amounts, cost: Amounts) -> Fraction | float:
        """Return the number of times that a cost fits, in the box with most room for it."""
        return max((_times(box, spent, cost) for box in self.holding(spent)), default=0.0)

    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        square, epsilon, failure = spent
        if square == 0:
            return decimal_up(epsilon), decimal_up(failure)
        holding = self.holding(spent) or [self.limits]
        curve = self._share(holding[0][1], len(self.boxes))
        return box_epsilon(root_up(square), epsilon, curve), float_up(Fraction(curve) + failure)

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        square, epsilon, failure = (amount / fits for amount in left)
        pair = decimal_down(epsilon), decimal_down(failure)
        if mechanism == "any":
            pure = largest_pure(mu_squared_of_pure, square) if square else 0.0
            return max(pair[0], pure), pair[1]
        noise = gaussian_pair(square, self.delta) if square else (0.0, 0.0)
        return max(noise, pair) if pair[1] > 0.0 else noise

    def _share(self, stated: Fraction | None, boxes: int) -> float:
        """Return the delta of the box with a given limit of stated epsilons."""
        if boxes == 1:
            return self._curve
        share = _GAUSSIAN if stated == 0 else (1 - _STATED - _GAUSSIAN) / (_STEPS - 1)
        return float_down(read_decimal(self.delta) * share)


def _times(box: Limits, spent: Amounts, cost: Amounts) -> Fraction | float:
    """Return the number of times that a cost fits in a box."""
    return min(
        (
            (limit - used) / more
            for limit, used, more in zip(box, spent, cost, strict=True)
            if limit is not None and more > 0
        ),
        default=math.inf,
    )
