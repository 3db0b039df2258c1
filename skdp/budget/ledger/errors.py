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

_Kind = type[LedgerError]
# By primary result codes of SQLite; the extended ones keep them in the low byte.
_KNOWN: dict[tuple[int, ...], tuple[_Kind, str]] = {
    (5, 6, 15): (  # busy, locked, protocol
        LedgerLockedError,
        "The ledger {path} is locked by another process, and stayed so for as long as a charge "
        "waits. End what holds it, or try again; nothing was charged.",
    ),
    (3, 8, 14, 23): (  # permission, read-only, not opened, not authorised
        LedgerReadOnlyError,
        "The ledger {path} cannot be opened or written by this user ({error}). Charges need write "
        "access to the file and to its folder; nothing was charged.",
    ),
    (13,): (
        LedgerFullError,
        "The ledger {path} has no room for another entry ({error}). Free some space on its disk; "
        "nothing was charged and no entry was lost.",
    ),
    (10,): (
        LedgerError,
        "The ledger {path} could not be read or written ({error}: is the disk full, or a quota "
        "reached?). The charge was refused and no entry was lost.",
    ),
    (7,): (LedgerError, "There is no memory to use the ledger {path}; nothing was charged."),
}
_DAMAGED: tuple[_Kind, str] = (
    LedgerDamagedError,
    "The ledger {path} is damaged, or no ledger at all ({error}). Every charge is refused. Restore "
    "the newest copy of it that verifies, and add what was spent since.",
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
    if extended == _MOVED or (code == _CANNOT_OPEN and not path.exists()):
        return _missing(path)
    kind, text = next((known for codes, known in _KNOWN.items() if code in codes), _DAMAGED)
    return kind(text.format(path=path, error=error))


def _missing(path: Path) -> LedgerMissingError:
    return LedgerMissingError(
        f"The ledger {path} is not there. Without it nobody knows what was spent, so every "
        "charge is refused. Budgets without ledger= keep theirs in a temporary file that goes "
        "with the process that made them: give ledger='FILE' to a budget that is to outlive its "
        "process. A machine that has not the file needs a ledger on a server."
    )
