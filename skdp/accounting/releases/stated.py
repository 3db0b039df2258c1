"""Releases with only a guarantee: (epsilon, delta), a profile, or two distributions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import partial
from typing import Any

from skdp.accounting.analysis import (
    Analysis,
    Divergence,
    DominatingPairs,
    Guarantee,
    LogMoments,
    Reading,
    card_of,
)
from skdp.accounting.events import (
    ApproxDPEvent,
    BoundedRangeEvent,
    Event,
    ProfileEvent,
    PureDPEvent,
    RenyiEvent,
)
from skdp.accounting.numerics.arithmetic import decimal_up, log_rest, read_decimal
from skdp.accounting.numerics.renyi_divergences import log_moment_randomised_response, pure_rho
from skdp.accounting.pld.pairs.discrete import RandomisedResponsePair
from skdp.accounting.pld.pairs.profile import ProfilePair
from skdp.base.parameters import cached_property

# Guarantees below these count as these: the squares of smaller ones would vanish.
_LEAST_EPSILON = 1e-100
_LEAST_FAILURE = 1e-290


@card_of(PureDPEvent, ApproxDPEvent)
class Stated(Analysis):
    """Dominated by randomised response that may fail, one of these releases.

    The bound is optimal (Kairouz, Oh and Viswanath, 2015, Theorem 3.2).
    """

    event: PureDPEvent | ApproxDPEvent
    only_stated = True

    @property
    def _delta(self) -> float:
        return self.event.delta if isinstance(self.event, ApproxDPEvent) else 0.0

    def pairs(self) -> DominatingPairs:
        """Return randomised response in both directions."""
        epsilon, delta = self.event.epsilon, self._delta
        pair = None
        if max(epsilon, delta) > 0.0:
            pair = RandomisedResponsePair(
                max(epsilon, _LEAST_EPSILON) if epsilon > 0.0 else 0.0,
                max(delta, _LEAST_FAILURE) if delta > 0.0 else 0.0,
            )
        near = 0.0 < epsilon < _LEAST_EPSILON or 0.0 < delta < _LEAST_FAILURE
        return DominatingPairs(lambda _: pair, attained=not near)

    def log_moments(self) -> LogMoments:
        """Return the divergences of randomised response, if it does not fail."""
        moment = partial(log_moment_randomised_response, self.event.epsilon)
        return LogMoments(moment, log_kept=log_rest(self._delta), closed_form=True)

    def stated(self, read: Reading = Fraction) -> Guarantee:
        """Return the stated guarantee."""
        return Guarantee(read(self.event.epsilon), read(self._delta))

    def covers(self, event: Any) -> bool:
        """Compare the guarantees."""
        other = Stated(event, self.adjacency)
        return bool(event.epsilon <= self.event.epsilon and other._delta <= self._delta)

    def of_two(self) -> Event:
        """Return the guarantee for groups of two, rounded up in decimal."""
        epsilon = decimal_up(2 * read_decimal(self.event.epsilon))
        if self._delta == 0.0:
            return PureDPEvent(epsilon)
        try:
            factor = (1.0 + math.exp(self.event.epsilon)) * (1.0 + 1e-12)
        except OverflowError:
            factor = math.inf
        if factor * self._delta >= 1.0:
            return ApproxDPEvent(epsilon, 1.0)
        failure = decimal_up(read_decimal(self._delta) * Fraction(factor))
        return ApproxDPEvent(epsilon, min(1.0, failure))


class KnownProfile(Analysis, ABC):
    """A release dominated by the pair whose profile is the bound.

    ``docs/proofs/private_selection.md``, section 2.
    """

    @abstractmethod
    def is_known(self) -> bool:
        """Return whether the bound is proved."""

    @abstractmethod
    def profile(self, epsilon: float) -> float:
        """Return an upper bound on delta, in both orders."""

    @abstractmethod
    def largest_loss(self) -> float:
        """Return an epsilon at delta zero, perhaps infinite."""

    def pairs(self) -> DominatingPairs | None:
        """Return the pair with this profile."""
        return DominatingPairs(lambda _: self._pair) if self.is_known() else None

    @cached_property
    def _pair(self) -> ProfilePair | None:
        largest = self.largest_loss()
        nothing = largest <= 0.0 or self.profile(0.0) <= 0.0
        return None if nothing else ProfilePair(self.profile, largest)

    def stated(self, read: Reading = Fraction) -> Guarantee | None:
        """Return the largest loss, if there is one."""
        largest = self.largest_loss() if self.is_known() else math.inf
        return Guarantee(read(largest), Fraction(0)) if math.isfinite(largest) else None


@card_of(ProfileEvent)
class OwnProfile(KnownProfile):
    """An event that contains its bound."""

    event: ProfileEvent

    def is_known(self) -> bool:
        """Return whether the event supports the adjacency."""
        return self.event.supports_adjacency(self.adjacency)

    def profile(self, epsilon: float) -> float:
        """Return the event's bound, or 1 if it is invalid."""
        bound = self.event.profile_bound(epsilon, self.adjacency)
        return bound if 0.0 <= bound <= 1.0 else 1.0

    def largest_loss(self) -> float:
        """Return the event's largest loss, or infinity if it is invalid."""
        largest = self.event.largest_loss(self.adjacency)
        return largest if largest >= 0.0 else math.inf


@card_of(BoundedRangeEvent)
class BoundedRange(OwnProfile):
    """Has divergences as well (``docs/proofs/selection_mechanisms.md``, Theorem 2)."""

    event: BoundedRangeEvent

    def log_moments(self) -> LogMoments:
        """Return those of mu = epsilon/2, or of randomised response."""
        epsilon = self.event.epsilon

        def moment(order: float) -> float:
            # Not the square itself, which would vanish for the least epsilons.
            gaussian = 0.125 * order * (order - 1.0) * epsilon * max(epsilon, 1e-100)
            return min(gaussian * (1.0 + 1e-14), log_moment_randomised_response(epsilon, order))

        return LogMoments(moment, closed_form=True)

    def rho(self, read: Reading = Fraction) -> Divergence:
        """Return an eighth of the square, or the rho of pure privacy."""
        epsilon = read(self.event.epsilon)
        return Divergence(min(epsilon**2 / 8, pure_rho(epsilon)), Fraction(0))

    def covers(self, event: BoundedRangeEvent) -> bool:
        """Compare the widths."""
        return event.epsilon <= self.event.epsilon

    def of_two(self) -> BoundedRangeEvent:
        """Return twice the width, as losses along a chain add up."""
        return BoundedRangeEvent(decimal_up(2 * read_decimal(self.event.epsilon)))


@card_of(RenyiEvent)
class Renyi(Analysis):
    """Divergences in closed form, perhaps infinite."""

    event: RenyiEvent

    def log_moments(self) -> LogMoments:
        """Return the larger divergence of the two directions."""
        return LogMoments(self.event.log_moment, finite=False, closed_form=True)
