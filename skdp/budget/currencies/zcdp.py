"""The filter of zero-concentrated differential privacy: divergences of all orders at once."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics.floats import float_up
from skdp.accounting.numerics.order_conversion import pure_rho
from skdp.budget.currencies._curved import CurvedFilter, slack_of_one
from skdp.budget.currencies._orders import best_order, zcdp_epsilon
from skdp.budget.currencies._renyi_costs import total, zero_concentrated
from skdp.budget.currencies.base import Amounts, Charge


class ZCDPFilter(CurvedFilter):
    """Add up rho: best for pure differential privacy and Laplace noise beside Gaussian releases."""

    # A release costs ``(rho, d)`` if, but for a part of probability d, its Renyi divergences of
    # every order a are at most ``a rho`` (Bun and Steinke, 2016). Adding up is valid with
    # parameters chosen on the way (Theorem 8 of the page). A Gaussian release costs ``mu^2 / 2``,
    # an epsilon-DP one ``epsilon tanh(epsilon / 2)``, Laplace noise shifted by t scales ``t + e^-t
    # - 1``; everything else goes through its profile as in `GDPFilter`. From rho to epsilon:
    # Canonne, Kamath and Steinke (2020), Proposition 12.

    name = "zcdp"
    units = ("rho", "slack")
    mu_squared = Fraction(2)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        per_square = 1 / self.mu_squared
        return tuple(total(charge.event, self.adjacency, slack, zero_concentrated, per_square))

    def _most(self, epsilon: float) -> Fraction:
        order, divergence = best_order(epsilon, self._curve)
        return Fraction(math.nextafter(divergence / order, 0.0))

    def _epsilon(self, amount: Fraction) -> float:
        return zcdp_epsilon(float_up(amount), self._curve)

    def _pure(self, epsilon: Fraction) -> Fraction:
        return pure_rho(epsilon)
