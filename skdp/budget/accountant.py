"""A durable budget that fits charge first, and plans of releases committed in advance."""

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
    """Releases that are charged in advance, to pass to estimators as ``accountant=``.

    Made by `BudgetAccountant.plan`. Each committed event can be redeemed once without a further
    charge, by a fit that runs exactly that event, in any order and process. The list is
    fixed before its first release. Its joint cost is therefore computed with privacy loss
    distributions, which is tighter than adding up single charges. The order may depend on earlier
    results, since the composition of the dominating pairs is the same in any order.

    Parameters
    ----------
    accountant : BudgetAccountant
        Budget that was charged.
    index : int
        Index of the plan's entry.

    Notes
    -----
    Fits of a plan may alternate with other charges of the budget. The filters remain valid: a plan
    is an interactive mechanism, and filters extend to concurrent composition of these (Haney,
    Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang, 2023).

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
        """Budget that was charged for the plan."""
        return self._accountant

    @property
    def index(self) -> int:
        """Index of the plan's entry in the ledger."""
        return self._index

    @property
    def desk(self) -> Desk:  # type: ignore[override]
        """The desk of the plan's budget."""
        return self._accountant.desk

    def left(self) -> list[Event]:
        """Return the events that are not redeemed yet, under the ledger's adjacency."""
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
        """Return the label, the number of events left and in all; also without the file."""
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
        f"all {planned} of this kind are redeemed"
        if planned
        else "the plan has none of this kind: parameters and numbers of rows must be as planned"
    )
    left = f"{len(plan['events']) - len(used)} of {len(plan['events'])} events are left"
    return BudgetExceededError(
        f"{request.label} matches no event left in plan {plan['label']!r}: {reason}. {left}; "
        f"left() lists them.{about_relations(request, plan['adjacency'])} Nothing was charged and "
        f"no row was read. The request was for {wanted[:200]}."
    )


class BudgetAccountant(Account, ForecastingView):
    """A privacy budget (epsilon, delta) shared by many fits and stored in a ledger on disk.

    Pass it to any number of estimators as ``accountant=``, or use it for a block with
    ``with accountant:``. The guide on budgets lists the fits that a block charges. Each fit is
    charged before it reads rows. Clones, copies and pickles use the *same* ledger, also in other
    processes. A charge is on disk before the fit continues, and is never refunded, even after an
    exception or a crash.

    Parameters
    ----------
    epsilon : float
        Total epsilon, positive and at most 1e20, or the largest float for ``"basic"`` composition.
        ``inf`` counts charges without a limit.
    delta : float
        Total delta in [0, 1).
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Adjacency relation of the budget. Charges under the other one are converted where that is
        sound, and refused otherwise.
    ledger : path or str, optional
        File of the ledger. For several machines, the address of a schema on a PostgreSQL server,
        ``"postgresql://USER@HOST/DATABASE?schema=NAME"``. An existing ledger is continued if it was
        created with the same parameters. None uses a temporary file. It is removed when the last
        reference to the budget in the process that created it is gone.
    composition : {"auto", "mixed", "gdp", "zcdp", "rdp", "basic", "approx"}, default="auto"
        Composition rule, by which charges add up. All rules are filters: they are valid if later
        fits and their parameters depend on earlier results. ``"auto"`` is ``"mixed"`` if `delta` is
        positive, else ``"basic"``; an existing ledger keeps its rule.
    name : str, optional
        Name of the budget in reports.
    stated_epsilon : float, optional
        Maximum part of `epsilon` for releases that state an (epsilon, delta), such as searches and
        counts; only for ``"mixed"``. It leaves more for Gaussian fits. None sets no maximum.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    ImportError
        If the ledger is on a server and its driver is missing: ``pip install 'skdp[server]'``.
    LedgerError
        If the ledger cannot be created, read or trusted, now or at a later call.
        `LedgerMismatchError` if it was created with other parameters.

    Notes
    -----
    Entries form a chain of SHA-256 hashes that `verify` checks. The guide on budgets lists the
    limits of this check.

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
    skdp.exceptions.BudgetExceededError: too much requests (epsilon=2, delta=0), ...
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
        """Open an existing ledger with the terms it was created with.

        Parameters
        ----------
        ledger : path or str
            File or address of the ledger.
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
        """Charge a list of releases in advance, once.

        The list is fixed before its first release. Its joint cost is therefore computed with
        privacy loss distributions, which makes a plan cheaper than its parts.

        Parameters
        ----------
        events : iterable of Event or PrivacySpent
            Releases: events, or results of the estimators' `privacy_plan`.
        label : str, optional
            Purpose of the plan.
        adjacency : {"replace-one", "add-remove"}, optional
            Adjacency relation of bare events. None means the budget's.
        delta : float, optional
            Joint delta, used by ``"basic"`` and ``"approx"`` composition. None takes the sum of the
            deltas if all items are a `PrivacySpent`, a `PureDPEvent` or an `ApproxDPEvent`;
            required for other events.

        Returns
        -------
        BudgetPlan
            Accountant to pass to estimators as ``accountant=``. Each event can be redeemed once, in
            any order, from any process, also after a restart.

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
            raise ValueError("events must contain at least one event, got none.")
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
        """Return an existing plan.

        Parameters
        ----------
        index : int
            Index of the plan's entry.

        Raises
        ------
        ValueError
            If that entry is not a plan.

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
            raise ValueError(f"index must be the index of an entry, got {index!r}.")
        kind = self.desk.file.row(index)[0]["kind"]
        if kind != PLAN:
            raise ValueError(f"index={index} is an entry of kind {kind!r}, not a plan.")
        return BudgetPlan(self, index)


def _reach(address: dict[str, Any]) -> BudgetAccountant | BudgetPlan:
    """Return the budget or plan at an address; its first use checks that the file exists."""
    budget = BudgetAccountant.__new__(BudgetAccountant)
    plan = address.get("plan")
    budget.__setstate__(address)
    return budget if plan is None else BudgetPlan(budget, plan)


reach_budgets_by(_reach)
