"""Rounding errors of gradients are within the bound that discrete numerics rest on."""

import mpmath as mp
import numpy as np
import pytest
from covering import pairs
from scipy import sparse

from skdp.losses import (
    ClippedLoss,
    ClippedSquaredLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SoftmaxLoss,
)
from skdp.models import LinearModel
from skdp.solvers import Rows
from skdp.solvers.gradients import (
    SPARSE_CHUNK,
    _sparse_chunk,
    certified_tolerance,
    gradient_rounding,
)

LOSSES = {
    "logistic": LogisticLoss(),
    "clipped": ClippedLoss(LogisticLoss(), 0.3),
    "hinge": SmoothedHingeLoss(half_width=0.5),
    "softmax": SoftmaxLoss(3),
}
WIDTH = 0.3
NUMBERS = {
    "huber": HuberLoss(WIDTH),
    "pseudo-huber": PseudoHuberLoss(WIDTH),
    "clipped square": ClippedSquaredLoss(),
    "quantile": QuantileLoss(WIDTH, 0.8),
    "poisson": PoissonLoss(),
}
LOSSES |= NUMBERS


def cut(value, low, high):
    return min(max(value, mp.mpf(low)), mp.mpf(high))


def slope_of_number(name, score, target):
    """Return the derivative of a loss of numbers, from its definition."""
    gap, width = score - mp.mpf(target), mp.mpf(WIDTH)
    return {
        "huber": lambda: cut(gap, -width, width),
        "pseudo-huber": lambda: gap / mp.sqrt(1 + (gap / width) ** 2),
        "clipped square": lambda: cut(score, -1, 1) - mp.mpf(target),
        "quantile": lambda: cut(gap / width, -0.5, 0.5) + mp.mpf(0.5) - mp.mpf(0.8),
        "poisson": lambda: mp.exp(min(score, mp.log(2))) - 1 - mp.mpf(target),
    }[name]()


def slopes(name, scores, target, norm):
    """Return the loss's derivative in each score, in high precision."""
    if name == "softmax":
        top, target = max(scores), int(target)
        powers = [mp.exp(s - top) for s in scores]
        return [p / sum(powers) - (k == target) for k, p in enumerate(powers)]
    if name in NUMBERS:
        return [slope_of_number(name, scores[0], target)]
    target = int(target)
    margin = target * scores[0]
    if name == "hinge":
        return [-target * min(max((1 - margin) / mp.mpf(0.5), -1), 1) / 2 - mp.mpf(target) / 2]
    slope = 1 / (1 + mp.exp(margin))
    return [-target * (min(slope, mp.mpf(0.3) / norm) if name == "clipped" else slope)]


def exact_gradient(name, objective, weights):
    rows = objective.rows
    table = np.asarray(rows.matrix) if not rows.is_sparse else None
    if table is None:
        table = sparse.csr_matrix(rows.matrix, shape=(rows.n_rows, rows.n_features)).toarray()
    outputs = LOSSES[name].n_outputs
    weights = [mp.mpf(w) for w in weights]
    width = len(weights) // outputs
    total = [mp.mpf(0)] * len(weights)
    for row, scale, target in zip(table, rows.row_scale, rows.targets, strict=True):
        x = [mp.mpf(v) * mp.mpf(scale) for v in row] + [mp.mpf(rows.intercept_value)]
        norm = mp.sqrt(mp.fsum(v * v for v in x))
        scores = [mp.fdot(x, weights[k * width : (k + 1) * width]) for k in range(outputs)]
        for k, slope in enumerate(slopes(name, scores, target, norm)):
            for j, v in enumerate(x):
                total[k * width + j] += slope * v
    tilt = objective.tilt if objective.tilt is not None else np.zeros(len(weights))
    return [
        t / rows.n_rows + objective.penalty * w + mp.mpf(b)
        for t, w, b in zip(total, weights, tilt, strict=True)
    ]


@pytest.mark.parametrize(
    ("name", "size", "is_sparse"), pairs(list(LOSSES), [1.0, 300.0], [False, True])
)
def test_gradients_err_by_no_more_than_the_bound(name, is_sparse, size):
    rng = np.random.default_rng(0)
    loss, n, d = LOSSES[name], 30, 8
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, (n, 1))
    model = LinearModel(loss, n, d, loss.n_outputs, 0.3)
    targets = rng.integers(loss.n_outputs + 1 if name != "softmax" else 3, size=n)
    if name in NUMBERS:
        targets = rng.uniform(-1.0, 1.0, n)
    (problem,) = model.bind(sparse.csr_matrix(X) if is_sparse else X, targets)
    tilt = rng.standard_normal(model.n_weights)
    objective = problem.objective(0.01, tilt)
    weights = rng.standard_normal(model.n_weights)
    weights *= size / np.linalg.norm(weights)
    with mp.workdps(40):
        exact = exact_gradient(name, objective, weights)
        computed = [mp.mpf(g) for g in objective.gradient(weights)]
        error = mp.norm([a - b for a, b in zip(exact, computed, strict=True)])
    rounding = gradient_rounding(loss, model.row_norm, 0.01, (n, d + 1), np.linalg.norm(tilt))
    assert 0.0 < error <= rounding.at(size)


@pytest.mark.parametrize("name", LOSSES)
def test_tolerances_leave_room_for_what_they_cover(name):
    loss, shape = LOSSES[name], (10**6, 10**4)
    for penalty in (1e-6, 1e-2, 1e6):
        for tilt in (0.0, 3.0):
            tolerance = certified_tolerance(loss, 1.1, penalty, shape, tilt)
            farthest = loss.minimiser_norm_bound(1.1, penalty) + (tilt + tolerance) / penalty
            rounding = gradient_rounding(loss, 1.1, penalty, shape, tilt)
            assert rounding.at(1.1 * farthest) <= 0.09 * tolerance * (1.0 + 1e-9)
    assert certified_tolerance(loss, 1.1, 1e-12, shape) == np.inf


@pytest.mark.parametrize("columns", [5, 3000, 10**6])
def test_sums_of_sparse_rows_are_no_longer_than_the_bound_says(columns):
    X = sparse.csr_matrix((np.ones(40), (range(40), range(40))), shape=(40, max(columns, 40)))
    rows = Rows.from_matrix(X, np.ones(40, dtype=np.int8), 1.0, 0.3, "signs")
    assert _sparse_chunk(rows) <= min(max(rows.n_columns, SPARSE_CHUNK), 16 * SPARSE_CHUNK)
