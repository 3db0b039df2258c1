"""The proved bound on gradients of networks close to a start holds, and is of use."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from skdp.losses import LogisticLoss, SoftmaxLoss
from skdp.models import NetworkModel
from skdp.models.network import split_radius

DERIVATIVES = {
    "relu": lambda values: values > 0.0,
    "tanh": lambda values: 1.0 - values**2,
    "identity": np.ones_like,
}
ACTIVATIONS = {
    "relu": lambda values: np.maximum(values, 0.0),
    "tanh": np.tanh,
    "identity": lambda values: values,
}


def make(loss, hidden, activation, start=None, **options):
    model = NetworkModel(loss, 10, 3, loss.n_outputs, hidden, activation, **options)
    if start is None:
        return model
    rng = np.random.default_rng(start)
    return replace(model, given_start=[rng.standard_normal(shape) for shape in model.shapes])


def matrices_of(model, flat):
    ends = np.cumsum([rows * columns for rows, columns in model.shapes])[:-1]
    parts = zip(np.split(flat, ends), model.shapes, strict=True)
    return [part.reshape(shape) for part, shape in parts]


def gradient_norm(model, row, moved, label):
    """Return the norm of the gradient of one row, written out for single rows."""
    matrices = matrices_of(model, model.start + moved)
    values = [model.gain * row]
    for layer, matrix in enumerate(matrices):
        scores = matrix[:, :-1] @ values[-1] + model.bias_value * matrix[:, -1]
        if layer < len(matrices) - 1:
            values.append(ACTIVATIONS[model.activation](scores))
    if isinstance(model.loss, LogisticLoss):
        sign = 2.0 * label - 1.0
        error = np.array([-sign / (1.0 + np.exp(sign * scores[0]))])
    else:
        error = np.exp(scores - scores.max())
        error /= error.sum()
        error[label] -= 1.0
    square = 0.0
    for matrix, value in zip(matrices[::-1], values[::-1], strict=True):
        square += error @ error * (value @ value + model.bias_value**2)
        error = (error @ matrix[:, :-1]) * DERIVATIVES[model.activation](value)[: matrix.shape[1]]
    return math.sqrt(square)


def largest_norm(model, radius, tries, seed=0):
    """Return the largest norm that ascent over rows and weights in the ball finds."""
    rng = np.random.default_rng(seed)

    def split(point):
        row, moved = point[:3], point[3:]
        row = row / max(1.0, np.linalg.norm(row))
        return row, moved * min(1.0, radius / max(np.linalg.norm(moved), 1e-300))

    best = 0.0
    for _ in range(tries):
        start = rng.standard_normal(3 + model.n_weights)
        start[3:] *= radius / np.linalg.norm(start[3:])
        found = minimize(
            lambda point: -gradient_norm(model, *split(point), 0),
            start,
            method="L-BFGS-B",
            options={"maxiter": 100},
        )
        best = max(best, -found.fun)
    return best


LOGISTIC, SOFTMAX = LogisticLoss(), SoftmaxLoss(3)


@pytest.mark.parametrize(
    ("loss", "hidden", "activation", "radius", "excess"),
    [
        (LOGISTIC, (), "relu", 0.5, 1.001),
        (LOGISTIC, (3,), "relu", 1.0, 1.02),
        (LOGISTIC, (3,), "identity", 1.0, 1.02),
        (LOGISTIC, (3,), "tanh", 1.0, 1.6),
        pytest.param(SOFTMAX, (3,), "relu", 1.0, 1.05, marks=pytest.mark.slow),
        pytest.param(LOGISTIC, (3, 3), "tanh", 3.0, 1.5, marks=pytest.mark.slow),
    ],
)
def test_ascent_comes_close_to_the_bound_and_not_above(loss, hidden, activation, radius, excess):
    model = make(loss, hidden, activation)
    found = largest_norm(model, radius, tries=3 if len(hidden) < 2 else 12)
    bound = model.zero_out_gap(radius)
    assert found <= bound <= excess * found


@pytest.mark.parametrize("activation", ["relu", "tanh", "identity"])
@pytest.mark.parametrize("hidden", [(), (5,), (2, 6), (3, 2, 4, 3, 2, 2, 2, 2, 2)])
def test_random_rows_and_weights_stay_below_the_bound(hidden, activation):
    """From starts with biases, with and without biases of their own; and as problems sum them."""
    rng = np.random.default_rng(len(hidden))
    for loss, bias in ((LOGISTIC, 0.0), (SOFTMAX, 2.0)):
        model = make(loss, hidden, activation, start=1, bias_value=bias)
        for radius in (0.0, 0.1, 2.0):
            bound = model.zero_out_gap(radius)
            for _ in range(10):
                row = rng.standard_normal(3)
                row *= rng.choice([1.0, 0.1]) / np.linalg.norm(row)
                moved = rng.standard_normal(model.n_weights)
                moved *= radius / np.linalg.norm(moved)
                label = int(rng.integers(loss.n_outputs))
                assert gradient_norm(model, row, moved, label) <= bound
            total = np.zeros(model.n_weights)
            (problem,) = model.bind(row[None], np.array([label]))
            problem.sum_clipped(moved, None, 1e50, total)
            expected = gradient_norm(model, row, moved, label)
            assert np.linalg.norm(total) == pytest.approx(expected, rel=1e-9)


def test_the_bound_of_no_hidden_layer_is_that_of_the_loss():
    for loss in (LOGISTIC, SOFTMAX):
        model = make(loss, (), "relu")
        for radius in (0.0, 0.7, 1e3):
            expected = loss.zero_out_gap(math.hypot(4.0, 1.0), radius)
            assert model.zero_out_gap(radius) == pytest.approx(expected, rel=1e-6)


def test_the_bound_grows_with_the_ball_and_ends_at_none():
    model = make(LOGISTIC, (3, 3), "relu")
    bounds = [model.zero_out_gap(radius) for radius in (0.0, 1e-3, 0.1, 1.0, 10.0, 1e100, 1e308)]
    assert bounds == sorted(bounds) and bounds[-1] == math.inf
    assert model.zero_out_gap() == model.gradient_gap() == math.inf
    assert model.gradient_gap(1.0) == 2.0 * model.zero_out_gap(1.0)
    # Better than each layer as far out as all may be together.
    assert bounds[4] < 0.6 * _of_equal_radii(model, 10.0)


def test_the_page_of_proofs_has_the_bounds_of_default_starts():
    page = Path(__file__).parents[2] / "docs" / "proofs" / "networks.md"
    table = re.findall(r"^\| ([\d, ]+|none) \| (relu|tanh|any) \| (.*) \|$", page.read_text(), re.M)
    assert len(table) == 5
    for sizes, activation, bounds in table:
        hidden = tuple(map(int, re.findall(r"\d+", sizes)))
        kind = "relu" if activation == "any" else activation
        model = NetworkModel(LOGISTIC, 10, 20, 1, hidden, kind)
        found = " | ".join(f"{model.zero_out_gap(radius):.3g}" for radius in (0.1, 0.3, 1.0, 3.0))
        assert found == bounds


def _of_equal_radii(model, radius):
    values, square, error = [4.0], 0.0, 1.0
    norms = [np.linalg.norm(matrix, 2) for matrix in matrices_of(model, model.start)]
    for norm in norms:
        values.append(norm * values[-1] + radius * math.hypot(values[-1], 1.0))
    for norm, value in zip(norms[::-1], values[-2::-1], strict=True):
        square += error**2 * (value**2 + 1.0)
        error *= norm + radius
    return math.sqrt(square)


@pytest.mark.parametrize("n_layers", [1, 2, 3, 4, 5, 7, 9, 40])
def test_each_split_of_the_ball_is_below_one_that_is_tried(n_layers):
    radii = split_radius(n_layers, 2.0)
    assert radii.shape[0] == n_layers and radii.max() <= 2.0
    rng = np.random.default_rng(0)
    splits = [np.eye(n_layers)[0], np.ones(n_layers) / n_layers]
    splits += list(rng.dirichlet(0.3 * np.ones(n_layers), 50))
    for split in splits:
        split = 2.0 * np.sqrt(split) * (1.0 - 1e-9)
        assert (radii >= split[:, None]).all(axis=0).any()
    if n_layers <= 3:
        # No layer's radii together are much more than the ball's.
        assert np.linalg.norm(radii, axis=0).max() < 2.1
