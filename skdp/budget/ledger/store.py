"""A ledger wherever it lies: a chain that only grows, read without trust, damaged or whole."""

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
    """All in which a file and a server differ; how a ledger is read and charged is said once."""

    @property
    def where(self) -> Path | str:
        """What users call it; no password is part of that."""

    @property
    def kind(self) -> str:
        """What the first row of a ledger says that is kept there."""

    def publish(self, content: str, hash_: str) -> None:
        """Make a ledger whole, unless another process was faster."""

    def transaction(
        self, *, writing: bool, keep: bool = True
    ) -> AbstractContextManager[Connection]:
        """Open the ledger for one transaction; one that writes excludes all others that do."""

    def fault(self, connection: Connection) -> str | None:
        """Say what is wrong with the tables, if anything."""

    def broken(self, connection: Connection) -> str | None:
        """Say what the database finds wrong with its pages, if anything."""

    def mark(self) -> Row:
        """Return what tells an entry from all others, also where no answer comes to a commit."""


def place_of(ledger: str | os.PathLike[str]) -> Place:
    """Return the place that a user names: a file holds also after the folder was changed."""
    text = os.fspath(ledger)
    if not isinstance(text, str) or text in ("", ":memory:"):
        got = repr(text) if isinstance(text, str) else type(text).__name__
        raise ValueError(
            "ledger must be the name of a file or a 'postgresql://' address, got "
            f"{got}; None keeps a temporary file."
        )
    if is_address(text):
        return ServerPlace(read_address(text))
    return FilePlace(Path(os.path.abspath(text)))


def known_place(where: Path | str) -> Place:
    """Return the place that `Place.where` names."""
    text = str(where)
    return ServerPlace(text) if is_address(text) else FilePlace(Path(text))


_OTHER_FORMS = (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError)


@dataclass(frozen=True)
class LedgerState(LedgerReceipt):
    """Where the chain ends."""

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
            raise self.damaged(f"has other terms than it was made with: its first row {fault}")
        if self.genesis.get("format") != place.kind:
            raise LedgerMismatchError(
                f"The ledger {place.where} was not made there: its first row says "
                f"{self.genesis.get('format')!r}, and not {place.kind!r}. A ledger that is moved "
                "between files and servers would be two budgets."
            )

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
                f"What is at {self._place.where} was replaced by the ledger of another budget. "
                "Every charge is refused; bring the right one back, or start with a budget of its "
                "own."
            )
        self.check(seen)

    def check(self, known: LedgerReceipt) -> None:
        """See that the chain still holds what it held before."""
        if self.state.entries < known.entries:
            raise self.damaged(
                f"has fewer than the {known.entries} entries that it had before: an older copy "
                "was put in its place, or entries were dropped"
            )
        if not self.holds(known):
            raise self.damaged(f"was rewritten: entry {known.entries} is another one than before")

    def holds(self, known: LedgerReceipt) -> bool:
        """Tell whether an entry is there."""
        if known.entries == self.state.entries:
            return known.head == self.state.head
        found = self._one("SELECT hash FROM entries WHERE id = :id", id=known.entries)
        head: str = found[0] if found else self.identity if known.entries == 0 else ""
        return head == known.head

    def rows(self) -> Iterator[Row]:
        """Read all entries, checking each."""
        previous = self.identity
        sums = [RunningSum() for _ in self._nothing]
        query = "SELECT id, content, hash, plan, place FROM entries ORDER BY id"
        for index, found in enumerate(self._connection.execute(query), start=1):
            stored, content, hash_, plan, place = found
            try:
                row, fault = read_link(content, hash_=hash_, index=index, previous=previous)
                if fault is not None:
                    raise self.damaged(f"is not what was recorded: entry {index} {fault}")
                parts = zip(sums, row["cost"], row["spent"], strict=True)
                # All units move, also after one that does not add up.
                adds_up = all([sum_.moves_to(spent, by=cost) for sum_, cost, spent in parts])
                if not adds_up or (plan, place) != (row["plan"], row["place"]):
                    raise self.damaged(f"contradicts itself: entry {stored} does not add up")
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
        """Return which events of a plan were redeemed."""
        query = "SELECT place FROM entries WHERE plan = :plan"
        return {place for (place,) in self._connection.execute(query, {"plan": plan})}

    def broken(self) -> str | None:
        """Return what the database finds wrong with its pages, if anything."""
        return self._place.broken(self._connection)

    def damaged(self, what: str) -> LedgerDamagedError:
        """Return the error that says so."""
        return LedgerDamagedError(
            f"The ledger {self._place.where} {what}. Every charge is refused: restore the newest "
            "copy that verifies, and add what was spent since. `skdp ledger export --unverified` "
            "saves what can still be read."
        )

    def _checked(self, content: object, hash_: str, index: int) -> Row:
        with self._damage_if_unreadable(index):
            row, fault = read_link(content, hash_=hash_, index=index)
        if fault is not None:
            raise self.damaged(f"is not what was recorded: entry {index} {fault}")
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


