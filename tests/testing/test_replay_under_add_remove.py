"""Replays on tables of which a row is really gone."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdp import GrpuaSVC
from skdp.mechanisms import GaussianMechanism, resolve_random_state
from skdp.testing import replay_on_neighbour

X = np.random.default_rng(0).uniform(-1.0, 1.0, (30, 3))
Y = np.arange(30) % 2


class NoisySum(BaseEstimator):
    def __init__(self, sensitivity=1.7321, by_n=False, random_state=None):
        self.sensitivity = sensitivity
        self.by_n = by_n
        self.random_state = random_state

    def fit(self, X, y=None):
        bound = self.sensitivity / (len(X) if self.by_n else 1.0)
        stream = resolve_random_state(self.random_state)
        mechanism = GaussianMechanism(sensitivity=bound, sigma=bound, stream=stream, label="sum")
        self.sum_ = mechanism.release(X.sum(axis=0))
        return self


@pytest.mark.parametrize("place", [0, 13, 29])
def test_a_row_that_is_gone_moves_a_sum_by_itself(place):
    fewer = np.delete(X, place, axis=0), np.delete(Y, place)
    norm = np.linalg.norm(X[place])
    for one, other in (((X, Y), fewer), (fewer, (X, Y))):
        report = replay_on_neighbour(NoisySum(), *one, *other)
        assert np.isclose(report.distances[0], norm)
        with pytest.raises(AssertionError, match="more than its declared"):
            replay_on_neighbour(NoisySum(0.9 * norm), *one, *other)
        with pytest.raises(AssertionError, match="declared differently"):
            replay_on_neighbour(NoisySum(by_n=True), *one, *other)


def test_zeros_stand_for_a_row_where_n_is_public():
    model = GrpuaSVC(adjacency="add-remove", fit_intercept=False, classes=[0, 1], max_iter=3)
    null = X.copy()
    null[4] = 0.0
    assert 0.0 < replay_on_neighbour(model, X, Y, null, Y).largest_ratio <= 1.0
