"""The pair of a release of which only (epsilon, delta) is known."""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.pld.pairs.base import Array
from skdp.accounting.pld.pairs.discrete import AtomicPair

_PROFILE_ROUNDING = 1e-14


class RandomisedResponsePair(AtomicPair):
    """The pair that dominates all (epsilon, delta)-DP releases (Kairouz, Oh, Viswanath, 2015)."""

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.largest_loss = epsilon
        self.failure = delta
        self.lattice = 2.0 * epsilon
        self.origin = epsilon
        self.variation = delta + (1.0 - delta) * math.tanh(0.5 * epsilon)

    def atoms(self, tail: float) -> tuple[Array, Array, float]:
        """Return the numbers of the two losses, and their probabilities under P."""
        kept = 1.0 - self.failure
        down = kept * math.exp(-self.largest_loss) / (1.0 + math.exp(-self.largest_loss))
        up = kept / (1.0 + math.exp(-self.largest_loss))
        if self.largest_loss == 0.0:
            return np.zeros(1), np.array([kept]), 0.0
        return np.array([-1.0, 0.0]), np.array([down, up]), 0.0

    def profile(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on the hockey-stick divergence at ``epsilon >= 0``."""
        value = self.failure
        error = _PROFILE_ROUNDING * value
        if epsilon < self.largest_loss:
            up = (1.0 - self.failure) / (1.0 + math.exp(-self.largest_loss))
            more = -up * math.expm1(epsilon - self.largest_loss)
            value += more
            error = _PROFILE_ROUNDING * value + 2.0**-51 * self.largest_loss * up
        return max(self.failure, value - error), min(1.0, value + error)
