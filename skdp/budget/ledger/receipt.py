"""Proof of what a ledger held."""

from __future__ import annotations

from dataclasses import dataclass


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
