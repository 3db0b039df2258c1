"""Which of several charges would be granted, by the currency's own arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skdp.budget.currencies import BudgetFilter
from skdp.budget.currencies.base import Amounts, add
from skdp.budget.request import Request
from skdp.budget.summary import refusal
from skdp.exceptions import BudgetExceededError, CalibrationError

_CLOSE = 1.003  # how near to each other the largest granted epsilon and a refused one are
_SMALLEST_SHARE = 1e-9  # of the budget's epsilon: less is of no use to a fit


@dataclass(frozen=True)
class Rehearsal:
    """How far a list of charges, repeated in rounds, would get before one is refused."""

    currency: BudgetFilter
    requests: Sequence[Request]
    rounds: float  # that would be granted whole; infinite where nothing limits them
    spent: Amounts  # after these, or after all charges that would be granted if one is refused
    refused: tuple[int, Amounts] | None = None  # which one of its round, and its cost

    def error(self, needed: int, who: str) -> BudgetExceededError:
        """Return the error of the refused charge, which says how many there would have been."""
        assert self.refused is not None
        place, cost = self.refused
        error = refusal(self.requests[place], cost, self.spent, self.currency)
        if needed > 1:
            granted = int(self.rounds) * len(self.requests) + place
            error.args = (f"{who} needs {needed} charges, of which {granted} fit. {error}",)
        return error


def rehearse(
    currency: BudgetFilter, spent: Amounts, requests: Sequence[Request], rounds: int
) -> Rehearsal:
    """Price charges one after the other, as if nobody else charged meanwhile."""
    for done in range(rounds):
        before = spent
        for place, request in enumerate(requests):
            cost = currency.price(request.charge, spent)
            if not currency.fits(spent, cost):
                return Rehearsal(currency, requests, done, spent, (place, cost))
            spent = add(spent, cost)
        limits = currency.reachable(spent)
        if all(a == b or most is None for a, b, most in zip(before, spent, limits, strict=True)):
            return Rehearsal(currency, requests, math.inf, spent)
    return Rehearsal(currency, requests, rounds, spent)


def largest_epsilon(
    total: float, guess: float, try_out: Callable[[float], BudgetExceededError | None]
) -> float:
    """Return an epsilon that is granted, next to the smallest that is known not to be."""
    low, high, trial = 0.0, math.inf, guess
    while not high <= _CLOSE * low:
        try:
            error = try_out(trial)
        except CalibrationError:
            error = BudgetExceededError(f"epsilon={trial:.3g} is out of the estimator's reach.")
        if error is None:
            low = trial
        elif trial < _SMALLEST_SHARE * total:
            raise error
        else:
            high = trial
        if 0.0 < low and high < math.inf:
            trial = math.sqrt(low * high)
        else:
            trial *= 2.0 if low > 0.0 else 0.25
    return low
