"""Evaluation of regressors: sensitivity, price, what figures say, how often intervals hold."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from covering import pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import norm
from sklearn import metrics
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import PrivateRidge
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.exceptions import PrivacyWarning
from skdp.mechanisms import RandomStream, additive
from skdp.mechanisms.trace import record_releases
from skdp.metrics import (
    PrivateCalibrationDisplay,
    PrivateErrorDisplay,
    PrivateEvaluation,
    PrivateMetricFrame,
    PrivateRegressionEvaluation,
    PrivateRegressionResult,
    PrivateRocCurveDisplay,
    error_figures,
)
from skdp.metrics.errors import ErrorPlan, nodes_of
from skdp.metrics.regression_result import SIZES_OF_ERRORS
from skdp.reporting import privacy_statement
from skdp.statistics.noise import UNIT
from skdp.tables.units import units_of
from skdp.testing.replay import differences

ADJACENCIES = ["add-remove", "replace-one"]
NODES = nodes_of(1.0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 2))
Y = np.clip(5.0 + 1.5 * X[:, 0] + RNG.normal(size=3000), 0.0, 10.0)
MODEL = LinearRegression().fit(X[:500], Y[:500])
EVALUATION = PrivateRegressionEvaluation(target_bounds=(0.0, 10.0))


def plan_of(adjacency="add-remove", epsilon=1.0, n=2000, largest=10.0, subgroups=None):
    options = {"bounds": (0.0, 10.0), "largest_error": largest, "subgroups": subgroups}
    return ErrorPlan.build(epsilon, 1e-6, adjacency, n, **options)


def rows_of(seed):
    """Return targets and predictions, many at the ends and beyond."""
    rng = np.random.default_rng(seed)
    ends = np.array([0.0, 10.0, 5.0, -1e300, 1e300])
    where = rng.integers(8, size=(2, 400))
    return np.where(where < 5, ends[where % 5], rng.uniform(0.0, 10.0, (2, 400)))


@pytest.mark.parametrize(
    ("adjacency", "largest", "subgroups"),
    pairs(ADJACENCIES, [10.0, 5.0, 0.3], [None, ("a", "b", "c")]),
)
def test_a_row_or_a_person_moves_sums_and_table_by_what_is_declared_and_no_more(
    adjacency, largest, subgroups
):
    plan, gaps = plan_of(adjacency, largest=largest, subgroups=subgroups), []
    rng = np.random.default_rng(3)
    own = rng.integers(len(subgroups), size=400) if subgroups else None
    for row, (truth, predicted) in enumerate(zip(*rows_of(1), strict=True)):
        member = None if own is None else own[row : row + 1]
        one = plan.count(np.array([truth]), np.array([predicted]), None, member)
        gaps.append([part.ravel().astype(float) for part in one])
    # A person's rows, as many as they are and in any subgroups, count as their mean.
    for first in range(0, 390, 13):
        truth, predicted = rows_of(2)[:, first : first + 13]
        members = None if own is None else own[first : first + 13]
        person = plan.count(truth, predicted, units_of(np.zeros(13, dtype=int)), members)
        gaps.append([part.ravel().astype(float) for part in person])
    for place, drawn in enumerate(plan.releases):
        vectors = np.stack([each[place] for each in gaps])
        declared = drawn.l2
        squares = (vectors**2).sum(axis=1)
        sizes, most = cdist(vectors, 0.0 * vectors[:1], "cityblock"), np.abs(vectors).max()
        if adjacency == "replace-one":
            squares = squares[:, None] + squares - 2.0 * vectors @ vectors.T
            sizes, most = cdist(vectors, vectors, "cityblock"), np.ptp(vectors, axis=0).max()
        assert sizes.max() <= drawn.l1 and most <= (drawn.largest or UNIT)
        assert 0.999 * declared < math.sqrt(squares.max()) <= declared * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_noise_costs_the_target_by_an_independent_formula(adjacency):
    plan = plan_of(adjacency, 0.7)
    ratios = [noise.l2 / noise.sigma for noise in plan.releases]
    mu = math.hypot(*ratios)
    spent = norm.cdf(mu / 2 - 0.7 / mu) - math.exp(0.7) * norm.cdf(-mu / 2 - 0.7 / mu)
    assert 0.98e-6 < spent <= 1e-6
    for subgroups, wanted in ((None, 45 / 32), (("a", "b"), 2.0)):
        sums = plan_of(adjacency, subgroups=subgroups).releases[0]
        squared = wanted if adjacency == "add-remove" else 4.0
        assert (sums.l2 / UNIT) ** 2 == pytest.approx(squared, rel=1e-7)


def test_without_noise_figures_are_those_of_scikit_learn():
    said = MODEL.predict(X)
    found = replace(EVALUATION.set_params(epsilon=1e6).evaluate(MODEL, X, Y), confidence=1e-6)
    EVALUATION.set_params(epsilon=1.0)
    clipped = np.clip(said, 0.0, 10.0)
    wanted = {
        "r2": metrics.r2_score(Y, clipped),
        "mean_absolute_error": metrics.mean_absolute_error(Y, clipped),
        "median_absolute_error": metrics.median_absolute_error(Y, clipped),
        "root_mean_squared_error": metrics.root_mean_squared_error(Y, clipped),
        "mean_error": np.mean(Y - clipped),
    }
    figures = {name: float(figure) for name, figure in found.figures().items()}
    # Within tabulated errors the median is a guess.
    assert figures.pop("median_absolute_error") == pytest.approx(
        wanted.pop("median_absolute_error"), rel=0.02
    )
    assert figures == pytest.approx(wanted, abs=2e-3)
    points = found.calibration_curve()
    edges = [*(point.threshold for point in points), 11.0]
    assert 5 <= len(points) <= 10 and edges[0] == 0.0
    for point, low, high in zip(points, edges[:-1], edges[1:], strict=True):
        inside = (clipped >= low) & (clipped < high)
        assert point.x == pytest.approx(clipped[inside].mean(), abs=0.15)
        assert point.y - point.x == pytest.approx((Y - clipped)[inside].mean(), abs=0.01)
    small = PrivateRegressionEvaluation(1e6, target_bounds=(0, 10), largest_error=0.5)
    found = small.evaluate(MODEL, X, Y)
    for name, value in wanted.items():  # errors larger than the largest one count as they are
        assert getattr(found, name) == pytest.approx(value, rel=0.03, abs=2e-3)


def held(plan, draws, population, understated=1.0):
    """Return how often each interval holds the population's figure; of a tenth if subgroups are."""
    rng, stream, z = np.random.default_rng(1), RandomStream.from_seed(1), 1.959964
    small = None if plan.subgroups is None else plan.subgroups[1]
    truth, said = population
    error = truth - said
    wanted = {
        "mean_absolute_error": np.abs(error).mean(),
        "mean_error": error.mean(),
        "root_mean_squared_error": math.sqrt((error**2).mean()),
        "r2": 1.0 - (error**2).mean() / truth.var(),
        "median_absolute_error": np.median(np.abs(error)),
    }
    found = dict.fromkeys(wanted, 0)
    for _ in range(draws):
        drawn = rng.integers(truth.size, size=plan.n)
        members = None if small is None else (rng.random(plan.n) < 0.1).astype(int)
        tables = plan.release(plan.count(truth[drawn], said[drawn], None, members), stream)
        tables = replace(tables, sum_noise=tables.sum_noise * understated)
        for name, value in wanted.items():
            low, high = getattr(error_figures, name)(tables.part(small), z).interval
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
    of_a_tenth = plan_of(epsilon=2.0, n=4000, subgroups=("most", "few"))
    assert (held(of_a_tenth, 60, population()) >= 43).all()


