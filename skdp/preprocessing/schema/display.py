"""How a schema shows itself: a few lines of text, and a table in a notebook."""

from __future__ import annotations

import reprlib
import textwrap
from collections.abc import Iterable
from html import escape
from typing import Any

from skdp.preprocessing.schema.base import Column
from skdp.preprocessing.schema.columns import NumericColumn
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel
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
