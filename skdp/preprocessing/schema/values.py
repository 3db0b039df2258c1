"""Read cells of private columns: what is missing, what is a number, which category it is.

A cell is read by itself: no step converts a column to a type that its cells decide together, and
no cell decides about an error. Messages name columns and never a cell's value.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from skdp.inputs import nearest_float

# Position of a cell that is missing, and of one that is on no list.
MISSING, UNKNOWN = -1, -2

# What `as_numbers` reads as a number, if anything; bytes, times and complex numbers are none.
_READABLE = (float, int, str, numbers.Real, np.bool_, Decimal)

_FAMILIES = {
    "any": ("interval",),
    "number": ("int", "uint", "float", "halffloat", "double", "decimal"),
    "boolean": ("bool",),
    "text": ("str", "utf8", "large_string", "<u", ">u", "categorical", "enum"),
    # Times, bytes and the like, which are neither numbers nor texts.
    "other": ("date", "time", "period", "duration", "|s", "binary", "large_binary", "complex"),
}


def refuse_container(X: Any, column: bool = False) -> None:
    """Refuse what is no table, or no column, of cells that can be told apart, by its type alone."""
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
                f"a schema describes frames, dense arrays and lists; the table is {kind}."
            )


def _length_of_row(row: Any) -> int:
    """Return how many cells a row of a list has; -1 if it is none."""
    rows = isinstance(row, list | tuple | np.ndarray) and getattr(row, "ndim", 1) > 0
    return len(row) if rows else -1


def rows_as_array(rows: Any) -> np.ndarray:
    """Return a list of rows of one length as an array of objects, in which a cell is anything."""
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            array[i, j] = cell
    return array


def column_dtypes(X: Any) -> list[Any]:
    """Return the types of the columns of a table; no cell is looked at."""
    if hasattr(X, "dtypes"):
        return list(X.dtypes)
    if hasattr(X, "shape"):
        return [getattr(X, "dtype", np.dtype(object))] * X.shape[1]
    return [np.dtype(object)] * len(X[0])


def column_arrays(X: Any) -> list[np.ndarray]:
    """Return the columns of a table, each as an array whose cells do not depend on each other."""
    if hasattr(X, "iloc"):
        return [series_cells(X.iloc[:, j]) for j in range(X.shape[1])]
    if hasattr(X, "get_columns"):
        return [series_cells(column) for column in X.get_columns()]
    if hasattr(X, "shape"):
        return list(np.asarray(X).T)
    return [_objects(column) for column in zip(*X, strict=True)]


def series_cells(series: Any) -> np.ndarray:
    """Return one column of a frame as an array whose cells do not depend on each other.

    Of objects where a missing cell would change the type of the others.
    """
    if not hasattr(series, "iloc"):  # polars turns integers with a null into floats
        return series.to_numpy() if series.dtype.is_float() else _objects(series.to_list())
    if isinstance(series.dtype, np.dtype):
        return np.asarray(series)
    if hasattr(series.dtype, "numpy_dtype") and series.dtype.kind in "biuf" and not series.hasnans:
        return np.asarray(series.to_numpy(dtype=series.dtype.numpy_dtype))
    if hasattr(series, "cat"):  # pandas turns integer categories with a null into floats
        categories = [*series.cat.categories.astype(object), None]
        return _objects(categories)[series.cat.codes.to_numpy()]
    return np.asarray(series.to_numpy(dtype=object))


def dtype_family(dtype: Any) -> str:
    """Return what a column's type promises of its cells, unseen; "any" if nothing."""
    text = _type_name(dtype)
    return next((name for name, starts in _FAMILIES.items() if text.startswith(starts)), "any")


def listing_problem(dtype: Any, values: Sequence[Any], codes: Sequence[Any] = ()) -> str | None:
    """Say why a table's column cannot hold listed values and codes, by its type alone, or None."""
    family = dtype_family(dtype)
    texts = [isinstance(value, str) for value in values]
    if family == "other":
        return "holds times, bytes or the like; turn them into numbers or categories row by row."
    if family == "text" and values and not any(texts):
        return "holds text but the schema lists numbers; convert the column or quote the values."
    if family in ("number", "boolean") and values and all(texts):
        return "holds numbers but the schema lists text; convert the column or unquote the values."
    if not all(_float_can_tell(dtype, value) for value in (*values, *codes)):
        return (
            "holds floats, or may, too coarse for the listed numbers: neighbours are rounded to "
            "one. Read the column as integers or text (TableSchema.read_csv does); one missing "
            "cell makes pandas turn plain integers into floats."
        )
    return None


