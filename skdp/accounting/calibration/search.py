"""Find the dearest parameter that a target still affords, in few evaluations of its cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

RELATIVE_TOLERANCE = 1e-4
_FINE = 0.3 * RELATIVE_TOLERANCE  # what the first evaluations try for
_PATIENCE = 5  # evaluations after which the tolerance itself is good enough
_MAX_EVALUATIONS = 200
_ROUNDING = 1e-13  # of logarithms and exponentials
_LEAST_WIDTH = 1e-10  # of a bracket in logarithmic coordinates: a cost that jumps ends there


@dataclass(frozen=True)
class Axis:
    """A range of one positive parameter, along which the cost rises.

    Parameters
    ----------
    cheapest, dearest : float
        The ends of the range, both included; cost rises from the first to the second, whichever
        is the larger number.
    integer : bool
        Whether the parameter is an integer.
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


class Point(NamedTuple):
    """An evaluated parameter: its coordinate, the logarithm of its cost, and both themselves."""

    x: float
    y: float
    parameter: float
    cost: float


@dataclass
class _Search:
    """The evaluated points and what follows from them."""

    axis: Axis
    aim: float
    slope: float
    points: list[Point] = field(default_factory=list)
    fits: Point | None = None
    exceeds: Point | None = None
    widths: list[float] = field(default_factory=list)
    leap: float = 2.0
    creep: float = 1e-6
    overshoot: float = 0.5

    def add(self, point: Point, affordable: bool) -> None:
        """Record a point on its side of the target."""
        self.points.append(point)
        if affordable:
            self.fits = point
        else:
            self.exceeds = point
        if self.fits is not None and self.exceeds is not None:
            self.widths.append(self.exceeds.x - self.fits.x)

    def finished(self) -> bool:
        """Tell whether no admissible parameter is left between the two sides."""
        if self.fits is None or self.exceeds is None:
            return False
        if self.axis.integer:
            return abs(self.exceeds.parameter - self.fits.parameter) <= 1
        return self.exceeds.x - self.fits.x <= _LEAST_WIDTH

    def following(self) -> float:
        """Choose the next parameter."""
        x = self._interpolated()
        if self.fits is None or self.exceeds is None:
            known = self.fits or self.exceeds
            assert known is not None
            direction = 1.0 if self.exceeds is None else -1.0
            distance = direction * (x - known.x) if math.isfinite(x) else self.leap
            x = known.x + direction * min(max(distance, self.creep), self.leap)
            # Whoever stays on one side goes further each time, until the axis ends.
            self.leap *= 2.0
            self.creep *= 10.0
        else:
            middle = 0.5 * (self.fits.x + self.exceeds.x)
            if not self.fits.x < x < self.exceeds.x:
                x = middle
            elif len(self.widths) > 2 and self.widths[-1] > 0.5 * self.widths[-3]:
                # Points gather on one side: go beyond where the target is thought to be, at last
                # as far as the middle, to bring the other side close.
                self.overshoot *= 8.0
                near = self.fits if x < middle else self.exceeds
                x = near.x + (x - near.x) * self.overshoot
                x = min(x, middle) if near is self.fits else max(x, middle)
        parameter = self.axis.parameter(x)
        if self.axis.integer:
            if self.fits is not None:
                parameter = max(parameter, self.fits.parameter + 1)
            if self.exceeds is not None:
                parameter = min(parameter, self.exceeds.parameter - 1)
        return parameter

    def _interpolated(self) -> float:
        """Return where the cost is thought to meet the aim: an inverse parabola at best."""
        usable = [point for point in self.points if math.isfinite(point.y)]
        usable.sort(key=lambda point: abs(point.y - self.aim))
        if not usable:
            return math.nan
        a = usable[0]
        x = a.x + (self.aim - a.y) / self.slope
        if len(usable) == 1:
            return x
        b = usable[1]
        if (b.x - a.x) * (b.y - a.y) <= 0.0:
            return x
        inverse_slope = (b.x - a.x) / (b.y - a.y)
        x = a.x + (self.aim - a.y) * inverse_slope
        if len(usable) == 2:
            return x
        c = usable[2]
        if (c.x - b.x) * (c.y - b.y) <= 0.0 or c.y == a.y:
            return x
        bend = ((c.x - b.x) / (c.y - b.y) - inverse_slope) / (c.y - a.y)
        correction = bend * (self.aim - a.y) * (self.aim - b.y)
        return x + correction if abs(correction) <= 0.5 * abs(x - a.x) else x


def dearest_affordable(
    cost: Callable[[float], float],
    target: float,
    axis: Axis,
    start: float,
    slope: float = 1.0,
) -> float | None:
    """Return the parameter that costs most among those whose cost is at most ``target``.

    Parameters
    ----------
    cost : callable
        Maps a parameter to a cost ``>= 0``, infinity included. It should rise along the axis;
        where it does not, some affordable parameter is returned.
    target : float
        The most that may be spent, positive.
    axis : Axis
        The admissible parameters.
    start : float
        The first parameter to try.
    slope : float, default=1.0
        Elasticity of the cost (relative change over relative change of the parameter), positive.

    Returns
    -------
    float or None
        A parameter whose cost was evaluated and is at most ``target``: the dearest end of the
        axis, or within 1e-4 of the target, relatively, or next to one that exceeds it (the next
        integer; for real parameters a cost that jumps). None if the cheapest end exceeds the
        target.
    """
    # Aim a little inside, so that the point which ends the search is itself affordable.
    aim = math.log(target) + math.log1p(-0.3 * _FINE)
    search = _Search(axis, aim, slope)
    parameter = axis.parameter(axis.coordinate(start))
    for evaluation in range(1, _MAX_EVALUATIONS + 1):
        value = cost(parameter)
        affordable = value <= target
        y = math.inf if not value < math.inf else math.log(value) if value > 0.0 else -math.inf
        search.add(Point(axis.coordinate(parameter), y, parameter, value), affordable)
        if affordable and parameter == axis.dearest:
            return parameter
        if not affordable and parameter == axis.cheapest:
            break
        best = search.fits
        window = _FINE if evaluation < _PATIENCE else RELATIVE_TOLERANCE
        if best is not None and (best.cost >= target * (1.0 - window) or search.finished()):
            break
        parameter = search.following()
    return None if search.fits is None else search.fits.parameter
