"""The regularised empirical risk: values, gradients and curvature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.solvers.gradients import Loss, check_targets, sum_gradients
from skdp.solvers.rows import Rows

Vector = NDArray[np.float64]

# Elements of one block of rows; a block and its scaled copy stay in the processor's cache.
_BLOCK_ELEMENTS = 1 << 16


def smallest_tolerance(loss: Loss, row_norm: float, penalty: float) -> float:
    """Return the smallest gradient norm that rounding lets a minimiser promise.

    It depends on public numbers only. A score is off by a few units in the last place of
    ||w|| B, which moves the gradient by the smoothness times as much; the sum of gradients
    adds a relative error that block summation keeps near the unit.

    Parameters
    ----------
    loss : LogisticLoss, SmoothedHingeLoss or SoftmaxLoss
        The loss.
    row_norm : float
        Public bound B on the norm of a row.
    penalty : float
        Coefficient of the L2 penalty, > 0.

    Returns
    -------
    float
        The tolerance.
    """
    size = loss.minimiser_norm_bound(row_norm, penalty)
    scores = 8.0 * np.finfo(float).eps * loss.smoothness(1.0) * row_norm * row_norm * size
    return 1e-12 * loss.lipschitz(row_norm) + scores


class RegularisedObjective:
    """Mean loss over the rows plus ``penalty / 2`` times the squared norm of the weights.

    Parameters
    ----------
    rows : Rows
        The rows.
    loss : LogisticLoss, SmoothedHingeLoss or SoftmaxLoss
        The loss.
    penalty : float
        Coefficient of the L2 penalty, >= 0, in scaled units. It covers the intercept too.
    """

    def __init__(self, rows: Rows, loss: Loss, penalty: float) -> None:
        if not 0.0 <= penalty < math.inf:
            raise ValueError(f"penalty must be finite and >= 0, got {penalty}.")
        check_targets(rows, loss)
        if rows.n_rows == 0:
            raise ValueError("rows must hold at least one row: the mean loss is undefined.")
        self.rows = rows
        self.loss = loss
        self.penalty = float(penalty)
        self.n_weights = rows.n_weights(loss.n_outputs)

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient, from public numbers."""
        return self.loss.smoothness(self.rows.row_norm_bound) + self.penalty

    def smallest_tolerance(self) -> float:
        """Return the smallest gradient norm that rounding lets a minimiser promise.

        Returns
        -------
        float
            The tolerance; see :func:`smallest_tolerance`.
        """
        return smallest_tolerance(self.loss, self.rows.row_norm_bound, self.penalty)

    def value_and_gradient(
        self, weights: Vector, index: NDArray[np.int64] | None = None
    ) -> tuple[float, Vector]:
        """Return the objective and its gradient, in one pass over the rows.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            The weights.
        index : ndarray of int64, optional
            Row numbers to restrict the mean to.

        Returns
        -------
        value : float
            The objective.
        gradient : ndarray of shape (n_weights,)
            Its gradient.
        """
        count = self.rows.n_rows if index is None else index.size
        gradient = np.zeros(self.n_weights)
        value = sum_gradients(self.rows, self.loss, weights, gradient, index, values=True) / count
        gradient /= count
        gradient += self.penalty * weights
        return value + 0.5 * self.penalty * float(weights @ weights), gradient

    def gradient(self, weights: Vector, index: NDArray[np.int64] | None = None) -> Vector:
        """Return the gradient alone; see :meth:`value_and_gradient`."""
        count = self.rows.n_rows if index is None else index.size
        gradient = np.zeros(self.n_weights)
        sum_gradients(self.rows, self.loss, weights, gradient, index)
        gradient /= count
        gradient += self.penalty * weights
        return gradient

    def hessian(self, weights: Vector, index: NDArray[np.int64] | None = None) -> NDArray:
        """Return the (generalised) Hessian, or that of the mean over the rows in ``index``.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            The weights.
        index : ndarray of int64, optional
            Row numbers to restrict the mean to.

        Returns
        -------
        ndarray of shape (n_weights, n_weights)
            A symmetric matrix, at least ``penalty`` times the identity.
        """
        outputs, columns = self.loss.n_outputs, self.rows.n_columns
        total = np.zeros((outputs, columns, outputs, columns))
        count = self.rows.n_rows if index is None else index.size
        table = weights.reshape(outputs, columns)
        for block, targets in self._blocks(index):
            curvature = self._curvature(np.asarray(block @ table.T), targets)
            for a in range(outputs):
                for b in range(a + 1):
                    total[a, :, b, :] += _weighted_gram(block, self._weight(curvature, a, b))
        for a in range(outputs):
            for b in range(a):
                total[b, :, a, :] = total[a, :, b, :]
        matrix = total.reshape(self.n_weights, self.n_weights)
        matrix /= count
        matrix.flat[:: self.n_weights + 1] += self.penalty
        return matrix

    def hessian_operator(
        self, weights: Vector, index: NDArray[np.int64] | None = None
    ) -> Callable[[Vector], Vector]:
        """Return the function that multiplies the Hessian at ``weights`` by a vector.

        The curvature of every row is computed once; the Hessian is never formed.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            The weights.
        index : ndarray of int64, optional
            Row numbers to restrict the mean to.

        Returns
        -------
        callable
            From a vector to the product.
        """
        outputs, columns = self.loss.n_outputs, self.rows.n_columns
        count = self.rows.n_rows if index is None else index.size
        table = weights.reshape(outputs, columns)
        curvatures = [
            self._curvature(np.asarray(block @ table.T), targets)
            for block, targets in self._blocks(index)
        ]

        def multiply(vector: Vector) -> Vector:
            product = np.zeros((outputs, columns))
            direction = vector.reshape(outputs, columns)
            for (block, _), curvature in zip(self._blocks(index), curvatures, strict=True):
                moved = np.asarray(block @ direction.T)
                if outputs > 1:
                    moved -= np.einsum("nk,nk->n", curvature, moved)[:, None]
                product += np.asarray(block.T @ (curvature * moved)).T
            return product.reshape(-1) / count + self.penalty * vector

        return multiply

    def _curvature(self, scores: NDArray, targets: NDArray) -> NDArray:
        """Return what the second derivatives of each row's loss in its scores are made of.

        For margin losses the derivatives themselves, (n, 1); for softmax the probabilities p,
        (n, K), of the matrix ``diag(p) - p p^T``.
        """
        loss: Any = self.loss
        if self.loss.n_outputs == 1:
            return loss.second_derivative(targets[:, None] * scores)
        p = loss.gradient(scores, np.zeros(len(scores), dtype=np.int32))
        p[:, 0] += 1.0
        return p

    def _weight(self, curvature: NDArray, a: int, b: int) -> Vector:
        """Return each row's second derivative in scores ``a`` and ``b``."""
        if self.loss.n_outputs == 1:
            return curvature[:, 0]
        if a == b:
            return curvature[:, a] * (1.0 - curvature[:, a])
        return -curvature[:, a] * curvature[:, b]

    def _blocks(self, index: NDArray[np.int64] | None) -> Iterator[tuple[Any, NDArray]]:
        """Yield blocks of scaled augmented rows (float64 or CSR) with their targets."""
        rows = self.rows
        count = rows.n_rows if index is None else index.size
        # Sparse blocks hold only stored entries, so they may have many more rows.
        size = max(64, _BLOCK_ELEMENTS // rows.n_columns) if not rows.is_sparse else 1 << 14
        for start in range(0, count, size):
            stop = min(start + size, count)
            chosen: Any = slice(start, stop) if index is None else index[start:stop]
            scale = rows.row_scale[chosen]
            if rows.is_sparse:
                block = self._sparse_block(chosen, scale)
            else:
                block = np.empty((stop - start, rows.n_columns))
                np.multiply(rows.matrix[chosen], scale[:, None], out=block[:, : rows.n_features])
                block[:, rows.n_features :] = rows.intercept_value
            yield block, rows.targets[chosen]

    def _sparse_block(self, chosen: Any, scale: Vector) -> Any:
        rows = self.rows
        shape = (rows.n_rows, rows.n_features)
        part = sparse.csr_matrix(rows.matrix, shape=shape, copy=False)[chosen]
        block = sparse.diags(scale) @ part
        if rows.intercept_value > 0.0:
            column = np.full((part.shape[0], 1), rows.intercept_value)
            block = sparse.hstack([block, sparse.csr_matrix(column)], format="csr")
        return block


def _weighted_gram(block: Any, weights: Vector) -> NDArray:
    """Return ``block.T @ diag(weights) @ block``."""
    if sparse.issparse(block):
        return (block.T @ (sparse.diags(weights) @ block)).toarray()
    # A product of a matrix with its own transpose costs half as much; the weights have one sign.
    root = block * np.sqrt(np.abs(weights))[:, None]
    gram = root.T @ root
    return -gram if (weights < 0.0).any() else gram
