"""How a schema shows itself: a few lines of text, and a table in a notebook."""

from __future__ import annotations

import reprlib
import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from skdp.preprocessing.schema.base import Column, SchemaPart
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.io import KINDS
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel, PrivacyUnit

_WIDTH = 100
_HEAD = ("column", "kind", "bounds or values", "unit", "encoding", "missing", "weight", "source")


class SchemaDisplay(SchemaPart):
    """The part of a schema that shows it: names, bounds, lists and sources, which are public."""

    # Fields and properties of the schema.
    columns: Sequence[Column]
    label: LabelColumn | NumericLabel | None
    unit: PrivacyUnit
    name: str
    description: str
    source: str
    interactions: Sequence[Sequence[str]]

    @property
    @abstractmethod
    def data_norm(self) -> float:
        """Public bound on the norm of a row."""

    def __repr__(self) -> str:
        by_kind = [[column for column in self.columns if column.kind == kind] for kind in KINDS]
        lines = [self._headline()]
        for columns in filter(None, by_kind):
            # Lines are not broken inside a column.
            brief = ", ".join(_in_brief(column).replace(" ", "\xa0") for column in columns)
            wrapped = textwrap.wrap(
                f"{columns[0].kind} ({len(columns)}): {brief}",
                _WIDTH,
                initial_indent="  ",
                subsequent_indent="      ",
                max_lines=2,
                placeholder=" ...",
            )
            lines += [line.replace("\xa0", " ") for line in wrapped]
        names = [*(c.name for c in self.columns if c.is_feature), *(c.name for c in self.columns)]
        one = f"; one column: schema[{names[0]!r}]" if names else ""
        return "\n".join([*lines, f"  all of it: .columns, .to_json(){one}"])

    def _headline(self) -> str:
        count = sum(column.is_feature for column in self.columns)
        parts = [f"{count} feature{'s' * (count != 1)}"]
        if self.interactions:
            parts.append(f"{len(self.interactions)} interactions")
        if self.label is not None:
            wanted = [name for name in self.label.needed if getattr(self.label, name) is None]
            rest = f"with {' and '.join(wanted)} left open" if wanted else ""
            parts.append(f"label {self.label.name!r} {rest or f'in {_values_of(self.label)}'}")
        parts += [f"one unit is a {self.unit.name}", f"data_norm={self.data_norm:.6g}"]
        name = f"TableSchema {self.name!r}: " if self.name else "TableSchema: "
        return textwrap.shorten(name + ", ".join(parts), 2 * _WIDTH, placeholder=" ...")

    def _repr_html_(self) -> str:
        """Return the schema as a table for notebooks."""
        rows = [_cells_of(column) for column in self.columns]
        if self.label is not None:
            label = self.label
            unit = getattr(label, "unit", "")
            rows.append((label.name, "label", _values_of(label), unit, *[""] * 3, label.source))
        rows += [(" * ".join(group), "interaction", *[""] * 6) for group in self.interactions]
        about = [self._headline(), self.description, self.source and f"Source: {self.source}"]
        body = "".join(_row("td", row) for row in rows)
        return (
            "".join(f"<p>{escape(text)}</p>" for text in about if text)
            + '<div style="max-height: 40em; overflow: auto"><table>'
            + f"<thead>{_row('th', _HEAD)}</thead><tbody>{body}</tbody></table></div>"
        )


def _row(tag: str, cells: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def _cells_of(column: Column) -> tuple[Any, ...]:
    """Return what the table says of a column; fields that a kind does not have are empty."""
    encoding = getattr(column, "encoding", "")
    if isinstance(column, NumericColumn):
        encoding = ", ".join([*column.parts, *([] if column.scale == "auto" else [column.scale])])
    missing = getattr(column, "missing", "")
    if missing == "fill":
        missing = f"fill: {column.fill_value!r}"  # type: ignore[attr-defined]
    return (
        column.name,
        column.kind,
        _values_of(column),
        getattr(column, "unit", ""),
        encoding,
        missing,
        format(getattr(column, "weight", 1.0), "g") if column.is_feature else "",
        getattr(column, "source", "") or getattr(column, "description", ""),
    )


def _in_brief(column: Column) -> str:
    if isinstance(column, NumericColumn):
        return f"{column.name} {_range(column)} {column.unit}".rstrip()
    values = column.listed()
    return f"{column.name} ({len(values)})" if values else column.name


def _values_of(part: Column | LabelColumn | NumericLabel) -> str:
    if isinstance(part, NumericColumn | NumericLabel):
        return _range(part)
    return _listing(part.classes if isinstance(part, LabelColumn) else part.listed())


def _range(column: NumericColumn | NumericLabel) -> str:
    ends = ["?" if end is None else format(end, "g") for end in (column.lower, column.upper)]
    return f"[{', '.join(ends)}]"


def _listing(values: Any) -> str:
    return "" if values is None else reprlib.repr(list(values))
