"""Dominating pairs of leaves with Laplace or discrete noise."""

from __future__ import annotations

import math

from skdp.accounting.analysis import laplace_mixture
from skdp.accounting.events import DiscreteGaussianEvent, DiscreteLaplaceEvent, Event
from skdp.accounting.pld.pairs.base import Pair
from skdp.accounting.pld.pairs.discrete import DiscreteLaplacePair
from skdp.accounting.pld.pairs.discrete_gaussian import discrete_gaussian_pair
from skdp.accounting.pld.pairs.laplace import LaplacePair, laplace_pair
from skdp.accounting.pld.pairs.randomised_response import RandomisedResponsePair

_LARGEST_SAMPLED_SHIFT = 300.0
_LARGEST_SHIFT = 1e4
_SMALLEST = 1e-100  # rates and shifts below count as this one, which can only raise a bound
_LEAST_DISCRETE_NOISE = 1e-3
_LARGEST_NOISE = 1e12  # of integers, above which as much is assumed
_MOST_STEPS = 2**12  # of an integer query


def noise_pair(leaf: Event, adjacency: str, direction: str | None = None) -> Pair | None:
    """Return the pair that dominates a leaf with Laplace or discrete noise.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.
    direction : {"remove", "add"}, optional
        Which of two neighbours comes first; it matters to `is_directed` leaves.

    Returns
    -------
    Pair or None
        None for any other leaf, and for one that releases nothing.
    """
    if isinstance(leaf, DiscreteGaussianEvent):
        sigma = min(leaf.noise_multiplier, _LARGEST_NOISE) * leaf.sensitivity
        return discrete_gaussian_pair(leaf.sensitivity, sigma)
    if isinstance(leaf, DiscreteLaplaceEvent):
        # A larger shift of the noise, or one in fewer steps of the same total, reveals more.
        merged = math.ceil(leaf.sensitivity / _MOST_STEPS)
        steps = math.ceil(leaf.sensitivity / merged)
        shift = max(steps * merged / leaf.sensitivity / leaf.noise_multiplier, _SMALLEST)
        return _pure(shift) or DiscreteLaplacePair(steps, shift)
    mixture = laplace_mixture(leaf, adjacency)
    if mixture is None or mixture.shift == 0.0:
        return None
    rate, shift = max(mixture.rate, _SMALLEST), max(mixture.shift, _SMALLEST)
    if mixture.kind == "laplace":
        return _pure(shift) or LaplacePair(shift)
    if mixture.shift > _LARGEST_SAMPLED_SHIFT:
        # Whoever is sampled is seen: any two results differ with the rate at most.
        return RandomisedResponsePair(0.0, rate)
    kind = direction if mixture.kind == "poisson-add-remove" else mixture.kind
    return laplace_pair(kind or "remove", rate, shift)


def _pure(shift: float) -> Pair | None:
    """Return the pair of pure differential privacy where a shift is too large for a grid."""
    return RandomisedResponsePair(shift) if shift > _LARGEST_SHIFT else None


def is_directed(leaf: Event, adjacency: str) -> bool:
    """Tell whether the pair depends on which of two neighbours comes first.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    bool
        True for Laplace noise on Poisson samples under add-remove.
    """
    mixture = laplace_mixture(leaf, adjacency)
    return mixture is not None and mixture.kind == "poisson-add-remove"


def is_noise_leaf(leaf: Event, adjacency: str) -> bool:
    """Tell whether a leaf has Laplace or discrete noise that `noise_pair` knows.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    bool
        Whether a bound is proved.
    """
    discrete = isinstance(leaf, DiscreteGaussianEvent | DiscreteLaplaceEvent)
    return discrete or laplace_mixture(leaf, adjacency) is not None


def is_noiseless(leaf: Event) -> bool:
    """Tell whether a leaf has so little noise that its losses are beyond every scale.

    Parameters
    ----------
    leaf : Event
        An event that is neither composed nor repeated.

    Returns
    -------
    bool
        If so, its results count as distinct.
    """
    if isinstance(leaf, DiscreteGaussianEvent):
        return leaf.noise_multiplier < _LEAST_DISCRETE_NOISE
    if isinstance(leaf, DiscreteLaplaceEvent):
        return leaf.noise_multiplier < 1e-150
    mixture = laplace_mixture(leaf, "add-remove")
    return mixture is not None and mixture.kind == "laplace" and mixture.shift > 1e150


def is_exact(leaf: Event, adjacency: str) -> bool:
    """Tell whether the pair of a leaf is attained, so that lower bounds may be built on it.

    Parameters
    ----------
    leaf : Event
        A leaf with Laplace or discrete noise.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    bool
        False where `noise_pair` puts another one in its place.
    """
    if isinstance(leaf, DiscreteGaussianEvent):
        return _LEAST_DISCRETE_NOISE <= leaf.noise_multiplier <= _LARGEST_NOISE
    if isinstance(leaf, DiscreteLaplaceEvent):
        shift = 1.0 / leaf.noise_multiplier
        return _SMALLEST <= shift <= _LARGEST_SHIFT and leaf.sensitivity <= _MOST_STEPS
    mixture = laplace_mixture(leaf, adjacency)
    if mixture is None or mixture.kind == "laplace":
        return mixture is not None and _SMALLEST <= mixture.shift <= _LARGEST_SHIFT
    return _SMALLEST <= mixture.shift <= _LARGEST_SAMPLED_SHIFT and mixture.rate >= _SMALLEST
