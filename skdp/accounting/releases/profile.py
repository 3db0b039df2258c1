"""Releases of which a bound on the privacy profile is known."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction

from skdp.accounting.analysis import (
    Analysis,
    Divergence,
    DominatingPairs,
    Guarantee,
    LogMoments,
    Reading,
    card_of,
)
from skdp.accounting.events import BoundedRangeEvent, ProfileEvent
from skdp.accounting.numerics.floats import decimal_up, read_decimal
from skdp.accounting.numerics.order_conversion import log_moment_randomised_response, pure_rho
from skdp.accounting.pld.pairs.profile import ProfilePair
from skdp.once import cached_property


class KnownProfile(Analysis, ABC):
    """A release below the pair whose profile is the bound.

    ``docs/proofs/private_selection.md``, section 2.
    """

    @abstractmethod
    def is_known(self) -> bool:
        """Tell whether the bound is proved under this relation."""

    @abstractmethod
    def profile(self, epsilon: float) -> float:
        """Return an upper bound on delta that holds in both orders of two neighbours."""

    @abstractmethod
    def largest_loss(self) -> float:
        """Return an epsilon with which the release is (epsilon, 0)-DP; perhaps infinite."""

    def pairs(self) -> DominatingPairs | None:
        """Return the pair above all losses with this profile."""
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
    """An event that brings its bound along."""

    event: ProfileEvent

    def is_known(self) -> bool:
        """Ask the event."""
        return self.event.supports_adjacency(self.adjacency)

    def profile(self, epsilon: float) -> float:
        """Ask the event; what is no probability promises nothing."""
        bound = self.event.profile_bound(epsilon, self.adjacency)
        return bound if 0.0 <= bound <= 1.0 else 1.0

    def largest_loss(self) -> float:
        """Ask the event; what is no loss promises nothing."""
        largest = self.event.largest_loss(self.adjacency)
        return largest if largest >= 0.0 else math.inf


@card_of(BoundedRangeEvent)
class BoundedRange(OwnProfile):
    """Divergences besides (``docs/proofs/selection_mechanisms.md``, Theorem 2)."""

    event: BoundedRangeEvent

    def log_moments(self) -> LogMoments:
        """Return those of Gaussian noise with ``mu = epsilon/2``, or of randomised response."""
        epsilon = self.event.epsilon

        def moment(order: float) -> float:
            # Not the square itself, which would vanish for the least epsilons.
            gaussian = 0.125 * order * (order - 1.0) * epsilon * max(epsilon, 1e-100)
            return min(gaussian * (1.0 + 1e-14), log_moment_randomised_response(epsilon, order))

        return LogMoments(moment, closed_form=True)

    def rho(self, read: Reading = Fraction) -> Divergence:
        """Return an eighth of the square, or what pure privacy costs."""
        epsilon = read(self.event.epsilon)
        return Divergence(min(epsilon**2 / 8, pure_rho(epsilon)), Fraction(0))

    def covers(self, event: BoundedRangeEvent) -> bool:
        """Compare the widths."""
        return event.epsilon <= self.event.epsilon

    def of_two(self) -> BoundedRangeEvent:
        """Return twice the width: losses along a chain of neighbours add up."""
        return BoundedRangeEvent(decimal_up(2 * read_decimal(self.event.epsilon)))
