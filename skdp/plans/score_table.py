"""A noisy table of scores by label that a fit releases after its weights: bins, noise, price."""

from __future__ import annotations

import math
from dataclasses import replace

from skdp.accounting import ComposedEvent, Event, GaussianEvent, ObjectivePerturbationEvent
from skdp.mechanisms.contribution import ROUND_UP, Adjacency
from skdp.mechanisms.discrete_gaussian import Noise, noise_on_grid
from skdp.scores.bins import ScoreBins

BINS = ScoreBins.make(12, (0.5,))


def table_noise(adjacency: Adjacency, mu: float) -> Noise:
    """Return the noise with which a table of counts costs mu; a record adds at most 1 to it."""
    sensitivity = (1.0 if adjacency == "add-remove" else math.sqrt(2.0)) * ROUND_UP
    return noise_on_grid(sensitivity, 1.0 / mu, 2 * BINS.count)


def beside(event: Event, noise: Noise | None) -> Event:
    """Return the event of a release and of a table that is counted after it."""
    if noise is None:
        return event
    if isinstance(event, ObjectivePerturbationEvent):
        # As the final noise does, the table follows an exact minimiser: they are one Gaussian.
        spread = math.hypot(event.approximation, 1.0 / noise.multiplier) * ROUND_UP
        return replace(event, approximation=spread)
    return ComposedEvent((event, GaussianEvent(noise.multiplier)))
