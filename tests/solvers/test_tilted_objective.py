"""Objectives with a linear term and with clipped losses."""

import numpy as np
import pytest
from covering import pairs
from scipy import sparse

from skdp.losses import ClippedLoss, LogisticLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.solvers import RegularisedObjective, Rows, minimise

LOSSES = [
    LogisticLoss(),
    ClippedLoss(LogisticLoss(), 0.2),
    ClippedLoss(SmoothedHingeLoss(0.5), 0.3),
    ClippedLoss(SmoothedHingeLoss(0.02), 0.3),
]
losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)
LAYOUTS = [np.asarray, lambda X: X.astype(np.float32), sparse.csr_matrix]
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def problem(loss, layout, n=300, d=6, penalty=0.02):
    rng = np.random.default_rng(7)
    X = layout(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7))
    rows = Rows.from_matrix(X, np.where(rng.random(n) < 0.4, 1, -1).astype(np.int8), 3.0, 0.4)
    tilt = rng.normal(size=d + 1) * 0.1
    return RegularisedObjective(rows, loss, penalty, tilt), rng.normal(size=d + 1)


@losses
@layouts
def test_gradient_is_the_slope_of_the_value(loss, layout):
    objective, weights = problem(loss, layout)
    value, gradient = objective.value_and_gradient(weights)
    np.testing.assert_array_equal(objective.gradient(weights), gradient)
    for j, unit in enumerate(np.eye(weights.size)):
        step = 1e-6
        ends = [objective.value_and_gradient(weights + s * step * unit)[0] for s in (1, -1)]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(gradient[j], abs=2e-8)
    part = np.arange(0, 300, 5)
    plain = RegularisedObjective(objective.rows, loss, 0.02)
    np.testing.assert_allclose(
        objective.gradient(weights, part) - plain.gradient(weights, part), objective.tilt
    )
    shift = value - plain.value_and_gradient(weights)[0]
    assert shift == pytest.approx(float(objective.tilt @ weights))


@losses
@layouts
def test_hessian_leaves_clipped_rows_out(loss, layout):
    objective, weights = problem(loss, layout)
    weights *= 0.3
    hessian = objective.hessian(weights)
    assert np.linalg.eigvalsh(hessian)[-1] <= objective.smoothness * (1 + 1e-12)
    np.testing.assert_allclose(
        objective.hessian_operator(weights)(weights), hessian @ weights, atol=1e-12
    )
    if getattr(loss, "half_width", 1.0) < 0.1:
        return  # rows cross the kinks within any difference quotient
    for j, unit in enumerate(np.eye(weights.size)):
        step = 1e-6
        ends = [objective.gradient(weights + s * step * unit) for s in (1, -1)]
        # Rows that cross a joint within the step change a column a little.
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), hessian[:, j], atol=5e-3)


@pytest.mark.parametrize(
    ("loss", "layout", "size", "method"),
    pairs(LOSSES, LAYOUTS, [0.0, 1.0, 1e3], ["newton", "lbfgs"]),
)
def test_minimisers_reach_the_tolerance_whatever_the_tilt(loss, layout, method, size):
    objective, _ = problem(loss, layout)
    tilted = RegularisedObjective(objective.rows, loss, 0.02, size * objective.tilt)
    tolerance = max(1e-10, tilted.smallest_tolerance())
    found = minimise(tilted, tolerance, method=method)
    assert np.linalg.norm(tilted.gradient(found)) <= tolerance


def test_a_longer_tilt_asks_for_a_larger_tolerance():
    objective, _ = problem(LogisticLoss(), lambda X: X)
    longer = RegularisedObjective(objective.rows, objective.loss, 0.02, 1e6 * objective.tilt)
    assert longer.smallest_tolerance() > 10 * objective.smallest_tolerance()


@losses
@pytest.mark.parametrize("penalty", [1e3, 1e8])
def test_the_least_tolerance_is_within_reach_where_the_penalty_undoes_a_long_tilt(loss, penalty):
    """Both are rounded; a tolerance below that would keep the solver busy for ever."""
    objective, _ = problem(loss, lambda X: X)
    tilted = RegularisedObjective(objective.rows, loss, penalty, 1e9 * objective.tilt)
    tolerance = tilted.smallest_tolerance()
    assert tolerance >= 16 * np.finfo(float).eps * np.linalg.norm(tilted.tilt)
    assert np.linalg.norm(tilted.gradient(minimise(tilted, tolerance))) <= tolerance


def test_easier_losses_keep_the_tilt():
    objective, _ = problem(LOSSES[3], lambda X: X)
    for easier in objective.loss.smoother_losses():
        other = objective.with_loss(easier)
        assert other.tilt is objective.tilt and other.loss.clip == objective.loss.clip


def test_tilt_must_have_the_shape_of_the_weights():
    objective, _ = problem(LogisticLoss(), lambda X: X)
    with pytest.raises(ValueError, match="tilt must have shape"):
        RegularisedObjective(objective.rows, objective.loss, 0.1, np.ones(3))


def test_softmax_objectives_can_be_tilted_too():
    rng = np.random.default_rng(1)
    rows = Rows.from_matrix(
        rng.standard_normal((50, 3)), rng.integers(0, 3, 50).astype(np.int32), 3.0
    )
    objective = RegularisedObjective(rows, SoftmaxLoss(3), 0.1, 0.3 * rng.standard_normal(9))
    found = minimise(objective, 1e-10)
    assert np.linalg.norm(objective.gradient(found)) <= 1e-10
