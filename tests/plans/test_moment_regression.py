"""Regression from noisy second moments: sums, their noise, what follows from them."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from skdp import PrivateLinearRegression, PrivateRidge
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.mechanisms import analytic_gaussian_sigma
from skdp.plans.moment_regression import SecondMoments
from skdp.preprocessing import BoundedScaler
from skdp.reporting import coefficient_table, privacy_statement
from skdp.testing import replay_on_neighbour
from skdp.testing.replay import compare_releases, fit_frozen

EXACT = {"epsilon": 1e13, "delta": 1e-3}  # noise below the last digits that are compared
both = pytest.mark.parametrize("cls", [PrivateRidge, PrivateLinearRegression])


def table(n=400, d=3, seed=0, spread=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d)) / math.sqrt(d)
    return X, 2.0 + X @ np.arange(1.0, d + 1.0) + spread * rng.standard_normal(n)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_ridge_regression(fit_intercept):
    X, y = table()
    own = PrivateRidge(**EXACT, target_bounds=(-1.0, 7.0), data_norm=1.0, alpha=0.02)
    own.set_params(fit_intercept=fit_intercept)
    # Without an intercept targets are taken from the middle of their bounds.
    middle = 0.0 if fit_intercept else 3.0
    for rows in (X, X.astype(np.float32), np.asfortranarray(X), sparse.csr_array(X)):
        model = own.fit(rows, y)
        other = Ridge(alpha=0.02 * len(y), fit_intercept=fit_intercept).fit(X, y - middle)
        np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5)
        np.testing.assert_allclose(model.intercept_, other.intercept_ + middle, rtol=1e-5)
        part = model.variant(alpha=0.0, features=[2, 0])
        plain = Ridge(alpha=0.0, fit_intercept=fit_intercept).fit(X[:, [2, 0]], y - middle)
        np.testing.assert_allclose(part.coef_, [plain.coef_[1], 0.0, plain.coef_[0]], rtol=1e-5)
        left = np.sum((y - middle - plain.predict(X[:, [2, 0]])) ** 2)
        freedom = len(y) - 2 - fit_intercept
        assert part.residual_std_ == pytest.approx(math.sqrt(left / freedom), rel=1e-5)
        total = np.sum((y - (y.mean() if fit_intercept else middle)) ** 2)
        assert part.r2_ == pytest.approx(1.0 - left / total, rel=1e-5)
        whole = model.variant(alpha=0.0)
        assert whole.cp_ == pytest.approx(3 + fit_intercept, abs=1e-4)
        assert part.cp_ > 20.0 and model.alpha == 0.02


@both
def test_rows_and_targets_are_clipped_and_predictions_too(cls):
    X, y = table()
    y[0], X[1] = 1e9, 1e9 * X[1]
    model = cls(**EXACT, target_bounds=(0.0, 4.0), data_norm=1.0).fit(X, y)
    short = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    other = Ridge(alpha=0.0).fit(short, np.clip(y, 0.0, 4.0))
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5)
    assert model.predict(1e3 * np.eye(3)).max() <= 4.0


@pytest.mark.parametrize("constant", [0.0, 0.4])
def test_what_symmetric_noise_adds_to_a_product(constant):
    rng = np.random.default_rng(1)
    d, noise, runs = 3 + (constant > 0.0), 0.7, 40_000
    moments = SecondMoments(np.eye(d + 1), 10, noise, constant)
    M = rng.standard_normal((d, d))
    M = M + M.T
    E = np.triu(rng.standard_normal((runs, d, d)) * noise / math.sqrt(2.0), 1)
    E = E + E.transpose(0, 2, 1)
    E[:, np.arange(d), np.arange(d)] = noise * rng.standard_normal((runs, d))
    if constant > 0.0:
        E[:, -1, -1] = 0.0
    products = E @ M @ E
    error = products.std(axis=0) / math.sqrt(runs)
    # Six standard errors: false alarm 2e-9 for each of up to 16 entries.
    assert (np.abs(products.mean(axis=0) - moments.spread(M)) < 6.0 * error).all()


def neighbours(adjacency, constant):
    """Return tables whose sums are as far apart as they can be, or nearly."""
    X = np.zeros((30, 3))
    y = np.zeros(30)
    other, targets = X.copy(), y.copy()
    X[0, 0], y[0], targets[0] = 1.0, 1.0, 1.0
    if adjacency == "replace-one":
        across = -0.5 - constant**2  # of the rows, so that the whole records are orthogonal
        other[0] = [across, math.sqrt(1.0 - across**2), 0.0]
    else:
        targets[0] = 0.0
    return X, y, other, targets


@pytest.mark.parametrize(
    ("adjacency", "fit_intercept"),
    # A row of zeros with a constant column would stand for no removed record.
    [("replace-one", True), ("replace-one", False), ("add-remove", False)],
)
def test_the_sensitivity_is_attained_and_never_exceeded(adjacency, fit_intercept):
    model = PrivateRidge(target_bounds=(-1.0, 1.0), adjacency=adjacency, data_norm=1.0)
    model.set_params(fit_intercept=fit_intercept, delta=0.01)
    report = replay_on_neighbour(model, *neighbours(adjacency, 0.5 * fit_intercept))
    assert report.largest_ratio == pytest.approx(1.0, abs=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y, other, targets = neighbours(adjacency, 0.5 * fit_intercept)
        X[0], y[0] = rng.standard_normal(3), rng.uniform(-2.0, 2.0)
        if adjacency == "replace-one":
            other[0], targets[0] = 3.0 * rng.standard_normal(3), rng.uniform(-2.0, 2.0)
        assert replay_on_neighbour(model, X, y, other, targets).largest_ratio <= 1.0 + 1e-12


@pytest.mark.parametrize("share", [0.1, 1.0, 1.2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_noise_is_that_of_the_theorem(adjacency, share):
    model = PrivateRidge(0.7, 1e-5, target_bounds=(0, 1), data_norm=4.0, adjacency=adjacency)
    plan = model.set_params(intercept_scaling=4.0 * share).privacy_plan(100, 5)
    squared = {
        "replace-one": 2.0 * (share**2 + 1.5) ** 2,
        "add-remove": 2.25 + 3.0 * share**2,
    }[adjacency]
    model._check_parameters()
    shape = model._plan_shape((100, 5), 1)
    noise = 1.5 * shape.sums.sigma
    assert noise == pytest.approx(analytic_gaussian_sigma(0.7, 1e-5) * math.sqrt(squared), rel=1e-9)
    assert plan.epsilon <= 0.7 and plan.event == shape.event


def test_the_noise_that_is_drawn_is_the_noise_that_is_stated():
    """Rows of zeros leave noise alone: 600 numbers, whose sum of squares is chi-squared."""
    X, y = np.zeros((30, 3)), np.zeros(30)
    model = PrivateRidge(target_bounds=(-1.0, 1.0), data_norm=1.0, delta=1e-3)
    squares = 0.0
    for _ in range(40):
        found = model.fit(X, y).second_moments_
        own = found.matrix[np.triu_indices(5)] / found.noise
        scale = np.where(np.equal(*np.triu_indices(5)), 1.0, math.sqrt(2.0))
        scale[np.flatnonzero(np.equal(*np.triu_indices(5)))[3]] = 0.0  # public
        squares += np.sum((own * scale) ** 2)
    assert chi2.ppf(2e-7, 560) < squares < chi2.isf(2e-7, 560)
    assert found.noise == pytest.approx(1.5 * model._plan_shape((30, 3), 1).sums.sigma)


@both
def test_a_careless_target_weight_or_number_is_refused(cls):
    plan = cls(target_bounds=(-1.0, 1.0), data_norm=1.0)._plan_shape((2, 1), 1)
    X = np.ones((2, 1))
    for targets, weights in ((np.array([2.0, 0.0]), None), (np.zeros(2), np.array([2.0, 0.0]))):
        with pytest.raises(ValueError, match="weight up to 1"):
            plan.bind(X, targets, weights)
    with pytest.raises(ValueError, match="n_rows=2"):
        plan.bind(np.ones((3, 1)), np.zeros(3))


@both
def test_a_unit_counts_as_one_row(cls):
    """Whatever rows a patient has, and however many, the mean of their moments is a record's."""
    rng = np.random.default_rng(2)
    model = cls(target_bounds=(-1.0, 1.0), data_norm=1.0, delta=0.01)
    X, y = rng.uniform(-0.5, 0.5, (60, 3)), rng.uniform(-1.0, 1.0, 60)
    ids = np.repeat(np.arange(20), 3)
    for count in (1, 40):
        recorded = fit_frozen(model, X, y, ids).trace
        rows = np.tile([[-1.0, 0.0, 0.0]], (count, 1))
        own = ids != 7
        other = np.vstack([X[own], rows]), np.append(y[own], np.full(count, -1.0))
        replayed = fit_frozen(
            model, *other, np.append(ids[own], np.full(count, 7)), replayed=recorded
        ).trace
        ratio = compare_releases(recorded.releases, replayed.releases).largest_ratio
        assert 0.4 < ratio <= 1.0 + 1e-12
    one = cls(**EXACT, target_bounds=(-1, 1), data_norm=1.0)
    twice = one.fit(np.vstack([X, X]), np.append(y, y), groups=np.tile(np.arange(60), 2)).coef_
    np.testing.assert_allclose(twice, one.fit(X, y).coef_, rtol=1e-3)


