"""How fast the moment generating function of a Gaussian mixture falls along the imaginary axis.

``E[e^((theta + i v) L)]`` is an integral over the real line of a function that is analytic near it,
and may be taken along ``x + i b(x)`` instead. There the integrand's modulus carries the factor
``e^(-v Im L)``, and with ``b`` of the sign of the loss's slope the loss has ``Im L >= 0``. So the
integral of the modulus bounds the transform at ``v``, and at all larger frequencies too.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.pld.gaussian_rules import Mixture
from skdp.accounting.pld.pairs import Array

_POINTS = 200  # of the rule for the modulus, which is refined once
_REACH = 8.5  # standard deviations around the ends of what the tilted density can weigh
_SHARE = 0.9  # of the strip around the real line in which the integrand is analytic
_LARGEST_FALL = -20.0  # what is claimed at most; the rule's range ends where densities are smaller
_ONSET = 1.0  # over which the contour of the half-line leaves its end


def log_decay(mixture: Mixture, theta: float, frequency: float, points: int = _POINTS) -> float:
    """Bound how much smaller the transform is at all frequencies from a given one on.

    Parameters
    ----------
    mixture : Mixture
        The pair; its rate lies in (0, 1).
    theta : float
        Real part of the argument, at least 0.
    frequency : float
        The frequency ``u``, at least 0.
    points : int, default=200
        Length of the rule.

    Returns
    -------
    float
        An upper bound on ``log |E e^((theta + i v) L)| - log E e^(theta L)`` for all ``v >= u``,
        at most 0.
    """
    fine = _log_decay(mixture, theta, frequency, 2 * points)
    coarse = _log_decay(mixture, theta, frequency, points)
    if not (math.isfinite(fine) and math.isfinite(coarse)):
        return 0.0
    # The rule's error is estimated by its change, and that counted twice.
    fine, coarse = max(fine, _LARGEST_FALL), max(coarse, _LARGEST_FALL)
    return min(fine + 2.0 * abs(fine - coarse), 0.0)


def _log_decay(mixture: Mixture, theta: float, frequency: float, points: int) -> float:
    kind, rate, mu, cut = mixture
    half_line = kind == "uniform-replace-one"
    replace = kind == "poisson-replace-one"
    top = mu * (1.0 + 2.0 * theta if replace else (1.0 if kind == "add" else 1.0 + theta))
    start = 0.5 * mu if half_line else -_REACH - mu * replace
    end = min(top + _REACH, cut)
    x = np.linspace(start, end, points)
    shift = x - 0.5 * mu
    exponent = mu * shift
    weight = _share(rate, exponent)
    slope = mu * weight
    bend = mu * slope * (1.0 - weight)
    if replace:
        mirrored = _share(rate, -mu * (x + 0.5 * mu))
        slope = slope + mu * mirrored
        bend = bend - mu * mu * mirrored * (1.0 - mirrored)
    limit = _SHARE * (math.pi if kind == "remove" else 0.5 * math.pi) / mu
    pull = frequency / (1.0 + mu * mu)  # the best where the slope is exponential and u small
    wave = np.tanh(pull * slope / limit)
    height = limit * wave
    tangent = (1.0 - wave * wave) * pull * bend
    for distance, sign in ((shift, 1.0), (cut - x, -1.0)):
        # The contour has to start and to end where the integral does.
        if half_line if sign > 0.0 else end == cut:
            onset = np.tanh(distance / _ONSET)
            tangent = tangent * onset + sign * height * (1.0 - onset * onset) / _ONSET
            height = height * onset
    step = x[1] - x[0]
    base = (step / math.sqrt(2.0 * math.pi)) * np.exp(-0.5 * x * x)
    base[[0, -1]] *= 0.5
    stretched = 0.5 * height * height + 0.5 * np.log1p(tangent * tangent)
    log_ratio, modulus, angle = _log_ratio(rate, exponent, mu * height)
    with np.errstate(over="ignore", invalid="ignore"):
        if replace:
            below, below_modulus, below_angle = _log_ratio(rate, -mu * (x + 0.5 * mu), -mu * height)
            turn = angle - below_angle
            log_tilt = (1.0 + theta) * log_ratio - theta * below
            growth = (1.0 + theta) * modulus - theta * below_modulus
            parts = [(log_tilt, growth - frequency * turn)]
        elif kind == "add":
            parts = [(-theta * log_ratio, -theta * modulus - frequency * angle)]
        else:
            power = 1.0 + theta
            parts = [(power * log_ratio, power * modulus - frequency * angle)]
            if half_line:
                parts.append((-theta * log_ratio, -theta * modulus - frequency * angle))
        total = (1.0 - rate) * math.erf(0.5 * mu / math.sqrt(2.0)) if half_line else 0.0
        change = 0.0
        for log_tilt, log_change in parts:
            tilted = base * np.exp(log_tilt)
            total += float(np.sum(tilted))
            change += float(np.dot(tilted, np.expm1(stretched + log_change)))
    ratio = change / total
    return math.log1p(ratio) if -1.0 < ratio < 0.0 else (0.0 if ratio >= 0.0 else math.nan)


def _share(rate: float, exponent: Array) -> Array:
    """Return the shifted component's share of the mixture's density."""
    return 1.0 / (1.0 + np.exp(np.minimum(math.log1p(-rate) - math.log(rate) - exponent, 700.0)))


def _log_ratio(rate: float, exponent: Array, angle: Array) -> tuple[Array, Array, Array]:
    """Return log M on the line, and the change of its real part and its imaginary part off it."""
    share = _share(rate, exponent)
    cosine = -2.0 * np.sin(0.5 * angle) ** 2
    # M(x + ib) / M(x) = 1 + share (e^(i angle) - 1).
    real, imaginary = share * cosine, share * np.sin(angle)
    change = 0.5 * np.log1p(real * (2.0 + real) + imaginary * imaginary)
    near = np.log1p(rate * np.expm1(np.minimum(exponent, 30.0)))
    log_ratio = np.where(exponent < 30.0, near, math.log(rate) + exponent)
    return log_ratio, change, np.arctan2(imaginary, 1.0 + real)
