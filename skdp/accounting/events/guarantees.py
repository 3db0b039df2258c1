"""Releases with a known guarantee: (epsilon, delta), profiles, selections, minimisers."""

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
    """A release with only a known epsilon of differential privacy.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats under the adjacency relation, finite and ``>= 0``. Inside a
        `PoissonSampledEvent`: for a record that joins or leaves the sample.

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
    """A release with only a known (epsilon, delta) of differential privacy.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats under the adjacency relation, finite and ``>= 0``. Inside a
        `PoissonSampledEvent`: for a record that joins or leaves the sample.
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
    """A release with a proved upper bound on its privacy profile.

    The profile is the smallest ``delta(epsilon)`` for which the release is (epsilon, delta)-DP. A
    subclass is a frozen dataclass that describes the release and implements `profile_bound`.
    `PLDAccountant` composes it with all other events.

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
        """Return an upper bound on delta that is valid in both orders of two neighbours.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, ``>= 0``, however large.
        adjacency : {"add-remove", "replace-one"}
            Adjacency relation between neighbouring data sets; a supported one.

        Returns
        -------
        float
            Bound in [0, 1] that never rises with epsilon.
        """

    def supports_adjacency(self, adjacency: Adjacency) -> bool:
        """Return whether the bound is proved under an adjacency relation; True by default."""
        return True

    def largest_loss(self, adjacency: Adjacency) -> float:
        """Return an epsilon for which the release is (epsilon, 0)-DP, in nats.

        Infinite by default; subclasses may return less.
        """
        return math.inf


@dataclass(frozen=True)
class BoundedRangeEvent(ProfileEvent):
    """A choice whose privacy loss between two neighbours varies by at most epsilon.

    An example is the exponential mechanism (`exponential_mechanism`, or `report_noisy_max` with
    Gumbel noise) at the epsilon of its call, monotone or not.

    Parameters
    ----------
    epsilon : float
        Width in nats, finite and ``>= 0``, of an interval that contains all log ratios of the
        outcomes' probabilities under two neighbours. The ends may depend on the neighbours. Inside
        a `PoissonSampledEvent`: for a record that joins or leaves the sample.

    Notes
    -----
    Such a release is epsilon-DP, and its compositions cost less than those of other epsilon-DP
    releases. Its profile at x is at most ``(1 - e^((x - epsilon)/2))^2 / (1 - e^-epsilon)`` under
    the adjacency relation. A release of two outcomes attains each point of this bound, but no
    release attains all points. Renyi divergences, those of an ``epsilon^2 / 8``-zCDP release,
    therefore compose many choices better: compare both accountants. Proofs: :ref:`Theorems 1 to 3
    of selection mechanisms <selection-mechanisms-1>`.

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
        """Return the largest delta of releases with two outcomes."""
        left = self.epsilon - epsilon
        if left <= 0.0:
            return 0.0
        half = -math.expm1(-0.5 * left)
        return min(1.0, half * (half / -math.expm1(-self.epsilon)) * (1.0 + 1e-14))

    def largest_loss(self, adjacency: Adjacency) -> float:
        """Return epsilon: the interval contains zero, as probabilities add up to one."""
        return self.epsilon


