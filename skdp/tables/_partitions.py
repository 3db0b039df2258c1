"""Rows of Dask arrays in partitions, on this machine or on a cluster.

Functions of rows are called where partitions are stored, and their results are added up here.
Batches are also sampled here, and row numbers are sent. A task gives the same result on any worker
and any number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import RowsChangedError
from skdp.tables import _dask_tables as of_dask
from skdp.tables._dask_tables import delayed, persist
from skdp.tables.digests import Digester
from skdp.tables.row_sources import FEWEST_ROWS, Index, RowSource

# Fewest rows of a partition, and of a sum on average: see FEWEST_ROWS.
_FEWEST_ROWS = 2 * FEWEST_ROWS
# Partitions whose results are in memory at once, and bytes that are sent at once to stay there.
_AT_ONCE, _SENT_BYTES = 64, 1 << 23


def dask_rows(X: Any, converted: bool = True) -> DaskRows | None:
    """Return the rows of an array of Dask; None if it is refused as it is in memory."""
    if not isinstance(X._meta, np.ndarray) or X.dtype.kind not in "biufc":
        raise TypeError(
            f"X is a dask array of {type(X._meta).__name__} of {X.dtype}: its blocks must be "
            "numpy arrays of numbers."
        )
    if X.ndim != 2 or X.dtype.kind == "c":
        return None
    X = of_dask.sized(X)
    if X.shape[0] == 0:
        return None
    kept = not converted or X.dtype in (np.float32, np.float64)
    merged = X.rechunk({0: _merged(X.chunks[0]), 1: -1})
    blocks, sizes = list(merged.to_delayed().ravel()), merged.chunks[0]
    rows = DaskRows(blocks, sizes, X.shape[1], X.dtype if kept else np.dtype(np.float64))
    rows.given = X, merged
    return rows


def _merged(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return sizes of merged partitions with enough rows, if the table has enough."""
    found, total = [], 0
    for size in sizes:
        total += size
        if total >= _FEWEST_ROWS:
            found.append(total)
            total = 0
    return (*found[:-1], sum(found[-1:]) + total) if total else tuple(found)


class _Call(NamedTuple):
    """The function of a task and the required form of its block; sent once for all partitions."""

    function: Callable[..., Any]
    n_columns: int
    dtype: np.dtype[Any]
    digester: Digester


class _Answer(NamedTuple):
    """The result of a task, and the digest of its partition."""

    number: int
    digest: bytes
    found: Any


