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

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, PoissonSampledEvent
    >>> step = PoissonSampledEvent(0.01, GaussianEvent(1.0))
    >>> round(PLDAccountant().compose(step, count=1000).epsilon(1e-5), 2)
    1.83
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

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, UniformSampledEvent
    >>> step = UniformSampledEvent(100, 10_000, GaussianEvent(4.0))
    >>> accountant = PLDAccountant(adjacency="replace-one").compose(step, count=1000)
    >>> round(accountant.epsilon(1e-5), 2)
    0.72
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


@dataclass(frozen=True)
class RandomAllocationEvent(Event):
    """One epoch of releases on random lots: each record is in exactly one of them.

    Each record independently falls into one of the lots, all equally likely, and on each lot one
    after another the release is made. An epoch has all its lots; several epochs, each with an
    allocation of its own, are a ``RepeatedEvent``.

    Parameters
    ----------
    lots : int
        Number of lots of the epoch, at least 1.
    event : Event
        What is done with each lot: a ``GaussianEvent(z)`` with ``z = sigma / C``, C the largest
        norm of one record's contribution to the sum of its lot.

    Notes
    -----
    What records contribute may depend on earlier releases, of this epoch too; the allocation may
    not. The divisor of a released mean must not depend on the realised size of a lot. With
    ``mu = 1/z`` and unit vectors ``e_t`` the dominating pair is the mean over the lots t of
    ``N(mu e_t, I)`` against ``N(0, I)`` under add-remove and against the mean of ``N(-mu e_t, I)``
    under replace-one: ``docs/proofs/random_allocation.md``. Lots of equal size, cut from a
    permutation of the records, are something else, and are not covered.

    References
    ----------
    Chua et al. (2025), "Balls-and-Bins Sampling for DP-SGD". Feldman and Shenfeld (2025), "Privacy
    amplification by random allocation".

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, RandomAllocationEvent
    >>> epoch = RandomAllocationEvent(100, GaussianEvent(2.0))
    >>> round(PLDAccountant().compose(epoch, 40).epsilon(1e-5), 2)
    1.29
    """

    lots: int
    event: Event

    def __post_init__(self) -> None:
        store_integer(self, "lots", 1)
        check_event("RandomAllocationEvent", "event", self.event)
