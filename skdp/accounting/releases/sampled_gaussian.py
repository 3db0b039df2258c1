"""Gaussian noise on Poisson samples, or on samples of fixed size under replace-one.

Dominating pairs: Theorems 4 and 5 of ``docs/proofs/dpsgd.md``; for samples of fixed size Theorem 3
of ``docs/proofs/gradient_perturbation.md``. Log moments are upper bounds on ``log
E_Q[(P/Q)^alpha]``, as in `noise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, log_ndtr

from skdp.accounting.analysis import SMALLEST, DominatingPairs, GaussianMixture, LogMoments
from skdp.accounting.events import Event, PoissonSampledEvent
from skdp.accounting.numerics.arithmetic import Array, unit_gauss_legendre
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.discrete import RandomisedResponsePair
from skdp.accounting.pld.pairs.gaussian import gaussian_pair
from skdp.accounting.releases.noise import OnSample

_TAIL = 12.0  # standard deviations beyond which a truncated integral is negligible: 1e-32
_MARGIN = 1e-13  # relative rounding error of a sum of positive terms, generously
_MAX_POINTS = 400_000
_LARGEST_SHIFT = 1e150
_LEAST = 1e-100  # rates and shifts below count as this, which can only raise a bound


class SampledGaussian(OnSample):
    """A Gaussian on a sample; Gaussian for all records or none."""

    def mixture(self) -> GaussianMixture | None:
        """Return the mixture; None for fixed sizes under add-remove."""
        event = self.event
        multiplier: float = event.event.noise_multiplier  # type: ignore[attr-defined]
        if isinstance(event, PoissonSampledEvent):
            kind = f"poisson-{self.adjacency}"
            return GaussianMixture(kind, event.sample_rate, 1.0 / multiplier, multiplier)
        if self.adjacency != "replace-one":
            return None
        rate = max(event.batch_size / event.dataset_size, SMALLEST)
        return GaussianMixture("uniform-replace-one", rate, 2.0 / multiplier, multiplier)

    def mu(self) -> float | None:
        """Return mu at the degenerate rates 0 and 1."""
        mixture = self.mixture()
        if mixture is None or 0.0 < mixture.rate < 1.0:
            return None
        return mixture.mu_of_all_rows if mixture.rate else 0.0

    def mu_squared(self) -> Fraction | None:
        """Return the exact square at the degenerate rates."""
        mixture, mu = self.mixture(), self.mu()
        if not mixture or not mu:
            return None if mu is None else Fraction(0)
        return mixture.contributions**2 / Fraction(mixture.noise_multiplier) ** 2

    def log_moments(self) -> LogMoments | None:
        """Return the divergences of the pair, by binomial sums or quadrature."""
        mixture = self.mixture()
        if mixture is None or self.mu() is not None:
            return super().log_moments()
        return LogMoments(partial(log_moment, mixture), quick=_is_attained(mixture))

    def pairs(self) -> DominatingPairs | None:
        """Return mixtures with the record, against without or with another."""
        mixture = self.mixture()
        if mixture is None:
            return None
        directed = mixture.kind == "poisson-add-remove"

        def pair(direction: str) -> Pair:
            if mixture.mu > _LARGEST_SHIFT:
                # A sampled record is revealed: results differ with at most the sampling rate.
                return RandomisedResponsePair(0.0, mixture.rate)
            kind = direction if directed else mixture.kind
            return gaussian_pair(kind, max(mixture.rate, _LEAST), max(mixture.mu, _LEAST))

        return DominatingPairs(pair, directed, _is_attained(mixture))

    def of_two(self) -> Event | None:
        """Return a Poisson sample itself: its noise is for single records."""
        return self.event if isinstance(self.event, PoissonSampledEvent) else None


def _is_attained(mixture: GaussianMixture) -> bool:
    """Return whether no parameter of the pair is clipped."""
    return _LEAST <= mixture.mu <= _LARGEST_SHIFT and (mixture.rate >= _LEAST or not mixture.rate)


def log_moment(mixture: GaussianMixture, order: float) -> float:
    """Return the log moment of a proper mixture; infinite if out of reach."""
    rate, mu = mixture.rate, mixture.mu
    if mu > _LARGEST_SHIFT:
        return math.inf
    if mixture.kind == "poisson-replace-one":
        return log_moment_replace_one(rate, mu, order)
    if mixture.kind == "uniform-replace-one":
        return log_moment_uniform(rate, mu, order)
    if order == int(order):
        return log_moment_integer(rate, mu, int(order))
    return log_moment_add_remove(rate, mu, order)


def _logsumexp(log_terms: Array) -> float:
    top = float(np.max(log_terms))
    return top + math.log(float(np.sum(np.exp(log_terms - top))))


def _log_normal_density(x: Array) -> Array:
    return -0.5 * x * x - 0.5 * math.log(2.0 * math.pi)


def _log_ratio(rate: float, mu: float, x: Array) -> Array:
    """Return ``log((1 - q) + q e^(mu x - mu^2/2))``."""
    return np.logaddexp(math.log1p(-rate), math.log(rate) + (mu * x - 0.5 * mu * mu))


def _log_integral(
    low: float, high: float, step: float, log_factor: Callable[[Array], Array]
) -> float:
    """Return the log of a Gaussian mean by the trapezoidal rule."""
    if (high - low) / step > _MAX_POINTS:
        return math.inf
    x = np.arange(low, high + step, step)
    return _logsumexp(_log_normal_density(x) + log_factor(x)) + math.log(step)


def binomial_terms(rate: float, squared_mu: ArrayLike, order: int) -> Array:
    """Return the log terms of an integer order's moment, on the last axis."""
    k = np.arange(order + 1, dtype=np.float64)
    log_binomial = gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)
    log_weights = log_binomial + (order - k) * math.log1p(-rate) + k * math.log(rate)
    terms: Array = log_weights + 0.5 * k * (k - 1.0) * np.asarray(squared_mu)[..., None]
    return terms


