"""Accounting for noisy gradient descent that releases only its last iterate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.pld import PLDAccountant
from skdp.accounting.analysis import Domination, Windows, analysis_of
from skdp.accounting.events import Event

Plan = dict[Event, Any]  # a window, or None, for each sampled run

_LARGEST_CHANGE, _SMALLEST_CHANGE = 2.0, 1.1  # factors between neighbouring windows
_WORTHWHILE = 1e-3  # relative improvement below which the changes are halved
_PROMISING = 1.5  # multiple of the composition's cost from which windows are not improved


class HiddenStateAccountant(Accountant):
    """Accountant for convex noisy gradient descent that releases only its last iterate.

    Supports `LastIterateEvent` and everything that `PLDAccountant` supports.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Adjacency relation between neighbouring data sets.

    Notes
    -----
    A run with steps on all records, or on fixed batches in turn, is mu-GDP. Bok, Su and Altschuler
    (2024) give a closed form for mu by shifted interpolation. It is exact for quadratic objectives,
    and several runs compose exactly.

    A run on sampled batches is bounded by its last steps and one Gaussian release for all earlier
    steps. The last steps count as sampled Gaussian releases with a share of the noise. All are
    composed as privacy-loss distributions. Renyi divergences help to choose the number of steps and
    the share among many. Each choice is a valid bound, and so is the plain composition of all
    steps; the smallest value counts. No lower bound is given for these runs.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, HiddenStateAccountant, LastIterateEvent
    >>> def cost(steps):
    ...     run = LastIterateEvent(GaussianEvent(100.0), steps, 0.25, strong_convexity=2e-3)
    ...     return round(HiddenStateAccountant().compose(run).epsilon(1e-5), 3)
    >>> cost(100), cost(10_000), cost(10**10)
    (0.34, 1.199, 1.199)
    """

    name = "hidden-state"

    def _supports_leaf(self, leaf: Event) -> bool:
        known = analysis_of(leaf, self._adjacency).dominated_by()
        return PLDAccountant(self._adjacency).supports(leaf if known is None else known.event)

    def _composed(self) -> PLDAccountant | None:
        """Return an accountant with lower bounds; None if there are runs."""
        if any(analysis_of(leaf, self._adjacency).dominated_by() for leaf in self._counts):
            return None
        return PLDAccountant(self._adjacency).compose(self.event)

    def _epsilon_interval(self, delta: float) -> tuple[float, float]:
        composed = self._composed()
        lower, upper = (0.0, self._epsilon(delta)) if composed is None else composed.epsilon(delta)
        return lower, upper

    def _delta_interval(self, epsilon: float) -> tuple[float, float]:
        composed = self._composed()
        lower, upper = (0.0, self._delta(epsilon)) if composed is None else composed.delta(epsilon)
        return lower, upper

    def _epsilon(self, delta: float) -> float:
        def cost(plan: Plan) -> float:
            dominating, failure = self._dominating(plan)
            left = math.nextafter(delta - failure, 0.0) if failure > 0.0 else delta
            return dominating.epsilon(left).upper if left > 0.0 else math.inf

        return self._least(cost, lambda run: run.candidates(delta=delta))

    def _delta(self, epsilon: float) -> float:
        def cost(plan: Plan) -> float:
            dominating, failure = self._dominating(plan)
            return math.nextafter(dominating.delta(epsilon).upper + failure, math.inf)

        if math.isinf(epsilon):
            return cost(dict.fromkeys(self._sampled_runs()))
        return self._least(cost, lambda run: run.candidates(epsilon=epsilon))

    def _sampled_runs(self) -> dict[Event, Domination]:
        """Return the dominating events of sampled runs."""
        cards = {leaf: analysis_of(leaf, self._adjacency) for leaf in self._counts}
        found = {leaf: card.dominated_by() for leaf, card in cards.items() if card.mu() is None}
        return {leaf: known for leaf, known in found.items() if known is not None}

    def _dominating(self, plan: Plan) -> tuple[PLDAccountant, float]:
        """Return a dominating plan and its failure, for windows or None."""
        accountant, failure = PLDAccountant(self._adjacency), 0.0
        runs = self._sampled_runs()
        for leaf, count in self._counts.items():
            if leaf not in runs:
                accountant.compose(leaf, count)
                continue
            window, windows = plan[leaf], runs[leaf].windows
            if window is None or windows is None:
                accountant.compose(runs[leaf].event, count)
            else:
                accountant.compose(windows.event(window), count)
                failure += count * windows.failure
        return accountant, failure

    def _least(
        self, cost: Callable[[Plan], float], candidates: Callable[[Windows], list[Any]]
    ) -> float:
        """Return the least cost of some promising plans; each is a valid bound."""
        runs = self._sampled_runs()
        plan: Plan = dict.fromkeys(runs)
        least = cost(plan)
        for leaf, run in ((leaf, known.windows) for leaf, known in runs.items()):
            if run is not None:
                plan[leaf], least = best_window(
                    run,
                    candidates(run),
                    lambda w: cost(plan | {leaf: w}),  # noqa: B023  (called at once)
                    least,
                )
        return least


def best_window(
    run: Windows, candidates: list[Any], cost: Callable[[Any], float], least: float
) -> tuple[Any, float]:
    """Return the cheapest window near candidates and its cost, or None."""
    known = {window: cost(window) for window in candidates}
    factor = _LARGEST_CHANGE
    while known and factor > _SMALLEST_CHANGE:
        choice = min(known, key=known.__getitem__)
        found = known[choice]
        if found > _PROMISING * least:
            break
        moves = [move for move in run.neighbours(choice, factor) if move not in known]
        known |= {move: cost(move) for move in moves}
        if min(known.values()) >= found * (1.0 - _WORTHWHILE):
            factor = math.sqrt(factor)
    choice = min(known, key=known.__getitem__, default=None)
    return (choice, known[choice]) if known and known[choice] < least else (None, least)
