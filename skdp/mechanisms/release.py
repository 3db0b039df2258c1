"""Releases: sums over records, the distance between neighbours' sums, and the noise.

A private computation is a list of releases and a public function of their outputs. Sensitivities
are lemmas of ``docs/proofs/sensitivities.md``; the event of each release gives its privacy cost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
from scipy.special import ndtri

from skdp.accounting import (
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    NormExponentialEvent,
    RepeatedEvent,
)
from skdp.accounting.numerics.arithmetic import decimal_up, float_up, read_decimal
from skdp.mechanisms.additive import AdditiveMechanism, GaussianMechanism, NormExponentialMechanism
from skdp.mechanisms.analytic_gaussian import (
    analytic_gaussian_sigma,
    check_representable,
)
from skdp.mechanisms.contribution import ROUND_UP, Adjacency, ContributionBound
from skdp.mechanisms.discrete import LARGEST_STEP, scale_on_grid, worth_on_grid
from skdp.mechanisms.random_stream import RandomStream

Law = Literal["gaussian", "laplace"]

# Relative rounding errors of quantiles in closed form, generously.
_MARGIN = 1e-12


@dataclass(frozen=True)
class Release:
    """One vector, or several of a kind that may depend on earlier outputs, and its noise.

    `shares`, `number` and `bounded` create one without noise. Later methods return it with noise,
    which all others need.
    """

    label: str
    l2: float  # distance of neighbours' vectors, in the Euclidean and in the L1 norm
    l1: float = math.inf
    unit: int = 0  # size of a record in integers; 0 for real numbers
    largest: int | None = None  # change of a single integer; None for one unit
    reason: str = ""  # of the bound on a record, for the statement
    times: int = 1  # number of vectors, fixed in advance
    law: Law = "gaussian"
    scale: float | Fraction = 0.0  # of the noise on every number; exact on integers
    grid: float = 0.0  # of values and noise; 0 for continuous noise

    @classmethod
    def integers(cls, label: str, l1: int, l2_squared: int, unit: int, **others: Any) -> Self:
        """Return a sum of integers, or of real numbers with a `unit` of 0."""
        return cls(label, math.sqrt(l2_squared) * ROUND_UP, l1, unit, **others)

    @classmethod
    def shares(cls, label: str, adjacency: Adjacency, unit: int = 1) -> Self:
        """Return a sum of non-negative numbers that sum to at most `unit` per record.

        A `unit` of 0 stands for real numbers that sum to at most 1.
        """
        changed, total = (1 if adjacency == "add-remove" else 2), unit or 1
        return cls.integers(label, changed * total, changed * total**2, unit)

    @classmethod
    def number(cls, label: str, change: int, unit: int = 1) -> Release:
        """Return a single number that changes by at most `change`."""
        return cls.integers(label, change, change**2, unit, largest=change)

    @classmethod
    def bounded(
        cls, label: str, bound: ContributionBound, adjacency: Adjacency, times: int = 1
    ) -> Release:
        """Return a sum of vectors from a set of known radius and diameter."""
        return cls(label, bound.sensitivity(adjacency), reason=bound.reason, times=times)

    def laplace(self, people: float | Fraction) -> Release:
        """Return integers with discrete Laplace noise of a scale in records, rounded up."""
        wanted = Fraction(people) * self.unit / Fraction(self.l1)
        multiplier = float(wanted)
        if Fraction(multiplier) < wanted:
            multiplier = math.nextafter(multiplier, math.inf)
        scale = Fraction(multiplier) * Fraction(self.l1)
        return replace(self, law="laplace", scale=scale, grid=1.0)

    def gaussian(self, people: float | Fraction) -> Release:
        """Return integers with discrete Gaussian noise of a scale in records."""
        if self.unit > 1:  # on a fine grid
            scale = Fraction(math.ceil(Fraction(people) * self.unit))
            return replace(self, scale=scale, grid=1.0)
        by_one = self.unit == 1 and self.largest in (None, 1)
        if not by_one or self.l2**2 > self.l1 * (1.0 + _MARGIN):
            raise ValueError(f"{self.label}: the event requires counts that change by one.")
        return replace(self, scale=Fraction(float(people)), grid=1.0)

    def continuous(self, multiplier: float) -> Release:
        """Return real numbers with Gaussian noise."""
        return replace(self, scale=multiplier * self.l2)

    def least(self, epsilon: float, delta: float) -> Release:
        """Return real numbers with the least Gaussian noise for a guarantee.

        It is that of the analytic Gaussian mechanism. T vectors that are mu-GDP each compose to
        ``sqrt(T) mu``-GDP (Dong, Roth & Su 2022, Theorem 3.2 and Corollary 3.3).
        """
        multiplier = analytic_gaussian_sigma(float(epsilon), float(delta))
        if self.times > 1:
            multiplier *= math.sqrt(self.times) * ROUND_UP
        return self.continuous(multiplier)

    def at_once(self, count: int) -> Self:
        """Return several vectors with Gaussian noise as one."""
        return replace(self, l2=self.l2 * math.sqrt(count), times=1)

    def on_grid(self, multiplier: float, count: int) -> Self:
        """Return `count` numbers, rounded to a grid, with discrete Gaussian noise.

        Rounding moves each number by at most half a step. This adds ``grid * sqrt(count)`` to the
        sensitivity, less than a millionth of it.
        """
        moved, scale, grid = scale_on_grid(self.l2, multiplier, count)
        return replace(self, l2=moved, scale=scale, grid=grid)

    def without_delta(self, epsilon: float, count: int, discrete: bool) -> Self:
        """Return `count` numbers with noise for a pure epsilon (Theorems 1 and 2 of the proofs).

        The noise is norm-exponential over all numbers, or discrete Laplace on a grid. The L1 norm
        of the latter is ``sqrt(count)`` times as large, plus a step per number. Scales are rounded
        up so that events have exactly the target's epsilon, also in the decimal notation of
        ledgers.
        """
        inverse = max(1 / Fraction(epsilon), 1 / read_decimal(epsilon))  # however it is read
        multiplier = check_representable(decimal_up(inverse) * ROUND_UP)
        if not discrete:
            return replace(self, law="laplace", scale=check_representable(self.l2 * multiplier))
        share = self.l2 / math.sqrt(count)
        step = min(share, share * count / epsilon) * LARGEST_STEP
        grid = math.ldexp(1.0, math.frexp(step)[1] - 1)
        moved = Fraction(self.l2) * Fraction(math.sqrt(count) * ROUND_UP) / Fraction(grid)
        steps = math.ceil(moved) + count
        scale = math.ceil(steps * Fraction(multiplier))
        sigma = check_representable(float_up(scale * Fraction(grid)))
        return replace(self, l1=steps * grid, law="laplace", scale=sigma, grid=grid)

    @property
    def sensitivity(self) -> float:
        """The distance of neighbours' vectors for the noise, including rounding."""
        return self.l1 if self.law == "laplace" and self.grid > 0.0 else self.l2

    @property
    def multiplier(self) -> float:
        """The equivalent continuous noise over the sensitivity, rounded down."""
        if self.law == "laplace":
            if isinstance(self.scale, Fraction):
                return float(self.scale / Fraction(self.l1))  # exact, see `laplace`
            return math.nextafter(self.scale / self.sensitivity, 0.0)
        if self.grid > 0.0:
            return worth_on_grid(self.sigma, self.grid) / self.l2 * (1.0 - _MARGIN)
        return self.sigma / self.l2

    @property
    def words(self) -> str:
        """Sensitivity and noise, for the statement."""
        first = self.unit == 1 or (self.law == "laplace" and self.grid > 0.0)
        moved = (self.l1 if first else self.l2) / (self.unit or 1)
        laws = {"gaussian": "Gaussian", "laplace": "norm-exponential"}
        if self.grid > 0.0:
            laws = {"gaussian": "discrete Gaussian", "laplace": "discrete Laplace"}
        unit, scale = ("", self.sigma) if self.unit == 0 else (" (records)", self.people)
        norm = "L1" if first else "L2"
        return f"{norm} sensitivity {moved:.6g}{unit}, {laws[self.law]} noise of scale {scale:.6g}"

    @property
    def event(self) -> Event:
        """The event of all `times` releases."""
        return repeated(self._single, self.times)

    @property
    def _single(self) -> Event:
        if self.law == "laplace" and self.grid > 0.0:
            return DiscreteLaplaceEvent(self.multiplier, round(self.l1 / self.grid))
        if self.law == "laplace":
            return NormExponentialEvent(self.multiplier)
        if self.unit == 1:  # per entry; on a fine grid noise counts as continuous
            return repeated(DiscreteGaussianEvent(self.sigma, 1), int(self.l1))
        return GaussianEvent(self.multiplier)

    @property
    def sigma(self) -> float:
        """The scale of the noise as a double."""
        return float(self.scale)

    @property
    def people(self) -> float:
        """The scale of noise on integers, in records."""
        return float(self.scale / self.unit)

    def half_width(self, failure: float, count: int = 1) -> int:
        """Return a w that all `count` draws stay within, except with probability `failure`.

        It is in the integers of the noise.
        """
        each = -math.expm1(math.log1p(-failure) / count) * (1.0 - _MARGIN)
        scale = self.sigma * (1.0 + _MARGIN)
        if self.law == "gaussian":
            # P(X >= w + 1) <= P(N >= w) for a normal N of that deviation.
            return math.ceil(-scale * float(ndtri(0.5 * each)) * (1.0 + _MARGIN))
        # P(|X| > w) = 2 r^(w + 1) / (1 + r) with r = e^(-1 / scale).
        reach = scale * math.log(2.0 / ((1.0 + math.exp(-1.0 / scale)) * each))
        return max(0, math.ceil(reach * (1.0 + _MARGIN)) - 1)

    def mechanism(self, stream: RandomStream) -> AdditiveMechanism:
        """Return the mechanism that adds the noise."""
        kind = NormExponentialMechanism if self.law == "laplace" else GaussianMechanism
        return kind(
            sensitivity=float(self.sensitivity),
            sigma=self.scale,
            stream=stream,
            label=self.label,
            grid=self.grid,
        )

    def make(self, exact: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return a vector with fresh noise."""
        return self.mechanism(stream).release(exact)


def compose(releases: Sequence[Release]) -> Event:
    """Return the event of releases that may depend on the outputs of earlier ones."""
    counts = Counter(release.event for release in releases)
    events = [repeated(event, count) for event, count in counts.items()]
    return events[0] if len(events) == 1 else ComposedEvent(tuple(events))


def repeated(event: Event, count: int) -> Event:
    """Return an event that happens `count` times."""
    return event if count == 1 else RepeatedEvent(event, count)
