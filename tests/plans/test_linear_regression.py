"""Regression by preconditioned steps: what moves, what is spent, what follows from it."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from skdp import PrivateLinearRegression, PrivateRidge
from skdp.accounting import PLDAccountant
from skdp.accounting.numerics import gaussian_profile
from skdp.budget import BudgetAccountant
from skdp.mechanisms import RandomStream
from skdp.mechanisms.trace import record_releases
from skdp.models import ScaledUnits
from skdp.plans.defaults import PublicNumbers
from skdp.plans.linear_regression import RegressionPlan, Tuning, _ClippedSums
from skdp.plans.moment_regression import ROUNDING, sum_moments, unpack_moments
from skdp.preprocessing import DPPCA, BoundedScaler
from skdp.reporting import privacy_statement
from skdp.testing import replay_on_neighbour
from skdp.testing.replay import compare_releases

EXACT = {"epsilon": 1e13, "delta": 1e-3}  # noise below the last digits that are compared


def table(n=400, d=3, seed=0, spread=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d)) / math.sqrt(d)
    return X, 2.0 + X @ np.arange(1.0, d + 1.0) + spread * rng.standard_normal(n)


def plan_for(n, d, adjacency, epsilon=1.0, delta=1e-3, fit_intercept=True, **tuning):
    numbers = PublicNumbers(n, d, 1, epsilon, delta, adjacency)
    return RegressionPlan.build(numbers, ScaledUnits(1.0), fit_intercept, Tuning(**tuning))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_least_squares(fit_intercept):
    X, y = table()
    X *= [1.0, 0.1, 0.01]  # badly scaled columns
    own = PrivateLinearRegression(**EXACT, target_bounds=(-1.0, 7.0), data_norm=1.0)
    own.set_params(fit_intercept=fit_intercept)
    for rows in (X, X.astype(np.float32), np.asfortranarray(X), sparse.csr_array(X)):
        model = own.fit(rows, y)
        centre = 0.0 if fit_intercept else model.center_
        other = LinearRegression(fit_intercept=fit_intercept).fit(X, y - centre)
        np.testing.assert_allclose(model.coef_, other.coef_, rtol=2e-5)
        np.testing.assert_allclose(model.intercept_, other.intercept_ + centre, rtol=1e-5)
    assert model.center_ == pytest.approx(np.median(y), abs=0.1)
    assert model.scale_ == pytest.approx(y.std(), rel=0.1)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_budget_is_the_sum_of_squares(adjacency, fit_intercept):
    plan = plan_for(500, 4, adjacency, 0.7, 1e-5, fit_intercept)
    mu = gaussian_profile.mu(0.7, 1e-5)
    parts = plan.counts, plan.moments, plan.steps
    squares = [part.times * (part.sensitivity / part.sigma) ** 2 for part in parts]
    assert sum(squares) <= mu**2
    assert sum(squares) == pytest.approx(mu**2, rel=1e-9)
    np.testing.assert_allclose(np.divide(squares, mu**2), [0.13, 0.174, 0.696], rtol=1e-9)
    # Theorem 1, by hand.
    s = 0.5 * fit_intercept
    replaced = math.sqrt(2.0), math.sqrt(2.0) * (1.0 + s**2), 2.0
    expected = replaced if adjacency == "replace-one" else (1.0, math.sqrt(1.0 + 2.0 * s**2), 1.0)
    np.testing.assert_allclose([part.sensitivity for part in parts], expected, rtol=1e-11)
    assert plan.steps.times == 32
    assert plan_for(40_000, 4, adjacency).steps.times == 10  # a very large table for 4 columns
    accountant = PLDAccountant(adjacency=adjacency).compose(plan.event)
    assert accountant.epsilon(1e-5) == pytest.approx(0.7, rel=1e-6)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("s", [0.0, 0.5])
def test_one_feature_moves_moments_by_what_is_declared(adjacency, s):
    declared = plan_for(500, 1, adjacency, 0.7, 1e-5, s > 0.0).moments.sensitivity
    x = np.linspace(-1.0, 1.0, 401)
    points = np.stack([x**2, math.sqrt(2.0) * s * x])  # s x is in the matrix twice
    if adjacency == "add-remove":
        found = np.linalg.norm(points, axis=0).max()
    else:
        found = np.linalg.norm(points[:, :, None] - points[:, None], axis=0).max()
    assert declared == pytest.approx(found, rel=1e-11)
    by_hand = {"replace-one": math.sqrt(2.0) if s else 1.0, "add-remove": math.sqrt(1 + 2 * s**2)}
    assert declared == pytest.approx(by_hand[adjacency], rel=1e-11)


def neighbours(part):
    """Return tables of 30 rows whose sums of one kind are as far apart as they can be."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.1, 0.1, (30, 3)), np.zeros(30)
    X[0], y[0] = [1.0, 0.0, 0.0], 1.0
    other, targets = X.copy(), y.copy()
    if part == 0:  # another bin
        targets[0] = -1.0
    elif part == 1:  # orthogonal with the constant column
        other[0] = [-0.25, math.sqrt(1.0 - 0.25**2), 0.0]
    else:  # residuals of opposite signs, both cut
        targets[0] = -1.0
    return X, y, other, targets


