"""Linear regression by clipped gradient steps on preconditioned rows; all noise is Gaussian.

Three releases share one budget: counts of targets in public bins, second moments of rows, and one
sum of gradients per step. Proofs: ``docs/proofs/linear_regression.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from skdp.accounting import Event
from skdp.base.parameters import Adjacency
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.mechanisms.contribution import ROUND_UP, ContributionBound
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release, compose
from skdp.models import ScaledUnits
from skdp.plans.defaults import PublicNumbers
from skdp.plans.moment_regression import (
    ROUNDING,
    bind_rows,
    blocks_of,
    sum_moments,
    unpack_moments,
)
from skdp.plans.noisy_gradient import LARGEST_WEIGHTS
from skdp.plans.protocol import OnAllRows
from skdp.plans.second_moments import refuse_wide, second_moment_bound
from skdp.solvers import Rows

Array = NDArray[np.float64]

# Between the 5 % and the 95 % quantile of a normal law, in its deviations.
_QUANTILES, _DEVIATIONS = (0.05, 0.5, 0.95), 3.29
# Bins are joined in pairs down to so many.
_FEWEST_BINS = 4
# Rows that say how far a number of noisy gradients reaches, in the choice of the clip.
_ROWS_PER_WEIGHT = 20.0


@dataclass(frozen=True)
class Tuning:
    """Constants independent of the table; see ``examples/benchmarks/regression_constants.py``."""

    steps: int = 32
    few: int = 10  # steps, and less time, where there is much signal
    much: float = 200.0  # of the signal-to-noise ratio over d^1.5
    counts: float = 0.13  # share of the squared mu
    moments: float = 0.2  # share of the rest
    bins: int = 32
    least_count: float = 3.0  # in deviations of the noise; smaller ones are taken for noise
    told: float = 0.3  # of the rows; bins are joined while larger counts hold fewer
    constant: float = 0.5  # value of the intercept's column
    floor: float = 0.5  # of eigenvalues, over the edge of the noise's spectrum; steps need .5
    clip: float = 0.35  # of the root of the signal
    skew: float = 1.0  # more of it for each deviation from the targets' middle to their mean
    clips: tuple[float, float] = (0.25, 8.0)
    late: float = 3.0  # power of the step's number that an iterate counts in the average


@dataclass(frozen=True)
class RegressionPlan(OnAllRows):
    """Everything that must agree in one fit by preconditioned steps; see `build`."""

    counts: Release
    moments: Release
    steps: Release  # of gradients over their clip
    adjacency: Adjacency
    n_rows: int
    n_features: int
    constant: float  # value of the intercept's column in scaled units, 0 without
    units: ScaledUnits
    tuning: Tuning
    by_unit: bool = False

    grid = 0.0
    facts, n_outputs = frozenset({"linear"}), 1  # as a model

    @classmethod
    def build(
        cls,
        numbers: PublicNumbers,
        units: ScaledUnits,
        fit_intercept: bool,
        tuning: Tuning = Tuning(),
    ) -> RegressionPlan:
        """Split the budget by squared mu, from public numbers; Theorem 1 of the proofs."""
        refuse_wide(numbers.n_features)
        total = analytic_gaussian_sigma(numbers.target_epsilon, numbers.delta) * ROUND_UP

        def share(part: float, label: str, bound: ContributionBound, times: int = 1) -> Release:
            multiplier = total * math.sqrt(times / part) * ROUND_UP
            release = Release.bounded(label, bound, numbers.adjacency, times)
            return release.continuous(multiplier)

        constant = tuning.constant if fit_intercept else 0.0
        much = numbers.signal_to_noise >= tuning.much * numbers.n_features**1.5
        cell = ContributionBound(ROUNDING, math.sqrt(2.0) * ROUNDING, "")
        rest = 1.0 - tuning.counts
        return cls(
            share(tuning.counts, "counts of targets", cell),
            share(
                rest * tuning.moments,
                "second moments",
                second_moment_bound(numbers.n_features, 2.0 * (constant / ROUNDING) ** 2),
            ),
            share(
                rest * (1.0 - tuning.moments),
                "sums of gradients",
                ContributionBound(ROUNDING, 2.0 * ROUNDING, ""),
                tuning.few if much else tuning.steps,
            ),
            numbers.adjacency,
            numbers.n_rows,
            numbers.n_features,
            constant,
            units,
            tuning,
            numbers.by_unit,
        )

    @property
    def model(self) -> RegressionPlan:
        """The plan itself, which holds the public shape of the rows."""
        return self

    @property
    def _parts(self) -> tuple[Release, ...]:
        return self.counts, self.moments, self.steps

    @property
    def event(self) -> Event:
        """All releases, in their order."""
        return compose(self._parts)

    @property
    def mu(self) -> float:
        """Gaussian differential privacy of all releases together."""
        squares = (p.times * (p.l2 / float(p.scale)) ** 2 for p in self._parts)
        return math.sqrt(sum(squares)) * ROUND_UP

    def bind(
        self, X: Any, targets: Array, row_weight: Array | None = None, n_units: int | None = None
    ) -> list[Any]:
        """Return the rows of a table as `carry_out` takes them."""
        return [bind_rows(self, X, targets, row_weight, n_units)]

    def carry_out(
        self, table: list[Any], stream: RandomStream, on_step: Callable[[int], None] | None = None
    ) -> Array:
        """Release counts, moments and noisy gradients; return weights, then middle and scale.

        The last weight is that of the constant column, if there is one.
        """
        (rows,) = table
        counted = np.histogram(rows.targets, self.tuning.bins, (-1.0, 1.0), weights=rows.row_weight)
        noisy = self.counts.make(counted[0].astype(np.float64), stream.spawn("counts"))
        centre, scale, skew = self._summarise(noisy)
        packed = sum_moments(rows, ROUNDING, 2.0 * (self.constant / ROUNDING) ** 2)
        basis, freedom = self._precondition(self.moments.make(packed, stream.spawn("moments")))
        clip = self._clip_of(freedom, skew) * scale
        sums = _ClippedSums(rows, self.constant, centre, basis, clip)
        mechanism = self.steps.mechanism(stream.spawn("steps"))
        point, average = np.zeros((2, basis.shape[1]))
        shares = np.arange(1.0, self.steps.times + 1.0) ** self.tuning.late
        for step, share in enumerate(shares / shares.sum()):
            noisy = mechanism.release(basis.T @ sums.add(basis @ point) / clip)
            point = _bounded(point + clip / self.n_rows * noisy)
            average += share * point
            if on_step is not None:
                on_step(step + 1)
        return np.append(basis @ average, [centre, scale])

    def _summarise(self, counts: Array) -> tuple[float, float, float]:
        """Return middle and deviation of targets, and the mean's distance from it in deviations."""
        kept = self._tell_from_noise(counts)
        edges = np.linspace(-1.0, 1.0, kept.size + 1)
        below = np.concatenate([[0.0], np.cumsum(kept / kept.sum())])
        bins = np.flatnonzero(kept)
        low, middle, high = np.interp(
            _QUANTILES,
            np.column_stack([below[bins], below[bins + 1]]).ravel(),
            np.column_stack([edges[bins], edges[bins + 1]]).ravel(),
        )
        scale = max(float(high - low) / _DEVIATIONS, 1.0 / self.tuning.bins)
        mean = kept @ (edges[1:] + edges[:-1]) / (2.0 * kept.sum())
        return float(middle), scale, float(abs(mean - middle)) / scale

    def _tell_from_noise(self, counts: Array) -> Array:
        """Return counts of bins, joined until they exceed the noise, with small counts set to 0."""
        noise = self.tuning.least_count * self.counts.sigma
        while True:
            telling = counts >= min(noise, counts.max())
            kept = np.where(telling, np.maximum(counts, 1e-300), 0.0)
            if kept.sum() >= self.tuning.told * self.n_rows or kept.size <= _FEWEST_BINS:
                return kept
            counts, noise = counts.reshape(-1, 2).sum(axis=1), math.sqrt(2.0) * noise

    def _precondition(self, released: Array) -> tuple[Array, float]:
        """Return columns that even out rows in all directions, and their effective number."""
        packed = np.clip(released, -LARGEST_WEIGHTS, LARGEST_WEIGHTS)
        matrix = unpack_moments(packed, self.n_features, ROUNDING, self.constant, self.n_rows)
        values, vectors = eigh(matrix)
        # Else the last bit of a sum may turn a direction round, and with it the noise along it.
        vectors *= np.where(np.max(vectors, axis=0) < -np.min(vectors, axis=0), -1.0, 1.0)
        values = np.maximum(values, 0.0)
        edge = min(self.moments.sigma, LARGEST_WEIGHTS) * math.sqrt(2.0 * values.size)
        lifted = values + max(self.tuning.floor * edge, 1e-12 * self.n_rows)
        return vectors * np.sqrt(self.n_rows / lifted), max(1.0, float(np.sum(values / lifted)))

    def _clip_of(self, freedom: float, skew: float) -> float:
        """Return the clipping norm of gradients, in deviations of the targets."""
        spread = math.sqrt(self.n_features * freedom * _ROWS_PER_WEIGHT)
        signal = self.mu * self.n_rows / self.steps.l2
        # What is cut on one side more than on the other draws the fit from the mean to the median.
        factor = self.tuning.clip * (1.0 + self.tuning.skew * skew) * math.sqrt(signal / spread)
        return float(np.clip(factor, *self.tuning.clips)) * math.sqrt(freedom)


