"""A ledger in a file or on a server: an append-only chain that is checked at each read."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from skdp.accounting.records import who
from skdp.base.parameters import cached_property
from skdp.budget.ledger.chain import (
    NO_ROW_BEFORE,
    LedgerReceipt,
    Row,
    RunningSum,
    link,
    read_amounts,
    read_link,
    write_amounts,
)
from skdp.budget.ledger.files import (
    BUSY_SECONDS,
    Connection,
    FilePlace,
    explain_errors,
    fill_file,
    remove,
    take_turn,
)
from skdp.budget.ledger.server import ServerPlace, UnconfirmedError, is_address, read_address
from skdp.exceptions import (
    LedgerDamagedError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerMissingError,
    LedgerUnreachableError,
)


class Place(Protocol):
    """The operations in which files and servers differ."""

    @property
    def where(self) -> Path | str:
        """Name for users, without a password."""

    @property
    def kind(self) -> str:
        """Format in the first row of its ledgers."""

    def publish(self, content: str, hash_: str) -> None:
        """Create a complete ledger, unless another process was faster."""

    def transaction(
        self, *, writing: bool, keep: bool = True
    ) -> AbstractContextManager[Connection]:
        """Open the ledger for one transaction; a writing one excludes other writers."""

    def fault(self, connection: Connection) -> str | None:
        """Return the fault of the tables, if any."""

    def broken(self, connection: Connection) -> str | None:
        """Return the fault that the database finds in its pages, if any."""

    def mark(self) -> Row:
        """Return a mark that identifies an entry after a commit without an answer."""


def place_of(ledger: str | os.PathLike[str]) -> Place:
    """Return the place of a ledger; a file name stays valid after a change of the folder."""
    text = os.fspath(ledger)
    if not isinstance(text, str) or text in ("", ":memory:"):
        got = repr(text) if isinstance(text, str) else type(text).__name__
        raise ValueError(
            "ledger must be a file name, a 'postgresql://' address or None for a temporary file, "
            f"got {got}."
        )
    if is_address(text):
        return ServerPlace(read_address(text))
    return FilePlace(Path(os.path.abspath(text)))


def known_place(where: Path | str) -> Place:
    """Return the place named by `Place.where`."""
    text = str(where)
    return ServerPlace(text) if is_address(text) else FilePlace(Path(text))


_OTHER_FORMS = (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError)


@dataclass(frozen=True)
class LedgerState(LedgerReceipt):
    """End of the chain."""

    spent: tuple[Fraction, ...]


class ChainReader:
    """The chain of a ledger, inside one transaction."""

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._place = place
        fault = place.fault(connection)
        if fault is not None:
            raise self.damaged(fault)
        content, self.identity = self._one("SELECT content, hash FROM genesis") or (None, "")
        with self._damage_if_unreadable(0):
            self.genesis, fault = read_link(
                content, hash_=self.identity, index=0, previous=NO_ROW_BEFORE
            )
            self._nothing = (Fraction(0),) * len(self.genesis.get("limits", ()))
        if fault is not None:
            raise self.damaged(f"has other terms than at its creation: its first row {fault}")
        if self.genesis.get("format") != place.kind:
            raise LedgerMismatchError(
                f"The ledger {place.where} was not created there: the format in its first row is "
                f"{self.genesis.get('format')!r}, not {place.kind!r}. A ledger cannot be moved "
                "between files and servers, since both could be charged."
            )

    @cached_property
    def state(self) -> LedgerState:
        """End of the chain, after a check."""
        last = self._one("SELECT id, content, hash FROM entries ORDER BY id DESC LIMIT 1")
        index, content, hash_ = last or (0, None, self.identity)
        if self._one("SELECT entries, hash FROM head") != (index, hash_):
            raise self.damaged("does not end at its recorded end: entries were dropped or inserted")
        if last is None:
            return LedgerState(0, self.identity, self._nothing)
        row = self._checked(content, hash_, index)
        with self._damage_if_unreadable(index):
            return LedgerState(index, hash_, read_amounts(row["spent"]))

    def expect(self, identity: str, seen: LedgerState) -> None:
        """Refuse the ledger of another budget, or one with changed entries."""
        if identity != self.identity:
            raise LedgerMismatchError(
                f"The ledger {self._place.where} was replaced by that of another budget. Every "
                "charge is refused: restore the right ledger, or use another one for a new budget."
            )
        self.check(seen)

    def check(self, known: LedgerReceipt) -> None:
        """Check that the chain still contains the known entries."""
        if self.state.entries < known.entries:
            raise self.damaged(
                f"has fewer than the {known.entries} entries that it had before: it was replaced "
                "by an older copy, or entries were dropped"
            )
        if not self.holds(known):
            raise self.damaged(f"was rewritten: entry {known.entries} differs from before")

    def holds(self, known: LedgerReceipt) -> bool:
        """Return whether the chain contains an entry."""
        if known.entries == self.state.entries:
            return known.head == self.state.head
        found = self._one("SELECT hash FROM entries WHERE id = :id", id=known.entries)
        head: str = found[0] if found else self.identity if known.entries == 0 else ""
        return head == known.head

    def rows(self) -> Iterator[Row]:
        """Read and check all entries."""
        previous = self.identity
        sums = [RunningSum() for _ in self._nothing]
        query = "SELECT id, content, hash, plan, place FROM entries ORDER BY id"
        for index, found in enumerate(self._connection.execute(query), start=1):
            stored, content, hash_, plan, place = found
            try:
                row, fault = read_link(content, hash_=hash_, index=index, previous=previous)
                if fault is not None:
                    raise self.damaged(f"has a changed entry: entry {index} {fault}")
                parts = zip(sums, row["cost"], row["spent"], strict=True)
                # All sums move, also after one that does not add up.
                adds_up = all([sum_.moves_to(spent, by=cost) for sum_, cost, spent in parts])
                if not adds_up or (plan, place) != (row["plan"], row["place"]):
                    raise self.damaged(f"is inconsistent: entry {stored} does not add up")
            except _OTHER_FORMS as error:
                raise self._unreadable(stored) from error
            previous = row["hash"] = hash_
            yield row

    def row(self, index: int) -> Row:
        """Read one entry."""
        found = self._one("SELECT content, hash FROM entries WHERE id = :id", id=index)
        content, hash_ = found or (None, "")
        return self._checked(content, hash_, index)

    def places(self, plan: int) -> set[int]:
        """Return the positions of a plan's redeemed events."""
        query = "SELECT place FROM entries WHERE plan = :plan"
        return {place for (place,) in self._connection.execute(query, {"plan": plan})}

    def broken(self) -> str | None:
        """Return the fault that the database finds in its pages, if any."""
        return self._place.broken(self._connection)

    def damaged(self, what: str) -> LedgerDamagedError:
        """Return an error about damage."""
        return LedgerDamagedError(
            f"The ledger {self._place.where} {what}. Every charge is refused: restore the newest "
            "copy that verifies, and charge the budget spent since. `skdp ledger export "
            "--unverified` saves the readable entries."
        )

    def _checked(self, content: object, hash_: str, index: int) -> Row:
        with self._damage_if_unreadable(index):
            row, fault = read_link(content, hash_=hash_, index=index)
        if fault is not None:
            raise self.damaged(f"has a changed entry: entry {index} {fault}")
        return row

    def _one(self, query: str, **values: int) -> tuple[Any, ...] | None:
        found = self._connection.execute(query, values).fetchone()
        return None if found is None else tuple(found)

    @contextlib.contextmanager
    def _damage_if_unreadable(self, index: int) -> Iterator[None]:
        try:
            yield
        except _OTHER_FORMS as error:
            raise self._unreadable(index) from error

    def _unreadable(self, index: int) -> LedgerDamagedError:
        return self.damaged(f"cannot be read: entry {index} has another form")


