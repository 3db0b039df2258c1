"""Lower and upper bounds for one list of dominating pairs, on a grid fine enough for a target.

If all losses are atoms at equal distances, this distance is the step and the result is exact. If
some are, the step divides it. Otherwise both bounds err by the square of the step (section 8 of
``docs/proofs/certified_intervals.md``).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from skdp.accounting.numerics.arithmetic import log_rest, narrow_bracket, refuse_nan
from skdp.accounting.pld.grid_composition import (
    Neglected,
    TiltedLoss,
    compose,
    compose_from_below,
    tilt_from_below,
    tilt_masses,
)
from skdp.accounting.pld.grid_estimates import LossEstimate, Pairs
from skdp.accounting.pld.pairs.base import subdivision


@dataclass(frozen=True)
class Limits:
    """Limits on effort, and the accuracy of answers."""

    effort: float = 2.0**21  # Cells of releases and compositions on all grids that may be tried
    window: float = 2.0**19  # Cells of a composition, as estimated
    cells: float = 2.0**18  # Cells of one release
    index: float = 2.0**30  # Of a loss, in steps
    grids: int = 6  # Grids that may be tried
    first_share: float = 1e-3
    """Relative distance of the bounds that the first grid aims at, at most."""
    smallest_delta: float = 1e-30
    """Deltas below rtol times this are bounded, but not refined, unless all losses are atoms."""
    neglected: float = 1e-9  # Share of delta that truncations may add
    missing: float = 1e-11  # Share of the tilted weight that a window may miss
    smallest_tail: float = 1e-300  # Probabilities that count for nothing
    tilted_step: float = 20.0  # Nats by which the tilt may change from one loss to the next
    common: int = 64  # Largest part of a lattice that several may have in common
    few: int = 16  # Releases whose losses are not smooth on the scale of their sum
    fine_cells: int = 2**11  # Cells of so few releases
    narrow: float = 4.0  # Steps, up to which a lattice is best seen from zero
    descents: int = 45  # Guesses of how small a delta is
    leap: float = 1e-6  # The first descent is at most by this factor; the power doubles each time
    rounding: float = 1e-14  # Of epsilon, relative to the losses that were added
    cell_error: float = 16.0 * 2.0**-53
    """Of the masses in cells, relative to the tail from there, per one plus its exponent."""
    close: float = 1e-10  # Relative distance of epsilon, or of delta, at which one is found


LIMITS = Limits()


class Target:
    """A composition near one delta, with a suitable tilt."""

    def __init__(self, pairs: Pairs, delta: float, tilt: float = 0.0) -> None:
        self.pairs, self.delta, self.tilt = pairs, delta, tilt
        self.count = sum(count for _, count in pairs)
        self.tail = max(LIMITS.neglected * delta / self.count, LIMITS.smallest_tail)
        self.estimate = LossEstimate(pairs, self.tail)
        self.spans = [pair.span(self.tail) for pair, _ in pairs]

    @classmethod
    def at_delta(cls, pairs: Pairs, delta: float) -> Self:
        """Return the target near a delta."""
        target = cls(pairs, delta)
        target.tilt = target.estimate.tilt_for_delta(delta)
        return target

    @classmethod
    def at_epsilon(cls, pairs: Pairs, epsilon: float, delta: float) -> Self:
        """Return the target near an epsilon with some delta."""
        target = cls(pairs, delta)
        target.tilt = target.estimate.tilt_for_epsilon(epsilon)
        return target

    @classmethod
    def estimated(cls, pairs: Pairs, epsilon: float) -> Self:
        """Return the target near an epsilon; delta is found by descent."""
        guess, leap = 1e-3, LIMITS.leap
        for _ in range(LIMITS.descents):
            target = cls.at_epsilon(pairs, epsilon, guess)
            log_delta, reached = 0.0, epsilon
            if target.tilt > 0.0:
                log_delta, reached = target.estimate.log_delta(target.tilt)
            if reached < 0.99 * epsilon:
                log_delta = -math.inf  # beyond what these tails contain
            following = max(math.exp(min(log_delta, 0.0)), leap * guess, 1e-290)
            if following > 0.1 * guess:
                break
            guess, leap = following, max(leap * leap, 1e-48)
        return target

    def move(self, epsilon: float) -> bool:
        """Use the tilt for an epsilon; return whether it is new."""
        better, deviation = self.estimate.tilt_for_epsilon(epsilon), self.estimate.deviation
        moved = abs(better - self.tilt) * deviation > 0.5 + 0.1 * self.tilt * deviation
        self.tilt = better if moved else self.tilt
        return moved

    def tilt_on(self, step: float) -> float:
        """Return the tilt, limited per step."""
        return min(self.tilt, LIMITS.tilted_step / step)

    def neglected(self, step: float) -> Neglected:
        """Return the amounts that a window may omit."""
        log_tail = math.log(max(LIMITS.neglected * self.delta, LIMITS.smallest_tail))
        log_missing = math.log(LIMITS.missing)
        window = self.estimate.window(self.tilt_on(step), log_tail, log_missing)
        return Neglected(window, log_tail, log_missing)

    def cells(self, step: float) -> float:
        """Return the number of cells on a grid."""
        spans = math.fsum(high - low for low, high in self.spans)
        return (spans + self.neglected(step).exponents.width) / step

    def first_step(self, share: float) -> float:
        """Return a step in nats that changes delta by about a share, at most a few percent.

        Step h multiplies delta by about ``1 + n tilt^2 h^2 / 12``; the lower bound, by twice its
        inverse.
        """
        scale = math.sqrt(3.0 * min(share, 0.01) / self.count)
        step = scale / max(self.tilt, self.estimate.flat)
        if self.count <= LIMITS.few:
            # So few losses are not smooth on the scale of their sum.
            step = min(step, max(high - low for low, high in self.spans) / LIMITS.fine_cells)
        return step

    def choose_step(self, wanted: float, effort: float = math.inf) -> tuple[float, bool]:
        """Return an affordable step that suits the atoms.

        Also return whether no loss is moved, so a finer grid is no better.
        """
        pairs, window = self.pairs, self.neglected(sys.float_info.min).exponents.width
        least = max(window / LIMITS.window, self.cells(1.0) / max(effort, 1.0))
        for low, high in self.spans:
            least = max(least, (high - low) / LIMITS.cells, max(-low, high) / LIMITS.index)
        common = _common_lattice(sorted({pair.lattice for pair, _ in pairs if pair.lattice > 0.0}))
        if common >= least and common > 0.0:
            if all(pair.atomic and pair.lattice > 0.0 for pair, _ in pairs):
                return common, True
            if wanted >= common:
                return common, False
            return _part(common, wanted, least), False
        step = max(wanted, least)
        weights = [(n * pair.variation, pair.lattice) for pair, n in pairs if pair.lattice > step]
        return _part(max(weights)[1], step, least) if weights else step, False


def _part(lattice: float, step: float, least: float) -> float:
    """Divide a lattice into steps of at least some size."""
    return lattice / max(1, min(math.ceil(lattice / step), math.floor(lattice / least)))


def _common_lattice(lattices: list[float]) -> float:
    """Return the largest common divisor up to rounding, or 0."""
    for part in range(1, LIMITS.common + 1) if lattices else ():
        step = lattices[0] / part
        if all(subdivision(lattice, step) for lattice in lattices):
            return step
    return 0.0


_EVENT_STEP = 1e-4  # of epsilon, over which a profile's slope bounds the tail of a loss
_EVENT_ROUNDING = 1e-12  # relative error of sums of tails, generously
_LARGEST_EVENT = 1e6  # epsilon, up to which single releases are asked


class Bounds(NamedTuple):
    """A composition for upper bounds, and one for lower bounds.

    Their indices count from ``origin`` and ``low_origin`` (0 without atoms). ``error`` bounds
    rounding of cell masses: absolute on losses, relative on probabilities (section 8).
    """

    upper: TiltedLoss
    lower: TiltedLoss | None
    failure: float
    origin: float
    low_origin: float
    error: float = 0.0

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return lower and upper bounds on delta at an epsilon."""
        return self.delta_from_below(epsilon), self.delta_from_above(epsilon)

    def delta_from_above(self, epsilon: float) -> float:
        """Return an upper bound on delta at an epsilon."""
        bound = self.upper.delta(epsilon - self.origin - self._slip(epsilon))
        return min(1.0, bound * math.exp(self.error))

    def delta_from_below(self, epsilon: float) -> float:
        """Return a lower bound on delta at an epsilon."""
        if self.lower is None:
            return self.failure
        bound = self.lower.delta_from_below(epsilon - self.low_origin + self._slip(epsilon))
        return max(bound * math.exp(-self.error), self.failure)

    def _slip(self, epsilon: float) -> float:
        return (
            LIMITS.rounding * (abs(epsilon) + max(abs(self.origin), abs(self.low_origin)))
            + self.error
        )


