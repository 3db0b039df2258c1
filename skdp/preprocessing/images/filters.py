"""Morlet wavelets and Gaussian windows on a periodic grid, as sampled by scattering transforms."""

from __future__ import annotations

import math

import numpy as np

# Periods on either side that reach a point of the grid; what lies beyond is below rounding.
_PERIODS = range(-2, 3)


def morlet_spectrum(shape: tuple[int, int], scale: int, angle: float, slant: float) -> np.ndarray:
    """Return the (real) Fourier transform of a wavelet of frequency ``3 pi / 4 / 2**scale``."""
    width, frequency = 0.8 * 2**scale, 0.75 * math.pi / 2**scale
    envelope = np.zeros(shape)
    wave = np.zeros(shape, complex)
    for above in _PERIODS:
        for left in _PERIODS:
            y, x = np.ogrid[: shape[0], : shape[1]]
            y, x = y + above * shape[0], x + left * shape[1]
            along = y * math.cos(angle) + x * math.sin(angle)
            across = x * math.cos(angle) - y * math.sin(angle)
            bell = np.exp(-(along**2 + (slant * across) ** 2) / (2.0 * width**2))
            envelope += bell
            wave += bell * np.exp(1j * frequency * along)
    # The multiple of the envelope makes the sum of the wavelet zero.
    morlet = wave - envelope * (wave.sum() / envelope.sum())
    return np.fft.fft2(morlet).real * slant / (2.0 * math.pi * width**2)


def window_spectrum(size: int, width: float) -> np.ndarray:
    """Return the (real) Fourier transform of a periodic Gaussian density on a line."""
    points = np.arange(size)[:, np.newaxis] + size * np.array(_PERIODS)
    bell = np.exp(-(points**2) / (2.0 * width**2)).sum(axis=1)
    return np.fft.fft(bell).real / (math.sqrt(2.0 * math.pi) * width)


def keep_low(spectrum: np.ndarray, level: int) -> np.ndarray:
    """Keep the frequencies that a grid thinned by ``2**level`` along each axis can hold."""
    for axis, size in enumerate(spectrum.shape):
        half = (size >> level) // 2
        spectrum = spectrum.take([*range(half), *range(size - half, size)], axis=axis)
    return spectrum


def window_rows(size: int, n_scales: int, level: int) -> np.ndarray:
    """Return the weights of means around every ``2**n_scales``-th point, but the first and last.

    The points are those of a periodic line of `size` thinned by ``2**level``.
    """
    spectrum = keep_low(window_spectrum(size, 0.8 * 2 ** (n_scales - 1)), level)
    window = np.fft.ifft(spectrum).real
    centres = np.arange(1, (size >> n_scales) - 1) << (n_scales - level)
    return window[(centres[:, np.newaxis] - np.arange(window.size)) % window.size]
