"""Accountants that use only one (epsilon, delta) of every release."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.analysis import GaussianMixture, analysis_of
from skdp.accounting.events import Event
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import (
    float_up,
    log_mixture,
    narrow_bracket,
    smallest_delta,
)
from skdp.base.parameters import Adjacency

_ROUND_UP = 1.0 + 2.0**-48
_ROUND_DOWN = 1.0 - 2.0**-48


class Step(NamedTuple):
    """Number of releases with the same epsilon up to a share of delta."""

    epsilon: float
    times: int


def step_epsilon(leaf: Event, adjacency: Adjacency, delta: float) -> float:
    """Return an epsilon of a Gaussian release at a given delta."""
    # A bare Gaussian has its exact profile (Balle and Wang, 2018, Theorem 8). On a sample an (eps,
    # delta)-DP release is (log(1 + q (e^eps - 1)), q delta)-DP for Poisson sampling under
    # add-remove and for samples of fixed size under replace-one (Balle, Barthe and Gaboardi, 2018,
    # Theorems 8 and 9). For Poisson sampling under replace-one their advanced joint convexity
    # bounds the divergence at ``log(1 + q (e^eps - 1))`` by ``q`` times the mean of those at
    # ``eps`` of the sampled outcome from the one without the record and from the one with the other
    # record, with weights ``1 - b`` and ``b = q + (1 - q) e^-eps``.
    card = analysis_of(leaf, adjacency)
    mu, pair = card.mu(), card.mixture()
    if mu is not None:
        return gaussian_profile.epsilon(mu, delta)
    assert pair is not None
    inner = delta / pair.rate * _ROUND_DOWN
    if inner >= 1.0:
        return 0.0
    if pair.kind == "poisson-replace-one":
        unsampled = _either_neighbour(pair, inner)
    else:
        unsampled = gaussian_profile.epsilon(pair.mu, inner)
    return float(log_mixture(pair.rate, unsampled)) * _ROUND_UP


def _either_neighbour(pair: GaussianMixture, delta: float) -> float:
    """Return an epsilon where the mean divergence is at most delta."""
    low = gaussian_profile.epsilon(pair.mu, delta)
    high = gaussian_profile.epsilon(2.0 * pair.mu, delta)
    if not math.isfinite(high):
        return high

    def excess(epsilon: float) -> float:
        weight = pair.rate + (1.0 - pair.rate) * math.exp(-epsilon)
        without = gaussian_profile.delta(pair.mu, epsilon)
        other = gaussian_profile.delta(2.0 * pair.mu, epsilon)
        return ((1.0 - weight) * without + weight * other) * _ROUND_UP - delta

    return narrow_bracket(excess, low, high, 1e-11)[1]


@lru_cache(maxsize=1024)
def _stated_step(leaf: Event, adjacency: Adjacency) -> tuple[float, float] | None:
    """Return a stated epsilon and delta, rounded up, or None."""
    stated = analysis_of(leaf, adjacency).stated()
    return None if stated is None else (float_up(stated.epsilon), float_up(stated.delta))


class StepwiseAccountant(Accountant):
    """Base class of accountants that compose (epsilon, delta) guarantees of releases.

    A release with a stated guarantee enters with it. Gaussian releases have many guarantees, and
    all enter at the same delta.
    """

    def _supports_leaf(self, leaf: Event) -> bool:
        card = analysis_of(leaf, self._adjacency)
        gaussian = card.mu() is not None or card.mixture() is not None
        return gaussian or card.stated() is not None

    def _stated(self) -> list[tuple[Event, tuple[float, float] | None, int]]:
        """Return releases, stated guarantees and counts."""
        return [(leaf, _stated_step(leaf, self._adjacency), n) for leaf, n in self._counts.items()]

    def _choosing(self) -> int:
        """Return the number of releases with a choice of guarantees."""
        return sum(count for _, stated, count in self._stated() if stated is None)

    def _stated_delta(self) -> float:
        """Sum the stated deltas."""
        return math.fsum(n * known[1] for _, known, n in self._stated() if known is not None)

    def _steps(self, step_delta: float) -> list[Step]:
        """Return all epsilons, given the delta of releases with a choice."""
        steps = []
        for leaf, stated, count in self._stated():
            epsilon = self._step_epsilon(leaf, step_delta) if stated is None else stated[0]
            if epsilon > 0.0:
                steps.append(Step(epsilon, count))
        return steps

    def _step_epsilon(self, leaf: Event, delta: float) -> float:
        return step_epsilon(leaf, self._adjacency, delta)


class SharedDelta(NamedTuple):
    """Parts of a delta for each step and for composition."""

    step: float
    composition: float


def share(delta: float, choosing: int, split: float) -> SharedDelta:
    """Share a delta, rounded down; ``split`` is for composition."""
    if choosing == 0:
        return SharedDelta(0.0, delta * _ROUND_DOWN)
    return SharedDelta((1.0 - split) * delta / choosing * _ROUND_DOWN, split * delta * _ROUND_DOWN)


class BasicCompositionAccountant(StepwiseAccountant):
    """Accountant by basic composition: adds up epsilons and deltas.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Adjacency relation between neighbouring data sets.

    Notes
    -----
    Releases that are (eps_i, delta_i)-DP compose to (sum eps_i, sum delta_i)-DP. Later releases may
    be chosen after looking at earlier results (Dwork, Kenthapadi, McSherry, Mironov and Naor,
    2006). A Gaussian release satisfies an entire curve of guarantees. All Gaussian releases enter
    at the same delta: an equal share of the total that other releases leave. Each uses the exact
    profile of the Gaussian mechanism and the exact effect of sampling.

    Examples
    --------
    >>> from skdp.accounting import ApproxDPEvent, BasicCompositionAccountant
    >>> accountant = BasicCompositionAccountant().compose(ApproxDPEvent(0.5, 1e-6), count=3)
    >>> float(accountant.epsilon(1e-5))
    1.5
    """

    name = "basic"

    def _epsilon(self, delta: float) -> float:
        choosing = self._choosing()
        left = delta - self._stated_delta()
        if left < 0.0 or (left == 0.0 and choosing):
            return math.inf
        step_delta = share(left, choosing, 0.0).step
        return math.fsum(step.times * step.epsilon for step in self._steps(step_delta))

    def _delta(self, epsilon: float) -> float:
        stated = self._stated_delta()
        if not self._choosing():
            return stated if self._epsilon(1.0) <= epsilon else 1.0
        return stated if math.isinf(epsilon) else smallest_delta(self._epsilon, epsilon)