@pytest.mark.slow
def test_intervals_hold_where_errors_have_long_tails_and_noise_hides_how_long():
    """Of 1,000 draws at .94 fewer than 897 hold with probability 4e-8; at .875 it is .98."""
    rng = np.random.default_rng(0)
    mean = np.exp(0.5 * rng.normal(size=100_000) - 0.6)
    costs = np.clip([mean * rng.gamma(2.0, 0.5, mean.size), mean], 0.0, 10.0)
    assert (held(plan_of(epsilon=3.0, n=2000, largest=10 / 3), 1000, costs) >= 897).all()


def test_r2_is_not_too_sure_where_spread_grows_with_the_mean():
    """Nearly without noise: the half width is that of the sums of fourth powers, or more."""
    rng = np.random.default_rng(4)
    mean = rng.exponential(size=20_000)
    truth, said = np.clip([mean * rng.exponential(size=mean.size), mean], 0.0, 10.0)
    plan = plan_of(epsilon=1e5, n=mean.size)
    tables = plan.release(plan.count(truth, said, None), RandomStream.from_seed(1))
    low, high = error_figures.r2(tables.part(), 1.959964).interval
    errors, spread = (truth - said) ** 2, (truth - truth.mean()) ** 2
    ratio = errors.sum() / spread.sum()
    wanted = 2.0 * 1.959964 * math.sqrt(((errors - ratio * spread) ** 2).sum()) / spread.sum()
    assert 0.95 * wanted < high - low < 1.6 * wanted


