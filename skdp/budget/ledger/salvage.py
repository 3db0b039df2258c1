"""What can still be read of a damaged ledger."""

from __future__ import annotations

import json
from pathlib import Path

from skdp.budget.ledger.chain import Row
from skdp.budget.ledger.places import known_place
from skdp.budget.ledger.tables import Connection


def salvage(where: Path | str) -> tuple[Row | None, list[Row]]:
    """Return what can still be read of a ledger, whatever is wrong with it."""
    place = known_place(where)
    with place.transaction(writing=False) as connection:
        entries = _readable(connection, "SELECT content, hash FROM entries ORDER BY id")
        terms = _readable(connection, "SELECT content, hash FROM genesis")
        if not entries and not terms:
            connection.execute("SELECT content FROM entries, genesis").fetchall()
    return (terms[0] if terms else None), entries


def _readable(connection: Connection, query: str) -> list[Row]:
    rows: list[Row] = []
    try:
        for content, hash_ in connection.execute(query):
            rows.append({**_parsed(content), "hash": hash_})
    except Exception:  # of either database
        pass  # the pages from here on are broken, or the table is gone
    return rows


def _parsed(content: object) -> Row:
    try:
        row = json.loads(content)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        row = None
    return row if isinstance(row, dict) else {"text": str(content)}
