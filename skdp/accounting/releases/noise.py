"""What all releases with noise over a sensitivity have in common, and all on samples."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from skdp.accounting.analysis import Analysis, costs_no_more, with_noise
from skdp.accounting.events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    NormExponentialEvent,
    PoissonSampledEvent,
    UniformSampledEvent,
)


class Noise(Analysis, ABC):
    """Noise over the largest change by one record; inside samples, over one's contribution."""

    @abstractmethod
    def of_two(self) -> Event:
        """Return the release with half the noise: samples need it, so that no card may lack it."""


class ContinuousNoise(Noise):
    """Noise of which more is as much with some noise added, so that it costs no more."""

    event: GaussianEvent | LaplaceEvent | NormExponentialEvent

    def of_two(self) -> Event:
        """Return the release with half the noise."""
        return replace(self.event, noise_multiplier=half(self.event.noise_multiplier))

    def covers(self, event: Any) -> bool:
        """Compare the noise."""
        return bool(event.noise_multiplier >= self.event.noise_multiplier)

    def with_noise(self, factor: float) -> Event:
        """Return the release with so many times the noise."""
        return replace(self.event, noise_multiplier=self.event.noise_multiplier * factor)


class OnSample(Analysis):
    """A release on a sample; one on a Poisson sample may be compared, and made dearer."""

    event: PoissonSampledEvent | UniformSampledEvent

    def covers(self, event: Any) -> bool:
        """Compare rates, and what is done with the samples."""
        planned = self.event
        if not isinstance(planned, PoissonSampledEvent):
            return bool(event == planned)
        rarer = event.sample_rate <= planned.sample_rate
        return rarer and costs_no_more(event.event, planned.event)

    def with_noise(self, factor: float) -> Event:
        """Return the release with so many times the noise on the sample."""
        if not isinstance(self.event, PoissonSampledEvent):
            return self.event
        return replace(self.event, event=with_noise(self.event.event, factor))


def half(noise_multiplier: float) -> float:
    """Return half of a noise multiplier, rounded down but positive."""
    halved = 0.5 * noise_multiplier
    halved = math.nextafter(halved, 0.0) if 2.0 * halved > noise_multiplier else halved
    return max(halved, math.ulp(0.0))
