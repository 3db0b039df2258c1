"""Schemas with dates and with columns that nobody asked for: files, drafts, tables, statements."""

import datetime

import numpy as np
import pytest

from skdp import ObjectivePerturbationLogisticRegression, OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.inspection import ShapeFunctionDisplay, reshape_functions, shape_functions
from skdp.preprocessing import (
    DateColumn,
    IgnoredColumn,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
    days_between,
)
from skdp.reporting import privacy_statement
from skdp.statistics import private_mean, private_table_one

pandas = pytest.importorskip("pandas", reason="needs pandas")
polars = pytest.importorskip("polars", reason="needs polars")
pytest.importorskip("pyarrow", reason="needs pyarrow")

SCHEMA = TableSchema(
    [
        DateColumn("admitted", "2015-01-01", "2024-12-31", missing="indicator"),
        NumericColumn("age", 18, 100),
        days_between("admitted", "discharged", 0, 60, name="stay", missing="indicator"),
    ],
    label=LabelColumn("died", [0, 1]),
    unit=PrivacyUnit("patient", column="id"),
)
PAIRS = [("admitted", "age"), ("stay", "admitted")]


def ward(n=200):
    rng = np.random.default_rng(0)
    admitted = np.datetime64("2015-01-01", "s") + rng.integers(0, 3650 * 86400, n).astype("m8[s]")
    discharged = admitted + rng.integers(0, 60 * 86400, n).astype("m8[s]")
    frame = pandas.DataFrame(
        {
            "id": np.arange(n) // 2,
            "admitted": admitted,
            "discharged": discharged,
            "age": rng.uniform(18, 99, n),
            "died": rng.integers(0, 2, n),
        }
    )
    frame.loc[:9, "admitted"] = pandas.NaT
    frame.loc[7:20, "discharged"] = pandas.NaT
    return frame


WARD = ward()
IGNORING = SCHEMA.replace(others="ignore")
# Types of all kinds, one of them with cells that no pass could decode into dates.
WIDE = pandas.concat(
    [WARD, pandas.DataFrame({f"x{j}": [f"SECRET {j}"] * len(WARD) for j in range(20)})], axis=1
)


def fit(schema, *rows):
    model = OperaLogisticRegression(epsilon=1.0, delta=1e-6, random_state=0)
    return schema.pipeline(model).fit(*rows)


# ---------------------------------------------------------------------------------- descriptions
def test_a_schema_with_dates_goes_through_files_and_shows_itself(tmp_path):
    schema = SCHEMA.replace(
        DateColumn("admitted", "2015-01-01T08:30", "2024-12-31", timezone="Europe/Berlin"),
        others="ignore",
    )
    for name in ("ward.json", "ward.yaml"):
        schema.save(tmp_path / name)
        assert TableSchema.load(tmp_path / name) == schema
    text, shown = repr(schema), schema._repr_html_()
    assert "admitted [2015-01-01T08:30:00, 2024-12-31]" in text and "stay [0, 60] days" in text
    assert "[0, 60] from admitted to discharged" in shown and "Europe/Berlin" in shown
    assert "year, month, weekday, hour, days" in shown
    unquoted = (
        "version: 1\ncolumns:\n- {name: day, kind: date, first: 2015-01-01, last: 2020-01-01}"
    )
    assert TableSchema.from_yaml(unquoted)["day"] == DateColumn("day", "2015-01-01", "2020-01-01")
    with pytest.raises(ValueError, match="column 'stay': start: is required"):
        TableSchema.from_yaml("version: 1\ncolumns:\n- {name: stay, kind: days_between, end: b}")


def test_names_that_clash_are_refused():
    for columns, label in (
        ([DateColumn("day"), NumericColumn("day days", 0, 1)], None),
        ([days_between("died", "day", 0, 1)], LabelColumn("died", [0, 1])),
    ):
        with pytest.raises(ValueError, match=r"day days|'died' is also read for a feature"):
            TableSchema(columns, label=label)
    with pytest.raises(ValueError, match="its column 'day' is a feature"):
        TableSchema([days_between("day", "end", 0, 1)], unit=PrivacyUnit("p", column="day"))


