"""Runs of which only the last iterate is seen, put as releases that dominate them."""

from __future__ import annotations

import math
from functools import lru_cache

from skdp.accounting import ComposedEvent, Event, PLDAccountant, RepeatedEvent
from skdp.accounting.accountants.hidden_state import best_window
from skdp.accounting.analysis import analysis_of
from skdp.accounting.events import leaf_counts
from skdp.choices import Adjacency

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
    domination = analysis_of(leaf, adjacency).dominated_by()
    assert domination is not None
    run = domination.windows
    if run is None:
        return domination.event, 0.0

    def cost(event: Event, failing: float) -> float:
        left = delta - failing
        accountant = PLDAccountant(adjacency, rtol=_RTOL).compose(event)
        return accountant.epsilon(left) if left > 0.0 else math.inf

    window, _ = best_window(
        run,
        run.candidates(delta=delta),
        lambda window: cost(run.event(window), run.failure),
        cost(domination.event, 0.0),
    )
    return (domination.event, 0.0) if window is None else (run.event(window), run.failure)
