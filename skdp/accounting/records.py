"""Records as JSON and as tables, with the package version and a digest of its code.

Two builds may have the same version; their digests differ.
"""

from __future__ import annotations

import hashlib
import html
import json
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

_FORMULAS = ("=", "+", "-", "@")


def safe_text(text: object) -> str:
    """Return a text on one line, without control and unencodable characters."""
    # Controls, marks of direction and lone surrogates become U+FFFD; any blank is a plain one.
    return "".join(
        letter if letter.isprintable() else " " if letter.isspace() else "\ufffd"
        for letter in str(text)
    )


def safe_cell(text: str) -> str:
    """Return a text that spreadsheets do not read as a formula."""
    shown = safe_text(text)
    first = unicodedata.normalize("NFKC", shown).lstrip()[:1]
    return f"'{shown}" if first in _FORMULAS or text[:1] in ("\t", "\r") else shown


def html_row(cells: Iterable[str], header: int = 0) -> str:
    """Return cells as a table row; the first `header` of them are headings."""
    tags = [
        f"<th>{cell}</th>" if place < header else f"<td>{cell}</td>"
        for place, cell in enumerate(html.escape(safe_text(cell)) for cell in cells)
    ]
    return f"<tr>{''.join(tags)}</tr>"


class JsonRecord(ABC):
    """Mixin for records made of plain values."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values, ready for JSON."""

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the record as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)


def html_table(caption: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a table whose rows begin with their names."""
    cells = "".join(html_row(row, header=1) for row in rows)
    return f"<table><caption>{html.escape(safe_text(caption))}</caption>{cells}</table>"


UNKNOWN = "unknown"


@cache
def package_version() -> str:
    """Return the installed version of the package."""
    return version("skdp")


@cache
def code_digest() -> str:
    """Return 16 digits computed from names and bytes of all modules; "unknown" without them."""
    return digest_of(Path(__file__).parents[1])


def digest_of(folder: Path) -> str:
    """Return the digest of the modules in a folder."""
    whole = hashlib.sha256()
    try:
        found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
        for name in sorted(found):
            content = found[name].read_bytes()
            whole.update(f"{name}\0{len(content)}\0".encode() + content)
    except OSError:
        return UNKNOWN
    return whole.hexdigest()[:16] if found else UNKNOWN


def who() -> dict[str, str]:
    """Return version and digest for records and ledgers."""
    return {"skdp": package_version(), "code": code_digest()}
