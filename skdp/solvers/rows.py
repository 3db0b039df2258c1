"""The rows of a training set as compiled kernels see them: never copied, never densified."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from skdp.losses.base import TargetKind
from skdp.tables.row_sources import RowSource

Vector = NDArray[np.float64]
# Numbers of rows; None for all.
Index = NDArray[np.int64] | None

TARGETS = {
    "signs": "labels -1 and +1 (int8)",
    "codes": "class codes (int32)",
    "real": "real numbers (float64)",
}
_STORED_AS = {"signs": np.int8, "codes": np.int32, "real": np.float64}
NO_WEIGHTS = np.empty(0)
# Elements of one block of rows; a block and its scaled copy stay in the processor's cache.
_BLOCK_ELEMENTS = 1 << 16


class _WritableView:
    """View of the memory of an array without its read-only flag."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.owner = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def kernel_view(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same memory as an array that kernels take without another compilation.

    Numba compiles read-only arrays apart. Kernels only read rows, so a view without the flag saves
    seconds for memory-mapped data.
    """
    return array if array.flags.writeable else np.asarray(_WritableView(array))


def _as_kernels_take(X: Any, checked: bool = False) -> Any:
    """Return a matrix in memory as compiled kernels take it."""
    if not sparse.issparse(X):
        if not X.flags.c_contiguous:
            raise ValueError("X must be C-contiguous: use numpy.ascontiguousarray(X).")
        return kernel_view(X)
    if X.format != "csr":
        raise ValueError(f"A sparse X must be in CSR format, got {X.format}: use X.tocsr().")
    if not checked:
        X.check_format(full_check=True)
    if not (checked or X.has_canonical_format):
        # Duplicates would be squared one by one in the norm of their row.
        X = X.copy()
        X.sum_duplicates()
    return kernel_view(X.data), kernel_view(X.indices), kernel_view(X.indptr)


def _as_scipy_has(matrix: Any, n_features: int) -> Any:
    """Return a matrix as an array or a scipy matrix, sharing its memory."""
    if not isinstance(matrix, tuple):
        return matrix
    shape = (len(matrix[2]) - 1, n_features)
    return sparse.csr_matrix(matrix, shape=shape, copy=False)


def _row_scales(data_norm: float, shape: tuple[int, int], matrix: Any) -> Vector:
    """Return ``min(1 / data_norm, 1 / ||x_i||)``, rounded down, for every row."""
    n_rows, n_features = shape
    out = np.empty(n_rows)
    kernel: Any
    if isinstance(matrix, tuple):
        from skdp.solvers._sparse_kernels import row_scales as kernel
    else:
        from skdp.solvers._dense_kernels import row_scales as kernel
    if not kernel(matrix, float(data_norm), out):
        rows, step = np.flatnonzero(np.isnan(out)), max(1, _BLOCK_ELEMENTS // n_features)
        for first in range(0, rows.size, step):
            odd = rows[first : first + step]
            part = _as_scipy_has(matrix, n_features)[odd]
            out[odd] = _careful_scales(part.astype(np.float64), data_norm)
    return out


def _scales_of_block(data_norm: float, block: Any, chosen: None) -> Vector:
    return _row_scales(data_norm, block.shape, _as_kernels_take(block))


# What overflows may not be told.
@np.errstate(all="ignore")
def _careful_scales(part: Any, data_norm: float) -> Vector:
    """Return the scales of rows whose squares overflow or vanish, which it may change."""
    is_sparse = sparse.issparse(part)
    top = abs(part).max(axis=1)
    top = top.toarray().ravel() if is_sparse else top
    top[top == 0.0] = 1.0
    if is_sparse:
        part.data /= np.repeat(top, np.diff(part.indptr))
        squares = np.asarray(part.multiply(part).sum(axis=1)).ravel()
    else:
        part /= top[:, None]
        squares = np.einsum("ij,ij->i", part, part)
    shrink = 1.0 - (0.5 * part.shape[1] + 6.0) * 1.2e-16
    relative = (top / data_norm) * np.sqrt(squares)
    # Of the longest rows the quotient is subnormal, and rounded by more than the margin.
    cut = np.nextafter(shrink / top / np.sqrt(squares), 0.0)
    return np.where(relative > shrink, cut, 1.0 / data_norm)


def _on_part(
    function: Callable[..., Any], empty: Rows, block: Any, chosen: Any, *columns: Any
) -> Any:
    """Call a function with the rows of a block; `empty` are rows without any."""
    return function(empty._filled(block, *columns[:3]), chosen, *columns[3:])


class Rows:
    """Row i counts as ``(r_i x_i, s)`` with ``r_i = min(1 / data_norm, 1 / ||x_i||)``.

    So its norm is at most ``sqrt(1 + s^2)``; s is `intercept_value`, 0.0 for no intercept. `matrix`
    is dense, or ``(data, indices, indptr)`` of a CSR one, or a source that is read in blocks, whose
    rows kernels take from :meth:`parts`. Build with :meth:`from_matrix`.

    Clipped losses and gradients are multiplied by `row_weight` in sums (None: 1). Means divide by
    `n_units`, by default the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.solvers import Rows
    >>> X, signs = np.array([[0.6, 0.8], [3.0, 4.0]]), np.array([-1, 1], dtype=np.int8)
    >>> rows = Rows.from_matrix(X, signs, data_norm=2.0)
    >>> rows.row_scale  # half of the first; the second, longer than 2, to norm 1
    array([0.5, 0.2])
    """

    data_norm = 1.0

    def __init__(
        self,
        matrix: Any,
        n_features: int,
        targets: NDArray[Any],
        row_scale: Vector,
        intercept_value: float,
        target_kind: TargetKind | None = None,
        row_weight: ArrayLike | None = None,
        n_units: int | None = None,
    ) -> None:
        self.matrix = matrix
        self.n_features = n_features
        self.n_rows = row_scale.shape[0]
        self.row_scale = row_scale
        self.intercept_value = intercept_value
        self.targets = self._check_targets(targets, target_kind)
        self.row_weight = self._check_row_weight(row_weight)
        self.n_units = self.n_rows if n_units is None else operator.index(n_units)
        if n_units is not None and not self.n_units > 0:
            raise ValueError(f"n_units must be at least 1, got {n_units}.")

    @classmethod
    def from_matrix(
        cls,
        X: Any,
        targets: ArrayLike,
        data_norm: float,
        intercept_value: float = 0.0,
        target_kind: TargetKind | None = None,
        row_weight: ArrayLike | None = None,
        n_units: int | None = None,
    ) -> Rows:
        """Wrap a finite float32 or float64 matrix, C-contiguous or CSR, and find the row scales.

        `data_norm` is a public bound; longer rows are scaled down to it. Without a kind, targets of
        int32 or int64 are class codes, and others signs.
        """
        if not (0.0 < data_norm < math.inf and math.isfinite(1.0 / data_norm)):
            raise ValueError(f"data_norm must be a positive finite number, got {data_norm}.")
        if not 0.0 <= intercept_value < math.inf:
            raise ValueError(
                "intercept_value must be finite and >= 0 (0 = no intercept), got "
                f"{intercept_value}."
            )
        if X.ndim != 2 or X.dtype not in (np.float32, np.float64):
            raise ValueError(
                f"X must be a float32 or float64 matrix, got {X.ndim} dimensions of {X.dtype}."
            )
        if isinstance(X, RowSource):
            matrix: Any = X
            row_scale = X.column(partial(_scales_of_block, data_norm))
        else:
            matrix = _as_kernels_take(X)
            row_scale = _row_scales(data_norm, X.shape, matrix)
        shift = float(intercept_value)
        shape = (X.shape[1], np.asarray(targets), row_scale, shift, target_kind)
        found = cls(matrix, *shape, row_weight, n_units)
        found.data_norm = float(data_norm)
        return found

    def _check_targets(self, targets: NDArray[Any], kind: TargetKind | None) -> NDArray[Any]:
        if targets.shape != (self.n_rows,):
            raise ValueError(
                f"targets must have shape ({self.n_rows},), one for each row, got {targets.shape}."
            )
        if kind is None:
            kind = "codes" if targets.dtype in (np.int32, np.int64) else "signs"
        self.target_kind: TargetKind = kind
        if kind == "codes" and targets.size and targets.min() < 0:
            raise ValueError("Class codes must be >= 0; give labels -1 and +1 as int8.")
        if kind == "signs" and not (np.abs(targets) == 1).all():
            raise ValueError("Labels must be -1 or +1; give class codes as int32.")
        if kind == "real" and not np.isfinite(targets).all():
            raise ValueError("Real targets must be finite.")
        self.n_codes = int(targets.max()) + 1 if kind == "codes" and targets.size else 0
        return np.ascontiguousarray(targets, dtype=_STORED_AS[kind])

    def _check_row_weight(self, row_weight: ArrayLike | None) -> Vector | None:
        if row_weight is None:
            return None
        array = np.ascontiguousarray(row_weight, dtype=np.float64)
        if array.shape != (self.n_rows,) or not (np.isfinite(array) & (array >= 0.0)).all():
            raise ValueError(
                f"row_weight must hold {self.n_rows} finite numbers >= 0, one for each row."
            )
        return array

    def with_targets(
        self,
        targets: ArrayLike,
        kind: TargetKind | None = None,
        row_weight: ArrayLike | None = None,
    ) -> Rows:
        """Return the same rows with other targets, sharing the matrix and the row scales.

        They keep their weights unless others are given.
        """
        other = copy.copy(self)
        other.targets = other._check_targets(np.asarray(targets), kind)
        if row_weight is not None:
            other.row_weight = other._check_row_weight(row_weight)
        return other

    def map_parts(
        self,
        function: Callable[..., Any],
        index: Index = None,
        columns: Sequence[NDArray[Any]] = (),
    ) -> Iterator[Any]:
        """Yield ``function(part, chosen, *columns)`` for rows in memory, part after part.

        `chosen` are the selected row numbers in the part, None for all. Summing the results of all
        parts in order gives the sum over the rows of ``index``. Columns have one number per row,
        and each part receives its own. A source calls the function where its parts are stored.
        """
        source = self.matrix
        if not isinstance(source, RowSource):
            return iter([function(self, index, *columns)])
        return source.map(*self._on_parts(function, columns), index)

    def column(self, function: Callable[..., Any]) -> Vector:
        """Return one number per row, from a function of parts as `map_parts` takes it."""
        if not isinstance(self.matrix, RowSource):
            return function(self, None)
        return self.matrix.column(*self._on_parts(function, ()))

    def _on_parts(self, function: Callable[..., Any], columns: Sequence[Any]) -> tuple[Any, Any]:
        """Return a function of blocks of a source, and the columns it takes."""
        empty = copy.copy(self)
        empty.matrix = empty.targets = empty.row_scale = empty.row_weight = None  # type: ignore[assignment]
        own = (self.targets, self.row_scale, self.row_weight, *columns)
        return partial(_on_part, function, empty), own

    def gather(self, index: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
        """Return rows of a source in memory, all or those of ``index``, and their positions."""
        source: RowSource = self.matrix
        own = self.targets, self.row_scale, self.row_weight
        if source.is_one_block:
            return self._filled(source.read(0, self.n_rows), *own), index
        order = np.argsort(index, kind="stable")  # lots are ascending, and soon merged
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        chosen = index[order]
        columns = (None if column is None else column[chosen] for column in own)
        return self._filled(source.take(chosen), *columns), places

    def _filled(self, block: Any, targets: Any, row_scale: Any, row_weight: Any) -> Rows:
        """Return rows of a source that have been read, with their targets and weights."""
        part = copy.copy(self)
        part.matrix, part.n_rows = _as_kernels_take(block, checked=True), row_scale.size
        part.targets, part.row_scale, part.row_weight = targets, row_scale, row_weight
        return part

    def blocks(self, index: Index = None) -> Iterator[tuple[Any, NDArray[Any], Vector]]:
        """Yield scaled rows with their constant column (float64 or CSR), targets and weights.

        The rows are in memory. A dense block is overwritten by the next.
        """
        count = self.n_rows if index is None else index.size
        # Sparse blocks hold only stored entries, so they may have many more rows.
        size = 1 << 14 if self.is_sparse else max(64, _BLOCK_ELEMENTS // self.n_columns)
        # Systems may take back what is freed, as workers of dask do, and clear it each time anew.
        memory = np.empty((min(size, count), 0 if self.is_sparse else self.n_columns))
        table = self.table
        for start in range(0, count, size):
            stop = min(start + size, count)
            chosen: Any = slice(start, stop) if index is None else index[start:stop]
            scale = self.row_scale[chosen]
            if self.is_sparse:
                block = sparse.diags(scale) @ table[chosen]
                if self.intercept_value > 0.0:
                    column = np.full((stop - start, 1), self.intercept_value)
                    block = sparse.hstack([block, sparse.csr_matrix(column)], format="csr")
            else:
                block = memory[: stop - start]
                np.multiply(table[chosen], scale[:, None], out=block[:, : self.n_features])
                block[:, self.n_features :] = self.intercept_value
            yield block, self.targets[chosen], self.shares(chosen)

    @property
    def table(self) -> Any:
        """The matrix of rows in memory as an array or a CSR matrix."""
        return _as_scipy_has(self.matrix, self.n_features)

    @property
    def kernel_weight(self) -> Vector:
        """The weights as kernels take them: empty if all are 1."""
        return NO_WEIGHTS if self.row_weight is None else self.row_weight

    def shares(self, chosen: Any) -> Vector:
        """Return the weights of some rows, or a single 1 for all of them."""
        return np.ones(1) if self.row_weight is None else self.row_weight[chosen]

    @property
    def is_sparse(self) -> bool:
        """Whether the rows come from a CSR matrix."""
        return isinstance(self.matrix, tuple) or (
            isinstance(self.matrix, RowSource) and self.matrix.is_sparse
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return (self.matrix[0] if isinstance(self.matrix, tuple) else self.matrix).dtype

    @property
    def row_norm_bound(self) -> float:
        """Public bound sqrt(1 + s^2) on the norm of every scaled row with its constant column."""
        return math.hypot(1.0, self.intercept_value)

    @property
    def n_columns(self) -> int:
        """Number of weights of one output: the features, and one for the intercept if any."""
        return self.n_features + (self.intercept_value > 0.0)

    def n_weights(self, n_outputs: int = 1) -> int:
        """Return the length of the flat weight vector."""
        return n_outputs * self.n_columns
