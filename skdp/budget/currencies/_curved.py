"""Filters of one amount below a curve, and how delta is split between the curve and slack."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.bracket import narrow_bracket
from skdp.accounting.numerics.floats import float_up, read_decimal
from skdp.budget.currencies.base import Amounts, BudgetFilter
from skdp.budget.currencies.exact import decimal_down, float_down
from skdp.choices import Adjacency

_SLACK_OF_ONE = Fraction(1, 16)  # of what is left: for one conversion that may choose
_HEADROOM = 1.0 - 1e-9  # of a square: for rounding by whoever turns a pair into noise
_LABEL = 0.1  # of the total variation: a larger delta would not determine mu
_TRIES = 60
_LARGEST = 1e20  # epsilon: curves of much larger ones overflow
_LOGARITHMS = -744.0, 709.0  # of floats, from end to end


class CurvedFilter(BudgetFilter):
    """Add up one amount, which a curve turns into epsilon, and slack for what is above it."""

    share: ClassVar[Fraction] = Fraction(1, 20)  # slack, of delta; the proof page says why
    mu_squared: Fraction = Fraction(1)  # that a unit of the amount is worth

    def __init__(self, epsilon: float, delta: float, adjacency: Adjacency) -> None:
        super().__init__(epsilon, delta, adjacency)
        self._curve, slack = split_delta(self, self.share)
        known = math.isfinite(self.epsilon)
        most = self._most(float_down(read_decimal(self.epsilon))) if known else None
        self.boxes = ((most, slack),)

    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        if spent[0] == 0:
            return 0.0, float_up(spent[1])
        return self._epsilon(spent[0]), float_up(Fraction(self._curve) + spent[1])

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        amount, slack = left[0] / fits, left[1] / fits
        if mechanism == "any":
            return largest_pure(self._pure, amount), decimal_down(slack)
        return gaussian_pair(amount * self.mu_squared, self.delta)

    @abstractmethod
    def _most(self, epsilon: float) -> Fraction:
        """Return an amount that the curve's delta allows at epsilon."""

    @abstractmethod
    def _epsilon(self, amount: Fraction) -> float:
        """Return an epsilon that an amount implies at the curve's delta."""

    @abstractmethod
    def _pure(self, epsilon: Fraction) -> Fraction:
        """Return the amount that every epsilon-DP release costs at most."""


def split_delta(currency: BudgetFilter, share: Fraction) -> tuple[float, Fraction]:
    """Split delta in what a curve has and a share, for a currency of curves."""
    epsilon, delta, name = currency.epsilon, currency.delta, currency.name
    if delta <= 0.0:
        raise ValueError(
            f"composition={name!r} needs delta > 0, got {delta!r}: it promises no pure "
            "differential privacy. Use composition='basic' with delta=0."
        )
    if _LARGEST < epsilon < math.inf:
        raise ValueError(
            f"composition={name!r} needs epsilon <= {_LARGEST:g}, got {epsilon!r}, or "
            "epsilon=inf, which counts without limit."
        )
    curve = float_down(read_decimal(delta) * (1 - share))
    if curve == 0.0:
        raise ValueError(
            f"composition={name!r} needs a delta of which parts are left, got {delta}."
        )
    return curve, read_decimal(delta) * share


def slack_of_one(limit: Fraction | None, spent: Fraction) -> float:
    """Return how much slack one conversion may use, before anything about its result is known."""
    # A power of two, so that conversions can be remembered; with nothing left, of all slack, which
    # will not fit.
    assert limit is not None
    left = limit - spent if spent < limit else limit
    exponent = math.frexp(float_down(left * _SLACK_OF_ONE))[1] - 1
    return math.ldexp(1.0, exponent)


def root_up(amount: Fraction) -> float:
    """Return a float at least the square root of an amount."""
    return math.sqrt(float_up(amount)) * (1.0 + 2.0**-51)


def gaussian_pair(square: Fraction, delta: float) -> tuple[float, float]:
    """Return an (epsilon, delta) whose exact Gaussian noise costs a square of mu or less."""
    mu = math.sqrt(float_down(square)) * math.sqrt(_HEADROOM)
    if mu == 0.0:
        return 0.0, 0.0
    delta = min(delta, _LABEL * gaussian_profile.delta(mu, 0.0))
    epsilon = gaussian_profile.epsilon_bounds(mu, delta)[0]
    reduction = 1e-12
    for _ in range(_TRIES):
        if epsilon <= 0.0 or delta <= 0.0:
            break
        if 1 / Fraction(gaussian_profile.sigma(epsilon, delta)) ** 2 <= square:
            return epsilon, delta
        epsilon *= 1.0 - reduction
        reduction *= 2.0
    return 0.0, 0.0


def largest_pure(price: Callable[[Fraction], Fraction], most: Fraction) -> float:
    """Return a large epsilon whose price is at most a given amount."""

    def side(logarithm: float) -> float:
        return 1.0 if price(read_decimal(math.exp(logarithm))) <= most else -1.0

    low, high = _LOGARITHMS
    if side(high) > 0.0:
        return math.exp(high)
    return math.exp(narrow_bracket(side, low, high, 1e-15, 1e-12)[0]) if side(low) > 0.0 else 0.0
