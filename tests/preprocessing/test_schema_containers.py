"""Every container at every entry of a schema: taken, or refused by words that quote no cell."""

import html

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier

from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    SchemaEncoder,
    TableSchema,
)
from skdp.tables.inputs import public_message

SCHEMA = TableSchema(
    [NumericColumn("age", 0, 100), BooleanColumn("smoker")],
    label=LabelColumn("ill", [0, 1]),
    unit=PrivacyUnit("patient", column="id"),
)
CELL = 31.4159
CELLS = {"age": [CELL, 20.0, 30.0], "smoker": [0, 1, 0], "ill": [1, 0, 1], "id": [7, 8, 9]}
ROWS = [list(row) for row in zip(*CELLS.values(), strict=True)]
NAMES = list(CELLS)

FRAMES = {"pandas": pd.DataFrame(CELLS, index=[5, 3, 4]), "polars": pl.DataFrame(CELLS)}
# With what the refusal says.
OTHERS = {
    "lazy frame": (pl.LazyFrame(CELLS), "lazy; collect it first"),
    "dict of lists": (CELLS, "pandas or polars frame"),
    "dict of arrays": ({k: np.array(v) for k, v in CELLS.items()}, "pandas or polars frame"),
    "list of dicts": ([dict(zip(CELLS, row, strict=True)) for row in ROWS], "frame|no names"),
    "records": (pd.DataFrame(CELLS).to_records(), "records"),
    "sparse": (sparse.csr_array(np.array(ROWS)), "sparse"),
    "masked": (np.ma.array(ROWS), "masked"),
    "pandas series": (pd.Series(CELLS["age"]), "two dimensions"),
    "polars series": (pl.Series(CELLS["age"]), "two dimensions"),
    "vector": (np.array(CELLS["age"]), "two dimensions"),
    "list of numbers": (CELLS["age"], "two dimensions|no names"),
    "nothing": (None, "none of these"),
    "path": ("patients.csv", "none of these"),
    "array": (np.array(ROWS), "positions=True"),
    "list of rows": (ROWS, "positions=True|no names"),
}
PIPELINE = SCHEMA.pipeline(DummyClassifier()).fit(*SCHEMA.split(FRAMES["pandas"]))
ENTRIES = {
    "check": SCHEMA.check,
    "split": SCHEMA.split,
    "draft": TableSchema.draft,
    "encoder.fit": SchemaEncoder(SCHEMA.columns).fit,
    "encoder.transform": SchemaEncoder(SCHEMA.columns).fit(FRAMES["pandas"].iloc[:, :2]).transform,
    "preprocessor.fit": SCHEMA.preprocessor().fit,
    "pipeline.fit": lambda X: SCHEMA.pipeline(DummyClassifier()).fit(X, CELLS["ill"]),
    "pipeline.predict": PIPELINE.predict,
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_frame_is_refused_by_a_sentence(name):
    table, words = OTHERS[name]
    for entry, call in ENTRIES.items():
        takes_arrays = name in ("array", "list of rows") and entry.startswith("encoder")
        if takes_arrays:
            continue
        with pytest.raises((TypeError, ValueError), match=words) as refusal:
            call(table)
        assert str(CELL) not in str(refusal.value), entry


@pytest.mark.parametrize("name", FRAMES)
def test_frames_split_into_their_own_kind_and_arrays(name):
    frame = FRAMES[name]
    X, y, ids = SCHEMA.split(frame, groups=True)
    assert type(X) is type(frame) and list(X.columns) == ["age", "smoker"]
    # Arrays, so that nothing aligns them by an index.
    assert type(y) is type(ids) is np.ndarray
    np.testing.assert_array_equal(y, CELLS["ill"])
    np.testing.assert_array_equal(ids, CELLS["id"])
    by_name = SCHEMA.preprocessor().fit_transform(X)
    by_place = SCHEMA.preprocessor(positions=True).fit_transform([row[:2] for row in ROWS])
    np.testing.assert_array_equal(by_name, by_place)


def test_a_schema_shows_itself_briefly_and_escaped():
    wide = TableSchema(
        [
            *(NumericColumn(f"x{j}", 0, j + 1, unit="mm Hg") for j in range(300)),
            CategoricalColumn("<script>", ["a", "<b>&"], source="page <3>"),
            NumericColumn("open"),
        ],
        label=LabelColumn("ill", [0, 1]),
        name="<wards>",
    )
    text = repr(wide)
    assert len(text.splitlines()) <= 12 and max(map(len, text.splitlines())) <= 100
    assert "numeric (301): x0 [0, 1] mm Hg" in text and "schema['x0']" in text
    shown = wide._repr_html_()
    assert "<script>" not in shown and html.escape("<b>&") in shown and "page &lt;3&gt;" in shown
    assert shown.count("<tr>") == 1 + 302 + 1
    assert "[?, ?]" in shown
    assert repr(TableSchema([])) and TableSchema([])._repr_html_()


# Containers that a schema refuses although its columns are chosen by position; no cell is quoted.
MISPLACED = {
    "ragged rows": [ROWS[0][:2], ROWS[1], ROWS[2][:2]],
    "a mapping among rows": [ROWS[0][:2], {"age": CELL, "smoker": 0}],
    "a number among rows": [ROWS[0][:2], CELL],
    "a text among rows": ["31.4159", ROWS[0][:2]],
    "too many columns": np.array(ROWS),
    "too few columns": np.array(ROWS)[:, :1],
    "a frame in another order": pd.DataFrame(CELLS)[["smoker", "age"]],
    "a whole frame": pl.DataFrame(CELLS),
}


@pytest.mark.parametrize("name", MISPLACED)
def test_columns_by_place_are_taken_as_they_are_or_refused(name):
    preprocessor = SCHEMA.preprocessor(positions=True)
    fitted = SCHEMA.preprocessor(positions=True).fit([row[:2] for row in ROWS])
    for call in (preprocessor.fit, fitted.transform):
        said = "one length|by position|mappings|two dimensions"
        with pytest.raises((TypeError, ValueError), match=said) as refusal:
            call(MISPLACED[name])
        assert str(CELL) not in str(refusal.value)
        # Private searches repeat these messages, which name no cell, and withhold unknown ones.
        assert public_message(str(refusal.value)) == str(refusal.value).removesuffix(".")


def test_a_refusal_by_name_is_repeated_in_full():
    with pytest.raises(ValueError, match="chosen by name") as refusal:
        SCHEMA.preprocessor().fit(np.array([row[:2] for row in ROWS]))
    assert public_message(str(refusal.value)) == str(refusal.value).removesuffix(".")


def test_a_cell_that_is_a_list_is_missing_and_no_error():
    rows = [[[CELL, 1.0], 1], [20.0, 0]]
    preprocessor = TableSchema(
        [NumericColumn("age", 0, 100, missing="ignore"), BooleanColumn("smoker")]
    ).preprocessor(positions=True)
    assert preprocessor.fit_transform(rows)[0, 0] == 0.0
