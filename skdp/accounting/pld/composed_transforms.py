"""The moment generating function of a composition, and its tilt for a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, logsumexp

from skdp.accounting.numerics.arithmetic import LARGEST_EXPONENT, UNIT_ROUNDOFF, log_rest
from skdp.accounting.pld.gaussian_transforms import TiltedNodes, transform
from skdp.accounting.pld.grid_estimates import atoms_cumulants
from skdp.accounting.pld.pairs.base import Array, Complex, Transformable

_SMALLEST_TILT = 1.5  # least tilt, in units of the inverse standard deviation
_CLOSE = 0.2  # step of the tilt that ends the search, in the same units
_LARGEST_TRIALS = 60  # tilts that are tried
_ROUNDING = 1e-12  # relative error of the mass outside the moments, generously


class ComposedLoss:
    """Moments of composed losses, and of Gaussian ones of shift mu."""

    def __init__(self, pairs: Sequence[tuple[Transformable, int]], mu: float = 0.0) -> None:
        self.pairs = list(pairs)
        self.mu = mu
        kept = math.fsum(count * log_rest(pair.failure) for pair, count in self.pairs)
        failure = -math.expm1(kept)
        cut = math.fsum(count * pair.cut_mass for pair, count in self.pairs)
        # Bounds on the probability of the losses that the moments do not contain.
        self.outside = (
            failure * (1.0 - _ROUNDING),
            failure * (1.0 + _ROUNDING) + cut * (1.0 + _ROUNDING),
        )

    @property
    def largest_tilt(self) -> float:
        """A tilt near the largest one with moments in range."""
        return min((pair.largest_tilt for pair, _ in self.pairs), default=math.inf)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Estimate the log moment and two derivatives at ``theta >= 0``.

        Not finite if the moment overflows.
        """
        square = self.mu * self.mu
        total = np.array([0.5 * theta * (theta + 1.0), theta + 0.5, 1.0]) * square
        for pair, count in self.pairs:
            total += count * np.array(pair.cumulants(theta))
        return float(total[0]), float(total[1]), float(total[2])

    def log_transform(self, z: Complex) -> tuple[Complex, Array]:
        """Return ``Lambda(z)``, for a common real part, and error bounds.

        If infinite, only the real part is meaningful: an upper bound.
        """
        values = 0.5 * self.mu * self.mu * z * (z + 1.0)
        errors = 8.0 * UNIT_ROUNDOFF * np.abs(values)
        unknown = np.zeros(len(z), dtype=bool)
        with np.errstate(invalid="ignore"):
            for pair, count in self.pairs:
                part, error = pair.log_transform(z)
                values = values + count * part
                unknown |= ~np.isfinite(error)
                # Each of the sums rounds what was added before.
                roundings = (4.0 + len(self.pairs)) * UNIT_ROUNDOFF
                known = count * error + roundings * np.abs(count * part)
                errors = errors + np.where(np.isfinite(known), known, 0.0)
        # Where one real part is but a bound from above, so is the sum with the other errors.
        values.real = np.where(unknown, values.real + errors, values.real)
        return values, np.where(unknown, math.inf, errors)

    def log_moment(self, theta: float) -> float:
        """Bound ``Lambda`` at a positive argument, perhaps infinite."""
        values, errors = self.log_transform(np.array([theta + 0j]))
        bound = float(values[0].real + errors[0])
        return bound if math.isfinite(bound) else math.inf

    def log_decay(self, theta: float, frequency: float) -> float:
        """Bound the fall of the modulus from a frequency on; at most 0."""
        parts = (count * pair.decay(theta, frequency) for pair, count in self.pairs)
        fall = math.fsum(parts) - 0.5 * (self.mu * frequency) ** 2
        return fall * (1.0 - 8.0 * UNIT_ROUNDOFF)


@dataclass(frozen=True)
class Saddle:
    """A tilt ``theta``, and the tilted loss's moments.

    ``log_delta`` is the estimated profile at ``epsilon``.
    """

    theta: float
    log_moment: float
    epsilon: float
    deviation: float
    log_delta: float


def _describe(loss: ComposedLoss, theta: float) -> Saddle | None:
    """Estimate the profile at the epsilon with saddle point ``theta``."""
    moment, mean, variance = loss.cumulants(theta)
    if not (math.isfinite(moment) and math.isfinite(mean) and 0.0 < variance < math.inf):
        return None
    half = math.sqrt(0.5 * variance)
    factor = 0.5 * float(erfcx(theta * half) - erfcx((theta + 1.0) * half))
    if not moment - theta * mean < LARGEST_EXPONENT:
        return None
    log_delta = moment - theta * mean + math.log(max(factor, 1e-300))
    return Saddle(theta, moment, mean, math.sqrt(variance), log_delta)


