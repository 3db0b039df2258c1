"""Forecasts of a budget: which charges would fit, and how often."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from skdp.accounting import Event
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import Adjacency, check_integer
from skdp.base.scikit_learn import responds
from skdp.budget.charging import supposed
from skdp.budget.currencies import BudgetFilter
from skdp.budget.currencies.base import Amounts, add
from skdp.budget.planning import find_epsilon, plan_refits, set_epsilon
from skdp.budget.refusals import (
    SMALLEST_SHARE,
    kind_of,
    largest_granted,
    refusal,
    round_down,
    share_of,
)
from skdp.budget.request import Request, pair_text
from skdp.budget.view import LedgerView
from skdp.exceptions import BudgetExceededError, CalibrationError


@dataclass(frozen=True)
class Rehearsal:
    """The charges of a list, repeated in rounds, that are granted before one is refused."""

    currency: BudgetFilter
    requests: Sequence[Request]
    rounds: float  # granted completely; infinite if nothing limits them
    spent: Amounts  # after these, or after all granted charges if one is refused
    refused: tuple[int, Amounts] | None = None  # which one of its round, and its cost

    def error(self, needed: int, who: str, before: Amounts) -> BudgetExceededError:
        """Return the error of the refused charge, with the number of charges that fit."""
        assert self.refused is not None
        place, cost = self.refused
        error = refusal(self.requests[place], cost, self.spent, self.currency)
        if needed > 1:
            granted = int(self.rounds) * len(self.requests) + place
            told = f"{who} needs {needed} charges, and {granted} of them fit."
            error.args = (f"{told}{self._shares(needed, before)} The next charge: {error}",)
        return error

    def _shares(self, needed: int, before: Amounts) -> str:
        """Return a sentence with the (epsilon, delta) per charge at which all charges fit."""
        kinds = {kind_of(request.event) for request in self.requests}
        relations = {request.row["adjacency"] for request in self.requests}
        kind = "gaussian" if kinds == {"gaussian"} else "any"
        share = share_of(self.currency, before, needed, kind)
        if share is None or relations != {self.currency.adjacency}:
            return ""
        return f" All would fit with {pair_text(*round_down(share))} each."


def rehearse(
    currency: BudgetFilter, spent: Amounts, requests: Sequence[Request], rounds: int
) -> Rehearsal:
    """Price charges one after the other, without other charges meanwhile."""
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


class ForecastingView(LedgerView):
    """A ledger with forecasts, which are exact without other charges meanwhile."""

    def check(
        self,
        plan: Any,
        *,
        fits: int = 1,
        adjacency: Adjacency | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        label: str | None = None,
        **shape: Any,
    ) -> tuple[float, float]:
        """Raise the error that `reserve` would raise, without charging.

        Parameters
        ----------
        plan : Event, PrivacySpent, iterable of these, or estimator
            Releases to check, in this order. An estimator means the charges that `plan_fits` lists.
        fits : int, default=1
            Number of repetitions, one after the other.
        adjacency, epsilon, delta, label
            As for `reserve`.
        **shape : dict
            Shape of the estimator's table: `n_samples`, `n_features` and optionally `n_classes`
            and `groups`, as for `plan_fits`.

        Returns
        -------
        tuple of float
            The (epsilon, delta) that `remaining` would return after these charges, without
            other charges meanwhile.

        Raises
        ------
        BudgetExceededError
            If not all of them fit. The message reports how many do.

        Examples
        --------
        >>> from skdp.accounting import PureDPEvent
        >>> from skdp.budget import BudgetAccountant
        >>> budget = BudgetAccountant(epsilon=1.0, delta=0.0)
        >>> budget.check(PureDPEvent(0.125), fits=7)  # the budget that would remain
        (0.125, 0.0)
        """
        fits = check_integer("fits", fits, at_least=1)
        details = {"adjacency": adjacency, "epsilon": epsilon, "delta": delta, "label": label}
        requests = self._requests(plan, shape, **details)
        currency = self.desk.currency
        before = self.desk.file.state().spent
        found = rehearse(currency, before, requests, fits)
        if found.refused is not None:
            raise found.error(fits * len(requests), label or type(plan).__name__, before)
        self.desk.admit(requests[0], keep=False)  # whether the file can be written
        return currency.remaining(found.spent)

    def fits(
        self, plan: Any, *, epsilon: float | None = None, at_most: int = 1000, **shape: Any
    ) -> float:
        """Return the number of further fits that would be granted, without charging.

        Parameters
        ----------
        plan, **shape
            Charges of one fit, as for `check`.
        epsilon : float, optional
            Epsilon to use for the last private step of an estimator. None leaves it unchanged.
        at_most : int, default=1000
            Number at which counting stops.

        Returns
        -------
        int or inf
            Number of fits, at most `at_most`; ``inf`` if nothing limits them. It is exact without
            other charges meanwhile.

        Examples
        --------
        >>> from skdp import OperaLogisticRegression
        >>> from skdp.budget import BudgetAccountant
        >>> budget = BudgetAccountant(epsilon=3.0, delta=1e-5)
        >>> model = OperaLogisticRegression(epsilon=1.0, delta=1e-6)
        >>> budget.fits(model, n_samples=500, n_features=8)
        8
        """
        at_most = check_integer("at_most", at_most, at_least=1)
        if epsilon is not None:
            plan = set_epsilon(plan, epsilon)
        spent = self.desk.file.state().spent
        return rehearse(self.desk.currency, spent, self._requests(plan, shape), at_most).rounds

    def allocate(self, fits: int, mechanism: Any = "gaussian", **shape: Any) -> tuple[float, float]:
        """Return the (epsilon, delta) per fit with which a number of fits use the remaining budget.

        Parameters
        ----------
        fits : int
            Number of fits, at least 1. All of them are granted if `mechanism` describes them.
        mechanism : {"gaussian", "any"} or estimator, default="gaussian"
            Kind of release. ``"gaussian"``: each fit has exactly the profile of Gaussian noise with
            the stated guarantee, like output perturbation and noisy gradients on all rows. It makes
            no difference in ``"basic"`` and ``"approx"``. ``"any"``: only epsilon and delta of a
            fit are known, which suits searches, sampled gradients and objective perturbation. It
            can leave a part of the budget if the filter uses more than that; see `check`. An
            estimator, pipeline or ordinary search, as for `plan_fits`: its last private step gets
            the epsilon; its delta and all other steps are unchanged.
        **shape : dict
            Shape of the estimator's table, as for `check`.

        Returns
        -------
        tuple of float
            The (epsilon, delta) of each fit. For an estimator: that of its last private step. All
            fits are granted with that epsilon, and 0.3 % more was refused.

        Raises
        ------
        BudgetExceededError
            If the budget is spent.
        ValueError
            If a parameter is out of range, or the budget has no limit.
        """
        currency, spent = self.desk.currency, self.desk.file.state().spent
        if not responds(mechanism, "fit"):
            _refuse_shape(shape, mechanism)
            return currency.allocate(spent, fits, mechanism)
        currency.allocate(currency.nothing, fits)  # checks `fits`, and that there is a limit

        refused: list[Rehearsal] = []

        def granted(epsilon: float) -> bool:
            try:
                asked = self._requests(set_epsilon(mechanism, epsilon), shape)
            except CalibrationError:
                return False
            found = rehearse(currency, spent, asked, int(fits))
            refused.extend([found] * (found.refused is not None))
            return found.refused is None

        guess = share_of(currency, spent, fits, "any") or (currency.epsilon / fits, 0.0)
        epsilon = largest_granted(guess[0], granted, SMALLEST_SHARE * currency.epsilon)
        if epsilon == 0.0:
            raise _nothing_fits(refused, int(fits), type(mechanism).__name__, spent)
        own = set_epsilon(mechanism, epsilon).get_params()
        return epsilon, float(own[f"{find_epsilon(mechanism).removesuffix('epsilon')}delta"])

    def _requests(self, plan: Any, shape: dict[str, Any], **details: Any) -> list[Request]:
        """Prepare releases, or the charges of an estimator on a table of some shape."""
        if responds(plan, "fit"):
            details["label"] = details.get("label") or f"{type(plan).__name__}.fit"
            with supposed(self):  # fits without an adjacency use this budget's
                fits, refits = plan_refits(plan, **shape)
            ways = [self._requests(fits + refit, {}, **details) for refit in refits or [[]]]
            return min(ways, key=self._left_after) if refits else ways[0]
        _refuse_shape(shape, plan)
        single = isinstance(plan, Event | PrivacySpent) or not isinstance(plan, Iterable)
        items = [plan] if single else list(plan)
        if not items:
            raise ValueError("plan must contain at least one release, got none.")
        return [self.desk.prepare(item, **details) for item in items]

    def _left_after(self, requests: list[Request]) -> tuple[bool, tuple[float, float]]:
        """Return whether charges would be granted, and the budget that would remain."""
        currency = self.desk.currency
        found = rehearse(currency, self.desk.file.state().spent, requests, 1)
        return found.refused is None, currency.remaining(found.spent)


def _nothing_fits(
    refused: list[Rehearsal], fits: int, who: str, spent: Amounts
) -> BudgetExceededError:
    if not refused:
        return BudgetExceededError(
            f"{who} cannot be fitted with the remaining epsilon, which is too small."
        )
    return refused[-1].error(fits * len(refused[-1].requests), who, spent)


def _refuse_shape(shape: dict[str, Any], given: Any) -> None:
    if shape:
        raise TypeError(f"{', '.join(shape)} can only be set with an estimator, got {given!r}.")
