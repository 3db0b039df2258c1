"""What is said of the noise in coefficients: laws, bounds where they are reached, coverage.

Runs are seeded, so that none fails by chance.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from declared_columns import fitted
from scipy import stats

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
    VariationalLogisticRegression,
)
from skdp.inspection import shape_functions
from skdp.plans.coefficient_noise import CoefficientNoise, coefficient_noise

# Without features coefficients have no curvature but the penalty's, and are the noise alone.
EMPTY, LABELS, THREE = np.zeros((50, 60)), np.arange(50) % 2, np.arange(50) % 3
LAST = {"calibration": "hidden-state", "max_iter": 50, "radius": 1e3, "data_norm": 2.0}


def pure_noise(estimator, fits, labels=LABELS):
    found = [
        estimator.set_params(random_state=seed).fit(EMPTY, labels).coef_ for seed in range(fits)
    ]
    return np.array(found).reshape(fits, -1), estimator._coef_noise_


@pytest.mark.parametrize(
    ("estimator", "labels"),
    [
        (OperaLogisticRegression(data_norm=3.0), LABELS),
        (OperaLogisticRegression(numerics="discrete", data_norm=3.0), LABELS),
        (OperaSVC(data_norm=0.5, alpha=0.1), THREE),
        (ObjectivePerturbationLogisticRegression(data_norm=3.0), LABELS),
        (ObjectivePerturbationSVC(data_norm=2.0), THREE),
        (GrpuaLogisticRegression(learning_rate_init=0.5, alpha=0.5, **LAST), LABELS),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else f"{value.max() + 1}",
)
def test_normal_noise_has_the_stated_deviation_where_rows_have_no_curvature(estimator, labels):
    found, noise = pure_noise(estimator, 7 if labels is THREE else 20, labels)
    assert noise.known and noise.law == "normal"
    squares = float(np.sum((found / noise.deviation) ** 2))
    # Both sides: it is no more than stated, and the bound is reached. 1200 numbers or more.
    assert stats.chi2.ppf(1e-7, found.size) < squares < stats.chi2.ppf(1 - 1e-7, found.size)
    assert noise.exact == estimator.__class__.__name__.startswith("Opera")


@pytest.mark.parametrize("numerics", ["float", "discrete"])
def test_noise_without_a_delta_has_the_stated_deviation(numerics):
    estimator = OperaLogisticRegression(delta=0.0, numerics=numerics, data_norm=3.0)
    found, noise = pure_noise(estimator, 30)
    assert noise.law == {"float": "norm-exponential", "discrete": "unimodal"}[numerics]
    # The square of a Laplace number has a deviation of sqrt(5) times its mean; 1800 of them.
    mean_square = float(np.mean((found / noise.deviation) ** 2))
    assert abs(mean_square - 1) < 5.3 * math.sqrt(5 / found.size)
    assert noise.exact


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_quantiles_of_one_number_of_a_norm_exponential_vector(count, level):
    noise = CoefficientNoise("", 1.0, law="norm-exponential", n_weights=count)
    size = noise.half_width(1.0, level)
    rng = np.random.default_rng(count)
    vectors = rng.normal(size=(40_000, count))
    lengths = rng.gamma(count, size=40_000) / np.linalg.norm(vectors, axis=1)
    first = vectors[:, 0] * lengths / math.sqrt(count + 1.0)
    within = np.mean(np.abs(first) <= size)
    assert abs(within - level) < 5.5 * math.sqrt(level * (1 - level) / first.size)
    if count == 1:  # the Laplace law
        assert size == pytest.approx(-math.log(1 - level) / math.sqrt(2.0), rel=2e-6)


def test_other_laws():
    normal, pure = (CoefficientNoise("", 2.0, law=law) for law in ("normal", "unimodal"))
    assert normal.half_width(3.0, 0.95) == pytest.approx(6.0 * stats.norm.ppf(0.975))
    # Gauss's inequality, reached by the uniform law and an atom at its centre.
    for level in (0.3, 0.5, 0.8, 0.99):
        size = pure.half_width(1.0, level) / 2.0
        assert size >= stats.norm.ppf(0.5 + level / 2)
        assert size >= stats.laplace.ppf(0.5 + level / 2) / math.sqrt(2.0)
        assert size >= level * math.sqrt(3.0) - 1e-12
    assert CoefficientNoise("why").half_width(1.0, 0.95) is None
    assert CoefficientNoise("why").half_width_of_root_mean_square(np.ones(1), 0.95) is None


def test_a_factor_of_coefficients_is_one_of_their_noise():
    model = fitted()
    once = shape_functions(model)
    linear = model[-1]
    linear.coef_, linear._coef_noise_ = -0.4 * linear.coef_, linear._coef_noise_ * np.float64(-0.4)
    linear.intercept_ = -0.4 * linear.intercept_ + 3.0
    scaled = shape_functions(model)
    for name, function in scaled.items():
        np.testing.assert_allclose(function.values, -0.4 * once[name].values, atol=1e-15)
        np.testing.assert_allclose(function.half_width, 0.4 * once[name].half_width)
    assert scaled.intercept_half_width == pytest.approx(0.4 * once.intercept_half_width)
    np.testing.assert_allclose(scaled.intercept, -0.4 * once.intercept + 3.0)


@pytest.mark.parametrize("delta", [1e-6, pytest.param(0.0, marks=pytest.mark.slow)])
def test_bands_cover_the_function_without_noise(delta):
    fixed = {"alpha": 0.02, "delta": delta}
    truth = shape_functions(fitted(OperaLogisticRegression(1e7, **fixed), n=1000))
    covered, importances, intercepts = [], [], []
    for seed in range(20 if delta else 60):
        model = fitted(OperaLogisticRegression(0.5, random_state=seed, **fixed), n=1000)
        found = shape_functions(model, level=0.8)
        for name, function in found.items():
            off = np.abs(function.values - truth[name].values)[:, 0]
            covered.append(np.mean(off <= function.half_width))
            width = found[name].importance_half_width
            importances.append(abs(function.importance - truth[name].importance)[0] <= width)
            for word, (value, width) in function.others.items():
                covered.append(abs(value - truth[name].others[word][0])[0] <= width)
        off = abs(found.intercept - truth.intercept)[0]
        intercepts.append(off <= found.intercept_half_width)
    # Cells of a column cover together; columns and fits do not.
    assert abs(np.mean(covered) - 0.8) < (0.08 if delta else 0.04)
    assert 0.6 < np.mean(intercepts) < 0.95
    assert np.mean(importances) > 0.8


@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        (ObjectivePerturbationLogisticRegression(delta=0.0), "delta=0"),
        (GrpuaLogisticRegression(max_iter=3), "momentum"),
        (GrpuaSVC(max_iter=3, batch_size=10, learning_rate="convex", radius=1e-3), "public size"),
        (GrpuaLogisticRegression(max_iter=3, learning_rate="convex", radius=1e9), "too long"),
        (DPSGDClassifier(max_iter=3), "momentum"),
        (DPSGDClassifier(max_iter=3, momentum=0.0, solver="adam"), "adaptive step size"),
        (VariationalLogisticRegression(max_iter=3), "not linear"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_where_nothing_is_proved_there_is_a_reason(estimator, why):
    noise = estimator.set_params(data_norm=1.0).fit(EMPTY[:, :3], LABELS)._coef_noise_
    assert not noise.known and why in noise.about


def test_clipped_steps_of_two_classes_have_a_bound_and_of_three_none():
    steps = {"momentum": 0.0, "max_iter": 3, "data_norm": 1.0, "learning_rate_init": 0.1}
    two = DPSGDClassifier(**steps).fit(EMPTY[:, :3], LABELS)._coef_noise_
    three = DPSGDClassifier(**steps).fit(EMPTY[:, :3], THREE)._coef_noise_
    assert two.known and not two.exact
    assert not three.known and "clipped" in three.about


@pytest.mark.parametrize("outputs", [2, 3])
def test_the_noise_of_the_secret_and_the_final_noise_add_up_in_squares(outputs):
    """Of what is left of one of them where the other is nought nothing is lost."""
    model = ObjectivePerturbationSVC(data_norm=2.0, alpha=1.0, classes=range(outputs))
    plan = model._plan_shape((100, 4), outputs)
    secret = plan.tilt_sigma / plan.model.n_rows / plan.penalty  # on the mean loss, minimised
    for tilt, sigma in ((0.0, plan.sigma), (plan.tilt_sigma, 0.0), (plan.tilt_sigma, plan.sigma)):
        found = coefficient_noise(replace(plan, tilt_sigma=tilt, sigma=sigma)).deviation
        expected = math.hypot(secret if tilt else 0.0, sigma) / 2.0
        assert found == pytest.approx(expected, rel=1e-9) and found >= expected > 0.0


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_number_of_a_norm_exponential_vector_has_its_share_of_the_mean_square(count):
    plan = OperaSVC(1.0, 0.0, data_norm=2.0, alpha=0.1, fit_intercept=False)._plan_shape(
        (100, count), 2
    )
    share = stats.gamma(count).moment(2) / count  # lengths are Gamma variables
    found = coefficient_noise(plan)
    assert found.deviation == pytest.approx(plan.sigma * math.sqrt(share) / 2.0, rel=1e-9)
    assert found.exact and found.n_weights == count
