"""Bounds on the privacy profile of objective perturbation, for rows and for units.

``mu`` is the bound on one record's gradient over the standard deviation of the noise. ``excess`` is
epsilon minus the largest contribution of the determinants, any real number. Theorems for rows are
those of ``docs/proofs/objective_perturbation.md``.

Names and theorems for units are those of ``docs/proofs/objective_perturbation_units.md``. There a
loss is at most a constant plus h, which is compared with the loss Y of a Gaussian mechanism. All
results are rounded up.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, gammaln, log_ndtr, ndtr, ndtri_exp

from skdp.accounting.numerics import gaussian_profile
from skdp.base.parameters import Adjacency

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
    """Return ``1 - e^excess mass``, rounded up, in logarithms."""
    rounding = 1e-13 + 1e-15 * (abs(excess) + abs(log_mass))
    return max(0.0, -math.expm1(min(0.0, excess + log_mass - rounding))) + _ROUND_UP


def record_profile(mu: float, excess: float, outputs: int, known_sign: bool) -> float:
    """Bound delta with and without a record, in both orders (Theorem 2).

    It may exceed 1; several outputs need a known sign.
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
    """Sum over the number of problems in which the record has an effect.

    `of_gaussian` bounds delta, or another convex mean, at its mu.
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
    """Bound delta, or another mean, by exponential moments."""
    orders, moments = _moments(mu, outputs)
    exponent = float(np.min(moments - orders * excess + conversion(orders)))
    return math.exp(exponent) * (1.0 + 1e-12) if exponent < _LARGEST_EXPONENT else math.inf


@lru_cache(maxsize=16)
def _moments(mu: float, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return orders and log moments of the loss."""
    # A Gaussian with the same tail is at its best order where the loss is order * outputs * mu^2.
    orders = np.geomspace(1e-2, 1e4, 400) / mu
    alone = _log_normal(-0.5 * mu)
    moved = 0.5 * orders * (orders + 1.0) * mu * mu + log_ndtr((0.5 + orders) * mu)
    return orders, outputs * np.logaddexp(alone, moved)


def replacement_profile(mu: float, excess: float, outputs: int, known_sign: bool) -> float:
    """Bound delta for a replaced record (Theorem 3); may exceed 1."""
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
    """Return the conjugate of ``g(g(.))`` of Theorem 3."""
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
    """Return losses of the second release, and its profile there."""
    losses = [spread * (cut + 0.5 * spread) for cut in CUTS]
    return tuple((loss, gaussian_profile.delta(spread, loss)) for loss in losses)


class Objective(NamedTuple):
    """An objective as in `ObjectivePerturbationEvent`."""

    mu: float
    curvature: float
    slope: str
    outputs: int
    adjacency: Adjacency
    opposite: float = 1.0

    def profile(self, epsilon: float, spread: float) -> float:
        """Bound delta if noise hides an inaccuracy of ``spread`` units."""
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
        """Bound the profile of exact minimisers."""
        profile = record_profile if self.adjacency == "add-remove" else replacement_profile
        known_sign = self.slope != "any-sign"
        best = min(1.0, profile(self.mu, epsilon - self._determinants, self.outputs, known_sign))
        for shift, mus, start in self._narrow_parts():
            if epsilon - shift >= start:
                best = min(best, _sum_of(mus, epsilon - shift))
        return best

    @property
    def _determinants(self) -> float:
        """Bound the log ratio of neighbours' determinants."""
        return self.outputs * math.log1p(self.curvature) * (1.0 + 1e-15)

    # Where the profile is at most a sum of Gaussian ones. Each (shift, mus, start) says: the sum of
    # ``delta_G(epsilon - shift; mu)`` for ``epsilon - shift >= start``.

    def _main_parts(self) -> list[tuple[float, list[float], float]]:
        """Return the main bounds at large epsilon."""
        if self.outputs > 1:
            return []
        double = self.adjacency == "replace-one"
        mu = 2.0 * self.mu if double else self.mu
        if self.slope == "any-sign":
            return [(self._determinants, [mu, mu], 0.5 * mu * mu)]
        return [(self._determinants, [mu], self.mu**2 if double else 0.0)]

    def _narrow_parts(self) -> list[tuple[float, list[float], float]]:
        """Return bounds for logistic or one-sided slopes."""
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


