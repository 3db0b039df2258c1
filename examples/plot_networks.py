"""
When a private network beats a private line
===========================================

Noise goes into every weight, and a network has many more of them than a line. So on tables of the
usual kind a private network draws level with the private line, unless epsilon is large. It wins
where the line fails without noise as well. Here two vital signs are harmless by themselves, and a
risk if one is high while the other is low: no sum of functions of single columns says that.

The table is simulated. Fresh rows to test on are free, and so are several fits to the same rows.
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
    """Return pressure and pulse, in standard units within public bounds, and who fell ill."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)).clip(-3.0, 3.0)
    score = X[:, 1] - 0.5 * X[:, 0] - 3.0 * X[:, 0] * X[:, 1] - 1.0
    return X, (score + rng.logistic(size=n) > 0.0).astype(int)


X, y = simulate(4000, seed=0)
X_new, y_new = simulate(20_000, seed=1)


def fit(epsilon, layers, seed):
    """Scale by public bounds, which costs nothing, and train by DP-SGD."""
    network = DPSGDClassifier(
        epsilon, DELTA, hidden_layer_sizes=layers, classes=[0, 1], random_state=seed
    )
    return make_pipeline(BoundedScaler(-3.0, 3.0), network).fit(X, y)


# %%
# What a fit spends follows from its lots, its steps and its noise. Layers cost no epsilon.

for name, layers in SHAPES.items():
    network = fit(1.0, layers, 0)[-1]
    weights = sum(w.size for w in [*network.coefs_, *network.intercepts_]) if layers else 3
    print(f"{name:22s} {weights:4d} weights, {network.privacy_spent_}")

# %%
# By epsilon
# ----------
#
# The area under the ROC curve on fresh rows, in three fits each. A comparison like this one on
# private rows is a search, and has to be paid for: ``PrivateGridSearchCV`` with
# ``hidden_layer_sizes`` in its grid does.

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
# The picture
# -----------
#
# On the right where both models of epsilon 1 draw the boundary; the points are fresh ones.

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
