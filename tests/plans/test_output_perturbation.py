"""Output perturbation: the plan's sensitivity is an upper bound, and a tight one."""

import math

import mpmath
import numpy as np
import pytest
from covering import pairs

from skdp.losses import LogisticLoss, OneVsRestLoss, SmoothedHingeLoss, SoftmaxLoss
from skdp.mechanisms import RandomStream, record_releases
from skdp.models import LinearModel
from skdp.plans.carry_out import carry_out_output_perturbation
from skdp.plans.output_perturbation import (
    OutputPerturbationPlan,
    default_tolerance,
    descent_sensitivity,
    minimiser_sensitivity,
)

LOSSES = {
    "logistic": LogisticLoss(),
    "hinge": SmoothedHingeLoss(half_width=0.5),
    "softmax": SoftmaxLoss(3),
    "one-vs-rest": OneVsRestLoss(SmoothedHingeLoss(half_width=0.5), 3),
}


def make_model(loss_name, n_rows, n_features, intercept_value=0.0):
    loss = LOSSES[loss_name]
    return LinearModel(loss, n_rows, n_features, getattr(loss, "n_outputs", 1), intercept_value)


def make_plan(model, penalty, adjacency="replace-one", solver="newton", steps=50, step_size=None):
    return OutputPerturbationPlan.build(
        model,
        penalty=penalty,
        adjacency=adjacency,
        epsilon=1.0,
        delta=1e-5,
        solver=solver,
        max_iter=steps,
        step_size=step_size,
    )


def problems(model, X, codes):
    return model.bind(np.ascontiguousarray(X), codes)


def noiseless(plan, X, codes):
    with record_releases() as trace:
        carry_out_output_perturbation(
            plan, problems(plan.model, X, codes), RandomStream.from_seed(0)
        )
    (release,) = trace.releases
    assert release.sensitivity == plan.sensitivity and release.sigma == plan.sigma
    return release.value


