"""Morlet wavelets and Gaussian windows on periodic grids, by their Fourier transforms."""

from __future__ import annotations

import math

import numpy as np

# Frequencies a whole number of turns apart are one on a grid; Gaussians vanish beyond so many.
_TURNS = 2.0 * math.pi * np.arange(-4, 5)


def morlet_spectrum(sizes: list[int], scale: int, angle: float, slant: float) -> np.ndarray:
    """Return the transform, which is real, of a wavelet of frequency ``3 pi / 4 / 2**scale``."""
    width, frequency = 0.8 * 2**scale, 0.75 * math.pi / 2**scale
    wave, envelope = np.zeros((2, *sizes))
    for above in _TURNS:
        for left in _TURNS:
            y = 2.0 * math.pi * np.fft.fftfreq(sizes[0])[:, np.newaxis] + above
            x = 2.0 * math.pi * np.fft.fftfreq(sizes[1]) + left
            along = y * math.cos(angle) + x * math.sin(angle)
            across = (x * math.cos(angle) - y * math.sin(angle)) / slant
            wave += np.exp(-((along - frequency) ** 2 + across**2) * width**2 / 2.0)
            envelope += np.exp(-(along**2 + across**2) * width**2 / 2.0)
    # A multiple of the envelope makes the sum of the wavelet zero.
    return wave - envelope * (wave[0, 0] / envelope[0, 0])


def keep_low(spectrum: np.ndarray, level: int) -> np.ndarray:
    """Keep the frequencies that a grid of every ``2**level``-th point along each axis can hold."""
    for axis, size in enumerate(spectrum.shape):
        half = (size >> level) // 2
        spectrum = spectrum.take([*range(half), *range(size - half, size)], axis=axis)
    return spectrum


def window_rows(size: int, n_scales: int, level: int) -> np.ndarray:
    """Return the weights of means around every ``2**n_scales``-th point but the first and last.

    They are for the points that ``2**level`` divides, of a periodic line.
    """
    width = 0.8 * 2 ** (n_scales - 1)
    frequencies = 2.0 * math.pi * np.fft.fftfreq(size)[:, np.newaxis] + _TURNS
    spectrum = np.exp(-((frequencies * width) ** 2) / 2.0).sum(axis=1)
    window = np.fft.ifft(keep_low(spectrum, level)).real
    centres = np.arange(1, (size >> n_scales) - 1) << (n_scales - level)
    return window[(centres[:, np.newaxis] - np.arange(window.size)) % window.size]
