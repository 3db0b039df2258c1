"""Dominating pairs of events in each direction, and bounds on their composition.

Closed forms are used where they exist. Plans of many releases, whose losses are smooth, use
inversion of the transform; few releases and atoms use a grid of losses. The interval of each engine
is valid, and so is their intersection (``docs/proofs/certified_intervals.md``).

A choice that is an entire plan costs as much as its most expensive part; parts that reveal less
than another one are dropped. In a composition a choice has a single pair, see its card.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from skdp.accounting.analysis import DominatingPairs, analysis_of
from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.pld.grid_bounds import (
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
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.value import Interval, Proved, is_narrow, named
from skdp.base.parameters import Adjacency

_CLOSED_FORM, _EXTREMES = "closed form", "extreme losses"
_INVERSION, _GRID = "inversion", "grid"
_FEW = 24  # releases, up to which a grid is tried first
_FEW_ATOMS = 256  # the same where all losses are atoms, which have no density to smooth
_SMALLEST_EPSILON = 1e-9  # intervals narrower than rtol times this are not refined
_SMALLEST_DELTA = 1e-30  # the same for delta: what no target asks for is bounded, but not refined
_LARGEST_PROFILE_EPSILON = 1e5  # beyond this the profile of a single release is not searched


def engines(pairs: Pairs, mu: float) -> tuple[str, ...]:
    """Return the engines in order of use."""
    releases = with_gaussian(pairs, mu)
    total = sum(count for _, count in pairs)
    if not pairs or (len(releases) == total == 1 and releases[0][0].profile(0.0) is not None):
        return (_CLOSED_FORM,)
    return _order(pairs)


def _order(pairs: Pairs) -> tuple[str, ...]:
    """Return the composing engines in order of use."""
    total = sum(count for _, count in pairs)
    atomic = all(pair.atomic for pair, _ in pairs)
    few = total <= (_FEW_ATOMS if atomic else _FEW)
    return (_GRID, _INVERSION) if few else (_INVERSION, _GRID)


def epsilon_bounds(
    pairs: Pairs, mu: float, delta: float, rtol: float, floor: float = 0.0
) -> Interval:
    """Bound the smallest epsilon of pairs and Gaussians of shift mu, at delta in (0, 1).

    In nats. Refinement stops once epsilon is at most ``floor``.
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
    """Bound the profile of pairs and Gaussians of shift mu at an epsilon in nats.

    Refinement stops once delta is at most ``floor``.
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
    """Bound epsilon by the largest losses; exact for one release."""
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
    """Bound delta by the largest losses; exact for one release."""
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
    """Return an engine's bounds, or trivial ones for numbers out of range."""
    nothing = named((0.0, largest), _EXTREMES)
    try:
        found = method()
    except (ArithmeticError, ValueError):
        return nothing  # as from the logarithm of a number that vanished
    return nothing if math.isnan(found[0]) or math.isnan(found[1]) else named(found, engine)


def _invert_profile(profile: Callable[[float], Interval], delta: float) -> Interval:
    """Bound the smallest epsilon by two searches."""
    largest = _LARGEST_PROFILE_EPSILON
    (lower, _), (_, upper) = (
        find_crossing(lambda e, side=side: profile(e)[side] - delta, 1.0, largest, 1e-14)  # type: ignore[misc]
        for side in (0, 1)
    )
    return lower, upper


_LARGEST_COUNT = 64  # equal pure guarantees that are told apart

Counts = dict[Event, int]


class Direction(NamedTuple):
    """Pairs with counts, and the total shift of unsampled Gaussians."""

    pairs: list[tuple[Pair, int]]
    mu: float


class Plan(NamedTuple):
    """Directions of a history; the worst counts.

    If ``attained``, pairs have their releases' largest divergences, so lower bounds count.
    """

    directions: list[Direction]
    attained: bool


def is_supported(event: Event, adjacency: Adjacency) -> bool:
    """Return whether all parts have dominating pairs."""
    cards = (analysis_of(leaf, adjacency) for leaf in leaf_counts(event))
    return all(card.mu() is not None or card.pairs() is not None for card in cards)


def plan_of(counts: Mapping[Event, int], adjacency: Adjacency) -> Plan | None:
    """Return the dominating pairs of a history, or None."""
    directions, attained = [], True
    for choice in choices_of(counts, adjacency):
        plan = _plan_of(choice, adjacency)
        if plan is None:
            return None
        directions += plan.directions
        attained = attained and plan.attained
    # One record need not be able to have the largest cost at every choice.
    chosen = any(analysis_of(leaf, adjacency).parts() != (leaf,) for leaf in counts)
    return Plan(directions, attained and not chosen)


