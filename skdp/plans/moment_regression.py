"""Linear regression from one release of noisy second moments; the rest is post-processing.

A record is ``z = (x, s, k y)``: a row of norm at most 1, the constant column and a target in [-1,
1] times k. ``docs/proofs/moment_regression.md`` proves the sensitivity, the law of the noise and
its effect on a solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from skdp.accounting import Event
from skdp.base.parameters import Adjacency, cached_property
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.models import ScaledUnits
from skdp.plans.defaults import PublicNumbers
from skdp.plans.protocol import OnAllRows
from skdp.plans.second_moments import (
    pack_moments,
    refuse_wide,
    second_moment_bound,
    share_rows,
    unpack_matrix,
)
from skdp.solvers import Rows

Array = NDArray[np.float64]

# k^2. It costs at most 1.125 times the least variance where scaled weights have norm up to 2.
_SQUARED_TARGET_VALUE = 0.5
# Rows that are shortened to norm 1 exceed it by a few roundings at most.
ROUNDING = 1.0 + 1e-12
# A block of records fits the cache.
_BLOCK_ENTRIES = 1 << 16
# Below this share of the edge of the noise's spectrum an eigenvalue is taken for noise.
_FLOOR = 0.5


@dataclass(frozen=True)
class MomentPlan(OnAllRows):
    """Everything that must agree in one fit from second moments; see `build`."""

    sums: Release
    adjacency: Adjacency
    n_rows: int
    n_features: int
    constant: float  # value of the intercept's column in scaled units, 0 without
    units: ScaledUnits
    by_unit: bool = False

    grid = 0.0
    facts, n_outputs = frozenset({"linear"}), 1  # as a model

    @classmethod
    def build(cls, numbers: PublicNumbers, units: ScaledUnits, constant: float) -> MomentPlan:
        """Derive the noise from public numbers; Theorem 1 of the proofs."""
        n_rows, n_features, adjacency = numbers.n_rows, numbers.n_features, numbers.adjacency
        refuse_wide(n_features)
        bound = second_moment_bound(n_features + 1, mean_weight(constant))
        sums = Release.bounded("second moments", bound, adjacency)
        sums = sums.least(numbers.target_epsilon, numbers.delta)
        return cls(sums, adjacency, n_rows, n_features, constant, units, numbers.by_unit)

    @property
    def model(self) -> MomentPlan:
        """The plan itself, since nothing is trained."""
        return self

    @property
    def event(self) -> Event:
        """One Gaussian release."""
        return self.sums.event

    def bind(
        self, X: Any, targets: Array, row_weight: Array | None = None, n_units: int | None = None
    ) -> list[Any]:
        """Return the rows of a table as `carry_out` takes them."""
        return [bind_rows(self, X, targets, row_weight, n_units)]

    def carry_out(self, table: list[Any], stream: RandomStream) -> Array:
        """Return noisy sums over the records of a table."""
        (rows,) = table
        total = sum_moments(rows, length(), mean_weight(self.constant), target_value())
        return self.sums.make(total, stream)

    def read(self, released: Array) -> SecondMoments:
        """Return the moments of records from the released values."""
        matrix = unpack_moments(released, self.n_features + 1, length(), self.constant, self.n_rows)
        if self.constant > 0.0:  # its column comes before the target's
            order = [*range(self.n_features), self.n_features + 1, self.n_features]
            matrix = matrix[np.ix_(order, order)]
        noise = length() ** 2 * self.sums.sigma
        return SecondMoments(matrix, self.n_rows, noise, self.constant)


def bind_rows(plan: Any, X: Any, targets: Array, row_weight: Any, n_units: int | None) -> Rows:
    """Return rows as a plan of regression takes them; refuse rows that its noise does not cover."""
    rows = Rows.from_matrix(X, targets, plan.units.data_norm, 0.0, "real", row_weight, n_units)
    if rows.n_units != plan.n_rows:
        raise ValueError(f"The plan is for a table of n_rows={plan.n_rows}.")
    heaviest = 1.0 if rows.row_weight is None else rows.row_weight.max(initial=0.0)
    if heaviest > 1.0 or np.abs(rows.targets).max(initial=0.0) > 1.0:
        raise ValueError("The noise is for rows of weight up to 1 and targets in [-1, 1].")
    return rows


def blocks_of(rows: Rows, width: int) -> list[slice]:
    """Return slices of rows that fit the cache."""
    step = max(1, _BLOCK_ENTRIES // width)
    return [slice(k, k + step) for k in range(0, rows.n_rows, step)]


def sum_moments(rows: Rows, norm: float, mean_weight: float, target_value: float = 0.0) -> Array:
    """Return packed moments of rows over the norm, with their targets if included."""
    return sum(rows.map_parts(partial(_sum_part, norm, mean_weight, target_value)))


def _sum_part(
    norm: float, mean_weight: float, target_value: float, rows: Rows, chosen: None
) -> Array:
    X = rows.table
    width = rows.n_features + (target_value > 0.0)
    gram, total = np.zeros((width, width)), np.zeros(width)
    scale = (rows.row_scale / norm)[:, np.newaxis]
    target = rows.targets * (target_value / norm)
    blocks = blocks_of(rows, width)
    records = np.empty((min(blocks[0].stop, rows.n_rows), width))
    for block in blocks:
        record = records[: target[block].size]
        part = X[block].toarray() if rows.is_sparse else X[block]
        np.multiply(part, scale[block], out=record[:, : rows.n_features])
        record[:, rows.n_features :] = target[block, np.newaxis]
        shared = share_rows(record, None if rows.row_weight is None else rows.row_weight[block])
        gram += record.T @ shared
        total += np.ones(len(shared)) @ shared
    return pack_moments(gram, total, mean_weight)


def unpack_moments(packed: Array, width: int, norm: float, constant: float, n_rows: int) -> Array:
    """Return the matrix of noisy moments, with the sums of the constant column in the last row."""
    size = width * (width + 1) // 2
    matrix = norm**2 * unpack_matrix(packed[:size], width)
    if constant == 0.0:
        return matrix
    column = norm / math.sqrt(2.0) * norm * packed[size:]
    whole = np.append(column, n_rows * constant**2)
    return np.vstack([np.column_stack([matrix, column]), whole])


def target_value() -> float:
    """Return the factor k of the targets."""
    return math.sqrt(_SQUARED_TARGET_VALUE)


def length() -> float:
    """Return the bound on the norm of a row with its target."""
    return math.sqrt(1.0 + _SQUARED_TARGET_VALUE) * ROUNDING


def mean_weight(constant: float) -> float:
    """Return the weight that makes sums of rows the intercept's column of the matrix."""
    return 2.0 * (constant / length()) ** 2