def silent(monkeypatch):
    monkeypatch.setattr(additive, "discrete_gaussians", lambda stream, scale, count: [0] * count)


@pytest.mark.parametrize("by_person", [False, True])
def test_without_noise_figures_of_subgroups_are_those_of_their_rows(monkeypatch, by_person):
    silent(monkeypatch)
    ward = RNG.choice(["a", "b", "c"], len(Y), p=[0.7, 0.2, 0.1])
    own = PrivateRegressionEvaluation(100.0, target_bounds=(0, 10), subgroups=["a", "b", "c"])
    ids = np.arange(len(Y)) if by_person else None
    found = own.evaluate(MODEL, X, Y, subgroups=ward, groups=ids)
    error = Y - np.clip(MODEL.predict(X), 0.0, 10.0)
    for name in "abc":
        part, kept = found.of(name), error[ward == name]
        assert part.part.sums[5] == pytest.approx(len(kept), abs=1e-4)
        assert part.mean_absolute_error == pytest.approx(np.abs(kept).mean(), abs=1e-6)
        assert part.root_mean_squared_error == pytest.approx((kept**2).mean() ** 0.5, abs=1e-6)
        assert part.r2 == pytest.approx(
            metrics.r2_score(Y[ward == name], Y[ward == name] - kept), rel=2e-3
        )
        assert part.part.counts.sum() == pytest.approx(len(kept), abs=1e-3)
    assert found.mean_error == pytest.approx(error.mean(), abs=1e-6)
    shares = np.array([point.y for point in found.error_histogram()])
    assert shares.sum() == pytest.approx(1.0, abs=1e-6) and shares @ NODES * 10.0 == pytest.approx(
        error.mean(), abs=1e-6
    )
    frame = PrivateMetricFrame(found)
    assert (
        set(frame.by_group["a"]) == set(SIZES_OF_ERRORS) and frame.overall["median_absolute_error"]
    )
    sizes = [np.abs(error[ward == name]).mean() for name in "abc"]
    gap, share = frame.difference()["mean_absolute_error"], frame.ratio()["mean_absolute_error"]
    assert gap == pytest.approx(max(sizes) - min(sizes), abs=1e-6) and gap.interval[0] == 0.0
    assert share == pytest.approx(min(sizes) / max(sizes), abs=1e-6)
    record = json.loads(found.to_json())
    assert [part["subgroup"] for part in record["figures"]] == [None, "a", "b", "c"]
    assert "subgroup 'a'" in repr(found.of("a"))
    with pytest.raises(ValueError, match="subgroup must be one of"):
        found.of("d")
    with pytest.raises(ValueError, match="metrics must be one of"):
        PrivateMetricFrame(found, ["r2"])
    with pytest.raises(ValueError, match="no groups by"):
        PrivateMetricFrame(found, by="label")


