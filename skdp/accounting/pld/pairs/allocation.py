"""Upper bounds on the profile of one epoch of random allocation with Gaussian noise.

Let ``X(z) = e^(mu z - mu^2/2)`` with standard normal z, and ``g = e^epsilon``. The divergence of an
epoch of m batches is the mean of ``(sum of Y)_+ / m`` over m independent copies of

- ``Y = X(z) - g`` if a record is removed,
- ``Y = 1 - g X(-z)`` if one is added,
- ``Y = X(z) - g X(-z)`` if one is replaced.

Y is put on a grid by a mean-preserving split. The tilted law of the sum comes from the m-th power
of a transform. The proofs are sections 3 and 4 of ``docs/proofs/random_allocation.md``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import fft
from scipy.special import ndtr, ndtri

from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import LARGEST_EXPONENT, UNIT_ROUNDOFF
from skdp.accounting.pld.pairs.base import Array, Indices, log_one_plus

_STEP = 0.08  # of the deviation of Y; the sum's variance grows by a sixth of its square
_COARSE = 0.15  # the same, where otherwise transforms would be long
_SIZE = 2**13  # of a transform, wherever that allows the coarse step
_LARGEST_SIZE = 2**15  # of a transform
_SMALLEST = 1e-15  # below, the divergence for a known batch is enough
_CUT = 1e-5  # of the divergence, what cutting Y off may add, at first or ...
_LARGEST_CUT = 1e-3  # ... at last, about
_REACH = 9.0  # deviations of the sum on either side of one large Y that a window holds
_NEGLIGIBLE = -60.0  # log modulus of a power that counts as zero
_TILTS = 24  # that are tried
_SKETCHED = 100  # nodes on either side on which tilts are compared
_ROUNDED = 1.0 + 1e-9  # above the rounding of sums of positive terms


class _Prices(NamedTuple):
    """``E(Y - y)_+`` above Y's mean and ``E(y - Y)_+`` below, in steps.

    Node k is at ``mean + k step``; ``doubts`` bounds roundings, ``failure`` the dropped mass.
    """

    nodes: Indices
    prices: Array
    doubts: Array
    mean: float
    step: float
    failure: float

    def log_moment(self, tilt: float) -> float:
        """Return log E[e^(tilt (Y - mean))]."""
        total = float(np.dot(self.prices + self.doubts, np.exp(tilt * self.step * self.nodes)))
        return math.log1p((2.0 * math.sinh(0.5 * tilt * self.step)) ** 2 * total)

    def sketch(self) -> _Prices:
        """Return few nodes with combined prices, for estimates."""
        far = np.geomspace(1.0, max(-self.nodes[0], self.nodes[-1]), _SKETCHED)
        far = np.clip(np.concatenate([-far, far]), self.nodes[0], self.nodes[-1])
        chosen = np.unique(far.astype(np.int64))
        middles = 0.5 * (chosen[1:] + chosen[:-1])
        counts = np.diff(np.concatenate([chosen[:1], middles, chosen[-1:]]))
        places = chosen - self.nodes[0]
        prices, doubts = self.prices[places] * counts, self.doubts[places] * counts
        return self._replace(nodes=chosen, prices=prices, doubts=doubts)


class AllocatedEpoch:
    """An epoch in one direction: "remove", "add" or "replace".

    ``mu`` is one record's contribution over the noise.
    """

    def __init__(self, mu: float, lots: int, direction: str) -> None:
        self.mu, self.lots, self.direction = mu, lots, direction
        self._own, self._other = direction != "add", direction != "remove"  # which parts are X

    @property
    def deviation(self) -> float:
        """The approximate standard deviation of the loss."""
        told = (self._own + self._other) * self.mu  # that of a known batch, far below for large mu
        return min(told, math.sqrt(self._variance(1.0) / self.lots))

    def profile(self, epsilon: float, most: float = 1.0) -> float:
        """Bound the divergence at an ``epsilon >= 0`` in nats.

        ``most`` is a known bound, such as one at a smaller epsilon.
        """
        # If a record's batch is known, it is in one Gaussian release.
        told = gaussian_profile.delta((self._own + self._other) * self.mu, epsilon)
        most = min(most, told)
        if self.lots == 1 or told < _SMALLEST:
            return most
        tail = math.inf
        while tail > max(_LARGEST_CUT * most, _SMALLEST):
            tail = max(_CUT * most, _SMALLEST)
            most = min(most, self._composed(math.exp(epsilon), tail))
        return most

    def _variance(self, ratio: float) -> float:
        """Return the variance of Y at a ratio g."""
        spread, both = math.expm1(self.mu**2), self._own and self._other
        covariance = -ratio * math.expm1(-(self.mu**2)) if both else 0.0
        return (self._own + ratio**2 * self._other) * spread + 2.0 * covariance

    def _threshold(self, y: Array, ratio: float) -> Array:
        """Return where Y, which rises with z, crosses y."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if not self._other:
                log_x = np.log(np.maximum(y + ratio, 0.0))
            elif not self._own:
                log_x = math.log(ratio) - self.mu**2 - np.log(np.maximum(1.0 - y, 0.0))
            else:
                square = 4.0 * ratio * math.exp(-(self.mu**2))
                root = np.sqrt(y * y + square)
                log_x = np.log(0.5 * np.where(y > 0.0, y + root, square / (root - y)))
        return np.asarray(log_x / self.mu + 0.5 * self.mu)

    def _value(self, z: float, ratio: float) -> float:
        """Return Y at z."""
        own = math.exp(self.mu * z - 0.5 * self.mu**2) if self._own else 1.0
        other = math.exp(-self.mu * z - 0.5 * self.mu**2) if self._other else 1.0
        return own - ratio * other

    def _priced(self, y: Array, ratio: float, side: float) -> tuple[Array, Array]:
        """Return ``E(side (Y - y))_+``, and bounds on its error."""
        z = self._threshold(y, ratio)
        own = ndtr(side * (self.mu - z)) if self._own else 0.0
        other = ratio * ndtr(side * (-self.mu - z)) if self._other else 0.0
        still = ndtr(-side * z)
        level = (0.0 if self._own else 1.0) - (0.0 if self._other else ratio) - y
        sizes = own + other + (np.abs(y) + 1.0 + ratio) * still
        square = np.minimum(z * z, 1e4)
        return side * (own - other + level * still), 16.0 * UNIT_ROUNDOFF * (1.0 + square) * sizes

    def _on_grid(self, ratio: float, tail: float) -> _Prices:
        """Cut Y off, and split it among the nodes of a grid."""
        far = max(self.mu - float(ndtri(tail)), -float(ndtri(tail / self.lots)))
        # A z above counts as an infinite loss, and also as one at the end, all moved up so that
        # the mean remains; one below is raised to the end, and the mean with it.
        end = self._value(far, ratio) if self._own else 1.0
        # If a record is added, a single Y of at most 1 - lots makes the sum negative.
        start = max(self._value(-far, ratio), -math.inf if self._own else 1.0 - self.lots)
        top, top_doubt = self._priced(np.array([end]), ratio, 1.0)
        bottom, bottom_doubt = self._priced(np.array([start]), ratio, -1.0)
        slack = float(top_doubt[0] + bottom_doubt[0]) if self._own else float(bottom_doubt[0])
        lost = float(top[0] + top_doubt[0]) if self._own else 0.0
        raised = float(bottom[0] + bottom_doubt[0])
        failure = float(ndtr(self.mu - far) + self.lots * ndtr(-far)) if self._own else 0.0
        mean = 1.0 - ratio + raised
        deviation = math.sqrt(self._variance(ratio))
        width = end - start + 2.0 * _REACH * deviation * math.sqrt(self.lots)
        step = max(width / _SIZE, _STEP * deviation)
        step = max(width / _LARGEST_SIZE, min(step, _COARSE * deviation))
        first, last = math.floor((start - mean) / step), math.ceil((end + lost - mean) / step)
        nodes = np.arange(first, last + 1, dtype=np.int64)
        levels = mean + step * nodes - lost
        below, above = np.split(levels, [-first])
        puts, put_doubts = self._priced(below, ratio, -1.0)
        calls, call_doubts = self._priced(above, ratio, 1.0)
        prices = np.concatenate([puts - raised, calls - lost])
        doubts = np.concatenate([put_doubts, call_doubts]) + slack
        return _Prices(nodes, np.maximum(prices, 0.0) / step, doubts / step, mean, step, failure)

    def _composed(self, ratio: float, tail: float) -> float:
        """Bound the divergence at g by the law of the sum."""
        grid = self._on_grid(ratio, tail)
        deviation = math.sqrt(self._variance(ratio) * self.lots)
        width = grid.step * max(-grid.nodes[0], grid.nodes[-1])
        tilts = np.geomspace(min(0.01 / deviation, 1.0 / width), 20.0 / deviation, _TILTS)
        tilts = np.minimum(tilts, 0.9 * LARGEST_EXPONENT / width)
        sketch = grid.sketch()
        moments = self.lots * np.array([sketch.log_moment(tilt) for tilt in tilts])
        moments += tilts * self.lots * grid.mean
        rounding = 32.0 * UNIT_ROUNDOFF * (1.0 + ratio)  # of the mean of Y
        total = _mean_above(grid, self.lots, deviation, tilts, moments)
        return min(1.0, total / self.lots * _ROUNDED + grid.failure + rounding)


