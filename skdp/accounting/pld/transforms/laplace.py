"""Moments of the privacy loss of Laplace releases, at complex orders.

All are written as one plus what the loss adds, so that they stay accurate when there is a lot of
noise and the logarithm is multiplied by a large count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdp.accounting.numerics.floats import UNIT_ROUNDOFF, log_mixture
from skdp.accounting.numerics.quadrature import gauss_legendre
from skdp.accounting.pld.pairs.base import Array, Complex, log_one_plus
from skdp.accounting.pld.transforms.fourier_sums import equidistant_sums
from skdp.accounting.pld.transforms.gaussian import log_with_error
from skdp.accounting.pld.transforms.laplace_panels import Branch, tilted_sums


@dataclass(frozen=True)
class _Limits:
    """Where series, quadratures and expansions take over."""

    large_exponent: float = 1.0  # exponent from which exponentials need no series
    terms: int = 14  # of a series
    points: int = 24  # nodes of a panel
    phase: float = 4.0  # radians that a panel of the quadrature may see
    width: float = 0.4  # of a panel, against pi/2 to the nearest singularity
    largest_table: int = 500_000  # numbers held at once
    largest_work: int = 4_000_000  # numbers of one evaluation
    many: int = 60_000  # numbers from which another method is quicker


_LIMITS = _Limits()


def randomised_response_transform(epsilon: float, z: Complex) -> tuple[Complex, Array]:
    """Return log E[e^(zL)] of randomised response, of loss ``+-epsilon``, and error bounds."""
    # E = cosh((z + 1/2) epsilon) / cosh(epsilon / 2).
    if (abs(z[0].real) + 1.0) * epsilon < _LIMITS.large_exponent:
        added = np.sinh(0.5 * (z + 1.0) * epsilon) * np.sinh(0.5 * z * epsilon)
        added *= 2.0 / math.cosh(0.5 * epsilon)
        return log_one_plus(added), _relative_errors(added, 16.0 + 4.0 * np.abs(z) * epsilon)
    exponent: Complex = np.asarray((z + 0.5) * epsilon, dtype=np.complex128)
    rest: Complex = np.exp(-2.0 * exponent)
    values = exponent - 0.5 * epsilon + log_one_plus(rest) - math.log1p(math.exp(-epsilon))
    sizes = np.abs(exponent) + epsilon + 2.0 * np.abs(exponent * rest) / _modulus(1.0 + rest)
    return values, UNIT_ROUNDOFF * (16.0 + 8.0 * sizes + 8.0 / _modulus(1.0 + rest))


def plain_transform(shift: float, z: Complex) -> tuple[Complex, Array]:
    """Return log E[e^(zL)] of a Laplace release, in closed form, and bounds on its error."""
    # With s = z + 1/2: E = e^(-t/2) (cosh(s t) + sinh(s t) / (2 s)).
    s = z + 0.5
    if float(np.max(np.abs(s))) * shift < _LIMITS.large_exponent:
        x, y = s * shift, 0.5 * shift
        added: Complex = np.sinh(0.5 * (z + 1.0) * shift) * np.sinh(0.5 * z * shift)
        added = 2.0 * added
        # sinh(x)/x - sinh(y)/y, a series in x^2 and y^2 with x^2 - y^2 in front.
        square, other = x * x, y * y
        power, series, factorial = np.ones_like(x), np.zeros_like(x), 1.0
        for k in range(1, _LIMITS.terms):
            factorial *= 2 * k * (2 * k + 1)
            series += power / factorial
            power = power * square + other**k
        added = added + y * z * (z + 1.0) * shift * shift * series
        added = added * math.exp(-0.5 * shift)
        return log_one_plus(added), _relative_errors(added, 64.0 + 0.0 * np.abs(z))
    exponent = z * shift
    rest = z / (2.0 * s) * (np.exp(-2.0 * s * shift) - 1.0)
    values = exponent + log_one_plus(rest)
    sizes = np.abs(exponent) + (4.0 + 2.0 * np.abs(s) * shift) / _modulus(1.0 + rest)
    return values, 8.0 * UNIT_ROUNDOFF * (1.0 + sizes)


def mixture_transform(
    rises: bool, falls: bool, rate: float, shift: float, z: Complex
) -> tuple[Complex, Array]:
    """Return log E[e^(zL)] of a sampled Laplace release, by quadrature, and bounds on the error.

    That is E[M^(1 + z)] if it rises, E[M^(-z)] if it falls; both have a part in a replacement. The
    arguments have a common real part >= 0. Errors are infinite where this would take too long.
    """
    largest = float(np.max(np.abs(z))) + 1.0
    panels = _panels(rate, shift, largest)
    size = panels * _LIMITS.points * len(z)
    if size > _LIMITS.many and _are_equidistant(z):
        return _many_moments(rises, falls, rate, shift, z)
    if size > _LIMITS.largest_table:
        if len(z) > 1 and size <= _LIMITS.largest_work:
            halves = np.array_split(z, 2)
            parts = [mixture_transform(rises, falls, rate, shift, half) for half in halves]
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        return np.zeros(len(z), dtype=np.complex128), np.full(len(z), np.inf)
    added, errors = _add_excess(rises, falls, rate, shift, z, panels)
    return log_one_plus(added), errors / _modulus(1.0 + added)


def _add_excess(
    rises: bool, falls: bool, rate: float, shift: float, z: Complex, panels: int
) -> tuple[Complex, Array]:
    """Return E[e^(zL)] - 1 and bounds on its error."""
    losses, weights = _quadrature(rate, shift, panels)
    # Of the loss: it grows by the share of the shifted component, and exponents are rounded.
    doubts = 4.0 * (np.abs(losses) - (shift + 1.0) * np.expm1(math.log1p(-rate) - losses))
    if rises and falls:
        # Of Q0's mass, x > 0 has Q = c Q0 and P = M Q0; x < 0 has these exchanged.
        c = float(log_mixture(rate, -shift))
        losses, weights, doubts = losses[1:] - c, 2.0 * math.exp(c) * weights[1:], doubts[1:]
        doubts = doubts + 4.0 * abs(c)
        terms = 0.5 * (_excess(z + 1.0, losses) + _excess(-z, losses))
    else:
        terms = _excess(z + 1.0 if rises else -z, losses)
    added: Complex = np.sum(weights * terms, axis=1)
    size = 64.0 * np.abs(added) + np.sum(weights * _doubt(z, losses, doubts), axis=1)
    return added, UNIT_ROUNDOFF * size


def _panels(rate: float, shift: float, largest: float) -> int:
    """Return how many panels resolve powers up to the given one."""
    # log M turns by at most twice this, also a panel's width off the end of the range.
    steepest = 1.0 / (1.0 + (1.0 - rate) / rate * math.exp(-shift - 2.0))
    return math.ceil(shift * max(1.0 / _LIMITS.width, 2.0 * largest * steepest / _LIMITS.phase))


def _are_equidistant(z: Complex) -> bool:
    """Tell whether frequencies are the multiples of one."""
    if len(z) < 3 or z[0].imag != 0.0:
        return False
    multiples = z[1].imag * np.arange(len(z))
    return bool(np.all(np.abs(z.imag - multiples) <= 4.0 * UNIT_ROUNDOFF * multiples))


def _many_moments(
    rises: bool, falls: bool, rate: float, shift: float, z: Complex
) -> tuple[Complex, Array]:
    """Return ``mixture_transform`` for so many frequencies that each must be cheap."""
    theta, frequencies = float(z[0].real), np.asarray(z.imag)
    unknown = np.zeros(len(z), dtype=np.complex128), np.full(len(z), np.inf)
    panels = _panels(rate, shift, theta + 1.0)
    if panels * _LIMITS.points > _LIMITS.largest_table:
        return unknown
    excess, doubt = _add_excess(rises, falls, rate, shift, z[:1], panels)
    least, top = (float(log_mixture(rate, loss)) for loss in (-shift, shift))
    half = 0.5 * math.exp(-shift)
    if rises and falls:
        scale, atoms = math.exp(least), [(top - least, half)]
    else:
        scale, atoms = 1.0, [(least, 0.5), (top, half)]
        least = 0.0
    branches = [Branch(scale, theta + 1.0, 1.0)] if rises else []
    branches += [Branch(scale, -theta, -1.0)] if falls else []
    sums = tilted_sums(rate, shift, least, branches, frequencies)
    if sums is None:
        return unknown
    losses = np.array([b.sign * x for b in branches for x, _ in atoms])
    weights = np.array([b.scale * m * math.exp(b.power * x) for b in branches for x, m in atoms])
    values = sums.values + equidistant_sums(losses, weights, frequencies)
    ulps = 512.0 + 8.0 * (theta + 1.0) * np.abs(losses)
    size = np.minimum(
        2.0 * np.sum(weights * ulps), frequencies * np.dot(weights, ulps * np.abs(losses))
    )
    errors = sums.errors + doubt[0] + UNIT_ROUNDOFF * size
    errors += UNIT_ROUNDOFF * frequencies * np.dot(weights, ulps * np.abs(losses))
    return log_with_error(values.real + excess[0].real, values.imag, errors)


@lru_cache(maxsize=16)
def _quadrature(rate: float, shift: float, panels: int) -> tuple[Array, Array]:
    """Return log M and weights under Q0: the lower atom, quadrature nodes, the upper atom."""
    nodes, weights = gauss_legendre(_LIMITS.points)
    width = shift / panels
    u = (width * (np.arange(panels)[:, None] + 0.5 * (nodes + 1.0)[None, :])).ravel()
    weights = np.tile(0.5 * width * weights, panels) * 0.5 * np.exp(-u)
    exponents = np.concatenate([[-shift], 2.0 * u - shift, [shift]])
    atoms = [0.5], [0.5 * math.exp(-shift)]
    return log_mixture(rate, exponents), np.concatenate([atoms[0], weights, atoms[1]])


def _excess(order: Complex, log_ratio: Array) -> Complex:
    """Return M^w - 1 - w (M - 1), which has the mean of M^w - 1 as the mean of M is one."""
    w, x = order[:, None], log_ratio[None, :]
    small = np.abs(w * x) + np.abs(x) < 0.5
    # The sum of x^k (1 + w + ... + w^(k-2)) / k! over k >= 2, its powers of w and x together.
    product, x_small = np.where(small, w * x, 0.0), np.where(small, x, 0.0)
    power, factorial = np.ones_like(x_small), 1.0
    sums = series = np.zeros_like(product)
    for k in range(2, _LIMITS.terms + 2):
        factorial *= k
        sums = power + product * sums
        series = series + sums / factorial
        power = power * x_small
    series *= product * (product - x_small)
    with np.errstate(over="ignore", invalid="ignore"):
        direct = np.exp(w * x) - 1.0 - w * np.expm1(x)
    return np.where(small, series, direct)


def _doubt(z: Complex, log_ratio: Array, doubts: Array) -> Array:
    """Bound the error of an excess, with that of its logarithms, both in units of roundoff."""
    x, dx = np.abs(log_ratio)[None, :], doubts[None, :]
    w = np.abs(z)[:, None] + 1.0
    with np.errstate(over="ignore"):
        tilt = np.exp(np.minimum((float(z[0].real) + 1.0) * x, 700.0))
        large = 64.0 * (tilt * (1.0 + w * x) + 1.0 + w * np.expm1(x)) + (tilt + np.exp(x)) * w * dx
    small = 64.0 * (w * x) ** 2 + 2.0 * w * w * (x + UNIT_ROUNDOFF * dx) * dx
    return np.where(w * x + x < 0.5, small, large)


def _modulus(value: Complex) -> Array:
    return np.maximum(np.abs(value), 1e-300)


def _relative_errors(added: Complex, factor: Array) -> Array:
    return UNIT_ROUNDOFF * factor * np.abs(added) / _modulus(1.0 + added)
