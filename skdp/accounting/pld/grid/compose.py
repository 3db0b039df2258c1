"""Composition of discrete privacy-loss distributions by Fourier transform, as an upper bound.

A distribution is kept exponentially tilted: weight ``t_k`` proportional to ``e^(theta l_k)`` times
the probability under P of loss ``l_k = k * step``. Tilting moves the mean of the sum to the
epsilon of interest, where the composed weights are then large and the rounding error of the
transform, uniform over the grid, is relatively small. Everything neglected is bounded and added:
losses above the window count as infinite, the tilted weight below it counts with the largest factor
it could have in delta, and each cell is raised by a bound on the rounding error.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from skdp.accounting.pld.grid.estimates import WindowEstimate
from skdp.accounting.pld.pairs.base import Array

_UNIT_ROUNDOFF = 2.0**-53
_NEGLIGIBLE = -60.0  # log modulus below which a transform value is set to zero (and bounded)
_ATOM = -10.0  # log weight of the result's heaviest loss from which it is split off
_RAISED = 30.0  # share of the rounding errors in the infinite loss, against that of truncation
_MOMENT_SLACK = 1e-6  # nats added to a Chernoff bound, far above the rounding of its moments
_WINDOW_TRIALS = 16
_LARGE = 600.0
LARGEST_INDEX = 2**62
_TINY = 1e-290
_UNDERFLOW = 1e-290  # far more tilted weight than can vanish below the smallest float


@dataclass(frozen=True)
class TiltedLoss:
    """A privacy-loss distribution, tilted; the indices ascend.

    The probability under P of loss ``indices[j] * step`` is at most
    ``weights[j] * exp(log_moment - tilt * indices[j] * step)``, that of an infinite loss at most
    ``infinite``. Weight of up to ``missing`` is allowed for besides, wherever it hurts most.
    """

    indices: NDArray[np.int64]
    weights: Array
    log_moment: float
    infinite: float
    step: float
    tilt: float
    missing: float = 0.0

    def log_moment_at(self, exponent: float) -> float:
        """Return log E[e^(exponent L)] over the finite losses.

        Parameters
        ----------
        exponent : float
            Any real number.

        Returns
        -------
        float
            The log moment under P.
        """
        exponents = (exponent - self.tilt) * self.step * self.indices
        top = float(np.max(exponents[self.weights > 0.0]))
        total = float(np.dot(self.weights, np.exp(np.minimum(exponents - top, 0.0))))
        return self.log_moment + top + math.log(total)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on the hockey-stick divergence at ``epsilon``.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats.

        Returns
        -------
        float
            ``infinite`` plus the sum of ``(1 - e^(epsilon - l)) P(l)`` over ``l > epsilon``.
        """
        first = int(np.searchsorted(self.indices, epsilon / self.step, side="right"))
        first = max(first - 1, 0)
        excess = self.indices[first:] * self.step - epsilon
        excess = np.maximum(excess, 0.0)
        terms = self.weights[first:] * np.exp(-self.tilt * excess) * -np.expm1(-excess)
        peak = largest_contribution(self.tilt)
        # The second is Chernoff's bound, which needs no more than the moment.
        total = min(float(np.sum(terms)) + self.missing * peak, (1.0 + self.missing) * peak)
        if total <= 0.0:
            return min(1.0, self.infinite + sys.float_info.min)
        log_value = self.log_moment - self.tilt * epsilon + math.log(total)
        slack = 1e-12 + 8.0 * _UNIT_ROUNDOFF * (abs(self.log_moment) + abs(self.tilt * epsilon))
        value = math.exp(min(log_value + slack, 0.0))
        return min(1.0, self.infinite + max(value, sys.float_info.min))

    def coarsen(self, factor: int) -> TiltedLoss:
        """Move the weights to every ``factor``-th loss, dominating the distribution.

        Parameters
        ----------
        factor : int
            Ratio of the new step to the old one.

        Returns
        -------
        TiltedLoss
            The same log-moment scale and tilt on the coarser grid.
        """
        if factor == 1:
            return self
        coarse = np.floor_divide(self.indices, factor)
        offsets = np.arange(factor) * self.step
        width = factor * self.step
        share = np.expm1(-offsets) / math.expm1(-width)
        up = share * np.exp(self.tilt * (width - offsets))
        down = (1.0 - share) * np.exp(-self.tilt * offsets)
        rest = self.indices - coarse * factor
        base = int(coarse[0])
        size = int(coarse[-1]) - base + 2
        weights = np.bincount(coarse - base, self.weights * down[rest], minlength=size)
        weights += np.bincount(coarse - base + 1, self.weights * up[rest], minlength=size)
        return _normalised(
            np.arange(base, base + size, dtype=np.int64),
            np.asarray(weights, dtype=np.float64),
            self.log_moment,
            self.infinite,
            width,
            self.tilt,
            self.missing,
        )


