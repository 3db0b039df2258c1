"""Posterior of coefficients after a look: a sum of scores and an information matrix with noise.

Units are scaled: rows have norm at most 1, and weights are for these rows. Part II of
``docs/proofs/inference.md`` derives each step.
"""

from __future__ import annotations

from collections.abc import Iterator
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
# A normal law cut this many deviations above its centre is exponential.
_FAR = 1e3
# Quantiles are accurate to this share of the least deviation of the mixture.
_TOLERANCE, _STEPS = 1e-9, 100


@dataclass(frozen=True)
class LookPosterior:
    """Mixture of normal laws of the true coefficients, one for each draw of the eigenvalues.

    In the basis of eigenvectors, a draw has the precision ``gain * curvature + prior``. Its mean
    has the product ``pull`` with that precision, as a distance from `theta`.
    """

    theta: Array  # (d,) weights of the look
    information: Array  # (d, d) as released, symmetric
    matrix_noise: float
    prior_sd: Array  # (d,)
    eigenvalues: Array  # (d,) of the information, ascending
    basis: Array  # (d, d) eigenvectors in columns
    gain: Array  # (draws, d) weight of the released score: eigenvalue over variance
    curvature: Array  # (draws, d) eigenvalues of the exact information
    pull: Array  # (draws, d)
    cross: Array | None = None  # (d, d) covariances of the score between eigenvectors

    @cached_property
    def _prior(self) -> Array:
        """Precision of the prior between eigenvectors."""
        return (self.basis.T / self.prior_sd**2) @ self.basis

    @cached_property
    def _last(self) -> dict[bytes, tuple[Array, Array]]:
        """Laws of the contrasts that were last asked for; several answers need them."""
        return {}

    def _solve(self, rotated: Array) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of draws with their covariances times each contrast, (draws, k, d)."""
        k, d = rotated.shape
        isotropic = bool(np.all(self.prior_sd == self.prior_sd[0]))
        step = max(1, _BLOCK_NUMBERS // (d * (k if isotropic else max(k, d))))
        prior = np.diagonal(self._prior)
        for start in range(0, len(self.pull), step):
            block = slice(start, start + step)
            data = self.gain[block] * self.curvature[block]
            if isotropic:
                yield block, rotated / (data + self.prior_sd[0] ** -2.0)[:, None, :]
                continue
            scale = 1.0 / np.sqrt(data + prior)  # to a diagonal of 1
            matrix = scale[:, :, None] * self._prior * scale[:, None, :]
            matrix[:, np.arange(d), np.arange(d)] = 1.0
            right = (rotated * scale[:, None, :]).transpose(0, 2, 1)
            yield block, np.linalg.solve(matrix, right).transpose(0, 2, 1) * scale[:, None, :]

    def _laws(self, contrasts: ArrayLike) -> tuple[Array, Array]:
        """Return mean and deviation of each contrast in each draw, (k, draws) both."""
        rows = self._checked(contrasts)
        if (known := self._last.get(rows.tobytes())) is not None:
            return known
        rotated = rows @ self.basis
        mean = np.empty((len(rows), len(self.pull)))
        variance = np.empty_like(mean)
        for block, solved in self._solve(rotated):
            mean[:, block] = (solved @ self.pull[block, :, None])[..., 0].T
            own = (solved * rotated).sum(axis=2).T
            variance[:, block] = own
            if self.cross is not None:
                weight = solved * self.gain[block, None, :]
                both = own + ((weight @ self.cross) * weight).sum(axis=2).T
                variance[:, block] = np.maximum(both, _LEAST_SHARE * own)
        mean += (rows @ self.theta)[:, None]
        found = mean, np.sqrt(np.maximum(variance, _LARGEST**-4))
        self._last.clear()
        self._last[rows.tobytes()] = found
        return found

    def _checked(self, contrasts: ArrayLike) -> Array:
        """Return contrasts as rows of finite numbers."""
        rows = np.asarray(contrasts, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.theta) or not np.isfinite(rows).all():
            shape = f"(n_contrasts, {len(self.theta)})"
            raise ValueError(f"`contrasts` must be finite, of shape {shape}, got {rows.shape}.")
        return np.clip(rows, -_LARGEST, _LARGEST)

    @cached_property
    def mean(self) -> Array:
        """Posterior means of the coefficients, (d,): the corrected model."""
        total = np.zeros(len(self.theta))
        for block, solved in self._solve(self.basis):
            total += np.einsum("nki,ni->k", solved, self.pull[block])
        return self.theta + total / len(self.pull)

    @cached_property
    def centre(self) -> Array:
        """Weights by the mean precision of all draws, close to the mean and much faster, (d,)."""
        precision = np.diag((self.gain * self.curvature).mean(axis=0)) + self._prior
        return self.theta + self.basis @ np.linalg.solve(precision, self.pull.mean(axis=0))

    @cached_property
    def covariance(self) -> Array:
        """Posterior covariance of the coefficients, (d, d)."""
        d = len(self.theta)
        own, centres = np.zeros((d, d)), np.empty((len(self.pull), d))
        for block, solved in self._solve(self.basis):
            own += solved.sum(axis=0) @ self.basis.T
            centres[block] = (solved @ self.pull[block, :, None])[..., 0]
            if self.cross is not None:
                weight = solved * self.gain[block, None, :]
                own += ((weight @ self.cross) @ weight.transpose(0, 2, 1)).sum(axis=0)
        centres -= centres.mean(axis=0)
        total = (own + centres.T @ centres) / len(self.pull)
        return 0.5 * (total + total.T)

    def deviations(self, contrasts: ArrayLike) -> Array:
        """Return the posterior standard deviation of each contrast, (k,)."""
        mean, sd = self._laws(contrasts)
        return np.sqrt((sd**2).mean(axis=1) + mean.var(axis=1))

    def prior_share(self, contrasts: ArrayLike) -> Array:
        """Return the posterior variance of each contrast over its prior variance, (k,)."""
        rows = self._checked(contrasts)
        prior = np.sqrt(((rows * self.prior_sd) ** 2).sum(axis=1))
        return (
            np.divide(self.deviations(rows), prior, out=np.ones(len(rows)), where=prior > 0.0) ** 2
        )

    def quantiles(self, contrasts: ArrayLike, probabilities: ArrayLike) -> Array:
        """Return quantiles of each contrast, (k, p), for probabilities inside (0, 1)."""
        wanted = np.asarray(probabilities, dtype=np.float64).ravel()
        if not np.all((wanted > 0.0) & (wanted < 1.0)):
            raise ValueError("`probabilities` must be in (0, 1).")
        return _mixture_quantiles(*self._laws(contrasts), wanted)

    def probability_positive(self, contrasts: ArrayLike) -> Array:
        """Return the posterior probability that each contrast is positive, (k,)."""
        mean, sd = self._laws(contrasts)
        return ndtr(mean / sd).mean(axis=1)

    def p_values(self, contrasts: ArrayLike) -> Array:
        """Return twice the smaller of the two posterior tails beyond 0, (k,)."""
        mean, sd = self._laws(contrasts)
        ratio = mean / sd
        return 2.0 * np.minimum(ndtr(ratio).mean(axis=1), ndtr(-ratio).mean(axis=1))

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the released information."""
        return float(self.eigenvalues[0])

    @property
    def reliable(self) -> bool:
        """Whether the smallest eigenvalue exceeds the edge of the spectrum of noise."""
        edge = self.matrix_noise * np.sqrt(2.0 * len(self.theta))
        return bool(self.smallest_eigenvalue >= edge)

    def change_of_margins(self, constant: float, column: int = -1) -> float:
        """Return the root mean square change of log odds from `theta` to the posterior mean.

        `constant` is the value of the intercept's column in scaled units, and `column` its place.
        """
        shift = np.clip(self.basis.T @ (self.mean - self.theta), -_LARGEST, _LARGEST)
        change = float(np.maximum(self.eigenvalues, 0.0) @ shift**2)
        weight = float(self.information[column, column]) / constant**2  # sum of p (1 - p)
        return float(np.sqrt(change / max(weight, self.matrix_noise / constant**2, _LARGEST**-1)))


