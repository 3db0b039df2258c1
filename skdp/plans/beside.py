"""A fit with more releases: all together meet the target, and are charged as one event.

What is fitted may depend on what another release has shown, if its plan does not, and the other
way round: product pairs dominate adaptive compositions (Theorem 2 of
``docs/proofs/class_weights.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from skdp.accounting import ComposedEvent, Event, GaussianEvent, ObjectivePerturbationEvent
from skdp.accounting.accountants.registry import resolve_accountant
from skdp.mechanisms.contribution import ROUND_UP
from skdp.plans.defaults import PublicNumbers

# Where the search begins, and the part of the accountant's bound that may be left unused.
_FIRST_SHARE, _UNUSED = 0.97, 1e-3
_TRIALS, _LEAST_SHARE = 12, 0.05


def leave_room(
    build: Callable[[PublicNumbers], Any], numbers: PublicNumbers, others: Sequence[Event] = ()
) -> Any:
    """Return a plan for less than the target, which it meets beside other releases.

    Its own event may be of more than one release, too.
    """
    target, found = numbers.target_epsilon, None
    left = _FIRST_SHARE * target
    for _ in range(_TRIALS):
        if left < _LEAST_SHARE * target:
            break
        plan = build(replace(numbers, epsilon=left))
        spent = cost(plan, numbers.delta, others)
        if spent <= target:
            found = plan
            if spent >= (1.0 - _UNUSED) * target:
                break
        left = max(left + (1.0 - 0.3 * _UNUSED) * target - spent, 0.5 * left)
    if found is None:
        raise ValueError(
            f"No noise was found with which the fit spends epsilon={target:g} beside the table of "
            "calibrate=, or the count of prevalence='private': leave these out."
        )
    return found


def cost(plan: Any, delta: float, others: Sequence[Event] = ()) -> float:
    """Return an upper bound on the epsilon of a plan's event and of others beside it."""
    event = together(plan.event, others)
    if not isinstance(event, ObjectivePerturbationEvent):
        accountant = resolve_accountant(accountant_of(plan))(adjacency=plan.adjacency)
        return float(accountant.compose(event).epsilon(delta))
    # Of one release the profile says it, at once. Doubles have no more than 2,100 powers of 2.
    low, high = 0.0, 1.0
    while event.profile_bound(high, plan.adjacency) > delta:
        low, high = high, 2.0 * high
    while high - low > 1e-5 * high:
        middle = 0.5 * (low + high)
        kept = event.profile_bound(middle, plan.adjacency) <= delta
        low, high = (low, middle) if kept else (middle, high)
    return high


def accountant_of(plan: Any) -> str:
    """Return the name of the accountant for a plan with other releases."""
    return str(getattr(plan, "accountant", "pld"))


def together(event: Event, others: Sequence[Event]) -> Event:
    """Return the event of a plan and of the releases beside it."""
    if not others:
        return event
    if isinstance(event, ObjectivePerturbationEvent) and event.outputs == 1:
        gaussian = [o.noise_multiplier for o in others if isinstance(o, GaussianEvent)]
        if len(gaussian) == len(others):
            # As a table does: Theorem 6 there takes products, in which the order is no matter.
            spread = math.hypot(event.approximation, *(1.0 / z for z in gaussian)) * ROUND_UP
            return replace(event, approximation=spread)
    return ComposedEvent((*others, event))
