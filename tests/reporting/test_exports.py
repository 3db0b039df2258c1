"""Models in ONNX predict the same and hold what was released; cards say what the statement says."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    DPSGDClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
    OperaSVC,
    VariationalLogisticRegression,
)
from skdp.preprocessing import BoundedScaler, NumericColumn, RowNormClipper, TableSchema
from skdp.reporting import model_card, privacy_statement, to_onnx

IRIS, SPECIES = load_iris(return_X_y=True)
SCALER = BoundedScaler([4, 2, 1, 0], [8, 4.5, 7, 2.5])  # narrow: some cells are clipped
NETWORK = {"hidden_layer_sizes": (3,), "max_iter": 3}
MODELS = {
    "logistic": (OperaLogisticRegression(epsilon=50.0), 2),
    "softmax": (OperaLogisticRegression(epsilon=50.0, calibrate="private"), 3),
    "one against the rest": (ObjectivePerturbationLogisticRegression(epsilon=50.0), 3),
    "hinge": (OperaSVC(epsilon=50.0), 3),
    "no intercept": (OperaSVC(epsilon=50.0, fit_intercept=False), 2),
    "network": (DPSGDClassifier(epsilon=50.0, **NETWORK), 3),
    "network of one score": (DPSGDClassifier(epsilon=50.0, activation="tanh", **NETWORK), 2),
}
NAMES = np.array(["setosa", "versicolor", "virginica"])


def run(onnx, X):
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    session = runtime.InferenceSession(onnx.SerializeToString())
    return session.run(None, {"X": X})


@pytest.mark.parametrize(("model", "classes"), MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("dtype", "near"), [("float32", 1e-5), ("float64", 1e-12)])
def test_predictions_are_the_same(model, classes, dtype, near):
    pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    rows = SPECIES < classes
    X, y = IRIS[rows], NAMES[SPECIES[rows]] if dtype == "float32" else SPECIES[rows]
    fitted = make_pipeline("passthrough", SCALER, model.set_params(random_state=1)).fit(X, y)
    labels, outcomes = run(to_onnx(fitted, dtype=dtype), X.astype(dtype))
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_allclose(outcomes, fitted.predict_proba(X), atol=near)
    else:
        scores = fitted.decision_function(X)
        wanted = np.column_stack([-scores, scores]) if classes == 2 else scores
        np.testing.assert_allclose(outcomes, wanted, atol=near)
    ranked = np.sort(outcomes, axis=1)
    clear = ranked[:, -1] - ranked[:, -2] > 2 * near
    assert clear.mean() > 0.8
    assert (labels == fitted.predict(X))[clear].all()


def test_what_cannot_be_exported_is_named():
    pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    plain = OperaLogisticRegression(epsilon=50.0)
    with pytest.raises(NotFittedError):
        to_onnx(plain)
    with pytest.raises(TypeError, match=r"RowNormClipper has no counterpart.*pipeline\[-1\]"):
        to_onnx(make_pipeline(RowNormClipper(), plain).fit(IRIS, SPECIES))
    schema = TableSchema([NumericColumn(name, 0, 8) for name in "abcd"])
    with pytest.raises(TypeError, match=r"SchemaPreprocessor has no counterpart"):
        to_onnx(schema.pipeline(plain, positions=True).fit(IRIS, SPECIES))
    with pytest.raises(ValueError, match="leaks private rows"):
        to_onnx(make_pipeline(StandardScaler(), plain).fit(IRIS, SPECIES))
    with pytest.raises(ValueError, match="ONNX knows no others"):
        to_onnx(OperaLogisticRegression(epsilon=50.0).fit(IRIS, SPECIES + 0.0))
    with pytest.raises(ValueError, match="32 bits"):
        to_onnx(OperaLogisticRegression(epsilon=50.0).fit(IRIS, SPECIES + 2**31))
    variational = VariationalLogisticRegression(epsilon=50.0, max_iter=2).fit(IRIS, SPECIES)
    with pytest.raises(TypeError, match="averages over a posterior"):
        to_onnx(variational)
    with pytest.raises(ValueError, match="dtype"):
        to_onnx(variational, dtype="float16")


def test_a_card_says_what_the_statement_says():
    pytest.importorskip("skops", reason="needs skops")
    model = OperaLogisticRegression(epsilon=0.5, delta=1e-7, random_state=3)
    fitted = make_pipeline(SCALER, model).fit(IRIS, SPECIES)
    text = model_card(fitted, unit="patient", rows_per_unit=2).render()
    statement = privacy_statement(fitted, unit="patient", rows_per_unit=2)
    assert str(statement) in text
    for words in ("epsilon = 0.5,", "delta = 1e-07", "replace-one", "one patient with at most 2"):
        assert words in text
    assert "NOT hold against anyone who knows" in text
    for item in (*statement.to_dict()["assumptions"], *statement.to_dict()["not_covered"]):
        assert f"- {item}" in text


def test_a_card_of_a_leaking_pipeline_promises_nothing():
    pytest.importorskip("skops", reason="needs skops")
    leaking = make_pipeline(StandardScaler(), OperaLogisticRegression()).fit(IRIS, SPECIES)
    card = model_card(leaking)
    assert "no guarantee" in card.select("Privacy/Guarantee").content
