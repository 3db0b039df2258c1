"""Runs of which only the last iterate is seen, put as releases that dominate them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from skdp.accounting import ComposedEvent, Event, PLDAccountant, RepeatedEvent
from skdp.accounting.analysis import analysis_of
from skdp.accounting.events import leaf_counts
from skdp.choices import Adjacency

_FACTORS = (2.0, 1.4, 1.2)  # between neighbouring windows, in the order in which they are tried
_RTOL = 1e-2


def replace_runs(event: Event, adjacency: Adjacency, delta: float) -> tuple[Event, float]:
    """Replace runs on sampled batches by what dominates them."""
    counts = leaf_counts(event)
    runs = [leaf for leaf in counts if _is_sampled_run(leaf, adjacency)]
    if not runs:
        return event, 0.0
    parts: list[Event] = []
    failure = 0.0
    for leaf, count in counts.items():
        if leaf in runs:
            leaf, failing = _dominating(leaf, adjacency, delta)
            failure += count * failing
        parts.append(RepeatedEvent(leaf, count))
    return ComposedEvent(tuple(parts)), failure * (1.0 + 1e-12)


def _is_sampled_run(leaf: Event, adjacency: Adjacency) -> bool:
    card = analysis_of(leaf, adjacency)
    domination = card.dominated_by()
    if domination is None or card.mu() is not None:
        return False
    return PLDAccountant(adjacency).supports(domination.event)


@lru_cache(maxsize=256)
def _dominating(leaf: Event, adjacency: Adjacency, delta: float) -> tuple[Event, float]:
    """Return all steps, or the last ones with a share of the noise, whichever is cheaper."""

    def cost(event: Event, failing: float) -> float:
        left = delta - failing
        return (
            PLDAccountant(adjacency, rtol=_RTOL).compose(event).epsilon(left)
            if left > 0.0
            else math.inf
        )

    domination = analysis_of(leaf, adjacency).dominated_by()
    assert domination is not None
    run = domination.windows
    if run is None:
        return domination.event, 0.0
    windows = run.candidates(delta=delta)
    known = {window: cost(run.event(window), run.failure) for window in windows}
    for factor in _FACTORS:
        while known:
            best = _best(known)
            moves = [move for move in run.neighbours(best, factor) if move not in known]
            known |= {move: cost(run.event(move), run.failure) for move in moves}
            if _best(known) == best:
                break
    if known and known[_best(known)] < cost(domination.event, 0.0):
        return run.event(_best(known)), run.failure
    return domination.event, 0.0


def _best(known: dict[Any, float]) -> Any:
    return min(known, key=known.__getitem__)