def _mean_above(grid: _Prices, lots: int, deviation: float, tilts: Array, moments: Array) -> float:
    """Bound the mean of the positive part of a sum of copies of Y.

    Any tilt gives a bound.
    """
    # Half of the best for Chernoff's bound, at which large Y would be all that there is.
    tilt = 0.5 * float(tilts[np.argmin(moments)])
    reach = math.ceil(_REACH * deviation / grid.step)
    # From one large Y below to two large ones above.
    size = fft.next_fast_len(len(grid.nodes) + int(grid.nodes[-1]) + 2 * reach, real=True)
    weights, error, log_moment = _tilted_law(grid, lots, tilt, size)
    base = lots * grid.mean
    first = math.floor(-base / grid.step) + int(grid.nodes[0]) - reach
    values = grid.step * (first + np.arange(size, dtype=np.float64)) + base
    above = values > 0.0
    terms = values[above] * np.exp(-tilt * values[above])
    inside = float(np.dot(terms, np.roll(weights, -first % size)[above] + error))
    inside *= math.exp(min(log_moment + tilt * base, LARGEST_EXPONENT))
    if first + size > lots * int(grid.nodes[-1]):
        return inside
    # What the window misses, by Chernoff's bound.
    end = float(values[-1])
    other = float(tilts[np.argmin(moments - tilts * end)])
    log_tail = lots * grid.log_moment(other) * (1.0 + 1e-9) + other * (base - end)
    return inside + max(end, 1.0 / other) * math.exp(min(log_tail, LARGEST_EXPONENT))


