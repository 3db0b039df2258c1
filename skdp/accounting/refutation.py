"""Claims that are too small for what they are about: certified lower bounds disprove them."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skdp.accounting.accountants.pld import PLDAccountant
from skdp.accounting.certified import certified_epsilon
from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.pld.composed_bounds import delta_bounds
from skdp.accounting.pld.directions import is_supported, plan_of
from skdp.choices import Adjacency

# What sums of floats may lose in their last places.
_ROUNDING = 1.0 + 1e-9
_RTOL = 1e-3  # how closely delta is looked at


def refuse_disproved(event: Event, adjacency: Adjacency, epsilon: float, delta: float) -> None:
    """Refuse an (epsilon, delta) that an event is certified to exceed under a relation.

    Of events of which only upper bounds are known nothing is refused.
    """
    epsilon, delta = float(epsilon), float(delta)
    if not (epsilon >= 0.0 and delta >= 0.0):
        raise ValueError(f"epsilon and delta must be >= 0, got {epsilon!r} and {delta!r}.")
    if delta >= 1.0 or _may_be(event, adjacency, epsilon * _ROUNDING, delta):
        return
    least = PLDAccountant(adjacency).compose(event).epsilon(delta).lower
    raise ValueError(
        f"epsilon={epsilon:.6g} is no guarantee of its event at delta={delta:.3g}: under "
        f"{adjacency!r} that costs {max(least, epsilon):.6g} or more. State a pair that the event "
        "has, as accountants return it."
    )


@lru_cache(maxsize=4096)
def _may_be(event: Event, adjacency: Adjacency, epsilon: float, delta: float) -> bool:
    """Tell whether nothing speaks against a claim; fits have priced their event a moment ago."""
    counts = leaf_counts(event)
    least_epsilon = certified_epsilon(counts, adjacency, delta)
    if least_epsilon is not None:
        return least_epsilon <= epsilon
    plan = plan_of(counts, adjacency) if is_supported(event, adjacency) else None
    if plan is None or not plan.attained or math.isinf(epsilon):
        return True
    try:
        with np.errstate(all="ignore"):
            bounds = [delta_bounds(*pair, epsilon, _RTOL)[0] for pair in plan.directions]
    except ArithmeticError:  # numbers leave the range of floats, and nothing is certified
        return True
    return not any(least > delta * _ROUNDING for least in bounds)
