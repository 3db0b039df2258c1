"""Dominating pairs of Laplace releases, sampled or not, cut into cells of the privacy loss.

In units of the scale, with ``S`` the Laplace distribution at ``shift`` and ``Q0`` that at 0, the
likelihood ratio of the mixture ``(1-q) Q0 + q S`` to ``Q0`` at x is ``M(u) = 1 - q + q e^(2u -
shift)`` with ``u = x`` cut to [0, shift]. The pairs are

- ``"laplace"``: S against Q0 (rate 1);
- ``"remove"`` / ``"add"``: (1-q) Q0 + q S against Q0, and the reverse (Poisson sampling,
  add-remove: Zhu, Dong and Wang, 2022, Theorem 11). Given who else is sampled, the divergence of a
  mixture from its first component is ``q`` times that of the components at another order, and
  divergences are jointly convex;
- ``"poisson-replace-one"``: (1-q) Q0 + q S against (1-q) Q0 + q S', S' being at ``-shift``; see
  Corollary 4 of ``docs/proofs/sampled_releases.md``.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.analysis import log_mixture
from skdp.accounting.pld.grid.estimates import atoms_cumulants
from skdp.accounting.pld.optimistic import lowered
from skdp.accounting.pld.pairs.base import Array, Complex, Indices, NodeMasses, spread
from skdp.accounting.pld.transforms.laplace import mixture_transform, plain_transform

_PROFILE_ROUNDING = 1e-13
_SKETCHED = 400
_LARGE = 700.0


class LaplaceMixturePair:
    """A pair made of Laplace distributions of scale 1 at 0 and at ``shift`` (and ``-shift``).

    Parameters
    ----------
    kind : str
        One of the names in the module's description.
    rate : float
        Sampling probability, in (0, 1); 1 for ``"laplace"``.
    shift : float
        Distance in units of the scale, positive.
    """

    def __init__(self, kind: str, rate: float, shift: float) -> None:
        self.kind = kind
        self.rate = rate
        self.shift = shift
        self.failure = 0.0
        self.atomic = False
        self.cut_mass = 0.0
        self._highest = float(log_mixture(rate, shift))
        self._lowest = float(log_mixture(rate, -shift))
        # What the loss of a replacement is above that of a removal.
        self._offset = -self._lowest if kind == "poisson-replace-one" else 0.0
        self.largest_loss = -self._lowest if kind == "add" else self._highest + self._offset
        self.origin = 0.0 if kind == "poisson-replace-one" else self.largest_loss
        if kind == "poisson-replace-one":
            self.lattice = self.largest_loss  # between the extreme losses, zero must be on the grid
        else:
            self.lattice = self._highest - self._lowest
        distance = 2.0 * shift if kind == "poisson-replace-one" else shift
        self.variation = -rate * math.expm1(-0.5 * distance) * (1.0 + _PROFILE_ROUNDING)

    def span(self, tail: float) -> tuple[float, float]:
        """Return the smallest and the largest loss, or where P's lower tail is negligible."""
        if self.kind == "add":
            return -self._highest, self.largest_loss
        if self.kind == "poisson-replace-one":
            return -self.largest_loss, self.largest_loss
        lowest = self._lowest
        if self.rate == 1.0:
            # The loss is shift - 2 E with E of exponential tails.
            lowest = max(lowest, self.shift + 2.0 * math.log(max(tail, 1e-300)))
        return lowest, self._highest

    def sketch(self, tail: float) -> tuple[Array, Array]:
        """Return a coarse list of losses with their probabilities, for estimates."""
        low, high = self.span(tail)
        # Most of the mass of a large shift is within a few nats of the ends.
        ends = np.geomspace(1e-3, 30.0, 60)
        ends = ends[ends < 0.5 * (high - low)]
        middle = [0.0] if self.kind == "poisson-replace-one" else []
        edges = np.linspace(low, high, _SKETCHED + 1)
        edges = np.unique(np.concatenate([edges, low + ends, high - ends, middle]))
        return edges, self.node_masses(edges).masses

    def grid(self, step: float, tail: float, aligned: bool = False) -> tuple[Indices, Array, float]:
        """Return indices of losses in units of ``step``, their masses, and the infinite mass."""
        indices, nodes = self._nodes_on_grid(step, tail, aligned)
        return indices, nodes.masses, nodes.infinite

    def optimistic_grid(
        self, step: float, tail: float, aligned: bool = False
    ) -> tuple[Indices, Array, float]:
        """Return the same for a discrete pair that this one dominates."""
        indices, nodes = self._nodes_on_grid(step, tail, aligned)
        zero = None if aligned and self.origin != 0.0 else int(-indices[0])
        return indices, lowered(step, nodes, zero), 0.0

    def _nodes_on_grid(self, step: float, tail: float, aligned: bool) -> tuple[Indices, NodeMasses]:
        origin = self.origin if aligned else 0.0
        low, high = self.span(tail)
        # Extreme losses that are on the grid up to rounding are its ends.
        first = math.floor((low - origin) / step + 1e-9)
        last = math.ceil((high - origin) / step - 1e-9)
        if self.kind == "poisson-replace-one":
            first, last = min(first, -1), max(last, 1)
        indices = np.arange(first, max(last, first + 1) + 1, dtype=np.int64)
        return indices, self.node_masses(np.asarray(origin + indices * step, dtype=np.float64))

    def node_masses(self, edges: Array) -> NodeMasses:
        """Spread P's mass over the given losses, dominating the pair.

        Parameters
        ----------
        edges : ndarray
            Increasing losses; zero must be among them for ``"poisson-replace-one"``. An extreme
            loss within rounding of the first or last edge counts as equal to it.

        Returns
        -------
        NodeMasses
            Mass below the first loss is moved up to it.
        """
        if self.kind == "add":
            return self._down(edges, 1.0)
        if self.kind != "poisson-replace-one":
            return self._up(edges)
        zero = int(np.searchsorted(edges, 0.0))
        # P is a multiple of Q0 where its loss is negative, so is Q where it is positive.
        share = math.exp(self._lowest)
        negative = self._down(edges[: zero + 1] + self._offset, share)
        positive = self._up(edges[zero:] - self._offset)
        masses = np.zeros(len(edges))
        masses[: zero + 1] += negative.masses
        masses[zero:] += positive.masses
        falling = np.concatenate([negative.falling, positive.falling])
        rising = np.concatenate([negative.rising, positive.rising])
        return NodeMasses(masses, 0.0, falling, rising, negative.below)

    def _position(self, loss: Array) -> Array:
        """Return u with log M(u) = loss, cut to [0, shift]."""
        if self.rate == 1.0:
            return np.clip(0.5 * (loss + self.shift), 0.0, self.shift)
        q = self.rate
        with np.errstate(divide="ignore"):
            near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 30.0)) / q, -1.0))
        far = loss - math.log(q) + np.log1p(-(1.0 - q) * np.exp(-np.maximum(loss, 30.0)))
        log_ratio = np.where(loss < 30.0, near, far)
        return np.clip(0.5 * (log_ratio + self.shift), 0.0, self.shift)

    def _loss(self, u: Array) -> Array:
        """Return log M(u)."""
        return log_mixture(self.rate, 2.0 * u - self.shift)

    def _up(self, edges: Array) -> NodeMasses:
        """Spread the part with x > 0 (or all of it) of P = (1-q) Q0 + q S against Q0."""
        q, shift = self.rate, self.shift
        u = self._position(edges)
        width = np.diff(u)
        still = -0.5 * np.exp(-u[:-1]) * np.expm1(-width)
        moved = 0.5 * np.exp(u[:-1] - shift) * np.expm1(width)
        mass = (1.0 - q) * still + q * moved
        # P less M(u) Q0 from the lower end of what the cell holds, and the rest of the factor.
        excess = 2.0 * q * np.exp(u[:-1] - shift) * np.sinh(0.5 * width) ** 2
        raised = np.maximum(self._loss(u[:-1]) - edges[:-1], 0.0)
        excess += np.exp(np.minimum(edges[:-1], _LARGE)) * np.expm1(raised) * still * (width > 0.0)
        if self.kind == "poisson-replace-one":
            bottom = 0.0  # x < 0 belongs to the other branch
        else:
            bottom = 0.5 * ((1.0 - q) + q * math.exp(-shift))
        top = 0.5 * ((1.0 - q) * math.exp(-shift) + q)
        below = q * 0.5 * float(np.exp(u[0] - shift) - math.exp(-shift))
        below += (1.0 - q) * 0.5 * -math.expm1(-float(u[0]))
        nodes = spread(edges, mass, excess, below, 0.0)
        return _with_atoms(edges, nodes, [(self._lowest, bottom), (self._highest, top)])

    def _down(self, edges: Array, share: float) -> NodeMasses:
        """Spread Q0 against (1-q) Q0 + q S, whose loss falls as u rises, times ``share``."""
        q, shift = self.rate, self.shift
        u = self._position(-edges)[::-1]  # ascending
        width = np.diff(u)
        still = -0.5 * np.exp(-u[:-1]) * np.expm1(-width)
        mass = still[::-1]
        lower = edges[:-1]
        excess = (0.5 * q * np.exp(u[:-1] - shift) * np.expm1(width) ** 2)[::-1]
        lacking = np.minimum(self._loss(u[1:])[::-1] + lower, 0.0)
        excess = np.exp(lower) * excess - np.expm1(lacking) * mass * (mass > 0.0)
        if self.kind == "poisson-replace-one":
            top = 0.0
        else:
            top = 0.5
        bottom = 0.5 * math.exp(-shift)
        below = 0.5 * (math.exp(-float(u[-1])) - math.exp(-shift))
        nodes = spread(edges, share * mass, share * excess, share * max(below, 0.0), 0.0)
        atoms = [(-self._highest, share * bottom), (-self._lowest, share * top)]
        return _with_atoms(edges, nodes, atoms)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Return the log moment of the loss and its first two derivatives, estimated."""
        return atoms_cumulants(*self.sketch(1e-100), theta)

    def log_transform(self, z: Complex) -> tuple[Complex, Array]:
        """Return log E[e^(zL)] and bounds on its absolute error; see `Pair`."""
        if self.rate == 1.0:
            return plain_transform(self.shift, z)
        return mixture_transform(self.kind, self.rate, self.shift, z)

    @property
    def largest_tilt(self) -> float:
        """A tilt at which moments are not yet out of reach."""
        return 500.0 / self.shift

    def decay(self, theta: float, frequency: float) -> float:
        """Return 0: transforms of atoms come back to their full size."""
        return 0.0

    def profile(self, epsilon: float) -> tuple[float, float] | None:
        """Return bounds on the hockey-stick divergence at ``epsilon >= 0``."""
        q = self.rate
        if epsilon >= self.largest_loss:
            return 0.0, 0.0
        if self.kind == "add":
            # q H at the order e^epsilon' = q y / (1 - y (1-q)), times what makes the masses one.
            rest = q - (1.0 - q) * math.expm1(epsilon)
            if rest <= 0.0:
                return 0.0, 0.0
            inner = epsilon + math.log(q) - math.log(rest)
            value = -rest * math.expm1(0.5 * (inner - self.shift))
        else:
            loss = np.array([epsilon - self._offset])
            value = -q * math.expm1(float(self._position(loss)[0]) - self.shift)
        # An error of the position, by as much as one of epsilon, matters near the largest loss.
        error = _PROFILE_ROUNDING * (value + q * (epsilon + self.shift))
        return max(0.0, value - error), value + error


def _with_atoms(edges: Array, nodes: NodeMasses, atoms: list[tuple[float, float]]) -> NodeMasses:
    """Add atoms: to a node if they are there up to rounding, else to both ends of their cell."""
    masses, falling, rising = nodes.masses, nodes.falling.copy(), nodes.rising.copy()
    below, infinite = nodes.below, nodes.infinite
    for loss, mass in atoms:
        tolerance = 1e-14 * max(abs(edges[0]), abs(edges[-1]), abs(loss))
        nearest = int(np.argmin(np.abs(edges - loss)))
        if abs(edges[nearest] - loss) <= tolerance:
            masses[nearest] += mass
        elif loss < edges[0]:
            masses[0] += mass
            below += mass
        elif loss > edges[-1]:
            infinite += mass
        else:
            cell = int(np.searchsorted(edges, loss)) - 1
            width = edges[cell + 1] - edges[cell]
            share = math.expm1(edges[cell] - loss) / math.expm1(-width)
            masses[cell] += (1.0 - share) * mass
            masses[cell + 1] += share * mass
            falling[cell] += (1.0 - share) * mass
            rising[cell] += share * mass
    return NodeMasses(masses, infinite, falling, rising, below)
