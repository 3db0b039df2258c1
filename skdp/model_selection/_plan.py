"""The plan of a search with one target for all releases, and its description.

Nothing here sees a row. Proofs: Theorems 1, 4, 10 and 11 of ``docs/proofs/private_selection.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    OneOfEvent,
    PLDAccountant,
    PureDPEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
)
from skdp.accounting.analysis import costs_no_more, with_noise
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.privacy_spent import REAL_NUMBERS, PrivacySpent
from skdp.base.parameters import Adjacency
from skdp.exceptions import CalibrationError
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_sigma
from skdp.model_selection._scoring import RowScorer
from skdp.model_selection._steps import PLANNING_MARGIN, Fit, PrivateStep, plan_fit
from skdp.tables.units import about_units

# Relative accuracy of the inner epsilon.
_ACCURACY = 1e-3
# Smallest useful share of epsilon for a fit.
_SMALLEST_SHARE = 1e-7
# Growth of the cost of one run by random repetition, in squares of mu; for the refit.
_PRICE_OF_REPEATING = 4.0


@dataclass(frozen=True)
class Design:
    """All public numbers that determine the cost of a search."""

    method: str  # "random-stopping", "fixed", "holdout" or "cv"
    epsilon: float
    delta: float
    adjacency: Adjacency
    candidates: tuple[tuple[PrivateStep, ...], ...]
    train_sizes: tuple[int, ...]  # rows in each training part: one part, or one per fold
    n_rows: int
    n_columns: int
    n_classes: int
    # Mean number of runs, or the number if it is fixed; the shape of the distribution.
    mean: float
    shape: float
    refit: bool  # whether the chosen candidate is trained again on all rows
    refit_share: float  # share of the refit in the cost
    selection_epsilon: float  # cost of the choice for a record in the scores
    noisy_scores: bool
    assumptions: tuple[str, ...] = ()  # assumptions of the verdicts on steps
    by_unit: bool = False  # whether a record is all rows of an id

    @property
    def runs(self) -> tuple[int, ...]:
        """Candidate of each run if that is public: candidates take turns."""
        count = int(self.mean) if self.method == "fixed" else len(self.candidates)
        return tuple(run % len(self.candidates) for run in range(count))

    @property
    def public_runs(self) -> int:
        """Number of runs to announce; 0 if it is secret."""
        return (self.method != "random-stopping") * len(self.runs) * len(self.train_sizes)

    @property
    def trainings(self) -> float:
        """Number of trainings with a record, at most or on average."""
        if self.method == "random-stopping":
            return self.mean
        return float(len(self.runs) * max(len(self.train_sizes) - 1, 1))

    @property
    def fit_delta(self) -> float:
        """Delta of one fit: all fits together may take half of the total."""
        return self.delta / (2.0 * max(1.0, self.trainings) + 2.0 * self.refit)

    @property
    def refit_factor(self) -> float:
        """Epsilon of the refit relative to a fit; squares of epsilon add up approximately."""
        repeated = self.method == "random-stopping"
        price = _PRICE_OF_REPEATING if repeated else self.trainings
        return math.sqrt(price * self.refit_share / (1.0 - self.refit_share))


@dataclass(frozen=True)
class PricedSearch:
    """A search with a known cost."""

    design: Design
    event: Event
    fit_epsilon: float  # of one training if its only private step is the final one
    fits: dict[tuple[int, int], Fit]
    refits: tuple[Fit, ...]  # by candidate; empty without a refit
    # Standard deviation of the noise on a released sum of scores; 0 if none is released.
    score_noise: float

    def accountant(self) -> PLDAccountant:
        """Return an accountant that has composed the entire search."""
        return PLDAccountant(adjacency=self.design.adjacency).compose(self.event)


def plan_search(design: Design) -> PricedSearch:
    """Return the plan with the largest inner epsilon that meets the target of the search.

    The cost is that of `PLDAccountant`. Raise a CalibrationError if too little is left for a fit.
    """
    finder = _Finder(design)
    finder.bracket(_first_guess(design))
    finder.narrow()
    assert finder.best is not None
    _check_columns_do_not_matter(finder.best)
    return finder.best


class _Finder:
    """Search for the largest affordable inner epsilon, on a logarithmic scale."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.best: PricedSearch | None = None
        # Largest affordable logarithm, smallest other one, and the excess there: of the logarithm
        # of delta over that of the target.
        self.low = (-math.inf, 0.0)
        self.high = (math.inf, 0.0)

    def bracket(self, epsilon: float) -> None:
        """Move away from a first guess until the target is between two trials."""
        place, step = math.log(epsilon), 0.2
        least = math.log(self.design.epsilon * _SMALLEST_SHARE)
        most = math.log(self.design.epsilon / _SMALLEST_SHARE)
        self._try(place)
        while not math.isfinite(self.high[0] - self.low[0]):
            if self.high[0] < least:
                raise CalibrationError(
                    f"{len(self.design.candidates)} candidates with method={self.design.method!r} "
                    f"leave too little budget per fit within epsilon={self.design.epsilon:g} and "
                    f"delta={self.design.delta:g}: use fewer candidates or folds, or another "
                    "method."
                )
            if self.low[0] > most:
                return  # the price does not grow with the inner epsilon
            place = self.low[0] + step if math.isinf(self.high[0]) else self.high[0] - step
            self._try(place)
            step *= 2.0

    def narrow(self) -> None:
        """Interpolate between the two trials until they are close."""
        earlier, last = math.inf, math.inf
        while (width := self.high[0] - self.low[0]) > _ACCURACY and math.isfinite(width):
            (left, below), (_, above) = self.low, self.high
            # If another part of the cost dominates on one side, bisect instead.
            useful = width <= 0.5 * earlier and math.isfinite(above - below)
            share = below / (below - above) if useful else 0.5
            earlier, last = last, width
            # Try just below the interpolated point, which is probably affordable, then just above
            # it; stay away from the ends.
            margin = min(0.4 * _ACCURACY / width, 0.25)
            share += -margin if self._aims_low else margin
            self._aims_low = not self._aims_low
            self._try(left + width * min(max(share, margin, 0.02), 1.0 - max(margin, 0.02)))

    _aims_low = True

    def _try(self, place: float) -> None:
        try:
            plan = _plan_with(self.design, math.exp(place))
            delta = float(plan.accountant().delta(self.design.epsilon))
        except CalibrationError:
            self.high = (place, math.inf)
            return
        excess = math.log(delta / self.design.delta) if delta > 0.0 else -math.inf
        if excess <= 0.0:
            self.low, self.best = (place, excess), plan
        else:
            self.high = (place, excess)


