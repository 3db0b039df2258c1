"""Gradient sums over dense rows, scores and gradient in one pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from skdp.losses.scalar import (
    FAST,
    INNER,
    OUTER,
    STRICT,
    in_terms_of,
    keep_short,
    loss_slope,
    softmax_in_place,
    stay_apart,
)

# Rows in flight when rows are read in random order and every one would be a cache miss.
AHEAD = 12


@intrinsic
def _prefetch(typing_context: Any, array: Any, offset: Any) -> Any:
    """Ask the processor to load the element at flat ``offset`` of a contiguous array.

    It is a hint: it never faults, returns nothing and may be ignored by the hardware.
    """
    if not isinstance(array, types.Array) or array.layout != "C":
        return None
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], function_type)
        # Read access, keep in all cache levels, data cache.
        builder.call(function, [address, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return signature, generate


prefetch: Any = _prefetch


Array = np.ndarray
# A matrix, scales of its rows, the value of their constant column, targets, and weights or none.
Data = tuple[Any, Array, float, Array, Array]
# Tag and numbers of a loss, the norm that gradients are cut to, and scratch memory.
Options = tuple[Array, Any, float, tuple[Array, Array]]

# A block of rows is at most so many rows, and so many bytes unless four rows are more.
LARGEST_BLOCK = 64
CACHE_BYTES = 16384
# Sums run over spans of rows first, so that rounding errors do not grow like the number of rows.
SPAN = 256
# Long rows are left to the hardware's own prefetcher after their first lines.
MAX_LINES = 16
# Beyond these products and sums overflow or lose digits.
SMALL, LARGE = 1e-280, 1e300
# Of squares that vanish, however many: adding it to their sum bounds what they leave out.
TINY = 1e-305


@njit(cache=True, nogil=True, fastmath=FAST, **OUTER)
def row_scales(X: np.ndarray, data_norm: float, out: np.ndarray) -> bool:
    """Write ``min(1 / data_norm, 1 / ||x_i||)``, rounded down, for every row of a dense matrix.

    NaN marks relevant rows whose squares overflow or vanish; the return value is whether there is
    none.
    """
    # Bounds the rounding error of the sum of squares and of the operations after it.
    shrink = 1.0 - (0.5 * X.shape[1] + 6.0) * 1.2e-16
    plain = True
    for i in range(X.shape[0]):
        total = TINY
        for j in range(X.shape[1]):
            v = np.float64(X[i, j])
            total += v * v
        relative = math.sqrt(total) / data_norm
        out[i] = 1.0 / data_norm
        if relative > shrink:
            fine = SMALL < total < LARGE
            out[i] = shrink / relative / data_norm if fine else math.nan
            plain &= fine
    return plain


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def row_norm(X: np.ndarray, i: int, scale: float, intercept: float) -> float:
    """Return the norm of ``scale * x_i`` and its constant column, or a bound on it.

    A scaled row whose squares overflow counts as one of norm 1, the largest possible.
    """
    stay_apart()
    total = TINY
    for j in range(X.shape[1]):
        v = np.float64(X[i, j])
        total += v * v
    norm = scale * math.sqrt(total) if total < LARGE else 1.0
    return math.sqrt(norm * norm + (intercept * intercept + TINY))


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def prefetch_rows(
    X: np.ndarray, scale: np.ndarray, targets: np.ndarray, index: np.ndarray, begin: int, end: int
) -> None:
    """Ask for the rows at positions ``begin`` to ``end`` of ``index``."""
    keep_short()
    d = X.shape[1]
    per_line = 64 // X.itemsize
    reach = d if d < MAX_LINES * per_line else MAX_LINES * per_line
    for p in range(begin, end):
        i = index[p]
        prefetch(scale, i)
        prefetch(targets, i)
        for j in range(0, reach, per_line):
            prefetch(X, i * d + j)
        # Rows seldom start at a cache line, so the last element may lie on one more.
        prefetch(X, i * d + reach - 1)


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def block_products(
    X: np.ndarray, weights: np.ndarray, members: np.ndarray, count: int, products: np.ndarray
) -> None:
    """Write the products of ``count`` rows and the weights, four at a time."""
    stay_apart()
    for k in range(0, count, 4):
        i0, i1, i2, i3 = members[k], members[k + 1], members[k + 2], members[k + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(X.shape[1]):
            w = weights[j]
            s0 += X[i0, j] * w
            s1 += X[i1, j] * w
            s2 += X[i2, j] * w
            s3 += X[i3, j] * w
        products[k], products[k + 1], products[k + 2], products[k + 3] = s0, s1, s2, s3


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def add_block(
    X: np.ndarray, members: np.ndarray, count: int, coefficients: np.ndarray, out: np.ndarray
) -> None:
    """Add to ``out`` the combination of ``count`` rows, four at a time."""
    stay_apart()
    for k in range(0, count, 4):
        i0, i1, i2, i3 = members[k], members[k + 1], members[k + 2], members[k + 3]
        c0, c1 = coefficients[k], coefficients[k + 1]
        c2, c3 = coefficients[k + 2], coefficients[k + 3]
        for j in range(X.shape[1]):
            out[j] += (c0 * X[i0, j] + c1 * X[i1, j]) + (c2 * X[i2, j] + c3 * X[i3, j])


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def slopes_in_place(
    tag: np.ndarray, numbers: Any, count: int, entries: np.ndarray, targets: np.ndarray
) -> None:
    """Turn margins, or scores, into slopes."""
    stay_apart()
    for k in range(count):
        entries[k] = loss_slope(tag, numbers, entries[k], targets[k])


@njit(cache=True, nogil=True, fastmath=STRICT, **OUTER)
def accumulate(
    data: Data, weights: Array, index: Array, start: int, stop: int, options: Options, out: Array
) -> None:
    """Add to ``out`` the clipped per-row gradients of rows ``start`` to ``stop``.

    Rows are positions in ``index``, or row numbers themselves when it is empty. A block of rows
    that fits in the first-level cache is read from memory once and used twice. A clipped gradient
    counts ``row_weight`` times; once if that is empty.
    """
    X, scale, intercept, targets, row_weight = data
    tag, numbers, clip, (numbers_of, members) = options
    keep_short()
    d, gather, weighted = X.shape[1], index.size > 0, row_weight.size > 0
    bias = weights[d] * intercept if intercept > 0.0 else 0.0
    # Scaled rows have norm at most one: most slopes are cleared without looking at the row.
    longest = math.sqrt(1.0 + intercept * intercept) * (1.0 + 1e-14)
    part, slopes = numbers_of[:d], numbers_of[d:]
    labels = numbers_of[d + members.size :]
    size = LARGEST_BLOCK
    while size > 4 and size * d * X.itemsize > CACHE_BYTES:
        size //= 2
    for j in range(d):
        part[j] = 0.0
    bias_slope = 0.0
    for first in range(start - size, stop, size):
        last = first + size if first + size < stop else stop
        if gather:  # the next block, and before the first one nothing else
            end = last + size if last + size < stop else stop
            prefetch_rows(X, scale, targets, index, last, end)
        if first < start:
            continue
        count = last - first
        for k in range(count):
            members[k] = index[first + k] if gather else first + k
        # A last block is filled up to fours with rows that count for nothing.
        for k in range(count, count + 3):
            members[k] = members[0]
        block_products(X, weights, members, count, slopes)
        for k in range(count):
            i = members[k]
            score = scale[i] * slopes[k]
            if not abs(slopes[k]) < LARGE:
                # The row is so long that the plain product overflowed.
                score = 0.0
                for j in range(d):
                    score += (scale[i] * X[i, j]) * weights[j]
            labels[k] = targets[i]
            slopes[k] = in_terms_of(tag, score + bias, labels[k])
        slopes_in_place(tag, numbers, count, slopes, labels)
        for k in range(count):
            i = members[k]
            slope = in_terms_of(tag, slopes[k], labels[k])
            if abs(slope) * longest > clip:
                norm = row_norm(X, i, scale[i], intercept)
                if abs(slope) * norm > clip:
                    slope = math.copysign(clip / norm, slope)
            slope *= row_weight[i] if weighted else 1.0
            bias_slope += slope
            slopes[k] = slope * scale[i]
        for k in range(count, count + 3):
            slopes[k] = 0.0
        add_block(X, members, count, slopes, part)
        if (last - start) % SPAN == 0 or last == stop:
            for j in range(d):
                out[j] += part[j]
                part[j] = 0.0
            if intercept > 0.0:
                out[d] += intercept * bias_slope
                bias_slope = 0.0


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def row_scores(
    X: np.ndarray, i: int, scale: float, intercept: float, weights: np.ndarray, scores: np.ndarray
) -> None:
    """Write the scores of row ``i`` for weights stored class after class."""
    d = X.shape[1]
    stride = weights.size // scores.size
    for k in range(scores.size):
        base = k * stride
        product = 0.0
        for j in range(d):
            product += X[i, j] * weights[base + j]
        score = scale * product
        if not abs(product) < LARGE:
            # The row is so long that the plain product overflowed.
            score = 0.0
            for j in range(d):
                score += (scale * X[i, j]) * weights[base + j]
        scores[k] = score + intercept * weights[base + d] if intercept > 0.0 else score


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def clip_factor(slopes: np.ndarray, norm: float, clip: float) -> float:
    """Return the factor that clips the outer product of ``slopes`` and a row to norm ``clip``."""
    square = 0.0
    for k in range(slopes.size):
        square += slopes[k] * slopes[k]
    length = math.sqrt(square) * norm
    return clip / length if length > clip else 1.0


@njit(cache=True, nogil=True, fastmath=FAST, **OUTER)
def accumulate_softmax(
    data: Data, weights: Array, index: Array, start: int, stop: int, options: Options, out: Array
) -> None:
    """Add to ``out`` the clipped per-row gradients of rows ``start`` to ``stop``.

    Like :func:`accumulate`; ``scratch`` holds the scores.
    """
    X, scale, intercept, targets, row_weight = data
    _, numbers, clip, scratch = options
    d = X.shape[1]
    scores = scratch[0][: int(numbers[0])]
    stride = weights.size // scores.size
    gather, weighted = index.size > 0, row_weight.size > 0
    longest = math.sqrt(1.0 + intercept * intercept) * (1.0 + 1e-14)
    for p in range(start, stop):
        i = p
        if gather:
            begin = p if p == start else p + AHEAD
            prefetch_rows(X, scale, targets, index, begin, min(p + AHEAD + 1, stop))
            i = index[p]
        row_scores(X, i, scale[i], intercept, weights, scores)
        share = row_weight[i] if weighted else 1.0
        softmax_in_place(scores, targets[i], False)
        factor = 1.0
        # Scaled rows have norm at most one, so the norm is needed only when clipping can happen.
        if clip_factor(scores, longest, clip) < 1.0:
            factor = clip_factor(scores, row_norm(X, i, scale[i], intercept), clip)
        for k in range(scores.size):
            slope = share * (factor * scores[k])
            coefficient = slope * scale[i]
            base = k * stride
            for j in range(d):
                out[base + j] += coefficient * X[i, j]
            if intercept > 0.0:
                out[base + d] += slope * intercept
