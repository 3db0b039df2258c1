"""Bounds for one list of dominating pairs: one direction between two neighbours.

The accountant takes the larger of these over the directions that its plan has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skdp.accounting.pld.grid.compose import TiltedLoss, compose, tilt_masses
from skdp.accounting.pld.grid.estimates import LossEstimate
from skdp.accounting.pld.pairs.base import Pair

_TOLERANCE = 3e-4  # relative excess of delta due to the grids
_NEGLECTED = 1e-6  # share of delta that truncations may add
_MISSING = 1e-10  # share of the tilted weight that a window may miss
_ROUNDS = 2  # of estimating and composing
_LARGEST_RETRIES = 4
_LARGEST_ROUNDS = 45  # of estimating alone
_SINGLE_STAGE = 256  # counts up to this are composed in one transform
_FEW = 16  # releases
_HALVINGS = 10
_FINE_CELLS = 2**13
_LARGEST_CELLS = 2**19  # of one release
_LARGEST_LATTICE = 2**30  # of one release that has only two losses
_LARGEST_WINDOW = 2**20  # in steps, as estimated
_LARGEST_SIZE = 2**21  # of a transform
_LARGEST_FACTOR = 2**13  # between the two grids
_LARGEST_TILTED_STEP = 20.0  # nats by which the tilt may change from one loss to the next
_SMALLEST_TAIL = 1e-300

Pairs = Sequence[tuple[Pair, int]]


def direction_epsilon(pairs: Pairs, delta: float) -> float:
    """Bound epsilon for one list of dominating pairs.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    delta : float
        Target probability, in (0, 1).

    Returns
    -------
    float
        Epsilon in nats, possibly infinite.
    """
    failure, largest, variation = extremes(pairs)
    if variation <= delta:
        return 0.0
    best = largest if failure <= delta else math.inf
    target = delta
    # A smaller delta asks more; its epsilon is a bound too, and where the losses that matter are
    # many scales below those that delta pays for, it is the one that the grid resolves.
    for _ in range(_LARGEST_RETRIES):
        found, expected = _attempt(pairs, target)
        best = min(best, found)
        if best <= expected or failure >= 0.01 * target:
            break
        target *= 0.01
    return best


def _attempt(pairs: Pairs, delta: float) -> tuple[float, float]:
    """Bound epsilon on one family of grids; return also what epsilon would be unsurprising."""
    best = math.inf
    estimate = LossEstimate(pairs, _NEGLECTED * delta / _total(pairs))
    tilt = estimate.tilt_for_delta(delta)
    expected = 2.0 * max(estimate.cumulants(tilt)[1], 0.0) + 10.0 * estimate.deviation
    for _ in range(_ROUNDS):
        loss = compose_pairs(pairs, estimate, tilt, delta)
        epsilon = invert(loss, delta)
        best = min(best, epsilon)
        if not math.isfinite(epsilon):
            break
        # One more round if the estimate was off: the tilt should suit the epsilon found.
        better = estimate.tilt_for_epsilon(epsilon)
        if abs(better - tilt) * estimate.deviation <= 0.5 + 0.1 * tilt * estimate.deviation:
            break
        tilt = better
    return best, expected


def direction_delta(pairs: Pairs, epsilon: float) -> float:
    """Bound delta for one list of dominating pairs.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    epsilon : float
        Privacy parameter in nats.

    Returns
    -------
    float
        Delta, in [0, 1].
    """
    failure, largest, variation = extremes(pairs)
    if epsilon >= largest:
        return failure
    estimate, tilt, guess = estimate_at(pairs, epsilon)
    value = min(variation, compose_pairs(pairs, estimate, tilt, guess).delta(epsilon))
    return _improved(pairs, epsilon, value)


def estimate_at(pairs: Pairs, epsilon: float) -> tuple[LossEstimate, float, float]:
    """Estimate a composition near an epsilon.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    epsilon : float
        Privacy parameter in nats.

    Returns
    -------
    LossEstimate
        Estimates with as much of the tails as matters.
    float
        The tilt that suits.
    float
        The size of delta, about.
    """
    # How far the tails matter depends on the delta to be found: descend to it.
    following = 1e-3
    for _ in range(_LARGEST_ROUNDS):
        guess = following
        estimate = LossEstimate(pairs, _NEGLECTED * guess / _total(pairs))
        tilt = estimate.tilt_for_epsilon(epsilon)
        log_guess, reached = estimate.log_delta(tilt) if tilt > 0.0 else (0.0, epsilon)
        if reached < 0.99 * epsilon:
            log_guess = -math.inf  # beyond what these tails contain
        following = max(math.exp(min(log_guess, 0.0)), 1e-6 * guess)
        if following > 0.1 * guess:
            break
    return estimate, tilt, guess


def _improved(pairs: Pairs, epsilon: float, value: float) -> float:
    """Lower a bound on delta as far as the bounds on epsilon allow.

    Where the losses that matter are hard to find from epsilon, they are easier to find from delta:
    an epsilon at most the one asked for proves its delta.
    """
    if value <= 1e-290 or direction_epsilon(pairs, 0.5 * value) > epsilon:
        return value
    high, leap = math.log(0.5 * value), math.log(4.0)
    low = high - leap
    while low > -690.0 and direction_epsilon(pairs, math.exp(low)) <= epsilon:
        high, leap = low, 2.0 * leap
        low -= leap
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if direction_epsilon(pairs, math.exp(middle)) <= epsilon:
            high = middle
        else:
            low = middle
    return math.exp(high) * (1.0 + 1e-12)


def compose_pairs(pairs: Pairs, estimate: LossEstimate, tilt: float, delta: float) -> TiltedLoss:
    """Compose dominating pairs into one tilted distribution.

    Long repetitions are composed in two stages: blocks of about the square root of the count on a
    fine grid, then the blocks on a grid that is as much coarser as their losses are wider. Each
    stage adds the square of its step to the variance once per composition, so the coarse grid
    costs no more accuracy than the fine one, and both transforms are short.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    estimate : LossEstimate
        Cumulants of the same composition.
    tilt : float
        Exponent of the tilting, at least 0.
    delta : float
        Size of the delta of interest; truncations stay far below it.

    Returns
    -------
    TiltedLoss
        An upper bound on the composed distribution.
    """
    tail = max(_NEGLECTED * delta / _total(pairs), _SMALLEST_TAIL)
    log_tail = math.log(max(_NEGLECTED * delta, _SMALLEST_TAIL))
    window = estimate.window(tilt, log_tail, math.log(_MISSING))
    segments = [segment for pair, count in pairs for segment in _segments(pair, count)]
    # A grid of step h multiplies delta by about 1 + n tilt^2 h^2 / 12; both stages share that.
    blocked = sum(length * times for _, length, times in segments if length > 1)
    scale = math.sqrt(12.0 * _TOLERANCE) / max(tilt, 1.0 / max(estimate.deviation, 1e-290))
    coarse = scale / math.sqrt(sum(n for *_, n in segments) * (2 if blocked else 1))
    fine = scale / math.sqrt(2 * blocked) if blocked else coarse
    if _total(pairs) <= _FEW:
        # So few losses are not smooth on the scale of their sum; a fine grid is cheap here.
        spans = [pair.span(tail) for pair, _ in pairs]
        coarse = min(coarse, max(high - low for low, high in spans) / _FINE_CELLS)
    coarse = _admissible_step(pairs, max(coarse, window.width / _LARGEST_WINDOW), tail)
    tilt = min(tilt, _LARGEST_TILTED_STEP / coarse)
    parts = [
        (_block(pair, length, fine, coarse, tilt, tail, log_tail - math.log(n), _MISSING / n), n)
        for pair, length, n in segments
    ]
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    return compose(parts, window, log_tail, math.log(_MISSING), _LARGEST_SIZE)


def _admissible_step(pairs: Pairs, step: float, tail: float) -> float:
    """Enlarge a step until no release has too many cells; put the largest atoms on the grid."""
    atoms = [
        (n * pair.largest_loss, pair.largest_loss)
        for pair, n in pairs
        if pair.lattice > 0.0 and math.isfinite(pair.largest_loss)
    ]
    for pair, _ in pairs:
        low, high = pair.span(tail)
        cells = _LARGEST_LATTICE if pair.atomic else _LARGEST_CELLS
        step = max(step, (high - low) / cells, max(-low, high) / _LARGEST_LATTICE)
    largest = max(atoms, default=(0.0, 0.0))[1]
    return largest / math.floor(largest / step) if largest > step else step


def _block(
    pair: Pair,
    count: int,
    fine: float,
    coarse: float,
    tilt: float,
    tail: float,
    log_infinite: float,
    missing: float,
) -> TiltedLoss:
    """Compose one pair ``count`` times, near step ``fine``, and put it on the step ``coarse``."""
    if count == 1:
        return tilt_masses(*pair.grid(coarse, tail), coarse, tilt)
    estimate = LossEstimate([(pair, count)], tail)
    window = estimate.window(tilt, log_infinite, math.log(missing))
    low, high = pair.span(tail)
    cells = (high - low) / (_LARGEST_LATTICE if pair.atomic else _LARGEST_CELLS)
    finest = max(fine, cells, window.width / _LARGEST_WINDOW, coarse / _LARGEST_FACTOR)
    factor = math.ceil(coarse / min(coarse, finest))
    step = coarse / factor
    part = tilt_masses(*pair.grid(step, tail), step, tilt)
    composed = compose([(part, count)], window, log_infinite, math.log(missing), _LARGEST_SIZE)
    return composed.coarsen(factor)


def extremes(pairs: Pairs) -> tuple[float, float, float]:
    """Return the probability of an infinite loss, the largest finite loss, and the variation.

    The last bounds delta at every epsilon: results agree unless those of some release differ.
    """
    infinite = math.fsum(count * math.log1p(-pair.failure) for pair, count in pairs)
    equal = math.fsum(
        count * (math.log1p(-pair.variation) if pair.variation < 1.0 else -math.inf)
        for pair, count in pairs
    )
    return (
        -math.expm1(infinite) * (1.0 + 1e-12),
        math.fsum(count * pair.largest_loss for pair, count in pairs) * (1.0 + 1e-12),
        min(1.0, -math.expm1(equal) * (1.0 + 1e-12)),
    )


def _total(pairs: Pairs) -> int:
    return sum(count for _, count in pairs)


def _segments(pair: Pair, count: int) -> list[tuple[Pair, int, int]]:
    """Cut a repetition into blocks: the pair, the length of a block, and how many there are."""
    if count <= _SINGLE_STAGE:
        return [(pair, 1, count)]
    length = math.isqrt(count)
    times, rest = divmod(count, length)
    return [(pair, length, times)] + ([(pair, rest, 1)] if rest else [])


def invert(loss: TiltedLoss, delta: float, origin: float = 0.0) -> float:
    """Return an epsilon at which a distribution's delta is at most the target, near equality.

    Parameters
    ----------
    loss : TiltedLoss
        Upper bound on a composed distribution.
    delta : float
        Target, positive.
    origin : float, default=0.0
        The loss from which its indices count.

    Returns
    -------
    float
        Epsilon in nats, possibly infinite.
    """
    if loss.infinite >= delta:
        return math.inf
    value = loss.delta(-origin)
    if value <= delta:
        return 0.0
    low, low_log = 0.0, math.log(value / delta)
    high = float(loss.indices[-1]) * loss.step + origin
    if high <= 0.0 or loss.delta(high - origin) > delta:
        return math.inf
    high_log = math.log(loss.infinite / delta) if loss.infinite > 0.0 else -math.inf
    centre = float(np.dot(loss.weights, loss.indices)) * loss.step + origin
    x = centre if low < centre < high else 0.5 * (low + high)
    for _ in range(100):
        value = loss.delta(x - origin)
        log_ratio = math.log(value / delta) if value > 0.0 else -math.inf
        previous = (low, low_log) if log_ratio > 0.0 else (high, high_log)
        if log_ratio > 0.0:
            low, low_log = x, log_ratio
        else:
            high, high_log = x, log_ratio
        if high_log > -1e-10 or high - low <= 1e-10 * high:
            break
        slope = -max(loss.tilt, 1e-3)
        if math.isfinite(previous[1]) and previous[0] != x:
            slope = min((log_ratio - previous[1]) / (x - previous[0]), slope * 1e-3)
        # Aim a hair inside the target, to stop on the safe side.
        x = x - (log_ratio + 5e-11) / slope if math.isfinite(log_ratio) else 0.5 * (low + high)
        if not low < x < high:
            x = 0.5 * (low + high)
    return high
