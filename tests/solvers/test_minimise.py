"""The tolerance is met on every data set, and the minimum is the right one."""

import itertools
import warnings

import numpy as np
import pytest
from covering import pairs
from sklearn.linear_model import LogisticRegression

from skdp.losses import LogisticLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.solvers import RegularisedObjective, Rows, minimise, minimisers

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


@pytest.mark.daily(15)
@pytest.mark.parametrize(
    ("name", "loss", "solver"),
    pairs(list(PROBLEMS), MARGIN_LOSSES, [("newton", 100), ("newton", 0), ("lbfgs", 3)]),
)
def test_tolerance_is_met_whatever_the_data(name, loss, solver, reference):
    (X, labels), (method, max_iter) = PROBLEMS[name], solver
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


@pytest.mark.parametrize(
    ("order", "loss"), [("sorted", LogisticLoss()), ("periodic", SmoothedHingeLoss(0.5))]
)
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


@pytest.mark.parametrize(("name", "loss"), zip(PROBLEMS, 4 * MARGIN_LOSSES, strict=False))
def test_gradients_alone_meet_the_tolerance_in_the_steps_that_are_proved(
    name, loss, reference, monkeypatch
):
    X, labels = PROBLEMS[name]
    rows = Rows.from_matrix(X, labels, 3.0, 0.5)
    monkeypatch.setattr(minimisers, "_MORE_STEPS", 0)
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


class _Steady:
    """Counts gradients, which never change: no objective has them."""

    def __init__(self, smoothness, penalty, norm):
        self.smoothness, self.penalty, self.norm, self.asked = smoothness, penalty, norm, 0

    def gradient(self, weights, rows):
        self.asked += 1
        return np.array([self.norm])


@pytest.mark.parametrize("norm", [1.0, 1e6])
@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-4])
def test_last_resort_takes_the_steps_of_its_theorem_and_no_more(ratio, norm):
    # Section 2 of docs/proofs/output_perturbation.md: N = ln(8 g^2 / (q^1.5 tau^2)) / sqrt q.
    objective, target = _Steady(4.0, 4.0 * ratio, norm), 1e-3
    with pytest.raises(RuntimeError, match="was not found within the steps"):
        minimisers._descend(objective, np.zeros(1), target, None)
    wanted = np.log(8.0 * norm**2 / (ratio**1.5 * target**2)) / np.sqrt(ratio)
    assert wanted <= objective.asked - 1 <= wanted + 3
