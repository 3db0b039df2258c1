"""Addresses of ledgers on a server, of which passwords are no part."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import URL

DEFAULT_SCHEMA = "skdp_ledger"

# What may stand after the question mark. Options that hold secrets, or change what a session
# means, are not among them.
_OPTIONS = {
    *("schema", "host", "connect_timeout", "target_session_attrs", "passfile", "require_auth"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode"),
}
_FORM = "postgresql://USER@HOST:PORT/DATABASE?schema=NAME"

# The last password that stood in an address, by the address without it. Nothing that is shown,
# pickled or told to other processes reads this; forked ones have it, others need their own.
passwords: dict[str, str] = {}


def is_address(text: str) -> bool:
    """Tell addresses from names of files; a `Path` of an address is taken for one, too."""
    # One that is mistyped is no file either, of which errors would quote the name.
    return re.match(r"(?i)postgres(ql)?(\+\w+)?:.*@|[a-z][a-z0-9+.-]+:/", text) is not None


def read_address(text: str) -> str:
    """Check an address and return it without its password, which is kept in this process."""
    # No message quotes the text: where it is malformed, nobody knows which part is the password.
    sqlalchemy = load_sqlalchemy()
    if re.match(r"(?i)postgres(ql)?(\+psycopg)?://", text) is None:
        raise ValueError(f"ledger must be the name of a file or of the form {_FORM}, as a text.")
    try:
        url = sqlalchemy.make_url(text)
        plain = text.count("@") <= 1 and url.database and "/" not in url.database
    except (sqlalchemy.exc.ArgumentError, ValueError):
        plain = False
    if not plain:
        raise ValueError(
            f"The address of the ledger must be of the form {_FORM}; special characters in names "
            "and passwords are written with % (%40 for an at sign)."
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
    """Return what stands after the question mark of an address."""
    return _checked_options(load_sqlalchemy().make_url(address))


def _checked_options(url: URL) -> dict[str, str]:
    unknown = sorted(set(url.query) - _OPTIONS)
    if unknown or not all(isinstance(value, str) for value in url.query.values()):
        raise ValueError(
            "The address of the ledger may have each of these options once: "
            f"{', '.join(sorted(_OPTIONS))}. Passwords stand before the host, in ~/.pgpass or in "
            "the environment variable PGPASSWORD."
        )
    schema = str(url.query.get("schema", DEFAULT_SCHEMA))
    if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", schema):
        raise ValueError(
            "schema= in the address of the ledger must be of at most 63 small letters, digits and "
            "underscores, not begin with a digit, and not with pg_."
        )
    return {name: str(value) for name, value in url.query.items()}


def load_sqlalchemy() -> Any:
    """Return SQLAlchemy, which only ledgers on a server need."""
    try:
        import psycopg  # noqa: F401
        import sqlalchemy
    except ImportError as error:
        raise ImportError(
            "Ledgers on a server need SQLAlchemy and psycopg: pip install 'skdp[server]'."
        ) from error
    return sqlalchemy
