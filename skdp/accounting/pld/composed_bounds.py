"""Two-sided bounds for one list of dominating pairs, by whichever engine suits it.

Closed forms where there are any; inversion of the transform for plans of many releases, whose
losses are smooth; a grid of losses for few releases and for atoms. Each engine's interval holds, so
their intersection does (``docs/proofs/certified_intervals.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from skdp.accounting.intervals import Interval, Proved, is_narrow, named
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.pld.grid.bounds import (
    delta_interval,
    epsilon_interval,
    extremes,
    find_crossing,
)
from skdp.accounting.pld.inversion_bounds import (
    Pairs,
    invert_delta,
    invert_epsilon,
    meet_proved,
    with_gaussian,
)

_CLOSED_FORM, _EXTREMES = "closed form", "extreme losses"
_INVERSION, _GRID = "inversion", "grid"
_FEW = 24  # releases, up to which a grid is tried first
_FEW_ATOMS = 256  # the same where all losses are atoms, which have no density to smooth
_SMALLEST_EPSILON = 1e-9  # intervals narrower than rtol times this are not refined
_SMALLEST_DELTA = 1e-30  # the same for delta: what no target asks for is bounded, but not refined
_LARGEST_PROFILE_EPSILON = 1e5  # beyond this the profile of a single release is not searched


def engines(pairs: Pairs, mu: float) -> tuple[str, ...]:
    """Name the engines for pairs and Gaussians of total shift mu, in the order to try them."""
    releases = with_gaussian(pairs, mu)
    total = sum(count for _, count in pairs)
    if not pairs or (len(releases) == total == 1 and releases[0][0].profile(0.0) is not None):
        return (_CLOSED_FORM,)
    return _order(pairs)


def _order(pairs: Pairs) -> tuple[str, ...]:
    """Name the engines that compose, in the order to try them."""
    total = sum(count for _, count in pairs)
    atomic = all(pair.atomic for pair, _ in pairs)
    few = total <= (_FEW_ATOMS if atomic else _FEW)
    return (_GRID, _INVERSION) if few else (_INVERSION, _GRID)


def epsilon_bounds(
    pairs: Pairs, mu: float, delta: float, rtol: float, floor: float = 0.0
) -> Interval:
    """Bound the smallest epsilon of pairs and Gaussians of total shift mu, at a delta in (0, 1).

    The bounds are in nats. Nothing is refined once epsilon is known to be at most ``floor``.
    """
    if not pairs:
        return named(gaussian_profile.epsilon_bounds(mu, delta), _CLOSED_FORM)
    releases = with_gaussian(pairs, mu)
    run = {
        _INVERSION: lambda: invert_epsilon(pairs, mu, delta, rtol),
        _GRID: lambda: epsilon_interval(releases, delta, rtol),
    }
    best = _epsilon_of_extremes(releases, delta)
    for engine in _order(pairs):
        if _is_exact(best) or best[1] <= floor or is_narrow(best, rtol, _SMALLEST_EPSILON):
            break
        best = meet_proved(pairs, best, _tried(engine, run[engine], math.inf))
    return best


def delta_bounds(
    pairs: Pairs, mu: float, epsilon: float, rtol: float, floor: float = 0.0
) -> Interval:
    """Bound the profile of pairs and Gaussians of total shift mu, at a finite epsilon in nats.

    Nothing is refined once delta is known to be at most ``floor``.
    """
    if not pairs:
        return named(gaussian_profile.delta_bounds(mu, epsilon), _CLOSED_FORM)
    releases = with_gaussian(pairs, mu)
    best = _delta_of_extremes(releases, epsilon)
    run = {
        _INVERSION: lambda: invert_delta(pairs, mu, epsilon, rtol, best[1]),
        _GRID: lambda: delta_interval(releases, epsilon, rtol),
    }
    for engine in _order(pairs):
        if _is_exact(best) or best[1] <= floor or is_narrow(best, rtol, _SMALLEST_DELTA):
            break
        best = meet_proved(pairs, best, _tried(engine, run[engine], 1.0))
    return best


def _is_exact(best: Proved) -> bool:
    return best.by[1] == _CLOSED_FORM


def _epsilon_of_extremes(releases: Pairs, delta: float) -> Proved:
    """Bound epsilon by the largest losses, or exactly where there is one release."""
    failure, largest, variation = extremes(releases)
    if variation <= delta:
        return named((0.0, 0.0), _EXTREMES)
    if failure * (1.0 - 1e-9) > delta:
        return named((math.inf, math.inf), _EXTREMES)
    if len(releases) == releases[0][1] == 1:
        profile = releases[0][0].profile
        if profile(0.0) is not None:
            found = _invert_profile(lambda epsilon: profile(epsilon) or (0.0, 1.0), delta)
            return named(found, _CLOSED_FORM)
    return named((0.0, largest if failure <= delta else math.inf), _EXTREMES)


def _delta_of_extremes(releases: Pairs, epsilon: float) -> Proved:
    """Bound delta by the largest losses, or exactly where there is one release."""
    failure, largest, variation = extremes(releases)
    if epsilon >= largest:
        return named((failure * (1.0 - 1e-9), failure), _EXTREMES)
    if len(releases) == releases[0][1] == 1:
        found = releases[0][0].profile(epsilon)
        if found is not None:
            return named(found, _CLOSED_FORM)
    most = min(variation, (failure - math.expm1(epsilon - largest)) * (1.0 + 1e-15))
    return named((failure * (1.0 - 1e-9), most), _EXTREMES)


def _tried(engine: str, method: Callable[[], Interval], largest: float) -> Proved:
    """Return what an engine proves: nothing, where its numbers leave the range of floats."""
    nothing = named((0.0, largest), _EXTREMES)
    try:
        found = method()
    except (ArithmeticError, ValueError):
        return nothing  # as from the logarithm of a number that vanished
    return nothing if math.isnan(found[0]) or math.isnan(found[1]) else named(found, engine)


def _invert_profile(profile: Callable[[float], Interval], delta: float) -> Interval:
    """Bound the smallest epsilon from bounds on a profile, each by a search of its own."""
    largest = _LARGEST_PROFILE_EPSILON
    (lower, _), (_, upper) = (
        find_crossing(lambda e, side=side: profile(e)[side] - delta, 1.0, largest, 1e-14)  # type: ignore[misc]
        for side in (0, 1)
    )
    return lower, upper