@pytest.mark.parametrize("label", [None, math.nan, np.float64("nan"), np.datetime64("NaT")])
def test_what_is_missing_is_no_subgroup(label):
    with BudgetAccountant(9.0, 1e-5, adjacency="add-remove") as budget:
        for evaluation in (PrivateRegressionEvaluation, PrivateEvaluation):
            with pytest.raises(ValueError, match="other than None and NaN"):
                evaluation(subgroups=["a", label]).evaluate(MODEL, X, Y, subgroups=["a"] * len(Y))
    assert not budget.entries()


def test_subgroups_of_other_shapes_are_refused_before_the_charge():
    ward = np.repeat(["a", "b"], [2000, 1000])
    own = PrivateRegressionEvaluation(target_bounds=(0, 10), subgroups=["a", "b"])
    shapes = (
        ward[:, None],
        pd.DataFrame({"a": ward}),
        [[each] for each in ward],
        np.ma.masked_array(ward, ward == "b"),
    )
    with BudgetAccountant(9.0, 1e-5, adjacency="add-remove") as budget:
        for given in shapes:
            with pytest.raises(ValueError, match=r"subgroups (must be a column|is a masked)"):
                own.evaluate(MODEL, X, Y, subgroups=given)
    assert not budget.entries()


def test_columns_of_dask_are_read_or_refused_before_the_charge():
    arrays = pytest.importorskip("dask.array", reason="needs dask")
    ward = arrays.from_array(np.repeat([1, 2], [2000, 1000]), chunks=700)
    own = PrivateRegressionEvaluation(target_bounds=(0, 10), subgroups=[1, 2])
    assert own.evaluate(MODEL, X, Y, subgroups=ward).of(1).mean_absolute_error > 0.0
    masked = arrays.ma.masked_greater(arrays.from_array(X, chunks=(700, 2)), 1.0)
    with BudgetAccountant(9.0, 1e-5, adjacency="add-remove") as budget:
        for rows, given in ((X, arrays.ma.masked_equal(ward, 2)), (masked, ward)):
            with pytest.raises(ValueError, match="is a masked array"):
                own.evaluate(MODEL, rows, Y, subgroups=given)
        with pytest.raises(ValueError, match="subgroups must be a column"):
            own.evaluate(MODEL, X, Y, subgroups=ward[:, None])
    assert not budget.entries()


def test_times_are_refused_before_the_charge_where_no_step_makes_numbers_of_them():
    times = pd.DataFrame({"day": pd.date_range("2020", periods=len(Y)), "x": X[:, 0]})
    with BudgetAccountant(9.0, 1e-5, adjacency="add-remove") as budget:
        for rows in (times, times.to_numpy("datetime64[ns]")):
            with pytest.raises(ValueError, match="X holds times"):
                EVALUATION.evaluate(MODEL, rows, Y)
    assert not budget.entries()
    months = FunctionTransformer(lambda table: table.assign(day=table["day"].dt.month))
    model = make_pipeline(months, LinearRegression()).fit(times[:500], Y[:500])
    assert EVALUATION.evaluate(model, times, Y).mean_absolute_error > 0.0


def test_subgroups_are_declared_and_given_or_refused_before_the_charge():
    ward = np.repeat(["a", "b"], [2000, 1000])
    with BudgetAccountant(9.0, 1e-5, adjacency="add-remove") as budget:
        for declared, given, words in (
            (None, ward, "both or neither"),
            (["a", "b"], None, "both or neither"),
            (["a"], ward, "not declared"),
            (["a", "a"], ward, "distinct"),
            (["a", "b"], ward[:-1], "one entry for each row"),
        ):
            with pytest.raises(ValueError, match=words):
                evaluation = PrivateRegressionEvaluation(target_bounds=(0, 10), subgroups=declared)
                evaluation.evaluate(MODEL, X, Y, subgroups=given)
    assert not budget.entries()


@pytest.mark.parametrize(
    ("law", "scale"), [("normal", 0.05), ("laplace", 0.12), ("logistic", 0.3), ("normal", 0.3)]
)
def test_medians_of_smooth_errors_are_found_between_tabulated_ones(monkeypatch, scale, law):
    silent(monkeypatch)
    errors = scale * getattr(np.random.default_rng(0), law)(size=40_000)
    plan = plan_of(n=errors.size, largest=4.0)  # of the widest ones some are larger
    exact = plan.count(5.0 + 4.0 * errors, np.full(errors.size, 5.0), None)
    wanted = 4.0 * np.median(np.abs(errors))
    found = error_figures.median_absolute_error(plan.release(exact, None).part(), 1.959964)
    low, high = found.interval
    assert low < wanted < high and found == pytest.approx(wanted, rel=0.03)
    assert high - low < 1.5 * wanted


