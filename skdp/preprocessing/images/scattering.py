"""The scattering transform: averaged moduli of wavelet coefficients, of two orders."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy import fft

from skdp.base.parameters import check_choice, check_integer, parameter
from skdp.preprocessing.images.base import ImageTransformer

# Frequencies a whole number of turns apart coincide on a grid; Gaussians vanish beyond these.
_TURNS = 2.0 * math.pi * np.arange(-4, 5)


class ScatteringTransform(ImageTransformer):
    """Describe images by averaged moduli of wavelet coefficients: fixed features, no training.

    See Also
    --------
    RowNormClipper : Bounds the norm of the features of an image.

    Notes
    -----
    No value of a row enters the fit. The features of an image depend only on that image, to the
    bit, and private steps behind the transformer keep their guarantee. Features have no public
    bound on their norm; estimators shorten them to `data_norm`.

    The cascade, its Morlet wavelets and its padding by reflection are those of `Scattering2D` of
    Kymatio [2]_. Features scale with the pixels; divide pixels by 255 before group normalisation.
    Reference [3]_ uses 27 groups for one colour.

    References
    ----------
    .. [1] J. Bruna and S. Mallat. Invariant scattering convolution networks. IEEE Transactions on
       Pattern Analysis and Machine Intelligence 35(8), 2013.
    .. [2] M. Andreux et al. Kymatio: Scattering Transforms in Python. JMLR 21(60), 2020.
    .. [3] F. Tramèr and D. Boneh. Differentially Private Learning Needs Better Features (or Much
       More Data). ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import ScatteringTransform
    >>> images = np.random.default_rng(0).random((5, 28 * 28), dtype=np.float32)
    >>> scattering = ScatteringTransform((28, 28), normalize_groups=27)
    >>> scattering.fit_transform(images).shape
    (5, 3969)
    >>> scattering.output_shape_
    (81, 7, 7)
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "output_shape_": "The channels of each colour, one colour after the other, are the average "
        "of the pixels, ``n_scales * n_angles`` moduli of first order (by scale and angle), and "
        "``n_scales * (n_scales - 1) / 2 * n_angles**2`` moduli of second order (by both scales "
        "and both angles).",
    }

    n_scales: int = parameter(
        "int",
        """Number of octaves of the wavelets. There is one feature per square of ``2**n_scales``
        pixels a side, an average over about this size. An image must contain such a square.""",
        default=2,
    )
    n_angles: int = parameter("int", "Number of directions of the wavelets, at least 2.", default=8)
    max_order: int = parameter(
        "{1, 2}",
        """Order of the moduli. With 2, the wavelets of larger scale filter and average the moduli
        of first order once more.""",
        default=2,
    )

    # For privacy statements: nothing of the fitted state comes from rows.
    _learns_from_rows = False

    def _make_filters(self, height: int, width: int, n_colours: int) -> tuple[int, int, int]:
        n_scales = check_integer("n_scales", self.n_scales, at_least=1)
        n_angles = check_integer("n_angles", self.n_angles, at_least=2)
        check_choice("max_order", self.max_order, (1, 2))
        shape = height >> n_scales, width >> n_scales
        if 0 in shape:
            raise ValueError(
                f"n_scales={n_scales} averages over squares of {2**n_scales} pixels a side, which "
                f"do not fit into an image of {height} x {width}. Give a smaller n_scales."
            )
        # Reflected pixels on all sides, enough for one more square on each.
        sizes = [((n >> n_scales) + 2) << n_scales for n in (height, width)]
        self._padding = tuple(
            np.pad(np.arange(n), ((size - n) // 2, (size - n + 1) // 2), "reflect")
            for n, size in zip((height, width), sizes, strict=True)
        )
        self._windows = [
            tuple(_window_rows(size, n_scales, level) for size in sizes)
            for level in range(n_scales)
        ]
        angles = math.pi * ((n_angles - 2) // 2 - np.arange(n_angles)) / n_angles
        self._wavelets = {}
        for scale in range(n_scales):
            spectra = [_morlet_spectrum(sizes, scale, a, 4.0 / n_angles) for a in angles]
            # One for the image itself, one for moduli on each grid of the scales before.
            for level in range(max(scale, 1) if self.max_order == 2 else 1):
                gains = np.array([_keep_low(spectrum, level) for spectrum in spectra])
                self._wavelets[level, scale] = gains / 4 ** (scale - level)
        n_pairs = n_scales * (n_scales - 1) // 2 if self.max_order == 2 else 0
        return n_colours * (1 + n_scales * n_angles + n_pairs * n_angles**2), *shape

    def _describer(self, dtype: Any) -> Callable[[np.ndarray, np.ndarray], None]:
        windows = [(rows.astype(dtype), columns.T.astype(dtype)) for rows, columns in self._windows]
        # Twice, for the real and for the imaginary part that stands beside it.
        wavelets = {
            key: np.repeat(g, 2, axis=-1).astype(dtype) for key, g in self._wavelets.items()
        }
        lines, columns = self._padding

        def describe(image: np.ndarray, out: np.ndarray) -> None:
            for colour, channels in enumerate(np.split(out, image.shape[2])):
                padded = image[lines[:, np.newaxis], columns, colour]
                _scatter(padded, windows, wavelets, channels)

        return describe


def _scatter(image: np.ndarray, windows: list[Any], wavelets: dict[Any, Any], out: Any) -> None:
    """Write the averages of orders 0, 1 and 2 of one padded image."""
    n_scales, n_angles = len(windows), len(wavelets[0, 0])
    _average(image[np.newaxis], windows[0], out[:1])
    spectrum = fft.fft2(image, workers=1)[np.newaxis]
    start, end = 1, 1 + n_scales * n_angles
    for first in range(n_scales):
        maps = _moduli(spectrum, wavelets[0, first], first)
        _average(maps, windows[first], out[start : start + n_angles])
        start += n_angles
        # Without the second order `out` ends here.
        later = range(first + 1, n_scales) if end < len(out) else ()
        spectra = fft.fft2(maps, workers=1) if later else maps
        for second in later:
            again = _moduli(spectra, wavelets[first, second], second - first)
            _average(again, windows[second], out[end : end + len(again)])
            end += len(again)


def _moduli(spectra: np.ndarray, gains: np.ndarray, n_halvings: int) -> np.ndarray:
    """Return the moduli of each map's wavelet coefficients, on a grid halved `n_halvings` times."""
    products = spectra.view(gains.dtype)[:, np.newaxis] * gains
    products = products.view(spectra.dtype).reshape(-1, *spectra.shape[1:])
    for _ in range(n_halvings):
        rows, columns = products.shape[1] // 2, products.shape[2] // 2
        products = products[:, :rows] + products[:, rows:]
        products = products[..., :columns] + products[..., columns:]
    return np.abs(fft.ifft2(products, overwrite_x=True, workers=1))


def _average(maps: np.ndarray, window: tuple[np.ndarray, np.ndarray], out: np.ndarray) -> None:
    rows, columns = window
    np.matmul(rows, maps @ columns, out=out)


def _morlet_spectrum(sizes: list[int], scale: int, angle: float, slant: float) -> np.ndarray:
    """Return the real transform of a wavelet of frequency ``3 pi / 4 / 2**scale``."""
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


def _keep_low(spectrum: np.ndarray, level: int) -> np.ndarray:
    """Keep the frequencies of a grid of every ``2**level``-th point along each axis."""
    for axis, size in enumerate(spectrum.shape):
        half = (size >> level) // 2
        spectrum = spectrum.take([*range(half), *range(size - half, size)], axis=axis)
    return spectrum


def _window_rows(size: int, n_scales: int, level: int) -> np.ndarray:
    """Return weights of means around every ``2**n_scales``-th point except first and last.

    They apply to the points of a periodic line that ``2**level`` divides.
    """
    width = 0.8 * 2 ** (n_scales - 1)
    frequencies = 2.0 * math.pi * np.fft.fftfreq(size)[:, np.newaxis] + _TURNS
    spectrum = np.exp(-((frequencies * width) ** 2) / 2.0).sum(axis=1)
    window = np.fft.ifft(_keep_low(spectrum, level)).real
    centres = np.arange(1, (size >> n_scales) - 1) << (n_scales - level)
    return window[(centres[:, np.newaxis] - np.arange(window.size)) % window.size]