def look_posterior(
    theta: ArrayLike,
    score: ArrayLike,
    information: ArrayLike,
    score_noise: float,
    matrix_noise: float,
    prior_sd: ArrayLike,
    covariance: ArrayLike | None = None,
    covariance_noise: float = 0.0,
) -> LookPosterior:
    """Return the posterior of the coefficients from one look, a function of its arguments only."""
    # Noise is that on the diagonal of matrices, root 2 times that off it. The information may be
    # indefinite. `covariance` is the sum of products of scores, for the sandwich.
    weights = _numbers("theta", theta, 1)
    shape = (len(weights), len(weights))
    reading = _numbers("score", score, 1, shape[:1])
    matrix = _numbers("information", information, 2, shape)
    noises = np.array([score_noise, matrix_noise, covariance_noise], dtype=np.float64)
    prior = _numbers("prior_sd", np.broadcast_to(np.asarray(prior_sd, float), shape[:1]), 1)
    if not (np.isfinite(noises).all() and noises.min() >= 0.0 and prior.min() > 0.0):
        raise ValueError("Noise must be finite and at least 0, and `prior_sd` must be positive.")
    s1, s2, s3 = np.clip(noises, _LARGEST**-1, _LARGEST)
    prior = np.maximum(prior, max(_LARGEST**-1, 1e-6 * prior.max()))
    matrix = 0.5 * (matrix + matrix.T)
    values, basis = np.linalg.eigh(matrix)
    middle, cross = None, None
    if covariance is not None:
        products = _numbers("covariance", covariance, 2, shape)
        middle, cross = _shrink(basis.T @ products @ basis, np.maximum(values, s2), s3)
    given = _Axes(
        values, s1, s2, basis.T @ reading, -basis.T @ weights, (basis**2).T @ prior**2, middle
    )
    drawn, spread = given.draw()
    gain = drawn / spread
    pull = gain * given.score - (basis.T / prior**2) @ weights
    return LookPosterior(weights, matrix, float(s2), prior, values, basis, gain, drawn, pull, cross)


