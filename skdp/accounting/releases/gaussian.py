"""Gaussian noise: a release is exactly ``1 / noise_multiplier``-GDP."""

from __future__ import annotations

from fractions import Fraction

from skdp.accounting.analysis import GaussianMixture, card_of
from skdp.accounting.events import GaussianEvent
from skdp.accounting.releases.noise import ContinuousNoise


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
