"""Rows drawn from a schema: what it allows, as its own encoder takes it."""

import numpy as np
import pytest

from skdp.datasets import load_schema
from skdp.preprocessing import BooleanColumn, CategoricalColumn, NumericColumn, TableSchema

SCHEMA = TableSchema(
    [
        NumericColumn("age", 20, 80),
        CategoricalColumn("ward", ["A", "B", "C"]),
        CategoricalColumn("grade", [1, 2]),
        BooleanColumn("smoker"),
    ]
)


def test_rows_keep_to_the_description_and_repeat():
    frame = SCHEMA.sample_public(500, random_state=0)
    assert list(frame.columns) == SCHEMA.features and len(frame) == 500
    assert frame["age"].between(20, 80).all() and set(frame["ward"]) == {"A", "B", "C"}
    # Each of 10 equal parts holds 50 on average; none of 10 leaves [16, 90] but by 1e-7.
    parts = np.histogram(frame["age"], np.linspace(20, 80, 11))[0]
    assert parts.min() >= 16 and parts.max() <= 90
    assert frame.equals(SCHEMA.sample_public(500, random_state=0))
    assert not frame.equals(SCHEMA.sample_public(500, random_state=1))
    SCHEMA.check(frame)


@pytest.mark.parametrize("name", ["adult", "bank", "cardio", "heart"])
def test_ready_schemas_encode_their_own_rows(name):
    schema = load_schema(name)
    frame = schema.sample_public(40, random_state=0)
    rows = schema.preprocessor().fit(frame).transform(frame)
    assert np.linalg.norm(rows, axis=1).max() <= schema.norm_bound * (1.0 + 1e-12)


def test_stated_marginals():
    edges, shares = [30, 30, 30, 30, 60], [0.0, 1.0, 0.0]
    frame = SCHEMA.sample_public(400, marginals={"age": edges, "ward": shares}, random_state=0)
    assert set(frame["ward"]) == {"B"}
    # Three of four are exactly 30: 300 on average, within 250 and 350 but by 1e-8.
    assert 250 < np.count_nonzero(frame["age"] == 30.0) < 350 and frame["age"].max() <= 60


@pytest.mark.parametrize(
    ("marginals", "message"),
    [
        ({"agee": [20, 80]}, "Did you mean 'age'"),
        ({"age": [80, 20]}, "in non-decreasing order"),
        ({"age": [10, 80]}, "within the bounds"),
        ({"age": "old"}, "'age'.*does not fit"),
        ({"ward": [0.5, 0.5]}, "'ward'.*does not fit"),
        ({"ward": [0.5, 0.5, 0.5]}, "'ward'.*does not fit"),
    ],
)
def test_marginals_that_do_not_fit_are_refused(marginals, message):
    with pytest.raises(ValueError, match=message):
        SCHEMA.sample_public(5, marginals=marginals)


def test_what_is_left_open_cannot_be_drawn():
    with pytest.raises(ValueError, match="age"):
        TableSchema([NumericColumn("age")]).sample_public(5)
    with pytest.raises(ValueError, match="n must be at least 1"):
        SCHEMA.sample_public(0)


def test_values_of_a_list_keep_their_types():
    schema = TableSchema([CategoricalColumn("dose", [1, 2, "unknown"])])
    drawn = schema.sample_public(60, random_state=0)["dose"].tolist()
    assert set(drawn) == {1, 2, "unknown"}
    schema.check(schema.sample_public(60, random_state=0))
