"""Base of the transformers of images: one image per row, whitening by public photographs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from skdp.base.parameters import check_choice, check_integer, parameter, released
from skdp.base.scikit_learn import ClassNamePrefixFeaturesOutMixin
from skdp.preprocessing.bounded_scaler import RowTransformer
from skdp.threads import one_blas_thread, share_out

# Crops of each photograph at each scale, and what is added to variances, as a share of their mean.
_CROPS, _SCALES, _RIDGE = 200, (1, 2, 4), 0.05


class ImageTransformer(ClassNamePrefixFeaturesOutMixin, RowTransformer):
    """Base of data-independent transformers of images; a row contains the pixels of one image."""

    image_shape: tuple[int, ...] = parameter(
        "tuple of int, (height, width) or (height, width, n_colours)",
        """Size of the images. A row contains the pixels of one image, line by line, with the
        colours of a pixel side by side, as in ``images.reshape(len(images), -1)``.""",
        kw_only=False,
    )
    normalize_groups: int | None = parameter(
        "int or None",
        """Number of groups of adjacent channels, a divisor of the number of channels. The values
        of each image in each group are shifted and scaled to mean 0 and variance 1 (group
        normalisation without weights; 1e-5 is added to the variance). None does not
        normalise.""",
        default=None,
    )
    whiten: bool = parameter(
        "bool",
        """Whether to centre and decorrelate the channels, each with variance 1 or less, over 1,200
        crops from the two photographs of `sklearn.datasets.load_sample_images`, which needs
        Pillow. It follows group normalisation. Training with few noisy steps progresses further
        on such features. Images must have 1 or 3 colours.""",
        default=False,
    )
    output_shape_: tuple[int, int, int] = released(
        "tuple of int, (n_channels, height, width)",
        "Shape to which the features of a row can be reshaped.",
    )
    data_norm_: float = released()  # is not set
    n_features_in_: int = released("int", "Number of pixels times colours.")

    _listed: ClassVar[tuple[str, ...]] = (
        *("image_shape", "n_scales", "n_angles", "max_order", "n_filters", "patch_size"),
        *("grid_size", "normalize_groups", "whiten", "output_shape_", "filters_"),
        *("n_features_in_", "feature_names_in_"),
    )

    _bounds_rows = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and compute the filters; no value of `X` is used.

        Parameters
        ----------
        X : array-like of shape (n_samples, height * width * n_colours)
            Images, one per row.
        y : None
            Ignored.

        Returns
        -------
        self : ImageTransformer
            The transformer.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range, or if the number of columns of `X` does not fit the
            image shape.
        """
        shape = self.image_shape
        check_choice("whiten", self.whiten, (True, False))
        if not isinstance(shape, tuple | list) or len(shape) not in (2, 3):
            raise ValueError(f"image_shape must be (height, width[, colours]), got {shape!r}.")
        height, width, *colours = (check_integer("image_shape", n, at_least=1) for n in shape)
        self._pixels = height, width, colours[0] if colours else 1
        X = self._validate(X, reset=True)
        if X.shape[1] != math.prod(self._pixels):
            raise ValueError(
                f"image_shape={shape!r} means {math.prod(self._pixels)} pixels per row, "
                f"but X has {X.shape[1]} columns."
            )
        self.output_shape_ = self._make_filters(*self._pixels)
        self._n_features_out = math.prod(self.output_shape_)
        self._groups = check_integer(
            "normalize_groups", self.normalize_groups, at_least=1, allowed=(None,)
        )
        if self._groups and self.output_shape_[0] % self._groups:
            raise ValueError(
                f"normalize_groups must divide the {self.output_shape_[0]} channels, "
                f"got {self._groups}."
            )
        self._whitening: tuple[np.ndarray, ...] = ()
        if self.whiten:
            crops = draw_crops(*self._pixels)
            channels = self._apply(crops).reshape(len(crops), *self.output_shape_[:1], -1)
            with one_blas_thread():
                self._whitening = _learn_whitening(channels)
        return self

    @abstractmethod
    def _make_filters(self, height: int, width: int, n_colours: int) -> tuple[int, int, int]:
        """Check and store the parameters of the class; return the shape of an image's features."""

    @abstractmethod
    def _describer(self, dtype: Any) -> Callable[[np.ndarray, np.ndarray], None]:
        """Return a function that writes the features of one image and depends only on it."""

    def _apply(self, X: np.ndarray) -> np.ndarray:
        images = np.ascontiguousarray(X).reshape(-1, *self._pixels)
        rows = np.empty((len(images), self._n_features_out), X.dtype)
        describe = self._describer(X.dtype)
        whitening = [part.astype(X.dtype) for part in self._whitening]

        # Arrays have the same shape for every image: no other image changes a bit of its row, and
        # no warning reveals one.
        def work(i: int) -> None:
            with np.errstate(all="ignore"):
                describe(images[i], rows[i].reshape(self.output_shape_))
                if self._groups:
                    _normalize(rows[i].reshape(self._groups, -1))
                if whitening:
                    centre, matrix = whitening
                    channels = rows[i].reshape(len(centre), -1)
                    channels[:] = matrix @ (channels - centre)
                # Sums of very large pixels overflow.
                np.nan_to_num(rows[i], copy=False, nan=0.0, posinf=0.0, neginf=0.0)

        share_out(work, len(images))
        return rows


def _normalize(groups: np.ndarray) -> None:
    """Give each row mean 0 and variance 1, or a little less: constant rows become zeros."""
    centred = groups - groups.mean(axis=1, keepdims=True, dtype=np.float64)
    groups[:] = centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-5)


def read_photographs(n_colours: int, scale: int) -> list[np.ndarray]:
    """Return photographs with pixels in [0, 1], averaged over squares of `scale` pixels a side."""
    from sklearn.datasets import load_sample_images

    if n_colours not in (1, 3):
        raise ValueError(f"image_shape must have 1 or 3 colours, got {n_colours}.")
    smaller = []
    for photograph in load_sample_images().images:
        rows, columns = (n // scale for n in photograph.shape[:2])
        squares = photograph[: rows * scale, : columns * scale] / 255.0
        pixels = squares.reshape(rows, scale, columns, scale, 3).mean(axis=(1, 3))
        smaller.append(pixels if n_colours == 3 else pixels.mean(axis=2, keepdims=True))
    return smaller


def draw_crops(height: int, width: int, n_colours: int) -> np.ndarray:
    """Return crops of photographs in the size of the images, one per row, equal in every call."""
    rng = np.random.default_rng(1)
    drawn = []
    for scale in _SCALES:
        for pixels in read_photographs(n_colours, scale):
            free = pixels.shape[0] - height + 1, pixels.shape[1] - width + 1
            places = rng.integers(free, size=(_CROPS, 2)) if min(free) > 0 else ()
            drawn += [pixels[y : y + height, x : x + width].ravel() for y, x in places]
    if not drawn:
        raise ValueError(f"whiten=True needs images smaller than {height} x {width}.")
    return np.array(drawn)


def _learn_whitening(channels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means of channels, and the matrix that decorrelates them over images and places."""
    centre = channels.mean(axis=(0, 2))[:, np.newaxis]
    table = (channels - centre).transpose(1, 0, 2).reshape(len(centre), -1)
    values, vectors = np.linalg.eigh(table @ table.T / table.shape[1])
    return centre, vectors / np.sqrt(values + _RIDGE * values.mean() + 1e-12) @ vectors.T
