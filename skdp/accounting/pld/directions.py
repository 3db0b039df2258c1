"""From a history of events to the dominating pairs of each direction between two neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from skdp.accounting.analysis import gaussian_mu, general_sample, sampled_gaussian
from skdp.accounting.events import ApproxDPEvent, Event, PureDPEvent, leaf_counts
from skdp.accounting.pld.choices import choices_of, profile_pair
from skdp.accounting.pld.noise_pairs import (
    is_directed,
    is_exact,
    is_noise_leaf,
    is_noiseless,
    noise_pair,
)
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.gaussian import gaussian_pair
from skdp.accounting.pld.pairs.randomised_response import RandomisedResponsePair
from skdp.accounting.pld.sampled_pairs import sampled_pair
from skdp.accounting.profile_events import OneOfEvent, ProfileEvent
from skdp.accounting.releases.last_iterate import LastIterateEvent

_LARGEST_SHIFT = 1e150
# Rates, shifts and guarantees below these count as these, which can only raise a bound: squares of
# what is as small would vanish.
_SMALLEST = 1e-100
_SMALLEST_FAILURE = 1e-290


class Direction(NamedTuple):
    """Pairs with their counts, and the total shift of the unsampled Gaussian releases."""

    pairs: list[tuple[Pair, int]]
    mu: float


class Plan(NamedTuple):
    """The directions of a history, of which the worst counts.

    ``attained`` says that at every order each pair has the largest divergence that its release can
    have: only then are lower bounds on the pairs' compositions reported.
    """

    directions: list[Direction]
    attained: bool


def is_supported(leaf: Event, adjacency: str) -> bool:
    """Tell whether a dominating pair is known for a leaf.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    bool
        Whether `plan_of` accepts it.
    """
    if isinstance(leaf, OneOfEvent):
        parts = [part for event in leaf.events for part in leaf_counts(event)]
        return all(is_supported(part, adjacency) for part in parts)
    if isinstance(leaf, ProfileEvent):
        return leaf.supports_adjacency(adjacency)
    sample = general_sample(leaf, adjacency)
    if sample is not None:
        return all(is_supported(part, sample.adjacency) for part in leaf_counts(sample.event))
    return (
        isinstance(leaf, PureDPEvent | ApproxDPEvent)
        or gaussian_mu(leaf, adjacency) is not None
        or sampled_gaussian(leaf, adjacency) is not None
        or is_noise_leaf(leaf, adjacency)
    )


def plan_of(counts: Mapping[Event, int], adjacency: str) -> Plan | None:
    """Return the dominating pairs of a history.

    Parameters
    ----------
    counts : mapping of Event to int
        Leaves and how often each happened.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    Plan or None
        None where some release has practically no noise and nothing can be promised.
    """
    choices = choices_of(counts, adjacency)
    plans = [_plan_of(choice, adjacency) for choice in choices]
    directions = []
    for plan in plans:
        if plan is None:
            return None
        directions += plan.directions
    # One record need not be able to have the largest cost at every choice.
    chosen = any(isinstance(leaf, OneOfEvent) for leaf in counts)
    return Plan(directions, not chosen and all(plan.attained for plan in plans if plan))


def _plan_of(counts: Mapping[Event, int], adjacency: str) -> Plan | None:
    """Return the dominating pairs of a history without choices."""
    if any(map(_reveals, counts)):
        return None
    shifts: list[float] = []
    shared: list[tuple[Pair, int]] = []
    directed: list[tuple[Event, int]] = []
    attained = True
    for leaf, count in counts.items():
        mu = gaussian_mu(leaf, adjacency)
        if mu is not None:
            shifts.append(math.sqrt(count) * mu)
            attained = attained and not isinstance(leaf, LastIterateEvent)
        elif _is_directed(leaf, adjacency):
            directed.append((leaf, count))
            attained = attained and _is_attained(leaf, adjacency)
        else:
            pair = _pair(leaf, adjacency, None)
            if pair is not None and pair.failure >= 1.0:
                return None
            attained = attained and _is_attained(leaf, adjacency)
            if pair is not None:
                shared.append((pair, count))
    mu = math.hypot(*shifts)  # of tiny shifts too, whose squares vanish
    directions = []
    for kind in ("remove", "add") if directed else (None,):
        pairs = list(shared)
        for leaf, count in directed:
            pair = _pair(leaf, adjacency, kind)
            if pair is not None and pair.failure >= 1.0:
                return None
            if pair is not None:
                pairs.append((pair, count))
        directions.append(Direction(pairs, mu))
    return Plan(directions, attained)


def mu_of_all_rows(counts: Mapping[Event, int], adjacency: str) -> float:
    """Return the Gaussian-DP parameter if every sample held all rows; inf if there is none.

    Sampling can only help: the divergences of a sampled release are mixtures, with the rate as
    weight, of those of the full one and of equal distributions, which are the least.

    Parameters
    ----------
    counts : mapping of Event to int
        Leaves and how often each happened.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    float
        The parameter.
    """
    shifts = []
    for leaf, count in counts.items():
        mu = gaussian_mu(leaf, adjacency)
        sampled = sampled_gaussian(leaf, adjacency)
        if mu is None and sampled is not None:
            mu = 2.0 * sampled.mu if sampled.kind == "poisson-replace-one" else sampled.mu
        if mu is None:
            return math.inf
        shifts.append(math.sqrt(count) * mu)
    return math.hypot(*shifts)


def has_overflowing_moments(counts: Mapping[Event, int], adjacency: str) -> bool:
    """Tell whether some release has no moments, or so little noise that they overflow.

    Parameters
    ----------
    counts : mapping of Event to int
        Leaves and how often each happened.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    bool
        Whether Renyi divergences are of no use.
    """
    return any(
        isinstance(leaf, ProfileEvent | OneOfEvent)
        or general_sample(leaf, adjacency) is not None
        or (_is_mixture(leaf, adjacency) and not _is_attained(leaf, adjacency))
        for leaf in counts
    )


def _reveals(leaf: Event) -> bool:
    return is_noiseless(leaf) or (isinstance(leaf, ApproxDPEvent) and leaf.delta == 1.0)


def _is_mixture(leaf: Event, adjacency: str) -> bool:
    return gaussian_mu(leaf, adjacency) is None and sampled_gaussian(leaf, adjacency) is not None


def _is_directed(leaf: Event, adjacency: str) -> bool:
    """Tell whether the pair depends on which of two neighbours comes first."""
    mixture = _is_mixture(leaf, adjacency) or general_sample(leaf, adjacency) is not None
    return (mixture and adjacency == "add-remove") or is_directed(leaf, adjacency)


def _is_attained(leaf: Event, adjacency: str) -> bool:
    if isinstance(leaf, ProfileEvent) or general_sample(leaf, adjacency) is not None:
        return False
    if isinstance(leaf, PureDPEvent | ApproxDPEvent):
        # Of the releases with that guarantee, some has the pair's divergences.
        failure = leaf.delta if isinstance(leaf, ApproxDPEvent) else 0.0
        return _at_least(leaf.epsilon, _SMALLEST) and _at_least(failure, _SMALLEST_FAILURE)
    sampled = sampled_gaussian(leaf, adjacency)
    if sampled is None:
        return is_exact(leaf, adjacency)
    return _SMALLEST <= sampled.mu <= _LARGEST_SHIFT and _at_least(sampled.rate, _SMALLEST)


def _at_least(value: float, smallest: float) -> bool:
    return value == 0.0 or value >= smallest


def _pair(leaf: Event, adjacency: str, direction: str | None) -> Pair | None:
    """Return the dominating pair of a leaf that is not plainly Gaussian; None if it is trivial."""
    if isinstance(leaf, ProfileEvent):
        return profile_pair(leaf, adjacency)
    sample = general_sample(leaf, adjacency)
    if sample is not None:
        return sampled_pair(sample, direction)
    if isinstance(leaf, PureDPEvent | ApproxDPEvent):
        delta = leaf.delta if isinstance(leaf, ApproxDPEvent) else 0.0
        if max(leaf.epsilon, delta) == 0.0:
            return None
        return RandomisedResponsePair(
            max(leaf.epsilon, _SMALLEST) if leaf.epsilon > 0.0 else 0.0,
            max(delta, _SMALLEST_FAILURE) if delta > 0.0 else 0.0,
        )
    sampled = sampled_gaussian(leaf, adjacency)
    if sampled is None:
        return noise_pair(leaf, adjacency, direction)
    if sampled.mu > _LARGEST_SHIFT:
        # Whoever is sampled is seen: any two results differ with the rate at most.
        return RandomisedResponsePair(0.0, sampled.rate)
    rate, mu = max(sampled.rate, _SMALLEST), max(sampled.mu, _SMALLEST)
    return gaussian_pair(direction or sampled.kind, rate, mu)
