"""The profile of a Gaussian release beside randomised response, and boxes that keep below it."""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.optimize import brentq

from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies.exact import float_down, float_up

_ROUND_UP = 1.0 + 2.0**-48  # relative: two terms, and two weights of a few units of rounding
_BACK = 1e-12  # relative step from a root to the safe side of it
_LARGEST = 700.0  # beyond which exponentials overflow


def box_delta(epsilon: Fraction, mu: float, stated: Fraction) -> float:
    """Bound delta of a ``mu``-GDP release beside a ``stated``-DP one, for ``epsilon >= stated``."""
    # Their product is dominated by a Gaussian loss plus or minus ``stated``: (4) of the page.
    if mu == 0.0:
        return 0.0
    shift = min(float_up(stated), _LARGEST)
    near = gaussian_profile.delta(mu, float_down(epsilon - stated))
    far = gaussian_profile.delta(mu, float_down(epsilon + stated))
    return _ROUND_UP * (near / (1.0 + math.exp(-shift)) + far / (1.0 + math.exp(shift)))


def box_epsilon(mu: float, stated: Fraction, delta: float) -> float:
    """Bound epsilon at delta from above; never less than ``stated``."""
    low, width = float_up(stated), gaussian_profile.epsilon(mu, delta)
    if not math.isfinite(low + width):
        return math.inf
    if box_delta(Fraction(low), mu, stated) <= delta:
        return low

    def excess(more: float) -> float:
        return math.log(box_delta(Fraction(low) + Fraction(more), mu, stated) / delta)

    more = brentq(excess, 0.0, width * (1.0 + _BACK)) if excess(width) < 0.0 else width
    step = _BACK
    while math.isfinite(low + more) and box_delta(Fraction(low + more), mu, stated) > delta:
        more += step * (low + more)
        step *= 2.0
    return low + more


def largest_mu(epsilon: Fraction, stated: Fraction, delta: float) -> float:
    """Return a lower bound on the mu that keeps `box_delta` at delta; 0 leaves no room for any."""
    if stated >= epsilon or delta <= 0.0:
        return 0.0
    room = float_down(epsilon - stated)
    low, high = gaussian_profile.mu(room, delta), gaussian_profile.mu(room, min(0.5, 2.0 * delta))

    def excess(mu: float) -> float:
        return math.log(box_delta(epsilon, mu, stated) / delta)

    mu = brentq(excess, low, 1.01 * high) if excess(low) < 0.0 < excess(1.01 * high) else low
    step = _BACK
    while mu > 0.0 and box_delta(epsilon, mu, stated) > delta:
        mu *= max(0.0, 1.0 - step)
        step *= 2.0
    return mu
