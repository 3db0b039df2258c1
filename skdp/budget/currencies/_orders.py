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
    """Return what is added to a divergence of some order to bound epsilon at delta.

    Parameters
    ----------
    order : float
        Order of the divergence, above 1.
    delta : float
        Probability, in (0, 1).

    Returns
    -------
    float
        ``log(1 - 1/order) - (log delta + log order) / (order - 1)``, rounded up.
    """
    scale = order - 1.0
    return sum_up(log_conversion(scale), -math.log(delta)) / scale


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon that rho-zero-concentrated differential privacy implies at delta.

    Parameters
    ----------
    rho : float
        Divergences of order a are at most ``a rho``; positive.
    delta : float
        Probability, in (0, 1).

    Returns
    -------
    float
        Rounded up; at least 0.
    """
    if not math.isfinite(rho):
        return math.inf

    def bound(x: float) -> float:
        order = 1.0 + math.exp(x)
        return order * rho * (1.0 + _MARGIN) + conversion(order, delta)

    guess = 0.5 * math.log(max(-math.log(delta), 1.0) / rho)
    return max(0.0, _least(bound, guess))


def best_order(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the order that leaves most room for Gaussian releases, and the divergence allowed.

    Parameters
    ----------
    epsilon : float
        Total epsilon, positive and finite.
    delta : float
        Probability, in (0, 1).

    Returns
    -------
    tuple of float
        The order a, and a divergence r, rounded down, that implies (epsilon, delta); ``r / a`` is
        the rho of zero-concentrated differential privacy that does.
    """

    def negative(x: float) -> float:
        order = 1.0 + math.exp(x)
        return -allowed(epsilon, delta, order) / order

    guess = math.log(max(-math.log(delta), 1.0)) - math.log(epsilon)
    points = [guess + _REACH * (k / _SCAN - 0.5) for k in range(_SCAN + 1)]
    points = [min(max(point, -30.0), _LARGEST) for point in points]
    middle = min(points, key=negative)
    width = _REACH / _SCAN
    best, _ = golden_section(negative, middle - width, middle + width, _ITERATIONS)
    if negative(middle) < negative(best):
        best = middle
    order = 1.0 + math.exp(best)
    return order, max(0.0, allowed(epsilon, delta, order))


def allowed(epsilon: float, delta: float, order: float) -> float:
    """Return the divergence of an order that implies (epsilon, delta), rounded down."""
    value = epsilon - conversion(order, delta)
    return value - _MARGIN * (epsilon + abs(value))


def _least(bound: Callable[[float], float], guess: float) -> float:
    """Minimise around a guess; every point gives a valid bound."""
    guess = min(max(guess, -30.0), _LARGEST)
    points = [min(guess + _REACH * (k / _SCAN - 0.5), _LARGEST) for k in range(_SCAN + 1)]
    middle = min(points, key=bound)
    width = _REACH / _SCAN
    best, value = golden_section(bound, middle - width, middle + width, _ITERATIONS)
    return min(value, bound(middle), bound(best))
