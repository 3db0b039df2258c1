"""How records are written down: as JSON, as tables, with the version that made them.

Two builds may call themselves by one version; their digests differ.
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


class JsonRecord(ABC):
    """Mixin of what can be told in plain values."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain, JSON-ready values."""

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
    """Return the version that the package was installed as."""
    return version("skdp")


@cache
def code_digest() -> str:
    """Return 16 digits that follow from names and bytes of all modules; "unknown" without them."""
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
    """Return version and digest as records and ledgers hold them."""
    return {"skdp": package_version(), "code": code_digest()}
