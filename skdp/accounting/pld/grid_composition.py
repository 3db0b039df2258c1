"""Composition of discrete privacy-loss distributions by Fourier transform, with bounds.

A distribution is stored with a tilt ``theta``. Weights are proportional to ``e^(theta l_k)`` times
the probability under P of loss ``l_k = k * step``. Tilting moves the mean of the sum to the epsilon
of interest, where the rounding error of the transform is then relatively small.

For upper bounds, losses above the window count as infinite. Tilted weight below it counts with the
largest factor that it could have in delta. Each cell is raised by a bound on the rounding error.

For lower bounds, each weight is lowered by this error, and weight outside the window is dropped.
The periodic transform puts this weight back into the window, so it is subtracted where it weighs
most (section 8 of ``docs/proofs/certified_intervals.md``).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import fft

from skdp.accounting.numerics.arithmetic import UNIT_ROUNDOFF, log_rest
from skdp.accounting.pld.grid_estimates import WindowEstimate
from skdp.accounting.pld.pairs.base import Array, Indices, log_one_plus

_TINY = 1e-290  # far more tilted weight than can vanish below the smallest float
_LOG_TINY = math.log(_TINY)
_SIZE = 2**21  # of a transform; a longer window is cut from below
_INDEX = 2**62  # losses beyond it are out of reach of integers
_LOG_NEGLIGIBLE = -60.0  # log modulus below which a transform's value is set to zero, and bounded
_LOG_ATOM = -10.0  # log weight of the result's heaviest loss from which on it is split off
_RAISED = 30.0  # share of the rounding errors in the infinite loss, against that of truncation
_MOMENT_SLACK = 1e-6  # nats added to a Chernoff bound, far above the rounding of its moments
_WINDOW_TRIALS = 16  # sets of exponents that may place a window, each half the previous one
# of the estimated exponents, tried to bound the weight outside a window
_SCALES = (0.25, 0.5, 1.0, 2.0)
_LOG_LARGE = 600.0  # what exponents are cut at
_MASS_ERROR = 1e-13  # relative error of a probability, generously


@dataclass(frozen=True)
class TiltedLoss:
    """A privacy-loss distribution, tilted; the indices ascend.

    Loss ``l = indices[j] * step`` has a probability under P of at most (lower bounds: at least)
    ``weights[j] * exp(log_moment - tilt * l)``, an infinite loss ``infinite``. A weight of up to
    ``missing`` may be absent or extra, wherever it is worst.
    """

    indices: Indices
    weights: Array
    log_moment: float
    infinite: float
    step: float
    tilt: float
    missing: float = 0.0

    def log_moment_at(self, exponent: float) -> float:
        """Return log E[e^(exponent L)] over the finite losses."""
        exponents = (exponent - self.tilt) * self.step * self.indices
        top = float(np.max(exponents[self.weights > 0.0]))
        total = float(np.dot(self.weights, np.exp(np.minimum(exponents - top, 0.0))))
        return self.log_moment + top + math.log(total)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on the divergence, if the weights are upper bounds."""
        peak = largest_contribution(self.tilt)
        # The second is Chernoff's bound, which needs no more than the moment.
        total = min(self._excess(epsilon) + self.missing * peak, (1.0 + self.missing) * peak)
        value = self._value(total, epsilon, 1.0)
        return min(1.0, self.infinite + max(value, sys.float_info.min))

    def delta_from_below(self, epsilon: float) -> float:
        """Return a lower bound on the divergence, if the weights are lower bounds."""
        # No product below the smallest normal float has its digits.
        total = self._excess(epsilon) - self.missing * largest_contribution(self.tilt) - _TINY
        value = self._value(total, epsilon, -1.0)
        return min(1.0, self.infinite + value) if value > 0.0 else self.infinite  # nan is none

    def _excess(self, epsilon: float) -> float:
        """Return the sum of ``weight e^(-tilt u) (1 - e^-u)`` over ``u = loss - epsilon > 0``."""
        first = int(np.searchsorted(self.indices, epsilon / self.step, side="right"))
        first = max(first - 1, 0)
        excess = np.maximum(self.indices[first:] * self.step - epsilon, 0.0)
        terms = self.weights[first:] * np.exp(-self.tilt * excess) * -np.expm1(-excess)
        return float(np.sum(terms))

    def _value(self, total: float, epsilon: float, side: float) -> float:
        """Scale a sum of tilted weights, rounded to one side."""
        if total <= 0.0:
            return 0.0
        slack = 1e-12 + 8.0 * UNIT_ROUNDOFF * (abs(self.log_moment) + abs(self.tilt * epsilon))
        log_value = self.log_moment - self.tilt * epsilon + math.log(total)
        return math.exp(min(log_value + side * slack, 0.0))