def test_days_between_know_what_is_said_of_their_dates():
    stay = days_between("in", "out", 0, 60, missing="indicator", missing_codes=["none"])
    here = DateColumn("in", "2020-01-01", "2021-01-01", timezone="Europe/Berlin", missing="ignore")
    there = DateColumn(
        "out", "2020-01-01", "2021-01-01", missing="ignore", missing_codes=["9999-12-31"]
    )
    schema = TableSchema([here, stay, there])
    found = schema[stay.name]
    assert (found.timezone, found.missing_codes) == ("Europe/Berlin", ("none", "9999-12-31"))
    assert TableSchema.from_json(schema.to_json()) == schema == schema.replace()
    frame = pandas.DataFrame(
        {"in": ["2020-03-31T22:00Z", "2020-03-01"], "out": ["2020-04-02", "9999-12-31"]}
    )
    block = schema.select([stay.name]).preprocessor().fit_transform(frame)
    np.testing.assert_allclose(block, [[-1 + 2 / 60, 0], [0, 1]])
    elsewhere = DateColumn("out", "2020-01-01", "2021-01-01", timezone="Asia/Tokyo")
    with pytest.raises(ValueError, match="timezone: must be given: 'in' and 'out' have two zones"):
        TableSchema([here, stay, elsewhere])
    strict = TableSchema([days_between("in", "out", 0, 60, name="stay")])
    with pytest.raises(ValueError, match="in which 'in' or 'out' is missing or no date"):
        strict.preprocessor().fit_transform(frame)


def test_a_choice_of_columns_knows_what_the_others_read():
    chosen = SCHEMA.select(["age"])
    assert chosen.columns == (
        IgnoredColumn("admitted"),
        NumericColumn("age", 18, 100),
        IgnoredColumn("discharged"),
    )
    chosen.check(WARD)
    stay = SCHEMA.select(["stay"])
    assert stay.inputs == ["admitted", "discharged"] and stay.features == ["stay"]
    stay.check(WARD)
    assert SCHEMA.inputs == ["admitted", "age", "discharged"]
    assert SCHEMA.with_weights(date=2.0, days_between=3.0)["stay"].weight == 3.0
    auto = SCHEMA.with_encoding("auto")
    assert auto["admitted"].encoding == auto["stay"].encoding == "waves"
    assert auto.data_norm == SCHEMA.data_norm


def test_bounds_that_are_dates_make_a_column_of_dates():
    stay = days_between("admitted", "discharged", 0, 60)
    bounds = {
        "admitted": ("2015-01-01", datetime.date(2024, 12, 31)),
        "born": (datetime.datetime(1920, 1, 1), datetime.datetime(2020, 1, 1)),
        "stay": stay,
        "age": (18, 100),
    }
    schema = TableSchema.from_bounds(bounds, missing="ignore")
    assert schema["admitted"] == DateColumn(
        *("admitted", "2015-01-01", "2024-12-31", ["month", "weekday", "days"]),
        encoding="waves",
        missing="ignore",
        unknown="ignore",
    )
    assert schema["born"].parts == ("month", "weekday", "hour", "days")
    assert schema["stay"].name == "stay" and schema["stay"].start == "admitted"
    for pair in (("a", "b"), ("2020-01-01", "later"), ("2020-01-01", None)):
        with pytest.raises(ValueError, match=r"column 'x': (lower|last)"):
            TableSchema.from_bounds({"x": pair}).preprocessor()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_drafts_propose_dates_by_the_type_alone(kind):
    days = [datetime.date(2020, 1, 1)]
    here = polars.DataFrame({"born": days, "admitted": days, "there": days}).with_columns(
        polars.col("admitted").cast(polars.Datetime("us")),
        polars.col("there").cast(polars.Datetime("us")).dt.replace_time_zone("Asia/Tokyo"),
    )
    frame = here
    if kind == "arrow":
        frame = here.to_pandas(use_pyarrow_extension_array=True)
    if kind == "pandas":
        frame = here.to_pandas().drop(columns="born")
    draft = TableSchema.draft(frame)
    open_fields = dict.fromkeys(frame.columns, ("first", "last"))
    assert draft.left_open() == open_fields and draft["there"].timezone == "Asia/Tokyo"
    assert "hour" in draft["admitted"].parts
    assert kind == "pandas" or "hour" not in draft["born"].parts
    assert TableSchema.from_json(draft.to_json()) == draft
    with pytest.raises(ValueError, match="'admitted': first and last: not given"):
        TableSchema([draft["admitted"]]).preprocessor()
    assert TableSchema.draft({"day": "date"})["day"] == DateColumn("day")
    with pytest.raises(ValueError, match="kind: must be one of"):
        TableSchema.draft({"day": "days_between"})


