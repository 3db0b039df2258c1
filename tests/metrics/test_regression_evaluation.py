"""Evaluation of regressors: sensitivity, price, what figures say, how often intervals hold."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import PrivateRidge
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.exceptions import PrivacyWarning
from skdp.mechanisms import RandomStream
from skdp.mechanisms.trace import record_releases
from skdp.metrics import (
    PrivateEvaluation,
    PrivateRegressionEvaluation,
    PrivateRegressionResult,
    error_figures,
)
from skdp.metrics.errors import NODES, ErrorPlan
from skdp.reporting import privacy_statement
from skdp.statistics.noise import UNIT
from skdp.testing.walk import differences
from skdp.units import units_of

ADJACENCIES = ["add-remove", "replace-one"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 2))
Y = np.clip(5.0 + 1.5 * X[:, 0] + RNG.normal(size=3000), 0.0, 10.0)
MODEL = LinearRegression().fit(X[:500], Y[:500])
EVALUATION = PrivateRegressionEvaluation(target_bounds=(0.0, 10.0))


def plan_of(adjacency="add-remove", epsilon=1.0, n=2000, largest=10.0):
    options = {"bounds": (0.0, 10.0), "largest_error": largest}
    return ErrorPlan.build(epsilon, 1e-6, adjacency, n, **options)


def rows_of(seed):
    """Return targets and predictions, many at the ends and beyond."""
    rng = np.random.default_rng(seed)
    ends = np.array([0.0, 10.0, 5.0, -1e300, 1e300])
    where = rng.integers(8, size=(2, 400))
    return np.where(where < 5, ends[where % 5], rng.uniform(0.0, 10.0, (2, 400)))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("largest", [10.0, 5.0, 0.3])
def test_a_row_or_a_person_moves_sums_and_table_by_what_is_declared_and_no_more(adjacency, largest):
    plan, gaps = plan_of(adjacency, largest=largest), []
    for truth, predicted in zip(*rows_of(1), strict=True):
        one = plan.count(np.array([truth]), np.array([predicted]), None)
        gaps.append([part.ravel().astype(float) for part in one])
    # A person's rows, as many as they are, count as their mean.
    for first in range(0, 390, 13):
        truth, predicted = rows_of(2)[:, first : first + 13]
        person = plan.count(truth, predicted, units_of(np.zeros(13, dtype=int)))
        gaps.append([part.ravel().astype(float) for part in person])
    for place, noise in enumerate(plan.noises):
        vectors = np.stack([each[place] for each in gaps])
        declared = math.sqrt(noise.query.l2_squared)
        squares = (vectors**2).sum(axis=1)
        if adjacency == "replace-one":
            squares = squares[:, None] + squares - 2.0 * vectors @ vectors.T
        assert 0.999 * declared < math.sqrt(squares.max()) <= declared * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_noise_costs_the_target_by_an_independent_formula(adjacency):
    plan = plan_of(adjacency, 0.7)
    ratios = [math.sqrt(noise.query.l2_squared) / float(noise.scale) for noise in plan.noises]
    mu = math.hypot(*ratios)
    spent = norm.cdf(mu / 2 - 0.7 / mu) - math.exp(0.7) * norm.cdf(-mu / 2 - 0.7 / mu)
    assert 0.98e-6 < spent <= 1e-6
    assert plan.noises[0].query.l2_squared / UNIT**2 == pytest.approx(
        {"add-remove": 45 / 32, "replace-one": 4.0}[adjacency], rel=1e-7
    )


def test_without_noise_figures_are_those_of_scikit_learn():
    said = MODEL.predict(X)
    found = replace(EVALUATION.set_params(epsilon=1e6).evaluate(MODEL, X, Y), confidence=1e-6)
    EVALUATION.set_params(epsilon=1.0)
    clipped = np.clip(said, 0.0, 10.0)
    wanted = {
        "r2": metrics.r2_score(Y, clipped),
        "mean_absolute_error": metrics.mean_absolute_error(Y, clipped),
        "root_mean_squared_error": metrics.root_mean_squared_error(Y, clipped),
        "mean_error": np.mean(Y - clipped),
    }
    assert {name: float(figure) for name, figure in found.figures().items()} == pytest.approx(
        wanted, abs=2e-3
    )
    points = found.calibration_curve()
    edges = [*(point.threshold for point in points), 11.0]
    assert 5 <= len(points) <= 10 and edges[0] == 0.0
    for point, low, high in zip(points, edges[:-1], edges[1:], strict=True):
        inside = (clipped >= low) & (clipped < high)
        assert point.x == pytest.approx(clipped[inside].mean(), abs=0.15)
        assert point.y - point.x == pytest.approx((Y - clipped)[inside].mean(), abs=0.01)
    small = PrivateRegressionEvaluation(1e6, target_bounds=(0, 10), largest_error=0.5)
    cut = np.clip(Y - clipped, -0.5, 0.5)
    assert small.evaluate(MODEL, X, Y).mean_absolute_error == pytest.approx(
        np.abs(cut).mean(), abs=2e-3
    )


def held(plan, draws, population, understated=1.0):
    """Return how often each interval holds the population's figure."""
    rng, stream, z = np.random.default_rng(1), RandomStream.from_seed(1), 1.959964
    truth, said = population
    error = np.clip(truth - said, -plan.largest_error, plan.largest_error)
    wanted = {
        "mean_absolute_error": np.abs(error).mean(),
        "mean_error": error.mean(),
        "root_mean_squared_error": math.sqrt((error**2).mean()),
        "r2": 1.0 - (error**2).mean() / truth.var(),
    }
    found = dict.fromkeys(wanted, 0)
    for _ in range(draws):
        drawn = rng.integers(truth.size, size=plan.n)
        tables = plan.release(plan.count(truth[drawn], said[drawn], None), stream)
        tables = replace(tables, sum_noise=tables.sum_noise * understated)
        for name, value in wanted.items():
            low, high = getattr(error_figures, name)(tables, z).interval
            found[name] += low <= value <= high
    return np.array([*found.values()])


