"""The privacy curve behind one epsilon: what three fitted models guarantee beyond it.

A pair (epsilon, delta) is one point of a curve. Models with the same point may differ elsewhere;
`privacy_spent_` knows the whole curve. On the left epsilon against delta; on the right the
trade-off function: whoever tells from the weights whether a given row took part, and raises false
alarms at the rate on the horizontal axis, misses at least at the rate on the vertical one. Needs
matplotlib (``pip install ".[plot]"``).

    python examples/plot_privacy_curve.py docs/images/privacy_curve.png
"""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from skdp import DPSGDClassifier, GrpuaLogisticRegression, OperaLogisticRegression
from skdp.reporting import PrivacyCurveDisplay

TARGET = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove", "data_norm": 5.0}


def main(path: str) -> None:
    X, y = make_classification(2000, 10, random_state=0)
    models = {
        "OPERA, one Gaussian vector": OperaLogisticRegression(**TARGET),
        "GRPUA, lots of 100": GrpuaLogisticRegression(**TARGET, batch_size=100),
        "DP-SGD, lots of 4": DPSGDClassifier(**TARGET, batch_size=4, max_iter=200),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for name, model in models.items():
        model.fit(X, y)
        PrivacyCurveDisplay.from_estimator(model, name=name, ax=left)
        PrivacyCurveDisplay.from_estimator(model, name=name, kind="trade-off", ax=right)
    left.plot([1e-6], [1.0], "ko", zorder=5)
    left.set(title="all were asked for the dot")
    right.plot([0, 1], [1, 0], "k:", lw=1)
    right.set(title="dotted: nothing can be learned")
    right.get_legend().remove()
    figure.savefig(path, dpi=75)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "privacy_curve.png")
