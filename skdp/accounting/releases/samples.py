"""Releases on samples, and epochs of random allocation.

Only the profile between samples is used, in both orders of neighbours. It is bounded by a symmetric
list of losses l with masses p under P and p e^-l under Q. The list stands for the release in either
order. Masses and losses are rounded up, which raises every divergence.

Proofs: Theorems 1 to 6 of ``docs/proofs/sampled_releases.md``; for epochs Theorems 1 and 2 of
``docs/proofs/random_allocation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from skdp.accounting.analysis import (
    SMALLEST,
    Analysis,
    DominatingPairs,
    Guarantee,
    LogMoments,
    Reading,
    analysis_of,
    card_of,
    costs_no_more,
    with_noise,
)
from skdp.accounting.events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    LastIterateEvent,
    PoissonSampledEvent,
    RandomAllocationEvent,
    UniformSampledEvent,
)
from skdp.accounting.numerics.arithmetic import UNIT_ROUNDOFF, Array, log_mixture
from skdp.accounting.pld.composed_bounds import is_supported
from skdp.accounting.pld.curves import profile_curve
from skdp.accounting.pld.pairs.allocation import AllocatedEpoch
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.gaussian import gaussian_pair
from skdp.accounting.pld.pairs.profile import (
    Atoms,
    ListedPair,
    hull_atoms,
    mirrored,
    sample_bound,
    two_sided_atoms,
)
from skdp.accounting.releases.noise import Noise, OnSample, SampledLaplace, largest_loss
from skdp.accounting.releases.sampled_gaussian import SampledGaussian
from skdp.accounting.releases.selection import largest_stated
from skdp.base.parameters import Adjacency

_LEAST_RATE = 1e-100  # rates below count as this one, which can only raise a bound
_LARGEST_LOSS = 300.0  # beyond which losses on the sample count as infinite
_RAISED = 1e-11  # above the rounding of a sum of all masses


@card_of(PoissonSampledEvent, UniformSampledEvent)
def sampled(event: PoissonSampledEvent | UniformSampledEvent, adjacency: Adjacency) -> Analysis:
    """Return the card of a sample."""
    if type(event.event) is GaussianEvent:
        return SampledGaussian(event, adjacency)
    if type(event.event) is LaplaceEvent and isinstance(event, PoissonSampledEvent):
        return SampledLaplace(event, adjacency)
    return GeneralSample(event, adjacency)


class Sample(NamedTuple):
    """Kind, rate and event of a sample."""

    kind: str
    rate: float
    event: Event
    adjacency: Adjacency


class GeneralSample(OnSample):
    """A release on a sample, bounded by its profile on the sample."""

    def sample(self) -> Sample | None:
        """Return the sample, or None if no theorem applies."""
        event = self.event
        if any(isinstance(part, LastIterateEvent) for part in _parts(event)):
            return None
        if isinstance(event, PoissonSampledEvent):
            kind = f"poisson-{self.adjacency}"
            return Sample(kind, event.sample_rate, event.event, "add-remove")
        if self.adjacency == "add-remove":
            return None
        if any(size != event.batch_size for size in _sizes(event.event)):
            return None
        rate = max(event.batch_size / event.dataset_size, SMALLEST)
        return Sample("uniform-replace-one", rate, of_two_records(event.event), self.adjacency)

    def pairs(self) -> DominatingPairs | None:
        """Return the pairs of Theorems 1 to 3."""
        sample = self.sample()
        if sample is None or not is_supported(sample.event, sample.adjacency):
            return None
        directed = sample.kind == "poisson-add-remove"
        return DominatingPairs(
            lambda direction: sampled_pair(sample, direction if directed else None), directed
        )

    def stated(self, read: Reading = Fraction) -> Guarantee | None:
        """Return the largest loss, if there is one."""
        sample = self.sample()
        inner = math.inf if sample is None else largest_stated(sample.event, sample.adjacency)
        if sample is None or math.isinf(inner):
            return None
        return Guarantee(Fraction(largest_loss(sample.kind, sample.rate, inner)), Fraction(0))

    def rho(self, read: Reading = Fraction) -> None:
        """Return None: the largest loss would far overstate it."""

    def of_two(self) -> Event | None:
        """Return a Poisson sample itself: inner events are for single records."""
        if not isinstance(self.event, PoissonSampledEvent):
            return None
        known = GeneralSample(self.event, "replace-one").pairs()
        return None if known is None else self.event


def of_two_records(event: Event) -> Event:
    """Convert noise per contribution to noise per two, outside samples."""
    card = analysis_of(event, "add-remove")
    if isinstance(card, Noise):
        return card.of_two()
    if isinstance(event, PoissonSampledEvent | UniformSampledEvent | RandomAllocationEvent):
        return event
    changed: dict[str, Any] = {}
    for name, value in _fields(event):
        if isinstance(value, Event):
            changed[name] = of_two_records(value)
        elif isinstance(value, tuple) and any(isinstance(part, Event) for part in value):
            changed[name] = tuple(map(of_two_records, value))
    return replace(event, **changed) if changed else event


def _fields(event: Event) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(event, field.name)) for field in fields(event))


def _children(event: Event) -> Iterator[Event]:
    for _, value in _fields(event):
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Event):
                yield part


def _parts(event: Event) -> Iterator[Event]:
    """Yield an event and all events inside it."""
    yield event
    for part in _children(event):
        yield from _parts(part)


def _sizes(event: Event) -> Iterator[int]:
    """Yield the data set sizes of fixed-size samples."""
    if isinstance(event, UniformSampledEvent):
        yield event.dataset_size
        return
    for part in _children(event):
        yield from _sizes(part)


class SampledPair(ListedPair):
    """A pair with increasing losses, some of them positive."""

    def __init__(self, atoms: Atoms) -> None:
        self._list = atoms
        self.failure = atoms.infinite
        self.largest_loss = max(float(atoms.losses[-1]), 0.0)
        self.variation = self.profile(0.0)[1]

    @property
    def _atoms(self) -> Atoms:
        return self._list

    def profile(self, epsilon: float) -> tuple[float, float]:
        """Return zero and the pair's divergence: no release is known to attain it."""
        above = self._list.losses > epsilon
        shares = -np.expm1(epsilon - self._list.losses[above])
        value = float(self._list.masses[above] @ shares) + self.failure
        return 0.0, min(1.0, value * (1.0 + _RAISED))


