"""Schemas from bounds and lists, and drafts from names and types; no cell is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Self

from skdp.choices import ListedMissing
from skdp.preprocessing.schema.base import Column, SchemaPart
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.frames import draft_columns
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel
from skdp.preprocessing.schema.lists import BooleanColumn, CategoricalColumn


class SchemaDrafts(SchemaPart):
    """The part of a schema that starts one."""

    @classmethod
    def from_bounds(
        cls,
        bounds: Mapping[str, Any],
        *,
        label: str | None = None,
        name: str = "",
        missing: ListedMissing = "indicator",
    ) -> Self:
        """Return a schema from a pair of bounds or a list of values for each column.

        Bounds and lists must be public. Columns of numbers become waves between their bounds
        (``encoding="waves"`` of `NumericColumn`), lists of two values one feature, longer ones
        categories.

        Parameters
        ----------
        bounds : mapping
            By the name of a column a tuple ``(lower, upper)``, or a list of all its values.
        label : str or None, default=None
            The column to predict, whose list in `bounds` holds its classes, or its bounds.
        name : str, default=""
            Name of the table.
        missing : {"indicator", "ignore", "refuse"}, default="indicator"
            What becomes of missing cells in all columns; see `NumericColumn`.

        Returns
        -------
        TableSchema
            The schema.

        Raises
        ------
        ValueError
            If a column has neither bounds nor values; the message names it.

        Examples
        --------
        >>> from skdp.preprocessing import TableSchema
        >>> schema = TableSchema.from_bounds(
        ...     {"age": (18, 100), "ward": ["A", "B", "C"], "ill": [0, 1]}, label="ill"
        ... )
        >>> schema.features, schema.label.classes
        (['age', 'ward'], (0, 1))
        """
        if not isinstance(bounds, Mapping):
            raise TypeError(f"bounds must be a mapping by column, got {type(bounds).__name__}.")
        _refuse_no_column(label, list(bounds))
        columns = [_column_of(key, given, missing) for key, given in bounds.items() if key != label]
        if label is not None and isinstance(bounds[label], Set):
            raise ValueError(f"label {label!r}: give classes as a list: a set has no order.")
        found = None if label is None else _label_of(label, bounds[label])
        return cls(**{"columns": tuple(columns), "label": found, "name": name})

    @classmethod
    def draft(
        cls, table: Any, dtypes: Any = None, *, label: str | None = None, name: str = ""
    ) -> Self:
        """Return a schema with the columns of a table and everything else left open.

        Only names and types are read: bounds and lists are for you to fill in from public
        sources, and `preprocessor` refuses until they are.

        Parameters
        ----------
        table : DataFrame, mapping or sequence of str
            A frame, or a kind of column (such as "numeric") for each name; or names alone, with
            `dtypes`.
        dtypes : sequence or None, default=None
            The type of each column, such as ``frame.dtypes``, where `table` holds names.
        label : str or None, default=None
            Name of the column to predict: its classes are left open, or its bounds if a mapping
            gives it the kind "numeric".
        name : str, default=""
            Name of the table.

        Returns
        -------
        TableSchema
            The draft; see `left_open`.

        Examples
        --------
        >>> from skdp.preprocessing import TableSchema
        >>> TableSchema.draft(["age", "ward"], ["float64", "object"]).left_open()
        {'age': ('lower', 'upper'), 'ward': ('categories',)}
        """
        columns = draft_columns(table if dtypes is None else _typed(table, dtypes))
        _refuse_no_column(label, [column.name for column in columns])
        kept = tuple(column for column in columns if column.name != label)
        numeric = isinstance(table, Mapping) and table.get(label) == NumericLabel.kind
        found = None if label is None else (NumericLabel if numeric else LabelColumn)(label)
        return cls(**{"columns": kept, "label": found, "name": name})


def _label_of(name: str, given: Any) -> LabelColumn | NumericLabel:
    """Return the label: a tuple of two numbers is bounds, as for columns."""
    label: LabelColumn | NumericLabel
    if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(v, str) for v in given):
        label = NumericLabel(name, *given)
    else:
        label = LabelColumn(name, given)
    label.refuse_open()
    return label


def _column_of(name: str, given: Any, missing: ListedMissing) -> Column:
    if isinstance(given, tuple) and len(given) == 2:
        column = NumericColumn(name, *given, encoding="waves", missing=missing)
        column.refuse_open()
        return column
    if not isinstance(given, Iterable) or isinstance(given, str | tuple | Set | Mapping):
        raise ValueError(
            f"column {name!r}: needs (lower, upper), public bounds, or the list of all its values; "
            f"got {given!r}."
        )
    values = tuple(given)
    kind = BooleanColumn if len(values) == 2 else CategoricalColumn
    return kind(name, values, missing=missing)


def _typed(names: Any, dtypes: Any) -> list[tuple[str, Any]]:
    if isinstance(names, str | Mapping) or hasattr(names, "dtypes") or isinstance(dtypes, Mapping):
        raise TypeError("dtypes is a list that goes with a list of names; a table needs none.")
    pairs = list(names), list(dtypes)
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"dtypes: needs one type a name, {len(pairs[0])}; got {len(pairs[1])}.")
    return list(zip(*pairs, strict=True))


def _refuse_no_column(label: str | None, names: list[str]) -> None:
    if label is not None and label not in names:
        raise ValueError(f"label: {label!r} is no column of the table.")
