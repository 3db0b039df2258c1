"""Lower and upper bounds on epsilon and delta by inversion, with suitable smoothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from skdp.accounting.pld.composed_transforms import ComposedLoss, Saddle, find_saddle
from skdp.accounting.pld.grid_bounds import Target
from skdp.accounting.pld.inversion import LARGEST_COUNT, Inversion
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.gaussian import gaussian_pair
from skdp.accounting.pld.pairs.profile import ListedPair
from skdp.accounting.value import Interval, Proved, is_narrow, meet, provers

Pairs = Sequence[tuple[Pair, int]]

_EFFORT = 40.0  # sums over frequencies of single releases, and of compositions, that may be tried
_FREQUENCIES = 15_000.0  # so many frequencies count as one more
_ROUNDS = 6  # sums for one composition, each with a smoothing that suits better
# of the allowed gap, what the smoothing is meant to use, the first if that is cheap
_SHARES = (0.003, 0.3)
_MANY = 1500  # frequencies, beyond which more smoothing is preferred
_NEGLECTED = 0.01  # of the allowed gap, what aliases, the sum's tail and losses cut off may use
_SMALLEST_EPSILON = 1e-7  # below this a relative gap is not aimed at
_LARGEST_EPSILON = 1e4  # above this nothing is tried
_SMALLEST_DELTA = 1e-300  # what counts for less
_NEWTON_STEPS = 60  # steps towards the epsilon at which the sum is delta
_SHIFTS = 10  # trials to find an epsilon beside it that has a proof
_SMALLEST_SLOPE = 1e-300


class Effort:
    """Counter of trials, the same on every machine."""

    def __init__(self) -> None:
        self._left = _EFFORT

    def spend(self, inversion: Inversion, loss: ComposedLoss) -> None:
        """Count a sum over frequencies for a composition."""
        frequencies = inversion.count if inversion.feasible else 0
        self._left -= 1.0 + len(loss.pairs) * (1.0 + frequencies / _FREQUENCIES)

    @property
    def is_spent(self) -> bool:
        """Whether no more trials are allowed."""
        return self._left <= 0.0


def invert_delta(
    pairs: Pairs, mu: float, epsilon: float, rtol: float, known: float = 1.0
) -> Interval:
    """Bound the profile of pairs and Gaussians of shift mu at an epsilon in nats.

    By 0 and ``known`` if the method does not apply.
    """
    effort = Effort()

    def solve(loss: ComposedLoss) -> Interval:
        return bound_delta(loss, epsilon, rtol, effort)

    best = meet_proved(pairs, (0.0, known), _on_both_sides(pairs, mu, 0.0, solve))
    if not is_narrow(best, rtol):
        # How much may be cut off depends on the delta to be found: an estimate descends to it.
        guess = min(Target.estimated(with_gaussian(pairs, mu), epsilon).delta, best[1])
        tail = _NEGLECTED * rtol * guess
        best = meet_proved(pairs, best, _on_both_sides(pairs, mu, tail, solve))
    return best


def invert_epsilon(pairs: Pairs, mu: float, delta: float, rtol: float) -> Interval:
    """Bound the smallest epsilon, in nats, at a positive delta.

    By 0 and infinity if the method does not apply.
    """
    effort, best = Effort(), Proved((0.0, math.inf), ("", ""))

    def solve(loss: ComposedLoss) -> Interval:
        return _epsilon(loss, delta, rtol, effort, best[1])

    best = meet_proved(pairs, best, _on_both_sides(pairs, mu, 0.0, solve))
    if best[1] > _SMALLEST_EPSILON and not is_narrow(best, rtol):
        tail = _NEGLECTED * rtol * delta
        best = meet_proved(pairs, best, _on_both_sides(pairs, mu, tail, solve))
    return best


def _on_both_sides(
    pairs: Pairs, mu: float, tail: float, solve: Callable[[ComposedLoss], Interval]
) -> Interval:
    """Bound a composition by larger losses, and by smaller ones."""
    # Rare losses may be cut off: else the moments of a Gaussian mixture may be governed by values
    # that are never seen.
    share = tail / sum(count for _, count in pairs)
    share = max(share, _SMALLEST_DELTA) if tail > 0.0 else 0.0
    sides = list(zip(*(pair.transforms(share) for pair, _ in pairs), strict=True))
    above, below = (
        ComposedLoss(list(zip(side, (count for _, count in pairs), strict=True)), mu)
        for side in sides
    )
    upper = solve(above)
    same = all(one is other for one, other in zip(*sides, strict=True))
    return upper if same else (solve(below)[0], upper[1])


def meet_proved(pairs: Pairs, known: Interval, found: Interval) -> Proved:
    """Return the intersection of two bounds, perhaps disjoint for listed losses.

    Their probabilities are rounded up and may exceed one in total.
    """
    if any(isinstance(pair, ListedPair) for pair, _ in pairs):
        most = min(known[1], found[1])
        known, found = (
            Proved((min(each[0], most), each[1]), provers(each)) for each in (known, found)
        )
    return meet(known, found)


def with_gaussian(pairs: Pairs, mu: float) -> Pairs:
    """Return the pairs with the unsampled Gaussian one."""
    if mu <= 0.0:
        return list(pairs)
    return [*pairs, (gaussian_pair("gaussian", 1.0, mu), 1)]


def bound_delta(loss: ComposedLoss, epsilon: float, rtol: float, effort: Effort) -> Interval:
    """Bound the profile of all losses at an epsilon in nats."""
    best = (0.0, 1.0)
    saddle = find_saddle(loss, epsilon=epsilon)
    if saddle is None:
        return best
    log_delta, gap = saddle.log_delta, rtol
    for _ in range(_ROUNDS):
        # The saddle may be off where the smallest tilt is used.
        at = Saddle(saddle.theta, saddle.log_moment, epsilon, saddle.deviation, log_delta)
        eta = math.sqrt(gap / ((at.theta + 1.0) * (at.theta + 1.0 / at.deviation)))
        inversion = _prepare(loss, at, eta, math.log(_NEGLECTED * rtol), effort)
        if inversion is None:
            break
        found = inversion.delta_bounds(epsilon)
        best = meet(best, found)
        if is_narrow(best, rtol) or not found[1] > 0.0:
            break
        gap *= 0.25 * min(rtol * best[1] / (best[1] - best[0]), 1.0)
        log_delta = min(log_delta, math.log(max(best[1], _SMALLEST_DELTA)))
    return best


def _epsilon(
    loss: ComposedLoss, delta: float, rtol: float, effort: Effort, known: float = math.inf
) -> Interval:
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
        inversion = _prepare(loss, at, eta, log_neglected, effort)
        found = None if inversion is None else _solve(inversion, epsilon, delta, inner)
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


def _prepare(
    loss: ComposedLoss, at: Saddle, eta: float, log_neglected: float, effort: Effort
) -> Inversion | None:
    """Smooth little if cheap; None if too expensive."""
    counts = [_MANY] * len(_SHARES) + [LARGEST_COUNT]
    for share, count in zip((*_SHARES, _SHARES[-1]), counts, strict=True):
        if effort.is_spent:
            break
        inversion = Inversion(loss, at, math.sqrt(share) * eta, log_neglected, count)
        effort.spend(inversion, loss)
        if inversion.feasible:
            return inversion
    return None


def _solve(inversion: Inversion, epsilon: float, delta: float, inner: float) -> Interval | None:
    """Find epsilons that are proved bounds."""
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
    """Move epsilon to the safe side of the target."""
    shift = 0.0
    slope = min(slope, -_SMALLEST_SLOPE)
    for attempt in range(_SHIFTS):
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
