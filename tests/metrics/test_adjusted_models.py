"""Calibrators and thresholds around fitted models: what they learn, cost, say and refuse."""

import pickle
import warnings

import numpy as np
import pytest
from scikit_checks import check_settings
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from support import rows

from skdp import DPSGDClassifier, OperaLogisticRegression, OperaSVC
from skdp.budget import BudgetAccountant
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms import additive
from skdp.metrics import PrivateCalibrator, PrivateThreshold
from skdp.plans.scores import ScoreBins, ScoreTable, best_bin, fit_logistic, log_odds, smoothed
from skdp.reporting import privacy_statement
from skdp.testing import check_private_estimator

X, Y = rows(200)
SETTINGS = {"classes": [0, 1], "data_norm": 1.0, "random_state": 0}
FROZEN = FrozenEstimator(OperaLogisticRegression(**SETTINGS).fit(X, Y))


class Scores(ClassifierMixin, BaseEstimator):
    """A public model whose rows are their own log odds."""

    def __init__(self, n_classes=2):
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def predict_proba(self, X):
        if self.n_classes == 2:
            return np.c_[expit(-X[:, 0]), expit(X[:, 0])]
        return np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)

    def fit(self, X, y):
        raise AssertionError("it was given fitted")

    def __sklearn_is_fitted__(self):
        return True


