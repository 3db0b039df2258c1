"""How delta is split between a curve and slack, fixed when a budget is created."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies.exact import float_down, float_up, typed

SLACK_SHARE = Fraction(1, 20)  # of delta; see the proof page for how it was chosen
SLACK_OF_ONE = Fraction(1, 16)  # of what is left: for one conversion that may choose
_HEADROOM = 1.0 - 1e-9  # of a square: for rounding by whoever turns a pair into noise
_LABEL = 0.1  # of the total variation: a larger delta would not determine mu
_TRIES = 60


def curve_share(name: str, delta: float, share: Fraction = SLACK_SHARE) -> tuple[float, Fraction]:
    """Split delta.

    Parameters
    ----------
    name : str
        The composition, for the message.
    delta : float
        Total delta.
    share : Fraction, default=1/20
        The part set aside as slack.

    Returns
    -------
    tuple of float and Fraction
        Delta of the curve, rounded down, and the slack.

    Raises
    ------
    ValueError
        If there is no delta to split.
    """
    if delta <= 0.0:
        raise ValueError(
            f"composition={name!r} needs delta > 0, got {delta!r}: it promises no pure "
            "differential privacy. Use composition='basic' with delta=0."
        )
    return float_down(typed(delta) * (1 - share)), typed(delta) * share


def slack_of_one(limit: Fraction | None, spent: Fraction) -> float:
    """Return how much slack one conversion may use, before anything about its result is known.

    Parameters
    ----------
    limit : Fraction
        Slack of the budget.
    spent : Fraction
        Slack spent so far.

    Returns
    -------
    float
        A power of two, at most a sixteenth of what is left, so that conversions can be remembered;
        with nothing left, of all slack, which will not fit.
    """
    assert limit is not None
    left = limit - spent if spent < limit else limit
    exponent = math.frexp(float_down(left * SLACK_OF_ONE))[1] - 1
    return math.ldexp(1.0, exponent)


def root_up(amount: Fraction) -> float:
    """Return a float at least the square root of an amount."""
    return math.sqrt(float_up(amount)) * (1.0 + 2.0**-51)


def gaussian_pair(square: Fraction, delta: float) -> tuple[float, float]:
    """Return an (epsilon, delta) whose exact Gaussian noise costs a square of mu, or hardly less.

    Parameters
    ----------
    square : Fraction
        The largest square of mu that is allowed, positive.
    delta : float
        The delta wanted; a smaller one is returned where epsilon would be zero.

    Returns
    -------
    tuple of two floats
        The pair. `analytic_gaussian_sigma` of it costs at most ``square``.
    """
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
