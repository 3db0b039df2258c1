"""Texts of others, made safe to show: on terminals, in notebooks, in spreadsheets."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable

_FORMULAS = ("=", "+", "-", "@")


def safe_text(text: object) -> str:
    """Return a text on one line without what steers its display or cannot be encoded."""
    # Controls, marks of direction and lone surrogates become U+FFFD; any blank is a plain one.
    return "".join(
        letter if letter.isprintable() else " " if letter.isspace() else "\ufffd"
        for letter in str(text)
    )


def safe_cell(text: str) -> str:
    """Return a text that spreadsheets take for a text, and for no formula."""
    shown = safe_text(text)
    first = unicodedata.normalize("NFKC", shown).lstrip()[:1]
    return f"'{shown}" if first in _FORMULAS or text[:1] in ("\t", "\r") else shown


def html_row(cells: Iterable[str], header: int = 0) -> str:
    """Return cells as a row of a table, the first `header` of them as its headings."""
    tags = [
        f"<th>{cell}</th>" if place < header else f"<td>{cell}</td>"
        for place, cell in enumerate(html.escape(safe_text(cell)) for cell in cells)
    ]
    return f"<tr>{''.join(tags)}</tr>"