@pytest.mark.parametrize("part", range(3))
def test_each_sensitivity_is_attained_under_replace_one(part):
    model = PrivateLinearRegression(target_bounds=(-1.0, 1.0), data_norm=1.0, delta=0.01)
    model.set_params(epsilon=30.0)  # so that weights are too small to turn a sign
    X, y, other, targets = neighbours(part)
    report = replay_on_neighbour(model, X, y, other, targets)
    ratios = report.distances / report.sensitivities
    of_part = [ratios[:1], ratios[1:2], ratios[2:]][part]
    assert of_part.max() == pytest.approx(1.0, abs=1e-9)
    assert len(ratios) == 34 and ratios.max() <= 1.0 + 1e-12


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 100.0])
def test_no_record_moves_a_sum_by_more_than_is_declared(adjacency, epsilon):
    rng = np.random.default_rng(1)
    for _ in range(6):
        X, y = rng.standard_normal((20, 4)), rng.uniform(-1.0, 1.0, 20)
        X *= np.geomspace(1.0, rng.choice([1.0, 1e-6]), 4)  # columns that hardly vary
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        plan = plan_for(20, 4, adjacency, epsilon)
        with record_releases() as one:
            plan.carry_out(plan.bind(X, y), RandomStream.from_entropy())
        weights = None
        if adjacency == "replace-one":
            X[0], y[0] = rng.standard_normal(4) / 4.0, rng.choice([-1.0, 1.0])
        else:
            weights = np.append(0.0, np.ones(19))
        with record_releases(one) as other:
            plan.carry_out(plan.bind(X, y, weights), RandomStream.from_entropy())
        assert compare_releases(one.releases, other.releases).largest_ratio <= 1.0 + 1e-11


def test_no_computed_norm_is_too_short():
    """Rows of directions that hardly vary, in exact arithmetic: their parts are cut too."""
    plan = plan_for(50, 3, "add-remove")
    rng = np.random.default_rng(2)
    X = np.tile(rng.standard_normal((50, 1)) / 8.0, 3)
    X[:, 2] += 1e-9 * rng.standard_normal(50)
    values, vectors = np.linalg.eigh(X.T @ X)
    basis = vectors * np.sqrt(50 / np.maximum(values, 1e-13))
    rows = plan.bind(X, np.ones(50))[0]
    reach = _ClippedSums(rows, 0.0, 0.0, basis, 1e-3)._reach
    exact = np.vectorize(Fraction, otypes=[object])
    turned = (exact(X) * exact(rows.row_scale)[:, None]) @ exact(basis)
    norms = np.sum(turned * turned, axis=1)
    assert all(norms * exact(reach) ** 2 <= Fraction(1e-3) ** 2)


