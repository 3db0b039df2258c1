"""A chain of hashes, and receipts that prove the contents of a ledger.

A row is a dictionary of plain values written as canonical JSON. Its hash is the SHA-256 of that
text, which contains the hash of the row before it. The first row, the genesis, contains the terms
of the budget. The last hash therefore proves that no row was edited, dropped, inserted or moved.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Row = dict[str, Any]

# "Previous" hash of the genesis row.
NO_ROW_BEFORE = "0" * 64


def canonical(row: Row) -> str:
    """Return a row as JSON in the form that is hashed."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(content: str) -> str:
    """Return the hash of a row, in hexadecimal."""
    return hashlib.sha256(content.encode()).hexdigest()


def plain_number(value: float) -> float | str:
    """Return a number in a form for JSON: infinities and "not a number" as text."""
    return float(value) if math.isfinite(value) else repr(float(value))


def write_amounts(amounts: tuple[Fraction, ...]) -> list[str]:
    """Return exact amounts as texts, ``"1/100"``."""
    return [str(amount) for amount in amounts]


def read_amounts(texts: list[str]) -> tuple[Fraction, ...]:
    """Return the amounts that `write_amounts` wrote."""
    return tuple(Fraction(text) for text in texts)


class RunningSum:
    """The sum of written amounts in integers, which are faster than fractions."""

    def __init__(self) -> None:
        self._text, self._top, self._bottom = "0", 0, 1

    def moves_to(self, written: str, *, by: str) -> bool:
        """Add an amount; return whether it is >= 0 and the sum is written in lowest terms."""
        if by == "0":
            return written == self._text
        added, _, part = by.partition("/")
        top, bottom = int(added), int(part or "1")
        told, _, part = written.partition("/")
        total, unit = int(told), int(part or "1")
        right = (self._top * bottom + top * self._bottom) * unit == total * self._bottom * bottom
        plain = written == (f"{total}/{unit}" if unit != 1 else f"{total}")
        lowest = unit > 0 and math.gcd(total, unit) == 1
        self._text, self._top, self._bottom = written, total, unit
        return right and plain and lowest and top >= 0 and bottom > 0


def link(row: Row, *, index: int, previous: str) -> tuple[str, str]:
    """Return a row as a link of the chain, and its hash."""
    content = canonical({**row, "index": index, "previous": previous})
    return content, digest(content)


def read_link(
    content: object, *, hash_: str, index: int, previous: str | None = None
) -> tuple[Row, str | None]:
    """Return a row, and its fault if it has one."""
    if not isinstance(content, str) or digest(content) != hash_:
        return {}, "was edited: its hash differs"
    row: Row = json.loads(content)
    if row["index"] != index:
        return row, f"is out of place: it was written as row {row['index']}"
    if previous is not None and row["previous"] != previous:
        return row, "does not follow the row before it: rows were edited, dropped or inserted"
    return row, None


@dataclass(frozen=True)
class LedgerReceipt:
    """Proof of a ledger's entries: stored elsewhere, it reveals any later change of them.

    Parameters
    ----------
    entries : int
        Number of entries.
    head : str
        Hash of the last entry.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant, LedgerReceipt
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
    >>> entry = budget.reserve(PureDPEvent(0.25), label="a noisy count")
    >>> receipt = budget.verify()  # store it out of reach of those who can edit the ledger
    >>> receipt.entries, LedgerReceipt.parse(str(receipt)) == receipt
    (1, True)
    """

    entries: int
    head: str

    def __str__(self) -> str:
        return f"{self.entries}:{self.head}"

    @classmethod
    def parse(cls, text: str) -> LedgerReceipt:
        """Return the receipt that ``str`` wrote as ``"ENTRIES:HASH"``, or raise a ValueError."""
        entries, _, head = text.strip().partition(":")
        if not (entries.isdecimal() and len(head) == 64):
            raise ValueError(
                f"receipt must have the form 'ENTRIES:HASH' that verify prints, got {text!r}."
            )
        return cls(int(entries), head)
