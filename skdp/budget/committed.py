"""A list of releases committed in advance and paid for as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skdp.accounting import ComposedEvent, Event
from skdp.budget.charging import Account, Details
from skdp.budget.currencies import Charge
from skdp.budget.desk import Desk
from skdp.budget.entries import PLANNED, BudgetEntry, read_event, write_event
from skdp.budget.ledger.chain import Row, canonical
from skdp.budget.ledger.home import at_home
from skdp.budget.repricing import joint_of, written_today
from skdp.budget.request import Request
from skdp.budget.view import LedgerView
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.reporting.records import html_table


class BudgetPlan(Account):
    """Releases that were committed in advance: give it to estimators as ``accountant=``.

    Made by `BudgetAccountant.plan`. Each committed event can be redeemed once, by a fit that runs
    exactly that event, in any order and from any process; it costs nothing more. Since the list was
    fixed before its first release, it is accounted for jointly by privacy loss distributions, which
    is tighter than adding up the charges one by one. The order may be chosen on the way: whichever
    comes next, the composition of the dominating pairs is the same.

    Parameters
    ----------
    accountant : BudgetAccountant
        The budget that paid.
    index : int
        Index of the plan's entry.

    Notes
    -----
    Fits of a plan may take turns with other charges of the budget. The filters stay valid then:
    Haney, Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang (2023) extend filters to concurrent
    composition of interactive mechanisms, and a plan is one such mechanism.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent
    >>> from skdp.budget import BudgetAccountant
    >>> budget = BudgetAccountant(epsilon=1.0, delta=1e-6)
    >>> plan = budget.plan([GaussianEvent(10.0), GaussianEvent(20.0)], label="two fits")
    >>> entry = plan.reserve(GaussianEvent(20.0), label="the second one first")
    >>> entry.kind, plan.left()
    ('planned', [GaussianEvent(noise_multiplier=10.0)])
    """

    def __init__(self, accountant: LedgerView, index: int) -> None:
        self._accountant = accountant
        self._index = index

    @property
    def accountant(self) -> LedgerView:
        """The budget that paid for the plan."""
        return self._accountant

    @property
    def index(self) -> int:
        """Index of the plan's entry in the ledger."""
        return self._index

    def left(self) -> list[Event]:
        """Return the events that were not redeemed yet, in the ledger's adjacency.

        Returns
        -------
        list of Event
            In the order of the plan.

        Raises
        ------
        LedgerError
            If the ledger cannot be read.
        """
        row, used = self._accountant.desk.file.row(self._index)
        return [read_event(e) for place, e in enumerate(row["events"]) if place not in used]

    def _charge(self, event: Event | PrivacySpent, details: Details) -> BudgetEntry:
        desk = self._accountant.desk
        request = desk.prepare(event, **details, needs_numbers=False)
        return desk.entry(request, _redeem(desk, self._index, request))

    def _address(self) -> dict[str, Any]:
        return {**self._accountant.desk.address(), "plan": self._index}

    def __repr__(self) -> str:
        label, left, planned = self._told()
        where = f"entry {self._index} of {self._accountant.ledger}"
        return f"BudgetPlan({where}: {label!r}, {left} of {planned} events left)"

    def _repr_html_(self) -> str:
        label, left, planned = self._told()
        rows = [
            ("label", label),
            ("events", f"{planned} planned, {left} left"),
            ("entry", str(self._index)),
            ("ledger", str(self._accountant.ledger)),
        ]
        return html_table("Plan of a privacy budget", rows)

    def _told(self) -> tuple[str, int | str, int | str]:
        """Return the label, how many events are left and of how many; also without its file."""
        try:
            row, used = self._accountant.desk.file.row(self._index)
        except LedgerError as error:
            return type(error).__name__, "unknown", "unknown"
        return row["label"], len(row["events"]) - len(used), len(row["events"])


def commit(
    events: Iterable[Event | PrivacySpent], desk: Desk, *, given: str | None, delta: float | None
) -> tuple[list[Charge], ComposedEvent, tuple[float, float] | None]:
    """Account jointly for a list of releases, each restated and proved as when it is reserved."""
    charges = [desk.prepare(item, needs_numbers=False, adjacency=given).charge for item in events]
    if not charges:
        raise ValueError("events must hold at least one event: an empty plan pays for nothing.")
    return charges, *joint_of(charges, desk, delta)


@at_home
def _redeem(desk: Desk, index: int, request: Request) -> Row:
    with desk.file.opened(writing=True) as end:
        plan, used = end.row(index), end.places(index)
        place = _place_of(request, plan, used)
        if place is None:
            raise _not_planned(request, plan, used)
        row = {**request.row, "kind": PLANNED, "plan": index, "place": place}
        return end.append(row, desk.currency.nothing)


def _place_of(request: Request, plan: Row, used: set[int]) -> int | None:
    wanted = canonical(write_event(request.charge.event))
    for place, event in enumerate(plan["events"]):
        if place not in used and written_today(event) == wanted:
            return place
    return None


def _not_planned(request: Request, plan: Row, used: set[int]) -> BudgetExceededError:
    wanted = canonical(write_event(request.charge.event))
    planned = sum(written_today(event) == wanted for event in plan["events"])
    reason = (
        f"all {planned} of that kind are redeemed"
        if planned
        else "the plan has none of that kind: parameters and numbers of rows must be as planned"
    )
    return BudgetExceededError(
        f"{request.label} asks the plan {plan['label']!r} for {wanted[:200]}, but {reason}. "
        f"{len(plan['events']) - len(used)} of {len(plan['events'])} events are left. Nothing was "
        "charged and no row was read."
    )