def find_saddle(
    loss: ComposedLoss, *, log_delta: float | None = None, epsilon: float | None = None
) -> Saddle | None:
    """Find the tilt for a target delta or epsilon.

    None if moments overflow first.
    """
    start = _describe(loss, 0.0)
    if start is None:
        return None
    if log_delta is not None:
        theta = math.sqrt(max(-2.0 * log_delta, 2.0)) / start.deviation
    else:
        assert epsilon is not None
        theta = max(epsilon - start.epsilon, start.deviation) / start.deviation**2
    theta = min(theta, loss.largest_tilt)
    low, high = 0.0, math.inf
    below = above = None
    for _ in range(_LARGEST_TRIALS):
        here = _describe(loss, theta)
        step = 0.0
        if here is None:
            high = theta
        else:
            if log_delta is not None:
                lacking = here.log_delta - log_delta
                step = lacking / (here.deviation * max(theta * here.deviation, 0.5))
            else:
                assert epsilon is not None
                lacking = epsilon - here.epsilon
                step = lacking / here.deviation**2
            if lacking > 0.0 or theta * here.deviation < _SMALLEST_TILT:
                low, below = theta, here
                step = max(step, _SMALLEST_TILT / here.deviation - theta)
            else:
                high, above = theta, here
            if abs(step) * here.deviation < _CLOSE:
                return here
        if above is not None and (high - low) * above.deviation < _CLOSE:
            return above
        if high < math.inf and high - low <= 1e-6 * high:
            break
        theta = _following(theta, step, low, high)
    return above or below


def _following(theta: float, step: float, low: float, high: float) -> float:
    """Return Newton's next tilt, inside the bracket."""
    following = min(max(theta + step, theta / 8.0), 8.0 * theta)
    margin = 0.01 * (high - low) if high < math.inf else 0.0
    if step != 0.0 and low + margin < following < high - margin:
        return following
    if high == math.inf:
        return 4.0 * theta
    return math.sqrt(low * high) if low > 0.0 else high / 8.0


_ULPS = 128.0  # roundings of a term: a pairwise sum adds 40, elementary functions a few each
# From the first exponent on terms are taken relative to their sum; the second bounds a tilt.
_LARGE_EXPONENT, _LARGEST_EXPONENT = 500.0, 1e6


class AtomsLoss:
    """Losses with probabilities, each with a relative error of ``doubt``."""

    cut_mass = 0.0

    def __init__(
        self, losses: Array, masses: Array, failure: float = 0.0, doubt: float = 0.0
    ) -> None:
        self.losses, self.masses, self.failure, self._doubt = losses, masses, failure, doubt
        self._size = float(np.max(np.abs(losses)))
        self.largest_tilt = _LARGEST_EXPONENT / max(self._size, 1e-300)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """See `Transformable`."""
        return atoms_cumulants(self.losses, self.masses, theta)

    def log_transform(self, z: Complex) -> tuple[Complex, Array]:
        """See `Transformable`."""
        theta = float(z[0].real)
        scale = 0.0
        if theta * self._size > _LARGE_EXPONENT:
            scale = float(logsumexp(theta * self.losses, b=self.masses))
        with np.errstate(over="ignore", invalid="ignore"):
            nodes = self._tilted(theta, scale)
        values, errors = transform(nodes, z.imag)
        return values + scale, errors + 4.0 * UNIT_ROUNDOFF * abs(scale)

    def _tilted(self, theta: float, scale: float) -> TiltedNodes:
        """Tilt the list, divided by e^scale."""
        exponents = theta * self.losses - scale
        weights, grown = self.masses * np.exp(exponents), self.masses * np.expm1(exponents)
        excess = float(np.sum(grown)) + (math.fsum(self.masses) - 1.0)
        total, mean = float(np.sum(weights)), float(np.dot(weights, np.abs(self.losses)))
        moved = 8.0 * UNIT_ROUNDOFF * self._size
        relative = UNIT_ROUNDOFF * _ULPS
        # Of exponents the difference is rounded, and the product once more.
        apart = moved * theta + self._doubt
        if scale != 0.0:
            apart += 4.0 * UNIT_ROUNDOFF * (theta * self._size + abs(scale))
        rounding = (
            relative * float(np.sum(np.abs(grown))) + apart * total,
            (relative + apart) * mean + moved * total,
        )
        return TiltedNodes(
            self.losses, weights, excess, 0.0, 4.0 * UNIT_ROUNDOFF * abs(excess), rounding
        )

    def decay(self, theta: float, frequency: float) -> float:
        """Return 0, as atoms do not fall."""
        return 0.0
