"""Many moments of a sampled Laplace release at once, by expansions that serve all frequencies.

In the loss ``x = log M``, between the atoms at the ends, the tilted law has a smooth density G. On
a panel of half-width h around c, with ``G(c + h t) = sum of a_k P_k(t)`` in Legendre polynomials,

    int e^(i v x) G(x) dx = 2 h e^(i v c) sum of i^k a_k j_k(v h)

with the spherical Bessel functions j_k, which their recurrence gives for all frequencies v above
`turned`/h. Below, a Gauss-Legendre rule is as good. So panels need not be shorter where the
frequency is higher.

*Panels.* With the odds ``o = q e^(2u - s) / (1 - q)`` of the shifted component, G is ``e^-u (1 + o)
/ (4 o)`` times a power of M, and ``x = log(1 - q) + log(1 + o)``: singular at ``x* = log(1 - q)``
alone, of the real points. Panels have a width of at most 0.3 in u, so that ``h <= 0.3`` and ``h <=
0.2914 (c - x*)``. In the ellipse with foci ``c +- h`` and semi-axes' sum ``5 h`` the real part is
above ``c - 2.6 h``, hence ``|o| >= 0.14 o(c)``, and G is at most ``42 e^(2.6 h power) <= 7700``
times its value at c. The best polynomial of degree below K is within ``e = 2.5 C 5^-K`` of a
function that is bounded by C in the ellipse. The K coefficients from N > K nodes of Gauss's rule
are a projection, exact on such polynomials and no larger in mean square than the values at the
nodes, so that the expansion is wrong by less than ``4 e h`` in the mean. A rule of N nodes is wrong
by ``5 C e^(2.4 v h) 5^(-2N) h``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from skdp.accounting.numerics.floats import UNIT_ROUNDOFF, log_mixture
from skdp.accounting.numerics.quadrature import gauss_legendre
from skdp.accounting.pld.pairs.base import Array, Complex
from skdp.accounting.pld.transforms.fourier_sums import equidistant_sums


@dataclass(frozen=True)
class _Limits:
    """Panels, and the relative errors of their rules; see the head of this module."""

    nodes: int = 48  # of a panel
    terms: int = 32  # of an expansion
    turned: float = 40.0  # radians on a half-panel, from which the expansion is used
    width: float = 0.3  # of a panel, in u
    steep: float = 2.0  # nats that the tilt may change over a half-panel
    most_panels: int = 4000  # in all
    expansion: float = 8e4 * 5.0**-terms  # relative error of an expansion
    rule: float = 4e4 * math.exp(2.4 * turned) * 5.0 ** (-2 * nodes)  # relative error of a rule


_LIMITS = _Limits()


class Branch(NamedTuple):
    """One part of the moment: the mean of ``scale * e^(power x)`` under Q0, and x's sign in L."""

    scale: float
    power: float
    sign: float


class Sums(NamedTuple):
    """``E[e^(theta L) (e^(i v L) - 1)]`` for each frequency v, and bounds on its error."""

    values: Complex
    errors: Array


class _Panels(NamedTuple):
    """Centres and half-widths in the loss, losses at the nodes, and weights under Q0.

    ``sizes`` bounds the losses' errors, in units of a few roundings.
    """

    centres: Array
    halves: Array
    losses: Array
    weights: Array
    sizes: Array


