"""What SQLite reports, said in terms of the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skdp.exceptions import (
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerMissingError,
    LedgerReadOnlyError,
)

# Primary result codes of SQLite; the extended ones keep them in the low byte.
_LOCKED = {5, 6, 15}
_READ_ONLY = {3, 8, 23}
_INPUT_OUTPUT = 10
_FULL = 13
_CANNOT_OPEN = 14
_MOVED = 8 | 4 << 8
_OUT_OF_MEMORY = 7


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
            f"The ledger {path} may not be written by this user: {error.strerror}. Nothing was "
            "charged."
        ) from error
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be used: {error.strerror}. Nothing was charged."
        ) from error


def _explain(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> LedgerError:
    extended = getattr(error, "sqlite_errorcode", None)
    code = None if extended is None else extended & 0xFF
    if code in _LOCKED:
        return LedgerLockedError(
            f"The ledger {path} is locked by another process, and stayed so for as long as a "
            "charge waits. End what holds it, or try again; nothing was charged."
        )
    if extended == _MOVED or (code == _CANNOT_OPEN and not path.exists()):
        return _missing(path)
    if code in _READ_ONLY or code == _CANNOT_OPEN:
        return LedgerReadOnlyError(
            f"The ledger {path} cannot be opened or written by this user ({error}). Charges need "
            "write access to the file and to its folder; nothing was charged."
        )
    if code == _FULL:
        return LedgerFullError(
            f"The ledger {path} has no room for another entry ({error}). Free some space on its "
            "disk; nothing was charged and no entry was lost."
        )
    if code == _INPUT_OUTPUT:
        return LedgerError(
            f"The ledger {path} could not be read or written ({error}: is the disk full, or a "
            "quota reached?). The charge was refused and no entry was lost."
        )
    if code == _OUT_OF_MEMORY:
        return LedgerError(f"There is no memory to use the ledger {path}; nothing was charged.")
    return LedgerDamagedError(
        f"The ledger {path} is damaged, or no ledger at all ({error}). Every charge is refused. "
        "Restore the newest copy of it that verifies, and add what was spent since."
    )


def _missing(path: Path) -> LedgerMissingError:
    return LedgerMissingError(
        f"The ledger {path} is not there. Without it nobody knows what was spent, so every "
        "charge is refused. Budgets without ledger= keep theirs in a temporary file that goes "
        "with the process that made them: give ledger='FILE' to a budget that is to outlive its "
        "process. A machine that has not the file needs a ledger on a server."
    )
