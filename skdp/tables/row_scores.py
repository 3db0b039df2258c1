"""Answers of models about rows, each a function of its row only, to the last bit.

Linear algebra rounds by the number of rows, by a row's place among them and by threads. Models are
therefore called with blocks of one public size, on one thread. The last block is filled up with
copies of a row. Lemma 1 of ``docs/proofs/evaluation.md`` gives the guarantee and the models that it
covers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.running import around_runs
from skdp.tables.row_sources import BlockTable, RowSource
from skdp.threads import one_blas_thread

# No power of two that was tried had an effect of a row's place in it, in double precision.
BLOCK_ROWS = 2048
# Answers that are further apart are not so by rounding, in single precision either.
_ROUNDING = 1e-5


class Way(NamedTuple):
    """How to call a model: rows per call, and whether float32 becomes float64."""

    block_rows: int = BLOCK_ROWS
    wide: bool = False


class Probe(NamedTuple):
    """Properties of a model that invented rows reveal."""

    way: Way = Way()
    known: bool = False  # whether the model took them, and told them apart
    mixes: bool = False  # whether an answer depends on more than its row


def ask_rows(
    function: Callable[..., Any], X: Any, *columns: Any, way: Way | None = None
) -> NDArray[Any]:
    """Return ``function(rows, *columns)`` for all rows of a table in memory, block by block."""
    size, wide = way or Way()
    if not (hasattr(X, "shape") or hasattr(X, "__len__")):  # it says no more than its numbers
        X = np.asarray(X)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n == 0:
        return np.asarray(function(X, *columns))
    tables = (X.tocsr() if sparse.issparse(X) else X, *columns)
    found = []
    with _one_thread():
        for start in range(0, n, size):
            block, *beside = (_filled(table, start, min(start + size, n), size) for table in tables)
            if sparse.issparse(X):
                block = block.asformat(X.format)
            if wide and getattr(block, "dtype", None) == np.float32:
                block = block.astype(np.float64)
            answer = np.asarray(function(block, *beside))
            if answer.shape[:1] != (size,):
                raise ValueError("the answer must have one entry for each row.")
            found.append(answer[: n - start].copy())
    return np.concatenate(found)


def _filled(table: Any, start: int, stop: int, size: int) -> Any:
    """Return rows, filled up to a number with copies of the last one."""
    rows = take_block(table, slice(start, stop))
    have = stop - start
    return rows if have == size else take_block(rows, np.minimum(np.arange(size), have - 1))


def take_block(table: Any, part: Any) -> Any:
    """Return a slice of rows, or rows by number, in a layout independent of the table's."""
    if isinstance(table, np.ndarray):
        return np.require(np.asarray(table[part]), requirements=["C", "A"])
    if hasattr(table, "iloc"):
        # Taken out of rows in reverse, columns lie one after another, of frames of one row too.
        rows = table.iloc[part]
        return _in_double(rows.iloc[::-1].iloc[np.arange(len(rows))[::-1]].copy())
    if hasattr(table, "column_names"):  # of Arrow
        return table.take(np.r_[part])
    if sparse.issparse(table):
        return table.tocsr()[part]
    if hasattr(table, "shape"):
        return table[part]
    rows = table[part] if isinstance(part, slice) else [table[number] for number in part]
    return [_of_python(row) for row in rows] if isinstance(rows, list) else rows


def _in_double(frame: Any) -> Any:
    """Return a frame without single precision, where one cell's type could decide for all."""
    if frame.ndim < 2:
        return frame.astype(np.float64) if frame.dtype == np.float32 else frame
    narrow = [name for name, kind in frame.dtypes.items() if kind == np.float32]
    if len(narrow) == frame.shape[1]:
        return frame.astype(np.float64)  # names may come twice
    return frame.astype(dict.fromkeys(narrow, np.float64)) if frame.columns.is_unique else frame


