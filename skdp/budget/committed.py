"""A list of releases committed in advance and paid for as one."""

from __future__ import annotations

from typing import Any

from skdp.accounting import Event
from skdp.budget.charging import Account
from skdp.budget.desk import Desk
from skdp.budget.entries import PLANNED, read_event, write_event
from skdp.budget.ledger.chain import Row, canonical
from skdp.budget.ledger.home import at_home
from skdp.budget.repricing import written_today
from skdp.budget.request import Request
from skdp.budget.view import LedgerView
from skdp.exceptions import BudgetExceededError, LedgerError
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

    _needs_numbers = False

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

    @property
    def desk(self) -> Desk:  # type: ignore[override]
        """The desk of the budget that paid."""
        return self._accountant.desk

    def left(self) -> list[Event]:
        """Return the events that were not redeemed yet, in the ledger's relation."""
        row, used = self.desk.file.row(self._index)
        return [read_event(e) for place, e in enumerate(row["events"]) if place not in used]

    def _record(self, request: Request) -> Row:
        return _redeem(self.desk, self._index, request)

    def _address(self) -> dict[str, Any]:
        return {**self.desk.address(), "plan": self._index}

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
            row, used = self.desk.file.row(self._index)
        except LedgerError as error:
            return type(error).__name__, "unknown", "unknown"
        return row["label"], len(row["events"]) - len(used), len(row["events"])


@at_home
def _redeem(desk: Desk, index: int, request: Request) -> Row:
    with desk.file.opened(writing=True) as end:
        plan, used = end.row(index), end.places(index)
        wanted = canonical(write_event(request.charge.event))
        left = (pair for pair in enumerate(plan["events"]) if pair[0] not in used)
        place = next((i for i, event in left if written_today(event) == wanted), None)
        if place is None:
            raise _not_planned(request, plan, used, wanted)
        row = {**request.row, "kind": PLANNED, "plan": index, "place": place}
        return end.append(row, desk.currency.nothing)


def _not_planned(request: Request, plan: Row, used: set[int], wanted: str) -> BudgetExceededError:
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
