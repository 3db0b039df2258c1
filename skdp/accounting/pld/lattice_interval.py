"""Both bounds for one list of dominating pairs, on one grid that is refined until they are close.

Where all losses are atoms at equal distances, that distance is the step and nothing is lost; where
some are, the step divides it. Else both bounds err by the square of the step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from skdp.accounting.pld.grid.bounds import estimate_at, extremes, invert
from skdp.accounting.pld.grid.compose import TiltedLoss, compose, tilt_masses
from skdp.accounting.pld.grid.estimates import LossEstimate
from skdp.accounting.pld.lattice_lower import LoweredLoss, compose_lowered, tilt_lowered
from skdp.accounting.pld.pairs.base import Pair, subdivision

_NEGLECTED = 1e-9  # share of delta that truncations may add
_MISSING = 1e-11  # share of the tilted weight that a window may miss
_SMALLEST_TAIL = 1e-300
_LARGEST_WINDOW = 2**19  # in steps, as estimated
_LARGEST_INDEX = 2.0**30  # of a loss, in steps
_LARGEST_CELLS = 2**18  # of one release
_LARGEST_SIZE = 2**21  # of a transform
_LARGEST_TILTED_STEP = 20.0  # nats by which the tilt may change from one loss to the next
_COMMON = 64  # largest part of a lattice that several may have in common
_FINE_CELLS = 2**11
_FEW = 16
_NARROW = 4.0  # steps
_GRIDS = 6
_ROUNDING = 1e-14  # of epsilon, relative to the losses that were added
_SEARCHES = 60

Pairs = Sequence[tuple[Pair, int]]


class Target(NamedTuple):
    """What a grid is for: the size of delta, the tilt that suits, estimates under that delta."""

    delta: float
    tilt: float
    estimate: LossEstimate


class Bounds(NamedTuple):
    """A composition from above and from below; indices count from ``origin``."""

    upper: TiltedLoss
    lower: LoweredLoss | None
    failure: float
    origin: float

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on delta at ``epsilon``.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats.

        Returns
        -------
        tuple of float
            A lower and an upper bound.
        """
        slip = _ROUNDING * (abs(epsilon) + abs(self.origin))
        shifted = epsilon - self.origin
        lower = self.failure if self.lower is None else self.lower.delta(shifted + slip)
        return lower, self.upper.delta(shifted - slip)


def epsilon_interval(pairs: Pairs, delta: float, rtol: float = 1e-3) -> tuple[float, float]:
    """Bound epsilon on both sides for one list of dominating pairs.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    delta : float
        Target probability, in (0, 1).
    rtol : float, default=1e-3
        Relative distance of the bounds at which to stop refining; not a promise.

    Returns
    -------
    tuple of float
        A lower and an upper bound in nats, the latter possibly infinite.
    """
    failure, largest, variation = extremes(pairs)
    if variation <= delta:
        return 0.0, 0.0
    if failure * (1.0 - 1e-9) > delta:
        return math.inf, math.inf
    best = (single_epsilon(pairs, delta), largest if failure <= delta else math.inf)
    estimate = LossEstimate(pairs, max(_NEGLECTED * delta / _total(pairs), _SMALLEST_TAIL))
    tilt, step = estimate.tilt_for_delta(delta), math.inf
    for _ in range(_GRIDS):
        target = Target(delta, tilt, estimate)
        guess = max(best[0], estimate.cumulants(tilt)[1], 0.01 * estimate.deviation)
        wanted = min(step, _first_step(pairs, target, rtol * guess * (tilt + _flat(estimate))))
        step, exact = choose_step(pairs, target, wanted)
        bounds = compose_both(pairs, target, step)
        found = invert(bounds.upper, delta, bounds.origin)
        slip = _ROUNDING * (abs(bounds.origin) + found) if found > 0.0 else 0.0
        upper = min(best[1], found + slip)
        lower = max(best[0], _largest_epsilon(bounds, delta, upper))
        gained = best[1] - best[0] - (upper - lower)
        best = (lower, upper)
        gap = (upper - lower) / max(upper, 1e-300)
        if gap <= rtol or not math.isfinite(upper):
            break
        tilt, moved = _better_tilt(estimate, tilt, 0.5 * (lower + upper))
        if (exact or step > wanted * 1.5) and not moved and gained <= 0.5 * (upper - lower):
            break
        step *= min(0.5, max(1.0 / 64.0, 0.5 * rtol / gap))
    return best


