"""Requests to a budget: the filter's question, totals and how they are shown."""

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
    """Return an event that says under one adjacency what another says under the other."""
    # Replacing a record is removing one and adding another, so that what is known of single steps
    # bounds two of them: noise counts half, and a guarantee is doubled as for groups of two.
    # Sampled releases stay as they are: their noise refers to single records, and accountants know
    # their pairs under both relations.
    for name, adjacency in (("given", given), ("wanted", wanted)):
        if adjacency not in ADJACENCIES:
            raise ValueError(f"{name} must be one of {ADJACENCIES}, got {adjacency!r}.")
    if given == wanted:
        return event
    if given == "replace-one":
        raise ValueError(
            "A guarantee under 'replace-one' says nothing about adding or removing a record, since "
            "the number of records may be public. Fit with adjacency='add-remove', or give the "
            "budget adjacency='replace-one'."
        )
    converted = of_two(event)
    return converted if converted is not None else _by_groups(event, epsilon, delta)


def _by_groups(event: Event, epsilon: float | None, delta: float | None) -> Event:
    """Convert a guarantee of the whole event."""
    try:
        pair = pair_of(Charge(event, epsilon, delta), "add-remove")
    except UnsupportedEventError as error:
        raise ValueError(
            f"{event!r} cannot be converted from 'add-remove' to 'replace-one': no guarantee of it "
            "is known under the former. Fit with adjacency='replace-one'."
        ) from error
    group = of_two(ApproxDPEvent(decimal_up(pair[0]), decimal_up(pair[1])))
    assert group is not None
    return group


@dataclass(frozen=True)
class Request:
    """A charge as the filter prices it and as the ledger records it."""

    event: Event
    charge: Charge
    row: Row

    @property
    def label(self) -> str:
        """What the charge is for."""
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
    """Check and convert what a caller says about a release."""
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
        # Such a currency does not count the pair, but the ledger and its statement repeat it.
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
    """Refuse numbers that no release costs."""
    if not (0.0 <= epsilon < math.inf and 0.0 <= delta < 1.0):
        raise ValueError(
            f"A charge needs a finite epsilon >= 0 and a delta in [0, 1), got epsilon={epsilon!r} "
            f"and delta={delta!r}: charges are never refunded."
        )
    check_guarantee("epsilon", epsilon)
    check_guarantee("delta", delta)


def _guarantee(
    event: Event, epsilon: float | None, delta: float | None, adjacency: Adjacency, needed: bool
) -> tuple[float, float] | None:
    """Return the event's own (epsilon, delta), if the caller or the event says it."""
    if delta is None:
        if epsilon is not None:
            raise ValueError(f"epsilon={epsilon!r} was given without its delta: give both.")
        stated = _stated(event, adjacency)
        if stated is not None:
            epsilon, delta = stated
        elif needed:
            raise ValueError(
                f"This budget counts epsilon and delta, and {type(event).__name__} names neither: "
                "give delta=, and epsilon is computed from the event, or give both."
            )
        else:
            return None
    elif epsilon is None:
        _check_numbers(0.0, delta)
        epsilon = PLDAccountant(adjacency=adjacency).compose(event).epsilon(float(delta))
    _check_numbers(epsilon, delta)
    return float(epsilon), float(delta)


def _stated(event: Event, adjacency: Adjacency) -> tuple[float, float] | None:
    """Return the pair of an event that is nothing but one."""
    card = analysis_of(event, adjacency)
    pair = card.stated() if card.only_stated else None
    return None if pair is None else (float(pair.epsilon), float(pair.delta))


def restate(
    event: Event, guarantee: tuple[float, float] | None, given: str, wanted: Adjacency
) -> Charge:
    """Restate a release under the ledger's adjacency."""
    if guarantee is None:
        return Charge(convert_adjacency(event, given, wanted))
    epsilon, delta = guarantee
    event = convert_adjacency(event, given, wanted, epsilon=epsilon, delta=delta)
    numbers = _stated(convert_adjacency(ApproxDPEvent(epsilon, delta), given, wanted), wanted)
    return Charge(event, *(numbers or guarantee))


