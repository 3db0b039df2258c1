"""Lower bounds that were certified a moment ago, to check claims by; no accountant reads them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from skdp.accounting.events import Event
from skdp.accounting.intervals import Interval, is_narrow
from skdp.choices import Adjacency

_NARROW = 1e-3  # relative width of intervals whose lower bounds are kept


def note_certified(
    counts: Mapping[Event, int], adjacency: Adjacency, delta: float, epsilon: Interval
) -> None:
    """Keep the lower bound of a close interval for the epsilon of leaves."""
    if 0.0 < epsilon[0] <= epsilon[1] and is_narrow(epsilon, _NARROW):
        _cell(frozenset(counts.items()), adjacency, delta)[:] = [epsilon[0]]


def certified_epsilon(
    counts: Mapping[Event, int], adjacency: Adjacency, delta: float
) -> float | None:
    """Return what was kept of leaves, if anything."""
    kept = _cell(frozenset(counts.items()), adjacency, delta)
    return kept[0] if kept else None


@lru_cache(maxsize=512)
def _cell(leaves: frozenset[tuple[Event, int]], adjacency: Adjacency, delta: float) -> list[float]:
    return []
