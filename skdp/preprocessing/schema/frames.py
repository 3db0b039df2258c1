"""Tables and schemas: comparing types, reading columns, splitting tables; each cell by itself."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from skdp.base.parameters import check_integer, check_real
from skdp.preprocessing.schema.base import (
    as_numbers,
    holds_dates,
    refuse_misfits,
)
from skdp.preprocessing.schema.calendars import (
    mark_instants,
    zone_of,
)
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.dates import DateColumn
from skdp.preprocessing.schema.label import NumericLabel
from skdp.running import frames_to_the_user
from skdp.tables.places import Read, divide, split_columns
from skdp.tables.row_sources import BlockTable
from skdp.tables.units import HoldoutRule

# Options of pandas.read_csv about where cells begin and end, not about their meaning.
_LAYOUT = (
    *("sep", "delimiter", "lineterminator", "quotechar", "quoting", "doublequote", "escapechar"),
    *("header", "names", "usecols", "skiprows", "nrows", "comment", "skip_blank_lines"),
    *("skipinitialspace", "on_bad_lines", "encoding", "encoding_errors", "compression"),
    "storage_options",
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def refuse_container(X: Any, column: bool = False) -> None:
    """Refuse unsupported tables and columns by their type."""
    shape = getattr(X, "shape", None)
    rows = X if isinstance(X, list | tuple) and not column else ()
    flat = isinstance(shape, tuple) and len(shape) != 2 and not column
    lengths = {_length_of_row(row) for row in rows}
    kinds = {
        "sparse": hasattr(type(X), "tocsr"),
        "masked, and the mask would be lost": isinstance(X, np.ma.MaskedArray),
        "lazy; collect it first": hasattr(type(X), "collect"),
        "an array of records": isinstance(X, np.ndarray) and X.dtype.names is not None,
        "a mapping; make a pandas or polars frame of it": isinstance(X, Mapping),
        "a list of mappings; make a pandas or polars frame of it": any(
            isinstance(row, Mapping) for row in rows
        ),
        "one row or column; it needs two dimensions": flat or -1 in lengths,
        "a list whose rows are not lists of one length": len(lengths) > 1,
        "none of these": shape is None and (not hasattr(X, "__getitem__") or isinstance(X, str)),
    }
    for kind, found in kinds.items():
        if found:
            raise TypeError(
                f"a schema works on frames, dense arrays and lists; the table is {kind}."
            )


def _length_of_row(row: Any) -> int:
    """Return the number of cells in a row of a list; -1 if it is no row."""
    rows = isinstance(row, list | tuple | np.ndarray) and getattr(row, "ndim", 1) > 0
    return len(row) if rows else -1


def rows_as_array(rows: Any) -> np.ndarray:
    """Return a list of rows of equal length as an array of objects."""
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            array[i, j] = cell
    return array


def column_dtypes(X: Any) -> list[Any]:
    """Return the types of the columns of a table; no cell is read."""
    if hasattr(X, "dtypes"):
        return list(X.dtypes)
    if hasattr(X, "shape"):
        return [getattr(X, "dtype", np.dtype(object))] * X.shape[1]
    return [np.dtype(object)] * len(X[0])


def column_arrays(X: Any) -> list[np.ndarray]:
    """Return the columns of a table as arrays of independent cells."""
    if hasattr(X, "iloc"):
        return [series_cells(X.iloc[:, j]) for j in range(X.shape[1])]
    if hasattr(X, "get_columns"):
        return [series_cells(column) for column in X.get_columns()]
    if hasattr(X, "shape"):
        return list(np.asarray(X).T)
    return [as_objects(column) for column in zip(*X, strict=True)]


def series_cells(series: Any) -> np.ndarray:
    """Return one column of a frame as an array of independent cells.

    It has objects if a missing cell would change the type of the others.
    """
    if holds_dates(series.dtype) and (dates := _date_cells(series)) is not None:
        return mark_instants(dates) if zone_of(series.dtype) else dates
    if not hasattr(series, "iloc"):  # polars turns integers with a null into floats
        return series.to_numpy() if series.dtype.is_float() else as_objects(series.to_list())
    if isinstance(series.dtype, np.dtype):
        return np.asarray(series)
    if hasattr(series.dtype, "numpy_dtype") and series.dtype.kind in "biuf" and not series.hasnans:
        return np.asarray(series.to_numpy(dtype=series.dtype.numpy_dtype))
    if hasattr(series, "cat"):  # pandas turns integer categories with a null into floats
        categories = [*series.cat.categories.astype(object), None]
        return as_objects(categories)[series.cat.codes.to_numpy()]
    return np.asarray(series.to_numpy(dtype=object))


def _date_cells(series: Any) -> np.ndarray | None:
    """Return dates of a frame as numpy's, in UTC if their type has a time zone; None otherwise.

    Python's objects would raise for dates after the year 9999.
    """
    if not hasattr(series, "iloc"):
        return np.asarray(series.to_numpy())
    if hasattr(series.dtype, "pyarrow_dtype"):
        return np.asarray(series.array.__arrow_array__().to_numpy(zero_copy_only=False))
    if hasattr(series.dtype, "tz"):
        return np.asarray(series.to_numpy(dtype=f"M8[{series.dtype.unit}]"))
    return None


def as_objects(cells: Iterable[Any]) -> np.ndarray:
    """Return cells as an array of objects, even if they are sequences."""
    return np.fromiter(cells, dtype=object)


def column_types(frame: Any) -> list[tuple[str, Any]]:
    """Return names and types of a frame's columns."""
    refuse_container(frame)
    if not hasattr(frame, "columns") or not hasattr(frame, "dtypes"):
        raise TypeError(
            f"need a pandas or polars frame with named columns, got {type(frame).__name__}. "
            "An array with the schema's features in their order needs no split: pass it to "
            "schema.pipeline(estimator, positions=True)."
        )
    return list(zip(list(frame.columns), list(frame.dtypes), strict=True))


