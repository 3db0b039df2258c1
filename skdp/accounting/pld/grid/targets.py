"""What a grid is for, how fine it needs to be, and how fine it can be afforded."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Self

from skdp.accounting.pld.grid.compose import Neglected
from skdp.accounting.pld.grid.estimates import LossEstimate, Pairs
from skdp.accounting.pld.pairs.base import subdivision


@dataclass(frozen=True)
class Limits:
    """What one question may cost, and what its answer aims at."""

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
    """A composition near one delta: how much of its tails matters, and the tilt that suits."""

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
        """Return the target near an epsilon, where delta is thought to have some size."""
        target = cls(pairs, delta)
        target.tilt = target.estimate.tilt_for_epsilon(epsilon)
        return target

    @classmethod
    def estimated(cls, pairs: Pairs, epsilon: float) -> Self:
        """Return the target near an epsilon: delta says how far tails matter, so descend to it."""
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
        """Take the tilt that suits an epsilon found, and tell whether it is another one."""
        better, deviation = self.estimate.tilt_for_epsilon(epsilon), self.estimate.deviation
        moved = abs(better - self.tilt) * deviation > 0.5 + 0.1 * self.tilt * deviation
        self.tilt = better if moved else self.tilt
        return moved

    def tilt_on(self, step: float) -> float:
        """Return the tilt, less where it would change too much from one loss to the next."""
        return min(self.tilt, LIMITS.tilted_step / step)

    def neglected(self, step: float) -> Neglected:
        """Return what a window may leave out."""
        log_tail = math.log(max(LIMITS.neglected * self.delta, LIMITS.smallest_tail))
        log_missing = math.log(LIMITS.missing)
        window = self.estimate.window(self.tilt_on(step), log_tail, log_missing)
        return Neglected(window, log_tail, log_missing)

    def cells(self, step: float) -> float:
        """Return how many cells the releases and the composition have on a grid."""
        spans = math.fsum(high - low for low, high in self.spans)
        return (spans + self.neglected(step).exponents.width) / step

    def first_step(self, share: float) -> float:
        """Return a step in nats that changes delta by about a share, at most a few percent.

        Step h multiplies delta by some ``1 + n tilt^2 h^2 / 12``; below, by twice its inverse.
        """
        scale = math.sqrt(3.0 * min(share, 0.01) / self.count)
        step = scale / max(self.tilt, self.estimate.flat)
        if self.count <= LIMITS.few:
            # So few losses are not smooth on the scale of their sum.
            step = min(step, max(high - low for low, high in self.spans) / LIMITS.fine_cells)
        return step

    def choose_step(self, wanted: float, effort: float = math.inf) -> tuple[float, bool]:
        """Choose a step near one that would do, which suits the atoms and is affordable.

        Return also whether no loss is moved at all, so that a finer grid would be no better.
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
    """Divide a lattice into steps of about one size, but none below the least."""
    return lattice / max(1, min(math.ceil(lattice / step), math.floor(lattice / least)))


def _common_lattice(lattices: list[float]) -> float:
    """Return the largest distance of which all are multiples up to rounding, 0 if there is none."""
    for part in range(1, LIMITS.common + 1) if lattices else ():
        step = lattices[0] / part
        if all(subdivision(lattice, step) for lattice in lattices):
            return step
    return 0.0
