"""Losses of labels: logistic, smoothed hinge, softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from skdp.losses.base import (
    ROUND_UP,
    Loss,
    MarginLoss,
    TargetKind,
    check_n_classes,
    functions_named,
    lambert_over_e,
    logistic_gradient_gap,
    norm_of_minimiser,
)


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

        With :math:`G(W) = \max_t 2 \cos t\; \sigma(W \sin t)`. Two gradients of nearly full norm
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

    def product_bound(self) -> float:
        """Return kappa."""
        # m sigmoid(-m) is largest, and equal to W_0(1/e), at m = 1 + W_0(1/e).
        return lambert_over_e(1.0)


@dataclass(frozen=True)
class SmoothedHingeLoss(MarginLoss):
    """Hinge loss whose kink is a parabola over margins in [1 - h, 1 + h], with h the half-width.

    There it is ``(1 - u)^2 / (4h) + (1 - u) / 2 + h / 4`` (Chapelle 2007). For rows of norm at most
    B its gradient has norm at most B and is (B^2 / 2h)-Lipschitz.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import SmoothedHingeLoss
    >>> loss = SmoothedHingeLoss(half_width=0.5)
    >>> loss.value(np.array([0.0, 1.0, 2.0]))
    array([1.   , 0.125, 0.   ])
    >>> loss.smoothness(row_norm=1.0)
    1.0
    """

    half_width: float = 0.5

    convex = True
    largest_slope = 1.0
    slope_sign = -1
    piecewise_quadratic = True

    def __post_init__(self) -> None:
        if not 0.0 < self.half_width < float("inf"):
            raise ValueError(
                f"half_width must be a positive finite number, got {self.half_width}; 0.5 is usual."
            )
        object.__setattr__(self, "half_width", float(self.half_width))

    scalar_functions = functions_named("SMOOTHED_HINGE", "half_width")

    @property
    def curvature(self) -> float:
        """Second derivative of the parabola, which slopes of any size reach."""
        return 0.5 / self.half_width

    def margin_of_slope(self, slopes: ArrayLike) -> NDArray[np.float64]:
        """Return the margin on the parabola with each slope; its end for 1."""
        return 1.0 + self.half_width - 2.0 * self.half_width * np.asarray(slopes, dtype=np.float64)

    def smoother_losses(self) -> tuple[SmoothedHingeLoss, ...]:
        """Return hinges wide enough for every row to have curvature at zero, down to this one.

        A narrow hinge is a straight line around the origin, where Newton's method has no curvature
        to use.
        """
        wider = []
        width = 2.0 * self.half_width
        while width < 4.0:
            wider.append(SmoothedHingeLoss(width))
            width *= 2.0
        return tuple(reversed(wider))

    def product_bound(self) -> float:
        """Return kappa."""
        # -u H'(u) rises up to u = 1 - h and is the parabola u (1 + h - u) / 2h after it.
        if 3.0 * self.half_width >= 1.0:
            return (1.0 + self.half_width) ** 2 / (8.0 * self.half_width)
        return 1.0 - self.half_width


@dataclass(frozen=True)
class SoftmaxLoss(Loss):
    """Cross-entropy of the softmax of K scores; its gradient with respect to W is (p - e_y) x^T.

    For rows of norm at most B the gradient has norm at most sqrt(2) B. It is (B^2/2)-Lipschitz,
    because values within an interval of length l have a variance of at most l^2/4.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import SoftmaxLoss
    >>> loss = SoftmaxLoss(n_classes=3)
    >>> loss.value(np.zeros((1, 3)), [2]).round(4)  # log 3
    array([1.0986])
    >>> loss.gradient(np.zeros((1, 3)), [2]).round(4)
    array([[ 0.3333,  0.3333, -0.6667]])
    """

    n_classes: int

    target_kind: ClassVar[TargetKind] = "codes"
    convex = True

    def __post_init__(self) -> None:
        check_n_classes(self.n_classes)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Number K of scores."""
        return self.n_classes

    scalar_functions = functions_named("SOFTMAX", "n_classes")

    def value(self, scores: ArrayLike, codes: ArrayLike) -> NDArray[np.float64]:
        """Return the loss of each row of ``scores`` (n, n_classes) with its class in ``codes``."""
        return self._evaluate(scores, codes)[1]

    def gradient(self, scores: ArrayLike, codes: ArrayLike) -> NDArray[np.float64]:
        """Return ``softmax(scores) - one_hot(codes)``, the gradient with respect to the scores."""
        return self._evaluate(scores, codes)[0]

    def _evaluate(
        self, scores: ArrayLike, codes: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        from skdp.losses.scalar import evaluate_softmax

        array, labels = np.array(scores, dtype=np.float64, order="C"), np.asarray(codes)
        if array.shape != (labels.size, self.n_classes) or labels.ndim != 1:
            raise ValueError(f"scores must have shape (n, {self.n_classes}), and codes (n,).")
        if labels.size and not (labels.min() >= 0 and labels.max() < self.n_classes):
            raise ValueError(f"codes must lie in 0, ..., {self.n_classes - 1}.")
        gradient, value = np.empty_like(array), np.empty(array.shape[0])
        evaluate_softmax(array, labels.astype(np.int32), gradient, value)
        return gradient, value

    def lipschitz(self, row_norm: float) -> float:
        """Return a bound on the norm of one record's gradient, for rows of norm <= ``row_norm``."""
        return math.sqrt(2.0) * ROUND_UP * row_norm

    def smoothness(self, row_norm: float) -> float:
        """Return the Lipschitz constant of one record's gradient."""
        return 0.5 * row_norm * row_norm

    def zero_out_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        r"""Return a bound on the norm of one record's gradient, sqrt(2) (1 - p_y) B.

        With ||W||_F <= W the scores of two classes differ by at most sqrt(2) W B. Therefore (1 -
        p_y) / p_y <= (K - 1) exp(sqrt(2) W B).
        """
        if weight_norm_bound is None:
            return self.lipschitz(row_norm)
        spread = min(math.sqrt(2.0) * weight_norm_bound * row_norm, 700.0)
        wrong = 1.0 / (1.0 + math.exp(-spread) / (self.n_classes - 1))
        return self.lipschitz(row_norm) * min(1.0, wrong * ROUND_UP)

    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        r"""Return a bound on the norm of the regularised minimiser that no data set exceeds.

        There penalty ||W||^2 is the mean of f = sum_k p_k (s_y - s_k), and penalty ||W|| <= L.
        """
        # With d_k = s_y - s_k over the K - 1 other classes, f = sum d_k e^-d_k / (1 + sum e^-d_k),
        # and f >= v iff sum (d_k - v) e^-d_k >= v; each term is at most e^-(v + 1), so that the
        # largest f solves v e^v = (K - 1) / e.
        largest = lambert_over_e(self.n_classes - 1.0)
        return norm_of_minimiser(largest, self.lipschitz(row_norm), penalty)
