"""Release of a regressor's evaluation: sums of errors, and tables of errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skdp.accounting import Event
from skdp.mechanisms import RandomStream
from skdp.mechanisms.contribution import Adjacency
from skdp.mechanisms.release import Release
from skdp.metrics.release import fuse, members_of
from skdp.plans.scores import number_of_bins
from skdp.statistics.counts import table_of
from skdp.statistics.noise import UNIT, share_noise
from skdp.tables.units import Units

# Tabulated errors, as shares of the largest one. A row is split between two; means stay exact.
_HALF = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])
# Parts of the budget: for the sums, for the table, for its sums over bins.
_SHARES = (0.7, 0.2, 0.1)
# Sums of c+, c-, c^2, v, v^2, 1, |l|, l^2 are released as distances from a public middle, on a
# scale. The number of rows 1 is for subgroups only, cut errors l only if errors may be cut.
_MIDDLES = np.array([0.0, 0.0, 0.75, 0.0, 0.75, 0.0, 0.5, 0.5])
_SCALES = np.sqrt([1.0, 1.0, 0.5, 4.0, 2.0, 32 / 19, 4.0, 4.0])
# Squared L2 sensitivity of the sums of one record, without and with subgroups, and the addition
# of cut errors (docs/proofs/evaluation.md, Theorem 5).
_SQUARED = {"add-remove": (45 / 32, 2.0, 1 / 8), "replace-one": (4.0, 4.0, 1 / 2)}


def nodes_of(most: float) -> np.ndarray:
    """Return tabulated errors as shares of the largest one, up to the most that bounds allow."""
    doubled = 2.0 ** np.arange(1, 64)
    sizes = np.concatenate([_HALF, doubled[doubled < most], [most] if most > 1.0 else []])
    return np.concatenate([-sizes[::-1], [0.0], sizes])


@dataclass(frozen=True, eq=False)
class ErrorPart:
    """Released values of all rows or of a subgroup, and their noise.

    Errors c are shares of the distance of the bounds, and targets v lie between -1 and 1. `sums`
    are those of the positive part of c, its negative part, c^2, v, v^2 and 1 (the number of rows).
    If the largest error is less than the distance, sums of sizes and squares of errors cut at it
    follow, as shares of it. `counts` has shape (n_bins, n_nodes): bins of the prediction, of equal
    width, by errors at `nodes`.
    """

    sums: np.ndarray
    covariance: np.ndarray
    counts: np.ndarray
    count_variance: float
    node_variance: float
    bounds: tuple[float, float]
    largest_error: float

    @property
    def n(self) -> float:
        """Estimated number of rows, at least 1."""
        return max(float(self.sums[5]), 1.0)

    @property
    def most(self) -> float:
        """Distance of the bounds."""
        return self.bounds[1] - self.bounds[0]

    @cached_property
    def nodes(self) -> np.ndarray:
        """Tabulated errors, as shares of the largest one."""
        return nodes_of(self.most / self.largest_error)

    @property
    def centres(self) -> np.ndarray:
        """Middles of the bins of predictions on the scale of v."""
        return (2.0 * np.arange(len(self.counts)) + 1.0) / len(self.counts) - 1.0

    def joint(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted sums of counts, and the joint noise covariance of `sums` and these."""
        flat = weights.reshape(len(weights), -1)
        # Each count received the same share of the estimated number of rows.
        moved = flat.mean(axis=1)
        own = weights - moved[:, None, None]
        over_bins, bins = own.sum(axis=1), len(self.counts)
        fused = (bins * self.count_variance - self.node_variance) / bins**2
        noise = self.count_variance * np.einsum("ibn,jbn->ij", own, own)
        noise += moved[:, None] * moved * self.covariance[5, 5] - fused * over_bins @ over_bins.T
        along = moved[:, None] * self.covariance[5]
        return flat @ self.counts.ravel(), np.block([[self.covariance, along.T], [along, noise]])


