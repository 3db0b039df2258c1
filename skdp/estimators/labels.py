"""Label sets, given or read from y, and numeric targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from skdp.tables.inputs import HOLDS_TIMES, holds_times, nearest_float

_AT_ONCE = 1 << 20
_MANY_KINDS = (
    "Unknown label type: y contains labels of types that cannot be compared, such as strings and "
    "missing values, or of an unknown type. Use integers or strings for all labels."
)


def encode_labels(
    y: np.ndarray, classes: Any, listed: str = "classes="
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted label set and each row's position in it, as int32.

    With ``classes=None`` the set is read from `y`. Messages quote no label of any row.
    """
    # scikit-learn checks only the first object.
    if y.dtype.kind == "O" and not all(isinstance(label, str) for label in y):
        raise ValueError(_MANY_KINDS)
    if y.dtype.kind not in "biu":  # integers are labels; checking them takes time
        with np.errstate(invalid="ignore"):  # it casts NaN before it refuses it
            check_classification_targets(y)
    if classes is None:
        if y.dtype.kind in "biu":
            labels = np.unique(np.concatenate([np.unique(part) for part in _parts(y)]))
            codes = _positions(labels, y)
        else:
            labels, codes = np.unique(y, return_inverse=True)
        if labels.size < 2:
            raise ValueError(
                "y holds one class only: a classifier needs at least two classes. If these rows "
                "merely lack the other class, pass the label set as classes=."
            )
        return labels, codes.astype(np.int32, copy=False)
    labels = _public_labels(classes)
    if y.dtype.kind in "OUS" or labels.dtype.kind in "OUS":
        position = {label: code for code, label in enumerate(labels.tolist())}
        codes = np.array([position.get(label, -1) for label in y.tolist()], dtype=np.int32)
    else:
        codes = _positions(labels, y)
    if np.any(codes < 0):
        raise ValueError(
            f"y holds labels that are not in {listed}: these must name every label that "
            "can occur, with the type that it has in y."
        )
    return labels, codes


def _parts(y: np.ndarray) -> Iterator[np.ndarray]:
    """Yield labels in parts, to limit the memory of intermediate results."""
    yield from (y[start : start + _AT_ONCE] for start in range(0, max(y.size, 1), _AT_ONCE))


def _positions(labels: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return each row's position among sorted labels; -1 for unknown labels."""
    codes = np.empty(y.size, np.int32)
    for part, found in zip(_parts(y), _parts(codes), strict=True):
        found[:] = np.searchsorted(labels, part)
        found[labels[np.minimum(found, labels.size - 1)] != part] = -1
    return codes


def read_numbers(y: np.ndarray) -> np.ndarray:
    """Return finite numeric targets; messages quote none.

    Strings are converted by Python's ``float``; times, bytes and records are refused.
    """
    numbers = None
    with suppress(TypeError, ValueError):
        if y.dtype.kind == "O" or (y.dtype.kind == "f" and y.dtype.itemsize > 8):
            cells = [np.nan if cell is None else cell for cell in y.tolist()]
            y = y if holds_times(y) else np.array([nearest_float(cell) for cell in cells])
        if y.dtype.kind not in "OSV" and not holds_times(y):
            numbers = np.asarray(y, dtype=np.float64)
    if numbers is None:
        if y.dtype.kind in "mM":
            raise ValueError(f"y has type {y.dtype} and {HOLDS_TIMES}")
        raise ValueError(
            "y must contain numbers; regressors do not support labels, times or bytes."
        )
    if not np.isfinite(numbers).all():
        raise ValueError("Input y contains NaN or infinity. Drop such rows by a public rule.")
    return numbers


def _public_labels(classes: Any) -> np.ndarray:
    try:
        given = np.asarray(classes)
        labels = np.unique(given)
    except (TypeError, ValueError):
        raise ValueError(
            f"classes must be a flat list of labels of one type, got {classes!r}."
        ) from None
    if given.dtype.kind == "U" and not all(isinstance(label, str) for label in classes):
        raise ValueError(f"classes must be labels of one type, got {classes!r}.")
    if given.ndim != 1 or labels.size != given.size:
        raise ValueError(f"classes must be a flat list of distinct labels, got {classes!r}.")
    if labels.size < 2:
        raise ValueError(f"classes must name at least two labels, got {classes!r}.")
    return labels