def delta_interval(pairs: Pairs, epsilon: float, rtol: float = 1e-3) -> tuple[float, float]:
    """Bound delta on both sides for one list of dominating pairs.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    epsilon : float
        Privacy parameter in nats, at least 0.
    rtol : float, default=1e-3
        Relative distance of the bounds at which to stop refining; not a promise.

    Returns
    -------
    tuple of float
        A lower and an upper bound in [0, 1].
    """
    failure, largest, variation = extremes(pairs)
    if epsilon >= largest:
        return failure * (1.0 - 1e-9), failure
    profiles = [pair.profile(epsilon) for pair, _ in pairs]
    best = (max([failure * (1.0 - 1e-9)] + [p[0] for p in profiles if p]), variation)
    *_, guess = estimate_at(pairs, epsilon)
    # A tilt suits only a distribution with the same tails: heavy ones are all it sees.
    estimate = LossEstimate(pairs, _tail(pairs, guess))
    tilt, step = estimate.tilt_for_epsilon(epsilon), math.inf
    for _ in range(_GRIDS):
        target = Target(guess, tilt, estimate)
        wanted = min(step, _first_step(pairs, target, rtol))
        step, exact = choose_step(pairs, target, wanted)
        lower, upper = compose_both(pairs, target, step).delta(epsilon)
        before = best[1] - best[0]
        best = (max(best[0], lower), min(best[1], upper))
        gap = best[1] - best[0]
        if gap <= rtol * best[1] or best[1] <= 1e-290:
            break
        if best[1] < 1e-3 * guess:
            guess = max(best[1], 1e-280)
            estimate = LossEstimate(pairs, _tail(pairs, guess))
            tilt, step = estimate.tilt_for_epsilon(epsilon), math.inf
            continue
        if (exact or step > wanted * 1.5) and before - gap <= 0.5 * gap:
            break
        step *= min(0.5, max(1.0 / 64.0, 0.5 * rtol * best[1] / gap))
    return best


def single_epsilon(pairs: Pairs, delta: float) -> float:
    """Return the largest epsilon that a single release of a composition has by itself.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    delta : float
        Target probability.

    Returns
    -------
    float
        A lower bound on the composition's epsilon, from the pairs that know their profile.
    """
    best = 0.0
    for pair, _ in pairs:
        at_best = pair.profile(best)
        if at_best is None or at_best[0] <= delta:
            continue
        low, high = best, max(1.0, 2.0 * best)
        while (at_high := pair.profile(high)) is not None and at_high[0] > delta and high < 1e6:
            low, high = high, 2.0 * high
        for _ in range(_SEARCHES):
            middle = 0.5 * (low + high)
            at_middle = pair.profile(middle)
            if at_middle is not None and at_middle[0] > delta:
                low = middle
            else:
                high = middle
        best = low
    return best


def choose_step(pairs: Pairs, target: Target, wanted: float) -> tuple[float, bool]:
    """Choose a step near the wanted one that suits the atoms, and is not too small to afford.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    target : Target
        What the grid is for.
    wanted : float
        Step that would be accurate enough.

    Returns
    -------
    float
        The step in nats.
    bool
        Whether no loss is moved at all, so that a finer grid would be no better.
    """
    tail = _tail(pairs, target.delta)
    window = target.estimate.window(target.tilt, _log_tail(target.delta), math.log(_MISSING))
    least = window.width / _LARGEST_WINDOW
    for pair, _ in pairs:
        low, high = pair.span(tail)
        least = max(least, (high - low) / _LARGEST_CELLS, max(-low, high) / _LARGEST_INDEX)
    lattices = sorted({pair.lattice for pair, _ in pairs if pair.lattice > 0.0})
    common = _common_lattice(lattices)
    if common >= least and common > 0.0:
        if all(pair.atomic and pair.lattice > 0.0 for pair, _ in pairs):
            return common, True
        if wanted >= common:
            return common, False
        return common / max(1, min(math.ceil(common / wanted), math.floor(common / least))), False
    step = max(wanted, least)
    weights = [(n * pair.variation, pair.lattice) for pair, n in pairs if pair.lattice > step]
    if weights:
        lattice = max(weights)[1]
        step = lattice / max(1, min(math.ceil(lattice / step), math.floor(lattice / least)))
    return step, False


def _common_lattice(lattices: list[float]) -> float:
    """Return the largest distance of which all are multiples up to rounding, 0 if there is none."""
    if not lattices:
        return 0.0
    for part in range(1, _COMMON + 1):
        step = lattices[0] / part
        if all(subdivision(lattice, step) for lattice in lattices):
            return step
    return 0.0


