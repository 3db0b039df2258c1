"""What an inner fit may charge: the releases that the search has already paid for."""

from __future__ import annotations

from typing import Any

from skdp.accounting import Event
from skdp.accounting.analysis import costs_no_more
from skdp.exceptions import BudgetExceededError


class Escrow:
    """The budget of one private step of one inner fit: one release, paid for by the search."""

    # Stands in for a budget as ``accountant=``. It grants the planned release once, and refuses
    # whatever is not that release or less, so that an inner fit cannot spend what the search has
    # not charged.

    def __init__(self, event: Event, adjacency: str, step: str, unit: str = "row") -> None:
        self.event = event
        self.adjacency = adjacency
        self.step = step
        self.unit = unit
        self._left = [event]  # taken by the first charge, whichever thread makes it

    def reserve(
        self, event: Event, *, adjacency: str | None = None, unit: str = "row", **_: Any
    ) -> None:
        """Grant the planned release, once."""
        if adjacency not in (None, self.adjacency):
            raise self._refusal(
                f"under {adjacency!r}, but the search accounts for {self.adjacency!r}."
            )
        if unit != self.unit:
            raise self._refusal(
                f"for records that are each a {unit}, but the search accounts for each "
                f"{self.unit}: its fit must take groups= as its plan does."
            )
        if not costs_no_more(event, self.event):
            raise self._refusal(
                f"{event!r}, but the search has planned and paid for {self.event!r}: its "
                "privacy_plan must name what its fit charges."
            )
        try:
            self._left.pop()
        except IndexError:
            raise self._refusal(
                "twice in one fit, but the search has planned and paid for one release."
            ) from None

    def _refusal(self, reason: str) -> BudgetExceededError:
        return BudgetExceededError(f"{self.step} wants to charge {reason}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Escrow:
        # A clone inside the same fit spends from the same release.
        return self