def _of_python(row: Any) -> Any:
    """Return a row of a list with Python's numbers: numpy doubles would make a block double."""
    if isinstance(row, np.ndarray | np.generic):
        return row.tolist()
    cells = set(map(type, row)) if type(row) in (list, tuple) else set()
    some = any(issubclass(kind, np.generic | np.ndarray) for kind in cells)
    return type(row)(map(_of_python, row)) if some else row


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit BLAS and joblib to one thread: forests sum their trees in the order of threads."""
    from joblib import parallel_config

    with one_blas_thread(), parallel_config(backend="sequential"):
        yield


def probe(function: Callable[[Any], Any], X: Any, n_columns: int | None = None) -> Probe:
    """Call a model with invented rows of the kind of `X`; no row of `X` is read.

    Answers must not depend on a row's place or on other rows. If they do only by rounding, the
    model is called in double precision, or with one row at a time.
    """
    ways = [Way()]
    if getattr(X, "dtype", None) == np.float32:
        ways.append(Way(wide=True))
    with around_runs(), _one_thread():
        for table in _made_up_tables(X, n_columns):
            for way in ways:
                gap = _largest_gap(function, table, way)
                if gap is None:  # another table may suit the model
                    break
                if gap == 0.0:
                    return Probe(way, known=True)
                if gap > _ROUNDING:
                    return Probe(Way(1), known=True, mixes=True)
            else:
                return Probe(Way(1), known=True)
    return Probe()


def _largest_gap(function: Callable[[Any], Any], rows: Any, way: Way) -> float | None:
    """Return the largest change of answers with places and other rows; None if unknown.

    It is relative to the largest answer, and 0 only if no bit changes.
    """
    backwards = np.arange(BLOCK_ROWS)[::-1]
    in_turn = np.arange(BLOCK_ROWS) % 2
    try:
        first = ask_rows(function, rows, way=way)
        orders = (backwards, in_turn, 1 - in_turn)
        others = [ask_rows(function, take_block(rows, order), way=way) for order in orders]
    except (Exception, SystemExit):
        return None
    if (first == first[:1]).all():
        return None
    expected = [first[order] for order in orders]
    return max(_gap(*pair) for pair in zip(expected, others, strict=True))


def _gap(one: NDArray[Any], other: NDArray[Any]) -> float:
    if one.dtype.kind != "f" or one.shape != other.shape:
        return 0.0 if np.array_equal(one, other) else np.inf
    if np.array_equal(one, other, equal_nan=True):
        return 0.0
    scale = np.max(np.abs(one), initial=1e-300, where=np.isfinite(one))
    alike = np.allclose(one, other, 0.0, _ROUNDING * scale, equal_nan=True)
    return 0.5 * _ROUNDING if alike else np.inf


def _made_up_tables(X: Any, n_columns: int | None) -> Iterator[Any]:
    """Yield tables of a block of rows: normal numbers, sizes, and texts if possible."""
    generator = np.random.default_rng(BLOCK_ROWS)
    shape = getattr(X, "shape", (0,))
    columns = shape[1:] or ((n_columns,) if n_columns else ())
    numbers = generator.normal(size=(BLOCK_ROWS, *columns))
    for values in (numbers, 4.0 * np.abs(numbers)):
        with suppress(Exception):
            yield _like(X, values)
    if len(shape) < 2:
        words = generator.integers(0, 100, size=(BLOCK_ROWS, 8))
        with suppress(Exception):
            yield _like(X, [" ".join(f"word{word}" for word in row) for row in words])


def _like(X: Any, values: Any) -> Any:
    """Return numbers as a table of the kind of another, with its types of columns."""
    if isinstance(X, RowSource):
        return sparse.csr_array(values, dtype=X.dtype) if X.is_sparse else values.astype(X.dtype)
    if isinstance(X, BlockTable):
        X = X.read(0, 0)
    if isinstance(X, np.ndarray):
        return np.asarray(values).astype(X.dtype)
    if sparse.issparse(X):
        return type(X)(values.astype(X.dtype))
    if hasattr(X, "iloc") and X.ndim == 1:
        return type(X)(values, dtype=X.dtype)
    if hasattr(X, "iloc"):
        return type(X)(values, columns=X.columns).astype(dict(X.dtypes))
    if hasattr(X, "schema"):
        return type(X)(values, schema=list(X.columns)).cast(dict(X.schema))
    return values if isinstance(values, list) else values.tolist()
