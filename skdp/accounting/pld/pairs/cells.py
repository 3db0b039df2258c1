"""Pairs with losses spread over cells of a grid, for upper and lower bounds.

`spread` connects the dots (Doroshenko et al., 2022): each cell's mass moves to its two ends, and
its masses under P and Q are preserved. The discrete pair dominates. Its divergence has the chords
of the true one as a function of ``e^epsilon``. `lowered` lowers the chords below the tangents at
the ends, and makes a dominated pair (section 8 of ``docs/proofs/certified_intervals.md``). This
pair may have less than P's mass, like one with a withheld outcome; composition remains monotone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from skdp.accounting.numerics.arithmetic import LARGEST_EXPONENT
from skdp.accounting.pld.pairs.base import Array, Indices, NodeMasses

_ROUNDING = 1e-14  # relative to the terms of a mass, generously
_MARGIN = 1e-9  # by which the lowered curve stays above zero, so that rounding cannot sink it
_MOST_NEGATIVE = 2**13  # masses of a curve that is far from convex, and not worth a minorant
_LARGEST_STRETCH = 300.0  # nats of losses whose masses under Q are compared at once
# Nats of a cell: in longer ones rounding hides by how much a curve falls inside.
_LARGEST_CELL = 30.0


def lowered(step: float, nodes: NodeMasses, zero: int | None = None) -> Array:
    """Return masses under P of a dominated pair on nodes ``step`` nats apart.

    ``zero`` is the node of loss zero, if any, without infinite losses; masses beyond are dropped.
    """
    inside = bool(np.any(nodes.falling > 0.0) or np.any(nodes.rising > 0.0))
    if not inside and nodes.below == 0.0:
        return nodes.masses
    if step > _LARGEST_CELL:
        return np.zeros(len(nodes.masses))
    masses = nodes.masses.copy()
    masses[0] = max(0.0, masses[0] * (1.0 - _ROUNDING) - nodes.below)
    curve = profile_at_nodes(step, masses)
    lowering = _lowering(step, nodes.falling, nodes.rising, curve)
    lowering, last, doubt = _cut(step, lowering, curve, zero)
    if last <= 0:
        return np.zeros(len(masses))
    result = np.zeros(len(masses))
    result[: last + 1] = _convex(
        step, _changes_of_slope(step, masses, lowering[: last + 1], curve, doubt)
    )
    return result


def _cut(step: float, lowering: Array, curve: Array, zero: int | None) -> tuple[Array, int, float]:
    """End the lowered curve where it would fall below an attained value.

    Attained are zero, from one node earlier to be safe, and ``1 - y`` if all of P's mass is finite.
    Return the lowering, the first node of the zero part, and the error of replaced values.
    """
    negative = np.flatnonzero(lowering > curve * (1.0 - _MARGIN))
    first = int(negative[0]) if len(negative) else len(curve)
    if zero is None or not 0 < first <= zero < len(curve):
        last = min(first, len(curve)) - 1
        if last > 0:
            lowering[last] = curve[last]
        return lowering, last, 0.0
    replaced = np.arange(first - 1, zero + 1)
    attained = -np.expm1(step * (replaced - zero))
    attained[0] = min(attained[0], curve[first - 1] - lowering[first - 1])
    lowering[replaced] = curve[replaced] - attained
    return lowering, zero, float(curve[first - 1])


def _changes_of_slope(
    step: float, masses: Array, lowering: Array, curve: Array, doubt: float
) -> Array:
    """Return masses under P of a lowered curve."""
    last, growth = len(lowering) - 1, math.expm1(step)
    rise = np.diff(lowering)
    out = masses[: last + 1].copy()
    out[0] -= rise[0] / growth
    out[1:last] -= (rise[1:] - (1.0 + growth) * rise[:-1]) / growth
    out[last] = (curve[last - 1] - lowering[last - 1]) / -math.expm1(-step)
    size = (np.abs(lowering) + doubt) / growth
    terms = masses[: last + 1] + size
    terms[1:] += 2.0 * size[:-1]
    terms[:-1] += size[1:]
    out -= _ROUNDING * terms
    out[last] = max(out[last], 0.0)
    return out


def _lowering(step: float, falling: Array, rising: Array, curve: Array) -> Array:
    """Return the lowering of the curve at each node, zero at the last one.

    Zero at the first, too, unless cells are wide: atoms at the ends and P's mass then stay.
    """
    growth = math.expm1(step)
    total = falling * (1.0 + growth) + rising
    # Two small masses would vanish in their product.
    height = falling * np.divide(
        rising * growth, total, out=np.zeros(len(total)), where=total > 0.0
    )
    lowering = np.append(height, 0.0)
    lowering[1:-1] = np.maximum(height[:-1], height[1:])
    if falling[-1] > 0.0:
        lowering[-2] = max(lowering[-2], rising[-1] * -math.expm1(-step))
    if len(lowering) > 2 and falling[0] * growth < curve[1] * (1.0 - _MARGIN):
        lowering[0], lowering[1] = 0.0, max(lowering[1], falling[0] * growth)
    return lowering * (1.0 + _ROUNDING)


def profile_at_nodes(step: float, masses: Array) -> Array:
    """Return a discrete pair's divergence at its losses."""
    size = len(masses)
    out = np.zeros(size)
    stretch = max(1, min(size, int(_LARGEST_STRETCH / step)))
    shift = math.exp(-min(step, 700.0))
    above, value = 0.0, 0.0  # mass under Q, in units of 1/y at the next node, and divergence there
    for end in range(size, 0, -stretch):
        start = max(0, end - stretch)
        y = np.exp(step * np.arange(end - start))
        under_q = np.cumsum((masses[start:end] / y)[::-1])[::-1]
        rest = above * shift / y[-1]
        # Slopes to the right of each node of the stretch, times the widths of the cells there.
        beyond = np.append(under_q[1:], 0.0) + rest
        drops = beyond * y * math.expm1(min(step, 700.0))
        out[start:end] = np.cumsum(drops[::-1])[::-1] + value
        above, value = float(under_q[0] + rest), float(out[start])
    return out


