"""
Read a private model column by column
=====================================

A linear model of a schema's features is a sum of functions, one per column. They are computed
from the released coefficients, so plots of them need no budget. The distribution of the privacy
noise is public. With output perturbation, the plots show a band that is exactly as wide as the
noise.

You can also add knowledge about a function: here, that the risk does not fall with age. The table
is simulated, so the true functions are known, and fresh rows for the test need no budget.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from skdp import (
    GrpuaLogisticRegression,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.inspection import ShapeFunctionDisplay, reshape_functions, shape_functions
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    OrdinalColumn,
    TableSchema,
)
from skdp.reporting import coefficient_table, privacy_statement

EPSILON, DELTA, ROWS, FITS = 0.2, 1e-6, 8_000, 20
# Fixed, so that the plot stays the same. Use None for a release.
SEED = 0

# %%
# Describe the table
# ------------------
#
# Numeric columns are cut into public bins, so their functions can be nonlinear.

SCHEMA = TableSchema(
    [
        NumericColumn("age", 20, 100, unit="years", cuts=range(25, 100, 5)),
        NumericColumn("pressure", 80, 200, unit="mmHg", cuts=range(90, 200, 10)),
        NumericColumn("creatinine", 20, 500, unit="umol/l", scale="log", missing="indicator"),
        CategoricalColumn("ward", ["surgery", "medicine", "emergency"]),
        OrdinalColumn("stage", ["I", "II", "III", "IV"], missing="indicator"),
        BooleanColumn("smoker"),
    ],
    label=LabelColumn("ill", [0, 1]),
)


# %%
# Simulate a table
# ----------------


def simulate(n, rng):
    """Return a table in which risk rises with age and has a minimum in pressure."""
    age, pressure = rng.uniform(20, 100, n), rng.normal(135, 22, n).clip(80, 200)
    creatinine = np.exp(rng.normal(4.4, 0.5, n))
    stage, smoker = rng.integers(0, 4, n), rng.random(n) < 0.3
    score = 2.5 * ((age - 20) / 80) ** 2 + ((pressure - 130) / 30) ** 2 + 0.4 * stage
    score += 0.8 * np.log(creatinine / 80) + 0.5 * smoker - 2.4
    frame = pd.DataFrame(
        {
            "age": age,
            "pressure": pressure,
            "creatinine": np.where(rng.random(n) < 0.1, np.nan, creatinine),
            "ward": rng.choice(["surgery", "medicine", "emergency"], n),
            "stage": np.array(["I", "II", "III", "IV"])[stage],
            "smoker": smoker,
        }
    )
    return frame, (rng.logistic(size=n) < score).astype(int)


rng = np.random.default_rng(SEED)
(X, y), (X_new, y_new) = simulate(ROWS, rng), simulate(100_000, rng)

# %%
# Print the importance of each column
# -----------------------------------
#
# Importance is the standard deviation of a column's function under the uniform distribution on its
# public range. Neither the importance nor the plot reads a row.

estimator = OperaLogisticRegression(EPSILON, DELTA, random_state=SEED)
model = SCHEMA.pipeline(estimator).fit(X, y)
functions = shape_functions(model)
print(f"{'column':12s} importance, with 95 % for the privacy noise")
for function in sorted(functions.values(), key=lambda each: -each.importance[0]):
    size, width = function.importance[0], function.importance_half_width
    print(f"{function.name:12s} {size:6.3f}   {max(0.0, size - width):.3f} to {size + width:.3f}")

# %%
# Add knowledge about functions
# -----------------------------
#
# The risk rises with age and stage, and the function of pressure is smooth. Changes by public
# numbers are post-processing, which the statement records.

rising = reshape_functions(model, {"age": "increasing", "stage": "increasing"})
smooth = reshape_functions(model, {"pressure": 8.0})
print("on fresh rows              AUC   log loss")
for name, fitted in (("as released", model), ("monotone", rising), ("smoothed", smooth)):
    share = fitted.predict_proba(X_new)[:, 1]
    print(f"{name:22s} {roc_auc_score(y_new, share):7.4f}   {log_loss(y_new, share):.4f}")
line = next(line for line in str(privacy_statement(rising)).splitlines() if "after" in line)
print(f"the statement: ...{line.strip()}...")

# %%
# Bands show the noise. The dashed black lines are the changed functions.

display = ShapeFunctionDisplay.from_estimator(model)
for name, changed in (("age", rising), ("pressure", smooth)):
    function = shape_functions(changed)[name]
    axes = display.axes_[display.columns.index(name)]
    axes.plot(function.grid, function.values[:, 0], color="black", ls="--", lw=1)
plt.show()

# %%
# Check the stated noise
# ----------------------
#
# The stated standard deviation of one coefficient is compared with that of twenty fits to the same
# rows. On private rows, each of these fits would need a charge.

ESTIMATORS = {
    "output perturbation": OperaLogisticRegression,
    "output perturbation, delta=0": partial(OperaLogisticRegression, delta=0.0),
    "objective perturbation": ObjectivePerturbationLogisticRegression,
    "GRPUA, hidden state": partial(GrpuaLogisticRegression, calibration="hidden-state"),
    "GRPUA": GrpuaLogisticRegression,
}
print(f"{'noise of one coefficient':30s} {'stated':>17s}   in {FITS} fits")
for name, make in ESTIMATORS.items():
    model = SCHEMA.pipeline(make(epsilon=EPSILON))
    rows, found = model[0].fit_transform(X), []
    for seed in range(FITS):
        model[-1].set_params(random_state=seed).fit(rows, y)
        found.append(model[-1].coef_)
    table = coefficient_table(model)
    stated = f"{table['noise_is'][0]} {table['noise_std'][0]:.3f}"
    print(f"{name:30s} {stated:>17s}   {np.sqrt(np.var(found, axis=0, ddof=1).mean()):.3f}")
