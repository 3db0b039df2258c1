"""Gradient sums of expected logistic losses under Gaussian weights, over dense and CSR rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from skdp.losses.scalar import FAST, INNER, OUTER, logistic_curvature, logistic_slope

Array = np.ndarray


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def expected_slopes(
    mean: float, deviation: float, nodes: np.ndarray, shares: np.ndarray
) -> tuple[float, float]:
    """Return the first and second derivative of the loss, on average over a normal margin."""
    slope, curvature = 0.0, 0.0
    for k in range(nodes.size):
        margin = mean + deviation * nodes[k]
        slope += shares[k] * logistic_slope((), margin, 1.0)
        curvature += shares[k] * logistic_curvature((), margin, 1.0)
    return slope, curvature


@njit(cache=True, nogil=True, fastmath=FAST, **INNER)
def clipped_slopes(
    products: tuple[float, float, float, float],
    label: float,
    gain: float,
    rule: tuple[np.ndarray, np.ndarray],
    clip: float,
) -> tuple[float, float]:
    """Return the factors of a row and of its squares in a gradient clipped to ``clip``.

    ``products`` are the mean and variance of the row's score, and its sums of squares and of fourth
    powers.
    """
    mean, variance, squares, fourths = products
    slope, curvature = expected_slopes(label * mean, math.sqrt(variance), rule[0], rule[1])
    slope *= label
    curvature *= gain
    norm = math.sqrt(slope * slope * squares + curvature * curvature * fourths)
    if norm > clip:
        slope *= clip / norm
        curvature *= clip / norm
    return slope, curvature


@njit(cache=True, nogil=True, fastmath=FAST, **OUTER)
def accumulate_dense(
    data: Any, posterior: tuple[Array, Array], index: Array, options: Any, out: Array
) -> None:
    """Add to the two rows of ``out`` the contributions of the rows ``index``, clipped to ``clip``.

    `posterior` holds means and variances of weights, `options` the gain, the rule and the clip.
    """
    X, scale, intercept, targets = data
    (means, variances), (gain, rule, clip) = posterior, options
    d = X.shape[1]
    for i in index:
        r = scale[i]
        mean, variance, squares, fourths = 0.0, 0.0, 0.0, 0.0
        # Scaled first, entries are at most 1: nothing overflows.
        for j in range(d):
            v = r * X[i, j]
            square = v * v
            mean += v * means[j]
            variance += square * variances[j]
            squares += square
            fourths += square * square
        square = intercept * intercept
        if intercept > 0.0:
            mean += intercept * means[d]
            variance += square * variances[d]
        products = (mean, variance, squares + square, fourths + square * square)
        slope, curvature = clipped_slopes(products, targets[i], gain, rule, clip)
        for j in range(d):
            v = r * X[i, j]
            out[0, j] += slope * v
            out[1, j] += curvature * (v * v)
        if intercept > 0.0:
            out[0, d] += slope * intercept
            out[1, d] += curvature * square


@njit(cache=True, nogil=True, fastmath=FAST, **OUTER)
def accumulate_sparse(
    data: Any, posterior: tuple[Array, Array], index: Array, options: Any, out: Array
) -> None:
    """Do for CSR rows what :func:`accumulate_dense` does."""
    (entries, indices, indptr), scale, intercept, targets = data
    (means, variances), (gain, rule, clip) = posterior, options
    d = means.size - 1  # of the intercept, if any
    for i in index:
        r = scale[i]
        mean, variance, squares, fourths = 0.0, 0.0, 0.0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            v = r * entries[e]
            square = v * v
            mean += v * means[indices[e]]
            variance += square * variances[indices[e]]
            squares += square
            fourths += square * square
        square = intercept * intercept
        if intercept > 0.0:
            mean += intercept * means[d]
            variance += square * variances[d]
        products = (mean, variance, squares + square, fourths + square * square)
        slope, curvature = clipped_slopes(products, targets[i], gain, rule, clip)
        for e in range(indptr[i], indptr[i + 1]):
            v = r * entries[e]
            out[0, indices[e]] += slope * v
            out[1, indices[e]] += curvature * (v * v)
        if intercept > 0.0:
            out[0, d] += slope * intercept
            out[1, d] += curvature * square
