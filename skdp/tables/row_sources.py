"""Tables that are read block by block: arrays in files, and other sources of rows.

Sums over rows take blocks in order, one at a time, with only one block in memory.
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

from skdp.exceptions import RowsChangedError
from skdp.running import shown_in_percent
from skdp.tables._kept_rows import KeptRows
from skdp.tables.digests import Digester

# Memory for the rows of one block, and up to which size a file is one that is used where it lies.
BLOCK_BYTES, WHOLE_BYTES = 1 << 25, 1 << 30
# Fewest rows of a block: bounds on the rounding of sums count so many sums of blocks at most.
FEWEST_ROWS = 1 << 10

Index = NDArray[np.int64]


class BlockTable(ABC):
    """A table with rows that are read when they are used, a block at a time.

    It must not change while it is in use, which is checked.
    """

    ndim = 2
    shape: tuple[int, int]
    row_bytes: float  # of a row in memory, about
    in_place: bool = False  # whether rows that are read are no copies
    assumptions: tuple[str, ...] = ()  # assumptions of the guarantee about the table
    folder: Any = None  # of its files, if their encoded rows are worth storing
    _source: Any = None  # the table that these rows come from
    _seen: tuple[Digester, bytes] | None = None

    @abstractmethod
    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop`` in memory."""

    def note_rows(self) -> None:
        """Note the present rows: those of the source, or digests of all blocks."""
        if self._source is not None:
            self._source.note_rows()
        else:
            digester = Digester()
            self._seen = digester, self._digest_rows(digester)

    def check_rows(self) -> None:
        """Refuse rows that have changed since they were noted."""
        if self._source is not None:
            self._source.check_rows()
        elif self._seen is not None and self._digest_rows(self._seen[0]) != self._seen[1]:
            raise RowsChangedError()

    def check_stamps(self) -> None:
        """Refuse rows if their files show a change, without reading them."""
        if self._source is not None:
            self._source.check_stamps()

    def _digest_rows(self, digester: Digester) -> bytes:
        return digester.digest(b"".join(digester.digest(block) for _, _, block in self.blocks()))

    @property
    def block_rows(self) -> int:
        """Number of rows that are in memory at once."""
        if self.in_place and self.shape[0] * self.row_bytes <= WHOLE_BYTES:
            return max(1, self.shape[0])
        return self._small_block

    @property
    def is_one_block(self) -> bool:
        """Whether all rows are always read at once."""
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

        `chosen` contains the numbers in the block of the rows in `index`, None for all. Columns
        contain a value per row, or are None. Use `small` blocks if results are as long as rows.
        """
        at_once = self._small_block if small else self.block_rows
        if index is None or self.is_one_block:
            for start in range(0, max(1, self.shape[0]), at_once):
                own = slice(start, min(start + at_once, self.shape[0]))
                yield function(self.read(own.start, own.stop), index, *_some(columns, own))
        else:
            index = np.sort(index)
            for k in range(0, index.size, at_once):
                some = index[k : k + at_once]
                yield function(self.take(some), None, *_some(columns, some))  # type: ignore[attr-defined]

    def column(self, function: Callable[..., Any], columns: Sequence[Any] = ()) -> NDArray[Any]:
        """Return the numbers that a function gives for each row, as `map` calls it."""
        found, start = np.empty(self.shape[0]), 0
        for own in self.map(function, columns):
            found[start : start + own.size] = own
            start += own.size
        return found

    def chosen(self, index: Index) -> Iterator[Any]:
        """Yield copies of the rows of ascending numbers; only blocks with such rows are read."""
        for start, stop in self.bounds():
            own = slice(*np.searchsorted(index, (start, stop)))
            if own.start < own.stop:
                block, rows = self.read(start, stop), index[own] - start
                yield block[rows] if sparse.issparse(block) else block.take(rows, axis=0)

    def encoded(self, encode: Callable[[Any], Any], few: Any, alone: bool = True) -> Any:
        """Return rows encoded by a function, in memory if files are mapped as one.

        See `EncodedRows`.
        """
        rows = EncodedRows(self, encode, few, alone)
        if rows.shape[0] * (rows.own_bytes or self.row_bytes) > WHOLE_BYTES:
            return rows
        found = rows.in_memory()
        self.check_rows()
        return found

    def __getitem__(self, rows: Any) -> Any:
        """Return a slice of rows in memory."""
        start, stop, _ = rows.indices(self.shape[0])
        return self.read(start, stop)


class RowSource(BlockTable):
    """A table of float32 or float64 numbers with rows that are read when they are used.

    Blocks are C-contiguous, or CSR without duplicate entries. The checks of inputs make a source
    from files; partitions on other machines are a subclass.
    """

    dtype: np.dtype[Any]
    is_sparse = False
    norm_bound: float | None = None  # which a transformer has noted

    def look(self, function: Callable[..., Any], beside: Any) -> list[Any] | None:
        """Return the results of a function on remote blocks; None if blocks are read here.

        Columns `beside` are read in the same pass.
        """
        return None

    def take(self, index: Index) -> Any:
        """Return a copy of the rows of ascending numbers."""
        found = list(self.chosen(index))
        if not found:
            return self.read(0, 0)
        if self.is_sparse:
            return sparse.vstack(found, format="csr")
        return np.concatenate(found)

    def in_memory(self) -> Any:
        """Return all rows."""
        if self.is_sparse:
            return sparse.vstack([block for _, _, block in self.blocks()], format="csr")
        found = np.empty(self.shape, self.dtype)
        for start, stop, block in self.blocks():
            found[start:stop] = block
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all rows, for code that reads no blocks."""
        if self.is_sparse:
            raise TypeError("the table is sparse, but must be dense here: use toarray() on blocks.")
        return self.in_memory().astype(dtype or self.dtype, copy=False)

    def __getitem__(self, rows: Any) -> Any:
        """Return a slice of rows in memory, or a source of the rows of any numbers."""
        if isinstance(rows, slice):
            return super().__getitem__(rows)
        if isinstance(rows, tuple) and rows[1:] == (...,):  # as scikit-learn asks for rows
            rows = rows[0]
        rows = np.asarray(rows)
        return ChosenRows(self, np.flatnonzero(rows) if rows.dtype == bool else rows)


