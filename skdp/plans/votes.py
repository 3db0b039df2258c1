"""Plan of noisy votes: teachers on disjoint parts label public rows.

One record reaches one teacher, whose vote on a query moves from one count to another. Proofs:
Theorems 1 to 3 of ``docs/proofs/pate.md``.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from skdp.accounting import Event, LaplaceEvent, calibrate_event
from skdp.mechanisms.contribution import ROUND_UP, Adjacency
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release, compose
from skdp.mechanisms.trace import note_release
from skdp.plans.protocol import OnAllRows

AGGREGATIONS = ("gaussian", "laplace", "confident-gaussian")
UNANSWERED = -1
# Norm of the change of one query's counts, and of their maximum.
_VOTE, _MAXIMUM = math.sqrt(2.0) * ROUND_UP, 1.0


@dataclass(frozen=True)
class Threshold:
    """Threshold of "confident-gaussian" on the largest count, and its maximal number of answers.

    `ratio` is the noise of the test over that of the votes.
    """

    votes: float
    ratio: float
    max_answers: int

    @classmethod
    def with_share(cls, share: float, votes: float, n_queries: int, max_answers: int) -> Threshold:
        """Return the threshold whose tests take a share of the total cost, in squared mu."""
        if max_answers > n_queries:
            raise ValueError(f"max_answers={max_answers} exceeds the {n_queries} queries.")
        tests, answers = n_queries * _MAXIMUM**2 / share, max_answers * _VOTE**2 / (1.0 - share)
        return cls(votes, math.sqrt(tests / answers), max_answers)


@dataclass(frozen=True)
class _LaplaceCounts(Release):
    """Counts with Laplace noise, at most `times` of which change, each by 1."""

    @property
    def _single(self) -> Event:
        return LaplaceEvent(self.sigma)

    def make(self, exact: np.ndarray, stream: RandomStream) -> np.ndarray:
        noisy = exact + self.sigma * stream.laplace(exact.shape)
        return note_release(self.label, exact, noisy, 2.0 * len(exact), self.sigma, norm=1.0)


@dataclass(frozen=True)
class VotePlan(OnAllRows):
    """Everything that must agree about the votes of one fit; `noise` is that of one count."""

    n_teachers: int
    n_queries: int
    aggregation: str
    adjacency: Adjacency
    noise: float
    threshold: Threshold | None = None

    grid = 0.0

    def calibrated(self, epsilon: float, delta: float) -> VotePlan:
        """Return the plan with the least noise that keeps within (epsilon, delta)."""
        noise = calibrate_event(
            lambda z: replace(self, noise=z).event, epsilon, delta, adjacency=self.adjacency
        )
        return replace(self, noise=noise)

    @property
    def releases(self) -> tuple[Release, ...]:
        """Largest counts, where tested, and votes; the same under both adjacency relations."""
        if self.aggregation == "laplace":
            # A vote moves two counts by 1 each: its argmax alone would be 2/b-DP, never 1/b.
            return (_LaplaceCounts("votes", 1.0, times=2 * self.n_queries, scale=self.noise),)
        votes = Release("votes", _VOTE, times=self.n_queries, scale=self.noise)
        if self.threshold is None:
            return (votes,)
        scale = self.noise * self.threshold.ratio
        tests = Release("largest counts", _MAXIMUM, times=self.n_queries, scale=scale)
        return tests, replace(votes, times=self.threshold.max_answers)

    @property
    def event(self) -> Event:
        """All releases of the votes, for the accountants."""
        return compose(self.releases)

    def describe(self) -> str:
        """Describe the released values, for the statement."""
        kind = "Laplace noise of scale" if self.aggregation == "laplace" else "Gaussian noise of"
        text = (
            f"{self.n_teachers} teachers on disjoint parts vote on {self.n_queries} public rows; "
            f"{kind} {self.noise:.6g} on every count; a record changes two counts by 1"
        )
        if self.threshold is None:
            return text
        return (
            f"{text}; at most {self.threshold.max_answers} queries are answered, those whose "
            f"largest count with noise of {self.threshold.ratio * self.noise:.6g} exceeds "
            f"{self.threshold.votes:g}"
        )

    def label(self, counts: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return a class for each query, from noisy counts; UNANSWERED where there is none."""
        found = np.full(self.n_queries, UNANSWERED)
        # The code of teachers may differ where its name does not: then they share no noise.
        stream = stream.bound_to(hashlib.blake2b(counts.tobytes()).digest())
        asked = self._pass_threshold(counts, stream)
        if asked.size:
            votes = self.releases[-1].at_once(asked.size)
            noisy = votes.make(counts[asked], stream.spawn("votes"))
            found[asked] = noisy.argmax(axis=1)
        return found

    def _pass_threshold(self, counts: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return the queries to answer, by noisy maxima: the first ones, at most `max_answers`."""
        if self.threshold is None:
            return np.arange(self.n_queries)
        largest = self.releases[0].at_once(self.n_queries)
        noisy = largest.make(counts.max(axis=1), stream.spawn("threshold"))
        passed = noisy > self.threshold.votes
        return np.flatnonzero(passed)[: self.threshold.max_answers]
