"""A schema determines its preprocessing: bounded rows, nothing learned, helpful errors."""

import math
import pickle
from decimal import Decimal

import numpy as np
import pytest
from drawn_schemas import schemas
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.exceptions import PrivacyWarning
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    IgnoredColumn,
    LabelColumn,
    NumericColumn,
    OrdinalColumn,
    PrivacyUnit,
    RowNormClipper,
    SchemaEncoder,
    TableSchema,
)

pandas = pytest.importorskip("pandas", reason="needs pandas")
polars = pytest.importorskip("polars", reason="needs polars")

CLINIC = TableSchema(
    [
        IgnoredColumn("patient"),
        NumericColumn("age", 0, 100, unit="years", missing="indicator"),
        NumericColumn("pressure", 80, 200, cuts=[120, 140], encoding="scaled+steps"),
        CategoricalColumn("ward", ["A", "B", "C"], missing="indicator", unknown="indicator"),
        OrdinalColumn("pain", [1, 2, 3, 4], missing="ignore", weight=0.5),
        BooleanColumn("smoker", ["no", "yes"], missing="fill", fill_value="no"),
    ],
    label=LabelColumn("ill", [0, 1]),
    unit=PrivacyUnit("person", column="patient"),
    name="clinic",
)


def clinic(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "patient": np.arange(n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-50, 200, n)),
            "pressure": rng.uniform(0, 400, n),
            "ward": rng.choice(np.array(["A", "B", "C", "elsewhere", None], dtype=object), n),
            "pain": rng.choice([1.0, 2.0, 3.0, 4.0, np.nan], n),
            "smoker": rng.choice(np.array(["no", "yes", None], dtype=object), n),
            "ill": rng.integers(0, 2, n),
        }
    )


# ------------------------------------------------------------------------------------ row norms
numbers = st.one_of(
    st.floats(),
    st.integers(-(10**400), 10**400),
    st.sampled_from([None, 0.0, -0.0, 5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan]),
)
anything = st.one_of(
    numbers,
    st.text(max_size=3),
    st.booleans(),
    st.sampled_from(["A", "B", "yes", "no", 1, 2, (1,), [1], pandas.NA, pandas.NaT, b"A"]),
)


@settings(max_examples=60, deadline=None)
@given(schema=schemas(refuses=False), data=st.data())
def test_no_row_exceeds_the_norm_that_the_schema_states(schema, data):
    rows = data.draw(st.integers(1, 4))
    cells = {}
    for column in schema.columns:
        values = numbers if column.kind == "numeric" else anything
        listed = list(column.listed()) or [column.lower, column.upper, *column.cuts]
        drawn = st.lists(st.sampled_from(listed) | values, min_size=rows, max_size=rows)
        cells[column.name] = pandas.Series(data.draw(drawn), dtype=object)
    features = schema.preprocessor().fit_transform(pandas.DataFrame(cells))
    assert np.all(np.isfinite(features))
    norms = np.linalg.norm(features, axis=1)
    assert np.all(norms <= schema.norm_bound * (1 + 1e-12))
    squares = sum(column.weight**2 for column in schema.columns) + len(schema.interactions)
    assert schema.norm_bound == pytest.approx(math.sqrt(squares))


def test_the_stated_norm_is_reached():
    """The bound is no larger than it must be."""
    frame = clinic(2).assign(age=1e9, pressure=1e9, ward="A", pain=4.0, smoker="yes")
    features = CLINIC.preprocessor().fit_transform(CLINIC.split(frame)[0])
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), CLINIC.norm_bound)


# -------------------------------------------------------------------------------- what cells become
def encoded(column, *cells):
    return column.encode(np.array(cells, dtype=object))


def test_numeric_encodings_by_hand():
    column = NumericColumn("x", 0, 10, missing="indicator", weight=2.0)
    np.testing.assert_allclose(
        encoded(column, 0, 5, 10, 99, -math.inf, None),
        [[-2, 0], [0, 0], [2, 0], [2, 0], [-2, 0], [0, 2]],
    )
    steps = NumericColumn("x", cuts=[1, 2, 3, 4])
    np.testing.assert_allclose(
        encoded(steps, 0, 2, 9), [[-0.5] * 4, [0.5, 0.5, -0.5, -0.5], [0.5] * 4]
    )
    cells = NumericColumn("x", cuts=[1, 2], encoding="cells")
    third = 1 / math.sqrt(6)
    np.testing.assert_allclose(encoded(cells, 1), [[-third, 2 * third, -third]])
    root = NumericColumn("x", 1, 9, scale="sqrt", missing_codes=[-1], missing="fill", fill_value=4)
    np.testing.assert_allclose(encoded(root, 1, 4, 9, -1), [[-1], [0], [1], [0]])
    log = NumericColumn("x", 1, 100, scale="log")
    np.testing.assert_allclose(encoded(log, 0, 10, 1000), [[-1], [0], [1]], atol=1e-15)
    assert steps.feature_names() == ["x>=1", "x>=2", "x>=3", "x>=4"]
    assert cells.feature_names() == ["x<1", "x in [1, 2)", "x>=2"]
    assert column.feature_names() == ["x", "x missing"]


