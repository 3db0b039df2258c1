"""Renyi divergences of the best of a random number of runs."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.numerics.bracket import minimise
from skdp.accounting.numerics.stopping_numbers import StoppingNumber
from skdp.accounting.releases.selection import RepeatAndSelectEvent

if TYPE_CHECKING:
    from skdp.accounting.accountants.rdp import RDPAccountant

_ORDERS: list[float] = np.log(np.geomspace(1e-3, 1e5, 41)).tolist()  # minus one, logarithms


def has_failures(event: Event) -> bool:
    """Tell whether parts of an event may fail outright, so that it has no moments.

    Parameters
    ----------
    event : Event
        Any event.

    Returns
    -------
    bool
        Whether some part is only (epsilon, delta)-DP.
    """
    from skdp.accounting.accountants.rdp import RDPAccountant

    accountant = RDPAccountant()
    accountant._counts = leaf_counts(event)
    return accountant._failure() > 0.0


def selection_log_moment(leaf: RepeatAndSelectEvent, adjacency: str, order: float) -> float:
    """Return ``(order - 1)`` times a bound on the Renyi divergence of a selection.

    Parameters
    ----------
    leaf : RepeatAndSelectEvent
        The selection.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.
    order : float
        Order of the divergence, above 1.

    Returns
    -------
    float
        The bound in nats.

    Notes
    -----
    Truncated negative binomial numbers: Papernot and Steinke (2022), Theorem 2. Poisson numbers m:
    with ``e = log(order / (order - 1))`` and ``d`` the profile of one run there, the log moment is
    at most ``log(e^-m + m e^(log moment of a run + (order - 1) m d))``; their Theorem 6, with the
    outcome of no run counted.
    """
    from skdp.accounting.pld.curves import profile_curve

    one = _run(leaf.event, adjacency).log_moment(order)
    if math.isfinite(leaf.shape):
        return one + math.log(leaf.mean) + (order - 1.0) * _surcharge(leaf, adjacency)
    curve = profile_curve(leaf.event, adjacency)
    delta = float(curve(np.array([-math.log1p(-1.0 / order)]))[0])
    several = math.log(leaf.mean) + one + (order - 1.0) * leaf.mean * delta
    return float(np.logaddexp(-leaf.mean, several))


@lru_cache(maxsize=64)
def _surcharge(leaf: RepeatAndSelectEvent, adjacency: str) -> float:
    """Return the least of ``(1 + eta) ((1 - 1/a) D_a + log(1/gamma) / a)`` over orders a."""
    run = _run(leaf.event, adjacency)
    log_gamma = math.log(StoppingNumber(leaf.mean, leaf.shape).gamma)

    def bound(log_scale: float) -> float:
        order = run._order(math.exp(log_scale))
        return (run.log_moment(order) - log_gamma) / order

    return (1.0 + leaf.shape) * minimise(bound, _ORDERS) * (1.0 + 1e-14)


@lru_cache(maxsize=64)
def _run(event: Event, adjacency: str) -> RDPAccountant:
    from skdp.accounting.accountants.rdp import RDPAccountant

    return RDPAccountant(adjacency).compose(event)
