"""Plans for networks: gradients bounded close to the start, or clipped; other theorems refuse."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skdp.accounting import PLDAccountant
from skdp.losses import LogisticLoss, SoftmaxLoss
from skdp.mechanisms import RandomStream, record_releases
from skdp.models import LinearModel, NetworkModel
from skdp.plans.carry_out import carry_out_noisy_gradient
from skdp.plans.defaults import (
    PublicNumbers,
    default_clip,
    default_lot_size,
    default_steps,
    noisy_descent_defaults,
)
from skdp.plans.gradient_perturbation import build_gradient_perturbation
from skdp.plans.noisy_gradient import LARGEST_WEIGHTS, GradientPerturbationChoices
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan
from skdp.plans.output_perturbation import OutputPerturbationPlan
from skdp.testing.replay import compare_releases

CHOICES = GradientPerturbationChoices(
    *(None, None, 20, "constant", None, None, True, "poisson", "pld")
)
NUMBERS = PublicNumbers(60, 4, 3, 2.0, 1e-5, "replace-one")
TARGET = {"adjacency": "replace-one", "epsilon": 1.0, "delta": 1e-5}


def network(activation="relu", hidden=(5,)):
    return NetworkModel(SoftmaxLoss(3), 60, 4, 3, hidden, activation)


def make_plan(model=None, numbers=NUMBERS, **choices):
    return build_gradient_perturbation(model or network(), numbers, replace(CHOICES, **choices))


def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 4)) / 2.0, rng.integers(0, 3, 60)


def watched(problem, plan, counts):
    """Return a problem that notes how many of its rows were not cut, and checks the ball."""

    def sum_clipped(weights, index, clip, out):
        assert np.linalg.norm(weights) <= plan.rule.radius * (1 + 1e-9)
        within = problem.sum_clipped(weights, index, clip, out)
        counts.append((within, 60 if index is None else len(index)))
        return within

    return SimpleNamespace(rows=None, sum_clipped=sum_clipped, run_steps=None)


@pytest.mark.parametrize(("activation", "calibration"), [("relu", "pld"), ("tanh", "composition")])
@pytest.mark.parametrize(
    ("adjacency", "sampling", "size"),
    [
        ("replace-one", "poisson", 60),
        ("replace-one", "poisson", 20),
        ("replace-one", "uniform", 20),
        ("add-remove", "poisson", 60),
        ("add-remove", "poisson", 20),
    ],
)
def test_gradients_close_to_the_start_need_no_clipping(
    activation, calibration, adjacency, sampling, size
):
    model, numbers = network(activation), replace(NUMBERS, adjacency=adjacency)
    plan = make_plan(model, numbers, batch_size=size, sampling=sampling, calibration=calibration)
    assert plan.rule.radius == 1.0 and "ball of radius 1 " in plan.bound.reason
    assert plan.clip == plan.bound.norm == model.zero_out_gap(1.0)
    assert PLDAccountant(adjacency).compose(plan.event).epsilon(1e-5) <= 2.0
    X, y = table()
    other, labels = X.copy(), y.copy()
    other[-1], labels[-1] = -50.0 * X[-1], (y[-1] + 1) % 3
    counts = []
    (problem,), (changed,) = model.bind(X, y), model.bind(other, labels)
    with record_releases() as recorded:
        carry_out_noisy_gradient(plan, [watched(problem, plan, counts)], RandomStream.from_seed(0))
    with record_releases(recorded) as replayed:
        carry_out_noisy_gradient(plan, [watched(changed, plan, counts)], RandomStream.from_seed(0))
    assert all(within == rows for within, rows in counts)
    if adjacency == "replace-one":
        compare_releases(recorded.releases, replayed.releases)


def test_clipping_takes_over_below_the_bound():
    model = network()
    for radius in (None, 2.0):
        plan = make_plan(model, max_grad_norm=0.3, radius=radius)
        assert plan.clip == plan.bound.norm == 0.3
        assert "clipped to norm 0.3" in plan.bound.reason
        assert plan.rule.radius == (radius or LARGEST_WEIGHTS)
    # A limit that no gradient in the ball exceeds is none.
    proved = make_plan(model, radius=2.0)
    assert make_plan(model, max_grad_norm=1e3, radius=2.0) == proved
    assert make_plan(model, max_grad_norm=1e3).clip == 1e3
    assert proved.bound.norm > make_plan(model, radius=0.5).bound.norm
    linear = LinearModel(LogisticLoss(), 60, 4, 1, 0.5)
    assert make_plan(linear, max_grad_norm=0.5).bound.norm == 0.5
    assert make_plan(linear, max_grad_norm=9.0).clip == make_plan(linear).clip == math.inf


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"calibration": "hidden-state"}, "hidden-state'.* a network with SoftmaxLoss is not"),
        ({"step_sizes": "convex"}, "learning_rate='convex' is .* is not convex, Lipschitz"),
        ({"step_sizes": "strongly-convex"}, "'strongly-convex' is .* is not convex, smooth"),
        ({"radius": 1e99}, "a network with SoftmaxLoss is not Lipschitz"),
    ],
)
def test_what_is_not_proved_of_networks_is_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        make_plan(network(hidden=(5, 5, 5, 5)), **choices)


def test_perturbed_minima_are_for_linear_models():
    for build in (
        lambda: OutputPerturbationPlan.build(
            network(), penalty=0.1, solver="newton", max_iter=9, **TARGET
        ),
        lambda: ObjectivePerturbationPlan.build(network(), penalty=0.5, **TARGET),
    ):
        with pytest.raises(ValueError, match=r"for linear models .* SoftmaxLoss is not linear"):
            build()


@pytest.mark.parametrize("epsilon", [None, 0.1, 10.0])
def test_defaults_are_finite_without_constants(epsilon):
    model, numbers = network(), replace(NUMBERS, epsilon=epsilon)
    assert 0.0 < default_clip(model, 50.0) <= 5.7
    assert 150 <= default_steps(model, numbers, None) <= 400
    assert default_lot_size(model, numbers, None) == 60
    numbers = noisy_descent_defaults(model, steps=100, signal_to_noise=50.0, bound=1.0)
    assert all(0.0 < value < math.inf for value in vars(numbers).values())
