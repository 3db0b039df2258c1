"""A privacy target, and the parameter with the largest cost within it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from numbers import Integral, Real

from skdp.accounting.accountants import resolve_accountant
from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.gdp import limiting_square
from skdp.accounting.analysis import analysis_of
from skdp.accounting.events import Event, leaf_counts
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import float_up
from skdp.base.parameters import Adjacency

_TOLERANCE = 1e-4  # sufficient relative distance from the target
_FINE = 3e-5  # aim of the first evaluations
_PATIENCE = 5  # evaluations; the last one accepts the tolerance
_ROUNDING = 1e-13  # of logarithms and exponentials
_LEAST_WIDTH = 1e-10  # of a bracket in logarithms, if the cost jumps
_LEAP = 2.0  # the farthest first step, in logarithms
_CREEP = 1e-6  # the shortest
_EVALUATIONS = 200  # in total, roughly


@dataclass(frozen=True)
class Axis:
    """Range of a positive parameter, with both ends, whose cost rises to ``dearest``.

    ``dearest`` may be the smaller number.
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
        """Return the valid parameter at, or just on the cheap side of, a coordinate."""
        value = math.exp(min(self._sign * coordinate, 700.0))
        low, high = sorted((self.cheapest, self.dearest))
        if value <= low * (1.0 + _ROUNDING):
            return low
        if value >= high * (1.0 - _ROUNDING):
            return high
        return math.floor(value * (1.0 + _ROUNDING)) if self.integer else value


class _Search:
    """The evaluated costs on either side of the target."""

    def __init__(self, cost: Callable[[float], float], target: float, axis: Axis) -> None:
        self.cost, self.target, self.axis = cost, target, axis
        # Aim a little inside, so that the point which ends the search is itself affordable.
        self.aim = math.log(target) + math.log1p(-0.3 * _FINE)
        self.known: dict[float, float] = {}
        self.places: dict[float, float] = {}  # the coordinates that led to parameters
        self.noise = 0.0  # largest log excess of a cost over a more expensive one
        self.fits: float | None = None
        self.exceeds: float | None = None

    def affords(self, parameter: float) -> bool:
        """Return whether a parameter is affordable, and store it."""
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
        """Return the log of cost over aim; 0 if the search is over."""
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
        """Whether the target is met closely, or no parameter is left."""
        if self.fits is None:
            return self.exceeds == self.axis.cheapest
        window = _FINE if len(self.known) < _PATIENCE else _TOLERANCE
        near = self.known[self.fits] >= self.target * (1.0 - max(window, self.noise))
        beside = self.exceeds is not None and self.axis.integer
        beside = beside and abs(self.exceeds - self.fits) <= 1  # type: ignore[operator]
        return near or beside or self.fits == self.axis.dearest

    def bracket(self, x: float) -> None:
        """Move from a coordinate until both sides of the aim are known."""
        leap, creep, slope = _LEAP, _CREEP, 1.0
        before: tuple[float, float] | None = None
        while (y := self.missing(x)) != 0.0 and (self.fits is None or self.exceeds is None):
            if before is not None and (x - before[0]) * (y - before[1]) > 0.0:
                slope = (y - before[1]) / (x - before[0])
            before = (x, y) if math.isfinite(y) else None
            distance = abs(y) / slope if math.isfinite(y) and 0.0 < slope < math.inf else leap
            x += math.copysign(min(max(distance, creep), leap), -y)
            # On the same side, go further each time, until the axis ends.
            leap, creep = 2.0 * leap, 10.0 * creep

    def close(self) -> None:
        """Narrow the bracket to the aim or to a jump."""
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
    """Return the parameter with the largest cost within ``target > 0``, or None.

    Its cost was evaluated, and is as close to the target as documented in `calibrate_event`.
    """
    # If costs do not rise along the axis, some affordable parameter is returned.
    search = _Search(cost, target, axis)
    search.bracket(axis.coordinate(start))
    if not search.is_over:
        search.close()
    return search.fits


_DIGITS = 6  # of the numbers in messages
# A rounded bound on delta may cost a little more than the epsilon it was computed for.
_INFLATIONS = (1.0, 1.0 + 1e-6, 1.0 + 1e-4, 1.01, 2.0)


def check_real(name: str, value: object) -> float:
    """Return a real number as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r}.")
    return float(value)


def check_positive(name: str, value: object) -> float:
    """Return a finite positive number as a float."""
    number = check_real(name, value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}.")
    return number


def check_rate(name: str, value: object) -> float:
    """Return a number in (0, 1] as a float."""
    number = check_real(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r}.")
    return number


def check_count(name: str, value: object) -> int:
    """Return an integer that is at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}.")
    return int(value)


def round_soundly(value: float, *, up: bool) -> float:
    """Round a positive number to six digits, up or down."""
    context = Context(prec=_DIGITS, rounding=ROUND_UP if up else ROUND_DOWN)
    return float(context.create_decimal(Decimal(value)))


