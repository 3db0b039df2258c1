"""Ledgers in a file: making, checking, copying and removing it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from skdp.budget.ledger.connection import transaction
from skdp.budget.ledger.errors import explain_errors
from skdp.budget.ledger.tables import TABLES, VERSION, fill
from skdp.exceptions import LedgerError

_APPLICATION = 0x736B6470  # "skdp"


@dataclass(frozen=True)
class FilePlace:
    """An SQLite file; see `Place`."""

    where: Path
    kind: ClassVar[str] = "skdp ledger"

    def publish(self, content: str, hash_: str) -> None:
        """Make it under another name, then give it its own: half a ledger is never seen."""
        folder = self.where.parent
        if not folder.is_dir():
            raise LedgerError(f"The folder {folder} of the ledger does not exist: make it first.")
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
            # Nothing was ever charged to a file that skdp itself left empty, but whoever empties a
            # ledger leaves the same, and to take it for a fresh one would forget what was spent.
            return (
                "is an empty file, which no ledger is: another program made it, its creation was "
                "interrupted, or it was emptied. If nothing was ever charged to it, delete it and "
                "make the budget anew"
            )
        if not found:
            return "holds no tables: it is no ledger"
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
    """Make an empty file a ledger."""
    with transaction(path, writing=True) as connection:
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        fill(connection, content, hash_)


def duplicate(path: Path, target: Path) -> None:
    """Copy a ledger that may be in use, with all charges so far."""
    taken = LedgerError(f"{target} is there already: give the copy a name of its own.")
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
    """Make an empty file to be filled and named."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield draft
        _sync_folder(path.parent)
    finally:
        remove(draft, os.getpid())


def _give_name(draft: Path, path: Path) -> bool:
    """Name a file if the name is free; if not, another process was faster, and its file stays."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:
        # No hard links here. Whoever makes the empty file may replace it; others see no ledger
        # until it has.
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
