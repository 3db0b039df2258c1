"""Releases on random samples of the records."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.accounting.checks import store_integer, store_share
from skdp.accounting.events.base import Event, check_event


@dataclass(frozen=True)
class PoissonSampledEvent(Event):
    """A release computed on a Poisson sample: each record enters independently.

    Parameters
    ----------
    sample_rate : float
        Probability that a record enters, in [0, 1].
    event : Event
        What is done with the sample.

    Notes
    -----
    With an inner ``GaussianEvent(z)`` the dominating pair is, in units of the noise, ``(1-q) N(0) +
    q N(1/z)`` against ``N(0)`` under add-remove and against ``(1-q) N(0) + q N(-1/z)`` under
    replace-one; with an inner ``LaplaceEvent(z)`` they are the same with Laplace distributions. The
    divisor of the released mean must not depend on the realised size of the sample.

    Whatever is inside is meant under add-remove between samples, also where the data sets differ by
    a replaced record: a noise multiplier or a guarantee inside says what happens if one record
    joins the sample or leaves it. Everything with a known profile in that sense can be accounted
    for: ``docs/proofs/sampled_releases.md``.
    """

    sample_rate: float
    event: Event

    def __post_init__(self) -> None:
        store_share(self, "sample_rate")
        check_event("PoissonSampledEvent", "event", self.event)


@dataclass(frozen=True)
class UniformSampledEvent(Event):
    """A release computed on a uniformly drawn subset of fixed size, without replacement.

    Parameters
    ----------
    batch_size : int
        Number of records in the subset, from 1 to ``dataset_size``.
    dataset_size : int
        Public number of records.
    event : Event
        What is done with the subset.

    Notes
    -----
    Defined under replace-one adjacency, where the number of records is public. An inner
    ``GaussianEvent(z)`` has ``z = sigma / C`` with ``C`` the largest norm of one record's
    contribution, so replacing a sampled record moves the query by ``2 / z`` noise deviations; so
    does Laplace and discrete noise. What else is inside is meant under replace-one between subsets.
    """

    batch_size: int
    dataset_size: int
    event: Event

    def __post_init__(self) -> None:
        owner = "UniformSampledEvent"
        store_integer(self, "dataset_size", 1)
        store_integer(self, "batch_size", 1)
        n, b = self.dataset_size, self.batch_size
        if b > n:
            raise ValueError(f"{owner}: batch_size must not exceed dataset_size={n}, got {b}.")
        check_event(owner, "event", self.event)