def _first_guess(design: Design) -> float:
    """Return the inner epsilon if everything were Gaussian."""
    mu = gaussian_profile.mu(design.epsilon, design.delta)
    trainings = design.trainings
    if design.method == "random-stopping":
        trainings = _PRICE_OF_REPEATING
    mu /= math.sqrt(trainings / (1.0 - design.refit * design.refit_share))
    return max(gaussian_profile.epsilon(mu, design.fit_delta), 1e-3 * design.epsilon)


def _plan_with(design: Design, epsilon: float) -> PricedSearch:
    """Return the plan with a given inner epsilon, at any cost."""
    fits = {
        (number, size): _fit(design, steps, epsilon, size)
        for number, steps in enumerate(design.candidates)
        for size in sorted(set(design.train_sizes))
    }
    refits: tuple[Fit, ...] = ()
    event = _search_event(design, epsilon, fits)
    if design.refit:
        refit_epsilon = design.refit_factor * epsilon
        refits = tuple(
            _fit(design, each, refit_epsilon, design.n_rows) for each in design.candidates
        )
        event = _append(event, _choose_afterwards(refits))
    return PricedSearch(design, event, epsilon, fits, refits, _score_noise(design, epsilon))


def _fit(design: Design, steps: tuple[PrivateStep, ...], epsilon: float, size: int) -> Fit:
    return plan_fit(
        steps,
        epsilon=epsilon,
        delta=design.fit_delta,
        adjacency=design.adjacency,
        shape=(size, design.n_columns),
        n_classes=design.n_classes,
        by_unit=design.by_unit,
    )


