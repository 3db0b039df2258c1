"""Epochs in which every record is in one random lot, with Gaussian noise on the sum of each lot.

Proofs: Theorems 1 and 2 of ``docs/proofs/random_allocation.md``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from skdp.accounting.analysis import (
    Analysis,
    DominatingPairs,
    LogMoments,
    card_of,
    costs_no_more,
    with_noise,
)
from skdp.accounting.events import Event, GaussianEvent, RandomAllocationEvent
from skdp.accounting.numerics.floats import Array
from skdp.accounting.pld.pairs.allocation import AllocatedEpoch
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.gaussian import gaussian_pair
from skdp.accounting.pld.pairs.two_sided import sample_bound, two_sided_atoms
from skdp.accounting.releases.samples import SampledPair

_ROUNDING = 1e-11  # of log moments, per order, generously
_LARGEST_SHIFT = 4.0  # beyond which an epoch is taken for one whose lots are known
_LEAST_SHIFT = 1e-4  # shifts below count as this one, which can only raise a bound


@card_of(RandomAllocationEvent)
class Allocation(Analysis):
    """An epoch with Gaussian noise; nothing is proved about other releases on the lots."""

    event: RandomAllocationEvent

    def _noise_multiplier(self) -> float | None:
        inner = self.event.event
        return inner.noise_multiplier if type(inner) is GaussianEvent else None

    def mu(self) -> float | None:
        """Return the Gaussian-DP parameter if the only lot holds all records."""
        square = self.mu_squared()
        return None if square is None else math.sqrt(square)

    def mu_squared(self) -> Fraction | None:
        """Return the exact square of mu if there is one lot."""
        multiplier = self._noise_multiplier()
        if multiplier is None or self.event.lots > 1:
            return None
        contributions = 1 if self.adjacency == "add-remove" else 2
        return contributions**2 / Fraction(multiplier) ** 2

    def pairs(self) -> DominatingPairs | None:
        """Return the pairs of Theorems 1 and 2."""
        multiplier = self._noise_multiplier()
        if multiplier is None:
            return None
        mu, lots = max(1.0 / multiplier, _LEAST_SHIFT), self.event.lots
        if self.adjacency == "replace-one":
            return DominatingPairs(lambda _: _pair(mu, lots, "replace"))
        return DominatingPairs(lambda direction: _pair(mu, lots, direction), directed=True)

    def log_moments(self) -> LogMoments | None:
        """Return those of the pairs, which are lists of losses."""
        pairs = self.pairs()
        if pairs is None or self.mu() is not None:
            return super().log_moments()
        found = [pairs.of(direction) for direction in ("remove", "add")[: 1 + pairs.directed]]
        losses = [pair.transforms(0.0)[0] for pair in found if pair is not None]

        def moment(order: float) -> float:
            largest = max(loss.cumulants(order - 1.0)[0] for loss in losses)
            return max(largest, 0.0) + _ROUNDING * order

        kept = min(math.log1p(-loss.failure) for loss in losses)
        return LogMoments(moment, log_kept=kept, quick=False)

    def of_two(self) -> Event | None:
        """Return the epoch itself: its noise is over single records."""
        return None if self._noise_multiplier() is None else self.event

    def covers(self, event: Any) -> bool:
        """Compare the noise, and the number of lots: more of them reveal less (section 1)."""
        return event.lots >= self.event.lots and costs_no_more(event.event, self.event.event)

    def with_noise(self, factor: float) -> Event:
        """Return the epoch with so many times the noise on each lot."""
        return replace(self.event, event=with_noise(self.event.event, factor))


@lru_cache(maxsize=64)
def _bounds(mu: float, lots: int) -> dict[str, tuple[Array, Array]]:
    """Return bounds on the profiles of removing and of adding a record, equal at epsilon = 0."""
    found = {}
    for direction in ("remove", "add"):
        epoch = AllocatedEpoch(mu, lots, direction)
        found[direction] = sample_bound(epoch.profile, epoch.deviation)
    least = min(values[0] for _, values in found.values())
    return {
        direction: (epsilons, np.minimum(values, least))
        for direction, (epsilons, values) in found.items()
    }


@lru_cache(maxsize=64)
def _pair(mu: float, lots: int, direction: str) -> Pair:
    """Return the pair that dominates one epoch."""
    if mu > _LARGEST_SHIFT:
        return gaussian_pair("gaussian", 1.0, 2.0 * mu if direction == "replace" else mu)
    if direction == "replace":
        epoch = AllocatedEpoch(mu, lots, direction)
        bound = sample_bound(epoch.profile, epoch.deviation)
        return SampledPair(two_sided_atoms(bound, bound))
    bounds = _bounds(mu, lots)
    other = "add" if direction == "remove" else "remove"
    return SampledPair(two_sided_atoms(bounds[direction], bounds[other]))
