"""Gradient descent of a fixed number of steps against plain numpy."""

import numpy as np
import pytest

from skdp.losses import LogisticLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.solvers import RegularisedObjective, Rows, gradient_descent


@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothedHingeLoss(), SoftmaxLoss(3)])
@pytest.mark.parametrize("penalty, radius", [(0.0, np.inf), (0.1, 0.3)])
def test_iterates_match_numpy(loss, penalty, radius, layout, reference, make_targets):
    rng = np.random.default_rng(6)
    X = layout(rng.normal(size=(80, 4)))
    targets = make_targets(loss, 80, rng)
    rows = Rows.from_matrix(X, targets, 1.5, 0.4)
    objective = RegularisedObjective(rows, loss, penalty)
    A = reference.augmented(X, 1.5, 0.4)
    sizes = rng.random(25)
    expected = np.zeros(objective.n_weights)
    for size in sizes:
        gradient = reference.per_example(A, loss, targets, expected)[1].mean(axis=0)
        expected = expected - size * (gradient + penalty * expected)
        expected *= min(1.0, radius / max(np.linalg.norm(expected), 1e-300))
    got = gradient_descent(objective, 25, sizes, radius)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-13)
    assert np.linalg.norm(got) <= radius * (1 + 1e-14)


def test_no_steps_one_size_and_bad_numbers():
    rows = Rows.from_matrix(np.ones((3, 2)), np.ones(3, np.int8), 1.0)
    objective = RegularisedObjective(rows, LogisticLoss(), 0.0)
    np.testing.assert_array_equal(gradient_descent(objective, 0, 1.0), [0.0, 0.0])
    np.testing.assert_array_equal(
        gradient_descent(objective, 3, 0.5), gradient_descent(objective, 3, np.full(3, 0.5))
    )
    with pytest.raises(ValueError, match="steps"):
        gradient_descent(objective, -1, 1.0)
    with pytest.raises(ValueError, match="radius"):
        gradient_descent(objective, 1, 1.0, radius=0.0)