def largest_contribution(tilt: float) -> float:
    """Return the largest value of ``e^(-tilt u) (1 - e^-u)`` over ``u >= 0``.

    Parameters
    ----------
    tilt : float
        At least 0.

    Returns
    -------
    float
        What a unit of tilted weight adds to delta at most.
    """
    if tilt <= 0.0:
        return 1.0
    return math.exp(-tilt * math.log1p(1.0 / tilt) - math.log1p(tilt))


def _normalised(
    indices: NDArray[np.int64],
    weights: Array,
    log_moment: float,
    infinite: float,
    step: float,
    tilt: float,
    missing: float = 0.0,
) -> TiltedLoss:
    """Make the weights sum to one; the missing weight, relative to them, can only shrink."""
    total = float(np.sum(weights))
    log_moment += math.log(total) + 16.0 * _UNIT_ROUNDOFF
    missing = min(1.0, max(missing * max(1.0, 1.0 / total), _UNDERFLOW))
    return TiltedLoss(indices, weights / total, log_moment, infinite, step, tilt, missing)


def tilt_masses(
    indices: NDArray[np.int64], masses: Array, infinite: float, step: float, tilt: float
) -> TiltedLoss:
    """Tilt a one-release distribution, allowing for the rounding errors of its masses.

    Parameters
    ----------
    indices : ndarray of int
        Losses in units of ``step``.
    masses : ndarray
        Their probabilities under P.
    infinite : float
        Probability of an infinite loss.
    step : float
        Distance of the grid's losses, in nats.
    tilt : float
        Exponent ``theta >= 0``.

    Returns
    -------
    TiltedLoss
        The tilted distribution.
    """
    kept = masses > 0.0
    indices, masses = indices[kept], masses[kept]
    exponents = tilt * step * indices + np.log(masses)
    top = float(np.max(exponents))
    weights = np.exp(exponents - top)
    loss = _normalised(indices, weights, top, infinite, step, tilt)
    size = float(np.dot(loss.weights, np.abs(tilt * step * indices)))
    return TiltedLoss(
        loss.indices,
        loss.weights,
        loss.log_moment + 8.0 * _UNIT_ROUNDOFF * size,
        infinite,
        step,
        tilt,
        loss.missing,
    )


