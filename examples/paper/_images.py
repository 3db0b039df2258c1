"""The images that models are trained on here: those of SKDP_DATA, or digits in the fast mode."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize


def load_arrays(name: str) -> tuple[Any, Any, Any, Any]:
    """Return images with pixels in [0, 1], labels, images and labels to test on.

    ``mnist`` and ``fashion_mnist`` are npz files in the directory that SKDP_DATA names,
    ``cifar10_jpeg`` is an archive of pictures (read with Pillow). ``digits``, 1,797 images of 8 x 8
    pixels that come with scikit-learn, try code out in seconds.
    """
    folder = Path(os.environ.get("SKDP_DATA", "data"))
    if name == "digits":
        images, y = load_digits(return_X_y=True)
        images = images.reshape(-1, 8, 8) / 16.0
        parts = [images[:1500], y[:1500], images[1500:], y[1500:]]
    else:
        if name == "cifar10_jpeg":
            parts = read_pictures(folder / f"{name}.zip")
        else:
            with np.load(folder / f"{name}.npz") as arrays:
                parts = [arrays[key] for key in ("x_train", "y_train", "x_test", "y_test")]
        parts[::2] = [images / np.float32(255.0) for images in parts[::2]]
    return parts[0], parts[1], parts[2], parts[3]


def read_pictures(path: Path) -> list[Any]:
    """Return pictures, classes, pictures and classes to test on, from ``part/class/name.jpg``."""
    from PIL import Image

    parts = []
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".jpg"))
        for part in ("train", "test"):
            chosen = [name for name in names if name.split("/")[-3] == part]
            pictures = [Image.open(io.BytesIO(archive.read(name))) for name in chosen]
            classes = [name.split("/")[-2] for name in chosen]
            parts += [np.stack([np.asarray(each) for each in pictures])]
            parts += [np.unique(classes, return_inverse=True)[1]]
    return parts


def load_images(fast: bool) -> tuple[csr_array, Any, csr_array, Any]:
    """Return rows, labels, rows and labels to test on: MNIST, each image scaled to norm 1."""
    images, y, test_images, y_test = load_arrays("digits" if fast else "mnist")
    X, X_test = (
        csr_array(normalize(each.reshape(len(each), -1).astype(np.float64)))
        for each in (images, test_images)
    )
    return X, y, X_test, y_test
