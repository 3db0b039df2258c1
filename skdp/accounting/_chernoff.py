"""Accountants that turn moments of the privacy loss into (epsilon, delta) by Chernoff's bound."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable

from skdp.accounting.rdp import RDPAccountant


class ChernoffAccountant(RDPAccountant):
    """Base of the accountants with ``log delta <= K(lambda) - lambda epsilon``.

    ``K(lambda)`` is the log moment of order ``lambda + 1``; every positive lambda gives a bound.
    """

    @abstractmethod
    def _best(self, bound: Callable[[float], float]) -> float:
        """Minimise over lambda."""

    def _conversion(self, moment: float) -> float:
        """Return what may be added to K for a conversion tighter than Chernoff's."""
        return 0.0

    def _tail(self, moment: float) -> float:
        return self.log_moment(moment + 1.0) + self._conversion(moment)

    def _epsilon(self, delta: float) -> float:
        # With probability 1 - failure the history is a composition of parts with moments.
        failure = self._failure()
        if failure >= delta:
            return math.inf
        log_rest = math.log((delta - failure) / (1.0 - failure))
        return self._best(lambda moment: (self._tail(moment) - log_rest) / moment)

    def _delta(self, epsilon: float) -> float:
        failure = self._failure()
        if failure >= 1.0 or math.isinf(epsilon):
            return failure
        log_delta = self._best(lambda moment: self._tail(moment) - moment * epsilon)
        value = max(math.exp(min(0.0, log_delta)), sys.float_info.min)
        return failure + (1.0 - failure) * value
