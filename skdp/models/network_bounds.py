"""How long one record's gradient of a network can be while weights stay close to a public start.

Proof: Theorem 4 of ``docs/proofs/networks.md``. Matrices of layers hold the biases in their last
column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from skdp.losses.base import Loss
from skdp.once import cached_property
from skdp.threads import one_blas_thread

Array = NDArray[np.float64]

# Relative excess: far above the rounding errors of a singular value, of a row and of the bound.
_ROUNDING = 1.0 + 1e-9
_MOST_SPLITS = 2**12
_LARGEST = 1e10  # larger bounds are of no use, and no norms to clip to


@dataclass(frozen=True)
class NearStart:
    """A network close to its start.

    Rows have norm at most `gain`, biases are multiplied by `bias`; activations move no two numbers
    apart and keep 0, and `saturates` says that they lie in [-1, 1].
    """

    start: list[Array]
    loss: Loss
    gain: float
    bias: float
    saturates: bool

    @cached_property
    @one_blas_thread()
    def _norms(self) -> list[tuple[float, float]]:
        """Spectral norm of each layer's matrix without biases, and norm of these."""
        parts = [(matrix[:, :-1], matrix[:, -1]) for matrix in self.start]
        return [
            (float(np.linalg.norm(matrix, 2)) * _ROUNDING, float(np.linalg.norm(biases)))
            for matrix, biases in parts
        ]

    def largest_gradient(self, radius: float) -> float:
        """Bound one record's gradient at weights within a distance from the start."""
        # One column for each way to share the distance out among the layers.
        radii = split_radius(len(self.start), radius)
        with np.errstate(over="ignore", invalid="ignore"):
            inputs = [np.full(radii.shape[1], self.gain * _ROUNDING)]
            for (norm, biases), matrix, moved in zip(self._norms, self.start, radii, strict=True):
                scores = norm * inputs[-1] + biases * self.bias
                scores += moved * np.hypot(inputs[-1], self.bias)
                widest = math.sqrt(matrix.shape[0]) if self.saturates else math.inf
                inputs.append(np.minimum(scores, widest))
            # Slopes of the loss at scores of that norm: those on a row of norm 1 at such weights.
            errors = np.array([self.loss.zero_out_gap(1.0, score) for score in scores])
            square = np.zeros_like(errors)
            for (norm, _), moved, values in zip(
                self._norms[::-1], radii[::-1], inputs[-2::-1], strict=True
            ):
                square += (errors * np.hypot(values, self.bias)) ** 2
                errors = errors * (norm + moved)
        bound = math.sqrt(square.max()) * _ROUNDING
        return bound if bound <= _LARGEST else math.inf


def split_radius(n_layers: int, radius: float) -> Array:
    """Return radii of layers, a column each, one of which is above any split of the radius.

    Squares of a split add up to that of the radius, and are rounded up to multiples of a fraction.
    """
    steps = _MOST_SPLITS
    while steps and math.comb(steps + 2 * n_layers - 2, n_layers - 1) > _MOST_SPLITS:
        steps //= 2
    if not steps:
        return np.full((n_layers, 1), radius)
    # At most steps + n_layers - 1 fractions, shared out in all ways: by bars in a row of them.
    places = steps + 2 * n_layers - 2
    bars = np.array([*combinations(range(places), n_layers - 1)], dtype=np.int64)
    fractions = np.diff(bars, axis=1, prepend=-1, append=places) - 1
    return radius * np.sqrt(np.minimum(fractions, steps) / steps).T