# ---------------------------------------------------------------------------------------- tables
def test_every_kind_of_table_gives_the_same_features(tmp_path):
    from skdp.data import open_parquet

    X, y, ids = SCHEMA.split(WARD, groups=True)
    assert list(X.columns) == SCHEMA.inputs and len(ids) == len(WARD)
    crossed = SCHEMA.replace(interactions=PAIRS)
    wanted = crossed.preprocessor().fit_transform(X)
    assert np.linalg.norm(wanted, axis=1).max() <= crossed.data_norm * (1 + 1e-12)
    WARD.to_csv(tmp_path / "ward.csv", index=False)
    WARD.to_parquet(tmp_path / "ward.parquet")
    tables = {
        "polars": polars.from_pandas(WARD),
        "csv": SCHEMA.read_csv(tmp_path / "ward.csv"),
        "read": SCHEMA.read_parquet(tmp_path / "ward.parquet"),
        "parquet": open_parquet(tmp_path / "ward.parquet"),
    }
    for name, table in tables.items():
        X, labels, own = SCHEMA.split(table, groups=True)
        rows = crossed.preprocessor().fit_transform(X)
        np.testing.assert_array_equal(rows, wanted, err_msg=name)
        np.testing.assert_array_equal(labels, y, err_msg=name)
        assert [str(id_) for id_ in own] == [str(id_) for id_ in ids]
    X, y = SCHEMA.split(WARD)
    by_place = crossed.preprocessor(positions=True).fit(X.to_numpy(dtype=object))
    np.testing.assert_array_equal(by_place.transform(X.to_numpy(dtype=object)), wanted)
    with pytest.raises(ValueError, match="chosen by position"):
        by_place.transform(X[SCHEMA.inputs[::-1]])


def test_tables_of_dask_with_dates_and_others():
    dask = pytest.importorskip("dask.dataframe", reason="needs dask")
    table = dask.from_pandas(WIDE, npartitions=3)
    X, y = IGNORING.split(table)
    preprocessor = IGNORING.preprocessor().fit(X)
    np.testing.assert_array_equal(y, WARD["died"])
    wanted = preprocessor.transform(WARD)
    for rows in (X, table):
        np.testing.assert_array_equal(preprocessor.transform(rows).compute(), wanted)


def test_other_columns_are_neither_read_nor_checked(tmp_path, monkeypatch):
    from skdp.data import open_parquet, parquet

    with pytest.raises(ValueError, match=r"'x0' is not in the schema: .*others='ignore'"):
        SCHEMA.check(WIDE)
    IGNORING.check(WIDE)
    with pytest.raises(ValueError, match="'age' is missing"):
        IGNORING.check(WIDE.drop(columns="age"))
    twice = pandas.concat([WIDE, WIDE[["x1"]]], axis=1)
    IGNORING.check(twice)
    with pytest.raises(ValueError, match="'age' occurs more than once"):
        IGNORING.check(pandas.concat([WIDE, WIDE[["age"]]], axis=1))
    wanted = fit(SCHEMA, *SCHEMA.split(WARD))
    np.testing.assert_array_equal(wanted.predict(WIDE), wanted.predict(WARD))
    WIDE.to_parquet(tmp_path / "wide.parquet")
    WIDE.to_csv(tmp_path / "wide.csv", index=False)
    for frame in (
        IGNORING.read_csv(tmp_path / "wide.csv"),
        IGNORING.read_parquet(tmp_path / "wide.parquet"),
    ):
        assert sorted(frame.columns) == sorted(WARD.columns)
        X = IGNORING.split(frame)[0]
        np.testing.assert_array_equal(wanted.predict(X), wanted.predict(WARD))
    new = TableSchema.read_parquet(IGNORING.replace(label=None), tmp_path / "wide.parquet")
    assert sorted(new.columns) == sorted(set(WARD.columns) - {"died"})
    WIDE.drop(columns=["died", "id"]).to_parquet(tmp_path / "new.parquet")
    assert list(IGNORING.read_parquet(tmp_path / "new.parquet").columns) == list(
        X.columns[[0, 2, 1]]
    )
    decoded, opened = set(), parquet.ParquetTable._open

    def spy(self, start):
        decoded.update(self.columns)
        return opened(self, start)

    monkeypatch.setattr(parquet.ParquetTable, "_open", spy)
    table = open_parquet(tmp_path / "wide.parquet")
    model = fit(IGNORING, *IGNORING.split(table))
    np.testing.assert_array_equal(model[-1].coef_, wanted[-1].coef_)
    np.testing.assert_array_equal(model.predict(table), wanted.predict(WARD))
    assert decoded == set(WARD.columns) - {"id"}


