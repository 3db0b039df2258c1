"""scikit-learn's checks of inputs, which quote no value, and arrays with a known norm.

Transformers note a bound on their output, which follows from parameters and released numbers. A
private fit without `data_norm` looks for this note. Neither reads a value of a row.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.validation import validate_data

from skdp.exceptions import PrivacyWarning
from skdp.running import shown_in_percent
from skdp.tables.places import Columns, row_source
from skdp.tables.row_sources import BlockTable, MappedRows, RowSource

# Messages of scikit-learn's checks with shapes, types and public names only. The first group may
# be repeated; the rest of the original may quote rows.
_HARMLESS = (
    r"(Found array with \d+ (?:sample|feature)\(s\).*)",
    r"(Found array with dim \d+.*)",
    r"(Found input variables with inconsistent numbers of samples)",
    r"(X has \d+ features, but .*)",
    r"(The feature names should match those that were passed during fit.*)",
    r"(y should be a 1d array)",
    r"(y cannot be None)",
    r"(.* requires y to be passed, but the target y is None.*)",
    r"(Input y contains (?:NaN|infinity))",
    r"(Unknown label type: [\w-]+)",
    r"(Complex data not supported)",
    r"(Sparse data was passed.*)",
    r"(Only sparse matrices with 32-bit integer indices are accepted.*)",
    r"(np\.matrix is not supported.*)",
    r"((?:A given column is not a column|Some column names are not columns) of the dataframe)",
    r"(Specifying the columns using strings is only supported for dataframes)",
    r"(all features must be in \[-?\d+, -?\d+\] or \[-?\d+, -?\d+\])",
    r"(lower and upper must be finite, and lower < upper for every feature)",
    r"(the schema's columns are chosen by name, which needs a pandas or polars frame\. [\w ,;=']+)",
    r"(the schema's columns are chosen by position: the table must have exactly [\w ,']+)",
    r"(a schema works on frames, dense arrays and lists; the table is [\w ,;]+)",
)

_NO_NUMBER = (
    "X holds text or other values that are not numbers: an argument must be a string or a real "
    "number within the floats. Encode categories with a public list of them, for example with "
    "OneHotEncoder(categories=[...])."
)
_REMEDIES = (
    (
        r"Expected 2D array, got (scalar|1D) array instead",
        "Expected 2D array, got {0} array instead. Reshape your data: X.reshape(-1, 1) if it has a "
        "single feature, X.reshape(1, -1) if it is a single row.",
    ),
    (
        r"Input X contains (NaN|infinity)",
        "Input X contains {0}. Complete or drop such rows by a public rule that looks at one row "
        "at a time; an imputer fitted on the table would not be private.",
    ),
    (
        r"could not convert string to float|Unable to convert array of bytes/strings"
        r"|float\(\) argument must be",
        _NO_NUMBER,
    ),
)
_WITHHELD = (
    "X must be a numeric table and y a column of labels of the same length. The original "
    "message is withheld, since it may quote private values."
)


HOLDS_TIMES = (
    "holds times or dates, which are not numbers: describe it as a DateColumn of a TableSchema, or "
    "two of them as days_between(...). Or convert it to numbers row by row, in a unit you choose."
)
_LARGEST = sys.float_info.max
_A_TIME = re.compile("(?:^|=)(?:date|time|duration)")
_NO_NUMBERS = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64, bytes, bytearray)
_DAMAGED = (
    "X is a damaged sparse matrix: its index arrays point outside its shape or do not match. Build "
    "it again from the table, and do not write to its index arrays."
)


def validate_private_data(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """Run scikit-learn's `validate_data`, and repeat only the public part of its errors.

    A sparse `X` with indices outside its shape is also refused.
    """
    refuse_other_tables(X)
    refuse_masked(y, "y")
    refuse_times(X)
    check_indices(X)
    return _with_public_errors(validate_data, estimator, X, y, **checks)


def validate_column(y: Any) -> np.ndarray:
    """Run scikit-learn's `column_or_1d`, and repeat only the public part of its errors."""
    refuse_masked(y, "y")
    found: np.ndarray = _with_public_errors(column_or_1d, y)
    return found