LAWS = {
    "sd .02": lambda rng, n: rng.normal(0.0, 0.02, n),
    "sd .05": lambda rng, n: rng.normal(0.0, 0.05, n),
    "whole numbers": lambda rng, n: rng.choice([-1.0, 0.0, 0.0, 1.0, 2.0], n) / 3.0,
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.normal(0.0, 2.0, n)),
    "rare large ones": lambda rng, n: np.where(rng.random(n) < 0.002, 4.0, 0.0),
    "two": lambda rng, n: np.where(rng.random(n) < 0.52, 0.3, 0.9),
    "gap": lambda rng, n: np.where(rng.random(n) < 0.505, 0.3, 4.0),
}


@pytest.mark.parametrize(("law", "epsilon"), zip(LAWS, [1.0, 1000.0] * 4, strict=False))
def test_intervals_of_medians_hold_whatever_the_law_of_errors(law, epsilon):
    """Of 60 draws at .95 fewer than 46 hold with probability 3e-8."""
    rng, plan, held = np.random.default_rng(2), plan_of(epsilon=epsilon, n=3000), 0
    errors = LAWS[law](rng, 1_000_001)
    wanted, said = np.median(np.abs(errors)), np.full(plan.n, 5.0)
    for _ in range(60):
        exact = plan.count(5.0 + rng.choice(errors, plan.n), said, None)
        tables = plan.assemble(
            *(
                part / UNIT + drawn.people * rng.standard_normal(part.shape)
                for part, drawn in zip(exact, plan.releases, strict=True)
            )
        )
        low, high = error_figures.median_absolute_error(tables.part(), 1.959964).interval
        held += low <= wanted + 1e-12 and wanted - 1e-12 <= high
    assert held >= 46


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40))
def test_bounds_of_shares_are_below_what_they_bound_for_any_rows(sizes):
    nodes = NODES[NODES.size // 2 :]
    at, _, (*smaller, few, larger) = error_figures._shares_below(tuple(nodes.tolist()))
    rows, half = np.array(sizes)[:, None], len(sizes) / 2
    hats = np.stack([np.interp(sizes, nodes, hat) for hat in np.eye(nodes.size)]).sum(axis=1)
    for weights in smaller:
        assert (weights @ hats <= (rows < at).sum(axis=0) - half + 1e-9).all()
    for weights in (few, larger):
        assert (weights @ hats <= (rows > at).sum(axis=0) - half + 1e-9).all()


@pytest.mark.parametrize("subgroups", [None, ["a", "b"]])
def test_expected_widths_are_those_that_come(subgroups):
    rng = np.random.default_rng(0)
    said, noise_of = rng.normal(5.0, 1.2, 8000), rng.normal(0.0, 1.1, 8000)
    evaluation = PrivateRegressionEvaluation(
        target_bounds=(0, 10), largest_error=5.0, subgroups=subgroups
    )
    expected = evaluation.expected_widths(8000, 1.2**2 / (1.2**2 + 1.1**2), deviation=1.63)
    members = None if subgroups is None else rng.choice(subgroups, 8000)
    model, found = Odd("first").fit(said, said), []
    for seed in range(7):  # the noise moves widths by some 15 % each time
        evaluation.set_params(random_state=seed)
        rows = said[:, None], said + noise_of
        found.append(evaluation.evaluate(model, *rows, subgroups=members).figures())
    for name, width in expected.items():
        widths = [figures[name].width for figures in found]
        assert np.median(widths) == pytest.approx(width, rel=0.25)
    with pytest.raises(ValueError, match="target_bounds must be"):
        PrivateRegressionEvaluation().expected_widths(100)


def test_pictures_show_predictions_and_errors_with_intervals():
    matplotlib = pytest.importorskip("matplotlib", reason="needs the plot extra")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    found = EVALUATION.evaluate(MODEL, X, Y)
    curve = PrivateCalibrationDisplay.from_result(found)
    points = found.calibration_curve()
    np.testing.assert_array_equal(curve.line_.get_data(), np.array([p[:2] for p in points]).T)
    assert curve.ax_.get_xlabel() == "mean prediction" and curve.ax_.get_xlim()[1] > 9.0
    errors = PrivateErrorDisplay.from_result(found, color="black")
    at, heights = errors.line_.get_data()
    np.testing.assert_array_equal(at, 10.0 * NODES)
    # The area below lines is the share of all rows, but for what noise makes of negative ones.
    area = float(0.5 * (heights[1:] + heights[:-1]) @ np.diff(at))
    assert area == pytest.approx(1.0, abs=0.05)
    for display in (curve, errors):
        said = " ".join(text.get_text() for text in display.ax_.get_legend().get_texts())
        assert "95 % intervals, of each point by itself" in said
    assert "observed by mean prediction" in found._repr_html_()
    plt.close("all")
    with pytest.raises(TypeError, match="shows a PrivateEvaluationResult, got a PrivateRegr"):
        PrivateRocCurveDisplay.from_result(found)
    other = PrivateEvaluation().evaluate(LogisticRegression().fit(X, Y > 5.0), X, Y > 5.0)
    with pytest.raises(TypeError, match="shows a PrivateRegressionResult, got a PrivateEval"):
        PrivateErrorDisplay.from_result(other)
    with pytest.raises(TypeError, match="PrivateEvaluationResult or PrivateRegressionResult"):
        PrivateCalibrationDisplay.from_result(found.figures())


def test_where_noise_drowns_everything_intervals_are_everything():
    tiny = PrivateRegressionEvaluation(0.01, target_bounds=(0, 10))
    found = replace(tiny.evaluate(MODEL, X[:20], Y[:20]), confidence=1 - 1e-7)
    assert found.r2.interval == (-math.inf, 1.0)
    assert found.mean_error.interval == (-10.0, 10.0)
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert text["figures"][0]["r2"]["interval"] == [None, 1.0]


def test_a_budget_is_charged_once_before_rows_are_used():
    called = []

    class Watched(LinearRegression):
        def predict(self, rows):
            if np.isin(rows, X).any():  # others are made up
                called.append(rows)
            return super().predict(rows)

    watched = Watched().fit(X, Y)
    budget = BudgetAccountant(epsilon=1.1, delta=1e-5, adjacency="add-remove")
    with budget:
        found = EVALUATION.evaluate(watched, X, Y)
        assert len(called) == 2  # blocks
        with pytest.raises(BudgetExceededError):
            EVALUATION.evaluate(watched, X, Y)
    assert len(called) == 2
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
    assert any("units" in text for text in found.privacy_spent_.assumptions)


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
        if self.said == "first":
            return X[:, 0]
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
            (MODEL, X, holes, "must contain numbers"),
            (MODEL, X, Y + 77j, "Complex data not supported$"),
            (MODEL, X, [math.inf] * len(Y), "infinity"),
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
    assert NODES[0] == -1.0 and found.tables.counts.shape[2] == NODES.size


def test_bounds_of_a_step_are_taken_and_those_of_transformed_targets_are_not():
    inner = PrivateRidge(target_bounds=(0, 3), data_norm=5.0)
    evaluation = PrivateRegressionEvaluation()
    found = evaluation.evaluate(make_pipeline(inner).fit(X, Y), X, Y)
    assert found.tables.bounds == (0.0, 3.0)
    logs = TransformedTargetRegressor(inner, func=np.log1p, inverse_func=np.expm1).fit(X, Y)
    with BudgetAccountant(9.0, 1e-5, adjacency="add-remove") as budget:
        for model in (logs, make_pipeline(logs)):
            with pytest.raises(ValueError, match="declare target_bounds: TransformedTarget"):
                evaluation.evaluate(model, X, Y)
    assert not budget.entries()
