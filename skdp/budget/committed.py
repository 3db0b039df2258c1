"""A list of releases committed in advance and paid for as one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from skdp.accounting import ApproxDPEvent, ComposedEvent, Event, PLDAccountant
from skdp.budget.charging import close_block, open_block
from skdp.budget.currencies import Charge
from skdp.budget.currencies.exact import decimal_up
from skdp.budget.currencies.pairs import pair_of
from skdp.budget.currencies.profiles import is_certified
from skdp.budget.desk import Desk, stamp
from skdp.budget.entries import PLANNED, BudgetEntry, read_event, write_event
from skdp.budget.ledger.chain import Row, canonical
from skdp.budget.request import Request
from skdp.budget.view import LedgerView
from skdp.exceptions import BudgetExceededError
from skdp.reporting.privacy_spent import PrivacySpent


class BudgetPlan:
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

    def reserve(
        self,
        event: Event | PrivacySpent,
        *,
        label: str | None = None,
        adjacency: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        estimator: Any = None,
        parameters: Mapping[str, Any] | None = None,
        seeded: bool = False,
    ) -> BudgetEntry:
        """Redeem one of the committed events.

        Parameters
        ----------
        event : Event or PrivacySpent
            What will run: an event of the plan that was not redeemed yet.
        label, adjacency, epsilon, delta, estimator, parameters, seeded
            As for `BudgetAccountant.reserve`.

        Returns
        -------
        BudgetEntry
            The entry, which costs nothing.

        Raises
        ------
        BudgetExceededError
            If the plan has no such event left; nothing is recorded then.
        LedgerError
            If the ledger cannot be read or written.
        """
        desk = self._accountant.desk
        request = desk.prepare(
            event,
            label=label,
            adjacency=adjacency,
            epsilon=epsilon,
            delta=delta,
            estimator=estimator,
            parameters=parameters,
            seeded=seeded,
            needs_numbers=False,
        )
        wanted = write_event(request.charge.event)
        with desk.file.appending() as end:
            plan = end.reader.row(self._index)
            used = end.reader.places(self._index)
            place = _place_of(wanted, plan, used)
            if place is None:
                raise _not_planned(request, plan, used)
            row = {**request.row, "kind": PLANNED, "plan": self._index, "place": place}
            nothing = (0 * end.state.spent[0],) * len(end.state.spent)
            row = end.append(stamp(row), nothing)
        return desk.entry(row)

    def __enter__(self) -> BudgetPlan:
        open_block(self)
        return self

    def __exit__(self, *exception: object) -> None:
        close_block(self)

    def _address(self) -> dict[str, Any]:
        return {**self._accountant.desk.address(), "plan": self._index}

    def __copy__(self) -> BudgetPlan:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetPlan:
        return self

    def __repr__(self) -> str:
        return f"BudgetPlan(entry {self._index} of {self._accountant!r})"


def commit(
    events: Iterable[Event | PrivacySpent], desk: Desk, *, given: str | None, delta: float | None
) -> tuple[list[Charge], ComposedEvent, tuple[float, float] | None]:
    """Account jointly for a list of releases, each restated and proved as when it is reserved."""
    charges = [desk.prepare(item, needs_numbers=False, adjacency=given).charge for item in events]
    if not charges:
        raise ValueError("events must hold at least one event: an empty plan pays for nothing.")
    if desk.currency.needs_pairs:
        return charges, *_jointly(charges, desk.terms.adjacency, delta)
    return charges, ComposedEvent(tuple(charge.event for charge in charges)), None


def _jointly(
    charges: list[Charge], adjacency: str, delta: float | None
) -> tuple[ComposedEvent, tuple[float, float]]:
    """Return an event that stands for all charges, and an (epsilon, delta) of it."""
    pairs = [None if charge.epsilon is None else pair_of(charge, adjacency) for charge in charges]
    known = [pair for pair in pairs if pair is not None]
    if delta is None and len(known) < len(pairs):
        raise ValueError(
            "delta must be given: this budget counts epsilon and delta, and not all events of the "
            "plan name theirs."
        )
    if delta is None:
        delta = decimal_up(sum((pair[1] for pair in known), Fraction(0)))
    judge = PLDAccountant(adjacency=adjacency)
    parts = (
        # The proved pair stands for an event that has no privacy-loss distribution.
        charge.event
        if pair is None or judge.supports(charge.event)
        else ApproxDPEvent(decimal_up(pair[0]), decimal_up(pair[1]))
        for charge, pair in zip(charges, pairs, strict=True)
    )
    joint = ComposedEvent(tuple(parts))
    epsilon = float(judge.compose(joint).epsilon(delta))
    total = decimal_up(sum((pair[0] for pair in known), Fraction(0)))
    if len(known) == len(pairs) and is_certified(joint, adjacency, total, delta):
        epsilon = min(epsilon, total)
    return joint, (epsilon, delta)


def _place_of(wanted: dict[str, Any], plan: Row, used: set[int]) -> int | None:
    text = canonical(wanted)
    for place, event in enumerate(plan["events"]):
        if place not in used and canonical(event) == text:
            return place
    return None


def _not_planned(request: Request, plan: Row, used: set[int]) -> BudgetExceededError:
    left = [event for place, event in enumerate(plan["events"]) if place not in used]
    text = json.dumps(write_event(request.charge.event))
    planned = sum(canonical(e) == canonical(json.loads(text)) for e in plan["events"])
    reason = (
        f"all {planned} of that kind are redeemed"
        if planned
        else "the plan has none of that kind: parameters and numbers of rows must be as planned"
    )
    return BudgetExceededError(
        f"{request.label} asks the plan {plan['label']!r} for {text[:200]}, but {reason}. "
        f"{len(left)} of {len(plan['events'])} events are left. Nothing was charged and no row "
        "was read."
    )
