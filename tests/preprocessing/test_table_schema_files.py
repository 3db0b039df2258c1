"""Schemas survive JSON and YAML exactly, and bad ones are refused with column, field and remedy."""

import builtins
import json
import time

import pytest
from drawn_schemas import schemas
from hypothesis import given, settings

from skdp.exceptions import SchemaError
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    IgnoredColumn,
    NumericColumn,
    NumericLabel,
    OrdinalColumn,
    SchemaEncoder,
    TableSchema,
)


def same(one, other):
    """Equal, and of the same types: 1 equals True."""
    return one == other and repr(one) == repr(other)


@settings(max_examples=80, deadline=None)
@given(schema=schemas())
def test_json_and_dict_give_the_schema_back(schema):
    assert same(TableSchema.from_json(schema.to_json()), schema)
    assert same(TableSchema.from_dict(schema.to_dict()), schema)
    assert json.loads(schema.to_json()) == schema.to_dict()
    assert ("interactions" in schema.to_dict()) == bool(schema.interactions)


@settings(max_examples=30, deadline=None)
@given(schema=schemas())
def test_yaml_gives_the_schema_back(schema):
    pytest.importorskip("yaml", reason="needs PyYAML")
    assert same(TableSchema.from_yaml(schema.to_yaml()), schema)


@pytest.mark.parametrize("suffix", ["json", "yaml", "yml"])
def test_files(tmp_path, suffix):
    if suffix != "json":
        pytest.importorskip("yaml", reason="needs PyYAML")
    schema = TableSchema(
        [CategoricalColumn("größe", ["yes", "no", "1e-6", "null"])], name="Tabelle"
    )
    path = tmp_path / f"schema.{suffix}"
    schema.save(path)
    assert TableSchema.load(path) == schema
    assert path.read_text(encoding="utf-8").startswith("{") == (suffix == "json")


ILL = {"name": "y", "classes": [0, 1]}
WELL = {"version": 1, "columns": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 9}]}


