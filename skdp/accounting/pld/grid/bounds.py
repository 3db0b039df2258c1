"""Both bounds for one list of dominating pairs, on one grid that is refined until they are close.

Where all losses are atoms at equal distances, that distance is the step and nothing is lost; where
some are, the step divides it. Else both bounds err by the square of the step (section 8 of
``docs/proofs/certified_intervals.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skdp.accounting.pld.grid.compose import (
    TiltedLoss,
    compose,
    compose_from_below,
    tilt_from_below,
    tilt_masses,
)
from skdp.accounting.pld.grid.estimates import Pairs
from skdp.accounting.pld.grid.targets import LIMITS, Target
from skdp.accounting.pld.pairs.base import subdivision


class Bounds(NamedTuple):
    """A composition from above and from below; indices count from ``origin``.

    ``error`` is what rounding of the cells' masses may have moved the sum of losses by, and their
    probabilities relative to themselves (section 8).
    """

    upper: TiltedLoss
    lower: TiltedLoss | None
    failure: float
    origin: float
    error: float = 0.0

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on delta at an epsilon in nats."""
        return self.delta_from_below(epsilon), self.delta_from_above(epsilon)

    def delta_from_above(self, epsilon: float) -> float:
        """Return an upper bound on delta at an epsilon in nats."""
        bound = self.upper.delta(epsilon - self.origin - self._slip(epsilon))
        return min(1.0, bound * math.exp(self.error))

    def delta_from_below(self, epsilon: float) -> float:
        """Return a lower bound on delta at an epsilon in nats."""
        if self.lower is None:
            return self.failure
        bound = self.lower.delta_from_below(epsilon - self.origin + self._slip(epsilon))
        return max(bound * math.exp(-self.error), self.failure)

    def _slip(self, epsilon: float) -> float:
        return LIMITS.rounding * (abs(epsilon) + abs(self.origin)) + self.error


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


def epsilon_interval(pairs: Pairs, delta: float, rtol: float = 1e-3) -> tuple[float, float]:
    """Bound epsilon for one list of dominating pairs at a delta in (0, 1), in nats.

    The grid is refined until the relative distance is ``rtol``, or effort is spent.
    """
    failure, largest, variation = extremes(pairs)
    if variation <= delta:
        return 0.0, 0.0
    if failure * (1.0 - 1e-9) > delta:
        return math.inf, math.inf
    best = (single_epsilon(pairs, delta), largest if failure <= delta else math.inf)
    # Finer grids cost digits too: begin with one that is not finer than mostly needed.
    share = max(rtol, LIMITS.first_share)
    target, step, effort = Target.at_delta(pairs, delta), math.inf, LIMITS.effort
    estimate = target.estimate
    for _ in range(LIMITS.grids):
        guess = max(best[0], estimate.cumulants(target.tilt)[1], 0.01 * estimate.deviation)
        wanted = min(step, target.first_step(share * guess * (target.tilt + estimate.flat)))
        step, exact = target.choose_step(wanted, effort)
        effort -= target.cells(step)
        found = _solve(compose_both(target, step), delta)
        gained = best[1] - best[0]
        best = (max(best[0], min(found[0], best[1])), min(best[1], found[1]))
        width = best[1] - best[0]
        gap = width / max(best[1], 1e-300)
        if gap <= rtol or not math.isfinite(best[1]) or effort < LIMITS.fine_cells:
            break
        moved = target.move(0.5 * (best[0] + best[1]))
        if (exact or step > wanted * 1.5) and not moved and gained - width <= 0.5 * width:
            break
        step *= min(0.5, max(1.0 / 64.0, 0.5 * rtol / gap))
    return best


def delta_interval(pairs: Pairs, epsilon: float, rtol: float = 1e-3) -> tuple[float, float]:
    """Bound delta for one list of dominating pairs at an epsilon >= 0 in nats.

    The grid is refined until the relative distance is ``rtol``, or effort is spent.
    """
    failure, largest, variation = extremes(pairs)
    if epsilon >= largest:
        return failure * (1.0 - 1e-9), failure
    least = 1e-290 if all(pair.atomic for pair, _ in pairs) else LIMITS.smallest_delta
    profiles = [pair.profile(epsilon) for pair, _ in pairs]
    best = (max([failure * (1.0 - 1e-9)] + [p[0] for p in profiles if p]), variation)
    # Finer grids cost digits too: begin with one that is not finer than mostly needed.
    share = max(rtol, LIMITS.first_share)
    target, step, effort = Target.estimated(pairs, epsilon), math.inf, LIMITS.effort
    for _ in range(LIMITS.grids):
        wanted = min(step, target.first_step(share))
        step, exact = target.choose_step(wanted, effort)
        effort -= target.cells(step)
        lower, upper = compose_both(target, step).delta(epsilon)
        before = best[1] - best[0]
        best = (max(best[0], lower), min(best[1], upper))
        gap = best[1] - best[0]
        if gap <= rtol * max(best[1], least) or effort < LIMITS.fine_cells:
            break
        if best[1] < 1e-3 * target.delta:
            # A tilt suits only a distribution with the same tails: heavy ones are all it sees.
            target, step = Target.at_epsilon(pairs, epsilon, max(best[1], 1e-280)), math.inf
            continue
        if (exact or step > wanted * 1.5) and before - gap <= 0.5 * gap:
            break
        step *= min(0.5, max(1.0 / 64.0, 0.5 * rtol * best[1] / gap))
    return best


