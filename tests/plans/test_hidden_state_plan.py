"""Plans that pay for their last iterate: conditions, constants, and what really runs."""

import dataclasses
import math

import numpy as np
import pytest
from support import rows

from skdp import GrpuaLogisticRegression
from skdp.accounting import (
    GaussianEvent,
    HiddenStateAccountant,
    LastIterateEvent,
    PLDAccountant,
    PoissonSampledEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.numerics import gaussian_profile
from skdp.losses import LogisticLoss, OneVsRestLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.mechanisms import record_releases
from skdp.models import LinearModel, ScaledUnits
from skdp.plans.defaults import PublicNumbers
from skdp.plans.gradient_perturbation import (
    build_gradient_perturbation,
)
from skdp.plans.noisy_gradient import (
    LARGEST_WEIGHTS,
    GradientPerturbationChoices,
    LearningRateSchedule,
    contribution_in_ball,
)
from skdp.testing import FrozenStream

S = 0.5
B = math.sqrt(1 + S**2)


def make_model(loss=None, n=1000, units=None):
    loss = LogisticLoss() if loss is None else loss
    outputs = getattr(loss, "n_outputs", 1)
    return LinearModel(loss, n, 3, outputs, S, units or ScaledUnits())


def hidden_plan(model=None, adjacency="replace-one", epsilon=1.0, delta=1e-6, **choices):
    model = make_model() if model is None else model
    chosen = {
        "penalty": None,
        "batch_size": None,
        "max_iter": None,
        "step_sizes": "constant",
        "initial_step": None,
        "radius": None,
        "average": True,
        "sampling": "poisson",
        "calibration": "hidden-state",
    } | choices
    numbers = PublicNumbers(model.n_rows, 3, 2, epsilon, delta, adjacency)
    return build_gradient_perturbation(model, numbers, GradientPerturbationChoices(**chosen))


LOSSES = [
    (LogisticLoss(), B * B / 4),
    (SmoothedHingeLoss(0.25), B * B / 0.5),
    (SoftmaxLoss(4), B * B / 2),
    (OneVsRestLoss(SmoothedHingeLoss(0.5), 4), B * B),
]


SIZES = ({}, {"batch_size": 100, "sampling": "uniform"}, {"batch_size": 100}, {})


@pytest.mark.daily(2)
@pytest.mark.parametrize(("case", "sizes"), zip(LOSSES, SIZES, strict=True))
def test_defaults_meet_every_condition(case, sizes):
    loss, smoothness = case
    plan = hidden_plan(make_model(loss), **sizes)
    assert plan.schedule.kind == "constant"
    assert plan.average_from == plan.steps - 1
    assert plan.rule.momentum == 0.0 and plan.rule.penalty > 0.0
    assert plan.rule.divisor == plan.lots.size
    total = smoothness + plan.rule.penalty
    assert plan.schedule.initial <= (1 + 1e-9) / total
    if plan.lots.sampling != "poisson":
        assert plan.schedule.initial == pytest.approx(1 / total, rel=1e-9)
    assert plan.accountant == "hidden-state" and isinstance(plan.event, LastIterateEvent)
    accountant = HiddenStateAccountant("replace-one").compose(plan.event)
    assert 0.99 <= accountant.epsilon(1e-6) <= 1.0


def test_the_event_says_what_runs():
    """Scale-free numbers from those of the plan, by hand."""
    for sizes, kind in (
        ({}, GaussianEvent),
        ({"batch_size": 50}, PoissonSampledEvent),
        ({"batch_size": 50, "sampling": "uniform"}, UniformSampledEvent),
    ):
        plan = hidden_plan(penalty=0.02, radius=2.0, initial_step=0.5, max_iter=700, **sizes)
        event, b = plan.event, sizes.get("batch_size", 1000)
        assert isinstance(event.step, kind) and event.steps == 700
        assert event.smoothness == pytest.approx(0.5 * (B * B / 4 + 0.02))
        assert event.strong_convexity == pytest.approx(0.5 * 0.02)
        assert event.diameter == pytest.approx(4.0 / (0.5 * plan.sigma / b))
        assert event.dataset_size == (1000 if kind is PoissonSampledEvent else None)
        largest = B / (1 + math.exp(-2 * B))
        assert plan.bound.norm == pytest.approx(largest, rel=1e-6)
        inner = event.step if kind is GaussianEvent else event.step.event
        bound = plan.bound.gap if kind is GaussianEvent else plan.bound.norm
        assert inner.noise_multiplier == pytest.approx(plan.sigma / bound)


def test_sensitivities_follow_the_relation():
    replace, remove = (
        hidden_plan(adjacency=a, penalty=0.05, max_iter=500) for a in ("replace-one", "add-remove")
    )
    assert replace.sensitivity == replace.bound.gap > remove.sensitivity == remove.bound.norm
    for plan in (replace, remove):
        gap = plan.schedule.initial * 0.05
        decay = (1 - gap) ** 500
        limit = math.sqrt((1 - decay) / (1 + decay) * (2 - gap) / gap)
        mu = gaussian_profile.mu(1.0, 1e-6)
        assert plan.sigma == pytest.approx(plan.sensitivity * limit / mu, rel=2e-4)


def test_a_ball_bounds_gradients():
    """The distance of two logistic gradients, by search over weights in the ball."""
    rng = np.random.default_rng(0)
    for radius in (0.3, 1.0, 4.0):
        bound = contribution_in_ball(make_model(), radius)
        weights = rng.standard_normal((4000, 4))
        weights *= radius / np.linalg.norm(weights, axis=1, keepdims=True)
        pairs = rng.standard_normal((2, 4000, 4))
        pairs *= B / np.linalg.norm(pairs, axis=2, keepdims=True)
        gradients = -pairs / (1 + np.exp(np.sum(pairs * weights, axis=2)))[:, :, None]
        distances = np.linalg.norm(gradients[0] - gradients[1], axis=1)
        assert distances.max() <= bound.gap < 2 * B
        assert np.linalg.norm(gradients, axis=2).max() <= bound.norm < B
        t = np.linspace(0, math.pi / 2, 2001)  # mirror images reach the supremum
        mirrored = 2 * B * np.cos(t) / (1 + np.exp(-radius * B * np.sin(t)))
        assert bound.gap == pytest.approx(mirrored.max(), rel=1e-5)
    hinge = contribution_in_ball(make_model(SmoothedHingeLoss(0.5)), 0.3)
    assert hinge.gap == pytest.approx(2 * B)


def test_noise_stops_growing_with_steps():
    sigmas = [hidden_plan(penalty=0.02, max_iter=t).sigma for t in (10, 1000, 10**4, 10**7)]
    assert sigmas == sorted(sigmas)
    assert sigmas[3] == pytest.approx(sigmas[2], rel=1e-3)
    ball = [hidden_plan(penalty=0.0, radius=0.5, max_iter=t).sigma for t in (10, 10**4, 10**7)]
    assert ball[0] < ball[1] == pytest.approx(ball[2], rel=1e-3)
    plan = hidden_plan(penalty=0.02, max_iter=10**6)
    plain = PLDAccountant("replace-one").compose(RepeatedEvent(plan.event.step, plan.steps))
    assert plain.epsilon(1e-6) > 30.0


def test_without_a_penalty_a_ball_is_chosen():
    plan = hidden_plan(penalty=0.0)
    assert 0.0 < plan.rule.radius < LARGEST_WEIGHTS
    assert plan.diameter == 2 * plan.rule.radius
    blocks = hidden_plan(make_model(OneVsRestLoss(SmoothedHingeLoss(0.5), 4)), radius=3.0)
    assert blocks.diameter == pytest.approx(6.0 * 2.0)
    endless = hidden_plan(penalty=0.1, radius=1e200)
    assert endless.diameter is None and endless.event.diameter is None


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"step_sizes": "convex"}, r"learning_rate='convex'.*use learning_rate='constant'"),
        ({"step_sizes": "strongly-convex", "penalty": 0.1}, "learning_rate='strongly-convex'"),
        ({"average": 0.3}, r"average=0.3.*average=False"),
        ({"average": "ema"}, r"average='ema'.*average=False"),
        ({"max_grad_norm": 0.5}, "leave max_grad_norm out"),
        ({"initial_step": 20.0}, r"learning_rate_init=20 is too long: use at most 5\.8\d+"),
        ({"initial_step": 5.0, "batch_size": 30}, r"too long: use at most .*sampling='uniform'"),
    ],
)
def test_failed_conditions_are_named(choices, message):
    with pytest.raises(ValueError, match=message):
        hidden_plan(**choices)


