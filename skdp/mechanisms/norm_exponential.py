"""Noise without a delta: of norm-exponential law, or discrete Laplace on a grid.

Theorems are in ``docs/proofs/pure.md``. Scales are rounded up so that the events that price them
have the target's epsilon exactly, also as ledgers read it: in decimal.
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

# No exponential of a stream is larger: its uniforms are at least 2^-961.
_LARGEST_EXPONENTIAL = 667.0


def largest_length(count: int) -> float:
    """Return what no noise of `count` numbers that is ever drawn exceeds, in units of its scale."""
    return count * _LARGEST_EXPONENTIAL


class NormExponentialMechanism(AdditiveMechanism):
    """Release vectors with noise of density ~ ``e^(-|x| / sigma)`` over all their numbers.

    Its length is a Gamma variable and its direction uniform. Values on a grid get independent
    discrete Laplace noise instead, drawn exactly, and their sensitivity is that of the L1 norm.
    """

    _exponential = True

    @property
    def _norm(self) -> float:
        return 1.0 if self.grid > 0.0 else 2.0

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


def pure_noise(sensitivity: float, epsilon: float) -> Noise:
    """Return norm-exponential noise for a sensitivity in the Euclidean norm."""
    return Noise(sensitivity, check_representable(sensitivity * _multiplier(epsilon)))


def pure_noise_on_grid(sensitivity: float, epsilon: float, count: int) -> Noise:
    """Return discrete Laplace noise for `count` numbers of a Euclidean sensitivity, and its grid.

    Their L1 norm is at most ``sqrt(count)`` times as large; rounding adds a step for each.
    """
    share = sensitivity / math.sqrt(count)
    step = min(share, share * count / epsilon) * LARGEST_STEP
    grid = math.ldexp(1.0, math.frexp(step)[1] - 1)
    moved = Fraction(sensitivity) * Fraction(math.sqrt(count) * ROUND_UP) / Fraction(grid)
    steps = math.ceil(moved) + count
    scale = math.ceil(steps * Fraction(_multiplier(epsilon)))
    return Noise(steps * grid, check_representable(float_up(scale * Fraction(grid))), grid)


def pure_event(noise: Noise) -> NormExponentialEvent | DiscreteLaplaceEvent:
    """Return the event of a release with such noise."""
    multiplier = math.nextafter(noise.sigma / noise.sensitivity, 0.0)
    if noise.grid == 0.0:
        return NormExponentialEvent(multiplier)
    return DiscreteLaplaceEvent(multiplier, round(noise.sensitivity / noise.grid))


def _multiplier(epsilon: float) -> float:
    """Return scale over sensitivity, a little more than the inverse of epsilon however read."""
    inverse = max(1 / Fraction(epsilon), 1 / read_decimal(epsilon))
    return check_representable(decimal_up(inverse) * ROUND_UP)
