"""Columns of dates: equal features from every container, bounded rows, zones, cells without one."""

import datetime
import math
import pickle
import zoneinfo
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.preprocessing import (
    CategoricalColumn,
    DateColumn,
    DaysBetweenColumn,
    NumericColumn,
    SchemaEncoder,
    TableSchema,
    days_between,
)
from skdp.preprocessing.schema.frames import series_cells

pandas = pytest.importorskip("pandas", reason="needs pandas")
polars = pytest.importorskip("polars", reason="needs polars")
pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")

UTC, BERLIN = datetime.UTC, "Europe/Berlin"
BOUNDS = "2015-01-01", "2024-12-31"
PARTS = ("year", "month", "weekday", "hour", "days")
# Leap days, before 1970 and after 2262, both ends of a day.
TEXTS = [
    "2020-02-29T08:30:00",
    "1969-12-31T23:59:59",
    "2000-02-29T00:00:00",
    None,
    "2024-12-31T23:59:59",
    "2019-06-15T12:00:00",
    "1700-03-01T05:00:00",
    "2261-12-31T23:00:00",
]
LATE = [*TEXTS, "2300-02-28T22:00:00", "9999-12-31T01:00:00", "0001-01-02T00:00:00"]
PLAIN = DateColumn("day", *BOUNDS, missing="indicator")


def python(texts, zone=None):
    found = [t and datetime.datetime.fromisoformat(t).replace(tzinfo=zone) for t in texts]
    return np.fromiter(found, dtype=object)


def of_arrow(kind, cells):
    return pandas.Series(pyarrow.array(list(cells)).cast(kind), dtype=pandas.ArrowDtype(kind))


def naive_containers(texts, units):
    dates = python(texts)
    whole = np.array([t or "NaT" for t in texts], "M8[s]")
    found = {
        "objects": dates,
        "texts": np.array(texts, dtype=object),
        "texts with a space": np.array([t and t.replace("T", " ") for t in texts], dtype=object),
        "texts with fractions": np.array([t and t + ".987654321" for t in texts], dtype=object),
        "numpy's texts": np.array([t or " " for t in texts]),
        "numpy's dates among objects": np.fromiter(list(whole), dtype=object),
        "pandas objects": pandas.Series(dates, dtype=object),
        "pandas text": pandas.Series(texts, dtype="string"),
        "pandas categories": pandas.Series(whole).astype("category"),
        "polars": polars.Series(dates.tolist(), dtype=polars.Datetime("us")),
        "polars text": polars.Series(texts, dtype=polars.String),
        "arrow text": of_arrow(pyarrow.string(), texts),
        "arrow": of_arrow(pyarrow.timestamp("us"), dates),
    }
    if hasattr(pandas, "StringDtype"):
        found["pandas str"] = pandas.Series(texts)
    for unit in units:
        found[f"numpy {unit}"] = whole.astype(f"M8[{unit}]")
        found[f"pandas {unit}"] = pandas.Series(whole.astype(f"M8[{unit}]"))
        found[f"arrow {unit}"] = of_arrow(pyarrow.timestamp(unit), dates)
    return found


def cells_of(container):
    return container if isinstance(container, np.ndarray) else series_cells(container)


def check_equal(column, containers, expected):
    for name, container in containers.items():
        assert column.check_dtype(container.dtype) is None, name
        np.testing.assert_array_equal(column.encode(cells_of(container)), expected, err_msg=name)
        frame = pandas.DataFrame({"day": container})
        if hasattr(container, "to_list") and not hasattr(container, "iloc"):
            frame = polars.DataFrame({"day": container})
        found = TableSchema([column]).preprocessor().fit_transform(frame)
        np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("missing", ["ignore", "indicator"])
def test_every_container_gives_the_same_features(missing):
    column = DateColumn("day", *BOUNDS, missing=missing)
    for texts, units in ((TEXTS, ("ns", "us", "ms", "s")), (LATE, ("us", "ms", "s"))):
        expected = column.encode(python(texts))
        check_equal(column, naive_containers(texts, units), expected)


