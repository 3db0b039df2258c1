"""Gradient sums of losses of one score over dense rows, scores and gradient in one pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from skdp.losses.elementary import FAST, INNER, STRICT
from skdp.losses.scalar import in_terms_of, slopes_in_place
from skdp.solvers._prefetch import prefetch

# A block of rows is at most so many rows, and so many bytes unless four rows are more.
LARGEST_BLOCK = 64
CACHE_BYTES = 16384
# Sums run over spans of rows first, so that rounding errors do not grow like the number of rows.
SPAN = 256
# Long rows are left to the hardware's own prefetcher after their first lines.
MAX_LINES = 16
# Beyond these the square of a norm overflows or loses digits, and rows are rescaled first.
SMALL, LARGE = 1e-280, 1e300


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def careful_norm(entries: np.ndarray, scale: float) -> float:
    """Return ``scale`` times the norm of entries whose squares overflow or vanish."""
    top = 0.0
    for j in range(entries.size):
        top = max(top, abs(np.float64(entries[j])))
    if top == 0.0:
        return 0.0
    total = 0.0
    for j in range(entries.size):
        v = np.float64(entries[j]) / top
        total += v * v
    return (scale * top) * math.sqrt(total)


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def scaled_norm(X: np.ndarray, i: int, scale: float) -> float:
    """Return the norm of ``scale * x_i``; huge and tiny entries neither overflow nor vanish."""
    total = 0.0
    for j in range(X.shape[1]):
        v = np.float64(X[i, j])
        total += v * v
    if SMALL < total < LARGE:
        return scale * math.sqrt(total)
    return careful_norm(X[i], scale)


@njit(cache=True, nogil=True, fastmath=STRICT)
def row_scales(X: np.ndarray, data_norm: float, out: np.ndarray) -> None:
    """Write ``min(1 / data_norm, 1 / ||x_i||)``, rounded down, for every row of a dense matrix."""
    # Bounds the rounding error of the sum of squares and of the operations after it.
    shrink = 1.0 - (0.5 * X.shape[1] + 6.0) * 1.2e-16
    for i in range(X.shape[0]):
        relative = scaled_norm(X, i, 1.0 / data_norm)
        out[i] = 1.0 / data_norm
        if relative > shrink:
            # Of the longest rows the quotient is subnormal, and rounded by more than the margin.
            out[i] = np.nextafter(shrink / relative / data_norm, 0.0)


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def prefetch_rows(
    X: np.ndarray, scale: np.ndarray, targets: np.ndarray, index: np.ndarray, begin: int, end: int
) -> None:
    """Ask for the rows at positions ``begin`` to ``end`` of ``index``."""
    d = X.shape[1]
    per_line = 64 // X.itemsize
    reach = min(d, MAX_LINES * per_line)
    for p in range(begin, end):
        i = index[p]
        prefetch(scale, i)
        prefetch(targets, i)
        for j in range(0, reach, per_line):
            prefetch(X, i * d + j)
        # Rows seldom start at a cache line, so the last element may lie on one more.
        prefetch(X, i * d + reach - 1)


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def careful_product(X: np.ndarray, i: int, scale: float, weights: np.ndarray) -> float:
    """Return the score of a row so long that its plain product overflowed."""
    total = 0.0
    for j in range(X.shape[1]):
        total += (scale * X[i, j]) * weights[j]
    return total


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def block_products(
    X: np.ndarray, weights: np.ndarray, members: np.ndarray, count: int, products: np.ndarray
) -> None:
    """Write the products of ``count`` rows and the weights, four at a time."""
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


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def add_block(
    X: np.ndarray, members: np.ndarray, count: int, coefficients: np.ndarray, out: np.ndarray
) -> None:
    """Add to ``out`` the combination of ``count`` rows, four at a time."""
    for k in range(0, count, 4):
        i0, i1, i2, i3 = members[k], members[k + 1], members[k + 2], members[k + 3]
        c0, c1 = coefficients[k], coefficients[k + 1]
        c2, c3 = coefficients[k + 2], coefficients[k + 3]
        for j in range(X.shape[1]):
            out[j] += (c0 * X[i0, j] + c1 * X[i1, j]) + (c2 * X[i2, j] + c3 * X[i3, j])


@njit(cache=True, nogil=True, fastmath=STRICT, **INNER)
def clip_slopes(
    X: np.ndarray,
    scale: np.ndarray,
    intercept: float,
    members: np.ndarray,
    count: int,
    clip: float,
    slopes: np.ndarray,
) -> None:
    """Shrink slopes so that no gradient of the block is longer than ``clip``."""
    # Scaled rows have norm at most one: most slopes are cleared without looking at the row.
    longest = math.sqrt(1.0 + intercept * intercept) * (1.0 + 1e-14)
    for k in range(count):
        if abs(slopes[k]) * longest > clip:
            i = members[k]
            norm = math.hypot(scaled_norm(X, i, scale[i]), intercept)
            if abs(slopes[k]) * norm > clip:
                slopes[k] = math.copysign(clip / norm, slopes[k])


@njit(cache=True, nogil=True, fastmath=FAST)
def accumulate(
    X: np.ndarray,
    scale: np.ndarray,
    intercept: float,
    targets: np.ndarray,
    row_weight: np.ndarray,
    weights: np.ndarray,
    index: np.ndarray,
    start: int,
    stop: int,
    tag: np.ndarray,
    numbers: Any,
    clip: float,
    want_values: bool,
    scratch: tuple[np.ndarray, np.ndarray],
    out: np.ndarray,
) -> float:
    """Add to ``out`` the clipped per-row gradients of rows ``start`` to ``stop``; return the loss.

    Rows are positions in ``index``, or row numbers themselves when it is empty. A block of rows
    that fits in the first-level cache is read from memory once and used twice. A clipped gradient
    counts ``row_weight`` times, and so does a loss; once if that is empty.
    """
    d = X.shape[1]
    gather, weighted = index.size > 0, row_weight.size > 0
    bias = weights[d] * intercept if intercept > 0.0 else 0.0
    part, members = scratch[0][:d], scratch[1]
    slopes = scratch[0][d : d + members.size]
    labels = scratch[0][d + members.size : d + 2 * members.size]
    shares = scratch[0][d + 2 * members.size :]
    size = LARGEST_BLOCK
    while size > 4 and size * d * X.itemsize > CACHE_BYTES:
        size //= 2
    part[:] = 0.0
    bias_slope, total = 0.0, 0.0
    if gather:
        prefetch_rows(X, scale, targets, index, start, min(start + size, stop))
    for first in range(start, stop, size):
        count = min(size, stop - first)
        for k in range(count):
            members[k] = index[first + k] if gather else first + k
        # A last block is filled up to fours with rows that count for nothing.
        for k in range(count, count + 3):
            members[k] = members[0]
        if gather:
            begin = min(first + size, stop)
            prefetch_rows(X, scale, targets, index, begin, min(begin + size, stop))
        block_products(X, weights, members, count, slopes)
        for k in range(count):
            i = members[k]
            score = scale[i] * slopes[k]
            if not abs(slopes[k]) < LARGE:
                score = careful_product(X, i, scale[i], weights)
            labels[k] = targets[i]
            slopes[k] = in_terms_of(tag, numbers, score + bias, labels[k])
            shares[k] = row_weight[i] if weighted else 1.0
        total += slopes_in_place(tag, numbers, slopes, labels, shares, count, want_values)
        if clip < math.inf:
            clip_slopes(X, scale, intercept, members, count, clip, slopes)
        for k in range(count):
            i = members[k]
            slope = shares[k] * in_terms_of(tag, numbers, slopes[k], labels[k])
            bias_slope += slope
            slopes[k] = slope * scale[i]
        slopes[count : count + 3] = 0.0
        add_block(X, members, count, slopes, part)
        if (first - start + size) % SPAN == 0 or first + size >= stop:
            for j in range(d):
                out[j] += part[j]
                part[j] = 0.0
            if intercept > 0.0:
                out[d] += intercept * bias_slope
                bias_slope = 0.0
    return total
