"""Compiled loops of the scattering transform; complex numbers are pairs of adjacent reals."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def filter_spectra(spectra: np.ndarray, filters: np.ndarray, out: np.ndarray) -> None:
    """Write each spectrum times each real filter, folded to the coarser grid of `out`."""
    n_filters, height, width = filters.shape
    _, rows, columns = out.shape
    for i in range(out.shape[0]):
        for u in range(rows):
            folded = out[i, u]
            folded[:] = 0.0
            for v in range(u, height, rows):
                for start in range(0, width, columns):
                    # Slices spare the inner loop the arithmetic of indices.
                    part = spectra[i // n_filters, v, start : start + columns]
                    gains = filters[i % n_filters, v, start : start + columns]
                    for x in range(columns):
                        folded[x] += part[x] * gains[x]


@njit(cache=True, nogil=True)
def moduli(waves: np.ndarray, out: np.ndarray) -> None:
    """Write the absolute values of complex numbers."""
    for i in range(out.size):
        out[i] = math.sqrt(waves[2 * i] * waves[2 * i] + waves[2 * i + 1] * waves[2 * i + 1])
