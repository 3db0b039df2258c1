"""Noise without a delta: of norm-exponential law, or discrete Laplace on a grid.

Proofs: Theorems 1 and 2 of ``docs/proofs/pure.md``. Scales are rounded up so that the events that
price them have the target's epsilon exactly, also as ledgers read it: in decimal.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from skdp.accounting import DiscreteLaplaceEvent, NormExponentialEvent
from skdp.accounting.numerics.floats import decimal_up, float_up, read_decimal
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.analytic_gaussian import check_representable
from skdp.mechanisms.contribution import ROUND_UP
from skdp.mechanisms.discrete_gaussian import LARGEST_STEP, Noise
from skdp.mechanisms.discrete_laplace import discrete_laplaces

# No noise that is drawn is longer than so many scales times its number of numbers: no exponential
# of a stream exceeds it, as its uniforms are at least 2^-961.
LARGEST_LENGTH = 667.0


class NormExponentialMechanism(AdditiveMechanism):
    """Release vectors with noise of density ~ ``e^(-|x| / sigma)`` over all their numbers.

    Its length is a Gamma variable and its direction uniform. Values on a grid get independent
    discrete Laplace noise instead, drawn exactly, and their sensitivity is that of the L1 norm.
    """

    _exponential = True

    def _draw(self, shape: int | tuple[int, ...]) -> np.ndarray:
        count = int(np.prod(shape))
        length = float(np.sum(self._stream.exponential(count)))
        size = 0.0
        while size == 0.0:  # which has no direction
            normals = self._stream.standard_normal(shape)
            size = float(np.linalg.norm(normals.ravel()))
        return normals * (length / size)

    def _steps(self, count: int) -> list[int]:
        return discrete_laplaces(self._stream, round(self.sigma / self.grid), count)


def pure_noise(sensitivity: float, epsilon: float, count: int, discrete: bool) -> Noise:
    """Return noise for `count` numbers together, of a sensitivity in the Euclidean norm.

    On a grid that of the L1 norm counts, ``sqrt(count)`` times as much and a step for each.
    """
    inverse = max(1 / Fraction(epsilon), 1 / read_decimal(epsilon))  # however epsilon is read
    multiplier = check_representable(decimal_up(inverse) * ROUND_UP)
    if not discrete:
        return Noise(sensitivity, check_representable(sensitivity * multiplier))
    share = sensitivity / math.sqrt(count)
    step = min(share, share * count / epsilon) * LARGEST_STEP
    grid = math.ldexp(1.0, math.frexp(step)[1] - 1)
    moved = Fraction(sensitivity) * Fraction(math.sqrt(count) * ROUND_UP) / Fraction(grid)
    steps = math.ceil(moved) + count
    scale = math.ceil(steps * Fraction(multiplier))
    return Noise(steps * grid, check_representable(float_up(scale * Fraction(grid))), grid)


def pure_event(noise: Noise) -> NormExponentialEvent | DiscreteLaplaceEvent:
    """Return the event of a release with such noise."""
    multiplier = math.nextafter(noise.sigma / noise.sensitivity, 0.0)
    if noise.grid == 0.0:
        return NormExponentialEvent(multiplier)
    return DiscreteLaplaceEvent(multiplier, round(noise.sensitivity / noise.grid))
