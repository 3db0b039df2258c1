"""The desk of a budget: charges are priced, decided and recorded, stored ones priced again."""

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


# By how much a price may differ in its last digits, between machines.
_ROUNDING = 1 - Fraction(1, 10**6)
# A process that had not seen the last charges may have priced by what was spent before them.
_STATES = 100


def price_again(desk: Desk, rows: Iterable[Row]) -> list[int]:
    """Refuse entries that cost less than their events; return those that nobody can price."""
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
                # Whatever was spent before, a price is one that its event is proved to keep to.
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


# What the price of an entry follows from.
_PRICED = ("kind", "event", "events", "pairs", "epsilon", "delta", "adjacency")


def _covers(cost: Amounts, price: Amounts) -> bool:
    return all(c >= p * _ROUNDING for c, p in zip(cost, price, strict=True))


def _is_paid(
    desk: Desk, charge: Charge, cost: Amounts, states: Iterable[Amounts], prices: list[Amounts]
) -> bool:
    """Tell whether a cost covers a price of a charge; prices that were worked out are kept."""
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
    """Return what may have been spent when an entry was priced, the likeliest first."""
    return dict.fromkeys([*spent[: -_STATES - 1 : -1], spent[0]])


def _charge_of(desk: Desk, row: Row) -> Charge:
    """Return the charge of an entry as it was asked for."""
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
    """Tell whether a release is one that its plan has paid for."""
    if plan is None or not 0 <= row["place"] < len(plan["events"]):
        return False
    event = _charge_of(desk, row).event
    return written_today(plan["events"][row["place"]]) == canonical(write_event(event))


def not_priced(entries: list[int]) -> str:
    """Say which entries nobody could price again."""
    some = ", ".join(map(str, entries[:10])) + ", ..." * (len(entries) > 10)
    return (
        f"{len(entries)} entries could not be priced again ({some}): they are of a newer version, "
        "or plans of one that did not write down the pairs of their parts."
    )


def _too_cheap(desk: Desk, row: Row) -> LedgerDamagedError:
    by = f"skdp {row['skdp']} ({row['code']})" if "skdp" in row else "an earlier skdp"
    return LedgerDamagedError(
        f"The ledger {desk.file.where} holds an entry that cost less than this version charges for "
        f"its event: entry {row['index']}, charged by {by}. Either it was rewritten, or the "
        "version that charged it had a fault: the changelog names these, under Privacy. Charges "
        "go on; what is spent is more than the ledger says."
    )


def joint_of(
    charges: Sequence[Charge], desk: Desk, delta: float | None
) -> tuple[ComposedEvent, tuple[float, float] | None]:
    """Return an event that stands for all charges, and its pair if the budget counts pairs."""
    if not desk.currency.needs_pairs:
        return ComposedEvent(tuple(charge.event for charge in charges)), None
    adjacency = desk.terms.adjacency
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


def written_today(event: Row) -> str:
    """Return a written event as its class writes it now: it may have a parameter more."""
    try:
        event = write_event(read_event(event))
    except (TypeError, ValueError):
        pass  # of a class that this version does not know
    return canonical(event)
