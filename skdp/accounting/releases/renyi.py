"""Releases that are described by two distributions which are hardest to tell apart."""

from __future__ import annotations

from skdp.accounting.analysis import Analysis, LogMoments, card_of
from skdp.accounting.events import RenyiEvent


@card_of(RenyiEvent)
class Renyi(Analysis):
    """Only divergences are known, in closed form, and these need not be finite."""

    event: RenyiEvent

    def log_moments(self) -> LogMoments:
        """Return the larger divergence of the two directions."""
        return LogMoments(self.event.log_moment, finite=False, closed_form=True)
