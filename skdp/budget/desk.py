"""The desk of a budget: it prices, decides and records charges, and checks stored ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from skdp.accounting import ApproxDPEvent, ComposedEvent, Event, PLDAccountant
from skdp.accounting.numerics.arithmetic import decimal_up
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import cached_property
from skdp.budget.currencies import BudgetFilter, Charge
from skdp.budget.currencies.base import Amounts, pair_of
from skdp.budget.currencies.profiles import is_certified
from skdp.budget.entries import PLAN, PLANNED, BudgetTerms, filter_of, read_event, write_event
from skdp.budget.ledger.chain import Row, canonical, read_amounts
from skdp.budget.ledger.home import at_home, name_home
from skdp.budget.ledger.store import Ledger, known_place
from skdp.budget.refusals import refusal
from skdp.budget.request import Request, prepare, restate
from skdp.exceptions import LedgerDamagedError, UnsupportedEventError


class Desk:
    """The ledger, terms and composition rule shared by a budget and its plans."""

    def __init__(self, file: Ledger, home: str | None = None) -> None:
        self.file = file
        self.home = home
        self.terms = BudgetTerms.from_row(file.genesis)

    @cached_property
    def currency(self) -> BudgetFilter:
        """The filter named in the ledger's first row."""
        return filter_of(self.file.genesis, self.file.where)

    def prepare(
        self, event: Event | PrivacySpent, *, needs_numbers: bool = True, **details: Any
    ) -> Request:
        """Check a description of a release, and convert it to the budget's adjacency."""
        needed = self.currency.needs_pairs and needs_numbers
        return prepare(event, self.terms.adjacency, needed, **details)

    @at_home
    def admit(self, request: Request, *, keep: bool = True) -> Any:
        """Decide and record in one transaction, with a price computed before."""
        seen = self.file.seen.spent
        while True:
            cost = self.currency.price(request.charge, seen)
            if min(cost) < 0:
                raise ValueError(f"{request.label} has a negative cost, {cost}.")
            with self.file.opened(writing=True, keep=keep) as end:
                if self.currency.fits(end.state.spent, cost):
                    return end.append(request.row, cost)
                # A price may depend on the spent budget: try again if others charged meanwhile.
                final, seen = end.state.spent == seen, end.state.spent
            if final:
                raise refusal(request, cost, seen, self.currency)

    def address(self) -> dict[str, Any]:
        """Return the address at which other processes find the budget."""
        return {
            "path": str(self.file.where),
            "identity": self.file.identity,
            "genesis": self.file.genesis,
        }

    def state(self) -> dict[str, Any]:
        """Return the address of the ledger, also for other machines."""
        # A server is reached from everywhere.
        home = name_home(self.home) if isinstance(self.file.where, Path) else None
        return {**self.address(), "path": self.file.where, "home": home}

    @classmethod
    def at(cls, state: Mapping[str, Any]) -> Desk:
        """Return the desk of a known ledger."""
        place = known_place(state["path"])
        file = Ledger.reach(place, state["identity"], state["genesis"])
        return cls(file, state.get("home"))

    def __reduce__(self) -> tuple[Any, ...]:
        return Desk.at, (self.state(),)


# Prices may differ in their last digits between machines.
_ROUNDING = 1 - Fraction(1, 10**6)
# A process may have computed a price before it saw the last charges.
_STATES = 100


def price_again(desk: Desk, rows: Iterable[Row]) -> list[int]:
    """Refuse entries that cost less than their events; return those that cannot be priced."""
    spent: list[Amounts] = [desk.currency.nothing]
    plans: dict[int, Row] = {}
    unknown: list[int] = []
    known: dict[str, list[Amounts]] = {}
    for row in rows:
        index, cost = row["index"], read_amounts(row["cost"])
        try:
            if row["kind"] == PLANNED:
                paid = _is_of_plan(desk, row, plans.get(row["plan"]))
            else:
                # A price is valid for its event, whatever was spent before.
                kind = canonical({name: row.get(name) for name in _PRICED})
                prices = known.setdefault(kind, [])
                paid = any(_covers(cost, price) for price in prices)
                charges = () if paid else (_charge_of(desk, row),)
                paid = paid or any(_is_paid(desk, c, cost, _states(spent), prices) for c in charges)
        except (ValueError, TypeError, KeyError):  # an event of a newer version, or an old plan
            unknown.append(index)
            paid = True
        if not paid:
            raise _too_cheap(desk, row)
        if row["kind"] == PLAN:
            plans[index] = row
        spent.append(read_amounts(row["spent"]))
    return unknown


