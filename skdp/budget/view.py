"""What everybody may ask of a ledger."""

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
    """A budget's ledger, to be read; all copies and pickles of it reach the same ledger."""

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
        """The relation in which the budget counts."""
        return self.desk.terms.adjacency

    @property
    def composition(self) -> str:
        """How charges add up; never ``"auto"``."""
        return self.desk.terms.composition

    @property
    def name(self) -> str | None:
        """What the budget is called."""
        return self.desk.terms.name

    @property
    def created(self) -> str:
        """When the budget was created, ISO 8601 in UTC."""
        return str(self.desk.file.genesis["created"])

    @property
    def ledger(self) -> Path | str:
        """File of the ledger, or the address of one on a server without its password."""
        return self.desk.file.where

    def spent(self) -> tuple[float, float]:
        """Return the (epsilon, delta) that all charges so far amount to, rounded up.

        Returns
        -------
        tuple of float
            For any amounts fixed in advance, all that was released before they were exceeded has
            this guarantee. The budget's own total holds whenever and why ever one stops; this
            reading does not promise that of a moment picked by looking at results.
        """
        return self.desk.currency.guarantee(self.desk.file.state().spent)

    def remaining(self) -> Remaining:
        """Return the (epsilon, delta) of the largest single release that still fits.

        Returns
        -------
        tuple of float
            Zeros if none fits but perhaps a pure one. Under ``"gdp"``, ``"zcdp"`` and ``"rdp"``
            that release is Gaussian, under ``"mixed"`` perhaps; epsilons are not additive there,
            and this may be more than the difference between the total and what is spent. Its
            ``repr`` says so then.
        """
        return remaining(self.desk.terms, self.desk.currency, self.desk.file.state().spent)

    def coordinates(self) -> dict[str, tuple[float, float]]:
        """Return what is spent in each unit of the currency, and what that sum may still reach.

        Returns
        -------
        dict of str to tuple of float
            Rounded up. Under ``"mixed"``: the squares of mu, and the stated epsilons and deltas.
            What one sum may reach depends on the others: it need not be there for all at once.
        """
        return coordinates(self.desk.currency, self.desk.file.state().spent)

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries in order, ready for ``pandas.DataFrame``.

        Returns
        -------
        list of dict
            Fields of `BudgetEntry` as plain values; the cost in numbers, rounded up.

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
        """All charges so far as one record: what the filter grants, read as `spent` is."""
        rows = self.desk.file.rows()
        spent = read_amounts(rows[-1]["spent"]) if rows else self.desk.currency.nothing
        return total_spent(self.desk.terms, self.desk.currency, spent, rows)

    def verify(self, receipt: LedgerReceipt | str | None = None) -> LedgerReceipt:
        """Read the whole ledger, check that it agrees with itself, and price its entries again.

        Parameters
        ----------
        receipt : LedgerReceipt or str, optional
            What an earlier call returned. Whoever computes the whole chain of hashes anew, with
            other events, can be found out only by a receipt that was kept elsewhere.

        Returns
        -------
        LedgerReceipt
            Number of entries and hash of the last: keep it elsewhere, ``str`` writes it.

        Raises
        ------
        LedgerDamagedError
            If an entry was edited, dropped, inserted or moved, or the file is broken; or if an
            entry cost less than its event, as this version prices it.
        LedgerError
            If the file cannot be read.

        Warns
        -----
        PrivacyWarning
            If entries cannot be priced again: of a newer version, or plans of an older one.
        """
        known = LedgerReceipt.parse(receipt) if isinstance(receipt, str) else receipt
        found = self.desk.file.verify(known)
        if unknown := price_again(self.desk, self.desk.file.rows()):
            warnings.warn(not_priced(unknown), PrivacyWarning, stacklevel=2)
        return found

    def close(self) -> None:
        """Do nothing: a ledger is open during a charge or a look only.

        For code that closes whatever it opened, such as `contextlib.closing`.
        """

    def __repr__(self) -> str:
        return short_text(self.desk.terms, self._shown())

    def _repr_html_(self) -> str:
        return html_text(self.desk.terms, self._shown(), self.desk.file.where)

    def _shown(self) -> Shown | str:
        """Return what is shown; a fitted model is displayed also when its ledger is gone."""
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
