"""Sums of clipped per-example gradients, and bounds on their rounding errors.

The count of roundings is Theorem 5 of ``docs/proofs/discrete_noise.md``. It holds for every order
in which sums may be added up, so for all kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.losses.base import Loss, evaluate, kernel_arguments
from skdp.solvers.rows import TARGETS, Index, Rows, Vector
from skdp.tables.row_sources import RowSource

# Rows of one call of a kernel over all rows: a level of summation above the kernels' own blocks.
CHUNK = 1 << 16
# The fewest sparse rows of one call.
SPARSE_CHUNK = 1 << 10
ALL_ROWS = np.empty(0, dtype=np.int64)


def accumulate_kernel(is_sparse: bool, family: str) -> Callable[..., float]:
    """Return the compiled gradient sum for a layout of rows and a family of losses."""
    if is_sparse:
        from skdp.solvers import _sparse_kernels

        softmax = family == "softmax"
        return _sparse_kernels.accumulate_softmax if softmax else _sparse_kernels.accumulate
    from skdp.solvers import _dense_kernels

    return _dense_kernels.accumulate_softmax if family == "softmax" else _dense_kernels.accumulate


def check_targets(rows: Rows, loss: Loss) -> Any:
    """Return the loss as kernels take it; refuse one without kernel, and unsuitable targets."""
    arguments = kernel_arguments(loss)
    if rows.target_kind != loss.target_kind:
        raise ValueError(
            f"{type(loss).__name__} takes {TARGETS[loss.target_kind]}, got "
            f"{TARGETS[rows.target_kind]}."
        )
    if arguments[0].family == "softmax" and rows.n_codes > loss.n_outputs:
        raise ValueError(
            f"targets hold {rows.n_codes} class codes but the loss has {loss.n_outputs} classes."
        )
    return arguments


def kernel_inputs(rows: Rows, arguments: Any, n_outputs: int, clip: float) -> tuple[Any, Any]:
    """Return rows in memory, and a loss with a clip, as the kernels of sums take them."""
    functions, numbers = arguments
    data = (rows.matrix, rows.row_scale, rows.intercept_value, rows.targets, rows.kernel_weight)
    # A block has at most 64 rows and is filled up to a multiple of four.
    block = 68
    size = n_outputs + (0 if rows.is_sparse else rows.n_features + 2 * block)
    scratch = np.empty(size), np.empty(block, dtype=np.int64)
    # Norms are sums in the order of their terms, and may be rounded down.
    within = clip / (1.0 + 0.5 * rows.n_columns * 1.2e-16)
    return data, (functions.tag, numbers, within, scratch)


def check_index(index: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
    """Return the row numbers as contiguous int64; refuse those outside the matrix."""
    index = np.ascontiguousarray(index, dtype=np.int64)
    if index.size and (index.min() < 0 or index.max() >= n_rows):
        raise ValueError(f"index must hold row numbers in 0, ..., {n_rows - 1}.")
    return index


def check_shape(name: str, array: Vector, size: int) -> None:
    """Refuse an array that kernels would read or write past its end."""
    if array.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {array.shape}.")


def sum_gradients(
    rows: Rows,
    loss: Loss,
    weights: Vector,
    out: Vector,
    index: Index = None,
    clip: float = math.inf,
    values: bool = False,
) -> float:
    """Add to ``out`` the gradients of the rows in ``index`` (None: all), each cut to norm ``clip``.

    They are in scaled units and leave the penalty out; their norms are known in closed form, so
    that none is ever stored. Returned is the sum of the losses if ``values``, else 0.0. Both count
    as often as the rows' weights say.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.solvers import Rows, sum_gradients
    >>> X, signs = np.array([[0.6, 0.8], [0.6, 0.8]]), np.array([1, 1], dtype=np.int8)
    >>> rows = Rows.from_matrix(X, signs, data_norm=1.0)
    >>> total = np.zeros(2)
    >>> value = sum_gradients(rows, LogisticLoss(), np.zeros(2), total, clip=0.1, values=True)
    >>> total.round(6), round(value, 4)
    (array([-0.12, -0.16]), 1.3863)
    """
    arguments = check_targets(rows, loss)
    size = rows.n_weights(loss.n_outputs)
    check_shape("weights", weights, size)
    check_shape("out", out, size)
    if not clip > 0.0:
        raise ValueError(f"clip must be positive (inf = no clipping), got {clip}.")
    index = None if index is None else check_index(index, rows.n_rows)
    if isinstance(rows.matrix, RowSource):
        return _sum_parts(rows, loss, weights, out, index, clip, values)
    _add_gradients(rows, arguments, weights, out, index, clip)
    return _sum_losses(rows, loss, weights, index) if values else 0.0


def _add_gradients(
    rows: Rows, arguments: Any, weights: Vector, out: Vector, index: Index, clip: float
) -> None:
    """Add the gradients of rows in memory."""
    kernel = accumulate_kernel(rows.is_sparse, arguments[0].family)
    data, options = kernel_inputs(rows, arguments, weights.size // rows.n_columns, clip)
    if index is not None:
        kernel(data, weights, index, 0, index.size, options, out)
        return
    chunk = _sparse_chunk(rows) if rows.is_sparse else CHUNK
    for start in range(0, rows.n_rows, chunk):
        stop = min(start + chunk, rows.n_rows)
        part = out if rows.n_rows <= chunk else np.zeros_like(out)
        kernel(data, weights, ALL_ROWS, start, stop, options, part)
        if part is not out:
            out += part


def _sum_parts(
    rows: Rows, loss: Loss, weights: Vector, out: Vector, index: Index, *options: Any
) -> float:
    """Do the same part by part."""
    total = 0.0
    for value, own in rows.map_parts(partial(_sum_part, loss, weights, options), index):
        total += value
        out += own
    return total


def _sum_part(
    loss: Loss, weights: Vector, options: Any, part: Rows, chosen: Any
) -> tuple[float, Vector]:
    own = np.zeros_like(weights)
    return sum_gradients(part, loss, weights, own, chosen, *options), own


def _sum_losses(rows: Rows, loss: Loss, weights: Vector, index: Index) -> float:
    """Return the sum of the losses, each as often as its row's weight says."""
    plain: Any = loss.kernel_loss
    total = 0.0
    for block, targets, shares in rows.blocks(index):
        scores = np.asarray(block @ weights.reshape(loss.n_outputs, -1).T)
        if loss.n_outputs == 1:
            values = evaluate(plain, 0, scores[:, 0], targets)
        else:
            values = plain.value(scores, targets)
        total += float((shares * values).sum())
    return total


