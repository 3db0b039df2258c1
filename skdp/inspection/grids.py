"""Public grids of declared columns: what a cell may be, and the uniform law on it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.preprocessing import NumericColumn
from skdp.preprocessing.schema.base import FeatureColumn, as_numbers
from skdp.preprocessing.schema.columns import coarsen

Array = NDArray[np.float64]

# Even numbers on a grid, with the cuts beside them; fewer where several grids are crossed.
_EVENLY, _EVENLY_CROSSED = 101, 25


def public_grids(columns: Sequence[FeatureColumn]) -> list[tuple[NDArray[Any], Array]]:
    """Return the grid of each column, and the weights of the uniform law."""
    count = _EVENLY
    if len(columns) > 1:  # which sees cells alone
        count, columns = _EVENLY_CROSSED, [coarsen(column) for column in columns]
    return [_grid(column, count) for column in columns]


def cross(grids: Sequence[tuple[NDArray[Any], Array]]) -> tuple[NDArray[Any], Array]:
    """Return all combinations of cells, one a row, and their weights; of one grid its cells."""
    if len(grids) == 1:
        return grids[0]
    rows = list(itertools.product(*(cells.tolist() for cells, _ in grids)))
    weights = functools.reduce(np.multiply.outer, [weights for _, weights in grids])
    return np.array(rows, dtype=object), np.ravel(weights)


def _grid(column: FeatureColumn, count: int) -> tuple[NDArray[Any], Array]:
    """Return cells from the declared range, or the list, and weights.

    Of numbers each cut is there twice, as the largest number below and as itself, and weights are
    those of the trapezoidal rule: exact of steps and of lines.
    """
    if not isinstance(column, NumericColumn):
        values = list(column.listed() or ())
        grid = np.fromiter(values, dtype=object, count=len(values))
        return grid, np.full(grid.size, 1.0 / grid.size)
    cuts = np.array([*column.thresholds, *(column.spikes or ())], dtype=np.float64)
    cuts.sort()
    lower, upper = _range_of(column, cuts)
    places = [*np.linspace(lower, upper, count), *cuts, *np.nextafter(cuts, -np.inf)]
    if {"scaled", "waves"} & set(column.parts):  # which may bend anywhere on their scale
        places += column.spaced(count)
    grid = np.unique(places)
    grid = grid[~np.isnan(as_numbers(grid, column.missing_codes))]
    gaps = np.diff(grid)
    weights = np.concatenate([gaps, [0.0]]) + np.concatenate([[0.0], gaps])
    return grid, weights / weights.sum()


def _range_of(column: NumericColumn, cuts: Array) -> tuple[float, float]:
    """Return the declared bounds; without them the cuts, and half a mean gap on both sides."""
    if column.lower is not None and column.upper is not None:
        ends = [column.lower, column.upper, *cuts]
        return min(ends), max(ends)
    gap = float(np.ptp(cuts)) / (cuts.size - 1) if cuts.size > 1 else max(1.0, abs(cuts[0]))
    return float(cuts[0] - gap / 2.0), float(cuts[-1] + gap / 2.0)


def other_cells(columns: Sequence[FeatureColumn]) -> dict[str, NDArray[Any]]:
    """Return one cell for each way, other than by a value, in which a column may be filled."""
    if len(columns) > 1:
        return {}
    column = columns[0]
    numeric = isinstance(column, NumericColumn)
    cells: dict[str, Any] = {"missing": np.nan if numeric else None, "unknown": object()}
    policies = {name: getattr(column, name, "refuse") for name in cells}
    return {
        name: np.array([cell], dtype=np.float64 if numeric else object)
        for name, cell in cells.items()
        if policies[name] in ("ignore", "indicator")
    }
