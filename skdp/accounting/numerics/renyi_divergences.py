"""Renyi divergences in closed form, and their conversion to (epsilon, delta).

The formulas are collected by Gil, Alajaji and Linder (2013), and arranged to lose no digits for
nearly equal distributions. Each function returns ``log E_right[(left/right)^order]``, which is
``order - 1`` times the divergence, and a bound on its rounding error.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln

from skdp.accounting.checks import check_real
from skdp.accounting.distributions import (
    Beta,
    DiagonalNormal,
    Distribution,
    Exponential,
    Gamma,
    Laplace,
    MultivariateNormal,
    Normal,
    Uniform,
)
from skdp.accounting.numerics.arithmetic import UNIT_ROUNDOFF, Array, float_up, round_up

Moment = tuple[float, float]

_NEAR_ZERO = 1e-10  # a difference this small, relatively, is all rounding: the integral may diverge
_INFINITE: Moment = (math.inf, 0.0)


def renyi_divergence(left: Distribution, right: Distribution, order: float) -> float:
    """Return the Renyi divergence of one distribution from another of the same family.

    Parameters
    ----------
    left, right : Distribution
        Two distributions of the same dimension and the same class of
        `skdp.accounting.distributions`.
    order : float
        Order of the divergence, positive and not 1.

    Returns
    -------
    float
        ``log(E_right[(left/right)^order]) / (order - 1)`` in nats, rounded up; infinite if the
        expectation is infinite.

    Examples
    --------
    >>> from skdp.accounting import renyi_divergence
    >>> from skdp.accounting.distributions import Normal
    >>> round(renyi_divergence(Normal(0.5, 1.5), Normal(0.0, 1.6), 2.0), 12)
    0.094494149435
    >>> renyi_divergence(Normal(0.0, 2.0), Normal(0.0, 1.0), 2.0)
    inf
    """
    order = check_real("renyi_divergence", "order", order)
    if not (math.isfinite(order) and order > 0 and order != 1):
        raise ValueError(f"order must be a finite number > 0 other than 1, got {order!r}.")
    check_comparable(left, right)
    value, error = _moment(left, right, order)
    if math.isinf(value):
        return math.inf
    return max(0.0, value / (order - 1.0)) + error / abs(order - 1.0)


def log_moment(left: Distribution, right: Distribution, order: float) -> float:
    """Bound ``log E_right[(left/right)^order]`` for an order above 1."""
    value, error = _moment(left, right, order)
    return max(0.0, value) + error


def check_comparable(left: Distribution, right: Distribution) -> None:
    """Check for the same class (TypeError) and dimension (ValueError)."""
    if type(left) is not type(right) or type(left) not in _FAMILIES:
        raise TypeError(
            "left and right must be two distributions of the same class of "
            f"skdp.accounting.distributions, got {left!r} and {right!r}."
        )
    sizes = [len(d.means) for d in (left, right) if isinstance(d, DiagonalNormal)]
    sizes += [len(d.mean) for d in (left, right) if isinstance(d, MultivariateNormal)]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"left and right must have the same dimension, got {sizes[0]} and {sizes[1]}."
        )


def _moment(left: Distribution, right: Distribution, order: float) -> Moment:
    return (0.0, 0.0) if left == right else _FAMILIES[type(left)](left, right, order)


def _total(*terms: float) -> Moment:
    """Add terms that were rounded a few times each."""
    return math.fsum(terms), 16.0 * UNIT_ROUNDOFF * math.fsum(map(abs, terms))


def _log_ratio(left: float, right: float) -> float:
    """Return ``log(left / right)``, accurate near equality."""
    near = 0.5 * right < left < 2.0 * right
    return math.log1p((left - right) / right) if near else math.log(left) - math.log(right)


def _scaled(excess: float, log_ratio: float, error: float, order: float) -> Moment:
    """Return ``-(a-1) log(1+r) - log(1 + (1-a) r)`` for order a and r = ``excess``.

    It is for exponentials of scale ratio 1 + r, and twice the moment of centred normals of squared
    ratio 1 + r.
    """
    remaining = 1.0 + (1.0 - order) * excess
    if remaining <= _NEAR_ZERO * (1.0 + abs((1.0 - order) * excess)):
        return _INFINITE
    value, rounding = _total(-(order - 1.0) * log_ratio, -math.log1p((1.0 - order) * excess))
    error += 4.0 * UNIT_ROUNDOFF * abs(excess)
    return value, rounding + abs(order - 1.0) * (error / remaining)


def _normal(excess: float, log_ratio: float, shift: float, error: float, order: float) -> Moment:
    """Return the moment of N(shift, 1 + excess) from N(0, 1)."""
    scaled, rounding = _scaled(excess, log_ratio, error, order)
    if math.isinf(scaled):
        return _INFINITE
    remaining = 1.0 + (1.0 - order) * excess
    moved = 0.5 * order * (order - 1.0) * shift * (shift / remaining)
    uncertain = abs(order - 1.0) * (error + 4.0 * UNIT_ROUNDOFF * abs(excess)) / remaining
    return 0.5 * scaled + moved, 0.5 * rounding + abs(moved) * (16.0 * UNIT_ROUNDOFF + uncertain)


def _line(left: float, scale: float, right: float, reference: float, order: float) -> Moment:
    """Return the moment of N(left, scale^2) from N(right, reference^2)."""
    excess = ((scale - reference) / reference) * ((scale + reference) / reference)
    shift = (left - right) / reference
    return _normal(excess, 2.0 * _log_ratio(scale, reference), shift, 0.0, order)


def _normals(left: Normal, right: Normal, order: float) -> Moment:
    return _line(left.mean, left.scale, right.mean, right.scale, order)


def _summed(moments: list[Moment]) -> Moment:
    value, rounding = _total(*(moment[0] for moment in moments))
    return value, rounding + math.fsum(moment[1] for moment in moments)


def _diagonal_normals(left: DiagonalNormal, right: DiagonalNormal, order: float) -> Moment:
    coordinates = zip(left.means, left.scales, right.means, right.scales, strict=True)
    return _summed([_line(*coordinate, order) for coordinate in coordinates])


@lru_cache(maxsize=64)
def _whitened(left: MultivariateNormal, right: MultivariateNormal) -> tuple[Array, Array, float]:
    """Return excess variances and shifts on common axes."""
    first, second = np.array(left.covariance), np.array(right.covariance)
    factor = np.linalg.cholesky(second)
    half = np.linalg.solve(factor, first - second)
    excess, axes = np.linalg.eigh(np.linalg.solve(factor, half.T))
    shift = axes.T @ np.linalg.solve(factor, np.subtract(left.mean, right.mean))
    size = float(np.max(np.abs(excess), initial=1.0))
    return excess, shift, 16.0 * UNIT_ROUNDOFF * len(excess) * size * float(np.linalg.cond(second))


def _multivariate_normals(
    left: MultivariateNormal, right: MultivariateNormal, order: float
) -> Moment:
    excess, shift, error = _whitened(left, right)
    if float(excess[0]) + 1.0 <= 4.0 * error:
        # Along some axis the left variance is lost in rounding: no bound can be computed.
        return _INFINITE if order > 1.0 else (-math.inf, 0.0)
    moments = []
    for r, moved in zip(excess.tolist(), shift.tolist(), strict=True):
        value, rounding = _normal(r, math.log1p(r), moved, error, order)
        moments.append((value, rounding + abs(order - 1.0) * error / (1.0 + r)))
    value, rounding = _summed(moments)
    return value, rounding + error * abs(value)


def _laplaces(left: Laplace, right: Laplace, order: float) -> Moment:
    """Add the integrals between the two means and beyond either."""
    a, apart = order, abs(left.mean - right.mean)
    if left.scale == right.scale and (1.0 + a) * apart < left.scale:
        t = apart / left.scale
        if abs(2.0 * a - 1.0) > 0.1:
            up = a / (2.0 * a - 1.0) * math.expm1((a - 1.0) * t)
            down = (a - 1.0) / (2.0 * a - 1.0) * math.expm1(-a * t)
            value = math.log1p(up + down)
            return value, 16.0 * UNIT_ROUNDOFF * (abs(up) + abs(down)) / (1.0 + up + down)
    own, other = a / left.scale, (1.0 - a) / right.scale
    outside, between = own + other, own - other
    if outside <= _NEAR_ZERO * own:
        return _INFINITE
    at_left, at_right = -other * apart, -own * apart  # log (left/right)^a right at either mean
    terms = [at_left - math.log(outside), at_right - math.log(outside)]
    if apart > 0.0:
        terms.append(max(at_left, at_right) + math.log(_mean_exponential(between, apart)))
    middle = float(np.logaddexp.reduce(terms))
    value, rounding = _total(
        -a * math.log(2.0 * left.scale), (a - 1.0) * math.log(2.0 * right.scale), middle
    )
    exponents = max(abs(at_left), abs(at_right))
    return value, rounding + 16.0 * UNIT_ROUNDOFF * (exponents + (own + abs(other)) / outside)


def _mean_exponential(rate: float, length: float) -> float:
    """Return the integral of ``e^(-|rate| x)`` over [0, length]."""
    x = abs(rate) * length
    return length * (-math.expm1(-x) / x if x > 0.0 else 1.0)


def _exponentials(left: Exponential, right: Exponential, order: float) -> Moment:
    excess = (right.rate - left.rate) / left.rate
    return _scaled(excess, _log_ratio(right.rate, left.rate), 0.0, order)


def _gammas(left: Gamma, right: Gamma, order: float) -> Moment:
    excess = (left.scale - right.scale) / right.scale
    log_ratio = _log_ratio(left.scale, right.scale)
    if left.shape == right.shape:
        value, error = _scaled(excess, log_ratio, 0.0, order)
        return left.shape * value, left.shape * error
    shape = order * left.shape + (1.0 - order) * right.shape
    remaining = 1.0 + (1.0 - order) * excess
    if shape <= _NEAR_ZERO * order * left.shape or remaining <= _NEAR_ZERO * (2.0 + abs(excess)):
        return _INFINITE
    value, rounding = _total(
        float(gammaln(shape)),
        -order * float(gammaln(left.shape)),
        (order - 1.0) * float(gammaln(right.shape)),
        -shape * math.log(remaining),
        (1.0 - order) * right.shape * log_ratio,
    )
    # log Gamma(x) changes by less than (log x + 1/x) per unit of x, log by the reciprocal.
    moved = order * left.shape + abs(1.0 - order) * right.shape
    slope = abs(math.log(shape)) + 1.0 / shape + abs(math.log(remaining))
    loss = (1.0 + abs((1.0 - order) * excess)) / remaining
    return value, rounding + 4.0 * UNIT_ROUNDOFF * (moved * slope + shape * loss)


def _betas(left: Beta, right: Beta, order: float) -> Moment:
    a = order * left.a + (1.0 - order) * right.a
    b = order * left.b + (1.0 - order) * right.b
    if a <= _NEAR_ZERO * order * left.a or b <= _NEAR_ZERO * order * left.b:
        return _INFINITE
    value, rounding = _total(
        float(betaln(a, b)),
        -order * float(betaln(left.a, left.b)),
        (order - 1.0) * float(betaln(right.a, right.b)),
    )
    weighed = ((1.0, a, b), (order, left.a, left.b), (abs(order - 1.0), right.a, right.b))
    parts = sum(w * float(np.sum(np.abs(gammaln([x, y, x + y])))) for w, x, y in weighed)
    moved = order * (left.a + left.b) + abs(1.0 - order) * (right.a + right.b)
    slope = 1.0 / a + 1.0 / b + abs(math.log(a)) + abs(math.log(b)) + math.log1p(a + b)
    return value, rounding + UNIT_ROUNDOFF * (8.0 * parts + 4.0 * moved * slope)


def _uniforms(left: Uniform, right: Uniform, order: float) -> Moment:
    widths = left.high - left.low, right.high - right.low
    inside = right.low <= left.low and left.high <= right.high
    if inside:
        return _total((order - 1.0) * math.log(widths[1] / widths[0]))
    overlap = min(left.high, right.high) - max(left.low, right.low)
    if order > 1.0:
        return _INFINITE
    if overlap <= 0.0:
        return -math.inf, 0.0
    return _total(
        math.log(overlap), -order * math.log(widths[0]), (order - 1.0) * math.log(widths[1])
    )


_FAMILIES: dict[type[Distribution], Callable[[Any, Any, float], Moment]] = {
    Beta: _betas,
    DiagonalNormal: _diagonal_normals,
    Exponential: _exponentials,
    Gamma: _gammas,
    Laplace: _laplaces,
    MultivariateNormal: _multivariate_normals,
    Normal: _normals,
    Uniform: _uniforms,
}


_FEW_ROUNDINGS = 2.0**-49
_SMALL = 1e-4
_MARGIN = 1e-13  # relative rounding error of a sum of positive terms, generously
_LARGE = 600.0  # exponents above which exponentials may overflow
_ROUND_UP = Fraction(10**11 + 1, 10**11)


def conversion(moment: float) -> float:
    """Return ``moment log(1 - 1/order) - log(order)``.

    It is added to log delta's bound (Canonne, Kamath and Steinke, 2020, Proposition 12).
    """
    return -(moment * math.log1p(1.0 / moment) + math.log1p(moment))


def sum_up(*terms: float) -> float:
    """Add rounded terms, rounded up, even if divided once."""
    return sum(terms) + _FEW_ROUNDINGS * sum(map(abs, terms))


def nearby_order(order_minus_one: float) -> float:
    """Return a nearby order with quick moments: an integer, if it is large."""
    order = 1.0 + order_minus_one
    # Binomial sums at integer orders are dense enough beyond.
    return order if order <= 64.0 else float(round(order))


def pure_rho(epsilon: Fraction) -> Fraction:
    """Return ``eps tanh(eps / 2)``, the rho of epsilon-DP, rounded up."""
    return rho_of(epsilon, lambda number: Fraction(math.tanh(0.5 * number)) * epsilon)


def rho_of(loss: Fraction, rho: Callable[[float], Fraction]) -> Fraction:
    """Round up a rho that is at most half the squared loss, and close to it for small ones."""
    number = float_up(loss)
    return round_up(loss**2 / 2 if number <= _SMALL else rho(number) * _ROUND_UP)


def log_moment_randomised_response(epsilon: float, order: float) -> float:
    """Return the log moment of randomised response."""
    if epsilon == 0.0:
        return 0.0
    if order * epsilon <= _LARGE:
        # cosh((order - 1/2) epsilon) / cosh(epsilon / 2), as what it is above one.
        added = math.sinh(0.5 * order * epsilon) * math.sinh(0.5 * (order - 1.0) * epsilon)
        value = math.log1p(2.0 * added / math.cosh(0.5 * epsilon))
    else:
        value = (order - 1.0) * epsilon + math.log1p(math.exp(-(2.0 * order - 1.0) * epsilon))
        value -= math.log1p(math.exp(-epsilon))
    return max(value * (1.0 + _MARGIN), sys.float_info.min)


def pure_at_order(epsilon: Fraction, order: float) -> Fraction:
    """Return the largest divergence of any epsilon-DP release."""
    bound = Fraction(order) * pure_rho(epsilon)
    moment = log_moment_randomised_response(float_up(epsilon), order)
    if math.isfinite(moment):
        bound = min(bound, Fraction(moment) / Fraction(order - 1.0))
    return round_up(bound)
