"""Discrete Gaussian and discrete Laplace noise on integers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from skdp.accounting.analysis import (
    Divergence,
    DominatingPairs,
    Guarantee,
    LogMoments,
    Reading,
    card_of,
)
from skdp.accounting.events import DiscreteGaussianEvent, DiscreteLaplaceEvent, Event
from skdp.accounting.pld.pairs.discrete import (
    DiscreteLaplacePair,
    RandomisedResponsePair,
    discrete_gaussian_pair,
)
from skdp.accounting.releases.noise import Noise, bounded, half

_MARGIN = 1e-12  # relative rounding error of a sum of positive terms, generously
_LARGE = 1e100
_LEAST_NOISE = 1e-3  # of integers, below which results count as distinct
_LARGEST_NOISE = 1e12  # above which as much is assumed
_MOST_STEPS = 2**12  # of an integer query
_LARGEST_SHIFT = 1e4
_LEAST_SHIFT = 1e-100


class DiscreteNoise(Noise):
    """Noise on integers, relative to an integer change."""

    event: DiscreteGaussianEvent | DiscreteLaplaceEvent

    def of_two(self) -> Event:
        """Return the release with half the noise, over twice the change."""
        event = self.event
        multiplier = half(event.noise_multiplier)
        return replace(event, noise_multiplier=multiplier, sensitivity=2 * event.sensitivity)


@card_of(DiscreteGaussianEvent)
class DiscreteGaussian(DiscreteNoise):
    """The noise, and the noise shifted by the sensitivity."""

    def log_moments(self) -> LogMoments:
        """Return the divergences of the pair."""
        return LogMoments(
            partial(discrete_gaussian, self.event.sensitivity, self.event.noise_multiplier)
        )

    def rho(self, read: Reading = Fraction) -> Divergence:
        """Return the rho of Gaussian noise (Canonne, Kamath and Steinke, 2020, Theorem 4)."""
        return Divergence(1 / (2 * Fraction(self.event.noise_multiplier) ** 2), Fraction(0))

    def pairs(self) -> DominatingPairs:
        """Return the pair."""
        multiplier, steps = self.event.noise_multiplier, self.event.sensitivity
        if multiplier < _LEAST_NOISE:
            return DominatingPairs(lambda _: RandomisedResponsePair(0.0, 1.0))
        sigma = min(multiplier, _LARGEST_NOISE) * steps
        attained = multiplier <= _LARGEST_NOISE
        return DominatingPairs(lambda _: discrete_gaussian_pair(steps, sigma), attained=attained)


@card_of(DiscreteLaplaceEvent)
class DiscreteLaplace(DiscreteNoise):
    """The noise, and the noise shifted by the sensitivity."""

    def log_moments(self) -> LogMoments:
        """Return the divergences of the pair."""
        shift = 1.0 / self.event.noise_multiplier
        return LogMoments(partial(discrete_laplace, self.event.sensitivity, shift))

    def pairs(self) -> DominatingPairs:
        """Return the pair; larger shifts or fewer steps reveal more."""
        size = self.event.sensitivity
        merged = math.ceil(size / _MOST_STEPS)
        steps = math.ceil(size / merged)
        own = 1.0 / self.event.noise_multiplier
        shift = max(steps * merged / size / self.event.noise_multiplier, _LEAST_SHIFT)
        return DominatingPairs(
            lambda _: bounded(shift) or DiscreteLaplacePair(steps, shift),
            attained=_LEAST_SHIFT <= own <= _LARGEST_SHIFT and size <= _MOST_STEPS,
        )

    def stated(self, read: Reading = Fraction) -> Guarantee:
        """Return the largest loss."""
        return Guarantee(1 / read(self.event.noise_multiplier), Fraction(0))


def discrete_laplace(sensitivity: int, shift: float, order: float) -> float:
    """Return the log moment of a shift in integer steps: a finite sum."""
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
    """Return the Gaussian moment times a ratio of theta functions, at most one.

    Exact: Canonne, Kamath and Steinke (2020), Proposition 5, without the last step.
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
