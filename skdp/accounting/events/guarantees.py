"""Releases of which a guarantee is known: a pair, a profile, or Renyi divergences."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from skdp.accounting.checks import store_number, store_share
from skdp.accounting.distributions import Distribution
from skdp.accounting.events.base import Event
from skdp.accounting.numerics.renyi_divergences import check_comparable, log_moment
from skdp.choices import Adjacency


@dataclass(frozen=True)
class PureDPEvent(Event):
    """A release known to satisfy epsilon-differential privacy, and nothing more about it.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats under the adjacency in force, finite and ``>= 0``; inside a
        `PoissonSampledEvent`, for a record that joins or leaves the sample.

    Examples
    --------
    >>> from skdp.accounting import PLDAccountant, PureDPEvent
    >>> accountant = PLDAccountant().compose(PureDPEvent(0.1), count=50)
    >>> round(accountant.epsilon(0.0), 6), round(accountant.epsilon(1e-5), 2)
    (5.0, 2.84)
    """

    epsilon: float

    def __post_init__(self) -> None:
        store_number(self, "epsilon", ">= 0")


@dataclass(frozen=True)
class ApproxDPEvent(Event):
    """A release known to satisfy (epsilon, delta)-differential privacy, and nothing more about it.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats under the adjacency in force, finite and ``>= 0``; inside a
        `PoissonSampledEvent`, for a record that joins or leaves the sample.
    delta : float
        Failure probability, in [0, 1].

    Examples
    --------
    >>> from skdp.accounting import ApproxDPEvent, PLDAccountant
    >>> release = ApproxDPEvent(0.5, 1e-6)  # of a library that states no more
    >>> round(PLDAccountant().compose(release, count=2).epsilon(2e-6), 6)
    1.0
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        store_number(self, "epsilon", ">= 0")
        store_share(self, "delta")


@dataclass(frozen=True)
class ProfileEvent(Event, ABC):
    """A release whose privacy profile has a proved upper bound.

    The profile is the smallest ``delta(epsilon)`` with which the release is (epsilon, delta)-DP. A
    subclass is a frozen dataclass that says what happened and implements `profile_bound`;
    `PLDAccountant` then composes it with everything else.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from skdp.accounting import PLDAccountant, ProfileEvent
    >>> @dataclass(frozen=True)
    ... class LeakyEvent(ProfileEvent):
    ...     "Publishes everything with a small probability, and nothing else."
    ...     probability: float
    ...
    ...     def profile_bound(self, epsilon, adjacency):
    ...         return self.probability
    >>> round(PLDAccountant().compose(LeakyEvent(1e-6), count=3).delta(1.0), 9)
    3e-06
    """

    @abstractmethod
    def profile_bound(self, epsilon: float, adjacency: Adjacency) -> float:
        """Return an upper bound on delta that holds in both orders of two neighbours.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, ``>= 0``, however large.
        adjacency : {"add-remove", "replace-one"}
            The relation between neighbouring data sets, a supported one.

        Returns
        -------
        float
            The bound in [0, 1]; it never rises with epsilon.
        """

    def supports_adjacency(self, adjacency: Adjacency) -> bool:
        """Tell whether the bound is proved under a relation: always, unless a subclass differs."""
        return True

    def largest_loss(self, adjacency: Adjacency) -> float:
        """Return an epsilon with which the release is (epsilon, 0)-DP, in nats.

        It is infinite, unless a subclass knows better.
        """
        return math.inf


@dataclass(frozen=True)
class BoundedRangeEvent(ProfileEvent):
    """A choice whose privacy loss between two neighbours varies by at most epsilon.

    The exponential mechanism is one (`exponential_mechanism`, and `report_noisy_max` with Gumbel
    noise), monotone or not, at the epsilon that it is called with.

    Parameters
    ----------
    epsilon : float
        Width of an interval that holds all log ratios of the outcomes' probabilities under two
        neighbours, whose ends may depend on these; in nats, finite and ``>= 0``. Inside a
        `PoissonSampledEvent`, for a record that joins or leaves the sample.

    Notes
    -----
    Such a release is epsilon-DP, and costs less than others that are when it is composed: its
    profile is at most ``(1 - e^((x - epsilon)/2))^2 / (1 - e^-epsilon)`` at x, under the adjacency
    in force. A release of two outcomes attains each point of it, but none attains all, so that
    Renyi divergences, those of an ``epsilon^2 / 8``-zCDP release, compose many choices better:
    compare both accountants. Proofs: :ref:`Theorems 1 to 3 of selection mechanisms
    <selection-mechanisms-1>`.

    References
    ----------
    Dong, Durfee & Rogers (2020), "Optimal Differential Privacy Composition for Exponential
    Mechanisms". Cesar & Rogers (2021), "Bounding, Concentrating, and Truncating: Unifying Privacy
    Loss Composition for Data Analytics".

    Examples
    --------
    >>> from skdp.accounting import BoundedRangeEvent, PLDAccountant, PureDPEvent, RDPAccountant
    >>> for event in (PureDPEvent(0.1), BoundedRangeEvent(0.1)):
    ...     both = (each().compose(event, count=100) for each in (PLDAccountant, RDPAccountant))
    ...     print([round(each.epsilon(1e-6), 2) for each in both])
    [4.77, 5.07]
    [2.61, 2.42]
    """

    epsilon: float

    def __post_init__(self) -> None:
        store_number(self, "epsilon", ">= 0")

    def profile_bound(self, epsilon: float, adjacency: Adjacency) -> float:
        """Return the largest delta of releases of two outcomes."""
        left = self.epsilon - epsilon
        if left <= 0.0:
            return 0.0
        half = -math.expm1(-0.5 * left)
        return min(1.0, half * (half / -math.expm1(-self.epsilon)) * (1.0 + 1e-14))

    def largest_loss(self, adjacency: Adjacency) -> float:
        """Return epsilon: the interval holds zero, as probabilities add up to one."""
        return self.epsilon


@dataclass(frozen=True)
class RenyiEvent(Event):
    """One release whose outcomes on neighbouring data sets are known distributions.

    Parameters
    ----------
    left, right : Distribution
        Two distributions of one dimension and one class of `skdp.accounting.distributions`. At
        every order and for every pair of neighbouring data sets under the adjacency in force, in
        either order, the Renyi divergence of the outcomes is at most the larger of those of
        `left` from `right` and of `right` from `left`. That is for the caller to prove: the
        distributions must be a public worst case, not those of the data at hand.

    Notes
    -----
    Neighbours may stand in either order, and in a composition not always in the same: what a later
    release is asked may depend on earlier results. So the larger of both divergences is taken
    release by release and then added up; the larger of the two sums would understate the cost.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import Gamma
    >>> step = RenyiEvent(Gamma(2.5, 0.8), Gamma(2.5, 1.0))
    >>> round(GenericAccountant().compose(step, count=3).epsilon(1e-5), 4)
    5.6289
    """

    left: Distribution
    right: Distribution
    _parts = Distribution

    def __post_init__(self) -> None:
        check_comparable(self.left, self.right)

    def log_moment(self, order: float) -> float:
        """Return ``order - 1`` times the larger Renyi divergence, rounded up; it may be infinite.

        Parameters
        ----------
        order : float
            Order of the divergence, above 1.
        """
        return max(
            log_moment(self.left, self.right, order), log_moment(self.right, self.left, order)
        )
