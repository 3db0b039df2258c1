"""Two-sided bounds on epsilon and delta by inversion, with as much smoothing as they allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from skdp.accounting.intervals import Interval, is_narrow, meet
from skdp.accounting.pld.inversion import Inversion
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.gaussian import GaussianMixturePair
from skdp.accounting.pld.transforms.composed import ComposedLoss, Saddle, find_saddle

_ROUNDS = 6
_LARGEST_DESCENT = 12
_SHARES = (0.003, 0.3)  # of the allowed gap that the smoothing is meant to use
_MANY = 1500  # frequencies, beyond which more smoothing is preferred
_NEGLECTED = 0.01  # of the allowed gap that aliases and the sum's tail may use
_SMALLEST_EPSILON = 1e-7  # below which a relative gap is not aimed at
_LARGEST_EPSILON = 1e4  # above which this method is not tried
_NEWTON_STEPS = 60
_SMALLEST_DELTA = 1e-300
_SMALLEST_SLOPE = 1e-300

Pairs = Sequence[tuple[Pair, int]]


def invert_delta(
    pairs: Pairs, mu: float, epsilon: float, rtol: float, known: float = 1.0
) -> Interval:
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
    known : float, default=1.0
        A bound on delta from elsewhere.

    Returns
    -------
    tuple of float
        Lower and upper bound on delta; 0 and the known one where the method does not apply.
    """
    best = meet((0.0, known), _delta(ComposedLoss(pairs, mu), epsilon, rtol))
    if is_narrow(best, rtol):
        return best
    # How much may be cut off depends on the delta to be found: descend to it.
    for _ in range(_LARGEST_DESCENT):
        before = best[1]
        tail = _NEGLECTED * rtol * max(before, _SMALLEST_DELTA)
        best = meet(best, _delta(_truncated(pairs, mu, tail), epsilon, rtol))
        if is_narrow(best, rtol) or best[1] > 0.1 * before:
            break
    return best


