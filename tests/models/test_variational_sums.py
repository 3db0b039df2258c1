"""Sums of gradients of the evidence bound, against loops, differences and what is known of it."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, log_expit
from support import rows

from skdp.losses import LogisticLoss
from skdp.models import LinearModel, ScaledUnits, VariationalModel
from skdp.models.linear import CURVATURE_GAIN

NODES, SHARES = np.polynomial.hermite_e.hermegauss(60)
SHARES = SHARES / SHARES.sum()


def make(n, d, data_norm=0.8, intercept=0.3):
    linear = LinearModel(LogisticLoss(), n, d, 1, intercept, ScaledUnits(data_norm))
    return VariationalModel(linear, prior_precision=0.5, pace=0.2)


def scaled(X, data_norm=0.8, intercept=0.3):
    """Return rows as the proofs see them: in the unit ball, beside the intercept's column."""
    X = X * np.minimum(1 / data_norm, 1 / np.linalg.norm(X, axis=1))[:, None]
    return np.column_stack([X, np.full(len(X), intercept)])


def record(x, sign, mean, variance):
    """Return the gradient of one row by an integral over its margin."""
    margins = sign * (x @ mean) + math.sqrt(x**2 @ variance) * NODES
    slope, share = sign * SHARES @ -expit(-margins), expit(margins)
    return np.concatenate([slope * x, CURVATURE_GAIN * (SHARES @ (share * (1 - share))) * x**2])


@pytest.mark.parametrize("clip", [0.05, 0.3, math.inf])
def test_sums_are_those_of_single_rows_each_cut(clip):
    X, y = rows(n=60)
    model = make(60, 4)
    weights = np.random.default_rng(1).normal(size=10)
    index = np.random.default_rng(2).permutation(60)[:37]
    (means,), curvatures = model.split(weights)
    variance = model.variances(curvatures)[0]
    expected = np.zeros(10)
    for x, code in zip(scaled(X)[index], y[index], strict=True):
        one = record(x, 2 * code - 1, means, variance)
        expected += one * min(1.0, clip / np.linalg.norm(one))
    for matrix in (X, sparse.csr_array(X)):
        found = np.zeros(10)
        model.bind(matrix, y)[0].sum_clipped(weights, index, clip, found)
        # The rule that trains has 12 nodes, and margins here are of deviation below 1.
        assert found == pytest.approx(expected, abs=1e-5)


def test_sums_are_those_of_single_calls_to_the_last_digits():
    X, y = rows(n=60)
    model, weights = make(60, 4), np.random.default_rng(1).normal(size=10)
    for matrix in (X, sparse.csr_array(X)):
        problem, whole, total = model.bind(matrix, y)[0], np.zeros(10), np.zeros(10)
        problem.sum_clipped(weights, None, 0.3, whole)
        for i in range(60):
            one, free = np.zeros(10), np.zeros(10)
            problem.sum_clipped(weights, np.array([i]), 0.3, one)
            problem.sum_clipped(weights, np.array([i]), math.inf, free)
            norm = np.linalg.norm(free)
            assert np.linalg.norm(one) <= 0.3 * (1 + 1e-14) and norm <= model.lipschitz
            assert one == pytest.approx(free * min(1.0, 0.3 / norm), rel=1e-12)
            total += one
        assert whole == pytest.approx(total, rel=1e-10, abs=1e-12)


def test_gradients_are_derivatives_of_the_evidence_bound():
    X, y = rows(n=60)
    model, x = make(60, 4), scaled(X)
    weights = np.random.default_rng(3).normal(size=10)
    (means,), curvatures = model.split(weights)
    variance = model.variances(curvatures)[0]
    found = np.zeros(10)
    model.bind(X, y)[0].sum_clipped(weights, None, math.inf, found)

    def loss(means, variance):
        """Return the expected loss of all rows."""
        margins = (2 * y - 1)[:, None] * (x @ means)[:, None]
        margins = margins + np.sqrt(x**2 @ variance)[:, None] * NODES
        return float(np.sum(-log_expit(margins) @ SHARES))

    for j, step in enumerate(1e-5 * np.eye(5)):
        rise = loss(means + step, variance) - loss(means - step, variance)
        assert found[j] == pytest.approx(rise / 2e-5, abs=1e-5)
        rise = loss(means, variance + step) - loss(means, variance - step)
        assert found[5 + j] == pytest.approx(2 * CURVATURE_GAIN * rise / 2e-5, abs=1e-4)


def test_public_gradients_vanish_where_curvatures_are_the_rows():
    model = make(100, 4)
    mean_gradient, penalty = 0.01 * CURVATURE_GAIN, 0.5 / 100
    rest = model.pace - penalty
    weight = (CURVATURE_GAIN * model._start - mean_gradient) / model.pace
    weights = np.concatenate([np.ones(5), np.full(5, weight)])
    gradient = model.public_gradient(weights)
    assert not gradient[:5].any()
    assert gradient[5:] + mean_gradient + penalty * weight == pytest.approx(np.zeros(5), abs=1e-14)
    assert rest > 0.0 and model.split(weights)[1] == pytest.approx(np.full((1, 5), 0.01))


def test_huge_and_tiny_rows_stay_within_the_norm():
    X = np.array([[1e200, -1e200], [1e-300, 0.0], [3.0, 4.0]])
    model, found = make(3, 2), np.zeros(6)
    for matrix in (X, sparse.csr_array(X)):
        model.bind(matrix, np.array([0, 1, 1]))[0].sum_clipped(np.ones(6), None, 0.1, found)
    assert np.isfinite(found).all() and np.linalg.norm(found) <= 0.6 * (1 + 1e-12)
