"""Pairs of releases on samples, from a bound on the profile of what is done with the sample.

The bound holds in both orders of neighbours, so a symmetric list of losses l with masses p under P,
and p e^-l under Q, is above it, and may stand for the release in either order. Rounding: masses and
losses of these lists may only grow, which raises every divergence. Proofs, and the numbers below:
``docs/proofs/sampled_releases.md``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skdp.accounting.analysis import GeneralSample, log_mixture
from skdp.accounting.pld.pairs.base import Array
from skdp.accounting.pld.pairs.profile import Atoms, ListedPair, hull_atoms, mirrored

_SMALLEST = 1e-100  # rates below count as this one, which can only raise a bound
_LARGEST_LOSS = 300.0  # beyond which losses on the sample count as infinite
_RAISED = 1e-11  # above the rounding of a sum of all masses
_UNIT_ROUNDOFF = 2.0**-53


class SampledPair(ListedPair):
    """A pair with the given losses.

    Parameters
    ----------
    atoms : Atoms
        Increasing losses, of which some are positive, and their masses.
    """

    def __init__(self, atoms: Atoms) -> None:
        self._list = atoms
        self.failure = atoms.infinite
        self.largest_loss = max(float(atoms.losses[-1]), 0.0)
        self.variation = self.profile(0.0)[1]

    @property
    def _atoms(self) -> Atoms:
        return self._list

    def profile(self, epsilon: float) -> tuple[float, float]:
        """Return zero and the pair's divergence: no release is known to attain it."""
        above = self._list.losses > epsilon
        shares = -np.expm1(epsilon - self._list.losses[above])
        value = float(self._list.masses[above] @ shares) + self.failure
        return 0.0, min(1.0, value * (1.0 + _RAISED))


@lru_cache(maxsize=64)
def sampled_pair(sample: GeneralSample, direction: str | None) -> SampledPair | None:
    """Return the pair that dominates a release on a sample.

    Parameters
    ----------
    sample : GeneralSample
        How it is drawn, and what is done with it.
    direction : {"remove", "add"} or None
        Which of two neighbours comes first; for Poisson samples under add-remove.

    Returns
    -------
    SampledPair or None
        None if nothing is ever released about a record.
    """
    from skdp.accounting.pld.curves import profile_curve

    curve = profile_curve(sample.event, sample.adjacency)
    equal = len(curve.values) > 0 and curve.values[0] == curve.epsilons[0] == 0.0
    if sample.rate == 0.0 or equal:
        return None
    losses, masses, infinite = hull_atoms(curve.epsilons, curve.values)
    kept = np.abs(losses) <= _LARGEST_LOSS
    infinite = max(infinite, 0.0) + float(np.sum(masses[losses > _LARGEST_LOSS]))
    inner, rate = Atoms(losses[kept], masses[kept], infinite), max(sample.rate, _SMALLEST)
    if direction == "add":
        return SampledPair(_added(inner, rate))
    if sample.kind == "poisson-replace-one":
        return SampledPair(_replaced(inner, rate))
    atoms = _removed(inner, rate)
    if direction is None:
        up = atoms.losses > 0.0
        atoms = mirrored(atoms.losses[up], atoms.masses[up], atoms.infinite)
    return SampledPair(atoms)


def _removed(inner: Atoms, rate: float) -> Atoms:
    """Return the mixture of P and Q against Q (Theorem 1); first what only Q can have."""
    alone = (1.0 - rate) * inner.infinite
    masses = (1.0 - rate) * inner.masses * np.exp(-inner.losses) + rate * inner.masses
    losses = log_mixture(rate, np.append(-math.inf, inner.losses))
    return _listed(losses, np.append(alone, masses), rate * inner.infinite)


def _added(inner: Atoms, rate: float) -> Atoms:
    """Return P against the mixture of P and Q, Q standing for the record (Theorem 1)."""
    losses = -log_mixture(rate, -np.append(inner.losses, math.inf))
    return _listed(losses, np.append(inner.masses, inner.infinite), 0.0)


def _replaced(inner: Atoms, rate: float) -> Atoms:
    """Return the mixtures of Q with two others whose ratios to Q run in opposite directions (3)."""
    falling, masses = inner.losses[::-1], inner.masses[::-1]
    # Ratios e^high fall and e^-low rise from left to right; steps end somewhat too far right.
    ends = np.cumsum(masses * np.exp(-falling)) * (1.0 + _RAISED)
    mirrored_ends = np.cumsum(np.append(inner.infinite, masses)) * (1.0 + _RAISED)
    edges = np.union1d(ends, mirrored_ends)
    starts = np.append(0.0, edges[:-1])
    high = np.append(falling, -math.inf)[np.searchsorted(ends, starts, side="right")]
    at = np.searchsorted(mirrored_ends, starts, side="right")
    low = np.append(math.inf, falling)[np.minimum(at, len(falling))]
    up = high > -low
    high, low, widths = high[up][::-1], low[up][::-1], (edges - starts)[up][::-1]
    one, other = log_mixture(rate, high), log_mixture(rate, -low)
    losses = one - other + 32.0 * _UNIT_ROUNDOFF * (np.abs(one) + np.abs(other))
    found = _listed(losses, widths * ((1.0 - rate) + rate * np.exp(high)), rate * inner.infinite)
    return mirrored(*found)


def _listed(losses: Array, masses: Array, infinite: float) -> Atoms:
    """Leave out what has no mass, and round everything else up."""
    infinite += float(np.sum(masses[losses == math.inf]))
    kept = (masses > 0.0) & (losses < math.inf)
    losses, masses = losses[kept], masses[kept]
    raised = 1.0 + 32.0 * _UNIT_ROUNDOFF
    infinite = min(1.0, infinite * raised)
    if not len(losses):
        return Atoms(np.zeros(1), np.zeros(1), infinite)
    losses = np.maximum.accumulate(losses + 32.0 * _UNIT_ROUNDOFF * np.abs(losses))
    return Atoms(losses, masses * raised, infinite)