def test_a_loss_that_is_not_smooth_is_refused(monkeypatch):
    monkeypatch.setattr(LogisticLoss, "curvature", math.inf)
    with pytest.raises(ValueError, match=r"hidden-state.*LogisticLoss is not smooth"):
        hidden_plan(make_model(LogisticLoss()))


@pytest.mark.parametrize(
    "sizes", [{}, {"batch_size": 30}, {"batch_size": 30, "sampling": "uniform"}]
)
def test_the_step_a_message_offers_is_accepted(sizes):
    units = ScaledUnits(7.0)
    with pytest.raises(ValueError, match="use at most") as caught:
        hidden_plan(make_model(units=units), initial_step=1e3, penalty=0.01, **sizes)
    offered = float(
        str(caught.value).split("use at most ")[1].split(",")[0].split(";")[0].split(". ")[0]
    )
    plan = hidden_plan(
        make_model(units=units),
        initial_step=units.step(offered),
        penalty=0.01,
        **sizes,
    )
    assert plan.event.smoothness <= 2.0
    with pytest.raises(ValueError, match="too long"):
        hidden_plan(
            make_model(units=units),
            initial_step=units.step(offered * 1.0001),
            penalty=0.01,
            **sizes,
        )


def test_a_plan_that_breaks_the_conditions_cannot_be_made():
    plan = hidden_plan()
    for change in (
        {"average_from": 0},
        {"clip": 1.0},
        {"schedule": LearningRateSchedule("inverse", 1.0)},
        {"schedule": LearningRateSchedule("constant", 1.0, cap=0.5)},
        {"rule": dataclasses.replace(plan.rule, momentum=0.5)},
        {"rule": dataclasses.replace(plan.rule, code=1.0)},
    ):
        with pytest.raises(ValueError, match="last_iterate_only"):
            dataclasses.replace(plan, **change)


