"""From a history of events to the dominating pairs of each direction between two neighbours.

A choice that is all of a plan costs what its dearest part does, and parts that reveal less than
another one are left out. Beside other releases a choice has a pair of its own, see its card.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from skdp.accounting.analysis import DominatingPairs, analysis_of
from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.pld.pairs.base import Pair
from skdp.choices import Adjacency

_LARGEST_COUNT = 64  # equal pure guarantees that are told apart

Counts = dict[Event, int]


class Direction(NamedTuple):
    """Pairs with their counts, and the total shift of the unsampled Gaussian releases."""

    pairs: list[tuple[Pair, int]]
    mu: float


class Plan(NamedTuple):
    """The directions of a history, of which the worst counts.

    If ``attained``, pairs have their releases' largest divergences, so that lower bounds count.
    """

    directions: list[Direction]
    attained: bool


def is_supported(event: Event, adjacency: Adjacency) -> bool:
    """Tell whether dominating pairs are known for everything in an event."""
    cards = (analysis_of(leaf, adjacency) for leaf in leaf_counts(event))
    return all(card.mu() is not None or card.pairs() is not None for card in cards)


def plan_of(counts: Mapping[Event, int], adjacency: Adjacency) -> Plan | None:
    """Return the dominating pairs of a supported history; None if nothing can be promised."""
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
    """Return the dominating pairs of a history in which choices have pairs of their own."""
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
    """Return the Gaussian-DP parameter if every sample held all rows; inf if there is none.

    Sampling only helps: it mixes divergences of the full release with those of equal laws.
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
    """Return what may have happened to one record, the worst of which counts.

    One dict of leaves and their counts, or one for each part of a choice that is all there is.
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
    """Leave out parts that reveal no more than another one."""
    kept: list[Counts] = []
    for part in parts:
        if any(_reveals_less(part, other, adjacency) for other in kept):
            continue
        kept = [other for other in kept if not _reveals_less(other, part, adjacency)]
        kept.append(part)
    return kept


def _reveals_less(one: Counts, other: Counts, adjacency: Adjacency) -> bool:
    """Tell whether one part is clearly dominated by another one, or equal to it."""
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
    """Return the Gaussian releases' squared parameter, pure guarantees, and everything else."""
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
