"""Discrete pairs that dominate every release with a profile below a given curve.

A profile is convex as a function of ``y = e^epsilon``. It is therefore below the lower convex hull
of a bound at some nodes, which is the profile of a discrete pair. Beyond the last node its value
counts as an infinite loss (section 2 of ``docs/proofs/private_selection.md``).

A bound for both orders of neighbours gives a symmetric pair. Mass ``p`` at loss ``l > 0`` comes
with mass ``p e^-l`` at ``-l``, and the remaining mass is at 0. With one bound per order, losses
below 0 are those of the other order with the sign changed.

Masses at positive losses are raised, and grow further if their profile is too small at a vertex.
The mass at 0 is rounded up, too.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from skdp.accounting.pld.pairs.base import Array
from skdp.accounting.pld.pairs.discrete import AtomicPair
from skdp.base.parameters import cached_property

_DEEPEST = 1e-100  # profile below which losses count as infinite
_DEEP = 1e-14  # profile below which the nodes may be coarse
_TOLERANCE = 1e-4  # relative height of chords above the bound
_DEEP_TOLERANCE = 0.3  # the same where the profile is below the deep one
_LARGEST_EPSILON = 1e9  # losses above it count as infinite
_STAGNANT = 0.999  # ratio of bounds at an epsilon and its double from which on there is a floor
_FIRST_NODES = 64  # equidistant nodes to begin with
_HALVINGS = 60  # nodes besides, at halves of halves of the last one
_ROUGH = 16  # nodes of either kind of the first, rough hull
_LARGEST_DEPTH = 14  # how often the distance of two nodes is halved
_LARGEST_NODES = 6000  # nodes in all
_RAISED = 1e-9  # share by which masses at positive losses are raised
_LOWERED = 2.0**-50  # share of mirrored masses, so that Q has no more mass than P
_SHIFTED = 1e-12  # mass added at a loss of zero, above all rounding of the total

Bound = Callable[[float], float]


class Atoms(NamedTuple):
    """Increasing losses, probabilities under P, and the infinite one."""

    losses: Array
    masses: Array
    infinite: float


class ListedPair(AtomicPair):
    """A pair with a list of all its losses."""

    lattice = 0.0
    origin = 0.0

    @property
    @abstractmethod
    def _atoms(self) -> Atoms:
        """All of them."""

    def atoms(self, tail: float) -> tuple[Array, Array, float]:
        """Return losses, probabilities under P, and a bound on the mass above.

        ``tail`` may be outside on either side.
        """
        losses, masses, _ = self._atoms
        first = int(np.searchsorted(np.cumsum(masses), 0.5 * tail, side="right"))
        first = min(first, len(masses) - 1)
        last = int(np.searchsorted(np.cumsum(masses[::-1]), 0.5 * tail, side="right"))
        last = max(len(masses) - last, first + 1)
        kept = masses[first:last].copy()
        kept[0] += float(np.sum(masses[:first]))
        return losses[first:last], kept, float(np.sum(masses[last:]))

    def _losses(self, numbers: Array, aligned: bool) -> Array:
        return numbers


class ProfilePair(ListedPair):
    """The discrete pair above all profiles below a bound.

    The bound is valid at any ``epsilon >= 0`` in both orders, and zero at ``largest_loss``.
    """

    def __init__(self, bound: Bound, largest_loss: float = math.inf) -> None:
        self._bound = bound
        self.largest_loss = largest_loss
        self._end, last = last_node(bound, largest_loss)
        self.failure = min(1.0, last * (1.0 + 2.0 * _RAISED))  # no less than the atoms say

    @cached_property
    def variation(self) -> float:
        """A bound on the total variation distance."""
        return min(1.0, self._bound(0.0), _profile_of(self._rough, 0.0))

    @cached_property
    def _rough(self) -> Atoms:
        """A hull of few nodes, to see whether the bound is convex."""
        count = _ROUGH
        shares = np.concatenate([np.linspace(0.0, 1.0, count), 0.5 ** np.arange(count)])
        nodes = self._end * np.unique(shares)
        return hull_atoms(nodes, np.array([min(1.0, self._bound(node)) for node in nodes]))

    @cached_property
    def nodes(self) -> tuple[Array, Array]:
        """Epsilons from 0 on, and the bound there."""
        return choose_nodes(self._bound, self._end)

    @cached_property
    def _atoms(self) -> Atoms:
        return hull_atoms(*self.nodes)

    def profile(self, epsilon: float) -> tuple[float, float]:
        """Return zero and the bound's hull: no release is known to attain it."""
        value = min(1.0, self._bound(epsilon))
        if _profile_of(self._rough, epsilon) < value:
            value = min(value, _profile_of(self._atoms, epsilon))
        return 0.0, value


