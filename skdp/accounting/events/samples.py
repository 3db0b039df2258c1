"""Releases on random samples of the records."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.accounting.checks import store_integer, store_share
from skdp.accounting.events.base import Event, check_event


@dataclass(frozen=True)
class PoissonSampledEvent(Event):
    """A release on a Poisson sample: each record is included independently.

    Parameters
    ----------
    sample_rate : float
        Probability that a record is included, in [0, 1].
    event : Event
        Release on the sample.

    Notes
    -----
    With an inner ``GaussianEvent(z)`` the dominating pair is, in units of the noise, ``(1-q) N(0) +
    q N(1/z)`` against ``N(0)`` under add-remove. Under replace-one it is the same mixture against
    ``(1-q) N(0) + q N(-1/z)``. An inner ``LaplaceEvent(z)`` has these pairs with Laplace
    distributions. The divisor of a released mean must not depend on the realised size of the
    sample.

    Inner events always refer to add-remove between samples, even if the data sets differ by a
    replaced record. An inner noise multiplier or guarantee therefore describes one record that
    joins or leaves the sample. Every event with a known profile in this sense is supported:
    :ref:`Theorems 1 to 3 of sampled releases <sampled-releases-1>`.

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
    """A release on a uniformly random subset of fixed size, without replacement.

    Parameters
    ----------
    batch_size : int
        Number of records in the subset, from 1 to ``dataset_size``.
    dataset_size : int
        Public number of records.
    event : Event
        Release on the subset.

    Notes
    -----
    Defined under replace-one adjacency, where the number of records is public. An inner
    ``GaussianEvent(z)`` has ``z = sigma / C`` with ``C`` the largest norm of one record's
    contribution. Replacing a sampled record moves the query by ``2 / z`` noise deviations; Laplace
    and discrete noise count in the same way. Other inner events refer to replace-one between
    subsets: :ref:`Theorem 6 of sampled releases <sampled-releases-6>`.

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
    """One epoch of releases on random batches: each record is in exactly one batch.

    Each record is put into one of the batches independently, with equal probabilities, and the
    release is made on one batch after another. An epoch contains all its batches. Several epochs
    with independent allocations are a ``RepeatedEvent``.

    Parameters
    ----------
    lots : int
        Number of batches in the epoch, at least 1.
    event : Event
        Release on each batch: a ``GaussianEvent(z)`` with ``z = sigma / C``. C is the largest norm
        of one record's contribution to the sum of its batch.

    Notes
    -----
    Contributions of records may depend on earlier releases, also of this epoch; the allocation must
    not. The divisor of a released mean must not depend on the realised size of a batch. Batches of
    equal size, cut from a permutation of the records, are not covered.

    With ``mu = 1/z`` and unit vectors ``e_t``, the first distribution of the dominating pair is the
    mean over the batches t of ``N(mu e_t, I)``. The second is ``N(0, I)`` under add-remove, and the
    mean of ``N(-mu e_t, I)`` under replace-one: :ref:`Theorems 1 and 2 of random allocation
    <random-allocation-1>`.

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
