"""The filter for approximate differential privacy: squares of epsilons add up, and deltas."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics.floats import float_up
from skdp.budget.currencies._curved import CurvedFilter
from skdp.budget.currencies._orders import best_order, zcdp_epsilon
from skdp.budget.currencies.base import Amounts, Charge
from skdp.budget.currencies.exact import shorten
from skdp.budget.currencies.pairs import pairs_of_parts


class ApproxFilter(CurvedFilter):
    """Add up squares of epsilons, and deltas: advanced composition with free parameters."""

    # Whitehouse, Ramdas, Rogers and Wu (2023), Theorem 1, is Theorem 9 of the page. The limit here
    # is a little larger: it comes from the tighter conversion of Canonne, Kamath and Steinke
    # (2020).

    name = "approx"
    units = ("epsilon squared", "delta")
    needs_pairs = True
    share = Fraction(1, 2)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        square, failure = Fraction(0), Fraction(0)
        for (epsilon, delta), count in pairs_of_parts(charge, self.adjacency):
            square += count * epsilon**2
            failure += count * delta
        return shorten(square), shorten(failure)

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        return super()._allocate(left, fits, "any")  # all are counted as pairs

    def _most(self, epsilon: float) -> Fraction:
        order, divergence = best_order(epsilon, self._curve)
        return Fraction(math.nextafter(2.0 * divergence / order, 0.0))

    def _epsilon(self, amount: Fraction) -> float:
        return zcdp_epsilon(float_up(amount / 2), self._curve)

    def _pure(self, epsilon: Fraction) -> Fraction:
        return epsilon**2
