"""Read access to a budget's ledger."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.budget.desk import Desk, not_priced, price_again
from skdp.budget.entries import record_of
from skdp.budget.ledger.chain import LedgerReceipt, read_amounts
from skdp.budget.ledger.store import Ledger
from skdp.budget.request import (
    Remaining,
    Shown,
    coordinates,
    html_text,
    remaining,
    short_text,
    still_fits,
    total_spent,
)
from skdp.exceptions import LedgerError, PrivacyWarning
from skdp.mechanisms.contribution import Adjacency


class LedgerView:
    """Read access to a ledger; all copies and pickles use the same ledger."""

    def __init__(self, file: Ledger) -> None:
        self.desk = Desk(file)

    @property
    def epsilon(self) -> float:
        """Total epsilon, fixed at creation."""
        return self.desk.terms.epsilon

    @property
    def delta(self) -> float:
        """Total delta, fixed at creation."""
        return self.desk.terms.delta

    @property
    def adjacency(self) -> Adjacency:
        """Adjacency relation of the budget."""
        return self.desk.terms.adjacency

    @property
    def composition(self) -> str:
        """Composition rule, never ``"auto"``."""
        return self.desk.terms.composition

    @property
    def name(self) -> str | None:
        """Name of the budget."""
        return self.desk.terms.name

    @property
    def created(self) -> str:
        """Time of creation, ISO 8601 in UTC."""
        return str(self.desk.file.genesis["created"])

    @property
    def ledger(self) -> Path | str:
        """File of the ledger, or its address on a server, without the password."""
        return self.desk.file.where

    def spent(self) -> tuple[float, float]:
        """Return the (epsilon, delta) of all charges so far, rounded up.

        Returns
        -------
        tuple of float
            Guarantee of everything released before amounts fixed in advance were exceeded. It is
            not proved for a moment chosen by looking at results; the budget's total is valid
            whenever you stop.
        """
        return self.desk.currency.guarantee(self.desk.file.state().spent)

    def remaining(self) -> Remaining:
        """Return the (epsilon, delta) of the largest single release that still fits.

        Returns
        -------
        tuple of float
            Zeros if none fits, except perhaps one with delta = 0. The release is Gaussian under
            ``"gdp"``, ``"zcdp"`` and ``"rdp"``, and may be under ``"mixed"``. Epsilons are not
            additive there, so this may exceed the total minus the spent budget; the ``repr`` then
            explains it.
        """
        return remaining(self.desk.terms, self.desk.currency, self.desk.file.state().spent)

    def coordinates(self) -> dict[str, tuple[float, float]]:
        """Return the spent amount in each unit of the composition rule, and its upper limit.

        Returns
        -------
        dict of str to tuple of float
            Amounts, rounded up. Under ``"mixed"``: squares of mu, stated epsilons and deltas. The
            limit of one sum depends on the others; they cannot always be reached together.
        """
        return coordinates(self.desk.currency, self.desk.file.state().spent)

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries in order, ready for ``pandas.DataFrame``.

        Returns
        -------
        list of dict
            Fields of `BudgetEntry` as plain values; costs as numbers, rounded up.

        Examples
        --------
        >>> from skdp.accounting import PureDPEvent
        >>> from skdp.budget import BudgetAccountant
        >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
        >>> entry = budget.reserve(PureDPEvent(0.25), label="a noisy count")
        >>> [(row["index"], row["label"], row["cost"]) for row in budget.entries()]
        [(1, 'a noisy count', {'epsilon': 0.25, 'delta': 0.0})]
        """
        return [record_of(row, self.desk.currency.units) for row in self.desk.file.rows()]

    @property
    def total(self) -> PrivacySpent:
        """All charges so far as one record, with the same meaning as `spent`."""
        rows = self.desk.file.rows()
        spent = read_amounts(rows[-1]["spent"]) if rows else self.desk.currency.nothing
        return total_spent(self.desk.terms, self.desk.currency, spent, rows)

    def verify(self, receipt: LedgerReceipt | str | None = None) -> LedgerReceipt:
        """Check the entire ledger for consistency, and recompute the cost of its entries.

        Parameters
        ----------
        receipt : LedgerReceipt or str, optional
            Receipt of an earlier call, stored elsewhere. Only a receipt reveals a chain of hashes
            that was computed again with other events.

        Returns
        -------
        LedgerReceipt
            Number of entries and hash of the last one. Store its ``str`` elsewhere.

        Raises
        ------
        LedgerDamagedError
            If an entry was edited, dropped, inserted or moved, or the file is broken. Also if an
            entry cost less than this version charges for its event.
        LedgerError
            If the file cannot be read.

        Warns
        -----
        PrivacyWarning
            If the cost of entries cannot be recomputed: those of a newer version, or plans of an
            older one.
        """
        known = LedgerReceipt.parse(receipt) if isinstance(receipt, str) else receipt
        found = self.desk.file.verify(known)
        if unknown := price_again(self.desk, self.desk.file.rows()):
            warnings.warn(not_priced(unknown), PrivacyWarning, stacklevel=2)
        return found

    def close(self) -> None:
        """Do nothing: a ledger is open only during a charge or a read.

        For code that closes its resources, such as `contextlib.closing`.
        """

    def __repr__(self) -> str:
        return short_text(self.desk.terms, self._shown())

    def _repr_html_(self) -> str:
        return html_text(self.desk.terms, self._shown(), self.desk.file.where)

    def _shown(self) -> Shown | str:
        """Return the displayed numbers; a fitted model can be displayed without its ledger."""
        try:
            state, currency = self.desk.file.state(), self.desk.currency
        except LedgerError as error:
            return type(error).__name__
        fits, sums = still_fits(currency, state.spent), coordinates(currency, state.spent)
        return Shown(currency.guarantee(state.spent), fits, sums, state.entries)

    def __getstate__(self) -> dict[str, Any]:
        return self.desk.state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.desk = Desk.at(state)
