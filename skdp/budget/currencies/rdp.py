"""The Renyi filter: divergences at one order, fixed when the budget is created."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics.order_conversion import pure_at_order
from skdp.budget.currencies._orders import best_order, conversion
from skdp.budget.currencies._pure import largest_pure
from skdp.budget.currencies._renyi_costs import at_order, total
from skdp.budget.currencies._split import curve_share, gaussian_pair, slack_of_one
from skdp.budget.currencies.base import Amounts, BudgetFilter, Charge
from skdp.budget.currencies.exact import decimal_down, float_down, float_up, read_decimal

_TYPICAL_EPSILON = 1.0  # for which the order of a budget without limit is chosen


class RDPFilter(BudgetFilter):
    """Add up Renyi divergences of one order: cheapest for many sampled Gaussian releases."""

    # A release costs ``(r, d)`` if, but for a part of probability d, its Renyi divergence of this
    # order is at most r in both orders of two neighbours. Adding up at one order is valid with
    # parameters chosen on the way (Feldman and Zrnic, 2021; Lecuyer, 2021); to go on as long as
    # some order has room left is not, at the same delta. Sampled Gaussian releases need no
    # conversion. A release of which only (epsilon, delta) is known has the divergence of randomised
    # response, but for a part of probability delta (Kairouz, Oh and Viswanath, 2015). What is left
    # after little is spent is more than it seems: at one order, the first releases are the most
    # expensive.

    name = "rdp"
    units = ("divergence", "slack")

    def __init__(self, epsilon: float, delta: float, adjacency: str) -> None:
        super().__init__(epsilon, delta, adjacency)
        self._curve, slack = curve_share(self.name, self.delta)
        divergence = None
        if math.isfinite(self.epsilon):
            self.order, room = best_order(float_down(read_decimal(self.epsilon)), self._curve)
            divergence = Fraction(room)
        else:
            self.order, _ = best_order(_TYPICAL_EPSILON, self._curve)
        self.limits = (divergence, slack)
        self._rule = at_order(self.order)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        per_square = Fraction(self.order) / 2
        return tuple(total(charge.event, self.adjacency, slack, self._rule, per_square))

    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        if spent[0] == 0:
            return 0.0, float_up(spent[1])
        epsilon = float_up(spent[0]) + conversion(self.order, self._curve)
        epsilon = max(0.0, math.nextafter(epsilon, math.inf))
        return epsilon, float_up(Fraction(self._curve) + spent[1])

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        if mechanism == "any":
            epsilon = largest_pure(
                lambda epsilon: pure_at_order(epsilon, self.order), left[0] / fits
            )
            return epsilon, decimal_down(left[1] / fits)
        return gaussian_pair(2 * left[0] / fits / Fraction(self.order), self.delta)
