"""
Odds ratios with intervals
==========================

A table of odds ratios needs intervals and p-values. A private model has none by itself: its noise
and its penalty move the coefficients. A look at the rows, for the same epsilon as the fit, gives
estimates with intervals that include sampling and noise.

The table is simulated, so the true odds ratios are known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import OperaLogisticRegression
from skdp.inference import PrivateInference
from skdp.inspection import ShapeFunctionDisplay
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    TableSchema,
)
from skdp.reporting import CoefficientDisplay, privacy_statement

ROWS, EPSILON = 20_000, 1.0
# Fixed, so that the plot stays the same. Use None for a release.
SEED = 2

# %%
# Describe the table
# ------------------
#
# Bounds are narrow and public. The effect of the pressure is a curve, and others are lines.

SCHEMA = TableSchema(
    [
        NumericColumn("age", 20, 100, unit="years"),
        NumericColumn("pressure", 80, 200, unit="mmHg", cuts=[110, 130, 150, 170]),
        CategoricalColumn("ward", ["surgery", "medicine", "geriatrics"]),
        BooleanColumn("smoker"),
        BooleanColumn("diabetes"),
    ],
    label=LabelColumn("died", [0, 1]),
)
# True log odds ratios.
TRUE = {
    "age": 0.04,
    "ward=medicine": 0.0,
    "ward=geriatrics": 0.6,
    "smoker=True": 0.5,
    "diabetes=True": 0.3,
}

rng = np.random.default_rng(SEED)
frame = pd.DataFrame(
    {
        "age": rng.uniform(20, 100, ROWS),
        "pressure": rng.normal(135, 22, ROWS).clip(80, 200),
        "ward": rng.choice(["surgery", "medicine", "geriatrics"], ROWS),
        "smoker": rng.random(ROWS) < 0.3,
        "diabetes": rng.random(ROWS) < 0.2,
    }
)
log_odds = TRUE["age"] * (frame["age"] - 60) + ((frame["pressure"] - 130) / 40) ** 2 - 1.5
log_odds += TRUE["ward=geriatrics"] * (frame["ward"] == "geriatrics")
log_odds += TRUE["smoker=True"] * frame["smoker"] + TRUE["diabetes=True"] * frame["diabetes"]
frame["died"] = (rng.logistic(size=ROWS) < log_odds).astype(int)

# %%
# Fit and look
# ------------

inference = PrivateInference(EPSILON, adjacency="add-remove", random_state=SEED)
model = SCHEMA.pipeline(OperaLogisticRegression(random_state=SEED))
result = inference.fit_evaluate(model, frame)
print(result)

# %%
# Fit and look together have this guarantee:

print(str(privacy_statement(result.model_)).splitlines()[2])

# %%
# Draw a forest plot
# ------------------
#
# The plot is on a logarithmic axis. Crosses are the true odds ratios.

table = result.table()
names = [name for name in table["name"] if not name.startswith(("pressure", "("))]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
shown = CoefficientDisplay(table).plot(left, names=names)
left.set_ylabel("column")
places = [place for place, name in enumerate(names) if name in TRUE]
truth = np.exp([TRUE[names[place]] for place in places])
left.plot(truth, places, "x", color="tab:red", ms=9, zorder=3)

# %%
# A curve has no single odds ratio. It is drawn as a function, with a band for sampling and noise.
# The dashed line is the true function.

ShapeFunctionDisplay.from_estimator(result.model_, ["pressure"], ax=right)
grid = np.linspace(80, 200, 200)
true = ((grid - 130) / 40) ** 2
right.plot(grid, true - true.mean(), "--", color="tab:red", lw=1)
plt.show()

# %%
# Two values of a curve, or any sum of effects, have an interval too:

print(result.contrast({"pressure": (130, 180)}))
print(result.contrast({"age": 10, "smoker=True": 1}))
