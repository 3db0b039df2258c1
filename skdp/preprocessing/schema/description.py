"""Descriptions of tables, column by column, and how they are changed, stored and shown."""

from __future__ import annotations

import dataclasses
import math
import reprlib
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Self

from skdp.base.parameters import OtherColumns, SchemaEncoding
from skdp.preprocessing.schema import files
from skdp.preprocessing.schema.base import (
    Column,
    FeatureColumn,
    SchemaPart,
    names_read,
    norm_of,
)
from skdp.preprocessing.schema.columns import IgnoredColumn, NumericColumn
from skdp.preprocessing.schema.dates import DateColumn, DaysBetweenColumn
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel, PrivacyUnit
from skdp.preprocessing.schema.lists import KINDS

_WIDTH = 100
_HEAD = ("column", "kind", "bounds or values", "unit", "encoding", "missing", "weight", "source")


def show_text(schema: Any) -> str:
    """Return a few lines: a headline, and the columns of each kind."""
    lines = [_headline(schema)]
    for kind in KINDS:
        # Lines are not broken inside a column.
        columns = [_in_brief(c).replace(" ", "\xa0") for c in schema.columns if c.kind == kind]
        wrapped = textwrap.wrap(
            f"{kind} ({len(columns)}): {', '.join(columns)}",
            _WIDTH,
            initial_indent="  ",
            subsequent_indent="      ",
            max_lines=2,
            placeholder=" ...",
        )
        lines += [line.replace("\xa0", " ") for line in wrapped if columns]
    names = [*schema.features, *(column.name for column in schema.columns)]
    one = f"; one column: schema[{names[0]!r}]" if names else ""
    return "\n".join([*lines, f"  all of it: .columns, .to_json(){one}"])


def show_table(schema: Any) -> str:
    """Return HTML: a headline, and a row for each column."""
    rows = [_cells_of(column) for column in schema.columns]
    if (label := schema.label) is not None:
        unit = getattr(label, "unit", "")
        rows.append((label.name, "label", _values_of(label), unit, *[""] * 3, label.source))
    rows += [(" * ".join(group), "interaction", *[""] * 6) for group in schema.interactions]
    about = [_headline(schema), schema.description, schema.source and f"Source: {schema.source}"]
    body = "".join(_row("td", row) for row in rows)
    return (
        "".join(f"<p>{escape(text)}</p>" for text in about if text)
        + '<div style="max-height: 40em; overflow: auto"><table>'
        + f"<thead>{_row('th', _HEAD)}</thead><tbody>{body}</tbody></table></div>"
    )


def _headline(schema: Any) -> str:
    count, label = len(schema.features), schema.label
    parts = [f"{count} feature{'s' * (count != 1)}"]
    if schema.interactions:
        parts.append(f"{len(schema.interactions)} interactions")
    if label is not None:
        wanted = label.left_open()
        rest = f"with {' and '.join(wanted)} left open" if wanted else ""
        parts.append(f"label {label.name!r} {rest or f'in {_values_of(label)}'}")
    parts += [f"one unit is a {schema.unit.name}", f"data_norm={schema.data_norm:.6g}"]
    name = f"TableSchema {schema.name!r}: " if schema.name else "TableSchema: "
    return textwrap.shorten(name + ", ".join(parts), 2 * _WIDTH, placeholder=" ...")


