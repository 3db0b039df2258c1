"""Tables that are read block by block: arrays that lie in files, and whatever else can read rows.

Sums over rows take blocks in order, one at a time, so that no more than a block is in memory.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Memory for the rows of one block, and up to which size a file is one that is used where it lies.
BLOCK_BYTES, WHOLE_BYTES = 1 << 25, 1 << 30
# Fewest rows of a block: bounds on the rounding of sums count so many sums of blocks at most.
FEWEST_ROWS = 1 << 10

Index = NDArray[np.int64]


class RowSource(ABC):
    """A table of float32 or float64 numbers whose rows are read when they are used.

    It must not change while it is in use. The checks of inputs make one of what they find in files;
    partitions of other machines or of other formats are to be subclasses.
    """

    ndim = 2
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    is_sparse = False
    row_bytes: float  # of a row in memory, about
    in_place: bool = False  # whether rows that are read are no copies
    assumptions: tuple[str, ...] = ()  # what the guarantee takes for granted of the table

    @abstractmethod
    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop``, C-contiguous, or CSR with no entry stored twice."""

    @property
    def block_rows(self) -> int:
        """Number of rows that are in memory at once."""
        if self.in_place and self.shape[0] * self.row_bytes <= WHOLE_BYTES:
            return max(1, self.shape[0])
        return self._small_block

    @property
    def is_one_block(self) -> bool:
        """Whether all rows are read at once, wherever some are wanted."""
        return self.block_rows >= self.shape[0]

    @property
    def _small_block(self) -> int:
        return max(FEWEST_ROWS, int(BLOCK_BYTES / max(self.row_bytes, 1.0)))

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Yield the first row and the end of each block, in order."""
        for start in range(0, self.shape[0], self.block_rows):
            yield start, min(start + self.block_rows, self.shape[0])

    def blocks(self) -> Iterator[tuple[int, int, Any]]:
        """Yield all blocks of rows in order, each with its first row and its end."""
        for start, stop in self.bounds():
            yield start, stop, self.read(start, stop)

    def map(
        self,
        function: Callable[..., Any],
        columns: Sequence[Any] = (),
        index: Index | None = None,
        small: bool = False,
    ) -> Iterator[Any]:
        """Yield ``function(block, chosen, *columns)`` for blocks of rows, always in one order.

        `chosen` are the numbers in the block of those in `index`, None for all. Columns hold what
        belongs to each row, or are None; `small` blocks are asked for where results are as long.
        """
        at_once = self._small_block if small else self.block_rows
        if index is None or self.is_one_block:
            for start in range(0, self.shape[0], at_once):
                own = slice(start, min(start + at_once, self.shape[0]))
                yield function(self.read(own.start, own.stop), index, *_some(columns, own))
        else:
            index = np.sort(index)
            for k in range(0, index.size, at_once):
                some = index[k : k + at_once]
                yield function(self.take(some), None, *_some(columns, some))

    def column(self, function: Callable[..., Any], columns: Sequence[Any] = ()) -> NDArray[Any]:
        """Return the numbers that a function gives for each row, as `map` calls it."""
        found, start = np.empty(self.shape[0]), 0
        for own in self.map(function, columns):
            found[start : start + own.size] = own
            start += own.size
        return found

    def take(self, index: Index) -> Any:
        """Return a copy of the rows of ascending numbers, reading no block without any of them."""
        found = []
        for start, stop in self.bounds():
            own = slice(*np.searchsorted(index, (start, stop)))
            if own.start < own.stop:
                block, rows = self.read(start, stop), index[own] - start
                found.append(block[rows] if self.is_sparse else block.take(rows, axis=0))
        if not found:
            return self.read(0, 0)
        if self.is_sparse:
            return sparse.vstack(found, format="csr")
        return np.concatenate(found)

    def __getitem__(self, rows: Any) -> Any:
        """Return a slice of rows in memory, or a source of the rows of any numbers."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            return self.read(start, stop)
        return ChosenRows(self, np.asarray(rows))


