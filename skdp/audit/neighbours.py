"""Pairs of neighbouring tables: worst cases, and custom pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skdp.base.pipelines import walk
from skdp.base.scikit_learn import responds, template_of
from skdp.budget.charging import find_relation
from skdp.tables.inputs import resolve_data_norm
from skdp.tables.units import units_of

NO_NULL_ROW = (
    "Under add-remove, a row of zeros represents an absent row. It contributes nothing to a "
    "classifier with fit_intercept=False or to a transformer of rows of bounded norm, but it does "
    "to this estimator."
)


@dataclass(frozen=True)
class Table:
    """Rows and labels; fits use only the number of the rows `absent`."""

    X: Any
    y: np.ndarray
    absent: Any = None
    groups: Any = None  # ids; tables then differ in the rows of one id

    @property
    def given(self) -> dict[str, Any]:
        """Further arguments of a fit."""
        return {} if self.groups is None else {"groups": self.groups}


def worst_case(estimator: Any, X: Any, y: Any, groups: Any = None) -> tuple[Table, Table, int]:
    """Return tables with one more row at the public bound, and with its worst neighbour.

    With ids, another id has this row, in the largest number that counts.
    """
    inner = template_of(estimator)
    if responds(inner, "transform"):
        one, other, changed = _worst_to_transform(inner, _table(X, y))
    else:
        pair = (with_canaries(estimator, X, y, np.array([inside])) for inside in (True, False))
        one, other = (replace(table, X=table.X.toarray()) for table in pair)
        changed = len(one.X) - 1
    if groups is None:
        return one, other, changed
    if other.absent is not None:
        raise ValueError(NO_NULL_ROW)
    units = units_of(groups, changed)
    sums = not responds(inner, "transform") and inner.unit_weighting == "sum"
    several = inner.max_unit_rows if sums else 1
    rows = np.append(np.arange(changed), np.repeat(changed, several))
    ids = np.append(units.codes, np.repeat(units.n_units, several))
    one, other = (Table(each.X[rows], each.y[rows], groups=ids) for each in (one, other))
    return one, other, units.n_units


def with_canaries(estimator: Any, X: Any, y: Any, inside: np.ndarray) -> Table:
    """Return a table with rows at the norm bound in separate columns, or their neighbours.

    Under replace-one a neighbour has the opposite label, or the opposite row with more than two
    labels. Under add-remove it is a row of zeros, or absent with an intercept.
    """
    inner, shared = template_of(estimator), _table(X, y)
    if not all(responds(inner, name) for name in ("data_norm", "classes", "fit_intercept")):
        raise ValueError(
            f"The worst rows for {type(inner).__name__} are not known. Use audit_epsilon with a "
            "pair, neighbour=(X2, y2)."
        )
    labels = np.unique(shared.y if inner.classes is None else np.asarray(inner.classes))
    signs, names, absent = np.ones(inside.size), np.repeat(labels[-1:], inside.size), None
    if find_relation(estimator) == "add-remove":
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
    """Return tables with a row at one end of all public ranges, and at the other end.

    For rows of bounded norm, one is at the bound in a new column. The other is in the first column,
    or zeros under add-remove.
    """
    others = shared.X
    if responds(estimator, "lower") and find_relation(estimator) == "replace-one":
        changed, row = (
            np.broadcast_to(v, others.shape[1]) for v in (estimator.lower, estimator.upper)
        )
    elif _zeros_are_nothing(estimator):
        others = np.column_stack([others, np.zeros(len(others))])
        row, changed = np.zeros((2, others.shape[1]))
        row[-1] = resolve_data_norm(estimator.data_norm)
        changed[0] = row[-1] if find_relation(estimator) == "replace-one" else 0.0
    else:
        raise ValueError(
            f"The worst rows for {type(estimator).__name__} are not known. Pass "
            f"neighbour=(X2, y2). {NO_NULL_ROW}"
        )
    labels = np.append(shared.y, shared.y[-1:])
    one, other = (Table(np.vstack([others, each]), labels) for each in (row, changed))
    return one, other, len(others)


def given_pair(
    estimator: Any, X: Any, y: Any, neighbour: Any, groups: Any = None
) -> tuple[Table, Table, int]:
    """Check that two tables are neighbours under the estimator's adjacency."""
    parts = 2 if groups is None else 3
    if isinstance(neighbour, str) or len(neighbour) != parts:
        raise ValueError(
            "neighbour must be 'worst-case' or (X2, y2), or (X2, y2, groups2) with groups=, "
            f"got {neighbour!r}."
        )
    one, other = _table(X, y, groups), _table(*neighbour)
    steps = [step.estimator for step in walk(estimator)]
    relations = [find_relation(step) for step in steps if hasattr(step, "adjacency")]
    add_remove = "add-remove" in relations
    if groups is not None:
        return _differing_in_a_unit(estimator, one, other, add_remove)
    if add_remove and len(one.X) == len(other.X) + 1:
        return _without_a_row(one, other)
    if one.X.shape != other.X.shape:
        raise ValueError(
            "The tables must have the same number of columns and of rows. Only under add-remove "
            "may the second table lack one row."
        )
    differ = np.flatnonzero((one.X != other.X).any(axis=1) | (one.y != other.y))
    if differ.size != 1:
        raise ValueError(
            f"Neighbouring tables must differ in one row, but these differ in {differ.size} rows."
        )
    changed = int(differ[0])
    if add_remove:
        _check_null(estimator, one.X[changed], other.X[changed])
    return one, other, changed


