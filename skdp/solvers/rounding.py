"""Worst-case bounds on the rounding errors of gradients, from public numbers.

The count of roundings is Theorem 5 of ``docs/proofs/discrete_noise.md``. It holds for every order
in which sums may be added up, so for all kernels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from skdp.losses.base import Loss
from skdp.solvers.gradients import CHUNK, SPARSE_CHUNK

# Half the distance of 1 to the next double, and what products of errors add to their sum.
_UNIT = 2.0**-53 * 1.01
# Share of a tolerance that rounding may use; the solver's test leaves a little more.
_SHARE = 0.09


class GradientRounding(NamedTuple):
    """A computed gradient errs by ``fixed + slope * |weights|`` at most, in Euclidean norm."""

    fixed: float
    slope: float

    def at(self, weight_norm: float) -> float:
        """Return the bound at weights up to a norm."""
        return self.fixed + self.slope * weight_norm


def gradient_rounding(
    loss: Loss, row_norm: float, penalty: float, shape: tuple[int, int], tilt_norm: float = 0.0
) -> GradientRounding:
    """Bound the rounding errors of `RegularisedObjective.gradient` on tables of that shape."""
    n_rows, n_columns = shape
    size = max(loss.lipschitz(row_norm), loss.heaviest * row_norm)
    # Sums over chunks of rows come after sums within one, which are longest where rows are sparse
    # (see `sum_gradients`) or have several scores.
    chunk = min(max(n_columns, SPARSE_CHUNK), 16 * SPARSE_CHUNK) if loss.n_outputs == 1 else CHUNK
    added = min(n_rows, chunk) + math.ceil(n_rows / SPARSE_CHUNK)
    fixed = (added + n_columns + loss.n_outputs + 64.0) * size + 2.0 * tilt_norm
    slope = (n_columns + 8.0) * loss.smoothness(row_norm) + 4.0 * penalty
    return GradientRounding(_UNIT * fixed, _UNIT * slope)


def certified_tolerance(
    loss: Loss, row_norm: float, penalty: float, shape: tuple[int, int], tilt_norm: float = 0.0
) -> float:
    """Return the least gradient norm that the solver's test proves, whatever the roundings.

    Infinity if the penalty is too small for such a proof.
    """
    rounding = gradient_rounding(loss, row_norm, penalty, shape, tilt_norm)
    size = loss.minimiser_norm_bound(row_norm, penalty) + tilt_norm / penalty
    # Weights that pass the test are at most so many times as long as without rounding.
    longer = 1.1
    room = _SHARE - longer * rounding.slope / penalty
    return rounding.at(longer * size) / room if room > 0.5 * _SHARE else math.inf
