"""What happens between the matrix products of a block: gathering, slopes, norms and factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from skdp.losses.elementary import FAST, STRICT
from skdp.losses.scalar import in_terms_of, loss_slope, loss_value, softmax_in_place
from skdp.solvers._dense_kernels import prefetch_rows
from skdp.solvers._prefetch import AHEAD

RELU, TANH = 1, 2  # any other code: identity
PER_LAYER, NORMALIZE = 1, 2  # any other code: flat


@njit(cache=True, nogil=True, fastmath=STRICT)
def add_start(start: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Write the sum of two vectors, rounded to the precision of ``out``."""
    for j in range(out.size):
        out[j] = start[j] + weights[j]


@njit(cache=True, nogil=True, fastmath=FAST)
def gather_dense(
    matrix: np.ndarray,
    scale: np.ndarray,
    gain: float,
    bias: float,
    index: np.ndarray,
    first: int,
    values: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Write scaled rows and their constant column, and the squares of the norms of what is written.

    Rows are positions in ``index`` from ``first`` on, or row numbers themselves when it is empty.
    """
    d, end = matrix.shape[1], first + values.shape[0]
    for k in range(values.shape[0]):
        i = first + k
        if index.size > 0:
            i = index[first + k]
            ahead = first + k + (AHEAD if k > 0 else 0)
            prefetch_rows(matrix, scale, scale, index, ahead, min(first + k + AHEAD + 1, end))
        factor = gain * scale[i]
        for j in range(d):
            values[k, j] = factor * matrix[i, j]
        finish_row(values, k, d, bias, squares)


@njit(cache=True, nogil=True, fastmath=FAST)
def gather_sparse(
    matrix: tuple[np.ndarray, np.ndarray, np.ndarray],
    scale: np.ndarray,
    gain: float,
    bias: float,
    index: np.ndarray,
    first: int,
    values: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Write scaled rows of a CSR matrix, as for dense ones."""
    data, indices, indptr = matrix
    d = values.shape[1] - 1
    for k in range(values.shape[0]):
        i = index[first + k] if index.size > 0 else first + k
        factor = gain * scale[i]
        values[k] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            values[k, indices[e]] = factor * data[e]
        finish_row(values, k, d, bias, squares)


@njit(cache=True, nogil=True, fastmath=FAST)
def finish_row(values: np.ndarray, k: int, d: int, bias: float, squares: np.ndarray) -> None:
    """Write the constant column of a row, if there is one, and the square of the row's norm."""
    for j in range(d, values.shape[1]):
        values[k, j] = bias
    square = 0.0
    for j in range(values.shape[1]):
        value = np.float64(values[k, j])
        square += value * value
    squares[k] = square


@njit(cache=True, nogil=True, fastmath=FAST)
def activate(values: np.ndarray, bias: float, code: int, squares: np.ndarray) -> None:
    """Apply a piecewise linear activation in place; as of gathered rows otherwise."""
    d = values.shape[1] - 1
    for k in range(values.shape[0]):
        if code == RELU:
            for j in range(d):
                # What is no number stays so.
                values[k, j] = values[k, j] if not values[k, j] <= 0.0 else 0.0
        finish_row(values, k, d, bias, squares)


@njit(cache=True, nogil=True, fastmath=STRICT)
def softmax_slopes(
    tag: np.ndarray,
    numbers: Any,
    scores: np.ndarray,
    targets: np.ndarray,
    index: np.ndarray,
    first: int,
    want_values: bool,
    scratch: np.ndarray,
    squares: np.ndarray,
) -> float:
    """Turn scores into slopes, with the squares of their norms; return the sum of the losses."""
    total = 0.0
    for k in range(scores.shape[0]):
        i = index[first + k] if index.size > 0 else first + k
        finite = True
        for j in range(scratch.size):
            scratch[j] = scores[k, j]
            finite &= math.isfinite(scratch[j])
        if finite:
            total += softmax_in_place(scratch, targets[i], want_values)
        else:
            scratch[:] = math.nan
            total += math.nan
        square = 0.0
        for j in range(scratch.size):
            scores[k, j] = scratch[j]
            square += np.float64(scores[k, j]) * np.float64(scores[k, j])
        squares[k] = square
    return total


@njit(cache=True, nogil=True, fastmath=STRICT)
def score_slopes(
    tag: np.ndarray,
    numbers: Any,
    scores: np.ndarray,
    targets: np.ndarray,
    index: np.ndarray,
    first: int,
    want_values: bool,
    scratch: np.ndarray,
    squares: np.ndarray,
) -> float:
    """Do the same for losses of one score."""
    total = 0.0
    for k in range(scores.shape[0]):
        i = index[first + k] if index.size > 0 else first + k
        score, slope = np.float64(scores[k, 0]), math.nan
        if math.isfinite(score):
            entry = in_terms_of(tag, numbers, score, targets[i])
            slope = in_terms_of(
                tag, numbers, loss_slope(tag, numbers, entry, targets[i]), targets[i]
            )
            total += loss_value(tag, numbers, entry, targets[i]) if want_values else 0.0
        else:
            total += math.nan
        scores[k, 0] = slope
        squares[k] = np.float64(scores[k, 0]) * np.float64(scores[k, 0])
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def derive(errors: np.ndarray, values: np.ndarray, code: int, squares: np.ndarray) -> None:
    """Multiply errors by the slopes of the activation; write the squares of their norms."""
    for k in range(errors.shape[0]):
        square = 0.0
        for j in range(errors.shape[1]):
            error, value = errors[k, j], values[k, j]
            if code == RELU:
                error = error if value > 0.0 else errors.dtype.type(0.0)
            elif code == TANH:
                error *= errors.dtype.type(1.0) - value * value
            errors[k, j] = error
            square += np.float64(error) * np.float64(error)
        squares[k] = square


@njit(cache=True, nogil=True, fastmath=STRICT)
def find_factors(
    value_squares: np.ndarray,
    error_squares: np.ndarray,
    count: int,
    code: int,
    clip: float,
    target: float,
    floor: float,
    limit: float,
    factors: np.ndarray,
) -> int:
    """Write what shrinks each record's gradient of each layer to ``target``; -1 drops a record.

    Returned is how many were no longer than ``clip``. Squares from ``limit`` on drop a record.
    """
    layers, within = factors.shape[0], 0
    for k in range(count):
        square = 0.0
        for layer in range(layers):
            square += value_squares[layer, k] * error_squares[layer, k]
        norm, kept = math.sqrt(square), True
        for layer in range(layers):
            a, e = value_squares[layer, k], error_squares[layer, k]
            bound, factor = target, 1.0
            if code == PER_LAYER:
                norm, bound = math.sqrt(a * e), target / math.sqrt(layers)
            if code == NORMALIZE and clip < math.inf:
                factor = target / (norm + floor)
            elif norm > bound:
                factor = bound / norm
            cut = factor * factor * e
            kept &= a < limit and e < limit and cut < limit and a * cut < limit
            factors[layer, k] = factor
        if not kept:
            factors[:, k] = -1.0
        elif square <= clip * clip:
            within += 1
    return within


@njit(cache=True, nogil=True, fastmath=STRICT)
def cut(values: np.ndarray, errors: np.ndarray, factors: np.ndarray, tiny: float) -> None:
    """Multiply errors by factors; of records that are dropped nothing is left, values included.

    Products smaller than ``tiny`` become zero: rounding them could lengthen a gradient.
    """
    for k in range(errors.shape[0]):
        if factors[k] < 0.0:
            values[k] = 0.0
            errors[k] = 0.0
        elif factors[k] != 1.0:
            for j in range(errors.shape[1]):
                error = factors[k] * errors[k, j]
                errors[k, j] = error if abs(error) >= tiny else 0.0


@njit(cache=True, nogil=True, fastmath=STRICT)
def add_blocks(kept: np.ndarray, begin: int, end: int, out: np.ndarray) -> None:
    """Add the sums of blocks, in their order, to a range of ``out``."""
    total = out[begin:end]  # loops that begin at 0 vectorise
    for k in range(kept.shape[0]):
        block = kept[k, begin:end]
        for j in range(total.size):
            total[j] += block[j]
