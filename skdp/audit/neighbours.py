"""Pairs of neighbouring tables: the worst that are known in general, and the user's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skdp.pipelines import walk
from skdp.row_bounds import resolve_data_norm

NO_NULL_ROW = (
    "Under add-remove, an absent row is stood for by a row of zeros, which contributes nothing "
    "to a classifier with fit_intercept=False, and to a transformer of rows of bounded norm, but "
    "not to this one."
)


@dataclass(frozen=True)
class Table:
    """Rows and labels; of the rows `absent`, if any, nothing is to be used but their number."""

    X: Any
    y: np.ndarray
    absent: Any = None


def worst_case(estimator: Any, X: Any, y: Any) -> tuple[Table, Table, int]:
    """Add one row at the public bound, and its worst neighbour; of a search, for what it fits."""
    inner = getattr(estimator, "estimator", estimator)
    if hasattr(inner, "transform"):
        return _worst_to_transform(inner, _table(X, y))
    pair = (with_canaries(estimator, X, y, np.array([inside])) for inside in (True, False))
    one, other = (replace(table, X=table.X.toarray()) for table in pair)
    return one, other, len(one.X) - 1


def with_canaries(estimator: Any, X: Any, y: Any, inside: np.ndarray) -> Table:
    """Add rows at the norm bound, each in a column of its own; or the worst neighbour of each.

    Under replace-one that has the opposite label, or the opposite row where there are more than two
    labels; under add-remove it is a row of zeros, or absent where there is an intercept.
    """
    inner, shared = getattr(estimator, "estimator", estimator), _table(X, y)
    if not all(hasattr(inner, name) for name in ("data_norm", "classes", "fit_intercept")):
        raise ValueError(
            f"The worst rows for {type(inner).__name__} are not known: give audit_epsilon a pair, "
            "neighbour=(X2, y2)."
        )
    labels = np.unique(shared.y if inner.classes is None else np.asarray(inner.classes))
    signs, names, absent = np.ones(inside.size), np.repeat(labels[-1:], inside.size), None
    if estimator.adjacency == "add-remove":
        if not inner.fit_intercept:
            signs = np.where(inside, 1.0, 0.0)
        elif not inside.all():
            absent = len(shared.X) + np.flatnonzero(~inside)
    elif labels.size > 2:
        signs = np.where(inside, 1.0, -1.0)
    else:
        names = np.where(inside, labels[-1], labels[0])
    canaries = sparse.diags(resolve_data_norm(inner.data_norm) * signs)
    rows = sparse.block_diag((sparse.csr_matrix(shared.X), canaries), format="csr")
    return Table(rows, np.append(shared.y, names), absent)


def _worst_to_transform(estimator: Any, shared: Table) -> tuple[Table, Table, int]:
    """Add a row at one end of all public ranges, and one at the other end.

    Where rows have a bounded norm instead, it is one at the bound in a column of its own, and one
    in the first column, or of zeros under add-remove.
    """
    others = shared.X
    if hasattr(estimator, "lower") and estimator.adjacency == "replace-one":
        changed, row = (
            np.broadcast_to(v, others.shape[1]) for v in (estimator.lower, estimator.upper)
        )
    elif _zeros_are_nothing(estimator):
        others = np.column_stack([others, np.zeros(len(others))])
        row, changed = np.zeros((2, others.shape[1]))
        row[-1] = resolve_data_norm(estimator.data_norm)
        changed[0] = row[-1] if estimator.adjacency == "replace-one" else 0.0
    else:
        raise ValueError(
            f"The worst rows for {type(estimator).__name__} are not known: give "
            f"neighbour=(X2, y2). {NO_NULL_ROW}"
        )
    labels = np.append(shared.y, shared.y[-1:])
    one, other = (Table(np.vstack([others, each]), labels) for each in (row, changed))
    return one, other, len(others)


def given_pair(estimator: Any, X: Any, y: Any, neighbour: Any) -> tuple[Table, Table, int]:
    """Check that two tables are neighbours in the estimator's relation."""
    if isinstance(neighbour, str) or len(neighbour) != 2:
        raise ValueError(f"neighbour must be 'worst-case' or a pair (X2, y2), got {neighbour!r}.")
    one, other = _table(X, y), _table(*neighbour)
    relations = (getattr(step.estimator, "adjacency", None) for step in walk(estimator))
    add_remove = "add-remove" in relations
    if add_remove and len(one.X) == len(other.X) + 1:
        return _without_a_row(one, other)
    if one.X.shape != other.X.shape:
        raise ValueError(
            "The tables must have equally many columns, and equally many rows but under "
            "add-remove, where the second table may lack one."
        )
    differ = np.flatnonzero((one.X != other.X).any(axis=1) | (one.y != other.y))
    if differ.size != 1:
        raise ValueError(
            f"Neighbours differ in one row; these tables differ in {differ.size} of them."
        )
    changed = int(differ[0])
    if add_remove and not (
        _zeros_are_nothing(estimator) and (not one.X[changed].any() or not other.X[changed].any())
    ):
        raise ValueError(f"{NO_NULL_ROW} One of the two differing rows must be zeros.")
    return one, other, changed


def _zeros_are_nothing(estimator: Any) -> bool:
    """Tell whether a row of zeros is known to contribute nothing."""
    inner = getattr(estimator, "estimator", estimator)
    if hasattr(inner, "transform"):
        return hasattr(inner, "data_norm")
    return not getattr(inner, "fit_intercept", True)


def _without_a_row(one: Table, other: Table) -> tuple[Table, Table, int]:
    """Find the row that the second table lacks."""
    for row in range(len(one.X)):
        same = np.array_equal(np.delete(one.y, row), other.y)
        if same and np.array_equal(np.delete(one.X, row, axis=0), other.X):
            return one, replace(one, absent=row), row
    raise ValueError("The second table is not the first one without a row.")


def _table(X: Any, y: Any) -> Table:
    rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    labels = np.zeros(rows.shape[:1]) if y is None else np.asarray(y)
    if rows.ndim != 2 or labels.shape != rows.shape[:1]:
        raise ValueError(
            f"X must be a table and y have one label a row, got shapes {rows.shape} and "
            f"{labels.shape}."
        )
    return Table(rows, labels)