def about_relations(request: Request, adjacency: Adjacency) -> str:
    """Say what a charge becomes in the relation of a budget; nothing if it counts in that."""
    given, row, charge = request.row["adjacency"], request.row, request.charge
    if given == adjacency:
        return ""
    who, becomes = row["estimator"] or request.label, ""
    if charge.epsilon is not None and charge.delta is not None:
        own = pair_text(row["epsilon"], row["delta"])
        becomes = f": {own} becomes {pair_text(charge.epsilon, charge.delta)}"
    return (
        f" {who} counts in {given}, this budget in {adjacency}{becomes}. Leave adjacency= out, and "
        "it counts as the budget does."
    )


def total_spent(
    terms: BudgetTerms,
    currency: BudgetFilter,
    spent: tuple[Fraction, ...],
    entries: list[dict[str, Any]],
) -> PrivacySpent:
    """Return the record of everything a budget was charged with."""
    # Its event is the filter's guarantee and not the list of what was run. Which releases are run
    # may have depended on the results of earlier ones, and to compose such a list numerically, as
    # if it had been fixed in advance, is no bound.
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
    # A first release that took the whole budget has its pair and need not be below the curve.
    known = None if currency.is_spent(spent) else currency.curve(spent)
    if known is not None and (curve := _curve_event(*known)) is not None:
        return curve
    # Without a finite epsilon there is no guarantee at any delta below one.
    return ApproxDPEvent(epsilon, delta) if math.isfinite(epsilon) else ApproxDPEvent(0.0, 1.0)


def _curve_event(square: Fraction, epsilon: Fraction, failure: Fraction) -> Event | None:
    """Return a mu-GDP release beside an (epsilon, failure)-DP one, if floats can write them."""
    # The event's failures are also below the other curve, raised so much that without stated
    # epsilons ``failure + delta_G(epsilon; mu)`` is below it everywhere, for entries of whatever
    # form.
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
    # A choice of one: it costs no more, and nothing says that a record can cost as much.
    curve = ComposedEvent((gaussian, ApproxDPEvent(*pair)))
    return OneOfEvent((curve,)) if known else None


def coordinates(
    currency: BudgetFilter, spent: tuple[Fraction, ...]
) -> dict[str, tuple[float, float]]:
    """Return, unit by unit, what is spent and the most that it may come to."""
    most = currency.reachable(spent)
    return {
        unit: (write_up(used), math.inf if limit is None else write_up(limit))
        for unit, used, limit in zip(currency.units, spent, most, strict=True)
    }


class Remaining(tuple[float, float]):
    """An (epsilon, delta) whose ``repr`` says why it is not the total less what is spent."""

    why: str = ""

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self))}){self.why}"


def remaining(terms: BudgetTerms, currency: BudgetFilter, spent: tuple[Fraction, ...]) -> Remaining:
    """Return the largest single release that still fits."""
    left = Remaining(currency.remaining(spent))
    used = zip((terms.epsilon, terms.delta), currency.guarantee(spent), left, strict=True)
    if not all(math.isclose(total, now + rest, rel_tol=1e-9) for total, now, rest in used):
        left.why = (
            f": the largest single release that fits. By {currency.name!r} composition, epsilons "
            "of single releases do not add up to the total"
        )
    return left


def still_fits(
    currency: BudgetFilter, spent: tuple[Fraction, ...]
) -> dict[str, tuple[float, float]]:
    """Return the largest release that fits, and the largest one of which no more is known."""
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
    """What a budget shows of itself."""

    spent: tuple[float, float]
    fits: dict[str, tuple[float, float]]
    sums: dict[str, tuple[float, float]]
    entries: int


def short_text(terms: BudgetTerms, shown: Shown | str) -> str:
    """Return the budget's ``repr``; a word stands for a ledger that cannot be read."""
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
    """Return a mark for totals that refuse nothing."""
    return f"{before}epsilon has no limit, so that it counts and guarantees nothing" * math.isinf(
        terms.epsilon
    )


def pair_text(epsilon: float, delta: float) -> str:
    """Return a pair as texts show it."""
    return f"(epsilon={epsilon:.6g}, delta={delta:.3g})"