def compose(
    parts: Sequence[tuple[TiltedLoss, int]],
    exponents: WindowEstimate,
    log_infinite: float,
    log_alias: float,
    largest_size: int,
) -> TiltedLoss:
    """Convolve distributions on one grid under one tilt, each a number of times.

    Parameters
    ----------
    parts : sequence of (TiltedLoss, int)
        Distributions with equal ``step`` and ``tilt``, and how often each is composed.
    exponents : WindowEstimate
        Exponents of the Chernoff bounds that place the window. Any positive values are valid; good
        ones make it short.
    log_infinite : float
        Logarithm of the probability under P that may be counted as infinite loss.
    log_alias : float
        Logarithm of the tilted probability that may lie on either side of the window.
    largest_size : int
        Longest transform allowed; the window is cut from below to fit.

    Returns
    -------
    TiltedLoss
        An upper bound on the composed distribution.
    """
    step, tilt = parts[0][0].step, parts[0][0].tilt
    log_moment = math.fsum(count * loss.log_moment for loss, count in parts)
    log_kept = math.fsum(
        count * (math.log1p(-loss.infinite) if loss.infinite < 1.0 else -math.inf)
        for loss, count in parts
    )

    window = place_window(parts, exponents, log_infinite, log_alias, largest_size)
    if max(abs(window.first), abs(window.first + window.size)) > LARGEST_INDEX:
        # Out of reach of integers: all may be infinite.
        return TiltedLoss(np.zeros(1, dtype=np.int64), np.ones(1), 0.0, 1.0, step, tilt)
    weights, error = convolve(parts, window.first, window.size)
    indices = np.arange(window.first, window.first + window.size, dtype=np.int64)
    scale = np.exp(np.minimum(log_moment - tilt * step * indices, _LARGE))
    weights, cut = _raise(weights, error, scale, _RAISED * math.exp(log_infinite))
    infinite = min(1.0, -math.expm1(log_kept) + window.above + cut)
    missing = sum(count * loss.missing for loss, count in parts) + window.below
    return _normalised(indices, weights, log_moment, infinite, step, tilt, missing)


class Window(NamedTuple):
    """Indices ``first`` to ``first + size - 1``, and bounds on what lies outside.

    ``above`` bounds the probability under P above the window, ``below`` the tilted one below it.
    """

    first: int
    size: int
    above: float
    below: float


def place_window(
    parts: Sequence[tuple[TiltedLoss, int]],
    exponents: WindowEstimate,
    log_infinite: float,
    log_alias: float,
    largest_size: int,
) -> Window:
    """Place the window of a composition by Chernoff bounds on the parts' own moments."""
    step, tilt = parts[0][0].step, parts[0][0].tilt

    def moment(exponent: float) -> float:
        return math.fsum(count * loss.log_moment_at(exponent) for loss, count in parts)

    tilted = math.fsum(count * loss.log_moment for loss, count in parts)
    upper, lower, scale = math.inf, -math.inf, 1.0
    # The exponents come from estimates; where these were poor, smaller ones are tried as well.
    for _ in range(_WINDOW_TRIALS):
        plain, above, below = (scale * exponent for exponent in exponents[:3])
        plain_moment, below_moment = moment(plain), moment(tilt - below)
        plain_end = (plain_moment - log_infinite) / plain
        tilted_end = (moment(tilt + above) - tilted - log_alias) / above
        if max(plain_end, tilted_end) < upper:
            upper, above_bound = max(plain_end, tilted_end), (plain, plain_moment)
        if (tilted - below_moment + log_alias) / below > lower:
            lower, below_bound = (tilted - below_moment + log_alias) / below, (below, below_moment)
        if upper - lower <= 2.0 * exponents.width:
            break
        scale *= 0.5
    smallest = sum(count * int(loss.indices[0]) for loss, count in parts)
    largest = sum(count * int(loss.indices[-1]) for loss, count in parts)
    first = max(math.floor(lower / step), smallest)
    last = min(math.ceil(upper / step), largest)
    size = fft.next_fast_len(max(last - first + 1, 16), real=True)
    if size > largest_size:
        size, first = largest_size, last - largest_size + 1
    last = first + size - 1
    log_above = above_bound[1] - above_bound[0] * step * (last + 1) + _MOMENT_SLACK
    log_below = below_bound[1] - tilted + below_bound[0] * step * first + _MOMENT_SLACK
    return Window(
        first,
        size,
        math.exp(min(log_above, 0.0)) if last < largest else 0.0,
        math.exp(min(log_below, 0.0)) if first > smallest else 0.0,
    )


