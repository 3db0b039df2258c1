"""What still fits a budget, and refusals: they begin with the way out."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from skdp.accounting import ApproxDPEvent, Event, GaussianEvent
from skdp.accounting.accountants.gdp import GDPAccountant
from skdp.accounting.numerics import gaussian_profile
from skdp.base.parameters import PURE_OFFERS, Adjacency
from skdp.budget.currencies import BudgetFilter
from skdp.budget.currencies.base import Amounts
from skdp.budget.currencies.profiles import decimal_down
from skdp.budget.entries import write_up
from skdp.budget.ledger.home import at_home
from skdp.budget.request import Request, about_relations, pair_text, restate
from skdp.exceptions import BudgetExceededError

# What scikit-learn's searches call their tasks; if that changes, no search is named.
_EVALUATION, _REFIT = "candidate-split-evaluation", "refit-with-best-params"

Pair = tuple[float, float]

_CLOSE = 1.003  # how near to each other the largest granted epsilon and a refused one are
SMALLEST_SHARE = 1e-9  # of the budget's epsilon: less is of no use to a fit
_DIGITS = 4  # in which a refusal writes what fits, rounded down; `pair_text` has 3 of delta


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
    currency: BudgetFilter, spent: Amounts, event: Event, adjacency: Adjacency, asked: Pair
) -> Pair | None:
    """Return the largest (epsilon, delta) in a relation with which a release like one is granted.

    Its delta is the one that was asked for, if that can be; its epsilon is no more. None if nothing
    fits. What is returned was priced and found to fit.
    """
    kind, stated = kind_of(event), isinstance(event, ApproxDPEvent)

    def granted(epsilon: float, delta: float) -> bool:
        noise = kind == "gaussian" and delta > 0.0
        event = (
            GaussianEvent(gaussian_profile.sigma(epsilon, delta))
            if noise
            else ApproxDPEvent(epsilon, delta)
        )
        charge = restate(event, (epsilon, delta), adjacency, currency.adjacency)
        # With less than the budget's delta, other releases may have far less than its epsilon.
        known = noise or stated or (delta, adjacency) == (currency.delta, currency.adjacency)
        return currency.fits(spent, currency.price(charge, spent, known))

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
    fits = what_fits(currency, spent, request.event, adjacency, asked)
    error = BudgetExceededError(
        f"{request.label} asks for {pair_text(*asked)}, and "
        f"{_way_out(request, asked, fits, currency.adjacency)}"
        f"{about_relations(request, currency.adjacency)}"
        f"{_about_delta(currency, asked, fits)} Nothing was charged and no row was read. "
        f"{_coordinates(cost, spent, currency)}"
    )
    error.requested, error.remaining, error.fits = asked, currency.remaining(spent), fits
    return error


def _way_out(request: Request, asked: Pair, fits: Pair | None, relation: Adjacency) -> str:
    """Say what still fits, and how to ask for it."""
    if fits is None:
        return "nothing of its kind fits any more: end here, or start a budget for other records."
    epsilon, delta = shown = round_down(fits)
    named = f"epsilon={epsilon:g}" + (f" and delta={delta:g}" if fits[1] != asked[1] else "")
    known = request.row["parameters"]
    told = f"{pair_text(*shown)} still fits"
    if len(request.charge.parts) > 1:
        return f"{told} as a whole: plan fewer releases, or releases with more noise."
    if known.get("noise_multiplier") is not None:
        return f"{told}: raise noise_multiplier until privacy_plan() says so."
    if "epsilon" in known:
        is_exact = kind_of(request.event) == "gaussian"
        more = "" if is_exact else " budget.allocate(1, estimator, ...) may find more."
        return f"{told}: set {named}.{more}"
    bare = request.row["epsilon"] is None and not about_relations(request, relation)
    if type(request.event) is GaussianEvent and bare and delta > 0.0:
        least = _round(gaussian_profile.sigma(epsilon, delta), ROUND_CEILING)
        return f"{told}: give noise_multiplier={least:g}."
    return f"{told}: ask for that."


def _about_delta(currency: BudgetFilter, asked: Pair, fits: Pair | None) -> str:
    """Say who can do without a delta, if none is left."""
    left = currency.delta if fits is None else fits[1]
    return f" {PURE_OFFERS}" if left == 0.0 < asked[1] else ""


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


def round_down(pair: Pair) -> Pair:
    """Return a pair that is granted where another is, and as short as refusals write it."""
    return _round(pair[0], ROUND_FLOOR), _round(pair[1], ROUND_FLOOR, 3)


def _round(value: float, way: str, digits: int = _DIGITS) -> float:
    return float(Context(prec=digits, rounding=way).create_decimal(repr(float(value))))


class SearchFit(NamedTuple):
    """One fit of a search by scikit-learn; all of it is public."""

    # How many it will make is left out: splits by ids are as many as private ids may be.

    search: str  # its class
    run: str  # which call of its fit
    fit: str  # which of its fits

    def record(self) -> dict[str, Any]:
        """Return what the ledger keeps among the parameters of a charge."""
        return {"class": self.search, "run": self.run, "fit": self.fit}


def find_search(task: Any) -> SearchFit | None:
    """Return the search that a fit's `CallbackContext` is a part of; None if none is seen."""
    with suppress(AttributeError):  # of a version whose tasks are made otherwise
        return _find_search(task)
    return None


def _find_search(task: Any) -> SearchFit | None:
    while task is not None and not {_EVALUATION, _REFIT} & _names(task):
        task = task.parent
    if task is None:
        return None
    search = task.parent
    while search.parent is not None and "fit" not in _names(search):
        search = search.parent
    run = f"{search.root_uuid.hex}.{search.task_id}"
    return SearchFit(search.estimator_name, run, "-".join(_path(task, search)))


def _names(task: Any) -> set[str]:
    # A task may have been merged with that of the estimator which it fits.
    return {task.task_name, task.source_task_name}


def _path(task: Any, root: Any) -> list[str]:
    return [] if task is root else [*_path(task.parent, root), str(task.task_id)]


@at_home
def _charged_fits(desk: Any, run: str) -> set[str]:
    searches = [row["parameters"].get("search") or {} for row in desk.file.rows()]
    return {each["fit"] for each in searches if each.get("run") == run}


def name_search(error: BudgetExceededError, fit: SearchFit, accountant: Any) -> None:
    """Have a refusal say which search it ends, and how far that had come."""
    ledger = getattr(accountant, "accountant", accountant)
    charged: set[str] = set()
    with suppress(AttributeError, KeyError, TypeError):
        charged = _charged_fits(ledger.desk, fit.run)
    part = ", and a part of this one," if fit.fit in charged else ""
    others = len(charged - {fit.fit})
    error.search = fit.search, others
    error.args = (
        f"{error} It was a fit of {fit.search}: {others} of its other fits{part} are charged, "
        "whole or in part, and stay so. Before the next search, skdp.budget.plan_fits(search, ...) "
        "lists its charges, budget.check(search, ...) tells whether they fit, and budget.plan "
        "commits to them.",
    )
