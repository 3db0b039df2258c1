"""Entries of a ledger, and the terms in its first row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from skdp.accounting import Event
from skdp.accounting.privacy_spent import refuse_disproved
from skdp.accounting.records import UNKNOWN, who
from skdp.base.parameters import Adjacency
from skdp.budget.currencies import BudgetFilter, make_filter
from skdp.budget.ledger.chain import Row, plain_number, read_amounts
from skdp.exceptions import LedgerDamagedError, LedgerMismatchError

# Kinds of entries: a fit or another release, a list of releases committed in advance, and a
# release that such a list has paid for.
CHARGE, PLAN, PLANNED = "charge", "plan", "planned"

# Longer descriptions are cut: a ledger holds parameters, not data.
_LONGEST_TEXT = 200
_MOST_ITEMS = 20

# Parameters without influence on the result, and seeds: a seed reveals the noise.
_NEVER_RECORDED = frozenset({"accountant", "random_state", "verbose", "n_jobs", "pre_dispatch"})


@dataclass(frozen=True)
class BudgetEntry:
    """One entry of the ledger, with its event, its guarantee and its cost.

    Parameters
    ----------
    index : int
        Position in the ledger, from 1.
    time : str
        Time of the charge, ISO 8601 in UTC.
    kind : {"charge", "plan", "planned"}
        A single charge; a plan; or a release of a plan, which costs nothing more.
    label : str
        Purpose of the charge.
    estimator : str or None
        Name of the class that charged.
    parameters : dict
        Parameters of the estimator, as plain values.
    event : Event
        Event that was charged.
    epsilon, delta : float or None
        Guarantee of the event, if one was stated.
    adjacency : {"replace-one", "add-remove"}
        Adjacency relation of `event`, `epsilon` and `delta`.
    cost : dict of str to Fraction
        Exact cost in each unit of the budget's composition rule.
    seeded : bool
        Whether the noise came from a seed.
    plan : int or None
        Index of the plan of this release.
    unit : {"row", "group", "mixed"}
        Record that the guarantee protects: a row, or all rows that share an id in ``groups=``.
    skdp, code : str
        Version of the package that charged, and digest of its code; "unknown" for older entries.

    Examples
    --------
    >>> from skdp.accounting import PureDPEvent
    >>> from skdp.budget import BudgetAccountant
    >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
    >>> entry = budget.reserve(PureDPEvent(0.25), label="a noisy count")
    >>> entry.index, entry.kind, entry.label, entry.epsilon
    (1, 'charge', 'a noisy count', 0.25)
    """

    index: int
    time: str
    kind: str
    label: str
    estimator: str | None
    parameters: dict[str, Any]
    event: Event
    epsilon: float | None
    delta: float | None
    adjacency: Adjacency
    cost: dict[str, Fraction]
    seeded: bool
    plan: int | None = None
    unit: str = "row"
    skdp: str = UNKNOWN
    code: str = UNKNOWN

    @classmethod
    def from_row(cls, row: Row, units: tuple[str, ...], event: Event | None = None) -> BudgetEntry:
        """Return the entry of a ledger row; `units` are those of the composition rule."""
        cost = dict(zip(units, read_amounts(row["cost"]), strict=True))
        event = event or read_event(row["event"])
        return cls(**{**_fields(row), "event": event, "cost": cost})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain, JSON-ready values; costs as numbers, rounded up."""
        cost = {unit: write_up(amount) for unit, amount in self.cost.items()}
        return {**vars(self), "event": self.event.to_dict(), "cost": cost}


def record_of(row: Row, units: tuple[str, ...]) -> dict[str, Any]:
    """Return an entry like `BudgetEntry.to_dict`, also if its event's class is unknown."""
    cost = zip(units, read_amounts(row["cost"]), strict=True)
    fields = _fields(row)
    if None not in (fields["epsilon"], fields["delta"]):
        _refuse_disproved(fields, row["event"])
    return {
        **fields,
        "event": _map_numbers(row["event"], _unmark),
        "cost": {unit: write_up(amount) for unit, amount in cost},
    }


def _refuse_disproved(entry: dict[str, Any], written: dict[str, Any]) -> None:
    """Refuse an entry with a guarantee that its event disproves."""
    try:
        event = read_event(written)
    except (TypeError, ValueError):
        return  # of an unknown class
    try:
        refuse_disproved(event, entry["adjacency"], entry["epsilon"], entry["delta"])
    except ValueError as error:
        told = f"Entry {entry['index']} of the ledger is false: {error}"
        raise LedgerDamagedError(told) from None


def _fields(row: Row) -> dict[str, Any]:
    numbers = {name: row[name] and float(row[name]) for name in ("epsilon", "delta")}
    row = {"unit": "row", "skdp": UNKNOWN, "code": UNKNOWN, **row}  # which older ledgers lack
    return {**{field.name: row[field.name] for field in fields(BudgetEntry)}, **numbers}


