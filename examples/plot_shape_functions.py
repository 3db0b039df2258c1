"""
A private model that can be read
================================

A linear model of a schema's features is a sum of functions, one of each column. They follow from
the released coefficients, so that looking at them costs nothing; and since the law of the privacy
noise is public, output perturbation draws them with a band that is exactly as wide as that noise.
What is known of a function may then be put in: here that risk does not fall with age.

The table is simulated, so that everybody can see what the functions should have been, and fresh
rows to test on are free.
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
# Every random number below is fixed, so that the picture does not wander: for a release, None.
SEED = 0

# %%
# A public description
# --------------------
#
# Numeric columns are cut into public bins, so that their functions may bend.

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
# A simulated table
# -----------------


def simulate(n, rng):
    """Return a table in which risk rises with age, and has a valley in pressure."""
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
# What was learned, column by column
# ----------------------------------
#
# Importance is the standard deviation of a column's function under the uniform law on its public
# range. No row is read for it, nor for the picture.

estimator = OperaLogisticRegression(EPSILON, DELTA, random_state=SEED)
model = SCHEMA.pipeline(estimator).fit(X, y)
functions = shape_functions(model)
print(f"{'column':12s} importance, with 95 % for the privacy noise")
for function in sorted(functions.values(), key=lambda each: -each.importance[0]):
    size, width = function.importance[0], function.importance_half_width
    print(f"{function.name:12s} {size:6.3f}   {max(0.0, size - width):.3f} to {size + width:.3f}")

# %%
# Putting in what is known
# ------------------------
#
# Risk rises with age and stage; the function of pressure is smooth. Changes by public numbers are
# post-processing, which the statement records.

rising = reshape_functions(model, {"age": "increasing", "stage": "increasing"})
smooth = reshape_functions(model, {"pressure": 8.0})
print("on fresh rows              AUC   log loss")
for name, fitted in (("as released", model), ("monotone", rising), ("smoothed", smooth)):
    share = fitted.predict_proba(X_new)[:, 1]
    print(f"{name:22s} {roc_auc_score(y_new, share):7.4f}   {log_loss(y_new, share):.4f}")
line = next(line for line in str(privacy_statement(rising)).splitlines() if "after" in line)
print(f"the statement: ...{line.strip()}...")

# %%
# Bands are as wide as the noise; the dashed black lines are the changed functions.

display = ShapeFunctionDisplay.from_estimator(model)
for name, changed in (("age", rising), ("pressure", smooth)):
    function = shape_functions(changed)[name]
    axes = display.axes_[display.columns.index(name)]
    axes.plot(function.grid, function.values[:, 0], color="black", ls="--", lw=1)
plt.show()

# %%
# Is the stated noise the noise?
# ------------------------------
#
# The standard deviation that is stated for one coefficient, beside that of twenty fits to the same
# rows. Nobody can do this with private rows, who has to pay for each fit.

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
