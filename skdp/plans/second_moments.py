"""Sums of outer products of rows shortened to a norm, and their sensitivity.

The theorem and its proof are in ``docs/proofs/private_preprocessing.md``, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from skdp.mechanisms.contribution import ROUND_UP, ContributionBound

_BLOCK_ENTRIES = 1 << 20


def row_blocks(X: Any, shares: np.ndarray | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield consecutive blocks of rows, of about a million entries each, and their shares."""
    size = max(1, _BLOCK_ENTRIES // X.shape[1])
    for start in range(0, X.shape[0], size):
        rows = slice(start, start + size)
        yield X[rows], None if shares is None else shares[rows]


def share_rows(X: Any, shares: np.ndarray | None) -> Any:
    """Multiply rows by their shares in their unit's contribution; None is one for each row."""
    if shares is None:
        return X
    return sparse.diags_array(shares) @ X if sparse.issparse(X) else X * shares[:, np.newaxis]


def share_number(X: Any, shares: np.ndarray | None) -> Any:
    """Return the sum of the shares of rows: their number if each row is a unit."""
    return X.shape[0] if shares is None else shares.sum()


def round_towards_zero(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Return values in a narrower type, rounded so that none gets longer."""
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

    Rows are finite, and a CSR matrix stores no entry twice. Scaled rows end a few units of rounding
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


# Their matrix has 8 GiB then, and solvers take a few of these.
MOST_COLUMNS = 1 << 15


def refuse_wide(n_features: int) -> None:
    """Refuse rows whose moments do not fit into memory, before they are charged."""
    if n_features > MOST_COLUMNS:
        raise ValueError(
            f"The matrix of second moments of {n_features} columns is too large. At most "
            f"{MOST_COLUMNS} columns are supported."
        )


def second_moment_bound(
    n_features: int, squared_mean_weight: float = 0.0, reason: str = ""
) -> ContributionBound:
    """Return the sensitivity of sums of ``(a x, x x^T)`` over rows of norm at most 1.

    For a^2 in [0, 2], the norm is ``sqrt(1 + a^2)`` and the diameter ``(2 + a^2) / sqrt(2)``, both
    in the Frobenius norm and attained. A single feature has diameter ``max(1, 2 a)`` for ``a^2`` of
    0 or at least 0.361.
    """
    norm = math.sqrt(1.0 + squared_mean_weight)
    gap = (2.0 + squared_mean_weight) / math.sqrt(2.0)
    if n_features == 1 and (squared_mean_weight == 0.0 or squared_mean_weight >= 0.361):
        gap = max(1.0, 2.0 * math.sqrt(squared_mean_weight))
    return ContributionBound(norm * ROUND_UP, gap * ROUND_UP, reason)


def packed_moments(
    rows: Any, squared_mean_weight: float = 0.0, shares: np.ndarray | None = None
) -> np.ndarray:
    """Return the sums of :func:`second_moment_bound` as one vector."""
    shared = share_rows(rows, shares)
    gram = rows.T @ shared
    if sparse.issparse(gram):
        gram = gram.toarray()
    return pack_moments(gram, np.asarray(shared.sum(axis=0)).ravel(), squared_mean_weight)


def pack_moments(gram: np.ndarray, total: np.ndarray, squared_mean_weight: float) -> np.ndarray:
    """Return sums of ``x x^T`` and of ``x`` as one vector, without the latter if their weight is 0.

    Entries off the diagonal are multiplied by ``sqrt(2)``. The Euclidean norm of the packed upper
    triangle is then the Frobenius norm of the matrix. The sum of ``a x`` follows.
    """
    above = np.triu_indices(gram.shape[0])
    packed = gram[above] * _packing(above)
    if squared_mean_weight == 0.0:
        return packed
    return np.concatenate([packed, math.sqrt(squared_mean_weight) * total])


def unpack_matrix(packed: np.ndarray, n_features: int) -> np.ndarray:
    """Return the symmetric matrix behind a packed upper triangle."""
    above = np.triu_indices(n_features)
    matrix = np.zeros((n_features, n_features))
    matrix[above] = packed / _packing(above)
    matrix.T[above] = matrix[above]
    return matrix


def _packing(above: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.where(above[0] == above[1], 1.0, math.sqrt(2.0))
