"""What a budget says of itself: refusals, totals, and how it is displayed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from skdp.accounting import ApproxDPEvent, ComposedEvent, Event, GaussianEvent, OneOfEvent
from skdp.accounting.accountants.gdp import GDPAccountant
from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies import BudgetFilter
from skdp.budget.entries import write_up
from skdp.budget.request import Request
from skdp.budget.terms import BudgetTerms
from skdp.exceptions import BudgetExceededError
from skdp.parameters import PURE_OFFERS
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.reporting.records import html_table


def refusal(
    request: Request,
    cost: tuple[Fraction, ...],
    spent: tuple[Fraction, ...],
    currency: BudgetFilter,
) -> BudgetExceededError:
    """Return the error of a charge that does not fit."""
    charge, left = request.charge, currency.remaining(spent)
    if charge.epsilon is not None and charge.delta is not None:
        asked = charge.epsilon, charge.delta
    else:
        asked = currency.guarantee(cost)
    kind = "gaussian" if GDPAccountant().supports(charge.event) else "any"
    fits = what_fits(currency, spent, 1, kind)
    prices = [
        f"{write_up(price):.6g} of {unit} where {_left(limit, used)} are left"
        for unit, price, used, limit in zip(
            currency.units, cost, spent, currency.reachable(spent), strict=True
        )
        if price > 0 or not any(cost)
    ]
    advice = (
        "Nothing fits any more: end here, or start a budget of its own for other records."
        if fits is None
        else f"A release of {_pair(*fits)} would fit: ask for that."
    )
    if currency.delta == 0.0 and asked[1] > 0.0:
        advice += f" {PURE_OFFERS}"
    error = BudgetExceededError(
        f"{request.label} asks for {_pair(*asked)}, that is {'; '.join(prices)}. Spent are "
        f"{_pair(*currency.guarantee(spent))} of {_pair(currency.epsilon, currency.delta)} under "
        f"{currency.name!r} composition. {advice} Nothing was charged and no row was read."
    )
    error.requested, error.remaining, error.fits = asked, left, fits
    return error


def what_fits(
    currency: BudgetFilter, spent: tuple[Fraction, ...], fits: int, mechanism: str
) -> tuple[float, float] | None:
    """Return the (epsilon, delta) of each of several releases that exhaust the budget."""
    try:
        share = currency.allocate(spent, fits, mechanism)
    except (ValueError, BudgetExceededError):
        return None
    return share if share[0] > 0.0 else None


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
            f"{len(entries)} entries of a budget of {_pair(terms.epsilon, terms.delta)}"
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


def short_text(terms: BudgetTerms, spent: tuple[float, float] | str, entries: int | None) -> str:
    """Return the budget's ``repr``."""
    name = "" if terms.name is None else f", name={terms.name!r}"
    used = spent if isinstance(spent, str) else f"spent {_pair(*spent)[1:-1]}; {entries} charges"
    used += no_limit(terms, "; ")
    return (
        f"BudgetAccountant(epsilon={terms.epsilon:g}, delta={terms.delta:g}, "
        f"adjacency={terms.adjacency!r}, composition={terms.composition!r}{name}; {used})"
    )


def html_text(
    terms: BudgetTerms,
    spent: tuple[float, float] | str,
    sums: Mapping[str, tuple[float, float]],
    entries: int,
    where: object,
) -> str:
    """Return the budget as a table for notebooks."""
    used = spent if isinstance(spent, str) else _pair(*spent)
    rows = [
        ("name", terms.name or "none"),
        ("total", _pair(terms.epsilon, terms.delta) + no_limit(terms, ": ")),
        ("spent", used),
        *(
            (f"sum of {unit}", f"{now:.6g} of at most {most:.6g}")
            for unit, (now, most) in sums.items()
        ),
        ("entries", str(entries)),
        ("adjacency", terms.adjacency),
        ("composition", terms.composition),
        ("ledger", str(where)),
    ]
    return html_table("Privacy budget", rows)


def no_limit(terms: BudgetTerms, before: str = "") -> str:
    """Return a mark for totals that refuse nothing."""
    return f"{before}epsilon has no limit, so that it counts and guarantees nothing" * math.isinf(
        terms.epsilon
    )


def _pair(epsilon: float, delta: float) -> str:
    return f"(epsilon={epsilon:.6g}, delta={delta:.3g})"


def _left(limit: Fraction | None, used: Fraction) -> str:
    return "unlimited amounts" if limit is None else f"{float(max(limit - used, Fraction(0))):.6g}"
