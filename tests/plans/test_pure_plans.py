"""Plans without a delta: scales, what they are proved to hide, and the tolerance's price."""

import math
from dataclasses import replace

import numpy as np
import pytest
from covering import pairs
from objective_densities import hinge, logistic, pure_log_density
from scipy import stats
from scipy.optimize import minimize

from skdp.losses import ClippedLoss, LogisticLoss, OneVsRestLoss, SmoothedHingeLoss
from skdp.mechanisms import RandomStream, record_releases
from skdp.mechanisms.additive import LARGEST_LENGTH
from skdp.models import LinearModel, ScaledUnits
from skdp.plans.carry_out import carry_out
from skdp.plans.defaults import PublicNumbers, default_objective_penalty, default_output_penalty
from skdp.plans.objective_perturbation import curvature_ratio, pure_objective_plan, secret_scale
from skdp.plans.output_perturbation import OutputPerturbationPlan
from skdp.solvers.objective import smallest_tolerance

ADJACENCIES = ("add-remove", "replace-one")
LOSSES = {
    "logistic": LogisticLoss(),
    "clipped": ClippedLoss(LogisticLoss(), 0.4),
    "hinge": SmoothedHingeLoss(0.5),
    "one-vs-rest": OneVsRestLoss(LogisticLoss(), 3),
}


def make_model(loss, n_rows=500, n_features=3, intercept_value=0.0):
    loss = LOSSES.get(loss, loss)
    units = ScaledUnits(1.0)
    return LinearModel(loss, n_rows, n_features, loss.n_outputs, intercept_value, units)


def make_plan(model, penalty=0.05, adjacency="replace-one", epsilon=1.0, **settings):
    return pure_objective_plan(
        model, penalty=penalty, adjacency=adjacency, epsilon=epsilon, **settings
    )


# Computed independently: n, penalty on the mean, epsilon, then add-remove, replace-one, and for
# units with any number of rows replace-one. The first is an equality that rounding must not miss.
REFERENCE = [
    (1000, 0.01 * (1 + 1e-11), 0.1, 10.0, 26.55781948, 26.66666667),
    (1000, 0.01, 1.0, 1.0, 2.0, 2.0),
    (30000, 0.001, 0.1, 10.0, 20.0, 20.0),
]


@pytest.mark.parametrize("row", REFERENCE)
def test_scales_have_the_reference_values(row):
    n, penalty, epsilon, *expected = row
    model = make_model("logistic", n, 5000)
    found = [secret_scale(model, penalty, adjacency, epsilon) for adjacency in ADJACENCIES]
    found.append(secret_scale(model, penalty, "replace-one", epsilon, rows=5000))
    assert found == pytest.approx(expected, rel=1e-5)
    assert found[:2] == pytest.approx(expected[:2], rel=1e-9)


def test_determinants_are_saved_from_an_exact_equality_on():
    model = make_model("logistic", 1000)
    square = model.row_norm**2  # slightly above 1
    enough = square / 100.0
    for adjacency, times in (("add-remove", 1), ("replace-one", 2)):
        scales = [
            secret_scale(model, times * enough * factor, adjacency, 0.1)
            for factor in (1.0 - 1e-15, 1.0 + 1e-15)
        ]
        saved = times * model.row_norm / 0.1
        determinant = math.log1p(curvature_ratio(model, times * enough))
        assert scales[1] == pytest.approx(saved, rel=1e-12)
        assert scales[0] == pytest.approx(saved / (1.0 - determinant / 0.1), rel=1e-12)


@pytest.mark.parametrize("loss", ["clipped", "hinge"])
def test_other_losses_pay_for_determinants_once_under_either_relation(loss):
    model = make_model(loss)
    determinant = math.log1p(curvature_ratio(model, 0.05))
    lipschitz = model.part_loss.lipschitz(model.row_norm)
    for adjacency, times in (("add-remove", 1), ("replace-one", 2)):
        expected = times * lipschitz / (1.0 - determinant)
        assert secret_scale(model, 0.05, adjacency, 1.0) == pytest.approx(expected, rel=1e-12)
    more = [make_plan(model, rows_per_unit=rows).tilt_sigma for rows in (1, 2, 3, 9, None)]
    assert more == sorted(set(more))