@lru_cache(maxsize=64)
def sampled_pair(sample: Sample, direction: str | None) -> SampledPair | None:
    """Return the pair that dominates a release on a sample, or None."""
    curve = profile_curve(sample.event, sample.adjacency)
    equal = len(curve.values) > 0 and curve.values[0] == curve.epsilons[0] == 0.0
    if sample.rate == 0.0 or equal:
        return None
    losses, masses, infinite = hull_atoms(curve.epsilons, curve.values)
    kept = np.abs(losses) <= _LARGEST_LOSS
    infinite = max(infinite, 0.0) + float(np.sum(masses[losses > _LARGEST_LOSS]))
    inner, rate = Atoms(losses[kept], masses[kept], infinite), max(sample.rate, _LEAST_RATE)
    if direction == "add":
        return SampledPair(_added(inner, rate))
    if sample.kind == "poisson-replace-one":
        return SampledPair(_replaced(inner, rate))
    atoms = _removed(inner, rate)
    if direction is None:
        up = atoms.losses > 0.0
        atoms = mirrored(atoms.losses[up], atoms.masses[up], atoms.infinite)
    return SampledPair(atoms)


def _removed(inner: Atoms, rate: float) -> Atoms:
    """Return the mixture of P and Q against Q (Theorem 1)."""
    alone = (1.0 - rate) * inner.infinite
    masses = (1.0 - rate) * inner.masses * np.exp(-inner.losses) + rate * inner.masses
    losses = log_mixture(rate, np.append(-math.inf, inner.losses))
    return _listed(losses, np.append(alone, masses), rate * inner.infinite)


def _added(inner: Atoms, rate: float) -> Atoms:
    """Return P against the mixture of P and Q, where Q has the record (Theorem 1)."""
    losses = -log_mixture(rate, -np.append(inner.losses, math.inf))
    return _listed(losses, np.append(inner.masses, inner.infinite), 0.0)


def _replaced(inner: Atoms, rate: float) -> Atoms:
    """Return mixtures of Q with two laws of opposite ratios to Q (Theorem 3)."""
    falling, masses = inner.losses[::-1], inner.masses[::-1]
    # Ratios e^high fall and e^-low rise from left to right; steps end somewhat too far right.
    ends = np.cumsum(masses * np.exp(-falling)) * (1.0 + _RAISED)
    mirrored_ends = np.cumsum(np.append(inner.infinite, masses)) * (1.0 + _RAISED)
    edges = np.union1d(ends, mirrored_ends)
    starts = np.append(0.0, edges[:-1])
    high = np.append(falling, -math.inf)[np.searchsorted(ends, starts, side="right")]
    at = np.searchsorted(mirrored_ends, starts, side="right")
    low = np.append(math.inf, falling)[np.minimum(at, len(falling))]
    up = high > -low
    high, low, widths = high[up][::-1], low[up][::-1], (edges - starts)[up][::-1]
    one, other = log_mixture(rate, high), log_mixture(rate, -low)
    losses = one - other + 32.0 * UNIT_ROUNDOFF * (np.abs(one) + np.abs(other))
    found = _listed(losses, widths * ((1.0 - rate) + rate * np.exp(high)), rate * inner.infinite)
    return mirrored(*found)


