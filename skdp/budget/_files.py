"""Making and removing the file of a ledger."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

from skdp.budget._connection import transaction
from skdp.budget._schema import create_tables
from skdp.budget.errors import explained
from skdp.exceptions import LedgerError


def publish(path: Path, content: str, hash_: str) -> None:
    """Make a ledger whole under another name, then give it its own: half a ledger is never seen.

    Parameters
    ----------
    path : Path
        The file. If another process makes it meanwhile, that one stays.
    content, hash_ : str
        The genesis row.

    Raises
    ------
    LedgerError
        If the file cannot be made.
    """
    if not path.parent.is_dir():
        raise LedgerError(f"The folder {path.parent} of the ledger does not exist: make it first.")
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with explained(path):
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            with transaction(draft, writing=True) as connection:
                create_tables(connection, content, hash_)
            _give_name(draft, path)
            _sync_folder(path.parent)
        finally:
            remove(draft, os.getpid())


def _give_name(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        return  # another process was faster: its ledger is the one
    except OSError:
        # No hard links here. Whoever makes the empty file may replace it; others see no ledger
        # until it has.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.replace(draft, path)


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows: folders cannot be synced, and need not be
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path, creator: int) -> None:
    """Remove a temporary file, unless this process was only forked from its creator.

    Parameters
    ----------
    path : Path
        The file.
    creator : int
        Process that made it.
    """
    if os.getpid() == creator:
        for leftover in (path, path.with_name(f"{path.name}-journal")):
            leftover.unlink(missing_ok=True)
