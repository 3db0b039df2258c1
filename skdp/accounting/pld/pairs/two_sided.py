"""The discrete pair above a release whose profile is bounded in either order of two neighbours.

As in `profile`, but with a bound of its own for each order. Between nodes from ``epsilon = 0`` on
each is replaced by its lower convex hull as a function of ``y = e^epsilon``, which is the part of a
pair with losses above 0, seen from that order; losses below 0 are those of the other order with
the sign changed, and the rest of the mass is at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from skdp.accounting.pld.pairs.base import Array
from skdp.accounting.pld.pairs.profile import Atoms, hull, vertex_masses

Falling = Callable[[float, float], float]

_SHIFTED = 1e-12  # mass added at a loss of zero, above all rounding of the total
_SPACING, _BODY, _GROWTH = 0.1, 6.0, 1.12  # nodes' distance in deviations, their reach, ratio
_DEEPEST = 1e-60  # profile below which losses count as infinite


def sample_bound(bound: Falling, deviation: float) -> tuple[Array, Array]:
    """Return epsilons from 0 on that suit losses of a deviation, and a bound there.

    It is told what it is at the epsilon before.
    """
    epsilons: list[float] = []
    values: list[float] = []
    for epsilon in _nodes(deviation):
        epsilons.append(epsilon)
        values.append(bound(epsilon, values[-1] if values else 1.0))
        if values[-1] < _DEEPEST:
            break
    return np.array(epsilons), np.array(values)


def _nodes(deviation: float) -> Iterator[float]:
    """Yield equidistant epsilons, and then a geometric series."""
    epsilon, end = 0.0, _BODY * deviation
    while epsilon < 1e6:
        yield epsilon
        epsilon = epsilon + _SPACING * deviation if epsilon < end else epsilon * _GROWTH


def two_sided_atoms(own: tuple[Array, Array], other: tuple[Array, Array]) -> Atoms:
    """Return the atoms of a pair from bounds on its profile, and on that of the reversed pair.

    Each is an array of epsilons that increase from 0, and one of values, the first of them equal.
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
    """Return the positive losses whose profile is the hull of nodes, and the infinite one."""
    at, heights = hull(epsilons, values, symmetric=False)
    masses, infinite = vertex_masses(at, heights, 0.0)
    return Atoms(at[1:], masses[1:], infinite)
