"""Regressors that minimise a loss of numbers: what they fit, promise and refuse."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, PoissonRegressor, QuantileRegressor
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance

from skdp import (
    DPSGDRegressor,
    GrpuaHuberRegressor,
    ObjectivePerturbationHuberRegressor,
    OperaHuberRegressor,
)
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.reporting import privacy_statement
from skdp.testing import check_private_estimator, replay_on_neighbour
from skdp.testing.replay import compare_releases, fit_frozen

HUBER = (OperaHuberRegressor, ObjectivePerturbationHuberRegressor, GrpuaHuberRegressor)
SOME = [  # noise for a profile takes longest to calibrate, or to count beside other charges
    *(OperaHuberRegressor, GrpuaHuberRegressor, DPSGDRegressor),
    pytest.param(ObjectivePerturbationHuberRegressor, marks=pytest.mark.slow),
]
LOSSES = ("squared_error", "huber", "pseudo_huber", "quantile", "poisson")
BOUNDS = {"target_bounds": (0.0, 6.0), "data_norm": 1.0}
SHORT = {"max_iter": 6}


def table(n=600, d=3, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d)) / math.sqrt(d)
    y = 2.0 + X @ np.arange(1.0, d + 1.0) * 0.7 + spread * rng.standard_normal(n)
    y[::25] = rng.uniform(0.0, 6.0, y[::25].size)
    return X, np.clip(y, 0.0, 6.0)


def few(cls, **given):
    """Return an estimator with few steps, of those that take steps."""
    steps = SHORT if cls in (GrpuaHuberRegressor, DPSGDRegressor) else {}
    return cls(**{**BOUNDS, **steps, **given})


@pytest.mark.parametrize("cls", HUBER[:2])
def test_without_noise_they_minimise_the_huber_loss(cls):
    X, y = table()
    model = cls(1e12, 1e-3, **BOUNDS, width=0.4, alpha=0.01, intercept_scaling=0.5).fit(X, y)

    def objective(weights):
        residuals = np.abs(X @ weights[:3] + weights[3] - y) / 3.0  # in halves of the range
        near = np.minimum(residuals, 0.4 / 3.0)
        size = np.append(weights[:3], (weights[3] - 3.0) / 0.5) / 3.0
        return np.mean(near * (residuals - 0.5 * near)) + 0.005 * size @ size

    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), best, atol=3e-4)
    other = clone(model).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-4)


def almost_exact(loss, high, steps=600, **given):
    """Descent whose noise does not matter."""
    model = DPSGDRegressor(None, 1e-6, loss=loss, target_bounds=(0.0, high), data_norm=1.0)
    model.set_params(noise_multiplier=1e-4, alpha=0.0, max_iter=steps, learning_rate_init=0.3)
    return model.set_params(max_grad_norm=5.0, intercept_scaling=1.0, **given)


def test_without_noise_descent_finds_quantiles_and_squares():
    X, y = table()
    for level in (0.25, 0.9):
        model = almost_exact("quantile", 6.0, quantile=level).fit(X, y)
        exact = QuantileRegressor(quantile=level, alpha=0.0).fit(X, y)
        loss = [mean_pinball_loss(y, m.predict(X), alpha=level) for m in (model, exact)]
        assert loss[0] <= 1.03 * loss[1]
        assert abs(np.mean(y < model.predict(X)) - level) < 0.04
    squares = almost_exact("squared_error", 6.0).fit(X, y)
    np.testing.assert_allclose(squares.coef_, LinearRegression().fit(X, y).coef_, atol=0.05)


def test_without_noise_descent_finds_rates_of_counts():
    X = table(2000)[0]
    counts = np.random.default_rng(1).poisson(np.exp(1.0 + X @ [1.0, -1.0, 0.5])).astype(float)
    high = float(counts.max())
    model = almost_exact("poisson", high, steps=1000).fit(X, counts)
    exact = PoissonRegressor(alpha=0.0).fit(X, counts)
    found = [mean_poisson_deviance(counts, m.predict(X)) for m in (model, exact)]
    assert found[0] <= 1.01 * found[1]
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.06)
    assert model.intercept_ == pytest.approx(exact.intercept_, abs=0.03)
    assert (model.predict(1e6 * X) <= high).all() and (model.predict(X) > 0.0).all()


@pytest.mark.parametrize(
    "longest", [10**400, np.longdouble("1e4000")], ids=["whole", "long double"]
)
def test_targets_beyond_floats_are_clipped_as_large_ones_are(longest, recwarn):
    X, y = table(30)
    kind = object if longest == 10**400 else np.longdouble
    for cls in (OperaHuberRegressor, DPSGDRegressor):
        one, other = (
            cls(**BOUNDS, delta=0.01, random_state=0).fit(X, np.array([*y[:-1], last], dtype=kind))
            for last in (longest, 1e308)
        )
        np.testing.assert_array_equal(one.coef_, other.coef_)
    assert not len(recwarn)


def test_targets_and_predictions_are_clipped():
    X, y = table()
    model = ObjectivePerturbationHuberRegressor(1e9, 1e-3, **BOUNDS)
    far = y.copy()
    far[0], y[0] = 1e300, 6.0
    one, other = (clone(model).set_params(random_state=0).fit(X, t) for t in (y, far))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)
    assert one.predict(100.0 * X).min() >= 0.0 and one.predict(100.0 * X).max() <= 6.0
    assert one.coef_.shape == (3,) and isinstance(one.intercept_, float)


def pairs(adjacency, count):
    """Yield tables and neighbours: a record moved to the far end, or to zeros for none."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        X, y = table(30, 2, int(rng.integers(100)))
        X[0], y[0] = [1.0, 0.0], rng.choice([0.0, 6.0, 1e9])
        other, targets = X.copy(), y.copy()
        other[0] = 0.0
        if adjacency == "replace-one":
            other[0] = rng.choice([-1.0, 1.0]) * np.array([1.0, 0.0])
            targets[0] = rng.choice([0.0, 6.0])
        yield X, y, other, targets


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("cls", [*HUBER, *LOSSES])
def test_replays_on_neighbours_stay_within_the_sensitivity(cls, adjacency):
    given = {"adjacency": adjacency, "delta": 0.01, "fit_intercept": adjacency == "replace-one"}
    if isinstance(cls, str):
        given, cls = {**given, "loss": cls}, DPSGDRegressor
    model = few(cls, **given)
    ratios = [replay_on_neighbour(model, *pair).largest_ratio for pair in pairs(adjacency, 2)]
    assert 0.1 < max(ratios) <= 1.0 + 1e-9


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_output_perturbation_of_the_huber_loss_attains_its_sensitivity(adjacency):
    """The longest row, its residual beyond the width, alone in its column."""
    X, y = np.zeros((20, 2)), np.full(20, 3.0)
    X[0], y[0] = [1.0, 0.0], 6.0
    model = few(OperaHuberRegressor, adjacency=adjacency, delta=0.01, fit_intercept=False)
    model.set_params(alpha=0.1)
    other, targets = X.copy(), y.copy()
    if adjacency == "replace-one":
        targets[0] = 0.0
    else:
        other[0] = 0.0
    ratio = replay_on_neighbour(model, X, y, other, targets).largest_ratio
    assert 0.99 < ratio <= 1.0 + 1e-9


