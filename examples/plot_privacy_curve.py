"""
Plot the privacy curve of a model
=================================

A pair (epsilon, delta) is one point of a curve. Models with the same point may differ at other
points, and ``privacy_spent_`` contains the entire curve. This page plots the curves of three
models in both common forms. The curves depend on the plan of each fit, and not on the rows.
"""

import matplotlib.pyplot as plt
from cycler import cycler
from sklearn.datasets import make_classification

from skdp import DPSGDClassifier, GrpuaLogisticRegression, OperaLogisticRegression
from skdp.reporting import PrivacyCurveDisplay

# %%
# Fit three models with one common point
# --------------------------------------
#
# The first model adds one Gaussian vector to the weights. The others take noisy steps: the second
# on large batches, the third on batches of four rows, so that a row is rarely in a batch.

TARGET = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove", "data_norm": 5.0}
models = {
    "OPERA, one Gaussian vector": OperaLogisticRegression(**TARGET),
    "GRPUA, lots of 100": GrpuaLogisticRegression(**TARGET, batch_size=100),
    "DP-SGD, lots of 4": DPSGDClassifier(**TARGET, batch_size=4, max_iter=200),
}
X, y = make_classification(2000, 10, random_state=0)
for name, model in models.items():
    spent = model.fit(X, y).privacy_spent_
    print(f"{name:27s} epsilon {spent.epsilon:.4f} at delta {spent.delta:g}")

# %%
# Plot epsilon against delta, and error rates
# -------------------------------------------
#
# The left plot shows epsilon against delta. The right plot shows the trade-off function. An
# attacker guesses from the weights whether a given row was in the table. At the false-alarm rate on
# the horizontal axis, the miss rate is at least the value on the vertical axis. Curves closer to
# the dotted line reveal less.

look = cycler(color=["black", "tab:blue", "tab:orange"], linestyle=["-", "--", "-."])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for (name, model), style in zip(models.items(), look, strict=True):
    PrivacyCurveDisplay.from_estimator(model, name=name, ax=left, **style)
    PrivacyCurveDisplay.from_estimator(model, name=name, kind="trade-off", ax=right, **style)
left.plot([1e-6], [1.0], "ko", zorder=5)
left.set(title="all were asked for the dot")
left.legend(loc="upper right", fontsize="small")
right.plot([0, 1], [1, 0], "k:", lw=1)
right.set(title="dotted: nothing can be learned")
right.get_legend().remove()
plt.show()

# %%
# The curve is steeper where a fit consists of many small steps on rarely used rows: its epsilon
# grows faster at a smaller delta. If more than one point matters, compare curves instead of points.