class EncodedRows(RowSource):
    """Rows of another table, each encoded by a function as it is read.

    `few` are encoded rows, possibly none, that show the type. Unless `alone`, the last bit of a row
    may depend on others in its block. Rows are then always encoded in the same blocks: norms
    computed once must be those of the rows that are read later.
    """

    def __init__(
        self, source: BlockTable, encode: Callable[[Any], Any], few: Any, alone: bool
    ) -> None:
        self._source, self._encode, self._none = source, encode, few[:0]
        self.alone = alone and getattr(source, "alone", True)
        self.shape, self.dtype = (source.shape[0], few.shape[1]), few.dtype
        self.is_sparse = sparse.issparse(few)
        # A sparse row is about as long as that which it is made of.
        self.own_bytes = 0.0 if self.is_sparse else float(few.shape[1] * self.dtype.itemsize)
        self.row_bytes = source.row_bytes + (self.own_bytes or source.row_bytes)
        # What is made of rows that are kept is made of them again.
        folder = None if self.is_sparse else source.folder
        self._kept = KeptRows(folder, self.shape, self.dtype, MappedRows)

    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop``."""
        if start >= stop:
            return self._none
        if self._kept.rows is not None:
            if start == 0:
                self.check_stamps()
            return self._kept.rows.read(start, stop)
        rows = self._made(self._source.read(start, stop))
        self._kept.offer(start, rows)
        return rows

    def chosen(self, index: Index) -> Iterator[Any]:
        """Yield the rows of ascending numbers; others are encoded only if that changes bits."""
        if self._kept.rows is not None:
            self.check_stamps()
            return self._kept.rows.chosen(index)
        if not self.alone:
            return super().chosen(index)
        return map(self._made, self._source.chosen(index))

    def _made(self, block: Any) -> Any:
        rows = self._encode(block)
        return rows if self.is_sparse else np.ascontiguousarray(rows, self.dtype)


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


class ChosenTable(BlockTable):
    """Rows of another table of columns by ascending numbers, read in one pass over it."""

    def __init__(self, source: Any, rows: Index) -> None:
        self._source, self._rows = source, rows
        self.columns, self.dtypes = source.columns, source.dtypes
        self.row_bytes, self.assumptions = source.row_bytes, source.assumptions
        self.shape, self.folder = (rows.size, source.shape[1]), source.folder

    def __getitem__(self, key: Any) -> Any:
        """Return a slice of rows as a frame, or a table of the columns of a list of names."""
        if isinstance(key, slice):
            return super().__getitem__(key)
        return type(self)(self._source[key], self._rows)

    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop`` as a frame; reading continues after the last one."""
        from pandas import concat

        at, found = int(self._rows[start - 1]) + 1 if 0 < start < stop else 0, []
        while start < stop:
            end = min(at + self._source.block_rows, int(self._rows[stop - 1]) + 1)
            last = int(np.searchsorted(self._rows, end))
            if start < last:
                found.append(self._source.read(at, end).take(self._rows[start:last] - at))
            at, start = end, last
        return concat(found, ignore_index=True) if found else self._source.read(0, 0)


