"""Objective perturbation: a minimiser of a randomly tilted objective."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.accounting.checks import store_integer, store_number, store_share
from skdp.accounting.events.guarantees import ProfileEvent
from skdp.accounting.numerics.objective_profile import SLOPES, Objective
from skdp.accounting.numerics.unit_objective_profile import UnitObjective
from skdp.choices import Adjacency

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
