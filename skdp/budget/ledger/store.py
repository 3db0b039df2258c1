"""The ledger's file: a chain of entries that only ever grows."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from skdp.budget.ledger.chain import NO_ROW_BEFORE, Row, link, write_amounts
from skdp.budget.ledger.connection import take_turn, transaction
from skdp.budget.ledger.errors import explain_errors
from skdp.budget.ledger.files import publish, remove
from skdp.budget.ledger.reader import ChainReader, LedgerState, create_tables
from skdp.budget.ledger.receipt import LedgerReceipt


class LedgerFile:
    """A ledger in an SQLite file, shared by everything in this process that uses it."""

    # Built by `create`, `open`, `read` and `reach`.

    def __init__(self, path: Path, identity: str, genesis: Row) -> None:
        self.path = path
        self.identity = identity
        self.genesis = genesis
        # What was seen of the chain: it must never be shorter, or another, when it is read again.
        self.seen = LedgerState(0, identity, (Fraction(0),) * len(genesis["limits"]))

    @classmethod
    def create(cls, path: Path | None, terms: Row) -> LedgerFile:
        """Make a ledger, or open the one that is there already."""
        genesis = {**terms, "id": uuid.uuid4().hex}
        content, identity = link(genesis, index=0, previous=NO_ROW_BEFORE)
        if path is not None:
            if not path.exists():
                publish(path, content, identity)
            return cls.open(path)
        handle, name = tempfile.mkstemp(prefix="skdp-ledger-", suffix=".sqlite")
        os.close(handle)
        path = Path(name)
        with explain_errors(path), transaction(path, writing=True) as connection:
            create_tables(connection, content, identity)
        ledger = cls.reach(path, identity, json.loads(content))
        weakref.finalize(ledger, remove, path, os.getpid())
        return ledger

    @classmethod
    def open(cls, path: Path) -> LedgerFile:
        """Open a ledger that is there, and verify it."""
        ledger = cls.read(path)
        ledger.verify()
        return ledger

    @classmethod
    def read(cls, path: Path) -> LedgerFile:
        """Open a ledger without verifying more of it than its start."""
        with explain_errors(path), transaction(path, writing=False) as connection:
            reader = ChainReader(connection, path)
        return cls.reach(path, reader.identity, reader.genesis)

    @classmethod
    def reach(cls, path: Path, identity: str, genesis: Row) -> LedgerFile:
        """Return a ledger that is known already, without touching the file."""
        with take_turn():
            ledger = _registry.get((path, identity))
            if ledger is None:
                ledger = _registry[path, identity] = cls(path, identity, genesis)
            return ledger

    @contextlib.contextmanager
    def opened(self, *, writing: bool = False, keep: bool = True) -> Iterator[Appender]:
        """Open the ledger, for a charge excluding all others; what is not kept is rehearsed."""
        with explain_errors(self.path):
            with transaction(self.path, writing=writing, keep=keep) as connection:
                chain = Appender(connection, self.path)
                chain.expect(self.identity, self.seen)
                self._see(chain.state)
                yield chain
            if keep:
                self._see(chain.state)

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
        full = {**row, "time": now, "cost": write_amounts(cost), "spent": write_amounts(spent)}
        content, hash_ = link(full, index=index, previous=self.state.head)
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)",
            (index, content, hash_, row["plan"], row["place"]),
        )
        self._connection.execute("UPDATE head SET entries = ?, hash = ?", (index, hash_))
        self.state = LedgerState(index, hash_, spent)
        return {**full, "index": index, "hash": hash_}


# All budgets of one process that use a ledger share its object: it knows what was seen of the
# file, and a temporary file goes when nobody has it any more.
_registry: weakref.WeakValueDictionary[tuple[Path, str], LedgerFile] = weakref.WeakValueDictionary()