def validate_rows(
    estimator: Any, X: Any, beside: Columns | None = None, *, look: bool = True, **checks: Any
) -> Any:
    """Do the same, but return the source of a table that is read in blocks.

    One pass over its blocks looks for faults, unless blocks are checked when they are read. Nothing
    else is copied or converted. Columns `beside` (y first) are read in the same pass.
    """
    checks = {"accept_sparse": "csr", **checks}
    refuse_other_tables(X)
    source = row_source(X)
    faults = _faults(source, beside) if source is not None and look else ()
    y = "no_validation" if beside is None else beside.found[0]
    refuse_masked(y, "y")
    if source is None:
        return validate_private_data(estimator, X, y, **checks)
    # Without rows in memory an array is checked that has their shape and takes none.
    stored = isinstance(source, MappedRows) and source is not X
    shown = X if stored else np.broadcast_to(np.zeros((), source.dtype), source.shape)
    checks = {**checks, "dtype": None, "order": None, "ensure_all_finite": False}
    checked = _with_public_errors(validate_data, estimator, shown, y, **checks)
    found = {str(fault): fault for fault in faults if fault is not None}
    if found:  # in a table in memory a NaN is found before an infinity
        raise found[min(found)]
    return source if isinstance(y, str) else (source, checked[1])


def _with_public_errors(check: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a check, and repeat only the public part of its errors."""
    try:
        with np.errstate(all="ignore"):  # sums of the longest rows overflow, and would tell of them
            return check(*args, **options)
    except (ValueError, TypeError, ArithmeticError) as error:
        found = public_error(error, *args)
    raise found


def _faults(source: RowSource, beside: Columns | None) -> Iterable[Any]:
    """Return an error for each block that is not finite or points outside the table, else None."""
    there = source.look(_fault_there, beside)
    return _faults_here(source) if there is None else there


def _faults_here(source: RowSource) -> Iterator[Any]:
    with shown_in_percent("checking rows", source.shape[0]) as done:
        source.note_rows()
        for start, stop in source.bounds():
            yield _fault_of(_check_block, source, start, stop)
            done(stop)


def _fault_of(check: Callable[..., Any], *arguments: Any) -> ValueError | None:
    """Return the error of a check, without the rows in its traceback."""
    try:
        check(*arguments)
    except ValueError as error:
        return error.with_traceback(None)
    return None


def _fault_there(block: Any, chosen: None) -> ValueError | None:
    return _fault_of(_check_finite, block)


def _check_finite(block: Any) -> None:
    _with_public_errors(assert_all_finite, block, input_name="X")


def _check_block(source: RowSource, start: int, stop: int) -> None:
    if not isinstance(source, MappedRows):
        _check_finite(source.read(start, stop))
        return
    try:
        block = source.raw(start, stop)
    except (ValueError, IndexError):
        raise ValueError(_DAMAGED) from None
    check_indices(block)
    _check_finite(block)
    if source.is_sparse and not block.has_canonical_format:
        source.has_duplicates = True
        canonical_rows(block)


def refuse_other_tables(X: Any) -> None:
    """Refuse tables that numpy would treat as a single object, and masked tables."""
    refuse_masked(X)
    if sparse.issparse(X) or isinstance(X, RowSource):  # some of which are dicts as well
        return
    if isinstance(X, BlockTable):
        raise TypeError(
            f"X is of type {type(X).__name__}, whose columns a schema encodes as numbers: fit "
            "TableSchema(...).pipeline(estimator) on it, or TableSchema(...).preprocessor()."
        )
    marks = ("__dataframe__", "__arrow_c_stream__", "collect")
    unknown = not hasattr(X, "__array__") and any(hasattr(X, name) for name in marks)
    if unknown or isinstance(X, Mapping):
        raise TypeError(
            f"X is of type {type(X).__name__}: give an array, a sparse matrix, a pandas or polars "
            "frame or a pyarrow table. Make a frame of a dict, and collect a lazy one."
        )


def refuse_masked(values: Any, name: str = "X") -> None:
    """Refuse masked arrays by their type: masked cells would be used."""
    parts = values if isinstance(values, list | tuple) else (values,)
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise ValueError(
            f"{name} is a masked array, whose mask would be lost. Complete or drop such rows by a "
            "public rule that looks at one row at a time, and give an ordinary array."
        )


def refuse_times(X: Any) -> None:
    """Refuse columns of times by their type: numpy would count nanoseconds, days or years."""
    named: list[tuple[Any, Any]] = [("", getattr(X, "dtype", ""))]
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        named = list(zip(X.columns, X.dtypes, strict=True))
    arrow: Any = getattr(X, "schema", None)
    if hasattr(arrow, "types"):
        named = list(zip(arrow.names, arrow.types, strict=True))
    times = [pair for pair in named if _A_TIME.search(str(pair[1]).lower())]
    if not times and not holds_times(X):
        return
    of = [f" Column {name!r} has type {str(kind).partition('(')[0]}." for name, kind in times]
    raise ValueError(f"X {HOLDS_TIMES}{of[0] if of and times[0][0] != '' else ''}")


def holds_times(values: Any) -> bool:
    """Return whether objects or lists contain times or bytes, which numpy treats as numbers."""
    if isinstance(values, list | tuple):
        with suppress(ValueError):  # ragged lists are refused elsewhere
            found = np.asarray(values)
            # Beside a text numpy makes texts of times and bytes as well.
            values = np.asarray(values, dtype=object) if found.dtype.kind in "SU" else found
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind != "O" or sparse.issparse(values):
        return kind in tuple("mM")
    return any(issubclass(kind, _NO_NUMBERS) for kind in set(map(type, np.asarray(values).flat)))


def nearest_float(value: Any) -> float:
    """Return a number as a float; finite numbers beyond all floats become the largest float."""
    try:
        found = float(value)
    except OverflowError:
        return _LARGEST if value > 0 else -_LARGEST
    if math.isinf(found):
        finite = "inf" not in value.lower() if isinstance(value, str) else value != found
        return math.copysign(_LARGEST, found) if finite else found
    return found


def check_indices(X: Any) -> None:
    """Refuse a sparse matrix with entries outside its shape: compiled code would follow them."""
    if not sparse.issparse(X) or X.ndim != 2:
        return
    sound = True
    try:
        # The constructors look at sizes, at the indices of COO, and never at the caller's flags.
        if X.format == "coo":
            type(X)((X.data, (X.row, X.col)), shape=X.shape)
        elif X.format == "dia":
            type(X)((X.data, X.offsets), shape=X.shape)
        else:
            rows = X if X.format in ("csr", "csc", "bsr") else X.tocsr()
            rows = type(rows)((rows.data, rows.indices, rows.indptr), shape=rows.shape)
            rows.check_format(full_check=True)
            sound = not np.any(np.diff(rows.indptr) < 0)
    except (ValueError, IndexError):
        sound = False
    if not sound:
        raise ValueError(_DAMAGED)


def canonical_rows(X: Any) -> Any:
    """Return the matrix without duplicate entries; the caller's matrix is not changed.

    Finite entries of one cell can add up to infinity, and sums are checked again. A flag that
    reports no duplicates is not trusted, because a caller may have set it.
    """
    if not sparse.issparse(X):
        return X
    rows = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    if rows.has_canonical_format:
        return rows
    rows = rows.copy()
    rows.sum_duplicates()
    if not np.all(np.isfinite(rows.data)):
        raise ValueError(
            "Input X contains infinity, as the sum of entries that are stored more than once for "
            "one row and column."
        )
    return rows


def public_error(error: Exception, *tables: Any) -> Exception:
    """Return the error of a check with the public part of its message.

    For cells that are not numbers, it describes all of them instead of the first.
    """
    message, kind = public_message(str(error)), type(error)
    if message in (_NO_NUMBER, _WITHHELD):
        for kind in filter(None, map(_fault_of_cells, tables)):
            return kind(_NO_NUMBER)
    return (kind if kind in (ValueError, TypeError) else ValueError)(message)


def _fault_of_cells(table: Any) -> type[Exception] | None:
    """Return the kind of error for cells that are not numbers, independently of their place."""
    if not isinstance(table, list | tuple) and not hasattr(table, "__array__"):
        return None
    try:
        cells = np.asarray(table, dtype=object)
    except ValueError:
        return None
    faults = set()
    for cell in cells.flat:
        try:
            float(0.0 if cell is None else cell)
        except Exception as error:
            faults.add(TypeError if isinstance(error, TypeError) else ValueError)
    return min(faults, key=str, default=None)


def public_message(message: str) -> str:
    """Return the part of an error message that quotes no value, or a general one."""
    for pattern, remedy in _REMEDIES:
        found = re.match(pattern, message)
        if found:
            return remedy.format(*found.groups())
    for pattern in _HARMLESS:
        found = re.match(pattern, message)
        if found:
            # With ids the number of rows is private.
            return re.sub(r"shape=\(\d+, 0\)", "shape=(, 0)", found.group(1))
    return _WITHHELD


# By the address of the memory, for as long as the array that owns it lives.
_notes: dict[int, tuple[weakref.ref[Any], float]] = {}


# By what was fitted: its table or what owns its memory, while that lives; where in it rows lie; and
# whether a budget was charged.
_fitted_on: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def note_fit(fitted: Any, rows: Any, charged: bool) -> None:
    """Remember the table of a fit, as an object; its cells are not read."""
    numbers = isinstance(rows, np.ndarray) and rows.dtype.kind in "fiub"
    with suppress(TypeError):  # lists cannot be remembered
        owner = weakref.ref(_owner(rows) if numbers else rows)
        _fitted_on[fitted] = owner, rows.__array_interface__ if numbers else None, charged


def note_table(fitted: Any, table: Any) -> None:
    """Remember the table that the rows of a fit come from, instead of the rows."""
    note_fit(fitted, table, charged=_fitted_on.get(fitted, (None, None, False))[2])


def was_fitted_on(fitted: Any, rows: Any, *, charged: bool = False) -> bool:
    """Return whether a table, or an array in its memory, is that of a fit, or of a charged fit."""
    with suppress(TypeError, np.exceptions.TooHardError):
        owner, place, paid = _fitted_on.get(fitted, (lambda: None, None, False))
        if owner() is None or place is None or paid < charged:
            return owner() is rows is not None and paid >= charged
        # This compares addresses, not values; the memory exists as long as its owner.
        there, work = SimpleNamespace(__array_interface__=place), cast(Any, 10_000)
        return isinstance(rows, np.ndarray) and np.shares_memory(there, rows, max_work=work)
    return False


def resolve_data_norm(data_norm: float | None) -> float:
    """Return the bound on rows that applies: 1.0 if none is given."""
    return 1.0 if data_norm is None else float(data_norm)


def note_bound(rows: Any, norm: float) -> Any:
    """Remember a bound on the norm of rows that own their memory, and return the rows."""
    if isinstance(rows, RowSource):
        rows.norm_bound = float(norm)
        return rows
    if hasattr(rows, "__dask_graph__"):  # has no memory yet
        return rows
    owner = _owner(rows)
    key = owner.ctypes.data
    _notes[key] = weakref.ref(owner, lambda _: _notes.pop(key, None)), float(norm)
    return rows


def known_bound(*tables: Any) -> float | None:
    """Return the noted bound of the first table that has one; copies of rows have none."""
    for table in tables:
        if isinstance(table, RowSource):
            if table.norm_bound is not None:
                return table.norm_bound
            continue
        if not (sparse.issparse(table) or hasattr(table, "__array__")):
            continue
        if hasattr(table, "__dask_graph__"):
            continue
        reference, norm = _notes.get(_owner(table).ctypes.data, (None, 0.0))
        if reference is not None and reference() is not None:
            return norm
    return None


def _owner(rows: Any) -> np.ndarray:
    """Return the array that owns the memory of rows; frames are copied only if necessary."""
    owner = np.asarray(getattr(rows, "data", None) if sparse.issparse(rows) else rows)
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def warn_of_unbounded_rows(
    estimator: Any, tables: tuple[Any, ...], stacklevel: int, bound: float | None = None
) -> bool:
    """Warn if `data_norm` is None and 1.0 is no known bound on the rows; return whether it did."""
    if getattr(estimator, "data_norm", 1.0) is not None:
        return False
    bound = known_bound(*tables) if bound is None else bound
    if bound is not None and bound <= 1.0 + 1e-9:
        return False
    found, remedy = "no step of skdp in front is known to bound its rows", ", a public bound"
    if bound is not None:
        found, remedy = f"the step in front bounds its rows by {bound:.6g}", f"={bound:.6g}"
    warnings.warn(
        f"{type(estimator).__name__} was given no data_norm and takes 1.0, while {found}. "
        "Longer rows are all shortened to 1.0, and may then look alike. Give data_norm"
        f"{remedy}, or bound rows with TableSchema(...).pipeline, BoundedScaler or RowNormClipper.",
        PrivacyWarning,
        stacklevel=stacklevel + 1,
    )
    return True
