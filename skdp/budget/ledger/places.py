"""Where a ledger is kept: in a file, or by a server."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from skdp.budget.ledger.address import is_address, read_address
from skdp.budget.ledger.chain import Row
from skdp.budget.ledger.files import FilePlace
from skdp.budget.ledger.server import ServerPlace
from skdp.budget.ledger.tables import Connection


class Place(Protocol):
    """All in which a file and a server differ; how a ledger is read and charged is said once."""

    @property
    def where(self) -> Path | str:
        """What users call it; no password is part of that."""

    @property
    def kind(self) -> str:
        """What the first row of a ledger says that is kept there."""

    def publish(self, content: str, hash_: str) -> None:
        """Make a ledger whole, unless another process was faster."""

    def transaction(
        self, *, writing: bool, keep: bool = True
    ) -> AbstractContextManager[Connection]:
        """Open the ledger for one transaction; one that writes excludes all others that do."""

    def fault(self, connection: Connection) -> str | None:
        """Say what is wrong with the tables, if anything."""

    def broken(self, connection: Connection) -> str | None:
        """Say what the database finds wrong with its pages, if anything."""

    def mark(self) -> Row:
        """Return what tells an entry from all others, also where no answer comes to a commit."""


def place_of(ledger: str | os.PathLike[str]) -> Place:
    """Return the place that a user names: a file holds also after the folder was changed."""
    text = os.fspath(ledger)
    if not isinstance(text, str) or text in ("", ":memory:"):
        got = repr(text) if isinstance(text, str) else type(text).__name__
        raise ValueError(
            "ledger must be the name of a file or a 'postgresql://' address, got "
            f"{got}; None keeps a temporary file."
        )
    if is_address(text):
        return ServerPlace(read_address(text))
    return FilePlace(Path(os.path.abspath(text)))


def known_place(where: Path | str) -> Place:
    """Return the place that `Place.where` names."""
    text = str(where)
    return ServerPlace(text) if is_address(text) else FilePlace(Path(text))
