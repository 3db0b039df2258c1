"""Releases with a known guarantee: pairs, profiles, selections, tilted objectives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from skdp.accounting.checks import check_real, store_integer, store_number, store_share
from skdp.accounting.distributions import Distribution
from skdp.accounting.events.base import Event, check_event
from skdp.accounting.numerics.counts import check_stopping
from skdp.accounting.numerics.objective_profile import SLOPES, Objective, UnitObjective
from skdp.accounting.numerics.renyi_divergences import check_comparable, log_moment
from skdp.base.parameters import Adjacency


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


@dataclass(frozen=True)
class RepeatAndSelectEvent(Event):
    """A release repeated a random number of times, of which only the best result is released.

    Parameters
    ----------
    event : Event
        One run: everything that a candidate does with the records, its score included.
    mean : float
        Expected number of runs, at least 1; for a Poisson number, positive.
    shape : float
        Shape ``eta > -1`` of the truncated negative binomial number of runs: 0 is the logarithmic
        distribution, 1 the geometric one. Infinite for a Poisson number, where no run at all has a
        fixed result.

    Notes
    -----
    Every run draws its candidate afresh, with replacement, from a distribution that does not depend
    on the records, and is otherwise the same mechanism. The number of runs, the other results and
    the time taken stay secret. Results are compared by a fixed order of what a run returns.

    The profile is bounded as in `SelectionProfile`, by a mixture that is never above
    ``m delta(epsilon - (1 + eta) log(e^e + (1/gamma - 1) delta(e)))`` for any ``e >= 0``, with
    ``delta`` the profile of one run and m the mean. Renyi divergences are bounded by Papernot and
    Steinke (2022), Theorem 2. If a run is epsilon-DP, all together are less than ``(2 + eta)``
    epsilon-DP (Liu and Talwar, 2019, have 3 epsilon for the geometric distribution).

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, RepeatAndSelectEvent
    >>> run = GaussianEvent(4.0)
    >>> best = RepeatAndSelectEvent(run, mean=10, shape=0)
    >>> for event in (run, best):
    ...     print(round(PLDAccountant().compose(event).epsilon(1e-6), 2))
    1.06
    1.47
    """

    event: Event
    mean: float
    shape: float

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_event(owner, "event", self.event)
        object.__setattr__(self, "mean", check_real(owner, "mean", self.mean))
        shape = math.inf if self.shape == "inf" else check_real(owner, "shape", self.shape)
        object.__setattr__(self, "shape", shape)
        check_stopping(owner, self.mean, shape)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, fit for JSON; an infinite shape is ``"inf"``."""
        return super().to_dict() | {"shape": "inf" if math.isinf(self.shape) else self.shape}


_OWNER = "ObjectivePerturbationEvent"


