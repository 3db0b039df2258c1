"""Moment generating functions of the losses of Gaussian mixtures, off the real axis.

The integrands of `mixtures` are analytic near the real line, and the rules of `gaussian_rules`
converge fast.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.numerics.floats import SMALLEST_TAIL, UNIT_ROUNDOFF
from skdp.accounting.pld.pairs.base import Array
from skdp.accounting.pld.transforms.decay import log_decay
from skdp.accounting.pld.transforms.fourier_sums import equidistant_sums
from skdp.accounting.pld.transforms.gaussian_rules import Rule, line_rule, panel_rule, survey
from skdp.accounting.pld.transforms.mixtures import Mixture

_DIGITS = 60.0  # nats to which moments are computed; counts go up to 10^10
_LONG_RULE = 2000  # nodes, beyond which panels of different lengths may need fewer
_SUMMATION = 128.0  # roundings of a term: a pairwise sum adds 40, elementary functions a few each
_LARGEST_DIRECT = 1_000_000  # sines of one evaluation
_LARGEST_SUMS = 400_000_000  # terms of one evaluation


class TiltedNodes(NamedTuple):
    """A quadrature rule for the tilted loss of one release.

    ``E[e^((theta + i u) L)] - 1`` is ``excess + sum(weights (e^(i u losses) - 1)) - i u drift``, up
    to ``error`` (quadrature) plus ``rounding[0] + |u| rounding[1]``.
    """

    losses: Array
    weights: Array
    excess: float
    drift: float
    error: float
    rounding: tuple[float, float]


def tilted_nodes(mixture: Mixture, theta: float, frequency: float, digits: float) -> TiltedNodes:
    """Return a quadrature rule that serves all frequencies up to the given one.

    Errors are below about ``e^-digits``; infinite where numbers overflow or rules are too long.
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
    """Weigh the losses at the nodes of a rule, and count what rounding does to their sums."""
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
    """Evaluate log E[e^((theta + i u) L)], many u being equidistant, and bound the error.

    If infinite, the real part bounds the true one from above; the imaginary one says nothing.
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
    """Return log(1 + u), and its error, for a number u known up to an error of its modulus."""
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
    """The transform of the loss of one release, its largest losses perhaps cut off."""

    failure = 0.0

    def __init__(self, mixture: Mixture) -> None:
        self.mixture = mixture

    @property
    def cut_mass(self) -> float:
        """Probability under P of the losses cut off."""
        return self.mixture.cut_mass

    @property
    def largest_tilt(self) -> float:
        """A tilt at which moments are not yet out of reach."""
        if not self.mixture.rises or self.mixture.cut < math.inf:
            return math.inf
        return 12.0 / self.mixture.mu + 2.0

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Return the log moment and its first two derivatives, estimated."""
        nodes = tilted_nodes(self.mixture, theta, 0.0, _DIGITS)
        total = 1.0 + nodes.excess
        if not (0.0 < total < math.inf):
            return math.inf, math.inf, math.inf
        mean = (float(np.dot(nodes.weights, nodes.losses)) - nodes.drift) / total
        square = float(np.dot(nodes.weights, nodes.losses * nodes.losses)) / total
        return math.log1p(nodes.excess), mean, square - mean * mean

    def log_transform(self, z: NDArray[np.complex128]) -> tuple[NDArray[np.complex128], Array]:
        """Return the logarithm of the moments and bounds on its absolute error; see `Pair`."""
        frequencies = z.imag
        reach = float(np.max(frequencies))
        nodes = tilted_nodes(self.mixture, float(z[0].real), reach, _DIGITS)
        return transform(nodes, frequencies)

    def decay(self, theta: float, frequency: float) -> float:
        """Bound how much smaller the moments are at all frequencies from a given one on."""
        return log_decay(self.mixture, theta, frequency)
