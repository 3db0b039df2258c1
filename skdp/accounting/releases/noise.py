"""What all releases with noise over a sensitivity have in common."""

from __future__ import annotations

import math

from skdp.accounting.analysis import Analysis
from skdp.accounting.events import Event


class Noise(Analysis):
    """Noise over the largest change by one record; inside samples, over one's contribution."""

    def of_two(self) -> Event:
        """Return the release with half the noise: samples need it, so that no card may lack it."""
        raise NotImplementedError


def half(noise_multiplier: float) -> float:
    """Return half of a noise multiplier, rounded down but positive."""
    halved = 0.5 * noise_multiplier
    halved = math.nextafter(halved, 0.0) if 2.0 * halved > noise_multiplier else halved
    return max(halved, math.ulp(0.0))
