"""What every accountant needs to know about a leaf event: is it a plain Gaussian, is it sampled."""

from __future__ import annotations

from typing import Literal, NamedTuple

from skdp.accounting.events import (
    Event,
    GaussianEvent,
    PoissonSampledEvent,
    UniformSampledEvent,
)

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
    """Return ``mu`` if a leaf is exactly a Gaussian pair, 0 if it releases nothing, else None.

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
    pair = sampled_gaussian(leaf, adjacency)
    if pair is None or 0.0 < pair.rate < 1.0:
        return None
    if pair.rate == 0.0:
        return 0.0
    # With every record in the batch, replacing one moves its contribution across twice the bound.
    return 2.0 * pair.mu if pair.kind == "poisson-replace-one" else pair.mu