class DaskRows(RowSource):
    """Rows in partitions; `places` are row numbers in the order of partitions, None for all.

    If few rows per partition are needed, they are sent here, like rows of a file. A partition that
    has changed since it was first computed is refused: norms, targets and ids of its rows are
    computed once.
    """

    is_one_block = False
    assumptions = of_dask.CHECKED, of_dask.TRUSTED
    given: Any = None  # the array, and that of larger partitions which are those of the rows

    def __init__(
        self,
        blocks: list[Any],
        sizes: Sequence[int],
        n_columns: int,
        dtype: np.dtype[Any],
        places: Index | None = None,
    ) -> None:
        self._blocks, self._places = blocks, places
        self._ends = np.cumsum([0, *sizes])
        self.shape = (int(self._ends[-1]), n_columns)
        self.dtype, self.row_bytes = dtype, float(n_columns * dtype.itemsize)
        # Columns that lie beside the partitions, by the array that they were cut from.
        self._beside: dict[int, tuple[Any, list[Any]]] = {}
        self._digester = Digester()
        self._digests: dict[int, bytes] = {}  # by the number of the partition
        self._changed = False

    def look(self, function: Callable[..., Any], beside: Any) -> list[Any]:
        """Return the results of a function on partitions, and read other columns with them.

        Information from rows, such as a change, may be reported only after a charge.
        """
        try:
            if beside is None or not beside.is_lazy or self.given is None:
                return list(self.map(function))
            # What is optimised for rows alone would be read anew for columns that come of the same.
            alike = list(self.given[1].to_delayed(optimize_graph=False).ravel())
            tasks = self._tasks(function, (), self._chosen(None), alike)
            return [self._found(answer) for answer in beside.read(tasks)]
        except RowsChangedError:
            self._changed = True
            return []

    def note_rows(self) -> None:
        """Do nothing: each pass compares its partitions."""

    def check_rows(self) -> None:
        """Do nothing: see `note_rows`."""

    def encoded(self, encode: Callable[[Any], Any], few: Any, alone: bool = True) -> Any:
        """Return the lazy array of rows that a function encodes where they are stored."""
        if self.given is None:
            return super().encoded(encode, few, alone)
        return of_dask.map_parts(self.given[0], encode, few)

    def map(
        self,
        function: Callable[..., Any],
        columns: Sequence[Any] = (),
        index: Index | None = None,
        small: bool = False,
    ) -> Iterator[Any]:
        """Yield ``function(block, chosen, *columns)`` of partitions, several at once, in order."""
        if self._too_few(self.shape[0] if index is None else index.size):
            return super().map(function, columns, index, small)
        return self._results(self._tasks(function, columns, self._chosen(index)))

    def column(self, function: Callable[..., Any], columns: Sequence[Any] = ()) -> NDArray[Any]:
        """Return the numbers that a function gives for each row; they stay with it, too."""
        if self._too_few(self.shape[0]):
            return super().column(function, columns)
        kept = persist(self._tasks(function, columns, self._chosen(None)))
        found = np.concatenate(list(self._results(kept)))
        if self._places is not None:
            found = found[self._places]
        self._beside[id(found)] = found, list(kept)
        return found

    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop``, sent here."""
        return self.take(np.arange(start, stop))

    def take(self, index: Index) -> Any:
        """Return rows by ascending numbers, sent here."""
        places = index if self._places is None else self._places[index]
        order = np.argsort(places, kind="stable")
        found = self._results(self._tasks(_take, (), self._split(places[order])))
        table = np.concatenate([np.empty((0, self.shape[1]), self.dtype), *found])
        return table if self._places is None else table[np.argsort(order)]

    def __getitem__(self, rows: Any) -> Any:
        """Return a slice of rows in memory, or a source of rows that stay where they are."""
        if isinstance(rows, slice):
            return super().__getitem__(rows)
        places = np.asarray(rows) if self._places is None else self._places[rows]
        order = np.argsort(places, kind="stable")
        chosen = self._split(places[order])
        if len(self._digests) < len(self._blocks):
            list(self._results(self._tasks(_nothing, (), self._chosen(None))))
        call = delayed(_Call(_take, self.shape[1], self.dtype, self._digester), traverse=False)
        pick = delayed(_run_alike)
        known = [self._digests[k] for k in range(len(self._blocks))]
        given = known, np.diff(self._ends), self._blocks, _send(chosen)
        blocks = list(map(partial(pick, call), *given))
        new = [own.size for own in chosen]
        kept = [k for k, size in enumerate(new) if size]
        return DaskRows(
            *([blocks[k] for k in kept], [new[k] for k in kept], self.shape[1], self.dtype),
            places=np.argsort(order),
        )

    def _too_few(self, n_rows: int) -> bool:
        return n_rows < _FEWEST_ROWS * len(self._blocks)

    def _chosen(self, index: Index | None) -> list[Any]:
        """Return the rows of each partition with numbers in the index."""
        if index is None:
            return [None] * len(self._blocks)
        return self._split(np.sort(index if self._places is None else self._places[index]))

    def _split(self, places: Index) -> list[Index]:
        """Return ascending places as numbers of rows in each partition."""
        parts = np.split(places, np.searchsorted(places, self._ends[1:-1]))
        return [part - first for part, first in zip(parts, self._ends, strict=False)]

    def _tasks(
        self, function: Any, columns: Sequence[Any], chosen: list[Any], blocks: Any = None
    ) -> list[Any]:
        """Return one task for each partition with chosen rows."""
        if self._changed:
            raise RowsChangedError()
        call = _Call(function, self.shape[1], self.dtype, self._digester)
        call, run = delayed(call, traverse=False), delayed(_run)
        own = [self._kept_beside(column) for column in columns]
        sizes = np.diff(self._ends)
        parts = zip(enumerate(sizes), blocks or self._blocks, chosen, *own, strict=True)
        return [
            run(call, *numbered, block, numbers, *beside)
            for numbered, block, numbers, *beside in parts
            if numbers is None or numbers.size
        ]

    def _kept_beside(self, column: Any) -> list[Any]:
        """Return the parts of a column, which are sent to the partitions once."""
        if column is None:
            return [None] * len(self._blocks)
        if id(column) not in self._beside:
            ordered = column if self._places is None else column[np.argsort(self._places)]
            parts = _send(np.split(ordered, self._ends[1:-1]))
            self._beside[id(column)] = column, parts
        return self._beside[id(column)][1]

    def _results(self, tasks: list[Any]) -> Iterator[Any]:
        for first in range(0, len(tasks), _AT_ONCE):
            yield from map(self._found, of_dask.compute(tasks[first : first + _AT_ONCE]))

    def _found(self, answer: Any) -> Any:
        """Return the result of a task, if its partition has not changed."""
        if isinstance(answer, _Failed):
            raise (RowsChangedError() if answer.changed else RuntimeError(of_dask.FAILED))
        if self._digests.setdefault(answer.number, answer.digest) != answer.digest:
            raise RowsChangedError()
        return answer.found


class _Failed(NamedTuple):
    """The result of a task in place of an error, which workers would write to their logs."""

    changed: bool = False


def _run(
    call: _Call, number: int, size: int, block: Any, chosen: Any, *columns: Any
) -> _Answer | _Failed:
    """Call a function with the block of a partition, if the block is as declared."""
    if isinstance(block, _Failed):  # of rows that were chosen before
        return block
    try:
        # Compiled code would read beyond the end of shorter blocks, or of narrower ones.
        known = type(block) in (np.ndarray, np.memmap)
        if not known or block.shape != (size, call.n_columns) or block.dtype.kind not in "biuf":
            return _Failed()
        digest = call.digester.digest_again(block)
        columns = tuple(c.found if isinstance(c, _Answer) else c for c in columns)
        with np.errstate(all="ignore"):
            rows = np.require(np.asarray(block), call.dtype, ["C", "A"])
            return _Answer(number, digest, call.function(rows, chosen, *columns))
    except Exception:
        return _Failed()


def _run_alike(call: _Call, digest: bytes, *given: Any) -> Any:
    """Return the result of a function on a partition, if the partition has not changed."""
    answer = _run(call, 0, *given)
    if isinstance(answer, _Answer) and answer.digest != digest:
        return _Failed(changed=True)
    return answer.found if isinstance(answer, _Answer) else answer


def _nothing(block: Any, chosen: None) -> None:
    return None


def _take(block: Any, chosen: Index) -> Any:
    return block.take(chosen, axis=0)


def _send(parts: Sequence[NDArray[Any]]) -> list[Any]:
    """Return parts of a column as completed tasks, which can be repeated elsewhere."""
    task = delayed(np.ascontiguousarray)
    at_once = max(1, _SENT_BYTES // max(1, *(part.nbytes for part in parts)))
    sent: list[Any] = []
    for k in range(0, len(parts), at_once):
        sent += persist(map(task, parts[k : k + at_once]))
    return sent
