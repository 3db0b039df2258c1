"""Convolutional features with filters learned only from public images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse

from skdp.base.parameters import check_integer, parameter, released
from skdp.preprocessing.images.base import ImageTransformer, read_photographs
from skdp.threads import one_blas_thread

# Constants of Coates and Ng, for pixels in [0, 1]: what is added to the variance of a patch and to
# the eigenvalues of whitening, and the threshold of a match.
_CONTRAST, _RIDGE, _THRESHOLD = 10.0 / 255.0**2, 0.1, 0.25
_PATCHES, _ROUNDS = 10_000, 12


class PublicPatches(ImageTransformer):
    """Describe images by how well their patches match typical patches of two public photographs.

    See Also
    --------
    ScatteringTransform : Features that need no images to learn from.

    Notes
    -----
    The photographs are those of `sklearn.datasets.load_sample_images`, which needs Pillow, at half
    their size. For images of one colour they are converted to grey. Each patch is scaled to mean 0
    and variance 1 and whitened like those of the photographs. It is then compared with unit vectors
    that a spherical k-means has found among the patches of the photographs [1]_. These are the same
    in every fit, up to rounding on other kinds of processors. The part of a match above 0.25 is
    averaged over a field.

    No value of a row enters the fit. The features of an image depend only on that image, to the
    bit, and private steps behind the transformer keep their guarantee.

    References
    ----------
    .. [1] A. Coates and A. Y. Ng. The importance of encoding versus training with sparse coding and
       vector quantization. ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import PublicPatches
    >>> images = np.random.default_rng(0).random((5, 8 * 8))
    >>> PublicPatches((8, 8), n_filters=20, patch_size=3).fit_transform(images).shape
    (5, 160)
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "image_shape": "Images have 1 or 3 colours, and pixels from 0 to 1.",
        "output_shape_": "There are ``2 * n_filters`` channels on the grid: matches with each "
        "filter, then with its negative.",
    }

    n_filters: int = parameter("int", "Number of typical patches, at least 1.", default=200)
    patch_size: int = parameter(
        "int", "Pixels along each side of a patch, from 2 to the size of the images.", default=6
    )
    grid_size: int = parameter(
        "int",
        "Number of fields along each side of the image; matches are averaged in each field.",
        default=2,
    )
    filters_: np.ndarray = released(
        "ndarray of shape (patch_size**2 * n_colours, n_filters)",
        "Filters for patches of contrast 1, one colour after the other.",
    )

    # For privacy statements: nothing of the fitted state comes from rows.
    _learns_from_rows = False

    def _make_filters(self, height: int, width: int, n_colours: int) -> tuple[int, int, int]:
        n_filters = check_integer("n_filters", self.n_filters, at_least=1)
        grid = check_integer("grid_size", self.grid_size, at_least=1)
        self._size = size = check_integer("patch_size", self.patch_size, at_least=2)
        places = height - size + 1, width - size + 1
        if min(places) < grid:
            raise ValueError(
                f"an image of {height} x {width} has {places[0]} x {places[1]} patches, too few "
                f"for patch_size={size} and grid_size={grid}. Give smaller ones."
            )
        with one_blas_thread():
            self.filters_ = _learn_filters(size, n_colours, n_filters)
        # A column for each field, with the weights of its mean over places.
        fields = [np.arange(n)[:, np.newaxis] * grid // n == np.arange(grid) for n in places]
        self._fields = np.kron(*(field / field.sum(axis=0) for field in fields))
        return 2 * n_filters, grid, grid

    def _describer(self, dtype: Any) -> Callable[[np.ndarray, np.ndarray], None]:
        filters, fields = self.filters_.astype(dtype), self._fields.astype(dtype)

        def describe(image: np.ndarray, out: np.ndarray) -> None:
            matches = _normalize(_patches(image, self._size)) @ filters
            above, below = out.reshape(2, len(out) // 2, -1)
            np.matmul(np.maximum(matches - dtype.type(_THRESHOLD), 0).T, fields, out=above)
            np.matmul(np.maximum(-matches - dtype.type(_THRESHOLD), 0).T, fields, out=below)

        return describe


def _patches(image: np.ndarray, size: int) -> np.ndarray:
    return sliding_window_view(image, (size, size), axis=(0, 1))


def _normalize(patches: np.ndarray) -> np.ndarray:
    """Return patches as rows of mean 0 and variance 1, or less if there is little contrast."""
    rows = patches.reshape(patches.shape[0] * patches.shape[1], -1)
    rows = rows - rows.mean(axis=1, keepdims=True)
    variances = np.mean(rows**2, axis=1, keepdims=True)
    return rows / np.sqrt(variances + rows.dtype.type(_CONTRAST))


def _learn_filters(size: int, n_colours: int, n_filters: int) -> np.ndarray:
    """Return whitening times unit vectors that sum up the directions of whitened patches."""
    rng = np.random.default_rng(0)
    drawn = []
    for photograph in read_photographs(n_colours, scale=2):
        patches = _patches(photograph, size)
        places = (rng.integers(n, size=_PATCHES) for n in patches.shape[:2])
        drawn.append(patches[tuple(places)])
    rows = _normalize(np.array(drawn))
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    whitening = vectors / np.sqrt(values + _RIDGE) @ vectors.T
    rows = rows @ whitening
    centres = rows[rng.integers(len(rows), size=n_filters)]
    for _ in range(_ROUNDS):
        centres /= np.linalg.norm(centres, axis=1, keepdims=True) + 1e-12
        matches = rows @ centres.T
        own, n = np.abs(matches).argmax(axis=1), np.arange(len(rows))
        centres = sparse.csr_array((matches[n, own], (own, n)), matches.T.shape) @ rows
    return whitening @ (centres / (np.linalg.norm(centres, axis=1, keepdims=True) + 1e-12)).T
