"""
Publish the performance of a model
==================================

An accuracy, an AUC or a calibration curve of private rows is a release, and needs a charge. This
page uses one budget for three releases: the model, its calibration, and one noisy table of scores
by label. All metrics are computed from this table, with intervals that include the noise and the
sampling.

The table is scikit-learn's handwritten digits: is a digit odd? A third of it, 599 rows, serves
for the metrics. The intervals show how precise so few rows are.
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

# For the model, its calibration and its evaluation.
EPSILONS, DELTA = (2.0, 1.0, 1.0), 1e-5
# Fixed, so that the plot stays the same. Use None for a release.
SEED = 0

# %%
# Split into three equal parts
# ----------------------------
#
# The parts are drawn at random, without using labels. The range of pixels, 0 to 16, is public.

X, y = load_digits(return_X_y=True)
parts = np.array_split(np.random.default_rng(SEED).permutation(len(y)), 3)
fitting, calibrating, testing = ((X[part] / 16.0, y[part] % 2) for part in parts)

# %%
# Charge three releases to one budget
# -----------------------------------
#
# Rows are scaled down to the public bound ``data_norm``, which was not derived from the pictures. A
# second evaluation of the test rows, for the model before its calibration, needs a separate charge.
# It is made for the plot below.

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
# You may publish all of it, with this statement of the calibrated model:

print(privacy_statement(calibrated, unit="picture"))

# %%
# Plot curves with bands
# ----------------------
#
# Bands are pointwise: each interval is valid for one point.

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
# Forecast the width of intervals
# -------------------------------
#
# The forecast reads no row and needs no budget.

for n in (600, 6_000, 60_000):
    widths = evaluation.expected_widths(n, prevalence=0.5, auc=0.93)
    print(f"{n:6d} rows: AUC {widths['roc_auc']:.3f}, sensitivity {widths['sensitivity']:.3f}")