def _plan_of(counts: Mapping[Event, int], adjacency: Adjacency) -> Plan | None:
    """Return the dominating pairs, with one per choice."""
    shifts: list[float] = []
    known: list[tuple[DominatingPairs, int]] = []
    attained = True
    for leaf, count in counts.items():
        card = analysis_of(leaf, adjacency)
        mu, pairs = card.mu(), None
        if mu is not None:
            shifts.append(math.sqrt(count) * mu)
            attained = attained and card.dominated_by() is None
        else:
            pairs = card.pairs()
            assert pairs is not None
            known.append((pairs, count))
            attained = attained and pairs.attained
    mu = math.hypot(*shifts)  # of tiny shifts too, whose squares vanish
    shared = {index: pairs.of("remove") for index, (pairs, _) in enumerate(known)}
    directions = []
    for direction in ("remove", "add"):
        found: list[tuple[Pair, int]] = []
        for index, (pairs, count) in enumerate(known):
            turned = pairs.directed and direction == "add"
            pair = pairs.of(direction) if turned else shared[index]
            if pair is not None and pair.failure >= 1.0:
                return None
            if pair is not None:
                found.append((pair, count))
        directions.append(Direction(found, mu))
    directed = any(pairs.directed for pairs, _ in known)
    return Plan(directions if directed else directions[:1], attained)


def mu_of_all_rows(counts: Mapping[Event, int], adjacency: Adjacency) -> float:
    """Return the Gaussian-DP parameter without sampling, or infinity.

    Sampling only helps: it mixes divergences with those of equal laws.
    """
    shifts = []
    for leaf, count in counts.items():
        card = analysis_of(leaf, adjacency)
        mu, mixture = card.mu(), card.mixture()
        if mu is None and mixture is None:
            return math.inf
        all_rows = mixture.mu_of_all_rows if mu is None and mixture is not None else mu or 0.0
        shifts.append(math.sqrt(count) * all_rows)
    return math.hypot(*shifts)


def choices_of(counts: Mapping[Event, int], adjacency: Adjacency) -> list[Counts]:
    """Return the possible events of one record; the worst counts.

    One dict of leaves and counts, or one per part if a choice is the entire history.
    """
    alone = sum(counts.values()) == 1
    total: Counts = {}
    for leaf, count in counts.items():
        events = analysis_of(leaf, adjacency).parts()
        parts: list[Counts] = [{leaf: 1}]
        if events != (leaf,):
            parts = _undominated(
                [p for event in events for p in choices_of(leaf_counts(event), adjacency)],
                adjacency,
            )
            if alone:
                return parts
            if len(parts) > 1:
                parts = [{leaf: 1}]
        for part, times in parts[0].items():
            total[part] = total.get(part, 0) + count * times
    return [total]


def _undominated(parts: list[Counts], adjacency: Adjacency) -> list[Counts]:
    """Drop parts that reveal no more than others."""
    kept: list[Counts] = []
    for part in parts:
        if any(_reveals_less(part, other, adjacency) for other in kept):
            continue
        kept = [other for other in kept if not _reveals_less(other, part, adjacency)]
        kept.append(part)
    return kept


def _reveals_less(one: Counts, other: Counts, adjacency: Adjacency) -> bool:
    """Return whether a part is clearly dominated by, or equal to, another."""
    square, pure, rest = _described(one, adjacency)
    other_square, other_pure, other_rest = _described(other, adjacency)
    # Pure guarantees in falling order: each is met by one at least as large.
    return (
        square <= other_square
        and len(pure) <= len(other_pure)
        and all(a <= b for a, b in zip(pure, other_pure, strict=False))
        and all(other_rest.get(leaf, 0) >= count for leaf, count in rest.items())
    )


def _described(part: Counts, adjacency: Adjacency) -> tuple[float, list[float], Counts]:
    """Return squared Gaussian parameter, pure guarantees and other leaves."""
    square, pure, rest = 0.0, [], {}
    for leaf, count in part.items():
        card = analysis_of(leaf, adjacency)
        mu, stated = card.mu(), card.stated() if card.only_stated else None
        if mu is not None:
            square += count * mu * mu
        elif stated is not None and stated.delta == 0 and count <= _LARGEST_COUNT:
            pure += [float(stated.epsilon)] * count
        else:
            rest[leaf] = count
    return square, sorted(pure, reverse=True), rest
