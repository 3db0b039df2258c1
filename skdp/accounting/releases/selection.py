"""The best of a random number of runs, and choices of one release per record.

Let h be the profile of one run and m the expected number of runs. The profile of the best is at
most ``m sum over k of a_k h(s_k e^epsilon)``, with ``a_k`` that add up to 1. They come from lines
that bound the psi of Theorem 4 on cells of t, the probability that a run beats an output. Renyi
divergences are bounded as by Papernot and Steinke (2022), the largest loss as by Liu and Talwar
(2019). Proofs: Theorems 4 and 6 to 8 of ``docs/proofs/private_selection.md``.

A single choice costs as much as its most expensive part, as neighbours determine the part. In a
composition the part may depend on other results. The bound is then the largest profile of the
parts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from skdp.accounting.analysis import (
    Guarantee,
    LogMoments,
    Reading,
    card_of,
    exact_sum,
    square_of,
    sum_of_moments,
    sum_of_stated,
)
from skdp.accounting.events import Event, OneOfEvent, RepeatAndSelectEvent
from skdp.accounting.numerics.arithmetic import minimise
from skdp.accounting.numerics.counts import Array, StoppingNumber
from skdp.accounting.numerics.renyi_divergences import nearby_order
from skdp.accounting.pld.composed_bounds import is_supported
from skdp.accounting.pld.curves import profile_curve
from skdp.accounting.releases.stated import KnownProfile
from skdp.base.parameters import Adjacency, cached_property

if TYPE_CHECKING:
    from skdp.accounting.pld.curves import ProfileCurve

_LARGEST_LOSS = 600.0  # of lines that bound tau; leaving some out is valid
_COARSE_CELLS, _CELLS = 400, 1600
_SMALLEST = 1e-280
_SMALL = 1e-3  # share of the scale of weights below which tau changes nothing
_WORTHWHILE = 0.5  # share of the value at a cell's middle that its tangent must keep at the ends
_ROUNDING = 1e-11


class SelectionProfile:
    """Bound on the profile of the best of several runs."""

    def __init__(self, curve: ProfileCurve, number: StoppingNumber) -> None:
        self._curve = curve
        self._mean = number.mean
        slopes, heights = _lines(curve, number)
        slopes, heights = _envelope(slopes, heights)
        self._shares = np.diff(slopes, prepend=0.0)
        with np.errstate(divide="ignore"):
            self._shifts = np.log(np.diff(heights, prepend=0.0) / self._shares)

    def __call__(self, epsilon: float) -> float:
        """Return a bound on delta at ``epsilon >= 0``."""
        values = self._curve(epsilon + self._shifts)
        total = self._mean * float(np.dot(self._shares, values))
        return min(1.0, total * (1.0 + _ROUNDING))


def _lines(curve: ProfileCurve, number: StoppingNumber) -> tuple[Array, Array]:
    """Return lines ``a r - c b`` that bound psi, as arrays of a and b."""
    nodes = _cells(curve, number.scale)
    left, right = nodes[:-1], nodes[1:]
    middle = 0.5 * (left + right)
    growth, offset = _steepest(curve, np.concatenate([middle, right]))
    at_middle = growth[: len(middle)] * middle + offset[: len(middle)]
    value = number.weight(at_middle)
    slope = -value * number.log_slope(at_middle) * growth[: len(middle)]
    drop = 0.5 * slope * (right - left)
    rough = -drop > (1.0 - _WORTHWHILE) * value
    lowest = number.weight(np.minimum(growth[len(middle) :] * right + offset[len(middle) :], 1.0))
    weights = number.weight(nodes)
    slopes = np.concatenate([weights[:-1], np.where(rough, weights[:-1], weights[1:])])
    heights = np.concatenate(
        [np.where(rough, lowest, value - drop), np.where(rough, lowest, value + drop)]
    )
    return slopes, heights * (1.0 - _ROUNDING)


def _cells(curve: ProfileCurve, scale: float) -> Array:
    """Return cells of t, fine ones where tau matters."""
    tiny = np.geomspace(_SMALLEST, 0.5, _CELLS)
    growth, offset = _steepest(curve, tiny)
    negligible = growth * tiny + offset < _SMALL * scale
    start = float(np.max(tiny, where=negligible, initial=_SMALLEST))
    coarse = np.geomspace(_SMALLEST, start, _COARSE_CELLS, endpoint=False)
    nodes = np.concatenate([[0.0], coarse, np.geomspace(start, 1.0, _CELLS)])
    nodes[-1] = 1.0
    return np.unique(nodes)


def _steepest(curve: ProfileCurve, t: Array) -> tuple[Array, Array]:
    """Return slopes and offsets of lines whose minimum is tau."""
    kept = curve.epsilons <= _LARGEST_LOSS
    epsilons, values = curve.epsilons[kept], curve.values[kept]
    if not len(values):
        return np.zeros(len(t)), np.ones(len(t))
    up = np.exp(epsilons)
    # First the line that is 1 everywhere, then the curve's half below epsilon = 0.
    y = np.concatenate([[0.0], 1.0 / up[::-1], up])
    mirrored = -np.expm1(-epsilons) + values / up
    offsets = np.concatenate([[1.0], mirrored[::-1], values]) * (1.0 + _ROUNDING)
    # How steeply the curve falls from each y to the next; the best line for t is where it falls by
    # t. A segment's mirror image falls by 1 less the value at y = 0 of the line through it.
    drops = -np.diff(values) / np.expm1(np.diff(epsilons))
    falls = np.concatenate(
        [
            [1.0 - values[-1]],
            (1.0 - values[:-1] - drops)[::-1],
            [(1.0 - values[0]) / (1.0 + up[0])],
            drops / up[:-1],
        ]
    )
    at = np.searchsorted(-np.minimum.accumulate(falls), -t, side="left")
    return y[at], offsets[at]


def _envelope(slopes: Array, heights: Array) -> tuple[Array, Array]:
    """Return the upper envelope of lines, by increasing slope."""
    order = np.lexsort((heights, slopes))
    kept: list[tuple[float, float]] = [(0.0, 0.0)]
    for a, b in zip(slopes[order].tolist(), heights[order].tolist(), strict=True):
        while len(kept) > 1 and a == kept[-1][0] and b <= kept[-1][1]:
            kept.pop()
        if a <= kept[-1][0]:
            continue
        while len(kept) > 1:
            (a0, b0), (a1, b1) = kept[-2], kept[-1]
            if (b1 - b0) / (a1 - a0) < (b - b1) / (a - a1):
                break
            kept.pop()
        kept.append((a, b))
    found = np.array(kept[1:])
    return found[:, 0], found[:, 1]


_ORDERS: list[float] = np.log(np.geomspace(1e-3, 1e5, 41)).tolist()  # minus one, logarithms


@card_of(RepeatAndSelectEvent)
class RepeatAndSelect(KnownProfile):
    """Bounds from those of one run."""

    event: RepeatAndSelectEvent

    @property
    def number(self) -> StoppingNumber:
        """The number of runs."""
        return StoppingNumber(self.event.mean, self.event.shape)

    def is_known(self) -> bool:
        """Return whether the profile of one run is known."""
        return is_supported(self.event.event, self.adjacency)

    def profile(self, epsilon: float) -> float:
        """Return the bound of `SelectionProfile`."""
        return 0.0 if epsilon >= self._largest else self._bound(epsilon)

    def largest_loss(self) -> float:
        """Return less than ``(2 + eta)`` times that of one run."""
        return self._largest

    # A card that a pair keeps is asked at thousands of epsilons.
    @cached_property
    def _bound(self) -> SelectionProfile:
        return SelectionProfile(profile_curve(self.event.event, self.adjacency), self.number)

    @cached_property
    def _largest(self) -> float:
        alone = largest_stated(self.event.event, self.adjacency)
        if not math.isfinite(alone):
            return math.inf
        more = self.number.pure_surcharge(alone)
        return math.nextafter(alone + more, math.inf) if more > 0.0 else alone

    @cached_property
    def surcharge(self) -> float:
        """The least of ``(1 + eta) ((1 - 1/a) D_a + log(1/gamma) / a)`` over orders a."""
        run = sum_of_moments(self.event.event, self.adjacency)
        assert run is not None
        log_gamma = math.log(self.number.gamma)

        def bound(log_scale: float) -> float:
            order = nearby_order(math.exp(log_scale))
            return (run.of(order) - log_gamma) / order

        return (1.0 + self.event.shape) * minimise(bound, _ORDERS) * (1.0 + 1e-14)

    def log_moments(self) -> LogMoments | None:
        """Return moments if those of one run are finite, without failure."""
        run = sum_of_moments(self.event.event, self.adjacency)
        if run is None or not run.finite or run.log_kept < 0.0:
            return None
        return LogMoments(partial(_log_moment, self, run), quick=False)


def largest_stated(event: Event, adjacency: Adjacency) -> float:
    """Return an epsilon at delta zero by basic composition, or infinity."""
    known = sum_of_stated(event, adjacency)
    return known[0] if known is not None and known[1] == 0.0 else math.inf


def _log_moment(card: RepeatAndSelect, run: LogMoments, order: float) -> float:
    # Truncated negative binomial numbers: Papernot and Steinke (2022), Theorem 2. Poisson numbers
    # m: with ``e = log(order / (order - 1))`` and ``d`` the profile of one run there, at most
    # ``log(e^-m + m e^(log moment of a run + (order - 1) m d))``; their Theorem 6, with the outcome
    # of no run counted.
    event, one = card.event, run.of(order)
    if math.isfinite(event.shape):
        return one + math.log(event.mean) + (order - 1.0) * card.surcharge
    curve = profile_curve(event.event, card.adjacency)
    delta = float(curve(np.array([-math.log1p(-1.0 / order)]))[0])
    several = math.log(event.mean) + one + (order - 1.0) * event.mean * delta
    return float(np.logaddexp(-event.mean, several))


@card_of(OneOfEvent)
class Choice(KnownProfile):
    """Every answer is the worst one of the parts."""

    event: OneOfEvent

    def parts(self) -> tuple[Event, ...]:
        """Return the releases."""
        return self.event.events

    def is_known(self) -> bool:
        """Return whether all parts have known profiles."""
        return all(is_supported(part, self.adjacency) for part in self.parts())

    def profile(self, epsilon: float) -> float:
        """Return the largest of the parts' profiles."""
        at = np.array([epsilon])
        return max(float(profile_curve(part, self.adjacency)(at)[0]) for part in self.parts())

    def largest_loss(self) -> float:
        """Return the largest loss of any part."""
        return max(largest_stated(part, self.adjacency) for part in self.parts())

    def stated(self, read: Reading = Fraction) -> Guarantee | None:
        """Return the largest epsilon and the largest delta of basic composition."""
        sums = [exact_sum(part, self.adjacency, read) for part in self.parts()]
        known = [each for each in sums if each is not None]
        if len(known) < len(sums):
            return None
        return Guarantee(max(each.epsilon for each in known), max(each.delta for each in known))

    def mu_squared(self) -> Fraction | None:
        """Return the largest square, if all parts are Gaussian."""
        squares = [square_of(part, self.adjacency) for part in self.parts()]
        known = [square for square in squares if square is not None]
        return max(known) if len(known) == len(squares) else None

    def log_moments(self) -> LogMoments | None:
        """Return the largest moments."""
        sums = [sum_of_moments(part, self.adjacency) for part in self.parts()]
        known = [each for each in sums if each is not None]
        if len(known) < len(sums):
            return None
        return LogMoments(
            lambda order: max(each.of(order) for each in known),
            log_kept=min(each.log_kept for each in known),
            finite=all(each.finite for each in known),
            quick=False,
        )
