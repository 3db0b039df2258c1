"""Constants of the losses: never exceeded, and attained or nearly so."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from skdp.losses import LogisticLoss, SmoothedHingeLoss, SoftmaxLoss

MARGIN_LOSSES = [
    LogisticLoss(),
    SmoothedHingeLoss(0.5),
    SmoothedHingeLoss(0.05),
    SmoothedHingeLoss(2.0),
]
margin_losses = pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=repr)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_softmax_slopes_respect_both_constants(n_classes, seed):
    rng = np.random.default_rng(seed)
    loss = SoftmaxLoss(n_classes)
    a = rng.normal(size=(1, n_classes)) * 10 ** rng.uniform(-2, 2)
    b = a + rng.normal(size=a.shape) * 10 ** rng.uniform(-4, 1)
    code = rng.integers(0, n_classes, 1)
    ga, gb = loss.gradient(a, code), loss.gradient(b, code)
    assert np.linalg.norm(ga) <= loss.lipschitz(1.0)
    assert np.linalg.norm(ga - gb) <= loss.smoothness(1.0) * np.linalg.norm(a - b) * (1 + 1e-9)


def test_softmax_constants_are_attained():
    loss = SoftmaxLoss(3)
    worst = loss.gradient([[-50.0, 50.0, -50.0]], [0])
    assert np.linalg.norm(worst) == pytest.approx(loss.lipschitz(1.0), rel=1e-12)
    step = 1e-5
    # Two classes of equal probability have the largest variance.
    pair = loss.gradient([[step, -step, -60.0], [-step, step, -60.0]], [2, 2])
    slope = np.linalg.norm(pair[0] - pair[1]) / np.linalg.norm([2 * step, 2 * step])
    assert slope == pytest.approx(loss.smoothness(1.0), rel=1e-6)
    assert loss.lipschitz(3.0) == pytest.approx(3 * math.sqrt(2), rel=1e-12)
    assert loss.smoothness(3.0) == 4.5


@pytest.mark.parametrize("weight_norm", [0.0, 1e-6, 0.3, 1.0, 5.0, 60.0, 5e3, 1e8])
def test_logistic_gap_is_an_upper_bound_of_its_formula_and_tight(weight_norm):
    def negative(t):
        return -2 * math.cos(t) / (1 + math.exp(-min(weight_norm * math.sin(t), 700)))

    grid = np.concatenate([np.geomspace(1e-9, math.pi / 2, 20_000), [0.0]])
    start = min(grid, key=negative)
    inner = minimize_scalar(
        negative, bounds=(start * 0.99, start * 1.01 + 1e-12), options={"xatol": 1e-14}
    )
    attained = max(-inner.fun, -negative(start))
    gap = LogisticLoss().gradient_gap(1.0, weight_norm)
    assert attained <= gap <= attained * (1 + 1e-7)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 50), st.floats(0.2, 3))
def test_logistic_gaps_hold_for_random_records(seed, weight_norm, row_norm):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    w, u, v = rng.normal(size=(3, d))
    w *= weight_norm / np.linalg.norm(w)
    u *= row_norm / np.linalg.norm(u)
    v *= row_norm / np.linalg.norm(v)
    loss = LogisticLoss()
    a, b = loss.derivative(w @ u) * u, loss.derivative(w @ v) * v
    assert np.linalg.norm(a - b) <= loss.gradient_gap(row_norm, weight_norm) * (1 + 1e-12)
    assert np.linalg.norm(a) <= loss.zero_out_gap(row_norm, weight_norm) * (1 + 1e-12)


def test_gaps_without_a_bound_on_the_weights():
    for loss in (*MARGIN_LOSSES, SoftmaxLoss(4)):
        assert loss.gradient_gap(1.7) == pytest.approx(2 * loss.lipschitz(1.7))
        assert loss.zero_out_gap(1.7) == loss.lipschitz(1.7)
        assert loss.gradient_gap(1.7, math.inf) <= 2 * loss.lipschitz(1.7)
    expected = [1 / (1 + math.exp(-w)) for w in (5.27697, 1.66873, 0.527697)]
    got = [LogisticLoss().zero_out_gap(1.0, w) for w in (5.27697, 1.66873, 0.527697)]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 5))
def test_softmax_gap_holds_for_random_records(seed, weight_norm):
    rng = np.random.default_rng(seed)
    n_classes, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    W = rng.normal(size=(n_classes, d))
    W *= weight_norm / np.linalg.norm(W)
    x = rng.normal(size=d)
    x /= np.linalg.norm(x)
    loss = SoftmaxLoss(n_classes)
    slopes = loss.gradient((W @ x)[None], rng.integers(0, n_classes, 1))
    assert np.linalg.norm(slopes) <= loss.zero_out_gap(1.0, weight_norm) * (1 + 1e-12)


@margin_losses
def test_norm_bound_of_margin_losses_uses_the_exact_supremum(loss):
    grid = np.linspace(-1, 9, 2_000_001)
    supremum = (-grid * loss.derivative(grid)).max()
    bound = loss.minimiser_norm_bound(1e9, 1.0)
    if math.isinf(loss.product_bound()):  # none is stated
        assert bound == pytest.approx(1e9 * loss.largest_slope)
        return
    # The supremum of a narrow hinge is at a kink, which the grid meets to 5e-6 only.
    assert math.sqrt(supremum) <= bound <= math.sqrt(supremum) * (1 + 5e-6)
    assert loss.minimiser_norm_bound(1.0, 1e6) == pytest.approx(1e-6 * loss.largest_slope)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_norm_bound_of_softmax_uses_the_exact_supremum(n_classes):
    # Equal gaps d to all other classes: (K - 1) d e^-d / (1 + (K - 1) e^-d).
    d = np.linspace(0, 20, 2_000_001)
    weight = (n_classes - 1) * np.exp(-d)
    supremum = (weight * d / (1 + weight)).max()
    bound = SoftmaxLoss(n_classes).minimiser_norm_bound(1e9, 1.0)
    assert bound == pytest.approx(math.sqrt(supremum), rel=1e-7)
    rng = np.random.default_rng(n_classes)
    gaps = rng.exponential(2.0, size=(200_000, n_classes - 1))
    p = np.exp(-gaps)
    assert ((p * gaps).sum(1) / (1 + p.sum(1))).max() <= bound**2


def test_norm_bounds_need_a_penalty():
    for loss in (LogisticLoss(), SoftmaxLoss(3)):
        with pytest.raises(ValueError, match="penalty"):
            loss.minimiser_norm_bound(1.0, 0.0)
