"""Renyi divergences of the pairs that dominate sampled Gaussian mechanisms.

All functions return upper bounds on ``log E_Q[(P/Q)^alpha]``, which is ``(alpha - 1)`` times the
Renyi divergence of order ``alpha > 1`` from ``P`` to ``Q``.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr

from skdp.accounting.numerics.quadrature import gauss_legendre

Array = NDArray[np.float64]

_TAIL = 12.0  # standard deviations beyond which a truncated integral is negligible: 1e-32
_LARGE = 600.0  # exponents above which exponentials may overflow
_MARGIN = 1e-13  # relative rounding error of a sum of positive terms, generously
_FEW_ROUNDINGS = 2.0**-49
_MAX_POINTS = 400_000


def _logsumexp(log_terms: Array) -> float:
    top = float(np.max(log_terms))
    return top + math.log(float(np.sum(np.exp(log_terms - top))))


def conversion(moment: float) -> float:
    """Return what the conversion to (epsilon, delta) adds to a log moment.

    Parameters
    ----------
    moment : float
        Order minus one, positive.

    Returns
    -------
    float
        ``moment log(1 - 1/order) - log(order)``, without cancellation: log delta is at most the log
        moment, less ``moment epsilon``, and this (Canonne, Kamath and Steinke, 2020, Proposition
        12).
    """
    return -(moment * math.log1p(1.0 / moment) + math.log1p(moment))


def sum_up(*terms: float) -> float:
    """Add up terms that are correct but for a few roundings, and round up.

    Parameters
    ----------
    *terms : float
        The terms.

    Returns
    -------
    float
        At least the exact sum, also when it is divided by a number once more.
    """
    return sum(terms) + _FEW_ROUNDINGS * sum(map(abs, terms))


def _log_normal_density(x: Array) -> Array:
    return -0.5 * x * x - 0.5 * math.log(2.0 * math.pi)


def _log_mixture(rate: float, log_ratio: Array) -> Array:
    """Return log(1 - q + q e^r) for each log ratio r."""
    return np.logaddexp(math.log1p(-rate), math.log(rate) + log_ratio)


def log_moment_integer(rate: float, mu: float, order: int) -> float:
    """Poisson sampling under add-remove, integer orders: an exact binomial sum.

    Mironov, Talwar and Zhang (2019), section 3.3: the moment of ``(1-q) N(0) + q N(mu)`` against
    ``N(0)``, which is the larger of the two directions (their Theorem 5).

    Parameters
    ----------
    rate : float
        Sampling probability, in (0, 1).
    mu : float
        Shift of the mixture component in units of the noise.
    order : int
        Order ``alpha >= 2``.

    Returns
    -------
    float
        An upper bound on the log moment.
    """
    k = np.arange(order + 1, dtype=np.float64)
    log_binomial = gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)
    log_terms = (
        log_binomial
        + (order - k) * math.log1p(-rate)
        + k * math.log(rate)
        + 0.5 * k * (k - 1.0) * mu * mu
    )
    rounding = 8.0 * 2.0**-53 * (float(gammaln(order + 1.0)) + float(np.max(np.abs(log_terms))))
    return _logsumexp(log_terms) + rounding + _MARGIN


def log_moment_add_remove(rate: float, mu: float, order: float) -> float:
    """Poisson sampling under add-remove, any order, by the trapezoidal rule.

    Parameters
    ----------
    rate : float
        Sampling probability, in (0, 1).
    mu : float
        Shift of the mixture component in units of the noise.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float
        An upper bound on the log moment; infinite when the integral is too wide to evaluate.

    Notes
    -----
    The integrand ``phi(x) (1 - q + q e^(mu x - mu^2/2))^alpha`` is analytic for
    ``|Im x| < pi / mu`` and there at most ``e^((Im x)^2 / 2)`` times its value on the real line,
    so the rule with spacing ``d`` is wrong by less than ``3 e^(y^2/2 - 2 pi y / d)``, relatively,
    for every ``y < pi / mu`` (Trefethen and Weideman, 2014, Theorem 5.1): below 1e-16 here.
    """
    step = min(0.25, 0.5 / mu)
    low, high = -_TAIL, order * mu + _TAIL
    if (high - low) / step > _MAX_POINTS:
        return math.inf
    x = np.arange(low, high + step, step)
    log_terms = _log_normal_density(x) + order * _log_mixture(rate, mu * x - 0.5 * mu * mu)
    return _logsumexp(log_terms) + math.log(step) + _MARGIN * (1.0 + order)


def log_moment_replace_one(rate: float, mu: float, order: float) -> float:
    """Poisson sampling under replace-one: ``(1-q)N(0)+qN(mu)`` against ``(1-q)N(0)+qN(-mu)``.

    Parameters
    ----------
    rate : float
        Sampling probability, in (0, 1).
    mu : float
        Shift of either mixture component in units of the noise.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float
        An upper bound on the log moment; infinite when the integral is too wide to evaluate.

    Notes
    -----
    As in `log_moment_add_remove`, but the denominator grows by ``cos(mu y)^(1 - alpha)`` off the
    real line, so the spacing shrinks with the square root of the order.
    """
    strip = min(1.0, 1.0 / math.sqrt(order)) / mu
    step = min(0.25, 2.0 * math.pi * strip / 44.0)
    low, high = -mu - _TAIL, (2.0 * order - 1.0) * mu + _TAIL
    if (high - low) / step > _MAX_POINTS:
        return math.inf
    x = np.arange(low, high + step, step)
    up = _log_mixture(rate, mu * x - 0.5 * mu * mu)
    down = _log_mixture(rate, -mu * x - 0.5 * mu * mu)
    log_terms = _log_normal_density(x) + order * up - (order - 1.0) * down
    return _logsumexp(log_terms) + math.log(step) + _MARGIN * (1.0 + order)


@lru_cache(maxsize=1)
def _panel() -> tuple[Array, Array]:
    """Nodes and weights of a 20-point Gauss-Legendre rule on [0, 1]."""
    nodes, weights = gauss_legendre(20)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def log_moment_uniform(rate: float, mu: float, order: float) -> float:
    """Fixed-size sampling under replace-one: the symmetric pair.

    The pair has the profile ``p delta_G(log(1 + (e^eps - 1)/p); mu)`` for ``eps >= 0`` in both
    orders (Balle, Barthe and Gaboardi, 2018, Theorem 9), so with ``M`` the likelihood ratio of the
    mixture its moment is ``integral of phi (M^alpha + M^(1-alpha))`` over ``x > mu/2`` plus the
    mass ``(1-p) (1 - 2 Phi(-mu/2))`` that carries no loss.

    Parameters
    ----------
    rate : float
        Batch size over data set size, in (0, 1).
    mu : float
        Sensitivity of the query on the batch in units of the noise.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float
        An upper bound on the log moment; infinite when the integral is too wide to evaluate.
    """
    low, high = 0.5 * mu, order * mu + _TAIL
    panels = math.ceil((high - low) * max(1.0, mu, 0.5 * math.sqrt(order) * mu))
    nodes, weights = _panel()
    if panels * len(nodes) > _MAX_POINTS:
        return math.inf
    width = (high - low) / panels
    x = (low + width * (np.arange(panels)[:, None] + nodes[None, :])).ravel()
    log_weight = np.tile(np.log(width * weights), panels) + _log_normal_density(x)
    log_m = _log_mixture(rate, mu * x - 0.5 * mu * mu)
    still = math.log1p(-rate) + math.log(math.erf(0.5 * mu / math.sqrt(2.0)))
    # Beyond the last panel M^(1-alpha) <= 1, so the tail of phi bounds what is left of that term.
    tail = float(log_ndtr(-high))
    log_terms = np.concatenate(
        [log_weight + order * log_m, log_weight - (order - 1.0) * log_m, [still, tail]]
    )
    return _logsumexp(log_terms) + _MARGIN * (1.0 + order)


def log_moment_randomised_response(epsilon: float, order: float) -> float:
    """Pure differential privacy: the moment of randomised response, which dominates it.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats.
    order : float
        Order ``alpha > 1``.

    Returns
    -------
    float
        An upper bound on the log moment.
    """
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
