"""Calibration, thresholds and figures of private rows: leaks by name, and what is free."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import RFECV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from support import rows

from skdp import OperaLogisticRegression
from skdp.model_selection import PrivateGridSearchCV
from skdp.reporting import privacy_statement
from skdp.statistics import private_count, private_histogram, private_mean, private_top_k

X, Y = rows(120)
BASE = OperaLogisticRegression()
FITTED = OperaLogisticRegression().fit(X, Y)


def calibrate(model, **options):
    return CalibratedClassifierCV(model, **{"cv": 2} | options)


def tune(model, **options):
    return TunedThresholdClassifierCV(model, **{"cv": 2, "thresholds": 4} | options)


LEAKING = {
    "calibration": calibrate(BASE),
    "one curve for all folds": calibrate(BASE, ensemble=False),
    "calibration of a frozen model": calibrate(FrozenEstimator(FITTED)),
    "a pipeline that ends in it": make_pipeline(Normalizer(), calibrate(BASE)),
    "calibration of a pipeline": calibrate(make_pipeline(Normalizer(), BASE)),
    "a fixed threshold on it": FixedThresholdClassifier(calibrate(BASE)),
    "a frozen one": FrozenEstimator(calibrate(BASE).fit(X, Y)),
    "in a search": GridSearchCV(calibrate(BASE), {}, cv=KFold(2)),
    "threshold": tune(BASE),
    "threshold, scores kept": tune(BASE, store_cv_results=True),
    "threshold of a fitted model": tune(FITTED, cv="prefit", refit=False),
    "threshold of a frozen model": tune(FrozenEstimator(FITTED)),
    "threshold, in a pipeline": make_pipeline(Normalizer(), tune(BASE)),
    "threshold, in a search": GridSearchCV(tune(BASE), {}, cv=KFold(2)),
}


@pytest.mark.parametrize("name", LEAKING)
def test_what_is_fitted_to_rows_without_noise_leaks_and_has_a_twin(name):
    record = privacy_statement(LEAKING[name].fit(X, Y)).to_dict()
    twin = "PrivateThreshold" if "threshold" in name.split(",")[0][:9] else "PrivateCalibrator"
    leaks = [part for part in record["parts"] if part["kind"] == "leaking"]
    assert any(f"skdp.metrics.{twin} around" in part["remedy"] for part in leaks)
    assert not record["holds_for_the_whole"]
    assert any(part["kind"] == "private" for part in record["parts"])


@pytest.mark.parametrize("frozen", [False, True])
def test_a_public_threshold_is_free(frozen):
    model = FrozenEstimator(FITTED) if frozen else BASE
    fitted = FixedThresholdClassifier(model, threshold=0.3).fit(X, Y)
    record = privacy_statement(fitted).to_dict()
    assert record["holds_for_the_whole"]
    assert record["guarantee"]["epsilon"] == pytest.approx(1.0)
    assert [part["estimator"] for part in record["parts"]] == ["OperaLogisticRegression"]
    # A search plans fits by their parameters, and does not look into this wrapper.
    with pytest.raises(ValueError, match="put it around the fitted model"):
        PrivateGridSearchCV(FixedThresholdClassifier(BASE), {}).fit(X, Y)


def test_a_fixed_threshold_vouches_for_nothing_inside():
    inside = make_pipeline(Normalizer(), OperaLogisticRegression())
    fitted = FixedThresholdClassifier(inside).fit(X, Y)
    assert privacy_statement(fitted).to_dict()["holds_for_the_whole"]
    careless = FixedThresholdClassifier(GridSearchCV(BASE, {}, cv=2)).fit(X, Y)
    assert not privacy_statement(careless).to_dict()["holds_for_the_whole"]


def test_scores_of_folds_do_not_make_a_search():
    fitted = RFECV(OperaLogisticRegression(), cv=2, min_features_to_select=3).fit(X, Y)
    record = privacy_statement(fitted).to_dict()
    assert record["kind"] == "fit" and not record["holds_for_the_whole"]


def test_figures_of_private_rows_are_named():
    for released in (FITTED, private_count(Y == 1, epsilon=1.0)):
        said = " ".join(privacy_statement(released).to_dict()["not_covered"])
        for name in (
            "model.score(X_test, y_test)",
            "cross-validation scores",
            "permutation importance",
            "ScoringMonitor",
            "CalibratedClassifierCV",
            "TunedThresholdClassifierCV",
            "PrivateEvaluation",
        ):
            assert name in said


def test_scoring_monitor_sees_nothing_of_a_private_fit():
    monitors = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    monitor = monitors.ScoringMonitor(scoring="accuracy")
    OperaLogisticRegression().set_callbacks(monitor).fit(X, Y)
    with pytest.raises(ValueError, match="No scores were computed"):
        monitor.get_logs()


def test_results_have_statements():
    column = ["a", "b", "a", "c"] * 30
    results = (
        private_count(X[:, 0] > 0, epsilon=0.25),
        private_histogram(column, categories=["a", "b", "c"], epsilon=0.25),
        private_top_k(column, categories=["a", "b", "c"], k=1, epsilon=0.25),
        private_mean(X[:, 0], lower=-1.0, upper=1.0, epsilon=0.25),
    )
    for result in results:
        statement = privacy_statement(result, unit="patient", rows_per_unit=2)
        record = statement.to_dict()
        assert record["kind"] == "result" and record["holds_for_the_whole"]
        assert record["guarantee"]["epsilon"] == pytest.approx(result.privacy_spent_.epsilon)
        assert record["parts"][0]["name"] == "result" and type(result).__name__ in statement
        assert record["guarantee"]["of_the_unit"]["epsilon"] > 0.25
        assert statement._repr_html_() and not np.isnan(record["guarantee"]["epsilon"])