def extremes(pairs: Pairs) -> tuple[float, float, float]:
    """Return infinite probability, largest finite loss and variation.

    The variation bounds delta at every epsilon: results agree unless those of some release differ.
    """
    infinite = math.fsum(count * math.log1p(-pair.failure) for pair, count in pairs)
    equal = math.fsum(count * log_rest(pair.variation) for pair, count in pairs)
    return (
        -math.expm1(infinite) * (1.0 + 1e-12),
        math.fsum(count * pair.largest_loss for pair, count in pairs) * (1.0 + 1e-12),
        min(1.0, -math.expm1(equal) * (1.0 + 1e-12)),
    )


def epsilon_interval(pairs: Pairs, delta: float, rtol: float = 1e-3) -> tuple[float, float]:
    """Bound epsilon of dominating pairs at a delta in (0, 1), in nats.

    Refinement stops at ``rtol`` or with the effort.
    """
    failure, largest, variation = extremes(pairs)
    if variation <= delta:
        return 0.0, 0.0
    if failure * (1.0 - 1e-9) > delta:
        return math.inf, math.inf
    lower, _ = find_crossing(lambda e: event_delta(pairs, e) - delta, 1.0, _LARGEST_EVENT, 1e-7)
    best = (lower, largest if failure <= delta else math.inf)
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
    """Bound delta of dominating pairs at an epsilon >= 0 in nats.

    Refinement stops at ``rtol`` or with the effort.
    """
    failure, largest, variation = extremes(pairs)
    if epsilon >= largest:
        return failure * (1.0 - 1e-9), failure
    least = 1e-290 if all(pair.atomic for pair, _ in pairs) else LIMITS.smallest_delta
    best = (max(failure * (1.0 - 1e-9), event_delta(pairs, epsilon)), variation)
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


