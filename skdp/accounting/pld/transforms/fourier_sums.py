"""Fourier sums over many equidistant frequencies at once."""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.pld.pairs.base import Array, Complex

_LARGEST_BLOCK = 4_000_000  # exponentials held at once


def equidistant_sums(losses: Array, weights: Array, frequencies: Array) -> Complex:
    """Sum ``weights (e^(i v losses) - 1)`` over equidistant frequencies by a product of matrices.

    With v = a + b, ``e^(iv) - 1`` is the product of both such terms, plus their sum.
    """
    short = math.isqrt(len(frequencies)) + 1
    step = frequencies[1] - frequencies[0] if len(frequencies) > 1 else 0.0
    steps = step * np.arange(short)
    total = np.zeros((len(frequencies[::short]), short), dtype=np.complex128)
    block = max(_LARGEST_BLOCK // short, 1)
    for start in range(0, len(losses), block):
        x, w = losses[start : start + block], weights[start : start + block]
        outer = _turn(np.multiply.outer(frequencies[::short], x))
        inner = _turn(np.multiply.outer(x, steps))
        total += (outer * w) @ inner + (outer @ w)[:, None] + w @ inner
    return total.ravel()[: len(frequencies)]


def _turn(angles: Array) -> Complex:
    """Return e^(i angle) - 1."""
    out = np.empty(angles.shape, dtype=np.complex128)
    out.real = -2.0 * np.sin(0.5 * angles) ** 2
    out.imag = np.sin(angles)
    return out
