"""Transactions on a ledger's file: durable, excluding all other writers, safe to fork and copy.

Reads open a connection of their own and close it. Charges share one connection of this process,
kept by `_held`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from skdp.budget import _held
from skdp.budget._held import in_turn, release
from skdp.exceptions import LedgerError

__all__ = ["fill", "in_turn", "made", "release", "spare_log", "transaction"]

_READING = ("PRAGMA query_only = ON",)
# A file that nobody else knows yet: it is synced once, when it is whole.
_MAKING = ("PRAGMA journal_mode = MEMORY", "PRAGMA synchronous = OFF")
_NOT_WRITABLE = (8, 14)

# After so many entries the write-ahead log is copied into the ledger. It is the last entry's number
# that counts, so that of many processes one does it.
_CHECKPOINT = 256


@contextlib.contextmanager
def transaction(path: Path, *, writing: bool) -> Iterator[sqlite3.Connection]:
    """Open a ledger's file for one transaction.

    The transaction is committed if the block ends well, and rolled back otherwise. One that writes
    excludes all other writers from its start, so that what it reads stays true until it commits,
    and is on the disk when this ends.

    Parameters
    ----------
    path : Path
        The file; never made, so that a missing one is an error.
    writing : bool
        Whether it may write.

    Yields
    ------
    sqlite3.Connection
        Inside the transaction.

    Raises
    ------
    LedgerError
        If this process cannot write safely.
    OSError, sqlite3.Error
        If the file cannot be opened, locked, read or written.
    """
    with in_turn(), _writer(path) if writing else _reader(path) as connection:
        yield connection


@contextlib.contextmanager
def made(path: Path) -> Iterator[sqlite3.Connection]:
    """Fill an empty file that no other process knows, and put it on the disk.

    Parameters
    ----------
    path : Path
        The empty file.

    Yields
    ------
    sqlite3.Connection
        Inside a transaction.

    Raises
    ------
    OSError, sqlite3.Error
        If the file cannot be written.
    """
    with in_turn():
        with contextlib.closing(_held.connect(path, "mode=rw", _MAKING)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
            _held.set_journal(connection, path)
        _put_on_disk(path)


def fill(path: Path, source: sqlite3.Connection) -> None:
    """Copy a ledger into an empty file that no other process knows, and put it on the disk.

    Parameters
    ----------
    path : Path
        The empty file.
    source : sqlite3.Connection
        Of the ledger.

    Raises
    ------
    OSError, sqlite3.Error
        If a file cannot be read or written.
    """
    with contextlib.closing(_held.connect(path, "mode=rw", _MAKING)) as connection:
        source.backup(connection)
    _put_on_disk(path)


def _put_on_disk(path: Path) -> None:
    # Nobody uses the file yet, so that no lock is lost by closing it.
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _writer(path: Path) -> Iterator[sqlite3.Connection]:
    with _held.held(path) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextlib.contextmanager
def _reader(path: Path) -> Iterator[sqlite3.Connection]:
    connection = _connected(path)
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        # Closing rolls back what was not committed.
        connection.close()


def _connected(path: Path) -> sqlite3.Connection:
    """Open a file for reading, without leaving anything beside it."""
    real = os.path.realpath(path)
    if os.path.exists(f"{real}-wal"):
        # Others use the ledger, or were killed. Who only reads never removes the log.
        return _begun(path, "mode=ro")
    if os.access(os.path.dirname(real), os.W_OK):
        # SQLite may roll back what a killed process left, and removes files that it made.
        return _begun(path, "mode=rw")
    try:
        return _begun(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _NOT_WRITABLE or not path.exists():
            raise
        # A ledger at rest in a folder where nobody may write, such as a read-only disk.
        return _begun(path, "mode=ro&immutable=1")


def _begun(path: Path, mode: str) -> sqlite3.Connection:
    connection = _held.connect(path, mode, _READING)
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def spare_log(path: Path, entries: int) -> None:
    """Copy the write-ahead log into the ledger now and then, so that it does not grow for ever.

    Parameters
    ----------
    path : Path
        The file.
    entries : int
        How many entries it has after this process added the last.
    """
    if entries % _CHECKPOINT:
        return
    with contextlib.suppress(OSError, sqlite3.Error, LedgerError), _held.held(path) as connection:
        # FULL keeps writers out meanwhile. SQLite before 3.51.3 can lose a commit that meets a
        # checkpoint at the wrong moment, which is why automatic ones are off.
        connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