def largest_contribution(tilt: float) -> float:
    """Return the maximum of ``e^(-tilt u) (1 - e^-u)`` over ``u >= 0``.

    A unit of tilted weight adds no more to delta.
    """
    if tilt <= 0.0:
        return 1.0
    return math.exp(-tilt * math.log1p(1.0 / tilt) - math.log1p(tilt))


def _normalised(
    indices: Indices,
    weights: Array,
    log_moment: float,
    infinite: float,
    step: float,
    tilt: float,
    missing: float = 0.0,
) -> TiltedLoss:
    """Make the weights sum to one; missing weight can only shrink."""
    total = float(np.sum(weights))
    log_moment += math.log(total) + 16.0 * UNIT_ROUNDOFF
    missing = min(1.0, max(missing * max(1.0, 1.0 / total), _TINY))
    return TiltedLoss(indices, weights / total, log_moment, infinite, step, tilt, missing)


def tilt_masses(
    indices: Indices, masses: Array, infinite: float, step: float, tilt: float
) -> TiltedLoss:
    """Tilt masses under P of losses in units of ``step``, with allowance for rounding."""
    kept = masses > 0.0
    indices, masses = indices[kept], masses[kept]
    exponents = tilt * step * indices + np.log(masses)
    top = float(np.max(exponents))
    loss = _normalised(indices, np.exp(exponents - top), top, infinite, step, tilt)
    size = float(np.dot(loss.weights, np.abs(tilt * step * indices)))
    return replace(loss, log_moment=loss.log_moment + 8.0 * UNIT_ROUNDOFF * size)


def tilt_from_below(indices: Indices, masses: Array, step: float, tilt: float) -> TiltedLoss | None:
    """Tilt a dominated distribution, rounded down, or return None."""
    if not np.any(masses > 0.0):
        return None
    loss = tilt_masses(indices, masses, 0.0, step, tilt)
    size = float(np.dot(loss.weights, np.abs(tilt * step * loss.indices)))
    slack = 64.0 * UNIT_ROUNDOFF * (1.0 + size) + _MASS_ERROR
    return replace(loss, log_moment=loss.log_moment - slack)


class Neglected(NamedTuple):
    """Exponents for a window, and logarithms of allowed omissions.

    ``log_infinite`` is for P's probability above it, ``log_alias`` for tilted weight on either
    side. Any positive exponents are valid.
    """

    exponents: WindowEstimate
    log_infinite: float
    log_alias: float
    largest_size: int = _SIZE


Parts = Sequence[tuple[TiltedLoss, int]]


def compose(parts: Parts, neglected: Neglected) -> TiltedLoss:
    """Convolve distributions of equal step and tilt, for upper bounds."""
    step, tilt = parts[0][0].step, parts[0][0].tilt
    log_moment = math.fsum(count * loss.log_moment for loss, count in parts)
    log_kept = math.fsum(count * log_rest(loss.infinite) for loss, count in parts)
    window = place_window(parts, neglected)
    if window is None:
        return TiltedLoss(np.zeros(1, dtype=np.int64), np.ones(1), 0.0, 1.0, step, tilt)
    weights, error = convolve(parts, window.first, window.size)
    indices = np.arange(window.first, window.first + window.size, dtype=np.int64)
    scale = np.exp(np.minimum(log_moment - tilt * step * indices, _LOG_LARGE))
    allowance = _RAISED * math.exp(neglected.log_infinite)
    weights, cut = _raise(weights, error, scale, allowance)
    infinite = min(1.0, -math.expm1(log_kept) + window.above + cut)
    missing = sum(count * loss.missing for loss, count in parts) + window.below
    return _normalised(indices, weights, log_moment, infinite, step, tilt, missing)


