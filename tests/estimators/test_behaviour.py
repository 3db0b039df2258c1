"""What every private classifier does for its user."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from covering import pairs
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_score
from support import ESTIMATORS, FAMILIES, rows

from skdp import (
    DPSGDClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.mechanisms import RandomStream, record_releases
from skdp.reporting import privacy_statement
from skdp.testing import FrozenStream


@pytest.mark.parametrize("estimator", [ObjectivePerturbationLogisticRegression, DPSGDClassifier])
def test_containers_give_the_same_model(estimator, table):
    X, y = table
    names = list("abcd")
    fits = [
        estimator(random_state=FrozenStream.from_seed(0)).fit(features, y)
        for features in (
            X,
            np.asfortranarray(X),
            X.tolist(),
            pd.DataFrame(X, columns=names),
            pl.DataFrame(X, schema=names),
            sparse.csr_array(X),
            sparse.csr_matrix(X),
            sparse.csc_array(X),
        )
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other.coef_, fits[0].coef_, rtol=1e-8, atol=1e-9)
    assert fits[3].feature_names_in_.tolist() == names
    single = estimator(random_state=FrozenStream.from_seed(0)).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, fits[0].coef_, rtol=1e-3, atol=1e-3)


LABELS = [["no", "yes"], [-1, 1], [False, True], [3.0, 7.0], [0, 1]]


@pytest.mark.parametrize(("estimator", "labels"), zip(FAMILIES, LABELS, strict=True))
def test_labels_of_any_kind(estimator, table, labels):
    X, y = table
    named = np.array(labels)[y]
    model = estimator(epsilon=100.0).fit(X, named)
    assert model.classes_.tolist() == sorted(labels)
    assert model.score(X, named) > 0.8
    assert set(model.predict(X)) <= set(labels)


def test_public_classes_may_be_absent_from_the_rows(estimator, table):
    X, y = table
    model = estimator(epsilon=100.0, classes=[0, 1, 2]).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2] and model.coef_.shape == (3, 4)
    only = estimator(classes=["a", "b"]).fit(X, np.full(len(y), "a"))
    assert only.classes_.tolist() == ["a", "b"]
    assert "label set classes= is public" in " ".join(only.privacy_spent_.assumptions)


@pytest.mark.parametrize(("estimator", "n_classes"), zip(FAMILIES, (4, 2, 4, 2, 4), strict=True))
def test_multi_class(estimator, n_classes):
    X, y = rows(n=2000, n_classes=n_classes)
    model = estimator(epsilon=1e4).fit(X, y)
    n_outputs = 1 if n_classes == 2 else n_classes
    assert model.coef_.shape == (n_outputs, 4) and model.intercept_.shape == (n_outputs,)
    assert model.score(X, y) > 0.85
    scores = model.decision_function(X)
    assert scores.shape == ((len(y),) if n_classes == 2 else (len(y), n_classes))


def test_probabilities(table):
    X, y = table
    for cls in ESTIMATORS:
        model = cls(epsilon=50.0).fit(X, y)
        assert hasattr(model, "predict_proba") == ("SVC" not in cls.__name__)
        if hasattr(model, "predict_proba"):
            proba = model.predict_proba(X)
            np.testing.assert_allclose(proba.sum(axis=1), 1.0)
            np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
            np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba)
    far = OperaLogisticRegression(epsilon=50.0).fit(X, y)
    far.coef_ = far.coef_ * 1e6
    assert np.all(np.isfinite(far.predict_log_proba(X)))


@pytest.mark.daily(2)
def test_spent_is_at_most_what_was_asked(estimator, table):
    for epsilon in (0.05, 1.0, 7.5):
        spent = estimator(epsilon=epsilon, delta=1e-7).fit(*table).privacy_spent_
        e, d = spent
        assert (e, d) == (spent.epsilon, spent.delta)
        assert 0.999 * epsilon <= e <= epsilon and d == 1e-7
        assert spent.delta_at(epsilon) <= 1e-7
        assert spent.epsilon_at(1e-7) <= epsilon
        assert spent.epsilon_at(1e-9) > e
        assert spent.adjacency == "replace-one" and not spent.seeded


def test_nothing_unexpected_is_released(estimator, table):
    """Every public attribute of a fit is on the list of what may be released."""
    model = estimator().fit(*table)
    parameters = set(model.get_params())
    released = {
        "coef_",
        "intercept_",
        *(("coef_std_", "intercept_std_") if "Variational" in estimator.__name__ else ()),
        "classes_",
        "privacy_spent_",
        "n_features_in_",
        "n_iter_",
        "noise_multiplier_",
        *(("calibration_",) if "calibrate" in parameters else ()),
        "_coef_noise_",
    }
    assert set(vars(model)) - parameters <= released


def test_noise_is_fresh_without_a_seed(estimator, table):
    one, other = (estimator().fit(*table) for _ in range(2))
    assert not np.any(one.coef_ == other.coef_)


def test_one_seed_never_shares_noise_between_different_fits(estimator, table):
    """A change too small to matter to the model must change the noise altogether."""
    X, y = table

    def noise(X, y, **changed):
        with record_releases() as trace:
            estimator(**{"random_state": 5, "max_iter": 30, **changed}).fit(X, y)
        release = trace.releases[0]
        return (release.output - release.value).ravel() / release.sigma

    moved, flipped = X.copy(), y.copy()
    moved[0, 0] += 1e-12
    flipped[0] = 1 - y[0]
    reference = noise(X, y)
    assert np.array_equal(noise(X, y), reference)
    for other in (
        noise(moved, y),
        noise(X, flipped),
        noise(X[:-1], y[:-1]),
        noise(X, y, epsilon=1.0 + 1e-9),
        noise(X, y, random_state=6),
        noise(sparse.csr_array(moved), y),
    ):
        assert np.min(np.abs(other - reference)) > 1e-7


def test_fit_charges_once_before_rows_are_used(estimator, table, monkeypatch):
    X, y = table
    budget = BudgetAccountant(1.0, 1e-6)

    def explode(*args, **kwargs):
        (entry,) = budget.entries()
        assert entry["label"] == f"{estimator.__name__}.fit"
        raise RuntimeError("power cut")

    monkeypatch.setattr(estimator, "_use_rows", explode)
    with pytest.raises(RuntimeError, match="power cut"):
        estimator(accountant=budget).fit(X, y)
    assert len(budget.entries()) == 1, "a charge is not refunded"


def test_clones_share_the_budget(table):
    (X, y), estimator = table, OperaLogisticRegression
    budget = BudgetAccountant(100.0, 1e-3)
    cross_val_score(estimator(accountant=budget), X, y, cv=3)
    assert len(budget.entries()) == 3
    GridSearchCV(estimator(accountant=budget), {"epsilon": [0.5, 1.0]}, cv=2).fit(X, y)
    assert len(budget.entries()) == 3 + 2 * 2 + 1


def test_rows_are_clipped_to_the_public_norm(estimator, table):
    """A row beyond the bound counts as the row of the same direction on the bound."""
    X, y = table
    longer = X.copy()
    direction = X[:50] / np.linalg.norm(X[:50], axis=1, keepdims=True)
    X[:50], longer[:50] = direction, 1e6 * direction
    one, other = (
        estimator(random_state=FrozenStream.from_seed(1)).fit(features, y)
        for features in (X, longer)
    )
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-8)


def test_units_do_not_matter(estimator, table):
    """Features and norm in other units give the same scores."""
    X, y = table
    one = estimator(random_state=FrozenStream.from_seed(1)).fit(X, y)
    other = estimator(data_norm=40.0, random_state=FrozenStream.from_seed(1)).fit(40.0 * X, y)
    np.testing.assert_allclose(
        one.decision_function(X), other.decision_function(40.0 * X), rtol=1e-6, atol=1e-8
    )


def test_without_intercept(estimator, table):
    model = estimator(fit_intercept=False).fit(*table)
    assert np.all(model.intercept_ == 0.0)


def test_progress_callbacks_see_no_rows(table):
    callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    estimator = DPSGDClassifier

    class Spy:
        seen = ()

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, *, X, y, fitted_estimator):
            self.note(estimator, X, y, fitted_estimator)

        def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
            self.note(estimator, X, y, fitted_estimator)
            return True  # a wish to stop, which must be ignored

        def note(self, estimator, *private):
            assert all(value is None for value in private)
            fitted = [name for name in vars(estimator) if name in ("coef_", "intercept_")]
            Spy.seen += (len(fitted),)

    assert isinstance(Spy(), callback.FitCallback)
    model = estimator(random_state=0).set_callbacks(Spy()).fit(*table)
    assert len(Spy.seen) >= 2
    np.testing.assert_array_equal(model.coef_, estimator(random_state=0).fit(*table).coef_)
    estimator().set_callbacks(callback.ProgressBar()).fit(*table)


def name_of_penalty(estimator):
    return "prior_precision" if "Variational" in estimator.__name__ else "alpha"


def test_noise_multiplier_sets_the_noise(table):
    X, y = table
    model = DPSGDClassifier(None, noise_multiplier=3.0, batch_size=30, max_iter=40).fit(X, y)
    assert model.noise_multiplier_ == pytest.approx(3.0) and model.n_iter_ == 40
    ceiling = model.privacy_spent_.epsilon * 1.01
    DPSGDClassifier(ceiling, noise_multiplier=3.0, batch_size=30, max_iter=40).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "alpha", "data_norm"), pairs(FAMILIES, [1e-3, 1.0, 1e10], [0.1, 30.0])
)
def test_no_penalty_makes_weights_diverge(estimator, alpha, data_norm):
    X, y = rows()
    model = estimator(epsilon=5.0, data_norm=data_norm)
    model.set_params(**{name_of_penalty(estimator): alpha})
    if "Objective" in estimator.__name__ and alpha < 1e-5 * data_norm**2:
        with pytest.raises(ValueError, match="too small for epsilon=5"):
            model.fit(data_norm * X, y)
        return
    model.fit(data_norm * X, y)
    # At the weakest penalty output perturbation is all noise, but of a known size.
    assert np.max(np.abs(model.coef_)) * data_norm < 1e6


def test_a_ceiling_on_epsilon_does_not_change_what_runs():
    X, y = rows(n=5000)
    fits = [
        DPSGDClassifier(epsilon, noise_multiplier=40.0).fit(X, y) for epsilon in (None, 5.0, 1000.0)
    ]
    assert len({model.privacy_spent_.epsilon for model in fits}) == 1
    assert len({model.n_iter_ for model in fits}) == 1


def test_a_stream_gives_every_fit_its_own_noise(estimator, table):
    X, y = table
    stream = RandomStream.from_entropy()
    one, other = (estimator(random_state=stream).fit(X, y) for _ in range(2))
    assert not np.any(one.coef_ == other.coef_)


def test_sparse_tables_of_other_widths_share_no_noise(table):
    (X, y), estimator = table, OperaLogisticRegression
    rows_ = sparse.csr_array(X)
    wider = sparse.csr_array((rows_.data, rows_.indices, rows_.indptr), shape=(len(y), 5))
    one, other = (estimator(random_state=0).fit(features, y) for features in (rows_, wider))
    assert np.min(np.abs(one.coef_ - other.coef_[:, :4])) > 1e-9


def test_workers_of_a_search_without_a_budget(table):
    search = GridSearchCV(DPSGDClassifier(), {"epsilon": [0.5, 1.0]}, cv=2, n_jobs=2).fit(*table)
    assert 0 < search.best_estimator_.privacy_spent_.epsilon <= 1.0
    assert "NO guarantee for the whole" in privacy_statement(search)


@pytest.mark.slow
def test_workers_of_a_search_cannot_overspend_a_budget(table):
    budget = BudgetAccountant(2.5, 1e-3, adjacency="add-remove", composition="basic")
    search = GridSearchCV(
        DPSGDClassifier(accountant=budget),
        {"fit_intercept": [True]},
        cv=3,
        n_jobs=2,
        error_score="raise",
    )
    with pytest.raises(BudgetExceededError):
        search.fit(*table)
    assert len(budget.entries()) == 2
