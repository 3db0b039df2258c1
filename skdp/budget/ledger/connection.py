"""Connections to a ledger's file: short, durable, and never shared.

Every operation opens a connection of its own and closes it. That costs a fraction of a
millisecond and buys much: a file that was deleted or replaced is noticed, threads and forked
processes never share a connection, and nothing has to be closed later.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from skdp.exceptions import LedgerLockedError

# How long a charge waits for other processes that are charging.
BUSY_SECONDS = 60.0

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


@contextlib.contextmanager
def transaction(path: Path, *, writing: bool, keep: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a ledger's file for one transaction."""
    # It is committed if the block ends well and it is to be kept, and rolled back otherwise. One
    # that writes excludes all other writers from its start, so that what it reads stays true until
    # it commits.
    global _busy
    with _turn:
        if writing and _busy:
            raise LedgerLockedError(
                f"A charge to {path} interrupted another use of it by the same thread, in a "
                "signal handler for example, and cannot wait for it. Nothing was charged."
            )
        # mode=rw: a file that is read-only is opened for reading, and a missing one not made.
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )
        before, _busy = _busy, True
        try:
            for pragma in (*_CAREFUL, *(_DURABLE if writing else _READING)):
                connection.execute(pragma).fetchall()
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            yield connection
            connection.execute("COMMIT" if keep else "ROLLBACK")
        finally:
            _busy = before
            # Closing rolls back what was not committed.
            connection.close()
