"""Several releases of which exactly one concerns any one record.

For given neighbours it is fixed which one, so that the dearest counts. Beside other releases it may
depend on their results, and whoever chooses after a large loss gains by it: the choice is then
bounded by the largest profile of its parts.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from skdp.accounting.analysis import (
    Guarantee,
    LogMoments,
    Reading,
    card_of,
    exact_sum,
    square_of,
    sum_of_moments,
)
from skdp.accounting.events import Event, OneOfEvent
from skdp.accounting.pld.curves import profile_curve
from skdp.accounting.pld.directions import is_supported
from skdp.accounting.releases.profile import KnownProfile
from skdp.accounting.releases.selection import largest_stated


@card_of(OneOfEvent)
class Choice(KnownProfile):
    """Every answer is the worst of the parts'."""

    event: OneOfEvent

    def parts(self) -> tuple[Event, ...]:
        """Return the releases."""
        return self.event.events

    def is_known(self) -> bool:
        """Tell whether all parts have known profiles."""
        return all(is_supported(part, self.adjacency) for part in self.parts())

    def profile(self, epsilon: float) -> float:
        """Return the largest of the parts' profiles."""
        at = np.array([epsilon])
        return max(float(profile_curve(part, self.adjacency)(at)[0]) for part in self.parts())

    def largest_loss(self) -> float:
        """Return the largest loss of any part."""
        return max(largest_stated(part, self.adjacency) for part in self.parts())

    def stated(self, read: Reading = Fraction) -> Guarantee | None:
        """Return the largest epsilon and the largest delta of basic composition."""
        sums = [exact_sum(part, self.adjacency, read) for part in self.parts()]
        known = [each for each in sums if each is not None]
        if len(known) < len(sums):
            return None
        return Guarantee(max(each.epsilon for each in known), max(each.delta for each in known))

    def mu_squared(self) -> Fraction | None:
        """Return the largest square, if all parts are Gaussian."""
        squares = [square_of(part, self.adjacency) for part in self.parts()]
        known = [square for square in squares if square is not None]
        return max(known) if len(known) == len(squares) else None

    def log_moments(self) -> LogMoments | None:
        """Return the largest moments."""
        sums = [sum_of_moments(part, self.adjacency) for part in self.parts()]
        known = [each for each in sums if each is not None]
        if len(known) < len(sums):
            return None
        return LogMoments(
            lambda order: max(each.of(order) for each in known),
            log_kept=min(each.log_kept for each in known),
            finite=all(each.finite for each in known),
            quick=False,
        )
