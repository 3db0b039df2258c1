"""Schemas from bounds or from the columns of a table, and random rows of a schema; all public."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skdp.base.parameters import ListedMissing, check_integer
from skdp.preprocessing.schema.base import (
    Column,
    FeatureColumn,
    dtype_family,
    holds_dates,
)
from skdp.preprocessing.schema.calendars import (
    DAY,
    is_date,
    read_dates,
    zone_of,
)
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.dates import PARTS, PARTS_OF_DAYS, DateColumn, DaysBetweenColumn
from skdp.preprocessing.schema.files import refuse_unknown
from skdp.preprocessing.schema.frames import as_objects, column_types, import_pandas
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel
from skdp.preprocessing.schema.lists import KINDS, BooleanColumn, CategoricalColumn


def fields_from_bounds(
    bounds: Mapping[str, Any], label: str | None, missing: ListedMissing
) -> dict[str, Any]:
    """Return columns and label of a schema from bounds and lists by column."""
    if not isinstance(bounds, Mapping):
        raise TypeError(f"bounds must be a mapping by column, got {type(bounds).__name__}.")
    _refuse_no_column(label, list(bounds))
    columns = [_column_of(key, given, missing) for key, given in bounds.items() if key != label]
    if label is not None and isinstance(bounds[label], Set):
        raise ValueError(f"label {label!r}: give classes as a list; a set has no order.")
    found = None if label is None else _label_of(label, bounds[label])
    return {"columns": tuple(columns), "label": found}


def _label_of(name: str, given: Any) -> LabelColumn | NumericLabel:
    """Return the label; a tuple of two numbers means bounds, as for columns."""
    label: LabelColumn | NumericLabel
    if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(v, str) for v in given):
        label = NumericLabel(name, *given)
    else:
        label = LabelColumn(name, given)
    label.refuse_open()
    return label


def _column_of(name: str, given: Any, missing: ListedMissing) -> Column:
    if isinstance(given, Column):
        return dataclasses.replace(given, name=name)
    if isinstance(given, tuple) and len(given) == 2 and any(map(is_date, given)):
        # Waves of days follow years as well.
        left_out = {"year"} if any(":" in str(end) for end in given) else {"year", "hour"}
        parts = tuple(part for part in PARTS if part not in left_out)
        policies: dict[str, Any] = {"missing": missing, "unknown": missing}
        return DateColumn(name, *given, parts, encoding="waves", **policies)
    if isinstance(given, tuple) and len(given) == 2:
        column = NumericColumn(name, *given, encoding="waves", missing=missing)
        column.refuse_open()
        return column
    if not isinstance(given, Iterable) or isinstance(given, str | tuple | Set | Mapping):
        raise ValueError(
            f"column {name!r}: must be public bounds (lower, upper), the list of all its values, "
            f"or a column such as days_between(...); got {given!r}."
        )
    values = tuple(given)
    kind = BooleanColumn if len(values) == 2 else CategoricalColumn
    return kind(name, values, missing=missing)


def fields_of_draft(table: Any, dtypes: Any, label: str | None) -> dict[str, Any]:
    """Return open columns and label, from a frame, a mapping to kinds, or names and types."""
    columns = _draft_columns(table if dtypes is None else _typed(table, dtypes))
    _refuse_no_column(label, [column.name for column in columns])
    numeric = isinstance(table, Mapping) and table.get(label) == NumericLabel.kind
    found = None if label is None else (NumericLabel if numeric else LabelColumn)(label)
    return {"columns": tuple(c for c in columns if c.name != label), "label": found}


def _draft_columns(table: Any) -> list[Column]:
    """Return columns with names and kinds, from a frame, mapping or list of (name, type)."""
    kinds: list[tuple[str, Any]]
    if isinstance(table, Mapping):
        kinds = list(table.items())
        if not all(isinstance(kind, str) for kind in table.values()):
            raise TypeError(
                "a mapping must give a kind for each name. Pass columns as a pandas or polars "
                "frame."
            )
    else:
        if isinstance(table, list) and any(isinstance(entry, str) for entry in table):
            raise TypeError("a list of names needs dtypes=, a list of their types.")
        if isinstance(table, list) and not all(
            isinstance(entry, tuple) and len(entry) == 2 for entry in table
        ):
            raise TypeError("a list of rows has no names. Give names and dtypes=.")
        types = table if isinstance(table, list) else column_types(table)
        return [_draft_column(name, dtype) for name, dtype in types]
    known = [kind for kind in KINDS if kind != DaysBetweenColumn.kind]
    for name, kind in kinds:
        if kind not in known:
            raise ValueError(f"column {name!r}: kind: must be one of {', '.join(known)}.")
    return [KINDS[kind](name) for name, kind in kinds]


def _draft_column(name: str, dtype: Any) -> Column:
    """Return an open column of the kind that fits a type, in the time zone of the type."""
    if holds_dates(dtype):
        timed = not re.match("date(?:32|64|$)", str(dtype).lower())
        return DateColumn(name, parts=PARTS if timed else PARTS_OF_DAYS, timezone=zone_of(dtype))
    families = {"number": "numeric", "boolean": "boolean"}
    return KINDS[families.get(dtype_family(dtype), "categorical")](name)


def _typed(names: Any, dtypes: Any) -> list[tuple[str, Any]]:
    if isinstance(names, str | Mapping) or hasattr(names, "dtypes") or isinstance(dtypes, Mapping):
        raise TypeError("dtypes must be a list for a list of names; a table needs none.")
    pairs = list(names), list(dtypes)
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(
            f"dtypes: must have {len(pairs[0])} types, one per name; got {len(pairs[1])}."
        )
    return list(zip(*pairs, strict=True))


def _refuse_no_column(label: str | None, names: list[str]) -> None:
    if label is not None and label not in names:
        raise ValueError(f"label: {label!r} is not a column of the table.")


def sample_rows(schema: Any, n: int, marginals: Any, random_state: Any) -> Any:
    """Return a frame of rows that the description allows; marginals of None are uniform."""
    n = check_integer("n", n, at_least=1)
    given = dict(marginals or {})
    refuse_unknown("marginals", given, schema.features)
    rng = check_random_state(random_state)
    drawn: dict[str, Any] = {}
    ends: list[str] = []
    for column in sorted((schema[name] for name in schema.features), key=_is_difference):
        cells = _draw(column, given.get(column.name), n, rng)
        if not _is_difference(column):
            drawn[column.name] = cells
        elif column.end not in ends:  # another difference may have the same end
            starts = drawn.setdefault(column.start, np.full(n, "2000-01-01", "M8[s]"))
            drawn[column.end] = starts + (cells * DAY).astype("m8[s]")
            ends.append(column.end)
    return import_pandas().DataFrame({name: drawn[name] for name in schema.inputs})


def _is_difference(column: Any) -> bool:
    return isinstance(column, DaysBetweenColumn)


def _draw(column: FeatureColumn, marginal: Any, n: int, rng: Any) -> Any:
    """Draw cells of one column; a marginal of None is uniform."""
    column.refuse_open()
    try:
        if isinstance(column, NumericColumn):
            return _draw_between((column.lower, column.upper), marginal, n, rng)
        if isinstance(column, DateColumn):
            found = None if marginal is None else read_dates(as_objects(marginal), column.timezone)
            seconds = _draw_between(column.ends, found, n, rng).astype(np.int64)
            return (seconds - seconds % (1 if "hour" in column.parts else DAY)).astype("M8[s]")
        # Not an array of the list, which would give all its values one type.
        listed = list(column.listed() or ())
        return [listed[place] for place in rng.choice(len(listed), n, p=marginal)]
    except (TypeError, ValueError) as error:
        raise column._fail("marginals", f"does not fit the column. {error}") from error


def _draw_between(bounds: Any, marginal: Any, n: int, rng: Any) -> np.ndarray:
    """Draw numbers between equally likely edges; None uses only the bounds."""
    edges = np.asarray(bounds if marginal is None else marginal, float)
    inside = edges.ndim == 1 and edges.size > 1 and np.all(np.diff(edges) >= 0.0)
    if not (inside and bounds[0] <= edges[0] and edges[-1] <= bounds[1]):
        raise ValueError("Give two or more edges within the bounds, in non-decreasing order.")
    place = rng.randint(edges.size - 1, size=n)
    return np.asarray(edges[place] + rng.uniform(size=n) * np.diff(edges)[place])
