"""Moments of rows of bounded norm: the mean row, and variances pooled over groups of features."""

from __future__ import annotations

import math

import numpy as np

from skdp.mechanisms.contribution import ROUND_UP, ContributionBound
from skdp.plans.row_norms import share_rows
from skdp.plans.second_moments import second_moment_bound

# A record contributes (e, a x): its energies |x_g|^2, one for each group g, and its row.
_SQUARED_MEAN_WEIGHT = 0.5
_MEAN_WEIGHT = math.sqrt(_SQUARED_MEAN_WEIGHT)


def group_moment_bound(n_groups: int, reason: str) -> ContributionBound:
    """Return the sensitivity of :func:`group_moment_sums`; 0 groups are the sum of rows alone."""
    if n_groups == 0:
        return ContributionBound(ROUND_UP, 2.0 * ROUND_UP, reason)
    # No pair of rows is further apart than two pairs of an outer product and its row can be.
    return second_moment_bound(n_groups, _SQUARED_MEAN_WEIGHT, reason)


def group_moment_sums(
    units: np.ndarray, n_groups: int, shares: np.ndarray | None = None
) -> np.ndarray:
    """Return the sums of energies and of rows, as one vector, over rows of norm at most 1."""
    shared = share_rows(units, shares)
    total = shared.sum(axis=0)
    if n_groups == 0:
        return total
    squares = np.einsum("ij,ij->j", shared, units)
    return np.concatenate([squares.reshape(n_groups, -1).sum(axis=1), _MEAN_WEIGHT * total])


def group_statistics(
    noisy: np.ndarray, noise: float, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean row and the variance of each group that noisy means of these tell.

    `noise` is the standard deviation in each; no variance is smaller than its own noise.
    """
    if n_groups == 0:
        return noisy, np.empty(0)
    mean, noise_of_mean = noisy[n_groups:] / _MEAN_WEIGHT, noise / _MEAN_WEIGHT
    size = mean.size // n_groups
    # The energy of a noisy mean is too large by that of its noise, on average.
    excess = size * noise_of_mean**2
    of_mean = np.maximum((mean**2).reshape(n_groups, size).sum(axis=1) - excess, 0.0)
    floor = np.sqrt(noise**2 + 4.0 * of_mean * noise_of_mean**2 + 2.0 * excess**2 / size)
    return mean, np.maximum(noisy[:n_groups] - of_mean, floor) / size