def log_moment_integer(rate: float, mu: float, order: int) -> float:
    """Poisson sampling under add-remove, integer orders: an exact binomial sum.

    Mironov, Talwar and Zhang (2019), section 3.3; the larger of both directions (Theorem 5).
    """
    log_terms = binomial_terms(rate, mu * mu, order)
    rounding = 8.0 * 2.0**-53 * (float(gammaln(order + 1.0)) + float(np.max(np.abs(log_terms))))
    return _logsumexp(log_terms) + rounding + _MARGIN


def log_moment_add_remove(rate: float, mu: float, order: float) -> float:
    """Poisson sampling under add-remove, any order, by the trapezoidal rule."""
    # The integrand ``phi(x) (1 - q + q e^(mu x - mu^2/2))^alpha`` is analytic for ``|Im x| < pi /
    # mu`` and there at most ``e^((Im x)^2 / 2)`` times its value on the real line, so the rule with
    # spacing ``d`` is wrong by less than ``3 e^(y^2/2 - 2 pi y / d)``, relatively, for every ``y <
    # pi / mu`` (Trefethen and Weideman, 2014, Theorem 5.1): below 1e-16 here.
    value = _log_integral(
        *(-_TAIL, order * mu + _TAIL, min(0.25, 0.5 / mu)),
        lambda x: order * _log_ratio(rate, mu, x),
    )
    return value + _MARGIN * (1.0 + order)


def log_moment_replace_one(rate: float, mu: float, order: float) -> float:
    """Poisson sampling under replace-one: ``(1-q)N(0)+qN(mu)`` against ``(1-q)N(0)+qN(-mu)``."""
    # As in `log_moment_add_remove`, but the denominator grows by ``cos(mu y)^(1 - alpha)`` off the
    # real line, so the spacing shrinks with the square root of the order.
    strip = min(1.0, 1.0 / math.sqrt(order)) / mu
    value = _log_integral(
        *(-mu - _TAIL, (2.0 * order - 1.0) * mu + _TAIL, min(0.25, 2.0 * math.pi * strip / 44.0)),
        lambda x: order * _log_ratio(rate, mu, x) - (order - 1.0) * _log_ratio(rate, -mu, x),
    )
    return value + _MARGIN * (1.0 + order)


def log_moment_uniform(rate: float, mu: float, order: float) -> float:
    """Fixed-size sampling under replace-one: the symmetric pair."""
    # The pair has the profile ``p delta_G(log(1 + (e^eps - 1)/p); mu)`` for ``eps >= 0`` in both
    # orders (Balle, Barthe and Gaboardi, 2018, Theorem 9), so with ``M`` the likelihood ratio of
    # the mixture its moment is ``integral of phi (M^alpha + M^(1-alpha))`` over ``x > mu/2`` plus
    # the mass ``(1-p) (1 - 2 Phi(-mu/2))`` that carries no loss.
    low, high = 0.5 * mu, order * mu + _TAIL
    panels = math.ceil((high - low) * max(1.0, mu, 0.5 * math.sqrt(order) * mu))
    nodes, weights = unit_gauss_legendre(20)
    if panels * len(nodes) > _MAX_POINTS:
        return math.inf
    width = (high - low) / panels
    x = (low + width * (np.arange(panels)[:, None] + nodes[None, :])).ravel()
    log_weight = np.tile(np.log(width * weights), panels) + _log_normal_density(x)
    log_m = _log_ratio(rate, mu, x)
    still = math.log1p(-rate) + math.log(math.erf(0.5 * mu / math.sqrt(2.0)))
    # Beyond the last panel M^(1-alpha) <= 1, so the tail of phi bounds the rest of that term.
    tail = float(log_ndtr(-high))
    log_terms = np.concatenate(
        [log_weight + order * log_m, log_weight - (order - 1.0) * log_m, [still, tail]]
    )
    return _logsumexp(log_terms) + _MARGIN * (1.0 + order)
