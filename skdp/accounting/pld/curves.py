"""An upper bound on the entire profile of a composition.

Compositions are put on grids under a few tilts (exponential changes of measure), each good for some
range of delta. Every grid bounds the profile at all of its losses. The lower convex hull of these
points is also a bound, as profiles are convex in ``e^epsilon``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import UNIT_ROUNDOFF
from skdp.accounting.pld.composed_bounds import Direction, plan_of
from skdp.accounting.pld.grid_bounds import Target, compose_both, extremes
from skdp.accounting.pld.grid_composition import TiltedLoss, largest_contribution
from skdp.accounting.pld.inversion_bounds import Pairs, with_gaussian
from skdp.accounting.pld.pairs.base import Array
from skdp.accounting.pld.pairs.cells import profile_at_nodes
from skdp.accounting.pld.pairs.profile import ProfilePair, choose_nodes, hull, last_node
from skdp.base.parameters import Adjacency

_LEVELS = (0.3, 1e-2, 1e-4, 1e-7, 1e-11, 1e-16, 1e-22, 1e-30, 1e-40)  # deltas that suit the tilts
_EXCESS = 1e-4  # of delta, that a grid may add, about
_NODES = 600  # of each grid
_ROUNDING = 1e-9


class ProfileCurve:
    """Bound on a profile in both orders, linear in ``e^epsilon`` between vertices.

    Their epsilons ascend from 0 or more.
    """

    def __init__(self, epsilons: Array, values: Array) -> None:
        self.epsilons, self.values = hull(epsilons, np.minimum(values, 1.0))

    def __call__(self, epsilon: Array) -> Array:
        """Return bounds at any real epsilons."""
        if not len(self.epsilons):
            return np.ones(len(epsilon))
        nodes, values = self.epsilons, self.values
        size = np.abs(epsilon)
        upper = np.searchsorted(nodes, size, side="left")
        low = np.maximum(upper - 1, 0)
        high = np.minimum(upper, len(nodes) - 1)
        gap = nodes[low] - nodes[high]
        inside = (upper > 0) & (upper < len(nodes)) & (gap < 0.0)
        gap = np.where(inside, gap, -1.0)
        below = np.expm1(np.minimum(size - nodes[high], 0.0)) / np.expm1(gap)
        above = np.exp(np.minimum(size - nodes[high], 0.0)) * np.expm1(
            np.minimum(nodes[low] - size, 0.0)
        )
        result = np.where(
            inside, values[low] * below + values[high] * above / np.expm1(gap), values[-1]
        )
        # Before the first vertex, the line through it and (-1, 1).
        share = np.exp(np.minimum(size - nodes[0], 0.0)) * (1.0 + np.exp(-size))
        share = share / (1.0 + math.exp(-nodes[0]))
        result = np.where(upper == 0, 1.0 - (1.0 - values[0]) * share, result)
        mirrored = -np.expm1(-size) + np.exp(-size) * result
        return np.minimum(np.where(epsilon < 0.0, mirrored, result) * (1.0 + 1e-13), 1.0)


@lru_cache(maxsize=64)
def profile_curve(event: Event, adjacency: Adjacency) -> ProfileCurve:
    """Bound the entire profile of a supported event."""
    plan = plan_of(leaf_counts(event), adjacency)
    if plan is None:
        return ProfileCurve(np.zeros(0), np.zeros(0))
    curves = [_direction_curve(direction) for direction in plan.directions]
    if len(curves) == 1:
        return curves[0]
    epsilons = np.unique(np.concatenate([curve.epsilons for curve in curves]))
    return ProfileCurve(epsilons, np.max([curve(epsilons) for curve in curves], axis=0))


def _direction_curve(direction: Direction) -> ProfileCurve:
    pairs, mu = direction
    if not pairs:
        end, _ = last_node(lambda epsilon: gaussian_profile.delta(mu, epsilon))
        return ProfileCurve(*choose_nodes(lambda e: gaussian_profile.delta(mu, e), end))
    everything = with_gaussian(pairs, mu)
    failure, largest, variation = extremes(everything)
    pair, count = everything[0]
    if len(everything) == count == 1 and isinstance(pair, ProfilePair):
        return ProfileCurve(*pair.nodes)
    if len(everything) == count == 1 and pair.profile(0.0) is not None:

        def alone(epsilon: float) -> float:
            bounds = pair.profile(epsilon)
            return 1.0 if bounds is None else bounds[1]

        end = largest if math.isfinite(largest) else last_node(alone)[0]
        return ProfileCurve(*choose_nodes(alone, end))
    points = [(np.zeros(1), np.array([variation]))]
    points += [_level(everything, level) for level in _LEVELS if level > failure]
    if math.isfinite(largest):
        points.append((np.array([largest]), np.array([failure])))
    epsilons = np.concatenate([part[0] for part in points])
    values = np.concatenate([part[1] for part in points])
    order = np.argsort(epsilons, kind="stable")
    return ProfileCurve(epsilons[order], values[order])


def _level(pairs: Pairs, delta: float) -> tuple[Array, Array]:
    """Compose under a tilt; return losses and bounds there."""
    target = Target.at_delta(pairs, delta)
    step, _ = target.choose_step(target.first_step(_EXCESS))
    bounds = compose_both(target, step, below=False)
    losses, values = bounds_at_losses(bounds.upper)
    # Rounded as in `Bounds`, for losses counted from another origin.
    slip = 1e-14 * (np.abs(losses) + 2.0 * abs(bounds.origin)) + bounds.error
    epsilons, values = losses + bounds.origin + slip, values * math.exp(bounds.error)
    kept = np.flatnonzero((epsilons >= 0.0) & (values < 1.0))
    if len(kept) > _NODES:
        kept = kept[np.unique(np.linspace(0, len(kept) - 1, _NODES).astype(np.int64))]
    return epsilons[kept], values[kept]


def bounds_at_losses(loss: TiltedLoss) -> tuple[Array, Array]:
    """Return composed losses, and bounds on the profile there."""
    first, size = int(loss.indices[0]), int(loss.indices[-1] - loss.indices[0]) + 1
    weights = np.zeros(size)
    weights[loss.indices - first] = loss.weights
    losses: Array = loss.step * (first + np.arange(size, dtype=np.float64))
    exponents = loss.log_moment - loss.tilt * losses
    with np.errstate(divide="ignore"):
        masses = np.exp(np.minimum(exponents + np.log(weights), 0.0))
    doubt = 8.0 * UNIT_ROUNDOFF * (abs(loss.log_moment) + loss.tilt * np.abs(losses))
    values = profile_at_nodes(loss.step, masses * np.exp(doubt))
    missing = loss.missing * largest_contribution(loss.tilt)
    if missing > 0.0:
        values = values + np.exp(np.minimum(exponents + doubt + math.log(missing), 0.0))
    bounds: Array = loss.infinite + values * (1.0 + _ROUNDING) + 1e-300
    return losses, bounds
