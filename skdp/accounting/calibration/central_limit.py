"""Where a plan's cost lies roughly, to begin a search there: a guess, and no bound."""

from __future__ import annotations

import math
from collections.abc import Callable

from skdp.accounting.accountants.gdp import limiting_square
from skdp.accounting.analysis import analysis_of
from skdp.accounting.calibration.search import Axis, dearest_affordable
from skdp.accounting.calibration.target import Target
from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.floats import float_up
from skdp.choices import Adjacency

_FEW = 10  # releases whose epsilons rather add up


def estimate(event: Event, adjacency: Adjacency) -> tuple[float, float]:
    """Estimate what a plan amounts to: the shift of a Gaussian pair, and an epsilon on top.

    No bound: as losses of variance ``s^2`` in their limit (Dong, Roth and Su, 2022, Theorem 3.4).
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
    return math.sqrt(math.fsum(squares)), epsilon


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


def guess(
    make_event: Callable[[float], Event], target: Target, axis: Axis, initial: float
) -> float:
    """Guess the parameter with which plans meet a target; ``initial`` if nothing is known."""
    mu, epsilon = estimate(make_event(initial), target.adjacency)
    if mu == 0.0 or target.delta == 0.0:
        return initial
    left = max(target.epsilon - epsilon, 0.05 * target.epsilon)
    start = dearest_affordable(
        lambda parameter: estimate(make_event(parameter), target.adjacency)[0],
        gaussian_profile.mu(left, target.delta),
        axis,
        initial,
    )
    return axis.cheapest if start is None else start
