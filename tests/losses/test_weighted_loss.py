"""Constants of losses with weights: those of the heaviest record, in every plan."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp.losses import ClippedLoss, LogisticLoss, OneVsRestLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.losses.wrapped import WeightedLoss
from skdp.mechanisms import RandomStream
from skdp.models import LinearModel, NetworkModel
from skdp.plans.carry_out import carry_out
from skdp.plans.defaults import PublicNumbers, default_clip, default_objective_clip
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.gradient_perturbation import build_gradient_perturbation
from skdp.plans.noisy_gradient import DPSGDChoices, GradientPerturbationChoices
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan
from skdp.plans.output_perturbation import OutputPerturbationPlan
from skdp.solvers.gradients import gradient_rounding
from skdp.solvers.objective import smallest_tolerance

LOSSES = [
    LogisticLoss(),
    SmoothedHingeLoss(0.5),
    ClippedLoss(LogisticLoss(), 0.3),
    SoftmaxLoss(3),
    OneVsRestLoss(ClippedLoss(SmoothedHingeLoss(0.5), 0.4), 3),
]
losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)
OMEGA = 8.0


@losses
def test_constants_are_the_heaviest_times_as_large(loss):
    heavy = WeightedLoss(loss, OMEGA)
    for one, other in ((loss, heavy), (loss.part, heavy.part)):
        for constant in ("lipschitz", "smoothness", "zero_out_gap", "gradient_gap"):
            wanted = OMEGA * getattr(one, constant)(1.3)
            assert wanted <= getattr(other, constant)(1.3) <= wanted * (1 + 1e-12)
        for constant in ("zero_out_gap", "gradient_gap"):
            wanted = OMEGA * getattr(one, constant)(1.3, 0.7)
            assert wanted <= getattr(other, constant)(1.3, 0.7) <= wanted * (1 + 1e-12)
        # Objective and penalty over the heaviest have the same minimiser.
        for penalty in (1e-3, 10.0):
            wanted = one.minimiser_norm_bound(1.3, penalty / OMEGA)
            found = other.minimiser_norm_bound(1.3, penalty)
            assert wanted <= found <= wanted * (1 + 1e-12)
        assert (one.clip, one.convex, one.n_outputs) == (other.clip, other.convex, other.n_outputs)
    assert heavy.unweighted is loss and heavy.kernel_loss is loss.kernel_loss
    rounding = gradient_rounding(heavy.part, 1.3, 0.0, (100, 5))
    plain = gradient_rounding(loss.part, 1.3, 0.0, (100, 5))
    np.testing.assert_allclose(rounding, OMEGA * np.array(plain), rtol=1e-12)
    tolerances = [
        smallest_tolerance(each, 1.3, share * 0.01, share * 1.0)
        for each, share in ((loss.part, 1.0), (heavy.part, OMEGA))
    ]
    assert tolerances[1] == pytest.approx(OMEGA * tolerances[0], rel=1e-12)


def model_of(loss, heaviest=OMEGA, n=400):
    return LinearModel(loss, n, 3, loss.n_outputs, 0.5, heaviest=heaviest)


def test_a_record_may_be_replaced_by_one_of_no_weight(monkeypatch):
    """Of a loss whose gradients all point one way no two are as far apart as one is long."""
    monkeypatch.setattr(LogisticLoss, "gradient_gap", lambda *args: 0.25)
    heavy = WeightedLoss(LogisticLoss(), OMEGA)
    assert heavy.gradient_gap(1.3) >= heavy.zero_out_gap(1.3) >= OMEGA * 1.3


def test_models_take_the_weights_over():
    model = model_of(LogisticLoss())
    assert model.loss == WeightedLoss(LogisticLoss(), OMEGA) and model.name == "LogisticLoss"
    assert replace(model, loss=SmoothedHingeLoss(0.5)).loss.heaviest == OMEGA
    assert replace(model, heaviest=3.0).loss == WeightedLoss(LogisticLoss(), 3.0)
    assert replace(model, heaviest=1.0).loss == LogisticLoss()
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="heaviest must be a positive finite number"):
            model_of(LogisticLoss(), wrong)


DESCENT = GradientPerturbationChoices(
    *(None, None, 30, "constant", None, None, False, "poisson", "pld")
)
SGD = DPSGDChoices(
    *(None, None, None, None, 30, "sgd", None, 0.9, 0.999, "constant", None, 0.1, 1.0, False)
)
NUMBERS = PublicNumbers(400, 3, 2, 1.0, 1e-6, "replace-one")


def output_plan(model, penalty, **options):
    options = {"solver": "newton", "max_iter": 50, **options}
    common = {"adjacency": "replace-one", "epsilon": 1.0, "delta": 1e-6}
    return OutputPerturbationPlan.build(model, penalty=penalty, **common, **options)


@losses
@pytest.mark.parametrize("numerics", ["float", "discrete"])
def test_output_perturbation_with_the_penalty_scaled_has_the_same_noise(loss, numerics):
    """Weights times 8 and the penalty times 8 are the same problem."""
    steps = {"newton": (None, None), "gd": (0.1, 0.1 / OMEGA)}
    for solver, step in steps.items():
        plain, heavy = (
            output_plan(model, alpha, solver=solver, step_size=size, numerics=numerics)
            for model, alpha, size in (
                (model_of(loss, 1.0), 0.5, step[0]),
                (model_of(loss), 0.5 * OMEGA, step[1]),
            )
        )
        assert heavy.sigma == pytest.approx(plain.sigma, rel=1e-6)
        assert heavy.sigma >= plain.sigma * (1 - 1e-12)
        assert heavy.tolerance == pytest.approx(OMEGA * plain.tolerance, rel=1e-9)


@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[1], LOSSES[2], LOSSES[4]], ids=repr)
@pytest.mark.parametrize("numerics", ["float", "discrete"])
def test_objective_perturbation_with_the_penalty_scaled_has_the_same_noise(loss, numerics):
    common = {"adjacency": "replace-one", "epsilon": 1.0, "delta": 1e-6, "numerics": numerics}
    plain = ObjectivePerturbationPlan.build(model_of(loss, 1.0), penalty=0.05, **common)
    heavy = ObjectivePerturbationPlan.build(model_of(loss), penalty=0.05 * OMEGA, **common)
    assert heavy.event.curvature == pytest.approx(plain.event.curvature, rel=1e-12)
    assert heavy.tilt_sigma == pytest.approx(OMEGA * plain.tilt_sigma, rel=1e-6)
    assert heavy.sigma == pytest.approx(plain.sigma, rel=1e-6)
    assert heavy.sensitivity == pytest.approx(plain.sensitivity, rel=1e-6)


def test_noisy_sums_take_the_heaviest_record():
    plans = {1.0: model_of(LogisticLoss(), 1.0), OMEGA: model_of(LogisticLoss())}
    for choices in (
        DESCENT,
        replace(DESCENT, max_grad_norm=0.4),
        replace(DESCENT, calibration="hidden-state", radius=2.0),
    ):
        plain, heavy = (
            build_gradient_perturbation(model, NUMBERS, choices) for model in plans.values()
        )
        assert plain.clip == heavy.clip
        wanted = OMEGA * np.array([plain.bound.norm, plain.bound.gap])
        np.testing.assert_allclose([heavy.bound.norm, heavy.bound.gap], wanted, rtol=1e-12)
    for choices in (SGD, replace(SGD, max_grad_norm=0.4)):
        plain, heavy = (build_dpsgd(model, NUMBERS, choices) for model in plans.values())
        assert heavy.clip == pytest.approx(plain.clip, rel=1e-12)
        assert heavy.bound.norm == pytest.approx(OMEGA * plain.clip, rel=1e-12)
        assert heavy.sigma == pytest.approx(OMEGA * plain.sigma, rel=1e-9)
        assert heavy.steps == plain.steps
    assert "multiplied by its weight, 8 at most" in heavy.bound.reason
    with pytest.raises(ValueError, match="Adaptive clipping is proved for one row of weight 1"):
        build_dpsgd(plans[OMEGA], NUMBERS, replace(SGD, adaptive=True, max_grad_norm=0.4))


def test_networks_multiply_their_bound_in_a_ball():
    plain, heavy = (
        NetworkModel(LogisticLoss(), 400, 3, 1, (4,), heaviest=heaviest)
        for heaviest in (1.0, OMEGA)
    )
    for radius in (0.5, 3.0):
        assert heavy.zero_out_gap(radius) == OMEGA * plain.zero_out_gap(radius)
        assert heavy.gradient_gap(radius) == OMEGA * plain.gradient_gap(radius)
    choices = replace(DESCENT, radius=0.5)
    one, other = (build_gradient_perturbation(model, NUMBERS, choices) for model in (plain, heavy))
    assert other.clip == pytest.approx(one.clip, rel=1e-12) and other.clip <= one.clip
    assert other.bound.norm == pytest.approx(OMEGA * one.bound.norm, rel=1e-12)


def test_default_clipping_norms_are_those_before_weights():
    plain, heavy = model_of(LogisticLoss(), 1.0), model_of(LogisticLoss())
    assert default_objective_clip(heavy, NUMBERS) == default_objective_clip(plain, NUMBERS)
    assert default_clip(heavy, 5.0) == pytest.approx(default_clip(plain, 5.0), rel=1e-12)


def test_rows_that_do_not_fit_the_plan_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 3)), rng.integers(0, 2, 400)
    model = model_of(LogisticLoss())
    stream = RandomStream.from_seed(0)
    for plan in (output_plan(model, 1.0), build_dpsgd(model, NUMBERS, SGD)):
        heavy = model.bind(X, y, np.full(400, OMEGA * 1.01))
        with pytest.raises(ValueError, match="weighs more than the public heaviest=8"):
            carry_out(plan, heavy, stream)
    with pytest.raises(ValueError, match="does not have n_rows=400"):
        carry_out(output_plan(model, 1.0), model.bind(X, y, None, 300), stream)
    # Sums of more rows than units round more than the bound on the grid allows for.
    units = replace(model, n_rows=200)
    problems = units.bind(X, y, np.full(400, 0.5), 200)
    carry_out(output_plan(units, 1.0), problems, stream)
    with pytest.raises(ValueError, match="does not have n_rows=200"):
        carry_out(output_plan(units, 1.0, numerics="discrete"), problems, stream)