def changed(**fields):
    return {**WELL, "columns": [{**WELL["columns"][0], **fields}]}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (None, "a schema must be a mapping"),
        ({**WELL, "version": 2}, "version: this skdp reads version 1, got 2. A newer file"),
        ({"columns": []}, "version: .* got None"),
        ({**WELL, "format": "csvw"}, "format: must be 'skdp-table-schema'"),
        ({**WELL, "colums": []}, "schema: colums: is an unknown field. Did you mean 'columns'"),
        ({**WELL, "columns": "age"}, "columns: must be a list"),
        (
            {**WELL, "columns": [{"kind": "numeric"}]},
            r"columns\[0\]: name: every column needs a name",
        ),
        ({**WELL, "columns": WELL["columns"] * 2}, "these names occur twice: age"),
        ({**WELL, "clip_norm": -1}, "clip_norm: must be positive"),
        ({**WELL, "label": {"classes": [0, 1]}}, "label: name: is required"),
        ({**WELL, "label": {"name": "y", "classes": [True, "no"]}}, "classes.*Quote 'yes'"),
        ({**WELL, "label": {"name": "y", "classes": [0]}}, "classes: must be at least two"),
        ({**WELL, "label": {"name": "y", "classes": [0, 1], "values": [[0]]}}, "one list for each"),
        ({**WELL, "label": {"name": "y", "classes": [0, 1], "values": [[0], [0]]}}, "value twice"),
        ({**WELL, "label": {**ILL, "prevalence": [0.9, 0.1]}}, "share for each of"),
        ({**WELL, "label": {**ILL, "prevalence": {"0": 1.0}}}, "share for each of"),
        ({**WELL, "label": {**ILL, "prevalence": {"0": 0.5, "1": 0.4}}}, "add up to 1"),
        ({**WELL, "label": {**ILL, "prevalence": {"0": 1.0, "1": 0.0}}}, "must be positive"),
        ({**WELL, "label": {**ILL, "prevalence": {"0": "much", "1": 0.0}}}, "must be a number"),
        ({**WELL, "label": {**ILL, "prevalence": {0: 0.5, "0": 0.5, "1": 0.5}}}, "share for each"),
        ({**WELL, "label": {"name": "y", "prevalence": {"0": 1.0}}}, "prevalence: needs classes"),
        ({**WELL, "unit": {"max_rows": 0}}, "unit: max_rows: must be a positive integer"),
        ({**WELL, "unit": {"column": "age"}}, "unit: its column 'age' is a feature|is a feature"),
        (changed(kind="number"), "column 'age': kind: must be one of numeric"),
        (changed(uper=3), "column 'age': uper: is an unknown field. Did you mean 'upper'"),
        (changed(upper="1e-6"), "column 'age': upper: must be a number.*in YAML write 1.0e-6"),
        (changed(upper=float("nan")), "column 'age': upper: must be finite"),
        (changed(upper=0), "column 'age': upper: must exceed lower=0"),
        (changed(lower=-1e308, upper=1e308), "too far apart"),
        (changed(lower=1.0, upper=1.0 + 2**-52, scale="sqrt"), "too close"),
        (changed(lower=-1, scale="sqrt"), "lower: must be at least 0 for scale='sqrt'"),
        (changed(scale="log"), "lower: must be positive for scale='log'"),
        (changed(scale="cube"), "column 'age': scale: must be one of"),
        (changed(cuts=[3, 2]), "cuts: must be increasing"),
        (changed(cuts=[3, 3]), "cuts: contains a value twice"),
        (changed(encoding="steps"), "cuts: encoding='steps' needs public thresholds"),
        (changed(missing="mean"), "missing: must be one of 'refuse'"),
        (changed(missing="fill"), "fill_value: must be given with missing='fill'.*not a mean"),
        (changed(fill_value=3), "fill_value: must be given with missing='fill'"),
        (changed(weight=0), "weight: must be positive"),
        (changed(unit=3), "unit: must be text"),
        (changed(kind="categorical", lower=None), "column 'age': lower: is an unknown field"),
    ],
)
def test_errors_name_the_place_and_the_remedy(tree, message):
    with pytest.raises(ValueError, match=message):
        TableSchema.from_dict(tree)


def numeric(**fields):
    return lambda: NumericColumn(**{"name": "x", "lower": 0, "upper": 9, **fields})


def label(**fields):
    return lambda: NumericLabel(**{"name": "stay", "lower": 0, "upper": 3, **fields})


def bounds(given, label=None):
    return lambda: TableSchema.from_bounds(given, label=label)


def acting(*interactions):
    columns = [BooleanColumn(name) for name in ("a", "b", "a * b")]
    return lambda: TableSchema(columns, interactions=interactions)


def yaml(written):
    pytest.importorskip("yaml", reason="needs PyYAML")
    return TableSchema.from_yaml(written)


