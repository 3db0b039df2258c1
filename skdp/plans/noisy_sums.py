"""Gaussian noise on sums of bounded per-record vectors: transformers, and regression by moments."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdp.accounting import Event, GaussianEvent, RepeatedEvent
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_epsilon, analytic_gaussian_sigma
from skdp.mechanisms.contribution import ROUND_UP, Adjacency, ContributionBound
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.random_stream import RandomStream
from skdp.plans.protocol import OnAllRows


@dataclass(frozen=True)
class NoisySums(OnAllRows):
    """One sum over the records, or several that may depend on earlier outputs; see `calibrate`.

    T releases that are mu-GDP each compose to ``sqrt(T) mu``-GDP (Dong, Roth & Su 2022, Theorem 3.2
    and Corollary 3.3).
    """

    bound: ContributionBound  # bounds on one record's vector
    adjacency: Adjacency
    epsilon: float
    delta: float
    releases: int  # number T of sums, fixed in advance
    sigma: float  # standard deviation of the noise in every coordinate
    by_unit: bool = False  # whether a record is all rows of an id in groups=

    grid = 0.0

    @classmethod
    def calibrate(
        cls,
        bound: ContributionBound,
        adjacency: Adjacency,
        epsilon: float,
        delta: float,
        releases: int = 1,
    ) -> NoisySums:
        """Choose the least noise for a guarantee, by the analytic Gaussian mechanism."""
        multiplier = analytic_gaussian_sigma(float(epsilon), float(delta))
        if releases > 1:
            multiplier *= math.sqrt(releases) * ROUND_UP
        sigma = multiplier * bound.sensitivity(adjacency)
        return cls(bound, adjacency, float(epsilon), float(delta), releases, sigma)

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of each sum."""
        return self.bound.sensitivity(self.adjacency)

    @property
    def event(self) -> Event:
        """All releases, for the accountants."""
        single = GaussianEvent(self.sigma / self.sensitivity)
        return single if self.releases == 1 else RepeatedEvent(single, self.releases)

    @property
    def achieved_epsilon(self) -> float:
        """The epsilon of all releases together, at most the one that was asked for."""
        total = self.sigma / math.sqrt(self.releases)
        # The noise is certified for the target; the inverse may round up beyond it.
        return min(analytic_gaussian_epsilon(total, self.delta, self.sensitivity), self.epsilon)

    def mechanism(self, stream: RandomStream, label: str) -> GaussianMechanism:
        """Return the mechanism that makes the releases."""
        return GaussianMechanism(
            sensitivity=self.sensitivity, sigma=self.sigma, stream=stream, label=label
        )
