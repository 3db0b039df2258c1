"""A noisy count of labels, from which a fit takes weights of labels that are at most 1.

Every bound on a record is then that of the fit without weights, whatever has been counted
(Theorem 2 of ``docs/proofs/class_weights.md``).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.mechanisms.contribution import Adjacency
from skdp.mechanisms.release import Release

# What the count may cost: a share of the square of mu, or of epsilon without a delta.
_SHARE, _PURE_SHARE = 0.02, 0.05
# What the rows of one id count together, in exact numbers.
_UNIT = 2.0**22


def label_counts(epsilon: float, delta: float, adjacency: Adjacency, n_classes: int) -> Release:
    """Return the release of how many records each label has, for a small share of the target."""
    counts = Release.shares("label counts", adjacency, 0)
    if adjacency == "add-remove":  # of exact sums, with nothing to be rounded up
        counts = replace(counts, l2=1.0)
    if delta == 0.0:
        return counts.without_delta(_PURE_SHARE * epsilon, n_classes, discrete=True)
    multiplier = analytic_gaussian_sigma(epsilon, delta) / math.sqrt(_SHARE)
    return counts.on_grid(multiplier, n_classes)


def count_labels(codes: np.ndarray, n_classes: int, shares: np.ndarray | None) -> np.ndarray:
    """Count records by label; rows of one id count their shares, of which sums are exact."""
    if shares is None:
        return np.bincount(codes, minlength=n_classes).astype(np.float64)
    whole = np.floor(shares * _UNIT)
    return np.bincount(codes, whole, minlength=n_classes) / _UNIT


def label_weights(counts: np.ndarray, noise: float) -> np.ndarray:
    """Return weights as 1 over noisy counts, the largest 1; a count is at least its noise."""
    counts = np.maximum(counts, max(1.0, noise))
    return counts.min() / counts
