"""Tables and columns in memory, in files, or in partitions of Dask.

Callers of these functions need not distinguish the three.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import RowsChangedError
from skdp.tables import _dask_tables as of_dask
from skdp.tables._dask_tables import is_dask_array, is_of_dask
from skdp.tables._partitions import dask_rows
from skdp.tables.digests import Digester
from skdp.tables.row_sources import BlockTable, ChosenTable, RowSource, in_blocks, source_of
from skdp.tables.units import HoldoutRule

Method = TypeVar("Method", bound=Callable[..., Any])
Read = Callable[[Any], NDArray[Any]]


def row_source(X: Any, converted: bool = True) -> RowSource | None:
    """Return the source of a table's rows if they are not in memory, else None."""
    return dask_rows(X, converted) if is_dask_array(X) else source_of(X, converted)


def is_read_later(X: Any) -> bool:
    """Return whether a table's rows are read only when they are used."""
    return isinstance(X, BlockTable) or is_of_dask(X)


def taken_for_granted(*tables: Any) -> tuple[str, ...]:
    """Return the assumptions of a guarantee about the storage of tables and columns."""
    said = [table.assumptions for table in tables if isinstance(table, BlockTable)]
    said += [(of_dask.CHECKED, of_dask.TRUSTED)] if any(map(is_of_dask, tables)) else []
    return tuple(dict.fromkeys(text for texts in said for text in texts))


def without_rows(X: Any) -> Any:
    """Return an empty table in memory, with the same columns and types, for a table of Dask."""
    if not is_dask_array(X):
        return X._meta if is_of_dask(X) else X
    empty = np.empty((0, *X.shape[1:]), X.dtype)
    return np.ma.asarray(empty) if isinstance(X._meta, np.ma.MaskedArray) else empty


def counted(X: Any) -> Any:
    """Return a table with a known number of rows, or a column of this length."""
    sizes = getattr(X, of_dask.SIZES, None)
    return of_dask.sized(X) if sizes is None else np.broadcast_to(0, (sum(sizes),))


def in_memory(*given: Any) -> list[Any]:
    """Return tables and columns in memory; lazy ones are computed together."""
    return Columns(*given).found


def whole(X: Any) -> Any:
    """Return a table of columns in memory, including tables that no source converts to numbers."""
    of_columns = isinstance(X, BlockTable) and not isinstance(X, RowSource)
    return X[: X.shape[0]] if of_columns else X


def read_each(asked: Sequence[tuple[Read, Any]]) -> list[NDArray[Any]]:
    """Return the results of functions on the rows of tables; lazy ones are computed together.

    Functions are called where the rows are stored.
    """
    answers = of_dask.ask_each([pair for pair in asked if is_of_dask(pair[1])])
    return [
        _joined(answers.pop(0), function, X) if is_of_dask(X) else function(X)
        for function, X in asked
    ]


def _joined(answers: Sequence[Any], function: Read, X: Any) -> NDArray[Any]:
    """Return the joined answers of those parts that have rows."""
    rows = [piece for piece in answers if piece is not None]
    return np.concatenate(rows) if rows else function(without_rows(X))


def split_columns(
    frame: Any, features: list[str], columns: Sequence[tuple[str, Read]]
) -> tuple[Any, list[NDArray[Any]]]:
    """Return the features of a frame, and the results of functions on named columns.

    Each partition of Dask is read once for all of it. Its rows are refused later if they, or the
    other columns, have changed.
    """
    if not is_of_dask(frame):
        return frame[features], [in_blocks(read, frame[[name]]) for name, read in columns]
    frame = frame[list(dict.fromkeys((*features, *(name for name, _ in columns))))]
    digester, functions = Digester(), [read for _, read in columns]
    (found,) = of_dask.ask_each([(partial(_read_all, digester, functions), frame)])
    empty = (None, 0), *(None for _ in columns)
    known, *parts = zip(*(empty if part is None else part for part in found), strict=True)
    cells = [_joined(own, read, frame) for own, read in zip(parts, functions, strict=True)]
    return of_dask.sealed(frame, digester, known, features), cells


