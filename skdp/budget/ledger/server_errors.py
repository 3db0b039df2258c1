"""What PostgreSQL reports, said in terms of the ledger."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from skdp.exceptions import (
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerMissingError,
    LedgerReadOnlyError,
    LedgerUnreachableError,
)

_Kind = type[LedgerError]
_AWAY: tuple[_Kind, str] = (
    LedgerUnreachableError,
    "cannot be reached ({said}). Nothing was charged: try again when it is back.",
)
# By codes of PostgreSQL, or the classes that their first two characters are.
_KNOWN: dict[tuple[str, ...], tuple[_Kind, str]] = {
    ("08", "53300", "57P"): _AWAY,
    ("55P03", "40"): (
        LedgerLockedError,
        "is locked by another client, and stayed so for as long as a charge waits. End what holds "
        "it, or try again; nothing was charged.",
    ),
    ("42501", "25006"): (
        LedgerReadOnlyError,
        "may not be used so by this role ({said}). Nothing was charged.",
    ),
    ("42P01", "3F000"): (
        LedgerMissingError,
        "is not there, or this role may not see it. Without it nobody knows what was spent, so "
        "every charge is refused.",
    ),
    ("53100",): (
        LedgerFullError,
        "has no room for another entry ({said}). Free some space on the server's disk; nothing was "
        "charged and no entry was lost.",
    ),
    ("XX001", "XX002", "23"): (
        LedgerDamagedError,
        "is damaged ({said}). Every charge is refused: restore the newest backup that verifies, "
        "and add what was spent since.",
    ),
    ("",): (LedgerError, "cannot be used ({said}). Nothing was charged."),
}
_HINT = (
    " A password in an address stays in the process that it was given to: others take theirs from "
    "PGPASSWORD or ~/.pgpass."
)


class UnconfirmedError(Exception):
    """No answer came to a COMMIT."""


@contextmanager
def explain_errors(where: str) -> Iterator[None]:
    """Turn errors of PostgreSQL and of the connection to it into errors of the ledger."""
    try:
        yield
    except (ImportError, UnicodeError) as error:  # no driver; no name of a host
        raise_alone(LedgerUnreachableError(f"The ledger {where} cannot be reached. {error}"))
    except Exception as error:
        exceptions = sys.modules.get("sqlalchemy.exc")
        if exceptions is None or not isinstance(error, exceptions.SQLAlchemyError):
            raise
        # Not from that error: SQLAlchemy adds the statement to what the server says.
        raise_alone(_explain(getattr(error, "orig", None) or error, where))


def raise_alone(error: Exception) -> NoReturn:
    """Raise an error without those before it, of which psycopg's hold the password."""
    try:
        raise error from None
    finally:
        error.__context__ = None


def is_reported(error: BaseException, *codes: str) -> bool:
    """Tell whether PostgreSQL reports one of some errors."""
    code = getattr(getattr(error, "orig", error), "sqlstate", None)
    return code is not None and code.startswith(codes)


def _explain(error: BaseException, where: str) -> LedgerError:
    # What has no code does not come from the server.
    kind, text = next((known for c, known in _KNOWN.items() if is_reported(error, *c)), _AWAY)
    said = " ".join(str(error).split())
    hint = _HINT if kind is LedgerUnreachableError and "password" in said else ""
    return kind(f"The ledger {where} {text.format(said=said)}{hint}")
