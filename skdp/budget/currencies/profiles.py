"""Upper bounds on the privacy profile of any event that has one, remembered by event."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Protocol

import numpy as np

from skdp.accounting import (
    Accountant,
    Event,
    GenericAccountant,
    HiddenStateAccountant,
    PLDAccountant,
)
from skdp.accounting.analysis import analysis_of, gaussian_mu
from skdp.accounting.events import leaf_counts
from skdp.accounting.pld.curves import ProfileCurve, profile_curve
from skdp.budget.currencies._stated import stated
from skdp.budget.currencies.exact import float_down, typed
from skdp.exceptions import UnsupportedEventError

_FEW = 24  # sampled Gaussian releases, up to which a grid is quick
_NEARLY = 1.01  # times delta: a bound below that may be proved at delta by looking for epsilon
_RTOL = 1e-2  # relative distance of the bounds that curves are made of


class Profile(Protocol):
    """An upper bound on delta at every epsilon, in both orders of two neighbours.

    ``affordable`` says at how many points it may be asked for in a fraction of a second.
    """

    affordable: int

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta."""

    def reach(self, delta: float) -> float:
        """Return an epsilon at which delta is attained at most; infinite if there is none."""


class AccountedProfile:
    """The profile that an accountant bounds.

    Parameters
    ----------
    accountant : Accountant
        It holds the event; its results must be guarantees.
    """

    affordable = 14

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._deltas: dict[float, float] = {}
        self._epsilons: dict[float, float] = {}

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta."""
        if epsilon not in self._deltas:
            self._deltas[epsilon] = self._accountant.delta(epsilon).upper
        return self._deltas[epsilon]

    def reach(self, delta: float) -> float:
        """Return an epsilon at which delta is attained at most; infinite if there is none."""
        if delta not in self._epsilons:
            self._epsilons[delta] = self._accountant.epsilon(delta).upper
        return self._epsilons[delta]


class CurvedProfile(AccountedProfile):
    """The profile of a plan whose privacy-loss distribution is quickly put on a grid.

    Parameters
    ----------
    accountant : PLDAccountant
        It holds the event.
    curve : ProfileCurve
        A bound at all epsilons at once.
    """

    affordable = 60

    def __init__(self, accountant: PLDAccountant, curve: ProfileCurve) -> None:
        super().__init__(accountant)
        self._curve = curve

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta."""
        if math.isinf(epsilon):
            return super().delta(epsilon)
        return float(self._curve(np.array([epsilon]))[0])

    def reach(self, delta: float) -> float:
        """Return an epsilon at which delta is attained at most; infinite if there is none."""
        if self.delta(0.0) <= delta:
            return 0.0
        enough = np.flatnonzero(self._curve.values <= delta)
        return float(self._curve.epsilons[enough[0]]) if len(enough) else super().reach(delta)


@lru_cache(maxsize=512)
def profile_of(event: Event, adjacency: str, rtol: float = _RTOL) -> Profile:
    """Return a bound on the profile of an event.

    Parameters
    ----------
    event : Event
        Any event; compositions count as one plan fixed in advance.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.
    rtol : float, default=1e-2
        Relative distance of lower and upper bounds that is aimed at.

    Returns
    -------
    Profile
        The bound.

    Raises
    ------
    UnsupportedEventError
        If some leaf has no proved bound; the message names it and a remedy.
    """
    counts = leaf_counts(event)
    accountant = accountant_of(event, adjacency, rtol)
    if rtol == _RTOL and isinstance(accountant, PLDAccountant) and _is_gridded(counts, adjacency):
        return CurvedProfile(accountant, profile_curve(event, adjacency))
    return AccountedProfile(accountant)


def _is_gridded(counts: dict[Event, int], adjacency: str) -> bool:
    """Tell whether a grid has the whole profile sooner than inversion has some points of it."""
    smooth = 0
    for leaf, count in counts.items():
        if gaussian_mu(leaf, adjacency) is None:
            if analysis_of(leaf, adjacency).mixture() is None:
                return True
            smooth += count
    return smooth <= _FEW


def accountant_of(event: Event, adjacency: str, rtol: float) -> Accountant:
    """Return an accountant that bounds the whole event, and holds it.

    Parameters
    ----------
    event : Event
        Any event.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.
    rtol : float
        Relative distance of lower and upper bounds that is aimed at, where it can be chosen.

    Returns
    -------
    Accountant
        One whose results are guarantees.

    Raises
    ------
    UnsupportedEventError
        If there is none.
    """
    tightest = PLDAccountant(adjacency, rtol=rtol)
    others: tuple[Accountant, ...] = (
        HiddenStateAccountant(adjacency),
        GenericAccountant(adjacency, conversion="improved"),
    )
    for accountant in (tightest, *others):
        if accountant.supports(event):
            return accountant.compose(event)
    return tightest.compose(event)  # refuses, and names the leaf and the remedy


def is_supported(event: Event, adjacency: str) -> bool:
    """Tell whether `profile_of` knows a bound.

    Parameters
    ----------
    event : Event
        Any event.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    bool
        Whether a bound is proved.
    """
    try:
        profile_of(event, adjacency)
    except UnsupportedEventError:
        return False
    return True


@lru_cache(maxsize=4096)
def is_certified(event: Event, adjacency: str, epsilon: float, delta: float) -> bool:
    """Tell whether an event is proved to be (epsilon, delta)-DP by itself.

    Parameters
    ----------
    event : Event
        Any event.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.
    epsilon, delta : float
        The pair, as written in decimal.

    Returns
    -------
    bool
        False also where nothing is known.
    """
    known = stated(event, adjacency)
    if known is not None and known[0] <= typed(epsilon) and known[1] <= typed(delta):
        return True
    epsilon, delta = float_down(typed(epsilon)), float_down(typed(delta))
    try:
        # As close as calibration looks at it, so that what it finds is certified.
        profile = profile_of(event, adjacency, 1e-3)
    except UnsupportedEventError:
        return False
    bound = profile.delta(epsilon)
    if bound <= delta:
        return True
    return bound <= _NEARLY * delta and profile.reach(delta) <= epsilon
