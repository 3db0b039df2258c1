"""Pairs whose losses are spread over the cells of any grid.

`spread` connects the dots (Doroshenko et al., 2022): the mass of each cell moves to the two ends of
the cell so that its mass under P and under Q are both kept. The discrete pair dominates. From the
same cells `optimistic.lowered` makes one that is dominated.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from skdp.accounting.numerics.floats import LARGEST_EXPONENT
from skdp.accounting.pld.optimistic import lowered
from skdp.accounting.pld.pairs.base import Array, Indices, NodeMasses

_LOG_SHARED = -660.0  # of a cell's mass under P and Q that still has all digits of a float
_ON_AN_END = 1e-9  # of a step: extreme losses this close to a node are there, up to rounding


class CellPair(ABC):
    """A pair that knows its masses between any losses."""

    failure = 0.0
    atomic = False
    lattice = 0.0
    origin = 0.0
    needs_zero = False  # whether zero must be a node
    spare_nodes = 0  # above the largest loss of a grid

    @abstractmethod
    def span(self, tail: float) -> tuple[float, float]:
        """Return the losses between which all but ``tail`` of P's mass lies on either side."""

    @abstractmethod
    def roundings(self, tail: float) -> float:
        """Bound the relative errors of its masses on a grid; see `Pair`."""

    @abstractmethod
    def node_masses(self, edges: Array) -> NodeMasses:
        """Spread P's mass over increasing losses, dominating the pair.

        Mass below the first is moved up to it, mass above the last one to infinity.
        """

    def grid(self, step: float, tail: float, aligned: bool = False) -> tuple[Indices, Array, float]:
        """Return indices of losses in units of ``step``, their masses, and the infinite mass."""
        indices, edges, nodes = self._nodes_on_grid(step, tail, aligned)
        return indices, _moved(edges, nodes, up=True).masses, nodes.infinite

    def optimistic_grid(
        self, step: float, tail: float, aligned: bool = False
    ) -> tuple[Indices, Array, float]:
        """Return the same for a discrete pair that this one dominates."""
        indices, edges, nodes = self._nodes_on_grid(step, tail, aligned)
        zero = None if aligned and self.origin != 0.0 else int(-indices[0])
        return indices, lowered(step, _moved(edges, nodes, up=False), zero), 0.0

    def _nodes_on_grid(
        self, step: float, tail: float, aligned: bool
    ) -> tuple[Indices, Array, NodeMasses]:
        origin = self.origin if aligned else 0.0
        low, high = self.span(tail)
        first = math.floor((low - origin) / step + _ON_AN_END)
        last = math.ceil((high - origin) / step - _ON_AN_END) + self.spare_nodes
        if self.needs_zero:
            first, last = min(first, -1), max(last, 1)
        indices = np.arange(first, max(last, first + 1) + 1, dtype=np.int64)
        edges = np.asarray(origin + indices * step, dtype=np.float64)
        return indices, edges, self.node_masses(edges)


def _moved(edges: Array, nodes: NodeMasses, *, up: bool) -> NodeMasses:
    """Move mass to one end of cells that have too little under Q, or P, to be shared."""
    masses = nodes.masses.copy()
    with np.errstate(divide="ignore"):
        log_masses = np.log(nodes.falling + nodes.rising)
    few = np.minimum(log_masses, log_masses - edges[1:]) < _LOG_SHARED
    moved = np.where(few, -nodes.falling if up else nodes.rising, 0.0)
    masses[1:] = np.maximum(masses[1:] - moved, 0.0)
    masses[:-1] = np.maximum(masses[:-1] + moved, 0.0)
    return nodes._replace(masses=masses, falling=nodes.falling + moved, rising=nodes.rising - moved)


def spread(edges: Array, mass: Array, excess: Array, below: float, above: float) -> NodeMasses:
    """Move each cell's mass to its ends, keeping its masses under P and Q.

    ``excess`` is the mass under P less ``e^l`` times that under Q, ``l`` the lower end: what the
    upper end receives, times ``1 - e^-width``. Clipping to [0, mass] only matters for rounding.
    """
    share = -np.expm1(-np.diff(edges))
    rising = np.where(share > 0.0, np.clip(excess / np.maximum(share, 1e-300), 0.0, mass), mass)
    falling = mass - rising
    nodes = np.zeros(len(edges))
    nodes[:-1] += falling
    nodes[1:] += rising
    nodes[0] += below
    return NodeMasses(nodes, above, falling, rising, below)


def join_at_zero(zero: int, negative: NodeMasses, positive: NodeMasses, still: float) -> NodeMasses:
    """Join what is below and above the node of loss zero, which has the mass ``still`` besides."""
    masses = np.concatenate([negative.masses, positive.masses[1:]])
    masses[zero] += positive.masses[0]
    masses[zero] += still
    return NodeMasses(
        masses,
        positive.infinite,
        np.concatenate([negative.falling, positive.falling]),
        np.concatenate([negative.rising, positive.rising]),
        negative.below,
    )


def invert_mixture(rate: float, loss: Array) -> tuple[Array, Array]:
    """Return the r with ``log(1 - rate + rate e^r) = loss``, and ``e^r``, cut where it is large.

    Below log(1 - rate), which no r attains, r is -inf and "e^r" negative: what solves the equation.
    """
    if rate == 1.0:
        return loss, np.exp(np.minimum(loss, LARGEST_EXPONENT))
    shifted = np.expm1(np.minimum(loss, 30.0)) / rate
    with np.errstate(divide="ignore"):
        near = np.log1p(np.maximum(shifted, -1.0))
    far = loss - math.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(loss, 30.0)))
    ratio = np.where(loss < 30.0, 1.0 + shifted, np.exp(np.minimum(far, LARGEST_EXPONENT)))
    return np.where(loss < 30.0, near, far), ratio
