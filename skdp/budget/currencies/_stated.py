"""Exact (epsilon, delta) of events that state one by themselves."""

from __future__ import annotations

import math
from fractions import Fraction

from skdp.accounting import ApproxDPEvent, DiscreteLaplaceEvent, Event, LaplaceEvent, PureDPEvent
from skdp.accounting.analysis import analysis_of, gaussian_mu
from skdp.accounting.events import OneOfEvent, ProfileEvent, leaf_counts
from skdp.budget.currencies.exact import short, typed

Guarantee = tuple[Fraction, Fraction]

_ROUND_UP = Fraction(10**12 + 1, 10**12)  # far above the rounding errors of a few operations


def stated(event: Event, adjacency: str) -> Guarantee | None:
    """Add up what the leaves of an event state about themselves (basic composition).

    Parameters
    ----------
    event : Event
        Any event.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    tuple of Fraction or None
        Epsilon and delta, exact where they were typed; None if some leaf states nothing.
    """
    epsilon, delta = Fraction(0), Fraction(0)
    for leaf, count in leaf_counts(event).items():
        one = stated_of_leaf(leaf, adjacency)
        if one is None:
            return None
        epsilon += count * one[0]
        delta += count * one[1]
    return epsilon, delta


def stated_of_leaf(leaf: Event, adjacency: str) -> Guarantee | None:
    """Return what one leaf states about itself.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    tuple of Fraction or None
        Epsilon and delta, or None.
    """
    if isinstance(leaf, PureDPEvent):
        return typed(leaf.epsilon), Fraction(0)
    if isinstance(leaf, ApproxDPEvent):
        return typed(leaf.epsilon), typed(leaf.delta)
    if isinstance(leaf, LaplaceEvent | DiscreteLaplaceEvent):
        return short(1 / typed(leaf.noise_multiplier)), Fraction(0)
    if isinstance(leaf, OneOfEvent):
        choices = [stated(event, adjacency) for event in leaf.events]
        known = [choice for choice in choices if choice is not None]
        if len(known) < len(choices):
            return None
        return max(choice[0] for choice in known), max(choice[1] for choice in known)
    if isinstance(leaf, ProfileEvent):
        if not leaf.supports_adjacency(adjacency):
            return None
        largest = leaf.largest_loss(adjacency)
        return (typed(largest), Fraction(0)) if math.isfinite(largest) else None
    if gaussian_mu(leaf, adjacency) is not None and gaussian_mu(leaf, adjacency) != 0.0:
        return None
    known_guarantee = analysis_of(leaf, adjacency).stated()
    if known_guarantee is None or not math.isfinite(known_guarantee[0]):
        return None
    # Computed in floating point, unlike the above.
    return Fraction(known_guarantee[0]) * _ROUND_UP, Fraction(0)
