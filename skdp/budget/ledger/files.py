"""Making and removing the file of a ledger."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

from skdp.budget.ledger.connection import transaction
from skdp.budget.ledger.errors import explain_errors
from skdp.budget.ledger.reader import create_tables
from skdp.exceptions import LedgerError


def publish(path: Path, content: str, hash_: str) -> None:
    """Make a ledger whole under another name, then give it its own: half a ledger is never seen."""
    if not path.parent.is_dir():
        raise LedgerError(f"The folder {path.parent} of the ledger does not exist: make it first.")
    with explain_errors(path), _draft(path) as draft:
        with transaction(draft, writing=True) as connection:
            create_tables(connection, content, hash_)
        _give_name(draft, path)


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
