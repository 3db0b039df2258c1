"""How long one record's gradient of a network can be while weights stay close to a public start.

Proof: ``docs/proofs/networks.md``. Matrices of layers hold the biases in their last column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from skdp.losses.base import Loss

Array = NDArray[np.float64]

# Relative excess: far above the rounding errors of a singular value, of a row and of the bound.
_ROUNDING = 1.0 + 1e-9
_MOST_SPLITS = 2**12


@dataclass(frozen=True)
class StartNorms:
    """Bounds on the spectral norm of each layer's matrix without biases, and on its biases."""

    matrices: list[float]
    biases: list[float]
    widths: list[int]  # of the layers' outputs

    @classmethod
    def of(cls, start: Sequence[Array]) -> StartNorms:
        """Measure the matrices of a start, which is public."""
        return cls(
            [float(np.linalg.norm(matrix[:, :-1], 2)) * _ROUNDING for matrix in start],
            [float(np.linalg.norm(matrix[:, -1])) * _ROUNDING for matrix in start],
            [matrix.shape[0] for matrix in start],
        )


def largest_gradient(
    norms: StartNorms, loss: Loss, *, gain: float, bias: float, saturates: bool, radius: float
) -> float:
    """Bound one record's gradient at weights within a distance from the start.

    Inputs have norm at most `gain`, biases are multiplied by `bias`; activations move no two
    numbers apart and keep 0, and `saturates` says that they lie in [-1, 1].
    """
    # One column for each way to share the distance out among the layers.
    radii = _split_radius(len(norms.widths), radius)
    with np.errstate(over="ignore", invalid="ignore"):
        inputs = [np.full(radii.shape[1], gain * _ROUNDING)]
        for matrix, offset, width, moved in zip(
            norms.matrices, norms.biases, norms.widths, radii, strict=True
        ):
            scores = matrix * inputs[-1] + offset * bias + moved * np.hypot(inputs[-1], bias)
            inputs.append(np.minimum(scores, math.sqrt(width)) if saturates else scores)
        # Slopes of the loss at scores of that norm: those on a row of norm 1 at such weights.
        errors = np.array([loss.zero_out_gap(1.0, norm) for norm in scores])
        square = np.zeros_like(errors)
        for matrix, moved, values in zip(
            norms.matrices[::-1], radii[::-1], inputs[-2::-1], strict=True
        ):
            square += (errors * np.hypot(values, bias)) ** 2
            errors = errors * (matrix + moved)
    norm = math.sqrt(square.max()) * _ROUNDING
    return norm if norm < math.inf else math.inf  # which no number is too


def _split_radius(n_layers: int, radius: float) -> Array:
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
