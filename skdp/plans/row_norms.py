"""Norms of rows, and rows shortened to a bound that rounding cannot break."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

_BLOCK_ENTRIES = 1 << 20


def row_blocks(X: Any, shares: np.ndarray | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield consecutive blocks of rows, of about a million entries each, and their shares."""
    size = max(1, _BLOCK_ENTRIES // X.shape[1])
    for start in range(0, X.shape[0], size):
        rows = slice(start, start + size)
        yield X[rows], None if shares is None else shares[rows]


def share_rows(X: Any, shares: np.ndarray | None) -> Any:
    """Multiply rows by their shares in what their unit contributes; None is one of each row."""
    if shares is None:
        return X
    return sparse.diags_array(shares) @ X if sparse.issparse(X) else X * shares[:, np.newaxis]


def share_number(X: Any, shares: np.ndarray | None) -> Any:
    """Return the sum of the shares of rows: their number where each is a unit."""
    return X.shape[0] if shares is None else shares.sum()


def round_towards_zero(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Return values in a narrower type, none of them lengthened by it."""
    with np.errstate(over="ignore"):
        narrow = values.astype(dtype)
    longer = np.abs(narrow) > np.abs(values)
    narrow[longer] = np.nextafter(narrow[longer], narrow.dtype.type(0))
    return narrow


def scale_norms(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return row norms as two factors, positive `sizes` times `relative`; neither overflows."""
    if sparse.issparse(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        sizes = np.zeros(X.shape[0])
        np.maximum.at(sizes, rows, np.abs(X.data))
        sizes[sizes == 0.0] = 1.0
        shares = X.data / sizes[rows]
        return sizes, np.sqrt(np.bincount(rows, shares * shares, minlength=X.shape[0]))
    sizes = np.ones(X.shape[0])
    with np.errstate(over="ignore", under="ignore"):
        relative = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    # Squares of such rows left the range of double precision, or came close.
    odd = np.flatnonzero(~((relative > 1e-140) & (relative < 1e140)))
    if odd.size:
        peaks = np.abs(X[odd]).max(axis=1).astype(np.float64)
        peaks[peaks == 0.0] = 1.0
        shares = X[odd] / peaks[:, np.newaxis]
        sizes[odd], relative[odd] = peaks, np.sqrt(np.einsum("ij,ij->i", shares, shares))
    return sizes, relative


def bound_rows(X: Any, norm: float, *, every: bool = False) -> Any:
    """Scale rows longer than a bound down to it, with `every` shorter ones up to it as well.

    Rows are finite, a CSR matrix holds no entry twice. Scaled rows end a few units of rounding
    below the bound, so that no computed row exceeds it.
    """
    sizes, relative = scale_norms(X)
    limit = norm * (1.0 - (8.0 + X.shape[1]) * np.finfo(np.float64).eps)
    with np.errstate(over="ignore"):
        chosen = relative > 0.0 if every else relative > limit / sizes
    if sparse.issparse(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        data = X.data.copy()
        entries = chosen[rows]
        rows = rows[entries]
        data[entries] = round_towards_zero(
            data[entries] / sizes[rows] / relative[rows] * limit, data.dtype
        )
        return type(X)((data, X.indices, X.indptr), shape=X.shape)
    bounded = X.copy()
    units = X[chosen] / sizes[chosen, np.newaxis] / relative[chosen, np.newaxis]
    bounded[chosen] = round_towards_zero(units * limit, X.dtype)
    return bounded
