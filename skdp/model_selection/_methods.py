"""Methods to choose a candidate privately; they use the rows after the charge."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skdp.exceptions import SkdpError
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.mechanisms.samplers import RandomStopping
from skdp.mechanisms.selection import permute_and_flip
from skdp.model_selection._plan import PricedSearch
from skdp.model_selection._runs import Job, Outcome, Table, carry_out, prepare_fit
from skdp.model_selection._scoring import RowScorer
from skdp.model_selection._steps import Fit, PrivateStep
from skdp.running import around_runs, lift_silence, shown


@dataclass(frozen=True)
class Candidate:
    """One point of the grid."""

    parameters: dict[str, Any]
    estimator: Any  # the estimator with these parameters, unfitted
    steps: tuple[PrivateStep, ...]


@dataclass(frozen=True)
class Choice:
    """The release of a search: the candidate, its model, and scores if any."""

    number: int
    model: Any  # the fitted model, if the method releases one
    # Noisy means of the scaled scores of all runs or candidates, or of the chosen run.
    scores: np.ndarray | None


@dataclass
class Search:
    """A search in progress."""

    plan: PricedSearch
    candidates: list[Candidate]
    table: Table
    parts: list[np.ndarray]  # row numbers: the training and the scoring part, or the folds
    labels: np.ndarray | None
    scorer: RowScorer
    stream: RandomStream  # source of all randomness except the division into parts
    n_jobs: int | None
    # Called with the number of finished runs; None if that is not public.
    announce: Callable[[int], None] | None
    bar: bool = False  # whether to show a progress bar, if the number of runs is public

    def choose(self) -> Choice:
        """Run the method and return its release."""
        return _METHODS[self.plan.design.method](self)

    def refit_choice(self, number: int) -> Any:
        """Train a candidate on all rows."""
        job = self.job(number, self.plan.refits[number], "refit", keep=True)
        return _sound(self.run([job])).model

    def job(
        self,
        number: int,
        fit: Fit,
        label: str,
        *,
        train: np.ndarray | None = None,
        test: np.ndarray | None = None,
        keep: bool = False,
    ) -> Job:
        """Return a run of a candidate with a unique label."""
        candidate = self.candidates[number]
        given = (self.plan.design.adjacency, self.labels)
        copy = prepare_fit(candidate.estimator, candidate.steps, fit, *given)
        key = self.stream.spawn(label).words(4).tobytes()
        return Job(copy, candidate.steps, train, test, key, self.stream.seeded, keep)

    def run(self, jobs: list[Job]) -> list[Outcome]:
        """Carry out runs and return their outcomes, including failures."""
        outcomes: list[Outcome] = []
        n_shown = len(jobs) if self.bar and self.announce is not None else 0
        with shown("runs of the search", n_shown) as done, around_runs():
            # Set explicitly, since joblib's context could print the number of runs.
            parallel = Parallel(n_jobs=self.n_jobs, return_as="generator", verbose=0)
            calls = (delayed(carry_out)(job, self.table, self.scorer) for job in jobs)
            for outcome in parallel(calls):
                outcomes.append(outcome)
                if self.announce is not None:
                    with lift_silence():
                        self.announce(len(outcomes))
                        done(len(outcomes))
        return outcomes

    def compare(self, numbers: Iterable[int], label: str, *, keep: bool) -> list[Outcome]:
        """Train candidates on one part, once per occurrence, and score them on the other."""
        train, test = self.parts
        jobs = []
        for place, number in enumerate(numbers):
            fit, name = self.plan.fits[number, len(train)], f"{label} {place}"
            jobs.append(self.job(number, fit, name, train=train, test=test, keep=keep))
        return self.run(jobs)

    def noisy(self, totals: np.ndarray, label: str) -> np.ndarray:
        """Release noisy sums of scores that one record changes by at most 1 each."""
        moved, scale = math.sqrt(len(totals)), self.plan.score_noise
        return Release("sum of scores", moved, scale=scale).make(totals, self.stream.spawn(label))


def _sound(outcomes: list[Outcome]) -> Outcome:
    """Return the first successful outcome of the chosen candidate, or raise its error."""
    failure = outcomes[0].failure
    if failure is None or any(outcome.failure is None for outcome in outcomes):
        return outcomes[0]
    if isinstance(failure, SkdpError):
        raise failure
    raise type(failure)(
        f"The chosen fit of the search failed: {failure} The charge is not refunded. Try the "
        "candidates on public or synthetic rows first: an error in a private search can reveal "
        "information about rows that no budget covers."
    )


def _random_stopping(search: Search) -> Choice:
    """Best of a random number of runs of random candidates; see `RepeatAndSelectEvent`."""
    design = search.plan.design
    runs = RandomStopping(design.mean, design.shape).draw(search.stream.spawn("number of runs"))
    if runs == 0:
        raise SkdpError(
            "The random number of runs is zero, so there is no model. The charge is not refunded. "
            f"With a Poisson number this has probability exp(-{design.mean:g}): increase "
            "expected_candidates, or use a finite stopping_shape."
        )
    drawn = search.stream.spawn("candidates").uniform(runs) * len(search.candidates)
    numbers = drawn.astype(int)
    outcomes = search.compare(numbers.tolist(), "run", keep=True)
    totals = (np.array([outcome.total]) for outcome in outcomes)
    scores = np.array([search.noisy(one, f"score {k}")[0] for k, one in enumerate(totals)])
    # Ties are broken by an independent random number per run.
    coins = search.stream.spawn("ties").uniform(runs)
    best = int(np.lexsort((coins, scores))[-1])
    model = _sound([outcomes[best]]).model
    return Choice(int(numbers[best]), model, scores[[best]] / max(len(search.parts[1]), 1))


def _holdout(search: Search) -> Choice:
    """Best of a public number of runs, scored on rows outside their training part."""
    design = search.plan.design
    outcomes = search.compare(design.runs, "candidate", keep=not design.refit)
    totals = np.array([outcome.total for outcome in outcomes])
    best, scores = _select(search, totals, len(search.parts[1]))
    return Choice(design.runs[best], _sound([outcomes[best]]).model, scores)


def _cross_validation(search: Search) -> Choice:
    """Best of all candidates by the sum of their scores on all folds."""
    n_rows, n_folds = search.plan.design.n_rows, len(search.parts)
    jobs = []
    for number in range(len(search.candidates)):
        for fold, test in enumerate(search.parts):
            train = np.setdiff1d(np.arange(n_rows), test, assume_unique=True)
            fit = search.plan.fits[number, len(train)]
            label = f"candidate {number}, fold {fold}"
            jobs.append(search.job(number, fit, label, train=train, test=test))
    outcomes = search.run(jobs)
    totals = [outcome.total for outcome in outcomes]
    sums = np.array(totals).reshape(len(search.candidates), n_folds).sum(axis=1)
    number, scores = _select(search, sums, n_rows)
    _sound(outcomes[number * n_folds : (number + 1) * n_folds])
    return Choice(number, None, scores)


def _select(search: Search, totals: np.ndarray, n_scored: int) -> tuple[int, np.ndarray | None]:
    """Choose by sums that one record changes by at most 1 each, and release them if requested."""
    design = search.plan.design
    if design.noisy_scores:
        noisy = search.noisy(totals, "selection")
        return int(np.argmax(noisy)), noisy / max(n_scored, 1)
    # Under add-remove, a record can only increase sums, or only decrease them.
    monotone = design.adjacency == "add-remove"
    given = (totals, design.selection_epsilon, 1.0, search.stream.spawn("selection"))
    return permute_and_flip(*given, monotone=monotone), None


_METHODS: dict[str, Callable[[Search], Choice]] = {
    "random-stopping": _random_stopping,
    "holdout": _holdout,
    "fixed": _holdout,
    "cv": _cross_validation,
}
