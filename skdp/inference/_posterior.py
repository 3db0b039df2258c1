"""Posterior of coefficients after a look: a sum of scores and an information matrix with noise.

Units are scaled: rows have norm at most 1, and weights are for these rows. Part II of
``docs/proofs/inference.md`` derives each step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from skdp.base.parameters import cached_property

Array = NDArray[np.float64]

# Eigenvalues are averaged over this grid, and the posterior over these draws of all of them.
_GRID, _DRAWS, _ROUNDS = 200, 600, 3
# Eigenvalues are drawn with a fixed public seed: results are functions of released numbers.
_SEED = 20_250_101
# Released numbers are far below; squares and products of clipped ones do not overflow.
_LARGEST = 1e30
# The least share of its value that noise leaves of a variance.
_LEAST_SHARE = 0.05
# Draws that are solved for together fit the cache.
_BLOCK_NUMBERS = 1 << 20
# No information is further below 0, in deviations of its noise.
_FAR = 1e3
# Quantiles are accurate to this share of the least deviation of the mixture.
_TOLERANCE, _STEPS = 1e-10, 120


@dataclass(frozen=True)
class Reading:
    """Released sums at weights, in scaled units, and the noise of each.

    A reading of the score only, such as that of objective perturbation, has no information. Noise
    of matrices is that on the diagonal, root 2 times that off it.
    """

    theta: Array  # (d,)
    score: Array  # (d,)
    score_noise: float
    information: Any = None  # (d, d)
    matrix_noise: float = math.inf
    squares: Array | None = None  # (d, d) sum of products of scores, for the sandwich
    squares_noise: float = math.inf


@dataclass(frozen=True)
class Laws:
    """Laws of k contrasts: each is a mixture of normal laws of equal weights."""

    means: Array  # (k, draws)
    deviations: Array  # (k, draws)
    within: Array  # (k, k) mean of the covariances of draws
    prior: Array  # (k,) prior deviations

    @property
    def mean(self) -> Array:
        """Posterior means, (k,)."""
        return self.means.mean(axis=1)

    @property
    def deviation(self) -> Array:
        """Posterior standard deviations, (k,)."""
        return np.sqrt((self.deviations**2).mean(axis=1) + self.means.var(axis=1))

    @property
    def covariance(self) -> Array:
        """Posterior covariance, (k, k)."""
        moved = self.means - self.mean[:, None]
        return 0.5 * (self.within + self.within.T) + moved @ moved.T / moved.shape[1]

    @property
    def prior_share(self) -> Array:
        """Posterior variance over prior variance, (k,)."""
        return (self.deviation / np.maximum(self.prior, np.finfo(float).tiny)) ** 2

    @property
    def p_value(self) -> Array:
        """Twice the smaller of the two posterior tails beyond 0, (k,)."""
        ratio = self.means / self.deviations
        return 2.0 * np.minimum(ndtr(ratio).mean(axis=1), ndtr(-ratio).mean(axis=1))

    def quantiles(self, probabilities: ArrayLike) -> Array:
        """Return quantiles, (k, p), for probabilities inside (0, 1)."""
        levels = np.asarray(probabilities, dtype=np.float64)[:, None]
        each = self.means + self.deviations * ndtri(levels)[:, :, None]
        low, high = each.min(axis=2), each.max(axis=2)
        for _ in range(_STEPS):
            middle = 0.5 * low + 0.5 * high
            ratio = (middle[:, :, None] - self.means) / self.deviations
            below = ndtr(ratio).mean(axis=2) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
            if np.all(high - low <= _TOLERANCE * self.deviations.min(axis=1)):
                break
        return (0.5 * low + 0.5 * high).T


@dataclass(frozen=True)
class LookPosterior:
    """Mixture of normal laws of the true coefficients, one for each draw of the eigenvalues.

    In the basis of eigenvectors, a draw has the precision ``gain * curvature + prior``. Its mean
    has the product ``pull`` with that precision, as a distance from `theta`.
    """

    theta: Array  # (d,) weights of the look
    prior_sd: Array  # (d,)
    eigenvalues: Array  # (d,) of the released information, ascending
    basis: Array  # (d, d) eigenvectors in columns
    gain: Array  # (draws, d) weight of the released score: eigenvalue over variance
    curvature: Array  # (draws, d) eigenvalues of the exact information
    pull: Array  # (draws, d)
    cross: Array | None = None  # (d, d) covariances of the score between eigenvectors

    def laws(self, contrasts: ArrayLike) -> Laws:
        """Return the laws of linear functions of the coefficients, (k, d)."""
        rows = np.asarray(contrasts, dtype=np.float64)
        size = np.abs(rows).max(axis=1)
        size[size == 0.0] = 1.0
        rows = rows / size[:, None]
        rotated, (k, d) = rows @ self.basis, rows.shape
        between = (self.basis.T / self.prior_sd**2) @ self.basis  # precision of the prior
        means, variances = np.empty((2, k, len(self.pull)))
        within = np.zeros((k, k))
        step = max(1, _BLOCK_NUMBERS // (d * max(k, d)))
        for start in range(0, len(self.pull), step):
            block = slice(start, start + step)
            gain = self.gain[block]
            # Precisions are scaled to a diagonal of 1.
            scale = 1.0 / np.sqrt(gain * self.curvature[block] + np.diagonal(between))
            matrix = scale[:, :, None] * between * scale[:, None, :]
            matrix[:, np.arange(d), np.arange(d)] = 1.0
            right = rotated * scale[:, None, :]
            solved = np.linalg.solve(matrix, right.transpose(0, 2, 1)).transpose(0, 2, 1)
            solved *= scale[:, None, :]
            means[:, block] = (solved @ self.pull[block, :, None])[..., 0].T
            own = (solved * rotated).sum(axis=2).T
            within += solved.sum(axis=0) @ rotated.T
            if self.cross is not None:
                weight = solved * gain[:, None, :]
                crossed = weight @ self.cross
                own = np.maximum(own + (crossed * weight).sum(axis=2).T, _LEAST_SHARE * own)
                within += np.tensordot(crossed, weight, ((0, 2), (0, 2)))
            variances[:, block] = own
        means += (rows @ self.theta)[:, None]
        deviations = np.sqrt(np.maximum(variances, np.finfo(float).tiny)) * size[:, None]
        within *= np.outer(size, size) / len(self.pull)
        prior = np.linalg.norm(rows * self.prior_sd, axis=1) * size
        return Laws(means * size[:, None], deviations, within, prior)

    @cached_property
    def coefficients(self) -> Laws:
        """Laws of the coefficients; their means are the corrected model."""
        return self.laws(np.eye(len(self.theta)))

    @cached_property
    def centre(self) -> Array:
        """Weights by the mean precision of all draws, close to the mean and much faster, (d,)."""
        precision = (self.basis.T / self.prior_sd**2) @ self.basis
        precision += np.diag((self.gain * self.curvature).mean(axis=0))
        return self.theta + self.basis @ np.linalg.solve(precision, self.pull.mean(axis=0))

    def quantiles(self, contrasts: ArrayLike, probabilities: ArrayLike) -> Array:
        """Return quantiles of each contrast, (k, p)."""
        return self.laws(contrasts).quantiles(probabilities)


def posterior_of(reading: Reading, prior_sd: Array) -> LookPosterior:
    """Return the posterior of the coefficients, a function of its arguments only.

    The released information may be indefinite.
    """
    if reading.information is None:
        raise ValueError("A posterior needs a reading of the information.")
    given = reading.theta, reading.score, reading.information
    if not all(np.isfinite(each).all() for each in given):
        raise ValueError("A reading must have finite numbers.")
    theta, score, matrix = (np.clip(each, -_LARGEST, _LARGEST) for each in given)
    noises = reading.score_noise, reading.matrix_noise, reading.squares_noise
    s1, s2, s3 = np.clip(noises, 1.0 / _LARGEST, _LARGEST)
    prior = np.clip(prior_sd, 1.0 / _LARGEST, _LARGEST)
    prior = np.maximum(prior, 1e-6 * prior.max())
    values, basis = np.linalg.eigh(0.5 * (matrix + matrix.T))
    middle, cross = None, None
    if reading.squares is not None:
        products = basis.T @ np.clip(reading.squares, -_LARGEST, _LARGEST) @ basis
        # Variances and covariances of the score are shrunk to those of the model.
        expected = np.maximum(values, s2)
        share = expected**2 / (expected**2 + 4.0 * s3**2)
        middle = expected + share * (np.diagonal(products) - expected)
        middle = np.maximum(middle, _LEAST_SHARE * expected)
        cross = np.sqrt(np.outer(share, share)) * 0.5 * (products + products.T)
        np.fill_diagonal(cross, 0.0)
    axes = basis.T @ score, -basis.T @ theta, (basis**2).T @ prior**2
    drawn, spread = _draw(values, s1, s2, axes, middle)
    gain = drawn / spread
    pull = gain * axes[0] - (basis.T / prior**2) @ theta
    return LookPosterior(theta, prior, values, basis, gain, drawn, pull, cross)


def _draw(
    values: Array, s1: float, s2: float, axes: Sequence[Array], middle: Array | None
) -> tuple[Array, Array]:
    """Return eigenvalues and variances of the score, (draws, d) both.

    `axes` are the score, and the prior mean and variance of the distance from theta.
    """
    # Quantiles of normal laws that are cut to positive numbers, (d, grid).
    start = np.minimum(-values[:, None] / s2, _FAR)
    log_levels = np.log1p(-(np.arange(_GRID) + 0.5) / _GRID) + log_ndtr(-start)
    grid = np.clip(s2 * (-ndtri_exp(log_levels) - start), 1.0 / _LARGEST, _LARGEST)
    exact = grid if middle is None else np.broadcast_to(middle[:, None], grid.shape)
    score, centre, prior = (each[:, None] for each in axes)
    residual, extra = score - grid * centre, np.zeros((len(grid), 1))
    for _ in range(_ROUNDS + 1):
        variance = exact + s1**2 + extra
        spread = variance + prior * grid**2
        log = np.log(grid) - 0.5 * np.log(spread) - 0.5 * residual**2 / spread
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        mean = centre + prior * grid * residual / spread
        squares = (weight * (mean**2 + prior * (variance / spread))).sum(axis=1, keepdims=True)
        # Noise of the information between axes, times the distance along the others.
        extra = 0.5 * s2**2 * (squares.sum() - squares)
    order = np.random.default_rng(_SEED).random((len(grid), _DRAWS)).argsort(axis=1)
    levels = (np.arange(_DRAWS) + 0.5) / _DRAWS
    place = np.empty((len(grid), _DRAWS), dtype=np.intp)
    for own, to, total in zip(place, order, np.cumsum(weight, axis=1), strict=True):
        own[to] = np.minimum(np.searchsorted(total, levels * total[-1]), _GRID - 1)
    drawn, spread = (np.take_along_axis(each, place, axis=1).T for each in (grid, variance))
    return drawn, spread
