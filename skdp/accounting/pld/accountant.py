"""Privacy-loss distributions: the tightest composition of a plan fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Callable

from skdp.accounting import gaussian_profile
from skdp.accounting._base import Accountant
from skdp.accounting._leaves import gaussian_mu, sampled_gaussian
from skdp.accounting.events import ApproxDPEvent, Event, PureDPEvent
from skdp.accounting.pld.gaussian_mixtures import GaussianMixturePair
from skdp.accounting.pld.lattice_bounds import Pairs, direction_delta, direction_epsilon, extremes
from skdp.accounting.pld.pairs import Pair
from skdp.accounting.pld.randomised_response import RandomisedResponsePair
from skdp.accounting.rdp import RDPAccountant

_LARGE_EPSILON = 20.0  # beyond these two, Renyi divergences are consulted as well
_LARGE_DELTA = 0.5
_LARGEST_SHIFT = 1e150


class PLDAccountant(Accountant):
    """Account with privacy-loss distributions.

    Supports Gaussian releases, bare or on Poisson samples under either adjacency, or on samples of
    fixed size under replace-one, releases of which only (epsilon, delta) is known, and any
    composition of these.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        The relation between neighbouring data sets.

    Notes
    -----
    Each release is replaced by a dominating pair (Zhu, Dong and Wang, 2022), each pair by a
    discrete one that dominates it (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, 2022), and
    these are convolved by Fourier transform with exponential tilting. Discretisation, truncation
    and rounding are all counted against the caller, so results are upper bounds; the excess is a
    few parts in 10^4 of delta, about 10^-5 of epsilon. With heavy tails (little noise on rarely
    sampled rows, at a delta near the chance of being sampled at all) bounds are looser and may rise
    where the truth falls. Plans of bare Gaussians are exact.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, PLDAccountant, PoissonSampledEvent
    >>> step = PoissonSampledEvent(0.01, GaussianEvent(4.0))
    >>> round(PLDAccountant().compose(step, count=10_000).epsilon(1e-5), 3)
    0.947
    """

    name = "pld"

    def _supports_leaf(self, leaf: Event) -> bool:
        return (
            isinstance(leaf, PureDPEvent | ApproxDPEvent)
            or gaussian_mu(leaf, self._adjacency) is not None
            or sampled_gaussian(leaf, self._adjacency) is not None
        )

    def _epsilon(self, delta: float) -> float:
        value = self._worst(
            lambda mu: gaussian_profile.epsilon(mu, delta),
            lambda pairs: direction_epsilon(pairs, delta),
        )
        if value <= _LARGE_EPSILON:
            return value
        value = min(value, gaussian_profile.epsilon(self._mu_of_all_rows(), delta))
        return value if self._noiseless() else min(value, self._renyi().epsilon(delta).upper)

    def _delta(self, epsilon: float) -> float:
        if math.isinf(epsilon):
            return self._worst(lambda mu: float(math.isinf(mu)), lambda pairs: extremes(pairs)[0])
        value = self._worst(
            lambda mu: gaussian_profile.delta(mu, epsilon),
            lambda pairs: direction_delta(pairs, epsilon),
        )
        if value <= _LARGE_DELTA:
            return value
        value = min(value, gaussian_profile.delta(self._mu_of_all_rows(), epsilon))
        return value if self._noiseless() else min(value, self._renyi().delta(epsilon).upper)

    def _mu_of_all_rows(self) -> float:
        """Return the Gaussian-DP parameter if every sample held all rows; inf if there is none.

        Sampling can only help: the divergences of a sampled release are mixtures, with the rate
        as weight, of those of the full one and of equal distributions, which are the least.
        """
        squares = []
        for leaf, count in self._counts.items():
            mu = gaussian_mu(leaf, self._adjacency)
            pair = sampled_gaussian(leaf, self._adjacency)
            if mu is None and pair is not None:
                mu = 2.0 * pair.mu if pair.kind == "poisson-replace-one" else pair.mu
            if mu is None:
                return math.inf
            squares.append(count * mu * mu)
        return math.sqrt(sum(squares))

    def _noiseless(self) -> bool:
        """Tell whether some release has so little noise that its moments overflow."""
        pairs = (sampled_gaussian(leaf, self._adjacency) for leaf in self._counts)
        return any(pair is not None and pair.mu > _LARGEST_SHIFT for pair in pairs)

    def _renyi(self) -> RDPAccountant:
        """Return an accountant whose bounds also hold, and which no loss is too large for.

        With very little noise the losses of one release span more scales than a grid has cells.
        """
        return RDPAccountant(self._adjacency).compose(self.event)

    def _worst(self, exact: Callable[[float], float], composed: Callable[[Pairs], float]) -> float:
        """Evaluate in each direction that a pair of neighbours can have, and take the larger."""
        if any(isinstance(leaf, ApproxDPEvent) and leaf.delta == 1.0 for leaf in self._counts):
            return exact(math.inf)
        squares, sampled, other = [0.0], [], []
        for leaf, count in self._counts.items():
            mu = gaussian_mu(leaf, self._adjacency)
            pair = sampled_gaussian(leaf, self._adjacency)
            if mu is not None:
                squares.append(count * mu * mu)
            elif pair is not None and pair.mu > _LARGEST_SHIFT:
                # Whoever is sampled is seen: any two results differ with the rate at most.
                other.append((RandomisedResponsePair(0.0, pair.rate), count))
            elif pair is not None:
                sampled.append((pair, count))
            elif isinstance(leaf, PureDPEvent | ApproxDPEvent):
                delta = leaf.delta if isinstance(leaf, ApproxDPEvent) else 0.0
                if max(leaf.epsilon, delta) > 0.0:
                    other.append((RandomisedResponsePair(leaf.epsilon, delta), count))
        mu = math.sqrt(math.fsum(squares))
        if not sampled and not other:
            return exact(mu)
        shared: list[tuple[Pair, int]] = list(other)
        if mu > 0.0:
            shared.append((GaussianMixturePair("gaussian", 1.0, mu), 1))
        directed = bool(sampled) and self._adjacency == "add-remove"
        kinds: tuple[str | None, ...] = ("remove", "add") if directed else (None,)
        return max(
            composed(
                shared
                + [
                    (GaussianMixturePair(kind or pair.kind, pair.rate, pair.mu), count)
                    for pair, count in sampled
                ]
            )
            for kind in kinds
        )
