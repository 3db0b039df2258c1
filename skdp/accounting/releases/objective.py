"""The event of objective perturbation: a minimiser of a randomly tilted objective."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import ndtr

from skdp.accounting.checks import check_integer, check_noise_multiplier, check_real
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.profile_events import ProfileEvent
from skdp.accounting.releases.objective_profile import record_profile, replacement_profile

_OWNER = "ObjectivePerturbationEvent"
_SLOPES = ("logistic", "known-sign", "any-sign")
# Beyond, squares overflow, and the bound stays what it is here.
_LARGEST_EPSILON = 1e12
# Losses of the final noise, in its standard deviations, at which its tail is cut off.
_CUTS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 14.0, 20.0, 38.0)


@lru_cache(maxsize=64)
def _passed(spread: float) -> tuple[tuple[float, float], ...]:
    """Return losses of the second release, and how much it exceeds each (its own profile)."""
    losses = [spread * (cut + 0.5 * spread) for cut in _CUTS]
    return tuple((loss, gaussian_profile.delta(spread, loss)) for loss in losses)


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
    outputs : int, default=1
        Number of objectives with the same rows and independent noise that are released together,
        as in one-vs-rest. More than one needs a known sign. `approximation` is about them jointly.

    Raises
    ------
    ValueError, TypeError
        If a parameter lies outside its range.

    Notes
    -----
    Under add-remove, a removed record's loss is zero and Lam stays the same. The bounds, with
    ``mu = 1 / noise_multiplier``, ``c = log(1 + curvature)`` and the Gaussian profile
    ``delta_G(e; mu)`` at ``e = epsilon - c``, are

    - known sign: ``delta_G(e; mu)`` under add-remove if ``e >= 0``, ``delta_G(e; 2 mu)`` under
      replace-one if ``e >= mu^2``;
    - any sign: ``2 delta_G(e; mu)`` if ``e >= mu^2 / 2``, and the same with ``2 mu``;
    - logistic: those of a known sign, and at ``epsilon >= 4 curvature`` (``>= max(8 curvature,
      mu^2)`` under replace-one) ``delta_G(epsilon; mu)`` (``2 mu``), that is what the same noise
      costs when it is added to the sum of gradients;

    with other, weaker bounds at smaller epsilon. Not covered: releasing b, constrained
    minimisation, losses that are no function of ``w . x``, a Lam that depends on the number of rows
    where that is not public. Proofs: ``docs/proofs/objective_perturbation.md``; compare Kifer,
    Smith and Thakurta (2012), Iyengar et al. (2019) and Redberg, Koskela and Wang (2023).

    Examples
    --------
    >>> from skdp.accounting import ObjectivePerturbationEvent
    >>> event = ObjectivePerturbationEvent(3.0, curvature=0.05)
    >>> round(event.profile_bound(0.5, "add-remove"), 9)
    0.01678491
    """

    noise_multiplier: float
    curvature: float
    slope: str = "known-sign"
    approximation: float = 0.0
    outputs: int = 1

    def __post_init__(self) -> None:
        check_noise_multiplier(self)
        for name in ("curvature", "approximation"):
            value = check_real(_OWNER, name, getattr(self, name))
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{_OWNER}: {name} must be a finite number >= 0, got {value!r}.")
            object.__setattr__(self, name, value)
        if self.slope not in _SLOPES:
            raise ValueError(f"{_OWNER}: slope must be one of {_SLOPES}, got {self.slope!r}.")
        outputs = check_integer(_OWNER, "outputs", self.outputs, 1)
        if outputs > 1 and self.slope == "any-sign":
            raise ValueError(
                f"{_OWNER}: outputs={outputs} needs a slope of known sign; compose one event for "
                "each objective instead."
            )
        object.__setattr__(self, "outputs", outputs)

    def profile_bound(self, epsilon: float, adjacency: str) -> float:
        """Return an upper bound on delta that holds in both orders of two neighbours.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, ``>= 0``.
        adjacency : {"add-remove", "replace-one"}
            The relation between neighbouring data sets.

        Returns
        -------
        float
            The bound in [0, 1]; it never rises with epsilon.
        """
        if epsilon == math.inf:
            return 0.0
        epsilon = min(epsilon, _LARGEST_EPSILON)
        if self.approximation == 0.0:
            return self._exact(epsilon, adjacency)
        spread = self.approximation
        best = 1.0
        for shift, factor, mu, start in self._gaussian_parts(adjacency):
            excess = epsilon - shift
            if excess >= start:
                tail = float(ndtr(0.5 * spread - (excess - start) / spread)) * (1.0 + 1e-12)
                main = gaussian_profile.delta(math.hypot(mu, spread), excess)
                best = min(best, factor * main + tail)
        least = self._exact(epsilon, adjacency)
        for passed, tail in _passed(spread):
            if least + tail < best:
                best = min(best, self._exact(epsilon - passed, adjacency) + tail)
        return best

    def _exact(self, epsilon: float, adjacency: str) -> float:
        """Bound the profile of exact minimisers, at any real epsilon."""
        mu = 1.0 / self.noise_multiplier
        profile = record_profile if adjacency == "add-remove" else replacement_profile
        known_sign = self.slope != "any-sign"
        best = min(1.0, profile(mu, epsilon - self._determinants, self.outputs, known_sign))
        if self.slope == "logistic" and self.outputs == 1:
            _, _, mu, start = self._saturated(adjacency)
            if epsilon >= start:
                best = min(best, gaussian_profile.delta(mu, epsilon))
        return best

    @property
    def _determinants(self) -> float:
        """Return the largest logarithm of a ratio of determinants of neighbours."""
        return self.outputs * math.log1p(self.curvature) * (1.0 + 1e-15)

    def _saturated(self, adjacency: str) -> tuple[float, float, float, float]:
        """Return shift, factor, mu and start of the logistic loss's own bound."""
        mu = 1.0 / self.noise_multiplier
        if adjacency == "add-remove":
            return 0.0, 1.0, mu, 4.0 * self.curvature
        return 0.0, 1.0, 2.0 * mu, max(8.0 * self.curvature, mu * mu)

    def _gaussian_parts(self, adjacency: str) -> list[tuple[float, float, float, float]]:
        """Return where the profile is at most a multiple of a Gaussian one.

        Each (shift, factor, mu, start) says ``factor * delta_G(epsilon - shift; mu)`` for
        ``epsilon - shift >= start``.
        """
        if self.outputs > 1:
            return []
        mu = 1.0 / self.noise_multiplier
        double = adjacency == "replace-one"
        if self.slope == "any-sign":
            mu *= 2.0 if double else 1.0
            return [(self._determinants, 2.0, mu, 0.5 * mu * mu)]
        start = mu * mu if double else 0.0
        parts = [(self._determinants, 1.0, 2.0 * mu if double else mu, start)]
        if self.slope == "logistic":
            parts.append(self._saturated(adjacency))
        return parts