def compose_both(pairs: Pairs, target: Target, step: float) -> Bounds:
    """Compose dominating pairs on one grid, once dominating and once dominated.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
        Dominating pairs and how often each is composed.
    target : Target
        What the grid is for; the bounds are valid for any.
    step : float
        Step of the grid, in nats.

    Returns
    -------
    Bounds
        Bounds on the composed distribution.
    """
    tail, log_tail = _tail(pairs, target.delta), _log_tail(target.delta)
    tilt = min(target.tilt, _LARGEST_TILTED_STEP / step)
    window = target.estimate.window(tilt, log_tail, math.log(_MISSING))
    origin = 0.0
    parts, lowered = [], []
    for pair, count in pairs:
        # At least the largest loss is then kept; but a narrow pair is best seen from zero.
        fits = pair.lattice > 0.0 and subdivision(pair.lattice, step) > 0
        aligned = fits or pair.lattice > _NARROW * step
        origin += count * pair.origin if aligned else 0.0
        indices, masses, infinite = pair.grid(step, tail, aligned)
        parts.append((tilt_masses(indices, masses, infinite, step, tilt), count))
        indices, masses, _ = pair.optimistic_grid(step, tail, aligned)
        part = tilt_lowered(indices, masses, step, tilt)
        if part is not None:
            lowered.append((part, count))
    failure = -math.expm1(math.fsum(n * math.log1p(-pair.failure) for pair, n in pairs))
    failure *= 1.0 - 1e-12
    upper = compose(parts, window, log_tail, math.log(_MISSING), _LARGEST_SIZE)
    lower = None
    if len(lowered) == len(parts):
        lower = compose_lowered(
            lowered, failure, window, log_tail, math.log(_MISSING), _LARGEST_SIZE
        )
    return Bounds(upper, lower, failure, origin)


def _largest_epsilon(bounds: Bounds, delta: float, upper: float) -> float:
    """Return an epsilon at which delta is still above the target, near equality.

    Far below the tilt's epsilon the bounds are useless, so the search starts from above.
    """

    def excess(epsilon: float) -> float:
        value = bounds.delta(epsilon)[0]
        return math.log(value / delta) if value > 0.0 else -math.inf

    if not math.isfinite(upper):
        upper = float(bounds.upper.indices[-1]) * bounds.upper.step + bounds.origin
    high, high_log, back = upper, math.nan, 1e-9 * upper
    low = upper - back
    while (low_log := excess(max(low, 0.0))) <= 0.0:
        if low <= 0.0:
            return 0.0
        high, high_log, back = low, low_log, 8.0 * back
        low = upper - back
    low = max(low, 0.0)
    for attempt in range(_SEARCHES):
        if high - low <= 1e-10 * high or low_log < 1e-10:
            break
        x = 0.5 * (low + high)
        if attempt % 3 < 2 and math.isfinite(high_log):
            # Aim a hair to the side allowed.
            x = low + (high - low) * (low_log - 3e-11) / (low_log - high_log)
            x = x if low < x < high else 0.5 * (low + high)
        log_ratio = excess(x)
        if log_ratio > 0.0:
            low, low_log = x, log_ratio
        else:
            high, high_log = x, log_ratio
    return low


def _better_tilt(estimate: LossEstimate, tilt: float, epsilon: float) -> tuple[float, bool]:
    """Return the tilt that suits an epsilon found, and whether it is another one."""
    better = estimate.tilt_for_epsilon(epsilon)
    close = 0.5 + 0.1 * tilt * estimate.deviation
    if abs(better - tilt) * estimate.deviation <= close:
        return tilt, False
    return better, True


def _first_step(pairs: Pairs, target: Target, share: float) -> float:
    """Return a step that changes delta by about a share, if it is at most a few percent.

    A grid of step h multiplies delta by about ``1 + n tilt^2 h^2 / 12``, and by the inverse of
    twice as much on the lower side.
    """
    count = sum(n for pair, n in pairs)
    scale = math.sqrt(3.0 * min(share, 0.01) / count)
    step = scale / max(target.tilt, _flat(target.estimate))
    if count <= _FEW:
        # So few losses are not smooth on the scale of their sum.
        spans = [pair.span(_tail(pairs, target.delta)) for pair, _ in pairs]
        step = min(step, max(high - low for low, high in spans) / _FINE_CELLS)
    return step


def _flat(estimate: LossEstimate) -> float:
    return 1.0 / max(estimate.deviation, 1e-290)


def _tail(pairs: Pairs, delta: float) -> float:
    return max(_NEGLECTED * delta / _total(pairs), _SMALLEST_TAIL)


def _log_tail(delta: float) -> float:
    return math.log(max(_NEGLECTED * delta, _SMALLEST_TAIL))


def _total(pairs: Pairs) -> int:
    return sum(count for _, count in pairs)
