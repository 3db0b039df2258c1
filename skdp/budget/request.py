"""Requests to a budget, its totals and its displays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    OneOfEvent,
    PLDAccountant,
)
from skdp.accounting.analysis import analysis_of, of_two
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import decimal_up
from skdp.accounting.privacy_spent import UNITS, PrivacySpent, refuse_disproved
from skdp.accounting.records import html_table
from skdp.accounting.value import check_guarantee
from skdp.base.parameters import Adjacency, check_choice
from skdp.budget.currencies import BudgetFilter
from skdp.budget.currencies.base import Charge, pair_of
from skdp.budget.entries import CHARGE, BudgetTerms, describe_parameters, write_event, write_up
from skdp.budget.ledger.chain import Row
from skdp.exceptions import BudgetExceededError, UnsupportedEventError
from skdp.mechanisms.contribution import ADJACENCIES


def convert_adjacency(
    event: Event,
    given: str,
    wanted: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Event:
    """Return an event that, under one adjacency, bounds an event under the other."""
    # Replacing a record is removing one and adding another, so a bound on one step bounds two:
    # noise counts half, and a guarantee is that of a group of two. Sampled releases are unchanged:
    # their noise refers to single records, and accountants support both adjacency relations.
    for name, adjacency in (("given", given), ("wanted", wanted)):
        if adjacency not in ADJACENCIES:
            raise ValueError(f"{name} must be one of {ADJACENCIES}, got {adjacency!r}.")
    if given == wanted:
        return event
    if given == "replace-one":
        raise ValueError(
            "A guarantee under 'replace-one' does not cover adding or removing a record, since the "
            "number of records may be public. Fit with adjacency='add-remove', or create the "
            "budget with adjacency='replace-one'."
        )
    converted = of_two(event)
    return converted if converted is not None else _by_groups(event, epsilon, delta)


def _by_groups(event: Event, epsilon: float | None, delta: float | None) -> Event:
    """Convert a guarantee of the entire event."""
    try:
        pair = pair_of(Charge(event, epsilon, delta), "add-remove")
    except UnsupportedEventError as error:
        raise ValueError(
            f"{event!r} cannot be converted from 'add-remove' to 'replace-one', since it has no "
            "proved guarantee under 'add-remove'. Fit with adjacency='replace-one'."
        ) from error
    group = of_two(ApproxDPEvent(decimal_up(pair[0]), decimal_up(pair[1])))
    assert group is not None
    return group


@dataclass(frozen=True)
class Request:
    """A charge: the filter's view of it, and its row in the ledger."""

    event: Event
    charge: Charge
    row: Row

    @property
    def label(self) -> str:
        """Purpose of the charge."""
        return str(self.row["label"])


def prepare(
    event: Event | PrivacySpent,
    ledger_adjacency: Adjacency,
    needs_numbers: bool,
    *,
    label: str | None = None,
    adjacency: Adjacency | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    estimator: Any = None,
    parameters: Mapping[str, Any] | None = None,
    seeded: bool = False,
    unit: str = "row",
) -> Request:
    """Check a caller's description of a release, and convert it to the ledger's adjacency."""
    if isinstance(event, PrivacySpent):
        adjacency, seeded, unit = event.adjacency, event.seeded, event.unit
        epsilon, delta, event = event.epsilon, event.delta, event.event
        by_hand = False
    else:  # the pair of a fit is that of its plan
        by_hand = estimator is None
    if not isinstance(event, Event):
        raise TypeError(f"event must be an Event or a PrivacySpent, got {event!r}.")
    adjacency = ledger_adjacency if adjacency is None else adjacency
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {ADJACENCIES}, got {adjacency!r}.")
    check_choice("unit", unit, UNITS)
    guarantee = _guarantee(event, epsilon, delta, adjacency, needs_numbers)
    if by_hand and epsilon is not None and guarantee is not None and not needs_numbers:
        # This composition rule does not count the pair, but the ledger and statements repeat it.
        pair_of(Charge(event, *guarantee), adjacency)
    if guarantee is not None:
        refuse_disproved(event, adjacency, *guarantee)
    named = estimator is None or isinstance(estimator, str)
    name = estimator if named else type(estimator).__name__
    if parameters is None and hasattr(estimator, "get_params"):
        parameters = estimator.get_params(deep=False)
    own = guarantee or (None, None)
    row = {
        "kind": CHARGE,
        "label": str(label or name or type(event).__name__),
        "estimator": name,
        "parameters": describe_parameters(parameters),
        "event": write_event(event),
        "epsilon": own[0],
        "delta": own[1],
        "adjacency": adjacency,
        "seeded": bool(seeded),
        "unit": unit,
        "plan": None,
        "place": None,
    }
    return Request(event, restate(event, guarantee, adjacency, ledger_adjacency), row)


def _check_numbers(epsilon: float, delta: float) -> None:
    """Refuse an epsilon or delta that no release can have."""
    if not (0.0 <= epsilon < math.inf and 0.0 <= delta < 1.0):
        raise ValueError(
            f"A charge needs a finite epsilon >= 0 and a delta in [0, 1), got epsilon={epsilon!r} "
            f"and delta={delta!r}."
        )
    check_guarantee("epsilon", epsilon)
    check_guarantee("delta", delta)


