"""A chain of hashes, and receipts that prove the contents of a ledger.

A row is a dictionary of plain values written as canonical JSON. Its hash is the SHA-256 of that
text, and the text holds the hash of the row before it; the first row, the genesis, holds the terms
of the budget. So whoever knows the last hash knows that no row was edited, dropped, inserted or
moved.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Row = dict[str, Any]

# What stands before the genesis row.
NO_ROW_BEFORE = "0" * 64


def canonical(row: Row) -> str:
    """Write a row as JSON in the one form that is hashed."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(content: str) -> str:
    """Return the hash of a row, in hexadecimal."""
    return hashlib.sha256(content.encode()).hexdigest()


def plain_number(value: float) -> float | str:
    """Return a number as JSON can carry it: infinities and "not a number" as text."""
    return float(value) if math.isfinite(value) else repr(float(value))


def write_amounts(amounts: tuple[Fraction, ...]) -> list[str]:
    """Write exact amounts as texts, ``"1/100"``."""
    return [str(amount) for amount in amounts]


def read_amounts(texts: list[str]) -> tuple[Fraction, ...]:
    """Read what `write_amounts` wrote."""
    return tuple(Fraction(text) for text in texts)


class RunningSum:
    """The sum of the amounts that rows wrote, in whole numbers: fractions take longer to make."""

    def __init__(self) -> None:
        self._text, self._top, self._bottom = "0", 0, 1

    def moves_to(self, written: str, *, by: str) -> bool:
        """Add an amount; tell whether it is none below 0 and the sum is written in lowest terms."""
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
    """Write a row as a link of the chain."""
    content = canonical({**row, "index": index, "previous": previous})
    return content, digest(content)


def read_link(
    content: object, *, hash_: str, index: int, previous: str | None = None
) -> tuple[Row, str | None]:
    """Read a link, and say what is wrong with it, if anything."""
    if not isinstance(content, str) or digest(content) != hash_:
        return {}, "was edited: its hash is another one"
    row: Row = json.loads(content)
    if row["index"] != index:
        return row, f"is out of place: it was written as row {row['index']}"
    if previous is not None and row["previous"] != previous:
        return row, "does not follow the row before it: rows were edited, dropped or inserted"
    return row, None


@dataclass(frozen=True)
class LedgerReceipt:
    """Proof of what a ledger held: kept elsewhere, it shows any later change of those entries.

    Parameters
    ----------
    entries : int
        Number of entries.
    head : str
        Hash of the last of them.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant, LedgerReceipt
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
    >>> entry = budget.reserve(PureDPEvent(0.25), label="a noisy count")
    >>> receipt = budget.verify()  # keep it where nobody who can edit the ledger can
    >>> receipt.entries, LedgerReceipt.parse(str(receipt)) == receipt
    (1, True)
    """

    entries: int
    head: str

    def __str__(self) -> str:
        return f"{self.entries}:{self.head}"

    @classmethod
    def parse(cls, text: str) -> LedgerReceipt:
        """Read a receipt that ``str`` has written as ``"ENTRIES:HASH"``, or raise a ValueError."""
        entries, _, head = text.strip().partition(":")
        if not (entries.isdecimal() and len(head) == 64):
            raise ValueError(f"A receipt reads 'ENTRIES:HASH' as verify printed it, got {text!r}.")
        return cls(int(entries), head)