def _sparse_chunk(rows: Rows) -> int:
    """Return how many sparse rows to add up one by one before their sum is added."""
    # Kernels of sparse rows have no blocks of their own, and errors of a plain sum grow like its
    # length. Many columns of few entries make the sums of chunks the larger part of the work.
    entries = max(rows.matrix[0].size / max(rows.n_rows, 1), 1.0)
    return int(min(max(rows.n_columns / entries, SPARSE_CHUNK), 16.0 * SPARSE_CHUNK))


# Nodes of the quadrature over a margin.
_NODES = 12


def sum_expected_gradients(
    rows: Rows,
    means: Vector,
    variances: Vector,
    out: Vector,
    index: Index,
    clip: float,
    gain: float,
) -> None:
    """Add to ``out`` ``(E[l'] x, gain E[l''] x^2)`` of the rows in ``index``, each cut to ``clip``.

    None stands for all rows. Norms are known in closed form, so that no gradient is ever stored.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.solvers import Rows, sum_expected_gradients
    >>> X, signs = np.array([[1.0, 0.0]]), np.array([1], dtype=np.int8)
    >>> rows = Rows.from_matrix(X, signs, data_norm=1.0)
    >>> means, variances, total = np.zeros(2), np.full(2, 1e-12), np.zeros(4)
    >>> sum_expected_gradients(rows, means, variances, total, None, clip=10.0, gain=1.0)
    >>> total.round(6)  # slope -1/2 and curvature 1/4
    array([-0.5 ,  0.  ,  0.25,  0.  ])
    """
    size = rows.n_weights()
    check_shape("means", means, size)
    check_shape("variances", variances, size)
    check_shape("out", out, 2 * size)
    if rows.target_kind != "signs" or not clip > 0.0:
        raise ValueError("Expected gradients take labels -1 and +1, and a positive clip.")
    index = None if index is None else check_index(index, rows.n_rows)
    for own in rows.map_parts(partial(_sum_expected_part, means, variances, clip, gain), index):
        out += own


def _sum_expected_part(
    means: Vector, variances: Vector, clip: float, gain: float, part: Rows, chosen: Any
) -> Vector:
    from skdp.solvers import _variational_kernels as kernels

    own = np.zeros((2, means.size))
    kernel: Any = kernels.accumulate_sparse if part.is_sparse else kernels.accumulate_dense
    chosen = np.arange(part.n_rows) if chosen is None else chosen
    data = (part.matrix, part.row_scale, part.intercept_value, part.targets)
    kernel(data, (means, variances), chosen, (float(gain), _hermite_rule(), float(clip)), own)
    return own.ravel()


@cache
def _hermite_rule() -> tuple[Vector, Vector]:
    """Return nodes and weights of expectations over a standard normal variable."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, shares / shares.sum()


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
