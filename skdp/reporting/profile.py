"""Points of the privacy curve of everything private inside a fitted object."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.numerics.trade_off import LARGEST_EPSILON, profile_grid
from skdp.reporting._examine import distinct_records, examine
from skdp.reporting._total import joint_accountant, total_of
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.sklearn_bases import last_step


class Profile(NamedTuple):
    """What is claimed: upper bounds on delta at some epsilons, and between which neighbours."""

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]
    adjacency: str


def profile_of(fitted: Any) -> Profile | None:
    """Return what a fitted object guarantees as a whole; None if nothing, as where a part leaks."""
    findings = examine(fitted)
    records = distinct_records(findings)
    if not records or any(finding.kind == "leaking" for finding in findings):
        return None
    total = total_of(records, 1)
    if total is None:
        return None
    # The first says nothing, and holds where nothing else does.
    points = [(0.0, 1.0), (total.epsilon, total.delta)]
    joint = joint_accountant(records)
    if joint is not None:
        grid = profile_grid(joint.epsilon)
        points += [(float(epsilon), float(joint.delta(float(epsilon)))) for epsilon in grid]
    points = sorted(point for point in points if point[0] <= LARGEST_EPSILON)
    epsilons, deltas = np.array(points).T
    return Profile(epsilons, deltas, total.adjacency)


def spending_of(estimator: Any) -> tuple[Any, PrivacySpent]:
    """Return the last step of a pipeline, or the estimator itself, and what it spent."""
    final = last_step(estimator)
    spent = getattr(final, "privacy_spent_", None)
    if not isinstance(spent, PrivacySpent):
        raise TypeError(
            f"{type(final).__name__} has no privacy_spent_. Give a fitted private estimator, or a "
            "pipeline that ends in one; of a search, its best_estimator_, whose record covers the "
            "last fit alone."
        )
    return final, spent
