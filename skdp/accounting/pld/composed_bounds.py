"""Two-sided bounds for one list of dominating pairs, by whichever method suits it.

Closed forms where there are any; inversion of the transform for plans of many releases, whose
losses are smooth; the same with the largest losses set apart, where sampling is rare and noise
little; a grid of losses for few releases and for atoms. Each method's interval holds, so their
intersection does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import itemgetter

from skdp.accounting.intervals import Interval, Proved, is_narrow, meet, named
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.pld.grid.bounds import direction_delta, direction_epsilon, extremes
from skdp.accounting.pld.inversion_bounds import Pairs, invert_delta, invert_epsilon
from skdp.accounting.pld.lattice_interval import delta_interval, epsilon_interval
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.gaussian import GaussianMixturePair, GaussianPair
from skdp.accounting.pld.pairs.profile import ListedPair
from skdp.accounting.pld.rare_bounds import rare_delta, rare_epsilon

_FEW = 24  # releases, up to which a grid is tried first
_LONGEST_ON_ONE_GRID = 256  # releases, beyond which two grids may do better than one
_LARGEST_PROFILE_EPSILON = 1e5
_PROFILE_STEPS = 200
_SMALLEST_DELTA = 1e-30  # below which the slowest method is not worth its time
_RARE = 3e-3  # rate, below which tails are too light for tilts to bring out
_SMALLEST_EPSILON = 1e-9  # intervals narrower than rtol times this are not refined

_CLOSED_FORM, _EXTREMES = "closed form", "extreme losses"
_NAMES = {
    "inverted": "inversion",
    "parted": "rare losses",
    "gridded": "grid",
    "bounded": "tilted grid",
}

Method = Callable[[], Interval]


def epsilon_bounds(pairs: Pairs, mu: float, delta: float, rtol: float) -> Interval:
    """Bound the smallest epsilon of a composition at one delta.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    mu : float
        Total shift of unsampled Gaussian releases, composed besides.
    delta : float
        Target probability, in (0, 1).
    rtol : float
        Relative distance of the bounds aimed at.

    Returns
    -------
    tuple of float
        Lower and upper bound in nats, the latter infinite where no epsilon meets the target.
    """
    if not pairs:
        return named(gaussian_profile.epsilon_bounds(mu, delta), _CLOSED_FORM)
    everything = _with_gaussian(pairs, mu)
    failure, largest, variation = extremes(everything)
    if variation <= delta:
        return 0.0, 0.0
    if failure * (1.0 - 1e-9) > delta:
        return math.inf, math.inf
    if len(everything) == 1 and everything[0][1] == 1:
        profile = everything[0][0].profile
        if profile(0.0) is not None:
            found = _invert_profile(lambda epsilon: profile(epsilon) or (0.0, 1.0), delta)
            return named(found, _CLOSED_FORM)

    def inverted() -> Interval:
        return invert_epsilon(pairs, mu, delta, rtol)

    def parted() -> Interval:
        return rare_epsilon(pairs, mu, delta, rtol, best)

    def gridded() -> Interval:
        return epsilon_interval(everything, delta, rtol)

    def bounded() -> Interval:
        return 0.0, direction_epsilon(everything, delta)

    best = named((0.0, largest if failure <= delta else math.inf), _EXTREMES)
    for method in _order(pairs, inverted, parted, gridded, bounded):
        best = _met(everything, best, _tried(method, math.inf))
        if is_narrow(best, rtol, _SMALLEST_EPSILON):
            break
    return best


def delta_bounds(pairs: Pairs, mu: float, epsilon: float, rtol: float) -> Interval:
    """Bound the profile of a composition at one epsilon.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    mu : float
        Total shift of unsampled Gaussian releases, composed besides.
    epsilon : float
        Privacy parameter in nats, at least 0; finite.
    rtol : float
        Relative distance of the bounds aimed at.

    Returns
    -------
    tuple of float
        Lower and upper bound on delta, in [0, 1].
    """
    if not pairs:
        return named(gaussian_profile.delta_bounds(mu, epsilon), _CLOSED_FORM)
    everything = _with_gaussian(pairs, mu)
    failure, largest, variation = extremes(everything)
    if epsilon >= largest:
        return failure * (1.0 - 1e-9), failure
    if len(everything) == 1 and everything[0][1] == 1:
        found = everything[0][0].profile(epsilon)
        if found is not None:
            return named(found, _CLOSED_FORM)

    def inverted() -> Interval:
        return invert_delta(pairs, mu, epsilon, rtol, best[1])

    def parted() -> Interval:
        return rare_delta(pairs, mu, epsilon, rtol)

    def gridded() -> Interval:
        return delta_interval(everything, epsilon, rtol)

    def bounded() -> Interval:
        return 0.0, direction_delta(everything, epsilon)

    most = min(variation, failure - math.expm1(epsilon - largest))
    best = named((failure * (1.0 - 1e-9), most), _EXTREMES)
    tried = math.inf  # the least upper bound when the inversion was last done
    for method in (*_order(pairs, inverted, parted, gridded, bounded), inverted):
        # Knowing how small delta is may be what the inversion lacked, else once is enough.
        if method is inverted and best[1] >= 0.5 * tried:
            break
        if method is bounded and best[1] < _SMALLEST_DELTA:
            continue
        best = _met(everything, best, _tried(method, 1.0))
        if is_narrow(best, rtol):
            break
        tried = best[1] if method is inverted else tried
    return best


def _tried(method: Method, largest: float) -> Proved:
    """Return what a method proves: nothing, where its numbers leave the range of floats."""
    try:
        return named(method(), _NAMES[method.__name__])
    except (OverflowError, ValueError, ZeroDivisionError):
        return named((0.0, largest), _EXTREMES)  # as from the logarithm of a number that vanished


def _met(pairs: Pairs, known: Proved, found: Proved) -> Proved:
    """Return what both prove; of pairs that only dominate, lower bounds may not meet the others.

    Probabilities of listed losses, rounded up, may be more than one in all, so no law has them.
    """
    if found[0] > known[1] or known[0] > found[1]:
        if any(isinstance(pair, ListedPair) for pair, _ in pairs):
            return Proved((0.0, min(known[1], found[1])), min(known, found, key=itemgetter(1)).by)
    return meet(known, found)


def _with_gaussian(pairs: Pairs, mu: float) -> Pairs:
    if mu <= 0.0:
        return list(pairs)
    return [*pairs, (GaussianPair(mu), 1)]


def _order(
    pairs: Pairs, inverted: Method, parted: Method, gridded: Method, bounded: Method
) -> Iterator[Method]:
    """Return methods in the order in which they are worth trying."""
    total = sum(count for _, count in pairs)
    rare = any(_is_rare(pair, count) for pair, count in pairs)
    if rare:
        yield parted
    few = total <= _FEW or (total <= _LONGEST_ON_ONE_GRID and all(pair.atomic for pair, _ in pairs))
    yield from (gridded, inverted) if few else (inverted,)
    if not rare:
        yield parted
    if not few:
        yield gridded
    if total > _LONGEST_ON_ONE_GRID:
        yield bounded


def _is_rare(pair: Pair, count: int) -> bool:
    """Tell whether hardly anybody is ever seen, and who is, is seen clearly."""
    if not isinstance(pair, GaussianMixturePair):
        return False
    return pair.rate < _RARE and pair.rate * count < 2.0 and pair.mu > 0.4


def _invert_profile(profile: Callable[[float], Interval], delta: float) -> Interval:
    """Bound the smallest epsilon from bounds on a profile, by bisection on either side."""

    def last(above: Callable[[float], bool]) -> tuple[float, float]:
        """Return neighbouring epsilons between which a predicate turns false."""
        if not above(0.0):
            return 0.0, 0.0
        low, high = 0.0, 1.0
        while above(high):
            low, high = high, 2.0 * high
            if high > _LARGEST_PROFILE_EPSILON:
                return low, math.inf
        for _ in range(_PROFILE_STEPS):
            middle = 0.5 * (low + high)
            if not low < middle < high or high - low <= 1e-14 * high:
                break
            if above(middle):
                low = middle
            else:
                high = middle
        return low, high

    lower, _ = last(lambda epsilon: profile(epsilon)[0] > delta)
    _, upper = last(lambda epsilon: profile(epsilon)[1] > delta)
    return lower, upper
