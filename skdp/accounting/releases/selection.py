"""The best of a random number of runs.

The profile is bounded as in `SelectionProfile`, Renyi divergences by Papernot and Steinke (2022),
the largest loss as by Liu and Talwar (2019). Proofs: Theorems 4 and 6 to 8 of
``docs/proofs/private_selection.md``.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from skdp.accounting.analysis import LogMoments, card_of, sum_of_moments, sum_of_stated
from skdp.accounting.events import Event, RepeatAndSelectEvent
from skdp.accounting.numerics.bracket import minimise
from skdp.accounting.numerics.order_conversion import nearby_order
from skdp.accounting.numerics.stopping_numbers import StoppingNumber
from skdp.accounting.pld.curves import profile_curve
from skdp.accounting.pld.directions import is_supported
from skdp.accounting.releases.profile import KnownProfile
from skdp.accounting.releases.selection_profile import SelectionProfile
from skdp.choices import Adjacency
from skdp.once import cached_property

_ORDERS: list[float] = np.log(np.geomspace(1e-3, 1e5, 41)).tolist()  # minus one, logarithms


@card_of(RepeatAndSelectEvent)
class RepeatAndSelect(KnownProfile):
    """Bounded by what is proved about one run."""

    event: RepeatAndSelectEvent

    @property
    def number(self) -> StoppingNumber:
        """The number of runs."""
        return StoppingNumber(self.event.mean, self.event.shape)

    def is_known(self) -> bool:
        """Tell whether the profile of one run is known."""
        return is_supported(self.event.event, self.adjacency)

    def profile(self, epsilon: float) -> float:
        """Return the bound of `SelectionProfile`."""
        return 0.0 if epsilon >= self._largest else self._bound(epsilon)

    def largest_loss(self) -> float:
        """Return less than ``(2 + eta)`` times that of one run."""
        return self._largest

    # A card that a pair keeps is asked at thousands of epsilons.
    @cached_property
    def _bound(self) -> SelectionProfile:
        return SelectionProfile(profile_curve(self.event.event, self.adjacency), self.number)

    @cached_property
    def _largest(self) -> float:
        alone = largest_stated(self.event.event, self.adjacency)
        if not math.isfinite(alone):
            return math.inf
        more = self.number.pure_surcharge(alone)
        return math.nextafter(alone + more, math.inf) if more > 0.0 else alone

    @cached_property
    def surcharge(self) -> float:
        """The least of ``(1 + eta) ((1 - 1/a) D_a + log(1/gamma) / a)`` over orders a."""
        run = sum_of_moments(self.event.event, self.adjacency)
        assert run is not None
        log_gamma = math.log(self.number.gamma)

        def bound(log_scale: float) -> float:
            order = nearby_order(math.exp(log_scale))
            return (run.of(order) - log_gamma) / order

        return (1.0 + self.event.shape) * minimise(bound, _ORDERS) * (1.0 + 1e-14)

    def log_moments(self) -> LogMoments | None:
        """Return moments if one run has them, finite and without failing."""
        run = sum_of_moments(self.event.event, self.adjacency)
        if run is None or not run.finite or run.log_kept < 0.0:
            return None
        return LogMoments(partial(_log_moment, self, run), quick=False)


def largest_stated(event: Event, adjacency: Adjacency) -> float:
    """Return an epsilon that an event has without failing, by basic composition; or infinity."""
    known = sum_of_stated(event, adjacency)
    return known[0] if known is not None and known[1] == 0.0 else math.inf


def _log_moment(card: RepeatAndSelect, run: LogMoments, order: float) -> float:
    # Truncated negative binomial numbers: Papernot and Steinke (2022), Theorem 2. Poisson numbers
    # m: with ``e = log(order / (order - 1))`` and ``d`` the profile of one run there, at most
    # ``log(e^-m + m e^(log moment of a run + (order - 1) m d))``; their Theorem 6, with the outcome
    # of no run counted.
    event, one = card.event, run.of(order)
    if math.isfinite(event.shape):
        return one + math.log(event.mean) + (order - 1.0) * card.surcharge
    curve = profile_curve(event.event, card.adjacency)
    delta = float(curve(np.array([-math.log1p(-1.0 / order)]))[0])
    several = math.log(event.mean) + one + (order - 1.0) * event.mean * delta
    return float(np.logaddexp(-event.mean, several))