def _profile_of(atoms: Atoms, epsilon: float) -> float:
    losses, masses, infinite = atoms
    above = losses > epsilon
    return infinite + float(np.dot(masses[above], -np.expm1(epsilon - losses[above])))


def last_node(bound: Bound, largest_loss: float = math.inf) -> tuple[float, float]:
    """Return where a bound is negligible or stops falling, and its value."""
    if math.isfinite(largest_loss):
        return largest_loss, 0.0
    epsilon = 1.0
    value = min(1.0, bound(epsilon))
    while value > _DEEPEST and epsilon < _LARGEST_EPSILON:
        following = min(value, bound(2.0 * epsilon))
        # A floor far below one, seen twice; near one, the losses may only be large.
        if value < 0.5 and following > _STAGNANT * value:
            if min(following, bound(16.0 * epsilon)) > _STAGNANT * value:
                break
        epsilon, value = 2.0 * epsilon, following
    return epsilon, value


def choose_nodes(bound: Bound, end: float) -> tuple[Array, Array]:
    """Return epsilons from 0 to ``end`` with close chords, and the bound."""
    start = set(np.linspace(0.0, end, _FIRST_NODES + 1).tolist())
    start |= {end * 0.5**k for k in range(_HALVINGS) if end * 0.5**k > 1e-12}
    known = {epsilon: min(1.0, bound(epsilon)) for epsilon in sorted(start)}
    ordered = sorted(known)
    pending = [(a, b, 0) for a, b in itertools.pairwise(ordered)]
    while pending and len(known) < _LARGEST_NODES:
        following = []
        for a, b, depth in pending:
            middle = 0.5 * (a + b)
            known[middle] = value = min(1.0, bound(middle))
            chord = known[a] + (known[b] - known[a]) * _share(a, middle, b)
            tolerance = _TOLERANCE if value > _DEEP else _DEEP_TOLERANCE
            if abs(chord - value) > tolerance * value and depth < _LARGEST_DEPTH:
                following += [(a, middle, depth + 1), (middle, b, depth + 1)]
        pending = following
    epsilons = sorted(known)
    return np.array(epsilons), np.array([known[epsilon] for epsilon in epsilons])


def _share(low: float, middle: float, high: float) -> float:
    """Return the position of ``e^middle`` between ends, as a share."""
    return math.exp(middle - high) * math.expm1(low - middle) / math.expm1(low - high)


def _share_of_all(middle: float, high: float) -> float:
    """Return the position of ``e^middle`` between -1 and ``e^high``, as a share."""
    return math.exp(middle - high) * (1.0 + math.exp(-middle)) / (1.0 + math.exp(-high))


def hull_atoms(epsilons: Array, values: Array) -> Atoms:
    """Return the atoms of the pair above all profiles below given values.

    They are bounds in both orders at epsilons that increase from 0 or more.
    """
    losses, curve = hull(epsilons, values)
    if not len(losses):
        return Atoms(np.zeros(1), np.zeros(1), 1.0)
    masses, infinite = vertex_masses(losses, curve, (1.0 - curve[0]) / (1.0 + math.exp(-losses[0])))
    positive = losses > 0.0
    return mirrored(losses[positive], masses[positive], infinite)


def vertex_masses(at: Array, heights: Array, first: float) -> tuple[Array, float]:
    """Return masses under P of vertices, rounded up, and the infinite one.

    ``first`` is the slope before the first vertex, times y there.
    """
    gaps, drops = np.diff(at), -np.diff(heights)
    before = np.append(first, drops / -np.expm1(-gaps))
    with np.errstate(over="ignore"):
        after = np.append(drops / np.expm1(gaps), 0.0)
    masses = np.maximum(before - after, 0.0) * (1.0 + _RAISED)
    infinite = min(1.0, float(heights[-1]) * (1.0 + _RAISED))
    return masses * _lacking_factor(at, masses, heights, infinite), infinite


