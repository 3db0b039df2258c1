"""Values, gradients and Hessians of the regularised objective."""

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import LogisticLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.solvers import RegularisedObjective, Rows

LOSSES = [LogisticLoss(), SmoothedHingeLoss(0.5), SoftmaxLoss(3)]
losses = pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)


def problem(loss, layout, make_targets, n=120, d=7, penalty=0.03):
    rng = np.random.default_rng(11)
    X = layout(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7))
    targets = make_targets(loss, n, rng)
    rows = Rows.from_matrix(X, targets, 2.0, 0.6)
    weights = rng.normal(size=rows.n_weights(loss.n_outputs))
    return X, targets, RegularisedObjective(rows, loss, penalty), weights


@losses
def test_value_and_gradient_are_means_plus_penalty(loss, layout, reference, make_targets):
    X, targets, objective, weights = problem(loss, layout, make_targets)
    A = reference.augmented(X, 2.0, 0.6)
    values, gradients = reference.per_example(A, loss, targets, weights)
    value, gradient = objective.value_and_gradient(weights)
    assert value == pytest.approx(values.mean() + 0.015 * weights @ weights, rel=1e-12)
    expected = gradients.mean(axis=0) + 0.03 * weights
    np.testing.assert_allclose(gradient, expected, atol=1e-13)
    np.testing.assert_allclose(objective.gradient(weights), expected, atol=1e-13)
    part = np.arange(0, 120, 7)
    np.testing.assert_allclose(
        objective.gradient(weights, part), gradients[part].mean(axis=0) + 0.03 * weights, atol=1e-13
    )


@losses
def test_hessian_is_the_slope_of_the_gradient(loss, layout, make_targets):
    _, _, objective, weights = problem(loss, layout, make_targets)
    hessian = objective.hessian(weights)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-16)
    assert np.linalg.eigvalsh(hessian)[0] >= 0.03 * (1 - 1e-9)
    assert np.linalg.eigvalsh(hessian)[-1] <= objective.smoothness * (1 + 1e-12)
    step = 1e-7
    for j in range(weights.size):
        moved = np.zeros_like(weights)
        moved[j] = step
        column = (objective.gradient(weights + moved) - objective.gradient(weights - moved)) / (
            2 * step
        )
        # Rows that cross a joint of the hinge within the step change a column by 1/n at most.
        np.testing.assert_allclose(
            column, hessian[:, j], atol=9e-3 if isinstance(loss, SmoothedHingeLoss) else 2e-8
        )


@losses
def test_products_with_the_hessian_do_not_need_it(loss, layout, make_targets):
    _, _, objective, weights = problem(loss, layout, make_targets)
    vector = np.random.default_rng(0).normal(size=weights.size)
    product = objective.hessian_operator(weights)(vector)
    np.testing.assert_allclose(product, objective.hessian(weights) @ vector, atol=1e-13)
    part = np.arange(5, 50)
    np.testing.assert_allclose(
        objective.hessian_operator(weights, part)(vector),
        objective.hessian(weights, part) @ vector,
        atol=1e-13,
    )


def test_blocks_do_not_change_the_hessian(make_targets):
    loss = LogisticLoss()
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40_000, 3))
    targets = make_targets(loss, 40_000, rng)
    weights = rng.normal(size=4)
    dense = RegularisedObjective(Rows.from_matrix(X, targets, 2.0, 0.5), loss, 0.1)
    other = Rows.from_matrix(sparse.csr_matrix(X), targets, 2.0, 0.5)
    # Dense rows come in blocks of 16,384, sparse ones too, but both end in a shorter block.
    np.testing.assert_allclose(
        dense.hessian(weights), RegularisedObjective(other, loss, 0.1).hessian(weights), rtol=1e-12
    )


def test_constants_and_checks():
    rows = Rows.from_matrix(np.ones((3, 2)), np.ones(3, np.int8), 1.0, 1.0)
    objective = RegularisedObjective(rows, LogisticLoss(), 0.25)
    assert objective.smoothness == pytest.approx(0.75)
    assert 1e-12 <= objective.smallest_tolerance() < 2e-12
    with pytest.raises(ValueError, match="penalty"):
        RegularisedObjective(rows, LogisticLoss(), -1.0)
    with pytest.raises(ValueError, match="labels"):
        RegularisedObjective(rows, SoftmaxLoss(2), 1.0)
    empty = Rows.from_matrix(np.ones((0, 2)), np.ones(0, np.int8), 1.0)
    with pytest.raises(ValueError, match="at least one row"):
        RegularisedObjective(empty, LogisticLoss(), 1.0)
