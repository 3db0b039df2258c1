"""Attacks on fit and look together: one seed, and fits that do not charge as planned."""

import numpy as np
import pytest
from scipy.special import expit

import skdp
from skdp.budget import BudgetAccountant
from skdp.exceptions import BudgetExceededError
from skdp.inference import PrivateInference
from skdp.mechanisms import record_releases

N = 600
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (N, 3))
Y = (RNG.random(N) < expit(0.4 + X @ [2.0, -1.0, 0.0])).astype(int)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_seed_gives_no_noise_of_two_scales(adjacency):
    """The same sums with the same noise, at two scales, would show the sums."""
    look = PrivateInference(1.0, random_state=3, adjacency=adjacency)
    fit = skdp.OperaLogisticRegression(data_norm=1.0, random_state=3)
    with record_releases() as together:
        result = look.fit_evaluate(fit, X, Y)
    with record_releases() as alone:
        look.evaluate(result.part.model, X, Y)
    one, two = together.releases[-3], alone.releases[0]
    np.testing.assert_array_equal(one.value, two.value)
    assert one.sigma != two.sigma
    noises = [(each.output - each.value) / each.sigma for each in (one, two)]
    assert np.abs(np.subtract(*noises)).min() > 1e-6


class Uncharged(skdp.OperaLogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.accountant = None
        return super().fit(X, y)


class Elsewhere(skdp.OperaLogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.adjacency = "add-remove"
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("kind", "words"), [(Uncharged, "did not charge"), (Elsewhere, "planned for adjacency")]
)
def test_fits_that_do_not_charge_as_planned_are_refused(kind, words):
    budget = BudgetAccountant(3.0, 1e-5, adjacency="replace-one")
    with pytest.raises(BudgetExceededError, match=words):
        PrivateInference(1.0, accountant=budget).fit_evaluate(kind(data_norm=1.0), X, Y)
    assert not budget.entries()
