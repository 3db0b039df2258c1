"""Noise without a delta: of norm-exponential law, or discrete Laplace on a grid.

Proofs: Theorems 1 and 2 of ``docs/proofs/pure.md``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from skdp.mechanisms.additive import AdditiveMechanism
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

    def _draw_steps(self, scale: Fraction, count: int) -> list[int]:
        return discrete_laplaces(self._stream, scale, count)