_PAUSE_SECONDS = 0.2  # between two attempts to find out


class Ledger:
    """A ledger, shared by everything in this process that uses it."""

    # Built by `create`, `open`, `read` and `reach`.

    def __init__(self, place: Place, identity: str, genesis: Row) -> None:
        self.place = place
        self.identity = identity
        self.genesis = genesis
        # What was seen of the chain: it must never be shorter, or another, when it is read again.
        self.seen = LedgerState(0, identity, (Fraction(0),) * len(genesis["limits"]))

    @property
    def where(self) -> Path | str:
        """The file, or the address without its password."""
        return self.place.where

    @classmethod
    def create(cls, place: Place | None, terms: Row) -> Ledger:
        """Make a ledger, or open the one that is there already."""
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
        """Open a ledger that is there, and verify it."""
        ledger = cls.read(place)
        ledger.verify()
        return ledger

    @classmethod
    def read(cls, place: Place) -> Ledger:
        """Open a ledger without verifying more of it than its start."""
        with place.transaction(writing=False) as connection:
            reader = ChainReader(connection, place)
        return cls.reach(place, reader.identity, reader.genesis)

    @classmethod
    def reach(cls, place: Place, identity: str, genesis: Row) -> Ledger:
        """Return a ledger that is known already, without touching it."""
        with take_turn():
            ledger = _registry.get((place, identity))
            if ledger is None:
                ledger = _registry[place, identity] = cls(place, identity, genesis)
            return ledger

    @classmethod
    def in_use(cls, identity: str) -> Ledger | None:
        """Return the one ledger of an identity that something in this process uses."""
        with take_turn():
            found = [ledger for (_, known), ledger in _registry.items() if known == identity]
        return found[0] if len(found) == 1 else None  # of copies nobody knows which is meant

    @contextlib.contextmanager
    def opened(self, *, writing: bool = False, keep: bool = True) -> Iterator[Appender]:
        """Open the ledger, for a charge excluding all others; what is not kept is rehearsed."""
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
        """Find out if a charge is recorded to whose commit no answer came; raise unless it is."""
        # The lock is granted when the transaction in question has ended, one way or the other.
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
                        f"{end.entries} was recorded, and did not come back. Perhaps it is "
                        "charged; what it is for was not released."
                    ) from error
            time.sleep(_PAUSE_SECONDS)
        if not recorded:
            raise LedgerUnreachableError(
                f"The connection to the ledger {self.where} was lost before entry {end.entries} "
                "was recorded. Nothing was charged: try again."
            )

    def state(self) -> LedgerState:
        """Return where the chain ends now."""
        with self.opened() as chain:
            return chain.state

    def rows(self) -> list[Row]:
        """Return all entries, verified."""
        with self.opened() as chain:
            return list(chain.rows())

    def row(self, index: int) -> tuple[Row, set[int]]:
        """Return one entry, and what was redeemed of it if it is a plan."""
        with self.opened() as chain:
            return chain.row(index), chain.places(index)

    def verify(self, receipt: LedgerReceipt | None = None) -> LedgerReceipt:
        """Read the whole ledger and check it."""
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


# All budgets of one process that use a ledger share its object: it knows what was seen of the
# chain, and a temporary file goes when nobody has it any more.
_registry: weakref.WeakValueDictionary[tuple[Place, str], Ledger] = weakref.WeakValueDictionary()
