"""Fused gradient sums against plain numpy, in every layout."""

import math

import numpy as np
import pytest
from scipy import sparse

from skdp.losses import LogisticLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.solvers import Rows, sum_gradients

LOSSES = [LogisticLoss(), SmoothedHingeLoss(0.5), SoftmaxLoss(4)]
losses = pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)


@losses
@pytest.mark.parametrize("intercept_value", [0.0, 0.7])
def test_sums_match_numpy(layout, loss, intercept_value, reference, make_targets):
    rng = np.random.default_rng(5)
    n, d = 333, 13
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6) * 10 ** rng.uniform(-2, 2, (n, 1))
    X[7] = 0.0
    M = layout(X)
    targets = make_targets(loss, n, rng)
    rows = Rows.from_matrix(M, targets, 2.0, intercept_value)
    A = reference.augmented(M, 2.0, intercept_value)
    weights = rng.normal(size=rows.n_weights(loss.n_outputs)) * 3
    lots = [None, np.array([], int), np.array([5]), rng.integers(0, n, 70), np.arange(n)[::-1]]
    for clip in (np.inf, 0.8, 0.2):
        for lot in lots:
            chosen = np.arange(n) if lot is None else lot
            value, expected = reference.clipped_sum(A[chosen], loss, targets[chosen], weights, clip)
            out = np.ones_like(weights)
            got = sum_gradients(rows, loss, weights, out, lot, clip, values=True)
            np.testing.assert_allclose(out - 1.0, expected, rtol=1e-11, atol=1e-11)
            assert got == pytest.approx(value, rel=1e-12, abs=1e-12)
            assert sum_gradients(rows, loss, weights, out, lot, clip) == 0.0


@losses
@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 5, 63, 65, 257])
def test_every_length_of_the_last_block(loss, n_rows, reference, make_targets):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 5))
    targets = make_targets(loss, n_rows, rng)
    rows = Rows.from_matrix(X, targets, 1.0, 0.3)
    weights = rng.normal(size=rows.n_weights(loss.n_outputs))
    out = np.zeros_like(weights)
    value = sum_gradients(rows, loss, weights, out, values=True)
    A = reference.augmented(X, 1.0, 0.3)
    expected = reference.clipped_sum(A, loss, targets, weights, np.inf)
    assert value == pytest.approx(expected[0], rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(out, expected[1], rtol=1e-11, atol=1e-12)


@losses
def test_each_contribution_is_clipped_to_the_norm(loss, layout, make_targets):
    rng = np.random.default_rng(8)
    rows = Rows.from_matrix(
        layout(rng.normal(size=(40, 6)) * 10 ** rng.uniform(-1, 2, (40, 1))),
        make_targets(loss, 40, rng),
        1.0,
        0.9,
    )
    weights = rng.normal(size=rows.n_weights(loss.n_outputs)) * 5
    at_bound = 0
    for i in range(40):
        free, clipped = np.zeros_like(weights), np.zeros_like(weights)
        sum_gradients(rows, loss, weights, free, np.array([i]))
        sum_gradients(rows, loss, weights, clipped, np.array([i]), clip=0.4)
        norm = np.linalg.norm(clipped)
        assert norm <= 0.4 * (1 + 1e-14)
        np.testing.assert_allclose(
            clipped, free * min(1.0, 0.4 / max(np.linalg.norm(free), 1e-300)), atol=1e-14
        )
        at_bound += norm > 0.4 * (1 - 1e-12)
    assert at_bound >= 5


@losses
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_huge_rows_give_finite_sums(loss, sparse_rows, make_targets):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 40))
    X[3] *= 1e200
    # Products of entries near the largest number overflow, with both signs.
    X[5] = np.where(np.arange(40) % 2, 1.7e308, -1.7e308)
    targets = make_targets(loss, 12, rng)
    rows = Rows.from_matrix(sparse.csr_matrix(X) if sparse_rows else X, targets, 1.0, 0.5)
    weights = 30.0 * rng.normal(size=rows.n_weights(loss.n_outputs))
    for clip in (math.inf, 0.1):
        out = np.zeros_like(weights)
        assert math.isfinite(sum_gradients(rows, loss, weights, out, clip=clip, values=True))
        assert np.isfinite(out).all()
        assert np.linalg.norm(out) <= 12 * min(clip, loss.lipschitz(rows.row_norm_bound)) + 1e-9


def test_long_sums_of_sparse_rows_keep_their_digits():
    # The first half lifts the sum and the second takes it down: errors do not cancel.
    n = 500_000
    X = sparse.csr_matrix(np.full((n, 1), 0.711))
    targets = np.repeat(np.array([1, -1], np.int8), n // 2)
    out = np.zeros(2)
    rows = Rows.from_matrix(X, targets, 1.0, 0.2)
    sum_gradients(rows, LogisticLoss(), np.array([0.3, 0.0]), out)
    slope = 0.5 * math.tanh(0.5 * 0.2133)  # of half the rows at their margin, less the others
    np.testing.assert_allclose(out / n, [0.711 * slope, 0.2 * slope], rtol=0, atol=2e-14)


def test_many_rows_go_through_chunks(reference):
    rng = np.random.default_rng(4)
    n = 150_001
    X = rng.normal(size=(n, 3))
    targets = rng.choice([-1, 1], n).astype(np.int8)
    rows = Rows.from_matrix(X, targets, 1.0, 0.5)
    weights, out = rng.normal(size=4), np.zeros(4)
    value = sum_gradients(rows, LogisticLoss(), weights, out, values=True)
    A = reference.augmented(X, 1.0, 0.5)
    expected = reference.clipped_sum(A, LogisticLoss(), targets, weights, np.inf)
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(out, expected[1], rtol=1e-11)


def test_bad_row_numbers_and_targets_are_refused():
    rows = Rows.from_matrix(np.ones((3, 2)), np.ones(3, np.int8), 1.0)
    out = np.zeros(2)
    for lot in ([3], [-1]):
        with pytest.raises(ValueError, match="index"):
            sum_gradients(rows, LogisticLoss(), out, out, np.array(lot))
    with pytest.raises(ValueError, match="class codes"):
        sum_gradients(rows, SoftmaxLoss(2), np.zeros(4), np.zeros(4))
    coded = rows.with_targets(np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="labels"):
        sum_gradients(coded, LogisticLoss(), out, out)
    with pytest.raises(ValueError, match="3 class codes"):
        sum_gradients(coded, SoftmaxLoss(2), np.zeros(4), np.zeros(4))


@losses
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_rows_whose_squares_vanish_or_overflow_are_cut_to_the_norm(loss, sparse_rows, make_targets):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(8, 6)) * np.repeat([0.0, 1e-300, 1e-160, 1e200], 2)[:, None]
    for data_norm in (1.0, 1e-150):
        for intercept in (0.0, 0.9):
            M = sparse.csr_matrix(X) if sparse_rows else X
            rows = Rows.from_matrix(M, make_targets(loss, 8, rng), data_norm, intercept)
            weights = 5.0 * rng.normal(size=rows.n_weights(loss.n_outputs))
            for i in range(8):
                free, clipped = np.zeros_like(weights), np.zeros_like(weights)
                sum_gradients(rows, loss, weights, free, np.array([i]))
                sum_gradients(rows, loss, weights, clipped, np.array([i]), clip=0.2)
                assert np.linalg.norm(clipped) <= 0.2 * (1 + 1e-14)
                if data_norm == 1.0:  # none is cut by more
                    share = min(1.0, 0.2 / max(np.linalg.norm(free), 1e-300))
                    np.testing.assert_allclose(clipped, free * share, rtol=1e-13, atol=1e-300)
