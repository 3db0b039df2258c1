"""Defaults of networks follow public numbers, and learn what a line cannot."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skdp import DPSGDClassifier
from skdp.losses import LogisticLoss, SoftmaxLoss
from skdp.models import LinearModel, NetworkModel
from skdp.plans.defaults import PublicNumbers, default_lot_size
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.noisy_gradient import DPSGDChoices

AUTO = DPSGDChoices(
    *(None, None, None, None, None, "sgd", None, 0.9, 0.99, "constant", None, 0.1, 0.5, True)
)


@pytest.mark.parametrize(
    ("epsilon", "n_rows"), [(0.1, 300), (8.0, 300), (1.0, 10_000), (0.1, 10**6), (8.0, 10**6)]
)
def test_the_noise_of_a_weight_does_not_grow_with_the_table(n_rows, epsilon):
    """After T steps of size eta with momentum m it is T eta / (1 - m) times C / SNR."""
    model = NetworkModel(LogisticLoss(), n_rows, 20, 1, (64, 64))
    numbers = PublicNumbers(n_rows, 20, 2, epsilon, 1e-6, "add-remove")
    plan = build_dpsgd(model, numbers, AUTO)
    ratio = plan.lots.size * math.sqrt(plan.steps) / plan.noise_multiplier
    travel = plan.steps * plan.schedule.initial / (1.0 - plan.rule.momentum)
    assert 0.0 < travel * plan.clip / ratio <= 0.2 * (1.0 + 1e-12)
    assert plan.schedule.initial < 4.0 and 150 <= plan.steps <= 400


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_schedules_travel_as_far_as_each_other(solver):
    numbers = PublicNumbers(1000, 20, 2, 1.0, 1e-6, "add-remove")
    for model in (
        NetworkModel(LogisticLoss(), 1000, 20, 1, (64,)),
        LinearModel(LogisticLoss(), 1000, 20, 1, 0.2),
    ):
        travels = []
        for kind in ("constant", "linear", "cosine"):
            choices = replace(AUTO, learning_rate=kind, solver=solver, decay_share=1.0)
            plan = build_dpsgd(model, numbers, choices)
            travels.append(plan.schedule.rates(0, plan.steps).sum())
        assert travels == pytest.approx([travels[0]] * 3)
        assert (
            build_dpsgd(model, numbers, replace(choices, initial_step=0.1)).schedule.initial == 0.1
        )


def test_each_hidden_layer_has_its_share_of_the_noise():
    numbers = PublicNumbers(10_000, 20, 2, 1.0, 1e-6, "add-remove")
    travels = []
    for hidden in ((64,), (64, 64)):
        plan = build_dpsgd(NetworkModel(LogisticLoss(), 10_000, 20, 1, hidden), numbers, AUTO)
        travels.append(plan.steps * plan.schedule.initial)
    assert travels[0] == pytest.approx(2.0 * travels[1])


def test_lots_of_wide_networks_are_smaller():
    numbers = PublicNumbers(100_000, 100, 10, 1.0, 1e-6, "add-remove")
    line = LinearModel(SoftmaxLoss(10), 100_000, 100, 10, 0.2)
    narrow, wide, huge = (
        NetworkModel(SoftmaxLoss(10), 100_000, 100, 10, hidden)
        for hidden in ((8,), (1000,), (10_000, 10_000))
    )
    sizes = [default_lot_size(model, numbers, 200) for model in (line, narrow, wide, huge)]
    assert sizes[:2] == [100_000, 100_000] and sizes[3] == 1024
    assert 200 * sizes[2] * wide.n_weights == pytest.approx(1e11, rel=1e-3)


def test_networks_learn_a_product_and_not_less_than_the_line():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (6000, 4))
    for truth, least in ((X[:, 0] * X[:, 1], 0.9), (X.sum(axis=1), 0.95)):
        y = truth > 0.0
        model = DPSGDClassifier(
            2.0, 1e-6, data_norm=2.0, hidden_layer_sizes=(16, 16), max_iter=150, random_state=0
        )
        scores = model.fit(X[:3000], y[:3000]).predict_proba(X[3000:])[:, 1]
        assert roc_auc_score(y[3000:], scores) > least
