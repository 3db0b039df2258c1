"""A noisy count of labels, from which a fit takes weights of labels that are at most 1.

Every bound on a record is then that of the fit without weights, whatever has been counted
(Theorem 2 of ``docs/proofs/class_weights.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdp.accounting import Event, GaussianEvent
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.mechanisms.contribution import ROUND_UP, Adjacency
from skdp.mechanisms.discrete_gaussian import Noise, noise_on_grid
from skdp.mechanisms.norm_exponential import pure_event, pure_noise

# What the count may cost: a share of the square of mu, or of epsilon without a delta.
_SHARE, _PURE_SHARE = 0.02, 0.05
# What the rows of one id count together, in exact numbers.
_UNIT = 2.0**22


@dataclass(frozen=True)
class LabelCountPlan:
    """How many records each label has, with noise on a grid."""

    delta: float
    sensitivity: float
    sigma: float
    grid: float

    @classmethod
    def build(
        cls, epsilon: float, delta: float, adjacency: Adjacency, n_classes: int
    ) -> LabelCountPlan:
        """Return the plan with the noise that a small share of the target pays for."""
        moved = math.sqrt(2.0) * ROUND_UP if adjacency == "replace-one" else 1.0
        if delta == 0.0:
            noise = pure_noise(moved, _PURE_SHARE * epsilon, n_classes, discrete=True)
        else:
            multiplier = analytic_gaussian_sigma(epsilon, delta) / math.sqrt(_SHARE)
            noise = noise_on_grid(moved, multiplier, n_classes)
        return cls(delta, noise.sensitivity, noise.sigma, noise.grid)

    @property
    def event(self) -> Event:
        """One release of all counts."""
        noise = Noise(self.sensitivity, self.sigma, self.grid)
        return GaussianEvent(noise.multiplier) if self.delta > 0.0 else pure_event(noise)

    def count(self, codes: np.ndarray, n_classes: int, shares: np.ndarray | None) -> np.ndarray:
        """Count records by label; rows of one id count their shares, of which sums are exact."""
        if shares is None:
            return np.bincount(codes, minlength=n_classes).astype(np.float64)
        whole = np.floor(shares * _UNIT)
        return np.bincount(codes, whole, minlength=n_classes) / _UNIT

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """Return weights as 1 over noisy counts, the largest 1; a count is at least its noise."""
        counts = np.maximum(counts, max(1.0, self.sigma))
        return counts.min() / counts
