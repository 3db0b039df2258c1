"""The ready schemas are complete, sourced, part of the package, and not read off the tables."""

import math
import os
import zipfile
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp import datasets
from skdp.datasets._loaders import SCHEMAS
from skdp.preprocessing import IgnoredColumn, NumericColumn, TableSchema


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_complete_and_sourced(name):
    schema = datasets.load_schema(name)
    assert schema.left_open() == {} and schema.name == name and schema.source
    assert schema.label.classes and schema.unit.name != "row"
    for column in schema.columns:
        if isinstance(column, IgnoredColumn):
            assert column.description
            continue
        assert column.source, column.name
        if isinstance(column, NumericColumn):
            assert None not in (column.lower, column.upper), column.name
            assert all(column.lower <= cut <= column.upper for cut in column.cuts), column.name
    assert schema.preprocessor().transformers


@pytest.mark.parametrize("name", SCHEMAS)
def test_files_are_what_the_library_writes(name):
    written = (resources.files("skdp.datasets") / "schemas" / f"{name}.json").read_text("utf-8")
    assert TableSchema.from_json(written).to_json() == written


def test_unknown_schema():
    with pytest.raises(ValueError, match="name must be one of adult, bank"):
        datasets.load_schema("iris")


def test_bounds_are_not_those_of_the_breast_cancer_rows():
    table = datasets.load_breast_cancer()
    for column in table.schema.columns:
        cells = table.data[column.name]
        assert column.lower != cells.min() or column.lower == 0.0, column.name
        assert column.upper != cells.max(), column.name


@pytest.mark.parametrize(
    ("fetch", "reached_by_rule"),
    [
        # Code books fix these limits, and rows reach them.
        (
            datasets.fetch_adult,
            {("age", 17), ("age", 90), ("hours_per_week", 1), ("hours_per_week", 99)}
            | {("capital_gain", 0), ("capital_gain", 99999), ("capital_loss", 0)},
        ),
        (
            datasets.fetch_bank,
            {("age", 18), ("day", 1), ("day", 31), ("duration", 0), ("campaign", 1)}
            | {("pdays", -1), ("previous", 0)},
        ),
        (datasets.fetch_cardio, set()),
        (datasets.fetch_heart, {("oldpeak", 0)}),
        (
            datasets.fetch_support2,
            {("num.co", 0), ("edu", 0), ("scoma", 0), ("scoma", 100), ("hday", 1), ("resp", 0)}
            | {("urine", 0), ("adlp", 0), ("adlp", 7), ("adls", 0), ("adls", 7)},
        ),
    ],
)
def test_bounds_are_not_those_of_the_rows(fetch, reached_by_rule):
    if "SKDP_DATA" not in os.environ:
        pytest.skip("needs the data files (SKDP_DATA)")
    table = fetch(download_if_missing=False)
    for column in table.schema.columns:
        if isinstance(column, NumericColumn):
            cells = table.data[column.name]
            for bound, extreme in ((column.lower, cells.min()), (column.upper, cells.max())):
                assert bound != extreme or (column.name, bound) in reached_by_rule, column.name


def test_the_norm_bounds_every_encoded_row():
    table = datasets.load_breast_cancer()
    features = table.schema.preprocessor().fit_transform(table.data)
    assert np.linalg.norm(features, axis=1).max() <= table.schema.norm_bound
    assert table.schema.data_norm == pytest.approx(0.5 * 30**0.5, abs=1e-4)


odd_cells = st.one_of(
    st.floats(),
    st.sampled_from([None, math.nan, math.inf, -math.inf, 10**400, -1, "?", "unlisted", b"", (1,)]),
)


@pytest.mark.daily(2)
@pytest.mark.parametrize("name", SCHEMAS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_adversarial_rows_are_bounded_or_refused_unquoted(name, data):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    schema = datasets.load_schema(name)
    row = {}
    for column in schema.columns:
        if column.is_feature:
            usual = column.listed() or (column.lower, column.upper)
            row[column.name] = data.draw(st.one_of(st.sampled_from(usual), odd_cells))
    frame = pandas.DataFrame(
        {key: pandas.Series([cell], dtype=object) for key, cell in row.items()}
    )
    try:
        features = schema.preprocessor().fit_transform(frame)
    except ValueError as refused:
        assert str(refused).startswith("column '") and "unlisted" not in str(refused)
        return
    assert np.all(np.isfinite(features))
    assert np.linalg.norm(features) <= schema.norm_bound * (1 + 1e-12)


@pytest.mark.slow
def test_the_wheel_holds_the_schemas(tmp_path):
    import subprocess
    import sys
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path), "."]
    subprocess.run(command, check=True, cwd=root)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"skdp/datasets/schemas/{name}.json" for name in SCHEMAS} <= set(names)
