"""The terms of a budget: what its ledger's first row commits to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from skdp.budget.currencies import BudgetFilter, make_filter
from skdp.budget.ledger.chain import Row, plain_number
from skdp.exceptions import LedgerDamagedError, LedgerMismatchError
from skdp.identity import who
from skdp.mechanisms.contribution import Adjacency

AUTO = "auto"


@dataclass(frozen=True)
class BudgetTerms:
    """Totals, relation and currency of a budget, fixed when it is created."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    composition: str
    name: str | None
    stated_epsilon: float | None = None

    @classmethod
    def checked(
        cls,
        epsilon: Any,
        delta: Any,
        adjacency: Any,
        composition: Any,
        name: Any,
        stated_epsilon: Any,
    ) -> BudgetTerms:
        """Check what a user asks for."""
        currency = make_filter(composition, epsilon, delta, adjacency, stated_epsilon)
        if name is not None and not isinstance(name, str):
            raise ValueError(f"name must be a text or None, got {name!r}.")
        part = None if stated_epsilon is None else float(stated_epsilon)
        return cls(currency.epsilon, currency.delta, adjacency, composition, name, part)

    def filter(self) -> BudgetFilter:
        """Return the filter that adds charges up."""
        return make_filter(**{k: v for k, v in vars(self).items() if k != "name"})

    def to_row(self) -> Row:
        """Return the ledger's first row."""
        currency = self.filter()
        return {
            "format": "skdp ledger",
            "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **who(),
            "name": self.name,
            "epsilon": plain_number(self.epsilon),
            "delta": plain_number(self.delta),
            "adjacency": self.adjacency,
            "composition": currency.name,
            "stated_epsilon": self.stated_epsilon,
            **currency.write_limits(),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> BudgetTerms:
        """Read the terms of a ledger."""
        stated = row.get("stated_epsilon")  # which older ledgers have not
        epsilon, delta = float(row["epsilon"]), float(row["delta"])
        return cls(epsilon, delta, row["adjacency"], row["composition"], row["name"], stated)

    def agree_with(self, found: BudgetTerms, where: object) -> None:
        """See that a ledger that was there already is of these terms."""
        free = {"name": None, "composition": AUTO, "stated_epsilon": None}
        differences = [
            f"{field}={getattr(found, field)!r} and not {value!r}"
            for field, value in vars(self).items()
            if value != getattr(found, field) and not (field in free and value == free[field])
        ]
        if differences:
            raise LedgerMismatchError(
                f"The ledger {where} was created with {', '.join(differences)}. The terms of a "
                "budget never change: continue with them by BudgetAccountant.open(path), or give "
                "the new budget a ledger of its own."
            )


def filter_of(row: Mapping[str, Any], where: object) -> BudgetFilter:
    """Return the filter of a ledger, the very one that its first row commits to."""
    try:
        currency = BudgetTerms.from_row(row).filter()
        alike = currency.adopt_limits(row)
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerDamagedError(
            f"The ledger {where} has terms that skdp does not know: {error}. Read it with the "
            f"version that made it, skdp {row.get('skdp')}."
        ) from error
    if not alike:
        raise LedgerMismatchError(
            f"The ledger {where} was made by skdp {row.get('skdp')}, which counts in other units "
            "or limits than this version. Continue it with that version, or start a new budget of "
            "what `skdp ledger show` says is left."
        )
    return currency