_TINY = sys.float_info.min
_FAR = 38.0  # deviations beyond which a normal density is below the smallest double
_LARGEST_MU = 1e5  # beyond, nothing is protected below the largest epsilon
# Where calls on h are compared with those on Y, in deviations above the first such place.
_PLACES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 20.0)
_STEPS = 60  # of Newton's method
_NOTHING = 1e-10  # a share of delta
_USELESS = -50.0  # an epsilon at which a delta is 1


def _rounding(mu: float, start: float) -> float:
    """Return the relative error of tail probabilities and calls."""
    a = abs(start / mu - 0.5 * mu)
    return 1e-15 * (8.0 + 4.0 * min(a, _FAR) ** 2 + (min(a, _FAR) + 2.0) * (abs(start) / mu + mu))


def call_bounds(mu: float, start: float) -> tuple[float, float]:
    """Bound E(Y - start)_+, where Y ~ N(mu^2/2, mu^2)."""
    a = start / mu - 0.5 * mu
    if a > _FAR:
        return 0.0, _TINY
    density = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    if a <= 0.0:
        value = mu * (density - a * float(ndtr(-a)))
    else:
        mills = math.sqrt(0.5 * math.pi) * float(erfcx(a / math.sqrt(2.0)))
        value = mu * density * (1.0 - a * mills)
    error = min(1.0, _rounding(mu, start))
    return max(0.0, value * (1.0 - error)), value * (1.0 + error) + _TINY


def _gaussian(mu: float, epsilon: float) -> tuple[float, float]:
    """Bound a Gaussian profile at any real epsilon."""
    low, high = gaussian_profile.delta_bounds(mu, abs(epsilon))
    if epsilon >= 0.0:
        return low, high
    above, factor = -math.expm1(epsilon), math.exp(epsilon)
    return (above + factor * low) * (1.0 - 1e-15), min(1.0, (above + factor * high) * (1.0 + 1e-15))


def shift(mu: float, excess: float, start: float, surplus: float = 0.0) -> float:
    """Return s with ``E(1 - exp(excess' - h))_+ <= delta_G(excess' - s)`` from excess on (Lemma 3).

    `surplus` bounds ``E(h - start)_+ - E(Y - start)_+``. Infinite if no such s is found.
    """
    slope = float(ndtr(0.5 * mu - start / mu)) * (1.0 - min(1.0, _rounding(mu, start)))
    base = call_bounds(mu, start)[1]
    trial, failed, best = 0.0, 0.0, math.inf
    for _ in range(_STEPS):
        low = _gaussian(mu, excess - trial)[0]
        gained = max(trial * slope, call_bounds(mu, start - trial)[0] - base)
        lacking = call_bounds(mu, excess - trial)[1] - low + surplus - gained
        failed, best = (failed, trial) if lacking <= 0.0 else (trial, best)
        rising = float(ndtr(0.5 * mu - (start - trial) / mu)) - low
        if not rising > 0.0:
            break
        trial = (trial + lacking / rising) * (1.0 + 1e-13)
        if not failed <= trial <= best:
            trial = 0.5 * (failed + best)
        if excess - trial < _USELESS or abs(best - trial) <= 1e-11 * trial:
            break
    return best


