"""Lower bounds on privacy parameters, from errors of a test or from correct guesses.

Proofs: Theorems 1 and 2, Lemma 4 and Theorem 5 of ``docs/proofs/audits.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, ndtr, ndtri
from scipy.stats import nct

from skdp.accounting.numerics.arithmetic import narrow_bracket

Array = NDArray[np.float64]

# Relative error of the inverse of the incomplete beta function, generously.
_ROUND_UP = 1.0 + 1e-9
# Number of thresholds tried; more would only fit the noise of the first half.
_CANDIDATES = 401
_RIDGE = 1e-9
_ROUND_DOWN = 1.0 - 1e-7  # far more than the errors of the non-central law
_FARTHEST = 64.0  # standard deviations: beyond any use, before normal tails underflow


def rate_upper(events: ArrayLike, runs: float, failure: float) -> Array:
    """Return a Clopper-Pearson upper bound that fails with probability at most `failure`."""
    count = np.asarray(events, dtype=np.float64)
    inside = np.minimum(count, runs - 1.0)
    bound = betaincinv(inside + 1.0, runs - inside, 1.0 - failure) * _ROUND_UP
    return np.where(count >= runs, 1.0, np.minimum(bound, 1.0))


def rate_interval(events: int, runs: int, failure: float) -> tuple[float, float]:
    """Return lower and upper bounds; each fails with probability at most half of `failure`."""
    lower = 1.0 - float(rate_upper(runs - events, runs, 0.5 * failure))
    return max(lower, 0.0), float(rate_upper(events, runs, 0.5 * failure))


@dataclass(frozen=True)
class Errors:
    """Upper bounds on both error rates of a test of "one" against "other", or arrays of them."""

    false_positive: Array
    false_negative: Array

    def mu_lower(self) -> Array:
        """Return the mu below which mu-GDP does not allow such errors; negative if none."""
        return -ndtri(self.false_positive) - ndtri(self.false_negative)

    def epsilon_lower(self, delta: float) -> Array:
        """Return the lower bound on epsilon at a delta."""
        positive, negative = self.false_positive, self.false_negative
        with np.errstate(divide="ignore"):
            hits = np.log(np.maximum(1.0 - negative - delta, 0.0)) - np.log(positive)
            passes = np.log(np.maximum(1.0 - positive - delta, 0.0)) - np.log(negative)
        return np.maximum(hits, passes)

    def delta_lower(self, epsilon: float) -> float:
        """Return the delta below which (epsilon, delta) does not allow such errors."""
        positive, negative = float(self.false_positive), float(self.false_negative)
        factor = math.exp(epsilon)
        return max(1.0 - negative - factor * positive, 1.0 - positive - factor * negative, 0.0)

    def disproves(self, curve: Array) -> bool:
        """Return whether some (epsilon, delta) of a claimed curve forbids such errors."""
        return any(self.delta_lower(epsilon) > delta for epsilon, delta in curve)


def errors_above(
    threshold: ArrayLike, one: Array, other: Array, failure: float, share: float = 1.0
) -> Errors:
    """Bound the errors of the test "a score above the threshold means one".

    Each bound uses half of `failure`. With a `share` below 1 they assume the same errors in that
    share of the runs.
    """
    misses = np.searchsorted(np.sort(one), threshold, side="right")
    alarms = other.size - np.searchsorted(np.sort(other), threshold, side="right")
    return Errors(
        rate_upper(share * alarms, share * other.size, 0.5 * failure),
        rate_upper(share * misses, share * one.size, 0.5 * failure),
    )


def distance_lower(one: Array, other: Array, failure: float) -> float:
    """Return a lower bound on the distance of two means, in standard deviations, or 0.

    It is exact for independent normal scores of equal variance, by Student's non-central law.
    """
    degrees = one.size + other.size - 2
    scale = math.sqrt(1.0 / one.size + 1.0 / other.size)
    spread = math.sqrt((one.var() * one.size + other.var() * other.size) / degrees)
    statistic = float(one.mean() - other.mean()) / max(spread * scale, 1e-300)

    def excess(distance: float) -> float:
        return failure - float(nct.sf(statistic, degrees, distance / scale))

    if excess(0.0) <= 0.0:
        return 0.0
    return narrow_bracket(excess, 0.0, _FARTHEST, 1e-9, 1e-9)[0] * _ROUND_DOWN


def choose_threshold(one: Array, other: Array, failure: float, method: str, delta: float) -> float:
    """Return the threshold with the largest bound, as if a third of these runs tested it.

    The wider margins of a third avoid the tails, where random variation is largest.
    """
    spread = math.log(2.0 * one.size)
    levels = expit(np.linspace(-spread, spread, _CANDIDATES))
    candidates = np.unique(np.quantile(np.concatenate([one, other]), levels))
    errors = errors_above(candidates, one, other, failure, 1.0 / 3.0)
    bound = errors.mu_lower() if method == "gaussian-dp" else errors.epsilon_lower(delta)
    return float(candidates[np.argmax(bound)])


def discriminant(one: Array, other: Array) -> Array:
    """Return Fisher's direction, which separates two clouds of points (rows) best.

    It ignores correlations if there are fewer points than coordinates. For Gaussian noise of one
    covariance the projection is the likelihood ratio.
    """
    spread = np.sqrt(0.5 * (one.var(axis=0) + other.var(axis=0)))
    shift = one.mean(axis=0) - other.mean(axis=0)
    # Coordinates without noise distinguish the tables at once, or carry no information.
    scale = np.where(spread > 0.0, spread, np.where(shift != 0.0, 1e-9 * np.abs(shift), 1.0))
    if one.shape[0] <= one.shape[1]:
        return shift / scale**2
    centred = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)]) / scale
    # The ridge makes combinations without noise invertible, with suitable weights.
    covariance = centred.T @ centred / centred.shape[0] + _RIDGE * np.eye(one.shape[1])
    return np.linalg.solve(covariance, shift / scale) / scale


# Maps the probability of an event on one neighbour to the smallest one on the other.
Contrast = Callable[[float], float]

_MARGIN = 1.0 - 1e-6  # margin for thousands of roundings
_LARGEST = 512.0  # more than canaries can show


@dataclass(frozen=True)
class Guesses:
    """Correct guesses about canaries, among a number of guesses fixed before the run."""

    canaries: int
    made: int
    right: int
    failure: float

    def mu_lower(self) -> float:
        """Return the mu below which mu-GDP does not allow this number of correct guesses, or 0."""
        return self._bound(lambda mu: lambda rate: float(ndtr(ndtri(rate) - mu)))

    def epsilon_lower(self, delta: float) -> float:
        """Return the lower bound on epsilon at a delta."""
        return self._bound(lambda epsilon: contrast(np.array([[epsilon, delta]])))

    def disproves(self, curve: Array) -> bool:
        """Return whether a claimed curve of points (epsilon, delta) forbids such guesses."""
        return self._refute(contrast(curve))

    def _bound(self, claim: Callable[[float], Contrast]) -> float:
        """Return the largest parameter with a refuted claim, up to rounding."""

        def sign(parameter: float) -> float:
            return 1.0 if self._refute(claim(parameter)) else -1.0

        return narrow_bracket(sign, 0.0, _LARGEST, 1e-6, 1e-6)[0] if sign(0.0) > 0.0 else 0.0

    def _refute(self, least: Contrast) -> bool:
        """Return whether the guesses are less likely under a claim than the failure probability."""
        share = self.failure * _MARGIN / self.canaries
        # Expected shares of correct and wrong guesses, in runs with at least k correct ones.
        right, wrong = share * self.right, share * (self.made - self.right)
        for k in range(self.right - 1, -1, -1):
            needed = max(wrong, least(right))
            right += k / (self.made - k) * (needed - wrong)
            wrong = needed
            if right + wrong > self.made / self.canaries:
                return True
        return False


def contrast(curve: Array) -> Contrast:
    """Return the joint contrast of guarantees (epsilon, delta), one per row."""
    factor, delta = np.exp(curve[:, 0]), curve[:, 1]

    def least(rate: float) -> float:
        bounds = np.maximum((rate - delta) / factor, 1.0 - delta - factor * (1.0 - rate))
        return max(float(bounds.max()), 0.0)

    return least