def mirrored(losses: Array, masses: Array, infinite: float) -> Atoms:
    """Complete positive losses of a symmetric pair."""
    down = masses * np.exp(-losses) * (1.0 - _LOWERED)
    middle = max(0.0, 1.0 - infinite - float(np.sum(masses)) - float(np.sum(down)))
    return Atoms(
        np.concatenate([-losses[::-1], [0.0], losses]),
        np.concatenate([down[::-1], [middle + _SHIFTED], masses]),
        infinite,
    )


def hull(epsilons: Array, values: Array, symmetric: bool = True) -> tuple[Array, Array]:
    """Return the vertices of the largest profile below given values.

    It is symmetric, with vertices only where values are below 1, or from the first epsilon on.
    """
    at: list[float] = []
    heights: list[float] = []
    for epsilon, value in zip(epsilons.tolist(), values.tolist(), strict=True):
        if value >= (heights[-1] if heights else 1.0 if symmetric else math.inf):
            continue
        while len(at) > (0 if symmetric else 1):
            if len(at) > 1:
                base, place = heights[-2], _share(at[-2], at[-1], epsilon)
            else:
                base, place = 1.0, _share_of_all(at[-1], epsilon)
            if heights[-1] < base + (value - base) * place:
                break
            at.pop()
            heights.pop()
        at.append(epsilon)
        heights.append(value)
    return np.array(at), np.array(heights)


def _lacking_factor(losses: Array, masses: Array, curve: Array, infinite: float) -> float:
    """Return the factor by which masses must grow to reach their profile."""
    value, under_q, factor = infinite, 0.0, 1.0
    for k in range(len(losses) - 2, -1, -1):
        gap = float(losses[k + 1] - losses[k])
        under_q += float(masses[k + 1])  # of this loss and all above, in units of 1 / y there
        value += under_q * -math.expm1(-gap)
        under_q *= math.exp(-gap)
        wanted = float(curve[k]) * (1.0 + 0.5 * _RAISED)
        if wanted > value > infinite:
            factor = max(factor, (wanted - infinite) / (value - infinite))
    return factor


Falling = Callable[[float, float], float]

_SPACING, _BODY, _GROWTH = 0.1, 6.0, 1.12  # nodes' distance in deviations, their reach, ratio
_DEEPEST_SIDE = 1e-60  # profile below which losses count as infinite


def sample_bound(bound: Falling, deviation: float) -> tuple[Array, Array]:
    """Return epsilons that suit losses of a deviation, and a bound there.

    The bound receives its value at the epsilon before.
    """
    epsilons: list[float] = []
    values: list[float] = []
    for epsilon in _nodes(deviation):
        epsilons.append(epsilon)
        values.append(bound(epsilon, values[-1] if values else 1.0))
        if values[-1] < _DEEPEST_SIDE:
            break
    return np.array(epsilons), np.array(values)


def _nodes(deviation: float) -> Iterator[float]:
    """Yield equidistant epsilons, and then a geometric series."""
    epsilon, end = 0.0, _BODY * deviation
    while epsilon < 1e6:
        yield epsilon
        epsilon = epsilon + _SPACING * deviation if epsilon < end else epsilon * _GROWTH


def two_sided_atoms(own: tuple[Array, Array], other: tuple[Array, Array]) -> Atoms:
    """Return the atoms of a pair from bounds on its two profiles.

    Each has epsilons that increase from 0, and values; the first values are equal.
    """
    up, down = _half(*own), _half(*other)
    above = float(np.dot(up.masses, -np.expm1(-up.losses))) + up.infinite
    below = float(np.dot(down.masses, -np.expm1(-down.losses))) + down.infinite
    # P may have no less mass than Q, which is so if the halves agree at epsilon = 0.
    masses = up.masses * max(1.0, below / above) * (1.0 + _SHIFTED)
    infinite = min(1.0, up.infinite * max(1.0, below / above) * (1.0 + _SHIFTED))
    mirrored = down.masses * np.exp(-down.losses)
    middle = max(0.0, 1.0 - infinite - float(np.sum(masses)) - float(np.sum(mirrored)))
    return Atoms(
        np.concatenate([-down.losses[::-1], [0.0], up.losses]),
        np.concatenate([mirrored[::-1], [middle + _SHIFTED], masses]),
        infinite,
    )


def _half(epsilons: Array, values: Array) -> Atoms:
    """Return the positive losses of a hull of nodes, and the infinite one."""
    at, heights = hull(epsilons, values, symmetric=False)
    masses, infinite = vertex_masses(at, heights, 0.0)
    return Atoms(at[1:], masses[1:], infinite)