class ChosenRows(RowSource):
    """Rows of another source by their numbers, in any order."""

    def __init__(self, source: RowSource, rows: Index) -> None:
        self._source, self._rows = source, rows
        self.shape = (rows.size, source.shape[1])
        self.dtype, self.is_sparse = source.dtype, source.is_sparse
        self.row_bytes = source.row_bytes

    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop``, which are read in the order of the source."""
        return self.take(np.arange(start, stop))

    def take(self, index: Index) -> Any:
        """Return rows by their places among the chosen."""
        rows = self._rows[index]
        order = np.argsort(rows, kind="stable")
        return self._source.take(rows[order])[np.argsort(order)]


class MappedRows(RowSource):
    """Rows of an array or a CSR matrix in files that are mapped into memory.

    C-ordered float32 and float64 are used where they lie; of others a block is converted at a time,
    to float64 if so wished.
    """

    has_duplicates = False  # whether entries of a CSR matrix are stored twice; a check finds out

    def __init__(self, X: Any, converted: bool = True) -> None:
        self._X, self.shape, self.is_sparse = X, X.shape, sparse.issparse(X)
        kept = not converted or X.dtype in (np.float32, np.float64)
        self.dtype = np.dtype(X.dtype if kept else np.float64)
        mappings = map(_mapping_of, _arrays_of(X))
        self._mappings = [mapping for mapping in mappings if mapping is not None]
        self.row_bytes = float(self.shape[1] * self.dtype.itemsize)
        if self.is_sparse:
            entry_bytes = self.dtype.itemsize + X.indices.itemsize
            self.row_bytes = X.indices.size * entry_bytes / max(self.shape[0], 1) + 8.0
        aligned = all(array.flags.aligned for array in _arrays_of(X))
        ordered = X.indices.dtype == np.int32 if self.is_sparse else X.flags.c_contiguous
        self._as_stored = bool(kept and aligned and ordered)

    @property
    def in_place(self) -> bool:  # type: ignore[override]
        """Whether rows are used as they are stored."""
        return self._as_stored and not self.has_duplicates

    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop``; what was read before leaves memory."""
        block = self.raw(start, stop)
        if self.has_duplicates:
            block = block.copy()
            block.sum_duplicates()
        return block

    def raw(self, start: int, stop: int) -> Any:
        """Return rows as they are stored, perhaps with entries that stand for one together."""
        # What the process has mapped counts as its memory until the system wants it for others.
        if hasattr(mmap, "MADV_DONTNEED") and stop - start < self.shape[0]:
            for mapping in self._mappings:
                mapping.madvise(mmap.MADV_DONTNEED)
        with np.errstate(all="ignore"):  # of wider numbers a warning would tell
            if not self.is_sparse:
                return np.require(self._X[start:stop], self.dtype, ["C", "A"]).view(np.ndarray)
            data, indices, indptr = _arrays_of(self._X)
            first, last = int(indptr[start]), int(indptr[stop])
            entries = (data[first:last].astype(self.dtype, copy=False), indices[first:last])
        shape = (stop - start, self.shape[1])
        return type(self._X)((*entries, indptr[start : stop + 1] - first), shape)


def mapped_rows(X: Any, converted: bool = True) -> MappedRows | None:
    """Return the rows of a dense array or CSR matrix of numbers that lies in a file, else None."""
    known = X.format == "csr" if sparse.issparse(X) else type(X) in (np.ndarray, np.memmap)
    if not known or X.ndim != 2 or X.dtype.kind not in "biuf":
        return None
    return MappedRows(X, converted) if any(map(_mapping_of, _arrays_of(X))) else None


def map_rows(function: Callable[..., Any], X: Any, *columns: Any) -> list[Any]:
    """Return ``function(rows, *columns)`` of a table in memory, or of small blocks of a source."""
    if not isinstance(X, RowSource):
        return [function(X, *columns)]
    return list(X.map(partial(_of_all, function), columns, small=True))


def in_blocks(function: Callable[[Any], NDArray[Any]], X: Any) -> NDArray[Any]:
    """Return what a function gives for the rows of a table, at which it looks piece by piece."""
    found = map_rows(function, X)
    return found[0] if len(found) == 1 else np.concatenate(found)


def _of_all(function: Callable[..., Any], block: Any, chosen: None, *columns: Any) -> Any:
    return function(block, *columns)


def _some(columns: Sequence[Any], rows: Any) -> list[Any]:
    """Return the entries of columns that belong to some rows."""
    return [None if column is None else column[rows] for column in columns]


def _arrays_of(X: Any) -> list[NDArray[Any]]:
    """Return the arrays that a dense or CSR matrix is made of."""
    return [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]


def _mapping_of(array: Any) -> mmap.mmap | None:
    """Return the file that an array lies in, if forgetting what was read of it changes nothing."""
    mode = None
    while isinstance(array, np.ndarray):
        mode, array = getattr(array, "mode", mode), array.base
    # Changes of a copy on write lie in memory alone, and would be lost.
    return array if isinstance(array, mmap.mmap) and mode in ("r", "r+", "w+") else None
