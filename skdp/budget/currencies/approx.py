"""The filter for approximate differential privacy: squares of epsilons add up, and deltas."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.budget.currencies._orders import best_order, zcdp_epsilon
from skdp.budget.currencies._pure import largest_pure
from skdp.budget.currencies._split import curve_share
from skdp.budget.currencies.base import Amounts, BudgetFilter, Charge
from skdp.budget.currencies.exact import decimal_down, float_down, float_up, read_decimal, shorten
from skdp.budget.currencies.pairs import pairs_of_parts

_SHARE = Fraction(1, 2)  # of delta, for the deltas of releases


class ApproxFilter(BudgetFilter):
    """Add up squares of epsilons, and deltas: advanced composition with free parameters."""

    # Whitehouse, Ramdas, Rogers and Wu (2023), Theorem 1: releases that are (e_t, d_t)-DP are
    # together (epsilon, d' + sum d_t)-DP as long as ``sqrt(2 log(1/d') sum e_t^2) + sum e_t^2 / 2
    # <= epsilon``, whatever e_t and d_t depend on. The limit here is a little larger: it comes from
    # the tighter conversion of Canonne, Kamath and Steinke (2020).

    name = "approx"
    needs_pairs = True
    units = ("epsilon squared", "delta")

    def __init__(self, epsilon: float, delta: float, adjacency: str) -> None:
        super().__init__(epsilon, delta, adjacency)
        self._curve, slack = curve_share(self.name, self.delta, _SHARE)
        square = None
        if math.isfinite(self.epsilon):
            order, divergence = best_order(float_down(read_decimal(self.epsilon)), self._curve)
            square = Fraction(math.nextafter(2.0 * divergence / order, 0.0))
        self.limits = (square, slack)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        square, failure = Fraction(0), Fraction(0)
        for (epsilon, delta), count in pairs_of_parts(charge, self.adjacency):
            square += count * epsilon**2
            failure += count * delta
        return shorten(square), shorten(failure)

    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        if spent[0] == 0:
            return 0.0, float_up(spent[1])
        epsilon = zcdp_epsilon(float_up(spent[0] / 2), self._curve)
        return epsilon, float_up(Fraction(self._curve) + spent[1])

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        return largest_pure(lambda x: x * x, left[0] / fits), decimal_down(left[1] / fits)
