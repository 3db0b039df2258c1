"""Renyi divergences of releases with Laplace or discrete noise.

All functions return upper bounds on ``log E_Q[(P/Q)^alpha]``, which is ``(alpha - 1)`` times the
Renyi divergence of order ``alpha > 1`` from ``P`` to ``Q``. Moments near one are computed as what
they are above it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.analysis import LaplaceMixture, laplace_mixture, largest_loss, log_mixture
from skdp.accounting.events import DiscreteGaussianEvent, DiscreteLaplaceEvent, Event
from skdp.accounting.numerics.quadrature import gauss_legendre

Array = NDArray[np.float64]

_MARGIN = 1e-12  # relative rounding error of a sum of positive terms, generously
_TERMS = 16
_POINTS = 20
_NATS = 4.0  # by which the integrand may change over a panel, if it is no shorter anyway
_WIDTH = 0.25
_MOST_PANELS = 20_000
_MOST_STEPS = 2**12  # of an integer query
_LARGE = 1e100


def noise_log_moment(leaf: Event, adjacency: str, order: float) -> float | None:
    """Return the log moment of a leaf with Laplace or discrete noise, None for any other leaf.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float or None
        An upper bound on the log moment, infinite where it is out of reach.
    """
    if isinstance(leaf, DiscreteGaussianEvent):
        return discrete_gaussian(leaf.sensitivity, leaf.noise_multiplier, order)
    if isinstance(leaf, DiscreteLaplaceEvent):
        return discrete_laplace(leaf.sensitivity, 1.0 / leaf.noise_multiplier, order)
    mixture = laplace_mixture(leaf, adjacency)
    if mixture is None:
        return None
    if mixture.kind == "laplace":
        return laplace(mixture.shift, order)
    return sampled_laplace(mixture, order)


def laplace(shift: float, order: float) -> float:
    """Laplace noise, in closed form.

    Parameters
    ----------
    shift : float
        Sensitivity over scale.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float
        An upper bound on the log moment. It is convex in the shift and zero at zero, so that it
        also covers a shift spread over several coordinates.
    """
    s = order - 0.5
    if s * shift > 1.0:
        rest = (order - 1.0) * math.expm1(-2.0 * s * shift) / (2.0 * s)
        value = (order - 1.0) * shift + math.log1p(rest)
        return value + _MARGIN * (value + 1e-3 * (order - 1.0) * shift)
    # cosh(s t) + sinh(s t) / (2 s) less e^(t/2), with s^2 - 1/4 = alpha (alpha - 1) in front.
    x, y = (s * shift) ** 2, (0.5 * shift) ** 2
    power, series, factorial = 1.0, 0.0, 1.0
    for k in range(1, _TERMS):
        factorial *= 2 * k * (2 * k + 1)
        series += power / factorial
        power = power * x + y**k
    added = 2.0 * math.sinh(0.5 * order * shift) * math.sinh(0.5 * (order - 1.0) * shift)
    added += 0.5 * shift * order * (order - 1.0) * shift * shift * series
    return math.log1p(math.exp(-0.5 * shift) * added) * (1.0 + _MARGIN)


def sampled_laplace(mixture: LaplaceMixture, order: float) -> float:
    """Laplace noise on Poisson samples, by quadrature of an analytic integrand.

    Parameters
    ----------
    mixture : LaplaceMixture
        The leaf.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float
        An upper bound on the log moment; under add-remove the larger of the two directions.
    """
    shift = mixture.shift
    length = shift * max(1.0 / _WIDTH, 2.0 * order / _NATS)
    if length > _MOST_PANELS or order * shift > 600.0:
        return (order - 1.0) * largest_loss(mixture.kind, mixture.rate, mixture.shift)
    panels = math.ceil(length)
    losses, weights = _quadrature(mixture.rate, shift, panels)
    if mixture.kind == "poisson-replace-one":
        least = float(log_mixture(mixture.rate, -shift))
        losses, weights = losses[1:] - least, math.exp(least) * weights[1:]
        excess = _excess(order, losses) + _excess(1.0 - order, losses)
        added = float(np.dot(weights, excess))
    else:
        added = max(float(np.dot(weights, _excess(w, losses))) for w in (order, 1.0 - order))
    return math.log1p(added) * (1.0 + _MARGIN)


@lru_cache(maxsize=64)
def _quadrature(rate: float, shift: float, panels: int) -> tuple[Array, Array]:
    """Return log likelihood ratios of the mixture and weights under the unshifted noise."""
    nodes, weights = gauss_legendre(_POINTS)
    width = shift / panels
    u = (width * (np.arange(panels)[:, None] + 0.5 * (nodes + 1.0)[None, :])).ravel()
    weights = np.tile(0.5 * width * weights, panels) * 0.5 * np.exp(-u)
    exponents = np.concatenate([[-shift], 2.0 * u - shift, [shift]])
    return (
        log_mixture(rate, exponents),
        np.concatenate([[0.5], weights, [0.5 * math.exp(-shift)]]),
    )


def _excess(power: float, log_ratio: Array) -> Array:
    """Return ``M^w - 1 - w (M - 1)``, not negative, whose mean is that of ``M^w - 1``."""
    x = log_ratio
    coefficient, series, sums, high = x.copy(), np.zeros(len(x)), 0.0, 1.0
    for k in range(2, _TERMS + 2):
        coefficient = coefficient * x / k
        sums += high  # 1 + w + ... + w^(k-2)
        high *= power
        series += coefficient * sums
    series *= power * (power - 1.0)
    direct = np.expm1(power * x) - power * np.expm1(x)
    small = (abs(power) + 1.0) * np.abs(x) < 0.3
    return np.maximum(np.where(small, series, direct), 0.0)


def discrete_laplace(sensitivity: int, shift: float, order: float) -> float:
    """Discrete Laplace noise, as a finite sum.

    Parameters
    ----------
    sensitivity : int
        Largest change of the query.
    shift : float
        Sensitivity over scale.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float
        An upper bound on the log moment.
    """
    # A larger shift, or one in fewer steps of the same total, reveals more.
    if shift > _LARGE:
        return (order - 1.0) * shift
    merged = math.ceil(sensitivity / _MOST_STEPS)
    steps = math.ceil(sensitivity / merged)
    shift *= steps * merged / sensitivity
    scale = shift / steps
    losses = shift * (2.0 * np.arange(steps + 1) / steps - 1.0)
    if order * shift > 1.0:
        log_masses = scale * np.arange(-steps, 1.0) + math.log(-math.expm1(-scale))
        log_masses[0], log_masses[-1] = -shift, 0.0
        terms = log_masses + (order - 1.0) * (losses - shift)
        total = float(np.sum(np.exp(terms))) / (1.0 + math.exp(-scale))
        value = (order - 1.0) * shift + math.log(total)
        return value + _MARGIN * (value + 1e-3 * (order - 1.0) * shift)
    weights = np.full(len(losses), -math.expm1(-scale))
    weights[0] = weights[-1] = 1.0
    weights *= math.exp(-0.5 * shift) / (1.0 + math.exp(-scale))
    terms = np.sinh(0.5 * order * losses) * np.sinh(0.5 * (order - 1.0) * losses)
    return math.log1p(2.0 * float(np.dot(weights, terms))) * (1.0 + _MARGIN)


def discrete_gaussian(sensitivity: int, noise_multiplier: float, order: float) -> float:
    """Discrete Gaussian noise: the Gaussian moment times a ratio of theta functions, at most one.

    Parameters
    ----------
    sensitivity : int
        Largest change of the query.
    noise_multiplier : float
        Parameter ``sigma`` over the sensitivity.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float
        An upper bound on the log moment (Canonne, Kamath and Steinke, 2020, Proposition 5, without
        the last step); exact up to rounding.
    """
    value = 0.5 * order * (order - 1.0) / noise_multiplier / noise_multiplier
    if not value < _LARGE:
        return value
    sigma = noise_multiplier * sensitivity
    centre = order * sensitivity
    distance = centre - math.floor(centre)
    if sigma > 3.0 or distance == 0.0 or centre > 2.0**40:
        return value * (1.0 + _MARGIN)
    x = np.arange(-math.ceil(12.0 * sigma) - 2.0, math.ceil(12.0 * sigma) + 3.0)
    nearest = round(distance) - distance
    # Both sums relative to their largest term.
    shifted = np.exp(-0.5 * ((x + nearest) ** 2 - nearest**2) / sigma**2)
    ratio = math.log(float(np.sum(shifted)) / float(np.sum(np.exp(-0.5 * (x / sigma) ** 2))))
    ratio -= 0.5 * (nearest / sigma) ** 2
    return value + min(ratio, 0.0) + _MARGIN * (value + 1.0 - ratio) * 1e-2
