"""What PostgreSQL reports, said in terms of the ledger."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from skdp.exceptions import (
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerMissingError,
    LedgerReadOnlyError,
    LedgerUnreachableError,
)

# Codes of PostgreSQL, or the classes that their first two characters are.
_AWAY = ("08", "53300", "57P")
_LOCKED = ("55P03", "40")
_FORBIDDEN = ("42501", "25006")
_NOT_THERE = ("42P01", "3F000")
_FULL = ("53100",)
_DAMAGED = ("XX001", "XX002", "23")


class UnconfirmedError(Exception):
    """No answer came to a COMMIT."""


@contextmanager
def explain_errors(where: str) -> Iterator[None]:
    """Turn errors of PostgreSQL and of the connection to it into errors of the ledger."""
    try:
        yield
    except ImportError as error:
        raise LedgerUnreachableError(f"The ledger {where} cannot be reached. {error}") from error
    except Exception as error:
        original = getattr(error, "orig", None)
        if not _is_of_sqlalchemy(error):
            raise
        # What SQLAlchemy adds is the statement. Its own error is not shown either.
        raise _explain(error if original is None else original, where) from None


def is_reported(error: BaseException, *codes: str) -> bool:
    """Tell whether PostgreSQL reports one of some errors."""
    code = getattr(getattr(error, "orig", error), "sqlstate", None)
    return code is not None and code.startswith(codes)


def _is_of_sqlalchemy(error: Exception) -> bool:
    # Where it was not imported, it raised nothing.
    exceptions = sys.modules.get("sqlalchemy.exc")
    return exceptions is not None and isinstance(error, exceptions.SQLAlchemyError)


def _explain(error: BaseException, where: str) -> LedgerError:
    said = " ".join(str(error).split())
    if getattr(error, "sqlstate", None) is None or is_reported(error, *_AWAY):
        hint = (
            " A password in an address stays in the process that it was given to: others take "
            "theirs from PGPASSWORD or ~/.pgpass."
            if "password" in said
            else ""
        )
        return LedgerUnreachableError(
            f"The server of the ledger {where} cannot be reached ({said}). Nothing was charged: "
            f"try again when it is back.{hint}"
        )
    if is_reported(error, *_LOCKED):
        return LedgerLockedError(
            f"The ledger {where} is locked by another client, and stayed so for as long as a "
            "charge waits. End what holds it, or try again; nothing was charged."
        )
    if is_reported(error, *_FORBIDDEN):
        return LedgerReadOnlyError(
            f"The ledger {where} may not be used so by this role ({said}). Nothing was charged."
        )
    if is_reported(error, *_NOT_THERE):
        return LedgerMissingError(
            f"The ledger {where} is not there, or this role may not see it. Without it nobody "
            "knows what was spent, so every charge is refused."
        )
    if is_reported(error, *_FULL):
        return LedgerFullError(
            f"The ledger {where} has no room for another entry ({said}). Free some space on the "
            "server's disk; nothing was charged and no entry was lost."
        )
    if is_reported(error, *_DAMAGED):
        return LedgerDamagedError(
            f"The ledger {where} is damaged ({said}). Every charge is refused: restore the newest "
            "backup that verifies, and add what was spent since."
        )
    return LedgerError(f"The ledger {where} cannot be used ({said}). Nothing was charged.")
