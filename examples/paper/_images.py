"""The images that models are trained on here: those of SKDP_DATA, or digits in the fast mode."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize


def load_arrays(name: str) -> tuple[Any, Any, Any, Any]:
    """Return images with pixels in [0, 1], labels, images and labels to test on.

    ``mnist`` and ``fashion_mnist`` are npz files in the directory that SKDP_DATA names. ``digits``,
    1,797 images of 8 x 8 pixels that come with scikit-learn, try code out in seconds.
    """
    if name == "digits":
        images, y = load_digits(return_X_y=True)
        images = images.reshape(-1, 8, 8) / 16.0
        parts = [images[:1500], y[:1500], images[1500:], y[1500:]]
    else:
        with np.load(Path(os.environ.get("SKDP_DATA", "data")) / f"{name}.npz") as arrays:
            parts = [arrays[key] for key in ("x_train", "y_train", "x_test", "y_test")]
        parts[::2] = [images / np.float32(255.0) for images in parts[::2]]
    return parts[0], parts[1], parts[2], parts[3]


def load_images(fast: bool) -> tuple[csr_array, Any, csr_array, Any]:
    """Return rows, labels, rows and labels to test on: MNIST, each image scaled to norm 1."""
    images, y, test_images, y_test = load_arrays("digits" if fast else "mnist")
    X, X_test = (
        csr_array(normalize(each.reshape(len(each), -1).astype(np.float64)))
        for each in (images, test_images)
    )
    return X, y, X_test, y_test