def sample(n, intercept, slope, seed=0, spread=1.5):
    """Return log odds, and labels that follow a logistic curve of them."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.0, spread, n)
    return scores, (rng.random(n) < expit(intercept + slope * scores)).astype(int)


def table_of(scores, labels, sigma=0.0, seed=None, count=44):
    """Return the table of scores by label, with independent noise on its counts."""
    bins = ScoreBins.make(count, (0.5,))
    places = bins.places(expit(scores))
    counts = np.zeros((2, bins.count))
    np.add.at(counts, (labels, places), 1.0)
    if sigma:
        counts += np.random.default_rng(seed).normal(0.0, sigma, counts.shape)
    return ScoreTable(counts, sigma**2 * np.eye(counts.size), bins)


@pytest.mark.parametrize(("intercept", "slope"), [(0.0, 1.0), (-1.5, 2.5), (0.7, 0.3), (-2.0, 1.0)])
def test_without_noise_the_curve_is_a_logistic_regression(intercept, slope):
    scores, labels = sample(40_000, intercept, slope)
    found = fit_logistic(table_of(scores, labels))
    exact = LogisticRegression(C=np.inf).fit(scores[:, None], labels)
    assert found[0] == pytest.approx(exact.intercept_[0], abs=0.01)
    assert found[1] == pytest.approx(exact.coef_[0, 0], rel=0.02)
    assert fit_logistic(table_of(scores, labels), with_intercept=False)[0] == 0.0


def no_noise(monkeypatch):
    monkeypatch.setattr(additive, "discrete_gaussians", lambda stream, scale, count: [0] * count)


def test_the_calibrator_without_noise_is_near_it_too(monkeypatch):
    no_noise(monkeypatch)
    scores, labels = sample(20_000, -1.0, 2.0)
    fitted = PrivateCalibrator(FrozenEstimator(Scores())).fit(scores[:, None], labels)
    exact = LogisticRegression(C=np.inf).fit(scores[:, None], labels)
    assert fitted.slope_[0] == pytest.approx(exact.coef_[0, 0], rel=0.03)
    assert fitted.intercept_[0] == pytest.approx(exact.intercept_[0], abs=0.03)
    test = np.array([[-8.0], [0.0], [1.0]])
    expected = expit(fitted.intercept_[0] + fitted.slope_[0] * test[:, 0])
    np.testing.assert_allclose(fitted.predict_proba(test)[:, 1], expected)
    np.testing.assert_array_equal(fitted.predict(test), (expected >= 0.5).astype(int))


LOSSES = {
    "youden": lambda false, missed, n0, n1: false / n0 + missed / n1,
    "f1": lambda false, missed, n0, n1: 1.0 - 2.0 * (n1 - missed) / (2.0 * n1 - missed + false),
    "cost": lambda false, missed, n0, n1: 1.0 * false + 5.0 * missed,
}


def losses(metric, scores, labels, thresholds):
    """Return the exact loss at each threshold on log odds."""
    order = np.sort(scores[labels == 0]), np.sort(scores[labels == 1])
    n0, n1 = len(order[0]), len(order[1])
    false = n0 - np.searchsorted(order[0], thresholds)
    return LOSSES[metric](false, np.searchsorted(order[1], thresholds), n0, n1)


@pytest.mark.parametrize("metric", LOSSES)
@pytest.mark.parametrize("shape", ["logistic", "steps"])
def test_without_noise_the_threshold_is_the_best_edge(metric, shape, monkeypatch):
    no_noise(monkeypatch)
    rng = np.random.default_rng(1)
    scores, labels = sample(20_000, -2.0, 1.5)
    if shape == "steps":  # no logistic curve
        share = 0.05 + 0.4 * (scores > 1.0) + 0.4 * (scores > 3.0)
        labels = (rng.random(scores.size) < share).astype(int)
    table = table_of(scores, labels)
    edges = logit(table.bins.edges)
    chosen = edges[best_bin(smoothed(table), metric, (1.0, 5.0)) - 1]
    at_edges = losses(metric, scores, labels, edges)
    assert losses(metric, scores, labels, np.array([chosen]))[0] == at_edges.min()
    # The optimum over all thresholds lies beside an edge that is no better than the chosen one.
    best = np.sort(scores)[losses(metric, scores, labels, np.sort(scores)).argmin()]
    beside = np.searchsorted(edges, best)
    assert at_edges.min() <= min(at_edges[np.clip([beside - 1, beside], 0, edges.size - 1)])
    fitted = PrivateThreshold(FrozenEstimator(Scores()), metric=metric, costs=(1.0, 5.0))
    fitted.fit(scores[:, None], labels)
    assert abs(logit(fitted.threshold_) - chosen) < 0.5
    test = np.array([[logit(fitted.threshold_) - 0.01], [logit(fitted.threshold_) + 0.01]])
    np.testing.assert_array_equal(fitted.predict(test), [0, 1])
    np.testing.assert_array_equal(fitted.predict_proba(test), Scores().predict_proba(test))


@pytest.mark.parametrize("n", [0, 1, 30, 500])
@pytest.mark.parametrize("sigma", [0.0, 3.0, 1000.0])
def test_noise_alone_never_breaks_a_curve_or_a_choice(n, sigma):
    for seed in range(3):
        table = table_of(*sample(n, -1.0, 2.0, seed), sigma, seed, count=12)
        intercept, slope = fit_logistic(table)
        assert np.isfinite(intercept) and 0.0 < slope < np.inf
        assert np.isfinite(smoothed(table)).all()
        for metric in LOSSES:
            assert 1 <= best_bin(smoothed(table), metric, (1.0, 5.0)) < table.bins.count
        if sigma == 1000.0 and n < 500:  # noise says nothing
            assert abs(intercept) < 2.0 and np.exp(-3.0) < slope < np.exp(3.0)


def test_of_several_classes_each_is_calibrated():
    rng = np.random.default_rng(3)
    scores = rng.normal(0.0, 0.5, (6000, 3))
    shares = np.exp(3.0 * scores) / np.exp(3.0 * scores).sum(axis=1, keepdims=True)
    labels = (rng.random(6000)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1)
    model = Scores(3)
    fitted = PrivateCalibrator(FrozenEstimator(model), 1.0, random_state=0).fit(scores, labels)
    found = fitted.predict_proba(scores)
    assert fitted.slope_.shape == (3,) and (fitted.slope_ > 1.5).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    before, after = (log_loss(labels, p) for p in (model.predict_proba(scores), found))
    assert after < before - 0.1
    np.testing.assert_array_equal(fitted.predict(scores), found.argmax(axis=1))
    with pytest.raises(ValueError, match="Only binary"):
        PrivateThreshold(FrozenEstimator(model)).fit(scores, labels)


ADJUSTED = {
    "calibrator": PrivateCalibrator(FROZEN),
    "threshold": PrivateThreshold(FROZEN, metric="cost", costs=(1.0, 3.0)),
    "threshold of margins": PrivateThreshold(
        FrozenEstimator(OperaSVC(**SETTINGS).fit(X, Y)), metric="f1"
    ),
}


@pytest.mark.parametrize(
    "name",
    ["threshold", *(pytest.param(name, marks=pytest.mark.slow) for name in (*ADJUSTED,)[::2])],
)
def test_they_keep_the_rules_of_private_estimators(name):
    results = check_private_estimator(ADJUSTED[name])
    assert {result["status"] for result in results} == {"passed"}


@pytest.mark.parametrize("name", ["calibrator", "threshold"])
def test_one_charge_and_a_statement_of_both_parts(name):
    budget = BudgetAccountant(2.0, 1e-5)
    adjusted = clone(ADJUSTED[name]).set_params(accountant=budget, epsilon=0.5)
    planned = adjusted.privacy_plan(len(Y))
    fitted = adjusted.fit(X, Y)
    (entry,) = budget.entries()
    assert entry["epsilon"] == 0.5 and fitted.privacy_spent_.event == planned.event
    assert planned == fitted.privacy_spent_
    record = privacy_statement(fitted).to_dict()
    assert record["holds_for_the_whole"]
    assert [part["epsilon"] for part in record["parts"]] == pytest.approx([0.5, 1.0])
    # Both are priced together: more than each, less than their sum.
    assert 1.0 < record["guarantee"]["epsilon"] < 1.5
    assert "PrivateEvaluation of skdp.metrics" in " ".join(record["not_covered"])
    assert entry["label"] == f"{type(adjusted).__name__}.fit"
    assert entry["label"] in privacy_statement(budget)
    with pytest.raises(BudgetExceededError):
        clone(adjusted).set_params(epsilon=3.0).fit(X, Y)
    assert len(budget.entries()) == 1


def test_one_relation_of_model_and_adjustment_has_one_guarantee():
    """That of the budget without another word, and without a budget that of replaced rows."""
    classifier = DPSGDClassifier(adjacency="add-remove", random_state=0).fit(X, Y)
    model = make_pipeline(Normalizer(), classifier).fit(X, Y)
    for inner, relation in ((FROZEN, "replace-one"), (FrozenEstimator(model), "add-remove")):
        assert PrivateThreshold(inner).fit(X, Y).privacy_spent_.adjacency == "replace-one"
        fitted = PrivateThreshold(inner, adjacency=relation).fit(X, Y)
        assert fitted.privacy_spent_.adjacency == relation
        assert privacy_statement(fitted).to_dict()["guarantee"] is not None
    public = LogisticRegression().fit(X, Y)
    fitted = PrivateThreshold(public).fit(X, Y)
    assert fitted.privacy_spent_.adjacency == "replace-one"
    assert not privacy_statement(fitted).to_dict()["holds_for_the_whole"]
    # What it stands on is counted however deep it lies.
    above = PrivateThreshold(FrozenEstimator(PrivateCalibrator(FROZEN).fit(X, Y))).fit(X, Y)
    assert len(privacy_statement(FrozenEstimator(above)).to_dict()["parts"]) == 3


def test_they_are_estimators():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = OperaLogisticRegression(classes=["no", "yes"]).fit(frame, np.array(["no", "yes"])[Y])
    for cls in (PrivateCalibrator, PrivateThreshold):
        adjusted = cls(FrozenEstimator(model))
        assert not hasattr(adjusted, "n_features_in_")
        with pytest.raises(NotFittedError):
            adjusted.predict(frame)
        fitted = clone(adjusted).fit(frame, np.array(["no", "yes"])[Y])
        assert fitted.n_features_in_ == 4 and list(fitted.feature_names_in_) == list("abcd")
        assert set(fitted.predict(frame)) <= {"no", "yes"}
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(
            again.decision_function(frame), fitted.decision_function(frame)
        )
        assert 0.0 <= fitted.score(frame, np.array(["no", "yes"])[Y]) <= 1.0
    margins = clone(ADJUSTED["threshold of margins"])
    assert not hasattr(margins, "predict_proba")
    fitted = margins.fit(X, Y)
    positive = fitted.estimator_.decision_function(X) >= fitted.threshold_
    np.testing.assert_array_equal(fitted.predict(X), positive.astype(int))
    assert hasattr(PrivateCalibrator(margins.estimator), "predict_proba")


@pytest.mark.parametrize(
    ("adjusted", "message"),
    [
        (PrivateCalibrator(FROZEN, method="isotonic"), "method"),
        (PrivateCalibrator(FROZEN, epsilon=-1.0), "epsilon"),
        (PrivateCalibrator(FROZEN, n_bins=2), "n_bins"),
        (PrivateThreshold(FROZEN, metric="accuracy"), "metric"),
        (PrivateThreshold(FROZEN, metric="cost", costs=(1.0, 0.0)), "false negatives"),
        (PrivateThreshold(FROZEN, metric="cost", costs=(1.0,)), "pair"),
        (PrivateThreshold(FROZEN, adjacency="both"), "adjacency"),
    ],
)
def test_wrong_parameters_cost_nothing(adjusted, message):
    budget = BudgetAccountant(2.0, 1e-5)
    with warnings.catch_warnings(), pytest.raises(ValueError, match=message):
        warnings.simplefilter("error")
        clone(adjusted).set_params(accountant=budget).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        adjusted.privacy_plan(100)
    assert not budget.entries()


def test_models_that_are_not_fitted_are_refused():
    for model in (OperaLogisticRegression(), FrozenEstimator(OperaLogisticRegression())):
        with pytest.raises(NotFittedError, match="FrozenEstimator"):
            PrivateCalibrator(model).fit(X, Y)
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        clone(PrivateCalibrator(OperaLogisticRegression().fit(X, Y))).fit(X, Y)
    with pytest.raises(TypeError, match="pass a classifier"):
        PrivateThreshold(Normalizer().fit(X)).fit(X, Y)


class OnAnyTable:
    """For checks that give no fitted model: it trains one on the rows that it is given."""

    def fit(self, X, y):
        model = OperaLogisticRegression(1e4, data_norm=10.0, random_state=0).fit(X, y)
        parameters = self.get_params(deep=False) | {"estimator": FrozenEstimator(model)}
        adjusted = type(self).__mro__[2](**parameters, random_state=0).fit(X, y)
        vars(self).update({k: v for k, v in vars(adjusted).items() if k.endswith("_")})
        return self


class AnyCalibrator(OnAnyTable, PrivateCalibrator):
    def __init__(self, estimator=None, epsilon=1e4):
        super().__init__(estimator, epsilon)


class AnyThreshold(OnAnyTable, PrivateThreshold):
    def __init__(self, estimator=None, epsilon=1e4):
        super().__init__(estimator, epsilon)


def exceptions(adjusted):
    if isinstance(adjusted, AnyCalibrator):
        return {}
    reason = "a threshold changes predictions and no probabilities, as in FixedThresholdClassifier"
    return {"check_classifiers_train": reason}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@check_settings(
    [AnyCalibrator(OperaLogisticRegression()), AnyThreshold(OperaLogisticRegression())],
    elsewhere=[AnyThreshold],  # whose names, tags and errors are those of their base
    expected_failed_checks=exceptions,
    xfail_strict=False,  # with some types of rows both agree
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_scores_of_zero_and_one_have_log_odds():
    found = log_odds(np.array([0.0, 0.5, 1.0]))
    assert np.isfinite(found).all() and found[1] == 0.0 and found[2] == pytest.approx(-found[0])
