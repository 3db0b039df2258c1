"""The guarantee of several private fits on the same rows, and points of its curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.accounting import Accountant, Event, PLDAccountant, group_epsilon, group_privacy
from skdp.accounting.accountants import resolve_accountant
from skdp.accounting.numerics.trade_off import LARGEST_EPSILON, profile_grid
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.scikit_learn import last_step
from skdp.exceptions import UnsupportedEventError
from skdp.reporting._examine import distinct_records, examine

_CURVE_DELTAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)


class Total(NamedTuple):
    """Joint guarantee of private fits."""

    epsilon: float
    delta: float
    adjacency: str
    accountant: str
    events: tuple[Event, ...]
    curve: tuple[tuple[float, float], ...]
    of_a_group: tuple[float, float]
    unit: str  # "row" or "group", as in the records; "both" if they differ
    proved: float | None = None  # the accountant's epsilon at delta, if one composes all events


def total_of(records: Sequence[PrivacySpent], group_size: int | None) -> Total | None:
    """Compose the records of fits on the same rows, fixed as one plan before the first fit."""
    # The lesser of joint accounting and of sums; None if adjacency relations differ. `group_size`
    # is the most rows of one unit for records that protect rows; None is 1 if all of them do.
    adjacency, unit = records[0].adjacency, records[0].unit
    units = {record.unit for record in records}
    if any(record.adjacency != adjacency for record in records) or "mixed" in units:
        return None
    if len(units) > 1:
        return None if group_size is None else _total_of_both(records, group_size)
    group_size = 1 if unit == "group" or group_size is None else group_size
    events = tuple(record.event for record in records)
    epsilon = math.fsum(record.epsilon for record in records)
    delta = math.fsum(record.delta for record in records)
    joint = joint_accountant(records)
    if joint is None:
        group = group_privacy(epsilon, delta, group_size)
        alone, name = ((delta, epsilon),), "basic composition"
        return Total(epsilon, delta, adjacency, name, events, alone, group, unit)
    proved = min(epsilon, float(joint.epsilon(delta)))
    if len(records) > 1:  # a single fit has the guarantee that was requested and charged
        epsilon = proved
    curve = tuple(
        (d, epsilon if d == delta else _at_most(joint, d, epsilon, delta)) for d in _deltas(delta)
    )
    group = (float(group_epsilon(joint, delta, group_size)), delta)
    return Total(epsilon, delta, adjacency, joint.name, events, curve, group, unit, proved)


def _total_of_both(records: Sequence[PrivacySpent], group_size: int) -> Total | None:
    """Add the guarantee of fits by unit and the group privacy of fits by row."""
    units, rows = (
        total_of([record for record in records if record.unit == unit], group_size)
        for unit in ("group", "row")
    )
    assert units is not None and rows is not None  # the records of each share one adjacency
    epsilon, delta = (one + other for one, other in zip(units[:2], rows.of_a_group, strict=True))
    return Total(
        epsilon,
        delta,
        units.adjacency,
        f"basic composition of {units.accountant} and, for groups of rows, {rows.accountant}",
        units.events + rows.events,
        ((delta, epsilon),),
        (epsilon, delta),
        "both",
    )


def joint_accountant(records: Sequence[PrivacySpent]) -> Accountant | None:
    """Return an accountant with all events, or None if none supports them."""
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
    if not delta > 0.0:
        return [0.0]
    # A sum of deltas that prints like a point of the curve replaces it.
    return sorted({f"{each:.3g}": each for each in (*_CURVE_DELTAS, delta)}.values(), reverse=True)


class Profile(NamedTuple):
    """Claimed guarantee: upper bounds on delta at some epsilons, with the adjacency."""

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]
    adjacency: str


def profile_of(fitted: Any) -> Profile | None:
    """Return the guarantee of a complete fitted object, or None, for example if a part leaks."""
    findings = examine(fitted)
    records = distinct_records(findings)
    if not records or any(finding.kind == "leaking" for finding in findings):
        return None
    total = total_of(records, 1)
    if total is None:
        return None
    # The first is always valid.
    points = [(0.0, 1.0), (total.epsilon, total.delta)]
    joint = joint_accountant(records)
    if joint is not None:
        grid = profile_grid(joint.epsilon)
        points += [(float(epsilon), float(joint.delta(float(epsilon)))) for epsilon in grid]
    points = sorted(point for point in points if point[0] <= LARGEST_EPSILON)
    epsilons, deltas = np.array(points).T
    return Profile(epsilons, deltas, total.adjacency)


def spending_of(estimator: Any) -> tuple[Any, PrivacySpent]:
    """Return the last step of a pipeline, or the estimator itself, and its record."""
    final = last_step(estimator)
    spent = getattr(final, "privacy_spent_", None)
    if not isinstance(spent, PrivacySpent):
        raise TypeError(
            f"{type(final).__name__} has no privacy_spent_. Pass a fitted private estimator, or a "
            "pipeline that ends in one. For a search, pass best_estimator_; its record covers only "
            "the last fit."
        )
    return final, spent