def _tilted_law(grid: _Prices, lots: int, tilt: float, size: int) -> tuple[Array, float, float]:
    """Return the wrapped tilted law of a sum, its error and log moment.

    With exponent s, a node's moment is ``1 + 4 sinh^2(s/2)`` times that of prices.
    """
    eta = UNIT_ROUNDOFF * (10.0 * math.log2(size) + 24.0)
    exponents = tilt * grid.step * grid.nodes
    growth = np.exp(exponents)
    prices = np.zeros(size)
    prices[grid.nodes % size] = grid.prices * growth
    rounded = (eta + 4.0 * UNIT_ROUNDOFF * np.abs(exponents)) * grid.prices + grid.doubts
    doubt = float(np.dot(rounded, growth))
    half = math.pi / size * np.arange(size // 2 + 1)
    shift = 0.5 * tilt * grid.step
    factor = 4.0 * (math.sinh(shift) * np.cos(half) - 1j * math.cosh(shift) * np.sin(half)) ** 2
    added = factor * fft.rfft(prices)
    log_mean = math.log1p(float(added[0].real))
    # Where the power vanishes it is set to zero.
    largest = lots * (np.log(np.abs(1.0 + added) + np.abs(factor) * doubt) - log_mean)
    kept = np.flatnonzero(largest > _NEGLIGIBLE)
    logs = log_one_plus(added[kept])
    relative = np.abs(factor[kept]) * doubt * np.exp(-logs.real)
    errors = lots * (np.log1p(relative) + 16.0 * UNIT_ROUNDOFF * (np.abs(logs) + log_mean))
    modulus = np.exp(lots * (logs.real - log_mean))
    small = modulus * np.expm1(np.minimum(errors, 1.0))
    wrong = float(np.sum(np.where(errors < 1.0, small, np.exp(largest[kept] + 1.0))))
    wrong += eta * float(np.sum(modulus)) + size * math.exp(_NEGLIGIBLE + 1.0)
    product = np.zeros(len(half), dtype=np.complex128)
    product[kept] = modulus * np.exp(1j * lots * logs.imag)
    weights = np.maximum(fft.irfft(product, size), 0.0)
    return weights, 2.0 * wrong / size, lots * log_mean + float(errors[0])
