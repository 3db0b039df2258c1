"""The tolerance is met on every data set, and the minimum is the right one."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from skdp.losses import LogisticLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.solvers import RegularisedObjective, Rows, _newton, minimise, sum_gradients

MARGIN_LOSSES = [LogisticLoss(), SmoothedHingeLoss(0.5), SmoothedHingeLoss(0.01)]


def gradient_norm(objective, weights, reference, X, data_norm, intercept_value):
    """Return the norm of the gradient by plain numpy."""
    A = reference.augmented(X, data_norm, intercept_value)
    targets = objective.rows.targets
    gradients = reference.per_example(A, objective.loss, targets, weights)[1]
    return np.linalg.norm(gradients.mean(axis=0) + objective.penalty * weights)


def adversarial_problems():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))
    labels = rng.choice([-1, 1], 150).astype(np.int8)
    apart = np.where(X @ rng.normal(size=12) > 0, 1, -1).astype(np.int8)
    return {
        "random": (X, labels),
        "separable": (X, apart),
        "all zero rows": (np.zeros_like(X), labels),
        "equal rows": (np.tile(X[0], (150, 1)), labels),
        "one row": (X[:1], labels[:1]),
        "collinear": (np.column_stack([X, X + 1e-9 * rng.normal(size=X.shape)]), apart),
        "more columns than rows": (rng.normal(size=(20, 90)), labels[:20]),
        "one label": (X, np.ones(150, np.int8)),
        "huge rows": (X * 10.0 ** rng.uniform(-200, 200, (150, 1)), labels),
        "tied at the joint": (np.repeat([[1.0], [-1.0]], 75, axis=0), np.ones(150, np.int8)),
    }


PROBLEMS = adversarial_problems()


@pytest.mark.daily(18)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=repr)
@pytest.mark.parametrize("method, max_iter", [("newton", 100), ("newton", 0), ("lbfgs", 3)])
def test_tolerance_is_met_whatever_the_data(name, loss, method, max_iter, reference):
    X, labels = PROBLEMS[name]
    rows = Rows.from_matrix(X, labels, 3.0, 0.5)
    for penalty, smallest in itertools.product((1e2, 1e-3, 1e-8), (False, True)):
        objective = RegularisedObjective(rows, loss, penalty)
        tolerance = objective.smallest_tolerance() if smallest else 1e-6
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            weights = minimise(objective, tolerance, method=method, max_iter=max_iter)
        # Plain numpy sums in another order; that may add its own rounding.
        reached = gradient_norm(objective, weights, reference, X, 3.0, 0.5)
        assert reached <= tolerance
        assert np.linalg.norm(weights) <= (
            loss.minimiser_norm_bound(objective.rows.row_norm_bound, penalty) + tolerance / penalty
        )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    penalty=st.floats(-8, 2).map(lambda x: 10.0**x),
    tolerance=st.floats(-12, -2).map(lambda x: 10.0**x),
    loss=st.sampled_from([*MARGIN_LOSSES, SoftmaxLoss(3)]),
    is_sparse=st.booleans(),
)
def test_tolerance_is_met_on_random_problems(seed, penalty, tolerance, loss, is_sparse):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 60, 2)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-6, 3, d)
    X *= rng.random(X.shape) < rng.random()
    if loss.n_outputs == 1:
        targets = rng.choice([-1, 1], n).astype(np.int8)
    else:
        targets = rng.integers(0, loss.n_outputs, n)
    rows = Rows.from_matrix(sparse.csr_matrix(X) if is_sparse else X, targets, 1.0, 0.3)
    objective = RegularisedObjective(rows, loss, penalty)
    tolerance = max(tolerance, objective.smallest_tolerance())
    weights = minimise(objective, tolerance)
    total = np.zeros(objective.n_weights)
    sum_gradients(rows, loss, weights, total)
    assert np.linalg.norm(total / n + penalty * weights) <= tolerance


@pytest.mark.slow
@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothedHingeLoss(0.5)])
def test_wide_sparse_rows(loss):
    rng = np.random.default_rng(1)
    X = sparse.random(300, 50_000, 2e-3, format="csr", random_state=0, dtype=np.float64)
    rows = Rows.from_matrix(X, rng.choice([-1, 1], 300).astype(np.int8), 1.0, 0.5)
    for penalty in (1e-2, 1e-6):
        objective = RegularisedObjective(rows, loss, penalty)
        for method in ("newton", "lbfgs"):
            weights = minimise(objective, 1e-9, method=method)
            assert np.linalg.norm(objective.gradient(weights)) <= 1e-9


@pytest.mark.daily(2)
@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothedHingeLoss(0.5)])
@pytest.mark.parametrize("order", ["random", "sorted", "periodic"])
def test_samples_of_many_rows_mislead_no_one(loss, order):
    # Samples of the rows are taken evenly: here they see rows unlike the rest.
    rng = np.random.default_rng(2)
    n = 90_000
    X = rng.normal(size=(n, 3))
    labels = np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1).astype(np.int8)
    if order == "sorted":
        turn = np.argsort(labels * X[:, 0])
        X, labels = X[turn], labels[turn]
    if order == "periodic":
        seen = np.linspace(0, n - 1, 10_000).astype(int)
        X[seen] = 0.0
    objective = RegularisedObjective(Rows.from_matrix(X, labels, 2.0, 0.5), loss, 1e-4)
    for method in ("newton", "lbfgs"):
        weights = minimise(objective, 1e-11, method=method)
        assert np.linalg.norm(objective.gradient(weights)) <= 1e-11


def test_binary_minimiser_equals_scikit_learn():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 6))
    labels = np.where(X @ rng.normal(size=6) + rng.normal(size=500) > 0, 1, -1).astype(np.int8)
    X /= np.linalg.norm(X, axis=1).max()
    for alpha in (1e-3, 1e-1):
        model = LogisticRegression(
            C=1 / (500 * alpha), fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cg"
        ).fit(X, labels)
        for matrix in (X, sparse.csr_matrix(X)):
            objective = RegularisedObjective(
                Rows.from_matrix(matrix, labels, 1.0), LogisticLoss(), alpha
            )
            for method in ("newton", "lbfgs"):
                weights = minimise(objective, 1e-11, method=method)
                np.testing.assert_allclose(weights, model.coef_[0], rtol=1e-6, atol=1e-8)


def test_softmax_minimiser_equals_scikit_learn():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 5))
    codes = np.argmax(X[:, :3] + rng.normal(size=(400, 3)), axis=1)
    X /= np.linalg.norm(X, axis=1).max()
    model = LogisticRegression(C=1 / 4.0, fit_intercept=False, tol=1e-12, max_iter=10_000)
    model.fit(X, codes)
    objective = RegularisedObjective(Rows.from_matrix(X, codes, 1.0), SoftmaxLoss(3), 1e-2)
    weights = minimise(objective, 1e-11)
    np.testing.assert_allclose(weights.reshape(3, 5), model.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=repr)
def test_margin_minimisers_equal_scipy(loss, reference):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 4))
    labels = rng.choice([-1, 1], 120).astype(np.int8)
    A = reference.augmented(X, 2.0, 0.5)

    def value_and_gradient(weights):
        values, gradients = reference.per_example(A, loss, labels, weights)
        return (
            values.mean() + 0.005 * weights @ weights,
            gradients.mean(axis=0) + 0.01 * weights,
        )

    best = minimize(
        value_and_gradient,
        np.zeros(5),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 0, "gtol": 1e-12, "maxiter": 100_000, "maxfun": 100_000},
    ).x
    rows = Rows.from_matrix(X, labels, 2.0, 0.5)
    weights = minimise(RegularisedObjective(rows, loss, 0.01), 1e-11)
    np.testing.assert_allclose(weights, best, atol=1e-7)


def test_public_mistakes_are_refused():
    rows = Rows.from_matrix(np.ones((3, 2)), np.ones(3, np.int8), 1.0)
    objective = RegularisedObjective(rows, LogisticLoss(), 1e-3)
    with pytest.raises(ValueError, match="method"):
        minimise(objective, 1e-6, method="sag")
    with pytest.raises(ValueError, match="tolerance"):
        minimise(objective, 1e-14)
    with pytest.raises(ValueError, match="tolerance"):
        minimise(objective, float("nan"))
    with pytest.raises(ValueError, match="penalty"):
        minimise(RegularisedObjective(rows, LogisticLoss(), 0.0), 1e-6)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=repr)
def test_gradients_alone_meet_the_tolerance_in_the_steps_that_are_proved(
    name, loss, reference, monkeypatch
):
    X, labels = PROBLEMS[name]
    rows = Rows.from_matrix(X, labels, 3.0, 0.5)
    monkeypatch.setattr(_newton, "_MORE_STEPS", 0)
    for penalty in (1e2, 1e-2):
        objective = RegularisedObjective(rows, loss, penalty)
        weights = minimise(objective, 1e-6, max_iter=0)
        assert gradient_norm(objective, weights, reference, X, 3.0, 0.5) <= 1e-6


class Restless(RegularisedObjective):
    """An objective that is another one each time it is asked, as of rows that change."""

    seed = 0

    def gradient(self, weights, index=None):
        self.seed += 1
        found = super().gradient(weights, index)
        return found + np.random.default_rng(self.seed).normal(size=found.size)


@pytest.mark.parametrize("method", ["newton", "lbfgs"])
def test_an_objective_without_a_minimum_ends_in_a_general_error(method):
    rows = Rows.from_matrix(*PROBLEMS["random"], 3.0)
    objective = Restless(rows, LogisticLoss(), 0.1)
    with pytest.raises(RuntimeError, match="within the steps that its theorem allows"):
        minimise(objective, 1e-6, method=method)
    assert objective.seed < 10**6
