"""The pair of a release of which only (epsilon, delta) is known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.pld.pairs import Array


class RandomisedResponsePair:
    """The pair that dominates every (epsilon, delta)-DP mechanism (Kairouz, Oh, Viswanath, 2015).

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats.
    delta : float, default=0.0
        Failure probability.
    """

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.largest_loss = epsilon
        self.failure = delta
        self.atomic = True
        self.variation = delta + (1.0 - delta) * math.tanh(0.5 * epsilon)

    def span(self, tail: float) -> tuple[float, float]:
        """Return the smallest and the largest loss."""
        return -self.largest_loss, self.largest_loss

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """Return both losses with their probabilities."""
        kept = 1.0 - self.failure
        down = kept * math.exp(-self.largest_loss) / (1.0 + math.exp(-self.largest_loss))
        up = kept / (1.0 + math.exp(-self.largest_loss))
        return np.array([-self.largest_loss, self.largest_loss]), np.array([down, up])

    def grid(self, step: float, tail: float) -> tuple[NDArray[np.int64], Array, float]:
        """Return indices of losses in units of ``step``, their masses, and the infinite mass."""
        losses, probabilities = self.sketch(tail)
        lower = np.floor(losses / step)
        offset = losses - lower * step
        share = np.clip(np.expm1(-offset) / math.expm1(-step), 0.0, 1.0)
        indices = np.concatenate([lower, lower + 1.0]).astype(np.int64)
        masses = np.concatenate([probabilities * (1.0 - share), probabilities * share])
        order = np.argsort(indices, kind="stable")
        return indices[order], masses[order], self.failure