def write_event(event: Event) -> dict[str, Any]:
    """Return an event in a form that JSON can store."""
    marked: dict[str, Any] = _map_numbers(event.to_dict(), _mark)
    return marked


def read_event(written: dict[str, Any]) -> Event:
    """Return the event that `write_event` wrote."""
    return Event.from_dict(_map_numbers(written, _unmark))


def write_up(amount: Fraction) -> float:
    """Return the nearest float that, as printed, is at least an amount."""
    try:
        nearest = float(amount)
    except OverflowError:
        return math.inf
    return nearest if Fraction(repr(nearest)) >= amount else math.nextafter(nearest, math.inf)


def describe_parameters(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Describe an estimator's parameters in plain values."""
    # Omitted: seeds, which would reveal the noise, and parameters without influence on the result
    # (verbosity, numbers of jobs, the accountant). Arrays are described by their shape, other
    # estimators by their class and parameters; long texts and lists are cut.
    return {
        str(name): plain(value)
        for name, value in sorted((parameters or {}).items(), key=lambda item: str(item[0]))
        if is_recorded(name)
    }


def plain(value: Any, depth: int = 3) -> Any:
    """Describe a value in JSON types."""
    if value is None or isinstance(value, bool | str):
        return _cut(value) if isinstance(value, str) else value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return plain_number(float(value))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        item = getattr(value, "item", None)
        return plain(item()) if value.shape == () and item else f"array of shape {value.shape}"
    if depth > 0 and isinstance(value, Mapping):
        items = [item for item in value.items() if is_recorded(item[0])][:_MOST_ITEMS]
        return {_cut(str(key)): plain(item, depth - 1) for key, item in items}
    if depth > 0 and isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
        cut = [f"... {len(items)} in all"] if len(items) > _MOST_ITEMS else []
        return [plain(item, depth - 1) for item in items[:_MOST_ITEMS]] + cut
    if depth > 0 and hasattr(value, "get_params") and not isinstance(value, type):
        described = describe_parameters(value.get_params(deep=False))
        return {"class": type(value).__name__, **{k: plain(v, 0) for k, v in described.items()}}
    if isinstance(value, type) or callable(value):
        return _cut(getattr(value, "__name__", type(value).__name__))
    return type(value).__name__


def is_recorded(name: object) -> bool:
    """Return whether a parameter, possibly of a nested estimator, may be in the ledger."""
    return str(name).rpartition("__")[2] not in _NEVER_RECORDED


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


def make_json_ready(value: Any) -> Any:
    """Return a record with non-finite numbers as text, which JSON cannot store."""
    return _map_numbers(value, lambda item: plain_number(item) if isinstance(item, float) else item)


_MARK = "number"


def _mark(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_MARK: repr(value)}
    return value


def _unmark(value: Any) -> Any:
    return float(value[_MARK]) if isinstance(value, dict) and value.keys() == {_MARK} else value


def _map_numbers(value: Any, change: Callable[[Any], Any]) -> Any:
    value = change(value)
    if isinstance(value, dict) and value.keys() != {_MARK}:
        return {key: _map_numbers(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_numbers(item, change) for item in value]
    return value


AUTO = "auto"


@dataclass(frozen=True)
class BudgetTerms:
    """Totals, adjacency and composition of a budget, fixed at its creation."""

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
        """Check a user's terms."""
        currency = make_filter(composition, epsilon, delta, adjacency, stated_epsilon)
        if name is not None and not isinstance(name, str):
            raise ValueError(f"name must be a str or None, got {name!r}.")
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
        """Refuse an existing ledger with other terms."""
        free = {"name": None, "composition": AUTO, "stated_epsilon": None}
        differences = [
            f"{field}={getattr(found, field)!r} and not {value!r}"
            for field, value in vars(self).items()
            if value != getattr(found, field) and not (field in free and value == free[field])
        ]
        if differences:
            raise LedgerMismatchError(
                f"The ledger {where} was created with {', '.join(differences)}. The terms of a "
                "budget cannot be changed: continue it with BudgetAccountant.open(path), or use "
                "another ledger for the new budget."
            )


def filter_of(row: Mapping[str, Any], where: object) -> BudgetFilter:
    """Return the filter named in the first row of a ledger."""
    try:
        currency = BudgetTerms.from_row(row).filter()
        alike = currency.adopt_limits(row)
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerDamagedError(
            f"The ledger {where} has unknown terms: {error}. Read it with the version that created "
            f"it, skdp {row.get('skdp')}."
        ) from error
    if not alike:
        raise LedgerMismatchError(
            f"The ledger {where} was created by skdp {row.get('skdp')}, which counts in other "
            "units or limits than this version. Continue it with that version, or start a new "
            "budget with the remaining budget that `skdp ledger show` reports."
        )
    return currency
