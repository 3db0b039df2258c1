"""A discrete pair below a given one, as accurate as connecting the dots is above.

Let ``g`` be the hockey-stick divergence as a function of ``y = e^epsilon``: convex and falling. The
discrete pair of `pairs.spread` has the chords of ``g`` between the nodes. Inside a cell, ``g``
is above its tangents at the two ends, whose slopes differ from the chord's by the masses under Q
that the ends received, ``q_lo`` and ``q_hi``. Lower the chords by ``e`` at the nodes: the lowered
ones are below both tangents, hence below ``g``, as soon as they are where the tangents meet, that
is if ``q_lo e_lo + q_hi e_hi >= q_lo q_hi (y_hi - y_lo)``. With equal ends that is the height of
the triangle of chord and tangents, which shrinks with the square of the cell. If the result is
convex it is the divergence of a pair again, whose masses under Q are the changes of slope. Where it
is not, its greatest convex minorant is taken.

The pair may lack some of P's mass. That is a pair in which an outcome has been withheld, and the
composition of curves is as monotone for such.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.pld.pairs.base import Array, NodeMasses

_ROUNDING = 1e-14  # relative to the terms of a mass, generously
_MARGIN = 1e-9  # by which the lowered curve stays above zero, so that rounding cannot sink it
_MOST_NEGATIVE = 2**13  # masses of a curve that is far from convex, and not worth a minorant
_LARGEST_STRETCH = 300.0  # nats of losses whose masses under Q are compared at once


def lowered(step: float, nodes: NodeMasses, zero: int | None = None) -> Array:
    """Return masses under P of a dominated pair on the same nodes, ``step`` nats apart.

    ``zero`` is the node of loss zero, if any, without infinite losses; masses beyond are dropped.
    """
    inside = bool(np.any(nodes.falling > 0.0) or np.any(nodes.rising > 0.0))
    if not inside and nodes.below == 0.0:
        return nodes.masses
    if step > _LARGEST_STRETCH:
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
    """End the lowered curve where it would fall below what is known to be attained.

    Zero always is; take it from one node earlier, to be safe in between. So is ``1 - y`` if all
    of P's mass is at finite losses. Return the lowering, the node from which on the curve is zero,
    and by how much values that were replaced may be off.
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
    """Return the masses under P of a lowered curve that is zero from its last node on."""
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
    """Return by how much to lower the curve at each node, nothing at the last one.

    Nor at the first, unless cells are wide: atoms at both ends and all of P's mass are then kept.
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
    """Return the divergence of a discrete pair at each of its losses, accurate to itself."""
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
    """Take the greatest convex minorant of a curve, given by signed masses under P."""
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
