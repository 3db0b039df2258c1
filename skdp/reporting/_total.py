"""The guarantee of several private fits on the same rows, run as one plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from skdp.accounting import Accountant, Event, PLDAccountant, group_epsilon, group_privacy
from skdp.accounting.accountants.registry import resolve_accountant
from skdp.exceptions import UnsupportedEventError
from skdp.reporting.privacy_spent import PrivacySpent

_CURVE_DELTAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)


class Total(NamedTuple):
    """What private fits amount to together."""

    epsilon: float
    delta: float
    adjacency: str
    accountant: str
    events: tuple[Event, ...]
    curve: tuple[tuple[float, float], ...]
    of_a_group: tuple[float, float]
    unit: str  # "row" or "group", as of the records


def total_of(records: Sequence[PrivacySpent], group_size: int) -> Total | None:
    """Compose the records of fits on the same rows, fixed as one plan before the first ran.

    The lesser of joint accounting and of sums; None if the fits' relations or units differ.
    `group_size` is the number of rows of one unit, where the records are for one row.
    """
    adjacency, unit = records[0].adjacency, records[0].unit
    if any((record.adjacency, record.unit) != (adjacency, unit) for record in records):
        return None
    if unit == "group":
        group_size = 1
    events = tuple(record.event for record in records)
    epsilon = math.fsum(record.epsilon for record in records)
    delta = math.fsum(record.delta for record in records)
    joint = joint_accountant(records)
    if joint is None:
        group = group_privacy(epsilon, delta, group_size)
        curve: tuple[tuple[float, float], ...] = ((delta, epsilon),)
        return Total(epsilon, delta, adjacency, "basic composition", events, curve, group, unit)
    epsilon = min(epsilon, float(joint.epsilon(delta)))
    points = tuple((d, _at_most(joint, d, epsilon, delta)) for d in _deltas(delta))
    group = (float(group_epsilon(joint, delta, group_size)), delta)
    return Total(epsilon, delta, adjacency, joint.name, events, points, group, unit)


def joint_accountant(records: Sequence[PrivacySpent]) -> Accountant | None:
    """Return an accountant that holds all events, None if none is known to."""
    adjacency = records[0].adjacency
    if len(records) == 1:
        joint = resolve_accountant(records[0].accountant)(adjacency=adjacency)
    else:
        joint = PLDAccountant(adjacency=adjacency)
    try:
        for record in records:
            joint.compose(record.event)
    except UnsupportedEventError:
        return None
    return joint


def _at_most(joint: Accountant, delta: float, epsilon: float, at_delta: float) -> float:
    found = float(joint.epsilon(delta))
    return min(found, epsilon) if delta >= at_delta else found


def _deltas(delta: float) -> list[float]:
    return sorted({delta, *_CURVE_DELTAS}, reverse=True) if delta > 0.0 else [0.0]