def _guarantee(
    event: Event, epsilon: float | None, delta: float | None, adjacency: Adjacency, needed: bool
) -> tuple[float, float] | None:
    """Return the (epsilon, delta) that the caller or the event states, if any."""
    if delta is None:
        if epsilon is not None:
            raise ValueError(f"epsilon={epsilon!r} was given without delta: set both.")
        stated = _stated(event, adjacency)
        if stated is not None:
            epsilon, delta = stated
        elif needed:
            raise ValueError(
                f"This budget adds up epsilon and delta, and {type(event).__name__} states neither:"
                " set delta= to have epsilon computed from the event, or set both."
            )
        else:
            return None
    elif epsilon is None:
        _check_numbers(0.0, delta)
        epsilon = PLDAccountant(adjacency=adjacency).compose(event).epsilon(float(delta))
    _check_numbers(epsilon, delta)
    return float(epsilon), float(delta)


def _stated(event: Event, adjacency: Adjacency) -> tuple[float, float] | None:
    """Return the pair of an event that consists of one pair only."""
    card = analysis_of(event, adjacency)
    pair = card.stated() if card.only_stated else None
    return None if pair is None else (float(pair.epsilon), float(pair.delta))


def restate(
    event: Event, guarantee: tuple[float, float] | None, given: str, wanted: Adjacency
) -> Charge:
    """Convert a release to the ledger's adjacency."""
    if guarantee is None:
        return Charge(convert_adjacency(event, given, wanted))
    epsilon, delta = guarantee
    event = convert_adjacency(event, given, wanted, epsilon=epsilon, delta=delta)
    numbers = _stated(convert_adjacency(ApproxDPEvent(epsilon, delta), given, wanted), wanted)
    return Charge(event, *(numbers or guarantee))


def about_relations(request: Request, adjacency: Adjacency) -> str:
    """Return a sentence on the conversion of a charge to the budget's adjacency, if any."""
    given, row, charge = request.row["adjacency"], request.row, request.charge
    if given == adjacency:
        return ""
    who, becomes = row["estimator"] or request.label, ""
    if charge.epsilon is not None and charge.delta is not None:
        own = pair_text(row["epsilon"], row["delta"])
        becomes = f": {own} becomes {pair_text(charge.epsilon, charge.delta)}"
    return (
        f" {who} counts under {given}, this budget under {adjacency}{becomes}. Omit adjacency= to "
        "use that of the budget."
    )


def total_spent(
    terms: BudgetTerms,
    currency: BudgetFilter,
    spent: tuple[Fraction, ...],
    entries: list[dict[str, Any]],
) -> PrivacySpent:
    """Return one record of all charges."""
    # Its event is the filter's guarantee, not the list of releases: these may have been chosen by
    # the results of earlier ones, and numerical composition of such a list gives no bound.
    epsilon, delta = currency.guarantee(spent)
    labels = dict.fromkeys(entry["label"] for entry in entries if entry["kind"] != "plan")
    units = {entry.get("unit", "row") for entry in entries if entry["kind"] != "plan"}
    names = list(labels)[:20] + ([f"and {len(labels) - 20} more"] if len(labels) > 20 else [])
    return PrivacySpent(
        epsilon=epsilon,
        delta=delta,
        adjacency=terms.adjacency,
        event=_total_event(currency, spent, epsilon, delta),
        accountant="pld",
        mechanism=(
            f"{len(entries)} entries of a budget of {pair_text(terms.epsilon, terms.delta)}"
            f"{no_limit(terms, '; its ')}, added up "
            f"by the {currency.name!r} filter, which holds when later releases are chosen after "
            "looking at earlier results"
        ),
        assumptions=(
            "every release about these records charged this budget",
            "assumptions of each entry hold",
        ),
        released=tuple(names),
        seeded=any(entry["seeded"] for entry in entries),
        unit=units.pop() if len(units) == 1 else "mixed" if units else "row",
    )


def _total_event(
    currency: BudgetFilter, spent: tuple[Fraction, ...], epsilon: float, delta: float
) -> Event:
    if not any(spent):
        return ComposedEvent(())
    # A first release that took the entire budget has its pair and may lie above the curve.
    known = None if currency.is_spent(spent) else currency.curve(spent)
    if known is not None and (curve := _curve_event(*known)) is not None:
        return curve
    # Without a finite epsilon there is no guarantee at any delta below one.
    return ApproxDPEvent(epsilon, delta) if math.isfinite(epsilon) else ApproxDPEvent(0.0, 1.0)


