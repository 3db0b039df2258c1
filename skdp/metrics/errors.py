"""The one release that figures of a regressor follow from: sums of errors, and a table of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.accounting import ComposedEvent, Event, calibrate_event
from skdp.mechanisms import RandomStream
from skdp.mechanisms.contribution import Adjacency
from skdp.scores.bins import number_of_bins
from skdp.statistics.counts import table_of
from skdp.statistics.noise import UNIT, Noise, Query
from skdp.units import Units

# Errors between which a row is shared out, so that means are exact; in parts of the largest one.
_HALF = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])
NODES = np.concatenate([-_HALF[::-1], [0.0], _HALF])
# Parts of the budget: for the sums, for the table.
_SHARES = (0.7, 0.3)
# Released of the sums of c+, c-, c^2, v, v^2 is the distance from a public middle, on a scale.
_MIDDLES = np.array([[0.0], [0.0], [0.75], [0.0], [0.75]])
_SCALES = np.sqrt([[1.0], [1.0], [0.5], [4.0], [2.0]])
# Squared L2 sensitivity of the sums of one record, and what rounding adds, in the grid's steps
# (docs/proofs/evaluation.md, Theorem 5).
_SQUARED = {"add-remove": 45 / 32, "replace-one": 4.0}
_ROUNDING = {"add-remove": 4.0, "replace-one": 8.0}


@dataclass(frozen=True, eq=False)
class ErrorTables:
    """All that is released, and the public numbers that belong to it.

    With errors c in parts of the largest one, and targets v between -1 and 1, `sums` are those of
    the positive and the negative parts of c, of c^2, v and v^2. `counts` has shape
    (n_bins, n_nodes): bins of the prediction, of equal width, by errors at `NODES`.
    """

    sums: np.ndarray
    sum_noise: np.ndarray
    counts: np.ndarray
    count_noise: float
    n: int
    bounds: tuple[float, float]
    largest_error: float

    @property
    def reach(self) -> float:
        """The largest error on the scale of v."""
        return 2.0 * self.largest_error / (self.bounds[1] - self.bounds[0])

    @property
    def centres(self) -> np.ndarray:
        """Middles of the bins of predictions on the scale of v."""
        return (2.0 * np.arange(len(self.counts)) + 1.0) / len(self.counts) - 1.0


@dataclass(frozen=True, eq=False)
class ErrorPlan:
    """Bins, noise and price of one release, from public numbers alone."""

    n_bins: int
    noises: tuple[Noise, Noise]
    event: Event
    adjacency: Adjacency
    n: int
    bounds: tuple[float, float]
    largest_error: float

    @classmethod
    def build(
        cls,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        n: int,
        *,
        bounds: tuple[float, float],
        largest_error: float,
        n_bins: Any = "auto",
    ) -> ErrorPlan:
        """Find the least noise for a target."""
        norm = math.sqrt(_SQUARED[adjacency]) * UNIT + _ROUNDING[adjacency]
        sums = Query("sums of errors", UNIT, math.ceil(3.0 * norm), math.ceil(norm**2))
        queries = (sums, Query.shares("table of errors", adjacency, UNIT))

        def noises(sigma: float) -> tuple[Noise, Noise]:
            found = [
                Noise.gaussian(query, sigma * math.sqrt(query.l2_squared / part) / UNIT)
                for query, part in zip(queries, _SHARES, strict=True)
            ]
            return found[0], found[1]

        def event(sigma: float) -> ComposedEvent:
            return ComposedEvent(tuple(noise.event for noise in noises(sigma)))

        sigma = calibrate_event(event, epsilon, delta, adjacency=adjacency)
        count = number_of_bins(n, sigma) if n_bins == "auto" else n_bins
        found = noises(sigma), event(sigma), adjacency
        return cls(count, *found, n, bounds, largest_error)

    def describe(self) -> str:
        """Name sensitivity, noise and theorem, for the statement."""
        sums, table = self.noises
        return (
            f"sums of errors and targets with discrete Gaussian noise of scale {sums.people:.6g} "
            f"(L2 sensitivity {math.sqrt(sums.query.l2_squared) / UNIT:.6g}), and a table of "
            f"errors with noise of scale {table.people:.6g} (L2 sensitivity "
            f"{math.sqrt(table.query.l2_squared) / UNIT:.6g}) (Canonne, Kamath & Steinke 2020; "
            "docs/proofs/evaluation.md)"
        )

    @np.errstate(all="ignore")  # that a row is near 0 is not said
    def count(
        self, truth: np.ndarray, predicted: np.ndarray, units: Units | None
    ) -> list[np.ndarray]:
        """Return the exact sums and table, in the grid's steps; each row by itself."""
        low, high = self.bounds
        v, q = (
            np.clip(2.0 * ((np.clip(numbers, low, high) - low) / (high - low)) - 1.0, -1.0, 1.0)
            for numbers in (truth, predicted)
        )
        c = np.clip((v - q) * (0.5 * (high - low) / self.largest_error), -1.0, 1.0)
        parts = np.stack([np.maximum(c, 0.0), np.maximum(-c, 0.0), c**2, v, v**2])
        steps = np.rint((parts - _MIDDLES) / _SCALES * UNIT).astype(np.int64)
        whole = np.full(v.size, UNIT, dtype=np.int64)
        if units is not None:  # a person is the mean of his rows
            whole = UNIT // units.counts[units.codes]
            own = np.zeros((len(steps), units.n_units), dtype=np.int64)
            for total, row in zip(own, steps, strict=True):
                np.add.at(total, units.codes, row)
            steps = own // units.counts
        bins = np.minimum((0.5 * (q + 1.0) * self.n_bins).astype(int), self.n_bins - 1)
        left = np.clip(np.searchsorted(NODES, c, side="right") - 1, 0, NODES.size - 2)
        share = (c - NODES[left]) / np.diff(NODES)[left]
        upper = np.rint(np.clip(share, 0.0, 1.0) * whole).astype(np.int64)
        shape = [self.n_bins, NODES.size]
        table = table_of([bins, left], shape, whole - upper)
        return [steps.sum(axis=1), table + table_of([bins, left + 1], shape, upper)]

    def release(self, exact: list[np.ndarray], stream: RandomStream) -> ErrorTables:
        """Return sums and table with noise; what follows is post-processing."""
        (sums, table), (first, second) = exact, self.noises
        noisy = first.release(sums, stream) / UNIT
        counts = second.release(table, stream) / UNIT
        scales, middles = _SCALES.ravel(), _MIDDLES.ravel()
        counts += (self.n - counts.sum()) / counts.size
        public = (self.n, self.bounds, self.largest_error)
        sums, deviations = noisy * scales + self.n * middles, first.people * scales
        return ErrorTables(sums, deviations, counts, second.people, *public)
