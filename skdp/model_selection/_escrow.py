"""What an inner fit may charge: the releases that the search has already paid for."""

from __future__ import annotations

import threading
from typing import Any

from skdp.accounting import Event
from skdp.accounting.analysis import costs_no_more, with_noise
from skdp.exceptions import BudgetExceededError

# Relative margin on noise between what a search accounts for and what its fits run with.
PLANNING_MARGIN = 1e-9


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
        self.granted = False
        self._lock = threading.Lock()

    def reserve(
        self, event: Event, *, adjacency: str | None = None, unit: str = "row", **_: Any
    ) -> None:
        """Grant the planned release, once."""
        if adjacency not in (None, self.adjacency):
            raise BudgetExceededError(
                f"{self.step} wants to charge under {adjacency!r}, but the search accounts for "
                f"{self.adjacency!r}."
            )
        if unit != self.unit:
            raise BudgetExceededError(
                f"{self.step} wants to charge for records that are each a {unit}, but the search "
                f"accounts for each {self.unit}: its fit must take groups= as its plan does."
            )
        if not costs_no_more(event, self.event):
            raise BudgetExceededError(
                f"{self.step} wants to charge {event!r}, but the search has planned and paid for "
                f"{self.event!r}: its privacy_plan must name what its fit charges."
            )
        with self._lock:
            if self.granted:
                raise BudgetExceededError(
                    f"{self.step} wants to charge twice in one fit, but the search has planned and "
                    "paid for one release."
                )
            self.granted = True

    def __deepcopy__(self, memo: dict[int, Any]) -> Escrow:
        # A clone inside the same fit spends from the same release.
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


def with_margin(event: Event, margin: float) -> Event:
    """Return an event that costs a hair more, so that rounding cannot make the real one dearer."""
    return with_noise(event, 1.0 - margin)


def dominating_event(events: list[Event]) -> Event | None:
    """Return the event among several that dominates all of them, None if none is seen to."""
    for candidate in events:
        if all(costs_no_more(event, candidate) for event in events):
            return candidate
    return None
