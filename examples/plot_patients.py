"""
Protect patients with several rows
==================================

In a table of visits, a patient has several rows. A guarantee for one *row* is weak for a patient,
because all rows of the patient may change. ``fit(X, y, groups=ids)`` protects all rows of one id
together. This page compares the accuracy with that of a fit without ids, at the same guarantee.

The tables are simulated: each patient has 1 to 20 rows around a centre. Scores are computed on
other patients, and need no budget.
"""

import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import OperaLogisticRegression
from skdp.mechanisms import analytic_gaussian_epsilon, analytic_gaussian_sigma
from skdp.reporting import privacy_statement

PATIENTS, MOST_ROWS, COLUMNS, DELTA, STUDIES = 2000, 20, 8, 1e-6, 5


def simulate(patients, seed):
    """Return rows of norm at most 1, labels, and ids of patients with 1 to 20 rows."""
    rng = np.random.default_rng(seed)
    counts = np.clip(rng.lognormal(1.5, 0.8, patients).astype(int), 1, MOST_ROWS)
    ids = np.repeat(np.arange(patients), counts)
    X = rng.standard_normal((patients, COLUMNS))[ids] + rng.standard_normal((ids.size, COLUMNS))
    shift = rng.standard_normal(patients)[ids]
    score = X @ np.linspace(1.0, -1.0, COLUMNS) + shift
    y = (score + rng.logistic(size=ids.size) > 0.5).astype(int)
    return X / np.maximum(5.0, np.linalg.norm(X, axis=1, keepdims=True)), y, ids


X, y, ids = simulate(PATIENTS, seed=0)
print(f"{PATIENTS} patients, {ids.size} rows, {np.bincount(ids).max()} rows of one patient at most")

# %%
# Compare two statements with the same epsilon
# --------------------------------------------
#
# Both fits state epsilon = 1, but only one of them states it for a patient. The statement of the
# other fit computes the guarantee for twenty rows together.

SETTINGS = {"delta": DELTA, "data_norm": 1.0, "adjacency": "replace-one", "classes": [0, 1]}
by_rows = OperaLogisticRegression(1.0, **SETTINGS, random_state=0).fit(X, y)
by_patients = OperaLogisticRegression(1.0, **SETTINGS, random_state=0).fit(X, y, groups=ids)
for model in (by_rows, by_patients):
    statement = str(privacy_statement(model, unit="patient", rows_per_unit=MOST_ROWS))
    print(*re.findall(r"^(?:Guarantee|Unit).*(?:\n  .*)*", statement, re.MULTILINE), sep="\n")

# %%
# Compare the accuracy at the same guarantee
# ------------------------------------------
#
# Now every fit protects all rows of a patient. Without ids, the noise must be twenty times as
# large, because group privacy multiplies the mu of a Gaussian release.


def epsilon_of_rows(epsilon):
    """Return the epsilon of one row that gives a group of twenty rows the epsilon of a patient."""
    sigma = MOST_ROWS * analytic_gaussian_sigma(epsilon, DELTA)
    return analytic_gaussian_epsilon(sigma, DELTA)


def fit_by_rows(epsilon, study, seed):
    X, y, _ = study
    each = epsilon_of_rows(epsilon)
    return OperaLogisticRegression(each, **SETTINGS, random_state=seed).fit(X, y)


def fit_by_patients(epsilon, study, seed):
    X, y, ids = study
    model = OperaLogisticRegression(epsilon, **SETTINGS, random_state=seed)
    return model.fit(X, y, groups=ids)


WAYS = {"fit with groups=ids": fit_by_patients, "fit by rows, group of 20": fit_by_rows}
EPSILONS = (0.3, 1.0, 3.0, 8.0)
studies = [simulate(PATIENTS, seed) for seed in range(STUDIES)]
X_new, y_new, new_ids = simulate(20_000, seed=1000)
one_each = np.unique(new_ids, return_index=True)[1]

areas = {}
print(f"{'ROC AUC, epsilon of a patient':30s}", *(f"{epsilon:>6g}" for epsilon in EPSILONS))
for name, fit in WAYS.items():
    areas[name] = [
        [
            roc_auc_score(
                y_new[one_each], fit(epsilon, study, seed).decision_function(X_new[one_each])
            )
            for seed, study in enumerate(studies)
        ]
        for epsilon in EPSILONS
    ]
    print(f"{name:30s}", *(f"{np.mean(each):6.3f}" for each in areas[name]))

# %%
# The left plot shows the epsilon of a patient against the number of rows, for a fit without ids
# that has epsilon = 1 per row.

counts = np.arange(1, MOST_ROWS + 1)
sigma = analytic_gaussian_sigma(1.0, DELTA)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
epsilons = [analytic_gaussian_epsilon(sigma / count, DELTA) for count in counts]
left.plot(counts, epsilons, "ks--", ms=3, label="fit by rows")
left.plot(counts, np.ones(MOST_ROWS), "ko-", ms=3, label="fit with groups=ids")
left.set(xlabel="rows of a patient", ylabel="epsilon of the patient", ylim=0)
left.set(title="both fits say epsilon = 1", xticks=[1, 5, 10, 15, 20])
left.legend()
for (name, found), style in zip(areas.items(), ("ko-", "ks--"), strict=True):
    middle = np.mean(found, axis=1)
    reach = np.abs([np.min(found, axis=1), np.max(found, axis=1)] - middle)
    right.errorbar(EPSILONS, middle, yerr=reach, fmt=style, ms=4, capsize=3, label=name)
right.set(xscale="log", xlabel="epsilon of a patient", ylabel="ROC AUC on other patients")
right.set_xticks(EPSILONS, EPSILONS)
right.minorticks_off()
right.set(title="the same guarantee; range of five studies")
right.legend()
plt.show()
