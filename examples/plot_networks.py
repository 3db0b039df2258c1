"""
Compare a private network with a linear model
=============================================

Noise is added to every weight, and a network has many more weights than a linear model. On most
tables, a private network is only as good as the private linear model, unless epsilon is large. It
is better where the linear model fails without noise as well. Here, two vital signs indicate a
risk only if one is high while the other is low. A sum of functions of single columns cannot
express this.

The table is simulated. Fresh rows for the test and several fits to the same rows need no budget.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import DPSGDClassifier
from skdp.preprocessing import BoundedScaler

DELTA, SEEDS = 1e-5, 3
SHAPES = {"line": (), "one layer of 32 units": (32,)}


def simulate(n, seed):
    """Return pressure and pulse in standard units within public bounds, and labels (1 is ill)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)).clip(-3.0, 3.0)
    score = X[:, 1] - 0.5 * X[:, 0] - 3.0 * X[:, 0] * X[:, 1] - 1.0
    return X, (score + rng.logistic(size=n) > 0.0).astype(int)


X, y = simulate(4000, seed=0)
X_new, y_new = simulate(20_000, seed=1)


def fit(epsilon, layers, seed):
    """Return a pipeline: scaling by public bounds, then DP-SGD."""
    network = DPSGDClassifier(
        epsilon, DELTA, hidden_layer_sizes=layers, classes=[0, 1], random_state=seed
    )
    return make_pipeline(BoundedScaler(-3.0, 3.0), network).fit(X, y)


# %%
# The privacy cost of a fit depends on its batches, steps and noise, but not on its layers.

for name, layers in SHAPES.items():
    network = fit(1.0, layers, 0)[-1]
    weights = sum(w.size for w in [*network.coefs_, *network.intercepts_]) if layers else 3
    print(f"{name:22s} {weights:4d} weights, {network.privacy_spent_}")

# %%
# Compare ROC AUC for each epsilon
# --------------------------------
#
# Values are the area under the ROC curve on fresh rows, for three fits each. On private rows, such
# a comparison is a search and needs budget: use ``PrivateGridSearchCV`` with ``hidden_layer_sizes``
# in its grid.

EPSILONS = (0.1, 0.3, 1.0, 3.0)
areas = {
    name: [
        [
            roc_auc_score(y_new, fit(epsilon, layers, seed).decision_function(X_new))
            for seed in range(SEEDS)
        ]
        for epsilon in EPSILONS
    ]
    for name, layers in SHAPES.items()
}
print(f"{'epsilon':22s}", *(f"{epsilon:>6g}" for epsilon in EPSILONS))
for name, found in areas.items():
    print(f"{name:22s}", *(f"{np.mean(each):6.3f}" for each in found))

# %%
# Plot the boundaries
# -------------------
#
# The right plot shows the boundaries of both models at epsilon 1. The points are fresh rows.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for (name, found), style in zip(areas.items(), ("ks--", "ko-"), strict=True):
    middle = np.mean(found, axis=1)
    reach = np.abs([np.min(found, axis=1), np.max(found, axis=1)] - middle)
    left.errorbar(EPSILONS, middle, yerr=reach, fmt=style, capsize=3, label=f"{name}, range")
left.set(xscale="log", xlabel="epsilon", ylabel="ROC AUC on fresh rows")
left.set_xticks(EPSILONS, EPSILONS)
left.minorticks_off()
left.legend()

across, up = np.meshgrid(np.linspace(-3.0, 3.0, 150), np.linspace(-3.0, 3.0, 150))
points = np.column_stack([across.ravel(), up.ravel()])
for label, marker, shade in (("well", "o", "0.8"), ("ill", "^", "0.5")):
    shown = X_new[:600][y_new[:600] == (label == "ill")]
    right.plot(*shown.T, marker, color=shade, ms=3, lw=0, label=label)
for (name, layers), style in zip(SHAPES.items(), ("--", "-"), strict=True):
    scores = fit(1.0, layers, 0).decision_function(points).reshape(across.shape)
    right.contour(across, up, scores, levels=[0.0], colors="k", linestyles=style)
    right.plot([], [], "k" + style, label=name)
right.set(xlabel="pressure", ylabel="pulse", title="boundaries at epsilon 1")
right.legend(fontsize="small", loc="lower left", ncols=2)
plt.show()
