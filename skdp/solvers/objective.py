"""The regularised empirical risk: values, gradients and curvature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.base.parameters import cached_property
from skdp.losses.base import Loss, evaluate
from skdp.solvers.gradients import check_shape, check_targets, sum_gradients
from skdp.solvers.layer_sums import LayerSums, wide_sums
from skdp.solvers.rows import Index, Rows, Vector
from skdp.tables.row_sources import RowSource


def smallest_tolerance(
    loss: Loss, row_norm: float, penalty: float, tilt_norm: float = 0.0
) -> float:
    """Return the smallest gradient norm that rounding lets a minimiser promise, by public numbers.

    The linear term's norm lengthens the minimiser by ``tilt_norm / penalty`` at most.
    """
    # A score is off by a few units in the last place of ||w|| B, which moves the gradient by the
    # smoothness times as much; the sum of gradients adds a relative error that block summation
    # keeps near the unit, and where a linear term is undone by the penalty both are rounded,
    # however large the penalty.
    size = loss.minimiser_norm_bound(row_norm, penalty) + tilt_norm / penalty
    scores = 8.0 * np.finfo(float).eps * loss.smoothness(1.0) * row_norm * row_norm * size
    undone = 32.0 * np.finfo(float).eps * tilt_norm
    return 1e-12 * loss.lipschitz(row_norm) + scores + undone


class RegularisedObjective:
    """``mean(loss) + penalty / 2 * |w|^2 + tilt @ w`` for weights w in scaled units.

    The penalty covers the intercept too. Gradients are clipped record by record where the loss
    says so. The mean counts rows by their weights and divides by the number of units. Methods take
    the row numbers that it is restricted to, and a share of the units then; None: all.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.solvers import RegularisedObjective, Rows
    >>> X, signs = np.array([[0.6, 0.8], [0.8, 0.6]]), np.array([-1, 1], dtype=np.int8)
    >>> rows = Rows.from_matrix(X, signs, data_norm=1.0)
    >>> objective = RegularisedObjective(rows, LogisticLoss(), penalty=0.1)
    >>> objective.gradient(np.zeros(2)).round(4)
    array([-0.05,  0.05])
    """

    def __init__(self, rows: Rows, loss: Loss, penalty: float, tilt: Vector | None = None) -> None:
        if not 0.0 <= penalty < math.inf:
            raise ValueError(f"penalty must be finite and >= 0, got {penalty}.")
        check_targets(rows, loss)
        if rows.n_rows == 0:
            raise ValueError("rows must hold at least one row: the mean loss is undefined.")
        self.rows = rows
        self.loss = loss
        self.penalty = float(penalty)
        self.n_weights = rows.n_weights(loss.n_outputs)
        self._clip = loss.clip
        self.tilt = tilt
        if tilt is not None:
            check_shape("tilt", tilt, self.n_weights)

    @cached_property
    def _wide(self) -> LayerSums | None:
        return wide_sums(self.rows, self.loss)

    def with_loss(self, loss: Loss) -> RegularisedObjective:
        """Return the same objective with another loss."""
        return RegularisedObjective(self.rows, loss, self.penalty, self.tilt)

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient, from public numbers."""
        return self.loss.smoothness(self.rows.row_norm_bound) + self.penalty

    def smallest_tolerance(self) -> float:
        """Return the smallest gradient norm that rounding lets a minimiser promise."""
        tilt_norm = 0.0 if self.tilt is None else float(np.linalg.norm(self.tilt))
        return smallest_tolerance(self.loss, self.rows.row_norm_bound, self.penalty, tilt_norm)

    def value_and_gradient(self, weights: Vector, index: Index = None) -> tuple[float, Vector]:
        """Return the objective and its gradient."""
        count = self._count(index)
        gradient = np.zeros(self.n_weights)
        clipped = self._clip < math.inf
        value = self._add_gradients(weights, gradient, index, not clipped)
        if clipped:
            # Kernels know the base loss only.
            value = sum(self._map_parts(RegularisedObjective._part_values, weights, index))
        value = value / count + 0.5 * self.penalty * float(weights @ weights)
        if self.tilt is not None:
            value += float(self.tilt @ weights)
        return value, self._regularise(gradient, count, weights)

    def gradient(self, weights: Vector, index: Index = None) -> Vector:
        """Return the gradient alone; see :meth:`value_and_gradient`."""
        count = self._count(index)
        gradient = np.zeros(self.n_weights)
        self._add_gradients(weights, gradient, index, False)
        return self._regularise(gradient, count, weights)

    def _count(self, index: Index) -> float:
        """Return the divisor of the mean."""
        rows = self.rows
        return rows.n_units if index is None else index.size * rows.n_units / rows.n_rows

    def _add_gradients(self, weights: Vector, out: Vector, index: Index, values: bool) -> float:
        if self._wide is not None:
            return self._wide.add(weights, out, index, self._clip, values)[1]
        return sum_gradients(self.rows, self.loss, weights, out, index, self._clip, values)

    def _regularise(self, gradient: Vector, count: float, weights: Vector) -> Vector:
        """Turn a sum of gradients into the gradient of the objective, in place."""
        gradient /= count
        gradient += self.penalty * weights
        if self.tilt is not None:
            gradient += self.tilt
        return gradient

    def _part_values(self, weights: Vector, index: Index) -> float:
        """Return the sum of clipped losses."""
        loss: Any = self.loss.unweighted
        total = 0.0
        for block, targets, shares in self.rows.blocks(index):
            values = loss.values_of_rows(targets * np.asarray(block @ weights), _norms(block))
            total += float((shares * values).sum())
        return total

    def _map_parts(self, method: Callable[..., Any], given: Any, index: Index) -> Iterator[Any]:
        """Call a method of the objective of each part of the rows, and return the results."""
        return self.rows.map_parts(partial(_of_part, self.loss, method, given), index)

    def hessian(self, weights: Vector, index: Index = None) -> NDArray:
        """Return the (generalised) Hessian, at least ``penalty`` times the identity."""
        outputs, columns = self.loss.n_outputs, self.rows.n_columns
        total = np.zeros((outputs, columns, outputs, columns))
        for own in self._map_parts(RegularisedObjective._part_hessian, weights, index):
            total += own
        for a in range(outputs):
            for b in range(a):
                total[b, :, a, :] = total[a, :, b, :]
        matrix = total.reshape(self.n_weights, self.n_weights)
        matrix /= self._count(index)
        matrix.flat[:: self.n_weights + 1] += self.penalty
        return matrix

    def _part_hessian(self, weights: Vector, index: Index) -> NDArray:
        outputs, columns = self.loss.n_outputs, self.rows.n_columns
        total = np.zeros((outputs, columns, outputs, columns))
        memory = np.empty(0)
        for block, targets, shares in self.rows.blocks(index):
            if block.size > memory.size and not self.rows.is_sparse:
                memory = np.empty_like(block)
            curvature = self._curvature(block, weights, targets)
            for a in range(outputs):
                for b in range(a + 1):
                    weight = shares * self._weight(curvature, a, b)
                    total[a, :, b, :] += _weighted_gram(block, weight, memory)
        return total

    def hessian_operator(self, weights: Vector, index: Index = None) -> Callable[[Vector], Vector]:
        """Return the function that multiplies the Hessian at ``weights`` by a vector.

        The curvature of every row in memory is computed once; the Hessian is never formed.
        """
        count = self._count(index)
        curvatures: list[NDArray] | None = None
        if not isinstance(self.rows.matrix, RowSource):
            curvatures = [self._curvature(b, weights, t) for b, t, _ in self.rows.blocks(index)]

        def multiply(vector: Vector) -> Vector:
            product = np.zeros(self.n_weights)
            given = weights, vector, curvatures
            for own in self._map_parts(RegularisedObjective._part_product, given, index):
                product += own
            return product / count + self.penalty * vector

        return multiply

    def _part_product(self, given: Any, index: Index) -> Vector:
        weights, vector, curvatures = given
        direction = vector.reshape(self.loss.n_outputs, self.rows.n_columns)
        product = np.zeros(direction.shape)
        for k, (block, targets, shares) in enumerate(self.rows.blocks(index)):
            known = curvatures is not None
            curvature = curvatures[k] if known else self._curvature(block, weights, targets)
            moved = np.asarray(block @ direction.T)
            if self.loss.n_outputs > 1:
                moved -= np.einsum("nk,nk->n", curvature, moved)[:, None]
            moved *= shares[:, None]
            product += np.asarray(block.T @ (curvature * moved)).T
        return product.reshape(-1)

    def _curvature(self, block: Any, weights: Vector, targets: NDArray) -> NDArray:
        """Return second derivatives of each row's loss in its only score, (n, 1).

        For softmax the probabilities p, (n, K), of the matrix ``diag(p) - p p^T``.
        """
        loss: Any = self.loss.unweighted
        table = weights.reshape(self.loss.n_outputs, -1)
        scores = np.asarray(block @ table.T)
        if self.loss.n_outputs == 1:
            if self._clip < math.inf:
                return loss.curvature_of_rows(targets[:, None] * scores, _norms(block)[:, None])
            return evaluate(loss, 2, scores, targets[:, None])
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


def _of_part(loss: Loss, method: Callable[..., Any], given: Any, part: Rows, chosen: Index) -> Any:
    return method(RegularisedObjective(part, loss, 0.0), given, chosen)


def _norms(block: Any) -> Vector:
    """Return the norms of scaled rows."""
    if sparse.issparse(block):
        return np.sqrt(np.asarray(block.multiply(block).sum(axis=1)).ravel())
    return np.sqrt(np.einsum("ij,ij->i", block, block))


def _weighted_gram(block: Any, weights: Vector, memory: NDArray) -> NDArray:
    """Return ``block.T @ diag(weights) @ block``."""
    if sparse.issparse(block):
        return (block.T @ (sparse.diags(weights) @ block)).toarray()
    # A product of a matrix with its own transpose costs half as much; the weights have one sign.
    root = np.multiply(block, np.sqrt(np.abs(weights))[:, None], out=memory[: len(block)])
    gram = root.T @ root
    return -gram if (weights < 0.0).any() else gram
