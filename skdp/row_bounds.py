"""Which arrays are known to keep to a public norm, and the warning where none is known.

Transformers note the bound on what they hand on; it follows from parameters and released numbers.
A private fit that is given no `data_norm` looks for the note. Neither looks at a value of a row.
"""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import numpy as np
from scipy import sparse

from skdp.exceptions import PrivacyWarning
from skdp.row_sources import RowSource

# By the address of the memory, for as long as the array that owns it lives.
_notes: dict[int, tuple[weakref.ref[Any], float]] = {}


def resolve_data_norm(data_norm: float | None) -> float:
    """Return the bound on rows that is in force: 1.0 where none is given."""
    return 1.0 if data_norm is None else float(data_norm)


def note_bound(rows: Any, norm: float) -> Any:
    """Remember that rows in memory of their own have at most a norm, and return them."""
    if isinstance(rows, RowSource):
        rows.norm_bound = float(norm)
        return rows
    if hasattr(rows, "__dask_graph__"):  # has no memory yet
        return rows
    owner = _owner(rows)
    key = owner.ctypes.data
    _notes[key] = weakref.ref(owner, lambda _: _notes.pop(key, None)), float(norm)
    return rows


def known_bound(*tables: Any) -> float | None:
    """Return the noted bound of the first table that has one; copies of rows have none."""
    for table in tables:
        if isinstance(table, RowSource):
            if table.norm_bound is not None:
                return table.norm_bound
            continue
        if not (sparse.issparse(table) or hasattr(table, "__array__")):
            continue
        if hasattr(table, "__dask_graph__"):
            continue
        reference, norm = _notes.get(_owner(table).ctypes.data, (None, 0.0))
        if reference is not None and reference() is not None:
            return norm
    return None


def _owner(rows: Any) -> np.ndarray:
    """Return the array that owns the memory of rows, of a frame without copying where it can."""
    owner = np.asarray(getattr(rows, "data", None) if sparse.issparse(rows) else rows)
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def warn_of_unbounded_rows(
    estimator: Any, tables: tuple[Any, ...], stacklevel: int, bound: float | None = None
) -> bool:
    """Warn if `data_norm` is None and rows are not known to keep to 1.0; return whether it did."""
    if getattr(estimator, "data_norm", 1.0) is not None:
        return False
    bound = known_bound(*tables) if bound is None else bound
    if bound is not None and bound <= 1.0 + 1e-9:
        return False
    found, remedy = "no step of skdp in front is known to bound its rows", ", a public bound"
    if bound is not None:
        found, remedy = f"the step in front bounds its rows by {bound:.6g}", f"={bound:.6g}"
    warnings.warn(
        f"{type(estimator).__name__} was given no data_norm and takes 1.0, while {found}: longer "
        "rows are all shortened to that, and may then look alike. Give data_norm"
        f"{remedy}, or bound them by TableSchema(...).pipeline, BoundedScaler or RowNormClipper.",
        PrivacyWarning,
        stacklevel=stacklevel + 1,
    )
    return True