@dataclass(frozen=True, eq=False)
class ErrorTables:
    """All released values by subgroup, with the public numbers.

    `sum_noise` has standard deviations of sums, `variances` those of a count and of its sum over
    bins.
    """

    sums: np.ndarray
    sum_noise: np.ndarray
    counts: np.ndarray
    variances: tuple[float, float]
    n: int
    bounds: tuple[float, float]
    largest_error: float
    subgroups: tuple[Any, ...] | None = None

    def part(self, subgroup: Any = None) -> ErrorPart:
        """Return the released values of a subgroup, or of all rows."""
        members = members_of(subgroup, self.subgroups)
        every, taken = len(self.counts), len(self.counts[members])
        # The numbers of rows add up to n, and each contains its share of the middles.
        noise, moved = self.sum_noise**2, _MIDDLES[: self.sum_noise.size].copy()
        noise[5], moved[5] = 0.0, 1.0
        of_number = self.sum_noise[5] ** 2 * taken * (1.0 - taken / every)
        covariance = taken * np.diag(noise) + of_number * np.outer(moved, moved)
        fine, of_node = (taken * variance for variance in self.variances)
        sums, counts = self.sums[members].sum(axis=0), self.counts[members].sum(axis=0)
        public = self.bounds, self.largest_error
        return ErrorPart(sums, covariance, counts, fine, of_node, *public)


