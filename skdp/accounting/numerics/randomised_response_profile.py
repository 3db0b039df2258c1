"""The exact privacy profile of repeated randomised response."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skdp.accounting.numerics.arithmetic import UNIT_ROUNDOFF, Array

_DEVIATIONS = 40.0  # beyond which, and 200 more, less than `_OUTSIDE` of the probability lies
_OUTSIDE = 1e-300  # probability that does not count
_NEWTON = 200  # iterations at most


class RandomisedResponseProfile:
    """Bounds on the profile of repeated epsilon-DP randomised response.

    It is the worst composition of epsilon-DP releases (Kairouz, Oh and Viswanath, 2015, Theorem
    3.3). With l lies among k answers, each with probability ``1 / (1 + e^eps)``, the loss is ``(k -
    2 l) eps``. Hence ``delta(x) = E max(0, 1 - e^(x - loss))``. Raise OverflowError if more than
    ``terms`` matter; the default is enough for 1e10 rounds.
    """

    def __init__(self, epsilon: float, count: int, terms: int = 4_500_000) -> None:
        lie = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
        half = math.ceil(_DEVIATIONS * math.sqrt(count * lie * (1.0 - lie))) + 200
        if min(2 * half, count) > terms:
            raise OverflowError(f"{count} rounds have too many terms that matter.")
        mode = min(count, math.floor((count + 1) * lie))
        lies = np.arange(max(0, mode - half), min(count, mode + half) + 1)
        # Logarithms of neighbouring binomial terms differ by simple ones; all terms add up to 1.
        ratios = np.log((count - lies[:-1]) / lies[1:]) - epsilon
        log_terms: Array = np.zeros(len(lies))
        log_terms[1:] = np.cumsum(ratios)
        weights: Array = np.exp(log_terms - log_terms[mode - lies[0]])
        self._terms: Array = weights / float(weights.sum())
        self._losses: Array = (count - 2 * lies).astype(np.float64) * epsilon
        self.largest = count * epsilon
        self._rounding = 4.0 * UNIT_ROUNDOFF * len(lies)

    def _evaluate(self, threshold: float) -> tuple[float, float, float]:
        """Return delta, an error bound, and minus its slope."""
        above = int(np.searchsorted(-self._losses, -threshold, side="left"))
        terms, beyond = self._terms[:above], self._losses[:above] - threshold
        slopes = terms * np.exp(-beyond)
        value = float(np.dot(terms, -np.expm1(-beyond)))
        log_size = -math.log(max(value, _OUTSIDE))
        # Losses are rounded relatively, and differences with the threshold absolutely.
        error = value * self._rounding * (10.0 + log_size) + 4.0 * UNIT_ROUNDOFF * float(
            np.dot(slopes, np.abs(self._losses[:above]) + threshold)
        )
        return value, error + _OUTSIDE, float(slopes.sum())

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Bound delta at an epsilon."""
        if epsilon >= self.largest:
            return 0.0, 0.0
        value, error, _ = self._evaluate(epsilon)
        return max(0.0, value - error), min(1.0, value + error)

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bound the smallest epsilon at a delta.

        Delta is convex and piecewise linear in ``e^epsilon``: Newton's method from 0 ends.
        """
        if delta <= 4.0 * _OUTSIDE:
            return 0.0, self.largest
        x = 0.0
        for _ in range(_NEWTON):
            value, _, slope = self._evaluate(x)
            if value <= delta or slope <= 0.0:
                break
            following = x + math.log1p((value - delta) / slope)
            if not x < following < self.largest:
                break
            x = following
        return (
            self._near(x, -1.0, lambda point: self.delta(point)[0] >= delta),
            self._near(x, 1.0, lambda point: self.delta(point)[1] <= delta),
        )

    def _near(self, x: float, sign: float, holds: Callable[[float], bool]) -> float:
        """Return the nearest proved point on one side, or the end."""
        end, pad = self.largest if sign > 0.0 else 0.0, 0.0
        while pad < sign * (end - x):
            if holds(x + sign * pad):
                return x + sign * pad
            pad = max(4.0 * pad, 1e-14 * x, 1e-300)
        return end
