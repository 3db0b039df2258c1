"""The connection through which this process charges a ledger.

A ledger is an SQLite file with a write-ahead log. With ``synchronous = FULL`` or more the log is
synced at every COMMIT, so that a commit is on the disk when it returns, at the cost of one sync.
That holds while a connection stays open: the last one to close copies the log into the file and
removes it. So each process keeps one for each ledger that it charges, until the last budget that
uses the ledger dies, or the process ends or forks.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skdp.exceptions import LedgerError, LedgerLockedError, LedgerMismatchError

if sys.platform != "win32":
    import fcntl

# How long a charge waits for other processes that are charging.
BUSY_SECONDS = 60.0

_CAREFUL = ("PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON")
# EXTRA is FULL for write-ahead logs. With a rollback journal it also syncs the folder after the
# journal was deleted, without which a power failure could bring it back and undo the write.
_DURABLE = (
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA wal_autocheckpoint = 0",
)
_LOCKED = (5, 6)

# What SQLite locks while a connection with a write-ahead log is open, part of its file format:
# bytes of the file, which keep others from removing the log, and of the log's index, which keep
# others from emptying that.
_FILE_LOCK = (510, 0x40000002)
_INDEX_LOCK = (1, 128)

# Write-ahead logs need memory that all processes share, which these do not give across machines.
_REMOTE = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs"}

# Threads take turns here rather than in SQLite, and no process is forked while one of them is
# inside SQLite.
_turn = threading.RLock()
_holding: dict[Path, Held] = {}
# Whether a charge is under way, and what is to be closed after it.
_charging = False
_unwanted: set[Path] = set()
# The process in which multiprocessing closes connections at its end.
_worker: int | None = None


def in_turn() -> contextlib.AbstractContextManager[bool]:
    """Return the lock that threads and forks wait for.

    Returns
    -------
    threading.RLock
        To be held briefly.
    """
    return _turn


class Held:
    """A connection that is kept open, and what shows that its files are still those of the path.

    Processes that open and close a file by other means than SQLite, to copy it for example, lose
    all locks on it: POSIX says so. Another process may then remove the log that this one still
    writes to. So the locks are renewed, and the files compared, before every use.

    Parameters
    ----------
    path : Path
        The ledger's file.
    """

    def __init__(self, path: Path) -> None:
        self.process = os.getpid()
        self._real = real = os.path.realpath(path)  # where SQLite keeps the log, too
        self._locks: list[tuple[int, tuple[int, int]]] = []
        self._files: dict[str, tuple[int, int]] = {}
        self._guard: sqlite3.Connection | None = None
        try:
            self._know(str(path), _FILE_LOCK)
            self.connection = connect(path, "mode=rw", _DURABLE)
        except BaseException:
            self._unlock()
            raise
        try:
            if set_journal(self.connection, path) == "wal":
                # While this one is open, closing the other removes nothing; see `discard`.
                self._guard = connect(path, "mode=ro", ())
                self._guard.execute("SELECT 1 FROM sqlite_master").fetchone()
                self._know(f"{real}-wal", None)
                self._know(f"{real}-shm", _INDEX_LOCK)
        except BaseException:
            self.discard()
            raise

    def is_sound(self) -> bool:
        """Renew the locks, and say whether the files are still those that were opened."""
        try:
            if self._guard is not None:
                for handle, place in self._locks:
                    fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB, *place)
            return all(_identity(os.stat(n)) == known for n, known in self._files.items())
        except OSError:
            return False  # a file is gone, or another process is removing the log

    def refuse_swapped(self, path: Path) -> None:
        """Refuse a file that was put in the place of ours beside the log of ours."""
        (_, ours), *others = self._files.items()
        with contextlib.suppress(FileNotFoundError):
            if not others or _identity(os.stat(others[0][0])) != others[0][1]:
                return
            if _identity(os.stat(self._real)) == ours:
                return
            raise LedgerMismatchError(
                f"The file {path} was replaced by another one while it was in use, and its "
                f"write-ahead log {others[0][0]} does not belong to the new one. Every charge is "
                "refused: bring the file back, or delete the log to go on with the new file."
            )
        if not path.exists():
            raise FileNotFoundError(path)

    def close(self) -> None:
        """Close; the last process to do so makes the ledger one file again."""
        if self._guard is None or self.is_sound():
            if self._guard is not None:
                self._guard.close()
            self.connection.close()
        self.discard()

    def discard(self) -> None:
        """Close without touching the files, which may be another ledger's by now."""
        # SQLite removes the log when the last connection closes that may write.
        self.connection.close()
        if self._guard is not None:
            self._guard.close()
        self._unlock()

    def _know(self, name: str, place: tuple[int, int] | None) -> None:
        """Remember a file, and where SQLite locks it; only `is_sound` renews that lock."""
        if sys.platform == "win32" or place is None:
            self._files[name] = _identity(os.stat(name))
        else:
            handle = os.open(name, os.O_RDONLY)
            self._locks.append((handle, place))
            self._files[name] = _identity(os.fstat(handle))

    def _unlock(self) -> None:
        # Only now: closing a file drops all locks on it that this process has.
        for handle, _ in self._locks:
            os.close(handle)
        self._locks = []


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def connect(path: Path, mode: str, pragmas: tuple[str, ...]) -> sqlite3.Connection:
    """Open a connection.

    Parameters
    ----------
    path : Path
        The file; never made.
    mode : str
        Of SQLite's URI.
    pragmas : tuple of str
        Settings.

    Returns
    -------
    sqlite3.Connection
        Without a transaction.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in (*_CAREFUL, *pragmas):
            connection.execute(pragma).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def set_journal(connection: sqlite3.Connection, path: Path) -> str:
    """Use a write-ahead log where the file system can, and a rollback journal elsewhere.

    Parameters
    ----------
    connection : sqlite3.Connection
        Without a transaction.
    path : Path
        Its file.

    Returns
    -------
    str
        What it is: ``"wal"``, or ``"delete"``.

    Raises
    ------
    LedgerError
        If another machine uses the ledger with a log that cannot be shared with this one.
    sqlite3.Error
        If the file cannot be read or written.
    """
    if not is_remote(path):
        answer = _journal(connection, "WAL")
        return answer if answer == "wal" else _journal(connection, "DELETE")
    if (answer := _journal(connection, "DELETE")) == "wal":
        raise LedgerError(
            f"The ledger {path} is on a network file system, and in use where it can be charged "
            "faster than this machine could follow. Charge it from one machine at a time."
        )
    return answer


def _journal(connection: sqlite3.Connection, wanted: str) -> str:
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            answer = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
            return str(answer[0])
        except sqlite3.OperationalError as error:
            # SQLite does not wait for others here.
            if error.sqlite_errorcode & 0xFF not in _LOCKED or time.monotonic() > end:
                raise
        time.sleep(0.005)


def is_remote(path: Path) -> bool:
    """Say whether a file is known to be on a network file system.

    Parameters
    ----------
    path : Path
        The file, or one that will be made.

    Returns
    -------
    bool
        Always false where the system does not tell.
    """
    if str(path).startswith("\\\\"):
        return True
    try:
        device = os.stat(path).st_dev
        with open("/proc/self/mountinfo") as mounts:
            found = [line.partition(" - ") for line in mounts]
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = {kind.split()[0] for place, _, kind in found if place.split()[2] == number}
    return any(kind in _REMOTE or kind.startswith("fuse.") for kind in kinds)


@contextlib.contextmanager
def held(path: Path) -> Iterator[sqlite3.Connection]:
    """Use this process's connection to a ledger, opened if need be.

    Parameters
    ----------
    path : Path
        The ledger's file.

    Yields
    ------
    sqlite3.Connection
        Without a transaction. It is given up after an error of SQLite.

    Raises
    ------
    LedgerError
        If this process cannot use it.
    OSError, sqlite3.Error
        If the file cannot be opened.
    """
    global _charging
    with _turn:
        if _charging:
            raise LedgerLockedError(
                f"The ledger {path} cannot be charged now: this very thread was interrupted while "
                "it was charging. Do not charge in signal handlers; nothing was charged."
            )
        _charging = True
        try:
            yield _hold(path).connection
        except sqlite3.Error:
            if path in _holding:
                _holding.pop(path).discard()
            raise
        finally:
            _charging = False
            while _unwanted:
                release(_unwanted.pop())


def _hold(path: Path) -> Held:
    found = _holding.get(path)
    if found is not None and found.process != os.getpid():
        # SQLite believes that this process has the locks of the other one. Nor may this one close
        # the connection, so that it must never be collected.
        for connection in (found.connection, found._guard):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        raise LedgerError(
            f"This process was forked while the ledger {path} was in use, by something that does "
            "not run Python's fork hooks. It cannot charge safely: start it with spawn, or fork "
            "it before the first charge. Nothing was charged."
        )
    if found is not None:
        if found.is_sound():
            return found
        found.refuse_swapped(path)
        _holding.pop(path).discard()
    for _ in range(3):
        new = Held(path)
        if new.is_sound():
            _close_with_worker()
            _holding[path] = new
            return new
        new.discard()
    raise LedgerError(f"The ledger {path} is being replaced again and again; nothing was charged.")


def release(path: Path) -> None:
    """Close this process's connection to a ledger; the next charge opens another.

    Parameters
    ----------
    path : Path
        The ledger's file.
    """
    with _turn:
        if path not in _holding or _holding[path].process != os.getpid():
            return
        if _charging:
            _unwanted.add(path)
            return
        with contextlib.suppress(OSError, sqlite3.Error):
            _holding.pop(path).close()


def release_all() -> None:
    """Close all connections that are kept."""
    with _turn:
        for path in list(_holding):
            release(path)


def _close_with_worker() -> None:
    """Workers that multiprocessing forked end without Python's own exit functions."""
    global _worker
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None and _worker != os.getpid():
        util.Finalize(None, release_all, exitpriority=0)
        _worker = os.getpid()


def _enter_fork() -> None:
    # Who forks with an SQLite connection open gives the child locks that it only seems to have.
    _turn.acquire()
    release_all()


def _leave_fork() -> None:
    _turn.release()


def _renew_in_child() -> None:
    global _turn, _charging
    _turn = threading.RLock()
    _charging = False
    _unwanted.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_enter_fork, after_in_parent=_leave_fork, after_in_child=_renew_in_child
    )
atexit.register(release_all)
