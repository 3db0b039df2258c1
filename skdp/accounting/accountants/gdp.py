"""Gaussian differential privacy: exact accounting of unsampled Gaussian mechanisms."""

from __future__ import annotations

import math
from typing import ClassVar

from scipy.special import ndtr

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.analysis import GaussianMixture, analysis_of
from skdp.accounting.events import Event
from skdp.accounting.numerics import gaussian_profile
from skdp.base.parameters import Adjacency, SampledGdp

_SQRT2 = math.sqrt(2.0)
_LARGEST_SQUARE = 700.0  # the exponential of more overflows


class GDPAccountant(Accountant):
    """Accountant for Gaussian differential privacy, exact for Gaussian mechanisms.

    Supports Gaussian releases without sampling, or on samples that are the entire data set.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Adjacency relation between neighbouring data sets.
    subsampling : {"refuse", "clt"}, default="refuse"
        Treatment of a Gaussian release on a proper sample, which is not Gaussian. ``"refuse"`` does
        not support it. ``"clt"`` replaces it by the limit of many rarely sampled steps, an estimate
        that may lie on either side of the true cost. Results are then marked as no bound, and
        budgets and calibration refuse them.

    Notes
    -----
    Releases that are mu_t-GDP compose to sqrt(sum mu_t^2)-GDP with a Gaussian profile, without loss
    (Dong, Roth and Su, 2022, Corollary 3.3).

    As T grows and ``q sqrt(T)`` tends to a constant, T sampled steps tend to mu-GDP. With m the
    shift between the mixture components in units of the noise:

    - ``mu = q sqrt(T (e^(m^2) - 1))`` for Poisson samples under add-remove (Bu, Dong, Long and Su,
      2020).
    - ``mu = 2 q sqrt(T sinh(m^2))`` for Poisson samples under replace-one, by the same central
      limit. The loss of a step tends to ``q (e^(m x - m^2/2) - e^(-m x - m^2/2))``.
    - ``mu = q sqrt(2 T (e^(m^2) Phi(3m/2) + 3 Phi(-m/2) - 2))`` for samples of fixed size under
      replace-one (Dong, Roth and Su, 2022, Corollary 5.4).

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, GDPAccountant
    >>> round(GDPAccountant().compose(GaussianEvent(2.0), count=4).epsilon(1e-5), 6)
    4.377178
    """

    name = "gdp"
    _parameters: ClassVar[tuple[str, ...]] = ("subsampling",)

    def __init__(
        self, adjacency: Adjacency = "add-remove", *, subsampling: SampledGdp = "refuse"
    ) -> None:
        super().__init__(adjacency)
        if subsampling not in ("refuse", "clt"):
            raise ValueError(f"subsampling must be 'refuse' or 'clt', got {subsampling!r}.")
        self.subsampling = subsampling

    @property
    def is_upper_bound(self) -> bool:
        """Whether results are proved upper bounds; False with ``subsampling="clt"``."""
        return self.subsampling == "refuse"

    @property
    def mu(self) -> float:
        """Total ``mu`` of the history; an estimate with ``subsampling="clt"``."""
        return math.hypot(
            *(math.sqrt(count) * self._leaf_mu(leaf) for leaf, count in self._counts.items())
        )

    def _leaf_mu(self, leaf: Event) -> float:
        card = analysis_of(leaf, self._adjacency)
        mu, mixture = card.mu(), card.mixture()
        if mu is not None:
            return mu
        assert mixture is not None
        return math.sqrt(limiting_square(mixture))

    def _supports_leaf(self, leaf: Event) -> bool:
        card = analysis_of(leaf, self._adjacency)
        return card.mu() is not None or (self.subsampling == "clt" and card.mixture() is not None)

    def _epsilon(self, delta: float) -> float:
        return gaussian_profile.epsilon(self.mu, delta)

    def _delta(self, epsilon: float) -> float:
        return gaussian_profile.delta(self.mu, epsilon)

    def _epsilon_interval(self, delta: float) -> tuple[float, float]:
        lower, upper = gaussian_profile.epsilon_bounds(self.mu, delta)
        return (lower if self._is_exact() else 0.0), upper

    def _delta_interval(self, epsilon: float) -> tuple[float, float]:
        lower, upper = gaussian_profile.delta_bounds(self.mu, epsilon)
        return (lower if self._is_exact() else 0.0), upper

    def _is_exact(self) -> bool:
        """Return whether all releases are Gaussian, not only dominated."""
        return self.is_upper_bound and all(
            analysis_of(leaf, self._adjacency).dominated_by() is None for leaf in self._counts
        )


def limiting_square(pair: GaussianMixture) -> float:
    """Return a sampled step's square of mu in the limit of many steps."""
    square = pair.mu * pair.mu
    if square > _LARGEST_SQUARE:
        return math.inf
    if pair.kind == "poisson-add-remove":
        return pair.rate**2 * math.expm1(square)
    if pair.kind == "poisson-replace-one":
        return 4.0 * pair.rate**2 * math.sinh(square)
    # e^(m^2) Phi(3m/2) + 3 Phi(-m/2) - 2, with the terms that cancel taken together.
    inside = math.expm1(square) * float(ndtr(1.5 * pair.mu))
    inside += 0.5 * (math.erf(1.5 * pair.mu / _SQRT2) - 3.0 * math.erf(0.5 * pair.mu / _SQRT2))
    return 2.0 * pair.rate**2 * max(0.0, inside)
