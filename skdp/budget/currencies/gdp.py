"""The Gaussian filter: squares of mu add up, and so does what is not Gaussian."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies._pure import largest_pure
from skdp.budget.currencies._split import curve_share, gaussian_pair, root_up, slack_of_one
from skdp.budget.currencies.base import Amounts, BudgetFilter, Charge
from skdp.budget.currencies.exact import decimal_down, float_down, float_up, read_decimal
from skdp.budget.currencies.gaussian import approximate_gaussian, mu_squared_of_pure


class GDPFilter(BudgetFilter):
    """Add up squares of mu: exact for Gaussian releases, and open to all others."""

    # A release with ``delta(eps) <= d + (1 - d) delta_G(eps; mu)`` costs ``(mu^2, d)``. If the sums
    # stay within ``(M^2, s)`` whatever happens, all releases together have ``delta(eps) <= s +
    # delta_G(eps; M)`` (Smith and Thakurta, 2022, and Koskela, Tobaben and Honkela, 2023, for ``d =
    # 0``; the rest is proved on the page). ``M`` is the largest with ``delta_G(epsilon; M) <= delta
    # - s``.
    # The share ``s = delta / 20`` is fixed at creation: a filter that trades one unit for the other
    # on the way is not valid. It costs a ledger of Gaussian releases about 0.6 % of ``M^2``.
    # Few large releases that are not Gaussian are dear: a pure one with ``epsilon = 1`` is
    # 1.23-GDP, while a budget of (3, 1e-5) has ``M = 0.72``. For these, ``"basic"`` composition is
    # the better choice.

    name = "gdp"
    units = ("mu squared", "slack")

    def __init__(self, epsilon: float, delta: float, adjacency: str) -> None:
        super().__init__(epsilon, delta, adjacency)
        self._curve, slack = curve_share(self.name, self.delta)
        square = None
        if math.isfinite(self.epsilon):
            largest = gaussian_profile.mu(float_down(read_decimal(self.epsilon)), self._curve)
            square = Fraction(largest) ** 2
        self.limits = (square, slack)

    def curve(self, spent: Amounts) -> tuple[Fraction, Fraction, Fraction] | None:
        """Return what dominates everything that was granted."""
        return spent[0], Fraction(0), spent[1]

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        return tuple(approximate_gaussian(charge.event, self.adjacency, slack))

    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        square, slack = spent
        if square == 0:
            return 0.0, float_up(slack)
        epsilon = gaussian_profile.epsilon(root_up(square), self._curve)
        return epsilon, float_up(Fraction(self._curve) + slack)

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        if mechanism == "any":
            return largest_pure(mu_squared_of_pure, left[0] / fits), decimal_down(left[1] / fits)
        return gaussian_pair(left[0] / fits, self.delta)
