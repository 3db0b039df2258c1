"""The logistic loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from skdp.losses._bounds import ROUND_UP, lambert_over_e, logistic_gradient_gap
from skdp.losses.base import MarginLoss, functions_named


@dataclass(frozen=True)
class LogisticLoss(MarginLoss):
    """Logistic loss ``log(1 + e^-m)`` of the margin m.

    For rows of norm at most B its gradient has norm at most B and is (B^2/4)-Lipschitz.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> loss = LogisticLoss()
    >>> loss.value(np.array([0.0, 2.0])).round(4)
    array([0.6931, 0.1269])
    >>> loss.lipschitz(row_norm=1.0), loss.smoothness(row_norm=1.0)
    (1.0, 0.25)
    """

    convex = True
    largest_slope = 1.0
    slope_sign = -1
    curvature = 0.25
    slope_law = "logistic"

    scalar_functions = functions_named("LOGISTIC")

    def gradient_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        r"""Return a bound on the distance of two records' gradients: 2B, or B G(WB) at ||w|| <= W.

        :math:`G(W) = \max_t 2 \cos t\; \sigma(W \sin t)`: two gradients of nearly full norm must
        both have a negative margin, so they cannot point in opposite directions.
        """
        if weight_norm_bound is None:
            return 2.0 * row_norm
        return row_norm * logistic_gradient_gap(weight_norm_bound * row_norm)

    def zero_out_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return a bound on one record's gradient norm: B, or B sigmoid(WB) when ||w|| <= W."""
        if weight_norm_bound is None:
            return float(row_norm)
        largest = 1.0 / (1.0 + math.exp(-min(weight_norm_bound * row_norm, 700.0)))
        return row_norm * min(1.0, largest * ROUND_UP)

    def largest_curvature(self, cap: float) -> float:
        """Return the supremum of s (1 - s) over slopes s up to ``cap``."""
        return 0.25 if cap >= 0.5 else cap * (1.0 - cap)

    def margin_of_slope(self, slopes: ArrayLike) -> NDArray[np.float64]:
        """Return ``log((1 - s) / s)`` of each slope s; minus infinity for 1."""
        return -logit(np.asarray(slopes, dtype=np.float64))

    def _product_bound(self) -> float:
        # m sigmoid(-m) is largest, and equal to W_0(1/e), at m = 1 + W_0(1/e).
        return lambert_over_e(1.0)
