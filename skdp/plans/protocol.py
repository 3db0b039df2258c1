"""Facts that estimators and audits require of a plan, and plans with several releases.

The data of a fit may depend on another release if its plan does not, and conversely: :ref:`Lemma 3
of sensitivities <sensitivities-lemma-3>`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from skdp.accounting import ComposedEvent, Event, GaussianEvent, ObjectivePerturbationEvent
from skdp.accounting.accountants import resolve_accountant
from skdp.mechanisms.contribution import ROUND_UP, Adjacency
from skdp.mechanisms.release import Release


class Plan(Protocol):
    """Facts of a plan. None has a default, so that a plan that omits one is refused."""

    adjacency: Adjacency
    lots: Any  # how the rows of each step are chosen; None: each release is of all rows
    last_iterate_only: bool  # whether the event relies on earlier iterates staying hidden
    grid: float  # spacing of the values that noise takes; 0 for noise on all numbers

    @property
    def event(self) -> Event:
        """The releases of the fit, for the accountants."""


Releases = tuple[Release, ...]


class OnAllRows:
    """Facts of plans whose releases all read all rows and are all paid for."""

    before: Releases = ()
    after: Releases = ()
    lots = None
    last_iterate_only = False


# Where the search begins, and the part of the accountant's bound that may be left unused.
_FIRST_SHARE, _UNUSED = 0.97, 1e-3
_TRIALS, _LEAST_SHARE = 12, 0.05


@dataclass(frozen=True, kw_only=True)
class FitPlan(ABC):
    """Base of plans that may share a fit with other releases, made before and after their own.

    An earlier release has a method `weigh`, which returns records. A later one has `tell`, which
    returns the published values.
    """

    before: Releases = ()
    after: Releases = ()

    @property
    @abstractmethod
    def own_event(self) -> Event:
        """The plan's own releases, for the accountants."""

    @property
    def accountant(self) -> str:
        """Name of the accountant that bounds the event."""
        return "pld"

    def named(self, label: str) -> Release | None:
        """Return the release with a label that was added to the plan's own."""
        found = [release for release in (*self.before, *self.after) if release.label == label]
        if len(found) > 1:
            raise ValueError(f"{label!r} names {len(found)} releases of one plan.")
        return found[0] if found else None

    @property
    def event(self) -> Event:
        """All releases of the fit, for the accountants."""
        event = self.own_event
        before, after = (
            tuple(release.event for release in releases) for releases in (self.before, self.after)
        )
        if after:
            event = _behind_minimiser(event, after) or ComposedEvent((event, *after))
        if not before:
            return event
        if isinstance(event, ObjectivePerturbationEvent) and event.outputs > 1:
            return ComposedEvent((*before, event))
        # For one output Theorem 6 there takes products, in which the order is no matter.
        return _behind_minimiser(event, before) or ComposedEvent((*before, event))


def _behind_minimiser(event: Event, others: tuple[Event, ...]) -> Event | None:
    """Return the event with Gaussian releases merged into an exact minimiser's final noise.

    Together they are one Gaussian release; None if there is no minimiser, or other noise.
    """
    gaussian = [other for other in others if isinstance(other, GaussianEvent)]
    if not isinstance(event, ObjectivePerturbationEvent) or len(gaussian) < len(others):
        return None
    multipliers = (other.noise_multiplier for other in gaussian)
    spread = math.hypot(event.approximation, *(1.0 / z for z in multipliers)) * ROUND_UP
    return replace(event, approximation=spread)


def leave_room(
    build: Callable[[Any], Any], numbers: Any, *, before: Releases = (), after: Releases = ()
) -> Any:
    """Return a plan for less than the target of the public numbers, met with other releases.

    The plan may contain others already, which come closer to its own.
    """
    target, found = numbers.target_epsilon, None
    left = _FIRST_SHARE * target
    for _ in range(_TRIALS):
        if left < _LEAST_SHARE * target:
            break
        plan = build(replace(numbers, epsilon=left))
        plan = replace(plan, before=(*before, *plan.before), after=(*plan.after, *after))
        spent = cost(plan, numbers.delta)
        if spent <= target:
            found = plan
            if spent >= (1.0 - _UNUSED) * target:
                break
        left = max(left + (1.0 - 0.3 * _UNUSED) * target - spent, 0.5 * left)
    if found is None:
        raise ValueError(
            f"No noise was found for epsilon={target:g} together with the table of calibrate= "
            "or the count of prevalence='private'. Leave these out."
        )
    return found


def cost(plan: Any, delta: float) -> float:
    """Return an upper bound on the epsilon of all releases of a plan."""
    event = plan.event
    if not isinstance(event, ObjectivePerturbationEvent):
        accountant = resolve_accountant(plan.accountant)(adjacency=plan.adjacency)
        return float(accountant.compose(event).epsilon(delta))
    # The profile answers at once for one release. Doubles have no more than 2,100 powers of 2.
    low, high = 0.0, 1.0
    while event.profile_bound(high, plan.adjacency) > delta:
        low, high = high, 2.0 * high
    while high - low > 1e-5 * high:
        middle = 0.5 * (low + high)
        kept = event.profile_bound(middle, plan.adjacency) <= delta
        low, high = (low, middle) if kept else (middle, high)
    return high
