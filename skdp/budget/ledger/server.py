"""Ledgers on a PostgreSQL server: addresses, connections and errors.

A connection for each transaction costs milliseconds. In return, threads and forks never share one,
a restart of the server in between does not matter, and nothing has to be closed later.
"""

from __future__ import annotations

import contextlib
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from skdp.budget.ledger.files import BUSY_SECONDS, VERSION, Connection, fill, in_turn
from skdp.exceptions import (
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerMissingError,
    LedgerReadOnlyError,
    LedgerUnreachableError,
)

if TYPE_CHECKING:
    from sqlalchemy import URL

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
        "is locked by another client, for longer than a charge waits. End that client, or try "
        "again; nothing was charged.",
    ),
    ("42501", "25006"): (
        LedgerReadOnlyError,
        "does not permit this to the role ({said}). Nothing was charged.",
    ),
    ("42P01", "3F000"): (
        LedgerMissingError,
        "does not exist, or this role may not see it. Without it the spent budget is unknown, so "
        "every charge is refused.",
    ),
    ("53100",): (
        LedgerFullError,
        "has no space for another entry ({said}). Free some space on the server's disk; nothing "
        "was charged and no entry was lost.",
    ),
    ("XX001", "XX002", "23"): (
        LedgerDamagedError,
        "is damaged ({said}). Every charge is refused: restore the newest backup that verifies, "
        "and charge the budget spent since.",
    ),
    ("",): (LedgerError, "cannot be used ({said}). Nothing was charged."),
}
_HINT = (
    " A password in an address is known only to the process that received it. Other processes use "
    "PGPASSWORD or ~/.pgpass."
)


class UnconfirmedError(Exception):
    """A COMMIT received no answer."""


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
    """Raise an error without its context, since psycopg's errors contain the password."""
    try:
        raise error from None
    finally:
        error.__context__ = None


def is_reported(error: BaseException, *codes: str) -> bool:
    """Return whether PostgreSQL reports one of some errors."""
    code = getattr(getattr(error, "orig", error), "sqlstate", None)
    return code is not None and code.startswith(codes)


def _explain(error: BaseException, where: str) -> LedgerError:
    # What has no code does not come from the server.
    kind, text = next((known for c, known in _KNOWN.items() if is_reported(error, *c)), _AWAY)
    said = " ".join(str(error).split())
    hint = _HINT if kind is LedgerUnreachableError and "password" in said else ""
    return kind(f"The ledger {where} {text.format(said=said)}{hint}")


DEFAULT_SCHEMA = "skdp_ledger"

