"""A row's features follow from that row alone, in every container; types are checked first."""

import io
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.exceptions import SchemaError
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    IgnoredColumn,
    LabelColumn,
    NumericColumn,
    OrdinalColumn,
    SchemaEncoder,
    TableSchema,
)

pandas = pytest.importorskip("pandas", reason="needs pandas")
polars = pytest.importorskip("polars", reason="needs polars")
try:
    import pyarrow  # noqa: F401

    HAS_ARROW = True
except ImportError:
    HAS_ARROW = False

BIG = 2**53
MIXED = TableSchema(
    [
        NumericColumn("n", 1, 1000, scale="log", cuts=[2, 30], encoding="scaled+steps",
                      missing="indicator", missing_codes=["99"]),
        CategoricalColumn("code", [BIG, BIG + 1, 7, 2**70], missing="indicator",
                          unknown="indicator"),
        CategoricalColumn("word", ["A", "1", "nan", "B"], missing="ignore", unknown="indicator"),
        OrdinalColumn("level", [0, 1, 2.5, "many"], missing="fill", fill_value=1),
        BooleanColumn("flag", missing="ignore", unknown="indicator"),
    ]
)  # fmt: skip
TYPICAL = {
    "n": st.one_of(st.floats(), st.integers(), st.sampled_from(["3", "x", 99])),
    "code": st.one_of(st.sampled_from([BIG - 1, BIG, BIG + 1, 7, str(BIG + 1), 2**70]), st.none()),
    "word": st.one_of(st.sampled_from(["A", "B", "1", 1, "nan", math.nan]), st.text(max_size=30)),
    "level": st.sampled_from([0, 1.0, "1", 2.5, True, "many", np.float32(2.5), None]),
    "flag": st.sampled_from([True, False, "True", 1, 0.0, None, "yes"]),
}


class Hostile:
    """A cell that raises whatever is asked of it."""

    def __eq__(self, other):
        raise RuntimeError

    def __ne__(self, other):
        raise RuntimeError

    __hash__ = object.__hash__
    __str__ = __float__ = __bool__ = __eq__


ANYTHING = st.one_of(
    *TYPICAL.values(),
    st.sampled_from([(1,), [1, 2], {}, b"1", 1j, math.inf, -0.0, 10**5000, pandas.NA, pandas.NaT]),
    st.sampled_from(
        [np.datetime64(1, "ns"), np.array([1.0]), np.array([]), np.str_("A"), Hostile()]
    ),
)


def objects(cells):
    return np.fromiter(cells, dtype=object)


def by_columns(rows):
    return {name: [row[j] for row in rows] for j, name in enumerate(MIXED.features)}


def object_array(rows):
    return np.column_stack([objects(cells) for cells in by_columns(rows).values()])


def object_frame(rows):
    columns = by_columns(rows).items()
    return pandas.DataFrame({n: pandas.Series(objects(c), dtype=object) for n, c in columns})


def polars_objects(rows):
    columns = by_columns(rows).items()
    return polars.DataFrame([polars.Series(n, c, dtype=polars.Object) for n, c in columns])


FREE = {
    "list": lambda rows: [list(row) for row in rows],
    "tuples": tuple,
    "array": object_array,
    "pandas": object_frame,
    "polars": polars_objects,
}


