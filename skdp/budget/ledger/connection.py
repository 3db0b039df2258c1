"""Connections to a ledger's file: short, durable, and never shared.

Every operation opens a connection of its own and closes it. That costs a fraction of a
millisecond and buys much: a file that was deleted or replaced is noticed, threads and forked
processes never share a connection, and nothing has to be closed later.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from skdp.exceptions import LedgerLockedError

# How long a charge waits for other processes that are charging.
BUSY_SECONDS = 60.0

# The longest pause between two attempts at the file, about as long as a charge holds it, and how
# long a process keeps in mind that it has met others there.
_PAUSE_SECONDS = 0.002
_MEMORY_SECONDS = 1.0
_chance = random.SystemRandom()  # forked processes differ, and nobody's seeds are touched

# A write is on the disk when COMMIT returns: EXTRA also syncs the folder after the rollback journal
# was deleted, without which a power failure could bring the journal back and undo the write. A
# rollback journal, unlike a write-ahead log, leaves one file that can be copied whole and read
# from read-only folders.
_DURABLE = ("PRAGMA journal_mode = DELETE", "PRAGMA synchronous = EXTRA", "PRAGMA fullfsync = ON")
_READING = ("PRAGMA query_only = ON",)
_CAREFUL = ("PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON")

# Threads take turns here rather than in SQLite, and no process is forked while one of them is
# inside SQLite: the child would inherit a transaction and its locks.
_turn = threading.RLock()
# Whether a transaction of this process is under way: a signal handler may not charge inside it.
_busy = False


class _Queue:
    """What this process remembers of its own charges and of others that it met at the file."""

    ended = others_seen = -math.inf


_queue = _Queue()


def _renew_in_child() -> None:
    global _turn, _busy
    _turn, _busy = threading.RLock(), False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _turn.acquire(),
        after_in_parent=lambda: _turn.release(),
        after_in_child=_renew_in_child,
    )


def take_turn() -> contextlib.AbstractContextManager[bool]:
    """Return the lock that threads and forks wait for."""
    return _turn


def _begin_writing(connection: sqlite3.Connection) -> None:
    """Begin a transaction that excludes other writers, in fair competition with them."""
    # SQLite's own waiting is unfair: its pauses grow to a tenth of a second, and who charges again
    # at once always finds the file free. Here all that wait try again after short random pauses,
    # and who has met others lets one pause pass between two charges of its own.
    start = time.monotonic()
    if start < _queue.others_seen + _MEMORY_SECONDS:
        time.sleep(max(0.0, _queue.ended + _PAUSE_SECONDS - start))
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            _execute(connection, *_CAREFUL, *_DURABLE, "BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            now = time.monotonic()
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or now > start + BUSY_SECONDS:
                raise
            _queue.others_seen = now
        time.sleep(_chance.uniform(0.0, _PAUSE_SECONDS))
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


def _execute(connection: sqlite3.Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement).fetchall()


@contextlib.contextmanager
def in_turn(where: object, *, writing: bool) -> Iterator[None]:
    """Let no other thread use a ledger meanwhile, no fork inherit its connection."""
    global _busy
    with _turn:
        if writing and _busy:
            raise LedgerLockedError(
                f"A charge to {where} interrupted another use of it by the same thread, in a "
                "signal handler for example, and cannot wait for it. Nothing was charged."
            )
        before, _busy = _busy, True
        try:
            yield
        finally:
            _busy = before


@contextlib.contextmanager
def transaction(path: Path, *, writing: bool, keep: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a ledger's file for one transaction."""
    # It is committed if the block ends well and it is to be kept, and rolled back otherwise. One
    # that writes excludes all other writers from its start, so that what it reads stays true until
    # it commits.
    with in_turn(path, writing=writing):
        # mode=rw: a file that is read-only is opened for reading, and a missing one not made.
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )
        try:
            if writing:
                _begin_writing(connection)
            else:
                _execute(connection, *_CAREFUL, *_READING, "BEGIN")
            yield connection
            connection.execute("COMMIT" if keep else "ROLLBACK")
        finally:
            if writing:
                _queue.ended = time.monotonic()
            # Closing rolls back what was not committed.
            connection.close()
