"""What every accountant needs to know about a leaf event: what kind of noise, is it sampled."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from skdp.accounting.events import (
    ApproxDPEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureDPEvent,
    UniformSampledEvent,
    leaf_counts,
)
from skdp.accounting.last_iterate import LastIterateEvent
from skdp.accounting.profile_events import OneOfEvent, ProfileEvent

Adjacency = Literal["add-remove", "replace-one"]
ADJACENCIES: tuple[str, ...] = ("add-remove", "replace-one")


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
        rate = leaf.batch_size / leaf.dataset_size
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
        return shift if not shift else leaf.mu(shift)
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
        return LaplaceMixture("laplace", 1.0, 1.0 / leaf.noise_multiplier)
    if not (isinstance(leaf, PoissonSampledEvent) and isinstance(leaf.event, LaplaceEvent)):
        return None
    rate, shift = leaf.sample_rate, 1.0 / leaf.event.noise_multiplier
    if rate == 0.0:
        return LaplaceMixture("laplace", 1.0, 0.0)
    if rate == 1.0:
        # With every record in the batch, replacing one moves its contribution across twice.
        return LaplaceMixture("laplace", 1.0, 2.0 * shift if adjacency == "replace-one" else shift)
    return LaplaceMixture(f"poisson-{adjacency}", rate, shift)


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
        return 1.0 / leaf.noise_multiplier, 0.0
    if gaussian_mu(leaf, adjacency) == 0.0:
        return 0.0, 0.0
    mixture = laplace_mixture(leaf, adjacency)
    if mixture is None:
        return None
    if mixture.kind == "laplace":
        return mixture.shift, 0.0
    largest = log_mixture(mixture.rate, mixture.shift)
    if mixture.kind == "poisson-replace-one":
        largest -= log_mixture(mixture.rate, -mixture.shift)
    return largest, 0.0


def _stated_of_choice(leaf: OneOfEvent, adjacency: str) -> tuple[float, float] | None:
    """Return the largest guarantee that basic composition gives any of the parts."""
    largest, failure = 0.0, 0.0
    for event in leaf.events:
        epsilon, delta = 0.0, 0.0
        for part, count in leaf_counts(event).items():
            stated = stated_guarantee(part, adjacency)
            if stated is None:
                return None
            epsilon += count * stated[0]
            delta += count * stated[1]
        largest, failure = max(largest, epsilon), max(failure, delta)
    return largest, min(1.0, failure)


def log_mixture(rate: float, log_ratio: float) -> float:
    """Return ``log(1 - rate + rate e^log_ratio)``, accurately also where it is tiny.

    Parameters
    ----------
    rate : float
        Weight of the second component, positive; above 1 for the inverse function.
    log_ratio : float
        Logarithm of a likelihood ratio.

    Returns
    -------
    float
        Logarithm of the mixture's likelihood ratio.
    """
    if log_ratio <= 30.0:
        return math.log1p(rate * math.expm1(log_ratio)) if rate != 1.0 else log_ratio
    return log_ratio + math.log(rate + (1.0 - rate) * math.exp(-log_ratio))