SAME = [BooleanColumn("a", ["n", "b=c"]), BooleanColumn("a=b", ["n", "c"])]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (numeric(name=""), "name: must be non-empty text"),
        (numeric(spikes=[2, 1]), "column 'x': spikes: must be increasing"),
        (numeric(spikes=[]), "spikes: must contain amounts"),
        (numeric(spikes=[1], encoding="scaled"), "spikes: .* needs encoding='waves'"),
        (numeric(spikes=["a"]), "spikes: must be a number"),
        (numeric(cuts=0), "cuts: a number of cuts must be 1 to 1000 and needs bounds, got 0"),
        (numeric(cuts=3, upper=None), "needs bounds"),
        (numeric(cuts=True), "cuts: must be a list"),
        (numeric(cuts="many"), "cuts: must be a list"),
        (lambda: CategoricalColumn("a", "abc"), "categories: must be a list"),
        (lambda: CategoricalColumn("a", ["x"]), "at least two"),
        (lambda: CategoricalColumn("a", [1, 1.0]), "contains a value twice"),
        (lambda: CategoricalColumn("a", [True, False]), "which YAML reads as booleans"),
        (lambda: CategoricalColumn("a", ["x", None]), "must contain texts and numbers, got None"),
        (lambda: CategoricalColumn("a", ["x", "y"], unknown="drop"), "unknown: must be one of"),
        (
            lambda: CategoricalColumn("a", ["x", "?"], missing_codes=["?"]),
            "must not contain a value",
        ),
        (lambda: OrdinalColumn("a", [1, 2], missing="fill", fill_value=3), "one of levels"),
        (lambda: BooleanColumn("a", [0, 1, 2]), "must be a pair"),
        (label(lower=3), "label 'stay': upper: must exceed"),
        (label(lower="0"), "lower: must be a number"),
        (label(upper=float("inf")), "upper: must be finite"),
        (label(upper=10**400), "upper: must be finite"),
        (label(unit=3), "unit: must be text"),
        (lambda: TableSchema("age"), "columns: must be a list of columns"),
        (lambda: TableSchema(["age"]), "must contain columns such as NumericColumn"),
        (lambda: TableSchema(SAME), "features with the same name: a=b=c"),
        (lambda: TableSchema([IgnoredColumn("a")]).preprocessor(), "no column is a feature"),
        (lambda: TableSchema([NumericColumn("a", 0, 1)])["b"], "'b' is not a column"),
        (lambda: TableSchema(SAME, interactions="a"), "interactions: must be a list of tuples"),
        (acting("a"), "interactions: must be a list, got 'a'"),
        (acting(("a",)), r"two or more features each, got \['a'\]"),
        (acting(("a", "nobody")), "two or more features"),
        (acting(("a", "a * b"), ("a * b", "a")), "contains the same columns twice"),
        (acting(("a", "b")), "occur twice"),
        (
            bounds({"age": None}),
            r"column 'age': must be public bounds \(lower, upper\), the list",
        ),
        (bounds({"age": (1, 2, 3)}), "column 'age': must be public bounds"),
        (bounds({"age": (1, None)}), "column 'age': upper: not given"),
        (bounds({"age": (2, 1)}), "column 'age': upper: must exceed"),
        (bounds({"ward": "ABC"}), "column 'ward': must be public bounds"),
        (bounds({"ward": {"A", "B"}}), "column 'ward': must be public bounds"),
        (bounds({"ward": ["A"]}), "column 'ward': categories: must contain at least two"),
        (bounds({"age": (0, 1)}, "ill"), "label: 'ill' is not a column"),
        (bounds({"age": (0, 1), "ill": None}, "ill"), "label 'ill': classes: not given"),
        (bounds({"age": (0, 1), "ill": {0, 1}}, "ill"), "a set has no order"),
        (bounds([("a", (0, 1))]), "bounds must be a mapping"),
        (
            lambda: TableSchema.draft(["a", "b"], ["float64"]),
            "must have 2 types, one per name; got 1",
        ),
        (lambda: TableSchema.draft({"a": "numeric"}, ["float64"]), "for a list of names"),
        (lambda: TableSchema.draft(["ab", "cd"]), "dtypes="),
        (lambda: TableSchema.draft({"age": "number"}), "column 'age': kind: must be one of"),
        (lambda: TableSchema.from_json("{"), "is no JSON"),
        (lambda: TableSchema.from_json('{"version": 1, "version": 1}'), "version: is given twice"),
        (lambda: yaml("version: 1\nversion: 1\ncolumns: []\n"), "version: is given twice"),
        (lambda: yaml("version: [\n"), "is no YAML"),
        (lambda: yaml("!!python/object/apply:os.getcwd []\n"), "is no YAML"),
        (lambda: SchemaEncoder(SAME[:1], product=True).fit([[1]]), "two or more"),
    ],
)
def test_errors_from_python(make, message):
    with pytest.raises((ValueError, KeyError, TypeError), match=message):
        make()


def test_yaml_without_its_library_names_the_extra(monkeypatch):
    original = builtins.__import__

    def refuse(name, *rest, **more):
        if name == "yaml":
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'skdp\[schema\]'"):
        TableSchema.from_yaml("version: 1")