def check_frame(schema: Any, frame: Any, *, label: bool) -> None:
    """Compare a frame with a schema; no cell is read."""
    types = column_types(frame)
    names = Counter(name for name, _ in types)
    parts = described_cells(schema)
    needed = [*schema.inputs, *([schema.label.name] if schema.label and label else [])]
    problems = [f"column {name!r} is missing." for name in needed if name not in names]
    if len(types) == 1 < len(needed) == len(problems):
        problems.append(
            "the table has a single column. Give the separator of its file, such as "
            "read_csv(path, sep=';')."
        )
    known = {schema.unit.column, *(part.name for part in parts)}
    for name, count in names.items():
        if name not in known and schema.others == "ignore":
            continue
        if count > 1:
            problems.append(f"column {name!r} occurs more than once.")
        elif name not in known:
            problems.append(
                f"column {name!r} is not in the schema: describe it, as an IgnoredColumn if it is "
                "not to be used; or give the schema others='ignore'."
            )
    pairs = [(part, dtype) for name, dtype in types for part in parts if part.name == name]
    refuse_misfits(pairs, problems)


def described_cells(schema: Any) -> list[Any]:
    """Return a schema's descriptions of table columns; a column may have several."""
    return [own for part in schema._parts for own in part.sources()]


def wanted_names(schema: Any) -> set[str]:
    """Return the names of the table columns that a schema mentions."""
    unit = schema.unit.column
    return {part.name for part in described_cells(schema)} | ({unit} if unit else set())


def split_frame(schema: Any, frame: Any, *, groups: bool) -> tuple[Any, ...]:
    """Return the feature columns of a table, its labels, and ids of units if requested."""
    if schema.label is None:
        raise schema._fail("label", "is not described; there is nothing to split off.")
    check_frame(schema, frame, label=True)
    if groups and schema.unit.column not in list(frame.columns):
        raise schema._fail(
            "unit", "its column is not declared or not in the table: add it, or give groups=ids."
        )
    name, encode = schema.label.name, schema.label.encode
    read: list[tuple[str, Read]] = [(name, partial(_read_cells, name, encode))]
    if groups:
        read.append(_column_of_ids(schema, frame))
    X, columns = split_columns(frame, schema.inputs, read)
    return X, *columns


def split_table(schema: Any, X: Any, y: Any = None, groups: Any = None) -> tuple[Any, Any, Any]:
    """Return features, labels and ids; those not given come from columns that a schema names.

    Tables without such columns are unchanged.
    """
    if schema is None:
        return X, y, groups
    names = _names(X)
    if y is None and schema.label and schema.label.name in names:
        by_unit = groups is None and schema.unit.column is not None
        X, y, *ids = split_frame(schema, X, groups=by_unit)
        return X, y, ids[0] if by_unit else groups
    # Ids are taken from any table that has them; one without all features is refused later.
    kept = [name for name in names if name in schema.inputs]
    kept = schema.inputs if len(kept) == len(schema.inputs) else names
    if groups is None and names and schema.unit.column in names:
        X, (groups,) = split_columns(X, kept, [_column_of_ids(schema, X)])
    elif len(kept) < len(names):
        X = X[kept]
    return X, y, groups


