"""Where a plan's cost lies roughly, to begin a search there: a guess, and no bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from skdp.accounting.accountants.gdp import limiting_square
from skdp.accounting.analysis import analysis_of
from skdp.accounting.calibration.search import Axis, dearest_affordable
from skdp.accounting.calibration.target import Target
from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.floats import float_up
from skdp.choices import Adjacency

_FEW = 10  # releases whose epsilons rather add up
_NOTABLE = 1.05  # times a delta
_STEP = 1e-3  # of logarithms, in difference quotients


class Estimate(NamedTuple):
    """What a plan amounts to: a Gaussian pair of shift ``mu``, and ``epsilon`` on top."""

    mu: float
    epsilon: float


def estimate(event: Event, adjacency: Adjacency) -> Estimate:
    """Estimate what a plan amounts to: no bound; leaves without a simple variance count as nothing.

    Many losses of variance ``s^2`` approach a Gaussian pair with ``mu^2`` the sum of the variances
    (Dong, Roth and Su, 2022, Theorem 3.4; Bu, Dong, Long and Su, 2020).
    """
    squares = [0.0]
    epsilon = 0.0
    for leaf, count in leaf_counts(event).items():
        stated = analysis_of(leaf, adjacency).stated()
        alone = 0.0 if stated is None else float_up(stated.epsilon)
        if stated is not None and count <= _FEW:
            epsilon += count * alone
        elif stated is not None:
            # Twice the mean loss, as that of a Gaussian: of randomised response at most.
            squares.append(count * min(alone**2, 2.0 * alone))
        else:
            squares.append(count * _variance(leaf, adjacency))
    return Estimate(math.sqrt(math.fsum(squares)), epsilon)


def _variance(leaf: Event, adjacency: Adjacency) -> float:
    """Return roughly the variance of one Gaussian release's privacy loss."""
    card = analysis_of(leaf, adjacency)
    mu, pair, moments = card.mu(), card.mixture(), card.log_moments()
    if mu is not None:
        return mu * mu
    if pair is not None:
        # The limit is for small rates. At most, every sample holds all rows.
        return min(limiting_square(pair), pair.mu_of_all_rows**2)
    return moments.of(2.0) if moments is not None and moments.quick else 0.0


def _delta(event: Event, adjacency: Adjacency, epsilon: float) -> float:
    """Estimate delta: the central limit's, and that of a single loss so large that it decides.

    The latter is the union bound over the steps' own deltas (amplified as by Balle, Barthe and
    Gaboardi, 2018, Theorem 9), and is what counts where few steps hold a record at all.
    """
    single = [0.0]
    for leaf, count in leaf_counts(event).items():
        pair = analysis_of(leaf, adjacency).mixture()
        if pair is not None and 0.0 < pair.rate < 1.0:
            threshold = math.log1p(math.expm1(min(epsilon, 600.0)) / pair.rate)
            single.append(count * pair.rate * gaussian_profile.delta(pair.mu, threshold))
    return gaussian_profile.delta(estimate(event, adjacency).mu, epsilon) + math.fsum(single)


class Guess(NamedTuple):
    """Where to begin a search, and the elasticity of the cost there."""

    start: float
    slope: float


def guess(
    make_event: Callable[[float], Event],
    target: Target,
    axis: Axis,
    initial: float,
) -> Guess:
    """Guess the parameter with which plans meet a target; ``initial`` if nothing is known."""
    fixed = estimate(make_event(initial), target.adjacency)
    if fixed.mu == 0.0 or target.delta == 0.0:
        return Guess(initial, 1.0)
    left = max(target.epsilon - fixed.epsilon, 0.05 * target.epsilon)
    affordable = gaussian_profile.mu(left, target.delta)

    def shift(parameter: float) -> float:
        return estimate(make_event(parameter), target.adjacency).mu

    def delta(parameter: float, epsilon: float) -> float:
        return _delta(make_event(parameter), target.adjacency, epsilon)

    start = dearest_affordable(shift, affordable, axis, initial)
    if start is not None and delta(start, left) > _NOTABLE * target.delta:
        start = dearest_affordable(lambda p: delta(p, left), target.delta, axis, start, slope=5.0)
    if start is None:
        return Guess(axis.cheapest, 1.0)
    return Guess(start, _elasticity(delta, axis, start, left) * left / max(left, target.epsilon))


def _elasticity(
    delta: Callable[[float, float], float], axis: Axis, start: float, epsilon: float
) -> float:
    """Return how much epsilon, relatively, makes up for a little more of the parameter."""
    step = max(_STEP, 1.5 / start) if axis.integer else _STEP
    x = axis.coordinate(start)
    beside = axis.parameter(x + step if start != axis.dearest else x - step)
    if beside == start:
        return 1.0
    here = delta(start, epsilon)
    rise = math.log(delta(beside, epsilon) / here) / (axis.coordinate(beside) - x)
    fall = math.log(here / delta(start, epsilon * math.exp(_STEP))) / _STEP
    # Where delta hardly depends on epsilon, the elasticity is next to infinite.
    return rise / max(fall, 1e-6) if rise > 0.0 and fall > 0.0 else 1.0