def test_the_statement_says_that_others_are_ignored():
    said = "columns of the table that the schema does not mention are neither read nor checked"
    model = fit(IGNORING, *IGNORING.split(WIDE))
    assert said in " ".join(str(privacy_statement(model)).split())
    model = fit(SCHEMA, *SCHEMA.split(WARD))
    assert said not in " ".join(str(privacy_statement(model)).split())
    with pytest.raises(ValueError, match="others: must be one of 'raise', 'ignore'"):
        SCHEMA.replace(others="drop")


def test_refusals_come_before_a_charge_and_quote_no_cell():
    X, y = SCHEMA.split(WARD)
    strange = X.astype({"admitted": object})
    strange.loc[3, "admitted"] = "SECRET"
    with BudgetAccountant(1.0, 1e-5) as budget:
        for rows in (strange, X.assign(admitted=20200101), X.assign(discharged=1.5)):
            with pytest.raises(ValueError, match=r"'admitted'|'discharged'") as refused:
                fit(SCHEMA, rows, y)
            assert "SECRET" not in str(refused.value) and "20200101" not in str(refused.value)
        assert not budget.entries()


def test_rows_drawn_from_the_description():
    rows = SCHEMA.sample_public(
        50, marginals={"admitted": ["2020-01-01", "2021-01-01"]}, random_state=0
    )
    assert list(rows.columns) == SCHEMA.inputs
    assert rows["admitted"].between("2020-01-01", "2021-01-01").all()
    assert ((rows["discharged"] - rows["admitted"]).dt.days.between(0, 60)).all()
    SCHEMA.preprocessor().fit_transform(rows)
    days = TableSchema.from_bounds({"day": ("2020-01-01", "2020-03-01")}).sample_public(9)["day"]
    assert (days == days.dt.normalize()).all()
    with pytest.raises(ValueError, match="'admitted': marginals: does not fit"):
        SCHEMA.sample_public(5, marginals={"admitted": ["2010-01-01", "2021-01-01"]})