def _row(tag: str, cells: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def _cells_of(column: Column) -> tuple[Any, ...]:
    """Return the entries of a column's row; fields that its kind does not have are empty."""
    encoding = getattr(column, "encoding", "")
    if isinstance(column, NumericColumn):
        encoding = ", ".join([*column.parts, *([] if column.scale == "auto" else [column.scale])])
    if isinstance(column, DateColumn):
        encoding = ", ".join([*column.parts, *([] if encoding == "auto" else [encoding])])
    if getattr(column, "drop", None) is not None:
        encoding = f"one-hot without {column.reference!r}"  # type: ignore[attr-defined]
    missing = getattr(column, "missing", "")
    if missing == "fill":
        missing = f"fill: {column.fill_value!r}"  # type: ignore[attr-defined]
    return (
        column.name,
        column.kind,
        _values_of(column),
        getattr(column, "unit", "") or getattr(column, "timezone", ""),
        encoding,
        missing,
        format(getattr(column, "weight", 1.0), "g") if column.is_feature else "",
        getattr(column, "source", "") or getattr(column, "description", ""),
    )


def _in_brief(column: Column) -> str:
    if isinstance(column, NumericColumn):
        return f"{column.name} {_range(column)} {column.unit}".rstrip()
    if isinstance(column, DateColumn):
        return f"{column.name} {_values_of(column)}"
    values = column.listed()
    return f"{column.name} ({len(values)})" if values else column.name


def _values_of(part: Column | LabelColumn | NumericLabel) -> str:
    if isinstance(part, DaysBetweenColumn):
        return f"{_range(part)} from {part.start} to {part.end}"
    if isinstance(part, NumericColumn | NumericLabel):
        return _range(part)
    if isinstance(part, DateColumn):
        return f"[{part.first or '?'}, {part.last or '?'}]"
    return _listing(part.classes if isinstance(part, LabelColumn) else part.listed())


def _range(column: NumericColumn | NumericLabel) -> str:
    ends = ["?" if end is None else format(end, "g") for end in (column.lower, column.upper)]
    return f"[{', '.join(ends)}]"


def _listing(values: Any) -> str:
    return "" if values is None else reprlib.repr(list(values))


@dataclass(frozen=True, repr=False)
class TableDescription(SchemaPart):
    """A public description of a table; `TableSchema` is one that also works on tables."""

    columns: Sequence[Column]
    label: LabelColumn | NumericLabel | None = None
    unit: PrivacyUnit = PrivacyUnit()  # noqa: RUF009 - it is immutable
    name: str = ""
    description: str = ""
    source: str = ""
    clip_norm: float | None = None
    interactions: Sequence[Sequence[str]] = ()
    others: OtherColumns = "raise"

    def __post_init__(self) -> None:
        self._check_text("name", "description", "source")
        self._check_choice("others", ("raise", "ignore"))
        columns = self.columns
        if isinstance(columns, str | Mapping) or not isinstance(columns, Iterable):
            raise self._fail("columns", f"must be a list of columns, got {columns!r}.")
        columns = tuple(columns)
        for column in columns:
            if not isinstance(column, Column):
                raise self._fail(
                    "columns", f"must contain columns such as NumericColumn, got {column!r}."
                )
        known = [c.beside(columns) if isinstance(c, DaysBetweenColumn) else c for c in columns]
        self._set("columns", tuple(known))
        if not isinstance(self.label, LabelColumn | NumericLabel | None):
            raise self._fail(
                "label", f"must be a LabelColumn, a NumericLabel or None, got {self.label!r}."
            )
        if not isinstance(self.unit, PrivacyUnit):
            raise self._fail("unit", f"must be a PrivacyUnit, got {self.unit!r}.")
        if self.clip_norm is not None:
            norm = self._plain_number("clip_norm", self.clip_norm)
            if norm <= 0.0:
                raise self._fail("clip_norm", f"must be positive or None, got {norm:g}.")
            self._set("clip_norm", norm)
        self._check_interactions()
        self._check_names()

    def _check_interactions(self) -> None:
        groups = self.interactions
        if isinstance(groups, str) or not isinstance(groups, Iterable):
            raise self._fail("interactions", f"must be a list of tuples of names, got {groups!r}.")
        found = tuple(self._plain_values("interactions", names) for names in groups)
        for names in found:
            if len(names) < 2 or not set(names) <= set(self.features):
                raise self._fail(
                    "interactions", f"must have two or more features each, got {list(names)!r}."
                )
        if len({frozenset(names) for names in found}) < len(found):
            raise self._fail("interactions", "contains the same columns twice.")
        self._set("interactions", found)

    def _check_names(self) -> None:
        names = [column.name for column in self.columns]
        if self.label is not None:
            names.append(self.label.name)
        names += [" * ".join(group) for group in self.interactions]
        if twice := _repeated(names):
            raise self._fail("columns", f"these names occur twice: {twice}.")
        if self.label is not None and self.label.name in self.inputs:
            raise self._fail("label", f"{self.label.name!r} is also read for a feature.")
        if self.unit.column in self.inputs:
            raise self._fail(
                "unit", f"its column {self.unit.column!r} is a feature; make it an IgnoredColumn."
            )
        outputs = [name for column in self._features for name in column.feature_names()]
        if twice := _repeated(outputs):
            raise self._fail(
                "columns", f"two columns give features with the same name: {twice}. Rename one."
            )

    # Names and norms.

    @property
    def _features(self) -> tuple[FeatureColumn, ...]:
        return tuple(column for column in self.columns if isinstance(column, FeatureColumn))

    @property
    def features(self) -> list[str]:
        """Names of the columns that become features."""
        return [column.name for column in self._features]

    @property
    def inputs(self) -> list[str]:
        """Names of the table columns that features are computed from, each once."""
        return names_read(self._features)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{name!r} is not a column of the schema: {[c.name for c in self.columns]}.")

    @property
    def _parts(self) -> tuple[Any, ...]:
        """The columns and the label."""
        return (*self.columns, *([] if self.label is None else [self.label]))

    @property
    def norm_bound(self) -> float:
        """Largest norm of a row: the root of the sum of squared weights and 1 per interaction."""
        return math.hypot(norm_of(self._features), math.sqrt(len(self.interactions)))

    @property
    def data_norm(self) -> float:
        """Norm for a private estimator: the smaller of `clip_norm` and `norm_bound`."""
        return self.norm_bound if self.clip_norm is None else min(self.clip_norm, self.norm_bound)

    def left_open(self) -> dict[str, tuple[str, ...]]:
        """Return the fields that are still to be filled in, by the name of the column."""
        return {part.name: part.left_open() for part in self._parts if part.left_open()}

    # Derived schemas.

    def replace(self, *columns: Column, **fields: Any) -> Self:
        """Return a schema with some columns replaced by name, or other fields changed.

        Parameters
        ----------
        *columns : Column
            Columns that replace those with the same name.
        **fields : dict
            Other fields, such as ``label`` or ``clip_norm``.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120), NumericColumn("height", 50, 250)])
        >>> schema.replace(NumericColumn("age", 18, 100), clip_norm=1.0)["age"].lower
        18.0
        """
        new = {self[column.name].name: column for column in columns}
        changed = tuple(new.get(column.name, column) for column in self.columns)
        return dataclasses.replace(self, **{"columns": changed, **fields})

    def select(self, names: Iterable[str]) -> Self:
        """Return a schema that uses only some columns as features and ignores the others.

        Choose columns by public knowledge. A choice that depends on the rows is a release.

        Parameters
        ----------
        names : iterable of str
            Columns to use.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120), NumericColumn("height", 50, 250)])
        >>> smaller = schema.select(["age"])
        >>> smaller.features, smaller.data_norm
        (['age'], 1.0)
        """
        kept = {self[name].name for name in names}
        columns: dict[str, Column] = {}
        for column in self.columns:
            if not column.is_feature or column.name in kept:
                columns[column.name] = column
                continue
            for name in names_read([column]):
                columns.setdefault(name, IgnoredColumn(name))
        interactions = tuple(names for names in self.interactions if kept.issuperset(names))
        return dataclasses.replace(self, columns=tuple(columns.values()), interactions=interactions)

    def with_weights(self, **weights: float) -> Self:
        """Return a schema with other weights by column or kind, which changes `data_norm`.

        The weight of a column is the norm that its features may have: ``numeric=2.0`` doubles the
        features of all numeric columns relative to the others.

        Parameters
        ----------
        **weights : float
            Weights by column name or by kind: numeric, categorical, ordinal, boolean, date,
            days_between. A column name takes precedence over a kind.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120), NumericColumn("height", 50, 250)])
        >>> round(schema.with_weights(age=2.0).data_norm, 4)
        2.2361
        """
        kinds = [kind for kind in KINDS if kind != IgnoredColumn.kind]
        files.refuse_unknown("weights", weights, [*self.features, *kinds])
        return self.replace(
            *(
                dataclasses.replace(column, weight=weights[key])
                for column in self._features
                for key in [column.name if column.name in weights else column.kind]
                if key in weights
            )
        )

    def with_encoding(self, encoding: SchemaEncoding = "auto") -> Self:
        """Return a schema with the same `data_norm` and another encoding of numbers.

        Parameters
        ----------
        encoding : {"auto", "declared"}, default="auto"
            ``"auto"`` encodes numeric columns with bounds and ``encoding="auto"`` as waves, and
            likewise the days of dates. ``"declared"`` changes nothing.
        """
        if encoding not in ("auto", "declared"):
            raise ValueError(f"encoding must be 'auto' or 'declared', got {encoding!r}.")
        if encoding == "declared":
            return self
        changed = (
            dataclasses.replace(column, encoding="waves")
            for column in self._features
            if isinstance(column, NumericColumn | DateColumn) and column.encoding == "auto"
            if None not in [getattr(column, field) for field in column.needed]
        )
        return self.replace(*changed)

    # As plain values, and in files.

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values; `from_dict` returns an equal schema."""
        return files.schema_to_dict(self)

    @classmethod
    def from_dict(cls, tree: Any) -> Self:
        """Return the schema that a mapping of plain values describes; see `to_dict`.

        Raises
        ------
        SchemaError
            If a field is unknown, missing or wrong. The message names column, field and remedy.
        """
        schema: Self = files.schema_from_dict(cls, tree)
        return schema

    def to_json(self) -> str:
        """Return the schema as JSON, indented."""
        return files.write_json(self.to_dict()) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the schema that a JSON text describes; errors are those of `from_dict`.

        Examples
        --------
        >>> from skdp.preprocessing import NumericColumn, TableSchema
        >>> schema = TableSchema([NumericColumn("age", 0, 120, source="range of the form")])
        >>> TableSchema.from_json(schema.to_json()) == schema
        True
        """
        return cls.from_dict(files.parse_json(text))

    def to_yaml(self) -> str:
        """Return the schema as YAML; needs PyYAML (``pip install 'skdp[schema]'``)."""
        return files.write_yaml(self.to_dict())

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """Return the schema that a YAML text describes; needs PyYAML."""
        return cls.from_dict(files.parse_yaml(text))

    def save(self, path: Any) -> None:
        """Write the schema to a file, as YAML if the name ends in .yaml or .yml, else as JSON."""
        files.write_file(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read a schema from a file; see `save`."""
        schema: Self = files.read_file(cls, path)
        return schema


def _repeated(names: list[str]) -> str:
    return ", ".join(sorted(name for name, count in Counter(names).items() if count > 1))
