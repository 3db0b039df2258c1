"""Exact amounts, and upper bounds on the privacy profile of any event."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache

import numpy as np

from skdp.accounting import (
    Accountant,
    Event,
    GenericAccountant,
    HiddenStateAccountant,
    PLDAccountant,
)
from skdp.accounting.analysis import analysis_of, exact_sum
from skdp.accounting.events import leaf_counts
from skdp.accounting.numerics.arithmetic import read_decimal, round_up
from skdp.accounting.pld.curves import ProfileCurve, profile_curve
from skdp.base.parameters import Adjacency
from skdp.exceptions import UnsupportedEventError

_DIGITS = 40  # decimals that an amount may have before it is rounded


def shorten(amount: Fraction) -> Fraction:
    """Return an amount that decimals can write unchanged, and any other rounded up."""
    scaled = amount * 10**_DIGITS
    return amount if scaled.denominator == 1 else round_up(amount)


def float_down(amount: Fraction) -> float:
    """Return the largest finite float that is at most an amount."""
    try:
        nearest = float(amount)
    except OverflowError:
        return sys.float_info.max
    if math.isinf(nearest):
        return sys.float_info.max
    return nearest if Fraction(nearest) <= amount else math.nextafter(nearest, 0.0)


def decimal_down(amount: Fraction) -> float:
    """Return the largest float that is, as written in decimal, at most an amount."""
    number = float_down(amount)
    following = math.nextafter(number, math.inf)
    if math.isfinite(following) and read_decimal(following) <= amount:
        return following
    while read_decimal(number) > amount:
        number = math.nextafter(number, 0.0)
    return number


_FEW = 24  # sampled Gaussian releases, up to which a grid is quick
_NEARLY = 1.01  # times delta: a bound below that may be proved at delta by looking for epsilon
_RTOL = 1e-2  # relative distance of the bounds that curves are made of


class Profile:
    """An upper bound on delta at every epsilon, in both orders of two neighbours."""

    affordable = 14  # points that can be computed in a fraction of a second

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
        """Return an epsilon with at most this delta; infinite if there is none."""
        if delta not in self._epsilons:
            self._epsilons[delta] = self._accountant.epsilon(delta).upper
        return self._epsilons[delta]


class CurvedProfile(Profile):
    """The profile of a plan with a privacy-loss distribution on a grid."""

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
        """Return an epsilon with at most this delta; infinite if there is none."""
        if self.delta(0.0) <= delta:
            return 0.0
        enough = np.flatnonzero(self._curve.values <= delta)
        return float(self._curve.epsilons[enough[0]]) if len(enough) else super().reach(delta)


@lru_cache(maxsize=512)
def profile_of(event: Event, adjacency: Adjacency, rtol: float = _RTOL) -> Profile:
    """Return a bound on the profile of an event."""
    counts = leaf_counts(event)
    accountant = accountant_of(event, adjacency, rtol)
    if rtol == _RTOL and isinstance(accountant, PLDAccountant) and _is_gridded(counts, adjacency):
        return CurvedProfile(accountant, profile_curve(event, adjacency))
    return Profile(accountant)


def _is_gridded(counts: dict[Event, int], adjacency: Adjacency) -> bool:
    """Return whether a grid for the profile is faster than inversion at some points."""
    smooth = 0
    for leaf, count in counts.items():
        if analysis_of(leaf, adjacency).mu() is None:
            if analysis_of(leaf, adjacency).mixture() is None:
                return True
            smooth += count
    return smooth <= _FEW


def accountant_of(event: Event, adjacency: Adjacency, rtol: float) -> Accountant:
    """Return an accountant that has composed the event."""
    tightest = PLDAccountant(adjacency, rtol=rtol)
    others: tuple[Accountant, ...] = (
        HiddenStateAccountant(adjacency),
        GenericAccountant(adjacency, conversion="improved"),
    )
    for accountant in (tightest, *others):
        if accountant.supports(event):
            return accountant.compose(event)
    return tightest.compose(event)  # refuses, and names the leaf and the remedy


def is_supported(event: Event, adjacency: Adjacency) -> bool:
    """Return whether `profile_of` supports an event."""
    try:
        profile_of(event, adjacency)
    except UnsupportedEventError:
        return False
    return True


@lru_cache(maxsize=4096)
def is_certified(event: Event, adjacency: Adjacency, epsilon: float, delta: float) -> bool:
    """Return whether an event is proved to be (epsilon, delta)-DP."""
    known = exact_sum(event, adjacency, read_decimal)
    if known is not None and known[0] <= read_decimal(epsilon) and known[1] <= read_decimal(delta):
        return True
    epsilon, delta = float_down(read_decimal(epsilon)), float_down(read_decimal(delta))
    try:
        # As precise as calibration, so that calibrated noise is certified.
        profile = profile_of(event, adjacency, 1e-3)
    except UnsupportedEventError:
        return False
    bound = profile.delta(epsilon)
    if bound <= delta:
        return True
    return bound <= _NEARLY * delta and profile.reach(delta) <= epsilon