def compose_from_below(parts: Parts, failure: float, neglected: Neglected) -> TiltedLoss | None:
    """Convolve dominated distributions, or return None.

    ``failure`` bounds the infinite probability from below.
    """
    window = place_window(parts, neglected)
    if window is None:
        return None
    weights, error = convolve(parts, window.first, window.size)
    indices = np.arange(window.first, window.first + window.size, dtype=np.int64)
    return TiltedLoss(
        indices,
        np.maximum(weights - error, 0.0),
        math.fsum(count * loss.log_moment for loss, count in parts),
        failure,
        parts[0][0].step,
        parts[0][0].tilt,
        _outside(parts, neglected.exponents, window),
    )


class Window(NamedTuple):
    """Indices ``first`` to ``first + size - 1``, and bounds on the rest.

    ``above`` is for P's probability above, ``below`` for the tilted one below.
    """

    first: int
    size: int
    above: float
    below: float


def place_window(parts: Parts, neglected: Neglected) -> Window | None:
    """Place a window by Chernoff bounds, or return None."""
    exponents, log_infinite, log_alias, largest_size = neglected
    step, tilt = parts[0][0].step, parts[0][0].tilt
    tilted = math.fsum(count * loss.log_moment for loss, count in parts)
    upper, lower, scale = math.inf, -math.inf, 1.0
    # The exponents come from estimates; where these were poor, smaller ones are tried as well.
    for _ in range(_WINDOW_TRIALS):
        plain, above, below = (scale * exponent for exponent in exponents[:3])
        plain_moment, below_moment = _log_moment(parts, plain), _log_moment(parts, tilt - below)
        plain_end = (plain_moment - log_infinite) / plain
        tilted_end = (_log_moment(parts, tilt + above) - tilted - log_alias) / above
        if max(plain_end, tilted_end) < upper:
            upper, above_bound = max(plain_end, tilted_end), (plain, plain_moment)
        if (tilted - below_moment + log_alias) / below > lower:
            lower, below_bound = (tilted - below_moment + log_alias) / below, (below, below_moment)
        if upper - lower <= 2.0 * exponents.width:
            break
        scale *= 0.5
    smallest, largest = _extreme_indices(parts)
    first = max(math.floor(lower / step), smallest)
    last = min(math.ceil(upper / step), largest)
    size = fft.next_fast_len(max(last - first + 1, 16), real=True)
    if size > largest_size:
        size, first = largest_size, last - largest_size + 1
    last = first + size - 1
    if max(abs(first), abs(last)) >= _INDEX:
        return None
    log_above = above_bound[1] - above_bound[0] * step * (last + 1) + _MOMENT_SLACK
    log_below = below_bound[1] - tilted + below_bound[0] * step * first + _MOMENT_SLACK
    return Window(
        first,
        size,
        math.exp(min(log_above, 0.0)) if last < largest else 0.0,
        math.exp(min(log_below, 0.0)) if first > smallest else 0.0,
    )


def _outside(parts: Parts, exponents: WindowEstimate, window: Window) -> float:
    """Bound the tilted weight on either side of a window."""
    step, tilt = parts[0][0].step, parts[0][0].tilt
    tilted = math.fsum(count * loss.log_moment for loss, count in parts)
    smallest, largest = _extreme_indices(parts)
    last = window.first + window.size - 1
    sides = (
        (exponents.above, largest > last, last + 1),
        (-exponents.below, smallest < window.first, window.first),
    )
    total = 0.0
    for exponent, outside, end in sides:
        if outside:
            shifts = [scale * exponent for scale in _SCALES]
            bounds = [_log_moment(parts, tilt + s) - tilted - s * step * end for s in shifts]
            total += math.exp(min(0.0, min(bounds) + _MOMENT_SLACK))
    return total


