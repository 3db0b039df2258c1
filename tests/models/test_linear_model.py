"""The linear model keeps the contract that plans rest on; plans need nothing else of a model."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from skdp.losses import LogisticLoss, OneVsRestLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.mechanisms.random_stream import RandomStream
from skdp.models import LinearModel, ScaledUnits
from skdp.plans.carry_out import carry_out_noisy_gradient
from skdp.plans.defaults import PublicNumbers
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.noisy_gradient import DPSGDChoices, Execution, LearningRateSchedule, Lots
from skdp.solvers import UpdateRule

LOSSES = [LogisticLoss(), SoftmaxLoss(3), OneVsRestLoss(SmoothedHingeLoss(0.5), 3)]
CHOICES = DPSGDChoices(
    *(0.1, 5.0, 0.5, 20, 30, "sgd", None, 0.9, 0.99, "constant", None, 0.1, 0.5, True)
)
NUMBERS = PublicNumbers(200, 4, 3, None, 1e-5, "add-remove")


def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((200, 4)), rng.integers(0, 3, 200)


def make_model(loss):
    return LinearModel(loss, 200, 4, loss.n_outputs, 0.5, ScaledUnits(2.0))


def test_weights_in_the_users_units():
    model = make_model(OneVsRestLoss(LogisticLoss(), 2))
    coef, intercept = model.unpack(np.arange(10.0))
    np.testing.assert_array_equal(coef, [[0, 0.5, 1, 1.5], [2.5, 3, 3.5, 4]])
    np.testing.assert_array_equal(intercept, [2.0, 4.5])
    bare = replace(make_model(LogisticLoss()), intercept_value=0.0)
    np.testing.assert_array_equal(bare.unpack(np.arange(4.0))[1], [0.0])


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_clipped_sums_are_those_of_single_rows(loss):
    X, codes = table()
    model = make_model(loss)
    weights = np.random.default_rng(1).standard_normal(model.n_weights // model.n_parts)
    for problem in model.bind(X, codes):
        total, expected = np.zeros_like(weights), np.zeros_like(weights)
        problem.sum_clipped(weights, np.arange(7), 0.3, total)
        for row in range(7):
            one = np.zeros_like(weights)
            problem.sum_clipped(weights, np.array([row]), np.inf, one)
            expected += one * min(1.0, 0.3 / np.linalg.norm(one))
        np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-14)
        step = 1e-6 * np.ones_like(weights)
        slope = np.zeros_like(weights)
        problem.sum_clipped(weights, None, np.inf, slope)
        change = problem.sum_losses(weights + step) - problem.sum_losses(weights - step)
        assert change == pytest.approx(2.0 * step @ slope, rel=1e-6)


@pytest.mark.parametrize("step_by_step", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_all_parts_of_a_records_gradient_together_are_cut(loss, step_by_step):
    X, codes = table()
    plan = build_dpsgd(make_model(loss), NUMBERS, CHOICES)
    # One step that shows the sum, of a lot of one row, without noise.
    plan = replace(plan, steps=1, average_from=0, sigma=1e-9, lots=Lots("uniform", 200, 1.0))
    plan = replace(plan, rule=UpdateRule(1.0), schedule=LearningRateSchedule("constant", 1.0))
    plan = replace(plan, execution=Execution(1 if step_by_step else None))
    moved = carry_out_noisy_gradient(plan, plan.model.bind(X, codes), RandomStream.from_seed(1))
    # At zero weights all these gradients are longer than the bound.
    assert np.linalg.norm(moved) == pytest.approx(plan.bound.norm, rel=1e-6)


@dataclass(frozen=True)
class Mean:
    """The mean of clipped rows, by steps on squared distances: no loss, no targets, no kernel."""

    n_features: int
    units = ScaledUnits()
    facts: frozenset = frozenset({"convex", "Lipschitz", "smooth"})
    name = "Mean"
    n_parts = 1
    heaviest = 1.0
    by_unit, rows_per_unit, n_outputs = False, 1, 1
    class_weights = public_gradient = None
    lipschitz = smoothness = 1.0

    @property
    def n_weights(self):
        return self.n_features

    def gradient_gap(self, weight_norm=None):
        return 2.0

    def zero_out_gap(self, weight_norm=None):
        return 1.0

    def minimiser_norm(self, penalty):
        return 1.0

    def bind(self, X, targets):
        def sum_clipped(weights, index, clip, out):
            rows = weights - (X if index is None else X[index])
            norms = np.linalg.norm(rows, axis=1)
            out += np.minimum(1.0, clip / np.maximum(norms, 1e-300)) @ rows

        return [SimpleNamespace(rows=None, sum_clipped=sum_clipped, run_steps=None)]


def test_noisy_gradients_train_whatever_keeps_the_protocol():
    X = np.array([0.3, -0.2, 0.1, 0.0]) + 1e-3 * np.random.default_rng(0).standard_normal((200, 4))
    choices = replace(CHOICES, noise_multiplier=1e-4, penalty=0.0, momentum=0.0)
    plan = build_dpsgd(Mean(4), NUMBERS, choices)
    weights = carry_out_noisy_gradient(plan, plan.model.bind(X, None), RandomStream.from_seed(0))
    np.testing.assert_allclose(weights, X.mean(axis=0), atol=1e-3)