@dataclass(frozen=True)
class RenyiEvent(Event):
    """One release with known distributions of its outcomes on neighbouring data sets.

    Parameters
    ----------
    left, right : Distribution
        Two distributions of the same dimension and the same class of
        `skdp.accounting.distributions`. Consider their larger Renyi divergence, of `left` from
        `right` or of `right` from `left`. At every order it must bound the divergence of the
        outcomes for all neighbouring data sets under the adjacency relation, in either order. You
        must prove this bound. The distributions must be a public worst case, not those of the given
        data.

    Notes
    -----
    Neighbours may be in either order. In a composition the order may change, as later queries may
    depend on earlier results. The larger divergence is therefore chosen per release and then added
    up; the larger of the two sums would understate the cost.

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
        """Return ``order - 1`` times the larger Renyi divergence, rounded up; may be infinite.

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
    """A release that is repeated a random number of times, with only the best result released.

    Parameters
    ----------
    event : Event
        One run: everything that a candidate does with the records, including its score.
    mean : float
        Expected number of runs, at least 1; for a Poisson number, positive.
    shape : float
        Shape ``eta > -1`` of the truncated negative binomial number of runs: 0 is the logarithmic
        distribution, 1 the geometric one. Infinite for a Poisson number, where zero runs have a
        fixed result.

    Notes
    -----
    Every run draws its candidate with replacement from a distribution that does not depend on the
    records; otherwise all runs are the same mechanism. The number of runs, the other results and
    the run time must stay secret. Results are compared by a fixed order of the values that a run
    returns.

    Let ``delta`` be the profile of one run and m the mean. The profile of the best result is
    bounded by a mixture, as in `SelectionProfile`. The mixture never exceeds ``m delta(epsilon - (1
    + eta) log(e^e + (1/gamma - 1) delta(e)))`` for any ``e >= 0``. Papernot and Steinke (2022),
    Theorem 2, bound the Renyi divergences. If a run is epsilon-DP, all runs together are less than
    ``(2 + eta)`` epsilon-DP. Liu and Talwar (2019) have 3 epsilon for the geometric distribution.

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
        """Return plain values, ready for JSON; an infinite shape is ``"inf"``."""
        return super().to_dict() | {"shape": "inf" if math.isinf(self.shape) else self.shape}


_OWNER = "ObjectivePerturbationEvent"


@dataclass(frozen=True)
class ObjectivePerturbationEvent(ProfileEvent):
    """The minimiser of a convex objective with a random linear term.

    The released value minimises, over all w, the sum of the records' losses plus ``Lam / 2 |w|^2``
    plus ``b . w``. The losses are those of a generalised linear model: convex functions of ``w .
    x`` with Lipschitz derivatives. Lam is a fixed public number, and b is fresh normal noise in
    every coordinate, which stays secret.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of b divided by a public bound on the norm of one record's gradient;
        positive.
    curvature : float
        Largest second derivative of a record's loss in the direction of its row, times the row's
        squared norm, over Lam; at least 0. For the unclipped logistic loss and rows of norm up to R
        it is ``R^2 / (4 Lam)``.
    slope : {"logistic", "known-sign", "any-sign"}, default="known-sign"
        Knowledge about the losses' derivative. ``"known-sign"``: the record determines its sign, as
        for every decreasing loss of a classification margin. ``"any-sign"``: none.
        ``"logistic"``: it is the unclipped logistic loss, whose curvature vanishes where its slope
        is steepest.
    approximation : float, default=0.0
        0 for exact minimisers. ``2 tau / (Lam s)`` for minimisers to a gradient norm tau,
        guaranteed on every data set, with added normal noise of standard deviation s. A mu-GDP
        release that follows, such as a noisy table of scores by these weights, adds mu in squares.
    outputs : int, default=1
        Number of objectives with the same rows and independent noise that are released together, as
        in one-vs-rest. More than one requires a known sign. `approximation` is for all of them
        jointly.
    rows_per_unit : int or None, default=1
        Difference between neighbouring data sets. 1: a row. Other values: a unit, such as a
        patient, whose loss is a convex combination of its rows' losses. The value is a public bound
        on the number of rows per unit. It may be a bound on the number of weights of one output if
        that is less and at least 2. None means any number of rows.

        `noise_multiplier` and `curvature` are relative to a unit's gradient and to the sum of its
        rows' curvatures. If the weights of a unit's rows sum to at most m, both bounds are m times
        those of a row. If rows have weights by class, they are those of the heaviest class.
    opposite : float, default=1.0
        Number in [0, 1], for ``slope="any-sign"``. Each record's gradients lie between ``-p u`` and
        ``q u`` for a fixed direction u. The longer of the two is at most the bound B behind
        `noise_multiplier`, and ``p + q`` is at most ``(1 + opposite) B``. 1 adds no condition. 0 is
        for squared losses with clipped predictions, where p and q have a constant sum.

    Notes
    -----
    Under add-remove, a removed record's loss is zero and Lam stays the same. Let ``mu = 1 /
    noise_multiplier``, ``c = log(1 + curvature)``, ``e = epsilon - c``, and ``delta_G(e; mu)`` the
    Gaussian profile. The bounds are:

    - Known sign: ``delta_G(e; mu)`` under add-remove if ``e >= 0``; ``delta_G(e; 2 mu)`` under
      replace-one if ``e >= mu^2``.
    - Any sign: ``2 delta_G(e; mu)`` if ``e >= mu^2 / 2``; the same with ``2 mu`` for ``mu`` under
      replace-one.
    - Any sign, with w for `opposite` below 1: also the smaller ``delta_G(e; mu) + delta_G(e; w
      mu)`` under add-remove if ``e >= mu^2 / 2``. Under replace-one, if ``e >= 2 mu sqrt(1 +
      mu^2)``: ``delta_G(e; 2 mu) + delta_G(e; mu) + delta_G(e; max(1, 2 w) mu)``.
    - Logistic: those of a known sign, and the cost of the same noise added to the sum of gradients.
      The latter is ``delta_G(epsilon; mu)`` at ``epsilon >= 4 curvature``; under replace-one it has
      ``2 mu`` and ``epsilon >= max(8 curvature, mu^2)``.

    At smaller epsilon other, weaker bounds apply. For units of several rows the bounds apply to
    every number of rows with three changes:

    - They are evaluated at an epsilon that is smaller by about ``2 mu^2 / e`` times delta.
    - ``c = r log(1 + curvature / r)`` for at most r rows, and ``c = curvature`` for any number.
    - For any sign, a slightly smaller epsilon also replaces the factor 2; `opposite` changes
      nothing.

    Releasing b, constrained minimisation, and losses that are not a function of ``w . x`` are not
    covered. A Lam that depends on the number of rows requires that this number is public.

    Proofs:

    - :ref:`Theorems 2 to 6 of objective perturbation <objective-perturbation-2>`.
    - For `opposite`: :ref:`Theorems 2 and 3 of regression losses <regression-losses-2>`.
    - For units: :ref:`Theorems 4 and 6 of units <objective-perturbation-units-4>`.

    Compare Kifer, Smith and Thakurta (2012), Iyengar et al. (2019) and Redberg, Koskela and Wang
    (2023).

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
            raise ValueError(f"{_OWNER}: opposite={self.opposite} requires slope='any-sign'.")
        if self.outputs > 1 and self.slope == "any-sign":
            raise ValueError(
                f"{_OWNER}: outputs={self.outputs} requires a slope of known sign; compose one "
                "event per objective instead."
            )

    def profile_bound(self, epsilon: float, adjacency: Adjacency) -> float:
        """Return an upper bound on delta that is valid in both orders of two neighbours."""
        mu = 1.0 / self.noise_multiplier
        facts = (mu, self.curvature, self.slope, self.outputs, adjacency)
        if self.rows_per_unit == 1:
            return Objective(*facts, self.opposite).profile(epsilon, self.approximation)
        return UnitObjective(*facts, self.rows_per_unit).profile(epsilon, self.approximation)
