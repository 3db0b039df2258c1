"""Values, intervals, containers, and post-processing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdp.preprocessing import BooleanColumn, CategoricalColumn, NumericColumn, TableSchema
from skdp.statistics import (
    private_contingency_table,
    private_count,
    private_histogram,
    private_mean,
    private_quantile,
    private_table_one,
    private_top_k,
    private_variance,
)

# With so much epsilon noise on the integers is 0 but with probability e^-100000.
EXACT = {"epsilon": 1e5, "confidence": 1 - 1e-9}
ADJACENCIES = ["add-remove", "replace-one"]
# Intervals that hold less often than they say are seen; right ones fail with less than this.
FALSE_ALARM = 1e-7

TEXTS = {
    "list": list,
    "objects": lambda cells: np.array(cells, dtype=object),
    "pandas": pd.Series,
    "string": lambda cells: pd.Series(cells, dtype="string"),
    "category": lambda cells: pd.Series(cells, dtype="category"),
    "polars": lambda cells: pl.Series(cells, dtype=pl.String),
    "extension array": lambda cells: pd.array(cells, dtype="string"),
    "categorical": pd.Categorical,
    "polars category": lambda cells: pl.Series(cells, dtype=pl.Categorical),
}
INTEGERS = {
    "list": list,
    "pandas": pd.Series,
    "extension array": lambda cells: pd.array(cells, dtype="Int64"),
    "nullable": lambda cells: pd.Series(cells, dtype="Int64"),
    "category": lambda cells: pd.Series(cells, dtype="category"),
    "polars": lambda cells: pl.Series(cells, dtype=pl.Int64),
    "objects": lambda cells: np.array(cells, dtype=object),
}


@settings(max_examples=8, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "elsewhere", None]), max_size=9))
def test_texts_of_all_containers_are_counted(cells):
    wanted = [cells.count("a"), cells.count("b"), 0]
    rest = len(cells) - sum(wanted)
    for make in TEXTS.values():
        found = private_histogram(make(cells), categories=["a", "b", "c"], **EXACT)
        assert found.values.tolist() == wanted and found.categories == ("a", "b", "c")
        other = private_histogram(make(cells), categories=["a", "b"], other="rest", **EXACT)
        assert other.values.tolist() == [*wanted[:2], rest]
        assert private_count(make(cells), **EXACT).value == len(cells) - cells.count(None)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 7, None]), max_size=9))
def test_numbers_of_all_containers_are_counted_and_averaged(cells):
    known = [cell for cell in cells if cell is not None]
    for make in INTEGERS.values():
        found = private_histogram(make(cells), categories=[2, 1], **EXACT)
        assert found.values.tolist() == [cells.count(2), cells.count(1)]
        schema = NumericColumn("column", 0, 5, missing="ignore")
        mean = private_mean(make(cells), schema=schema, **EXACT)
        if known:
            low, high = mean.interval
            assert low <= np.clip(known, 0, 5).mean() <= high and high - low < 1e-2
        assert private_count(make(cells), **EXACT).value == len(known)


def test_conditions_are_counted_where_they_hold():
    for column in (
        np.array([True, False, True]),
        [True, False, np.True_],
        pd.Series([True, pd.NA, True], dtype="boolean"),
        pl.Series([True, None, True, False]),
        np.array([0.0, np.nan, 1.0]),
        np.array([0, 1]),
    ):
        assert private_count(column, **EXACT).value == 2
    sexes = private_histogram([True, False, True], categories=[False, True], **EXACT)
    assert sexes.values.tolist() == [1, 2]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "terms", [EXACT, {"epsilon": 900.0, "delta": 1e-9, "mechanism": "gaussian"}]
)
def test_values_are_those_of_the_table_with_little_noise(adjacency, terms):
    rng = np.random.default_rng(0)
    column = rng.normal(50.0, 20.0, 5001)
    clipped = np.clip(column, 0.0, 80.0)
    bounds = {"lower": 0.0, "upper": 80.0, "adjacency": adjacency, **terms}
    assert private_mean(column, **bounds).value == pytest.approx(clipped.mean(), rel=1e-3)
    assert private_variance(column, **bounds).value == pytest.approx(clipped.var(), rel=1e-3)
    found = private_quantile(column, 0.25, **bounds)
    assert found.value == pytest.approx(np.quantile(clipped, 0.25), abs=0.2)
    assert found.interval[0] <= np.quantile(clipped, 0.25) <= found.interval[1]


@pytest.mark.parametrize(("delta", "mechanism"), [(0.0, "laplace"), (1e-3, "gaussian")])
def test_intervals_of_counts_hold_as_often_as_they_say_and_not_more(delta, mechanism):
    categories = [str(place) for place in range(2000)]
    found = private_histogram(
        categories * 3,
        categories=categories,
        epsilon=0.1,
        delta=delta,
        mechanism=mechanism,
        random_state=0,
    )
    low, high = found.interval
    hits = np.sum((low <= 3) & (high >= 3))
    assert stats.binom.ppf(FALSE_ALARM, 2000, 0.95) <= hits
    assert hits <= stats.binom.ppf(1 - FALSE_ALARM, 2000, 0.965)
    low, high = found.simultaneous_interval(1 - 1e-7)
    assert (low <= 3).all() and (high >= 3).all()
    assert found.noise_interval[1] * 2 == found.interval[1][0] - found.interval[0][0]


def test_counts_are_processed_on_request():
    found = private_histogram(["a"] * 12, categories=["a", "b"], epsilon=0.5, random_state=1)
    assert found.nonnegative().values.min() >= 0 and found.nonnegative().interval[0].min() >= 0
    assert (found.rounded(5).values % 5 == 0).all()
    assert found.consistent_with(12).values.sum() == pytest.approx(12)
    assert found.rounded(5).privacy_spent_ is found.privacy_spent_
    assert found.values.dtype == float and (found.values % 1 == 0).all()
    assert "a: " in repr(found) and "<table>" in found._repr_html_()


def test_contingency_tables_have_one_dimension_a_column():
    frame = pd.DataFrame({"ward": ["A", "B", "B", "Z"], "ill": [True, False, None, True]})
    schema = TableSchema(
        [
            CategoricalColumn("ward", ["A", "B"]),
            BooleanColumn("ill", missing="ignore"),
        ]
    )
    for table in (frame, pl.DataFrame(frame.to_dict("list"))):
        found = private_contingency_table(table, schema=schema, **EXACT)
        assert found.values.tolist() == [[0, 1], [1, 0]]
        assert found.categories == (("A", "B"), (False, True))
        lists = {"ill": [False, True], "ward": ["A", "B"]}
        again = private_contingency_table(table, categories=lists, **EXACT)
        assert again.values.tolist() == found.values.tolist()


def test_the_most_frequent_come_first():
    names = ["Anna"] * 5 + ["Emma"] * 9 + ["Ida"] * 3 + ["unlisted"] * 50
    for adjacency in ADJACENCIES:
        found = private_top_k(
            names, 2, categories=["Ida", "Anna", "Emma"], counts=True, adjacency=adjacency, **EXACT
        )
        assert found.categories == ("Emma", "Anna") and found.counts.values.tolist() == [9, 5]
        assert found.counts.categories == found.categories
        assert "Emma" in found._repr_html_() and "'Emma', 'Anna'" in repr(found)


SCHEMA = TableSchema(
    [
        NumericColumn("age", 0, 100, missing="ignore"),
        CategoricalColumn("ward", ["A", "B"]),
        BooleanColumn("ill"),
        CategoricalColumn("arm", ["drug", "placebo"]),
    ]
)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_table_one_has_the_statistics_of_the_table(adjacency, library):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(60.0, 15.0, 400).clip(0, 100),
            "ward": rng.choice(["A", "B", "unlisted"], 400),
            "ill": rng.random(400) < 0.3,
            "arm": rng.choice(["drug", "placebo"], 400),
        }
    )
    frame.loc[:9, "age"] = np.nan
    given = frame if library == "pandas" else pl.DataFrame(frame.to_dict("list"))
    table = private_table_one(given, SCHEMA, by="arm", adjacency=adjacency, **EXACT)
    rows = {row[:4]: row for row in table.rows}
    assert table.arms == ("drug", "placebo")
    for arm, part in frame.groupby("arm"):
        wanted = {
            (arm, "n", None, "n"): len(part),
            (arm, "age", None, "mean"): part["age"].mean(),
            (arm, "age", None, "sd"): part["age"].std(ddof=0),
            (arm, "ward", "B", "count"): (part["ward"] == "B").sum(),
            (arm, "ill", True, "share"): part["ill"].mean(),
        }
        for key, value in wanted.items():
            row = rows[key]
            assert row.low - 1e-9 <= value <= row.high + 1e-9 and row.high - row.low < 0.1
            assert row.value == pytest.approx(value, abs=1e-2)
    assert "unlisted" not in str(table) and "ward: B" in str(table)
    assert "<table>" in table._repr_html_() and len(table.to_frame()) == len(table.rows)


def test_table_one_takes_fewer_columns_and_no_arms():
    frame = pd.DataFrame({"age": [20.0, 50.0], "arm": ["drug", "placebo"]})
    table = private_table_one(frame, SCHEMA, columns=["age"], epsilon=1.0)
    assert [row.statistic for row in table.rows] == ["n", "mean", "sd"]
    assert table.arms == ("all",) and table.scale == 4.0 and table.privacy_spent_.epsilon == 1.0
    empty = private_table_one(frame[:0], SCHEMA, by="arm", columns=["age"], epsilon=1.0)
    assert len(empty.rows) == 6


def test_a_column_may_have_the_name_of_the_line_of_sizes():
    schema = TableSchema([NumericColumn("n", 0, 10)])
    table = private_table_one(pd.DataFrame({"n": [4.0] * 50}), schema, epsilon=900.0)
    assert len(str(table).splitlines()) == 4 and "50 [" in str(table) and "(" in str(table)


@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1.0), ("replace-one", 0.5)])
def test_the_rarer_of_two_is_chosen_as_often_as_the_relation_needs(adjacency, factor):
    """By permute-and-flip: half of ``e^(-gap epsilon)``, with half of epsilon if rows move."""
    cells, runs = ["a", "a", "b"], 1200
    rare = sum(
        private_top_k(
            cells, 1, categories=["a", "b"], epsilon=1.0, adjacency=adjacency, random_state=seed
        ).categories
        == ("b",)
        for seed in range(runs)
    )
    chance = 0.5 * np.exp(-factor)
    low, high = stats.binom.ppf([FALSE_ALARM, 1.0 - FALSE_ALARM], runs, chance)
    assert low <= rare <= high
    assert not low <= runs * 0.5 * np.exp(-1.5 + factor) <= high


def test_what_was_released_decides_intervals_after_processing():
    wards = ["a"] * 730 + ["b"] * 1249
    counts = private_histogram(wards, categories=["a", "b"], epsilon=1.0, random_state=0)
    for changed in (counts.rounded(1000), counts.consistent_with(60), counts.nonnegative()):
        for bound, wanted in zip(
            changed.simultaneous_interval(), counts.simultaneous_interval(), strict=True
        ):
            assert bound.tolist() == wanted.tolist()


@pytest.mark.parametrize("release", [private_mean, private_variance])
def test_tables_without_rows_have_an_interval_whatever_the_noise(release):
    for seed in range(120):
        found = release([], lower=0.0, upper=1.0, epsilon=1.0, confidence=0.5, random_state=seed)
        low, high = found.interval
        assert 0.0 <= low <= high <= 1.0


def test_tables_of_too_many_cells_are_refused():
    with pytest.raises(ValueError, match="too many"):
        private_contingency_table([[0, 1]] * 40, categories=[[0, 1]] * 40, epsilon=1.0)


def test_means_and_deviations_between_extreme_bounds():
    cells = np.full(4000, 1e9 + 1e-3)
    for seed in range(5):
        mean = private_mean(cells, lower=1e9, upper=1e9 + 1e-3, epsilon=100.0, random_state=seed)
        assert mean.interval[0] <= cells[0] <= mean.interval[1]
    schema = TableSchema([NumericColumn("x", 0.0, 1e300)])
    table = private_table_one(pd.DataFrame({"x": [0.0, 1e300] * 500}), schema, **EXACT)
    (deviation,) = [row for row in table.rows if row.statistic == "sd"]
    assert deviation.low <= 5e299 <= deviation.high < 1e300


def test_intervals_of_quantiles_are_in_order_where_noise_goes_too_far():
    for seed in range(300):
        found = private_quantile(
            [0.5], lower=0.0, upper=1.0, epsilon=1.0, confidence=0.05, random_state=seed
        )
        low, high = found.interval
        assert 0.0 <= low <= found.value <= high <= 1.0
