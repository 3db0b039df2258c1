"""The desk of a budget: charges are prepared, priced, decided and recorded here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skdp.accounting import Event
from skdp.budget.currencies import BudgetFilter
from skdp.budget.ledger.home import at_home, name_home
from skdp.budget.ledger.places import known_place
from skdp.budget.ledger.store import Ledger
from skdp.budget.request import Request, prepare
from skdp.budget.summary import refusal
from skdp.budget.terms import BudgetTerms, filter_of
from skdp.once import cached_property
from skdp.reporting.privacy_spent import PrivacySpent


class Desk:
    """What a budget and its plans share: the ledger, its terms and its currency."""

    def __init__(self, file: Ledger, home: str | None = None) -> None:
        self.file = file
        self.home = home
        self.terms = BudgetTerms.from_row(file.genesis)

    @cached_property
    def currency(self) -> BudgetFilter:
        """The filter that the ledger's first row commits to."""
        return filter_of(self.file.genesis, self.file.where)

    def prepare(
        self, event: Event | PrivacySpent, *, needs_numbers: bool = True, **details: Any
    ) -> Request:
        """Check what a caller says about a release, and restate it in the budget's relation."""
        needed = self.currency.needs_pairs and needs_numbers
        return prepare(event, self.terms.adjacency, needed, **details)

    @at_home
    def admit(self, request: Request, *, keep: bool = True) -> Any:
        """Decide and record in one transaction; the price is worked out before it starts."""
        seen = self.file.seen.spent
        while True:
            cost = self.currency.price(request.charge, seen)
            if min(cost) < 0:
                raise ValueError(f"{request.label} has the price {cost}, which is none.")
            with self.file.opened(writing=True, keep=keep) as end:
                if self.currency.fits(end.state.spent, cost):
                    return end.append(request.row, cost)
                # A price may depend on what is spent: ask again if others have charged meanwhile.
                final, seen = end.state.spent == seen, end.state.spent
            if final:
                raise refusal(request, cost, seen, self.currency)

    def address(self) -> dict[str, Any]:
        """Say where other processes find the budget."""
        return {
            "path": str(self.file.where),
            "identity": self.file.identity,
            "genesis": self.file.genesis,
        }

    def state(self) -> dict[str, Any]:
        """Return what leads to the ledger, also from other machines."""
        # A server is reached from everywhere.
        home = name_home(self.home) if isinstance(self.file.where, Path) else None
        return {**self.address(), "path": self.file.where, "home": home}

    @classmethod
    def at(cls, state: Mapping[str, Any]) -> Desk:
        """Return the desk of a ledger that is known already."""
        place = known_place(state["path"])
        file = Ledger.reach(place, state["identity"], state["genesis"])
        return cls(file, state.get("home"))

    def __reduce__(self) -> tuple[Any, ...]:
        return Desk.at, (self.state(),)
