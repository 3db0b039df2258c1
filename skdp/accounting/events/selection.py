"""A random number of candidates, of which only the best is released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skdp.accounting.checks import check_real
from skdp.accounting.events.base import Event, check_event
from skdp.accounting.numerics.stopping_numbers import check_stopping


@dataclass(frozen=True)
class RepeatAndSelectEvent(Event):
    """A release repeated a random number of times, of which only the best result is released.

    Parameters
    ----------
    event : Event
        One run: everything that a candidate does with the records, its score included.
    mean : float
        Expected number of runs, at least 1; for a Poisson number, positive.
    shape : float
        Shape ``eta > -1`` of the truncated negative binomial number of runs: 0 is the logarithmic
        distribution, 1 the geometric one. Infinite for a Poisson number, where no run at all has a
        fixed result.

    Notes
    -----
    Every run draws its candidate afresh, with replacement, from a distribution that does not depend
    on the records, and is otherwise the same mechanism. The number of runs, the other results and
    the time taken stay secret. Results are compared by a fixed order of what a run returns.

    The profile is bounded as in `SelectionProfile`, by a mixture that is never above
    ``m delta(epsilon - (1 + eta) log(e^e + (1/gamma - 1) delta(e)))`` for any ``e >= 0``, with
    ``delta`` the profile of one run and m the mean. Renyi divergences are bounded by Papernot and
    Steinke (2022), Theorem 2. If a run is epsilon-DP, all together are less than ``(2 + eta)``
    epsilon-DP (Liu and Talwar, 2019, have 3 epsilon for the geometric distribution).

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, RepeatAndSelectEvent
    >>> run = GaussianEvent(4.0)
    >>> best = RepeatAndSelectEvent(run, mean=10, shape=0)
    >>> for event in (run, best):
    ...     print(round(PLDAccountant().compose(event).epsilon(1e-6), 2))
    1.06
    1.47
    """

    event: Event
    mean: float
    shape: float

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_event(owner, "event", self.event)
        object.__setattr__(self, "mean", check_real(owner, "mean", self.mean))
        shape = math.inf if self.shape == "inf" else check_real(owner, "shape", self.shape)
        object.__setattr__(self, "shape", shape)
        check_stopping(owner, self.mean, shape)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, fit for JSON; an infinite shape is ``"inf"``."""
        return super().to_dict() | {"shape": "inf" if math.isinf(self.shape) else self.shape}
