"""How delta is split between a curve and slack, fixed when a budget is created."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies.exact import float_down, float_up, read_decimal

SLACK_SHARE = Fraction(1, 20)  # of delta; see the proof page for how it was chosen
SLACK_OF_ONE = Fraction(1, 16)  # of what is left: for one conversion that may choose
_HEADROOM = 1.0 - 1e-9  # of a square: for rounding by whoever turns a pair into noise
_LABEL = 0.1  # of the total variation: a larger delta would not determine mu
_TRIES = 60


def curve_share(name: str, delta: float, share: Fraction = SLACK_SHARE) -> tuple[float, Fraction]:
    """Split delta."""
    if delta <= 0.0:
        raise ValueError(
            f"composition={name!r} needs delta > 0, got {delta!r}: it promises no pure "
            "differential privacy. Use composition='basic' with delta=0."
        )
    return float_down(read_decimal(delta) * (1 - share)), read_decimal(delta) * share


def slack_of_one(limit: Fraction | None, spent: Fraction) -> float:
    """Return how much slack one conversion may use, before anything about its result is known."""
    # A power of two, so that conversions can be remembered; with nothing left, of all slack, which
    # will not fit.
    assert limit is not None
    left = limit - spent if spent < limit else limit
    exponent = math.frexp(float_down(left * SLACK_OF_ONE))[1] - 1
    return math.ldexp(1.0, exponent)


def root_up(amount: Fraction) -> float:
    """Return a float at least the square root of an amount."""
    return math.sqrt(float_up(amount)) * (1.0 + 2.0**-51)


def gaussian_pair(square: Fraction, delta: float) -> tuple[float, float]:
    """Return an (epsilon, delta) whose exact Gaussian noise costs a square of mu or less."""
    mu = math.sqrt(float_down(square)) * math.sqrt(_HEADROOM)
    if mu == 0.0:
        return 0.0, 0.0
    delta = min(delta, _LABEL * gaussian_profile.delta(mu, 0.0))
    epsilon = gaussian_profile.epsilon_bounds(mu, delta)[0]
    reduction = 1e-12
    for _ in range(_TRIES):
        if epsilon <= 0.0 or delta <= 0.0:
            break
        if 1 / Fraction(gaussian_profile.sigma(epsilon, delta)) ** 2 <= square:
            return epsilon, delta
        epsilon *= 1.0 - reduction
        reduction *= 2.0
    return 0.0, 0.0
