"""Noise on vectors of integers: drawn exactly, priced by an event, and how far it reaches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from skdp.accounting import (
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    RepeatedEvent,
    calibrate_event,
)
from skdp.choices import Adjacency
from skdp.mechanisms import RandomStream
from skdp.mechanisms.contribution import ROUND_UP
from skdp.mechanisms.discrete_gaussian import Noise as GaussianNoise
from skdp.mechanisms.discrete_gaussian import discrete_gaussians
from skdp.mechanisms.discrete_laplace import discrete_laplaces
from skdp.mechanisms.trace import note_release

# What one record weighs where it is shared out among cells, or counted in fractions.
UNIT = 2**30
# Relative rounding errors of quantiles in closed form, generously.
_MARGIN = 1e-12


class Query(NamedTuple):
    """A vector of integers, and how far neighbours' vectors are apart.

    With a `unit` of 1 the entries are counts, and `l1` of them change by one at most. No entry
    changes by more than `largest`, which is the unit where nothing else is said.
    """

    label: str
    unit: int
    l1: int
    l2_squared: int
    largest: int | None = None

    @classmethod
    def shares(cls, label: str, adjacency: Adjacency, unit: int = 1) -> Query:
        """Return the query whose records add numbers of at least 0 that sum to `unit` at most."""
        changed = 1 if adjacency == "add-remove" else 2
        return cls(label, unit, changed * unit, changed * unit**2)

    @classmethod
    def number(cls, label: str, change: int, unit: int = 1) -> Query:
        """Return the query for a single number that changes by `change` at most."""
        return cls(label, unit, change, change**2, change)


@dataclass(frozen=True)
class Noise:
    """Independent noise on integers; both `scale` and what it returns are in integers."""

    query: Query
    kind: str
    scale: Fraction
    event: Event

    @classmethod
    def laplace(cls, query: Query, people: float | Fraction) -> Noise:
        """Return discrete Laplace noise of a scale of that many records, rounded up."""
        wanted = Fraction(people) * query.unit / query.l1
        multiplier = float(wanted)
        if Fraction(multiplier) < wanted:
            multiplier = math.nextafter(multiplier, math.inf)
        event = DiscreteLaplaceEvent(multiplier, query.l1)
        return cls(query, "laplace", Fraction(multiplier) * query.l1, event)

    @classmethod
    def gaussian(cls, query: Query, people: float | Fraction) -> Noise:
        """Return discrete Gaussian noise of a scale of that many records."""
        if query.unit == 1:
            if query.largest not in (None, 1) or query.l2_squared > query.l1:
                raise ValueError(f"{query.label}: the event is for counts that change by one.")
            one = DiscreteGaussianEvent(float(people), 1)
            return cls(query, "gaussian", Fraction(float(people)), repeated(one, query.l1))
        # On a fine grid it is as good as continuous noise (docs/proofs/discrete_noise.md,
        # Theorem 2).
        scale = math.ceil(Fraction(people) * query.unit)
        sensitivity = math.sqrt(query.l2_squared) * ROUND_UP
        worth = GaussianNoise(sensitivity, float(scale), 1.0).multiplier
        return cls(query, "gaussian", Fraction(scale), GaussianEvent(worth))

    @property
    def people(self) -> float:
        """The scale in records."""
        return float(self.scale / self.query.unit)

    def half_width(self, failure: float, count: int = 1) -> int:
        """Return a w that none of `count` draws exceeds in size, but with probability `failure`."""
        each = -math.expm1(math.log1p(-failure) / count) * (1.0 - _MARGIN)
        scale = float(self.scale) * (1.0 + _MARGIN)
        if self.kind == "gaussian":
            # P(X >= w + 1) <= P(N >= w) for a normal N of that deviation.
            return math.ceil(-scale * float(ndtri(0.5 * each)) * (1.0 + _MARGIN))
        # P(|X| > w) = 2 r^(w + 1) / (1 + r) with r = e^(-1 / scale).
        reach = scale * math.log(2.0 / ((1.0 + math.exp(-1.0 / scale)) * each))
        return max(0, math.ceil(reach * (1.0 + _MARGIN)) - 1)

    def release(self, exact: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return integers with noise added, as floats in integers, exact below 2^53."""
        return self.add(exact, self.draw(stream, exact.size))

    def draw(self, stream: RandomStream, count: int) -> list[int]:
        """Return noise for so many numbers."""
        draw = discrete_laplaces if self.kind == "laplace" else discrete_gaussians
        return draw(stream, self.scale, count)

    def add(self, exact: np.ndarray, noise: list[int]) -> np.ndarray:
        """Return what `release` does, with noise that is drawn already and used once."""
        noisy = [value + extra for value, extra in zip(exact.ravel().tolist(), noise, strict=True)]
        output = np.array([float(value) for value in noisy]).reshape(exact.shape)
        norm, distance = 1.0, float(self.query.l1)
        if self.kind == "gaussian":
            norm, distance = 2.0, math.sqrt(self.query.l2_squared)
        label = self.query.label
        return note_release(
            label, exact.astype(np.float64), output, distance, float(self.scale), norm
        )


class Plan(NamedTuple):
    """The noise of some queries on the same rows, and what all together cost."""

    noises: tuple[Noise, ...]
    event: Event


def plan_noise(
    queries: Sequence[Query],
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    mechanism: str,
    failure: float,
) -> Plan:
    """Return noise of one scale, in records, with which all queries together cost the target.

    Of two mechanisms it is the one whose noise on the first query is narrower.
    """
    kinds = ("laplace", "gaussian") if mechanism == "auto" else (mechanism,)
    if delta == 0.0:
        weight = sum(Fraction(query.l1, query.unit) for query in queries)
        return _plan("laplace", queries, weight / Fraction(epsilon))

    def calibrated(kind: str) -> Plan:
        people = calibrate_event(
            lambda scale: _plan(kind, queries, scale).event, epsilon, delta, adjacency=adjacency
        )
        return _plan(kind, queries, people)

    return min(map(calibrated, kinds), key=lambda plan: plan.noises[0].half_width(failure))


def _plan(kind: str, queries: Sequence[Query], people: float | Fraction) -> Plan:
    make = {"laplace": Noise.laplace, "gaussian": Noise.gaussian}[kind]
    noises = tuple(make(query, people) for query in queries)
    counts = Counter(noise.event for noise in noises)
    events = [repeated(event, count) for event, count in counts.items()]
    return Plan(noises, events[0] if len(events) == 1 else ComposedEvent(tuple(events)))


def repeated(event: Event, count: int) -> Event:
    """Return an event that happens `count` times."""
    return event if count == 1 else RepeatedEvent(event, count)
