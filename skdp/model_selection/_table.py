"""Rows of tables of any kind that scikit-learn accepts."""

from __future__ import annotations

import hashlib
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d, get_tags, indexable

from skdp.inputs import (
    check_indices,
    public_error,
    refuse_masked,
    refuse_other_tables,
    validate_private_data,
)


def check_table(template: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Check rows and labels before anything is charged, as far as the estimator is known.

    If `template` has parts, these will see the rows first and check them.
    """
    parts = ("steps", "transformers", "transformer_list", "estimator", "regressor")
    refuse_other_tables(X)
    refuse_masked(y, "y")
    check_indices(X)
    try:
        if not any(hasattr(template, part) for part in parts):
            accepted = "csr" if get_tags(template).input_tags.sparse else False
            validate_private_data(template, X, y, accept_sparse=accepted, dtype="numeric")
        X, y = indexable(X, y)
        return X, column_or_1d(y, warn=True)
    except (ValueError, TypeError) as error:
        found = public_error(error, X)
    raise found


def take_rows(table: Any, rows: np.ndarray) -> Any:
    """Return some rows of a table."""
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if sparse.issparse(table):
        return table.tocsr()[rows]
    if hasattr(table, "shape"):
        return table[rows]
    return [table[row] for row in rows]


def n_rows(table: Any) -> int:
    """Return the number of rows of a table."""
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def n_columns(table: Any) -> int:
    """Return the number of columns of a table; 1 where rows are texts or the like."""
    if hasattr(table, "shape"):
        return int(table.shape[1]) if len(table.shape) > 1 else 1
    widths = {len(row) if isinstance(row, list | tuple | np.ndarray) else 1 for row in table}
    return widths.pop() if len(widths) == 1 else 1


def digest(X: Any, y: np.ndarray, others: Any = None) -> bytes:
    """Return a digest of rows and labels by value; it never leaves the fit."""
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X)
    return hashlib.blake2b(joblib.hash((X, y, others)).encode(), digest_size=32).digest()


def parameter_table(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the candidates in the form of ``cv_results_``, parameters only."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for point in points for name in point):
        column = np.ma.masked_all(len(points), dtype=object)
        for row, point in enumerate(points):
            if name in point:
                column[row] = point[name]
        columns[f"param_{name}"] = column
    return {**columns, "params": points}