# ------------------------------------------------------------------------------------------ drafts
def test_drafts_read_names_and_types_only():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    one = pandas.DataFrame({"age": [1.5, 2.0], "ward": ["A", "B"], "smoker": [True, False]})
    other = pandas.DataFrame({"age": [9.0], "ward": ["Z"], "smoker": [True]})
    draft = TableSchema.draft(one, label="smoker")
    assert draft == TableSchema.draft(other, label="smoker")
    assert draft == TableSchema.draft(list(one.columns), one.dtypes, label="smoker")
    assert draft.left_open() == {
        "age": ("lower", "upper"),
        "ward": ("categories",),
        "smoker": ("classes",),
    }
    assert TableSchema.from_json(draft.to_json()) == draft
    assert '"lower": null' in draft.to_json()
    with pytest.raises(ValueError, match=r"column 'age': lower and upper: not given\. Take"):
        draft.preprocessor()
    with pytest.raises(ValueError, match="'ills' is not a column"):
        TableSchema.draft(one, label="ills")


def test_drafts_from_a_list_of_kinds():
    draft = TableSchema.draft({"age": "numeric", "id": "ignored", "pain": "ordinal"})
    assert draft.features == ["age", "pain"]
    filled = draft.replace(NumericColumn("age", 0, 120), OrdinalColumn("pain", [1, 2, 3]))
    assert filled.left_open() == {} and filled.preprocessor()


LARGE = {
    "keys": "\n".join(f"k{i}: 1" for i in range(20_000)),
    "one key": "\n".join("k: 1" for i in range(20_000)),
    "nesting": "[" * 3_000 + "]" * 3_000,
    "nested mappings": "{a: " * 3_000 + "1" + "}" * 3_000,
    "nested blocks": "\n".join(" " * i + "a:" for i in range(3_000)),
    "digits": "version: " + "9" * 10**6,
    "hexadecimal": "version: 0x" + "9" * 10**6,
    "base 60": "version: 1" + ":59" * 10**5,
    "a float": "version: 1." + "9" * 10**6,
    "a wrong date": "version: 2020-99-99",
    "no boolean": "version: !!bool 'abc'",
    "no time": "version: !!timestamp 'abc'",
    "a list as key": "? [a]\n: 1",
}
LARGE_JSON = {
    "keys": json.dumps({f"k{i}": 1 for i in range(20_000)}),
    "one key": "{" + ", ".join('"k": 1' for _ in range(20_000)) + "}",
    "nesting": "[" * 100_000 + "]" * 100_000,
    "nested mappings": '{"a": ' * 100_000 + "1" + "}" * 100_000,
    "nested within": '{"version": ' + "[" * 900 + "]" * 900 + "}",
    "digits": '{"version": ' + "9" * 10**6 + "}",
    "digits of a bound": '{"version": 1, "columns": [{"name": "a", "kind": "numeric", "lower": '
    + "9" * 5_000
    + "}]}",
}


@pytest.mark.parametrize("name", [*LARGE, *(f"json {name}" for name in LARGE_JSON)])
def test_large_and_odd_files_are_refused_as_schemas_in_seconds(name):
    start = time.process_time()
    with pytest.raises(SchemaError):
        if name.startswith("json "):
            TableSchema.from_json(LARGE_JSON[name[5:]])
        else:
            TableSchema.from_yaml(LARGE[name])
    assert time.process_time() - start < 5.0  # it was 6 s and more, growing with the square


def test_numbers_that_python_does_not_write_are_refused_as_schemas():
    for number in (10**5000, -(10**5000)):
        for tree in (
            {"version": number, "columns": []},
            {"version": 1, "columns": [{"name": "a", "kind": "numeric", "lower": number}]},
            {"version": 1, "columns": [{"name": "a", "kind": "ordinal", "levels": [1, number]}]},
        ):
            with pytest.raises(SchemaError):
                TableSchema.from_dict(tree)
