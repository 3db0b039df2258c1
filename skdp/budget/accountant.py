"""One durable budget that every fit charges first, and lists of releases committed in advance."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from skdp.accounting import Event
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import html_table
from skdp.base.parameters import Adjacency, Composition
from skdp.budget.charging import Account, reach_budgets_by
from skdp.budget.desk import Desk, joint_of, written_today
from skdp.budget.entries import PLAN, PLANNED, BudgetTerms, read_event, write_event
from skdp.budget.forecast import ForecastingView
from skdp.budget.ledger.chain import Row, canonical
from skdp.budget.ledger.home import at_home
from skdp.budget.ledger.store import Ledger, place_of
from skdp.budget.request import Request, about_relations
from skdp.budget.view import LedgerView
from skdp.exceptions import BudgetExceededError, LedgerError


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
    left = f"{len(plan['events']) - len(used)} of {len(plan['events'])} events are left"
    return BudgetExceededError(
        f"{request.label} is not what the plan {plan['label']!r} has left: {reason}. {left}, which "
        f"left() lists.{about_relations(request, plan['adjacency'])} Nothing was charged and no "
        f"row was read. The request was for {wanted[:200]}."
    )


class BudgetAccountant(Account, ForecastingView):
    """A total (epsilon, delta) that many fits share, kept in a ledger on disk.

    Attach one object as ``accountant=`` to any number of estimators, or set it for a block with
    ``with accountant:``; the guide on budgets says which fits a block charges. Each fit charges it
    before rows are touched. Clones, copies and pickles of it all reach the *same* ledger, also in
    other processes. A charge is on the disk before the fit goes on, and is never refunded: not
    after an exception, and not after a crash.

    Parameters
    ----------
    epsilon : float
        Total epsilon, positive; ``inf`` counts without limit. Above 1e20 only ``"basic"``
        composition takes another.
    delta : float
        Total delta in [0, 1).
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        The relation in which the budget counts. Charges under the other one are converted where
        that is sound, and refused otherwise.
    ledger : path or str, optional
        File of the ledger, or the address of a schema on a PostgreSQL server,
        ``"postgresql://USER@HOST/DATABASE?schema=NAME"``, for several machines. One that is there
        is continued, if it was created with the same parameters. None keeps the ledger in a
        temporary file, which is removed when the last reference to the budget dies in the process
        that created it.
    composition : {"auto", "mixed", "gdp", "zcdp", "rdp", "basic", "approx"}, default="auto"
        How charges add up. All are filters: they hold when later fits, and their parameters, are
        chosen after looking at earlier results. ``"auto"`` is ``"mixed"`` with a positive delta and
        ``"basic"`` without; a ledger that is there keeps the composition it has.
    name : str, optional
        What the budget is called, for reports.
    stated_epsilon : float, optional
        Of ``"mixed"`` composition: how much of `epsilon` searches, counts and others that state a
        pair of their own may take together. None leaves it open.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    ImportError
        If the ledger is on a server and its driver is missing: ``pip install 'skdp[server]'``.
    LedgerError
        If the ledger cannot be made, read or trusted, now or whenever it is asked;
        `LedgerMismatchError` if it was created with other parameters.

    Notes
    -----
    Entries form a chain of SHA-256 hashes that `verify` checks. See the guide on budgets for what
    that shows and what it cannot.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
    >>> entry = budget.reserve(PureDPEvent(0.25), label="a noisy count")
    >>> budget.spent(), budget.remaining()
    ((0.25, 0.0), (0.75, 0.0))
    >>> budget.reserve(PureDPEvent(2.0), label="too much")
    Traceback (most recent call last):
        ...
    skdp.exceptions.BudgetExceededError: too much asks for (epsilon=2, delta=0), ...
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        adjacency: Adjacency = "replace-one",
        ledger: str | os.PathLike[str] | None = None,
        composition: Composition = "auto",
        name: str | None = None,
        stated_epsilon: float | None = None,
    ) -> None:
        terms = BudgetTerms.checked(epsilon, delta, adjacency, composition, name, stated_epsilon)
        place = None if ledger is None else place_of(ledger)
        super().__init__(Ledger.create(place, terms.to_row()))
        terms.agree_with(self.desk.terms, self.desk.file.where)

    @classmethod
    def open(cls, ledger: str | os.PathLike[str]) -> BudgetAccountant:
        """Continue a ledger on its own terms.

        Parameters
        ----------
        ledger : path or str
            Its file or its address, where it must be.
        """
        budget = cls.__new__(cls)
        ForecastingView.__init__(budget, Ledger.open(place_of(ledger)))
        return budget

    def plan(
        self,
        events: Iterable[Event | PrivacySpent],
        *,
        label: str | None = None,
        adjacency: Adjacency | None = None,
        delta: float | None = None,
    ) -> BudgetPlan:
        """Commit a list of releases in advance, and charge it once.

        A list that is fixed before its first release may be accounted for jointly by privacy loss
        distributions, which no filter may do. That is what makes a plan cheaper than its parts.

        Parameters
        ----------
        events : iterable of Event or PrivacySpent
            The releases: events, or what `privacy_plan` of the estimators returns.
        label : str, optional
            What the plan is for.
        adjacency : {"replace-one", "add-remove"}, optional
            The relation of bare events; None means the budget's.
        delta : float, optional
            The joint delta, counted by ``"basic"`` and ``"approx"`` composition. None takes the sum
            of the deltas of all items that are a `PrivacySpent`, a `PureDPEvent` or an
            `ApproxDPEvent`; other events need it given.

        Returns
        -------
        BudgetPlan
            To be given to estimators as ``accountant=``: each event can be redeemed once, in any
            order, from any process, also after a restart.

        Raises
        ------
        BudgetExceededError
            If the plan does not fit; nothing is charged then.
        LedgerError, TypeError, ValueError, UnsupportedEventError
            As `reserve` does.
        """
        parts = tuple(
            self.desk.prepare(item, needs_numbers=False, adjacency=adjacency).charge
            for item in events
        )
        if not parts:
            raise ValueError("events must hold at least one event: an empty plan pays for nothing.")
        joint, pair = joint_of(parts, self.desk, delta)
        own = (None, None) if pair is None else pair
        label = label or f"plan of {len(parts)} releases"
        request = self.desk.prepare(joint, label=label, epsilon=own[0], delta=own[1])
        committed = [write_event(part.event) for part in parts]
        pairs = [[part.epsilon, part.delta] for part in parts]
        row = {**request.row, "kind": PLAN, "events": committed, "pairs": pairs}
        request = replace(request, charge=replace(request.charge, parts=parts), row=row)
        return BudgetPlan(self, self._record(request)["index"])

    def redeem(self, index: int) -> BudgetPlan:
        """Return a plan that was committed earlier.

        Parameters
        ----------
        index : int
            Index of the plan's entry.

        Raises
        ------
        ValueError
            If that entry is no plan.

        Examples
        --------
        >>> from skdp.accounting import GaussianEvent
        >>> from skdp.budget import BudgetAccountant
        >>> budget = BudgetAccountant(epsilon=1.0, delta=1e-6)
        >>> index = budget.plan([GaussianEvent(10.0), GaussianEvent(20.0)]).index
        >>> len(budget.redeem(index).left())  # after a restart
        2
        """
        if not 1 <= index <= self.desk.file.state().entries:
            raise ValueError(f"index must be that of an entry, got {index!r}.")
        kind = self.desk.file.row(index)[0]["kind"]
        if kind != PLAN:
            raise ValueError(f"index={index} is an entry of kind {kind!r}, not a plan.")
        return BudgetPlan(self, index)


def _reach(address: dict[str, Any]) -> BudgetAccountant | BudgetPlan:
    """Return the budget or plan at an address; its first use finds out if the file is there."""
    budget = BudgetAccountant.__new__(BudgetAccountant)
    plan = address.get("plan")
    budget.__setstate__(address)
    return budget if plan is None else BudgetPlan(budget, plan)


reach_budgets_by(_reach)