@dataclass(frozen=True)
class ObjectivePerturbationEvent(ProfileEvent):
    """The minimiser of a convex objective with a random linear term.

    Released is the minimiser over all w of the sum of the records' losses, plus ``Lam / 2 |w|^2``,
    plus ``b . w``, where the losses are those of a generalised linear model (convex functions of
    ``w . x`` with Lipschitz derivatives), Lam is a fixed public number and b is fresh normal noise
    in every coordinate, which stays secret.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of b over a public bound on the norm of one record's gradient, positive.
    curvature : float
        Largest second derivative of a record's loss in the direction of its row, times the squared
        norm of the row, over Lam; at least 0. For the unclipped logistic loss and rows up to R it
        is ``R^2 / (4 Lam)``.
    slope : {"logistic", "known-sign", "any-sign"}, default="known-sign"
        What is known of the losses' derivative: that its sign is determined by the record (as for
        every loss of a classification margin that only falls), nothing, or that it is the
        unclipped logistic loss, whose curvature vanishes where its slope is steepest.
    approximation : float, default=0.0
        If the minimiser is reached to a gradient norm tau, guaranteed on every data set, and normal
        noise of standard deviation s is added to it: ``2 tau / (Lam s)``. 0 for exact minimisers.
        A mu-GDP release that follows, such as a noisy table of scores by these weights, adds mu in
        squares.
    outputs : int, default=1
        Number of objectives with the same rows and independent noise that are released together,
        as in one-vs-rest. More than one needs a known sign. `approximation` is about them jointly.
    rows_per_unit : int or None, default=1
        What neighbouring data sets differ by. 1: a row. Else a unit, as a patient, whose loss is a
        convex combination of its rows' losses: a public bound on how many rows a unit has, or on
        the number of weights of one output if that is less and at least 2; None for any number.
        `noise_multiplier` and `curvature` are relative to a unit's gradient and to the sum of its
        rows' curvatures: where weights of a unit's rows sum to at most m, both bounds are m times
        those of a row, and where rows have weights by class, those of the heaviest class.
    opposite : float, default=1.0
        With ``slope="any-sign"``: each record's gradients lie between ``-p u`` and ``q u`` for a
        fixed direction u, of which the longer is at most the bound that `noise_multiplier` is
        relative to, and ``p + q`` at most ``1 + opposite`` times it; in [0, 1]. 1 says nothing
        more; 0 is that of squares with clipped predictions, whose p and q have a constant sum.

    Notes
    -----
    Under add-remove, a removed record's loss is zero and Lam stays the same. The bounds, with
    ``mu = 1 / noise_multiplier``, ``c = log(1 + curvature)`` and the Gaussian profile
    ``delta_G(e; mu)`` at ``e = epsilon - c``, are

    - known sign: ``delta_G(e; mu)`` under add-remove if ``e >= 0``, ``delta_G(e; 2 mu)`` under
      replace-one if ``e >= mu^2``;
    - any sign: ``2 delta_G(e; mu)`` if ``e >= mu^2 / 2``, and the same with ``2 mu``; with w
      for `opposite`, ``delta_G(e; mu) + delta_G(e; w mu)``, and ``delta_G(e; 2 mu) + delta_G(e; mu)
      + delta_G(e; max(1, 2 w) mu)`` if ``e >= 2 mu sqrt(1 + mu^2)``, are less for w below 1;
    - logistic: those of a known sign, and at ``epsilon >= 4 curvature`` (``>= max(8 curvature,
      mu^2)`` under replace-one) ``delta_G(epsilon; mu)`` (``2 mu``), that is what the same noise
      costs when it is added to the sum of gradients;

    with other, weaker bounds at smaller epsilon. For units of several rows they hold for every
    number of rows, with an epsilon that is smaller by some ``2 mu^2 / e`` times delta, and with
    ``c = r log(1 + curvature / r)`` for at most r rows and ``c = curvature`` for any number; of any
    sign, the factor 2 becomes a somewhat smaller epsilon too. Not covered: releasing b, constrained
    minimisation, losses that are no function of ``w . x``, a Lam that depends on the number of rows
    where that is not public. Proofs: :ref:`Theorems 2 to 6 of objective perturbation
    <objective-perturbation-2>`, of `opposite` :ref:`Theorems 2 and 3 of regression losses
    <regression-losses-2>` and, for units, where `opposite` changes nothing, :ref:`Theorems 4 and 6
    of units <objective-perturbation-units-4>`; compare Kifer, Smith and Thakurta (2012), Iyengar et
    al. (2019) and Redberg, Koskela and Wang (2023).

    Examples
    --------
    >>> from skdp.accounting import ObjectivePerturbationEvent
    >>> event = ObjectivePerturbationEvent(3.0, curvature=0.05)
    >>> round(event.profile_bound(0.5, "add-remove"), 9)
    0.01678491
    >>> event = ObjectivePerturbationEvent(3.0, curvature=0.05, rows_per_unit=None)
    >>> round(event.profile_bound(0.5, "add-remove"), 9)
    0.017361093
    """

    noise_multiplier: float
    curvature: float
    slope: str = "known-sign"
    approximation: float = 0.0
    outputs: int = 1
    rows_per_unit: int | None = 1
    opposite: float = 1.0

    def __post_init__(self) -> None:
        store_number(self, "noise_multiplier", "> 0")
        store_number(self, "curvature", ">= 0")
        store_number(self, "approximation", ">= 0")
        store_share(self, "opposite")
        store_integer(self, "outputs", 1)
        if self.rows_per_unit is not None:
            store_integer(self, "rows_per_unit", 1)
        if self.slope not in SLOPES:
            raise ValueError(f"{_OWNER}: slope must be one of {SLOPES}, got {self.slope!r}.")
        if self.opposite != 1.0 and self.slope != "any-sign":
            raise ValueError(f"{_OWNER}: opposite={self.opposite} is of slope='any-sign' only.")
        if self.outputs > 1 and self.slope == "any-sign":
            raise ValueError(
                f"{_OWNER}: outputs={self.outputs} needs a slope of known sign; compose one event "
                "for each objective instead."
            )

    def profile_bound(self, epsilon: float, adjacency: Adjacency) -> float:
        """Return an upper bound on delta that holds in both orders of two neighbours."""
        mu = 1.0 / self.noise_multiplier
        facts = (mu, self.curvature, self.slope, self.outputs, adjacency)
        if self.rows_per_unit == 1:
            return Objective(*facts, self.opposite).profile(epsilon, self.approximation)
        return UnitObjective(*facts, self.rows_per_unit).profile(epsilon, self.approximation)