# What runs.


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("n_classes", "sizes"),
    [
        (2, {}),
        (3, {"batch_size": 20}),
        (2, {"batch_size": 20, "sampling": "uniform"}),
    ],
)
def test_the_released_weights_are_the_last_projected_iterate(sizes, n_classes):
    """Recompute the run from its noisy sums: plain steps, each ending in the ball."""
    X, y = rows(n=100, n_classes=n_classes)
    model = GrpuaLogisticRegression(
        2.0,
        calibration="hidden-state",
        alpha=0.05,
        radius=0.6,
        max_iter=40,
        random_state=FrozenStream.from_seed(3),
        **sizes,
    )
    with record_releases() as trace:
        model.fit(X, y)
    event = model.privacy_spent_.event
    b = sizes.get("batch_size", 100)
    smoothness = (1.04 / 4 if n_classes == 2 else 1.04 / 2) + 0.05
    eta = event.smoothness / smoothness
    weights, clipped = np.zeros(trace.releases[0].output.shape[1]), 0
    for release in trace.releases:
        weights = weights - eta * (release.output[0] / b + 0.05 * weights)
        norm = np.linalg.norm(weights)
        if norm > 0.6:
            weights, clipped = weights * 0.6 / norm, clipped + 1
        # The noise that is accounted for is inside the projection, on every step.
        assert release.sigma == trace.releases[0].sigma
        assert event.diameter == pytest.approx(1.2 / (eta * release.sigma / b))
    assert len(trace.releases) == 40 and clipped > 0
    outputs = 1 if n_classes == 2 else n_classes
    expected = weights.reshape(outputs, -1)
    np.testing.assert_allclose(model.coef_, expected[:, :-1], rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, 0.2 * expected[:, -1], rtol=1e-8)
