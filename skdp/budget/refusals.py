"""What still fits a budget, and refusals: they begin with the way out."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import partial

from skdp.accounting import ApproxDPEvent, Event, GaussianEvent
from skdp.accounting.accountants.gdp import GDPAccountant
from skdp.accounting.numerics import gaussian_profile
from skdp.base.parameters import PURE_OFFERS, Adjacency
from skdp.budget.currencies import BudgetFilter
from skdp.budget.currencies.base import Amounts
from skdp.budget.currencies.profiles import decimal_down
from skdp.budget.entries import write_up
from skdp.budget.request import Request, about_relations, pair_text, restate
from skdp.exceptions import BudgetExceededError

Pair = tuple[float, float]

_CLOSE = 1.003  # how near to each other the largest granted epsilon and a refused one are
SMALLEST_SHARE = 1e-9  # of the budget's epsilon: less is of no use to a fit
_DIGITS = 4  # in which a refusal writes what fits, rounded down


def largest_granted(
    guess: float, granted: Callable[[float], bool], least: float, most: float = math.inf
) -> float:
    """Return an epsilon that is granted, next to one that is not; 0 if that is below `least`."""
    low, high, trial = 0.0, math.inf, min(guess, most)
    first = trial
    while not high <= _CLOSE * low:
        if trial <= least and low == 0.0:
            return 0.0
        if granted(trial):
            low = trial
        else:
            high = trial
        if low >= most:
            break
        if low == 0.0:
            trial *= 0.25
        elif math.isinf(high):
            trial = min(most, trial * (_CLOSE if trial == first else 2.0))
        else:
            trial = math.sqrt(low * high)
    return low


def share_of(currency: BudgetFilter, spent: Amounts, fits: int, kind: str) -> Pair | None:
    """Return the (epsilon, delta) of each of several releases that exhaust the budget."""
    try:
        share = currency.allocate(spent, fits, kind)
    except (ValueError, BudgetExceededError):
        return None
    return share if share[0] > 0.0 else None


def kind_of(event: Event) -> str:
    """Return how `BudgetFilter.allocate` calls releases of this kind."""
    return "gaussian" if GDPAccountant().supports(event) else "any"


def what_fits(
    currency: BudgetFilter, spent: Amounts, kind: str, adjacency: Adjacency, asked: Pair
) -> Pair | None:
    """Return the largest (epsilon, delta) in a relation with which a kind of release is granted.

    Its delta is the one that was asked for, if that can be; its epsilon is no more. None if nothing
    fits. What is returned was priced and found to fit.
    """

    def granted(epsilon: float, delta: float) -> bool:
        noise = kind == "gaussian" and delta > 0.0
        event = (
            GaussianEvent(gaussian_profile.sigma(epsilon, delta))
            if noise
            else ApproxDPEvent(epsilon, delta)
        )
        charge = restate(event, (epsilon, delta), adjacency, currency.adjacency)
        return currency.fits(spent, currency.price(charge, spent))

    whole = min(currency.epsilon, asked[0])
    share = share_of(currency, spent, 1, kind) or (whole, currency.delta)
    left = spent[-1] if currency.limits[-1] is None else currency.limits[-1] - spent[-1]
    # Where a delta is not left, it comes out larger in the other relation: then less of it.
    most = min(asked[1], decimal_down(max(left, Fraction(0))))
    converted = 1.0 if adjacency == currency.adjacency else 2.0
    for delta in dict.fromkeys((asked[1], most, most / 4.0, most / 16.0)):
        if not (delta < 1.0 and math.isfinite(whole)):
            continue
        guess = _guess(share, kind, delta) / converted
        fits = partial(granted, delta=delta)
        epsilon = largest_granted(guess, fits, SMALLEST_SHARE * whole, asked[0])
        if epsilon > 0.0:
            return epsilon, delta
    return None


def _guess(share: Pair, kind: str, delta: float) -> float:
    """Return about which epsilon goes with another delta."""
    if kind != "gaussian" or not share[1] > 0.0 or not delta > 0.0:
        return share[0]
    found = gaussian_profile.epsilon_bounds(gaussian_profile.mu(*share), delta)[0]
    return found * (1.0 - 1e-9) if 0.0 < found < math.inf else share[0]


def refusal(
    request: Request, cost: Amounts, spent: Amounts, currency: BudgetFilter
) -> BudgetExceededError:
    """Return the error of a charge that does not fit."""
    row = request.row
    stated = row["epsilon"] is not None and row["delta"] is not None
    asked: Pair = (row["epsilon"], row["delta"]) if stated else currency.guarantee(cost)
    adjacency = row["adjacency"] if stated else currency.adjacency
    kind = kind_of(request.event)
    fits = what_fits(currency, spent, kind, adjacency, asked)
    error = BudgetExceededError(
        f"{request.label} asks for {pair_text(*asked)}, and "
        f"{_way_out(request, asked, fits, kind, currency.adjacency)}"
        f"{about_relations(request, currency.adjacency)}"
        f"{_about_delta(currency, asked)} Nothing was charged and no row was read. "
        f"{_coordinates(cost, spent, currency)}"
    )
    error.requested, error.remaining, error.fits = asked, currency.remaining(spent), fits
    return error


def _way_out(
    request: Request, asked: Pair, fits: Pair | None, kind: str, relation: Adjacency
) -> str:
    """Say what still fits, and how to ask for it."""
    if fits is None:
        return "nothing of its kind fits any more: end here, or start a budget for other records."
    epsilon, delta = shown = round_away(fits[0]), round_away(fits[1])
    named = f"epsilon={epsilon:g}" + (f" and delta={delta:g}" if fits[1] != asked[1] else "")
    known = request.row["parameters"]
    told = f"{pair_text(*shown)} still fits"
    if len(request.charge.parts) > 1:
        return f"{told} as a whole: plan fewer releases, or releases with more noise."
    if known.get("noise_multiplier") is not None:
        return f"{told}: raise noise_multiplier until privacy_plan() says so."
    if "epsilon" in known:
        more = "" if kind == "gaussian" else " budget.allocate(1, estimator, ...) may find more."
        return f"{told}: set {named}.{more}"
    bare = request.row["epsilon"] is None and not about_relations(request, relation)
    if type(request.event) is GaussianEvent and bare and delta > 0.0:
        least = round_away(gaussian_profile.sigma(epsilon, delta), ROUND_CEILING)
        return f"{told}: give noise_multiplier={least:g}."
    return f"{told}: ask for that."


def _about_delta(currency: BudgetFilter, asked: Pair) -> str:
    return f" {PURE_OFFERS}" if currency.delta == 0.0 < asked[1] else ""


def _coordinates(cost: Amounts, spent: Amounts, currency: BudgetFilter) -> str:
    """Say what a charge would cost in the currency, and what is left of that."""
    prices = [
        f"{write_up(price):.6g} of {unit} where {_left(limit, used)} is left"
        for unit, price, used, limit in zip(
            currency.units, cost, spent, currency.reachable(spent), strict=True
        )
        if price > 0 or not any(cost)
    ]
    return (
        f"It needs {'; '.join(prices)}. Spent is {pair_text(*currency.guarantee(spent))} of "
        f"{pair_text(currency.epsilon, currency.delta)}, composition {currency.name!r}."
    )


def _left(limit: Fraction | None, used: Fraction) -> str:
    return "unlimited" if limit is None else f"{float(max(limit - used, Fraction(0))):.6g}"


def round_away(value: float, way: str = ROUND_FLOOR) -> float:
    """Return the next number on the safe side that is as short as refusals write it."""
    return float(Context(prec=_DIGITS, rounding=way).create_decimal(repr(float(value))))