def unit_rows(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def random_pair(rng, adjacency, n_classes):
    """Return a random table and a neighbour with a worst-case record at a random place."""
    n, d = int(rng.integers(2, 25)), int(rng.integers(1, 5))
    X = unit_rows(rng, n, d) * rng.choice([1.0, 0.3, 0.0], size=(n, 1))
    codes = rng.integers(0, n_classes, n)
    X[0] = unit_rows(rng, 1, d)[0]
    other, labels = X.copy(), codes.copy()
    if adjacency == "add-remove":
        other[0] = 0.0  # contributes nothing without an intercept
    else:
        other[0] = -X[0] if rng.random() < 0.7 else unit_rows(rng, 1, d)[0]
        labels[0] = rng.integers(0, n_classes)
    return (X, codes), (other, labels)


@pytest.mark.daily(4)
@pytest.mark.parametrize(
    ("loss_name", "solver", "adjacency"),
    pairs(list(LOSSES), ["newton", "lbfgs", "gd"], ["replace-one", "add-remove"]),
)
def test_measured_sensitivity_never_exceeds_the_plan(loss_name, solver, adjacency):
    rng = np.random.default_rng(sum(map(ord, loss_name + solver + adjacency)))
    n_classes = 3 if loss_name in ("softmax", "one-vs-rest") else 2
    for _ in range(25):
        one, other = random_pair(rng, adjacency, n_classes)
        intercept = 0.0 if adjacency == "add-remove" else float(rng.choice([0.0, 0.2, 1.0]))
        model = make_model(loss_name, *one[0].shape, intercept)
        plan = make_plan(model, float(10.0 ** rng.uniform(-4, 1)), adjacency, solver)
        distance = np.linalg.norm(noiseless(plan, *one) - noiseless(plan, *other))
        assert distance <= plan.sensitivity * (1.0 + 1e-9)


def saturating_pair(n, sine):
    """Two neighbours whose changed record is misclassified in both, whatever its first feature.

    The other records pull the weights along the second feature; the first sees only the changed
    record, so that nothing but the penalty holds its weight back.
    """
    X = np.zeros((n, 2))
    X[1:, 1] = 1.0
    codes = np.ones(n, dtype=int)
    codes[0] = 0
    X[0] = math.sqrt(1.0 - sine**2), sine
    other = X.copy()
    other[0, 0] *= -1.0
    return (X, codes), (other, codes)


def lone_pair(n, label=1):
    """Two neighbours in which every other record is zero."""
    X = np.zeros((n, 2))
    X[0, 0] = 1.0
    codes = np.full(n, label)
    return (X, codes), (-X, codes)


@pytest.mark.parametrize(
    ("loss_name", "penalty", "pair", "solver"),
    [
        ("logistic", 1.0, lone_pair(400), "gd"),
        ("logistic", 1e-3, saturating_pair(8000, 0.5), "newton"),
        ("hinge", 1e-1, lone_pair(400), "newton"),
        ("hinge", 1.0, lone_pair(400), "gd"),
        *(
            pytest.param(
                "softmax", 1e-3, saturating_pair(8000, 0.5), solver, marks=pytest.mark.slow
            )
            for solver in ("newton", "gd")
        ),
        ("one-vs-rest", 1.0, lone_pair(400), "newton"),
        ("one-vs-rest", 1.0, lone_pair(400), "gd"),
    ],
)
def test_some_neighbours_come_near_the_sensitivity(loss_name, penalty, pair, solver):
    one, other = pair
    steps = 50 if penalty >= 0.1 else 5000
    plan = make_plan(make_model(loss_name, *one[0].shape), penalty, solver=solver, steps=steps)
    distance = np.linalg.norm(noiseless(plan, *one) - noiseless(plan, *other))
    assert 0.7 * plan.sensitivity <= distance <= plan.sensitivity


@pytest.mark.parametrize(("loss_name", "penalty"), [("logistic", 1.0), ("hinge", 0.1)])
def test_some_zeroed_record_comes_near_the_add_remove_sensitivity(loss_name, penalty):
    X, codes = lone_pair(400)[0]
    plan = make_plan(make_model(loss_name, *X.shape), penalty, "add-remove")
    distance = np.linalg.norm(noiseless(plan, X, codes) - noiseless(plan, 0.0 * X, codes))
    assert 0.7 * plan.sensitivity <= distance <= plan.sensitivity


@pytest.mark.parametrize("loss_name", list(LOSSES))
def test_minimiser_sensitivity_has_the_closed_form(loss_name):
    """At weak penalty G tends to 2L (replace-one) and L (add-remove): neither may be swapped."""
    n, penalty, s = 1000, 1e-9, 0.5
    model = make_model(loss_name, n, 3, s)
    lipschitz = {"logistic": 1.0, "hinge": 1.0, "softmax": math.sqrt(2), "one-vs-rest": 3**0.5}
    L = lipschitz[loss_name] * math.sqrt(1 + s**2)
    tau = default_tolerance(model, penalty)
    assert tau == pytest.approx(1e-3 * L / n)
    for adjacency, gap in (("replace-one", 2 * L), ("add-remove", L)):
        plan = make_plan(model, penalty, adjacency)
        exact = (gap + 2 * n * tau) / (n * penalty)
        assert plan.sensitivity == pytest.approx(exact, rel=2e-3)
        assert plan.event.noise_multiplier == pytest.approx(plan.sigma / plan.sensitivity)


def test_sensitivity_grows_with_the_tolerance():
    model = make_model("logistic", 100, 3)
    loose, tight = (minimiser_sensitivity(model, 0.1, tau, "replace-one") for tau in (1e-2, 1e-9))
    assert loose - tight >= 2 * 100 * (1e-2 - 1e-9) / (100 * 0.1)


@pytest.mark.parametrize("loss_name", list(LOSSES))
@pytest.mark.parametrize("penalty", [1e-8, 10.0])
def test_tolerance_is_one_the_solver_accepts(loss_name, penalty):
    """The solver refuses what rounding denies it; that must not happen after the charge."""
    X, codes = lone_pair(30)[0]
    for n in (30, 10**6, 10**12):
        model = make_model(loss_name, n, 2, 0.2)
        part = make_plan(model, penalty).tolerance / math.sqrt(model.n_parts)
        problem = problems(model, X, codes)[0]
        assert part >= problem.objective(penalty).smallest_tolerance()


def test_huge_tables_pay_for_what_double_precision_cannot_reach():
    per_row = [
        make_plan(make_model("logistic", n, 3), 0.1).sensitivity * n for n in (10**6, 10**11)
    ]
    assert per_row[1] > 1.05 * per_row[0]


def test_descent_without_penalty_is_linear_in_the_steps():
    model = make_model("hinge", 200, 3)
    for steps, step_size in ((1, 0.5), (10, 0.5), (70, 0.01)):
        plan = make_plan(model, 0.0, solver="gd", steps=steps, step_size=step_size)
        assert plan.sensitivity == pytest.approx(2 * steps * step_size / 200, rel=1e-9)


def test_descent_sensitivity_is_attained_on_linear_losses():
    """Far below its kink the hinge is linear: the contraction bound is then an equality."""
    one, other = lone_pair(1000)
    model = make_model("hinge", 1000, 2)
    plan = make_plan(model, 1.0, solver="gd", steps=7, step_size=0.2)
    distance = np.linalg.norm(noiseless(plan, *one) - noiseless(plan, *other))
    exact = 2 * 0.2 / 1000 * sum(0.8**k for k in range(7))
    assert distance == pytest.approx(exact, rel=1e-9)
    assert plan.sensitivity == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 3e-17, 2.1e-16, 7e-13, 3.3e-7, 1e-3, 1e9])