@pytest.mark.parametrize("value", [1e160, 1e300, 1.7e308])
def test_the_longest_row_moves_what_any_row_may_and_nothing_is_said(value, recwarn):
    X, y = table(n=30)
    for row in ([1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [0.0, -1.0, 1e-300]):
        other = X.copy()
        other[0] = value * np.array(row)
        for kind in (sparse.csr_array, np.asarray):
            model = PrivateLinearRegression(10.0, 0.01, target_bounds=(0.0, 4.0), data_norm=1.0)
            report = replay_on_neighbour(model, kind(X), y, kind(other), y)
            assert report.largest_ratio <= 1.0 + 1e-12
    assert [str(w.message) for w in recwarn] == []


def transcripts(plan, tables, count):
    """Yield how much the recorded noise and the distances of neighbours say, for each run."""
    for _ in range(count):
        with record_releases() as one:
            plan.carry_out(tables[0], RandomStream.from_entropy())
        with record_releases(one) as other:
            plan.carry_out(tables[1], RandomStream.from_entropy())
        noise, gap = [], []
        for mine, theirs in zip(one.releases, other.releases, strict=True):
            noise.append((mine.output - mine.value).ravel() / mine.sigma)
            gap.append((mine.value - theirs.value).ravel() / mine.sigma)
        yield np.concatenate(noise), np.concatenate(gap)


def audited(epsilon):
    """Return a plan, and tables with and without a row that counts in full everywhere."""
    X, y = np.zeros((12, 2)), np.zeros(12)
    X[0], y[0] = [1.0, 0.0], 1.0
    plan = plan_for(12, 2, "add-remove", epsilon)
    without = np.append(0.0, np.ones(11))
    return plan, (plan.bind(X, y), plan.bind(X, y, without))


def test_all_of_mu_is_in_what_one_row_moves():
    """The noise is that of the plan: false alarm 4e-7."""
    plan, tables = audited(1.0)
    noises, gaps = zip(*transcripts(plan, tables, 20), strict=True)
    attained = [np.linalg.norm(gap) / plan.mu for gap in gaps]
    assert 0.95 <= np.mean(attained) and np.max(attained) <= 1.0 + 1e-12
    square = np.sum(np.square(noises))
    size = np.size(noises)
    assert chi2.ppf(2e-7, size) < square < chi2.isf(2e-7, size)


def test_no_smaller_mu_holds_for_all_tables():
    """Theorem 2's tables: all rows equal, and one target apart from the others."""
    n = 200_000
    X, y = np.ones((n, 1)), np.zeros(n)
    y[0] = 1.0
    plan = plan_for(n, 1, "add-remove", 1.0)
    without = np.append(0.0, np.ones(n - 1))
    tables = plan.bind(X, y), plan.bind(X, y, without)
    for _, gap in transcripts(plan, tables, 3):
        assert np.linalg.norm(gap) == pytest.approx(plan.mu, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "d"), [(1e-6, 40), (1e-2, 1), (50.0, 40)])
def test_what_noise_hides_stays_finite(epsilon, d):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, d)), np.full(20, 3.0)
    model = PrivateLinearRegression(epsilon, 1e-3, target_bounds=(3.0, 1e6), data_norm=1.0)
    for rows in (X, np.zeros((20, d))):
        model.fit(rows, y)
        assert np.isfinite([*model.coef_, model.intercept_, model.center_, model.scale_]).all()
        assert 3.0 <= model.predict(rows).min()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_with_usual_noise_it_explains_what_there_is_whatever_the_bounds(adjacency):
    """Of 400 fits the mean is .0024 below and the deviation .0015: false alarm below 1e-20."""
    X, y = table(4_000, 5, spread=0.6)
    plain = LinearRegression().fit(X, y).score(X, y)
    for width in (9.0, 27.0):
        bounds = (2.0 - width, 2.0 + width)
        model = PrivateLinearRegression(1.0, 1e-6, target_bounds=bounds, data_norm=1.0)
        model.set_params(adjacency=adjacency).fit(X, y)
        assert model.score(X, y) > plain - 0.02


