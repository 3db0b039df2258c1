"""Releases with noise of a known kind."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.accounting.checks import store_integer, store_number
from skdp.accounting.events.base import Event


@dataclass(frozen=True)
class GaussianEvent(Event):
    """One release with Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by a public bound, positive. Outside samples the
        bound is the L2 sensitivity of the query under the adjacency relation, and the release is
        exactly ``1 / noise_multiplier``-GDP. Inside a sampled event it is the largest L2 norm of
        one record's contribution to the sum.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, GDPAccountant
    >>> accountant = GDPAccountant().compose(GaussianEvent(4.0), count=4)
    >>> accountant.mu
    0.5
    >>> round(accountant.epsilon(1e-5), 4)
    1.9931
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        store_number(self, "noise_multiplier", "> 0")


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """One release with Laplace noise, with density proportional to ``e^(-|x| / b)``.

    Parameters
    ----------
    noise_multiplier : float
        Scale ``b`` of the noise divided by a public bound, positive. Outside samples the bound is
        the L1 sensitivity of the query under the adjacency relation, and the release is exactly ``1
        / noise_multiplier``-DP. Inside a sampled event it is the largest L1 norm of one record's
        contribution to the sum.

    Notes
    -----
    Vectors with independent noise in each coordinate are covered. Let the coordinates be shifted by
    ``t_1 >= t_2 >= ...`` in units of b. The release reveals at most as much as a single coordinate
    shifted by their sum.

    A shift t has the profile ``h(eps) = 1 - e^((eps - t)/2)`` for ``|eps| <= t``, and 0 above.
    Another shift by ``s <= t`` is dominated by randomised response. With ``p = 1/(1 + e^-s)``, the
    profile at ``eps >= 0`` becomes at most ``p h(eps - s) + (1 - p) h(eps + s)``. For ``eps <= t -
    s`` this is ``1 - e^((eps - t)/2) / cosh(s/2)``, where ``cosh(s/2) <= e^(s/2)``. Above, it is
    ``p (1 - e^((eps - s - t)/2))``. Both are at most ``1 - e^((eps - s - t)/2)``.

    Examples
    --------
    >>> from skdp.accounting import LaplaceEvent, PLDAccountant
    >>> accountant = PLDAccountant().compose(LaplaceEvent(10.0), count=20)
    >>> round(accountant.epsilon(0.0), 6), round(accountant.epsilon(1e-5), 2)
    (2.0, 1.59)
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        store_number(self, "noise_multiplier", "> 0")


@dataclass(frozen=True)
class NormExponentialEvent(Event):
    """One release of a vector with noise of density proportional to ``e^(-|x| / s)``.

    The norm is the Euclidean norm of the entire vector, in any dimension; its length has a Gamma
    distribution (Chaudhuri, Monteleoni and Sarwate, 2011).

    Parameters
    ----------
    noise_multiplier : float
        Scale ``s`` divided by a public bound, positive. Outside samples the bound is the L2
        sensitivity of the query under the adjacency relation, and the release is ``1 /
        noise_multiplier``-DP. Inside a sampled event it is the largest L2 norm of one record's
        contribution to the sum.

    Notes
    -----
    A `LaplaceEvent` with the same multiplier dominates it, and equals it in one dimension:
    :ref:`Theorem 1 of pure epsilon <pure-1>`.

    Examples
    --------
    >>> from skdp.accounting import NormExponentialEvent, PLDAccountant
    >>> round(PLDAccountant().compose(NormExponentialEvent(2.0)).epsilon(0.0), 6)
    0.5
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        store_number(self, "noise_multiplier", "> 0")


@dataclass(frozen=True)
class DiscreteGaussianEvent(Event):
    """One release of an integer with discrete Gaussian noise (Canonne, Kamath and Steinke, 2020).

    Parameters
    ----------
    noise_multiplier : float
        ``sigma / sensitivity``, positive, where ``P(X = x)`` is proportional to ``e^(-x^2 / (2
        sigma^2))`` on the integers. ``sigma`` is not quite the standard deviation.
    sensitivity : int, default=1
        Largest change of the query, a single integer, under the adjacency relation. Inside a
        sampled event: largest contribution of one record.

    Examples
    --------
    >>> from skdp.accounting import DiscreteGaussianEvent, PLDAccountant
    >>> round(PLDAccountant().compose(DiscreteGaussianEvent(4.0)).epsilon(1e-5), 3)
    0.927
    """

    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        store_number(self, "noise_multiplier", "> 0")
        store_integer(self, "sensitivity", 1)


@dataclass(frozen=True)
class DiscreteLaplaceEvent(Event):
    """One release of integers with discrete Laplace (two-sided geometric) noise.

    Parameters
    ----------
    noise_multiplier : float
        ``b / sensitivity``, positive, where ``P(X = x)`` is proportional to ``e^(-|x| / b)`` on the
        integers. The release is exactly ``1 / noise_multiplier``-DP.
    sensitivity : int, default=1
        Largest change of the query under the adjacency relation, in the L1 norm for a vector of
        integers with independent noise. Inside a sampled event: largest contribution of one record.

    Notes
    -----
    At attained losses the profile is that of a `LaplaceEvent` with the same multiplier. Between
    them it is linear in ``e^eps``, which is slightly more. The difference is largest at a
    sensitivity of 1, where the release is randomised response.

    Examples
    --------
    >>> from skdp.accounting import DiscreteLaplaceEvent, PLDAccountant
    >>> accountant = PLDAccountant().compose(DiscreteLaplaceEvent(5.0, sensitivity=2))
    >>> round(accountant.epsilon(0.0), 6)
    0.2
    """

    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        store_number(self, "noise_multiplier", "> 0")
        store_integer(self, "sensitivity", 1)