@pytest.mark.parametrize("share", [1e-5, 1.9, 2.0 - 1e-15])
def test_descent_sensitivity_is_rounded_up_however_little_a_step_contracts(penalty, share):
    model = make_model("hinge", 977, 3, 0.3)
    step = share / (model.loss.smoothness(model.row_norm) + penalty)
    for steps in (1, 7, 20_000, 10**9):
        computed = descent_sensitivity(model, penalty, steps, step, "replace-one")
        with mpmath.workdps(60):
            eta, m = mpmath.mpf(step), mpmath.mpf(penalty)
            big = mpmath.mpf(model.loss.smoothness(model.row_norm)) + m
            ratio = max(abs(1 - eta * m), abs(1 - eta * big))
            total = mpmath.mpf(steps) if ratio == 1 else (1 - ratio**steps) / (1 - ratio)
            exact = eta * mpmath.mpf(2 * model.row_norm) / 977 * total
            assert exact <= computed <= exact * (1 + mpmath.mpf(1e-11)), (steps, ratio)


def test_descent_refuses_steps_that_expand():
    model = make_model("hinge", 200, 3)
    make_plan(model, 0.0, solver="gd", step_size=1.99)  # smoothness is 1
    with pytest.raises(ValueError, match="too long"):
        make_plan(model, 0.0, solver="gd", step_size=2.01)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_minimisers_need_a_penalty(solver):
    with pytest.raises(ValueError, match="larger alpha"):
        make_plan(make_model("logistic", 200, 3), 0.0, solver=solver)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_noise_meets_the_target_in_high_precision(epsilon):
    model = make_model("logistic", 500, 4, 0.2)
    plan = OutputPerturbationPlan.build(
        model,
        penalty=0.01,
        adjacency="replace-one",
        epsilon=epsilon,
        delta=1e-6,
        solver="newton",
        max_iter=10,
    )
    with mpmath.workdps(50):
        mu = mpmath.mpf(plan.sensitivity) / mpmath.mpf(plan.sigma)
        eps = mpmath.mpf(epsilon)
        delta = mpmath.ncdf(-eps / mu + mu / 2) - mpmath.exp(eps) * mpmath.ncdf(-eps / mu - mu / 2)
    assert 0.999e-6 < delta <= 1e-6
