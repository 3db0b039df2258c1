"""Claims that are too small for what they are about: certified lower bounds disprove them."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skdp.accounting.accountants.pld import PLDAccountant
from skdp.accounting.certified import certified_epsilon
from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.pld.composed_bounds import delta_bounds
from skdp.accounting.pld.directions import Direction, is_supported, plan_of
from skdp.choices import Adjacency

# What sums of floats may lose in their last places.
_ROUNDING = 1.0 + 1e-9
_RTOL = 1e-3  # how closely delta is looked at


def refuse_disproved(event: Event, adjacency: Adjacency, epsilon: float, delta: float) -> None:
    """Refuse an (epsilon, delta) that an event is certified to exceed under a relation.

    Parts of which only upper bounds are known refuse nothing, and hide no others.
    """
    epsilon, delta = float(epsilon), float(delta)
    if not (epsilon >= 0.0 and delta >= 0.0):
        raise ValueError(f"epsilon and delta must be >= 0, got {epsilon!r} and {delta!r}.")
    if delta >= 1.0 or _may_be(event, adjacency, epsilon * _ROUNDING, delta):
        return
    accountant = PLDAccountant(adjacency)
    for leaf, count in _told(event, adjacency).items():
        accountant.compose(leaf, count)
    least = accountant.epsilon(delta).lower
    raise ValueError(
        f"epsilon={epsilon:.6g} is no guarantee of its event at delta={delta:.3g}: under "
        f"{adjacency!r} that costs {max(least, epsilon):.6g} or more. State a pair that the event "
        "has, as accountants return it."
    )


def _told(event: Event, adjacency: Adjacency) -> dict[Event, int]:
    """Return the leaves whose cost has lower bounds: what is released beside them lowers none."""
    found = {}
    for leaf, count in leaf_counts(event).items():
        plan = plan_of({leaf: 1}, adjacency) if is_supported(leaf, adjacency) else None
        if plan is not None and plan.attained:
            found[leaf] = count
    return found


@lru_cache(maxsize=4096)
def _may_be(event: Event, adjacency: Adjacency, epsilon: float, delta: float) -> bool:
    """Tell whether nothing speaks against a claim; fits have priced their event a moment ago."""
    least_epsilon = certified_epsilon(leaf_counts(event), adjacency, delta)
    if least_epsilon is not None:
        return least_epsilon <= epsilon
    plan = plan_of(_told(event, adjacency), adjacency)
    if plan is None or math.isinf(epsilon):
        return True
    if delta == 0.0 and any(map(_is_endless, plan.directions)):  # a tail below all floats
        return False
    try:
        with np.errstate(all="ignore"):
            bounds = [delta_bounds(*pair, epsilon, _RTOL)[0] for pair in plan.directions]
    except ArithmeticError:  # numbers leave the range of floats, and nothing is certified
        return True
    return not any(least > delta * _ROUNDING for least in bounds)


def _is_endless(direction: Direction) -> bool:
    """Tell whether losses have no largest, so that no epsilon is enough without a delta."""
    return direction.mu > 0.0 or any(pair.largest_loss == math.inf for pair, _ in direction.pairs)
