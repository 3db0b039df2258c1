"""The filter of zero-concentrated differential privacy: divergences of all orders at once."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics.order_conversion import pure_rho
from skdp.budget.currencies._orders import best_order, zcdp_epsilon
from skdp.budget.currencies._pure import largest_pure
from skdp.budget.currencies._renyi_costs import total, zero_concentrated
from skdp.budget.currencies._split import curve_share, gaussian_pair, slack_of_one
from skdp.budget.currencies.base import Amounts, BudgetFilter, Charge
from skdp.budget.currencies.exact import decimal_down, float_down, float_up, read_decimal


class ZCDPFilter(BudgetFilter):
    """Add up rho: best for pure differential privacy and Laplace noise beside Gaussian releases."""

    # A release costs ``(rho, d)`` if, but for a part of probability d, its Renyi divergences of
    # every order a are at most ``a rho`` (Bun and Steinke, 2016). Adding up is valid with
    # parameters chosen on the way (Feldman and Zrnic, 2021; Whitehouse, Ramdas, Rogers and Wu,
    # 2023). A Gaussian release costs ``mu^2 / 2``, an epsilon-DP one ``epsilon tanh(epsilon / 2)``,
    # Laplace noise shifted by t scales ``t + e^-t - 1``; everything else goes through its profile
    # as in `GDPFilter`. From rho to epsilon: Canonne, Kamath and Steinke (2020), Proposition 12.

    name = "zcdp"
    units = ("rho", "slack")

    def __init__(self, epsilon: float, delta: float, adjacency: str) -> None:
        super().__init__(epsilon, delta, adjacency)
        self._curve, slack = curve_share(self.name, self.delta)
        rho = None
        if math.isfinite(self.epsilon):
            order, divergence = best_order(float_down(read_decimal(self.epsilon)), self._curve)
            rho = Fraction(math.nextafter(divergence / order, 0.0))
        self.limits = (rho, slack)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        return tuple(total(charge.event, self.adjacency, slack, zero_concentrated, Fraction(1, 2)))

    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        if spent[0] == 0:
            return 0.0, float_up(spent[1])
        epsilon = zcdp_epsilon(float_up(spent[0]), self._curve)
        return epsilon, float_up(Fraction(self._curve) + spent[1])

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        if mechanism == "any":
            return largest_pure(pure_rho, left[0] / fits), decimal_down(left[1] / fits)
        return gaussian_pair(2 * left[0] / fits, self.delta)
