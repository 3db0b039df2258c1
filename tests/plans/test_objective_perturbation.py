"""Objective perturbation: reference noise, side conditions, and what is carried out."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from covering import pairs
from scipy.special import ndtr
from scipy.stats import kstest

from skdp.accounting.numerics import gaussian_profile
from skdp.losses import ClippedLoss, LogisticLoss, OneVsRestLoss, SmoothedHingeLoss
from skdp.mechanisms import RandomStream, record_releases
from skdp.models import LinearModel, LinearProblem, ScaledUnits
from skdp.plans.carry_out import carry_out_objective_perturbation
from skdp.plans.defaults import PublicNumbers, default_objective_clip, default_objective_penalty
from skdp.plans.objective_perturbation import (
    ObjectivePerturbationPlan,
    least_noise_event,
    pure_objective_plan,
    smallest_penalty,
)
from skdp.solvers import RegularisedObjective, Rows

ADJACENCIES = ("add-remove", "replace-one")
LOSSES = {
    "logistic": LogisticLoss(),
    "clipped": ClippedLoss(LogisticLoss(), 0.3),
    "hinge": SmoothedHingeLoss(0.5),
    "clipped hinge": ClippedLoss(SmoothedHingeLoss(0.5), 0.3),
    "one-vs-rest": OneVsRestLoss(ClippedLoss(LogisticLoss(), 0.3), 3),
}


def make_model(loss, n_rows=500, n_features=3, intercept_value=0.0, data_norm=1.0):
    loss = LOSSES.get(loss, loss)
    return LinearModel(
        loss, n_rows, n_features, loss.n_outputs, intercept_value, ScaledUnits(data_norm)
    )


def make_plan(model, penalty=0.05, adjacency="replace-one", epsilon=1.0, delta=1e-6, **settings):
    return ObjectivePerturbationPlan.build(
        model, penalty=penalty, adjacency=adjacency, epsilon=epsilon, delta=delta, **settings
    )


def make_pure_plan(model, penalty, adjacency="replace-one"):
    return pure_objective_plan(model, penalty=penalty, adjacency=adjacency, epsilon=1.0)


# Computed independently; columns: n, penalty on the mean, epsilon, delta, then add-remove without
# and with the determinants' share, replace-one without and with it.
REFERENCE = [
    (1000, 0.01, 0.1, 1e-3, 17.404396, 21.811072, None, 43.622143),
    (1000, 0.01, 1.0, 1e-3, 2.5746570, 2.6292372, 5.1493140, 5.2584744),
    (1000, 0.01, 1.0, 1e-6, 4.2246789, 4.3238408, 8.4493578, 8.6476817),
    (1000, 0.02, 0.1, 1e-5, 30.749566, 34.705822, 61.499132, 69.411644),
    (10000, 0.001, 0.5, 1e-6, 8.0576185, 8.4481001, 16.115237, 16.896200),
    (30000, 0.001, 0.1, 1e-3, 17.404396, 18.653611, 34.808792, 37.307222),
]


@pytest.mark.parametrize("row", REFERENCE)
def test_least_noise_has_the_reference_values(row):
    n, penalty, epsilon, delta, *noises = row
    curvature = 0.25 / (n * penalty)
    for k, expected in enumerate(noises):
        slope = "logistic" if k % 2 == 0 else "known-sign"
        event = least_noise_event(curvature, slope, ADJACENCIES[k // 2], epsilon, delta)
        # Where the logistic loss's own bound does not apply, the general one does.
        wanted = noises[3] if expected is None else expected
        assert event.noise_multiplier == pytest.approx(wanted, rel=6e-8)


@pytest.mark.parametrize(
    ("n", "penalty", "epsilon", "delta", "expected"),
    [(1000, 0.01, 0.1, 1e-3, 24.826949), (1000, 0.001, 1.0, 1e-6, 5.5252258)],
)
def test_losses_of_any_sign_need_the_reference_noise(n, penalty, epsilon, delta, expected):
    event = least_noise_event(0.25 / (n * penalty), "any-sign", "add-remove", epsilon, delta)
    assert event.noise_multiplier == pytest.approx(expected, rel=6e-8)


@pytest.mark.parametrize(
    ("loss", "adjacency", "target"),
    pairs(list(LOSSES), ADJACENCIES, [(0.3, 1e-6), (8.0, 1e-9)]),
)
def test_plans_meet_their_target_and_approximation_costs_little(loss, adjacency, target):
    epsilon, delta = target
    model = make_model(loss, intercept_value=0.2)
    plan = make_plan(model, 0.1, adjacency, epsilon, delta)
    bound = plan.event.profile_bound(epsilon, adjacency)
    assert 0.999 * delta <= bound <= delta
    exact = least_noise_event(
        plan.event.curvature,
        plan.event.slope,
        adjacency,
        epsilon,
        delta,
        outputs=plan.event.outputs,
    )
    assert 1.0 <= plan.event.noise_multiplier / exact.noise_multiplier < 1.02
    lipschitz = model.part_loss.lipschitz(model.row_norm)
    assert plan.tilt_sigma == pytest.approx(plan.event.noise_multiplier * lipschitz)
    joint = 2.0 * plan.tolerance / (plan.penalty * plan.sigma)
    assert joint <= plan.event.approximation


def test_curvature_and_slope_are_those_of_the_loss():
    squared = 1.04 * 500 * 0.05
    for loss, curvature, slope in (
        ("logistic", 0.25, "logistic"),
        ("clipped", 0.3 * (math.sqrt(1.04) - 0.3) / 1.04, "known-sign"),
        ("hinge", 1.0, "known-sign"),
        ("clipped hinge", 1.0, "known-sign"),
    ):
        event = make_plan(make_model(loss, intercept_value=0.2)).event
        expected = curvature * 1.04 / (squared / 1.04)
        assert event.curvature == pytest.approx(expected, rel=1e-9), loss
        assert event.slope == slope and event.outputs == 1
    assert make_plan(make_model("one-vs-rest")).event.outputs == 3


def test_replace_one_needs_twice_the_noise_of_add_remove():
    noises = [make_plan(make_model("hinge"), adjacency=a).tilt_sigma for a in ADJACENCIES]
    assert noises[1] == pytest.approx(2.0 * noises[0], rel=1e-5)


# Side conditions.


@pytest.mark.parametrize(
    ("loss", "adjacency", "epsilon"), pairs(list(LOSSES), ADJACENCIES, [0.05, 1.0])
)
def test_error_says_how_much_larger_alpha_must_be(loss, adjacency, epsilon):
    model = make_model(loss, data_norm=7.0)
    least = smallest_penalty(model, epsilon)
    with pytest.raises(ValueError, match="alpha must exceed") as caught:
        make_plan(model, 0.3 * least, adjacency, epsilon)
    alpha, needed, factor = (
        float(re.search(pattern, str(caught.value)).group(1))
        for pattern in (r"alpha=(\S+) ", r"exceed (\S+) ", r"\((\S+) times")
    )
    assert alpha == pytest.approx(0.3 * least * 49.0, rel=1e-4)
    assert needed == pytest.approx(least * 49.0, rel=1e-4)
    assert factor == pytest.approx(1 / 0.3, rel=1e-2)
    enough = make_plan(model, 1.02 * needed / 49.0, adjacency, epsilon)
    assert enough.event.profile_bound(epsilon, adjacency) <= 1e-6
    ample = make_plan(model, 10.0 * needed / 49.0, adjacency, epsilon)
    assert ample.tilt_sigma < 1.25 * make_plan(model, 1e4, adjacency, epsilon).tilt_sigma


def test_zero_and_vanishing_penalties_are_refused():
    for penalty in (0.0, 1e-300, 1e-11):
        with pytest.raises(ValueError, match="too small"):
            make_plan(make_model("logistic"), penalty, epsilon=1e6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", [1e-6, 10.0])
def test_tolerance_is_one_the_solver_accepts(loss, penalty):
    """Neither the rows nor the secret tilt may make the solver refuse after the charge."""
    for n in (30, 10**6, 10**11):
        model = make_model(loss, n, 2, 0.2)
        plan = make_plan(model, max(penalty, 2 * smallest_penalty(model, 1.0)))
        part = plan.tolerance / math.sqrt(model.n_parts)
        rows = Rows.from_matrix(np.ones((3, 2)), np.ones(3, np.int8), 1.0, 0.2)
        tilt = np.full(3, 22.3 * plan.tilt_sigma / n)
        objective = RegularisedObjective(rows, model.part_loss, plan.penalty, tilt)
        assert part >= objective.smallest_tolerance()


@pytest.mark.parametrize("loss", ["clipped", "one-vs-rest"])
def test_more_is_spent_on_the_final_noise_where_rounding_governs_it(loss):
    """With this many rows no double can be near enough: a larger share is the lesser evil."""
    few, many = (
        make_plan(make_model(loss, rows, 50, 0.2), penalty)
        for rows, penalty in ((30_000, 1e-4), (10**8, 1e-7))
    )
    shares = [plan.event.approximation * plan.event.noise_multiplier for plan in (few, many)]
    assert shares[1] > 3.9 * shares[0]
    assert many.event.noise_multiplier <= 1.12 * few.event.noise_multiplier


@pytest.mark.parametrize("loss", ["clipped", "one-vs-rest"])
@pytest.mark.parametrize(("rows", "penalty"), [(300, 0.1), (30_000, 1e-4), (10**7, 1e-6)])
def test_the_final_noise_on_a_grid_hides_all_that_theorem_4_counts(loss, rows, penalty):
    """Tolerance, how far the secret is from a continuous one, rounding; r is 16, its reach 80."""
    model = make_model(loss, rows, 50, 0.2)
    plan = make_plan(model, penalty, numerics="discrete")
    root, scale = math.sqrt(model.n_weights), plan.sigma / plan.grid
    near = 80 * 16 * plan.tilt_grid * root
    hidden = 2.0 * (plan.tolerance + near) / penalty + plan.grid * root
    worth = plan.grid * math.sqrt(scale**2 - 256)
    assert near > 1e-8 * plan.tolerance  # so that its absence would be seen
    assert hidden / worth <= plan.event.approximation * (1.0 + 1e-10)
    lipschitz = model.part_loss.lipschitz(model.row_norm)
    secret = plan.tilt_sigma / rows / plan.tilt_grid
    worth = rows * plan.tilt_grid * math.sqrt(secret**2 - 256)
    assert worth >= plan.event.noise_multiplier * lipschitz * (1.0 - 1e-10)


# What is carried out.


def table(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(0, 3, n)


def problems(model, X, codes):
    def problem(signs):
        rows = Rows.from_matrix(X, signs.astype(np.int8), 1.0, model.intercept_value)
        return LinearProblem(rows, model.part_loss)

    return [problem(np.where(codes == k, 1, -1)) for k in range(model.n_parts)]


@pytest.mark.parametrize(("loss", "solver"), zip(LOSSES, ("newton", "lbfgs") * 3, strict=False))
def test_one_release_of_a_minimiser_within_the_tolerance(loss, solver):
    X, codes = table()
    model = make_model(loss, 40, 3, 0.2)
    plan = make_plan(model, 0.2, solver=solver)
    with record_releases() as trace:
        out = carry_out_objective_perturbation(
            plan, problems(model, X, codes), RandomStream.from_seed(3)
        )
    (release,) = trace.releases
    assert (release.label, release.sigma) == ("weights", plan.sigma)
    np.testing.assert_array_equal(out, release.output)
    tilts = RandomStream.from_seed(3).spawn("objective").standard_normal((model.n_parts, 4))
    tilts *= plan.tilt_sigma / 40
    gradients = [
        problem.objective(plan.penalty, tilt).gradient(weights)
        for problem, tilt, weights in zip(
            problems(model, X, codes), tilts, release.value.reshape(model.n_parts, 4), strict=True
        )
    ]
    assert np.linalg.norm(gradients) <= plan.tolerance
    assert not np.any(np.isin(np.round(tilts, 12), np.round(out, 12)))


@pytest.mark.parametrize(
    "loss",
    ["logistic", "clipped hinge"],
)
def test_released_weights_have_the_density_of_the_theorem(loss):
    """With one column the minimiser falls as the tilt rises, so its law is known exactly.

    A Kolmogorov-Smirnov test at 1e-7 for each of the losses.
    """
    X, y = np.array([[1.0], [0.6], [-0.8]]), np.array([0, 0, 1])
    model = make_model(loss, 3, 1)
    plan = make_plan(model, 1.0, epsilon=3.0, delta=1e-2)
    plan = replace(plan, sigma=1e-12)
    rows = problems(model, X, y)
    signs = np.where(y == 0, 1.0, -1.0)
    draws = [
        carry_out_objective_perturbation(plan, rows, RandomStream.from_entropy())[0]
        for _ in range(800)
    ]
    cap = getattr(model.loss, "clip", np.inf) / np.abs(X[:, 0])

    def gradient(w):
        margins = signs * X[:, 0] * w
        if "hinge" in loss:
            slopes = np.clip(1.5 - margins, 0.0, 1.0)
        else:
            slopes = 1.0 / (1.0 + np.exp(margins))
        return 3.0 * plan.penalty * w - np.sum(np.minimum(slopes, cap) * signs * X[:, 0])

    def cdf(points):
        return np.array([ndtr(gradient(w) / plan.tilt_sigma) for w in np.atleast_1d(points)])

    assert kstest(draws, cdf).pvalue > 1e-7


@pytest.mark.parametrize("build", [make_plan, make_pure_plan])
def test_measured_movement_stays_within_the_declared_sensitivity(build):
    rng = np.random.default_rng(0)
    largest = 0.0
    for loss in LOSSES:
        model = make_model(loss, 40, 3)
        plan = build(model, 1.0)
        for seed in range(5):
            X, codes = table(seed=seed)
            other, labels = X.copy(), codes.copy()
            other[0], labels[0] = -X[0], rng.integers(0, 3)
            values = []
            for data in ((X, codes), (other, labels)):
                with record_releases() as trace:
                    carry_out_objective_perturbation(
                        plan, problems(model, *data), RandomStream.from_seed(seed)
                    )
                values.append(trace.releases[0].value)
            ratio = np.linalg.norm(values[0] - values[1]) / plan.sensitivity
            assert ratio <= 1.0 + 1e-9
            largest = max(largest, ratio)
    assert largest > 0.8


# Defaults.


def numbers(n, epsilon, adjacency="replace-one", n_classes=2):
    return PublicNumbers(n, 10, n_classes, epsilon, 1e-6, adjacency)


@pytest.mark.daily(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_default_penalty_always_gives_a_plan(loss, adjacency):
    for n, epsilon in itertools.product((2, 30, 1000, 10**6, 10**9), (1e-3, 0.1, 1.0, 10.0, 1e3)):
        model = make_model(loss, n, 10, 0.2)
        public = numbers(n, epsilon, adjacency, max(2, model.n_outputs))
        plan = make_plan(model, default_objective_penalty(model, public), adjacency, epsilon)
        ideal = gaussian_profile.sigma(epsilon, 1e-6) * math.sqrt(model.n_parts)
        ideal *= 2.0 if adjacency == "replace-one" else 1.0
        assert plan.event.noise_multiplier <= 1.3 * ideal, (n, epsilon)


def test_default_clip_grows_until_it_disappears():
    model = make_model("logistic", intercept_value=0.2)
    clips = [default_objective_clip(model, numbers(n, 1.0)) for n in (10**2, 10**4, 10**6, 10**9)]
    assert clips[:2] == sorted(clips[:2]) and clips[1] < 0.7 * math.sqrt(1.04)
    assert clips[3] is None
    assert default_objective_clip(make_model("hinge"), numbers(1000, 1.0)) is None
