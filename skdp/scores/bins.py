"""Where scores are counted: public bins or atoms, and how a score may lie within its bin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, logit

# Log odds of the outermost edges, and how much denser edges lie around even odds.
_REACH, _BEND = 6.0, 1.5
_FEWEST, _MOST = 10, 44
# Cells that a bin is divided into, between which its scores are shared out.
PARTS = 4


def number_of_bins(n: int, sigma: float) -> int:
    """Return how many bins n records and noise of that scale on a count are worth."""
    return int(np.clip(2 * round(3.2 * (n / sigma) ** 0.18), _FEWEST, _MOST))


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Bins of scores in [0, 1]; all of it is public.

    A score lies in the bin whose lower edge is the last that it reaches. Of scores that take few
    values those are the `atoms`, one a bin. A row is positive at a threshold that its score
    reaches; `first_positive` has the first such bin for each threshold.
    """

    edges: np.ndarray
    thresholds: tuple[float, ...]
    atoms: np.ndarray | None = None

    @classmethod
    def make(cls, count: int, thresholds: tuple[float, ...]) -> ScoreBins:
        """Return bins on the scale of log odds, with every threshold an edge."""
        places = np.linspace(-1.0, 1.0, count - 1)
        declared = logit(np.array(thresholds))
        # Of rare outcomes most scores lie below expit(-6): a threshold among them says so.
        reach = float(np.clip(np.abs(declared).max() + 3.0, _REACH, 2.0 * _REACH))
        grid = reach * np.sinh(_BEND * places) / np.sinh(_BEND)
        # An edge that a threshold comes near makes room for it: slivers hold noise alone.
        room = np.gradient(grid) / 3.0
        far = np.abs(grid[:, None] - declared).min(axis=1) > room
        inner = np.setdiff1d(expit(grid[far]), thresholds)
        return cls(np.sort(np.concatenate([inner, np.unique(thresholds)])), thresholds)

    @classmethod
    def at(cls, values: Any, thresholds: tuple[float, ...]) -> ScoreBins:
        """Return one bin for each value that scores can take."""
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
        """The cell between declared thresholds that each bin lies in."""
        cuts = np.unique(self.first_positive)
        passed = np.searchsorted(cuts, np.arange(self.count), side="right")
        return np.unique(passed, return_inverse=True)[1]

    @cached_property
    def parts(self) -> np.ndarray:
        """Lower and upper ends of the cells that bins are divided into, shape (2, n_cells)."""
        if self.atoms is not None:
            return np.stack([self.atoms, self.atoms])
        steps = np.arange(PARTS + 1) / PARTS
        ends = np.concatenate([[0.0], self.edges, [1.0]])
        inside = logit(self.edges)
        cells = [ends[0] + steps * (ends[1] - ends[0])]
        cells += [expit(a + steps * (b - a)) for a, b in pairwise(inside)]
        cells += [ends[-2] + steps * (ends[-1] - ends[-2])]
        return np.concatenate([[cell[:-1], cell[1:]] for cell in cells], axis=1)

    @cached_property
    def spreads(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrices that share the counts of bins out among their cells: with slopes, and without.

        Within a bin the density of log odds is a line; its slope comes from the neighbours, or is
        0. The outermost bins reach to infinity: theirs is 0.
        """
        if self.atoms is not None:
            return np.eye(self.count), np.eye(self.count)
        flat = np.repeat(np.eye(self.count), PARTS, axis=0) / PARTS
        if self.count < 5:
            return flat, flat
        edges = logit(self.edges)
        widths, centres = np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
        slopes = np.gradient(np.diag(1.0 / widths), centres, axis=0)
        offsets = (np.arange(PARTS) + 0.5) / PARTS - 0.5
        moved = (widths[:, None] ** 2 * offsets / PARTS)[:, :, None] * slopes[:, None, :]
        sloped = flat.copy()
        sloped[PARTS:-PARTS, 1:-1] += moved.reshape(-1, widths.size)
        return sloped, flat


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """One table of label (0, 1) by bin: noisy counts, and the public covariance of their noise.

    Counts are as they were released, below zero too. The covariance is that of the flat table.
    """

    counts: np.ndarray
    covariance: np.ndarray
    bins: ScoreBins
