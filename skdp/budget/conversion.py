"""Sound conversions of what was run: to another adjacency, and to a Gaussian guarantee."""

from __future__ import annotations

from skdp.accounting import ApproxDPEvent, Event
from skdp.accounting.analysis import of_two
from skdp.accounting.numerics.floats import decimal_up
from skdp.budget.currencies.base import Charge
from skdp.budget.currencies.pairs import pair_of
from skdp.exceptions import UnsupportedEventError
from skdp.mechanisms.contribution import ADJACENCIES


def convert_adjacency(
    event: Event,
    given: str,
    wanted: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Event:
    """Return an event that says under one adjacency what another says under the other."""
    # Replacing a record is removing one and adding another, so that what is known of single steps
    # bounds two of them: noise counts half, and a guarantee is doubled as for groups of two.
    # Sampled releases stay as they are: their noise refers to single records, and accountants know
    # their pairs under both relations.
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
    converted = of_two(event)
    return converted if converted is not None else _by_groups(event, epsilon, delta)


def _by_groups(event: Event, epsilon: float | None, delta: float | None) -> Event:
    """Convert a guarantee of the whole event."""
    try:
        pair = pair_of(Charge(event, epsilon, delta), "add-remove")
    except UnsupportedEventError as error:
        raise ValueError(
            f"{event!r} cannot be converted from 'add-remove' to 'replace-one': no guarantee of it "
            "is known under the former. Fit with adjacency='replace-one'."
        ) from error
    group = of_two(ApproxDPEvent(decimal_up(pair[0]), decimal_up(pair[1])))
    assert group is not None
    return group
