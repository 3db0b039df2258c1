"""The look: a Gaussian release of the scores and the information of rows at given weights.

A row z has norm at most 1 with its constant column. At weights theta it contributes its score ``(y
- p) z`` and its information ``p (1 - p) z z^T``. Both are one vector, the information packed and
multiplied by a factor so that it needs no noise of its own. The rows of a unit contribute their
mean. The proofs are in ``docs/proofs/inference.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from skdp.accounting import Event
from skdp.base.parameters import Adjacency
from skdp.inference._stages import STAGES, Reading, combine_readings, second_weights
from skdp.mechanisms.contribution import ROUND_UP
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.plans.moment_regression import ROUNDING, blocks_of
from skdp.plans.protocol import OnAllRows
from skdp.plans.second_moments import pack_moments, unpack_matrix
from skdp.solvers import Rows

Array = NDArray[np.float64]
Covariance = Literal["model", "sandwich"]


class Bounds(NamedTuple):
    """Factors of the information and of the squared scores, and the norm of a record with both."""

    information: float
    squares: float
    l2: float


BOUNDS: dict[tuple[Adjacency, Covariance], Bounds] = {
    ("add-remove", "model"): Bounds(3.33019, 0.0, 1.0),
    ("replace-one", "model"): Bounds(4.96, 0.0, 2.0),
    ("add-remove", "sandwich"): Bounds(3.33019, 1.0 / 3.0, math.sqrt(10.0 / 9.0)),
    ("replace-one", "sandwich"): Bounds(4.96, math.sqrt(2.0) / 3.0, 2.0 * math.sqrt(10.0 / 9.0)),
}

# Posteriors of more columns take minutes.
MOST_COLUMNS = 1000
# Largest norm of weights on scaled rows: no margin overflows.
LARGEST_WEIGHT = 1e100
LARGEST_CONSTANT = 0.5
# Memory for the sums of each unit.
_MOST_BYTES = 1 << 30
_LABEL = "scores and information"


def constant_value(n_features: int, intercept: bool) -> float:
    """Return the value of the constant column over the bound on rows.

    It counts as much as one of equally long columns, but costs at most 1/8 of the norm.
    """
    return min(LARGEST_CONSTANT, 1.0 / math.sqrt(n_features)) if intercept else 0.0


@dataclass(frozen=True)
class LookPlan(OnAllRows):
    """Everything that must agree in one look; see `build`."""

    sums: Release
    adjacency: Adjacency
    covariance: Covariance
    heaviest: float = 1.0  # bound on the total weight of the rows of a unit

    grid = 0.0

    @classmethod
    def build(
        cls,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        covariance: Covariance = "model",
        heaviest: float = 1.0,
        n_outputs: int = 1,
    ) -> LookPlan:
        """Derive the noise; it depends neither on the table nor on the weights."""
        # All that a record contributes is a mean of vectors of rows, times its weight.
        norm = BOUNDS[adjacency, covariance].l2 * heaviest * ROUND_UP
        sums = Release(_LABEL, norm).at_once(n_outputs).least(epsilon, delta)
        return cls(sums, adjacency, covariance, heaviest)

    @property
    def event(self) -> Event:
        """One Gaussian release; the stages together cost as much."""
        return self.sums.event

    @property
    def factors(self) -> tuple[float, float]:
        """Factors of the information and of the squared scores in the released vector."""
        bounds = BOUNDS[self.adjacency, self.covariance]
        return bounds.information, bounds.squares / self.heaviest

    def describe(self) -> str:
        """Name sensitivity, noise and theorem, for the statement."""
        squares = ", and of their squared scores," if self.covariance == "sandwich" else ""
        return (
            f"sums of the scores of records and of their information{squares} at public weights "
            f"and at corrected ones, in two stages that cost as much as one release "
            f"({self.sums.words}; scaled units; docs/proofs/inference.md)"
        )

    def sum(self, rows: Rows, theta: Array, codes: NDArray[np.int64] | None = None) -> Array:
        """Return the exact vector of rows with signs as targets; `codes` are those of units.

        The squared scores of units need the sums of each unit in memory. No other copy is made.
        """
        refuse_weights(theta)
        apart = codes if self.covariance == "sandwich" else None
        total = None if apart is None else np.zeros((rows.n_units, theta.size))
        columns = () if apart is None else (apart,)
        score, information, squares = (np.zeros((theta.size,) * k) for k in (1, 2, 2))
        function = partial(_sum_part, theta, self.covariance == "sandwich")
        for found, units in rows.map_parts(function, columns=columns):
            score += found[0]
            information += found[1]
            squares += found[2]
            if total is not None:
                total[units] += found[3]
        if total is not None:
            squares = total.T @ total
        factors = self.factors
        blocks = [score, factors[0] * pack_matrix(information)]
        blocks += [factors[1] * pack_matrix(squares)] if factors[1] else []
        return np.concatenate(blocks)

    def look(
        self,
        parts: Sequence[Any],
        tables: Sequence[Rows],
        codes: NDArray[np.int64] | None,
        prior_sd: float,
        stream: RandomStream,
    ) -> list[Look]:
        """Return a look at each part of a model and its rows, all stages combined.

        Each stage is at weights that the earlier ones have corrected.
        """
        thetas = [part.theta for part in parts]
        found: list[list[Reading]] = [[part.of_fit] if part.of_fit else [] for part in parts]
        for share, later in zip(STAGES, (*STAGES[1:], None), strict=True):
            pairs = zip(tables, thetas, strict=True)
            exact = [self.sum(table, theta, codes) for table, theta in pairs]
            looks = self.release(exact, thetas, stream, share)
            for place, (part, own) in enumerate(zip(parts, found, strict=True)):
                own.append(part.reduced(looks[place]))
                if later is not None:
                    noise = self.sums.sigma / math.sqrt(later)
                    better = part.basis @ second_weights(own, noise, part.prior(prior_sd))
                    if np.linalg.norm(better) <= LARGEST_WEIGHT:
                        thetas[place] = better
        return [_combined(own) for own in found]

    def release(
        self,
        exact: Sequence[Array],
        thetas: Sequence[Array],
        stream: RandomStream,
        share: float = 1.0,
    ) -> list[Look]:
        """Return vectors with noise for a share of the squared mu, in one release, taken apart."""
        scale = float(self.sums.scale) / math.sqrt(share) * ROUND_UP
        noisy = replace(self.sums, scale=scale).make(np.concatenate(exact), stream)
        vectors = zip(np.split(noisy, len(thetas)), thetas, strict=True)
        return [self._taken_apart(vector, theta, scale) for vector, theta in vectors]

    def _taken_apart(self, noisy: Array, theta: Array, noise: float) -> Look:
        width, factors = theta.size, self.factors
        size = width * (width + 1) // 2
        information = unpack_matrix(noisy[width : width + size], width) / factors[0]
        found = theta, noisy[:width], noise, information, noise / factors[0]
        if not factors[1]:
            return Look(*found)
        return Look(
            *found, unpack_matrix(noisy[width + size :], width) / factors[1], noise / factors[1]
        )


@dataclass(frozen=True, eq=False)
class Look(Reading):
    """Released sums in scaled units, and their noise; all of it may be published.

    Noise of matrices is symmetric; off the diagonal its deviation is less by the root of 2.
    """

    information: Array  # (d, d)
    matrix_noise: float  # on the diagonal
    squares_noise: float = 0.0


def _combined(looks: Sequence[Reading]) -> Look:
    """Return the mean of looks by their precision."""
    found = combine_readings(looks)
    assert found.information is not None
    squares = () if found.squares is None else (found.squares, found.squares_noise)
    own = found.theta, found.score, found.score_noise, found.information, found.matrix_noise
    return Look(*own, *squares)


def refuse_large(n_columns: int, n_units: int, covariance: Covariance, by_unit: bool) -> None:
    """Refuse tables whose sums do not fit into memory, before the charge."""
    if n_columns > MOST_COLUMNS:
        raise ValueError(
            f"Intervals are for at most {MOST_COLUMNS} columns, got {n_columns}. Choose few "
            "columns by public knowledge."
        )
    if by_unit and covariance == "sandwich" and 8 * n_columns * n_units > _MOST_BYTES:
        raise ValueError(
            f"covariance='sandwich' with groups= needs {n_columns} numbers for each of {n_units} "
            "units in memory, which is too many. Use covariance='model'."
        )


def norm_of_rows(constant: float) -> float:
    """Return the bound on rows with their constant column, in units of the bound on rows."""
    return math.hypot(1.0, constant) * ROUNDING


def refuse_weights(theta: Array) -> None:
    """Refuse weights whose margins may overflow."""
    if not np.linalg.norm(theta) <= LARGEST_WEIGHT:
        raise ValueError(f"weights must have a norm of at most {LARGEST_WEIGHT:g}.")


def pack_matrix(matrix: Array) -> Array:
    """Return a symmetric matrix as a vector of its Frobenius norm."""
    return pack_moments(matrix, np.empty(0), 0.0)


def _sum_part(
    theta: Array, sandwich: bool, rows: Rows, chosen: None, codes: NDArray[np.int64] | None = None
) -> tuple[list[Array], Any]:
    """Return the sums of a part of the rows, and the units that it has."""
    width = theta.size
    found = [np.zeros((width,) * k) for k in (1, 2, 2)]
    units, places = (None, None) if codes is None else np.unique(codes, return_inverse=True)
    of_units = np.zeros((0 if units is None else units.size, width))
    # Whatever overflows may not be told.
    with np.errstate(all="ignore"):
        for block, record, share in scaled_rows(rows, width):
            sign, part = rows.targets[block], _part_of(rows, block)
            record[:, rows.n_features :] *= part[:, np.newaxis]
            margin = sign * (record @ theta) / part
            # With s = |y - p|, the score is s times the row and the information s (1 - s).
            residual, rest = expit(-margin), expit(margin)
            slope = sign * residual * part * share
            found[0] += slope @ record
            if sandwich:
                scores = record * slope[:, np.newaxis]
                if places is None:
                    found[2] += scores.T @ scores
                else:
                    _add_by(of_units, places[block], scores)
            record *= np.sqrt(residual * rest * share)[:, np.newaxis]
            found[1] += record.T @ record
    return [*found, of_units], units


def scaled_rows(rows: Rows, width: int) -> Iterator[tuple[slice, Array, Any]]:
    """Yield blocks of scaled rows with their constant column, which may be changed, and shares."""
    X, norm = rows.table, norm_of_rows(rows.intercept_value)
    blocks = blocks_of(rows, width)
    memory = np.empty((min(blocks[0].stop, rows.n_rows) if blocks else 0, width))
    for block in blocks:
        scale = rows.row_scale[block, np.newaxis] / norm
        record = memory[: len(scale)]
        part = X[block].toarray() if rows.is_sparse else X[block]
        np.multiply(part, scale, out=record[:, : rows.n_features])
        record[:, rows.n_features :] = rows.intercept_value / norm
        yield block, record, 1.0 if rows.row_weight is None else rows.row_weight[block]


def _part_of(rows: Rows, block: slice) -> Array:
    """Return the part of each row that is within the bound on rows, in (0, 1].

    A longer row has the square of its part as a weight, with the margin of the complete row.
    """
    return np.maximum(rows.row_scale[block] / (1.0 / rows.data_norm), 1e-300)


def _add_by(total: Array, places: NDArray[np.int64], rows: Array) -> None:
    """Add rows to the places of a total."""
    order = np.argsort(places, kind="stable")
    first = np.flatnonzero(np.diff(places[order], prepend=-1))
    total[places[order][first]] += np.add.reduceat(rows[order], first, axis=0)
