"""Tables of a ledger's file, and how they are read without taking their word for anything."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from skdp.budget.ledger.chain import NO_ROW_BEFORE, Row, read_amounts, read_link, write_amounts
from skdp.budget.ledger.receipt import LedgerReceipt
from skdp.exceptions import LedgerDamagedError, LedgerMismatchError
from skdp.once import cached_property

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


def _schema_fault(connection: sqlite3.Connection, path: Path) -> str | None:
    """Say what is wrong with the tables, if anything."""
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
    if not found and path.stat().st_size == 0:
        # Nothing was ever charged to a file that skdp itself left empty, but whoever empties a
        # ledger leaves the same, and to take it for a fresh one would forget what was spent.
        return (
            "is an empty file, which no ledger is: another program made it, its creation was "
            "interrupted, or it was emptied. If nothing was ever charged to it, delete it and make "
            "the budget anew"
        )
    if not found:
        return "holds no tables: it is no ledger"
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        return f"has format {version}, but this version of skdp reads format {VERSION}"
    if found != _TABLES:
        return "has other tables than a ledger"
    return None


@dataclass(frozen=True)
class LedgerState(LedgerReceipt):
    """Where the chain ends."""

    spent: tuple[Fraction, ...]


class ChainReader:
    """The chain in a ledger's file, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        fault = _schema_fault(connection, path)
        if fault is not None:
            raise self.damaged(fault)
        content, self.identity = self._one("SELECT content, hash FROM genesis") or (None, "")
        with self._damage_if_unreadable(0):
            self.genesis, fault = read_link(
                content, hash_=self.identity, index=0, previous=NO_ROW_BEFORE
            )
            self._nothing = (Fraction(0),) * len(self.genesis.get("limits", ()))
        if fault is not None:
            raise self.damaged(f"has other terms than it was made with: its first row {fault}")

    @cached_property
    def state(self) -> LedgerState:
        """Where the chain ends, after checking that it does end there."""
        last = self._one("SELECT id, content, hash FROM entries ORDER BY id DESC LIMIT 1")
        index, content, hash_ = last or (0, None, self.identity)
        if self._one("SELECT entries, hash FROM head") != (index, hash_):
            raise self.damaged("does not end where it says: entries were dropped or inserted")
        if last is None:
            return LedgerState(0, self.identity, self._nothing)
        row = self._checked(content, hash_, index)
        with self._damage_if_unreadable(index):
            return LedgerState(index, hash_, read_amounts(row["spent"]))

    def expect(self, identity: str, seen: LedgerState) -> None:
        """Refuse the ledger of another budget, or one that does not hold what it held before."""
        if identity != self.identity:
            raise LedgerMismatchError(
                f"The file {self._path} was replaced by the ledger of another budget. Every charge "
                "is refused; bring the right file back, or start with a budget of its own."
            )
        self.check(seen)

    def check(self, known: LedgerReceipt) -> None:
        """See that the chain still holds what it held before."""
        if self.state.entries < known.entries:
            raise self.damaged(
                f"has fewer than the {known.entries} entries that it had before: an older copy "
                "was put in its place, or entries were dropped"
            )
        found = self._one("SELECT hash FROM entries WHERE id = ?", known.entries)
        if (found[0] if found else self.identity) != known.head:
            raise self.damaged(f"was rewritten: entry {known.entries} is another one than before")

    def rows(self) -> Iterator[Row]:
        """Read all entries, checking each."""
        previous = self.identity
        spent = self._nothing
        query = "SELECT id, content, hash, plan, place FROM entries ORDER BY id"
        for index, found in enumerate(self._connection.execute(query), start=1):
            stored, content, hash_, plan, place = found
            row = self._checked(content, hash_, index, previous)
            with self._damage_if_unreadable(stored):
                cost = read_amounts(row["cost"])
                spent = tuple(s + c for s, c in zip(spent, cost, strict=True))
                adds_up = row["spent"] == write_amounts(spent) and min(cost) >= 0
                if not adds_up or (plan, place) != (row["plan"], row["place"]):
                    raise self.damaged(f"contradicts itself: entry {stored} does not add up")
            previous = hash_
            yield {**row, "hash": hash_}

    def row(self, index: int) -> Row:
        """Read one entry."""
        found = self._one("SELECT content, hash FROM entries WHERE id = ?", index)
        content, hash_ = found or (None, "")
        return self._checked(content, hash_, index)

    def places(self, plan: int) -> set[int]:
        """Return which events of a plan were redeemed."""
        found = self._connection.execute("SELECT place FROM entries WHERE plan = ?", (plan,))
        return {place for (place,) in found}

    def broken(self) -> str | None:
        """Return what SQLite finds wrong with the file, if anything."""
        answer = self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        return None if answer == "ok" else str(answer)

    def damaged(self, what: str) -> LedgerDamagedError:
        """Return the error that says so."""
        return LedgerDamagedError(
            f"The ledger {self._path} {what}. Every charge is refused: restore the newest copy "
            "that verifies, and add what was spent since. `skdp ledger export --unverified` saves "
            "what can still be read."
        )

    def _checked(self, content: object, hash_: str, index: int, previous: str | None = None) -> Row:
        with self._damage_if_unreadable(index):
            row, fault = read_link(content, hash_=hash_, index=index, previous=previous)
        if fault is not None:
            raise self.damaged(f"is not what was recorded: entry {index} {fault}")
        return row

    def _one(self, query: str, *values: int) -> tuple | None:
        found: tuple | None = self._connection.execute(query, values).fetchone()
        return found

    @contextlib.contextmanager
    def _damage_if_unreadable(self, index: int) -> Iterator[None]:
        try:
            yield
        except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
            raise self.damaged(f"cannot be read: entry {index} has another form") from error