def features(container, schema=MIXED):
    if isinstance(container, list | tuple):  # a ColumnTransformer would make an array of it
        encoder = SchemaEncoder(schema.columns)
    else:
        encoder = schema.preprocessor(positions=not hasattr(container, "columns"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fit is silent
        return encoder.fit_transform(container)


def bits(table):
    return np.ascontiguousarray(table).view(np.uint64)


@pytest.mark.parametrize("container", FREE)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_row_touches_another_whatever_its_cells(container, data):
    count = data.draw(st.integers(2, 4))
    rows = [[data.draw(TYPICAL[name]) for name in MIXED.features] for _ in range(count)]
    place = data.draw(st.integers(0, count - 1))
    neighbour = [*rows]
    neighbour[place] = [data.draw(ANYTHING) for _ in MIXED.features]
    before, after = (features(FREE[container](table)) for table in (rows, neighbour))
    others = np.arange(count) != place
    np.testing.assert_array_equal(bits(before)[others], bits(after)[others])
    alone = features(FREE[container]([rows[place]]))
    np.testing.assert_array_equal(bits(before)[[place]], bits(alone))


# Containers that admit typed cells only: what a cell may be, and how a column is made.
known = st.sampled_from([BIG, BIG + 1, BIG - 1, 7, -1, 2**60])
whole = st.one_of(st.none(), known)
text = st.one_of(st.sampled_from(["A", "B", "1", "", "nan"]), st.text(max_size=9))
word = st.one_of(st.none(), text)
real = st.one_of(st.none(), st.floats())
truth = st.one_of(st.none(), st.booleans())
CODES = CategoricalColumn("c", [BIG, BIG + 1, 7], missing="indicator", unknown="indicator")
WORDS = CategoricalColumn("c", ["A", "1", "nan"], missing="indicator", unknown="indicator")
SMALL = CategoricalColumn("c", [0, 1, 2.5], missing="indicator", unknown="indicator")
FLAG = BooleanColumn("c", missing="indicator", unknown="indicator")
NUMBER = NumericColumn("c", 1, 9, scale="sqrt", missing="indicator")


def in_pandas(dtype):
    return lambda cells: pandas.DataFrame({"c": pandas.Series(cells, dtype=dtype)})


def in_polars(dtype):
    return lambda cells: polars.DataFrame({"c": polars.Series(cells, dtype=dtype)})


def in_numpy(dtype):
    return lambda cells: np.array([[cell] for cell in cells], dtype=dtype)


def in_categories(cells):
    return pandas.DataFrame({"c": pandas.Series(cells, dtype=object).astype("category")})


TYPED = {
    "Int64": (CODES, whole, in_pandas("Int64")),
    "Int64-number": (NUMBER, whole, in_pandas("Int64")),
    "Float64": (SMALL, real, in_pandas("Float64")),
    "boolean": (FLAG, truth, in_pandas("boolean")),
    "string": (WORDS, word, in_pandas("string")),
    "default-string": (WORDS, word, in_pandas(None)),
    "float64": (SMALL, real, in_pandas("float64")),
    "plain-int-or-float": (SMALL, st.one_of(st.none(), st.integers(-3, 3)), in_pandas(None)),
    "category-number": (SMALL, st.one_of(real, st.sampled_from(["1", "2.5", "x"])), in_categories),
    "category-text": (WORDS, word, in_categories),
    "polars-int": (CODES, whole, in_polars(polars.Int64)),
    "polars-int-number": (NUMBER, whole, in_polars(polars.Int64)),
    "polars-float": (SMALL, real, in_polars(polars.Float64)),
    "polars-text": (WORDS, word, in_polars(polars.String)),
    "polars-category": (WORDS, word, in_polars(polars.Categorical)),
    "polars-boolean": (FLAG, truth, in_polars(polars.Boolean)),
    "numpy-int": (CODES, known, in_numpy(np.int64)),
    "numpy-float": (NUMBER, st.floats(), in_numpy(np.float64)),
    "numpy-text": (WORDS, text, in_numpy(None)),
}
ARROW = {
    "arrow-int": (CODES, whole, in_pandas("int64[pyarrow]")),
    "arrow-number": (NUMBER, whole, in_pandas("int64[pyarrow]")),
    "arrow-float": (SMALL, real, in_pandas("double[pyarrow]")),
    "arrow-text": (WORDS, word, in_pandas("string[pyarrow]")),
    "arrow-boolean": (FLAG, truth, in_pandas("bool[pyarrow]")),
}


@pytest.mark.parametrize("case", [*TYPED, *(ARROW if HAS_ARROW else [])])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_no_row_touches_another_in_typed_containers(case, data):
    column, cell, make = {**TYPED, **ARROW}[case]
    schema = TableSchema([column])
    cells = data.draw(st.lists(cell, min_size=2, max_size=5))
    place = data.draw(st.integers(0, len(cells) - 1))
    neighbour = [*cells]
    neighbour[place] = data.draw(cell)
    before, after = (features(make(table), schema) for table in (cells, neighbour))
    others = np.arange(len(cells)) != place
    np.testing.assert_array_equal(bits(before)[others], bits(after)[others])
    # And the container means what the cells mean as objects.
    np.testing.assert_array_equal(before, column.encode(objects(cells)))


def test_one_null_leaves_long_codes_alone():
    schema = TableSchema([CODES])
    full, null = [BIG + 1, BIG, 7, 7], [BIG + 1, BIG, 7, None]
    for make in (in_pandas("Int64"), in_polars(polars.Int64)):
        one, other = features(make(full), schema), features(make(null), schema)
        np.testing.assert_array_equal(one[:3], other[:3])
        assert np.array_equal(np.argmax(one[:3], axis=1), [1, 0, 2])


def test_one_text_cell_leaves_the_numbers_of_a_list_alone():
    schema = TableSchema([NUMBER, NumericColumn("d", 0, 1)])
    one, other = features([[1, 0.5], [9, 1]], schema), features([[1, 0.5], ["x", 1]], schema)
    np.testing.assert_array_equal(one[0], other[0])
    with pytest.raises(TypeError, match="one length"):
        SchemaEncoder(schema.columns).fit([[1, 2], [3]]).transform([[1, 2], [3]])


# ----------------------------------------------------------------------------- types of containers
ONE = CategoricalColumn("c", [1, 2])
YES = CategoricalColumn("c", ["yes", "no"])
MISFITS = {
    "text-for-numbers": (ONE, in_pandas("string")(["1", "2"]), "holds text but"),
    "polars-text": (ONE, polars.DataFrame({"c": ["1", "2"]}), "holds text but"),
    "polars-enum": (ONE, in_polars(polars.Enum(["1", "2"]))(["1"]), "holds text but"),
    "numbers-for-text": (YES, pandas.DataFrame({"c": [1, 0]}), "holds numbers but"),
    "array": (YES, np.ones((3, 1)), "holds numbers but"),
    "text-array": (ONE, np.array([["1"]]), "holds text but"),
    "text-array-for-numbers": (NUMBER, np.array([["1"]]), "its type is not"),
    "bytes": (YES, np.array([[b"yes"]]), "holds times, bytes"),
    "coarse": (CODES, pandas.DataFrame({"c": [7.0, math.nan]}), "too coarse"),
    "coarse-nullable": (CODES, in_pandas("Float64")([7.0]), "too coarse"),
    "coarse-categories": (CODES, in_categories([7.0, 8.5]), "too coarse"),
    # One cell of 8.5 would have made these coarse: no cell decides.
    "fine-categories": (CODES, in_categories([7, 8]), "too coarse"),
    "coarse-polars": (CODES, polars.DataFrame({"c": [7.0, None]}), "too coarse"),
    "coarse-code": (
        CategoricalColumn("c", [1, 2], missing_codes=[10**16 - 1]),
        in_pandas("float64")([1]),
        "too coarse",
    ),
    "single": (CategoricalColumn("c", [0.1, 2]), np.ones((2, 1), np.float32), "too coarse"),
    "half": (CategoricalColumn("c", [1, 3000]), np.ones((2, 1), np.float16), "too coarse"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_type_that_cannot_hold_the_list_is_refused_before_a_charge(case):
    column, table, problem = MISFITS[case]
    schema = TableSchema([column], label=LabelColumn("y", [0, 1]))
    model = schema.pipeline(
        OperaLogisticRegression(epsilon=0.5, delta=1e-6), positions=not hasattr(table, "columns")
    )
    budget = BudgetAccountant(epsilon=1.0, delta=1e-5)
    with budget, pytest.raises(ValueError, match=rf"column 'c' has type .*{problem}"):
        model.fit(table, np.arange(len(table)) % 2)
    assert len(budget.entries()) == 0


def test_a_type_that_cannot_hold_the_list_is_refused_at_predict():
    schema = TableSchema([ONE], label=LabelColumn("y", [0, 1]))
    X, y = schema.split(pandas.DataFrame({"c": [1, 2] * 20, "y": [0, 1] * 20}))
    model = schema.pipeline(OperaLogisticRegression(epsilon=5.0, delta=1e-6, random_state=0))
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"column 'c' has type .*holds text but the schema lists"):
        model.predict(in_pandas("string")(["1", "2"]))
    as_objects = pandas.DataFrame({"c": pandas.Series(["1", "2"], dtype=object)})
    np.testing.assert_array_equal(model.predict(as_objects), model.predict(X[:2]))


def test_strangers_are_warned_of_at_predict_and_never_at_fit():
    schema = TableSchema([CategoricalColumn("ward", ["A", "B"]), NUMBER])
    table = pandas.DataFrame({"ward": ["SECRET", "b"], "c": [1, 2]})
    inside = make_pipeline(schema.preprocessor(), FunctionTransformer())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside.fit(table)
        inside.fit_transform(table)
        inside.transform(table.assign(ward=["A", "b"]))
    with pytest.warns(UserWarning, match=r"column 'ward': no cell .* list \['A', 'B'\]") as caught:
        inside.transform(table)
    assert "SECRET" not in str(caught[0].message) and len(caught) == 1


def test_names_of_columns_do_not_make_a_table_unreadable():
    names = ["collect", "tocsr", "dtype", "names"]
    schema = TableSchema([NumericColumn(name, 0, 1) for name in names])
    assert features(pandas.DataFrame([[0, 1, 0, 1]], columns=names), schema).shape == (1, 4)


@pytest.mark.parametrize("column", [WORDS, SMALL, FLAG, NUMBER], ids=lambda c: c.kind)
def test_no_cell_of_inferred_categories_decides_about_an_error(column):
    for cells in (["A", "1", None], [1, 2, None], [1, "A", 2.5], [True, False], [1.0], [None]):
        inside = features(in_categories(cells), TableSchema([column]))
        np.testing.assert_array_equal(inside, column.encode(objects(cells)))


# ------------------------------------------------------------------------------------------ labels
def test_labels_are_read_like_listed_cells():
    label = LabelColumn("y", [0, 1])
    assert label.encode(objects(["1", 0.0, True])).tolist() == [1, 0, 1]
    schema = TableSchema([NUMBER], label=label)
    for column in ([0, 1], [0.0, 1.0], pandas.array([0, 1], "Int64"), pandas.Categorical([0, 1])):
        y = schema.split(pandas.DataFrame({"c": [1, 2], "y": column}))[1]
        assert y.tolist() == [0, 1]
    null = pandas.DataFrame({"c": [1, 2], "y": pandas.array([0, None], "Int64")})
    with pytest.raises(ValueError, match=r"label 'y': classes: .*missing or not listed"):
        schema.split(null)
    with pytest.raises(ValueError, match=r"column 'y' has type .*: holds text but"):
        schema.split(pandas.DataFrame({"c": [1, 2], "y": pandas.array(["0", "1"], "string")}))
    with pytest.raises(ValueError, match="column 'y' has type bool: holds numbers but"):
        schema.replace(label=LabelColumn("y", ["no", "yes"])).split(
            pandas.DataFrame({"c": [1, 2], "y": [True, False]})
        )
    long = schema.replace(label=LabelColumn("y", [BIG, BIG + 1]))
    codes = pandas.DataFrame({"c": [1, 2], "y": [BIG, BIG + 1]})
    assert long.split(codes)[1].tolist() == [BIG, BIG + 1]
    with pytest.raises(ValueError, match=r"column 'y' has type float64: .*too coarse"):
        long.split(codes.astype({"y": float}))


# ------------------------------------------------------------------------------------------- files
FILE = TableSchema(
    [
        IgnoredColumn("id"),
        NumericColumn("n", 0, 10, missing="indicator"),
        CategoricalColumn("code", [BIG, BIG + 1, 7], missing="indicator", unknown="indicator"),
        CategoricalColumn("word", ["A", "NA", "1"], missing="indicator", unknown="indicator"),
        BooleanColumn("flag", missing="ignore"),
    ],
    label=LabelColumn("y", [0, 1]),
)
field = st.one_of(
    st.sampled_from(["", "1", "1.0", "7", str(BIG + 1), "A", "NA", "nan", "True", "1e400", "-"]),
    st.text(st.characters(codec="utf-8", exclude_characters='\r\n",\0'), max_size=5),
)
csv_rows = st.lists(st.tuples(*[field] * 5), min_size=2, max_size=4)


def csv(rows):
    lines = ["id,n,code,word,flag,y", *(",".join(f'"{f}"' for f in row) + ",1" for row in rows)]
    return FILE.read_csv(io.StringIO("\n".join(lines) + "\n"))


@settings(max_examples=30, deadline=None)
@given(rows=csv_rows, other=st.tuples(*[field] * 5), data=st.data())
def test_no_row_of_a_file_touches_another(rows, other, data):
    place = data.draw(st.integers(0, len(rows) - 1))
    neighbour = [*rows]
    neighbour[place] = other
    one, two = csv(rows), csv(neighbour)
    assert list(one.dtypes) == list(two.dtypes)
    before, after = (features(FILE.split(frame)[0], FILE) for frame in (one, two))
    others = np.arange(len(rows)) != place
    np.testing.assert_array_equal(bits(before)[others], bits(after)[others])


def test_files_are_read_by_the_schema():
    frame = csv([["01", "2.5", str(BIG + 1), "NA", "True"], ["", "x", "7.0", "", "1"]])
    assert frame.dtypes.astype(str).tolist()[1:] == ["float64", *["object"] * 4]
    assert frame.id.tolist() == ["01", ""] and frame.y.tolist() == [1, 1]
    assert frame.n[0] == 2.5 and math.isnan(frame.n[1])
    assert frame.code.tolist() == [BIG + 1, 7] and frame.word.tolist() == ["NA", None]
    assert frame.flag.tolist() == [True, 1]
    X, y = FILE.split(frame)
    assert y.tolist() == [1, 1]
    assert features(X, FILE)[:, -1].tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"single column\. .* sep=';'"):
        FILE.check(FILE.read_csv(io.StringIO("n;word\n1;A\n2;\n")))
    trailing = FILE.read_csv(io.StringIO("n;word\n1;A\n2;\n"), sep=";")
    assert trailing.n.tolist() == [1, 2] and trailing.word.tolist() == ["A", None]


@pytest.mark.parametrize(
    "option",
    [
        *({"dtype": float}, {"decimal": ","}, {"thousands": "."}, {"index_col": 0}),
        *({"na_values": ["-"]}, {"na_filter": True}, {"converters": {"n": float}}),
        *({"true_values": ["y"]}, {"parse_dates": True}, {"chunksize": 1}, {"sepp": ";"}),
    ],
    ids=lambda option: next(iter(option)),
)
def test_options_that_would_read_meaning_into_cells_are_refused_by_name(option):
    (name,) = option
    with pytest.raises(TypeError, match=f"^read_csv does not accept {name}: .*sep, delimiter"):
        FILE.read_csv(io.StringIO("n\n1\n"), **option)


@pytest.mark.parametrize("words", ["false true", "FALSE TRUE", "False True", "0 1", "fAlse tRUe"])
def test_truth_is_read_however_a_program_writes_it(words):
    no, yes = words.split()
    text = f"flag,y,grade\n{no},{yes},{no}\n{yes},{no},{yes}\n,{yes},\n"
    schema = TableSchema(
        [
            BooleanColumn("flag", missing="ignore", unknown="refuse"),
            OrdinalColumn("grade", [False, "0", True, "1"], missing="ignore", unknown="refuse"),
        ],
        label=LabelColumn("y", [False, True]),
    )
    X, y = schema.split(schema.read_csv(io.StringIO(text)))
    assert features(X, schema)[:, -1].tolist() == [-1, 1, 0] and y.tolist() == [True, False, True]
    # What is listed itself is itself, and words are no truth where none is listed.
    shouted = TableSchema([CategoricalColumn("c", ["TRUE", "FALSE"]), BooleanColumn("d", ["f", 1])])
    frame = shouted.read_csv(io.StringIO("c,d\nTRUE,true\ntrue,f\n"))
    assert frame.c.tolist() == ["TRUE", "true"] and frame.d.tolist() == ["true", "f"]


def test_only_what_is_spelled_as_a_number_is_a_listed_one():
    schema = TableSchema([CategoricalColumn("c", [1, 10, 0.5, 0], unknown="indicator")])
    spelled = {"1": 1, "1.0": 1, "10": 10, "1e1": 10, "0.5": 0.5, "0.50": 0.5, "-0": 0}
    others = ["01", "1_0", "+1", " 1", "1 ", "01.0", "1.", ".5", "\u0661", "nan", "inf", "0x1"]
    others += ["9" * 5000]
    frame = schema.read_csv(io.StringIO("\n".join(["c", *spelled, *others]) + "\n"))
    assert frame.c.tolist() == [*spelled.values(), *others]
    strange = features(frame, schema)[:, -1]
    assert strange.tolist() == [0] * len(spelled) + [1] * len(others)


def test_parquet_files_keep_their_types(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    if not HAS_ARROW:
        with pytest.raises(ImportError, match=r"pip install 'skdp\[datasets\]' pyarrow"):
            FILE.read_parquet(path)
        return
    frame = pandas.DataFrame(
        {
            "n": [1.5, None],
            "code": pandas.array([BIG + 1, None], "Int64"),
            "word": ["A", None],
            "flag": pandas.array([True, None], "boolean"),
            "y": [1, 0],
        }
    )
    frame.to_parquet(path)
    X, y = FILE.split(FILE.read_parquet(path))
    assert y.tolist() == [1, 0]
    np.testing.assert_array_equal(features(X, FILE), features(frame[FILE.features], FILE))


# -------------------------------------------------------------------------------- private searches
TABLE = pandas.DataFrame({"c": [1, 2] * 30, "n": [1.0, 5.0, 9.0] * 20})
UNFIT = {
    "type": (TABLE.astype({"c": "string"}), r"column 'c' has type .*holds text but"),
    "missing column": (TABLE[["c"]], r"not (a column|columns) of the dataframe"),
    "array for names": (TABLE.to_numpy(), "chosen by name.*positions=True"),
    "missing cell": (TABLE.assign(n=[None, *TABLE.n[1:]]), "column 'n': missing: the policy is"),
}


@pytest.mark.daily(2)
@pytest.mark.parametrize("prefix", [[], ["passthrough"]])
@pytest.mark.parametrize("case", UNFIT)
def test_a_search_refuses_a_table_that_does_not_fit_before_the_charge(case, prefix):
    table, problem = UNFIT[case]
    schema = TableSchema([ONE, NumericColumn("n", 0, 10)], label=LabelColumn("y", [0, 1]))
    labels, budget = np.arange(60) % 2, BudgetAccountant(epsilon=9.0, delta=1e-2)
    model = schema.pipeline(OperaLogisticRegression())
    inside = PrivateGridSearchCV(
        make_pipeline(*prefix, model), {}, epsilon=1.0, delta=1e-3, method="fixed"
    )
    with budget, pytest.raises(ValueError, match=problem):
        inside.fit(table, labels)
    assert len(budget.entries()) == 0
    with budget:
        inside.fit(TABLE, labels)
    assert len(budget.entries()) == 1


def test_only_the_first_steps_of_candidates_are_asked():
    schema = TableSchema([ONE, NumericColumn("n", 0, 10)], label=LabelColumn("y", [0, 1]))
    search = PrivateGridSearchCV(
        Pipeline([("read", SchemaEncoder()), ("clf", OperaLogisticRegression(data_norm=1.5))]),
        {"read": [schema.preprocessor()]},
        **{"epsilon": 1.0, "delta": 1e-3, "method": "fixed"},
    )
    assert len(search.fit(TABLE, np.arange(60) % 2).predict(TABLE)) == 60


def test_a_run_that_fails_by_the_schema_says_why():
    refusing = TableSchema([ONE.__class__("c", [1, 3], unknown="refuse")]).preprocessor()
    model = make_pipeline(FunctionTransformer(), refusing, OperaLogisticRegression(data_norm=1.0))
    search = PrivateGridSearchCV(model, {}, epsilon=1.0, delta=1e-3, method="fixed")
    with pytest.raises(SchemaError, match=r"column 'c': unknown: .* not shown"):
        search.fit(TABLE, np.arange(60) % 2)