class MappedRows(RowSource):
    """Rows of an array or a CSR matrix in files that are mapped into memory.

    C-ordered float32 and float64 are used in place. Others are converted one block at a time, to
    float64 if requested.
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

    def _digest_rows(self, digester: Digester) -> bytes:
        """Return the digest of the file's contents, independently of its time stamp."""
        found = []
        for array in map(np.asarray, _arrays_of(self._X)):
            array = array if array.flags.c_contiguous else array.T
            step = max(1, BLOCK_BYTES * len(array) // max(array.nbytes, 1))
            for start in range(0, len(array), step):
                found.append(digester.digest(array[start : start + step]))
                self._forget()
        return digester.digest(b"".join(found))

    def _forget(self) -> None:
        """Release the memory of rows that were read, unless the file is mapped as one."""
        # What the process has mapped counts as its memory until the system wants it for others.
        if hasattr(mmap, "MADV_DONTNEED") and not self.is_one_block:
            for mapping in self._mappings:
                mapping.madvise(mmap.MADV_DONTNEED)

    @property
    def in_place(self) -> bool:  # type: ignore[override]
        """Whether rows are used as they are stored."""
        return self._as_stored and not self.has_duplicates

    def read(self, start: int, stop: int) -> Any:
        """Return rows ``start`` to ``stop``; rows that were read before leave memory."""
        block = self.raw(start, stop)
        if self.has_duplicates:
            block = block.copy()
            block.sum_duplicates()
        return block

    def raw(self, start: int, stop: int) -> Any:
        """Return rows as they are stored, possibly with duplicate entries."""
        if stop - start < self.shape[0]:
            self._forget()
        with np.errstate(all="ignore"):  # of wider numbers a warning would tell
            if not self.is_sparse:
                return np.require(self._X[start:stop], self.dtype, ["C", "A"]).view(np.ndarray)
            data, indices, indptr = _arrays_of(self._X)
            first, last = int(indptr[start]), int(indptr[stop])
            entries = (data[first:last].astype(self.dtype, copy=False), indices[first:last])
        shape = (stop - start, self.shape[1])
        return type(self._X)((*entries, indptr[start : stop + 1] - first), shape)


def source_of(X: Any, converted: bool = True) -> Any:
    """Return the table if it is read in blocks, its source if it is in a file, or None."""
    return X if isinstance(X, BlockTable) else mapped_rows(X, converted)


def mapped_rows(X: Any, converted: bool = True) -> MappedRows | None:
    """Return the rows of a dense array or CSR matrix of numbers in a file, else None."""
    known = X.format == "csr" if sparse.issparse(X) else type(X) in (np.ndarray, np.memmap)
    if not known or X.ndim != 2 or X.dtype.kind not in "biuf":
        return None
    return MappedRows(X, converted) if any(map(_mapping_of, _arrays_of(X))) else None


def map_rows(function: Callable[..., Any], X: Any, *columns: Any) -> list[Any]:
    """Return ``function(rows, *columns)`` of a table in memory, or of small blocks of a source."""
    if not isinstance(X, BlockTable):
        return [function(X, *columns)]
    found, at_once = [], X._small_block
    with shown_in_percent("reading rows", X.shape[0]) as done:
        for own in X.map(partial(_of_all, function), columns, small=True):
            found.append(own)
            done(len(found) * at_once)
    return found


def in_blocks(function: Callable[[Any], NDArray[Any]], X: Any) -> NDArray[Any]:
    """Return the results of a function on the rows of a table, called piece by piece."""
    found = map_rows(function, X)
    return found[0] if len(found) == 1 else np.concatenate(found)


def _of_all(function: Callable[..., Any], block: Any, chosen: None, *columns: Any) -> Any:
    return function(block, *columns)


def _some(columns: Sequence[Any], rows: Any) -> list[Any]:
    """Return the entries of columns that belong to some rows."""
    return [None if column is None else column[rows] for column in columns]


def _arrays_of(X: Any) -> list[NDArray[Any]]:
    """Return the arrays of a dense or CSR matrix."""
    return [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]


def _mapping_of(array: Any) -> mmap.mmap | None:
    """Return the file map of an array, if its pages can be released without any change."""
    mode = None
    while isinstance(array, np.ndarray):
        mode, array = getattr(array, "mode", mode), array.base
    # Changes of a copy on write lie in memory alone, and would be lost.
    return array if isinstance(array, mmap.mmap) and mode in ("r", "r+", "w+") else None
