"""
The privacy curve behind one epsilon
====================================

A pair (epsilon, delta) is one point of a curve. Models that were asked for the same point may
differ elsewhere, and ``privacy_spent_`` knows the whole curve of each. This page draws the curves
of three models, in both of the usual ways. Nothing in it depends on the rows: what a fit guarantees
follows from its plan.
"""

import matplotlib.pyplot as plt
from cycler import cycler
from sklearn.datasets import make_classification

from skdp import DPSGDClassifier, GrpuaLogisticRegression, OperaLogisticRegression
from skdp.reporting import PrivacyCurveDisplay

# %%
# Three models, one point
# -----------------------
#
# One Gaussian vector is added to the weights of the first. The others take noisy steps: the second
# on large lots, the third on lots of four rows, so that a row is rarely in one.

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
# Epsilon against delta, and errors against errors
# ------------------------------------------------
#
# On the left epsilon against delta. On the right the trade-off function: whoever tells from the
# weights whether a given row took part, and raises false alarms at the rate on the horizontal axis,
# misses at least at the rate on the vertical one. The closer to the dotted line, the less can be
# learned.

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
# Where many small steps on rare rows make up a fit, the curve is steeper: at a smaller delta its
# epsilon grows faster. If more than one point matters, compare curves, not points.
