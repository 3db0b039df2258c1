"""Sound conversions of what was run: to another adjacency, and to a Gaussian guarantee."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    LastIterateEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.releases.samples import of_two_records
from skdp.budget.currencies.base import Charge
from skdp.budget.currencies.exact import decimal_up, typed
from skdp.budget.currencies.gaussian import ApproximateGaussian, approximate_gaussian
from skdp.budget.currencies.pairs import pair_of
from skdp.exceptions import UnsupportedEventError
from skdp.mechanisms.contribution import ADJACENCIES

_NOISE = (GaussianEvent, LaplaceEvent, DiscreteGaussianEvent, DiscreteLaplaceEvent)

__all__ = ["ApproximateGaussian", "approximate_gaussian", "convert_adjacency"]


def convert_adjacency(
    event: Event,
    given: str,
    wanted: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Event:
    """Return an event that says under one adjacency what another says under the other.

    Replacing a record is removing one and adding another, so that what is known of single steps
    bounds two of them: noise counts half, and a guarantee is doubled as for groups of two.

    Parameters
    ----------
    event : Event
        What was run.
    given : {"add-remove", "replace-one"}
        The relation that the event refers to.
    wanted : {"add-remove", "replace-one"}
        The relation of the ledger.
    epsilon, delta : float, optional
        A guarantee of the event under the given relation, used for events that know no other way.

    Returns
    -------
    Event
        The event itself if the relations are the same.

    Raises
    ------
    ValueError
        If there is no sound conversion: from replace-one to add-remove there is none, since the
        number of records may be public; and an event with a curve of guarantees needs a delta.

    Notes
    -----
    Sampled releases stay as they are: their noise refers to single records, and accountants know
    their pairs under both relations.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent
    >>> from skdp.budget.conversion import convert_adjacency
    >>> convert_adjacency(GaussianEvent(4.0), "add-remove", "replace-one")
    GaussianEvent(noise_multiplier=2.0)
    """
    for name, adjacency in (("given", given), ("wanted", wanted)):
        if adjacency not in ADJACENCIES:
            raise ValueError(f"{name} must be one of {ADJACENCIES}, got {adjacency!r}.")
    if given == wanted:
        return event
    if given == "replace-one":
        raise ValueError(
            "A guarantee under 'replace-one' says nothing about adding or removing a record, since "
            "the number of records may be public. Fit with adjacency='add-remove', or give the "
            "budget adjacency='replace-one'."
        )
    converted = _of_two(event)
    return converted if converted is not None else _by_groups(event, epsilon, delta)


def _of_two(event: Event) -> Event | None:
    """Convert leaf by leaf; None if some leaf needs a stated guarantee."""
    if isinstance(event, RepeatedEvent):
        inner = _of_two(event.event)
        return None if inner is None else RepeatedEvent(inner, event.count)
    if isinstance(event, ComposedEvent):
        parts = [_of_two(part) for part in event.events]
        known = [part for part in parts if part is not None]
        return ComposedEvent(tuple(known)) if len(known) == len(parts) else None
    if isinstance(event, _NOISE):
        return of_two_records(event)
    if isinstance(event, PoissonSampledEvent):
        return event if PLDAccountant("replace-one").supports(event) else None
    if isinstance(event, LastIterateEvent) and not isinstance(event.step, UniformSampledEvent):
        step = _of_two(event.step)
        return None if step is None else replace(event, step=step)
    if isinstance(event, PureDPEvent):
        return PureDPEvent(decimal_up(2 * typed(event.epsilon)))
    if isinstance(event, ApproxDPEvent):
        return _group_of_two(typed(event.epsilon), typed(event.delta))
    return None


def _by_groups(event: Event, epsilon: float | None, delta: float | None) -> Event:
    """Convert a guarantee of the whole event."""
    try:
        pair = pair_of(Charge(event, epsilon, delta), "add-remove")
    except UnsupportedEventError as error:
        raise ValueError(
            f"{event!r} cannot be converted from 'add-remove' to 'replace-one': no guarantee of it "
            "is known under the former. Fit with adjacency='replace-one'."
        ) from error
    return _group_of_two(*pair)


def _group_of_two(epsilon: Fraction, delta: Fraction) -> Event:
    """Return what a guarantee for neighbours means for two steps between them."""
    if delta == 0:
        return PureDPEvent(decimal_up(2 * epsilon))
    try:
        factor = (1.0 + math.exp(decimal_up(epsilon))) * (1.0 + 1e-12)
    except OverflowError:
        factor = math.inf
    failure = 1.0 if factor * float(delta) >= 1.0 else decimal_up(delta * Fraction(factor))
    return ApproxDPEvent(decimal_up(2 * epsilon), min(failure, 1.0))
