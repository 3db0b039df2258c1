"""How well a score tells members from others: rates of one model, each with its interval.

Intervals hold for rows drawn with or without replacement (``docs/proofs/membership.md``,
Theorem 3).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import RandomState

from skdp.audit.bounds import Array, rate_interval, rate_upper

Interval = tuple[float, float]


def level(failure: float) -> float:
    """Return the level at which a binomial bound keeps `failure` without replacement as well."""
    return -math.expm1(-failure)


def advantage(
    members: Array, others: Array, failure: float, rng: RandomState
) -> tuple[float, Interval]:
    """Count true minus false positives on half the rows, at the threshold best on the others."""
    tables = [np.array_split(rng.permutation(scores), 2) for scores in (members, others)]
    candidates = np.unique(np.concatenate([known for known, _ in tables]))
    true, false = (
        1.0 - np.searchsorted(np.sort(known), candidates, side="right") / known.size
        for known, _ in tables
    )
    threshold = candidates[np.argmax(true - false)]
    counts = [(int((tested > threshold).sum()), tested.size) for _, tested in tables]
    hits, alarms = (count / size for count, size in counts)
    hit, alarm = (rate_interval(*count, 2.0 * level(0.25 * failure)) for count in counts)
    return hits - alarms, (hit[0] - alarm[1], hit[1] - alarm[0])


def tpr_at(fpr: float, members: Array, others: Array, failure: float) -> tuple[float, Interval]:
    """Return the true-positive rate at a false-positive rate, and an interval for it."""
    share, size = level(0.25 * failure), others.size
    ranked, above = np.sort(others)[::-1], np.arange(size)
    rank = int(fpr * (size + 1))  # a further row is above the threshold as often as `fpr`, at most
    estimate = float((members > ranked[rank - 1]).mean()) if rank else 0.0
    lower, upper = 0.0, 1.0
    # Thresholds with so few of the others above them have a rate of at most `fpr`, surely;
    proved = int((rate_upper(above, size, share) <= fpr).sum())
    if proved:
        missed = int((members <= ranked[proved - 1]).sum())
        lower = 1.0 - float(rate_upper(missed, members.size, share))
    # and with so many at them or above, a larger one.
    exceeded = 1.0 - rate_upper(size - above - 1, size, share) > fpr
    if exceeded.any():
        reached = int((members >= ranked[np.argmax(exceeded)]).sum())
        upper = float(rate_upper(reached, members.size, share))
    return estimate, (max(lower, 0.0), upper)
