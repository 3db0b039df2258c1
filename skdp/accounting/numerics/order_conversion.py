"""From Renyi divergences to (epsilon, delta), and from pure guarantees to divergences."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

from skdp.accounting.numerics.floats import float_up, round_up

_FEW_ROUNDINGS = 2.0**-49
_SMALL = 1e-4
_MARGIN = 1e-13  # relative rounding error of a sum of positive terms, generously
_LARGE = 600.0  # exponents above which exponentials may overflow
_ROUND_UP = Fraction(10**11 + 1, 10**11)


def conversion(moment: float) -> float:
    """Return ``moment log(1 - 1/order) - log(order)``, without cancellation.

    It is added to log delta's bound (Canonne, Kamath and Steinke, 2020, Proposition 12).
    """
    return -(moment * math.log1p(1.0 / moment) + math.log1p(moment))


def sum_up(*terms: float) -> float:
    """Add up terms that are correct but for a few roundings; no less, even if divided once."""
    return sum(terms) + _FEW_ROUNDINGS * sum(map(abs, terms))


def nearby_order(order_minus_one: float) -> float:
    """Return an order at which moments are quickly computed: an integer, if it is large."""
    order = 1.0 + order_minus_one
    # Binomial sums at integer orders are dense enough beyond.
    return order if order <= 64.0 else float(round(order))


def pure_rho(epsilon: Fraction) -> Fraction:
    """Return ``eps tanh(eps / 2)``, the rho of every epsilon-DP release, rounded up."""
    return rho_of(epsilon, lambda number: Fraction(math.tanh(0.5 * number)) * epsilon)


def rho_of(loss: Fraction, rho: Callable[[float], Fraction]) -> Fraction:
    """Round up a rho that is at most half the square of the largest loss, and near it if small."""
    number = float_up(loss)
    return round_up(loss**2 / 2 if number <= _SMALL else rho(number) * _ROUND_UP)


def log_moment_randomised_response(epsilon: float, order: float) -> float:
    """Return the log moment of randomised response, which dominates pure privacy."""
    if epsilon == 0.0:
        return 0.0
    if order * epsilon <= _LARGE:
        # cosh((order - 1/2) epsilon) / cosh(epsilon / 2), as what it is above one.
        added = math.sinh(0.5 * order * epsilon) * math.sinh(0.5 * (order - 1.0) * epsilon)
        value = math.log1p(2.0 * added / math.cosh(0.5 * epsilon))
    else:
        value = (order - 1.0) * epsilon + math.log1p(math.exp(-(2.0 * order - 1.0) * epsilon))
        value -= math.log1p(math.exp(-epsilon))
    return max(value * (1.0 + _MARGIN), sys.float_info.min)


def pure_at_order(epsilon: Fraction, order: float) -> Fraction:
    """Return the divergence of randomised response, which no epsilon-DP release exceeds."""
    bound = Fraction(order) * pure_rho(epsilon)
    moment = log_moment_randomised_response(float_up(epsilon), order)
    if math.isfinite(moment):
        bound = min(bound, Fraction(moment) / Fraction(order - 1.0))
    return round_up(bound)
