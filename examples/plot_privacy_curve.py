"""The privacy curve behind one epsilon: what three fitted models guarantee at every delta.

A pair (epsilon, delta) is one point of a curve. Two models with the same point may differ
elsewhere; `privacy_spent_` knows the whole curve. Needs matplotlib (``pip install ".[plot]"``).

    python examples/plot_privacy_curve.py privacy_curve.png
"""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from skdp import DPSGDClassifier, GrpuaLogisticRegression, OperaLogisticRegression


def main(path: str) -> None:
    X, y = make_classification(2000, 10, random_state=0)
    models = {
        "OPERA": OperaLogisticRegression(1.0, 1e-6, adjacency="add-remove", data_norm=5.0),
        "GRPUA, all rows": GrpuaLogisticRegression(
            1.0, 1e-6, adjacency="add-remove", data_norm=5.0
        ),
        "DP-SGD, lots of 50": DPSGDClassifier(1.0, 1e-6, data_norm=5.0, batch_size=50),
    }
    deltas = np.logspace(-12, -2, 60)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, model in models.items():
        spent = model.fit(X, y).privacy_spent_
        # The first two curves are one: both are exactly Gaussian.
        style = "--" if name == "OPERA" else "-"
        axes.semilogx(
            deltas, [spent.epsilon_at(delta) for delta in deltas], style, label=name, zorder=3
        )
    axes.plot([1e-6], [1.0], "ko", label="what all were asked for")
    axes.set(xlabel="delta", ylabel="epsilon (upper bound)", title="add-remove neighbours")
    axes.legend()
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "privacy_curve.png")
