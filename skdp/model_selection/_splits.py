"""Parts and folds of a table that do not depend on its rows."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from skdp.mechanisms.random_stream import RandomStream

_FEWEST_ROWS = 2


def assign_folds(
    n_rows: int, n_folds: int, adjacency: str, stream: RandomStream
) -> list[np.ndarray]:
    """Divide the numbers of rows, or of units, into folds without a look at any; so is `stream`.

    Replace-one: folds of equal size, as a replaced row stays in its place. Add-remove: each row
    rolls a die of its own, so that its presence has no influence on where the others go.
    """
    uniforms = stream.uniform(n_rows)
    if adjacency == "add-remove":
        labels = (uniforms * n_folds).astype(np.intp)
        return [np.flatnonzero(labels == fold) for fold in range(n_folds)]
    order = np.argsort(uniforms, kind="stable")
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def assign_holdout(n_rows: int, fraction: float, adjacency: str, stream: RandomStream) -> list[Any]:
    """Divide row numbers into a part to train on and a part to score on, as `assign_folds` does."""
    uniforms = stream.uniform(n_rows)
    if adjacency == "add-remove":
        held = uniforms < fraction
    else:
        held = np.zeros(n_rows, dtype=bool)
        n_held = min(max(round(fraction * n_rows), 1), max(n_rows - 1, 1))
        held[np.argsort(uniforms, kind="stable")[:n_held]] = True
    return [np.flatnonzero(~held), np.flatnonzero(held)]


def check_parts(train_sizes: list[int], n_rows: int, what: str) -> None:
    """Refuse a division that leaves too little to train on."""
    if min(train_sizes) < _FEWEST_ROWS:
        raise ValueError(
            f"A table of n_samples={n_rows} has too few rows or units for {what}: at least "
            f"{_FEWEST_ROWS} must be left to train on."
        )


def resolve_cv(cv: Any) -> int:
    """Return the number of folds that `cv` asks for, and refuse divisions that see the rows."""
    if type(cv) is KFold:
        return int(cv.n_splits)
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        if int(cv) >= 2:
            return int(cv)
        raise ValueError(f"cv must be at least 2 folds, got {cv!r}.")
    name = type(cv).__name__
    if "Stratified" in name:
        raise ValueError(
            f"cv={name} divides rows by their private labels: one changed label moves other rows "
            "to other folds, and the bound on what one row can change fails for every fit. Give a "
            "number of folds; they are drawn at random without looking at the rows."
        )
    raise ValueError(
        f"cv must be a number of folds or a KFold, got {name}: only folds that provably ignore the "
        "rows keep the guarantee. Give a number of folds."
    )