def find_crossing(
    excess: Callable[[float], float], start: float, largest: float, rtol: float
) -> tuple[float, float]:
    """Return close epsilons >= 0 where a falling excess turns negative.

    Both are 0 if it never is positive; the upper one is infinite if it always is.
    """

    def exceeds(epsilon: float) -> bool:
        return refuse_nan(excess(epsilon)) > 0.0

    low, high = 0.0, min(max(start, 1e-9), largest)
    if not exceeds(high):
        return narrow_bracket(excess, low, high, rtol) if exceeds(0.0) else (0.0, 0.0)
    while exceeds(high):
        if high >= largest:
            return high, math.inf
        low, high = high, min(2.0 * high, largest)
    return narrow_bracket(excess, low, high, rtol)


def event_delta(pairs: Pairs, epsilon: float) -> float:
    """Bound delta from below by single releases, and by one large loss.

    Only known profiles count; see section 8 of the page.
    """
    step, known = _EVENT_STEP * epsilon, []
    for pair, count in pairs:
        at, before = pair.profile(epsilon), pair.profile(epsilon - step)
        if at is not None and before is not None and at[0] > 0.0:
            tail = at[1] + (before[1] - at[0]) / -math.expm1(-step) if step > 0.0 else 1.0
            known.append((count, at[0], min(tail, 1.0 - 2.0**-53)))
    expected = math.fsum(count * tail for count, _, tail in known)
    some = -math.expm1(math.fsum(count * math.log1p(-tail) for count, _, tail in known))
    most = math.fsum(count * least for count, least, _ in known)
    rest = some - expected * (1.0 + _EVENT_ROUNDING) + most * (1.0 - _EVENT_ROUNDING)
    return max([rest] + [least for _, least, _ in known])


def compose_both(target: Target, step: float, below: bool = True) -> Bounds:
    """Compose pairs on a grid for upper and, if ``below``, lower bounds.

    They are valid for any target and step.
    """
    pairs, tail, tilt, neglected = (
        target.pairs,
        target.tail,
        target.tilt_on(step),
        target.neglected(step),
    )
    origin, low_origin, error = 0.0, 0.0, 0.0
    parts, lowered = [], []
    for pair, count in pairs:
        # At least the largest loss is then kept; but a narrow pair is best seen from zero.
        fits = pair.lattice > 0.0 and subdivision(pair.lattice, step) > 0
        aligned = fits or pair.lattice > LIMITS.narrow * step
        low_origin += count * pair.origin if aligned else 0.0
        error += count * LIMITS.cell_error * pair.roundings(tail)
        if below:
            indices, masses, _ = pair.optimistic_grid(step, tail, aligned)
            part = tilt_from_below(indices, masses, step, tilt)
            lowered += [(part, count)] if part is not None else []
        # The least loss of a rare release, which it mostly has, is best seen from itself.
        aligned = aligned or pair.lattice == 0.0 != pair.origin
        origin += count * pair.origin if aligned else 0.0
        parts.append((tilt_masses(*pair.grid(step, tail, aligned), step, tilt), count))
    failure = -math.expm1(math.fsum(n * math.log1p(-pair.failure) for pair, n in pairs))
    failure *= 1.0 - 1e-12
    upper = compose(parts, neglected)
    lower = None
    if len(lowered) == len(parts):
        lower = compose_from_below(lowered, failure, neglected)
    return Bounds(upper, lower, failure, origin, low_origin, error)


def _solve(bounds: Bounds, delta: float) -> tuple[float, float]:
    """Return proved epsilons on either side of the target."""
    loss = bounds.upper

    def excess(value: float) -> float:
        return -math.inf if value <= 0.0 else math.log(value / delta)

    def from_above(epsilon: float) -> float:
        return excess(bounds.delta_from_above(epsilon))

    def from_below(epsilon: float) -> float:
        return excess(bounds.delta_from_below(epsilon))

    last = float(loss.indices[-1]) * loss.step + bounds.origin
    centre = float(np.dot(loss.weights, loss.indices)) * loss.step + bounds.origin
    _, upper = find_crossing(from_above, centre, max(last, 1e-9), LIMITS.close)
    # Far below the tilt's epsilon lower bounds are useless, so the search starts from above.
    high = low = upper if math.isfinite(upper) else last
    leap = 1e-9 * high
    while not from_below(low) > 0.0:
        if low <= 0.0:
            return 0.0, upper
        high, low, leap = low, max(low - leap, 0.0), 8.0 * leap
    return narrow_bracket(from_below, low, high, LIMITS.close)[0] if low < high else low, upper
