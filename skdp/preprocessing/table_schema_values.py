"""Read cells of private columns: what is missing, what is a number, which category it is.

Messages name columns and never a cell's value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

# Position of a cell that is missing, and of one that is on no list.
MISSING, UNKNOWN = -1, -2


def column_arrays(X: Any) -> list[np.ndarray]:
    """Return the columns of a pandas or polars frame or of an array, each as an array.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_samples, n_features)
        Table.

    Returns
    -------
    list of ndarray
        One array of shape (n_samples,) a column.
    """
    if hasattr(X, "iloc"):
        return [np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]
    if hasattr(X, "get_columns"):
        return [column.to_numpy() for column in X.get_columns()]
    table = np.asarray(X)
    return [table[:, j] for j in range(table.shape[1])]


def named_column(frame: Any, name: str) -> np.ndarray:
    """Return one column of a pandas or polars frame as an array.

    Parameters
    ----------
    frame : DataFrame
        Table.
    name : str
        Name of the column.

    Returns
    -------
    ndarray of shape (n_samples,)
        Cells.
    """
    column = frame[name]
    return column.to_numpy() if hasattr(frame, "get_columns") else np.asarray(column)


def dtype_family(dtype: Any) -> str:
    """Return what a column's type promises of its cells, without looking at them.

    Parameters
    ----------
    dtype : pandas, polars or numpy dtype, or str
        Type of a column.

    Returns
    -------
    str
        "number", "boolean", "text", "time", or "any" where the type promises nothing.
    """
    text = str(dtype).lower()
    for family, starts in (
        ("any", ("interval",)),
        ("number", ("int", "uint", "float", "double", "decimal")),
        ("boolean", ("bool",)),
        ("time", ("date", "time", "period", "duration")),
        ("text", ("str", "utf8", "large_string", "<u")),
    ):
        if text.startswith(starts):
            return family
    return "any"


def as_numbers(name: str, cells: np.ndarray, codes: tuple[Any, ...]) -> np.ndarray:
    """Return cells as float64 with NaN where one is missing.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    cells : ndarray of shape (n_samples,)
        Cells.
    codes : tuple
        Values that stand for a missing one.

    Returns
    -------
    ndarray of shape (n_samples,)
        Numbers; infinite ones are kept.

    Raises
    ------
    ValueError
        If a cell is no real number; the message does not quote it.
    """
    if cells.dtype.kind in "biuf":
        numbers = cells.astype(np.float64)
    elif cells.dtype.kind == "O":
        numbers = np.array([_number(name, cell) for cell in cells.tolist()], dtype=np.float64)
    else:
        raise _no_number(name)
    for code in codes:
        numbers[numbers == code] = np.nan
    return numbers


def positions_in(
    cells: np.ndarray, position: Mapping[Any, int], codes: tuple[Any, ...]
) -> np.ndarray:
    """Return each cell's position on a public list; `MISSING` or `UNKNOWN` otherwise.

    Numbers are compared as numbers (1 is 1.0 and True), text as text; "1" is not 1.

    Parameters
    ----------
    cells : ndarray of shape (n_samples,)
        Cells.
    position : mapping from value to int
        The list.
    codes : tuple
        Values that stand for a missing one.

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        Positions.
    """
    known = {**position, **dict.fromkeys(codes, MISSING)}
    found = np.empty(cells.shape[0], dtype=np.int64)
    for row, cell in enumerate(cells.tolist()):
        try:
            place = known.get(cell)
        except TypeError:  # a cell that cannot be hashed is on no list
            place = UNKNOWN
        if place is None:
            place = MISSING if is_missing(cell) else UNKNOWN
        found[row] = place
    return found


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is None, NaN, NaT or pandas' NA.

    Parameters
    ----------
    cell : object
        A cell.

    Returns
    -------
    bool
        Whether it is missing.
    """
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError, ArithmeticError):
        return type(cell).__name__ == "NAType"


def _number(name: str, cell: Any) -> float:
    if is_missing(cell):
        return math.nan
    if isinstance(cell, str | bytes | complex):
        raise _no_number(name)
    try:
        return float(cell)
    except OverflowError:  # an integer beyond all floats, and so beyond all bounds
        return math.inf if cell > 0 else -math.inf
    except (TypeError, ValueError, ArithmeticError):
        pass
    raise _no_number(name)


def _no_number(name: str) -> ValueError:
    return ValueError(
        f"column {name!r} is numeric in the schema but holds something that is no number. Convert "
        "it row by row first, or describe it as a CategoricalColumn; no value is shown here, since "
        "it may be private."
    )