def test_days_without_a_time():
    texts = [t and t[:10] for t in LATE]
    days = [t and datetime.date.fromisoformat(t) for t in texts]
    column = DateColumn("day", *BOUNDS, missing="indicator")
    expected = column.encode(np.array(texts, dtype=object))
    np.testing.assert_array_equal(
        expected, column.encode(python([t and f"{t}T00:00" for t in texts]))
    )
    containers = {
        "objects": np.array(days, dtype=object),
        "numpy": np.array([t or "NaT" for t in texts], "M8[D]"),
        "pandas": pandas.Series(days, dtype=object),
        "polars": polars.Series(days, dtype=polars.Date),
        "arrow 32": of_arrow(pyarrow.date32(), days),
        "arrow 64": of_arrow(pyarrow.date64(), days),
    }
    check_equal(column, containers, expected)


# ---------------------------------------------------------------------------------- time zones
# Around both changes of the clocks of Berlin, in UTC, with what its clocks show.
CHANGES = {
    "2024-03-31T00:59:59": "2024-03-31T01:59:59",
    "2024-03-31T01:00:00": "2024-03-31T03:00:00",
    "2024-10-26T22:30:00": "2024-10-27T00:30:00",
    "2024-10-27T00:30:00": "2024-10-27T02:30:00",
    "2024-10-27T01:30:00": "2024-10-27T02:30:00",
    "2024-12-31T23:30:00": "2025-01-01T00:30:00",
    "1890-01-01T00:00:00": "1890-01-01T00:53:28",  # the sun's own time
    "2300-07-01T10:00:00": "2300-07-01T12:00:00",
}


@pytest.mark.parametrize("missing", ["ignore", "indicator"])
def test_cells_with_a_zone_are_converted_and_others_are_in_it(missing):
    column = DateColumn("day", *BOUNDS, timezone=BERLIN, missing=missing)
    instants = [*CHANGES, None]
    expected = column.encode(python([*CHANGES.values(), None]))
    aware = python(instants, UTC)
    late = np.array([t or "NaT" for t in instants], "M8[us]")
    india = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    elsewhere = [t and t.astimezone(india).replace(microsecond=999_999) for t in aware]
    containers = {
        "objects": aware,
        "texts": np.array([t and t + "Z" for t in instants], dtype=object),
        "objects elsewhere": np.fromiter(elsewhere, dtype=object),
        "offsets": np.array([t and t.isoformat() for t in elsewhere], dtype=object),
        "pandas": pandas.Series(late).dt.tz_localize("UTC"),
        "pandas elsewhere": pandas.Series(late).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        "pandas objects": pandas.Series(late).dt.tz_localize("UTC").astype(object),
        "polars": polars.Series(late).dt.replace_time_zone("UTC"),
        "polars there": polars.Series(late)
        .dt.replace_time_zone("UTC")
        .dt.convert_time_zone("America/New_York"),
        "arrow": of_arrow(pyarrow.timestamp("us", tz="UTC"), aware),
        "arrow there": of_arrow(pyarrow.timestamp("us", tz="America/New_York"), aware),
    }
    check_equal(column, containers, expected)
    # Cells with and without a zone in one column are read one by one.
    mixed = np.array(["2024-03-31T01:00:00Z", "2024-03-31 03:00"], dtype=object)
    one, other = column.encode(mixed)
    np.testing.assert_array_equal(one, other)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.datetimes(datetime.datetime(1, 1, 3), datetime.datetime(9999, 12, 29)), min_size=1),
    st.sampled_from([BERLIN, "America/St_Johns", "Pacific/Apia", "Africa/Casablanca", "UTC"]),
)
def test_clocks_show_what_python_says(instants, name):
    zone = zoneinfo.ZoneInfo(name)
    aware = [instant.replace(tzinfo=UTC) for instant in instants]
    shown = [instant.astimezone(zone).replace(tzinfo=None) for instant in aware]
    wanted = PLAIN.encode(np.array(shown, dtype=object))
    column = DateColumn("day", *BOUNDS, timezone=name, missing="indicator")
    for cells in (
        np.array(aware, dtype=object),
        np.array([instant.isoformat() for instant in aware], dtype=object),
        series_cells(
            polars.Series(instants, dtype=polars.Datetime("us")).dt.replace_time_zone("UTC")
        ),
        series_cells(of_arrow(pyarrow.timestamp("us", tz=name), aware)),
    ):
        np.testing.assert_array_equal(column.encode(cells), wanted)


