"""Tables of a ledger, in words that SQLite and PostgreSQL have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

# Format of the tables; a reader refuses any other.
VERSION = 1

TABLES = {
    # What the budget was created with: the start of the chain.
    "genesis": "CREATE TABLE genesis (id INTEGER PRIMARY KEY CHECK (id = 0), "
    "content TEXT NOT NULL, hash TEXT NOT NULL)",
    # One row a charge; plan and place repeat what the content says, to be found and kept unique.
    "entries": "CREATE TABLE entries (id INTEGER PRIMARY KEY, content TEXT NOT NULL, "
    "hash TEXT NOT NULL, plan INTEGER, place INTEGER)",
    "redeemed": "CREATE UNIQUE INDEX redeemed ON entries (plan, place)",
    # How many entries there are and the hash of the last: rows dropped at the end are missed.
    "head": "CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 0), "
    "entries INTEGER NOT NULL, hash TEXT NOT NULL)",
}


class Connection(Protocol):
    """One transaction of a database, as `sqlite3.Connection` offers it."""

    def execute(self, query: str, values: Mapping[str, Any] = ..., /) -> Any:
        """Carry out a statement with ``:named`` values."""


def fill(connection: Connection, content: str, hash_: str) -> None:
    """Make the tables of a ledger without entries."""
    for statement in TABLES.values():
        connection.execute(statement)
    first = {"content": content, "hash": hash_}
    connection.execute("INSERT INTO genesis VALUES (0, :content, :hash)", first)
    connection.execute("INSERT INTO head VALUES (0, 0, :hash)", {"hash": hash_})
