"""Find the dearest parameter that a target still affords, in few evaluations of its cost."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

_TOLERANCE = 1e-4  # relative distance from the target that is good enough
_FINE = 3e-5  # what the first evaluations try for
_PATIENCE = 5  # evaluations, the last of which is content with the tolerance
_ROUNDING = 1e-13  # of logarithms and exponentials
_LEAST_WIDTH = 1e-10  # of a bracket in logarithms: a cost that jumps ends there
_LEAP = 2.0  # the farthest first step, in logarithms
_CREEP = 1e-6  # the shortest
_EVALUATIONS = 200  # in all, about


@dataclass(frozen=True)
class Axis:
    """A range of one positive parameter, both ends included, along which the cost rises.

    It does so from ``cheapest`` to ``dearest``, whichever is the larger number.
    """

    cheapest: float
    dearest: float
    integer: bool = False

    @property
    def _sign(self) -> float:
        return 1.0 if self.dearest >= self.cheapest else -1.0

    def coordinate(self, parameter: float) -> float:
        """Return a logarithmic coordinate that rises with the cost."""
        return self._sign * math.log(parameter)

    def parameter(self, coordinate: float) -> float:
        """Return the admissible parameter at, or just on the cheap side of, a coordinate."""
        value = math.exp(min(self._sign * coordinate, 700.0))
        low, high = sorted((self.cheapest, self.dearest))
        if value <= low * (1.0 + _ROUNDING):
            return low
        if value >= high * (1.0 - _ROUNDING):
            return high
        return math.floor(value * (1.0 + _ROUNDING)) if self.integer else value


class _Search:
    """What is known of the cost on either side of the target."""

    def __init__(self, cost: Callable[[float], float], target: float, axis: Axis) -> None:
        self.cost, self.target, self.axis = cost, target, axis
        # Aim a little inside, so that the point which ends the search is itself affordable.
        self.aim = math.log(target) + math.log1p(-0.3 * _FINE)
        self.known: dict[float, float] = {}
        self.places: dict[float, float] = {}  # the coordinates that led to parameters
        self.noise = 0.0  # by how much, in logarithms, a cost has exceeded that of a dearer one
        self.fits: float | None = None
        self.exceeds: float | None = None

    def affords(self, parameter: float) -> bool:
        """Tell whether a parameter is affordable, and remember it for its side."""
        if parameter not in self.known:
            self.known[parameter] = value = self.cost(parameter)
            for other, known in self.known.items():
                rise = (parameter - other) * (self.axis.dearest - self.axis.cheapest)
                if rise * (value - known) < 0.0 < min(value, known) < max(value, known) < math.inf:
                    self.noise = max(self.noise, abs(math.log(value / known)))
        if self.known[parameter] <= self.target:
            self.fits = parameter
        else:
            self.exceeds = parameter
        return self.known[parameter] <= self.target

    def missing(self, coordinate: float) -> float:
        """Return the logarithm of the cost over the aim; 0 if the search is over."""
        parameter = self.axis.parameter(coordinate)
        self.affords(parameter)
        value, self.places[parameter] = self.known[parameter], coordinate
        if self.is_over:
            return 0.0
        if not value < math.inf:
            return math.inf
        return math.log(value) - self.aim if value > 0.0 else -math.inf

    @property
    def is_over(self) -> bool:
        """Whether the target is met closely, or nothing dearer (or cheaper) is left."""
        if self.fits is None:
            return self.exceeds == self.axis.cheapest
        window = _FINE if len(self.known) < _PATIENCE else _TOLERANCE
        near = self.known[self.fits] >= self.target * (1.0 - max(window, self.noise))
        beside = self.exceeds is not None and self.axis.integer
        beside = beside and abs(self.exceeds - self.fits) <= 1  # type: ignore[operator]
        return near or beside or self.fits == self.axis.dearest

    def bracket(self, x: float) -> None:
        """Go from a coordinate to where the cost is thought to meet the aim, and further."""
        leap, creep, slope = _LEAP, _CREEP, 1.0
        before: tuple[float, float] | None = None
        while (y := self.missing(x)) != 0.0 and (self.fits is None or self.exceeds is None):
            if before is not None and (x - before[0]) * (y - before[1]) > 0.0:
                slope = (y - before[1]) / (x - before[0])
            before = (x, y) if math.isfinite(y) else None
            distance = abs(y) / slope if math.isfinite(y) and 0.0 < slope < math.inf else leap
            x += math.copysign(min(max(distance, creep), leap), -y)
            # Whoever stays on one side goes further each time, until the axis ends.
            leap, creep = 2.0 * leap, 10.0 * creep

    def close(self) -> None:
        """Narrow the bracket until the search is over, or the cost jumps."""
        from scipy.optimize import brentq

        assert self.fits is not None and self.exceeds is not None
        ends = self.places[self.fits], self.places[self.exceeds]
        width = 1e-300 if self.axis.integer else _LEAST_WIDTH
        brentq(self.missing, *ends, xtol=width, maxiter=_EVALUATIONS, disp=False)
        if self.axis.integer and not self.is_over:
            between = range(int(self.fits) + 1, int(self.exceeds))
            bisect_left(between, True, key=lambda parameter: not self.affords(parameter))


def dearest_affordable(
    cost: Callable[[float], float], target: float, axis: Axis, start: float
) -> float | None:
    """Return the parameter that costs most among those whose cost is at most ``target > 0``.

    Its cost was evaluated, and is as near as `calibrate_event` says; None if all cost too much.
    """
    # Where costs do not rise along the axis, some affordable parameter is returned.
    search = _Search(cost, target, axis)
    search.bracket(axis.coordinate(start))
    if not search.is_over:
        search.close()
    return search.fits