def population(n=50_000):
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    truth = 4.0 + 1.2 * x + np.exp(0.3 * x) * rng.gamma(4.0, 0.3, n)
    return np.clip(truth, 0.0, 10.0), np.clip(5.2 + 1.2 * x, 0.0, 10.0)


def test_intervals_hold_and_would_not_if_the_noise_were_understated():
    """Of 60 draws at .93 fewer than 43 hold with probability 2e-8; at .6 more than 56 do: 2e-8."""
    assert (held(plan_of(n=1000), 60, population()) >= 43).all()
    assert (held(plan_of(epsilon=0.3, n=1000), 60, population(), 0.25)[[0, 1, 3]] <= 56).all()


def test_r2_is_not_too_sure_where_spread_grows_with_the_mean():
    """Nearly without noise: the half width is that of the sums of fourth powers, or more."""
    rng = np.random.default_rng(4)
    mean = rng.exponential(size=20_000)
    truth, said = np.clip([mean * rng.exponential(size=mean.size), mean], 0.0, 10.0)
    plan = plan_of(epsilon=1e5, n=mean.size)
    tables = plan.release(plan.count(truth, said, None), RandomStream.from_seed(1))
    low, high = error_figures.r2(tables, 1.959964).interval
    errors, spread = (truth - said) ** 2, (truth - truth.mean()) ** 2
    ratio = errors.sum() / spread.sum()
    wanted = 2.0 * 1.959964 * math.sqrt(((errors - ratio * spread) ** 2).sum()) / spread.sum()
    assert 0.95 * wanted < high - low < 1.6 * wanted


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("n", "epsilon"), [(500, 3.0), (4000, 0.3), (20_000, 1.0)])
def test_intervals_hold_across_sizes(adjacency, n, epsilon):
    """Of 300 draws at .94 fewer than 257 hold with probability 1e-7 for one figure."""
    assert (held(plan_of(adjacency, epsilon, n, 5.0), 300, population()) >= 257).all()


def test_where_noise_drowns_everything_intervals_are_everything():
    tiny = PrivateRegressionEvaluation(0.01, target_bounds=(0, 10))
    found = replace(tiny.evaluate(MODEL, X[:20], Y[:20]), confidence=1 - 1e-7)
    assert found.r2.interval == (-math.inf, 1.0)
    assert found.mean_error.interval == (-10.0, 10.0)
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert text["figures"]["r2"]["interval"] == [None, 1.0]


def test_a_budget_is_charged_once_before_rows_are_used():
    called = []

    class Watched(LinearRegression):
        def predict(self, rows):
            called.append(rows)
            return super().predict(rows)

    watched = Watched().fit(X, Y)
    budget = BudgetAccountant(epsilon=1.1, delta=1e-5, adjacency="add-remove")
    with budget:
        found = EVALUATION.evaluate(watched, X, Y)
        assert len(called) == 1
        with pytest.raises(BudgetExceededError):
            EVALUATION.evaluate(watched, X, Y)
    assert len(called) == 1
    (entry,) = budget.entries()
    assert entry["label"] == "PrivateRegressionEvaluation.evaluate"
    assert entry["event"] == found.privacy_spent_.event.to_dict()
    assert "sums of errors" in str(privacy_statement(found))
    assert "r2" in repr(found) and "<table>" in found._repr_html_()