def invert_epsilon(pairs: Pairs, mu: float, delta: float, rtol: float) -> Interval:
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

    Returns
    -------
    tuple of float
        Lower and upper bound on epsilon; 0 and infinity where the method does not apply.
    """
    best = _epsilon(ComposedLoss(pairs, mu), delta, rtol)
    if best[1] > _SMALLEST_EPSILON and not is_narrow(best, rtol):
        loss = _truncated(pairs, mu, _NEGLECTED * rtol * delta)
        best = meet(best, _epsilon(loss, delta, rtol, best[1]))
    return best


def _truncated(pairs: Pairs, mu: float, tail: float) -> ComposedLoss:
    """Return the composition with losses cut off that are so large that they are rare.

    The moments of a Gaussian mixture may be governed by values that are never seen; without these
    they are not.
    """
    share = max(tail / sum(count for _, count in pairs), _SMALLEST_DELTA)
    return ComposedLoss(
        [
            (pair.truncated(share) if isinstance(pair, GaussianMixturePair) else pair, count)
            for pair, count in pairs
        ],
        mu,
    )


def _delta(loss: ComposedLoss, epsilon: float, rtol: float) -> Interval:
    best = (0.0, 1.0)
    saddle = find_saddle(loss, epsilon=epsilon)
    if saddle is None:
        return best
    log_delta, gap = saddle.log_delta, rtol
    for _ in range(_ROUNDS):
        # The saddle may be off where the smallest tilt is used.
        at = Saddle(saddle.theta, saddle.log_moment, epsilon, saddle.deviation, log_delta)
        eta = math.sqrt(gap / ((at.theta + 1.0) * (at.theta + 1.0 / at.deviation)))
        inversion = _prepare(loss, at, eta, math.log(_NEGLECTED * rtol))
        if not inversion.feasible:
            break
        found = inversion.delta_bounds(epsilon)
        best = meet(best, found)
        if is_narrow(best, rtol) or not found[1] > 0.0:
            break
        gap *= 0.25 * min(rtol * best[1] / (best[1] - best[0]), 1.0)
        log_delta = min(log_delta, math.log(max(best[1], _SMALLEST_DELTA)))
    return best


def _epsilon(loss: ComposedLoss, delta: float, rtol: float, known: float = math.inf) -> Interval:
    best = (0.0, known)
    inner = delta - loss.outside[1]
    saddle = find_saddle(loss, log_delta=math.log(inner)) if inner > 0.0 else None
    if saddle is None:
        return best
    if saddle.epsilon > known:
        saddle = find_saddle(loss, epsilon=known) or saddle
    if saddle.epsilon > _LARGEST_EPSILON:
        return best
    epsilon, gap = max(saddle.epsilon, 0.0), rtol
    for _ in range(_ROUNDS):
        scale = max(epsilon, _SMALLEST_EPSILON)
        at = Saddle(saddle.theta, saddle.log_moment, epsilon, saddle.deviation, math.log(inner))
        slope = saddle.theta + 1.0 + 1.0 / saddle.deviation
        eta = math.sqrt(gap * scale / slope)
        log_neglected = math.log(_NEGLECTED * rtol) + min(math.log(scale * slope), 0.0)
        inversion = _prepare(loss, at, eta, log_neglected)
        if not inversion.feasible:
            break
        found = _solve(inversion, epsilon, delta, inner)
        if found is None:
            break
        before, best = best, meet(best, found)
        width = best[1] - best[0]
        if is_narrow(best, rtol) or not _SMALLEST_EPSILON < best[1] < math.inf:
            break
        if width > 0.9 * (before[1] - before[0]):
            break  # something else than the smoothing is in the way
        following = 0.5 * (best[0] + best[1]) if width < 0.5 * best[1] else found[1]
        if abs(following - epsilon) * saddle.theta > 1.0:
            # Tilt, period and end were chosen for another epsilon.
            saddle = find_saddle(loss, epsilon=following) or saddle
        else:
            gap *= 0.25 * min(rtol * best[1] / width, 1.0)
        epsilon = following
    return best


def _prepare(loss: ComposedLoss, at: Saddle, eta: float, log_neglected: float) -> Inversion:
    """Smooth less than necessary where that costs nothing."""
    for share in _SHARES:
        inversion = Inversion(loss, at, math.sqrt(share) * eta, log_neglected, _MANY)
        if inversion.feasible:
            return inversion
    return Inversion(loss, at, math.sqrt(_SHARES[-1]) * eta, log_neglected)


def _solve(inversion: Inversion, epsilon: float, delta: float, inner: float) -> Interval | None:
    """Find epsilons at which the bounds on delta prove that they bound the right one."""
    log_inner = math.log(inner)
    slope = -inversion.theta
    for _ in range(_NEWTON_STEPS):
        value, rate, _ = inversion.sums(epsilon)
        if not (value > 0.0 and rate > 0.0):
            # So far above the answer that the sum has no correct digit.
            epsilon *= 0.75
            continue
        slope = -rate / value
        step = (math.log(value) + inversion.log_scale(epsilon) - log_inner) / slope
        epsilon -= max(min(step, 2.0 / inversion.theta), -2.0 / inversion.theta)
        if abs(step) <= 1e-13 * abs(epsilon) or abs(step * slope) <= 1e-14:
            break
        if epsilon < 0.0 and inversion.delta_bounds(0.0)[1] <= delta:
            return 0.0, 0.0
    # The slope of the inner part's logarithm; what lies outside does not change with epsilon.
    slope *= inner / delta
    upper = _shift(inversion, epsilon, delta, slope, upward=True)
    lower = _shift(inversion, epsilon, delta, slope, upward=False)
    return lower, upper


def _shift(
    inversion: Inversion, epsilon: float, delta: float, slope: float, *, upward: bool
) -> float:
    """Move epsilon until the bound on delta is on the safe side of the target."""
    shift = 0.0
    slope = min(slope, -_SMALLEST_SLOPE)
    for attempt in range(10):
        at = max(epsilon + shift if upward else epsilon - shift, 0.0)
        if at == 0.0 and not upward:
            return 0.0
        lower, upper = inversion.delta_bounds(at)
        if upper <= delta if upward else lower > delta:
            return at
        if not (upper if upward else lower) > 0.0:
            break
        ratio = upper / delta if upward else min(delta / lower, 10.0)
        shift += (math.log(ratio) / -slope + 1e-15 * abs(epsilon)) * 1.05 * 2.0**attempt
    return math.inf if upward else 0.0
