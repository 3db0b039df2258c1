"""From errors of a test, or many right guesses, to lower bounds on privacy parameters.

Proofs: Theorems 1 and 2 of ``docs/proofs/audits.md``.

Proofs: Lemma 4 and Theorem 5 of ``docs/proofs/audits.md``.
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
# Thresholds that are tried; more of them only fit the noise of the first half.
_CANDIDATES = 401
_RIDGE = 1e-9
_ROUND_DOWN = 1.0 - 1e-7  # far more than errors of the non-central law
_FARTHEST = 64.0  # deviations: beyond any use, and far from where normal tails underflow


def rate_upper(events: ArrayLike, runs: float, failure: float) -> Array:
    """Bound a probability from above by Clopper and Pearson, wrong with at most `failure`."""
    count = np.asarray(events, dtype=np.float64)
    inside = np.minimum(count, runs - 1.0)
    bound = betaincinv(inside + 1.0, runs - inside, 1.0 - failure) * _ROUND_UP
    return np.where(count >= runs, 1.0, np.minimum(bound, 1.0))


def rate_interval(events: int, runs: int, failure: float) -> tuple[float, float]:
    """Bound a probability from both sides; each bound is wrong with at most half of `failure`."""
    lower = 1.0 - float(rate_upper(runs - events, runs, 0.5 * failure))
    return max(lower, 0.0), float(rate_upper(events, runs, 0.5 * failure))


@dataclass(frozen=True)
class Errors:
    """Upper bounds on both error rates of a test of "one" against "other", or arrays of them."""

    false_positive: Array
    false_negative: Array

    def mu_lower(self) -> Array:
        """Return the mu below which no guarantee of mu-GDP allows such errors; or a negative."""
        return -ndtri(self.false_positive) - ndtri(self.false_negative)

    def epsilon_lower(self, delta: float) -> Array:
        """Return the same of (epsilon, delta)."""
        positive, negative = self.false_positive, self.false_negative
        with np.errstate(divide="ignore"):
            hits = np.log(np.maximum(1.0 - negative - delta, 0.0)) - np.log(positive)
            passes = np.log(np.maximum(1.0 - positive - delta, 0.0)) - np.log(negative)
        return np.maximum(hits, passes)

    def delta_lower(self, epsilon: float) -> float:
        """Return the delta below which no guarantee of (epsilon, delta) allows such errors."""
        positive, negative = float(self.false_positive), float(self.false_negative)
        factor = math.exp(epsilon)
        return max(1.0 - negative - factor * positive, 1.0 - positive - factor * negative, 0.0)

    def disproves(self, curve: Array) -> bool:
        """Tell whether some (epsilon, delta) of a claimed curve allows no such errors."""
        return any(self.delta_lower(epsilon) > delta for epsilon, delta in curve)


def errors_above(
    threshold: ArrayLike, one: Array, other: Array, failure: float, share: float = 1.0
) -> Errors:
    """Bound the errors of "a score above the threshold means one", each with half of `failure`.

    With a `share` below 1 these are the bounds of as many errors in that share of the runs.
    """
    misses = np.searchsorted(np.sort(one), threshold, side="right")
    alarms = other.size - np.searchsorted(np.sort(other), threshold, side="right")
    return Errors(
        rate_upper(share * alarms, share * other.size, 0.5 * failure),
        rate_upper(share * misses, share * one.size, 0.5 * failure),
    )


def distance_lower(one: Array, other: Array, failure: float) -> float:
    """Bound the distance of two means, in deviations of the scores, from below; or return 0.

    It is exact for independent normal scores of one variance, by Student's non-central law.
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
    """Return the threshold whose bound would be largest if these were the runs that test it.

    Or rather a third of them: wider margins keep it away from the tails, where luck is largest.
    """
    spread = math.log(2.0 * one.size)
    levels = expit(np.linspace(-spread, spread, _CANDIDATES))
    candidates = np.unique(np.quantile(np.concatenate([one, other]), levels))
    errors = errors_above(candidates, one, other, failure, 1.0 / 3.0)
    bound = errors.mu_lower() if method == "gaussian-dp" else errors.epsilon_lower(delta)
    return float(candidates[np.argmax(bound)])


def discriminant(one: Array, other: Array) -> Array:
    """Return the direction in which two clouds of points, one a row, are told apart best.

    It is Fisher's, or without correlations where points are fewer than their coordinates. For
    Gaussian noise of one covariance the projection is the likelihood ratio.
    """
    spread = np.sqrt(0.5 * (one.var(axis=0) + other.var(axis=0)))
    shift = one.mean(axis=0) - other.mean(axis=0)
    # What has no noise tells the tables apart at once, or says nothing.
    scale = np.where(spread > 0.0, spread, np.where(shift != 0.0, 1e-9 * np.abs(shift), 1.0))
    if one.shape[0] <= one.shape[1]:
        return shift / scale**2
    centred = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)]) / scale
    # The ridge lets combinations without noise weigh as much as they should, and be inverted.
    covariance = centred.T @ centred / centred.shape[0] + _RIDGE * np.eye(one.shape[1])
    return np.linalg.solve(covariance, shift / scale) / scale


# From the probability of an event on one of two neighbours, the least that it has on the other.
Contrast = Callable[[float], float]

_MARGIN = 1.0 - 1e-6  # for thousands of roundings
_LARGEST = 512.0  # beyond what canaries can show


@dataclass(frozen=True)
class Guesses:
    """Right guesses about canaries, of a number of guesses that was fixed before the run."""

    canaries: int
    made: int
    right: int
    failure: float

    def mu_lower(self) -> float:
        """Return the mu below which no guarantee of mu-GDP allows so many right guesses; or 0."""
        return self._bound(lambda mu: lambda rate: float(ndtr(ndtri(rate) - mu)))

    def epsilon_lower(self, delta: float) -> float:
        """Return the same of (epsilon, delta)."""
        return self._bound(lambda epsilon: contrast(np.array([[epsilon, delta]])))

    def disproves(self, curve: Array) -> bool:
        """Tell whether a claimed curve of points (epsilon, delta) allows no such guesses."""
        return self._refute(contrast(curve))

    def _bound(self, claim: Callable[[float], Contrast]) -> float:
        """Return the largest parameter, up to rounding, whose claim is refuted."""

        def sign(parameter: float) -> float:
            return 1.0 if self._refute(claim(parameter)) else -1.0

        return narrow_bracket(sign, 0.0, _LARGEST, 1e-6, 1e-6)[0] if sign(0.0) > 0.0 else 0.0

    def _refute(self, least: Contrast) -> bool:
        """Tell whether a claim gives as many right guesses less than the failure probability."""
        share = self.failure * _MARGIN / self.canaries
        # Expected shares of right and of wrong guesses, in runs with at least k right ones.
        right, wrong = share * self.right, share * (self.made - self.right)
        for k in range(self.right - 1, -1, -1):
            needed = max(wrong, least(right))
            right += k / (self.made - k) * (needed - wrong)
            wrong = needed
            if right + wrong > self.made / self.canaries:
                return True
        return False


def contrast(curve: Array) -> Contrast:
    """Return what guarantees of (epsilon, delta), one a row, say together."""
    factor, delta = np.exp(curve[:, 0]), curve[:, 1]

    def least(rate: float) -> float:
        bounds = np.maximum((rate - delta) / factor, 1.0 - delta - factor * (1.0 - rate))
        return max(float(bounds.max()), 0.0)

    return least
