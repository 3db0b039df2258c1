"""The images that linear models are trained on here: MNIST, or digits in the fast mode."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize


def load_images(fast: bool) -> tuple[csr_array, Any, csr_array, Any]:
    """Return rows, labels, rows and labels to test on; each image is scaled to norm 1 by itself.

    MNIST is ``mnist.npz`` in the directory that SKDP_DATA names. The digits of scikit-learn, 1,797
    images of 8 x 8 pixels, try the code out in seconds.
    """
    if fast:
        X, y = load_digits(return_X_y=True)
        parts = [X[:1500], y[:1500], X[1500:], y[1500:]]
    else:
        with np.load(Path(os.environ.get("SKDP_DATA", "data")) / "mnist.npz") as arrays:
            parts = [arrays[key] for key in ("x_train", "y_train", "x_test", "y_test")]
    X, X_test = (
        csr_array(normalize(images.reshape(len(images), -1).astype(np.float64)))
        for images in parts[::2]
    )
    return X, parts[1], X_test, parts[3]
