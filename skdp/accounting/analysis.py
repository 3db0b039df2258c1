"""What every accountant needs to know about a leaf event: what kind of noise, is it sampled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.events import (
    ApproxDPEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureDPEvent,
    UniformSampledEvent,
    leaf_counts,
)
from skdp.accounting.numerics.floats import round_up
from skdp.accounting.profile_events import OneOfEvent, ProfileEvent
from skdp.accounting.releases.last_iterate import LastIterateEvent

Array = NDArray[np.float64]
Adjacency = Literal["add-remove", "replace-one"]
ADJACENCIES: tuple[str, ...] = ("add-remove", "replace-one")
_SMALLEST = math.ulp(0.0)  # zero is for what reveals nothing, not for what vanishes in a float
_LARGE = 700.0  # nats, of which the exponential is still a float


class SampledGaussian(NamedTuple):
    """A proper sampled Gaussian leaf, ``0 < rate < 1``, in units of the noise.

    ``kind`` names the dominating pair: ``"poisson-add-remove"``, ``"poisson-replace-one"`` or
    ``"uniform-replace-one"``; ``mu`` is the shift between its mixture components.
    """

    kind: str
    rate: float
    mu: float


def sampled_gaussian(leaf: Event, adjacency: str) -> SampledGaussian | None:
    """Describe a sampled Gaussian leaf, or return None for any other leaf.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    SampledGaussian or None
        The pair, also for the degenerate rates 0 and 1. None too where no bound is proved:
        fixed-size sampling under add-remove, where the number of records is not public.
    """
    if isinstance(leaf, PoissonSampledEvent) and isinstance(leaf.event, GaussianEvent):
        return SampledGaussian(
            f"poisson-{adjacency}", leaf.sample_rate, 1.0 / leaf.event.noise_multiplier
        )
    if (
        isinstance(leaf, UniformSampledEvent)
        and isinstance(leaf.event, GaussianEvent)
        and adjacency == "replace-one"
    ):
        rate = max(leaf.batch_size / leaf.dataset_size, _SMALLEST)
        return SampledGaussian("uniform-replace-one", rate, 2.0 / leaf.event.noise_multiplier)
    return None


def gaussian_mu(leaf: Event, adjacency: str) -> float | None:
    """Return ``mu`` if a Gaussian pair dominates a leaf, 0 if it releases nothing, else None.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    float or None
        Shift of the means in units of the noise.
    """
    if isinstance(leaf, GaussianEvent):
        return 1.0 / leaf.noise_multiplier
    if isinstance(leaf, LastIterateEvent):
        shift = gaussian_mu(leaf.step, adjacency)
        return shift if not shift else max(leaf.mu(shift), _SMALLEST)
    pair = sampled_gaussian(leaf, adjacency)
    if pair is None or 0.0 < pair.rate < 1.0:
        return None
    if pair.rate == 0.0:
        return 0.0
    # With every record in the batch, replacing one moves its contribution across twice the bound.
    return 2.0 * pair.mu if pair.kind == "poisson-replace-one" else pair.mu


class LaplaceMixture(NamedTuple):
    """A Laplace leaf, sampled or not, in units of the scale.

    ``kind`` is ``"laplace"`` (with rate 1), ``"poisson-add-remove"`` or ``"poisson-replace-one"``,
    the latter two with ``0 < rate < 1``; ``shift`` is the distance between neighbouring locations,
    or, under replace-one, of either from the common one.
    """

    kind: str
    rate: float
    shift: float


def laplace_mixture(leaf: Event, adjacency: str) -> LaplaceMixture | None:
    """Describe a Laplace leaf, or return None for any other leaf.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    LaplaceMixture or None
        The pair; with a shift of 0 if nothing is ever sampled.
    """
    if isinstance(leaf, LaplaceEvent):
        return LaplaceMixture("laplace", 1.0, round_up(1 / Fraction(leaf.noise_multiplier)))
    if not (isinstance(leaf, PoissonSampledEvent) and isinstance(leaf.event, LaplaceEvent)):
        return None
    rate, shift = leaf.sample_rate, round_up(1 / Fraction(leaf.event.noise_multiplier))
    if rate == 0.0:
        return LaplaceMixture("laplace", 1.0, 0.0)
    if rate == 1.0:
        # With every record in the batch, replacing one moves its contribution across twice.
        return LaplaceMixture("laplace", 1.0, 2.0 * shift if adjacency == "replace-one" else shift)
    return LaplaceMixture(f"poisson-{adjacency}", rate, shift)


class GeneralSample(NamedTuple):
    """A release on a sample of which only its profile on the sample itself is used.

    ``kind`` is as for `SampledGaussian`. The profile that counts is that of ``event`` under
    ``adjacency``, a relation between samples.
    """

    kind: str
    rate: float
    event: Event
    adjacency: str


def general_sample(leaf: Event, adjacency: str) -> GeneralSample | None:
    """Describe a sample for which no pair is known but the one above all with a given profile.

    None for other leaves, and where nothing is proved: see ``docs/proofs/sampled_releases.md``.
    """
    if not isinstance(leaf, PoissonSampledEvent | UniformSampledEvent):
        return None
    if any(isinstance(part, LastIterateEvent) for part in _parts(leaf)):
        return None
    if isinstance(leaf, PoissonSampledEvent):
        if isinstance(leaf.event, GaussianEvent | LaplaceEvent):
            return None
        return GeneralSample(f"poisson-{adjacency}", leaf.sample_rate, leaf.event, "add-remove")
    if isinstance(leaf.event, GaussianEvent) or adjacency == "add-remove":
        return None
    if any(size != leaf.batch_size for size in _sizes(leaf.event)):
        return None
    rate = max(leaf.batch_size / leaf.dataset_size, _SMALLEST)
    return GeneralSample("uniform-replace-one", rate, of_two_records(leaf.event), adjacency)


def of_two_records(event: Event) -> Event:
    """Count noise over one record's contribution against two of them, outside samples."""
    if isinstance(event, GaussianEvent | LaplaceEvent):
        return type(event)(_half(event.noise_multiplier))
    if isinstance(event, DiscreteGaussianEvent | DiscreteLaplaceEvent):
        return type(event)(_half(event.noise_multiplier), 2 * event.sensitivity)
    if isinstance(event, PoissonSampledEvent | UniformSampledEvent):
        return event
    changed: dict[str, Any] = {}
    for name, value in _fields(event):
        if isinstance(value, Event):
            changed[name] = of_two_records(value)
        elif isinstance(value, tuple):
            changed[name] = tuple(
                of_two_records(part) if isinstance(part, Event) else part for part in value
            )
    return replace(event, **changed) if changed else event


