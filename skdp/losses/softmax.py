"""The softmax cross-entropy loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.losses._bounds import ROUND_UP, lambert_over_e
from skdp.losses.base import Loss, TargetKind, check_n_classes, functions_named, norm_of_minimiser


@dataclass(frozen=True)
class SoftmaxLoss(Loss):
    """Cross-entropy of the softmax of K scores; its gradient with respect to W is (p - e_y) x^T.

    For rows of norm at most B that has norm at most sqrt(2) B, and is (B^2/2)-Lipschitz because a
    variance of values within an interval of length l is at most l^2/4.

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

        With ||W||_F <= W the scores of two classes differ by at most sqrt(2) W B, so
        (1 - p_y) / p_y <= (K - 1) exp(sqrt(2) W B).
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
