"""How a ledger is read without taking its word for anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from skdp.budget.ledger.chain import NO_ROW_BEFORE, Row, RunningSum, read_amounts, read_link
from skdp.budget.ledger.places import Place
from skdp.budget.ledger.receipt import LedgerReceipt
from skdp.budget.ledger.tables import Connection
from skdp.exceptions import LedgerDamagedError, LedgerMismatchError
from skdp.once import cached_property

_OTHER_FORMS = (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError)


@dataclass(frozen=True)
class LedgerState(LedgerReceipt):
    """Where the chain ends."""

    spent: tuple[Fraction, ...]


class ChainReader:
    """The chain of a ledger, inside one transaction."""

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._place = place
        fault = place.fault(connection)
        if fault is not None:
            raise self.damaged(fault)
        content, self.identity = self._one("SELECT content, hash FROM genesis") or (None, "")
        with self._damage_if_unreadable(0):
            self.genesis, fault = read_link(
                content, hash_=self.identity, index=0, previous=NO_ROW_BEFORE
            )
            self._nothing = (Fraction(0),) * len(self.genesis.get("limits", ()))
        if fault is not None:
            raise self.damaged(f"has other terms than it was made with: its first row {fault}")
        if self.genesis.get("format") != place.kind:
            raise LedgerMismatchError(
                f"The ledger {place.where} was not made there: its first row says "
                f"{self.genesis.get('format')!r}, and not {place.kind!r}. A ledger that is moved "
                "between files and servers would be two budgets."
            )

    @cached_property
    def state(self) -> LedgerState:
        """Where the chain ends, after checking that it does end there."""
        last = self._one("SELECT id, content, hash FROM entries ORDER BY id DESC LIMIT 1")
        index, content, hash_ = last or (0, None, self.identity)
        if self._one("SELECT entries, hash FROM head") != (index, hash_):
            raise self.damaged("does not end where it says: entries were dropped or inserted")
        if last is None:
            return LedgerState(0, self.identity, self._nothing)
        row = self._checked(content, hash_, index)
        with self._damage_if_unreadable(index):
            return LedgerState(index, hash_, read_amounts(row["spent"]))

    def expect(self, identity: str, seen: LedgerState) -> None:
        """Refuse the ledger of another budget, or one that does not hold what it held before."""
        if identity != self.identity:
            raise LedgerMismatchError(
                f"What is at {self._place.where} was replaced by the ledger of another budget. "
                "Every charge is refused; bring the right one back, or start with a budget of its "
                "own."
            )
        self.check(seen)

    def check(self, known: LedgerReceipt) -> None:
        """See that the chain still holds what it held before."""
        if self.state.entries < known.entries:
            raise self.damaged(
                f"has fewer than the {known.entries} entries that it had before: an older copy "
                "was put in its place, or entries were dropped"
            )
        if not self.holds(known):
            raise self.damaged(f"was rewritten: entry {known.entries} is another one than before")

    def holds(self, known: LedgerReceipt) -> bool:
        """Tell whether an entry is there."""
        if known.entries == self.state.entries:
            return known.head == self.state.head
        found = self._one("SELECT hash FROM entries WHERE id = :id", id=known.entries)
        head: str = found[0] if found else self.identity if known.entries == 0 else ""
        return head == known.head

    def rows(self) -> Iterator[Row]:
        """Read all entries, checking each."""
        previous = self.identity
        sums = [RunningSum() for _ in self._nothing]
        query = "SELECT id, content, hash, plan, place FROM entries ORDER BY id"
        for index, found in enumerate(self._connection.execute(query), start=1):
            stored, content, hash_, plan, place = found
            try:
                row, fault = read_link(content, hash_=hash_, index=index, previous=previous)
                if fault is not None:
                    raise self.damaged(f"is not what was recorded: entry {index} {fault}")
                parts = zip(sums, row["cost"], row["spent"], strict=True)
                # All units move, also after one that does not add up.
                adds_up = all([sum_.moves_to(spent, by=cost) for sum_, cost, spent in parts])
                if not adds_up or (plan, place) != (row["plan"], row["place"]):
                    raise self.damaged(f"contradicts itself: entry {stored} does not add up")
            except _OTHER_FORMS as error:
                raise self._unreadable(stored) from error
            previous = row["hash"] = hash_
            yield row

    def row(self, index: int) -> Row:
        """Read one entry."""
        found = self._one("SELECT content, hash FROM entries WHERE id = :id", id=index)
        content, hash_ = found or (None, "")
        return self._checked(content, hash_, index)

    def places(self, plan: int) -> set[int]:
        """Return which events of a plan were redeemed."""
        query = "SELECT place FROM entries WHERE plan = :plan"
        return {place for (place,) in self._connection.execute(query, {"plan": plan})}

    def broken(self) -> str | None:
        """Return what the database finds wrong with its pages, if anything."""
        return self._place.broken(self._connection)

    def damaged(self, what: str) -> LedgerDamagedError:
        """Return the error that says so."""
        return LedgerDamagedError(
            f"The ledger {self._place.where} {what}. Every charge is refused: restore the newest "
            "copy that verifies, and add what was spent since. `skdp ledger export --unverified` "
            "saves what can still be read."
        )

    def _checked(self, content: object, hash_: str, index: int) -> Row:
        with self._damage_if_unreadable(index):
            row, fault = read_link(content, hash_=hash_, index=index)
        if fault is not None:
            raise self.damaged(f"is not what was recorded: entry {index} {fault}")
        return row

    def _one(self, query: str, **values: int) -> tuple[Any, ...] | None:
        found = self._connection.execute(query, values).fetchone()
        return None if found is None else tuple(found)

    @contextlib.contextmanager
    def _damage_if_unreadable(self, index: int) -> Iterator[None]:
        try:
            yield
        except _OTHER_FORMS as error:
            raise self._unreadable(index) from error

    def _unreadable(self, index: int) -> LedgerDamagedError:
        return self.damaged(f"cannot be read: entry {index} has another form")
