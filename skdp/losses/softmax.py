"""The softmax cross-entropy loss."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.losses._bounds import ROUND_UP, lambert_over_e


class SoftmaxLoss:
    r"""Cross-entropy of the softmax of K scores, :math:`-\log \mathrm{softmax}_y(Wx)`.

    The gradient with respect to W is (p - e_y) x^T, so for rows of norm at most B it has norm at
    most sqrt(2) B, and it is (B^2/2)-Lipschitz because a variance of values within an interval of
    length l is at most l^2/4.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2.
    """

    convex = True

    def __init__(self, n_classes: int) -> None:
        if n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {n_classes}.")
        self.n_classes = int(n_classes)
        self.n_outputs = self.n_classes
        self.width = float(n_classes)

    def value(self, scores: ArrayLike, codes: ArrayLike) -> NDArray[np.float64]:
        """Return the loss of each row.

        Parameters
        ----------
        scores : array-like of shape (n, n_classes)
            Scores.
        codes : array-like of shape (n,)
            Classes, integers in 0, ..., n_classes - 1.

        Returns
        -------
        ndarray of shape (n,)
            Losses.
        """
        return self._evaluate(scores, codes)[1]

    def gradient(self, scores: ArrayLike, codes: ArrayLike) -> NDArray[np.float64]:
        """Return ``softmax(scores) - one_hot(codes)``, the gradient with respect to the scores."""
        return self._evaluate(scores, codes)[0]

    def _evaluate(
        self, scores: ArrayLike, codes: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        from skdp.losses.scalar import evaluate_softmax

        array = np.array(scores, dtype=np.float64, order="C")
        gradient, value = np.empty_like(array), np.empty(array.shape[0])
        evaluate_softmax(array, np.array(codes, dtype=np.int32), gradient, value)
        return gradient, value

    def lipschitz(self, row_norm: float) -> float:
        """Return a bound on the norm of one record's gradient, for rows of norm <= ``row_norm``."""
        return math.sqrt(2.0) * ROUND_UP * row_norm

    def smoothness(self, row_norm: float) -> float:
        """Return the Lipschitz constant of one record's gradient."""
        return 0.5 * row_norm * row_norm

    def gradient_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        """Return a bound on the difference of two records' gradients: twice the zero-out gap."""
        return 2.0 * self.zero_out_gap(row_norm, weight_norm_bound)

    def zero_out_gap(self, row_norm: float, weight_norm_bound: float | None = None) -> float:
        r"""Return a bound on the norm of one record's gradient at weights of bounded norm.

        The norm is at most sqrt(2) (1 - p_y) B. With ||W||_F <= W the scores of two classes differ
        by at most sqrt(2) W B, so (1 - p_y) / p_y <= (K - 1) exp(sqrt(2) W B).

        Parameters
        ----------
        row_norm : float
            Public bound B on the norm of every (augmented) row.
        weight_norm_bound : float, optional
            Public bound W on the (Frobenius) norm of the weights.

        Returns
        -------
        float
            The bound, at most :meth:`lipschitz`.
        """
        if weight_norm_bound is None:
            return self.lipschitz(row_norm)
        spread = min(math.sqrt(2.0) * weight_norm_bound * row_norm, 700.0)
        wrong = 1.0 / (1.0 + math.exp(-spread) / (self.n_classes - 1))
        return self.lipschitz(row_norm) * min(1.0, wrong * ROUND_UP)

    def minimiser_norm_bound(self, row_norm: float, penalty: float) -> float:
        r"""Return a bound on the norm of the regularised minimiser that no data set exceeds.

        Taking the inner product of the gradient with W gives penalty ||W||^2 = mean of
        sum_k p_k (s_y - s_k). With d_k = s_y - s_k this is
        f = sum d_k e^{-d_k} / (1 + sum e^{-d_k}) over the K - 1 other classes, and f >= v iff
        sum (d_k - v) e^{-d_k} >= v; each term is at most e^{-(v+1)}, so the largest f solves
        v e^v = (K - 1)/e. Also penalty ||W|| <= L. The smaller of the two bounds is returned.

        Parameters
        ----------
        row_norm : float
            Public bound on the norm of every row.
        penalty : float
            Coefficient of the penalty, > 0.

        Returns
        -------
        float
            The bound.
        """
        if not penalty > 0:
            raise ValueError(f"penalty must be positive for a minimiser to exist, got {penalty}.")
        by_product = math.sqrt(lambert_over_e(self.n_classes - 1.0) / penalty)
        return min(by_product, self.lipschitz(row_norm) / penalty) * ROUND_UP

    def smoother_losses(self) -> tuple[SoftmaxLoss, ...]:
        """Return easier losses to start from: none are needed."""
        return ()