@pytest.mark.parametrize("cls", SOME)
def test_a_patient_counts_as_one_row(cls):
    X, y = table(60, 2)
    ids, model = np.repeat(np.arange(20), 3), few(cls, adjacency="replace-one", delta=0.01)
    recorded = fit_frozen(model, X, y, ids).trace
    own = ids != 7
    far = np.vstack([X[own], np.tile([[1.0, 0.0]], (40, 1))])
    targets, codes = np.append(y[own], np.zeros(40)), np.append(ids[own], np.full(40, 7))
    replayed = fit_frozen(model, far, targets, codes, replayed=recorded).trace
    ratio = compare_releases(recorded.releases, replayed.releases).largest_ratio
    assert 0.05 < ratio <= 1.0 + 1e-9
    for adjacency in ("add-remove", "replace-one"):
        spent = clone(model).set_params(adjacency=adjacency).privacy_plan(20, 2, groups=True)
        assert spent.unit == "group" and spent.adjacency == adjacency


@pytest.mark.parametrize("cls", SOME)
def test_the_charge_is_what_was_planned_and_comes_before_rows(cls):
    X, y = table(200)
    model = few(cls, epsilon=0.7, delta=1e-5, adjacency="replace-one")
    planned = model.privacy_plan(*X.shape)
    with BudgetAccountant(0.9, 1e-4, adjacency="replace-one") as budget:
        fitted = clone(model).fit(X, y)
        with pytest.raises(BudgetExceededError):
            clone(model).fit(X, y)
    assert fitted.privacy_spent_ == planned and planned.epsilon <= 0.7
    assert budget.spent()[0] <= 0.7 * (1 + 1e-9)
    assert "targets are clipped to the public target_bounds=(0, 6)" in str(
        privacy_statement(fitted)
    )


