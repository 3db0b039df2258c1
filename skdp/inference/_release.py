"""The look: a Gaussian release of the scores and the information of rows at given weights.

A row z has norm at most 1 with its constant column. At weights theta it contributes its score ``(y
- p) z`` and its information ``p (1 - p) z z^T``. The information is packed and multiplied
by a factor so that it needs no noise of its own. The rows of a unit contribute their mean. Proofs:
``docs/proofs/inference.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from skdp.accounting import Event
from skdp.base.parameters import Adjacency
from skdp.inference._stages import (
    STAGES,
    Reading,
    combine_readings,
    count_remainders,
    second_weights,
)
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

Look = Reading  # of scores and information
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
    event: Event  # one Gaussian release; the stages together cost as much
    limit: float = math.inf  # of residuals

    grid = 0.0
    # Shares of the squared mu; later stages are at corrected weights.
    stages: ClassVar[tuple[float, ...]] = STAGES
    bounds_of: ClassVar[Mapping[Any, Bounds]] = BOUNDS

    def __post_init__(self) -> None:
        paid: Any = self.event
        covered = self.sums.multiplier >= paid.noise_multiplier * (1.0 - 1e-12)
        if not (covered and math.fsum(self.stages) <= 1.0):
            raise ValueError("the noise of a look must be that of its event, in all stages.")

    @classmethod
    def build(
        cls,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        covariance: Covariance = "model",
        n_outputs: int = 1,
        **others: Any,
    ) -> Self:
        """Derive the noise; it depends neither on the table nor on the weights."""
        # All that a record contributes is a mean of vectors of rows.
        norm = cls.bounds_of[adjacency, covariance].l2 * ROUND_UP
        sums = Release(_LABEL, norm).at_once(n_outputs).least(epsilon, delta)
        # The same to the last bit for any look, so that plans of budgets know it again.
        event = Release(_LABEL, 1.0).least(epsilon, delta).event
        return cls(sums, adjacency, covariance, event, **others)

    @property
    def factors(self) -> tuple[float, ...]:
        """Factors of the information, of squared scores, and of further sums."""
        return self.bounds_of[self.adjacency, self.covariance][:2]

    def weigh(self, product: Array, target: Array, share: Any) -> tuple[Array, Array, Any]:
        """Return weights of rows in the score and in the information, and further sums."""
        margin = target * product
        residual, rest = expit(-margin), expit(margin)  # the first one is abs(y - p)
        return target * residual * share, residual * rest * share, 0.0

    def describe(self) -> str:
        """Name sensitivity, noise and theorem, for the statement."""
        squares = ", and of their squared scores," if self.covariance == "sandwich" else ""
        return (
            f"sums of the scores of records and of their information{squares} at public weights "
            f"and at corrected ones, in three stages that cost as much as one release "
            f"({self.sums.words}; scaled units; docs/proofs/inference.md)"
        )

    @np.errstate(all="ignore")
    def sum(self, rows: Rows, theta: Array, codes: NDArray[np.int64] | None = None) -> Array:
        """Return the exact vector of rows with their targets; `codes` are those of units.

        The squared scores of units need the sums of each unit in memory. No other copy is made.
        """
        factor, of_squares, *others = self.factors
        columns = (codes,) if of_squares > 0.0 and codes is not None else ()
        units = np.zeros((rows.n_units, theta.size)) if columns else None
        totals: list[Any] = _zeros(theta)
        for found, own, places in rows.map_parts(partial(self._sum_part, theta), columns=columns):
            totals = [total + part for total, part in zip(totals, found, strict=True)]
            if units is not None:
                units[places] += own
        score, information, squares, further = totals
        squares = squares if units is None else units.T @ units
        blocks = [score, factor * pack_matrix(information)]
        blocks += [of_squares * pack_matrix(squares)] if of_squares > 0.0 else []
        return np.concatenate([*blocks, further * np.array(others)])

    def _sum_part(self, theta: Array, rows: Rows, chosen: None, codes: Any = None) -> Any:
        """Return the sums of a part of the rows, those of its units, and which these are."""
        score, information, squares, further = _zeros(theta)
        units, places = (None, None) if codes is None else np.unique(codes, return_inverse=True)
        of_units = np.zeros((0 if units is None else units.size, theta.size))
        # Whatever overflows may not be told.
        with np.errstate(all="ignore"):
            for block, record, part, share in scaled_rows(rows, theta.size):
                slope, weight, more = self.weigh(record @ theta / part, rows.targets[block], share)
                slope *= part
                score += slope @ record
                further += more
                if places is not None:
                    _add_by(of_units, places[block], record * slope[:, np.newaxis])
                elif self.factors[1] > 0.0:
                    scores = record * slope[:, np.newaxis]
                    squares += scores.T @ scores
                record *= np.sqrt(weight)[:, np.newaxis]
                information += record.T @ record
        return [score, information, squares, further], of_units, units

    def look(
        self,
        parts: Sequence[Any],
        tables: Sequence[Rows],
        codes: NDArray[np.int64] | None,
        prior_sd: float,
        stream: RandomStream,
    ) -> list[Look]:
        """Return a look at each part of a model and its rows, all stages combined."""
        thetas = [part.theta for part in parts]
        found: list[list[Any]] = [[part.of_fit] if part.of_fit else [] for part in parts]
        for share, later in zip(self.stages, (*self.stages[1:], None), strict=True):
            pairs = zip(tables, thetas, strict=True)
            exact = [self.sum(table, theta, codes) for table, theta in pairs]
            # Looks with one seed may differ in the weights of a later stage only, as by the prior.
            own_noise = stream.bound_to(np.concatenate([[share], *thetas]).tobytes())
            looks = self.release(exact, thetas, own_noise, share)
            for place, (part, own) in enumerate(zip(parts, found, strict=True)):
                own.append(part.reduced(looks[place]))
                if later is not None:
                    noise = self.sums.sigma / math.sqrt(later)
                    better = part.basis @ second_weights(own, noise, part.prior(prior_sd))
                    if np.linalg.norm(better) <= LARGEST_WEIGHT:
                        thetas[place] = better
        if len(self.stages) > 1:  # the information depends on the weights
            both = zip(found, parts, strict=True)
            found = [count_remainders(own, part.prior(prior_sd)) for own, part in both]
        return [combine_readings(own) if len(own) > 1 else own[0] for own in found]

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
        width, (factor, of_squares, *_) = theta.size, self.factors
        score, information, squares = np.split(noisy, [width, width * (width + 3) // 2])
        found = theta, score, noise, unpack_matrix(information, width) / factor, noise / factor
        if self.covariance == "model":
            return Look(*found)
        return Look(*found, unpack_matrix(squares, width) / of_squares, noise / of_squares)


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


def pack_matrix(matrix: Array) -> Array:
    """Return a symmetric matrix as a vector of its Frobenius norm."""
    return pack_moments(matrix, np.empty(0), 0.0)


def _zeros(theta: Array) -> list[Any]:
    return [np.zeros(theta.size), *np.zeros((2, theta.size, theta.size)), 0.0]


def scaled_rows(rows: Rows, width: int) -> Iterator[tuple[slice, Array, Array, Any]]:
    """Yield blocks of scaled rows with their constant column, which may be changed, and shares.

    A row beyond the bound is multiplied by its part within it, which follows, with its constant.
    """
    X, norm = rows.table, norm_of_rows(rows.intercept_value)
    blocks = blocks_of(rows, width)
    memory = np.empty((min(blocks[0].stop, rows.n_rows) if blocks else 0, width))
    for block in blocks:
        scale = rows.row_scale[block, np.newaxis]
        part = np.clip(scale * rows.data_norm, 1e-300, 1.0)
        record = memory[: len(scale)]
        own = X[block].toarray() if rows.is_sparse else X[block]
        np.multiply(own, scale / norm, out=record[:, : rows.n_features])
        record[:, rows.n_features :] = part * (rows.intercept_value / norm)
        yield block, record, part[:, 0], 1.0 if rows.row_weight is None else rows.row_weight[block]


def _add_by(total: Array, places: NDArray[np.int64], rows: Array) -> None:
    """Add rows to the places of a total."""
    order = np.argsort(places, kind="stable")
    first = np.flatnonzero(np.diff(places[order], prepend=-1))
    total[places[order][first]] += np.add.reduceat(rows[order], first, axis=0)
