"""The one release that all figures follow from: tables of integers with discrete Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.accounting import ComposedEvent, Event, calibrate_event
from skdp.mechanisms import RandomStream
from skdp.mechanisms.contribution import Adjacency
from skdp.scores.bins import ScoreBins, ScoreTable, number_of_bins
from skdp.statistics.counts import table_of
from skdp.statistics.noise import Noise, Query

# Parts of the budget of a table: for bins, for cells between thresholds, for confusions.
_TWO_CLASSES, _MORE_CLASSES = (0.6, 0.4), (0.48, 0.32, 0.2)


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """All that is released, and the public numbers that belong to it.

    `counts` has shape (n_subgroups, n_tables, 2, n_bins): the label outside or inside a class, by
    bins of its score. There is one table for two classes, and one a class for more; then
    `confusions`, of shape (n_subgroups, n_classes, n_classes), has true by predicted class.
    """

    bins: ScoreBins
    counts: np.ndarray
    noise: np.ndarray
    confusions: np.ndarray | None
    confusion_variance: float
    n: int
    classes: np.ndarray
    subgroups: tuple[Any, ...] | None
    probabilities: bool

    def table(self, subgroup: Any = None, label: Any = None) -> ScoreTable:
        """Return the table of a class, of a subgroup or of all rows."""
        counts = self.counts[self._members(subgroup), self._of_class(label)].sum(axis=0)
        return ScoreTable(counts, self._covariance(self.noise, subgroup), self.bins)

    def confusion(self, subgroup: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return counts of true by predicted class, and the covariance of the flat table."""
        if self.confusions is None:
            raise ValueError("two classes have no table of confusions of their own.")
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
                f"of more than two classes name one with label=, of two none; the classes are "
                f"{self.classes.tolist()!r}, got label={label!r}."
            )
        return self.classes.tolist().index(label)

    def _covariance(self, noise: np.ndarray, subgroup: Any) -> np.ndarray:
        """Return the covariance of a subgroup's table, or of the sum of all of them."""
        every = len(self.counts)
        taken = every if subgroup is None else 1
        sums = noise.sum(axis=1)
        return taken * noise - taken**2 * np.outer(sums, sums) / (every * sums.sum())


def members_of(subgroup: Any, subgroups: tuple[Any, ...] | None) -> slice:
    """Return the place of a declared subgroup, or that of all; anything else is refused."""
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


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """Bins, noise and price of one release, from public numbers alone."""

    bins: ScoreBins
    noises: tuple[Noise, ...]
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
        unit: int = 1,
    ) -> ReleasePlan:
        """Find the least noise for a target.

        A record lies in one cell of each class's table: L2 norm 1, or the root of 2 where it is
        replaced, times the root of the number of tables.
        """
        tables = 1 if len(classes) == 2 else len(classes)
        one = Query.shares("confusions", adjacency, unit)
        bins, cells = (
            Query(name, unit, one.l1 * tables, one.l2_squared * tables)
            for name in ("bins", "cells")
        )
        shares = _TWO_CLASSES if tables == 1 else _MORE_CLASSES
        parts = dict(zip((bins, cells, one), shares, strict=False))

        def noises(sigma: float) -> tuple[Noise, ...]:
            return tuple(
                Noise.gaussian(query, sigma * math.sqrt(query.l1 / (one.l1 * part)))
                for query, part in parts.items()
            )

        def event(sigma: float) -> ComposedEvent:
            return ComposedEvent(tuple(noise.event for noise in noises(sigma)))

        sigma = calibrate_event(event, epsilon, delta, adjacency=adjacency)
        if score_values is not None:
            places = ScoreBins.at(score_values, thresholds)
        else:
            count = number_of_bins(n, sigma * math.sqrt(tables)) if n_bins == "auto" else n_bins
            places = ScoreBins.make(count, thresholds)
        found = places, noises(sigma), event(sigma), adjacency
        return cls(*found, n, classes, subgroups, probabilities)

    def describe(self) -> str:
        """Name sensitivity, noise and theorem, for the statement."""
        people = ", ".join(f"{noise.people:.6g}" for noise in self.noises)
        query = self.noises[0].query
        return (
            f"{len(self.noises)} tables of counts with discrete Gaussian noise of scales {people}; "
            f"L2 sensitivity of the first {math.sqrt(query.l2_squared) / query.unit:.6g} (Canonne, "
            "Kamath & Steinke 2020; docs/proofs/evaluation.md)"
        )

    def shape(self) -> tuple[int, int, int, int]:
        """Return the shape of the table of bins: subgroups, tables, labels, bins."""
        tables = 1 if len(self.classes) == 2 else len(self.classes)
        return len(self.subgroups or (None,)), tables, 2, self.bins.count

    def count(
        self,
        places: np.ndarray,
        codes: np.ndarray,
        members: np.ndarray,
        predicted: np.ndarray,
        weights: Any = None,
    ) -> list[np.ndarray]:
        """Return the exact tables of rows: their bins, shape (n, n_tables), class and subgroup."""
        n_groups, n_tables, _, n_bins = self.shape()
        fine = np.stack(
            [
                table_of([members, of_class.astype(int), place], [n_groups, 2, n_bins], weights)
                for place, of_class in zip(places.T, self._classes_of(codes), strict=True)
            ],
            axis=1,
        )
        tables = [fine, self.coarsen(fine)]
        if n_tables > 1:
            shape = [n_groups, n_tables, n_tables]
            tables.append(table_of([members, codes, predicted], shape, weights))
        return tables

    def _classes_of(self, codes: np.ndarray) -> list[np.ndarray]:
        two = len(self.classes) == 2
        return [codes == code for code in ((1,) if two else range(len(self.classes)))]

    def release(self, exact: list[np.ndarray], stream: RandomStream) -> ScoreTables:
        """Return tables with noise, fused to one estimate of each."""
        noisy = [
            noise.release(table, stream) / noise.query.unit
            for noise, table in zip(self.noises, exact, strict=True)
        ]
        return self.assemble(*noisy)

    def assemble(
        self, fine: np.ndarray, coarse: np.ndarray, confusions: np.ndarray | None = None
    ) -> ScoreTables:
        """Return estimates that have the public sum; all of it is post-processing."""
        variances = [noise.people**2 for noise in self.noises]
        counts, noise = fuse(fine, coarse, self.bins.coarse, (variances[0], variances[1]))
        for table in range(counts.shape[1]):
            counts[:, table] = with_total(counts[:, table], noise, self.n)
        if confusions is not None:
            confusions = with_total(confusions, np.eye(confusions[0].size), self.n)
        public = (self.n, self.classes, self.subgroups, self.probabilities)
        return ScoreTables(self.bins, counts, noise, confusions, variances[-1], *public)

    def coarsen(self, fine: np.ndarray) -> np.ndarray:
        """Return the sums of bins between declared thresholds."""
        cells = np.arange(self.bins.coarse[-1] + 1)[:, None] == self.bins.coarse
        return fine @ cells.T.astype(fine.dtype)
