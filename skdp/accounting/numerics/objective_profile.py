"""Bounds on the privacy profile of objective perturbation, as a whole and piece by piece.

``mu`` is the bound on one record's gradient over the standard deviation of the noise, ``excess``
is epsilon minus what the determinants may contribute, any real number. Proofs, numbered as here:
``docs/proofs/objective_perturbation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr, ndtri_exp

from skdp.accounting.numerics import gaussian_profile
from skdp.choices import Adjacency

_ROUND_UP = 1e-14
_LARGEST_EXPONENT = 700.0
SLOPES = ("logistic", "known-sign", "any-sign")
# Beyond, squares overflow, and the bound stays what it is here.
LARGEST_EPSILON = 1e12
# Losses of the final noise, in its standard deviations, at which its tail is cut off.
CUTS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 14.0, 20.0, 38.0)


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

    The bound may exceed 1; several outputs need a known sign.
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
    bounds = (by_subsets(mu, excess, outputs), by_moments(mu, excess, outputs))
    return min(*bounds, _above(0.0, log_unmoved))


def by_subsets(
    mu: float,
    excess: float,
    outputs: int,
    of_gaussian: Callable[[float, float], float] = gaussian_profile.delta,
) -> float:
    """Add up over the number of problems in which the record's gradient is in effect.

    `of_gaussian` bounds, at its mu, what is asked for: delta, or another convex function's mean.
    """
    idle = _log_normal(-0.5 * mu)
    total = 0.0
    for active in range(1, outputs + 1):
        ways = gammaln(outputs + 1) - gammaln(active + 1) - gammaln(outputs - active + 1)
        exponent = float(ways) + (outputs - active) * idle
        if exponent > _LARGEST_EXPONENT:
            return math.inf
        total += math.exp(exponent) * of_gaussian(math.sqrt(active) * mu, excess)
    return total * (1.0 + 1e-12 * outputs)


def _to_delta(orders: np.ndarray) -> np.ndarray:
    return orders * np.log(orders) - (1.0 + orders) * np.log1p(orders)


def by_moments(
    mu: float,
    excess: float,
    outputs: int,
    conversion: Callable[[np.ndarray], np.ndarray] = _to_delta,
) -> float:
    """Bound delta by exponential moments of the loss, or another mean by another conversion."""
    orders, moments = _moments(mu, outputs)
    exponent = float(np.min(moments - orders * excess + conversion(orders)))
    return math.exp(exponent) * (1.0 + 1e-12) if exponent < _LARGEST_EXPONENT else math.inf


@lru_cache(maxsize=16)
def _moments(mu: float, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return orders, and the logarithms of the loss's exponential moments at these orders."""
    # A Gaussian with the same tail is at its best order where the loss is order * outputs * mu^2.
    orders = np.geomspace(1e-2, 1e4, 400) / mu
    alone = _log_normal(-0.5 * mu)
    moved = 0.5 * orders * (orders + 1.0) * mu * mu + log_ndtr((0.5 + orders) * mu)
    return orders, outputs * np.logaddexp(alone, moved)


def replacement_profile(mu: float, excess: float, outputs: int, known_sign: bool) -> float:
    """Bound delta between tables in which one record is replaced (Theorem 3); perhaps above 1."""
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


@lru_cache(maxsize=64)
def passed_losses(spread: float) -> tuple[tuple[float, float], ...]:
    """Return losses of the second release, and how much it exceeds each (its own profile)."""
    losses = [spread * (cut + 0.5 * spread) for cut in CUTS]
    return tuple((loss, gaussian_profile.delta(spread, loss)) for loss in losses)


class Objective(NamedTuple):
    """What the bounds need to know of an objective, as `ObjectivePerturbationEvent` says it."""

    mu: float
    curvature: float
    slope: str
    outputs: int
    adjacency: Adjacency
    opposite: float = 1.0

    def profile(self, epsilon: float, spread: float) -> float:
        """Bound delta if noise hides that the minimiser is only ``spread`` of its units near."""
        if epsilon == math.inf:
            return 0.0
        epsilon = min(epsilon, LARGEST_EPSILON)
        if spread == 0.0:
            return self._exact(epsilon)
        best = 1.0
        for shift, mus, start in (*self._main_parts(), *self._narrow_parts()):
            excess = epsilon - shift
            if excess >= start:
                tail = float(ndtr(0.5 * spread - (excess - start) / spread)) * (1.0 + 1e-12)
                best = min(best, _sum_of([math.hypot(mu, spread) for mu in mus], excess) + tail)
        least = self._exact(epsilon)
        for passed, tail in passed_losses(spread):
            if least + tail < best:
                best = min(best, self._exact(epsilon - passed) + tail)
        return best

    def _exact(self, epsilon: float) -> float:
        """Bound the profile of exact minimisers, at any real epsilon."""
        profile = record_profile if self.adjacency == "add-remove" else replacement_profile
        known_sign = self.slope != "any-sign"
        best = min(1.0, profile(self.mu, epsilon - self._determinants, self.outputs, known_sign))
        for shift, mus, start in self._narrow_parts():
            if epsilon - shift >= start:
                best = min(best, _sum_of(mus, epsilon - shift))
        return best

    @property
    def _determinants(self) -> float:
        """Return the largest logarithm of a ratio of determinants of neighbours."""
        return self.outputs * math.log1p(self.curvature) * (1.0 + 1e-15)

    # Where the profile is at most a sum of Gaussian ones. Each (shift, mus, start) says: the sum of
    # ``delta_G(epsilon - shift; mu)`` for ``epsilon - shift >= start``.

    def _main_parts(self) -> list[tuple[float, list[float], float]]:
        """Return what `record_profile` and `replacement_profile` know at large epsilon."""
        if self.outputs > 1:
            return []
        double = self.adjacency == "replace-one"
        mu = 2.0 * self.mu if double else self.mu
        if self.slope == "any-sign":
            return [(self._determinants, [mu, mu], 0.5 * mu * mu)]
        return [(self._determinants, [mu], self.mu**2 if double else 0.0)]

    def _narrow_parts(self) -> list[tuple[float, list[float], float]]:
        """Return what holds of the logistic loss, or of slopes that are steep to one side only."""
        mu, double = self.mu, self.adjacency == "replace-one"
        if self.slope == "logistic" and self.outputs == 1:
            if double:
                return [(0.0, [2.0 * mu], max(8.0 * self.curvature, mu * mu))]
            return [(0.0, [mu], 4.0 * self.curvature)]
        if self.slope != "any-sign" or self.opposite == 1.0:
            return []
        shares = [2.0, max(1.0, 2.0 * self.opposite), 1.0] if double else [1.0, self.opposite]
        start = 2.0 * mu * math.hypot(1.0, mu) if double else 0.5 * mu * mu
        return [(self._determinants, [share * mu for share in shares], start * (1.0 + 1e-14))]


def _sum_of(mus: list[float], excess: float) -> float:
    """Add up Gaussian profiles, rounded up."""
    return math.fsum(gaussian_profile.delta(mu, excess) for mu in mus) * (1.0 + 1e-15)