def divide(table: Any, ids: tuple[str, Read] | None, rule: HoldoutRule) -> tuple[Any, Any]:
    """Return the rows of a table that a rule does not hold out, and those that it does.

    Rows are assigned by a function of the column of ids, or by their numbers.
    """
    if ids is None and is_of_dask(table):
        table = of_dask.sealed_as_it_is(table)
    if ids is None:
        held = rule.of_numbers(0, counted(table).shape[0])
    else:
        (given,) = read_each([(partial(in_blocks, ids[1]), table[[ids[0]]])])
        held = rule.of_ids(given)
    if held.all() or not held.any():
        raise ValueError(
            "split_holdout would leave one half without rows. Give another share or another seed. "
            "Use a different seed to divide a half again."
        )
    if is_of_dask(table):
        return of_dask.divided(table, None if ids is None else ids[1], rule)
    kept, out = (_rows_of(table, np.flatnonzero(side)) for side in (~held, held))
    return kept, out


def _rows_of(table: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(table, BlockTable):
        return ChosenTable(table, rows)
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _read_all(digester: Digester, functions: Sequence[Read], part: Any) -> Any:
    return of_dask.know(digester, part), *(function(part) for function in functions)


class Columns:
    """Columns of a table, such as labels and ids, which are read with it in one computation.

    Otherwise partitions with an unstable order of rows would give rows the wrong labels.
    """

    def __init__(self, *given: Any) -> None:
        self._given, self._lazy = given, list(filter(is_of_dask, given))
        self._digester = Digester()
        self._digests: list[bytes] = []
        self._found = None if self._lazy else list(given)

    @property
    def is_lazy(self) -> bool:
        """Whether any of them is lazy."""
        return bool(self._lazy)

    @property
    def found(self) -> list[Any]:
        """The columns in memory."""
        if self._found is None:
            self.read()
        return self._found or []

    def read(self, tasks: Sequence[Any] = ()) -> list[Any]:
        """Read columns, and return the results of tasks about rows of the table."""
        answers, columns = self._compute(tasks)
        self._digests = list(map(self._digester.digest, columns))
        self._found = [columns.pop(0) if is_of_dask(c) else c for c in self._given]
        return answers

    def _compute(self, tasks: Sequence[Any] = ()) -> tuple[list[Any], list[Any]]:
        lazy = [of_dask.parts_of(column, alone=False) for column in self._lazy]
        answers, *columns = of_dask.compute_together([tasks, *lazy])
        return answers, list(map(of_dask.joined, columns))

    def seal(self, X: Any) -> Any:
        """Read columns, and return a table that refuses its rows if they change."""
        if not (self._lazy and is_of_dask(X)):
            return X
        X = of_dask.sized(X)
        ask = of_dask.delayed(partial(of_dask.know, self._digester))
        try:
            known = self.read([ask(part) for part in of_dask.parts_of(X, alone=False)])
        except RowsChangedError:  # is said again by what will be paid for
            return X
        return of_dask.sealed(X, self._digester, known)

    def check_rows(self) -> None:
        """Read columns again, and refuse them if they have changed."""
        if self._lazy and list(map(self._digester.digest, self._compute()[1])) != self._digests:
            raise RowsChangedError()


def row_by_row(method: Method) -> Method:
    """Make a model's method of rows return a lazy array for an array of Dask.

    Workers receive the model without its budget.
    """

    @wraps(method)
    def of_rows(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_dask_array(X) or X.ndim != 2:
            return method(self, X, *args, **options)
        left_here = ("accountant", "_bound_accountant", "random_state")
        state = {name: value for name, value in vars(self).items() if name not in left_here}
        apply = partial(_apply, type(self), state, method.__name__, args, options)
        return of_dask.map_parts(X, apply, apply(np.zeros((1, X.shape[1]), X.dtype)))

    return of_rows  # type: ignore[return-value]


def _apply(kind: type, state: dict[str, Any], name: str, args: Any, options: Any, X: Any) -> Any:
    model: Any = object.__new__(kind)
    vars(model).update(state)
    return getattr(model, name)(X, *args, **options)


def as_rows_are_read(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method that reads columns, or encodes each row by itself, accept tables of Dask."""

    @wraps(method)
    def call(transformer: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        few = method(transformer, without_rows(X), *arguments, **options)
        if few is transformer or not is_of_dask(X):
            return few
        # A later fit is not to change rows that are yet to be encoded.
        return of_dask.map_parts(X, partial(_transform, copy.deepcopy(transformer)), few)

    return call


def _transform(transformer: Any, part: Any) -> Any:
    for step in (transformer, *(step for _, step, _ in getattr(transformer, "transformers_", ()))):
        if hasattr(step, "_tells"):  # it is no word such as "drop"
            step._tells = False  # a part may have none of what is listed
    return transformer.transform(part)
