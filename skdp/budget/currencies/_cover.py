"""The least Gaussian curve above a privacy profile, up to a small probability.

For a profile ``D`` and a probability ``d`` we look for a small ``mu`` with, for ``epsilon >= 0``,

    D(epsilon) <= d + (1 - d) delta_G(epsilon; mu)                                              (1)

and prove it. In ``g = e^epsilon`` both sides are convex. So ``D`` lies below the chords between
upper bounds at some nodes, and ``delta_G`` above its tangents ``P(x > t) - g Q(x > t)``. Chords and
tangents are linear in ``g``: on each piece of a cell, (1) follows from its two ends. Few nodes are
enough where they are put where (1) is tight, and only nodes need the profile itself.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from scipy.special import erfcx

from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies.profiles import Profile

_TOLERANCE = 1.005  # of mu: closer than this, no further node is worth its time
_PIECES = 8  # of a cell, when looking for the next node
_STEP = 0.12  # by which the logarithm of a bound may change on a piece of the proof
_MOST_PIECES = 2000
_LARGEST_EPSILON = 700.0  # beyond which exponentials overflow
_ROUNDING = 1e-12
_TRIES = 60


class _Node(NamedTuple):
    epsilon: float
    bound: float


class _Cell(NamedTuple):
    """Two neighbouring nodes, the mu that their chord asks for, and where."""

    left: _Node
    right: _Node
    mu: float
    where: float


def cover(profile: Profile, failure: float) -> float:
    """Return a mu with which (1) is proved, near the least."""
    end = profile.reach(failure)
    if end > _LARGEST_EPSILON:
        return math.inf
    first = _Node(0.0, profile.delta(0.0))
    if first.bound <= failure or end <= 0.0:
        return 0.0
    least = require_mu(0.0, first.bound, failure)
    cells = [_cell(first, _Node(end, failure), failure, least)]
    for _ in range(profile.affordable):
        cells.sort(key=lambda cell: cell.mu)
        widest = cells[-1]
        if widest.mu <= _TOLERANCE * least:
            break
        cells.pop()
        node = _Node(widest.where, min(profile.delta(widest.where), widest.left.bound))
        least = max(least, require_mu(node.epsilon, node.bound, failure))
        cells += [
            _cell(widest.left, node, failure, least),
            _cell(node, widest.right, failure, least),
        ]
    mu = max(least, max(cell.mu for cell in cells))
    excess = 1e-4
    for _ in range(_TRIES):
        if all(_is_covered(cell, mu, failure) for cell in cells):
            return mu
        mu *= 1.0 + excess
        excess *= 1.5
    return math.inf


def require_mu(epsilon: float, bound: float, failure: float) -> float:
    """Return the mu whose curve passes through a point of a profile."""
    height = (bound - failure) / (1.0 - failure)
    if height <= 0.0:
        return 0.0
    return math.inf if height >= 1.0 else gaussian_profile.mu(epsilon, height)


def _share(epsilon: float, left: float, right: float) -> float:
    """Return where ``e^epsilon`` lies between the ends of a cell, from 0 to 1."""
    width = right - left
    if width <= 0.0:
        return 1.0
    past = math.expm1(left - epsilon) / math.expm1(left - right)
    return min(1.0, max(0.0, math.exp(epsilon - right) * past))


def _chord(cell: _Cell, epsilon: float) -> float:
    """Return an upper bound on the profile inside a cell."""
    share = _share(epsilon, cell.left.epsilon, cell.right.epsilon)
    height = cell.left.bound * (1.0 - share) + cell.right.bound * share
    return height * (1.0 + _ROUNDING)


def _cell(left: _Node, right: _Node, failure: float, enough: float) -> _Cell:
    """Look for the point of a chord that asks for the largest mu, above what is enough anyway."""
    cell = _Cell(left, right, 0.0, 0.5 * (left.epsilon + right.epsilon))
    mu, where = 0.0, cell.where
    for k in range(1, _PIECES):
        epsilon = left.epsilon + (right.epsilon - left.epsilon) * k / _PIECES
        height = (_chord(cell, epsilon) - failure) / (1.0 - failure)
        known = max(mu, enough)
        if height <= 0.0 or (known < math.inf and gaussian_profile.delta(known, epsilon) >= height):
            continue
        mu = require_mu(epsilon, _chord(cell, epsilon), failure)
        where = epsilon
    return cell._replace(mu=mu, where=where)


def _is_covered(cell: _Cell, mu: float, failure: float) -> bool:
    """Prove (1) on a cell."""
    if not math.isfinite(mu):
        return False
    left, right = cell.left.epsilon, cell.right.epsilon
    lowest = max(cell.right.bound, cell.left.bound * 1e-6, 1e-300)
    drop = math.log(max(cell.left.bound / lowest, 1.0)) + (right - left)
    pieces = min(_MOST_PIECES, math.ceil(drop / _STEP) + 2)
    ends = [left + (right - left) * k / pieces for k in range(pieces)] + [right]
    return all(_is_piece_covered(cell, mu, failure, start, stop) for start, stop in pairwise(ends))


def _is_piece_covered(cell: _Cell, mu: float, failure: float, start: float, stop: float) -> bool:
    """Compare the chord with the tangent at the middle of a piece, at both ends."""
    middle = 0.5 * (start + stop)
    value = gaussian_profile.delta_bounds(mu, middle)[0]
    # The tangent at g0 = e^middle is value + (g0 - g) Q with Q = Phi(b), the second term of the
    # profile over g0; g0 Q = phi(a) R(-b) has neither overflow nor underflow of its own.
    a, minus_b = 0.5 * mu - middle / mu, 0.5 * mu + middle / mu
    second = math.exp(-0.5 * a * a) * 0.5 * float(erfcx(minus_b / math.sqrt(2.0)))
    margin = _ROUNDING * (1.0 + a * a)
    for epsilon in (start, stop):
        moved = -second * math.expm1(epsilon - middle)
        tangent = value + moved - abs(moved) * margin
        needed = _chord(cell, epsilon) - failure * (1.0 - _ROUNDING)
        if needed > 0.0 and not (1.0 - failure) * tangent * (1.0 - _ROUNDING) >= needed:
            return False
    return True