def worst_loss(rng, kind, outputs, adjacency, epsilon, penalty, factor=1.0):
    """Return the largest privacy loss that is found for random neighbours, over the target."""
    cap, half_width, d, n = rng.uniform(0.3, 0.9), rng.uniform(0.8, 1.2), 2, 10
    part = {
        "logistic": LogisticLoss(),
        "clipped": ClippedLoss(LogisticLoss(), cap),
        "hinge": SmoothedHingeLoss(half_width),
    }[kind]
    model = make_model(part if outputs == 1 else OneVsRestLoss(part, outputs), n, d)
    scale = factor * secret_scale(model, penalty / n, adjacency, epsilon)

    def record(length=1.0):
        row = rng.standard_normal(d)
        row *= length / np.linalg.norm(row)
        loss = hinge(half_width) if kind == "hinge" else logistic(cap if kind == "clipped" else 1.0)
        return row, rng.choice([-1.0, 1.0], outputs), loss

    common = [record() for _ in range(rng.integers(0, 3))]
    row, signs, loss = record()
    one, other = [*common, (row, signs, loss)], common
    if adjacency == "replace-one":
        other = [*common, (-row, signs, loss)]

    def loss_at(flat):
        points = flat.reshape(outputs, d)
        densities = (pure_log_density(each, penalty, scale, points) for each in (one, other))
        return abs(next(densities) - next(densities))

    starts = [rng.standard_normal(outputs * d) * 10.0**k for k in (0, 1, 2)]
    starts += [300.0 * side * np.outer(signs, row).ravel() for side in (1.0, -1.0)]
    start = max(starts, key=loss_at)
    options = {"maxfev": 150}
    search = minimize(lambda flat: -loss_at(flat), start, method="Nelder-Mead", options=options)
    return -search.fun / epsilon


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kind", ["logistic", "clipped", "hinge"])
def test_exact_densities_never_differ_by_more_than_epsilon(kind, outputs, adjacency):
    rng = np.random.default_rng(0)
    times = 2 if adjacency == "replace-one" else 1
    for epsilon, penalty in ((0.25, 4.0), (1.0, 2.5), (3.0, 0.6)):
        penalty *= outputs * times * (1.0 + 1e-11)  # equality for the logistic loss in the first
        assert worst_loss(rng, kind, outputs, adjacency, epsilon, penalty) <= 1.0 + 1e-9


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_bound_without_determinants_is_attained(outputs):
    rng = np.random.default_rng(0)
    case = ("logistic", outputs, "add-remove", 0.25, 4.0 * outputs * (1.0 + 1e-11))
    assert max(worst_loss(rng, *case) for _ in range(4)) > 0.9999
    assert max(worst_loss(rng, *case, factor=0.99) for _ in range(4)) > 1.005, (
        "no less noise will do"
    )


@pytest.mark.parametrize(
    ("loss", "target", "adjacency"),
    pairs(list(LOSSES), [(0.3, 0.05), (1.0, 1e-3), (8.0, 1e-4)], ADJACENCIES),
)
def test_both_noises_together_meet_the_target(loss, adjacency, target):
    epsilon, penalty = target
    model = make_model(loss, 30_000, 8, 0.2)
    plan = make_plan(model, penalty, adjacency, epsilon)
    final = 2.0 * plan.tolerance / (penalty * plan.sigma)
    assert 0.0 < final < 0.4 * epsilon and plan.event.epsilon == epsilon
    left = (epsilon - final) * (1.0 - 1e-13)
    assert plan.tilt_sigma >= secret_scale(model, penalty, adjacency, left) * (1.0 - 3e-13)
    assert plan.tilt_sigma <= 1.05 * secret_scale(model, penalty, adjacency, epsilon)
    # However long the tilt is drawn, the solver's promise holds.
    longest = LARGEST_LENGTH * model.n_weights * plan.tilt_sigma / model.n_rows
    part = plan.tolerance / math.sqrt(model.n_parts)
    assert part >= smallest_tolerance(model.part_loss, model.row_norm, penalty, longest)