def _curve_event(square: Fraction, epsilon: Fraction, failure: Fraction) -> Event | None:
    """Return a mu-GDP and an (epsilon, failure)-DP release as one event, if floats allow it."""
    # The event's failures are increased so that, without stated epsilons,
    # ``failure + delta_G(epsilon; mu)`` is below its curve everywhere, for entries of any form.
    if square == 0:
        return None
    mu = write_up(square) ** 0.5 * (1.0 + 1e-12)
    if not (math.isfinite(mu) and 1.0 / mu > 0.0 and math.isfinite(1.0 / mu)):
        return None
    gaussian = GaussianEvent((1.0 / mu) * (1.0 - 1e-12))
    if epsilon == failure == 0:
        return gaussian
    kept = 1.0 - gaussian_profile.delta(mu, 0.0)
    if kept <= 0.0:  # in floats
        return None
    pair = write_up(epsilon), write_up(failure) / kept * (1.0 + 1e-9)
    known = math.isfinite(pair[0]) and pair[1] < 1.0
    # A choice of one: an upper bound that claims no lower bound.
    curve = ComposedEvent((gaussian, ApproxDPEvent(*pair)))
    return OneOfEvent((curve,)) if known else None


def coordinates(
    currency: BudgetFilter, spent: tuple[Fraction, ...]
) -> dict[str, tuple[float, float]]:
    """Return, for each unit, the spent amount and the largest amount it may reach."""
    most = currency.reachable(spent)
    return {
        unit: (write_up(used), math.inf if limit is None else write_up(limit))
        for unit, used, limit in zip(currency.units, spent, most, strict=True)
    }


class Remaining(tuple[float, float]):
    """An (epsilon, delta) with a ``repr`` that explains why it is not total minus spent."""

    why: str = ""

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self))}){self.why}"


def remaining(terms: BudgetTerms, currency: BudgetFilter, spent: tuple[Fraction, ...]) -> Remaining:
    """Return the largest single release that still fits."""
    left = Remaining(currency.remaining(spent))
    used = zip((terms.epsilon, terms.delta), currency.guarantee(spent), left, strict=True)
    if not all(math.isclose(total, now + rest, rel_tol=1e-9) for total, now, rest in used):
        left.why = (
            f": the largest single release that fits. In {currency.name!r} composition, epsilons "
            "of single releases do not add up to the total"
        )
    return left


def still_fits(
    currency: BudgetFilter, spent: tuple[Fraction, ...]
) -> dict[str, tuple[float, float]]:
    """Return the largest release that fits, and the largest for which only the pair is known."""
    largest = currency.remaining(spent)
    if math.isinf(currency.epsilon):
        return {"largest release that fits": largest}
    try:
        any_kind = currency.allocate(spent, 1, "any")
    except BudgetExceededError:
        any_kind = 0.0, 0.0
    more = {} if any_kind == largest else {"largest of any kind": any_kind}
    return {"largest release that fits": largest, **more}


@dataclass(frozen=True)
class Shown:
    """Numbers that a budget displays."""

    spent: tuple[float, float]
    fits: dict[str, tuple[float, float]]
    sums: dict[str, tuple[float, float]]
    entries: int


def short_text(terms: BudgetTerms, shown: Shown | str) -> str:
    """Return the ``repr`` of a budget; `shown` is an error's name if the ledger is unreadable."""
    name = "" if terms.name is None else f", name={terms.name!r}"
    used = shown
    if isinstance(shown, Shown):
        spent, left = pair_text(*shown.spent)[1:-1], pair_text(*next(iter(shown.fits.values())))
        fits = "" if math.isinf(terms.epsilon) else f"; {left[1:-1]} still fits"
        used = f"spent {spent}{fits}; {shown.entries} charges"
    return (
        f"BudgetAccountant(epsilon={terms.epsilon:g}, delta={terms.delta:g}, "
        f"adjacency={terms.adjacency!r}, composition={terms.composition!r}{name}; "
        f"{used}{no_limit(terms, '; ')})"
    )


def html_text(terms: BudgetTerms, shown: Shown | str, where: object) -> str:
    """Return the budget as a table for notebooks."""
    told: list[tuple[str, str]] = []
    sums: list[tuple[str, str]] = []
    if isinstance(shown, Shown):
        pairs = {"spent": shown.spent, **shown.fits}
        told = [(name, pair_text(*pair)) for name, pair in pairs.items()]
        sums = [(f"sum of {unit}", f"{now:.6g}") for unit, (now, _) in shown.sums.items()]
    rows = [
        ("name", terms.name or "none"),
        ("total", pair_text(terms.epsilon, terms.delta) + no_limit(terms, ": ")),
        *(told or [("spent", str(shown))]),
        ("entries", str(shown.entries if isinstance(shown, Shown) else 0)),
        ("adjacency", terms.adjacency),
        ("composition", terms.composition),
        ("ledger", str(where)),
        *sums,
    ]
    return html_table("Privacy budget", rows)


def no_limit(terms: BudgetTerms, before: str = "") -> str:
    """Return a remark for budgets without a limit."""
    return (
        f"{before}epsilon has no limit: charges are counted, but nothing is guaranteed"
        * math.isinf(terms.epsilon)
    )


def pair_text(epsilon: float, delta: float) -> str:
    """Return a pair as text."""
    return f"(epsilon={epsilon:.6g}, delta={delta:.3g})"
