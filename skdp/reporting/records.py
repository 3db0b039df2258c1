"""How records are written down: as JSON text, and as tables in notebooks."""

from __future__ import annotations

import html
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from skdp.reporting.shown import html_row, safe_text


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
