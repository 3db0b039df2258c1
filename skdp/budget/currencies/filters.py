"""Filters of one amount: basic, approximate, Gaussian, Renyi, zero-concentrated."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import decimal_up, float_up, narrow_bracket, read_decimal
from skdp.accounting.numerics.renyi_divergences import pure_at_order, pure_rho
from skdp.base.parameters import Adjacency
from skdp.budget.currencies._renyi import (
    at_order,
    best_order,
    conversion,
    total,
    zcdp_epsilon,
    zero_concentrated,
)
from skdp.budget.currencies.base import Amounts, BudgetFilter, Charge, pair_of, pairs_of_parts
from skdp.budget.currencies.gaussian import approximate_gaussian, mu_squared_of_pure
from skdp.budget.currencies.profiles import decimal_down, float_down, shorten

_SLACK_OF_ONE = Fraction(1, 16)  # of the remaining slack, for one conversion
_HEADROOM = 1.0 - 1e-9  # of a square: for rounding when a pair is converted to noise
_LABEL = 0.1  # of the total variation: a larger delta would not determine mu
_TRIES = 60
_LARGEST = 1e20  # epsilon: curves of much larger ones overflow
_LOGARITHMS = -744.0, 709.0  # of floats, from end to end


class CurvedFilter(BudgetFilter):
    """Add up an amount, which a curve converts to epsilon, and slack above the curve."""

    share: ClassVar[Fraction] = Fraction(1, 20)  # slack, of delta; see the proof page
    mu_squared: Fraction = Fraction(1)  # per unit of the amount

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
    """Split delta into the curve's part and a share for slack."""
    epsilon, delta, name = currency.epsilon, currency.delta, currency.name
    if delta <= 0.0:
        raise ValueError(
            f"composition={name!r} needs delta > 0, got {delta!r}: it does not support pure "
            "differential privacy. Use composition='basic' with delta=0."
        )
    if _LARGEST < epsilon < math.inf:
        raise ValueError(
            f"composition={name!r} needs epsilon <= {_LARGEST:g}, or epsilon=inf for no limit, got "
            f"{epsilon!r}."
        )
    curve = float_down(read_decimal(delta) * (1 - share))
    if curve == 0.0:
        raise ValueError(
            f"composition={name!r} needs a larger delta, which it can divide, got {delta}."
        )
    return curve, read_decimal(delta) * share


def slack_of_one(limit: Fraction | None, spent: Fraction) -> float:
    """Return the slack that one conversion may use, independent of its result."""
    # A power of two, so that conversions can be cached; with nothing left, a share of all slack,
    # which will not fit.
    assert limit is not None
    left = limit - spent if spent < limit else limit
    exponent = math.frexp(float_down(left * _SLACK_OF_ONE))[1] - 1
    return math.ldexp(1.0, exponent)


def root_up(amount: Fraction) -> float:
    """Return a float at least the square root of an amount."""
    return math.sqrt(float_up(amount)) * (1.0 + 2.0**-51)


def gaussian_pair(square: Fraction, delta: float) -> tuple[float, float]:
    """Return an (epsilon, delta) with Gaussian noise that costs at most a square of mu."""
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
    """Return a large epsilon with a price of at most a given amount."""

    def side(logarithm: float) -> float:
        return 1.0 if price(read_decimal(math.exp(logarithm))) <= most else -1.0

    low, high = _LOGARITHMS
    if side(high) > 0.0:
        return math.exp(high)
    return math.exp(narrow_bracket(side, low, high, 1e-15, 1e-12)[0]) if side(low) > 0.0 else 0.0


class ApproxFilter(CurvedFilter):
    """Add up squares of epsilons, and deltas: advanced composition with free parameters."""

    # Whitehouse, Ramdas, Rogers and Wu (2023), Theorem 1, is Theorem 9 of the page. The limit here
    # is a little larger: it comes from the tighter conversion of Canonne, Kamath and Steinke
    # (2020).

    name = "approx"
    units = ("epsilon squared", "delta")
    needs_pairs = True
    share = Fraction(1, 2)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        square, failure = Fraction(0), Fraction(0)
        for (epsilon, delta), count in pairs_of_parts(charge, self.adjacency):
            square += count * epsilon**2
            failure += count * delta
        return shorten(square), shorten(failure)

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        return super()._allocate(left, fits, "any")  # all are counted as pairs

    def _most(self, epsilon: float) -> Fraction:
        order, divergence = best_order(epsilon, self._curve)
        return Fraction(math.nextafter(2.0 * divergence / order, 0.0))

    def _epsilon(self, amount: Fraction) -> float:
        return zcdp_epsilon(float_up(amount / 2), self._curve)

    def _pure(self, epsilon: Fraction) -> Fraction:
        return epsilon**2


