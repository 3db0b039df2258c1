"""What the moments of the sampled Gaussian pairs integrate.

Let ``M(x) = 1 - q + q e^(mu x - mu^2/2)`` and ``w = 1 + z``. With x standard normal, the pairs of
`pairs.gaussian` have the moments ``E_P[e^(z L)]``

- `RemovalMixture`: E[M^w]; `AdditionMixture`: E[M^(-z)];
- `PoissonReplacementMixture`: E[M(x)^w M(-x)^(-z)];
- `UniformReplacementMixture`: 1 + E[(M^w + M^(-z) - M - 1) 1(x > mu/2)].

Since ``E[M] = 1``, a multiple of ``M - 1`` may be subtracted from each integrand, after which it is
of second order in the loss; so ``E_P[e^(z L)] - 1`` comes out with an error that is small against
the *loss* of one release, and the moments of 10^10 releases are as accurate as those of one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp.accounting.numerics.floats import log_mixture
from skdp.accounting.pld.pairs.base import Array

Term = tuple[float, float]  # the sign s and the power e of a factor M(s x)^e


class Integrand(NamedTuple):
    """What the moments integrate, at the nodes of a rule, on one or two branches.

    Each branch has its losses, the logarithm of the tilt, and bounds on the order and the size of
    that logarithm. ``linear`` is what is subtracted, ``constant`` and ``drift`` what that leaves;
    ``ratio`` bounds M - 1, ``steep`` the slope of log M.
    """

    branches: list[tuple[Array, Array, float, Array]]
    linear: Array
    constant: float
    drift: float
    ratio: Array
    steep: Array


@dataclass(frozen=True)
class Mixture(ABC):
    """A sampled Gaussian pair with rate in (0, 1), its losses cut off where x exceeds ``cut``.

    Those of an addition are bounded and never cut; the symmetric pairs are cut on both sides.
    """

    rate: float
    mu: float
    cut: float = math.inf

    rises: ClassVar[bool] = True  # a positive power of M is a factor
    falls: ClassVar[bool] = False  # a negative power of M is
    two_sided: ClassVar[bool] = False  # that of M(-x), whereas it is M(x) elsewhere
    half_line: ClassVar[bool] = False  # x counts above mu/2 only

    @abstractmethod
    def products(self, theta: float) -> list[list[Term]]:
        """Return what the density is multiplied by: a sum of products of powers of M."""

    @abstractmethod
    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate the integrand."""

    def top(self, theta: float) -> float:
        """Return a point beyond which the tilted density falls as a standard normal one does."""
        return self.mu * (1.0 + theta)

    @property
    def still(self) -> float:
        """Probability of a loss of zero that no product stands for."""
        return 0.0

    @property
    def cut_base(self) -> float:
        """Standard normal probability of what is cut off."""
        return float(ndtr(-self.cut))

    @property
    def cut_gain(self) -> float:
        """What (1 - q) N(0) + q N(mu) gives more to what is cut off than N(0) does."""
        return self.rate * (float(ndtr(self.mu - self.cut)) - self.cut_base)

    @property
    def cut_up(self) -> float:
        """Probability of what is cut off under (1 - q) N(0) + q N(mu)."""
        return self.cut_base + self.cut_gain

    @property
    def cut_mass(self) -> float:
        """Probability under P of what is cut off."""
        return self.cut_up

    def _evaluate_ratio(self, x: Array) -> tuple[Array, Array, Array]:
        """Return log M, M - 1 and the slope of log M."""
        up = log_mixture(self.rate, self.mu * (x - 0.5 * self.mu))
        ratio = np.expm1(up)
        return up, ratio, self.mu * (ratio + self.rate) / (1.0 + ratio)


class RemovalMixture(Mixture):
    """(1-q) N(0) + q N(mu) against N(0)."""

    def products(self, theta: float) -> list[list[Term]]:
        """Return M^(1 + theta)."""
        return [[(1.0, 1.0 + theta)]]

    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate M^w, less w (M - 1)."""
        power = 1.0 + theta
        up, ratio, steep = self._evaluate_ratio(x)
        drift = float(np.sum(weights * ratio)) + self.cut_gain
        branches = [(up, power * up, power, np.abs(up))]
        constant = -power * self.cut_gain - self.cut_base
        return Integrand(branches, power * ratio, constant, drift, ratio, steep)


class AdditionMixture(Mixture):
    """N(0) against (1-q) N(0) + q N(mu)."""

    rises, falls = False, True

    def products(self, theta: float) -> list[list[Term]]:
        """Return M^(-theta)."""
        return [[(1.0, -theta)]]

    def top(self, theta: float) -> float:
        """Return a point beyond which the tilted density falls as a standard normal one does."""
        return self.mu

    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate M^(-z), plus z (M - 1)."""
        up, ratio, steep = self._evaluate_ratio(x)
        drift = float(np.sum(weights * ratio))
        branches = [(-up, -theta * up, theta, np.abs(up))]
        return Integrand(branches, -theta * ratio, 0.0, -drift, ratio, steep)


class PoissonReplacementMixture(Mixture):
    """(1-q) N(0) + q N(mu) against (1-q) N(0) + q N(-mu)."""

    falls = True
    two_sided = True

    @property
    def cut_loss(self) -> float:
        """What (1 - q) N(0) + q N(-mu) gives more to what is cut off than N(0); negative."""
        return self.rate * (float(ndtr(-self.mu - self.cut)) - self.cut_base)

    @property
    def cut_mass(self) -> float:
        """Probability under P of what is cut off."""
        return self.cut_up + self.cut_base + self.cut_loss

    def products(self, theta: float) -> list[list[Term]]:
        """Return M(x)^(1 + theta) M(-x)^(-theta)."""
        return [[(1.0, 1.0 + theta), (-1.0, -theta)]]

    def top(self, theta: float) -> float:
        """Return a point beyond which the tilted density falls as a standard normal one does."""
        return self.mu * (1.0 + 2.0 * theta)

    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate M(x)^w M(-x)^(-z), less w (M(x) - 1) - z (M(-x) - 1)."""
        power = 1.0 + theta
        up, ratio, steep = self._evaluate_ratio(x)
        down, fall, steep_down = self._evaluate_ratio(-x)
        return Integrand(
            [(up - down, power * up - theta * down, power, np.abs(up) + np.abs(down))],
            power * ratio - theta * fall,
            -(self.cut_gain + self.cut_loss) - 2.0 * self.cut_base,  # on both sides
            0.0,
            np.abs(ratio) + np.abs(fall),
            steep + steep_down,
        )


class UniformReplacementMixture(Mixture):
    """The symmetric pair of samples of fixed size."""

    falls = True
    half_line = True

    @property
    def still(self) -> float:
        """Probability of a loss of zero that no product stands for."""
        return (1.0 - self.rate) * math.erf(0.5 * self.mu / math.sqrt(2.0))

    @property
    def cut_mass(self) -> float:
        """Probability under P of what is cut off."""
        return self.cut_up + self.cut_base

    def products(self, theta: float) -> list[list[Term]]:
        """Return M^(1 + theta) and M^(-theta)."""
        return [[(1.0, 1.0 + theta)], [(1.0, -theta)]]

    def evaluate(self, theta: float, x: Array, weights: Array) -> Integrand:
        """Evaluate M^w + M^(-z), less M + 1."""
        power = 1.0 + theta
        up, ratio, steep = self._evaluate_ratio(x)
        size = np.abs(up)
        branches = [(up, power * up, power, size), (-up, -theta * up, theta, size)]
        return Integrand(branches, ratio, -(self.cut_up + self.cut_base), 0.0, ratio, steep)