def test_a_day_on_which_clocks_change_is_one_day():
    stay = days_between("a", "b", 0, 4, timezone=BERLIN)
    frame = pandas.DataFrame(
        {
            "a": pandas.to_datetime(["2024-03-30T11:00Z", "2024-10-26T10:00Z"]),
            "b": ["2024-03-31T12:00", "2024-10-28T12:00"],
        }
    )
    found = TableSchema([stay]).preprocessor().fit_transform(frame)
    np.testing.assert_array_equal(found.ravel(), [-0.5, 0.0])


def test_a_zone_that_the_schema_does_not_name_is_refused_by_the_type_alone():
    column = DateColumn("day", *BOUNDS, unknown="indicator", missing="ignore")
    instants = pandas.Series(pandas.to_datetime(["2024-03-31T01:00Z"]))
    for series in (
        instants,
        polars.Series(instants),
        instants.astype("timestamp[us, tz=UTC][pyarrow]"),
    ):
        frame = pandas.DataFrame({"day": series})
        if isinstance(series, polars.Series):
            frame = polars.DataFrame({"day": series})
        with pytest.raises(
            ValueError, match=r"column 'day' has type .*timezone= such as 'Europe/Berlin'"
        ):
            TableSchema([column]).check(frame)
    # One cell decides about no error.
    block = column.encode(np.array(["2020-01-01", "2020-01-01T00:00Z"], dtype=object))
    assert list(block[:, -1]) == [0.0, 1.0]


# -------------------------------------------------------------------------- cells without a date
WORDS = ["31.12.2020", "2020-13-01", "2019-02-29", "soon", "2020", "2020-01-01T25:00", "20200101"]
OTHERS = [5, 2.5, True, b"2020-01-01", ("2020",), datetime.time(3), datetime.timedelta(1), [1]]


def test_what_is_no_date_is_unknown_and_never_quoted():
    cells = np.fromiter([*WORDS, *OTHERS, "2020-01-01T00:00:60", "²020-01-01"], dtype=object)
    column = DateColumn("day", *BOUNDS, unknown="indicator")
    block = column.encode(cells)
    assert column.feature_names()[-1] == "day unknown"
    np.testing.assert_array_equal(block[:, -1], 1.0)
    np.testing.assert_array_equal(block[:, :-1], 0.0)
    assert not DateColumn("day", *BOUNDS, unknown="ignore").encode(cells).any()
    strict = DateColumn("day", *BOUNDS)
    for cell in cells:
        with pytest.raises(ValueError, match="column 'day': unknown: the policy") as refused:
            strict.encode(np.fromiter([cell], dtype=object))
        assert str(cell) not in str(refused.value).replace("2020-01-31", "")


@pytest.mark.parametrize(
    "cell", [None, math.nan, "", "  ", pandas.NaT, pandas.NA, np.datetime64("NaT")]
)
def test_missing_cells(cell):
    cells = np.fromiter([cell, "2020-01-01"], dtype=object)
    with pytest.raises(ValueError, match="column 'day': missing: the policy is 'refuse'"):
        DateColumn("day", *BOUNDS).encode(cells)
    assert not DateColumn("day", *BOUNDS, missing="ignore").encode(cells)[0].any()
    block = DateColumn("day", *BOUNDS, missing="indicator", weight=3.0).encode(cells)
    assert block[0, -1] == 3.0 and not block[0, :-1].any() and block[1, -1] == 0.0
    filled = DateColumn("day", *BOUNDS, missing="fill", fill_value="2020-01-01").encode(cells)
    np.testing.assert_array_equal(*filled)


def test_codes_are_missing_by_their_date_or_their_text():
    codes = [datetime.date(9999, 12, 31), "1900-01-01", "in care"]
    column = DateColumn("day", *BOUNDS, missing="indicator", missing_codes=codes)
    assert column.missing_codes == ("9999-12-31", "1900-01-01", "in care")
    cells = ["9999-12-31 00:00", datetime.datetime(1900, 1, 1), "in care", "1900-01-02"]
    assert list(column.encode(np.array(cells, dtype=object))[:, -1]) == [1, 1, 1, 0]
    times = np.array(["1900-01-01", "1900-01-02"], "M8[s]")
    assert list(column.encode(times)[:, -1]) == [1, 0]


