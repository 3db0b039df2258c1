"""Synthetic rows that show whether a function mixes rows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import clone

_ROWS = 12
# Functions may be slow, and every candidate of a search asks again.
_verdicts: WeakKeyDictionary[Any, dict[Any, bool]] = WeakKeyDictionary()
# Of an unfitted step the number of columns is not known.
_WIDTHS = (1, 2, 3, 5)


def mixes_rows(step: Any) -> bool:
    """Tell whether synthetic rows show that what becomes of a row depends on other rows."""
    # False proves nothing: the function may raise on rows that are not those it was made for.
    known = getattr(step, "n_features_in_", None), step.validate
    verdicts: dict[Any, bool] = {}
    with suppress(TypeError):  # not every callable can be remembered
        # Arguments may be large arrays, which no short key tells apart.
        verdicts = verdicts if step.kw_args else _verdicts.setdefault(step.func, {})
    if known not in verdicts:
        with warnings.catch_warnings(), np.errstate(all="ignore"), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            verdicts[known] = any(_shows_mixing(step, table) for table in _tables(step))
    return verdicts[known]


def _tables(step: Any) -> Iterator[Any]:
    generator = np.random.default_rng(0)
    known = getattr(step, "n_features_in_", None)
    names = getattr(step, "feature_names_in_", None)
    for width in _WIDTHS if known is None else (known,):
        table = generator.normal(0.0, 3.0, (_ROWS, width))
        gaps = np.where(generator.random(table.shape) < 0.2, np.nan, table)
        for rows in (table, np.floor(np.abs(table)), gaps):
            yield rows
            if names is not None and "pandas" in sys.modules:
                yield sys.modules["pandas"].DataFrame(rows, columns=names)


def _shows_mixing(step: Any, table: Any) -> bool:
    half = _ROWS // 2
    order = np.roll(np.arange(_ROWS), 5)[::-1]
    changed = table.copy()
    changed[-1:] = 1e6
    try:
        whole = _outputs(step, table)
        if len(whole) != _ROWS:
            return True
        others = [
            np.concatenate([_outputs(step, table[:half]), _outputs(step, table[half:])]),
            _outputs(step, _reorder(table, order))[np.argsort(order)],
            np.concatenate([_outputs(step, changed)[:-1], whole[-1:]]),
        ]
        return not all(_are_alike(whole, other) for other in others)
    except Exception:
        return False


def _reorder(table: Any, order: np.ndarray) -> Any:
    return table.iloc[order] if hasattr(table, "iloc") else table[order]


def _outputs(step: Any, table: Any) -> np.ndarray:
    # The copy keeps state of its own, and a function may write to the table.
    made = clone(step).set_output(transform="default").set_params(check_inverse=False)
    found = made.fit_transform(table.copy())
    rows = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
    return rows if rows.dtype.kind == "f" else rows.astype(float)


def _are_alike(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape:
        return False
    # Products of matrices round by their shapes, in single precision even visibly.
    share = 1e-9 if one.dtype.itemsize >= 8 else 1e-4
    scale = np.max(np.abs(one), initial=0.0, where=np.isfinite(one))
    return np.allclose(one, other, share, share * scale, equal_nan=True)