def _convex(step: float, masses: Array) -> Array:
    """Return a curve's greatest convex minorant, by signed masses."""
    # A node of negative mass lies above the line between any two around it, so that it is not on
    # the minorant. Its mass moves to the nearest nodes that are kept, keeping its masses under P
    # and Q; below the first of these, to it and to a loss of minus infinity.
    negative = np.count_nonzero(masses < 0.0)
    if not 0 < negative <= _MOST_NEGATIVE:
        return masses if negative == 0 else np.zeros(len(masses))
    present = np.flatnonzero(masses)
    values = masses[present].tolist()
    doubts = [0.0] * len(values)
    following = list(range(1, len(values) + 1))
    previous = list(range(-1, len(values) - 1))
    pending = [i for i, value in enumerate(values) if value < 0.0]
    while pending:
        node = pending.pop()
        moved = values[node]
        if moved >= 0.0:
            continue
        lower, upper = previous[node], following[node]
        if upper == len(values):
            return np.zeros(len(masses))  # by rounding alone: the last mass is positive
        values[node] = 0.0
        previous[upper] = lower
        share = 1.0
        if lower >= 0:
            following[lower] = upper
            width = step * float(present[upper] - present[lower])
            share = math.expm1(-step * float(present[node] - present[lower])) / math.expm1(-width)
            values[lower] += moved * (1.0 - share)
            doubts[lower] -= moved * (1.0 - share)
            if values[lower] < 0.0:
                pending.append(lower)
        values[upper] += moved * share
        doubts[upper] -= moved * share
        if values[upper] < 0.0:
            pending.append(upper)
    out = np.zeros(len(masses))
    out[present] = np.maximum(np.array(values) - _ROUNDING * np.array(doubts), 0.0)
    return out


_LOG_SHARED = -660.0  # of a cell's mass under P and Q that still has all digits of a float
_ON_AN_END = 1e-9  # of a step: extreme losses this close to a node are there, up to rounding


class CellPair(ABC):
    """A pair with known masses between any losses."""

    failure = 0.0
    atomic = False
    lattice = 0.0
    origin = 0.0
    needs_zero = False  # whether zero must be a node
    spare_nodes = 0  # above the largest loss of a grid

    @abstractmethod
    def span(self, tail: float) -> tuple[float, float]:
        """See `Pair`."""

    @abstractmethod
    def roundings(self, tail: float) -> float:
        """See `Pair`."""

    @abstractmethod
    def node_masses(self, edges: Array) -> NodeMasses:
        """Spread P's mass over increasing losses, dominating the pair.

        Mass below the first is moved up to it, mass above the last one to infinity.
        """

    def grid(self, step: float, tail: float, aligned: bool = False) -> tuple[Indices, Array, float]:
        """See `Pair`."""
        indices, edges, nodes = self._nodes_on_grid(step, tail, aligned)
        return indices, _moved(edges, nodes, up=True).masses, nodes.infinite

    def optimistic_grid(
        self, step: float, tail: float, aligned: bool = False
    ) -> tuple[Indices, Array, float]:
        """See `Pair`."""
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
    """Move mass to one end of cells with too little to share."""
    masses = nodes.masses.copy()
    with np.errstate(divide="ignore"):
        log_masses = np.log(nodes.falling + nodes.rising)
    few = np.minimum(log_masses, log_masses - edges[1:]) < _LOG_SHARED
    moved = np.where(few, -nodes.falling if up else nodes.rising, 0.0)
    masses[1:] = np.maximum(masses[1:] - moved, 0.0)
    masses[:-1] = np.maximum(masses[:-1] + moved, 0.0)
    return nodes._replace(masses=masses, falling=nodes.falling + moved, rising=nodes.rising - moved)


def spread(edges: Array, mass: Array, excess: Array, below: float, above: float) -> NodeMasses:
    """Move each cell's mass to its ends, preserving P and Q.

    ``excess`` is P's mass minus ``e^l`` times Q's, with lower end ``l``: the upper end's share
    times ``1 - e^-width``. Clipping is only for rounding.
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
    """Join masses below and above loss zero, which has the mass ``still``."""
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
    """Return the r with ``log(1 - rate + rate e^r) = loss``, and ``e^r``.

    Below log(1 - rate), r is -inf and "e^r" the negative solution.
    """
    if rate == 1.0:
        return loss, np.exp(np.minimum(loss, LARGEST_EXPONENT))
    shifted = np.expm1(np.minimum(loss, 30.0)) / rate
    with np.errstate(divide="ignore"):
        near = np.log1p(np.maximum(shifted, -1.0))
    far = loss - math.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(loss, 30.0)))
    ratio = np.where(loss < 30.0, 1.0 + shifted, np.exp(np.minimum(far, LARGEST_EXPONENT)))
    return np.where(loss < 30.0, near, far), ratio