@dataclass(frozen=True)
class SecondMoments:
    """Released sums of ``z z^T`` in scaled units; everything here is a function of them.

    The entry of the constant column on the diagonal, second to last, is public and exact.
    """

    matrix: Array
    n_rows: int
    noise: float  # deviation on the diagonal; off it, it is less by sqrt(2)
    constant: float

    def keep(self, basis: Any) -> SecondMoments:
        """Return the moments of functions of features, given by orthonormal sparse columns.

        They are part of the release, and their noise has the same law: Lemma 2.
        """
        last = sparse.eye_array(1 + (self.constant > 0.0))
        whole = sparse.block_diag([basis, last], format="csr")
        return replace(self, matrix=(whole.T @ self.matrix) @ whole)

    def spread(self, matrix: Array) -> Array:
        """Return the mean of ``E M E`` over the noise E of rows' moments, for a symmetric M."""
        found = matrix + np.trace(matrix) * np.eye(matrix.shape[0])
        if self.constant > 0.0:  # whose entry on the diagonal has no noise
            found[-1, -1] -= 2.0 * matrix[-1, -1]
        return self.noise**2 / 2.0 * found

    @property
    def edge(self) -> float:
        """Approximate largest eigenvalue of the noise, by Wigner's semicircle."""
        return self.noise * math.sqrt(2.0 * (self.matrix.shape[0] - 1))


@dataclass(frozen=True)
class Solution:
    """Weights estimated from noisy moments, corrected for the noise's bias to second order."""

    moments: SecondMoments
    penalty: float  # on the sum of squares of features' weights

    @property
    def _gram(self) -> Array:
        return self.moments.matrix[:-1, :-1]

    @property
    def _cross(self) -> Array:
        return self.moments.matrix[:-1, -1] / target_value()

    @cached_property
    def _inverses(self) -> tuple[Array, Array, float]:
        """Inverses of the moments and of the solved matrix, and the least eigenvalue."""
        floor = _FLOOR * self.moments.edge
        inverse, least = _invert(self._gram, floor)
        ridge = np.full(self._gram.shape[0], self.penalty)
        if self.moments.constant > 0.0:
            ridge[-1] = 0.0
        solved = self._gram + self.moments.spread(inverse) + np.diag(ridge)
        return inverse, _invert(solved, floor)[0], least

    @cached_property
    def weights(self) -> Array:
        """Weights of the features, with that of the intercept's column last."""
        return self._inverses[1] @ self._cross

    @property
    def estimable(self) -> bool:
        """Whether rows vary in every direction by more than the noise does."""
        return self._inverses[2] >= self.moments.edge

    @cached_property
    def score_noise(self) -> Array:
        """Covariance of the privacy noise in the solved equations."""
        theta = self.weights
        own = self.moments.noise**2 / (2.0 * target_value() ** 2)
        return own * np.eye(theta.size) + self.moments.spread(np.outer(theta, theta))

    @cached_property
    def residual_sum(self) -> float:
        """Residual sum of squares without the noise's part; NaN where noise hides it."""
        theta, total = self.weights, self.moments.matrix[-1, -1] / target_value() ** 2
        left = total - 2.0 * theta @ self._cross + theta @ self._gram @ theta
        left += np.sum(self._inverses[0] * self.score_noise)
        return float(left) if left > 0.0 else math.nan

    @property
    def residual_variance(self) -> float:
        """Residual sum of squares over the degrees of freedom."""
        return self.residual_sum / max(1, self.moments.n_rows - self.weights.size)

    @property
    def explained(self) -> float:
        """Coefficient of determination; without an intercept, with sums about zero."""
        moments, k = self.moments, target_value()
        total = moments.matrix[-1, -1] / k**2
        if moments.constant > 0.0:
            square = moments.matrix[-2, -1] ** 2 - moments.noise**2 / 2.0
            total -= max(0.0, square) / (k * moments.constant) ** 2 / moments.n_rows
        return 1.0 - self.residual_sum / total if total > self.residual_sum else math.nan

    @cached_property
    def noise_covariance(self) -> Array:
        """Covariance of the weights' privacy noise, to first order."""
        inverse = self._inverses[1]
        return inverse @ self.score_noise @ inverse


def _invert(matrix: Array, floor: float) -> tuple[Array, float]:
    """Return the inverse of a symmetric matrix with floored eigenvalues, and the least of these."""
    values, vectors = eigh(matrix)
    return (vectors / np.maximum(values, floor)) @ vectors.T, float(values[0])
