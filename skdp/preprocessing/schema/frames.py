"""Compare tables with schemas, and draft schemas, by names and types alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from skdp.preprocessing.schema.base import Column, refuse_misfits
from skdp.preprocessing.schema.io import KINDS
from skdp.preprocessing.schema.values import dtype_family, refuse_container


def column_types(frame: Any) -> list[tuple[str, Any]]:
    """Return names and types of a frame's columns."""
    refuse_container(frame)
    if not hasattr(frame, "columns") or not hasattr(frame, "dtypes"):
        raise TypeError(
            f"need a pandas or polars frame with named columns, got {type(frame).__name__}. "
            "An array whose columns are the schema's features, in their order, is not split: give "
            "it to schema.pipeline(estimator, positions=True)."
        )
    return list(zip(list(frame.columns), list(frame.dtypes), strict=True))


def check_frame(schema: Any, frame: Any, *, label: bool) -> None:
    """Compare a frame with a schema; no cell is looked at."""
    types = column_types(frame)
    names = Counter(name for name, _ in types)
    parts = {part.name: part for part in schema.columns}
    needed = list(schema.features)
    if schema.label is not None:
        parts[schema.label.name] = schema.label
        needed += [schema.label.name] if label else []
    problems = [f"column {name!r} is missing." for name in needed if name not in names]
    for name, count in names.items():
        if count > 1:
            problems.append(f"column {name!r} occurs more than once.")
        elif name not in parts and name != schema.unit.column:
            problems.append(
                f"column {name!r} is not in the schema: describe it, as an IgnoredColumn if it is "
                "not to be used."
            )
    refuse_misfits(((parts[name], dtype) for name, dtype in types if name in parts), problems)


def draft_columns(table: Any) -> list[Column]:
    """Return columns with names and kinds, of a frame, mapping or list of (name, type)."""
    if isinstance(table, Mapping):
        kinds = list(table.items())
        if not all(isinstance(kind, str) for kind in table.values()):
            raise TypeError(
                "a mapping gives a kind for each name; make a pandas or polars frame of columns."
            )
    else:
        if isinstance(table, list) and any(isinstance(entry, str) for entry in table):
            raise TypeError("names alone need dtypes=, a list of their types.")
        if isinstance(table, list) and not all(
            isinstance(entry, tuple) and len(entry) == 2 for entry in table
        ):
            raise TypeError("a list of rows has no names; give names, and dtypes=.")
        families = {"number": "numeric", "boolean": "boolean", "text": "categorical"}
        kinds = [
            (name, families.get(dtype_family(dtype), "categorical"))
            for name, dtype in (table if isinstance(table, list) else column_types(table))
        ]
    for name, kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"column {name!r}: kind: must be one of {', '.join(KINDS)}.")
    return [KINDS[kind](name) for name, kind in kinds]


def import_pandas() -> Any:
    """Return pandas; without it the error names the extra to install."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "Tables are read as pandas frames: pip install 'skdp[datasets]'. Schemas themselves "
            "need no pandas."
        ) from error
    return pandas