class _ClippedSums:
    """Sums of preconditioned gradients of squared residuals, each clipped to a norm.

    A row whose products overflow contributes zero.
    """

    def __init__(
        self, rows: Rows, constant: float, centre: float, basis: Array, clip: float
    ) -> None:
        self._rows, self._shifts = rows, (constant, centre)
        self._reach = rows.column(partial(_reach_of_part, constant, basis, clip))

    def add(self, weights: Array) -> Array:
        """Return the sum at given weights; cutting residuals clips the gradients."""
        add_part = partial(_sum_part, *self._shifts, weights)
        return sum(self._rows.map_parts(add_part, columns=[self._reach]))


@np.errstate(over="ignore", invalid="ignore")
def _reach_of_part(constant: float, basis: Array, clip: float, rows: Rows, chosen: None) -> Array:
    """Return the largest residual of a row whose gradient is not clipped."""
    found, X = np.empty(rows.n_rows), rows.table
    # A bound on the error of a computed norm: none is computed too short.
    slack = 8.0 * len(basis) ** 2 * np.finfo(float).eps * np.linalg.norm(basis)
    inner = basis[: rows.n_features]
    for block in blocks_of(rows, rows.n_features):
        turned = rows.row_scale[block, np.newaxis] * (X[block] @ inner)
        if constant > 0.0:
            turned += constant * basis[-1]
        norms = np.sqrt(np.einsum("ij,ij->i", turned, turned))
        found[block] = np.nan_to_num(clip / (norms + slack))
    return found


@np.errstate(over="ignore", invalid="ignore")
def _sum_part(
    constant: float, centre: float, weights: Array, rows: Rows, chosen: None, reach: Array
) -> Array:
    features, X = rows.n_features, rows.table
    total = np.zeros(weights.size)
    # Fewer blocks take less time around them; slices of sparse rows are copies.
    whole = [slice(None)]
    for block in whole if rows.is_sparse else blocks_of(rows, features // 4 + 1):
        scale, part, most = rows.row_scale[block], X[block], reach[block]
        left = rows.targets[block] - centre - scale * (part @ weights[:features])
        if constant > 0.0:
            left -= constant * weights[-1]
        np.clip(left, -most, most, out=left)
        left[np.isnan(left)] = 0.0
        if rows.row_weight is not None:
            left *= rows.row_weight[block]
        total[:features] += (scale * left) @ part
        if constant > 0.0:
            total[-1] += constant * left.sum()
    return total


def _bounded(point: Array) -> Array:
    """Return a point within a ball that keeps residuals finite on every table."""
    size = float(np.linalg.norm(point))
    return point * min(1.0, LARGEST_WEIGHTS / size) if 0.0 < size < np.inf else np.zeros_like(point)