def test_listed_encodings_by_hand():
    ward = CategoricalColumn("w", ["A", "B"], missing="indicator", unknown="indicator")
    half = math.sqrt(0.5)
    np.testing.assert_allclose(
        encoded(ward, "A", "B", None, "Z"),
        [[half, -half, 0, 0], [-half, half, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    )
    assert ward.feature_names() == ["w=A", "w=B", "w missing", "w unknown"]
    pain = OrdinalColumn("p", ["low", "some", "much"])
    np.testing.assert_allclose(
        encoded(pain, "low", "some", "much", "LOW"),
        [[-half, -half], [half, -half], [half, half], [0, 0]],
    )
    flag = BooleanColumn("f", missing="fill", fill_value=False)
    np.testing.assert_allclose(encoded(flag, 0, 1.0, True, None, "1"), [[-1], [1], [1], [-1], [0]])


def test_a_cell_is_the_listed_value_that_it_equals_or_else_that_is_written_alike():
    codes = CategoricalColumn("c", [1, 2], encoding="one-hot")
    cells = [1.0, np.int8(2), "1", True, "1.0", " 1", "01", b"1", 1 + 0j, "True", Decimal(2), "x"]
    expected = [1, 2, 1, 1, 0, 0, 0, 0, 1, 0, 2, 0]
    assert (encoded(codes, *cells) @ [1, 2]).tolist() == expected
    texts = CategoricalColumn("c", ["1", "True", "2.5"], encoding="one-hot", missing_codes=[7])
    cells = ["1", 1, 1.0, np.float32(1), True, np.bool_(True), 2.5, "true", 10**5000, "7"]
    assert (encoded(texts, *cells[:-1]) @ [1, 2, 3]).tolist() == [1, 1, 1, 1, 2, 2, 3, 0, 0]
    with pytest.raises(ValueError, match="policy is 'refuse'"):
        encoded(texts, cells[-1])
    both = CategoricalColumn("c", [1, "1"], encoding="one-hot")
    assert encoded(both, 1, "1", True).tolist() == [[1, 0], [0, 1], [1, 0]]
    assert encoded(BooleanColumn("b"), "True", "False", 0, "1").ravel().tolist() == [1, -1, -1, 0]


@pytest.mark.parametrize("policy", ["missing", "unknown"])
def test_refusals_quote_no_cell(policy):
    column = CategoricalColumn("ward", ["A", "B"], **{policy: "refuse"})
    cell = None if policy == "missing" else "SECRET"
    with pytest.raises(ValueError, match=f"column 'ward': {policy}") as refused:
        encoded(column, "A", cell)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("cell", ["SECRET", b"SECRET", b"1", 12345j, ("SECRET",), {}, "", None])
def test_what_is_no_number_is_missing(cell):
    """The policy decides, and its refusal quotes nothing."""
    cells = np.empty(2, dtype=object)
    cells[:] = 1, cell
    column = NumericColumn("age", 0, 1, missing="indicator")
    assert column.encode(cells).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match=r"column 'age': missing: .*or.* not a number") as refused:
        NumericColumn("age", 0, 1).encode(cells)
    assert "SECRET" not in str(refused.value) and "12345" not in str(refused.value)


def test_text_counts_as_the_number_in_it():
    column = NumericColumn("x", 0, 10, missing="ignore", missing_codes=["9", 8])
    cells = [5, "5", " 5.0 ", Decimal(5), np.bool_(True), "1e1", "9", 8.0, "five", 10**400, "-inf"]
    expected = [0, 0, 0, 0, -0.8, 1, 0, 0, 0, 1, -1]
    np.testing.assert_allclose(encoded(column, *cells).ravel(), expected)


# ---------------------------------------------------------------------------- nothing is learned
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_two_tables_give_the_same_fitted_preprocessor(library):
    one, other = clinic(40, seed=0), clinic(7, seed=1)
    other["pain"] = 1  # no cell missing, and so another type
    other["age"] = np.arange(7, dtype=np.int8)
    other["ward"] = "A"
    if library == "polars":
        one, other = (
            polars.DataFrame({k: [None if pandas.isna(c) else c for c in v] for k, v in f.items()})
            for f in (one, other)
        )
    fitted = [CLINIC.preprocessor().fit(CLINIC.split(frame)[0]) for frame in (one, other)]
    assert pickle.dumps(fitted[0]) == pickle.dumps(fitted[1])
    rows = CLINIC.split(one)[0]
    np.testing.assert_array_equal(*(preprocessor.transform(rows) for preprocessor in fitted))


@pytest.mark.filterwarnings("ignore:column 'ward'. no cell is on:UserWarning")
def test_rows_are_encoded_one_by_one():
    X, _ = CLINIC.split(clinic())
    preprocessor = CLINIC.preprocessor().fit(X)
    alone = np.vstack([preprocessor.transform(X.iloc[[j]]) for j in range(len(X))])
    np.testing.assert_array_equal(preprocessor.transform(X), alone)


def test_libraries_and_arrays_agree():
    frame = clinic()
    X, y = CLINIC.split(frame)
    expected = CLINIC.preprocessor().fit_transform(X)
    table = polars.DataFrame(
        {name: [None if pandas.isna(c) else c for c in cells] for name, cells in frame.items()}
    )
    Xp, yp = CLINIC.split(table)
    assert isinstance(Xp, polars.DataFrame)
    np.testing.assert_array_equal(CLINIC.preprocessor().fit_transform(Xp), expected)
    np.testing.assert_array_equal(y, yp)
    array = X.astype(object).to_numpy()
    np.testing.assert_array_equal(
        CLINIC.preprocessor(positions=True).fit_transform(array), expected
    )


def test_output_keeps_names_and_frames():
    X, _ = CLINIC.split(clinic())
    preprocessor = CLINIC.preprocessor().set_output(transform="pandas").fit(X)
    names = preprocessor.get_feature_names_out().tolist()
    assert preprocessor.transform(X).columns.tolist() == names
    assert names[:2] == ["age", "age missing"] and names[-1] == "smoker=yes"
    shuffled = X[X.columns[::-1]].assign(more="x")
    np.testing.assert_array_equal(preprocessor.transform(shuffled), preprocessor.transform(X))


def test_encoder_clones_and_checks_its_columns():
    encoder = SchemaEncoder((NumericColumn("a", 0, 1),))
    X = pandas.DataFrame({"a": [0.5]})
    assert clone(encoder).fit(X).data_norm_ == 1.0
    with pytest.raises(ValueError, match="describes 1 columns, but X has 2"):
        encoder.fit(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="same order"):
        encoder.fit(X.rename(columns={"a": "b"}))
    both = SchemaEncoder((NumericColumn("a", 0, 1), NumericColumn("b", 0, 1)))
    with pytest.raises(ValueError, match="same order"):
        both.fit(X.assign(b=0.0)[["b", "a"]])


# ------------------------------------------------------------------------------- norm and pipeline
def test_the_norm_is_handed_on():
    assert CLINIC.data_norm == CLINIC.norm_bound == pytest.approx(math.sqrt(4 + 0.25))
    short = CLINIC.replace(clip_norm=1.0)
    assert short.data_norm == 1.0 and short.norm_bound == CLINIC.norm_bound
    assert CLINIC.replace(clip_norm=99.0).data_norm == CLINIC.norm_bound
    given = OperaLogisticRegression(epsilon=3.0, random_state=0)
    model = short.pipeline(given)
    assert model[-1].data_norm == 1.0 and model[-1].classes == [0, 1] and given.data_norm is None
    assert model[-1] is not given and given.classes is None
    X, y = CLINIC.split(clinic())
    assert set(CLINIC.pipeline(given).fit(X, y).predict(X)) <= {0, 1}
    search = GridSearchCV(OperaLogisticRegression(), {"alpha": [0.1, 1.0]})
    assert CLINIC.pipeline(search)[-1].estimator.data_norm == CLINIC.data_norm
    assert CLINIC.pipeline(LogisticRegression())[-1].get_params()["C"] == 1.0
    behind = make_pipeline(RowNormClipper(), OperaLogisticRegression())
    assert CLINIC.pipeline(behind)[-1][-1].data_norm is None  # its rows are others


def test_weights_change_features_and_norm_together():
    heavy = CLINIC.with_weights(numeric=2.0, ward=3.0)
    assert heavy.norm_bound == pytest.approx(math.sqrt(4 + 4 + 9 + 0.25 + 1))
    X, _ = CLINIC.split(clinic())
    before, after = (
        schema.preprocessor().set_output(transform="pandas").fit_transform(X)
        for schema in (CLINIC, heavy)
    )
    np.testing.assert_allclose(after["age"], 2 * before["age"])
    np.testing.assert_allclose(after["ward=A"], 3 * before["ward=A"])
    with pytest.raises(ValueError, match=r"weights: wards: .*Did you mean 'ward'"):
        CLINIC.with_weights(wards=1.0)
    assert CLINIC.select(["age"]).features == ["age"]


def test_several_rows_of_a_unit_are_warned_about():
    schema = CLINIC.replace(unit=PrivacyUnit("person", max_rows=5, column="patient"))
    model = schema.pipeline(OperaLogisticRegression())
    with pytest.warns(PrivacyWarning, match="one person may have 5 rows"):
        model.fit(*schema.split(clinic()))


def test_ids_of_the_unit_are_handed_out():
    frame = clinic().assign(patient=lambda table: [f"p{row // 2}" for row in range(len(table))])
    schema = CLINIC.replace(unit=PrivacyUnit("person", max_rows=2, column="patient"))
    X, y, groups = schema.split(frame, groups=True)
    assert list(groups) == list(frame["patient"]) and len(schema.split(frame)) == 2
    assert list(X.columns) == schema.features and len(y) == len(frame)
    for wrong, table in (
        (CLINIC.replace(unit=PrivacyUnit("person")), frame),
        (schema, frame.drop(columns="patient")),
    ):
        with pytest.raises(ValueError, match="unit: its column is not declared or not in"):
            wrong.split(table, groups=True)
    with pytest.warns(PrivacyWarning, match=r"split\(frame, groups=True\)"):
        schema.unit.warn_of_rows()


# --------------------------------------------------------------------------------------- tables
def test_check_lists_everything_without_a_value():
    frame = clinic().drop(columns=["pain", "ill"]).assign(extra="SECRET", age="SECRET")
    frame["smoker"] = 1
    with pytest.raises(ValueError) as refused:
        CLINIC.check(frame)
    message = str(refused.value)
    for part in ("'pain' is missing", "'ill' is missing", "'extra' is not in the schema"):
        assert part in message
    assert "column 'smoker' has type int64: holds numbers but the schema lists text" in message
    assert "SECRET" not in message
    CLINIC.check(clinic())
    CLINIC.check(clinic().drop(columns=["ill", "patient"]), label=False)
    with pytest.raises(TypeError, match="need a pandas or polars frame"):
        CLINIC.check(np.zeros((2, 2)))


def test_check_sees_text_and_times_by_their_type():
    schema = TableSchema([NumericColumn("a", 0, 1), CategoricalColumn("b", [1, 2])])
    frame = pandas.DataFrame({"a": ["x"], "b": pandas.to_datetime(["2020-01-01"])})
    with pytest.raises(ValueError, match="holds times"):
        schema.check(frame)
    with pytest.raises(ValueError, match=r"'a' has type .*is numeric in the schema"):
        schema.check(frame.astype({"a": "string"}))
    with pytest.raises(ValueError, match="holds text but the schema lists numbers"):
        schema.check(polars.DataFrame({"a": [1.0], "b": ["1"]}))


def test_labels_are_grouped_and_unlisted_ones_refused_unquoted():
    label = LabelColumn("num", ["well", "ill"], values=[[0], [1, 2]])
    assert label.encode(np.array([0.0, 2.0])).tolist() == ["well", "ill"]
    for cells in ([0, 77123], [0.0, math.nan]):
        with pytest.raises(ValueError, match="label 'num'") as refused:
            label.encode(np.array(cells))
        assert "77123" not in str(refused.value)
    with pytest.raises(ValueError, match="label: is not described"):
        CLINIC.replace(label=None).split(clinic())
    with pytest.raises(ValueError, match="label 'y': classes: not given"):
        LabelColumn("y").encode(np.array([1]))


def test_a_declared_prevalence_reaches_whoever_has_none():
    label = LabelColumn("ill", ["no", "yes"], prevalence={"yes": 0.05, "no": 0.95})
    schema = TableSchema([NumericColumn("age", 0, 100)], label=label)
    assert hash(schema) == hash(TableSchema.from_json(schema.to_json()))
    for own in (None, {"no": 0.9, "yes": 0.1}, "private"):
        model = schema.pipeline(DPSGDClassifier(class_weight="balanced", prevalence=own))[-1]
        assert model.prevalence == (label.prevalence if own is None else own)
    search = PrivateGridSearchCV(OperaLogisticRegression(), {"class_weight": ["balanced", None]})
    search = schema.pipeline(search)[-1]
    assert search.estimator.prevalence == {"no": 0.95, "yes": 0.05}
    weights = schema.pipeline(OperaLogisticRegression(class_weight="balanced"))[-1].privacy_plan(
        1000, 1
    )
    assert "the heaviest, 10," in str(weights.assumptions)
