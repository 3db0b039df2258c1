"""Rows with weights: sums, values, Hessians and steps against plain numpy, row by row."""

import math

import numpy as np
import pytest

from skdp.losses import ClippedLoss, LogisticLoss, SoftmaxLoss
from skdp.losses.wrapped import WeightedLoss
from skdp.models import LinearModel, NetworkModel
from skdp.solvers import RegularisedObjective, Rows, minimise, sum_gradients

losses = pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(4)], ids=["one", "several"])
N, D = 333, 13


def table(loss, layout=lambda X: X, make_targets=None, seed=5, n=N, d=D):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6) * 10 ** rng.uniform(-2, 1, (n, 1))
    targets = make_targets(loss, n, rng)
    shares = rng.uniform(0.0, 3.0, n) * (rng.random(n) < 0.9)
    return layout(X), targets, shares, rng


@losses
def test_sums_count_clipped_gradients_by_their_weights(loss, layout, reference, make_targets):
    X, targets, shares, rng = table(loss, layout, make_targets)
    rows = Rows.from_matrix(X, targets, 2.0, 0.7, row_weight=shares)
    A = reference.augmented(X, 2.0, 0.7)
    weights = 3.0 * rng.normal(size=rows.n_weights(loss.n_outputs))
    value, gradients = reference.per_example(A, loss, targets, weights)
    norms = np.linalg.norm(gradients, axis=1)
    for clip in (np.inf, 0.2):
        cut = gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, None]
        for lot in (None, rng.integers(0, N, 70)):
            chosen = np.arange(N) if lot is None else lot
            out = np.zeros_like(weights)
            got = sum_gradients(rows, loss, weights, out, lot, clip, values=True)
            np.testing.assert_allclose(out, shares[chosen] @ cut[chosen], rtol=1e-10, atol=1e-10)
            assert got == pytest.approx(shares[chosen] @ value[chosen], rel=1e-12)


@losses
def test_weights_of_one_change_no_bit(loss, layout, make_targets):
    X, targets, _, rng = table(loss, layout, make_targets)
    plain = Rows.from_matrix(X, targets, 2.0, 0.7)
    ones = Rows.from_matrix(X, targets, 2.0, 0.7, row_weight=np.ones(N), n_units=N)
    weights = rng.normal(size=plain.n_weights(loss.n_outputs))
    sums = np.zeros((2, weights.size))
    for rows, out in zip((plain, ones), sums, strict=True):
        sum_gradients(rows, loss, weights, out, None, 0.3, values=True)
    np.testing.assert_array_equal(*sums)
    fits = [minimise(RegularisedObjective(rows, loss, 0.01), 1e-9) for rows in (plain, ones)]
    np.testing.assert_array_equal(*fits)


@pytest.mark.parametrize(
    "loss",
    [LogisticLoss(), ClippedLoss(LogisticLoss(), 0.3), SoftmaxLoss(3)],
    ids=["one", "clipped", "several"],
)
def test_objectives_are_those_of_repeated_rows(loss, layout, make_targets):
    """Whole weights stand for copies of a row, and the divisor is given."""
    X, targets, _, rng = table(loss, layout, make_targets, n=60, d=4)
    copies = rng.integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), copies)
    one = Rows.from_matrix(X, targets, 2.0, 0.5, row_weight=copies, n_units=17)
    many = Rows.from_matrix(X[repeated], targets[repeated], 2.0, 0.5, n_units=17)
    heavy = WeightedLoss(loss, 3.0)
    objectives = [RegularisedObjective(one, heavy, 0.1), RegularisedObjective(many, loss, 0.1)]
    weights = rng.normal(size=objectives[0].n_weights)
    direction = rng.normal(size=weights.size)
    found = [
        (
            *each.value_and_gradient(weights),
            each.gradient(weights),
            each.hessian(weights),
            each.hessian_operator(weights)(direction),
        )
        for each in objectives
    ]
    for got, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)
    fits = [minimise(each, 1e-10, method="lbfgs") for each in objectives]
    np.testing.assert_allclose(*fits, atol=1e-8)
    chosen = np.arange(0, 60, 2)
    part = objectives[0].gradient(weights, chosen) - 0.1 * weights
    total = np.zeros_like(weights)
    sum_gradients(one, loss, weights, total, chosen, loss.clip)
    np.testing.assert_allclose(part, total / (0.5 * 17), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_products_count_by_weights(dtype):
    rng = np.random.default_rng(0)
    n, d = 700, 699
    X, codes = (rng.standard_normal((n, d)) / math.sqrt(d)).astype(dtype), rng.integers(0, 3, n)
    shares = rng.uniform(0.0, 2.0, n)
    (problem,) = LinearModel(SoftmaxLoss(3), n, d, 3, 0.2, heaviest=2.0).bind(X, codes, shares)
    assert problem.run_steps is None
    weights = 3.0 * rng.standard_normal(3 * (d + 1))
    for clip in (0.3, math.inf):
        out, wanted = np.zeros((2, weights.size))
        problem.sum_clipped(weights, None, clip, out)
        sum_gradients(problem.rows, problem.loss, weights, wanted, None, clip)
        np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-9)
    value = sum_gradients(problem.rows, problem.loss, weights, wanted, values=True)
    assert problem.sum_losses(weights) == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("clipping", ["flat", "per-layer", "normalize"])
def test_gradients_of_networks_count_by_weights_after_the_cut(clipping):
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    shares = rng.uniform(0.0, 2.0, 40)
    model = NetworkModel(LogisticLoss(), 40, 3, 1, (4,), clipping=clipping, heaviest=2.0)
    weights = rng.standard_normal(model.n_weights)
    (plain,), (weighted,) = model.bind(X, codes), model.bind(X, codes, shares)
    wanted = np.zeros(weights.size)
    for i in range(40):
        one = np.zeros(weights.size)
        plain.sum_clipped(weights, np.array([i]), 0.5, one)
        assert np.linalg.norm(one) <= 0.5
        wanted += shares[i] * one
    found = np.zeros(weights.size)
    within = weighted.sum_clipped(weights, None, 0.5, found)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert within == plain.sum_clipped(weights, None, 0.5, np.zeros(weights.size))


def test_other_targets_keep_the_weights_unless_others_are_given():
    X, y = np.eye(3), np.array([1, -1, 1], dtype=np.int8)
    rows = Rows.from_matrix(X, y, 1.0, row_weight=[1, 2, 3], n_units=2)
    assert rows.n_rows == 3 and rows.n_units == 2 and rows.row_weight.dtype == np.float64
    other = rows.with_targets(-y)
    assert other.n_units == 2 and other.row_weight is rows.row_weight
    np.testing.assert_array_equal(rows.with_targets(-y, None, [0, 1, 0]).row_weight, [0, 1, 0])
    assert Rows.from_matrix(X, y, 1.0).n_units == 3
    for wrong in ([1, 2], [1, -1, 1], [1, np.nan, 1], [1, np.inf, 1]):
        with pytest.raises(ValueError, match="row_weight must hold 3 finite numbers"):
            Rows.from_matrix(X, y, 1.0, row_weight=wrong)
    with pytest.raises(ValueError, match="n_units must be at least 1"):
        Rows.from_matrix(X, y, 1.0, n_units=0)
