"""What is learned from the two photographs that come with scikit-learn, which anybody may see."""

from __future__ import annotations

import numpy as np

# Crops of each photograph at each scale, and what is added to variances, as a share of their mean.
_CROPS, _SCALES, _RIDGE = 200, (1, 2, 4), 0.05


def read_photographs(n_colours: int, scale: int) -> list[np.ndarray]:
    """Return photographs with pixels in [0, 1], which are means of squares of so many a side."""
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
    """Return parts of photographs, the same in every call, of the size of images: one a row."""
    rng = np.random.default_rng(1)
    drawn = []
    for scale in _SCALES:
        for pixels in read_photographs(n_colours, scale):
            free = pixels.shape[0] - height + 1, pixels.shape[1] - width + 1
            places = rng.integers(free, size=(_CROPS, 2)) if min(free) > 0 else ()
            drawn += [pixels[y : y + height, x : x + width].ravel() for y, x in places]
    if not drawn:
        raise ValueError(f"whiten=True is for smaller images than {height} x {width}.")
    return np.array(drawn)


def learn_whitening(channels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means of channels, and what makes them uncorrelated, over images and places."""
    centre = channels.mean(axis=(0, 2))[:, np.newaxis]
    table = (channels - centre).transpose(1, 0, 2).reshape(len(centre), -1)
    values, vectors = np.linalg.eigh(table @ table.T / table.shape[1])
    return centre, vectors / np.sqrt(values + _RIDGE * values.mean() + 1e-12) @ vectors.T
