"""The Renyi filter: divergences at one order, fixed when the budget is created."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics.floats import float_up
from skdp.accounting.numerics.order_conversion import pure_at_order
from skdp.budget.currencies._curved import CurvedFilter, slack_of_one
from skdp.budget.currencies._orders import best_order, conversion
from skdp.budget.currencies._renyi_costs import at_order, total
from skdp.budget.currencies.base import Amounts, Charge
from skdp.choices import Adjacency

_TYPICAL_EPSILON = 1.0  # for which the order of a budget without limit is chosen


class RDPFilter(CurvedFilter):
    """Add up Renyi divergences of one order: cheapest for many sampled Gaussian releases."""

    # A release costs ``(r, d)`` if, but for a part of probability d, its Renyi divergence of this
    # order is at most r in both orders of two neighbours. Adding up at one order is valid with
    # parameters chosen on the way (Theorem 8 of the page); to go on as long as some order has room
    # left is not, at the same delta. Sampled Gaussian releases need no conversion. A release of
    # which only (epsilon, delta) is known has the divergence of randomised response, but for a part
    # of probability delta (Kairouz, Oh and Viswanath, 2015). What is left after little is spent is
    # more than it seems: at one order, the first releases are the most expensive.

    name = "rdp"
    units = ("divergence", "slack")

    def __init__(self, epsilon: float, delta: float, adjacency: Adjacency) -> None:
        super().__init__(epsilon, delta, adjacency)
        if math.isinf(self.epsilon):
            self._most(_TYPICAL_EPSILON)
        self.mu_squared = 2 / Fraction(self.order)
        self._rule = at_order(self.order)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        per_square = 1 / self.mu_squared
        return tuple(total(charge.event, self.adjacency, slack, self._rule, per_square))

    def _most(self, epsilon: float) -> Fraction:
        self.order, room = best_order(epsilon, self._curve)
        return Fraction(room)

    def _epsilon(self, amount: Fraction) -> float:
        epsilon = float_up(amount) + conversion(self.order, self._curve)
        return max(0.0, math.nextafter(epsilon, math.inf))

    def _pure(self, epsilon: Fraction) -> Fraction:
        return pure_at_order(epsilon, self.order)