def _half(noise_multiplier: float) -> float:
    """Return half of a noise multiplier, rounded down but positive."""
    half = 0.5 * noise_multiplier
    half = math.nextafter(half, 0.0) if 2.0 * half > noise_multiplier else half
    return max(half, math.ulp(0.0))


def _fields(event: Event) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(event, field.name)) for field in fields(event))


def _children(event: Event) -> Iterator[Event]:
    for _, value in _fields(event):
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Event):
                yield part


def _parts(event: Event) -> Iterator[Event]:
    """Yield an event and all events inside it, of whatever kind."""
    yield event
    for part in _children(event):
        yield from _parts(part)


def _sizes(event: Event) -> Iterator[int]:
    """Yield how many records there are, by the samples of fixed size that are drawn from them."""
    if isinstance(event, UniformSampledEvent):
        yield event.dataset_size
        return
    for part in _children(event):
        yield from _sizes(part)


def stated_guarantee(leaf: Event, adjacency: str) -> tuple[float, float] | None:
    """Return the (epsilon, delta) that a leaf has by itself, or None if it has no single one.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    tuple of float or None
        Epsilon in nats and delta; the latter is positive for `ApproxDPEvent` alone, and for a
        choice that has one among its parts.
    """
    if isinstance(leaf, OneOfEvent):
        return _stated_of_choice(leaf, adjacency)
    if isinstance(leaf, ProfileEvent):
        supported = leaf.supports_adjacency(adjacency)
        largest = leaf.largest_loss(adjacency) if supported else math.inf
        return (largest, 0.0) if math.isfinite(largest) else None
    if isinstance(leaf, ApproxDPEvent):
        return leaf.epsilon, leaf.delta
    if isinstance(leaf, PureDPEvent):
        return leaf.epsilon, 0.0
    if isinstance(leaf, DiscreteLaplaceEvent):
        return round_up(1 / Fraction(leaf.noise_multiplier)), 0.0
    if gaussian_mu(leaf, adjacency) == 0.0:
        return 0.0, 0.0
    mixture = laplace_mixture(leaf, adjacency)
    if mixture is not None:
        return largest_loss(mixture.kind, mixture.rate, mixture.shift), 0.0
    sample = general_sample(leaf, adjacency)
    inner = None if sample is None else _stated_sum(sample.event, sample.adjacency)
    if sample is None or inner is None or inner[1] > 0.0:
        return None
    return largest_loss(sample.kind, sample.rate, inner[0]), 0.0