@dataclass(frozen=True)
class Target:
    """An epsilon at a delta, and the accountant that must meet it."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    accountant: str | type[Accountant]

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        delta = check_real("delta", self.delta)
        if not 0 <= delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta!r}.")
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "accountant", resolve_accountant(self.accountant))

    @classmethod
    def above_zero(
        cls, epsilon: float, delta: float, adjacency: Adjacency, accountant: str | type[Accountant]
    ) -> Target:
        """Return a target for Gaussian noise, with a positive delta."""
        if check_real("delta", delta) == 0:
            raise ValueError("delta must lie in the open interval (0, 1), got 0.")
        return cls(epsilon, delta, adjacency, accountant)

    def __str__(self) -> str:
        return f"epsilon={self.epsilon!r} at delta={self.delta!r}"

    def supports(self, event: Event) -> bool:
        """Return whether the accountant supports the event."""
        return resolve_accountant(self.accountant)(self.adjacency).supports(event)

    def account(self, event: Event) -> Accountant:
        """Return an accountant of the event, with guarantees."""
        cls = resolve_accountant(self.accountant)
        accountant = cls(self.adjacency).compose(event)
        if not accountant.is_differential_privacy:
            raise ValueError(
                f"{cls.__name__} ({cls.name!r}) returns numbers that are not differential "
                "privacy, so noise cannot be calibrated to them. Use accountant='pld'."
            )
        if not accountant.is_upper_bound:
            raise ValueError(
                f"{cls.__name__} ({cls.name!r}) does not return upper bounds for this plan, so "
                "noise calibrated to its results has no guarantee. Use accountant='pld'."
            )
        return accountant

    def spent(self, event: Event) -> float:
        """Return the cost of the event at the target's delta."""
        return self.account(event).epsilon(self.delta).upper

    def affords(self, event: Event) -> bool:
        """Return whether the event stays within the target."""
        return self.spent(event) <= self.epsilon

    def shorten(self, make_event: Callable[[float], Event], value: float, *, up: bool) -> float:
        """Round a parameter if it still meets the target."""
        short = round_soundly(value, up=up)
        return short if self.affords(make_event(short)) else value

    def name_nearest(self, event: Event) -> str:
        """Name the nearest targets that the cheapest plan meets, with numbers rounded up."""
        accountant = self.account(event)
        found = []
        epsilon = accountant.epsilon(self.delta).upper
        if math.isfinite(epsilon):
            found.append(f"epsilon={round_soundly(epsilon, up=True)!r} at this delta")
        delta = accountant.delta(self.epsilon).upper
        for factor in _INFLATIONS:
            larger = round_soundly(delta * factor, up=True) if delta > 0.0 else 0.0
            if larger < 1.0 and accountant.epsilon(larger) <= self.epsilon:
                found.append(f"delta={larger!r} at this epsilon")
                break
        if not found:
            return "no epsilon at this delta and no delta below 1 at this epsilon is possible"
        return f"the nearest possible {'is' if len(found) == 1 else 'are'} {', or '.join(found)}"


_FEW = 10  # releases whose epsilons are added up


def estimate(event: Event, adjacency: Adjacency) -> tuple[float, float]:
    """Estimate the Gaussian shift of a plan, and an additional epsilon; no bound.

    Losses are taken in their limit (Dong, Roth and Su, 2022, Theorem 3.4).
    """
    squares = [0.0]
    epsilon = 0.0
    for leaf, count in leaf_counts(event).items():
        stated = analysis_of(leaf, adjacency).stated()
        alone = 0.0 if stated is None else float_up(stated.epsilon)
        if stated is not None and count <= _FEW:
            epsilon += count * alone
        elif stated is not None:
            # Twice the mean loss, as that of a Gaussian: of randomised response at most.
            squares.append(count * min(alone**2, 2.0 * alone))
        else:
            squares.append(count * _variance(leaf, adjacency))
    return math.sqrt(math.fsum(squares)), epsilon


def _variance(leaf: Event, adjacency: Adjacency) -> float:
    """Estimate the variance of a Gaussian release's loss."""
    card = analysis_of(leaf, adjacency)
    mu, pair, moments = card.mu(), card.mixture(), card.log_moments()
    if mu is not None:
        return mu * mu
    if pair is not None:
        # The limit is for small rates; the bound is for samples of all rows.
        return min(limiting_square(pair), pair.mu_of_all_rows**2)
    return moments.of(2.0) if moments is not None and moments.quick else 0.0


def guess(
    make_event: Callable[[float], Event], target: Target, axis: Axis, initial: float
) -> float:
    """Guess the parameter that meets a target; else ``initial``."""
    mu, epsilon = estimate(make_event(initial), target.adjacency)
    if mu == 0.0 or target.delta == 0.0:
        return initial
    left = max(target.epsilon - epsilon, 0.05 * target.epsilon)
    start = dearest_affordable(
        lambda parameter: estimate(make_event(parameter), target.adjacency)[0],
        gaussian_profile.mu(left, target.delta),
        axis,
        initial,
    )
    return axis.cheapest if start is None else start
