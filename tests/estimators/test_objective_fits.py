"""Objective perturbation estimators: what they minimise and say, and an audit of many runs."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from support import distance, rows

from skdp import ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC
from skdp.accounting import ObjectivePerturbationEvent
from skdp.mechanisms import analytic_gaussian_sigma, record_releases
from skdp.reporting import privacy_statement
from skdp.testing import FrozenStream

BOTH = (ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC)
both = pytest.mark.parametrize("cls", BOTH)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_regression_equals_scikit_learn_when_noise_is_negligible(n_classes):
    X, y = rows(n=20_000, n_classes=n_classes)
    alpha = 0.01
    model = ObjectivePerturbationLogisticRegression(
        1e9, 1e-5, alpha=alpha, max_grad_norm=None, fit_intercept=False, calibrate=None
    ).fit(X, y)
    for k in range(model.coef_.shape[0]):
        target = y if n_classes == 2 else (y == k).astype(int)
        peer = LogisticRegression(
            C=1 / (alpha * len(y)), fit_intercept=False, tol=1e-10, max_iter=10_000
        ).fit(X, target)
        np.testing.assert_allclose(model.coef_[k], peer.coef_[0], rtol=0, atol=3e-4)


def clipped_logistic(margins, caps):
    joint = np.maximum(margins, np.log((1 - caps) / caps))
    return np.logaddexp(0.0, -joint) + caps * (joint - margins)


def clipped_hinge(margins, caps, h=0.5):
    joint = np.maximum(margins, 1 + h - 2 * h * caps)
    gap = 1 - joint
    value = np.where(gap < -h, 0.0, gap**2 / (4 * h) + gap / 2 + h / 4)
    return value + caps * (joint - margins)


@pytest.mark.parametrize(
    ("cls", "loss"), list(zip(BOTH, (clipped_logistic, clipped_hinge), strict=True))
)
def test_clipped_objective_is_the_one_stated(cls, loss):
    """In the user's units, with an intercept and rows of all lengths, some beyond the bound."""
    X, y = rows(n=4_000)
    X *= 3.0 * np.random.default_rng(1).uniform(0.1, 1.2, size=(4_000, 1))
    alpha, scaling, clip, norm = 2.0, 1.5, 0.8, 2.5
    model = cls(
        1e8, 1e-3, data_norm=norm, alpha=alpha, intercept_scaling=scaling, max_grad_norm=clip
    )
    if "calibrate" in model.get_params():
        model.set_params(calibrate=None)
    model.fit(X, y)
    A = X * np.minimum(1.0, norm / np.linalg.norm(X, axis=1))[:, None]
    A = np.column_stack([A, np.full(len(y), scaling)])
    caps = np.minimum(clip / np.linalg.norm(A, axis=1), 1.0 - 1e-12)

    def value(w):
        return np.mean(loss((2 * y - 1) * (A @ w), caps)) + alpha / 2 * w @ w

    best = minimize(value, np.zeros(5), options={"gtol": 1e-8}).x
    np.testing.assert_allclose(model.coef_[0], best[:-1], rtol=0, atol=3e-5)
    np.testing.assert_allclose(model.intercept_, scaling * best[-1], rtol=0, atol=5e-5)


@both
def test_solvers_agree(cls):
    X, y = rows(n=500)
    fits = [
        cls(solver=solver, random_state=FrozenStream.from_seed(4)).fit(X, y)
        for solver in ("newton", "lbfgs")
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-4)


def test_auto_means_numbers_that_are_public():
    """Two tables of the same shape get the same plan, whatever their rows."""
    X, y = rows()
    events = {
        ObjectivePerturbationLogisticRegression().fit(table, y).privacy_spent_.event
        for table in (X, 0.0 * X, -X)
    }
    assert len(events) == 1
    event = ObjectivePerturbationLogisticRegression().privacy_plan(len(y), 4).event
    assert events == {event} and isinstance(event, ObjectivePerturbationEvent)


def test_clipping_and_its_absence_show_in_the_record():
    def event(cls, value):
        return cls(max_grad_norm=value).privacy_plan(1000, 4).event

    for cls, slope in zip(BOTH, ("logistic", "known-sign"), strict=True):
        assert event(cls, None).slope == slope
        assert event(cls, 10.0) == event(cls, None), "longer than any gradient"
        assert event(cls, 0.1).slope == "known-sign"
    assert event(BOTH[0], "auto").slope == "known-sign"
    assert event(BOTH[1], "auto") == event(BOTH[1], None)


@both
def test_multi_class_fits_are_one_event_and_beat_a_split_budget(cls):
    X, y = rows(n=2000, n_classes=4)
    model = cls(delta=1e-5).fit(X, y)
    event = model.privacy_spent_.event
    assert event.outputs == 4
    split = cls(epsilon=0.25, delta=0.25e-5, classes=[0, 1]).privacy_plan(2000, 4).event
    assert event.noise_multiplier < 0.75 * split.noise_multiplier
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(X[:50])
        scores = 1 / (1 + np.exp(-model.decision_function(X[:50])))
        np.testing.assert_allclose(proba, scores / scores.sum(axis=1, keepdims=True))


@both
def test_statement_and_record(cls):
    X, y = rows()
    model = cls(0.7, 1e-5).fit(X, y)
    statement = privacy_statement(model)
    for words in ("objective perturbation", "replace-one", "0.7", "linear term"):
        assert words in statement
    spent = model.privacy_spent_
    assert spent.epsilon == 0.7 and spent.delta_at(0.7) <= 1e-5
    assert spent.epsilon_at(1e-7) > 0.7
    assert spent.delta_at(1.5) < 1e-6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_grad_norm": 0.0}, "max_grad_norm"),
        ({"max_grad_norm": -1.0}, "max_grad_norm"),
        ({"max_grad_norm": 1e-9}, "max_grad_norm / data_norm"),
        ({"solver": "gd"}, "solver must be one of 'newton'"),
        ({"max_iter": 0}, "max_iter"),
        ({"alpha": 0.0}, "too small"),
        ({"alpha": 1e-6, "epsilon": 0.1}, "alpha must exceed"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ObjectivePerturbationSVC(**parameters).fit(*rows())


def test_neither_the_tilt_nor_a_gradient_leaves_the_fit():
    X, y = rows()
    with record_releases() as trace:
        model = ObjectivePerturbationLogisticRegression().fit(X, y)
    assert [release.label for release in trace.releases] == ["weights"]
    np.testing.assert_allclose(model.coef_[0], trace.releases[0].output[:-1])
    assert "tilt" not in "".join(vars(model)) and not hasattr(model, "n_iter_")


# Audits: the best threshold test between worst-case neighbours, fixed in advance.


def worst_pair(n):
    """All but one record are zero; that one is turned round. Steep slopes either way."""
    X = np.zeros((n, 1))
    X[0] = 1.0
    return X, -X


def scores_of(estimator, tables, runs):
    y = np.ones(len(tables[0]), dtype=int)
    return [np.array([estimator.fit(X, y).coef_[0, 0] for _ in range(runs)]) for X in tables]


def test_audit_in_short():
    """Where the hinge is a straight line the neighbours are two normals at the claim's distance.

    Of 120 fits of each: a false alarm below 1e-6, half or twice the noise passes below 1e-6.
    """
    epsilon, delta = 20.0, 0.05
    estimator = ObjectivePerturbationSVC(
        epsilon, delta, alpha=10.0, fit_intercept=False, classes=[0, 1]
    )
    found = distance(*scores_of(estimator, worst_pair(10), 120))
    assert 0.7 < found * analytic_gaussian_sigma(epsilon, delta) < 1.4