def tilted_sums(
    rate: float, shift: float, least: float, branches: list[Branch], frequencies: Array
) -> Sums | None:
    """Sum over the panels between the atoms, ``least`` being subtracted from ``log M``.

    Frequencies are equidistant from 0, at least two. None where there would be too many panels.
    """
    power = max(abs(branch.power) for branch in branches)
    edges = _edges(rate, shift, power)
    if edges is None:
        return None
    panels = _panels(rate, shift, least, edges)
    losses = panels.losses
    values = np.zeros(len(frequencies), dtype=np.complex128)
    step = float(frequencies[1])
    # How many frequencies turn by little on each panel.
    slow = np.minimum(_LIMITS.turned / (panels.halves * step), len(frequencies) - 1.0)
    slow = slow.astype(int) + 1
    wide = slow < len(frequencies)
    total, mean, turned = 0.0, 0.0, 0.0
    for branch in branches:
        weights = branch.scale * panels.weights * np.exp(branch.power * losses)
        narrow = ~wide
        part = equidistant_sums(losses[narrow].ravel(), weights[narrow].ravel(), frequencies)
        for k in np.flatnonzero(wide):
            m = slow[k]
            part[:m] += equidistant_sums(losses[k], weights[k], frequencies[:m])
            coefficients = _projection() @ weights[k]
            fast = frequencies[m:]
            part[m:] += _expansion(coefficients, panels.halves[k], panels.centres[k], fast)
            part[m:] -= np.sum(weights[k])
            turned += 5.0 * float(np.sum(np.abs(coefficients)))
        values += part if branch.sign > 0.0 else np.conj(part)
        # In units of roundoff: exponentials, logarithms, and their arguments.
        ulps = 256.0 + 16.0 * shift + 8.0 * np.abs(branch.power * losses)
        total += float(np.sum(ulps * weights))
        mean += float(np.sum(ulps * weights * (np.abs(losses) + panels.sizes)))
        turned += 2000.0 * float(np.sum(weights[wide]))
    long = 12.0 * (losses.size + 20.0) / 256.0  # a product of matrices may add in any order
    size = (1.0 + long) * np.minimum(2.0 * total, frequencies * mean)
    errors = UNIT_ROUNDOFF * (size + (frequencies * panels.halves.max() > _LIMITS.turned) * turned)
    errors += UNIT_ROUNDOFF * frequencies * mean
    # Over a panel G changes by less than e^3 from its centre, the total counts it 256 times.
    errors += total * (_LIMITS.rule + wide.any() * _LIMITS.expansion)
    return Sums(values, errors)


def _edges(rate: float, shift: float, power: float) -> Array | None:
    """Cut [0, shift] into panels, from the upper end, where losses grow fastest."""
    edges = [shift]
    log_odds = math.log(rate) - math.log1p(-rate)
    while edges[-1] > 0.0:
        exponent = log_odds + 2.0 * edges[-1] - shift
        share = 1.0 / (1.0 + math.exp(-exponent)) if exponent > -700.0 else 0.0
        width = min(_LIMITS.width, _LIMITS.steep / max(power * share, 1e-300))
        edges.append(max(edges[-1] - width, 0.0))
        if len(edges) > _LIMITS.most_panels:
            return None
    return np.array(edges[::-1])


def _panels(rate: float, shift: float, least: float, edges: Array) -> _Panels:
    """Place nodes on panels of the loss."""
    points, weights = gauss_legendre(_LIMITS.nodes)
    odds = rate / (1.0 - rate) * np.exp(2.0 * edges - shift)
    low = odds[:-1]
    half = 0.5 * np.log1p((odds[1:] - low) / (1.0 + low))
    centre = low + (1.0 + low) * np.expm1(half)
    moved = np.expm1(half[:, None] * points)
    at = centre[:, None] * (1.0 + ((1.0 + centre) / centre)[:, None] * moved)
    ratio = at * (1.0 - rate) / rate  # e^(2u - s)
    base = 0.25 * math.exp(-0.5 * shift) / np.sqrt(ratio) * (1.0 + at) / at
    return _Panels(
        log_mixture(rate, np.log(centre * (1.0 - rate) / rate)) - least,
        half,
        log_mixture(rate, np.log(ratio)) - least,
        half[:, None] * weights * base,
        at / (1.0 + at) + abs(least),
    )


@lru_cache(maxsize=1)
def _projection() -> Array:
    """Return what takes weighted values at the nodes to ``h a_k``."""
    points, _ = gauss_legendre(_LIMITS.nodes)
    legendre = np.polynomial.legendre.legvander(points, _LIMITS.terms - 1).T
    return np.asarray((np.arange(_LIMITS.terms) + 0.5)[:, None] * legendre)


def _expansion(coefficients: Array, half: float, centre: float, frequencies: Array) -> Complex:
    """Return ``2 e^(i v c) sum of i^k a_k j_k(v h)``, by the upward recurrence.

    It is stable where the argument exceeds the order.
    """
    x = half * frequencies
    inverse = 1.0 / x
    before, here = np.cos(x) * inverse, np.sin(x) * inverse  # of orders -1 and 0
    sums = [np.zeros(len(x)), np.zeros(len(x))]
    for k in range(_LIMITS.terms):
        sign = -1.0 if k % 4 >= 2 else 1.0
        sums[k % 2] += (sign * coefficients[k]) * here
        before, here = here, (2 * k + 1) * inverse * here - before
    angle = centre * frequencies
    return np.asarray(2.0 * (sums[0] + 1j * sums[1]) * np.exp(1j * angle))
