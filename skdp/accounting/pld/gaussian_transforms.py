"""Moment generating functions of Gaussian mixtures off the real axis, with bounded errors.

The quadrature rules and their error bounds are those of section 3 of
``docs/proofs/certified_intervals.md``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.numerics.arithmetic import (
    LARGEST_EXPONENT,
    SMALLEST_TAIL,
    UNIT_ROUNDOFF,
    gauss_legendre,
    log_mixture,
)
from skdp.accounting.pld.mixture_transforms import Mixture, log_decay
from skdp.accounting.pld.pairs.base import Array, Complex

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_CELLS = 256  # of the survey of a tilted density, at least
_CELLS_PER_DEVIATION = 8  # of a long survey
_STEP_BITS = 20  # of a step, so that its multiples are exact
_PANEL_NODES = 36  # nodes of a panel
_ELLIPSES = (3.0, 5.0)  # sums of the semi-axes of ellipses around a panel, over its half-width
_LARGEST_RULE = 50_000  # nodes of a rule
_LONGEST = 1e4  # range of a rule, in standard deviations
_HEIGHTS = np.array([0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])


class Rule(NamedTuple):
    """Points up to ``displacement``, log weights with the normal density, and an error.

    The error is absolute, for a modulus that integrates to about one.
    """

    points: Array
    log_weights: Array
    error: float
    displacement: float


class Landscape(NamedTuple):
    """Region where a tilted density matters, from bounds on coarse cells.

    ``peaks`` bound its logarithm on cells from ``left`` to ``right``; ``low`` to ``high`` matters.
    """

    left: Array
    right: Array
    peaks: Array
    low: float
    high: float


def survey(mixture: Mixture, theta: float, frequency: float, digits: float) -> Landscape:
    """Bound the tilted density, and find where it exceeds e^-digits.

    This includes its factor ``e^(frequency |arg M|)`` off the real line.
    """
    rate, mu, cut, replace = mixture.rate, mixture.mu, mixture.cut, mixture.two_sided
    reach = math.sqrt(2.0 * digits)
    # To the left of its top the tilted density falls as a standard normal one does, but for a
    # constant factor where M^-theta stays above one.
    rise = 0.0 if mixture.rises else -theta * math.log1p(-rate)
    turning = frequency * min(mu * reach, math.pi) * (2.0 if replace else 1.0)
    beyond = math.sqrt(8.0 * digits + 2.0 * turning)
    start = 0.5 * mu if mixture.half_line else -(mu + beyond if replace else reach)
    start, end = start - math.sqrt(2.0 * rise), min(mixture.top(theta) + beyond, cut)
    if replace:
        start = max(start, -cut)
    cells = max(_CELLS, math.ceil(min(end - start, 1e4) * _CELLS_PER_DEVIATION))
    edges = np.linspace(start, end, cells + 1)
    left, right = edges[:-1], edges[1:]
    up = log_mixture(rate, mu * (edges - 0.5 * mu))
    nearest = np.minimum(np.abs(left), np.abs(right)) * (left * right > 0.0)
    if not mixture.rises:
        peaks = -theta * up[:-1] - 0.5 * nearest**2
    else:
        # log M is convex: on a cell it is at most its chord, which meets a parabola.
        slope = (1.0 + theta) * np.diff(up) / (edges[1] - edges[0])
        at = np.clip(slope, left, right)
        peaks = (1.0 + theta) * up[:-1] + slope * (at - left) - 0.5 * at * at
    if replace:
        peaks = peaks - theta * log_mixture(rate, -mu * (right + 0.5 * mu))
    matter = np.flatnonzero(peaks > -digits - math.log(edges[-1] - edges[0] + 1.0))
    first, last = (matter[0], matter[-1]) if len(matter) else (0, 0)
    low = min(float(left[first]), -reach - mu * replace)
    high = min(max(float(right[last]), mu + reach), cut)
    if replace:
        low = max(low, -cut)
    if mixture.half_line:
        low = start
    return Landscape(left, right, peaks, low, high)


def line_rule(
    mixture: Mixture, theta: float, frequency: float, digits: float, landscape: Landscape
) -> Rule | None:
    """Return a trapezoidal rule with an error below ``4 e^-digits``, if not too long."""
    rate, mu = mixture.rate, mixture.mu
    widest = (0.5 if mixture.falls else 0.95) * math.pi / mu
    heights = min(math.sqrt(2.0 * digits), widest) * _HEIGHTS
    steepness = _steepness(rate, mu, landscape.right)
    if mixture.two_sided:
        steepness = steepness + _steepness(rate, mu, -landscape.left)
    moduli = landscape.peaks + frequency * np.multiply.outer(heights, steepness)
    if mixture.falls:
        shifted = -landscape.right if mixture.two_sided else landscape.left
        log_m = log_mixture(rate, mu * (shifted - 0.5 * mu))
        cosines = -np.log(np.cos(0.5 * mu * heights))[:, None]
        moduli = moduli + theta * np.minimum(cosines, log_m - math.log1p(-rate))
    width = math.log(landscape.right[-1] - landscape.left[0] + 1.0)
    sizes = np.maximum(np.max(moduli, axis=1), 0.0) + width + 0.5 * heights**2
    step = float(np.max(2.0 * math.pi * heights / (digits + sizes)))
    if not (landscape.high - landscape.low) / step < _LARGEST_RULE:
        return None
    # A step of few bits: its multiples are exact, so that no node is out of place.
    fraction, exponent = math.frexp(step)
    bits = _STEP_BITS
    step = math.ldexp(math.floor(math.ldexp(fraction, bits)), exponent - bits)
    first, last = math.floor(landscape.low / step), math.ceil(landscape.high / step)
    x: Array = step * np.arange(first, last + 1, dtype=np.float64)
    log_weights = math.log(step) - _LOG_SQRT_2PI - 0.5 * x * x
    return Rule(x, log_weights, 4.0 * math.exp(-digits), 0.0)


def _steepness(rate: float, mu: float, x: Array) -> Array:
    """Bound arg M at x + ia over a."""
    log_odds = math.log(rate) - math.log1p(-rate) + mu * (x - 0.5 * mu)
    return mu * np.exp(np.minimum(log_odds, 0.0))


def panel_rule(
    mixture: Mixture, theta: float, frequency: float, digits: float, landscape: Landscape
) -> Rule | None:
    """Return Gauss-Legendre panels, if not too many.

    Their error is below about ``5 e^-digits``.
    """
    points, gauss = gauss_legendre(_PANEL_NODES)
    length = landscape.high - landscape.low
    if not length < _LONGEST:
        return None
    edges = np.linspace(landscape.low, landscape.high, max(math.ceil(length / 5.0), 1) + 1)
    while True:
        centres, halves = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
        tried = (
            _panel_errors(mixture, theta, frequency, centres, halves, ellipse)
            for ellipse in _ELLIPSES
        )
        errors = np.min(list(tried), axis=0)
        coarse = ~(errors <= math.exp(-digits))
        if (len(centres) + np.sum(coarse)) * _PANEL_NODES > _LARGEST_RULE:
            return None
        if not np.any(coarse):
            break
        # Losses turn fastest where they are largest: only there are panels short.
        edges = np.sort(np.concatenate([edges, centres[coarse]]))
    x = (centres[:, None] + halves[:, None] * points).ravel()
    log_weights = np.log(np.outer(halves, gauss)).ravel() - _LOG_SQRT_2PI - 0.5 * x * x
    displacement = 4.0 * UNIT_ROUNDOFF * float(np.max(np.abs(edges)))
    return Rule(x, log_weights, float(np.sum(errors)) + 4.0 * math.exp(-digits), displacement)


def _panel_errors(
    mixture: Mixture, theta: float, frequency: float, centres: Array, halves: Array, ellipse: float
) -> Array:
    """Bound each panel's error by the modulus on an ellipse."""
    rate, mu = mixture.rate, mixture.mu
    reach = 0.5 * halves * (ellipse + 1.0 / ellipse)
    # Where the ellipse would come too near the zeros of M, the panel counts as too long.
    beyond = mu * 0.5 * halves * (ellipse - 1.0 / ellipse) > 0.45 * math.pi
    height = np.where(beyond, 0.0, 0.5 * halves * (ellipse - 1.0 / ellipse))
    left, right = centres - reach, centres + reach
    nearest = np.minimum(np.abs(left), np.abs(right)) * (left * right > 0.0)
    log_cosine = np.log(np.cos(0.5 * mu * height))
    largest = log_mixture(rate, mu * (right - 0.5 * mu))
    turns = frequency * height * _steepness(rate, mu, right)
    linear = np.logaddexp(largest, 0.0) + math.log(2.0 + 2.0 * theta + frequency)
    if mixture.two_sided:
        smallest = log_mixture(rate, -mu * (right + 0.5 * mu)) + log_cosine
        turns = turns + frequency * height * _steepness(rate, mu, -left)
        other = log_mixture(rate, -mu * (left + 0.5 * mu))
        linear = np.logaddexp(linear, other + math.log(2.0 + 2.0 * theta + frequency))
    else:
        smallest = log_mixture(rate, mu * (left - 0.5 * mu)) + log_cosine
    falling = -theta * np.maximum(smallest, math.log1p(-rate)) + turns
    rising = (1.0 + theta) * largest + turns
    if mixture.half_line:
        moduli = np.logaddexp(rising, falling)
    elif mixture.two_sided:
        moduli = rising + falling - turns
    else:
        moduli = rising if mixture.rises else falling
    moduli = np.logaddexp(moduli, linear) + 0.5 * height**2 - 0.5 * nearest**2 - _LOG_SQRT_2PI
    decay = -2.0 * _PANEL_NODES * math.log(ellipse)
    errors = 5.0 * halves * np.exp(np.minimum(moduli + decay, LARGEST_EXPONENT))
    return np.where(beyond, math.inf, errors)


