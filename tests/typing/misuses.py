"""Mistakes that type checkers find: an ignore without one is an error to both of them."""

import skdp
from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.inference import PrivateInference
from skdp.metrics import PrivateCalibrator, PrivateEvaluation, PrivateThreshold
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    CategoricalColumn,
    DPStandardScaler,
    NumericColumn,
    PublicPatches,
    TableSchema,
)

OperaLogisticRegression(adjacency="replace one")  # type: ignore[arg-type]
OperaLogisticRegression(numerics="exact")  # type: ignore[arg-type]
OperaLogisticRegression(epsilon="1")  # type: ignore[arg-type]
OperaLogisticRegression(norm=1.0)  # type: ignore[call-arg]
PrivateEvaluation(epsilon="1")  # type: ignore[arg-type]
PrivateEvaluation(thresholds=(0.5,), target_bounds=(0, 1))  # type: ignore[call-arg]
PrivateInference(covariance="robust")  # type: ignore[arg-type]
PrivateCalibrator(OperaLogisticRegression(), subgroups=["a"])  # type: ignore[call-arg]
PrivateThreshold(OperaLogisticRegression(), metric="accuracy")  # type: ignore[arg-type]
PrivateThreshold()  # type: ignore[call-arg]
BudgetAccountant(epsilon=1.0, delta=1e-6, composition="pld")  # type: ignore[arg-type]
PrivateGridSearchCV(OperaLogisticRegression(), {}, method="grid")  # type: ignore[arg-type]
DPStandardScaler(norm=1.0)  # type: ignore[call-arg]
DPStandardScaler(verbose=1)  # type: ignore[call-arg]
PublicPatches(n_filters=3)  # type: ignore[call-arg]
NumericColumn("age", 0, 90, scale="cubic")  # type: ignore[arg-type]
NumericColumn("age", "0", 90)  # type: ignore[arg-type]
CategoricalColumn("ward", 3)  # type: ignore[arg-type]
TableSchema({"age": (0, 90)})  # type: ignore[arg-type]
skdp.preprocesing  # type: ignore[attr-defined]  # noqa: B018