def number_problem(dtype: Any) -> str | None:
    """Say why a table's column cannot hold numbers, by its type alone, or None."""
    if dtype_family(dtype) in ("text", "other"):
        return "is numeric in the schema but its type is not; convert it row by row."
    return None


def _float_can_tell(dtype: Any, value: Any) -> bool:
    """Tell whether a type, if one of floats, holds a number, and no neighbour rounds to it."""
    text = _type_name(dtype)
    # pandas makes floats of integer categories as soon as one cell is a float: any may be some.
    if isinstance(value, str) or not text.startswith(("float", "double", "halffloat", "category")):
        return True
    half, single = text.startswith(("float16", "half")), text.startswith(("float32", "float["))
    kind = np.float16 if half else np.float32 if single else np.float64
    return abs(value) < 2 ** (np.finfo(kind).nmant + 1) and float(kind(value)) == value


def _type_name(dtype: Any) -> str:
    """Return a type's name in small letters."""
    return str(dtype).lower().removeprefix("sparse[")


def as_numbers(cells: np.ndarray, codes: Sequence[Any]) -> np.ndarray:
    """Return cells as float64, NaN where one is missing, a code, or no number; infinity is kept.

    Text is the number that Python's ``float`` reads in it.
    """
    if cells.dtype.kind in "biuf" and cells.dtype.itemsize <= 8:
        found = cells.astype(np.float64)
    else:
        found = np.array([_number(cell) for cell in cells.tolist()], dtype=np.float64)
    for code in codes:
        found[found == _number(code)] = np.nan
    return found


def positions_in(
    cells: np.ndarray, position: Mapping[Any, int], codes: Sequence[Any]
) -> np.ndarray:
    """Return each cell's position on a public list; `MISSING` or `UNKNOWN` otherwise.

    A cell is the listed value that it equals, as Python compares, or else the one of the same text.
    Cells among `codes` are missing.
    """
    # 1 is 1.0 and True, and no integer is a float beside it; "1" is 1, 1 is "1", "True" is True.
    # Texts are equal character by character: "1.0", " 1" and "01" are not 1, "a" is not "A", and
    # bytes are no text.
    listed = {**position, **dict.fromkeys(codes, MISSING)}
    # What is listed itself comes before what another value looks like as text.
    known = {**{str(value): place for value, place in listed.items()}, **listed}
    found = cells.tolist()
    try:
        places = list(map(known.get, found))
    except Exception:  # some cell is no key: each is asked for by itself
        places = [_get(known, cell) for cell in found]
    if None in places:
        pairs = zip(places, found, strict=True)
        places = [_position_of_text(c, known) if place is None else place for place, c in pairs]
    return np.array(places, dtype=np.int64)


def plain(value: Any) -> Any:
    """Return a numpy scalar as Python's own, and a whole float as an integer, which it equals."""
    value = value.item() if isinstance(value, np.generic) else value
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def _is_missing(cell: Any) -> bool:
    """Tell whether a cell is None, NaN, NaT or pandas' NA."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except Exception:  # a cell decides about no error
        return type(cell).__name__ == "NAType"


def _get(known: Mapping[Any, int], cell: Any) -> int | None:
    try:
        return known.get(cell)
    except Exception:  # what cannot be hashed or compared is on no list
        return UNKNOWN


def _position_of_text(cell: Any, known: Mapping[Any, int]) -> int:
    if isinstance(cell, str):  # it was looked up as it is
        return UNKNOWN
    if _is_missing(cell):
        return MISSING
    value = plain(cell)
    try:
        return known.get(str(value), UNKNOWN) if isinstance(value, bool | int | float) else UNKNOWN
    except ValueError:  # Python writes no integer of more than 4300 digits
        return UNKNOWN


def _number(cell: Any) -> float:
    try:
        return nearest_float(cell) if isinstance(cell, _READABLE) else math.nan
    except Exception:  # a cell decides about no error
        return math.nan


def _objects(cells: Iterable[Any]) -> np.ndarray:
    """Return cells as an array of objects, also where they are sequences."""
    return np.fromiter(cells, dtype=object)
