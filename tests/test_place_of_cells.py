"""Where a cell stands decides nothing: not acceptance, not the message, not what others mean."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp import OperaLogisticRegression
from skdp.estimators.labels import encode_labels, read_numbers
from skdp.metrics import PrivateEvaluation
from skdp.model_selection._runs import check_table, n_columns
from skdp.preprocessing import (
    CategoricalColumn,
    DateColumn,
    LabelColumn,
    NumericColumn,
    NumericLabel,
    SchemaEncoder,
    TableSchema,
)
from skdp.statistics._terms import cells_of, listed_column, numbers_of
from skdp.tables.inputs import validate_column, validate_private_data
from skdp.tables.units import units_of


class OwnText(str):
    """A text of a class of its own."""


ODD = {
    "mapping": {"a": 1.0},
    "list": [1.0, 2.0],
    "tuple": (1.0,),
    "array": np.array([1.0, 2.0]),
    "empty list": [],
    "set": {1.0},
    "huge": 10**400,
    "minus huge": -(10**400),
    "above int64": 2**63,
    "above uint64": 2**64,
    "many digits": 10**5000,
    "huge decimal": Decimal("1e400"),
    "huge fraction": Fraction(10**400),
    "bytes": b"1",
    "none": None,
    "bool": True,
    "numpy bool": np.True_,
    "decimal": Decimal("1.0"),
    "signalling": Decimal("sNaN"),
    "fraction": Fraction(3, 2),
    "date": datetime.date(2020, 1, 1),
    "datetime": datetime.datetime(2020, 1, 1, 3),
    "duration": datetime.timedelta(3),
    "numpy date": np.datetime64("2020-01-01"),
    "numpy duration": np.timedelta64(3, "D"),
    "text": "1",
    "word": "word",
    "own text": OwnText("1"),
    "numpy text": np.str_("1"),
    "float32": np.float32(1.0),
    "int8": np.int8(1),
    "long double": np.longdouble("1e400"),
    "float": 1.0,
    "half": 1.5,
    "large float": 2.0**60,
    "large int": 2**60,
    "nan": float("nan"),
    "infinity": float("inf"),
    "complex": 1.0 + 2.0j,
    "object": object(),
    "type": int,
}
USUAL = {"whole": [0, 1, 0, 1], "floats": [0.0, 1.0, 0.5, 1.0], "texts": ["0", "1", "0", "word"]}


def as_objects(cells):
    found = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        found[place] = cell
    return found


def as_pandas(cells):
    return pytest.importorskip("pandas").Series(as_objects(cells), dtype=object, name="a")


def as_polars(cells):
    polars = pytest.importorskip("polars")
    return polars.Series("a", list(cells), dtype=polars.Object)


COLUMNS = {"list": list, "tuple": tuple, "objects": as_objects, "pandas": as_pandas}


def rows_of(cells):
    return [[cell, 0.5] for cell in cells]


def object_rows(cells):
    found = np.full((len(cells), 2), 0.5, dtype=object)
    found[:, 0] = as_objects(cells)
    return found


def pandas_rows(cells):
    return pytest.importorskip("pandas").DataFrame({"a": as_pandas(cells), "b": 0.5})


def polars_rows(cells):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"a": as_polars(cells), "b": [0.5] * len(cells)})


def odd_rows(cells):
    return [[cell, 0.5] if type(cell) in (int, float) else cell for cell in cells]


TABLES = {
    "lists": rows_of,
    "tuples": lambda cells: tuple(map(tuple, rows_of(cells))),
    "objects": object_rows,
    "pandas": pandas_rows,
    "polars": polars_rows,
    "odd rows": odd_rows,
}


def encoder(column):
    return SchemaEncoder([column, NumericColumn("b", 0, 1)])


NUMERIC = NumericColumn("a", 0, 1, missing="ignore")
DATES = DateColumn("a", "2020-01-01", "2021-01-01", missing="ignore", unknown="ignore")
STRICT_DATES = DateColumn("a", "2020-01-01", "2021-01-01")
LISTED = CategoricalColumn("a", [0, 1, "word"], encoding="one-hot", missing="ignore")
SCHEMA = TableSchema([NUMERIC, NumericColumn("b", 0, 1)])


def codes_of(column, **options):
    return units_of(column, **options).codes * 0.0  # ids are in an order of their own


TABLE_READERS = {
    "an estimator": lambda X: validate_private_data(OperaLogisticRegression(), X),
    "a search": lambda X: check_table(OperaLogisticRegression(), X, [0, 1, 0, 1])[0],
    "columns of a search": lambda X: [n_columns(X)] * 4,
    "numbers of a schema": lambda X: encoder(NUMERIC).fit_transform(X),
    "a list of a schema": lambda X: encoder(LISTED).fit_transform(X),
    "dates of a schema": lambda X: encoder(DATES).fit_transform(X),
    "dates alone": lambda X: encoder(STRICT_DATES).fit_transform(X),
    "by place": lambda X: SCHEMA.preprocessor(positions=True).fit_transform(X),
}
COLUMN_READERS = {
    "numbers of a statistic": lambda c: numbers_of(cells_of(c), NUMERIC),
    "a list of a statistic": lambda c: listed_column(c, [0, 1, "word"], None)._read(cells_of(c)),
    "ids": codes_of,
    "ids, missing apart": lambda c: codes_of(c, null="own"),
    "labels": lambda c: encode_labels(validate_column(c), [0, 1])[1],
    "numbers to predict": lambda c: read_numbers(validate_column(c)),
    "labels of a schema": lambda c: LabelColumn("a", [0, 1]).encode(cells_of(c)),
    "numbers of a schema": lambda c: NumericLabel("a", 0, 1).encode(cells_of(c)),
    "subgroups": lambda c: PrivateEvaluation(1.0, 1e-6, subgroups=[0, 1])._members(c, 4),
}


def outcome(read, make, cells, order):
    """Return what comes of cells in an order: the error, or what is read, put back in order."""
    try:
        found = np.asarray(read(make([cells[place] for place in order])))
    except Exception as error:
        return type(error).__name__, str(error)
    return "read", repr(found[np.argsort(order)].tolist())


def check(read, make, cells, orders, odd):
    found = {outcome(read, make, cells, list(order)) for order in orders}
    assert len(found) == 1, found
    kind, message = found.pop()
    if kind != "read":
        assert kind in ("TypeError", "ValueError", "SchemaError"), (kind, message)
        for quoted in (repr(odd), str(odd) if not isinstance(odd, int) else repr(odd)):
            assert len(quoted) < 5 or quoted not in message


ROTATIONS = [(0, 1, 2, 3), (1, 0, 2, 3), (1, 2, 0, 3), (3, 2, 1, 0)]


def safe(odd):
    return not (isinstance(odd, int) and abs(odd) > 10**4000)  # Python writes no such number


def check_each(read, make, start):
    """Each odd cell beside usual ones of some kind, at the front and at one other place."""
    for number, odd in enumerate(filter(safe, ODD.values()), start):
        usual = list(USUAL.values())[number % len(USUAL)]
        orders = [ROTATIONS[0], ROTATIONS[1 + number // len(USUAL) % (len(ROTATIONS) - 1)]]
        check(read, make, [odd, *usual[1:]], orders, odd)


@pytest.mark.parametrize("reader", TABLE_READERS)
@pytest.mark.parametrize("form", TABLES)
def test_one_odd_cell_of_a_table(reader, form):
    check_each(TABLE_READERS[reader], TABLES[form], list(TABLES).index(form))


@pytest.mark.parametrize("reader", COLUMN_READERS)
@pytest.mark.parametrize("form", [*COLUMNS, "polars"])
def test_one_odd_cell_of_a_column(reader, form):
    make = {**COLUMNS, "polars": as_polars}[form]
    check_each(COLUMN_READERS[reader], make, len(form))


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(set(ODD) - {"many digits"})), min_size=4, max_size=4),
    order=st.permutations(range(4)),
    reader=st.sampled_from(sorted(TABLE_READERS)),
    form=st.sampled_from(sorted(TABLES)),
)
def test_many_odd_cells_of_a_table(names, order, reader, form):
    cells = [ODD[name] for name in names]
    check(TABLE_READERS[reader], TABLES[form], cells, [range(4), order], object())


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(set(ODD) - {"many digits"})), min_size=4, max_size=4),
    order=st.permutations(range(4)),
    reader=st.sampled_from(sorted(COLUMN_READERS)),
    form=st.sampled_from(sorted(COLUMNS)),
)
def test_many_odd_cells_of_a_column(names, order, reader, form):
    cells = [ODD[name] for name in names]
    check(COLUMN_READERS[reader], COLUMNS[form], cells, [range(4), order], object())
