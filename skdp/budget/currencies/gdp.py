"""The Gaussian filter: squares of mu add up, and so does what is not Gaussian."""

from __future__ import annotations

from fractions import Fraction

from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies._curved import CurvedFilter, root_up, slack_of_one
from skdp.budget.currencies.base import Amounts, Charge
from skdp.budget.currencies.gaussian import approximate_gaussian, mu_squared_of_pure


class GDPFilter(CurvedFilter):
    """Add up squares of mu: exact for Gaussian releases, and open to all others."""

    # A release with ``delta(eps) <= d + (1 - d) delta_G(eps; mu)`` costs ``(mu^2, d)``. If the sums
    # stay within ``(M^2, s)`` whatever happens, all releases together have ``delta(eps) <= s +
    # delta_G(eps; M)`` (Smith and Thakurta, 2022, and Koskela, Tobaben and Honkela, 2023, for ``d =
    # 0``; the rest is Theorem 7 of the page). ``M`` is the largest with ``delta_G(epsilon; M) <=
    # delta - s``. The share ``s`` is fixed at creation: a filter that trades one unit for the other
    # on the way is not valid. Few large releases that are not Gaussian are dear.

    name = "gdp"
    units = ("mu squared", "slack")

    def curve(self, spent: Amounts) -> tuple[Fraction, Fraction, Fraction] | None:
        """Return what dominates everything that was granted."""
        return spent[0], Fraction(0), spent[1]

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        return tuple(approximate_gaussian(charge.event, self.adjacency, slack))

    def _most(self, epsilon: float) -> Fraction:
        return Fraction(gaussian_profile.mu(epsilon, self._curve)) ** 2

    def _epsilon(self, amount: Fraction) -> float:
        return gaussian_profile.epsilon(root_up(amount), self._curve)

    def _pure(self, epsilon: Fraction) -> Fraction:
        return mu_squared_of_pure(epsilon)
