"""
Search parameters privately
===========================

The norm of the rows of this table is known only within a factor of ten, and ``data_norm`` must be
a public bound. This page tries six values within one epsilon, in three ways:

* No search: one fit with the safe value, which is ten times too large.
* An ordinary ``GridSearchCV`` of private estimators, with epsilon divided among its fits. It
  selects the winner by exact scores without a charge, so it is **not private**. It is shown for
  comparison.
* ``PrivateGridSearchCV``, whose epsilon covers all fits and the choice.

The table is simulated. Fresh rows for the test and several repetitions need no budget.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.model_selection import PrivateGridSearchCV

EPSILON, DELTA, ROWS, REPEATS = 1.0, 1e-6, 10_000, 5
NORMS = [0.5, 1.5, 5.0, 15.0, 50.0, 150.0]
SETTINGS = {"adjacency": "replace-one", "classes": [0, 1]}


def simulate(n, seed):
    """Return rows of norm about five, and labels from a noisy linear model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 25))
    score = X @ np.linspace(1.0, -1.0, 25) / 2.0
    return X, (score + rng.logistic(size=n) > 0.0).astype(int)


# %%
# Define the searches
# -------------------
#
# A naive search of six candidates in three folds fits nineteen times, and charges each fit to a
# budget. A private search with random stopping tries a secret random number of candidates, eighteen
# on average, and returns the best. A private search with a holdout trains each candidate once. The
# budget of each training depends on public numbers, and no scores remain after the search.


def one_fit(X, y, seed, data_norm):
    model = OperaLogisticRegression(EPSILON, DELTA, data_norm=data_norm, **SETTINGS)
    return model.set_params(random_state=seed).fit(X, y)


def naive(X, y, seed):
    """Return a search that is not private: exact scores pick the winner."""
    budget = BudgetAccountant(EPSILON, DELTA, adjacency="replace-one")
    share = budget.allocate(fits=3 * len(NORMS) + 1)
    each = OperaLogisticRegression(*share, accountant=budget, random_state=seed, **SETTINGS)
    search = GridSearchCV(each, {"data_norm": NORMS}, cv=3).fit(X, y)
    search.inner_epsilon_ = share[0]
    return search


def private(X, y, seed, method):
    search = PrivateGridSearchCV(
        OperaLogisticRegression(**SETTINGS),
        {"data_norm": NORMS},
        epsilon=EPSILON,
        delta=DELTA,
        method=method,
        random_state=seed,
    )
    return search.fit(X, y)


WAYS = {
    "one fit, data_norm = 50": partial(one_fit, data_norm=50.0),
    "naive search (not private)": naive,
    "private, holdout": partial(private, method="holdout"),
    "private, random stopping": partial(private, method="random-stopping"),
    "one fit, had one known: 5": partial(one_fit, data_norm=5.0),
}

# %%
# Compare the accuracy
# --------------------
#
# Each repetition draws a new table and new noise.

X_new, y_new = simulate(20_000, seed=1000)
accuracies = {name: [] for name in WAYS}
for seed in range(REPEATS):
    X, y = simulate(ROWS, seed)
    for name, way in WAYS.items():
        model = way(X, y, seed)
        accuracies[name].append(model.score(X_new, y_new))
        if hasattr(model, "best_params_") and seed == 0:
            print(f"{name:27s} a training gets epsilon {model.inner_epsilon_:.3f}", end=", ")
            print(f"{model.best_params_} won")
for name, found in accuracies.items():
    print(f"{name:27s} accuracy {np.mean(found):.3f}, {min(found):.3f} to {max(found):.3f}")

# %%

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for place, found in enumerate(accuracies.values()):
    axes.plot(found, np.full(REPEATS, place), "o", color="0.5")
    axes.plot([np.mean(found)], [place], "k|", ms=18)
    axes.annotate(f"{np.mean(found):.3f}", (max(found) + 0.004, place), va="center")
axes.set_yticks(range(len(WAYS)), WAYS)
axes.set(xlabel=f"accuracy on fresh rows, epsilon {EPSILON:g} in total", ylabel="way to choose")
axes.set(xlim=(0.48, 0.76), ylim=(4.5, -0.5))
plt.show()

# %%
# The known bound is best, because a search costs budget. Try free sources first: similar public
# rows, or knowledge about the columns. Without such knowledge, a private search within the same
# epsilon comes close. Dividing epsilon manually leaves less for each training, and the choice is
# still not private.
