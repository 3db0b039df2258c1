"""Ledgers in an SQLite file: their tables, connections and errors.

Every operation opens and closes a connection, which takes a fraction of a millisecond. Deleted or
replaced files are therefore noticed, threads and forked processes never share a connection, and
nothing has to be closed later.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from skdp.exceptions import (
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerMissingError,
    LedgerReadOnlyError,
)

# Format of the tables; a reader refuses any other.
VERSION = 1

TABLES = {
    # Terms of the budget: the start of the chain.
    "genesis": "CREATE TABLE genesis (id INTEGER PRIMARY KEY CHECK (id = 0), "
    "content TEXT NOT NULL, hash TEXT NOT NULL)",
    # One row per charge; plan and place repeat the content, for an index that keeps them unique.
    "entries": "CREATE TABLE entries (id INTEGER PRIMARY KEY, content TEXT NOT NULL, "
    "hash TEXT NOT NULL, plan INTEGER, place INTEGER)",
    "redeemed": "CREATE UNIQUE INDEX redeemed ON entries (plan, place)",
    # Number of entries and hash of the last one: reveals rows dropped at the end.
    "head": "CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 0), "
    "entries INTEGER NOT NULL, hash TEXT NOT NULL)",
}


class Connection(Protocol):
    """One transaction of a database, with the interface of `sqlite3.Connection`."""

    def execute(self, query: str, values: Mapping[str, Any] = ..., /) -> Any:
        """Execute a statement with ``:named`` values."""


def fill(connection: Connection, content: str, hash_: str) -> None:
    """Create the tables of a ledger without entries."""
    for statement in TABLES.values():
        connection.execute(statement)
    first = {"content": content, "hash": hash_}
    connection.execute("INSERT INTO genesis VALUES (0, :content, :hash)", first)
    connection.execute("INSERT INTO head VALUES (0, 0, :hash)", {"hash": hash_})


# Time for which a charge waits for other processes.
BUSY_SECONDS = 60.0

# The longest pause between two attempts at the file, about as long as a charge holds it, and the
# time for which a process remembers that it has met others there.
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
    """Times of this process's last charge and of its last contact with other processes."""

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
    """Return the lock of threads and forks."""
    return _turn


def _begin_writing(connection: sqlite3.Connection) -> None:
    """Begin a transaction that excludes other writers, with fair turns."""
    # SQLite's waiting is unfair: its pauses grow to a tenth of a second, and a process that charges
    # again at once always finds the file free. Here all waiting processes try again after short
    # random pauses, and a process that has met others pauses between two charges.
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
    """Exclude other threads from a ledger, and forks from its connection."""
    global _busy
    with _turn:
        if writing and _busy:
            raise LedgerLockedError(
                f"A charge to {where} interrupted another use of it by the same thread, for "
                "example in a signal handler, and cannot wait for it. Nothing was charged."
            )
        before, _busy = _busy, True
        try:
            yield
        finally:
            _busy = before


@contextlib.contextmanager
def transaction(path: Path, *, writing: bool, keep: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a ledger's file for one transaction."""
    # It is committed if the block succeeds and `keep` is set, else rolled back. A writing
    # transaction excludes all other writers from its start, so the data it reads stay valid until
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


_Kind = type[LedgerError]
# By primary result codes of SQLite; the extended ones keep them in the low byte.
_KNOWN: dict[tuple[int, ...], tuple[_Kind, str]] = {
    (5, 6, 15): (  # busy, locked, protocol
        LedgerLockedError,
        "The ledger {path} is locked by another process, for longer than a charge waits. End that "
        "process, or try again; nothing was charged.",
    ),
    (3, 8, 14, 23): (  # permission, read-only, not opened, not authorised
        LedgerReadOnlyError,
        "The ledger {path} cannot be opened or written by this user ({error}). Charges need write "
        "access to the file and to its folder; nothing was charged.",
    ),
    (13,): (
        LedgerFullError,
        "The ledger {path} has no space for another entry ({error}). Free some space on its disk; "
        "nothing was charged and no entry was lost.",
    ),
    (10,): (
        LedgerError,
        "The ledger {path} could not be read or written ({error}). Check whether the disk is full "
        "or a quota is reached. The charge was refused and no entry was lost.",
    ),
    (7,): (
        LedgerError,
        "There is not enough memory to use the ledger {path}; nothing was charged.",
    ),
}
_DAMAGED: tuple[_Kind, str] = (
    LedgerDamagedError,
    "The ledger {path} is damaged, or is not a ledger ({error}). Every charge is refused. Restore "
    "the newest copy that verifies, and charge the budget spent since.",
)
_CANNOT_OPEN, _MOVED = 14, 8 | 4 << 8


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into errors of the ledger."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _explain(error, path) from error
    except FileNotFoundError as error:
        raise _missing(path) from error
    except PermissionError as error:
        raise LedgerReadOnlyError(
            f"This user may not write the ledger {path}: {error.strerror}. Nothing was charged."
        ) from error
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be used: {error.strerror}. Nothing was charged."
        ) from error