def _numbers(name: str, values: Any, ndim: int, shape: tuple[int, ...] | None = None) -> Array:
    """Return finite numbers of a shape, at most `_LARGEST`."""
    array = np.array(values, dtype=np.float64)
    wrong = array.ndim != ndim or array.size == 0 or (shape is not None and array.shape != shape)
    if wrong or not np.isfinite(array).all():
        wanted = f"of shape {shape}" if shape is not None else f"with {ndim} dimension(s)"
        raise ValueError(f"`{name}` must be finite and {wanted}, got shape {array.shape}.")
    return np.clip(array, -_LARGEST, _LARGEST)


def _shrink(products: Array, expected: Array, noise: float) -> tuple[Array, Array]:
    """Return variances and covariances of the score between eigenvectors, shrunk to the model's."""
    share = expected**2 / (expected**2 + 4.0 * noise**2)
    diagonal = np.diagonal(products)
    variance = np.maximum(expected + share * (diagonal - expected), _LEAST_SHARE * expected)
    cross = np.sqrt(np.outer(share, share)) * 0.5 * (products + products.T)
    np.fill_diagonal(cross, 0.0)
    return variance, cross


@dataclass(frozen=True)
class _Axes:
    """The look along each eigenvector of the released information."""

    values: Array  # (d,) eigenvalues, with noise s2
    s1: float
    s2: float
    score: Array  # (d,)
    centre: Array  # (d,) prior mean of the distance from theta
    prior: Array  # (d,) prior variance
    middle: Array | None  # (d,) variance of the exact score; None: the eigenvalue

    def draw(self) -> tuple[Array, Array]:
        """Return eigenvalues and variances of the score, (draws, d) both."""
        grid = _positive_quantiles(self.values, self.s2)
        extra = np.zeros(len(grid))
        for _ in range(_ROUNDS):
            weight, squares = self._weigh(grid, extra)
            found = (weight * squares).sum(axis=1)
            # Noise of the information between axes, times the distance along the others.
            extra = 0.5 * self.s2**2 * (found.sum() - found)
        weight, _ = self._weigh(grid, extra)
        order = np.random.default_rng(_SEED).random((len(grid), _DRAWS)).argsort(axis=1)
        levels = (np.arange(_DRAWS) + 0.5) / _DRAWS
        drawn = np.empty((_DRAWS, len(grid)))
        for i, total in enumerate(np.cumsum(weight, axis=1)):
            place = np.searchsorted(total, levels * total[-1])
            drawn[order[i], i] = grid[i, np.minimum(place, _GRID - 1)]
        return drawn, self._variance(drawn.T, extra).T

    def _variance(self, grid: Array, extra: Array) -> Array:
        middle = grid if self.middle is None else np.broadcast_to(self.middle[:, None], grid.shape)
        return middle + self.s1**2 + extra[:, None]

    def _weigh(self, grid: Array, extra: Array) -> tuple[Array, Array]:
        """Return posterior weights of the grid, and mean squares of the distance at each point."""
        variance, prior = self._variance(grid, extra), self.prior[:, None]
        centre, score = self.centre[:, None], self.score[:, None]
        spread = variance + prior * grid**2
        residual = score - grid * centre
        log = np.log(grid) - 0.5 * np.log(spread) - 0.5 * residual**2 / spread
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        mean = centre + prior * grid * residual / spread
        squares = mean**2 + prior * (variance / spread)
        return weight / weight.sum(axis=1, keepdims=True), squares


