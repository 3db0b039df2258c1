"""Sums of outer products of rows of norm at most 1: their sensitivity, and how they are packed.

The theorem and its proof are in ``docs/proofs/private_preprocessing.md``, section 4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from skdp.mechanisms.contribution import ROUND_UP, ContributionBound
from skdp.plans.row_norms import share_rows

# Their matrix has 8 GiB then, and solvers take a few of these.
MOST_COLUMNS = 1 << 15


def refuse_wide(n_features: int) -> None:
    """Refuse rows whose moments fit no memory, before anything is charged for them."""
    if n_features > MOST_COLUMNS:
        raise ValueError(
            f"Second moments of {n_features} columns are too large a matrix: they are for "
            f"{MOST_COLUMNS} columns at most."
        )


def second_moment_bound(
    n_features: int, squared_mean_weight: float = 0.0, reason: str = ""
) -> ContributionBound:
    """Return the sensitivity of sums of ``(a x, x x^T)`` over rows of norm at most 1.

    For a^2 in [0, 2], norm ``sqrt(1 + a^2)`` and diameter ``(2 + a^2) / sqrt(2)``, in the Frobenius
    norm, are attained; a single feature has diameter ``max(1, 2 a)`` for ``a^2`` of 0 or at least
    0.361.
    """
    norm = math.sqrt(1.0 + squared_mean_weight)
    gap = (2.0 + squared_mean_weight) / math.sqrt(2.0)
    if n_features == 1 and (squared_mean_weight == 0.0 or squared_mean_weight >= 0.361):
        gap = max(1.0, 2.0 * math.sqrt(squared_mean_weight))
    return ContributionBound(norm * ROUND_UP, gap * ROUND_UP, reason)


def packed_moments(
    rows: Any, squared_mean_weight: float = 0.0, shares: np.ndarray | None = None
) -> np.ndarray:
    """Return the sums that :func:`second_moment_bound` speaks of, as one vector."""
    shared = share_rows(rows, shares)
    gram = rows.T @ shared
    if sparse.issparse(gram):
        gram = gram.toarray()
    return pack_moments(gram, np.asarray(shared.sum(axis=0)).ravel(), squared_mean_weight)


def pack_moments(gram: np.ndarray, total: np.ndarray, squared_mean_weight: float) -> np.ndarray:
    """Return sums of ``x x^T`` and of ``x`` as one vector, without the latter if their weight is 0.

    Entries off the diagonal are multiplied by ``sqrt(2)``, so that the Euclidean norm of the packed
    upper triangle is the Frobenius norm of the matrix; then comes the sum of ``a x``.
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