def _raise(weights: Array, error: float, scale: Array, allowance: float) -> tuple[Array, float]:
    """Add the rounding error to the weights, or, for the largest losses, to the infinite one.

    There, true weights are soon far below the error, and a floor of errors would look like a heavy
    tail to the next convolution. Weights lost in the error are dropped and count as infinite too,
    as long as ``allowance`` lasts.
    """
    lost = np.cumsum((3.0 * error * scale)[::-1])[::-1]
    top = lost <= allowance
    dropped = top & (weights < 2.0 * error)
    out = np.where(top, weights, weights + error)
    out[dropped] = 0.0
    return out, float(np.max(lost, where=top, initial=0.0))


def convolve(parts: Sequence[tuple[TiltedLoss, int]], first: int, size: int) -> tuple[Array, float]:
    """Return the convolved weights on the window, and a bound on the rounding error of each.

    The heaviest weight ``a`` of each part is put at index 0, where its transform is the constant
    ``a``, and only the rest, of total weight ``r``, is transformed. A value of a transform is a sum
    over the inputs with about ``log2(size)`` rounded operations on every path, so its error is at
    most ``eta r``. The product's error is at most the difference of the products of the moduli with
    and without these errors, and the inverse transform adds ``eta`` times the sum of the moduli.
    The atom of the result at the sum of the heaviest losses is split off in the same way. So where
    most releases reveal nothing, errors scale with the few that do.
    """
    eta = _UNIT_ROUNDOFF * (10.0 * math.log2(size) + 24.0)
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
        part_modulus, part_phase = _log_one_plus(fft.rfft(np.maximum(rest, 0.0)) / atom)
        log_modulus += count * part_modulus
        phase += count * part_phase
        relative = eta * float(np.sum(rest)) / atom
        error += count * np.log1p(relative * np.exp(-np.maximum(part_modulus, -_LARGE)))
        log_atom += count * math.log(atom)
        shift += count * centre
    log_modulus += log_atom
    kept = log_modulus > _NEGLIGIBLE
    errors = np.exp(np.minimum(log_modulus + error, _LARGE))
    log_kept, phase = log_modulus[kept], phase[kept]
    modulus = np.exp(np.minimum(log_kept, 1.0))
    errors[kept] = modulus * np.expm1(np.minimum(error[kept], _LARGE))
    product = np.zeros(size // 2 + 1, dtype=np.complex128)
    result_atom = math.exp(log_atom) if log_atom > _ATOM and bool(np.all(kept)) else 0.0
    if result_atom > 0.0:
        product[kept] = result_atom * _exp_minus_one(log_kept - log_atom, phase)
    else:
        product[kept] = modulus * np.exp(1j * phase)
    bound = 2.0 * (float(np.sum(errors)) + eta * float(np.sum(np.abs(product)))) / size
    weights = np.maximum(fft.irfft(product, size), 0.0)
    weights[0] += result_atom
    return np.roll(weights, (shift - first) % size), bound


def _log_one_plus(z: NDArray[np.complex128]) -> tuple[Array, Array]:
    """Return the real and imaginary parts of log(1 + z), with errors relative to z where small."""
    square = z.real**2 + z.imag**2
    near = 0.5 * np.log1p(np.maximum(2.0 * z.real + square, -0.9))
    far = np.log(np.maximum(np.abs(1.0 + z), _TINY))
    return np.where(square < 0.04, near, far), np.arctan2(z.imag, 1.0 + z.real)


def _exp_minus_one(real: Array, imaginary: Array) -> NDArray[np.complex128]:
    """Return e^w - 1 for complex w, with errors relative to w where small."""
    growth = np.expm1(real)
    cosine = -2.0 * np.sin(0.5 * imaginary) ** 2
    out = np.empty(len(real), dtype=np.complex128)
    out.real = growth + (1.0 + growth) * cosine
    out.imag = (1.0 + growth) * np.sin(imaginary)
    return out
