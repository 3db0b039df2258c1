"""
Publishing how good a model is
==============================

Whoever fits a private model wants to print how good it is. Read off private rows, an accuracy, an
AUC or a calibration curve is a release like any other, and nobody has paid for it. Here one budget
pays for three releases: the model, its calibration, and one noisy table of scores by label, from
which every figure follows with an interval that counts the noise as well as the sampling.

The table ships with scikit-learn: is a handwritten digit odd? It is small: a third of it, 599 rows,
is what figures are read off, and the intervals say what that is worth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.metrics import (
    PrivateCalibrationDisplay,
    PrivateCalibrator,
    PrivateEvaluation,
    PrivateRocCurveDisplay,
)
from skdp.reporting import privacy_statement

# Of the model, its calibration and its evaluation.
EPSILONS, DELTA = (2.0, 1.0, 1.0), 1e-5
# Every random number below is fixed, so that the picture does not wander: for a release, None.
SEED = 0

# %%
# Three equal parts
# -----------------
#
# Drawn at random, without looking at labels. That pixels are between 0 and 16 is public.

X, y = load_digits(return_X_y=True)
parts = np.array_split(np.random.default_rng(SEED).permutation(len(y)), 3)
fitting, calibrating, testing = ((X[part] / 16.0, y[part] % 2) for part in parts)

# %%
# Three charges to one budget
# ---------------------------
#
# Rows are shortened to the public bound ``data_norm``, which no picture has shaped. A second look
# at the test rows, at the model before its calibration, is a charge of its own; it is made for the
# picture below.

settings = {"delta": DELTA, "adjacency": "replace-one", "random_state": SEED}
budget = BudgetAccountant(sum(EPSILONS) + EPSILONS[2], 4 * DELTA, adjacency="replace-one")
with budget:
    model = OperaLogisticRegression(EPSILONS[0], **settings, data_norm=4.0, classes=[0, 1])
    model.fit(*fitting)
    calibrated = PrivateCalibrator(FrozenEstimator(model), EPSILONS[1], **settings)
    calibrated.fit(*calibrating)
    evaluation = PrivateEvaluation(EPSILONS[2], **settings)
    result = evaluation.evaluate(calibrated, *testing)
    raw = evaluation.evaluate(model, *testing)
print(result)
print(f"\nslope {calibrated.slope_[0]:.2f}, intercept {calibrated.intercept_[0]:.2f}")
print(f"spent in total: epsilon {budget.spent()[0]:.2f} of {budget.epsilon:g}")

# %%
# All of it may be published, with this statement of the calibrated model:

print(privacy_statement(calibrated, unit="picture"))

# %%
# Curves with bands
# -----------------
#
# Bands are pointwise: each interval holds by itself.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
PrivateRocCurveDisplay.from_result(result, ax=left)
PrivateCalibrationDisplay.from_result(raw, ax=middle)
PrivateCalibrationDisplay.from_result(result, ax=right)
left.set_title(f"one release, n = {result.tables.n}, epsilon {EPSILONS[2]:g}")
middle.set_title("before private calibration")
right.set_title("after private calibration")
left.legend(fontsize="small", loc="lower right")
middle.get_legend().remove()
right.get_legend().remove()
plt.show()

# %%
# How many rows are enough?
# -------------------------
#
# Asked beforehand, this costs nothing: no row is read.

for n in (600, 6_000, 60_000):
    widths = evaluation.expected_widths(n, prevalence=0.5, auc=0.93)
    print(f"{n:6d} rows: AUC {widths['roc_auc']:.3f}, sensitivity {widths['sensitivity']:.3f}")
