"""Quadrature rules for the moments of Gaussian mixtures, with bounds on their errors.

On the whole line the trapezoidal rule converges geometrically, on a part of it Gauss-Legendre
panels do; both errors are bounded by the size of the integrand off the real line (Trefethen and
Weideman, 2014, Theorem 5.1; Trefethen, 2008, Theorem 4.5). There, for ``M`` as in
`mixtures`, ``|M(x + ia)| <= M(x)``; ``|arg M(x + ia)|`` is at most ``mu a`` and at most
``mu a`` times the odds of the shifted component; and for ``mu a <= pi / 2``
``|M(x + ia)| >= max(M(x) cos(mu a / 2), 1 - q)``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skdp.accounting.numerics.floats import LARGEST_EXPONENT, UNIT_ROUNDOFF, log_mixture
from skdp.accounting.numerics.quadrature import gauss_legendre
from skdp.accounting.pld.pairs.base import Array
from skdp.accounting.pld.transforms.mixtures import Mixture

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
    """Points up to ``displacement``, logarithms of weights times the normal density, and an error.

    The error is absolute, for an integrand whose modulus integrates to about one.
    """

    points: Array
    log_weights: Array
    error: float
    displacement: float


class Landscape(NamedTuple):
    """Where a tilted density matters, from bounds on its logarithm on the cells of a coarse grid.

    ``peaks`` are these bounds, ``left`` and ``right`` the cells' ends, ``low`` to ``high`` the
    range outside which nothing matters.
    """

    left: Array
    right: Array
    peaks: Array
    low: float
    high: float


def survey(mixture: Mixture, theta: float, frequency: float, digits: float) -> Landscape:
    """Bound the tilted density from above, and find where it exceeds e^-digits.

    The cells go so far that it stays below that beyond them at any admissible distance from the
    real line, where it has the factor ``e^(frequency |arg M|)``.
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
    """Return Gauss-Legendre panels on the range that matters, if not too many.

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
    """Bound the error of each panel by the integrand's modulus on an ellipse around it."""
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