_LARGEST_BLOCK = 4_000_000  # exponentials held at once


def equidistant_sums(losses: Array, weights: Array, frequencies: Array) -> Complex:
    """Sum ``weights (e^(i v losses) - 1)`` over equidistant frequencies.

    With v = a + b, ``e^(iv) - 1`` is the product of both such terms, plus their sum.
    """
    short = math.isqrt(len(frequencies)) + 1
    step = frequencies[1] - frequencies[0] if len(frequencies) > 1 else 0.0
    steps = step * np.arange(short)
    total = np.zeros((len(frequencies[::short]), short), dtype=np.complex128)
    block = max(_LARGEST_BLOCK // short, 1)
    for start in range(0, len(losses), block):
        x, w = losses[start : start + block], weights[start : start + block]
        outer = _turn(np.multiply.outer(frequencies[::short], x))
        inner = _turn(np.multiply.outer(x, steps))
        total += (outer * w) @ inner + (outer @ w)[:, None] + w @ inner
    return total.ravel()[: len(frequencies)]


def _turn(angles: Array) -> Complex:
    """Return e^(i angle) - 1."""
    out = np.empty(angles.shape, dtype=np.complex128)
    out.real = -2.0 * np.sin(0.5 * angles) ** 2
    out.imag = np.sin(angles)
    return out


_DIGITS = 60.0  # nats to which moments are computed; counts go up to 10^10
_LONG_RULE = 2000  # nodes, beyond which panels of different lengths may need fewer
_SUMMATION = 128.0  # roundings of a term: a pairwise sum adds 40, elementary functions a few each
_LARGEST_DIRECT = 1_000_000  # sines of one evaluation
_LARGEST_SUMS = 400_000_000  # terms of one evaluation


class TiltedNodes(NamedTuple):
    """A quadrature rule for the tilted loss of one release.

    ``E[e^((theta + i u) L)] - 1`` is ``excess + sum(weights (e^(i u losses) - 1)) - i u drift``.
    Errors are ``error`` for quadrature and ``rounding[0] + |u| rounding[1]``.
    """

    losses: Array
    weights: Array
    excess: float
    drift: float
    error: float
    rounding: tuple[float, float]


def tilted_nodes(mixture: Mixture, theta: float, frequency: float, digits: float) -> TiltedNodes:
    """Return a quadrature rule for all frequencies up to one.

    Errors are below about ``e^-digits``, or infinite.
    """
    digits += math.log(4.0 + 4.0 * theta + 2.0 * frequency)
    landscape = survey(mixture, theta, frequency, digits)
    rule = None
    if not mixture.half_line and mixture.cut == math.inf:
        rule = line_rule(mixture, theta, frequency, digits, landscape)
    if rule is None or len(rule.points) > _LONG_RULE:
        panels = panel_rule(mixture, theta, frequency, digits, landscape)
        if rule is None or (panels is not None and len(panels.points) < len(rule.points)):
            rule = panels
    if rule is None:
        return _UNKNOWN
    with np.errstate(over="ignore", invalid="ignore"):
        nodes = _tilt(mixture, theta, rule)
    return nodes if math.isfinite(nodes.error + sum(nodes.rounding)) else _UNKNOWN


def _tilt(mixture: Mixture, theta: float, rule: Rule) -> TiltedNodes:
    """Weigh the losses at a rule's nodes, with rounding errors."""
    mu, x, power = mixture.mu, rule.points, 1.0 + theta
    weights = np.exp(rule.log_weights)
    branches, linear, constant, drift, ratio, steep = mixture.evaluate(theta, x, weights)
    # In units of roundoff: e^x has an error of about |x|, log M one of about 1 + |t| relative to
    # itself with t its exponent, a pairwise sum one of the logarithm of its length.
    ulps = _SUMMATION + 2.0 * x * x + 8.0 * mu * (np.abs(x) + 0.5 * mu)
    moved = rule.displacement / UNIT_ROUNDOFF
    excess = constant - float(np.sum(weights * linear))
    size = 256.0 * (power + theta) * (mixture.cut_up + mixture.cut_base)
    change = ulps * np.abs(ratio) + moved * (np.abs(x * ratio) + steep * (1.0 + np.abs(ratio)))
    spread = abs(drift) + float(np.sum(weights * change))
    size += power * float(np.sum(weights * change))
    total, tilted = 1.0, []
    for _, log_tilt, order, loss_size in branches:
        tilt = np.exp(rule.log_weights + log_tilt)
        near = weights * np.expm1(np.clip(log_tilt, -1.0, 1.0))
        grown = np.where(np.abs(log_tilt) < 1.0, near, tilt - weights)
        excess += float(np.sum(grown))
        # A node out of place changes the integrand by its derivative.
        ulps_here = ulps + moved * (np.abs(x) + power * steep)
        size += float(np.sum(ulps_here * np.abs(grown) + 2.0 * ulps * tilt * order * loss_size))
        size += float(np.sum(2.0 * moved * order * tilt * steep))
        relative = 2.0 * (ulps_here + ulps * order * loss_size)
        spread += float(np.sum((relative * loss_size + 2.0 * moved * steep) * tilt))
        total += float(np.sum(tilt))
        tilted.append(tilt)
    return TiltedNodes(
        np.concatenate([losses for losses, *_ in branches]),
        np.concatenate(tilted),
        excess,
        drift,
        rule.error * (total + size),
        (UNIT_ROUNDOFF * size, UNIT_ROUNDOFF * spread),
    )


_UNKNOWN = TiltedNodes(np.zeros(1), np.ones(1), math.inf, 0.0, math.inf, (math.inf, math.inf))


def transform(nodes: TiltedNodes, frequencies: Array) -> tuple[NDArray[np.complex128], Array]:
    """Return log E[e^((theta + i u) L)] at equidistant u, and error bounds.

    If infinite, only the real part is meaningful: an upper bound.
    """
    terms = len(frequencies) * len(nodes.losses)
    if not (math.isfinite(nodes.error + sum(nodes.rounding)) and terms <= _LARGEST_SUMS):
        unknown = np.full(len(frequencies), math.inf)
        return unknown.astype(np.complex128), unknown
    error = nodes.error + nodes.rounding[0] + np.abs(frequencies) * nodes.rounding[1]
    if terms <= _LARGEST_DIRECT:
        angles = np.multiply.outer(0.5 * frequencies, nodes.losses)
        sines = np.sin(angles)
        products = sines * nodes.weights
        real = -2.0 * np.sum(products * sines, axis=1)
        imaginary = 2.0 * np.sum(products * np.cos(angles), axis=1)
    else:
        sums = equidistant_sums(nodes.losses, nodes.weights, frequencies)
        real, imaginary = sums.real, sums.imag
        size = np.minimum(
            2.0 * np.sum(nodes.weights),
            np.abs(frequencies) * np.dot(nodes.weights, np.abs(nodes.losses)),
        )
        # A product of complex matrices may add its terms in any order, each as four products.
        error = error + 12.0 * UNIT_ROUNDOFF * (len(nodes.losses) + 20.0) * size
    return log_with_error(real + nodes.excess, imaginary - frequencies * nodes.drift, error)


def log_with_error(
    real: Array, imaginary: Array, error: Array
) -> tuple[NDArray[np.complex128], Array]:
    """Return log(1 + u) and its error, for a u with a bounded absolute error."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = real * (2.0 + real) + imaginary**2
    modulus = np.hypot(1.0 + real, imaginary)
    small = error >= 0.25 * modulus
    log_modulus = np.log(np.maximum(modulus + np.where(small, error, 0.0), SMALLEST_TAIL))
    values = np.empty(len(real), dtype=np.complex128)
    near = (np.abs(square) < 0.5) & ~small
    values.real = np.where(near, 0.5 * np.log1p(np.clip(square, -0.5, 0.5)), log_modulus)
    values.imag = np.arctan2(imaginary, 1.0 + real)
    relative = -np.log1p(-np.where(small, 0.0, error / np.maximum(modulus, SMALLEST_TAIL)))
    errors = relative + 4.0 * UNIT_ROUNDOFF * np.abs(values)
    return values, np.where(small, math.inf, errors)


class GaussianMixtureLoss:
    """Transform of a release's loss, perhaps without its largest losses."""

    failure = 0.0

    def __init__(self, mixture: Mixture) -> None:
        self.mixture = mixture

    @property
    def cut_mass(self) -> float:
        """See `Transformable`."""
        return self.mixture.cut_mass

    @property
    def largest_tilt(self) -> float:
        """See `Transformable`."""
        if not self.mixture.rises or self.mixture.cut < math.inf:
            return math.inf
        return 12.0 / self.mixture.mu + 2.0

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """See `Transformable`."""
        nodes = tilted_nodes(self.mixture, theta, 0.0, _DIGITS)
        total = 1.0 + nodes.excess
        if not (0.0 < total < math.inf):
            return math.inf, math.inf, math.inf
        mean = (float(np.dot(nodes.weights, nodes.losses)) - nodes.drift) / total
        square = float(np.dot(nodes.weights, nodes.losses * nodes.losses)) / total
        return math.log1p(nodes.excess), mean, square - mean * mean

    def log_transform(self, z: NDArray[np.complex128]) -> tuple[NDArray[np.complex128], Array]:
        """See `Transformable`."""
        frequencies = z.imag
        reach = float(np.max(frequencies))
        nodes = tilted_nodes(self.mixture, float(z[0].real), reach, _DIGITS)
        return transform(nodes, frequencies)

    def decay(self, theta: float, frequency: float) -> float:
        """See `Transformable`."""
        return log_decay(self.mixture, theta, frequency)