def _listed(losses: Array, masses: Array, infinite: float) -> Atoms:
    """Drop losses without mass, and round all others up."""
    infinite += float(np.sum(masses[losses == math.inf]))
    kept = (masses > 0.0) & (losses < math.inf)
    losses, masses = losses[kept], masses[kept]
    raised = 1.0 + 32.0 * UNIT_ROUNDOFF
    infinite = min(1.0, infinite * raised)
    if not len(losses):
        return Atoms(np.zeros(1), np.zeros(1), infinite)
    losses = np.maximum.accumulate(losses + 32.0 * UNIT_ROUNDOFF * np.abs(losses))
    return Atoms(losses, masses * raised, infinite)


_ROUNDING = 1e-11  # of log moments, per order, generously
_LARGEST_SHIFT = 4.0  # beyond which the batches of an epoch count as known
_LEAST_SHIFT = 1e-4  # shifts below count as this one, which can only raise a bound


@card_of(RandomAllocationEvent)
class Allocation(Analysis):
    """An epoch with Gaussian noise; other releases have no bound."""

    event: RandomAllocationEvent

    def _noise_multiplier(self) -> float | None:
        inner = self.event.event
        return inner.noise_multiplier if type(inner) is GaussianEvent else None

    def mu(self) -> float | None:
        """Return mu if there is one batch."""
        square = self.mu_squared()
        return None if square is None else math.sqrt(square)

    def mu_squared(self) -> Fraction | None:
        """Return the exact square of mu if there is one batch."""
        multiplier = self._noise_multiplier()
        if multiplier is None or self.event.lots > 1:
            return None
        contributions = 1 if self.adjacency == "add-remove" else 2
        return contributions**2 / Fraction(multiplier) ** 2

    def pairs(self) -> DominatingPairs | None:
        """Return the pairs of Theorems 1 and 2."""
        multiplier = self._noise_multiplier()
        if multiplier is None:
            return None
        mu, lots = max(1.0 / multiplier, _LEAST_SHIFT), self.event.lots
        if self.adjacency == "replace-one":
            return DominatingPairs(lambda _: _pair(mu, lots, "replace"))
        return DominatingPairs(lambda direction: _pair(mu, lots, direction), directed=True)

    def log_moments(self) -> LogMoments | None:
        """Return the moments of the lists of losses."""
        pairs = self.pairs()
        if pairs is None or self.mu() is not None:
            return super().log_moments()
        found = [pairs.of(direction) for direction in ("remove", "add")[: 1 + pairs.directed]]
        losses = [pair.transforms(0.0)[0] for pair in found if pair is not None]

        def moment(order: float) -> float:
            largest = max(loss.cumulants(order - 1.0)[0] for loss in losses)
            return max(largest, 0.0) + _ROUNDING * order

        kept = min(math.log1p(-loss.failure) for loss in losses)
        return LogMoments(moment, log_kept=kept, quick=False)

    def of_two(self) -> Event | None:
        """Return the event itself: its noise is for single records."""
        return None if self._noise_multiplier() is None else self.event

    def covers(self, event: Any) -> bool:
        """Compare noise and batches: more batches reveal less (section 1)."""
        return event.lots >= self.event.lots and costs_no_more(event.event, self.event.event)

    def with_noise(self, factor: float) -> Event:
        """Return the epoch with more or less noise."""
        return replace(self.event, event=with_noise(self.event.event, factor))


@lru_cache(maxsize=64)
def _bounds(mu: float, lots: int) -> dict[str, tuple[Array, Array]]:
    """Return bounds on both profiles, equal at epsilon = 0."""
    found = {}
    for direction in ("remove", "add"):
        epoch = AllocatedEpoch(mu, lots, direction)
        found[direction] = sample_bound(epoch.profile, epoch.deviation)
    least = min(values[0] for _, values in found.values())
    return {
        direction: (epsilons, np.minimum(values, least))
        for direction, (epsilons, values) in found.items()
    }


@lru_cache(maxsize=64)
def _pair(mu: float, lots: int, direction: str) -> Pair:
    """Return the pair that dominates one epoch."""
    if mu > _LARGEST_SHIFT:
        return gaussian_pair("gaussian", 1.0, 2.0 * mu if direction == "replace" else mu)
    if direction == "replace":
        epoch = AllocatedEpoch(mu, lots, direction)
        bound = sample_bound(epoch.profile, epoch.deviation)
        return SampledPair(two_sided_atoms(bound, bound))
    bounds = _bounds(mu, lots)
    other = "add" if direction == "remove" else "remove"
    return SampledPair(two_sided_atoms(bounds[direction], bounds[other]))
