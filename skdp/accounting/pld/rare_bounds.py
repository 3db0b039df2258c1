"""Two-sided bounds with the largest losses of single releases set apart (`rare_losses`).

The rest goes on a grid if the releases are few, and its transform is inverted if they are many.
"""

from __future__ import annotations

import math

from skdp.accounting.intervals import Interval, is_narrow, meet
from skdp.accounting.pld.parted_plans import Parted, PartedPlan
from skdp.accounting.pld.rare_losses import Pairs

_USED = 0.7  # of the relative distance aimed at
_FIRST_SHARE = 0.1
_SMALLEST_EPSILON = 1e-9
_LARGEST_EPSILON = 600.0
_ROUNDS = 8
_HALVINGS = 50
_STEPS = 12
_CLOSE = 0.05  # nats of log epsilon, at which another level would be no better
_LARGEST_STEP = 0.3  # of log epsilon


def rare_delta(pairs: Pairs, mu: float, epsilon: float, rtol: float) -> Interval:
    """Bound the profile at one epsilon.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    mu : float
        Total shift of unsampled Gaussian releases.
    epsilon : float
        Privacy parameter in nats, at least 0.
    rtol : float
        Relative gap aimed at.

    Returns
    -------
    tuple of float
        Lower and upper bound on delta; 0 and 1 where the method does not apply.
    """
    plan = PartedPlan(pairs, mu)
    if not (plan.suits and 0.0 < epsilon < _LARGEST_EPSILON):
        return 0.0, 1.0
    parted = plan.parted(epsilon, _USED * rtol)
    return (0.0, 1.0) if parted is None else parted.bounds(epsilon)


def rare_epsilon(pairs: Pairs, mu: float, delta: float, rtol: float, known: Interval) -> Interval:
    """Bound the smallest epsilon at one delta.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    mu : float
        Total shift of unsampled Gaussian releases.
    delta : float
        Target probability, positive.
    rtol : float
        Relative gap aimed at.
    known : tuple of float
        Bounds from elsewhere.

    Returns
    -------
    tuple of float
        Lower and upper bound on epsilon; those known where the method does not apply.
    """
    best = known
    plan = PartedPlan(pairs, mu)
    if not plan.suits:
        return best
    epsilon, share = _first_epsilon(plan, delta, known), _FIRST_SHARE
    for _ in range(_ROUNDS):
        if not 0.0 < epsilon < _LARGEST_EPSILON:
            break
        parted = plan.parted(epsilon, share)
        if parted is None:
            break
        root, slope = _root(parted, epsilon, delta)
        before, best = best, meet(best, _ends(parted, root, slope, delta))
        if is_narrow(best, rtol):
            break
        needed = _USED * rtol * slope
        if abs(math.log(root / epsilon)) < _CLOSE:
            if share < _FIRST_SHARE and best[1] - best[0] > 0.7 * (before[1] - before[0]):
                break  # something else is in the way
            needed = min(needed, 0.3 * share)
        share = min(needed, _FIRST_SHARE)
        epsilon = root
    return best


def _first_epsilon(plan: PartedPlan, delta: float, known: Interval) -> float:
    """Return where the profiles of single releases add up to delta."""
    low, high = max(known[0], _SMALLEST_EPSILON), min(known[1], _LARGEST_EPSILON)
    if high <= 1.5 * low:
        return math.sqrt(low * high)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if plan.single(middle) > delta:
            low = middle
        else:
            high = middle
        if high < 1.0001 * low:
            break
    return high


def _root(parted: Parted, epsilon: float, delta: float) -> tuple[float, float]:
    """Return where the middle of the bounds meets delta, and how steeply log delta falls there."""
    x, slope = epsilon, 1.0
    for _ in range(_STEPS):
        height = math.log(parted.middle(x) / delta)
        ratio = parted.middle(x * 0.999) / parted.middle(x * 1.001)
        slope = max(math.log(ratio) / 0.002, 1e-6)
        step = max(min(height / slope, _LARGEST_STEP), -_LARGEST_STEP)
        moved = min(max(x * math.exp(step), 0.5 * epsilon), 1.5 * epsilon, _LARGEST_EPSILON)
        if abs(moved - x) < 1e-10 * x:
            break
        x = moved
    return x, slope


def _ends(parted: Parted, root: float, slope: float, delta: float) -> Interval:
    """Return epsilons near the root at which the bounds are on the safe side."""
    lower, upper = 0.0, math.inf
    at = parted.bounds(root)
    first = 0.3 * max((at[1] - at[0]) / delta / slope, 1e-13)
    for attempt in range(_STEPS):
        x = root * (1.0 + first * 1.5**attempt)
        if parted.bounds(x)[1] <= delta:
            upper = x
            break
    for attempt in range(_STEPS):
        x = root * (1.0 - first * 1.5**attempt)
        if x <= 0.0:
            break
        if parted.bounds(x)[0] > delta:
            lower = x
            break
    return lower, upper
