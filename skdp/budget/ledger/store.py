"""A ledger: a chain of entries that only ever grows, in a file or on a server."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
import uuid
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from skdp.budget.ledger.chain import NO_ROW_BEFORE, Row, link, write_amounts
from skdp.budget.ledger.connection import BUSY_SECONDS, take_turn
from skdp.budget.ledger.errors import explain_errors
from skdp.budget.ledger.files import FilePlace, fill_file, remove
from skdp.budget.ledger.places import Place
from skdp.budget.ledger.reader import ChainReader, LedgerState
from skdp.budget.ledger.receipt import LedgerReceipt
from skdp.budget.ledger.server_errors import UnconfirmedError
from skdp.exceptions import LedgerLockedError, LedgerMissingError, LedgerUnreachableError
from skdp.identity import who

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
