"""Bounds on the privacy profile of objective perturbation, piece by piece.

``mu`` is the bound on one record's gradient over the standard deviation of the noise, ``excess``
is epsilon minus what the determinants may contribute, any real number. Proofs, numbered as here:
``docs/proofs/objective_perturbation.md``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr, ndtri_exp

from skdp.accounting.numerics import gaussian_profile

_ROUND_UP = 1e-14
_LARGEST_EXPONENT = 700.0


def _normal(x: float) -> float:
    return float(ndtr(x))


def _log_normal(x: float) -> float:
    return float(log_ndtr(x))


def _above(excess: float, log_mass: float) -> float:
    """Return ``1 - e^excess mass``, rounded up; in logarithms a tiny mass may meet a huge power."""
    rounding = 1e-13 + 1e-15 * (abs(excess) + abs(log_mass))
    return max(0.0, -math.expm1(min(0.0, excess + log_mass - rounding))) + _ROUND_UP


def record_profile(mu: float, excess: float, outputs: int, known_sign: bool) -> float:
    """Bound delta between tables with and without a record, in both orders (Theorem 2).

    Parameters
    ----------
    mu : float
        Bound on the gradient over the noise, positive.
    excess : float
        Epsilon minus the logarithm of the largest ratio of determinants.
    outputs : int
        Number of problems with the same rows and independent noise; 1 unless the sign is known.
    known_sign : bool
        Whether the sign of the loss's derivative is known given the record.

    Returns
    -------
    float
        The bound; it may exceed 1.
    """
    if not known_sign:
        if excess >= 0.5 * mu * mu:
            return 2.0 * gaussian_profile.delta(mu, excess)
        return _above(excess, math.log(2.0) + _log_normal(-mu))
    log_unmoved = outputs * (math.log(2.0) + _log_normal(-0.5 * mu) - 4e-16)
    if excess < 0.0:
        return _above(excess, log_unmoved)
    if outputs == 1:
        return gaussian_profile.delta(mu, excess)
    bounds = (_by_subsets(mu, excess, outputs), _by_moments(mu, excess, outputs))
    return min(*bounds, _above(0.0, log_unmoved))


def _by_subsets(mu: float, excess: float, outputs: int) -> float:
    """Add up over the number of problems in which the record's gradient is in effect."""
    idle = _log_normal(-0.5 * mu)
    total = 0.0
    for active in range(1, outputs + 1):
        ways = gammaln(outputs + 1) - gammaln(active + 1) - gammaln(outputs - active + 1)
        exponent = float(ways) + (outputs - active) * idle
        if exponent > _LARGEST_EXPONENT:
            return math.inf
        total += math.exp(exponent) * gaussian_profile.delta(math.sqrt(active) * mu, excess)
    return total * (1.0 + 1e-12 * outputs)


def _by_moments(mu: float, excess: float, outputs: int) -> float:
    """Bound delta by exponential moments of the loss."""
    orders, moments = _moments(mu, outputs)
    conversion = orders * np.log(orders) - (1.0 + orders) * np.log1p(orders)
    return math.exp(min(0.0, float(np.min(moments - orders * excess + conversion)))) * (1.0 + 1e-12)


@lru_cache(maxsize=16)
def _moments(mu: float, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return orders, and the logarithms of the loss's exponential moments at these orders."""
    # A Gaussian with the same tail is at its best order where the loss is order * outputs * mu^2.
    orders = np.geomspace(1e-2, 1e4, 400) / mu
    alone = _log_normal(-0.5 * mu)
    moved = 0.5 * orders * (orders + 1.0) * mu * mu + log_ndtr((0.5 + orders) * mu)
    return orders, outputs * np.logaddexp(alone, moved)


def replacement_profile(mu: float, excess: float, outputs: int, known_sign: bool) -> float:
    """Bound delta between tables in which one record is replaced (Theorem 3).

    Parameters
    ----------
    mu, excess, outputs, known_sign
        As for :func:`record_profile`.

    Returns
    -------
    float
        The bound; it may exceed 1.
    """
    if not known_sign:
        return record_profile(2.0 * mu, excess, outputs, known_sign)
    if outputs == 1:
        return _replacement_of_one(mu, excess)
    if excess < 0.0:
        return 1.0
    # Any split is valid: none, which is best at small epsilon, and the one best for Gaussians.
    gaussian = min(_LARGEST_EXPONENT, 0.5 * (excess - outputs * mu * mu))
    return min(
        record_profile(mu, first, outputs, known_sign)
        + math.exp(first) * record_profile(mu, excess - first, outputs, known_sign)
        for first in ({0.0, gaussian} if gaussian > 0.0 else {0.0})
    )


def _replacement_of_one(mu: float, excess: float) -> float:
    """Return the conjugate of the trade-off curve ``g(g(.))`` of Theorem 3."""
    if excess >= mu * mu:
        return gaussian_profile.delta(2.0 * mu, excess)
    log_held = math.log(2.0) + _log_normal(-0.5 * mu)  # of g(1)
    held = math.exp(log_held)
    straight = held > _normal(0.5 * mu)  # g has slope 1 at g(1)
    if excess >= 0.0 and (straight or _log_normal(0.5 * mu - excess / mu) <= log_held):
        return 1.0 - held + _ROUND_UP + gaussian_profile.delta(mu, excess)
    if straight:
        return _above(excess, math.log(2.0 * held - 1.0))
    return _above(excess, _log_normal(float(ndtri_exp(min(0.0, log_held))) - mu))
