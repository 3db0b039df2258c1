"""Softmax models of many weights add gradients up by matrix products, to the same sums."""

import math

import numpy as np
import pytest

from skdp.losses import SoftmaxLoss
from skdp.models import LinearModel
from skdp.models.protocol import ScaledUnits
from skdp.plans.defaults import PublicNumbers, default_lot_size
from skdp.solvers import minimise, sum_gradients


def wide(dtype=np.float64, intercept_value=0.2, n=700, d=699, outputs=3):
    """Return a model, its problem and weights that cut some gradients and leave others."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n, d)) / math.sqrt(d)).astype(dtype)
    X[3] *= 1e30
    model = LinearModel(SoftmaxLoss(outputs), n, d, outputs, intercept_value, ScaledUnits(1.1))
    problem = model.bind(X, rng.integers(0, outputs, n))[0]
    return model, problem, 3.0 * rng.standard_normal(model.n_weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept_value", [0.0, 0.2])
def test_sums_are_those_of_the_kernels(dtype, intercept_value):
    model, problem, weights = wide(dtype, intercept_value)
    assert problem.run_steps is None
    lot = np.random.default_rng(1).permutation(problem.rows.n_rows)[:300]
    for index in (None, lot, lot[:0], lot[:1]):
        for clip in (0.3, 0.9, math.inf):
            out, wanted = np.zeros((2, model.n_weights))
            problem.sum_clipped(weights, index, clip, out)
            sum_gradients(problem.rows, problem.loss, weights, wanted, index, clip)
            np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-9)
    value = sum_gradients(problem.rows, problem.loss, weights, wanted, values=True)
    assert problem.sum_losses(weights) == pytest.approx(value, rel=1e-13)


def test_minimisers_keep_their_tolerance():
    _, problem, _ = wide(np.float32)
    for method in ("lbfgs", "newton"):
        weights = minimise(problem.objective(0.05), 1e-10, method=method)
        total = np.zeros(weights.size)
        sum_gradients(problem.rows, problem.loss, weights, total)
        gradient = total / problem.rows.n_rows + 0.05 * weights
        assert np.linalg.norm(gradient) <= 1e-10


def test_narrow_models_keep_the_compiled_loop_and_their_lots():
    numbers = PublicNumbers(10**6, 500, 3, 1.0, 1e-6, "add-remove")

    def lot(n_features):
        model = LinearModel(SoftmaxLoss(3), 10**6, n_features, 3, 0.2)
        return default_lot_size(model, numbers, 200)

    assert wide(d=500)[1].run_steps is not None
    assert lot(10) == lot(1600) == 100_000
    assert lot(16_665) == pytest.approx(10_000, rel=0.001)
    assert lot(10**6) == 1024
