"""Public bins of scores, noisy tables of counts by label, and their line of log odds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit, logit

# Log odds of the outermost edges, and how much denser edges lie around even odds.
REACH, _BEND = 6.0, 1.5
# Where the spread of scores is known: how many spreads away the outermost edges lie at most.
_FARTHEST = 12.0
_FEWEST, _MOST = 10, 44
# When bins hold scores that take few values: shares of all rows, deviations, parts of squares.
_LARGEST_SHARE, _SURE, _JAGGED, _CONCENTRATED = 0.25, 3.0, 0.1, 0.5
# Cells that a bin is divided into, between which its scores are shared out.
PARTS = 4


def number_of_bins(n: int, sigma: float) -> int:
    """Return the best number of bins for n records and noise of that scale on a count."""
    return int(np.clip(2 * round(3.2 * (n / sigma) ** 0.18), _FEWEST, _MOST))


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Bins of scores in [0, 1], all of them public.

    A score is in the bin with the largest lower edge that it reaches. For scores with few values,
    the edges are the `atoms`, one per bin. A row is positive at a threshold that its score reaches;
    `first_positive` has the first such bin for each threshold. Edges are evenly spaced on the bent
    scale, on which log odds x are the arsinh of ``(x - centre) / scale``.
    """

    edges: np.ndarray
    thresholds: tuple[float, ...]
    atoms: np.ndarray | None = None
    centre: float = 0.0
    scale: float = REACH / math.sinh(_BEND)

    @classmethod
    def make(
        cls,
        count: int,
        thresholds: tuple[float, ...],
        location: tuple[float, float] | None = None,
    ) -> ScoreBins:
        """Return this number of bins on the scale of log odds, or more if thresholds are many.

        Every threshold is an edge. The location is a centre and a spread of log odds, around which
        edges are densest.
        """
        declared = np.unique(thresholds)
        odds, count = logit(declared), max(count, declared.size + 3)
        # Of rare outcomes most scores lie below expit(-6): a threshold among them says so.
        reach = float(np.clip(np.abs(odds).max() + 3.0, REACH, 2.0 * REACH))
        centre, scale, low, high = 0.0, reach / math.sinh(_BEND), -reach, reach
        if location is not None:
            centre, spread = location
            near, far = min(4.0 * spread, spread + 4.0), _FARTHEST * spread
            low = max(min(low, centre - near), centre - far)
            high = min(max(high, centre + near), centre + far)
            scale = min(scale, spread)
        ends = np.arcsinh((np.array([low, high]) - centre) / scale)
        inside = np.arcsinh((odds - centre) / scale)
        # Slivers hold noise alone: an end that comes near a threshold, or lies inside, is none.
        room = np.ptp(np.concatenate([ends, inside])) / count
        first, last = ends[:1][ends[:1] < inside[0] - room], ends[1:][ends[1:] > inside[-1] + room]
        fixed = np.concatenate([first, inside, last])
        # Each edge divides what is longest between fixed ones.
        parts = np.ones(fixed.size - 1, dtype=int)
        for _ in range(count - 1 - fixed.size):
            parts[np.argmax(np.diff(fixed) / parts)] += 1
        free = [
            np.linspace(*pair, part, endpoint=False)[1:]
            for pair, part in zip(pairwise(fixed), parts, strict=True)
        ]
        edges = expit(centre + scale * np.sinh(np.concatenate([first, *free, last])))
        return cls(np.sort(np.concatenate([edges, declared])), thresholds, None, centre, scale)

    @classmethod
    def at(cls, values: Any, thresholds: tuple[float, ...]) -> ScoreBins:
        """Return one bin for each possible score."""
        atoms = np.unique(np.asarray(values, dtype=np.float64))
        return cls(0.5 * (atoms[1:] + atoms[:-1]), thresholds, atoms)

    @property
    def count(self) -> int:
        """Number of bins."""
        return self.edges.size + 1

    @property
    def lower_ends(self) -> np.ndarray:
        """The least score of each bin."""
        return np.concatenate([[0.0], self.edges]) if self.atoms is None else self.atoms

    @cached_property
    def middles(self) -> tuple[np.ndarray, np.ndarray]:
        """The middle of each bin, and half of its length."""
        ends = np.concatenate([[0.0], self.edges, [1.0]])
        return 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)

    def places(self, scores: np.ndarray) -> np.ndarray:
        """Return the bin of each score."""
        return np.searchsorted(self.edges, scores, side="right")

    @cached_property
    def first_positive(self) -> tuple[int, ...]:
        """The first bin whose scores reach each threshold."""
        if self.atoms is None:
            return tuple(int(at) + 1 for at in np.searchsorted(self.edges, self.thresholds))
        return tuple(int(at) for at in np.searchsorted(self.atoms, self.thresholds))

    @cached_property
    def coarse(self) -> np.ndarray:
        """The cell between declared thresholds that contains each bin."""
        cuts = np.unique(self.first_positive)
        passed = np.searchsorted(cuts, np.arange(self.count), side="right")
        return np.unique(passed, return_inverse=True)[1]

    @cached_property
    def parts(self) -> np.ndarray:
        """Lower and upper ends of the cells within bins, shape (2, n_cells)."""
        if self.atoms is not None:
            return np.stack([self.atoms, self.atoms])
        steps = np.arange(PARTS + 1) / PARTS
        ends = np.concatenate([[0.0], self.edges, [1.0]])
        cells = [ends[0] + steps * (ends[1] - ends[0])]
        for a, b in pairwise(self.bent):
            cells.append(expit(self.centre + self.scale * np.sinh(a + steps * (b - a))))
        cells += [ends[-2] + steps * (ends[-1] - ends[-2])]
        return np.concatenate([[cell[:-1], cell[1:]] for cell in cells], axis=1)

    @cached_property
    def bent(self) -> np.ndarray:
        """Edges on the bent scale."""
        return np.arcsinh((logit(self.edges) - self.centre) / self.scale)

    @cached_property
    def spreads(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrices that distribute the counts of bins over their cells: with slopes, and without.

        Within a bin the density on the bent scale is a line with a slope from the neighbours, or 0.
        The outermost bins are unbounded and have slope 0.
        """
        if self.atoms is not None:
            return np.eye(self.count), np.eye(self.count)
        flat = np.repeat(np.eye(self.count), PARTS, axis=0) / PARTS
        if self.count < 5:
            return flat, flat
        edges = self.bent
        widths, centres = np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
        slopes = np.gradient(np.diag(1.0 / widths), centres, axis=0)
        offsets = (np.arange(PARTS) + 0.5) / PARTS - 0.5
        moved = (widths[:, None] ** 2 * offsets / PARTS)[:, :, None] * slopes[:, None, :]
        sloped = flat.copy()
        sloped[PARTS:-PARTS, 1:-1] += moved.reshape(-1, widths.size)
        return sloped, flat

    def ordered(self, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return matrices like `spreads`, with some bins' counts in their last or first cell.

        Only bins between edges may be among these.
        """
        found = []
        for cell in (PARTS - 1, 0):
            matrix = self.spreads[0].copy()
            for at in np.flatnonzero(among):
                matrix[:, at] = 0.0
                matrix[PARTS * at + cell, at] = 1.0
            found.append(matrix)
        return found[0], found[1]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """One table of label (0, 1) by bin: noisy counts, and the public covariance of their noise.

    Counts are as released, also below zero. The covariance is that of the flat table. Where known,
    `offsets` are the additions of scores within bins to the sums of scores and of squared distances
    from labels, and `offset_variances` those of their noise.
    """

    counts: np.ndarray
    covariance: np.ndarray
    bins: ScoreBins
    offsets: np.ndarray | None = None
    offset_variances: np.ndarray | None = None

    @cached_property
    def spikes(self) -> np.ndarray:
        """Bins in which the order of scores is unknown, according to the noisy counts.

        They contain a large share of all rows, or exceed their neighbours; all bins count if most
        exceed them. The outermost bins are unbounded.
        """
        bins, every = self.bins, self.counts.sum(axis=0)
        if bins.atoms is not None or bins.count < 5:
            return np.zeros(bins.count, dtype=bool)
        noise = self.covariance.reshape(2, bins.count, 2, bins.count).sum(axis=(0, 2))
        variance = (np.diag(noise) + np.maximum(every, 0.0))[1:-1]
        # What a bin would hold by the mean density of its neighbours, without the outermost.
        size = bins.count - 2
        beside = np.abs(np.arange(size) + np.array([[-1], [1]]))
        beside[1, -1] = size - 2
        widths = np.diff(bins.bent)
        near = 0.5 * widths / widths[beside]
        around = (near * every[1:-1][beside]).sum(axis=0)
        spread = variance + (near**2 * variance[beside]).sum(axis=0)
        apart = every[1:-1] - around
        outstanding = apart > 0.5 * np.maximum(around, 0.0) + _SURE * np.sqrt(spread)
        total = max(float(np.maximum(every, 0.0).sum()), 1.0)
        found = every > _LARGEST_SHARE * total
        found[1:-1] |= outstanding
        found[[0, -1]] = True
        jagged = (apart**2).sum() - spread.sum() * (1.0 + _SURE * (2.0 / apart.size) ** 0.5)
        return found | (jagged > _JAGGED * float((every**2).sum()))

    @property
    def concentrated(self) -> bool:
        """Whether most rows are in spikes, according to the noisy counts."""
        every = np.maximum(self.counts.sum(axis=0), 0.0)
        return bool(every[1:-1] @ self.spikes[1:-1] > _CONCENTRATED * max(every.sum(), 1.0))


# Where a probability of 0 or 1 lies: log odds of 27.6.
_LEAST = 1e-12
# A bin counts by n / (n + this many deviations of its noise).
_CAUTION = 3.0


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Return log odds, finite at 0 and 1 too."""
    return logit(np.clip(probabilities, _LEAST, 1.0 - _LEAST))


def fit_logistic(table: ScoreTable, with_intercept: bool = True) -> tuple[float, float]:
    """Return intercept and positive slope of a logistic regression of labels on log odds of scores.

    Without noise they solve its equations, up to the positions of scores within bins. Equations are
    weighted by the inverse of their covariance, from noise and sampling. One pseudo-observation of
    the identity has standard deviation 1 for the intercept and for the logarithm of the slope.
    """
    places, spread = _places(table)
    negatives, positives = table.counts @ spread.T
    counts, noise = _totals(table), np.sqrt(np.diag(table.covariance)[: table.bins.count])
    # Of bins that hold little but noise neighbours say so too.
    near = np.convolve(np.pad(counts, 1, mode="edge"), np.full(3, 1.0 / 3.0), mode="valid")
    weights = np.repeat(near / (near + _CAUTION * noise), places.size // counts.size)
    moments = np.stack([weights, weights * places])
    start = expit(places)
    by_count = np.hstack([-(moments * start) @ spread, (moments * (1.0 - start)) @ spread])
    rows = np.maximum(spread @ counts, 0.0) + 1.0 / places.size
    variance = (moments * (rows * start * (1.0 - start))) @ moments.T
    root = np.linalg.cholesky(variance + by_count @ table.covariance @ by_count.T)
    scales = np.array([float(with_intercept), 1.0])

    def residuals(free: np.ndarray) -> np.ndarray:
        intercept, slope = scales * free
        curve = expit(intercept + np.exp(slope) * places)
        equations = moments @ (positives * (1.0 - curve) - negatives * curve)
        return np.concatenate([np.linalg.solve(root, equations), free])

    intercept, slope = scales * least_squares(residuals, np.zeros(2), bounds=(-20.0, 20.0)).x
    return float(intercept), float(np.exp(slope))


def smoothed(table: ScoreTable) -> np.ndarray:
    """Return counts shrunk towards the logistic curve by the share of the gap due to noise.

    Shrinkage is the positive-part James-Stein rule: without noise, counts do not change.
    """
    places, spread = _places(table)
    intercept, slope = fit_logistic(table)
    curve = expit(intercept + slope * places)
    rows = np.maximum(spread @ _totals(table), 0.0)
    rows *= max(table.counts.sum(), 1.0) / rows.sum()
    modelled = np.stack([rows * (1.0 - curve), rows * curve])
    modelled = modelled.reshape(2, table.bins.count, -1).sum(axis=2)
    excess = table.counts - modelled
    explained = np.trace(table.covariance) / max(float((excess**2).sum()), _LEAST)
    return modelled + max(0.0, 1.0 - explained) * excess


def best_bin(counts: np.ndarray, metric: str, costs: tuple[float, float]) -> int:
    """Return the first bin to call positive, without dividing by a count that may be below 1."""
    negatives, positives = np.maximum(counts.sum(axis=1), 1.0)
    below = np.cumsum(counts[:, :-1], axis=1)
    false = np.clip(negatives - below[0], 0.0, negatives)
    missed = np.clip(below[1], 0.0, positives)
    if metric == "youden":
        loss = false / negatives + missed / positives
    elif metric == "f1":
        loss = (false + missed) / (2.0 * positives - missed + false)
    else:
        loss = costs[0] * false + costs[1] * missed
    return int(np.argmin(loss)) + 1


def _places(table: ScoreTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the log odds of the cells of bins, and the matrix that distributes counts."""
    low, high = table.bins.parts
    return log_odds(0.5 * (low + high)), table.bins.spreads[0]


def _totals(table: ScoreTable) -> np.ndarray:
    """Return rows per bin, with one more distributed over all bins so that none is empty."""
    return np.maximum(table.counts.sum(axis=0), 0.0) + 1.0 / table.bins.count
