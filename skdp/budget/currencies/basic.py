"""The basic filter: epsilons add up, and deltas."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics.floats import decimal_up, read_decimal
from skdp.budget.currencies.base import Amounts, BudgetFilter, Charge
from skdp.budget.currencies.exact import decimal_down, shorten
from skdp.budget.currencies.pairs import pair_of
from skdp.choices import Adjacency


class BasicFilter(BudgetFilter):
    """Add up epsilons and deltas: the only filter for pure differential privacy."""

    # Valid with parameters chosen on the way: Rogers, Roth, Ullman and Vadhan (2016), Theorem 3.6.
    # Numbers that were typed are taken as written in decimal, so that a hundred charges of 0.01 use
    # up a budget of 1 and nothing is lost to rounding.

    name = "basic"
    needs_pairs = True
    units = ("epsilon", "delta")

    def __init__(self, epsilon: float, delta: float, adjacency: Adjacency) -> None:
        super().__init__(epsilon, delta, adjacency)
        most = None if math.isinf(self.epsilon) else read_decimal(self.epsilon)
        self.boxes = ((most, read_decimal(self.delta)),)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        epsilon, delta = pair_of(charge, self.adjacency)
        return shorten(epsilon), shorten(delta)

    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        return decimal_up(spent[0]), decimal_up(spent[1])

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        return decimal_down(left[0] / fits), decimal_down(left[1] / Fraction(fits))