def test_nothing_of_the_rows_is_left_in_the_result():
    with record_releases(None) as trace:
        one = EVALUATION.evaluate(MODEL, X[:500], Y[:500])
    with record_releases(trace):
        other = EVALUATION.evaluate(MODEL, X[500:1000], 10.0 - Y[500:1000])
    assert isinstance(one, PrivateRegressionResult) and repr(one.r2) == repr(other.r2)
    assert differences(one, other) == []


def test_persons_are_protected_with_all_their_rows():
    ids = np.arange(3000) // 3
    found = EVALUATION.evaluate(MODEL, X, Y, groups=ids)
    assert found.tables.n == 1000 and found.privacy_spent_.unit == "group"
    assert any("persons" in text for text in found.privacy_spent_.assumptions)


class Odd(RegressorMixin, BaseEstimator):
    """Predicts what it is told to."""

    def __init__(self, said=None):
        self.said = said

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        if self.said == "raise":
            raise ValueError(f"cannot bear {X[0]}")
        return {"nan": np.full(len(X), np.nan), "short": np.zeros(3)}[self.said]


def test_numbers_that_are_none_count_as_zero():
    assert EVALUATION.evaluate(Odd("nan").fit(X, Y), X, Y).mean_absolute_error > 0.0


@pytest.mark.parametrize("said", ["raise", "short"])
def test_what_a_failing_model_says_is_withheld_after_the_charge(said):
    with BudgetAccountant(1.0, 1e-5, adjacency="add-remove") as budget:
        with pytest.raises(ValueError, match="the model failed") as caught:
            EVALUATION.evaluate(Odd(said).fit(X, Y), X, Y)
    assert len(budget.entries()) == 1
    assert caught.value.__cause__ is None and "bear" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"target_bounds": None}, "target_bounds must be"),
        ({"target_bounds": (3, 3)}, "low < high"),
        ({"target_bounds": (0, math.inf)}, "finite"),
        ({"largest_error": 11.0}, "at most 1"),
        ({"largest_error": 0.0}, "at least 0.001"),
        ({"n_bins": 9}, "n_bins"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"adjacency": "both"}, "adjacency"),
    ],
)
def test_bad_parameters_are_named_before_the_charge(parameters, words):
    evaluation = PrivateRegressionEvaluation(**{"target_bounds": (0, 10), **parameters})
    with BudgetAccountant(9.0, 1e-5, adjacency="add-remove") as budget:
        with pytest.raises(ValueError, match=words):
            evaluation.evaluate(MODEL, X, Y)
    assert not budget.entries()


def test_bad_input_is_refused_unquoted_before_the_charge():
    holes = Y.astype(object)
    holes[3] = "much"
    classifier = LogisticRegression().fit(X, Y > 5.0)
    with BudgetAccountant(9.0, 1e-5, adjacency="add-remove") as budget:
        for model, rows, targets, words in (
            (MODEL, X, holes, "must hold numbers"),
            (MODEL, X, Y + 77j, "Complex data not supported$"),
            (MODEL, X, [10**400] * len(Y), "infinity"),
            (MODEL, X, np.where(Y > 9.0, np.nan, Y), "NaN"),
            (MODEL, X, Y[:-1], "one entry for each row"),
            (MODEL, X[:, :1], Y, "columns of the model"),
            (MODEL, X[:0], Y[:0], "y is empty"),
            (LinearRegression(), X, Y, "not fitted"),
            (classifier, X, Y, "PrivateEvaluation"),
        ):
            with pytest.raises((ValueError, TypeError), match=words):
                EVALUATION.evaluate(model, rows, targets)
        with pytest.raises(TypeError, match="PrivateRegressionEvaluation"):
            PrivateEvaluation().evaluate(MODEL, X, Y > 5.0)
        with pytest.raises(ValueError, match=r"Complex data not supported$"):
            PrivateEvaluation().evaluate(classifier, X, Y + 77j)
    assert not budget.entries()


def test_nothing_is_said_of_numbers_near_zero():
    with np.errstate(all="raise"):
        EVALUATION.evaluate(MODEL, X, np.full(len(Y), 1e-310))


def test_bounds_come_from_a_private_model_and_a_large_delta_warns_its_caller():
    model = PrivateRidge(target_bounds=(0, 10), data_norm=5.0).fit(X, Y)
    evaluation = PrivateRegressionEvaluation(delta=0.01)
    with pytest.warns(PrivacyWarning, match="not below 1/n") as caught:
        found = evaluation.evaluate(model, X, Y)
    assert caught[0].filename == __file__ and found.tables.bounds == (0.0, 10.0)
    assert NODES[0] == -1.0 and found.tables.counts.shape[1] == NODES.size
