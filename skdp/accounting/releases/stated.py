"""Releases of which nothing but an (epsilon, delta) is known."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

from skdp.accounting.analysis import (
    Analysis,
    DominatingPairs,
    Guarantee,
    LogMoments,
    Reading,
    card_of,
)
from skdp.accounting.events import ApproxDPEvent, Event, PureDPEvent
from skdp.accounting.numerics.floats import decimal_up, log_rest, read_decimal
from skdp.accounting.numerics.order_conversion import log_moment_randomised_response
from skdp.accounting.pld.pairs.randomised_response import RandomisedResponsePair

# Guarantees below these count as these: squares of what is as small would vanish.
_LEAST_EPSILON = 1e-100
_LEAST_FAILURE = 1e-290


@card_of(PureDPEvent, ApproxDPEvent)
class Stated(Analysis):
    """Randomised response that may fail dominates, and is one of these releases.

    Kairouz, Oh and Viswanath (2015), Theorem 3.2: so nothing better can be said.
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
        """Return what is stated."""
        return Guarantee(read(self.event.epsilon), read(self._delta))

    def covers(self, event: Any) -> bool:
        """Compare the guarantees."""
        other = Stated(event, self.adjacency)
        return bool(event.epsilon <= self.event.epsilon and other._delta <= self._delta)

    def of_two(self) -> Event:
        """Return the guarantee for groups of two (`group_privacy`), also as decimals rounded up."""
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