def salvage(where: Path | str) -> tuple[Row | None, list[Row]]:
    """Return the readable terms and entries of a damaged ledger."""
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


_PAUSE_SECONDS = 0.2  # between two attempts


class Ledger:
    """A ledger, shared by everything in this process that uses it."""

    # Built by `create`, `open`, `read` and `reach`.

    def __init__(self, place: Place, identity: str, genesis: Row) -> None:
        self.place = place
        self.identity = identity
        self.genesis = genesis
        # The part of the chain seen so far: later reads must contain it.
        self.seen = LedgerState(0, identity, (Fraction(0),) * len(genesis["limits"]))

    @property
    def where(self) -> Path | str:
        """File, or address without its password."""
        return self.place.where

    @classmethod
    def create(cls, place: Place | None, terms: Row) -> Ledger:
        """Create a ledger, or open an existing one."""
        genesis = {**terms, "id": uuid.uuid4().hex, "format": (place or FilePlace).kind}
        content, identity = link(genesis, index=0, previous=NO_ROW_BEFORE)
        if place is not None:
            try:
                return cls.open(place)
            except LedgerMissingError:
                place.publish(content, identity)
            return cls.open(place)
        handle, name = tempfile.mkstemp(prefix="skdp-ledger-", suffix=".sqlite")
        os.close(handle)
        path = Path(name)
        with explain_errors(path):
            fill_file(path, content, identity)
        ledger = cls.reach(FilePlace(path), identity, json.loads(content))
        weakref.finalize(ledger, remove, path, os.getpid())
        return ledger

    @classmethod
    def open(cls, place: Place) -> Ledger:
        """Open an existing ledger, and verify it."""
        ledger = cls.read(place)
        ledger.verify()
        return ledger

    @classmethod
    def read(cls, place: Place) -> Ledger:
        """Open a ledger, and verify only its start."""
        with place.transaction(writing=False) as connection:
            reader = ChainReader(connection, place)
        return cls.reach(place, reader.identity, reader.genesis)

    @classmethod
    def reach(cls, place: Place, identity: str, genesis: Row) -> Ledger:
        """Return a known ledger without opening it."""
        with take_turn():
            ledger = _registry.get((place, identity))
            if ledger is None:
                ledger = _registry[place, identity] = cls(place, identity, genesis)
            return ledger

    @classmethod
    def in_use(cls, identity: str) -> Ledger | None:
        """Return the ledger with an identity that this process uses, if it is unique."""
        with take_turn():
            found = [ledger for (_, known), ledger in _registry.items() if known == identity]
        return found[0] if len(found) == 1 else None  # copies would be ambiguous

    @contextlib.contextmanager
    def opened(self, *, writing: bool = False, keep: bool = True) -> Iterator[Appender]:
        """Open the ledger; `writing` excludes other charges, and ``keep=False`` rolls back."""
        try:
            with self.place.transaction(writing=writing, keep=keep) as connection:
                chain = Appender(connection, self.place)
                chain.expect(self.identity, self.seen)
                self._see(chain.state)
                yield chain
        except UnconfirmedError:
            self._confirm(chain.state)
        if keep:
            self._see(chain.state)

    def _confirm(self, end: LedgerState) -> None:
        """Check whether a charge is recorded after a commit without an answer; raise if not."""
        # The lock is granted when the transaction in question has ended.
        start = time.monotonic()
        while True:
            try:
                with self.opened(writing=True, keep=False) as chain:
                    recorded = chain.holds(end)
                break
            except (LedgerUnreachableError, LedgerLockedError) as error:
                if time.monotonic() > start + BUSY_SECONDS:
                    raise LedgerUnreachableError(
                        f"The connection to the ledger {self.where} was lost while entry "
                        f"{end.entries} was recorded, and did not come back. The charge may have "
                        "been recorded; no row was read and nothing was released."
                    ) from error
            time.sleep(_PAUSE_SECONDS)
        if not recorded:
            raise LedgerUnreachableError(
                f"The connection to the ledger {self.where} was lost before entry {end.entries} "
                "was recorded. Nothing was charged: try again."
            )

    def state(self) -> LedgerState:
        """Return the current end of the chain."""
        with self.opened() as chain:
            return chain.state

    def rows(self) -> list[Row]:
        """Return all entries, verified."""
        with self.opened() as chain:
            return list(chain.rows())

    def row(self, index: int) -> tuple[Row, set[int]]:
        """Return one entry, and the redeemed positions if it is a plan."""
        with self.opened() as chain:
            return chain.row(index), chain.places(index)

    def verify(self, receipt: LedgerReceipt | None = None) -> LedgerReceipt:
        """Read and check the entire ledger."""
        with self.opened() as chain:
            broken = chain.broken()
            if broken is not None:
                raise chain.damaged(f"is broken ({broken})")
            if receipt is not None:
                chain.check(receipt)
            for _ in chain.rows():
                pass
        return LedgerReceipt(chain.state.entries, chain.state.head)

    def _see(self, state: LedgerState) -> None:
        if state.entries > self.seen.entries:
            self.seen = state


class Appender(ChainReader):
    """The end of a ledger while no other process can write to it."""

    def append(self, row: Row, cost: tuple[Fraction, ...]) -> Row:
        """Add an entry."""
        index = self.state.entries + 1
        spent = tuple(s + c for s, c in zip(self.state.spent, cost, strict=True))
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        sums = {"cost": write_amounts(cost), "spent": write_amounts(spent)}
        full = {**row, **self._place.mark(), **who(), "time": now, **sums}
        content, hash_ = link(full, index=index, previous=self.state.head)
        end = {"id": index, "hash": hash_}
        self._connection.execute(
            "INSERT INTO entries VALUES (:id, :content, :hash, :plan, :place)",
            {**end, "content": content, "plan": row["plan"], "place": row["place"]},
        )
        self._connection.execute("UPDATE head SET entries = :id, hash = :hash", end)
        self.state = LedgerState(index, hash_, spent)
        return {**full, "index": index, "hash": hash_}


# All budgets of one process share the object of a ledger. It records the part of the chain seen so
# far, and its temporary file is removed with its last reference.
_registry: weakref.WeakValueDictionary[tuple[Place, str], Ledger] = weakref.WeakValueDictionary()
