"""Tables of a ledger's file."""

from __future__ import annotations

import sqlite3

# Format of the file; a reader refuses any other.
VERSION = 1
_APPLICATION = 0x736B6470  # "skdp"

_TABLES = {
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


def create_tables(connection: sqlite3.Connection, content: str, hash_: str) -> None:
    """Fill an empty file."""
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in _TABLES.values():
        connection.execute(statement)
    connection.execute("INSERT INTO genesis VALUES (0, ?, ?)", (content, hash_))
    connection.execute("INSERT INTO head VALUES (0, 0, ?)", (hash_,))


def schema_fault(connection: sqlite3.Connection) -> str | None:
    """Say what is wrong with the tables, if anything."""
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
    if not found:
        return "holds no tables: it is empty, or its creation was interrupted"
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        return f"has format {version}, but this version of skdp reads format {VERSION}"
    if found != _TABLES:
        return "has other tables than a ledger"
    return None