def test_objective_perturbation_pays_for_a_sign_that_is_not_known():
    spent = few(ObjectivePerturbationHuberRegressor).privacy_plan(5000, 3)
    assert (spent.event.slope, spent.event.opposite) == ("any-sign", 1.0)
    assert spent.event.profile_bound(1.0, "replace-one") <= 1e-6
    pure = few(ObjectivePerturbationHuberRegressor, delta=0.0).privacy_plan(5000, 3)
    assert (pure.epsilon, pure.delta) == (1.0, 0.0)
    # A wider loss has larger gradients, and the noise grows as they do.
    sizes = [
        ObjectivePerturbationHuberRegressor(**BOUNDS, width=width, alpha=0.1)._plan_shape(
            (5000, 3), 1
        )
        for width in (0.3, 0.6)
    ]
    assert sizes[1].tilt_sigma == pytest.approx(2.0 * sizes[0].tilt_sigma, rel=1e-3)


@pytest.mark.parametrize(
    ("cls", "given", "message"),
    [
        *((cls, {"target_bounds": None}, "target_bounds must be") for cls in HUBER),
        (OperaHuberRegressor, {"width": 0.0}, "width"),
        (OperaHuberRegressor, {"width": 1e9}, "comparable"),
        (OperaHuberRegressor, {"width": "wide"}, "width"),
        (DPSGDRegressor, {"loss": "hinge"}, "loss"),
        (DPSGDRegressor, {"quantile": 1.0}, "quantile"),
        (DPSGDRegressor, {"loss": "poisson", "target_bounds": (-1, 5)}, "must not be negative"),
        (DPSGDRegressor, {"max_grad_norm": "adaptive"}, "only for networks"),
        (ObjectivePerturbationHuberRegressor, {"alpha": 1e-9}, "too small"),
    ],
)
def test_bad_parameters_are_refused_before_a_charge(cls, given, message):
    X, y = table(100)
    with BudgetAccountant(1.0, 1e-4) as budget:
        with pytest.raises((ValueError, TypeError), match=message):
            cls(**{**BOUNDS, "delta": 1e-6, **given}).fit(X, y)
    assert budget.spent()[0] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("cls", [*HUBER, *LOSSES])
def test_all_that_private_estimators_must_pass(cls):
    given = {} if not isinstance(cls, str) else {"loss": cls}
    cls = cls if not isinstance(cls, str) else DPSGDRegressor
    check_private_estimator(few(cls, target_bounds=(0.0, 1.0), delta=1e-3, **given))
