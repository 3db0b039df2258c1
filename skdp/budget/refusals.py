"""The largest release that still fits a budget, and the refusals that report it."""

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

# Names of the tasks of scikit-learn's searches; if they change, no search is named.
_EVALUATION, _REFIT = "candidate-split-evaluation", "refit-with-best-params"

Pair = tuple[float, float]

_CLOSE = 1.003  # how near to each other the largest granted epsilon and a refused one are
SMALLEST_SHARE = 1e-9  # of the budget's epsilon: less is of no use to a fit
_DIGITS = 4  # in which a refusal writes what fits, rounded down; `pair_text` has 3 of delta


def largest_granted(
    guess: float, granted: Callable[[float], bool], least: float, most: float = math.inf
) -> float:
    """Return the largest epsilon that is granted, to 0.3 %; 0 if it is below `least`."""
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
    """Return the name of this kind of release in `BudgetFilter.allocate`."""
    return "gaussian" if GDPAccountant().supports(event) else "any"


def what_fits(
    currency: BudgetFilter, spent: Amounts, event: Event, adjacency: Adjacency, asked: Pair
) -> Pair | None:
    """Return the largest (epsilon, delta), under an adjacency, at which such a release is granted.

    Epsilon is at most the requested one, and delta equals the requested one if possible. The pair
    was priced and fits. None if nothing fits.
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
    # If too little delta is left, or it grows by the conversion, try less of it.
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
    """Return a first guess of the epsilon at another delta."""
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
        f"{request.label} requests {pair_text(*asked)}, which exceeds the remaining budget: it "
        f"needs {_coordinates(cost, spent, currency)}."
        f"{about_relations(request, currency.adjacency)} "
        f"{_way_out(request, asked, fits, currency.adjacency)}"
        f"{_about_delta(currency, asked, fits)} Nothing was charged and no row was read."
    )
    error.requested, error.remaining, error.fits = asked, currency.remaining(spent), fits
    return error


def _way_out(request: Request, asked: Pair, fits: Pair | None, relation: Adjacency) -> str:
    """Return a sentence on the largest release that fits, and how to request it."""
    if fits is None:
        return (
            "No release of this kind fits any more: end the study, or start a budget for other "
            "records."
        )
    epsilon, delta = shown = round_down(fits)
    named = f"epsilon={epsilon:g}" + (f" and delta={delta:g}" if fits[1] != asked[1] else "")
    known = request.row["parameters"]
    told = f"The largest release that still fits is {pair_text(*shown)}"
    if len(request.charge.parts) > 1:
        return f"{told} for the entire plan: plan fewer releases, or releases with more noise."
    if known.get("noise_multiplier") is not None:
        return f"{told}: increase noise_multiplier until privacy_plan() reports at most that."
    if "epsilon" in known:
        is_exact = kind_of(request.event) == "gaussian"
        more = "" if is_exact else " budget.allocate(1, estimator, ...) may find a larger epsilon."
        return f"{told}: set {named}.{more}"
    bare = request.row["epsilon"] is None and not about_relations(request, relation)
    if type(request.event) is GaussianEvent and bare and delta > 0.0:
        least = _round(gaussian_profile.sigma(epsilon, delta), ROUND_CEILING)
        return f"{told}: set noise_multiplier={least:g}."
    return f"{told}."


def _about_delta(currency: BudgetFilter, asked: Pair, fits: Pair | None) -> str:
    """Name the estimators that work with delta=0, if no delta is left."""
    left = currency.delta if fits is None else fits[1]
    return f" {PURE_OFFERS}" if left == 0.0 < asked[1] else ""


def _coordinates(cost: Amounts, spent: Amounts, currency: BudgetFilter) -> str:
    """Return the cost of a charge in the units of the composition rule, and the amounts left."""
    prices = [
        f"{write_up(price):.6g} of {unit} ({_left(limit, used)})"
        for unit, price, used, limit in zip(
            currency.units, cost, spent, currency.reachable(spent), strict=True
        )
        if price > 0 or not any(cost)
    ]
    return (
        f"{' and '.join(prices)}. Spent: {pair_text(*currency.guarantee(spent))} of "
        f"{pair_text(currency.epsilon, currency.delta)}, composition {currency.name!r}"
    )


def _left(limit: Fraction | None, used: Fraction) -> str:
    return "no limit" if limit is None else f"{float(max(limit - used, Fraction(0))):.6g} left"


def round_down(pair: Pair) -> Pair:
    """Return a pair rounded down to the digits that refusals show, so that it is granted."""
    return _round(pair[0], ROUND_FLOOR), _round(pair[1], ROUND_FLOOR, 3)


def _round(value: float, way: str, digits: int = _DIGITS) -> float:
    return float(Context(prec=digits, rounding=way).create_decimal(repr(float(value))))


class SearchFit(NamedTuple):
    """One fit of a search by scikit-learn; all of it is public."""

    # The number of fits is left out: with splits by ids it could reveal the number of ids.

    search: str  # its class
    run: str  # which call of its fit
    fit: str  # which of its fits

    def record(self) -> dict[str, Any]:
        """Return the fields that the ledger stores with the parameters of a charge."""
        return {"class": self.search, "run": self.run, "fit": self.fit}


def find_search(task: Any) -> SearchFit | None:
    """Return the search that a fit's `CallbackContext` belongs to; None if none is found."""
    with suppress(AttributeError):  # of a version with other tasks
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
    """Add to a refusal the search that it ends, and how many of its fits are charged."""
    ledger = getattr(accountant, "accountant", accountant)
    charged: set[str] = set()
    with suppress(AttributeError, KeyError, TypeError):
        charged = _charged_fits(ledger.desk, fit.run)
    part = " and part of this one" if fit.fit in charged else ""
    others = len(charged - {fit.fit})
    error.search = fit.search, others
    error.args = (
        f"{error} This was a fit of {fit.search}: {others} of its other fits{part} are charged, "
        "fully or in part, and are not refunded. Before the next search, list its charges with "
        "skdp.budget.plan_fits(search, ...), check them with budget.check(search, ...), or charge "
        "all of them in advance with budget.plan.",
    )