@pytest.mark.parametrize("rows_per_unit", [1, 2, None])
@pytest.mark.parametrize("loss", LOSSES)
def test_error_says_how_much_larger_alpha_must_be(loss, rows_per_unit):
    model = make_model(loss)
    with pytest.raises(ValueError, match="alpha must exceed") as caught:
        make_plan(model, 1e-6, epsilon=0.05, rows_per_unit=rows_per_unit)
    least = float(str(caught.value).split("must exceed ")[1].split(" ")[0])
    make_plan(model, least * 1.00001, epsilon=0.05, rows_per_unit=rows_per_unit)
    with pytest.raises(ValueError, match="alpha must exceed"):
        make_plan(model, least * 0.99999, epsilon=0.05, rows_per_unit=rows_per_unit)


def test_tiny_penalties_and_grids_are_refused():
    with pytest.raises(ValueError, match="alpha of at least"):
        make_plan(make_model("logistic"), 1e-11)
    with pytest.raises(ValueError, match="Opera estimator"):
        make_plan(make_model("logistic"), numerics="discrete")


def test_released_weights_have_the_density_of_the_theorem():
    """A Kolmogorov-Smirnov test at 1e-7: with one column the law of the minimiser is known."""
    X, y = np.array([[1.0], [0.6], [-0.8]]), np.array([1, 1, 0])
    model = make_model("logistic", 3, 1)
    plan = replace(make_plan(model, 1.0, epsilon=3.0), sigma=1e-12)
    rows, slopes = model.bind(X, y), np.array([1.0, 0.6, 0.8])
    draws = [carry_out(plan, rows, RandomStream.from_entropy())[0] for _ in range(600)]

    def cdf(points):
        # The minimiser falls as the linear term rises.
        w = np.atleast_1d(points)[:, None]
        gradient = 3.0 * w[:, 0] - np.sum(slopes / (1.0 + np.exp(w * slopes)), axis=1)
        return stats.laplace(scale=plan.tilt_sigma).cdf(gradient)

    assert stats.kstest(draws, cdf).pvalue > 1e-7


@pytest.mark.parametrize("solver", ["newton", "gd"])
@pytest.mark.parametrize("numerics", ["float", "discrete"])
def test_output_perturbation_takes_the_same_sensitivity(solver, numerics):
    model = make_model("logistic", 300, 4)
    settings = {"penalty": 0.05, "adjacency": "replace-one", "epsilon": 0.7}
    settings |= {"solver": solver, "max_iter": 50, "numerics": numerics}
    pure, gaussian = (OutputPerturbationPlan.build(model, delta=d, **settings) for d in (0.0, 1e-6))
    times = 1.0 if numerics == "float" else math.sqrt(model.n_weights)  # of the L1 norm
    assert pure.sensitivity == pytest.approx(times * gaussian.sensitivity, rel=1e-5)
    assert pure.sigma == pytest.approx(pure.sensitivity / 0.7, rel=1e-5)
    assert (pure.tolerance, pure.step_size) == (gaussian.tolerance, gaussian.step_size)
    X = np.random.default_rng(0).standard_normal((300, 4))
    with record_releases() as trace:
        carry_out(pure, model.bind(X, np.arange(300) % 2), RandomStream.from_seed(0))
    (release,) = trace.releases
    assert (release.sensitivity, release.sigma) == (pure.sensitivity, pure.sigma)
    assert release.norm == (2.0 if numerics == "float" else 1.0)


@pytest.mark.parametrize(
    ("loss", "n", "epsilon"), pairs(list(LOSSES), [2, 1000, 10**9], [1e-3, 1.0, 1e3])
)
def test_defaults_always_give_a_plan_and_grow_with_the_noise(loss, n, epsilon):
    model = make_model(loss, n, 30)

    def penalties(delta, n_features=30):
        classes = max(2, model.n_outputs)
        numbers = PublicNumbers(n, n_features, classes, epsilon, delta, "replace-one")
        return default_output_penalty(model, numbers), default_objective_penalty(model, numbers)

    make_plan(model, penalties(0.0)[1], epsilon=epsilon)
    assert penalties(0.0, 300) > penalties(0.0) or n == 10**9
