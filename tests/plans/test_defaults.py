"""Defaults of linear models: functions of public numbers, without jumps, the same in any unit."""

import math
import re

import numpy as np
import pytest

from skdp import GrpuaLogisticRegression, ObjectivePerturbationLogisticRegression
from skdp.losses import LogisticLoss
from skdp.models import LinearModel
from skdp.plans.defaults import (
    PublicNumbers,
    default_bounded_clip,
    default_clip,
    default_objective_penalty,
    default_output_penalty,
    noisy_descent_defaults,
)
from skdp.plans.gradient_perturbation import build_gradient_perturbation
from skdp.plans.noisy_gradient import GradientPerturbationChoices
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan

EPSILONS = np.geomspace(0.001, 100.0, 501)


def make(n_rows=1000, n_columns=30):
    return LinearModel(LogisticLoss(), n_rows, n_columns, 1, 0.2)


def numbers(epsilon, n_rows=1000, n_columns=30, adjacency="replace-one"):
    return PublicNumbers(n_rows, n_columns, 2, epsilon, 1e-6, adjacency)


def margin_noise(ratio, bounded=False):
    """Return the noise that a descent of many short steps gives to a margin."""
    defaults = noisy_descent_defaults(
        make(), steps=10**9, signal_to_noise=ratio, bound=1.0, bounded=bounded
    )
    return defaults.initial_step * 10**9 / (1.0 - defaults.momentum) / ratio


@pytest.mark.parametrize("rule", [default_output_penalty, default_objective_penalty])
def test_penalties_fall_with_epsilon_and_never_jump(rule):
    penalties = np.array([rule(make(), numbers(epsilon)) for epsilon in EPSILONS])
    assert (np.diff(penalties) < 0.0).all()
    # Epsilon grows by 2.3 % a step, and no power of it in a rule is above 2.
    assert np.abs(np.diff(np.log(penalties))).max() < 2.5 * math.log(EPSILONS[1] / EPSILONS[0])


@pytest.mark.parametrize(("bounded", "noise"), [(False, 2.0), (True, 1.0)])
def test_noise_of_margins_grows_with_much_signal_alone(bounded, noise):
    found = [margin_noise(ratio, bounded) for ratio in (1.0, 1e3, 4e3)]
    assert found == pytest.approx([noise, noise, 2.0 * noise])


def test_many_columns_take_more_penalty_up_to_three_times_as_much():
    few, *more = (
        default_objective_penalty(make(n_columns=d), numbers(0.5, n_columns=d), columns=d)
        for d in (2, 10, 50, 200, 100_000)
    )
    assert more == sorted(more) and more[0] >= few
    assert more[-1] == pytest.approx(3.0 * few) == more[-2] * more[-1] / more[-2]
    # Where there is enough signal for all columns their number does not matter.
    at_many_rows = [
        default_objective_penalty(make(10**6, d), numbers(1.0, 10**6, d), columns=d)
        for d in (5, 500)
    ]
    assert at_many_rows[0] == pytest.approx(at_many_rows[1], rel=1e-12)


def test_what_a_minimiser_costs_does_not_depend_on_columns():
    """Private searches do not know those of steps behind others."""
    model = ObjectivePerturbationLogisticRegression(epsilon=0.5, data_norm=1.0)
    plans = [model._plan_shape((1000, d), 2) for d in (2, 1000)]
    assert plans[0].event == plans[1].event and plans[1].penalty > 2.0 * plans[0].penalty
    # The event is that of the smaller penalty, which bounds the other one's from above.
    other = ObjectivePerturbationPlan.build(
        plans[1].model,
        penalty=plans[1].penalty,
        adjacency="replace-one",
        epsilon=0.5,
        delta=1e-6,
    )
    assert other.event.noise_multiplier < plans[1].event.noise_multiplier
    assert other.event.curvature < plans[1].event.curvature


def test_the_cap_is_at_least_half_of_the_bound_and_goes_away():
    model = make()
    ratios = np.geomspace(1e-3, 1e7, 501)
    caps = [default_bounded_clip(model, ratio) or model.lipschitz for ratio in ratios]
    assert caps == sorted(caps)
    assert caps[0] == pytest.approx(0.5 * model.lipschitz) and caps[-1] == model.lipschitz
    assert max(np.diff(np.log(caps))) < 0.02
    assert default_bounded_clip(model, 1e4) == default_clip(model, 1e4)


def choices(cap):
    return GradientPerturbationChoices(
        *(None, None, None, "constant", None, None, True, "poisson", "pld"), max_grad_norm=cap
    )


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_capped_plan_is_accounted_for_as_clipping(adjacency):
    model, public = make(), numbers(1.0, adjacency=adjacency)
    cap = default_bounded_clip(model, public.signal_to_noise)
    capped, plain = (build_gradient_perturbation(model, public, choices(c)) for c in (cap, None))
    assert capped.clip == cap and plain.clip == math.inf
    assert "clipped" in capped.bound.reason and "Lipschitz" in plain.bound.reason
    assert capped.bound.gap == 2.0 * capped.bound.norm
    # The noise follows the contribution alone: half of it, at the same noise multiplier.
    assert capped.sigma / capped.bound.sensitivity(adjacency) == pytest.approx(
        plain.sigma / plain.bound.sensitivity(adjacency)
    )


def clouds(scale=1.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return scale * X, (X[:, 0] > 0.0).astype(int)


@pytest.mark.parametrize(
    "estimator", [GrpuaLogisticRegression, ObjectivePerturbationLogisticRegression]
)
def test_defaults_are_the_same_in_any_unit(estimator):
    mechanisms = set()
    for scale in (1.0, 1024.0):
        X, y = clouds(scale)
        spent = estimator(1.0, 1e-5, data_norm=scale).fit(X, y).privacy_spent_
        mechanisms.add(spent.mechanism)  # in scaled units
    assert len(mechanisms) == 1


def test_the_cap_of_gradient_perturbation_can_be_given_and_left_out():
    X, y = clouds()

    def length(**parameters):
        model = GrpuaLogisticRegression(1.0, 1e-5, data_norm=1.0, **parameters).fit(X, y)
        return float(re.search(r"norm at most ([\d.]+)", model.privacy_spent_.mechanism)[1])

    longest = math.hypot(1.0, 0.2)
    assert length() == pytest.approx(0.5 * longest, rel=1e-5)
    assert length(max_grad_norm=0.25) == pytest.approx(0.25)
    assert length(max_grad_norm=None) == pytest.approx(longest, rel=1e-5)
    assert length(max_grad_norm=5.0) == pytest.approx(longest, rel=1e-5)
    # Other schedules and calibrations rest on theorems about the loss itself.
    assert length(learning_rate="convex") == pytest.approx(longest, rel=1e-5)
    assert length(calibration="composition") == pytest.approx(longest, rel=1e-5)
    with pytest.raises(ValueError, match="max_grad_norm"):
        length(max_grad_norm=-1.0)
