"""Gaussian and Laplace noise, on all records or on Poisson samples.

Log moments are upper bounds on ``log E_Q[(P/Q)^alpha]``, which is ``(alpha - 1)`` times the Renyi
divergence of order ``alpha > 1``. For moments near one, their excess over one is computed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from skdp.accounting.analysis import (
    SMALLEST,
    Analysis,
    Divergence,
    DominatingPairs,
    GaussianMixture,
    Guarantee,
    LogMoments,
    Reading,
    card_of,
    costs_no_more,
    with_noise,
)
from skdp.accounting.events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    NormExponentialEvent,
    PoissonSampledEvent,
    UniformSampledEvent,
)
from skdp.accounting.numerics.arithmetic import Array, float_up, log_mixture, unit_gauss_legendre
from skdp.accounting.numerics.renyi_divergences import rho_of
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.discrete import RandomisedResponsePair
from skdp.accounting.pld.pairs.laplace import LaplacePair, laplace_pair


class Noise(Analysis, ABC):
    """Noise relative to the largest change by one record; in samples, to one contribution."""

    @abstractmethod
    def of_two(self) -> Event:
        """Return the release with half the noise, which samples need."""


class ContinuousNoise(Noise):
    """Continuous noise; a larger scale amounts to added noise, so it costs no more."""

    event: GaussianEvent | LaplaceEvent | NormExponentialEvent

    def of_two(self) -> Event:
        """Return the release with half the noise."""
        return replace(self.event, noise_multiplier=half(self.event.noise_multiplier))

    def covers(self, event: Any) -> bool:
        """Compare the noise."""
        return bool(event.noise_multiplier >= self.event.noise_multiplier)

    def with_noise(self, factor: float) -> Event:
        """Return the release with more or less noise."""
        return replace(self.event, noise_multiplier=self.event.noise_multiplier * factor)


class OnSample(Analysis):
    """A release on a sample."""

    event: PoissonSampledEvent | UniformSampledEvent

    def covers(self, event: Any) -> bool:
        """Compare rates, and the releases on the samples."""
        planned = self.event
        if not isinstance(planned, PoissonSampledEvent):
            return bool(event == planned)
        rarer = event.sample_rate <= planned.sample_rate
        return rarer and costs_no_more(event.event, planned.event)

    def with_noise(self, factor: float) -> Event:
        """Return the release with more or less noise."""
        if not isinstance(self.event, PoissonSampledEvent):
            return self.event
        return replace(self.event, event=with_noise(self.event.event, factor))


def half(noise_multiplier: float) -> float:
    """Return half of a noise multiplier, rounded down but positive."""
    halved = 0.5 * noise_multiplier
    halved = math.nextafter(halved, 0.0) if 2.0 * halved > noise_multiplier else halved
    return max(halved, math.ulp(0.0))


@card_of(GaussianEvent)
class Gaussian(ContinuousNoise):
    """The pair that defines Gaussian differential privacy (Dong, Roth and Su, 2022)."""

    event: GaussianEvent

    def mu(self) -> float:
        """Return the shift of the means in units of the noise."""
        return 1.0 / self.event.noise_multiplier

    def mu_squared(self) -> Fraction:
        """Return the exact square of mu."""
        return 1 / Fraction(self.event.noise_multiplier) ** 2

    def mixture(self) -> GaussianMixture:
        """Return the release itself."""
        return GaussianMixture("gaussian", 1.0, self.mu(), self.event.noise_multiplier)


_MARGIN = 1e-12  # relative rounding error of a sum of positive terms, generously
_TERMS = 16
_POINTS = 20
_NATS = 4.0  # by which the integrand may change over a panel, if it is no shorter anyway
_WIDTH = 0.25
_MOST_PANELS = 20_000
_LARGE = 700.0  # nats, of which the exponential is still a float
_LARGEST_SAMPLED_SHIFT = 300.0
_LARGEST_SHIFT = 1e4  # of a grid
_NO_NOISE = 1e150  # shifts above count as infinite
_LEAST = 1e-100  # rates and shifts below count as this one, which can only raise a bound


class LaplaceMixture(NamedTuple):
    """A Laplace release, sampled or not, in units of the scale."""

    kind: str  # laplace, or with 0 < rate < 1 poisson-add-remove or poisson-replace-one
    rate: float
    shift: float  # between neighbouring locations, or under replace-one from the common one


class LaplaceNoise(Analysis, ABC):
    """Bounds for sampled and unsampled noise, given the mixture."""

    @abstractmethod
    def laplace(self) -> LaplaceMixture:
        """Return the mixture."""

    @abstractmethod
    def stated(self, read: Reading = Fraction) -> Guarantee:
        """Return the largest loss."""

    def rho(self, read: Reading = Fraction) -> Divergence | None:
        """Return the rho of pure noise, or None on a sample."""
        if self.laplace().kind != "laplace":
            return None
        return Divergence(laplace_rho(self.stated(read).epsilon), Fraction(0))

    def log_moments(self) -> LogMoments:
        """Return the divergences of the pair, in closed form or by quadrature."""
        mixture = self.laplace()
        if mixture.kind == "laplace":
            return LogMoments(partial(laplace, mixture.shift))
        return LogMoments(partial(sampled_laplace, mixture))

    def pairs(self) -> DominatingPairs:
        """Return the shifted noise, or its mixtures under sampling."""
        mixture = self.laplace()
        attained = _LEAST <= mixture.shift <= _LARGEST_SHIFT
        if mixture.kind != "laplace":
            attained = _LEAST <= mixture.shift <= _LARGEST_SAMPLED_SHIFT and mixture.rate >= _LEAST
        directed = mixture.kind == "poisson-add-remove"
        return DominatingPairs(partial(pair_of_laplace, mixture), directed, attained)


@card_of(LaplaceEvent, NormExponentialEvent)
class Laplace(LaplaceNoise, ContinuousNoise):
    """Pure noise, also for vectors: `LaplaceEvent`, `NormExponentialEvent`."""

    event: LaplaceEvent | NormExponentialEvent

    def laplace(self) -> LaplaceMixture:
        """Return the shift in units of the scale."""
        return LaplaceMixture("laplace", 1.0, float_up(1 / Fraction(self.event.noise_multiplier)))

    def stated(self, read: Reading = Fraction) -> Guarantee:
        """Return the largest loss."""
        return Guarantee(1 / read(self.event.noise_multiplier), Fraction(0))


class SampledLaplace(LaplaceNoise, OnSample):
    """Laplace noise on a Poisson sample."""

    event: PoissonSampledEvent

    @property
    def _multiplier(self) -> float:
        return float(self.event.event.noise_multiplier)  # type: ignore[attr-defined]

    def laplace(self) -> LaplaceMixture:
        """Return the mixture; its shift is 0 if nothing is ever sampled."""
        rate = self.event.sample_rate
        shift = float_up(1 / Fraction(self._multiplier))
        if rate == 0.0:
            return LaplaceMixture("laplace", 1.0, 0.0)
        if rate == 1.0:
            # With every record in the batch, replacing one moves its contribution across twice.
            double = self.adjacency == "replace-one"
            return LaplaceMixture("laplace", 1.0, 2.0 * shift if double else shift)
        return LaplaceMixture(f"poisson-{self.adjacency}", rate, shift)

    def stated(self, read: Reading = Fraction) -> Guarantee:
        """Return the largest loss, rounded up."""
        largest = largest_loss(*self.laplace())
        if math.isfinite(largest):
            return Guarantee(Fraction(largest), Fraction(0))
        return Guarantee(2 / read(self._multiplier), Fraction(0))

    def of_two(self) -> Event:
        """Return the event itself: its noise is for single records."""
        return self.event


def pair_of_laplace(mixture: LaplaceMixture, direction: str) -> Pair | None:
    """Return the pair that dominates a mixture, or None."""
    if mixture.shift == 0.0:
        return None
    rate, shift = max(mixture.rate, _LEAST), max(mixture.shift, _LEAST)
    if mixture.kind == "laplace":
        return bounded(shift) or LaplacePair(shift)
    if mixture.shift > _LARGEST_SAMPLED_SHIFT:
        # A sampled record is revealed: results differ with at most the sampling probability.
        return RandomisedResponsePair(0.0, rate)
    kind = direction if mixture.kind == "poisson-add-remove" else mixture.kind
    return laplace_pair(kind, rate, shift)


def bounded(shift: float) -> Pair | None:
    """Return a pure-DP pair if a shift is too large for a grid."""
    if shift > _NO_NOISE:
        return RandomisedResponsePair(0.0, 1.0)
    return RandomisedResponsePair(shift) if shift > _LARGEST_SHIFT else None


def largest_loss(kind: str, rate: float, loss: float) -> float:
    """Return the largest loss on a sample, rounded up."""
    if rate == 0.0 or loss == 0.0:
        return 0.0
    largest, most = float(log_mixture(rate, loss)), loss
    if kind == "poisson-replace-one":
        largest, most = largest - float(log_mixture(rate, -loss)), 2.0 * loss
    # The loss is rounded too, which where sampling is rare counts as often as it has nats.
    return min(most, largest * (1.0 + 2.0**-50 * (1.0 + min(loss, _LARGE))) + 4.0 * SMALLEST)


def laplace_rho(shift: Fraction) -> Fraction:
    """Return ``t + e^-t - 1`` for noise shifted by t scales, rounded up."""
    return rho_of(shift, lambda number: Fraction(_exponential_rest(number)))


def _exponential_rest(shift: float) -> float:
    """Return ``e^-t - 1 + t`` without cancellation."""
    if shift > 0.5:
        return shift + math.expm1(-shift)
    term, value, k = 0.5 * shift * shift, 0.0, 2
    while abs(term) > 1e-18 * value:
        value += term
        k += 1
        term *= -shift / k
    return value


def laplace(shift: float, order: float) -> float:
    """Return the log moment in closed form.

    It is convex in the shift and zero at zero, so it covers shifts over several coordinates.
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
    """Return the larger log moment on Poisson samples, by quadrature."""
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
    """Return log ratios of the mixture and unshifted weights."""
    nodes, weights = unit_gauss_legendre(_POINTS)
    width = shift / panels
    u = (width * (np.arange(panels)[:, None] + nodes[None, :])).ravel()
    weights = np.tile(width * weights, panels) * 0.5 * np.exp(-u)
    exponents = np.concatenate([[-shift], 2.0 * u - shift, [shift]])
    return (
        log_mixture(rate, exponents),
        np.concatenate([[0.5], weights, [0.5 * math.exp(-shift)]]),
    )


def _excess(power: float, log_ratio: Array) -> Array:
    """Return ``M^w - 1 - w (M - 1)``, with the mean of ``M^w - 1``."""
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