class GDPFilter(CurvedFilter):
    """Add up squares of mu: exact for Gaussian releases, and possible for all others."""

    # A release with ``delta(eps) <= d + (1 - d) delta_G(eps; mu)`` costs ``(mu^2, d)``. If the sums
    # stay within ``(M^2, s)`` whatever happens, all releases together have ``delta(eps) <= s +
    # delta_G(eps; M)`` (Smith and Thakurta, 2022, and Koskela, Tobaben and Honkela, 2023, for ``d =
    # 0``; the rest is Theorem 7 of the page). ``M`` is the largest with ``delta_G(epsilon; M) <=
    # delta - s``. The share ``s`` is fixed at creation: a filter that later exchanges one unit for
    # the other is not valid. A few large releases that are not Gaussian are expensive.

    name = "gdp"
    units = ("mu squared", "slack")

    def curve(self, spent: Amounts) -> tuple[Fraction, Fraction, Fraction] | None:
        """Return a pair of releases that dominates everything granted."""
        return spent[0], Fraction(0), spent[1]

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        return tuple(approximate_gaussian(charge.event, self.adjacency, slack))

    def _most(self, epsilon: float) -> Fraction:
        return Fraction(gaussian_profile.mu(epsilon, self._curve)) ** 2

    def _epsilon(self, amount: Fraction) -> float:
        return gaussian_profile.epsilon(root_up(amount), self._curve)

    def _pure(self, epsilon: Fraction) -> Fraction:
        return mu_squared_of_pure(epsilon)


class BasicFilter(BudgetFilter):
    """Add up epsilons and deltas: the only filter for pure differential privacy."""

    # Valid for adaptive parameters: Rogers, Roth, Ullman and Vadhan (2016), Theorem 3.6. Numbers
    # are read as decimals, so a hundred charges of 0.01 use exactly a budget of 1.

    name = "basic"
    needs_pairs = True
    units = ("epsilon", "delta")

    def __init__(self, epsilon: float, delta: float, adjacency: Adjacency) -> None:
        super().__init__(epsilon, delta, adjacency)
        most = None if math.isinf(self.epsilon) else read_decimal(self.epsilon)
        self.boxes = ((most, read_decimal(self.delta)),)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        epsilon, delta = pair_of(charge, self.adjacency)
        return shorten(epsilon), shorten(delta)

    def _guarantee(self, spent: Amounts) -> tuple[float, float]:
        return decimal_up(spent[0]), decimal_up(spent[1])

    def _allocate(self, left: Amounts, fits: int, mechanism: str) -> tuple[float, float]:
        return decimal_down(left[0] / fits), decimal_down(left[1] / Fraction(fits))


_TYPICAL_EPSILON = 1.0  # for which the order of a budget without limit is chosen


class RDPFilter(CurvedFilter):
    """Add up Renyi divergences of one order: cheapest for many sampled Gaussian releases."""

    # A release costs ``(r, d)`` if, except with probability d, its Renyi divergence of this order
    # is at most r in both orders of two neighbours. Adding up at one order is valid for adaptive
    # parameters (Theorem 8 of the page); continuing while some order has room left is not, at the
    # same delta. Sampled Gaussian releases need no conversion. A release with only (epsilon, delta)
    # known has the divergence of randomised response, except with probability delta (Kairouz, Oh
    # and Viswanath, 2015). At one order, the first releases are the most expensive, so more is left
    # after a small charge than its epsilon suggests.

    name = "rdp"
    units = ("divergence", "slack")

    def __init__(self, epsilon: float, delta: float, adjacency: Adjacency) -> None:
        super().__init__(epsilon, delta, adjacency)
        if math.isinf(self.epsilon):
            self._most(_TYPICAL_EPSILON)
        self.mu_squared = 2 / Fraction(self.order)
        self._rule = at_order(self.order)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        per_square = 1 / self.mu_squared
        return tuple(total(charge.event, self.adjacency, slack, self._rule, per_square))

    def _most(self, epsilon: float) -> Fraction:
        self.order, room = best_order(epsilon, self._curve)
        return Fraction(room)

    def _epsilon(self, amount: Fraction) -> float:
        epsilon = float_up(amount) + conversion(self.order, self._curve)
        return max(0.0, math.nextafter(epsilon, math.inf))

    def _pure(self, epsilon: Fraction) -> Fraction:
        return pure_at_order(epsilon, self.order)


class ZCDPFilter(CurvedFilter):
    """Add up rho: best for pure DP and Laplace noise combined with Gaussian releases."""

    # A release costs ``(rho, d)`` if, except with probability d, its Renyi divergences of every
    # order a are at most ``a rho`` (Bun and Steinke, 2016). Adding up is valid for adaptive
    # parameters (Theorem 8 of the page). A Gaussian release costs ``mu^2 / 2``,
    # an epsilon-DP one ``epsilon tanh(epsilon / 2)``, Laplace noise shifted by t scales ``t + e^-t
    # - 1``; everything else goes through its profile as in `GDPFilter`. From rho to epsilon:
    # Canonne, Kamath and Steinke (2020), Proposition 12.

    name = "zcdp"
    units = ("rho", "slack")
    mu_squared = Fraction(2)

    def _price(self, charge: Charge, spent: Amounts) -> Amounts:
        slack = slack_of_one(self.limits[1], spent[1])
        per_square = 1 / self.mu_squared
        return tuple(total(charge.event, self.adjacency, slack, zero_concentrated, per_square))

    def _most(self, epsilon: float) -> Fraction:
        order, divergence = best_order(epsilon, self._curve)
        return Fraction(math.nextafter(divergence / order, 0.0))

    def _epsilon(self, amount: Fraction) -> float:
        return zcdp_epsilon(float_up(amount), self._curve)

    def _pure(self, epsilon: Fraction) -> Fraction:
        return pure_rho(epsilon)
