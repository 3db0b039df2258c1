"""Public features of images: how long they take, and what they are worth on scikit-learn's digits.

The digits are split by five seeds. Times are for images of noise, which take as long as others, in
float32, and shared out among threads: two idle ones take half as long.

    python examples/benchmarks/images.py
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdp import DPSGDClassifier
from skdp.exceptions import PrivacyWarning
from skdp.preprocessing import PublicPatches, RowNormClipper, ScatteringTransform

FEATURES = {
    "pixels": None,
    "scattering": ScatteringTransform((8, 8), n_scales=1),
    "scattering, 3 groups": ScatteringTransform((8, 8), n_scales=1, normalize_groups=3),
    "patches": PublicPatches((8, 8), n_filters=50, patch_size=4),
    "patches, 10 groups": PublicPatches((8, 8), n_filters=50, patch_size=4, normalize_groups=10),
    "patches, whitened": PublicPatches((8, 8), n_filters=50, patch_size=4, whiten=True),
}
SETTINGS = {"adjacency": "add-remove", "data_norm": 1.0, "classes": range(10)}
SPEEDS = (
    ("28 x 28", 70_000, ScatteringTransform((28, 28), normalize_groups=27)),
    ("32 x 32 x 3", 60_000, ScatteringTransform((32, 32, 3), normalize_groups=27)),
    ("32 x 32 x 3", 60_000, PublicPatches((32, 32, 3))),
    ("32 x 32 x 3", 60_000, PublicPatches((32, 32, 3), n_filters=800)),
)


def score_digits(features):
    """Return the accuracy behind some features at epsilon = 2, delta = 1e-5, for five splits."""
    images, labels = load_digits(return_X_y=True)
    scores = []
    for seed in range(5):
        X_train, X_test, y_train, y_test = train_test_split(images / 16, labels, random_state=seed)
        model = make_pipeline(
            features,
            RowNormClipper(method="scale"),
            DPSGDClassifier(2.0, 1e-5, **SETTINGS, random_state=seed),
        )
        scores.append(model.fit(X_train, y_train).score(X_test, y_test))
    return np.mean(scores), np.std(scores, ddof=1)


def time_transform(features, n_images=600):
    """Return the number of features, and seconds of all processors an image, the best of three."""
    X = np.random.default_rng(0).random((n_images, np.prod(features.image_shape)), np.float32)
    features.fit(X[:1]).transform(X[:10])
    taken = []
    for _ in range(3):
        start = time.process_time()
        rows = features.transform(X)
        taken.append(time.process_time() - start)
    return rows.shape[1], min(taken) / n_images


def main():
    warnings.simplefilter("ignore", PrivacyWarning)
    print("| features of digits | accuracy (sd) |\n|---|---|")
    for name, features in FEATURES.items():
        mean, deviation = score_digits(features)
        print(f"| {name} | {mean:.3f} ({deviation:.3f}) |", flush=True)
    print("\n| images | features | of each | processor seconds |\n|---|---|---|---|")
    for size, n_images, features in SPEEDS:
        n_features, seconds = time_transform(features)
        name = type(features).__name__
        name += f"(n_filters={features.n_filters})" if hasattr(features, "n_filters") else ""
        print(f"| {n_images:,} of {size} | {name} | {n_features:,} | {seconds * n_images:.0f} |")


if __name__ == "__main__":
    main()
