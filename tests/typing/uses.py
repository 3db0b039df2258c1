"""The guides' main calls, as type checkers see them; nothing here is run."""

from typing import assert_type

import numpy as np

import skdp
from skdp import DPSGDClassifier, GrpuaMLPClassifier, ObjectivePerturbationSVC
from skdp.accounting import PLDAccountant
from skdp.budget import BudgetAccountant
from skdp.metrics import (
    PrivateCalibrator,
    PrivateEvaluation,
    PrivateEvaluationResult,
    PrivateRegressionEvaluation,
    PrivateRegressionResult,
    PrivateThreshold,
)
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    BooleanColumn,
    BoundedScaler,
    CategoricalColumn,
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    OrdinalColumn,
    PrivacyUnit,
    TableSchema,
)
from skdp.reporting import PrivacySpent, privacy_statement

X, y = np.zeros((9, 2)), np.zeros(9, dtype=int)

# Lists and tuples describe a table alike.
schema = TableSchema(
    [
        NumericColumn("age", 18, 90, unit="years", cuts=[40, 65], missing="indicator"),
        NumericColumn("charge", 0, 1e6, scale="sqrt", cuts=4, spikes=(100.0, 200.0)),
        CategoricalColumn("ward", ["A", "B"], missing="fill", fill_value="A"),
        OrdinalColumn("stage", ("I", "II", "III"), missing_codes=["?"]),
        BooleanColumn("smoker"),
    ],
    label=LabelColumn("ill", [0, 1], values=[[0], [1, 2]], prevalence={0: 0.9, 1: 0.1}),
    unit=PrivacyUnit("patient", column="id"),
    interactions=[("age", "ward")],
)
assert_type(schema.data_norm, float)
assert_type(schema.replace(clip_norm=1.5), TableSchema)
assert_type(TableSchema.load("schema.json"), TableSchema)
drafted = TableSchema.from_bounds({"age": (18, 90), "ill": [0, 1]}, label="ill", missing="ignore")
assert_type(drafted, TableSchema)

# Fits return the estimator; what is released has a type.
model = DPSGDClassifier(epsilon=1, delta=1e-5, data_norm=1.0, classes=[0, 1]).fit(X, y)
assert_type(model, DPSGDClassifier)
assert_type(model.predict(X), np.ndarray)
assert_type(model.predict_proba(X), np.ndarray)
assert_type(model.coef_, np.ndarray)
assert_type(model.classes_, np.ndarray)
assert_type(model.privacy_spent_, PrivacySpent)
epsilon, delta = model.privacy_spent_
plan = ObjectivePerturbationSVC(0.5, delta=0).privacy_plan(n_samples=1000, n_features=4)
assert_type(plan, PrivacySpent)
GrpuaMLPClassifier(hidden_layer_sizes=(16,), activation="tanh").fit(X, y, groups=["a"] * 9)
DPStandardScaler(epsilon=0.2).fit(X)
BoundedScaler([0, 0], [1, 1])

with BudgetAccountant(epsilon=3.0, delta=1e-5, composition="gdp", adjacency="replace-one"):
    search = PrivateGridSearchCV(model, {"max_iter": [50, 150]}, epsilon=1.0, method="fixed")
    assert_type(search.fit(X, y), PrivateGridSearchCV)

# Evaluations return their results, adjusted models themselves.
assert_type(PrivateEvaluation(subgroups=["f", "m"]).evaluate(model, X, y), PrivateEvaluationResult)
regressors = PrivateRegressionEvaluation(0.5, 1e-5, target_bounds=(0, 1), n_bins=12)
assert_type(regressors.evaluate(model, X, y), PrivateRegressionResult)
calibrated = PrivateCalibrator(model, 0.5, method="temperature").fit(X, y)
assert_type(calibrated, PrivateCalibrator)
assert_type(calibrated.privacy_spent_, PrivacySpent)
threshold = PrivateThreshold(model, metric="cost", costs=(1, 5)).fit(X, y, groups=["a"] * 9)
assert_type(threshold.threshold_, float)

print(privacy_statement(model), PLDAccountant(adjacency="add-remove"))
assert_type(skdp.preprocessing.TableSchema([]), TableSchema)