def test_predictions_warn_of_a_column_without_a_date_and_fits_do_not(recwarn):
    frame = pandas.DataFrame({"day": ["31.12.2020", "1.1.2021"]})
    encoder = SchemaEncoder([DateColumn("day", *BOUNDS, unknown="indicator")])
    encoder.fit_transform(frame)
    encoder.transform(pandas.DataFrame({"day": ["31.12.2020", "2021-01-01"]}))
    assert not recwarn
    with pytest.warns(UserWarning, match="column 'day': no cell is a date"):
        encoder.transform(frame)


# ------------------------------------------------------------------------------- norms and parts
dates = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
cells = st.one_of(
    dates,
    dates.map(lambda d: d.isoformat()),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([UTC, datetime.timezone(datetime.timedelta(hours=14))])),
    st.text(max_size=12),
    st.none(),
    st.floats(),
    st.integers(-(2**63), 2**63 - 1).map(lambda k: np.datetime64(k, "s")),
    st.integers(-(2**63), 2**63 - 1).map(lambda k: np.datetime64(k, "D")),
)
columns = st.builds(
    lambda ends, **options: DateColumn("day", *ends, **options),
    st.lists(dates, min_size=2, max_size=2, unique_by=lambda d: d.replace(microsecond=0)).map(
        sorted
    ),
    parts=st.lists(st.sampled_from(PARTS[1:]), min_size=1, unique=True).map(lambda p: [*p, "year"]),
    timezone=st.sampled_from(["", "UTC", BERLIN, "America/St_Johns", "Pacific/Apia"]),
    encoding=st.sampled_from(["auto", "waves"]),
    missing=st.sampled_from(["ignore", "indicator"]),
    unknown=st.sampled_from(["ignore", "indicator"]),
    weight=st.floats(0.01, 100.0),
)


@settings(max_examples=30, deadline=None)
@given(columns, st.lists(cells, min_size=1, max_size=8))
def test_rows_are_bounded_whatever_the_cells_are(column, found):
    array = np.fromiter(found, dtype=object)
    block = column.encode(array)
    assert block.shape == (len(found), len(column.feature_names()))
    assert np.isfinite(block).all()
    assert np.linalg.norm(block, axis=1).max() <= column.weight * (1.0 + 1e-12)
    for cell, row in zip(found, block, strict=True):  # each cell by itself
        np.testing.assert_array_equal(column.encode(np.fromiter([cell], dtype=object))[0], row)
    schema = TableSchema([column, days_between("day", "end", -5, 5, missing="ignore")])
    assert TableSchema.from_json(schema.to_json()) == schema
    assert schema.norm_bound == pytest.approx(math.hypot(column.weight, 1.0))
    assert SchemaEncoder([column]).fit(array[:, None]).data_norm_ == column.weight


def test_a_date_at_a_bound_reaches_the_weight():
    column = DateColumn("day", *BOUNDS, weight=2.0)
    block = column.encode(np.array(BOUNDS, dtype=object))
    np.testing.assert_allclose(np.linalg.norm(block, axis=1), 2.0)