def split_holdout(schema: Any, table: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Return a table's rows that are not held out, and those that are."""
    check_real("share", share, above=0.0, below=1.0)
    rule = HoldoutRule(float(share), check_integer("seed", seed))
    names, unit = [name for name, _ in column_types(table)], schema.unit
    if unit.column is None and unit.max_rows > 1:
        raise schema._fail(
            "unit",
            f"one {unit.name} may have {unit.max_rows} rows, which must stay together. Name the "
            "column of ids in PrivacyUnit(column=...).",
        )
    if unit.column is None:
        return divide(table, None, rule)
    if unit.column not in names:
        raise schema._fail("unit", "its column is not in the table.")
    return divide(table, _column_of_ids(schema, table), rule)


def refuse_no_label(schema: Any, table: Any) -> None:
    """Refuse a table with named columns if its label is neither given nor in the table."""
    named = hasattr(type(table), "columns") or _names(table)
    if schema is not None and schema.label is not None and named:
        check_frame(schema, table, label=True)


def _names(table: Any) -> list[Any]:
    """Return the names of a table's columns; empty if it has none."""
    if hasattr(type(table), "collect"):  # reading the names of a lazy one may compute it
        return []
    return list(table.columns) if hasattr(table, "columns") and hasattr(table, "dtypes") else []


def warn_without_ids(schema: Any) -> None:
    """Warn if rows are used without ids although a unit may have several."""
    if schema is not None:
        schema.unit.warn_of_rows(frames_to_the_user() + 1, without_ids=True)


def _column_of_ids(schema: Any, table: Any) -> tuple[str, Read]:
    """Return the name of the unit's column of a table, and its reader."""
    name = schema.unit.column
    if list(table.columns).count(name) > 1:
        raise schema._fail("unit", f"its column {name!r} occurs more than once in the table.")
    return name, partial(_read_cells, name, _reader_of_ids(table))


def _reader_of_ids(table: Any) -> Callable[[np.ndarray], np.ndarray]:
    return _shared_texts if isinstance(table, BlockTable) else np.asarray


def _shared_texts(cells: np.ndarray) -> np.ndarray:
    """Return cells of a block, with equal texts stored once: ids repeat in many rows."""
    if cells.dtype != object:
        return cells
    known: dict[str, str] = {}
    return as_objects(known.setdefault(c, c) if type(c) is str else c for c in cells.tolist())


def _read_cells(name: str, read: Callable[[np.ndarray], np.ndarray], rows: Any) -> np.ndarray:
    return read(series_cells(rows[name]))


def read_csv(schema: Any, path: Any, options: dict[str, Any]) -> Any:
    """Return a file as a pandas frame, each cell read by the description of its column."""
    if refused := [name for name in options if name not in _LAYOUT]:
        raise TypeError(
            f"read_csv does not accept {', '.join(refused)}: cells are read as text, and then by "
            f"the schema. It accepts {', '.join(_LAYOUT)}."
        )
    pandas = import_pandas()
    if schema.others == "ignore":
        options = {"usecols": wanted_names(schema).__contains__, **options}
    frame = pandas.read_csv(path, dtype=str, na_filter=False, index_col=False, **options)
    for part in described_cells(schema):
        if part.name in frame.columns:
            cells = _cells_of_texts(part, frame[part.name].to_list())
            frame[part.name] = pandas.Series(cells, frame.index, cells.dtype)
    return frame


def read_parquet(schema: Any, path: Any, options: dict[str, Any]) -> Any:
    """Return a file as a pandas frame with types of pyarrow."""
    pandas = import_pandas()
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError("Parquet files need pyarrow: pip install 'skdp[parquet]'.")
    if schema.others == "ignore":
        from pyarrow.parquet import ParquetDataset

        wanted = wanted_names(schema)
        names = [name for name in ParquetDataset(path).schema.names if name in wanted]
        options = {"columns": names, **options}
    return pandas.read_parquet(path, engine="pyarrow", dtype_backend="pyarrow", **options)


def _cells_of_texts(part: Any, texts: list[str]) -> np.ndarray:
    """Return cells from texts of a file by their description, each by itself."""
    found = np.array(texts, dtype=object)
    if isinstance(part, NumericColumn | NumericLabel):
        return as_numbers(found, ())
    if isinstance(part, DateColumn):
        found[:] = [text or None for text in texts]
        return found
    listed = part.listed() or ("",)
    words = {"true": True, "false": False} if any(isinstance(v, bool) for v in listed) else {}
    numeric = not any(isinstance(value, str) for value in listed)
    kept = (*listed, *getattr(part, "missing_codes", ()))

    def read(text: str) -> Any:
        if text in kept:
            return text
        rest = _exact_number(text) if numeric else text or None
        return words.get(text.casefold(), rest)

    found[:] = [read(text) for text in texts]
    return found


def _exact_number(text: str) -> Any:
    """Return the number that a text spells; otherwise the text, or None if it is empty."""
    if spelled := _NUMBER.fullmatch(text):
        with contextlib.suppress(ValueError):  # Python reads no integer of more than 4300 digits
            return float(text) if spelled[1] or spelled[2] else int(text)
    return text or None


def import_pandas() -> Any:
    """Return pandas; without it the error names the extra to install."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "Tables are read as pandas frames: pip install 'skdp[datasets]'. Schemas themselves "
            "need no pandas."
        ) from error
    return pandas