def _log_moment(parts: Parts, exponent: float) -> float:
    return math.fsum(count * loss.log_moment_at(exponent) for loss, count in parts)


def _extreme_indices(parts: Parts) -> tuple[int, int]:
    return (
        sum(count * int(loss.indices[0]) for loss, count in parts),
        sum(count * int(loss.indices[-1]) for loss, count in parts),
    )


def _raise(weights: Array, error: float, scale: Array, allowance: float) -> tuple[Array, float]:
    """Add the rounding error to the weights or, for the largest losses, to the infinite one.

    There a floor of errors would look like a heavy tail to the next convolution. Weights below the
    error are dropped and also count as infinite, as long as ``allowance`` lasts.
    """
    lost = np.cumsum((3.0 * error * scale)[::-1])[::-1]
    top = lost <= allowance
    dropped = top & (weights < 2.0 * error)
    out = np.where(top, weights, weights + error)
    out[dropped] = 0.0
    return out, float(np.max(lost, where=top, initial=0.0))


def convolve(parts: Parts, first: int, size: int) -> tuple[Array, float]:
    """Return the convolved weights on the window, and their rounding error.

    The heaviest weight of each part is put at index 0, and only the rest has a rounding error. The
    heaviest atom of the result is split off in the same way. Where most releases reveal nothing,
    errors therefore scale with the few that reveal something.
    """
    # At index 0 the heaviest weight a has the constant transform a. A value of the transform of the
    # rest, of total weight r, is a sum with about log2(size) rounded operations on every path: its
    # error is at most eta r. The error of the product is at most the difference of the products of
    # the moduli with and without these errors. The inverse adds eta times the sum of the moduli.
    eta = UNIT_ROUNDOFF * (10.0 * math.log2(size) + 24.0)
    log_atom, shift = 0.0, 0
    log_modulus = np.zeros(size // 2 + 1)
    error = np.zeros(size // 2 + 1)
    phase = np.zeros(size // 2 + 1)
    for loss, count in parts:
        heaviest = int(np.argmax(loss.weights))
        centre = int(loss.indices[heaviest])
        rest = np.bincount((loss.indices - centre) % size, loss.weights, minlength=size)
        rest[0] -= loss.weights[heaviest]
        atom = float(loss.weights[heaviest])
        part = log_one_plus(np.asarray(fft.rfft(np.maximum(rest, 0.0)) / atom))
        part_modulus = np.maximum(part.real, _LOG_TINY)
        log_modulus += count * part_modulus
        phase += count * part.imag
        relative = eta * float(np.sum(rest)) / atom
        error += count * np.log1p(relative * np.exp(-np.maximum(part_modulus, -_LOG_LARGE)))
        log_atom += count * math.log(atom)
        shift += count * centre
    log_modulus += log_atom
    kept = log_modulus > _LOG_NEGLIGIBLE
    errors = np.exp(np.minimum(log_modulus + error, _LOG_LARGE))
    log_kept, phase = log_modulus[kept], phase[kept]
    modulus = np.exp(np.minimum(log_kept, 1.0))
    errors[kept] = modulus * np.expm1(np.minimum(error[kept], _LOG_LARGE))
    product = np.zeros(size // 2 + 1, dtype=np.complex128)
    result_atom = math.exp(log_atom) if log_atom > _LOG_ATOM and bool(np.all(kept)) else 0.0
    if result_atom > 0.0:
        product[kept] = result_atom * np.expm1(log_kept - log_atom + 1j * phase)
    else:
        product[kept] = modulus * np.exp(1j * phase)
    bound = 2.0 * (float(np.sum(errors)) + eta * float(np.sum(np.abs(product)))) / size
    weights = np.maximum(fft.irfft(product, size), 0.0)
    weights[0] += result_atom
    return np.roll(weights, (shift - first) % size), bound