def test_parts_by_hand():
    texts = ["2015-01-01", "2019-12-31T12:00", "2030-03-02T18:59"]
    column = DateColumn("day", "2015-01-01", "2024-12-30", parts=PARTS)
    block = column.encode(np.array(texts, dtype=object)) * math.sqrt(5)
    by_name = dict(zip(column.feature_names(), block.T, strict=True))
    np.testing.assert_allclose(by_name["day year"], [-1, -1 / 9, 1])
    span = datetime.date(2024, 12, 30) - datetime.date(2015, 1, 1)
    half = datetime.date(2019, 12, 31) - datetime.date(2015, 1, 1)
    np.testing.assert_allclose(by_name["day days"], [-1, 2 * (half.days + 0.5) / span.days - 1, 1])
    amplitude = 1 / math.sqrt(sum(1 / k**2 for k in range(1, 4)))
    for k in (1, 2, 3):
        turns = 2 * np.pi * k / 7 * np.array([3, 1, 5])  # Thursday, Tuesday, Saturday
        np.testing.assert_allclose(by_name[f"day weekday cos{k}"], amplitude / k * np.cos(turns))
        np.testing.assert_allclose(by_name[f"day weekday sin{k}"], amplitude / k * np.sin(turns))
    assert [name for name in by_name if "month" in name][-1] == "day month sin5"
    for part, places in (("month", [0, 11, 2]), ("hour", [0, 12, 18])):
        ones = [by_name[f"day {part} {wave}1"] for wave in ("cos", "sin")]
        turns = 2 * np.pi / {"month": 12, "hour": 24}[part] * np.array(places)
        np.testing.assert_allclose(np.arctan2(*ones[::-1]) % (2 * np.pi), turns % (2 * np.pi))


def test_waves_follow_any_function_of_months_and_weekdays():
    for part, length, step in (("month", 12, 31), ("weekday", 7, 1)):
        column = DateColumn("day", "2024-01-01", "2025-01-01", parts=[part])
        first = np.datetime64("2024-01-01") + step * np.arange(length)
        block = column.encode(first)
        assert np.linalg.matrix_rank(block) == length - 1 == block.shape[1]
        np.testing.assert_allclose(block.sum(axis=0), 0.0, atol=1e-12)


def test_a_year_that_is_the_same_for_all_takes_no_share():
    column = DateColumn("day", "2024-01-01", "2024-12-31", parts=["year", "days"])
    assert column.feature_names() == ["day days"]
    assert column.encode(np.array(["2024-01-01", "2025-06-01"], "M8[D]")).ravel().tolist() == [
        -1,
        1,
    ]