def test_the_noise_of_coefficients_is_that_of_the_table():
    """Spread of 200 fits of one table; false alarm 1e-7 each for an error of up to 5 %."""
    rng, runs = np.random.default_rng(3), 200
    X = rng.uniform(-1.0, 1.0, (1500, 3)) / math.sqrt(3.0)
    y = 0.2 + X @ [0.5, -1.0, 0.0] + 0.3 * rng.standard_normal(1500)
    found, stated = [], []
    for seed in range(runs):
        model = PrivateRidge(3.0, 1e-5, target_bounds=(-3.0, 3.0), data_norm=1.0, random_state=seed)
        told = coefficient_table(model.fit(X, y))
        found.append(told["value"])
        stated.append(told["noise_std"])
    size = np.var(found, axis=0, ddof=1) / np.mean(np.square(stated), axis=0)
    low, high = chi2.ppf([5e-8, 1.0 - 5e-8], runs - 1) / (runs - 1)
    assert (low / 1.1 < size).all() and (size < high * 1.1).all()
    assert set(told["noise_is"]) == {"about"}
    part = coefficient_table(model.variant(features=[0, 2]))["noise_std"]
    assert np.isnan(part).tolist() == [False, True, False, False]
    plain = coefficient_table(model.set_params(fit_intercept=False).fit(X, y))["noise_std"]
    assert np.isnan(plain).tolist() == [False] * 3 + [True]


