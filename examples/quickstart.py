"""Compare three private classifiers on a medical table, in ordinary scikit-learn pipelines.

The table is scikit-learn's breast cancer data: 569 patients and ten measurements of cell nuclei,
each as mean, standard error and worst value. Scaling uses public clinical bounds, so nothing is
learned from patients before the private fit.

    python examples/quickstart.py
"""

import time

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import DPSGDClassifier, GrpuaSVC, OperaLogisticRegression
from skdp.preprocessing import BoundedScaler

EPSILON, DELTA = 1.0, 1e-5

# Lower and upper bound of each measurement's mean: round numbers for the measured quantity, not
# taken from these patients. Upper bounds are multiplied by 0.1 for standard errors, and by 1.25 for
# worst values.
MEASUREMENTS = {
    "radius": (5, 30),
    "texture": (5, 40),
    "perimeter": (30, 200),
    "area": (100, 2500),
    "smoothness": (0.05, 0.2),
    "compactness": (0, 0.5),
    "concavity": (0, 0.5),
    "concave points": (0, 0.25),
    "symmetry": (0.1, 0.35),
    "fractal dimension": (0.04, 0.12),
}


def public_bounds() -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the 30 columns."""
    low, high = np.array(list(MEASUREMENTS.values()), dtype=float).T
    return np.concatenate([low, 0 * low, low]), np.concatenate([high, 0.1 * high, 1.25 * high])


def private_pipeline(classifier):
    """Return a pipeline: square roots, scaling by public bounds, then a private classifier.

    Few patients are near many bounds at once, so half of the largest possible row norm is a good
    public bound. Longer rows are scaled down to it.
    """
    lower, upper = np.sqrt(public_bounds())
    classifier.set_params(data_norm=0.5)
    return make_pipeline(
        FunctionTransformer(np.sqrt), BoundedScaler(lower, upper, row_norm=1.0), classifier
    )


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    models = {
        "LogisticRegression": make_pipeline(
            FunctionTransformer(np.sqrt),
            BoundedScaler(*np.sqrt(public_bounds())),
            LogisticRegression(C=100.0),
        ),
        "OperaLogisticRegression": private_pipeline(OperaLogisticRegression(EPSILON, DELTA)),
        "GrpuaSVC": private_pipeline(GrpuaSVC(EPSILON, DELTA)),
        "DPSGDClassifier": private_pipeline(DPSGDClassifier(EPSILON, DELTA)),
    }
    print(f"{'estimator':24}{'accuracy':>9}{'ROC AUC':>9}{'epsilon':>9}{'delta':>8}", end="")
    print(f"{'adjacency':>13}{'seconds':>9}")
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - start
        area = roc_auc_score(y_test, model.decision_function(X_test))
        spent = getattr(model[-1], "privacy_spent_", None)
        print(f"{name:24}{model.score(X_test, y_test):>9.3f}{area:>9.3f}", end="")
        if spent is None:
            print(f"{'inf':>9}{'-':>8}{'not private':>13}{seconds:>9.2f}")
        else:
            epsilon, delta = spent
            print(f"{epsilon:>9.4f}{delta:>8.0e}{spent.adjacency:>13}{seconds:>9.2f}")


if __name__ == "__main__":
    main()
