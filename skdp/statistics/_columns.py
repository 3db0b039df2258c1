"""One column of a table as numbers or places on a public list, each cell by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.preprocessing import BooleanColumn, CategoricalColumn, NumericColumn, TableSchema
from skdp.preprocessing.schema.base import FeatureColumn
from skdp.preprocessing.schema.frames import import_pandas, refuse_container, series_cells


def cells_of(column: Any) -> np.ndarray:
    """Return the cells of a pandas or polars series, an array or a list."""
    refuse_container(column, column=True)
    if hasattr(column, "dtypes") and hasattr(column, "columns"):
        raise TypeError("column must be one column, got a frame: give frame['name'].")
    if hasattr(getattr(column, "dtype", None), "construct_array_type"):  # of pandas, no series
        column = import_pandas().Series(column)
    if hasattr(column, "iloc") or hasattr(getattr(column, "dtype", None), "is_float"):
        return series_cells(column)  # of pandas, of polars
    if isinstance(column, str | bytes | dict) or not hasattr(column, "__iter__"):
        raise TypeError(
            f"column must be a series, an array or a list of cells, got {type(column).__name__}."
        )
    # A list becomes objects: otherwise one cell would decide about the type of the others.
    cells = column if hasattr(column, "dtype") else np.fromiter(column, dtype=object)
    cells = np.asarray(cells)
    if cells.ndim != 1:
        raise ValueError(f"column must have one dimension, got shape {cells.shape}.")
    return cells


def listed_column(column: Any, categories: Any, schema: Any) -> FeatureColumn:
    """Return the description of a column with a public list."""
    if (categories is None) == (schema is None):
        raise ValueError("give categories=[...] from a code book, or a schema that has them.")
    if schema is not None:
        found = described(column, schema)
        if not found.listed():
            raise ValueError(
                f"column {found.name!r} has no list of values in the schema: describe it as a "
                "CategoricalColumn, or give categories=[...]."
            )
        return found
    name = str(getattr(column, "name", None) or "column")
    categories = categories if isinstance(categories, str) else list(categories)
    if len(categories) == 2 and all(isinstance(value, bool | np.bool_) for value in categories):
        return BooleanColumn(name, categories, missing="ignore")
    return CategoricalColumn(name, categories, missing="ignore")


def bounded_column(column: Any, lower: Any, upper: Any, schema: Any) -> NumericColumn:
    """Return the description of a column of numbers with public bounds."""
    if schema is None:
        if lower is None or upper is None:
            raise ValueError(
                "give lower= and upper= from a code book, a device or physiology, never from the "
                "column, or a schema that has them."
            )
        name = str(getattr(column, "name", None) or "column")
        return NumericColumn(name, lower, upper, missing="ignore")
    if lower is not None or upper is not None:
        raise ValueError("give lower= and upper=, or a schema that has them, not both.")
    found = described(column, schema)
    if not isinstance(found, NumericColumn):
        raise ValueError(f"column {found.name!r} is no NumericColumn of the schema.")
    bounds_of(found)
    return found


def described(column: Any, schema: Any) -> FeatureColumn:
    """Return the description that a schema has of a named column."""
    if isinstance(schema, FeatureColumn):
        return schema
    if not isinstance(schema, TableSchema):
        raise TypeError(
            f"schema must be a TableSchema or one of its columns, got {type(schema).__name__}."
        )
    schema.unit.warn_of_rows(stacklevel=5)
    name = getattr(column, "name", None)
    if name is None:
        raise ValueError("the column has no name to find it by: give schema=schema['name'].")
    found = schema[str(name)]
    if not isinstance(found, FeatureColumn):
        raise ValueError(f"column {found.name!r} is ignored in the schema: describe it.")
    return found


def numbers_of(cells: np.ndarray, column: NumericColumn) -> np.ndarray:
    """Return cells as numbers, clipped to the bounds; NaN where one is missing."""
    numbers = column.read(cells)
    if np.isinf(numbers).any():
        raise ValueError(
            f"column {column.name!r} holds infinite values: replace each by a public bound, or "
            "by a missing one, row by row."
        )
    return np.clip(numbers, *bounds_of(column))


def positions(cells: np.ndarray, column: NumericColumn) -> np.ndarray:
    """Return where cells lie between the bounds, in [0, 1]; NaN where one is missing."""
    lower, upper = bounds_of(column)
    return np.clip((numbers_of(cells, column) - lower) / (upper - lower), 0.0, 1.0)


def bounds_of(column: NumericColumn) -> tuple[float, float]:
    """Return the public bounds of a column."""
    if column.lower is None or column.upper is None:
        raise ValueError(f"column {column.name!r} has no bounds in the schema.")
    return column.lower, column.upper