@pytest.mark.parametrize("noise, bins", [(1.0, 32), (25.0, 16), (36.0, 8), (50.0, 4)])
def test_bins_are_joined_until_their_counts_tell(noise, bins):
    """Rows spread over the middle half, 55 to 70 in each of 16 bins."""
    plan = plan_for(1000, 3, "add-remove")
    plan = replace(plan, counts=replace(plan.counts, scale=noise))
    counts = np.zeros(32)
    counts[8:24] = np.linspace(55.0, 70.0, 16)
    kept = plan._tell_from_noise(counts)
    assert kept.size == bins and kept.sum() == pytest.approx(1000.0, abs=1e-9)
    middle, scale, skew = plan._summarise(counts)
    assert middle == pytest.approx(0.0, abs=0.04)
    assert scale == pytest.approx(0.9 / 3.29, abs=0.01)
    assert skew == pytest.approx(0.0, abs=0.1)


def test_steps_are_stable_where_noise_hides_most_directions():
    """Theorem 3 off centre, with much budget. The mean over tables: false alarm 3e-7."""
    rng = np.random.default_rng(5)
    X = 1.0 + rng.standard_normal((3000, 20)) / 3.0
    X /= np.linalg.norm(X, axis=1).max()
    plan = plan_for(3000, 20, "replace-one", 20.0, 1e-6)
    packed = sum_moments(plan.bind(X, np.zeros(3000))[0], ROUNDING, 2.0 * (0.5 / ROUNDING) ** 2)
    unpack = partial(unpack_moments, width=20, norm=ROUNDING, constant=0.5, n_rows=3000)
    mechanism = plan.moments.mechanism(RandomStream.from_entropy())
    edge, largest = plan.moments.sigma * math.sqrt(42.0), []
    for _ in range(40):
        noisy = mechanism.release(packed)
        basis, _ = plan._precondition(noisy)
        largest.append(np.linalg.eigvalsh(basis.T @ unpack(packed) @ basis)[-1] / 3000)
        reach = np.linalg.eigvalsh(unpack(packed) - unpack(noisy))[-1]
        assert largest[-1] <= max(1.0, 2.0 * reach / edge) + 1e-9
    assert np.mean(largest) <= 2.0 * (1.0 + 5.5 / math.sqrt(42.0 * 40.0))


def test_a_pipeline_says_what_it_released():
    X, y = table()
    with BudgetAccountant(1.0, 1e-3) as budget:
        model = make_pipeline(
            BoundedScaler(-1.0, 1.0), PrivateLinearRegression(delta=1e-3, target_bounds=(0.0, 4.0))
        )
        planned = model[-1].privacy_plan(400, 3)
        model.fit(X, y)
        assert budget.spent()[0] == pytest.approx(1.0, rel=1e-6)
    spent = model[-1].privacy_spent_
    assert planned == replace(spent, assumptions=planned.assumptions)
    said = str(privacy_statement(model))
    for words in ("center_", "scale_", "32 sums of clipped gradients", "every iterate is paid for"):
        assert words in said


@pytest.mark.parametrize("cls", [PrivateLinearRegression, PrivateRidge, DPPCA])
def test_a_matrix_that_fits_no_memory_costs_nothing(cls):
    wide = sparse.csr_array((30, 2**18))
    with BudgetAccountant(1.0, 0.5) as budget:
        model = cls(delta=0.01, data_norm=1.0)
        model.set_params(**({} if cls is DPPCA else {"target_bounds": (0.0, 4.0)}))
        with pytest.raises(ValueError, match="262144 columns is too large"):
            model.fit(wide, np.zeros(30))
        assert budget.entries() == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"target_bounds": None}, "public pair"), ({"data_norm": -1.0}, "data_norm")],
)
def test_bad_parameters_cost_nothing(changed, words):
    X, y = table(n=30)
    with BudgetAccountant(1.0, 0.5) as budget:
        model = PrivateLinearRegression(delta=0.01, target_bounds=(0.0, 4.0), data_norm=1.0)
        with pytest.raises((ValueError, TypeError), match=words):
            model.set_params(**changed).fit(X, y)
        assert budget.entries() == []