def _explain(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> LedgerError:
    extended = getattr(error, "sqlite_errorcode", None)
    code = None if extended is None else extended & 0xFF
    if extended == _MOVED or (code == _CANNOT_OPEN and not path.exists()):
        return _missing(path)
    kind, text = next((known for codes, known in _KNOWN.items() if code in codes), _DAMAGED)
    return kind(text.format(path=path, error=error))


def _missing(path: Path) -> LedgerMissingError:
    return LedgerMissingError(
        f"The ledger {path} does not exist. Without it the spent budget is unknown, so every "
        "charge is refused. A budget without ledger= uses a temporary file that is removed with "
        "its process: set ledger='FILE' to keep the budget. A machine without access to the file "
        "needs a ledger on a server."
    )


_APPLICATION = 0x736B6470  # "skdp"


@dataclass(frozen=True)
class FilePlace:
    """An SQLite file; see `Place`."""

    where: Path
    kind: ClassVar[str] = "skdp ledger"

    def publish(self, content: str, hash_: str) -> None:
        """Create it under another name, then rename it, so it is always complete."""
        folder = self.where.parent
        if not folder.is_dir():
            raise LedgerError(f"The folder {folder} of the ledger does not exist: create it first.")
        with explain_errors(self.where), _draft(self.where) as draft:
            fill_file(draft, content, hash_)
            _give_name(draft, self.where)

    @contextlib.contextmanager
    def transaction(self, *, writing: bool, keep: bool = True) -> Iterator[sqlite3.Connection]:
        """See `Place`."""
        with explain_errors(self.where):
            with transaction(self.where, writing=writing, keep=keep) as connection:
                yield connection

    def fault(self, connection: Any) -> str | None:
        """See `Place`."""
        found = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
        if not found and self.where.stat().st_size == 0:
            # Nothing was ever charged to a file that skdp left empty, but an emptied ledger looks
            # the same, and treating it as new would forget its charges.
            return (
                "is an empty file, not a ledger: another program created it, its creation was "
                "interrupted, or it was emptied. If nothing was ever charged to it, delete it and "
                "create the budget again"
            )
        if not found:
            return "contains no tables: it is not a ledger"
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            return f"has format {version}, but this version of skdp reads format {VERSION}"
        return None if found == TABLES else "has other tables than a ledger"

    def broken(self, connection: Any) -> str | None:
        """See `Place`."""
        answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        return None if answer == "ok" else str(answer)

    def mark(self) -> dict[str, Any]:
        """Return nothing: SQLite always answers."""
        return {}


def fill_file(path: Path, content: str, hash_: str) -> None:
    """Create a ledger in an empty file."""
    with transaction(path, writing=True) as connection:
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        fill(connection, content, hash_)


def duplicate(path: Path, target: Path) -> None:
    """Copy a ledger that may be in use, with all charges so far."""
    taken = LedgerError(f"{target} exists already: choose another name for the copy.")
    if target.exists():
        raise taken
    with explain_errors(target), _draft(target) as draft:
        with explain_errors(path), transaction(path, writing=False) as source:
            with contextlib.closing(sqlite3.connect(draft)) as copy:
                source.backup(copy)
        if not _give_name(draft, target):
            raise taken


@contextlib.contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Create an empty file, to be filled and renamed."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield draft
        _sync_folder(path.parent)
    finally:
        remove(draft, os.getpid())


def _give_name(draft: Path, path: Path) -> bool:
    """Rename a file if the name is free; else keep the file of the faster process."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:
        # Without hard links, the process that creates the empty file may replace it; until then,
        # others see no ledger.
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        os.replace(draft, path)
    return True


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows: folders cannot be synced, and need not be
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path, creator: int) -> None:
    """Remove a temporary file, unless this process was only forked from its creator."""
    if os.getpid() == creator:
        for leftover in (path, path.with_name(f"{path.name}-journal")):
            leftover.unlink(missing_ok=True)