# ------------------------------------------------------------------------ functions and statistics
def test_shape_functions_have_one_of_each_part_and_add_up():
    X, y = SCHEMA.split(WARD)
    few = ["year", "weekday", "days"]
    dates = DateColumn("admitted", "2015-01-01", "2024-12-31", few, missing="indicator")
    model = SCHEMA.replace(dates, interactions=PAIRS[1:]).pipeline(
        ObjectivePerturbationLogisticRegression(epsilon=8.0, delta=1e-6)
    )
    functions = shape_functions(model.fit(X, y))
    given = X["admitted"].notna().to_numpy()
    days = (X["discharged"] - X["admitted"]) / pandas.Timedelta(days=1)
    dates = X["admitted"].dt
    cells = {
        "admitted year": dates.year,
        "admitted weekday": dates.strftime("%a"),
        "admitted days": (X["admitted"] - pandas.Timestamp("2015-01-01"))
        / pandas.Timedelta(days=1),
        "admitted missing": pandas.Series(~given),
        "age": X["age"],
        "stay": days,
    }
    cells = {name: column.to_numpy(dtype=object) for name, column in cells.items()}
    moments = X["admitted"].astype(object).to_numpy()
    cells["stay * admitted"] = np.array([cells["stay"], moments], dtype=object).T
    assert set(cells) == set(functions)
    total = functions.intercept + sum(functions[name].evaluate(cells[name]) for name in cells)
    np.testing.assert_allclose(total.ravel(), model.decision_function(X), atol=1e-9)
    assert list(functions["admitted weekday"].grid[:2]) == ["Mon", "Tue"]
    assert list(functions["admitted weekday"].others) == ["missing"]
    assert (functions["stay"].kind, functions["admitted days"].unit) == ("numeric", "days")
    pytest.importorskip("matplotlib").use("Agg")
    names = ["admitted weekday", "admitted days", "admitted missing", "stay * admitted"]
    ShapeFunctionDisplay.from_estimator(model, names)
    with pytest.raises(ValueError, match="'admitted weekday' must have ordered values"):
        reshape_functions(model, {"admitted weekday": "increasing"})
    rising = shape_functions(reshape_functions(model, {"admitted days": "increasing"}))
    assert np.diff(rising["admitted days"].values[:, 0]).min() >= -1e-9


def test_statistics_name_what_a_column_of_dates_is():
    days = (WARD["discharged"] - WARD["admitted"]) / pandas.Timedelta(days=1)
    for frame in (WARD, polars.from_pandas(WARD)):
        table = private_table_one(frame, SCHEMA, epsilon=1e4)
        found = {(row.column, row.statistic): row.value for row in table.rows}
        assert {column for column, _ in found} == {"n", "age", "stay"}
        assert found["stay", "mean"] == pytest.approx(days.mean(), abs=0.1)
    calls = {
        "is a DateColumn, which Table 1": lambda: private_table_one(
            WARD, SCHEMA, columns=["admitted"], epsilon=1.0
        ),
        "the schema has a DateColumn": lambda: private_mean(
            WARD["admitted"], schema=SCHEMA, epsilon=1.0
        ),
        "has type datetime64.*as a DateColumn": lambda: private_mean(
            WARD["admitted"], lower=0, upper=1, epsilon=1.0
        ),
    }
    for message, call in calls.items():
        with pytest.raises(ValueError, match=message):
            call()


def test_estimators_name_the_column_of_dates():
    with pytest.raises(ValueError, match=r"X holds times .*Column 'admitted' has type datetime64"):
        OperaLogisticRegression(data_norm=1.0).fit(WARD[["age", "admitted"]], WARD["died"])


KINDS = {"pandas": lambda frame: frame, "polars": polars.from_pandas}


@pytest.mark.parametrize("kind", KINDS)
def test_reviews_read_dates_and_differences(kind):
    assert not [text for text in SCHEMA.review(KINDS[kind](WARD)) if "admitted" in text]
    odd = WARD.assign(discharged=WARD["admitted"] - pandas.Timedelta(days=3))
    texts = WARD["admitted"].dt.strftime("%d.%m.%Y").where(WARD.index > 150, "2020-01-31")
    found = "\n".join(SCHEMA.review(KINDS[kind](odd)))
    assert "column 'stay': 100% of the cells are beyond the bounds [0, 60]" in found
    found = "\n".join(SCHEMA.review(KINDS[kind](WARD.assign(admitted=texts))))
    assert "column 'admitted': 49 of 200 cells are no dates" in found


def test_reviews_doubt_bounds_of_dates_that_are_those_of_the_table():
    ends = WARD["admitted"].min().date(), WARD["admitted"].max().date()
    copied = TableSchema([DateColumn("admitted", *ends, missing="ignore")], others="ignore")
    assert "are the smallest and the largest cell" in copied.review(WARD)[0]
    one_day = DateColumn("admitted", "2015-01-01", "2015-01-01T12:00", ["days"], missing="ignore")
    assert not TableSchema([one_day], others="ignore").review(WARD)
    of_months = DateColumn("admitted", *ends, ["month"], missing="ignore")
    assert not TableSchema([of_months], others="ignore").review(WARD)