def _search_event(design: Design, epsilon: float, fits: dict[tuple[int, int], Fit]) -> Event:
    if design.method == "random-stopping":
        score = GaussianEvent(_score_multiplier(design, epsilon))
        # A record affects one run by the training of one candidate, or by the score.
        runs = dict.fromkeys([*(fit.event for fit in fits.values()), score])
        return RepeatAndSelectEvent(_one_of(tuple(runs)), design.mean, design.shape)
    selection: Event = PureDPEvent(design.selection_epsilon)
    if design.noisy_scores:
        selection = GaussianEvent(_score_multiplier(design, epsilon))
    if design.method != "cv":
        size = design.train_sizes[0]
        trained = _compose(Counter(fits[number, size].event for number in design.runs))
        return _one_of((trained, selection))
    folds: dict[frozenset[tuple[Event, int]], Event] = {}
    for own in range(len(design.train_sizes)):
        # A record of this fold is in the training parts of all other folds.
        sizes = Counter(size for fold, size in enumerate(design.train_sizes) if fold != own)
        counts: Counter[Event] = Counter()
        for number in design.runs:
            for size, times in sizes.items():
                counts[fits[number, size].event] += times
        folds.setdefault(frozenset(counts.items()), _compose(counts))
    return _append(_one_of(tuple(folds.values())), selection)


def _compose(counts: Counter[Event]) -> Event:
    each = (event if n == 1 else RepeatedEvent(event, n) for event, n in counts.items())
    return ComposedEvent(tuple(each))


def _one_of(events: tuple[Event, ...]) -> Event:
    return events[0] if len(events) == 1 else OneOfEvent(events)


def _append(event: Event, later: Event) -> Event:
    """Compose with a release on all rows; parts of records are unchanged."""
    parts = event.events if isinstance(event, OneOfEvent) else (event,)
    return _one_of(tuple(ComposedEvent((part, later)) for part in parts))


def _choose_afterwards(fits: tuple[Fit, ...]) -> Event:
    """Return an event for a fit of the candidate that the search will have chosen."""
    # The choice depends on the rows through released results, so the largest of several composed
    # profiles is no bound: one event must dominate all of them, or their common guarantee is used.
    events = [fit.event for fit in fits]
    for candidate in events:
        if all(costs_no_more(event, candidate) for event in events):
            return candidate
    epsilons, deltas = zip(*(fit.guarantee for fit in fits), strict=True)
    return ApproxDPEvent(max(epsilons), max(deltas))


def _score_multiplier(design: Design, epsilon: float) -> float:
    """Return noise over L2 sensitivity of the released scores."""
    if design.method == "random-stopping":
        return analytic_gaussian_sigma(epsilon, design.fit_delta)
    whole = design.method != "cv" and not design.refit
    delta = design.delta if whole else design.fit_delta
    return analytic_gaussian_sigma(design.selection_epsilon, delta)


def _score_noise(design: Design, epsilon: float) -> float:
    if design.method == "random-stopping":
        return _score_multiplier(design, epsilon)
    if not design.noisy_scores:
        return 0.0
    # One record changes the sum of every run, or candidate, by at most 1.
    return math.sqrt(len(design.runs)) * _score_multiplier(design, epsilon)


def _check_columns_do_not_matter(plan: PricedSearch) -> None:
    """Refuse steps with a cost that depends on the number of columns from earlier steps."""
    design = plan.design
    if not any(step.name for steps in design.candidates for step in steps):
        return  # each is a candidate by itself and sees the table's columns
    wider = Design(**{**vars(design), "n_columns": 2 * design.n_columns + 3})
    wide = _plan_with(wider, plan.fit_epsilon)
    pairs = [(wide.fits[key], fit) for key, fit in plan.fits.items()]
    pairs += zip(wide.refits, plan.refits, strict=True)
    pairs += [pair[::-1] for pair in pairs]  # either may cost more
    # Both have the margin, half of which is allowed for rounding.
    less_noise = 1.0 - PLANNING_MARGIN / 2
    if not all(costs_no_more(one.event, with_noise(dear.event, less_noise)) for one, dear in pairs):
        raise ValueError(
            "The privacy cost of a private step depends on its number of columns, which is known "
            "only after earlier steps have run."
        )


