"""The profile of a Gaussian release beside randomised response, and boxes that keep below it."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.bracket import narrow_bracket
from skdp.accounting.numerics.floats import float_up
from skdp.budget.currencies.exact import float_down

_ROUND_UP = 1.0 + 2.0**-48  # relative: two terms, and two weights of a few units of rounding
_RTOL = 1e-13  # of roots
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

    def excess(more: float) -> float:
        return _excess(Fraction(low + more), mu, stated, delta)

    if excess(0.0) <= 0.0:
        return low
    while math.isfinite(low + width) and excess(width) > 0.0:
        width *= 1.01
    if not math.isfinite(low + width):
        return math.inf
    return low + narrow_bracket(excess, 0.0, width, _RTOL)[1]


def largest_mu(epsilon: Fraction, stated: Fraction, delta: float) -> float:
    """Return a lower bound on the mu that keeps `box_delta` at delta; 0 leaves no room for any."""
    if stated >= epsilon or delta <= 0.0:
        return 0.0
    # Near is at least half of it.
    high = 1.01 * gaussian_profile.mu(float_down(epsilon - stated), min(0.5, 2.0 * delta))
    if _excess(epsilon, high, stated, delta) <= 0.0:
        return high
    return narrow_bracket(lambda mu: -_excess(epsilon, mu, stated, delta), 0.0, high, _RTOL)[0]


def _excess(epsilon: Fraction, mu: float, stated: Fraction, delta: float) -> float:
    """Return the logarithm of the profile over delta."""
    found = box_delta(epsilon, mu, stated)
    return math.log(found) - math.log(delta) if found > 0.0 else -math.inf
