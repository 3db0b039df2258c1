"""Pairs of neighbouring tables: the worst that are known in general, and the user's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skdp.row_bounds import resolve_data_norm

NO_NULL_ROW = (
    "Under add-remove, an absent row is stood for by a row of zeros, which contributes nothing "
    "only without an intercept: set fit_intercept=False."
)


@dataclass(frozen=True)
class Table:
    """Rows and labels; of the rows `absent`, if any, nothing is to be used but their number."""

    X: Any
    y: np.ndarray
    absent: Any = None


def worst_case(estimator: Any, X: Any, y: Any) -> tuple[Table, Table, int]:
    """Add one row at the norm bound, in a column of its own, and its worst neighbour."""
    pair = (with_canaries(estimator, X, y, np.array([inside])) for inside in (True, False))
    one, other = (replace(table, X=table.X.toarray()) for table in pair)
    return one, other, len(one.X) - 1


def with_canaries(estimator: Any, X: Any, y: Any, inside: np.ndarray) -> Table:
    """Add rows at the norm bound, each in a column of its own; or the worst neighbour of each.

    Under replace-one that has the opposite label, or the opposite row where there are more than two
    labels; under add-remove it is a row of zeros, or absent where there is an intercept.
    """
    if not all(hasattr(estimator, name) for name in ("data_norm", "classes", "fit_intercept")):
        raise ValueError(
            f"The worst rows for {type(estimator).__name__} are not known: give audit_epsilon a "
            "pair, neighbour=(X2, y2)."
        )
    shared = _table(X, y)
    labels = np.unique(shared.y if estimator.classes is None else np.asarray(estimator.classes))
    signs, names, absent = np.ones(inside.size), np.repeat(labels[-1:], inside.size), None
    if estimator.adjacency == "add-remove":
        if not estimator.fit_intercept:
            signs = np.where(inside, 1.0, 0.0)
        elif not inside.all():
            absent = len(shared.X) + np.flatnonzero(~inside)
    elif labels.size > 2:
        signs = np.where(inside, 1.0, -1.0)
    else:
        names = np.where(inside, labels[-1], labels[0])
    canaries = sparse.diags(resolve_data_norm(estimator.data_norm) * signs)
    rows = sparse.block_diag((sparse.csr_matrix(shared.X), canaries), format="csr")
    return Table(rows, np.append(shared.y, names), absent)


def given_pair(estimator: Any, X: Any, y: Any, neighbour: Any) -> tuple[Table, Table, int]:
    """Check that two tables are neighbours in the estimator's relation."""
    if isinstance(neighbour, str) or len(neighbour) != 2:
        raise ValueError(f"neighbour must be 'worst-case' or a pair (X2, y2), got {neighbour!r}.")
    one, other = _table(X, y), _table(*neighbour)
    if one.X.shape != other.X.shape:
        raise ValueError(
            "The tables must have equally many rows and columns: n is public. Under add-remove, "
            "put a row of zeros in the place of an absent one."
        )
    differ = np.flatnonzero((one.X != other.X).any(axis=1) | (one.y != other.y))
    if differ.size != 1:
        raise ValueError(
            f"Neighbours differ in one row; these tables differ in {differ.size} of them."
        )
    changed = int(differ[0])
    if estimator.adjacency == "add-remove" and (
        getattr(estimator, "fit_intercept", True)
        or (one.X[changed].any() and other.X[changed].any())
    ):
        raise ValueError(f"{NO_NULL_ROW} One of the two differing rows must be zeros.")
    return one, other, changed


def _table(X: Any, y: Any) -> Table:
    rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    labels = np.asarray(y)
    if rows.ndim != 2 or labels.shape != rows.shape[:1]:
        raise ValueError(
            f"X must be a table and y have one label a row, got shapes {rows.shape} and "
            f"{labels.shape}."
        )
    return Table(rows, labels)
