"""Bounds on the profile of a composition by inverting its moment generating function.

Let L be the composed loss and ``Lambda(z) = log E[e^(z L)]``, which adds up over releases. For any
``theta > 0``

    delta(epsilon) = (1 / 2 pi i) int e^(Lambda(z) - z epsilon) / (z (z + 1)) dz,  Re z = theta.

A trapezoidal rule evaluates the integral after smoothing by a Gaussian release of tiny shift
``eta``. Aliases, smoothing and the sum beyond the last frequency are bounded (Theorems 1 and 4,
Lemma 2 of ``docs/proofs/certified_intervals.md``). The error does not depend on the number of
releases.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.numerics.arithmetic import UNIT_ROUNDOFF
from skdp.accounting.pld.composed_transforms import ComposedLoss, Saddle

LARGEST_COUNT = 60_000  # of frequencies
_HALF_WIDTH = math.sqrt(0.5 * math.pi)
# distances of Chernoff exponents that are tried, against those for a normal loss
_EXPONENTS = (1.0, 0.4, 0.15, 0.05, 0.015)
_SMALLEST_EXPONENT = 0.05  # in units of the tilt
_GOOD_PERIOD = 1.25  # against that of a normal loss
_LOG_LARGE = 690.0  # what exponents are cut at
_LARGEST_ERROR = 0.5  # of a logarithm that is used
_OPERATIONS = 128.0  # roundings of one term: pairwise sum, elementary functions, products
_SLACK = 1.0 + 1e-6  # for the rounding of bounds that are a small part of the whole
_SMALLEST = 1e-300  # upper bounds on delta are at least this


class Inversion:
    """Sum over frequencies for one tilt, for nearby epsilons.

    ``eta`` is the smoothing, ``log_neglected`` for aliases and tail (Theorem 1, Lemma 2).
    """

    def __init__(
        self,
        loss: ComposedLoss,
        saddle: Saddle,
        eta: float,
        log_neglected: float,
        largest_count: int = LARGEST_COUNT,
    ) -> None:
        self.theta, self.eta = saddle.theta, eta
        self._loss, self._saddle = loss, saddle
        self._period = self._choose_period(saddle.log_delta + log_neglected)
        self.feasible = 0.0 < self._period < math.inf and eta < 1.0
        if not self.feasible:
            return
        reach = max(saddle.log_moment - saddle.theta * saddle.epsilon - saddle.log_delta, 0.0)
        self._last, self._log_tail = self._choose_end(reach - log_neglected)
        step = 2.0 * math.pi / self._period
        self.count = int(min(self._last / step, 2.0 * largest_count)) + 2
        self.feasible = self.count <= largest_count
        if not self.feasible:
            return
        frequencies = step * np.arange(self.count)
        z = np.asarray(self.theta + 1j * frequencies, dtype=np.complex128)
        values, errors = loss.log_transform(z)
        values = values + 0.5 * eta * eta * z * (z + 1.0)
        errors = errors + 4.0 * UNIT_ROUNDOFF * (np.abs(values) + eta * eta * np.abs(z * (z + 1.0)))
        self._log_scale, self._scale_error = float(values[0].real), float(errors[0])
        self.feasible = self._scale_error <= _LARGEST_ERROR and math.isfinite(self._log_scale)
        if not self.feasible:
            return
        known = errors <= _LARGEST_ERROR
        bounds = np.where(known | np.isinf(errors), values.real, values.real + errors)
        # Nowhere is the true modulus larger than on the real axis.
        modulus = np.exp(np.minimum(bounds - self._log_scale, 2.0 * _LARGEST_ERROR))
        relative = np.expm1(np.where(known, errors, 0.0))
        halves = np.where(frequencies == 0.0, 0.5, 1.0)
        kernel = 1.0 / (z * (z + 1.0))
        self._excess = eta * eta * math.exp(0.125 * eta * eta)
        self._z, self._frequencies, self._phases = z, frequencies, values.imag
        self._amplitudes = np.where(known, halves * modulus, 0.0)
        self._kernel = kernel
        size = np.abs(kernel) + self._excess
        fixed = relative + UNIT_ROUNDOFF * (_OPERATIONS + 8.0 * np.abs(values))
        self._error = float(np.sum(halves * modulus * np.where(known, fixed, 1.0) * size))
        # A frequency, its product with epsilon, and the difference of the phases are rounded.
        turning = float(np.sum(halves * modulus * frequencies * size))
        self._turning = 4.0 * UNIT_ROUNDOFF * turning
        self._log_step = math.log(step / math.pi)

    def _choose_period(self, log_target: float) -> float:
        """Return a period with small aliases."""
        saddle = self._saddle
        depth = saddle.log_moment - saddle.theta * saddle.epsilon - log_target
        # For a normal loss the best exponents are this far from the tilt.
        distance = math.sqrt(2.0 * max(depth, 1.0))
        self._aliases: list[tuple[float, float]] = []
        period = 0.0
        for direction in (1.0, -1.0):
            best = (math.inf, 0.0, 0.0)
            for share in _EXPONENTS:
                other = saddle.theta + direction * share * distance / saddle.deviation
                other = max(other, _SMALLEST_EXPONENT * saddle.theta)
                moment = self._loss.log_moment(other) + 0.5 * self.eta**2 * other * (other + 1.0)
                needed = (moment - other * saddle.epsilon - log_target) / abs(other - saddle.theta)
                if needed < best[0]:
                    best = (needed, other, moment)
                elif best[0] < math.inf:
                    break
                if needed < _GOOD_PERIOD * distance * saddle.deviation:
                    break
            self._aliases.append(best[1:])
            period = max(period, best[0])
        return period

    def _choose_end(self, log_fall: float) -> tuple[float, float]:
        """Return a last frequency, and the log of the fall there."""
        saddle, eta = self._saddle, self.eta
        log_fall = max(log_fall, 5.0)
        largest = math.sqrt(2.0 * log_fall) / eta
        frequency = min(math.sqrt(2.5 * log_fall) / saddle.deviation, largest)
        while True:
            fall = self._loss.log_decay(saddle.theta, frequency) - 0.5 * (eta * frequency) ** 2
            if fall <= -log_fall or frequency >= largest:
                return frequency, fall
            # The fall is quadratic at first and slower later.
            growth = math.sqrt(log_fall / max(-fall, 1e-3 * log_fall))
            frequency = min(frequency * min(max(1.05 * growth, 1.1), 4.0), largest)

    def sums(self, epsilon: float) -> tuple[float, float, float]:
        """Return smoothed profile, slope and bump over ``scale(epsilon)``."""
        angles = self._phases - self._frequencies * epsilon
        cosines = self._amplitudes * np.cos(angles)
        sines = self._amplitudes * np.sin(angles)
        kernel = self._kernel
        # NumPy's sums are pairwise, those of a scalar product are not.
        value = float(np.sum(cosines * kernel.real - sines * kernel.imag))
        rate = kernel * self._z
        slope = float(np.dot(cosines, rate.real) - np.dot(sines, rate.imag))
        return value, slope, float(np.sum(cosines))

    def log_scale(self, epsilon: float) -> float:
        """Return the logarithm of the factor for `sums`."""
        return self._log_step + self._log_scale - self.theta * epsilon

    def delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """Bound the profile at ``epsilon >= 0`` in nats, not clipped."""
        value, _, bump = self.sums(epsilon)
        scale = math.exp(min(self.log_scale(epsilon), _LOG_LARGE))
        size = abs(self._log_scale) + abs(self.theta * epsilon) + 4.0
        error = scale * (self._error + epsilon * self._turning)
        error += scale * 4.0 * size * UNIT_ROUNDOFF * (abs(value) + self._excess * abs(bump))
        error = _SLACK * (error + self._tail(epsilon))
        aliases = _SLACK * self._alias(epsilon)
        least, most = self._loss.outside
        return (
            least + max(scale * (value - self._excess * max(bump, 0.0)) - error - aliases, 0.0),
            most + max(scale * value + error, _SMALLEST),
        )

    def _tail(self, epsilon: float) -> float:
        """Bound the terms beyond the last frequency."""
        size = 1.0 / self._last + self._excess * _HALF_WIDTH / self.eta
        exponent = self._log_scale + self._scale_error - self.theta * epsilon + self._log_tail
        return math.exp(min(exponent, _LOG_LARGE)) * size / math.pi

    def _alias(self, epsilon: float) -> float:
        """Bound the aliases by two Chernoff bounds."""
        total = 0.0
        for other, moment in self._aliases:
            distance = abs(other - self.theta) * self._period
            if not (math.isfinite(moment) and distance > 0.0):
                return math.inf
            log_first = moment - other * epsilon - distance - math.log(-math.expm1(-distance))
            total += math.exp(min(log_first, _LOG_LARGE))
        return total