def mechanism(plan: PricedSearch) -> str:
    """Return the mechanism and its theorem."""
    design = plan.design
    count = len(design.candidates)
    if design.method == "random-stopping":
        law = (
            f"a Poisson number of runs of mean {design.mean:g}"
            if math.isinf(design.shape)
            else "a truncated negative binomial number of runs of shape "
            f"{design.shape:g} and mean {design.mean:g}"
        )
        text = (
            f"private selection by random stopping: {law}; each trains one of {count} candidates, "
            "drawn at random, and scores it on a disjoint part with Gaussian noise; the run with "
            "the best noisy score is released (Papernot & Steinke 2022, with a bound on the entire "
            "privacy profile)"
        )
    else:
        selector = (
            "the best of Gaussian noisy scores"
            if design.noisy_scores
            else f"permute-and-flip with epsilon={design.selection_epsilon:.6g} "
            "(McKenna & Sheldon 2020)"
        )
        where = (
            "on a disjoint part of the rows, where a record is in one of the two parts"
            if design.method != "cv"
            else f"by {len(design.train_sizes)}-fold cross-validation, where a record is in all "
            "training parts but one"
        )
        runs = f"{len(design.runs)} runs (a public number) of " * (design.method == "fixed")
        text = f"composition of the training of {runs}{count} candidates; {selector} {where}"
    if design.refit:
        text += "; the chosen candidate is trained once more on all rows"
    return text


def assumptions(plan: PricedSearch, scorer: RowScorer) -> tuple[str, ...]:
    """Return the assumptions of the guarantee."""
    design = plan.design
    rows = "units" if design.by_unit else "rows"
    labels = "the label set " * (design.n_classes > 1)
    found = [
        f"the number of {rows}, the columns, {labels}and all parameters, the grid included, are "
        "public",
        f"{rows} are divided into parts at random, without looking at them",
        f"the score {scorer.name!r} is a sum over {rows} of values in [{scorer.lower:g}, "
        f"{scorer.upper:g}]",
        "steps classed as independent of the data are",
        *design.assumptions,
        about_units("its score is the mean of theirs") if design.by_unit else "a record is one row",
        *(f"of trainings: {text}" for each in _trainings(plan) for text in each.assumptions),
        "rows do not decide whether the training of a run fails",
    ]
    if design.method == "random-stopping":
        found.append("the number of runs, the losing runs and the run time stay unknown")
    if design.adjacency == "add-remove":
        found.append(f"the sizes of the parts, drawn independently by {rows}, are public")
    return tuple(dict.fromkeys(found))


def arithmetic(plan: PricedSearch) -> str:
    """Return the assumptions on the arithmetic of trainings and scores."""
    trainings = "; ".join(dict.fromkeys(each.arithmetic for each in _trainings(plan)))
    same = trainings == REAL_NUMBERS
    return trainings if same else f"of trainings: {trainings}; of scores: {REAL_NUMBERS}"


def _trainings(plan: PricedSearch) -> list[PrivacySpent]:
    return [step for fit in (*plan.fits.values(), *plan.refits) for step in fit.plans]


def list_releases(plan: PricedSearch) -> tuple[str, ...]:
    """Return the names of the released attributes."""
    design = plan.design
    names = ["best_index_", "best_params_"]
    if design.method != "cv" or design.refit:
        names.append("best_estimator_")
    if design.method == "random-stopping" or design.noisy_scores:
        names.append("best_score_")
    if design.method != "random-stopping" and design.noisy_scores:
        names.append("noisy_scores_")
    return tuple(names)
