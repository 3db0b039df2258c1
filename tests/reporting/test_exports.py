"""Models in ONNX predict the same and hold what was released; cards say what the statement says."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skdp import (
    DPSGDClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
    OperaSVC,
    PrivateRidge,
    VariationalLogisticRegression,
)
from skdp.budget import BudgetAccountant
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import BoundedScaler, NumericColumn, RowNormClipper, TableSchema
from skdp.reporting import model_card, privacy_statement, register_onnx_converters, to_onnx

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


@pytest.mark.parametrize(("dtype", "near"), [("float32", 1e-5), ("float64", 1e-12)])
def test_regressors_predict_the_same_within_their_bounds(dtype, near):
    pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    ridge = PrivateRidge(50.0, target_bounds=(2.5, 3.5), data_norm=1.0, random_state=1)
    fitted = make_pipeline(SCALER, ridge).fit(IRIS, IRIS[:, 1])
    (numbers,) = run(to_onnx(fitted, dtype=dtype), IRIS.astype(dtype))
    wanted = fitted.predict(IRIS)
    assert {2.5, 3.5} & set(wanted), "nothing was clipped"
    np.testing.assert_allclose(numbers[:, 0], wanted, atol=near)


def test_skl2onnx_converts_what_is_registered():
    """Also inside its containers, with its options, which are refused where they would be lost."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    scalers = [(name, SCALER, columns) for name, columns in (("a", [0, 1, 2, 3]),)]
    svc = make_pipeline(ColumnTransformer(scalers), OperaSVC(50.0, random_state=1))
    search = PrivateGridSearchCV(svc, {"operasvc__alpha": [0.1]}, epsilon=50.0, method="holdout")
    X = IRIS.astype(np.float32)
    for model in (svc.fit(IRIS, SPECIES), search.fit(IRIS, SPECIES)):
        register_onnx_converters(model)
        chosen = getattr(model, "best_estimator_", model)
        labels, _ = run(skl2onnx.to_onnx(chosen, X[:1]), X)
        assert np.mean(labels == model.predict(IRIS)) > 0.98
        labels, scores = run(skl2onnx.to_onnx(chosen, X[:1], options={"zipmap": False}), X)
        np.testing.assert_allclose(scores, model.decision_function(IRIS), atol=1e-5)
    with pytest.raises(NameError, match=r"raw_scores.*OperaSVC"):
        skl2onnx.to_onnx(svc, X[:1], options={id(svc[-1]): {"raw_scores": True}})


def test_what_would_be_no_valid_file_is_refused():
    pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    model = OperaLogisticRegression(50.0, data_norm=3.0)
    bad = make_pipeline(SCALER, PolynomialFeatures(2), model).fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match=r"float64 is no valid ONNX.*include_bias=False"):
        to_onnx(bad, dtype="float64")
    good = make_pipeline(SCALER, PolynomialFeatures(2, include_bias=False), model)
    shares = run(to_onnx(good.fit(IRIS, SPECIES), dtype="float64"), IRIS)[1]
    np.testing.assert_allclose(shares, good.predict_proba(IRIS), atol=1e-12)


class Careless(OperaLogisticRegression):
    """Predicts otherwise than its base."""

    def predict(self, X):
        return 1 - super().predict(X)


def test_what_cannot_be_exported_is_named():
    pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    plain = OperaLogisticRegression(epsilon=50.0)
    with pytest.raises(NotFittedError):
        to_onnx(plain)
    with pytest.raises(TypeError, match="Careless has no counterpart"):
        to_onnx(Careless(50.0).fit(IRIS, SPECIES))
    with pytest.raises(TypeError, match="neither a classifier nor a regressor"):
        to_onnx(SCALER.fit(IRIS))
    with pytest.raises(TypeError, match=r"RowNormClipper has no counterpart.*pipeline\[-1\]"):
        to_onnx(make_pipeline(RowNormClipper(), plain).fit(IRIS, SPECIES))
    schema = TableSchema([NumericColumn(name, 0, 8) for name in "abcd"])
    with pytest.raises(TypeError, match=r"SchemaPreprocessor has no counterpart"):
        to_onnx(schema.pipeline(plain, positions=True).fit(IRIS, SPECIES))
    with pytest.raises(ValueError, match="leaks private rows"):
        to_onnx(make_pipeline(StandardScaler(), plain).fit(IRIS, SPECIES))
    with pytest.raises(ValueError, match="labels must be strings"):
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


def test_a_card_names_no_seed_and_no_file(tmp_path):
    pytest.importorskip("skops", reason="needs skops")
    budget = BudgetAccountant(1.0, 1e-5, ledger=tmp_path / "secret.ledger")
    model = OperaLogisticRegression(0.5, random_state=8675309, accountant=budget)
    card = model_card(make_pipeline(SCALER, model).fit(IRIS, SPECIES))
    for text in (repr(card), card.render()):
        assert "8675309" not in text and "secret" not in text and str(tmp_path) not in text


def test_a_card_of_a_leaking_pipeline_promises_nothing():
    pytest.importorskip("skops", reason="needs skops")
    leaking = make_pipeline(StandardScaler(), OperaLogisticRegression()).fit(IRIS, SPECIES)
    card = model_card(leaking)
    assert "no guarantee" in card.select("Privacy/Guarantee").content