def largest_loss(kind: str, rate: float, loss: float) -> float:
    """Return the largest loss on a sample, rounded up, from that of what is done with it."""
    if rate == 0.0 or loss == 0.0:
        return 0.0
    largest, most = float(log_mixture(rate, loss)), loss
    if kind == "poisson-replace-one":
        largest, most = largest - float(log_mixture(rate, -loss)), 2.0 * loss
    # The loss is rounded too, which where sampling is rare counts as often as it has nats.
    return min(most, largest * (1.0 + 2.0**-50 * (1.0 + min(loss, _LARGE))) + 4.0 * _SMALLEST)


def _stated_of_choice(leaf: OneOfEvent, adjacency: str) -> tuple[float, float] | None:
    """Return the largest guarantee that basic composition gives any of the parts."""
    sums = [_stated_sum(event, adjacency) for event in leaf.events]
    known = [each for each in sums if each is not None]
    if len(known) < len(sums):
        return None
    return max(each[0] for each in known), max(each[1] for each in known)


def _stated_sum(event: Event, adjacency: str) -> tuple[float, float] | None:
    return sum_of_stated(leaf_counts(event), adjacency)


def sum_of_stated(counts: Mapping[Event, int], adjacency: str) -> tuple[float, float] | None:
    """Return what basic composition gives, its epsilon rounded up; None if a leaf states nothing.

    Parameters
    ----------
    counts : mapping of Event to int
        Leaves and how often each happened.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    tuple of float or None
        Epsilon and delta.
    """
    exact, delta = Fraction(), 0.0
    for leaf, count in counts.items():
        stated = stated_guarantee(leaf, adjacency)
        if stated is None or math.isinf(stated[0]):
            return None
        exact += count * Fraction(stated[0])
        delta += count * stated[1]
    return round_up(exact), min(1.0, delta)


def log_mixture(rate: float, log_ratio: float | Array) -> Array:
    """Return ``log(1 - rate + rate e^log_ratio)``, to a few units of rounding wherever it is.

    Parameters
    ----------
    rate : float
        Weight of the second component, positive; above 1 for the inverse function.
    log_ratio : float or ndarray
        Logarithms of likelihood ratios; at least 0 for the inverse function.

    Returns
    -------
    ndarray
        Logarithms of the mixture's likelihood ratios.
    """
    ratio = np.asarray(log_ratio, dtype=np.float64)
    if rate == 1.0:
        return ratio
    with np.errstate(all="ignore"):
        added = rate * np.expm1(ratio)
        # Next to -1 the sum cancels; 1 - rate is exact there.
        near = np.where(added < -0.5, np.log((1.0 - rate) + rate * np.exp(ratio)), np.log1p(added))
        shifted = ratio + math.log(rate)
        far = np.where(shifted < _LARGE, np.log1p(np.exp(shifted) - rate), shifted)
    return np.where(ratio <= 300.0, near, far)
