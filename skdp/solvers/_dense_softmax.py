"""Gradient sums of the softmax loss over dense rows."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from skdp.losses.elementary import FAST, INNER, OUTER
from skdp.losses.scalar import softmax_in_place
from skdp.solvers._dense_kernels import LARGE, Array, Data, Options, prefetch_rows, row_norm
from skdp.solvers._prefetch import AHEAD


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
    """Return what shrinks the outer product of ``slopes`` and a row to norm at most ``clip``."""
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

    As for losses of one score; ``scratch`` holds the scores.
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
