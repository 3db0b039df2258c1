"""Release of a classifier's evaluation: tables of integers with discrete Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from skdp.accounting import Event
from skdp.mechanisms import RandomStream
from skdp.mechanisms.contribution import Adjacency
from skdp.mechanisms.release import Release
from skdp.plans.scores import REACH, ScoreBins, ScoreTable, number_of_bins
from skdp.statistics.counts import table_of
from skdp.statistics.noise import UNIT, share_noise

# Shares of the budget: for bins, for cells between thresholds, for confusions.
_TWO_CLASSES, _MORE_CLASSES = (0.6, 0.4), (0.48, 0.32, 0.2)
# If bins must be placed: shares for the search and for offsets within bins.
_SEARCH, _OFFSETS = 0.1, 0.03
# Number of noisy counts of the search, and log odds between which it starts. No bisection of this
# range ends at even odds: one count serves both quantiles until it separates them.
_STEPS, _ENDS = 14, (-14.0, 10.0)
# Between these quantiles lie two spreads of log odds; the least spread.
_LEVELS, _LEAST_SPREAD = np.array([1.0, 5.0]) / 6.0, 0.01
# Scores with at least this spread, within the reach of bins, need no special bins.
_WIDE = 2.0


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """All released values with the public numbers.

    `counts` has shape (n_subgroups, n_tables, 2, n_bins): the label outside or inside a class, by
    bins of its score. There is one table for two classes, and one per class for more. In that case
    `confusions`, of shape (n_subgroups, n_classes, n_classes), has true by predicted class. Each
    table has separate bins and a separate covariance of `noise`. `offsets`, of shape (n_subgroups,
    n_tables, 2), are those of `ScoreTable`.
    """

    bins: tuple[ScoreBins, ...]
    counts: np.ndarray
    noise: np.ndarray
    confusions: np.ndarray | None
    confusion_variance: float
    n: int
    classes: np.ndarray
    subgroups: tuple[Any, ...] | None
    probabilities: bool
    offsets: np.ndarray | None = None
    offset_variances: np.ndarray | None = None

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Declared thresholds."""
        return self.bins[0].thresholds

    def table(self, subgroup: Any = None, label: Any = None) -> ScoreTable:
        """Return the table of a class, of a subgroup or of all rows."""
        members, at = self._members(subgroup), self._of_class(label)
        counts = self.counts[members, at].sum(axis=0)
        found = counts, self._covariance(self.noise[at], subgroup), self.bins[at]
        if self.offsets is None or self.offset_variances is None:
            return ScoreTable(*found)
        offsets = self.offsets[members, at]
        return ScoreTable(*found, offsets.sum(axis=0), len(offsets) * self.offset_variances[at])

    def confusion(self, subgroup: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return counts of true by predicted class, and the covariance of the flat table."""
        if self.confusions is None:
            raise ValueError("with two classes there is no separate table of confusions.")
        counts = self.confusions[self._members(subgroup)].sum(axis=0)
        noise = self.confusion_variance * np.eye(counts.size)
        return counts, self._covariance(noise, subgroup)

    def _members(self, subgroup: Any) -> slice:
        return members_of(subgroup, self.subgroups)

    def _of_class(self, label: Any) -> int:
        if len(self.classes) == 2 and label is None:
            return 0
        if len(self.classes) == 2 or label not in self.classes.tolist():
            raise ValueError(
                f"label must be one of the classes {self.classes.tolist()!r} if there are more "
                f"than two, and None for two classes, got label={label!r}."
            )
        return self.classes.tolist().index(label)

    def _covariance(self, noise: np.ndarray, subgroup: Any) -> np.ndarray:
        """Return the covariance of a subgroup's table, or of the sum of all of them."""
        every = len(self.counts)
        taken = every if subgroup is None else 1
        sums = noise.sum(axis=1)
        return taken * noise - taken**2 * np.outer(sums, sums) / (every * sums.sum())


def members_of(subgroup: Any, subgroups: tuple[Any, ...] | None) -> slice:
    """Return the slice of a declared subgroup, or of all rows; others are refused."""
    if subgroup is None:
        return slice(None)
    if subgroups is None or subgroup not in subgroups:
        raise ValueError(f"subgroup must be one of {subgroups!r}, got {subgroup!r}.")
    at = subgroups.index(subgroup)
    return slice(at, at + 1)


def with_total(counts: np.ndarray, noise: np.ndarray, total: int) -> np.ndarray:
    """Return the best linear estimate from tables with equal noise and the public sum of all."""
    sums = noise.sum(axis=1)
    share = sums.reshape(counts.shape[1:]) / (len(counts) * sums.sum())
    return counts - share * (counts.sum() - total)


def fuse(
    fine: np.ndarray, coarse: np.ndarray, cells: np.ndarray, variances: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best linear estimate of bins from noisy bins and noisy sums of them.

    Labels have independent noise; the covariance is that of the flat table of both.
    """
    sums = (cells == np.arange(coarse.shape[-1])[:, None]).astype(float)
    precision = np.eye(cells.size) / variances[0] + sums.T @ sums / variances[1]
    noise = np.linalg.inv(precision)
    best = (fine / variances[0] + coarse @ sums / variances[1]) @ noise
    return best, np.kron(np.eye(2), noise)


def _releases(
    adjacency: Adjacency, tables: int, placed: bool, probabilities: bool
) -> list[tuple[Release, float]]:
    """Return releases, each with its noise relative to that of a single table."""
    changed = 1 if adjacency == "add-remove" else 2
    most = changed * UNIT
    one = Release.shares("confusions", adjacency, UNIT)
    bins, cells = (
        Release.integers(name, tables * most, tables * changed * UNIT**2, UNIT)
        for name in ("bins", "cells")
    )
    extra: list[tuple[Release, float, float]] = []  # with squares of noise
    if placed:
        search = Release.integers("search", tables * UNIT, tables * UNIT**2, UNIT, times=_STEPS)
        extra.append((search, _STEPS * tables / changed, _SEARCH))
    if placed and probabilities:
        moved = 2 * tables * most, 2 * tables * most**2
        offsets = Release.integers("offsets", *moved, UNIT, largest=most)
        extra.append((offsets, 2.0 * tables * changed, _OFFSETS))
    left = 1.0 - sum(part for _, _, part in extra)
    parts = _TWO_CLASSES if tables == 1 else _MORE_CLASSES
    squares = float(tables), float(tables), 1.0
    tabled = zip((bins, cells, one), squares, parts, strict=False)
    found = [*((release, square, part * left) for release, square, part in tabled), *extra]
    return [(release, math.sqrt(square / part)) for release, square, part in found]


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """Bins, noise and privacy cost of one release, from public numbers only.

    There are bins for each table; `locate` moves them to the range of the scores, by the counts of
    the `search`.
    """

    bins: tuple[ScoreBins, ...]
    releases: tuple[Release, ...]
    search: Release | None
    event: Event
    adjacency: Adjacency
    n: int
    classes: np.ndarray
    subgroups: tuple[Any, ...] | None
    probabilities: bool

    @classmethod
    def build(
        cls,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        n: int,
        classes: np.ndarray,
        *,
        thresholds: tuple[float, ...],
        n_bins: Any = "auto",
        score_values: Any = None,
        subgroups: tuple[Any, ...] | None = None,
        probabilities: bool = True,
    ) -> ReleasePlan:
        """Find the least noise for a target.

        A record is split among the cells of each class's table. The L2 norm is 1, or sqrt(2) if it
        is replaced, times the square root of the number of tables.
        """
        tables = 1 if len(classes) == 2 else len(classes)
        planned = _releases(adjacency, tables, score_values is None, probabilities)
        sigma, plan = share_noise(planned, epsilon, delta, adjacency)
        if score_values is not None:
            places = ScoreBins.at(score_values, thresholds)
        else:
            count = number_of_bins(n, sigma * math.sqrt(tables)) if n_bins == "auto" else n_bins
            places = ScoreBins.make(count, thresholds)
        found = {release.label: release for release in plan.releases}
        first = found.pop("search", None)
        released = (places,) * tables, tuple(found.values()), first, plan.event, adjacency
        return cls(*released, n, classes, subgroups, probabilities)

    def describe(self) -> str:
        """Name sensitivity, noise and theorem, for the statement."""
        tables = [release for release in self.releases if release.label != "offsets"]
        people = ", ".join(f"{release.people:.6g}" for release in tables)
        text = (
            f"{len(tables)} tables of counts with discrete Gaussian noise of scales {people}; "
            f"L2 sensitivity of the first {tables[0].l2 / UNIT:.6g}"
        )
        if self.search is not None:
            text += f"; bins placed by {_STEPS} counts with noise of scale {self.search.people:.6g}"
        if len(tables) < len(self.releases):
            text += f"; sums of offsets within bins with noise of scale {self._offset_noise:.6g}"
        return f"{text} (Canonne, Kamath & Steinke 2020; docs/proofs/evaluation.md)"

    @property
    def _offset_noise(self) -> float:
        """Noise of offsets, as a share of the largest one."""
        return self.releases[-1].people

    def shape(self) -> tuple[int, int, int, int]:
        """Return the shape of the table of bins: subgroups, tables, labels, bins."""
        return len(self.subgroups or (None,)), len(self.bins), 2, self.bins[0].count

    def locate(self, scores: np.ndarray, weights: Any, stream: RandomStream) -> ReleasePlan:
        """Return the plan with bins in the range of the scores, by bisection with noisy counts.

        Scores have shape (n_rows, n_tables). The privacy cost of the plan does not change.
        """
        if self.search is None:
            return self
        low, high = (np.full((len(self.bins), 2), end) for end in _ENDS)
        mechanism, tables = self.search.mechanism(stream), len(low)
        drawn = mechanism.steps(_STEPS * tables)
        for step in range(_STEPS):
            # One count serves both quantiles while they are between the same ends.
            longer = (high - low).argmax(axis=1)[:, None]
            middle = np.take_along_axis(0.5 * (low + high), longer, axis=1)
            below = scores < expit(middle[:, 0])
            exact = UNIT * below.sum(axis=0) if weights is None else weights @ below
            noise = drawn[step * tables : (step + 1) * tables]
            noisy = mechanism.add(exact, noise)[:, None] / UNIT
            inside = (low < middle) & (middle < high)
            short = noisy < _LEVELS * self.n
            low = np.where(inside & short, middle, low)
            high = np.where(inside & ~short, middle, high)
        if self.n * _LEVELS[0] < 2.0 * self.search.people:  # noise would place the bins
            return self
        ends = np.sort(0.5 * (low + high), axis=1)
        found = zip(ends.mean(axis=1), 0.5 * np.diff(ends, axis=1)[:, 0], strict=True)
        return self.placed([(at, max(spread, _LEAST_SPREAD)) for at, spread in found])

    def placed(self, locations: list[tuple[float, float]]) -> ReleasePlan:
        """Return the plan with bins for a centre and a spread of log odds per table.

        Default bins stay if the spread is wide enough.
        """
        made = [
            bins
            if spread >= _WIDE and abs(centre) + spread <= REACH
            else ScoreBins.make(bins.count, bins.thresholds, (centre, spread))
            for bins, (centre, spread) in zip(self.bins, locations, strict=True)
        ]
        return replace(self, bins=tuple(made))

    def count(
        self,
        scores: np.ndarray,
        codes: np.ndarray,
        members: np.ndarray,
        predicted: np.ndarray,
        weights: Any = None,
    ) -> list[np.ndarray]:
        """Return the exact tables of rows: their scores, shape (n, n_tables), class, subgroup."""
        n_groups, n_tables, _, n_bins = self.shape()
        weights = np.full(codes.size, UNIT) if weights is None else weights
        fine, offsets = [], []
        for bins, own, score in zip(self.bins, self._classes_of(codes), scores.T, strict=True):
            place, label = bins.places(score), own.astype(int)
            fine.append(table_of([members, label, place], [n_groups, 2, n_bins], weights))
            for part in _parts_of_offsets(bins, np.clip(score, 0.0, 1.0), label, place):
                steps = np.rint(part * weights).astype(np.int64)
                offsets.append(table_of([members], [n_groups], steps))
        tables = [np.stack(fine, axis=1)]
        tables.append(self.coarsen(tables[0]))
        if n_tables > 1:
            shape = [n_groups, n_tables, n_tables]
            tables.append(table_of([members, codes, predicted], shape, weights))
        if len(tables) < len(self.releases):
            tables.append(np.stack(offsets, axis=1).reshape(n_groups, n_tables, 2))
        return tables

    def _classes_of(self, codes: np.ndarray) -> list[np.ndarray]:
        two = len(self.classes) == 2
        return [codes == code for code in ((1,) if two else range(len(self.classes)))]

    def release(self, exact: list[np.ndarray], stream: RandomStream) -> ScoreTables:
        """Return tables with noise, fused to one estimate of each."""
        noisy = {
            release.label: release.make(table, stream) / UNIT
            for release, table in zip(self.releases, exact, strict=True)
        }
        return self.assemble(**noisy)

    def assemble(
        self,
        bins: np.ndarray,
        cells: np.ndarray,
        confusions: np.ndarray | None = None,
        offsets: np.ndarray | None = None,
    ) -> ScoreTables:
        """Return estimates with the public sum, by post-processing."""
        fine, coarse, third, *_ = (*(release.people**2 for release in self.releases), 0.0)
        counts, noises = np.empty(bins.shape), []
        for at, place in enumerate(self.bins):
            best, noise = fuse(bins[:, at], cells[:, at], place.coarse, (fine, coarse))
            counts[:, at] = with_total(best, noise, self.n)
            noises.append(noise)
        if confusions is not None:
            confusions = with_total(confusions, np.eye(confusions[0].size), self.n)
        public = (self.n, self.classes, self.subgroups, self.probabilities)
        if confusions is None:
            third = 0.0
        found = self.bins, counts, np.array(noises), confusions, third
        if offsets is None:
            return ScoreTables(*found, *public)
        largest = np.array([largest_offsets(place) for place in self.bins])
        variances = (self._offset_noise * largest) ** 2
        return ScoreTables(*found, *public, offsets * largest, variances)

    def coarsen(self, fine: np.ndarray) -> np.ndarray:
        """Return the sums of bins between declared thresholds."""
        sums = []
        for at, bins in enumerate(self.bins):
            cells = np.arange(bins.coarse[-1] + 1)[:, None] == bins.coarse
            sums.append(fine[:, at] @ cells.T.astype(fine.dtype))
        return np.stack(sums, axis=1)


def largest_offsets(bins: ScoreBins) -> tuple[float, float]:
    """Return the largest effect of a score's place within its bin on two sums.

    With middle m and half length h, a score m + x adds x to the sum of scores, and ``2 (m - y) x
    + x^2 - h^2`` to that of ``(y - m)^2 + h^2`` (docs/proofs/evaluation.md, Theorem 7).
    """
    middle, half = bins.middles
    return float(half.max()), float((2.0 * half * np.maximum(middle, 1.0 - middle)).max())


def _parts_of_offsets(
    bins: ScoreBins, score: np.ndarray, label: np.ndarray, place: np.ndarray
) -> list[np.ndarray]:
    """Return the offsets of scores from the middles of their bins, as shares of the largest."""
    if bins.atoms is not None:
        return []
    middle, half = (of_bin[place] for of_bin in bins.middles)
    apart = score - middle
    of_score, of_square = largest_offsets(bins)
    squares = 2.0 * (middle - label) * apart + apart**2 - half**2
    return [np.clip(apart / of_score, -1.0, 1.0), np.clip(squares / of_square, -1.0, 1.0)]