def _positive_quantiles(centres: Array, deviation: float) -> Array:
    """Return quantiles of normal laws cut to positive numbers, (d, grid)."""
    levels = np.log1p(-(np.arange(_GRID) + 0.5) / _GRID)
    start = -centres[:, None] / deviation
    tail = levels + log_ndtr(-np.minimum(start, _FAR))
    exponential = -levels / np.maximum(start, 1.0)  # the law of the excess far in the tail
    drawn = np.where(start > _FAR, exponential, -ndtri_exp(tail) - start)
    return np.clip(deviation * drawn, _LARGEST**-1, _LARGEST)


def _mixture_quantiles(mean: Array, sd: Array, probabilities: Array) -> Array:
    """Return quantiles (k, p) of equal mixtures of normal laws, by Newton steps in brackets."""
    levels = probabilities[:, None]  # arrays (p, k), and (p, k, draws)
    each = mean + sd * ndtri(probabilities)[:, None, None]
    low, high = each.min(axis=2), each.max(axis=2)
    overall = np.sqrt((sd**2).mean(axis=1) + mean.var(axis=1))
    found = np.clip(mean.mean(axis=1) + overall * ndtri(levels), low, high)
    inverse, least = 1.0 / sd, _TOLERANCE * sd.min(axis=1)
    for _ in range(_STEPS):
        ratio = (found[:, :, None] - mean) * inverse
        gap = ndtr(ratio).mean(axis=2) - levels
        low, high = np.where(gap > 0.0, low, found), np.where(gap > 0.0, found, high)
        np.multiply(ratio, -0.5 * ratio, out=ratio)
        density = (np.exp(ratio, out=ratio) * inverse).mean(axis=2) / np.sqrt(2.0 * np.pi)
        newton = found - gap / np.maximum(density, np.finfo(float).tiny)
        before = found
        found = np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
        if np.all(np.abs(found - before) <= np.maximum(least, 1e-14 * np.abs(found))):
            break
    return found.T