# ----------------------------------------------------------------------------------- descriptions
WRONG = {
    "must be after first": {"first": "2020-01-02", "last": "2020-01-02"},
    "first: must be a date such as '2020-01-31', got '1.1.2020'": {"first": "1.1.2020"},
    "last: must be a date such as '2020-01-31', got 2024": {"last": 2024},
    "It has a time zone: give timezone=": {"first": "2020-01-01T00:00Z"},
    "parts: must be among year, month": {"parts": ["quarter"]},
    "parts: must be a list": {"parts": "year"},
    "parts: contains a value twice": {"parts": ["year", "year"]},
    "both bounds are in one year": {"first": "2024-01-01", "parts": ["year"]},
    "timezone: must be a zone such as": {"timezone": "Berlin"},
    r"timezone: must be a zone such as .*got '\.\./etc'": {"timezone": "../etc"},
    "encoding: must be one of": {"encoding": "steps"},
    "unknown: must be one of": {"unknown": "fill"},
    "fill_value: must be given with missing='fill'": {"fill_value": "2020-01-01"},
    "fill_value: must be a date": {"missing": "fill", "fill_value": 3},
    "missing_codes: must contain dates or texts": {"missing_codes": [99]},
    "missing_codes: must be a list": {"missing_codes": "NA"},
    "weight: must be positive": {"weight": 0.0},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_descriptions_say_what_to_write(message):
    good = {"first": "2015-01-01", "last": "2024-12-31"}
    with pytest.raises(ValueError, match=f"column 'day': .*{message}"):
        DateColumn("day", **{**good, **WRONG[message]})


def test_bounds_of_every_kind_are_kept_as_texts():
    day, moment = datetime.date(2015, 1, 1), datetime.datetime(2024, 12, 31, 8, 30, 15)
    for first in (day, "2015-01-01", "2015-01-01T00:00", np.datetime64(day), pandas.Timestamp(day)):
        column = DateColumn("day", first, moment)
        assert (column.first, column.last) == ("2015-01-01", "2024-12-31T08:30:15")
        assert pickle.loads(pickle.dumps(column)) == column
    there = DateColumn("day", "2014-12-31T23:00Z", moment, timezone=BERLIN)
    assert there.first == "2015-01-01"


def test_types_that_are_no_dates_are_refused_by_name():
    column = DateColumn("day", *BOUNDS, missing="ignore", unknown="ignore")
    refused = {
        "int64": pandas.Series([20200101]),
        "bool": pandas.Series([True]),
        "timedelta64": pandas.Series([datetime.timedelta(1)]),
        "period": pandas.Series(pandas.period_range("2020", periods=1, freq="D")),
        "Time": polars.Series([datetime.time(3)]),
        "Int64": polars.Series([5]),
        "double": pandas.Series([1.5], dtype="double[pyarrow]"),
    }
    for name, series in refused.items():
        frame = {"day": series}
        table = (
            polars.DataFrame(frame)
            if isinstance(series, polars.Series)
            else pandas.DataFrame(frame)
        )
        for call in (TableSchema([column]).check, TableSchema([column]).preprocessor().fit):
            with pytest.raises(
                ValueError, match=f"'day' has type .*{name}.*is a date in the schema"
            ):
                call(table)


def test_other_columns_refuse_dates_in_the_same_words():
    frame = pandas.DataFrame({"day": pandas.to_datetime(["2020-01-01"])})
    with pytest.raises(ValueError, match=r"lower: must be a number.*Use a DateColumn"):
        NumericColumn("day", datetime.date(2020, 1, 1), 3)
    for column in (NumericColumn("day", 0, 1), TableSchema.from_bounds({"day": [1, 2]})["day"]):
        with pytest.raises(ValueError, match=r"'day' has type datetime64.*as a DateColumn"):
            TableSchema([column]).check(frame)


# ----------------------------------------------------------------------------- days between dates
def test_days_between_by_hand():
    stay = days_between("in", "out", 0, 10, name="stay", missing="indicator", missing_codes=["x"])
    assert isinstance(stay, DaysBetweenColumn) and stay.feature_names() == ["stay", "stay missing"]
    frame = pandas.DataFrame(
        {
            "in": pandas.to_datetime(
                ["2024-02-28", "2024-02-28", "2024-02-28", None, "2024-01-01"]
            ),
            "out": ["2024-03-04T12:00", "2024-02-01", "2025-01-01", "2024-01-01", "x"],
        }
    )
    found = TableSchema([stay]).preprocessor().fit_transform(frame)
    np.testing.assert_allclose(found[:, 0], [0.1, -1, 1, 0, 0])
    np.testing.assert_array_equal(found[:, 1], [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(stay.encode(np.array([5.5, np.nan])), found[[0, 3]])
    with pytest.raises(ValueError, match="column 'stay': missing: the policy is 'refuse'"):
        TableSchema([days_between("in", "out", 0, 10, name="stay")]).preprocessor().fit_transform(
            frame
        )
    with pytest.raises(ValueError, match="end: needs two columns"):
        days_between("in", "in", 0, 1)


def test_lengths_of_coefficients_as_the_guide_says():
    """Of the shortest that give a season, and an effect of one month, with waves and categories."""
    place = np.arange(12)
    months = np.datetime64("2024-01", "M") + place
    waves = DateColumn("day", "2024-01-01", "2025-01-01", parts=["month"]).encode(months)
    categories = CategoricalColumn("month", place.tolist()).encode(place)
    season, one = np.cos(2 * np.pi * place / 12), (place == 4) - 1 / 12
    found = [
        round(float(np.sum(np.linalg.lstsq(block, wanted, rcond=None)[0] ** 2)), 1)
        for wanted in (season, one)
        for block in (waves, categories)
    ]
    assert found == [1.5, 5.5, 2.7, 0.8]
    page = (Path(__file__).parents[2] / "docs" / "encodings.md").read_text()
    said = " ".join(page.split())
    assert "| effect | waves | centred categories |" in said
    assert "| season of the form `cos(2 pi u)` | 1.5 | 5.5 | | one month only | 2.7 | 0.8 |" in said


def test_offsets_of_old_clocks_have_seconds():
    column = DateColumn("d", "1890-01-01", "1910-01-01", ["days"], timezone="UTC")
    texts = np.array(["1900-01-01T00:00:00+05:53:28", "1899-12-31T18:06:32+00:00"], dtype=object)
    assert np.array_equal(*column.encode(texts))