def _check_null(estimator: Any, one: np.ndarray, other: np.ndarray) -> None:
    """Refuse pairs in which both rows contribute to the fit."""
    if not (_zeros_are_nothing(estimator) and (not one.any() or not other.any())):
        raise ValueError(f"{NO_NULL_ROW} The differing row must be zeros in one table.")


def _differing_in_a_unit(
    estimator: Any, one: Table, other: Table, add_remove: bool
) -> tuple[Table, Table, int]:
    """Find the id with differing rows, in any number per table."""
    sides = [(table, units_of(table.groups, len(table.X))) for table in (one, other)]
    if sides[0][1].ids != sides[1][1].ids or one.X.shape[1] != other.X.shape[1]:
        raise ValueError("The tables must have the same number of columns and the same ids.")
    rows = [np.split(units.order, units.starts[1:-1]) for _, units in sides]
    differ = [
        (unit, one.X[first], other.X[second])
        for unit, (first, second) in enumerate(zip(*rows, strict=True))
        if not np.array_equal(one.X[first], other.X[second])
        or not np.array_equal(one.y[first], other.y[second])
    ]
    if len(differ) != 1:
        raise ValueError(
            f"Neighbouring tables must differ in one id, but these differ in {len(differ)} ids."
        )
    unit, first, second = differ[0]
    if add_remove:
        _check_null(estimator, first, second)
    return one, other, unit


def _zeros_are_nothing(estimator: Any) -> bool:
    """Return whether a row of zeros certainly contributes nothing."""
    inner = template_of(estimator)
    if responds(inner, "transform"):
        return responds(inner, "data_norm")
    return responds(inner, "fit_intercept") and not inner.fit_intercept


def _without_a_row(one: Table, other: Table) -> tuple[Table, Table, int]:
    """Find the row that the second table lacks."""
    for row in range(len(one.X)):
        same = np.array_equal(np.delete(one.y, row), other.y)
        if same and np.array_equal(np.delete(one.X, row, axis=0), other.X):
            return one, replace(one, absent=row), row
    raise ValueError("The second table must be the first one without a row.")


def _table(X: Any, y: Any, groups: Any = None) -> Table:
    rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    labels = np.zeros(rows.shape[:1]) if y is None else np.asarray(y)
    if rows.ndim != 2 or labels.shape != rows.shape[:1]:
        raise ValueError(
            f"X must be a table and y must have one label per row, got shapes {rows.shape} and "
            f"{labels.shape}."
        )
    return Table(rows, labels, groups=groups)