class _Law(NamedTuple):
    """Bound on a loss: `constant` plus an h as in Theorem 4."""

    constant: float
    mu: float
    starts: tuple[float, ...]
    surpluses: tuple[float, ...]

    def profile(self, epsilon: float, spread: float, best: float) -> float:
        """Bound delta, or return ``best`` if it is smaller."""
        excess = epsilon - self.constant
        both = math.hypot(self.mu, spread) * (1.0 + 1e-15)
        least = _gaussian(both, excess)[1]
        if least >= best:
            return best
        if spread == 0.0:
            shifted = _gaussian(self.mu, excess - self._shift(excess))[1]
            return min(best, self._below(excess), shifted)
        for loss, tail in passed_losses(spread):
            best = min(best, self._below(excess - loss) + tail)
        tails = [float(ndtr(0.5 * spread - cut)) * (1.0 + 1e-12) for cut in CUTS]
        for k in reversed(range(len(CUTS))):
            if k > 0 and tails[k - 1] < _NOTHING * least:
                continue  # a nearer cut has next to no tail either
            if tails[k] >= best:
                break
            moved = self._shift(excess - CUTS[k] * spread)
            best = min(best, _gaussian(both, excess - moved)[1] + tails[k])
        return best

    def _shift(self, excess: float) -> float:
        """Return the least s of Lemma 3 among a few places."""
        pairs = zip(self.starts, self.surpluses, strict=True)
        return min(
            (shift(self.mu, excess, *pair) for pair in pairs if pair[0] < excess), default=math.inf
        )

    def _below(self, excess: float) -> float:
        """Bound delta by the first place, and by 1 far below."""
        largest = min(1.0, call_bounds(self.mu, self.starts[0])[1] + self.surpluses[0])
        lower = min(0.0, excess - self.starts[0])
        return min(1.0, math.exp(lower) * largest - math.expm1(lower) + 1e-14)


@lru_cache(maxsize=32)
def _laws(objective: UnitObjective) -> tuple[_Law, ...]:
    """Return all known bounds on the loss."""
    moved = 1.0 if objective.adjacency == "add-remove" else 2.0  # units' gradients
    mu, outputs, constant = objective.mu * moved, objective.outputs, objective.curvature
    if objective.rows is not None:
        constant = objective.rows * math.log1p(constant / objective.rows)
    constant *= outputs * (1.0 + 1e-15)
    if objective.slope == "any-sign":
        starts = tuple(0.5 * mu * mu + mu * place for place in _PLACES)
        return (_Law(constant, mu, starts, tuple(call_bounds(mu, t)[1] for t in starts)),)
    if outputs > 1:
        total = mu * math.sqrt(outputs) * (1.0 + 1e-15)
        mean = outputs * call_bounds(mu, 0.0)[1]
        starts = (0.0, *(mean + total * place for place in _PLACES))
        surpluses = tuple(_sum_surplus(mu, total, t, outputs) for t in starts)
        return (_Law(constant, total, starts, surpluses),)
    laws: tuple[_Law, ...] = (_Law(constant, mu, (0.0,), (0.0,)),)
    if objective.slope == "logistic":
        most = 4.0 * moved * objective.curvature * (1.0 + 1e-15)
        start = max(0.0, most - 0.5 * mu * mu * (1.0 - 1e-15))
        laws = (_Law(0.0, mu, (start,), (0.0,)), *laws)  # mostly the lesser one
    return laws


def _sum_surplus(mu: float, total: float, start: float, outputs: int) -> float:
    """Bound the excess of calls on a sum of positive parts (Lemma 5)."""
    upper = min(
        by_subsets(mu, start, outputs, lambda mu, start: call_bounds(mu, start)[1]),
        by_moments(mu, start, outputs, lambda orders: -1.0 - np.log(orders)),
    )
    return max(0.0, upper - call_bounds(total, start)[0])


class UnitObjective(NamedTuple):
    """An objective for units, as in `ObjectivePerturbationEvent`."""

    mu: float
    curvature: float
    slope: str
    outputs: int
    adjacency: Adjacency
    rows: int | None

    def profile(self, epsilon: float, spread: float) -> float:
        """Bound delta if noise hides an inaccuracy of ``spread`` units."""
        if epsilon == math.inf:
            return 0.0
        if self.mu > _LARGEST_MU:
            return 1.0
        epsilon = min(epsilon, LARGEST_EPSILON)
        best = 1.0
        for law in _laws(self):
            best = law.profile(epsilon, spread, best)
        return best
