"""Sensitivities on neighbours, budgets, errors before charges, and an audit that sees an error."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp import config_context
from skdp.audit.bounds import errors_above
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.exceptions import BudgetRequiredError, PrivacyWarning
from skdp.mechanisms import additive, record_releases
from skdp.mechanisms.release import Release
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
)
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
from skdp.statistics.moments import _release
from skdp.statistics.noise import UNIT, shares

SCHEMA = TableSchema(
    [
        NumericColumn("age", 0, 100, missing="ignore"),
        CategoricalColumn("ward", ["A", "B", "C"], missing="ignore"),
        BooleanColumn("ill", missing="ignore"),
    ]
)
ADDING = {"adjacency": "add-remove"}
ROWS = [(34, "A", True), (57, "B", False), (101, "C", True), (None, None, None), (12, "D", False)]
STATISTICS = {
    "count": lambda frame, **terms: private_count(frame["ill"], **terms),
    "histogram": lambda frame, **terms: private_histogram(frame["ward"], schema=SCHEMA, **terms),
    "other": lambda frame, **terms: private_histogram(
        frame["ward"], schema=SCHEMA, other="other", **terms
    ),
    "table": lambda frame, **terms: private_contingency_table(
        frame[["ward", "ill"]], schema=SCHEMA, **terms
    ),
    "mean": lambda frame, **terms: private_mean(frame["age"], schema=SCHEMA, **terms),
    "whole mean": lambda frame, **terms: private_mean(frame["age"].fillna(0), **WHOLE, **terms),
    "whole variance": lambda frame, **terms: private_variance(
        frame["age"].fillna(0), **WHOLE, **terms
    ),
    "variance": lambda frame, **terms: private_variance(frame["age"], schema=SCHEMA, **terms),
    "quantile": lambda frame, **terms: private_quantile(
        frame["age"], 0.3, schema=SCHEMA, resolution=10.0, **terms
    ),
    "top": lambda frame, **terms: private_top_k(
        frame["ward"], 2, schema=SCHEMA, counts=True, **terms
    ),
    "table one": lambda frame, **terms: private_table_one(frame, SCHEMA, by="ward", **terms),
}


def frame_of(rows):
    return pd.DataFrame(rows, columns=["age", "ward", "ill"], dtype=object)


WHOLE = {"lower": 0, "upper": 100}  # without a schema that says that cells may be missing


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", STATISTICS)
def test_neighbours_are_as_near_as_declared(name, adjacency):
    """Every release, un-noised, moves by no more than its sensitivity, and somewhere by all."""
    rows, worst = ROWS, 0.0
    pool = [(0, "A", True), (100, "B", False), (33, "C", True)]
    for place, new in [(place, new) for place in range(len(rows)) for new in pool]:
        other = [*rows[:place], *rows[place + 1 :]]
        if adjacency == "replace-one":
            other = [*rows[:place], new, *rows[place + 1 :]]
        terms = {"epsilon": 1.0, "adjacency": adjacency, "random_state": 0}
        with record_releases() as first:
            STATISTICS[name](frame_of(rows), **terms)
        with record_releases(first) as second:
            STATISTICS[name](frame_of(other), **terms)
        assert len(first.releases) == len(second.releases)
        for one, two in zip(first.releases, second.releases, strict=True):
            gap = np.linalg.norm((one.value - two.value).ravel(), one.norm)
            assert gap <= one.sensitivity, one.label
            worst = max(worst, gap / one.sensitivity)
    assert worst > 0.6


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.sampled_from([1, 2]))
def test_shares_of_a_record_sum_to_one(u, v, degree):
    one, two = shares(np.array([u, v]), degree)
    assert (one >= 0).all() and one.sum() == UNIT
    for adjacency, skip in (("add-remove", 0), ("replace-one", 1)):
        release = _release("x", degree, adjacency)
        moved = one[skip:] if adjacency == "add-remove" else one[skip:] - two[skip:]
        moved = [int(number) for number in moved]
        assert sum(map(abs, moved)) <= release.l1
        assert sum(number**2 for number in moved) <= release.l2**2
    assert np.isclose(one @ np.arange(degree + 1) / degree / UNIT, u, atol=3 / UNIT)


def test_two_thirds_of_the_range_attain_the_sensitivity_of_the_variance():
    near, far = shares(np.array([1.0 / 3.0, 1.0]), 2)[:, 1:]
    assert np.abs(near - far).sum() >= 4 * UNIT // 3 - 4


@pytest.mark.parametrize("name", STATISTICS)
def test_budgets_are_charged_before_rows_are_used(name):
    budget = BudgetAccountant(epsilon=1.0, delta=0.0, adjacency="add-remove", composition="basic")
    frame = frame_of(ROWS)
    result = STATISTICS[name](frame, epsilon=0.6, accountant=budget)
    (entry,) = budget.entries()
    assert entry["label"].startswith("private_")
    assert entry["event"] == result.privacy_spent_.event.to_dict()
    assert 0.6 * (1 - 1e-9) <= float(budget.spent()[0]) <= 0.6 * (1 + 1e-12)
    with record_releases() as trace, pytest.raises(BudgetExceededError):
        STATISTICS[name](frame, epsilon=0.6, accountant=budget)
    assert trace.releases == []
    with budget, pytest.raises(BudgetExceededError):
        STATISTICS[name](frame, epsilon=0.6)
    with config_context(require_budget=True), pytest.raises(BudgetRequiredError, match="private_"):
        STATISTICS[name](frame, epsilon=0.6)


BAD = {
    "epsilon": lambda: private_count([1], epsilon=0.0),
    "delta": lambda: private_count([1], epsilon=1.0, delta=1.0),
    "mechanism": lambda: private_count([1], epsilon=1.0, mechanism="gaussian"),
    "confidence": lambda: private_count([1], epsilon=1.0, confidence=1.0),
    "adjacency": lambda: private_count([1], epsilon=1.0, adjacency="both"),
    "pass categories": lambda: private_histogram(["secret"], epsilon=1.0),
    "other": lambda: private_histogram(["secret"], categories=["a", "b"], other="a", epsilon=1.0),
    "lower= and upper=": lambda: private_mean([77.7], epsilon=1.0),
    "infinite": lambda: private_mean([77.7, np.inf], lower=0, upper=1, epsilon=1.0),
    "missing": lambda: private_mean(
        [77.7, None], lower=0, upper=1, epsilon=1.0, adjacency="replace-one"
    ),
    "denominator": lambda: private_quantile([77.7], 0.12345, lower=0, upper=1, epsilon=1.0),
    "one length": lambda: private_contingency_table(
        [["a"], ["b", "b"]], categories=[["a", "b"]] * 2, epsilon=1.0
    ),
    "k must": lambda: private_top_k(["secret"], 2, categories=["a", "b"], epsilon=1.0),
    "no name": lambda: private_mean([77.7], schema=SCHEMA, epsilon=1.0),
    "one dimension": lambda: private_count(np.ones((2, 2)), epsilon=1.0),
    "no columns": lambda: private_table_one(frame_of(ROWS)[["age"]], SCHEMA, epsilon=1.0),
    "by='age'": lambda: private_table_one(frame_of(ROWS), SCHEMA, by="age", epsilon=1.0),
    "refuse": lambda: private_table_one(
        frame_of(ROWS), SCHEMA.replace(NumericColumn("age", 0, 1)), epsilon=1.0
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_errors_come_before_charges_and_quote_no_value(message):
    budget = BudgetAccountant(epsilon=10.0, delta=1e-6)
    with budget, pytest.raises(ValueError, match=message) as raised:
        BAD[message]()
    assert len(budget.entries()) == 0
    assert "77.7" not in str(raised.value) and "secret" not in str(raised.value)


def test_units_of_several_rows_are_warned_about():
    schema = SCHEMA.replace(unit=PrivacyUnit("patient", 3))
    with pytest.warns(PrivacyWarning, match="one patient may have 3 rows") as caught:
        private_mean(frame_of(ROWS)["age"], schema=schema, epsilon=1.0)
        private_histogram(frame_of(ROWS)["ward"], schema=schema, epsilon=1.0)
        private_table_one(frame_of(ROWS), schema, epsilon=1.0)
    assert sum("one patient may have" in str(each.message) for each in caught) == 3


def cells(count, epsilon):
    """Return many noisy counts of the same number: as many runs of one count."""
    categories = [str(place) for place in range(2500)]
    result = private_histogram(
        categories * count, categories=categories, epsilon=epsilon, random_state=count, **ADDING
    )
    return result.values


def test_an_audit_finds_the_claim_right_and_half_the_noise_wrong(monkeypatch):
    """Both fail by luck with less than 1e-6; the seeds are fixed besides."""

    def bound():
        errors = errors_above(0.5, cells(1, 1.0), cells(0, 1.0), 1e-7)
        return float(errors.epsilon_lower(0.0))

    assert 0.6 < bound() <= 1.0
    make = Release.make

    def careless(self, exact, stream):
        return make(dataclasses.replace(self, scale=self.scale / 2), exact, stream)

    monkeypatch.setattr(Release, "make", careless)
    assert bound() > 1.3


def test_one_seed_gives_other_noise_to_another_table():
    def noise(column):
        found = private_histogram(column, categories=["a", "b"], epsilon=0.01, random_state=3)
        return found.values - [column.count("a"), column.count("b")]

    assert np.array_equal(noise(["a"] * 5), noise(["a"] * 5))
    assert not np.array_equal(noise(["a"] * 5), noise(["a"] * 6))
    # Equal noise would tell that two conditions hold equally often.
    assert not np.array_equal(noise(["a"] * 5 + ["b"] * 4), noise(["b"] * 4 + ["a"] * 5))
    assert private_count([1], epsilon=1.0, random_state=3).privacy_spent_.seeded


def test_one_seed_gives_other_noise_to_other_terms(monkeypatch):
    """Noises of two scales from one stream would be multiples of each other."""
    drawn = []

    def draw(stream, scale, count):
        drawn.append(stream.words(4).tobytes())
        return [0] * count

    monkeypatch.setattr(additive, "discrete_laplaces", draw)
    monkeypatch.setattr(additive, "discrete_gaussians", draw)
    terms = {"epsilon": 0.5, "delta": 1e-6, "mechanism": "gaussian", "random_state": 3}
    others = [
        {"epsilon": 0.6},
        {"delta": 1e-7},
        {"mechanism": "laplace"},
        ADDING,
        {"confidence": 0.9},
        {"random_state": 4},
    ]
    for change in ({}, *others):
        private_histogram(["a", "b"], categories=["a", "b"], **terms | change)
    private_contingency_table([["a", "b"]], categories=[["a", "b"]], **terms)
    assert len(set(drawn)) == len(drawn) == 8
    private_histogram(["a", "b"], categories=["a", "b"], **terms)
    assert drawn[-1] == drawn[0]