# Fields that determine the price of an entry.
_PRICED = ("kind", "event", "events", "pairs", "epsilon", "delta", "adjacency")


def _covers(cost: Amounts, price: Amounts) -> bool:
    return all(c >= p * _ROUNDING for c, p in zip(cost, price, strict=True))


def _is_paid(
    desk: Desk, charge: Charge, cost: Amounts, states: Iterable[Amounts], prices: list[Amounts]
) -> bool:
    """Return whether a cost covers a price of a charge; append computed prices to `prices`."""
    for state in states:
        try:
            prices.append(desk.currency.price(charge, state))
        except UnsupportedEventError:
            raise
        except ValueError:  # the pair that it states is not one that its event has
            return False
        if _covers(cost, prices[-1]):
            return True
    return False


def _states(spent: list[Amounts]) -> Iterable[Amounts]:
    """Return the possible spent budgets when an entry was priced, the likeliest first."""
    return dict.fromkeys([*spent[: -_STATES - 1 : -1], spent[0]])


def _charge_of(desk: Desk, row: Row) -> Charge:
    """Return the charge that an entry was requested with."""
    adjacency = desk.terms.adjacency
    if row["kind"] == PLAN:
        pairs: list[Any] = row["pairs"]
        events = map(read_event, row["events"])
        parts = [Charge(event, *pair) for event, pair in zip(events, pairs, strict=True)]
        joint, own = joint_of(parts, desk, row["delta"])
        return replace(Charge(joint, *(own or ())), parts=tuple(parts))
    own = None if row["epsilon"] is None else (row["epsilon"], row["delta"])
    return restate(read_event(row["event"]), own, row["adjacency"], adjacency)


def _is_of_plan(desk: Desk, row: Row, plan: Row | None) -> bool:
    """Return whether a release is an event of its plan."""
    if plan is None or not 0 <= row["place"] < len(plan["events"]):
        return False
    event = _charge_of(desk, row).event
    return written_today(plan["events"][row["place"]]) == canonical(write_event(event))


def not_priced(entries: list[int]) -> str:
    """Return the warning about entries that could not be priced again."""
    some = ", ".join(map(str, entries[:10])) + ", ..." * (len(entries) > 10)
    return (
        f"The cost of {len(entries)} entries could not be recomputed ({some}): they were made by a "
        "newer version, or are plans of a version that did not record the pairs of their parts."
    )


def _too_cheap(desk: Desk, row: Row) -> LedgerDamagedError:
    by = f"skdp {row['skdp']} ({row['code']})" if "skdp" in row else "an earlier skdp"
    return LedgerDamagedError(
        f"The ledger {desk.file.where} contains an entry that cost less than this version charges "
        f"for its event: entry {row['index']}, charged by {by}. It was rewritten, or that version "
        "had a fault; the changelog lists such faults under Privacy. Charges are still possible, "
        "but more is spent than the ledger reports."
    )


def joint_of(
    charges: Sequence[Charge], desk: Desk, delta: float | None
) -> tuple[ComposedEvent, tuple[float, float] | None]:
    """Return a joint event of all charges, and its pair if the budget adds up pairs."""
    if not desk.currency.needs_pairs:
        return ComposedEvent(tuple(charge.event for charge in charges)), None
    adjacency = desk.terms.adjacency
    pairs = [None if charge.epsilon is None else pair_of(charge, adjacency) for charge in charges]
    known = [pair for pair in pairs if pair is not None]
    if delta is None and len(known) < len(pairs):
        raise ValueError(
            "delta is required: this budget adds up epsilon and delta, and not all events of the "
            "plan state them."
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


def written_today(event: Row) -> str:
    """Return a written event in the current form of its class, which may have more parameters."""
    try:
        event = write_event(read_event(event))
    except (TypeError, ValueError):
        pass  # of a class that this version does not know
    return canonical(event)