def single_epsilon(pairs: Pairs, delta: float) -> float:
    """Return the largest epsilon that a single release of a composition has by itself.

    A lower bound on the composition's, from the pairs that know their profile.
    """
    best = 0.0
    for pair, _ in pairs:
        at_best = pair.profile(best)
        if at_best is None or at_best[0] <= delta:
            continue
        low, high = best, max(1.0, 2.0 * best)
        while (at_high := pair.profile(high)) is not None and at_high[0] > delta and high < 1e6:
            low, high = high, 2.0 * high
        for _ in range(LIMITS.searches):
            middle = 0.5 * (low + high)
            at_middle = pair.profile(middle)
            if at_middle is not None and at_middle[0] > delta:
                low = middle
            else:
                high = middle
        best = low
    return best


def compose_both(target: Target, step: float, below: bool = True) -> Bounds:
    """Compose dominating pairs on one grid, once dominating and once, if asked, dominated.

    The bounds are valid whatever the target and the step in nats.
    """
    pairs, tail, tilt, neglected = (
        target.pairs,
        target.tail,
        target.tilt_on(step),
        target.neglected(step),
    )
    origin, rounded = 0.0, 0
    parts, lowered = [], []
    for pair, count in pairs:
        # At least the largest loss is then kept; but a narrow pair is best seen from zero.
        fits = pair.lattice > 0.0 and subdivision(pair.lattice, step) > 0
        aligned = fits or pair.lattice > LIMITS.narrow * step
        origin += count * pair.origin if aligned else 0.0
        rounded += 0 if pair.atomic else count
        parts.append((tilt_masses(*pair.grid(step, tail, aligned), step, tilt), count))
        if below:
            indices, masses, _ = pair.optimistic_grid(step, tail, aligned)
            part = tilt_from_below(indices, masses, step, tilt)
            lowered += [(part, count)] if part is not None else []
    failure = -math.expm1(math.fsum(n * math.log1p(-pair.failure) for pair, n in pairs))
    failure *= 1.0 - 1e-12
    upper = compose(parts, neglected)
    lower = None
    if len(lowered) == len(parts):
        lower = compose_from_below(lowered, failure, neglected)
    return Bounds(upper, lower, failure, origin, rounded * LIMITS.cell_error)


def _solve(bounds: Bounds, delta: float) -> tuple[float, float]:
    """Return epsilons on either side of where delta is met, each with a proof."""
    loss = bounds.upper

    def excess(value: float) -> float:
        return math.log(value / delta) if value > 0.0 else -math.inf

    def from_above(epsilon: float) -> float:
        return excess(bounds.delta_from_above(epsilon))

    def from_below(epsilon: float) -> float:
        return excess(bounds.delta_from_below(epsilon))

    last = float(loss.indices[-1]) * loss.step + bounds.origin
    centre = float(np.dot(loss.weights, loss.indices)) * loss.step + bounds.origin
    _, upper = _close_in(from_above, min(max(centre, 0.0), last), loss.step, last, 1.0)
    # Far below the tilt's epsilon lower bounds are useless, so the search starts from above.
    start = upper if math.isfinite(upper) else last
    lower, _ = _close_in(from_below, start, 1e-9 * start, start, -1.0)
    return lower, upper


def _close_in(
    excess: Callable[[float], float], start: float, leap: float, largest: float, side: float
) -> tuple[float, float]:
    """Return neighbouring epsilons between which a falling excess loses its sign.

    The upper one is infinite if it does not up to the largest, the lower one 0 if there is none.
    ``side`` says whether to be close at the upper one, 1, or at the lower one, -1.
    """
    low = high = start
    low_log = high_log = excess(start)
    while low_log <= 0.0:
        if low <= 0.0:
            return 0.0, 0.0
        high, high_log, low = low, low_log, max(low - leap, 0.0)
        low_log, leap = excess(low), 8.0 * leap
    while high_log > 0.0:
        if high >= largest:
            return low, math.inf
        low, low_log, high = high, high_log, min(high + leap, largest)
        high_log, leap = excess(high), 8.0 * leap
    for attempt in range(LIMITS.searches):
        near = -high_log if side > 0.0 else low_log
        if high - low <= LIMITS.close * high or near < LIMITS.close:
            break
        x = 0.5 * (low + high)
        if attempt % 3 < 2 and math.isfinite(high_log):
            # Aim a hair to the side allowed.
            aim = low_log + side * 0.3 * LIMITS.close
            secant = low + (high - low) * aim / (low_log - high_log)
            x = secant if low < secant < high else x
        value = excess(x)
        if value > 0.0:
            low, low_log = x, value
        else:
            high, high_log = x, value
    return low, high
