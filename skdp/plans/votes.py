"""Plan of noisy votes: teachers on disjoint parts label public rows. Proofs: docs/proofs/pate.md.

One record reaches one teacher, whose vote on a query moves from one count to another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skdp.accounting import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    RepeatedEvent,
    calibrate_event,
)
from skdp.mechanisms.contribution import ROUND_UP, Adjacency
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import note_release

Aggregation = Literal["gaussian", "laplace", "confident-gaussian"]
AGGREGATIONS: tuple[Aggregation, ...] = ("gaussian", "laplace", "confident-gaussian")
UNANSWERED = -1
# Norm of the change of one query's counts, and of their maximum.
_VOTE, _MAXIMUM = math.sqrt(2.0) * ROUND_UP, 1.0


@dataclass(frozen=True)
class Threshold:
    """What "confident-gaussian" asks of the largest count, and how many queries it may answer.

    `ratio` is the noise of the test over that of the votes.
    """

    votes: float
    ratio: float
    max_answers: int

    @classmethod
    def with_share(
        cls, votes: float, share: float, n_queries: int, max_answers: int
    ) -> Threshold:
        """Return the threshold whose tests cost a share of all that is spent, in squared mu."""
        tests, answers = n_queries * _MAXIMUM**2 / share, max_answers * _VOTE**2 / (1.0 - share)
        return cls(votes, math.sqrt(tests / answers), max_answers)


@dataclass(frozen=True)
class VotePlan:
    """Everything that must agree about the votes of one fit; `noise` is that of one count."""

    n_teachers: int
    n_queries: int
    aggregation: Aggregation
    adjacency: Adjacency
    noise: float
    threshold: Threshold | None = None

    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, adjacency: Adjacency, **settings: object
    ) -> VotePlan:
        """Return the plan with the least noise that keeps within (epsilon, delta)."""

        def plan(noise: float) -> VotePlan:
            return cls(adjacency=adjacency, noise=noise, **settings)  # type: ignore[arg-type]

        return plan(
            calibrate_event(lambda z: plan(z).event, epsilon, delta, adjacency=adjacency)
        )

    @property
    def event(self) -> Event:
        """What is accounted for; it is the same under both relations."""
        if self.aggregation == "laplace":
            # A vote moves two counts by 1 each: its argmax alone would be 2/b-DP, never 1/b.
            return RepeatedEvent(LaplaceEvent(self.noise), 2 * self.n_queries)
        votes = GaussianEvent(self.noise / _VOTE)
        if self.threshold is None:
            return RepeatedEvent(votes, self.n_queries)
        tests = GaussianEvent(self.noise * self.threshold.ratio / _MAXIMUM)
        answers = RepeatedEvent(votes, self.threshold.max_answers)
        return ComposedEvent((RepeatedEvent(tests, self.n_queries), answers))

    def label(self, counts: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return a class for each query, from noisy counts; UNANSWERED where there is none."""
        found = np.full(self.n_queries, UNANSWERED)
        asked = self._pass_threshold(counts, stream)
        if asked.size:
            noisy = self._release(counts[asked], stream.spawn("votes"))
            found[asked] = noisy.argmax(axis=1)
        return found

    def _pass_threshold(self, counts: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return the queries to answer, by noisy maxima: the first ones, at most `max_answers`."""
        if self.threshold is None:
            return np.arange(self.n_queries)
        mechanism = GaussianMechanism(
            sensitivity=_MAXIMUM * math.sqrt(self.n_queries),
            sigma=self.noise * self.threshold.ratio,
            stream=stream.spawn("threshold"),
            label="largest counts",
        )
        passed = mechanism.release(counts.max(axis=1)) > self.threshold.votes
        return np.flatnonzero(passed)[: self.threshold.max_answers]

    def _release(self, counts: np.ndarray, stream: RandomStream) -> np.ndarray:
        if self.aggregation == "laplace":
            noisy = counts + self.noise * stream.laplace(counts.shape)
            return note_release("votes", counts, noisy, 2.0 * len(counts), self.noise, norm=1.0)
        mechanism = GaussianMechanism(
            sensitivity=_VOTE * math.sqrt(len(counts)),
            sigma=self.noise,
            stream=stream,
            label="votes",
        )
        return mechanism.release(counts)
