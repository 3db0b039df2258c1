"""Row scales and gradient sums over the rows of a CSR matrix.

A matrix is the tuple ``(data, indices, indptr)``. Sums touch only stored entries: the cost of a
batch is its number of stored entries, independent of the number of columns.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from skdp.losses.scalar import INNER, OUTER, STRICT, in_terms_of, loss_slope, softmax_in_place
from skdp.solvers._dense_kernels import (
    AHEAD,
    LARGE,
    SMALL,
    TINY,
    Array,
    Data,
    Options,
    clip_factor,
    prefetch,
)

Matrix = tuple[np.ndarray, np.ndarray, np.ndarray]


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def row_scales(matrix: Matrix, data_norm: float, out: np.ndarray) -> bool:
    """Write ``min(1 / data_norm, 1 / ||x_i||)`` for every row, as of dense rows."""
    data, _, indptr = matrix
    plain = True
    for i in range(out.size):
        shrink = 1.0 - (0.5 * (indptr[i + 1] - indptr[i]) + 6.0) * 1.2e-16
        total = TINY
        for e in range(indptr[i], indptr[i + 1]):
            v = np.float64(data[e])
            total += v * v
        relative = math.sqrt(total) / data_norm
        out[i] = 1.0 / data_norm
        if relative > shrink:
            fine = SMALL < total < LARGE
            out[i] = shrink / relative / data_norm if fine else math.nan
            plain &= fine
    return plain


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def row_norm(data: np.ndarray, begin: int, end: int, scale: float, intercept: float) -> float:
    """Return the norm of a scaled row and its constant column, as of dense rows."""
    total = TINY
    for e in range(begin, end):
        v = np.float64(data[e])
        total += v * v
    norm = scale * math.sqrt(total) if total < LARGE else 1.0
    return math.sqrt(norm * norm + (intercept * intercept + TINY))


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def prefetch_row(matrix: Matrix, scale: np.ndarray, targets: np.ndarray, i: int) -> None:
    """Ask for the first stored entries of a row."""
    data, indices, indptr = matrix
    prefetch(scale, i)
    prefetch(targets, i)
    prefetch(data, indptr[i])
    prefetch(indices, indptr[i])


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def row_product(
    matrix: Matrix, begin: int, end: int, scale: float, weights: np.ndarray, base: int
) -> float:
    """Return the product of one scaled row and the weights that start at ``base``."""
    data, indices, _ = matrix
    product = 0.0
    for e in range(begin, end):
        product += data[e] * weights[base + indices[e]]
    if abs(product) < LARGE:
        return scale * product
    # The row is so long that the plain product overflowed.
    product = 0.0
    for e in range(begin, end):
        product += (scale * data[e]) * weights[base + indices[e]]
    return product


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def accumulate(
    data: Data, weights: Array, index: Array, start: int, stop: int, options: Options, out: Array
) -> None:
    """Add to ``out`` the clipped per-row gradients of rows ``start`` to ``stop``.

    Rows are positions in ``index``, or row numbers themselves when it is empty.
    """
    matrix, scale, intercept, targets, row_weight = data
    tag, numbers, clip, _ = options
    entries, indices, indptr = matrix
    last = weights.size - 1
    gather, weighted = index.size > 0, row_weight.size > 0
    bias = weights[last] * intercept if intercept > 0.0 else 0.0
    longest = math.sqrt(1.0 + intercept * intercept) * (1.0 + 1e-14)
    for p in range(start, stop):
        i = p
        if gather:
            i = index[p]
            if p + AHEAD < stop:
                prefetch_row(matrix, scale, targets, index[p + AHEAD])
        begin, end = indptr[i], indptr[i + 1]
        score = row_product(matrix, begin, end, scale[i], weights, 0) + bias
        entry = in_terms_of(tag, score, targets[i])
        slope = in_terms_of(tag, loss_slope(tag, numbers, entry, targets[i]), targets[i])
        share = row_weight[i] if weighted else 1.0
        if abs(slope) * longest > clip:
            norm = row_norm(entries, begin, end, scale[i], intercept)
            if abs(slope) * norm > clip:
                slope = math.copysign(clip / norm, slope)
        slope *= share
        coefficient = slope * scale[i]
        for e in range(begin, end):
            out[indices[e]] += coefficient * entries[e]
        if intercept > 0.0:
            out[last] += slope * intercept


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def accumulate_softmax(
    data: Data, weights: Array, index: Array, start: int, stop: int, options: Options, out: Array
) -> None:
    """Add to ``out`` the clipped softmax gradients of rows ``start`` to ``stop``.

    As :func:`accumulate`; ``scratch`` holds the scores.
    """
    matrix, scale, intercept, targets, row_weight = data
    _, numbers, clip, scratch = options
    entries, indices, indptr = matrix
    scores = scratch[0][: int(numbers[0])]
    stride = weights.size // scores.size
    gather, weighted = index.size > 0, row_weight.size > 0
    longest = math.sqrt(1.0 + intercept * intercept) * (1.0 + 1e-14)
    for p in range(start, stop):
        i = p
        if gather:
            i = index[p]
            if p + AHEAD < stop:
                prefetch_row(matrix, scale, targets, index[p + AHEAD])
        begin, end = indptr[i], indptr[i + 1]
        for k in range(scores.size):
            base = k * stride
            scores[k] = row_product(matrix, begin, end, scale[i], weights, base)
            if intercept > 0.0:
                scores[k] += intercept * weights[base + stride - 1]
        share = row_weight[i] if weighted else 1.0
        softmax_in_place(scores, targets[i], False)
        factor = 1.0
        if clip_factor(scores, longest, clip) < 1.0:
            norm = row_norm(entries, begin, end, scale[i], intercept)
            factor = clip_factor(scores, norm, clip)
        for k in range(scores.size):
            slope = share * (factor * scores[k])
            base = k * stride
            for e in range(begin, end):
                out[base + indices[e]] += (slope * scale[i]) * entries[e]
            if intercept > 0.0:
                out[base + stride - 1] += slope * intercept
