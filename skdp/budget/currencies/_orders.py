"""From Renyi divergences to (epsilon, delta) and back (Canonne, Kamath and Steinke, 2020)."""

from __future__ import annotations

import math
from collections.abc import Callable

from skdp.accounting.numerics.bracket import golden_section
from skdp.accounting.numerics.order_conversion import conversion as log_conversion
from skdp.accounting.numerics.order_conversion import sum_up

_ITERATIONS = 60
_SCAN = 160
_REACH = 12.0  # of the scan on either side of the guess, in logarithms
_MARGIN = 1e-12
_LARGEST = 600.0  # logarithm of the largest order


def conversion(order: float, delta: float) -> float:
    """Return what is added to a divergence of some order to bound epsilon at delta."""
    scale = order - 1.0
    return sum_up(log_conversion(scale), -math.log(delta)) / scale


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon that rho-zero-concentrated differential privacy implies at delta."""
    if not math.isfinite(rho):
        return math.inf

    def bound(x: float) -> float:
        order = 1.0 + math.exp(x)
        return order * rho * (1.0 + _MARGIN) + conversion(order, delta)

    guess = 0.5 * math.log(max(-math.log(delta), 1.0) / rho)
    return max(0.0, bound(_minimiser(bound, guess)))


def best_order(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the order that leaves most room for Gaussian releases, and the divergence allowed."""

    def negative(x: float) -> float:
        order = 1.0 + math.exp(x)
        return -allow_divergence(epsilon, delta, order) / order

    guess = math.log(max(-math.log(delta), 1.0)) - math.log(epsilon)
    order = 1.0 + math.exp(_minimiser(negative, guess))
    return order, max(0.0, allow_divergence(epsilon, delta, order))


def allow_divergence(epsilon: float, delta: float, order: float) -> float:
    """Return the divergence of an order that implies (epsilon, delta), rounded down."""
    value = epsilon - conversion(order, delta)
    return value - _MARGIN * (epsilon + abs(value))


def _minimiser(function: Callable[[float], float], guess: float) -> float:
    """Return a point near a guess where a function is small; every point gives a valid bound."""
    points = [guess + _REACH * (k / _SCAN - 0.5) for k in range(_SCAN + 1)]
    middle = min((min(max(point, -30.0), _LARGEST) for point in points), key=function)
    width = _REACH / _SCAN
    best, value = golden_section(function, middle - width, middle + width, _ITERATIONS)
    return middle if function(middle) < value else best