@dataclass(frozen=True, eq=False)
class ErrorPlan:
    """Bins, noise and privacy cost of one release, from public numbers only."""

    n_bins: int
    releases: tuple[Release, ...]
    event: Event
    adjacency: Adjacency
    n: int
    bounds: tuple[float, float]
    largest_error: float
    subgroups: tuple[Any, ...] | None = None

    @property
    def nodes(self) -> np.ndarray:
        """Tabulated errors, as shares of the largest one."""
        return nodes_of((self.bounds[1] - self.bounds[0]) / self.largest_error)

    @property
    def entries(self) -> list[int]:
        """Indices of the released sums."""
        numbers = [] if self.subgroups is None else [5]
        return [*range(5), *numbers, *([6, 7] if self.nodes[-1] > 1.0 else [])]

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
        subgroups: tuple[Any, ...] | None = None,
    ) -> ErrorPlan:
        """Find the least noise for a target."""
        cut = (bounds[1] - bounds[0]) / largest_error > 1.0
        entries = (5 + 2 * cut + (subgroups is not None)) * len(subgroups or (None,))
        changed = 1 if adjacency == "add-remove" else 2
        rounding = math.ceil(1.5 * math.sqrt(entries)) * changed
        *squared, of_cut = _SQUARED[adjacency]
        norm = math.sqrt(squared[subgroups is not None] + cut * of_cut) * UNIT + rounding
        square = math.ceil(norm**2)
        # A row has at most 8 entries, and a unit has the mean of its rows: two records differ by at
        # most 2 sqrt(8) times the norm of a row in L1, in any subgroups, and 4 L2 norms cover that.
        moved = math.ceil(4.0 * norm), square, UNIT
        releases = (
            Release.integers("sums of errors", *moved, largest=math.ceil(norm)),
            Release.shares("table of errors", adjacency, UNIT),
            Release.shares("histogram of errors", adjacency, UNIT),
        )
        squares = square, changed * UNIT**2, changed * UNIT**2
        parts = zip(releases, squares, _SHARES, strict=True)
        planned = [(release, math.sqrt(each / part) / UNIT) for release, each, part in parts]
        sigma, noisy = share_noise(planned, epsilon, delta, adjacency)
        count = number_of_bins(n, sigma) if n_bins == "auto" else n_bins
        found = noisy.releases, noisy.event, adjacency
        return cls(count, *found, n, bounds, largest_error, subgroups)

    def describe(self) -> str:
        """Name sensitivity, noise and theorem, for the statement."""
        of_sums, *of_tables = (
            f"{release.people:.6g} (L2 sensitivity {release.l2 / UNIT:.6g})"
            for release in self.releases
        )
        return (
            f"sums of errors and targets with discrete Gaussian noise of scale {of_sums}, and a "
            f"table and a histogram of errors with noise of scales {' and '.join(of_tables)} "
            "(Canonne, Kamath & Steinke 2020; docs/proofs/evaluation.md)"
        )

    @np.errstate(all="ignore")  # a warning would reveal that a row is near 0
    def count(
        self,
        truth: np.ndarray,
        predicted: np.ndarray,
        units: Units | None,
        members: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """Return the exact sums and tables, in the grid's steps; each row by itself."""
        low, high = self.bounds
        v, q = (
            np.clip(2.0 * ((np.clip(numbers, low, high) - low) / (high - low)) - 1.0, -1.0, 1.0)
            for numbers in (truth, predicted)
        )
        own = np.zeros(v.size, dtype=np.int64) if members is None else members
        groups = len(self.subgroups or (None,))
        c, nodes = 0.5 * (v - q), self.nodes
        error = c * nodes[-1]
        size = np.minimum(np.abs(error), 1.0)
        parts = [np.maximum(c, 0.0), np.maximum(-c, 0.0), c**2, v, v**2]
        parts += [np.ones_like(c), size, size**2]
        whole = np.full(v.size, UNIT, dtype=np.int64)
        if units is not None:  # a unit is the mean of its rows
            whole = UNIT // units.counts[units.codes]
        sums = []
        for entry in self.entries:
            distance = (parts[entry] - _MIDDLES[entry]) / _SCALES[entry]
            steps = np.rint(distance * UNIT).astype(np.int64)
            if units is None:
                sums.append(table_of([own], [groups], steps))
            else:
                of_unit = table_of([own, units.codes], [groups, units.n_units], steps)
                sums.append((of_unit // units.counts).sum(axis=1))
        bins = np.minimum((0.5 * (q + 1.0) * self.n_bins).astype(int), self.n_bins - 1)
        left = np.clip(np.searchsorted(nodes, error, side="right") - 1, 0, nodes.size - 2)
        share = (error - nodes[left]) / np.diff(nodes)[left]
        upper = np.rint(np.clip(share, 0.0, 1.0) * whole).astype(np.int64)
        shape = [groups, self.n_bins, nodes.size]
        table = table_of([own, bins, left], shape, whole - upper)
        table += table_of([own, bins, left + 1], shape, upper)
        return [np.stack(sums, axis=1), table, table.sum(axis=1)]

    def release(self, exact: list[np.ndarray], stream: RandomStream) -> ErrorTables:
        """Return sums and tables with noise."""
        return self.assemble(
            *(
                release.make(table, stream) / UNIT
                for release, table in zip(self.releases, exact, strict=True)
            )
        )

    def assemble(self, sums: np.ndarray, table: np.ndarray, histogram: np.ndarray) -> ErrorTables:
        """Return estimates with the public sum, by post-processing."""
        released = self.entries
        found = np.zeros((len(sums), 8 if 6 in released else 6))
        deviations = np.zeros(found.shape[1])
        found[:, released] = sums * _SCALES[released]
        deviations[released] = self.releases[0].people * _SCALES[released]
        fine, coarse = (release.people**2 for release in self.releases[1:])
        one = np.zeros(self.n_bins, dtype=int)
        best, _ = fuse(table.swapaxes(1, 2), histogram[..., None], one, (fine, coarse))
        counts = best.swapaxes(1, 2)
        rows = np.array([float(self.n)])
        if self.subgroups is not None:
            rows = found[:, 5] + (self.n - found[:, 5].sum()) / len(found)
        gaps = rows - counts.sum(axis=(1, 2))
        counts = counts + gaps[:, None, None] / counts[0].size
        found[:, released] += rows[:, None] * _MIDDLES[released]
        found[:, 5] = rows
        variances = fine, 1.0 / (1.0 / (self.n_bins * fine) + 1.0 / coarse)
        public = self.n, self.bounds, self.largest_error, self.subgroups
        return ErrorTables(found, deviations, counts, variances, *public)