# Options allowed in an address: none that hold secrets or change the meaning of a session.
_OPTIONS = {
    *("schema", "host", "connect_timeout", "target_session_attrs", "passfile", "require_auth"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode"),
}
_FORM = "postgresql://USER@HOST:PORT/DATABASE?schema=NAME"

# The last password of each address, by the address without it. It is never shown, pickled or sent
# to other processes; forked ones inherit it.
passwords: dict[str, str] = {}


def is_address(text: str) -> bool:
    """Return whether a text is an address, not a file name; also for a `Path` of an address."""
    # A mistyped address is not a file name either: errors quote names of files.
    return re.match(r"(?i)postgres(ql)?(\+\w+)?:.*@|[a-z][a-z0-9+.-]+:/", text) is not None


def read_address(text: str) -> str:
    """Check an address and return it without its password, which this process remembers."""
    # No message quotes the text: in a malformed one, any part may be the password.
    sqlalchemy = load_sqlalchemy()
    if re.match(r"(?i)postgres(ql)?(\+psycopg)?://", text) is None:
        raise ValueError(f"ledger must be a file name, or a str of the form {_FORM}.")
    try:
        url = sqlalchemy.make_url(text)
        plain = text.count("@") <= 1 and url.database and "/" not in url.database
    except (sqlalchemy.exc.ArgumentError, ValueError):
        plain = False
    if not plain:
        raise ValueError(
            f"The address of the ledger must have the form {_FORM}. Write special characters in "
            "names and passwords with % (%40 for an at sign)."
        )
    address = sqlalchemy.URL.create(
        "postgresql",
        username=url.username,
        host=url.host,
        port=url.port,
        database=url.database,
        query={"schema": DEFAULT_SCHEMA, **_checked_options(url)},
    )
    shown: str = address.render_as_string()
    if url.password:
        passwords[shown] = str(url.password)
    return shown


def options_of(address: str) -> dict[str, str]:
    """Return the options of an address."""
    return _checked_options(load_sqlalchemy().make_url(address))


def _checked_options(url: URL) -> dict[str, str]:
    unknown = sorted(set(url.query) - _OPTIONS)
    if unknown or not all(isinstance(value, str) for value in url.query.values()):
        raise ValueError(
            "The address of the ledger accepts each of these options once: "
            f"{', '.join(sorted(_OPTIONS))}. Put passwords before the host, in ~/.pgpass or in the "
            "environment variable PGPASSWORD."
        )
    schema = str(url.query.get("schema", DEFAULT_SCHEMA))
    if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", schema):
        raise ValueError(
            "schema= in the address of the ledger must have at most 63 lower-case letters, digits "
            "and underscores, and must not begin with a digit or pg_."
        )
    return {name: str(value) for name, value in url.query.items()}


def load_sqlalchemy() -> Any:
    """Return SQLAlchemy, needed only for ledgers on a server."""
    try:
        import psycopg  # noqa: F401
        import sqlalchemy
    except ImportError as error:
        raise ImportError(
            "Ledgers on a server need SQLAlchemy and psycopg: pip install 'skdp[server]'."
        ) from error
    return sqlalchemy


# A broken connection is noticed within half a minute, on either side of a query.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# No object in a schema that others may write shadows the ledger's, and no policy hides rows:
# PostgreSQL reports an error instead.
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL row_security = off; "
_READING += 'SET LOCAL search_path = "{schema}", pg_temp; '
# COMMIT returns when the disks of the server and of every synchronous standby have the charge. A
# vanished client holds the lock no longer than others wait for it.
_DURABLE = "SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '{wait}s'; "
_DURABLE += "SET LOCAL idle_in_transaction_session_timeout = '{wait}s'; "
# Conflicts with every other change of a ledger, also by other programs, but not with readers.
# Waiting clients are served in order of arrival. REPEATABLE READ sees the state at its first query,
# after this lock is granted.
_LOCK = "LOCK TABLE head IN EXCLUSIVE MODE"

# One query for everything about a schema, since each query is a round trip.
_LAYOUT = """
SELECT to_regnamespace(:schema) IS NOT NULL, current_setting('fsync') = 'on',
pg_is_in_recovery(), json_agg(found) FROM (
SELECT c.relname, concat_ws(' ', c.relkind, c.relpersistence, i.indisunique, i.indkey,
  (SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull), ', '
   ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND i IS NULL),
  (SELECT count(*) FROM pg_trigger WHERE tgrelid = c.oid),
  (SELECT count(*) FROM pg_rewrite WHERE ev_class = c.oid)) AS layout,
  obj_description(c.oid, 'pg_class') AS comment
FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = to_regnamespace(:schema)) AS found
"""
_EXPECTED = {
    "genesis": "r p id integer t, content text t, hash text t 0 0",
    "genesis_pkey": "i p t 1 0 0",
    "entries": "r p id integer t, content text t, hash text t, plan integer f, place integer f 0 0",
    "entries_pkey": "i p t 1 0 0",
    "redeemed": "i p t 4 5 0 0",
    "head": "r p id integer t, entries integer t, hash text t 0 0",
    "head_pkey": "i p t 1 0 0",
}
_FORMAT = f"skdp ledger, format {VERSION}"


@dataclass(frozen=True)
class ServerPlace:
    """A schema in a PostgreSQL database; see `Place`."""

    where: str
    kind: ClassVar[str] = "skdp ledger on a server"

    def publish(self, content: str, hash_: str) -> None:
        """Create the schema and its contents in one transaction; see `Place`."""
        begin = _READING + _DURABLE + 'CREATE SCHEMA "{schema}"'
        with explain_errors(self.where):
            try:
                with self._begun(begin, writing=True) as connection:
                    fill(connection, content, hash_)
                    connection.execute(f"COMMENT ON TABLE head IS '{_FORMAT}'")
            except UnconfirmedError:
                pass  # found out when it is opened
            except Exception as error:
                if not is_reported(error, "42P06", "23505"):  # another process was faster
                    raise

    @contextlib.contextmanager
    def transaction(self, *, writing: bool, keep: bool = True) -> Iterator[Connection]:
        """See `Place`."""
        begin = _READING + (_DURABLE + _LOCK if writing else "SET TRANSACTION READ ONLY")
        with explain_errors(self.where), self._begun(begin, writing, keep) as connection:
            yield connection

    def fault(self, connection: Connection) -> str | None:
        """See `Place`."""
        exists, synced, lags, found = connection.execute(
            _LAYOUT, {"schema": self._schema}
        ).fetchone()
        if not exists:
            raise LedgerMissingError(
                f"The ledger {self.where} does not exist: the database has no schema of that name. "
                "Without it the spent budget is unknown, so every charge is refused."
            )
        if lags or not synced:
            reason = (
                "is a standby, which may lack the last charges: use its primary"
                if lags
                else "runs with fsync = off: a power failure could undo charges, so all are refused"
            )
            raise LedgerError(f"The server of the ledger {self.where} {reason}.")
        if not found:
            return (
                "is an empty schema, not a ledger. skdp creates the schema itself: if nothing was "
                "ever charged to it, drop it and create the budget again"
            )
        said = [row["comment"] for row in found if row["relname"] == "head"]
        if said != [_FORMAT]:
            return f"has the format {said}, but this version of skdp reads {_FORMAT!r}"
        if {row["relname"]: row["layout"] for row in found} != _EXPECTED:
            return "has other tables than a ledger, or triggers, rules or unlogged tables"
        return None

    def broken(self, connection: Connection) -> str | None:
        """Return None: PostgreSQL reports broken pages when they are read."""
        return None

    def mark(self) -> dict[str, Any]:
        """See `Place`: two clients may write the same charge at the same moment."""
        return {"charge": uuid.uuid4().hex}

    @property
    def _schema(self) -> str:
        return options_of(self.where)["schema"]

    @contextlib.contextmanager
    def _begun(self, begin: str, writing: bool, keep: bool = True) -> Iterator[Connection]:
        """Begin a transaction; commit it if its block succeeds, else leave it to the server."""
        begin = begin.format(schema=self._schema, wait=int(BUSY_SECONDS))
        engine = _engine(self.where, passwords.get(self.where))
        with in_turn(self.where, writing=writing), _connected(engine) as connection:
            connection.exec_driver_sql(begin)
            yield _Session(connection)
            try:
                connection.exec_driver_sql("COMMIT" if keep else "ROLLBACK")
            except Exception:
                if writing and keep:
                    raise_alone(UnconfirmedError())


@contextlib.contextmanager
def _connected(engine: Any) -> Iterator[Any]:
    """Connect, and close without a rollback: the server rolls back uncommitted changes."""
    connection = engine.connect()
    try:
        yield connection
    finally:
        with contextlib.suppress(Exception):  # no error may hide that of a COMMIT
            connection.invalidate()
            connection.close()


class _Session:
    """A transaction on the server, used like one of SQLite."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._text = load_sqlalchemy().text

    def execute(self, query: str, values: Mapping[str, Any] | None = None, /) -> Any:
        return self._connection.execute(self._text(query), values or {})


@lru_cache(maxsize=32)
def _engine(where: str, password: str | None) -> Any:
    """Return an engine that makes connections without keeping any."""
    sqlalchemy = load_sqlalchemy()
    options = {name: value for name, value in options_of(where).items() if name != "schema"}
    url = sqlalchemy.make_url(where)
    url = url.set(drivername="postgresql+psycopg", password=password, query=options)
    return sqlalchemy.create_engine(
        url,
        poolclass=sqlalchemy.NullPool,
        pool_reset_on_return=None,
        isolation_level="AUTOCOMMIT",  # transactions are begun and ended explicitly
        hide_parameters=True,
        use_native_hstore=False,  # which would need a query per connection
        connect_args={k: v for k, v in _PATIENCE.items() if k not in options},
    )