def test_what_noise_hides_is_not_told():
    X, y = table(n=100, spread=0.0)
    model = PrivateRidge(0.1, target_bounds=(0.0, 4.0), data_norm=1.0).fit(X, y)
    assert not model._coef_noise_.known and np.isfinite(model.coef_).all()
    assert math.isnan(model.r2_) or model.r2_ < 1.0


def test_variants_cost_nothing_and_take_names():
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with BudgetAccountant(1.0, 1e-3) as budget:
        pipeline = make_pipeline(
            BoundedScaler(-1.0, 1.0).set_output(transform="pandas"),
            PrivateRidge(delta=1e-3, target_bounds=(0.0, 4.0)),
        ).fit(frame, y)
        before = budget.spent()
        model = pipeline[-1].variant(features=["c"])
        again = model.variant(alpha=1.0)
        assert np.flatnonzero(again.coef_).tolist() == np.flatnonzero(model.coef_).tolist()
        assert np.all(again.variant(features=["a", "b", "c"]).coef_ != 0.0)
        assert budget.spent() == before and model.privacy_spent_ == pipeline[-1].privacy_spent_
        with pytest.raises(BudgetExceededError):
            pipeline.fit(frame, y)
    assert np.flatnonzero(model.coef_).tolist() == [2]
    assert coefficient_table(pipeline)["name"].tolist() == ["a", "b", "c", "(intercept)"]
    for wrong in (["d"], [3], [-1], [0, 0], [], [True], "ab"):
        with pytest.raises(ValueError, match="features must be"):
            model.variant(features=wrong)
    assert "second_moments_" in str(privacy_statement(pipeline))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"target_bounds": None}, "public pair"),
        ({"target_bounds": (1.0, 1.0)}, "low < high"),
        ({"target_bounds": (0.0, math.inf)}, "must be finite, got"),
        ({"target_bounds": (0, 1, 2)}, "low, high"),
        ({"alpha": "auto"}, "alpha"),
        ({"intercept_scaling": 1.3}, "at most 1.2"),
    ],
)
def test_bad_parameters_cost_nothing(changed, words):
    X, y = table(n=30)
    with BudgetAccountant(1.0, 0.5) as budget:
        model = PrivateRidge(delta=0.01, target_bounds=(0.0, 4.0), data_norm=1.0)
        with pytest.raises((ValueError, TypeError), match=words):
            model.set_params(**changed).fit(X, y)
        model = PrivateRidge(delta=0.01, target_bounds=(0.0, 4.0), data_norm=1.0)
        for bad in (["seven"] * 30, np.where(y > 2.0, np.nan, y), np.column_stack([y, y])):
            with pytest.raises((ValueError, TypeError)) as error:
                model.fit(X, bad)
            assert "seven" not in str(error.value)
        assert budget.spent()[0] == 0.0
