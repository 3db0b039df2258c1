"""Profiles of a few sampled Gaussian releases, one after the other, as an oracle.

With the profile ``d_t`` of t releases known at every real argument, that of one more is the mean
``d_(t+1)(e) = E_P[d_t(e - L)]`` over its loss. All terms are positive, so nothing cancels, however
small the profile is. The means are taken by Gauss-Legendre panels that crowd where the loss passes
``e``, and ``log d_t`` is interpolated by splines in ``asinh(e / scale)``. Good to about 1e-5
relative, which nothing here proves; nothing is shared with the library either.

`two_releases` does the same for two releases in thirty digits, without interpolation.
"""

import math

import mpmath as mp
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

REACH = 12.0
FARTHEST = 40.0  # nats
SPACING = 0.04
NODES = np.polynomial.legendre.leggauss(10)


class Recursion:
    """Profiles of 1, 2, ... releases of kind "remove", "poisson-replace-one" or "uniform"."""

    def __init__(self, kind, rate, mu):
        self.kind, self.rate, self.mu = kind, rate, mu
        self.symmetric = kind != "remove"

    def log_ratio(self, x):
        """Return log(1 - q + q e^(mu x - mu^2/2))."""
        return np.log1p(self.rate * np.expm1(self.mu * x - 0.5 * self.mu**2))

    def loss(self, x):
        """Return the loss at x, on the positive branch for "uniform"."""
        up = self.log_ratio(x)
        return up - self.log_ratio(-x) if self.kind == "poisson-replace-one" else up

    def point(self, e):
        """Return where the loss passes e, by bisection."""
        low = np.full(np.shape(e), -FARTHEST)
        high = np.full(np.shape(e), FARTHEST)
        for _ in range(70):
            middle = 0.5 * (low + high)
            short = self.loss(middle) < e
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high

    def single(self, e):
        """Return the profile of one release, for positive arguments if it is symmetric."""
        q, mu = self.rate, self.mu
        x = self.point(e)
        if self.kind == "poisson-replace-one":
            return (
                q * ndtr(mu - x) - q * np.exp(e) * ndtr(-mu - x) - (1 - q) * np.expm1(e) * ndtr(-x)
            )
        inside = q * (ndtr(mu - x) - ndtr(-x)) - np.expm1(e) * ndtr(-x)
        return np.where(e > math.log1p(-q), inside, -np.expm1(e))

    def profile(self, count, epsilon):
        """Return the profile of ``count`` releases, two or more, at an epsilon or several."""
        known = self._everywhere(self.single)
        for done in range(1, count - 1):
            top = math.asinh(FARTHEST / self._scale(done))
            bottom = 0.0 if self.symmetric else -top
            u = np.arange(bottom - 0.5 * SPACING, top, SPACING)
            if self.symmetric:
                u = np.concatenate([[0.0], u[u > 0.0]])
            scale = self._scale(done)
            e = scale * np.sinh(u)
            values = np.log(np.maximum(self._mean(known, e), 1e-300))
            spline = CubicSpline(u, values)
            known = self._everywhere(lambda at, s=spline, a=scale: np.exp(s(np.arcsinh(at / a))))
        values = self._mean(known, np.atleast_1d(np.asarray(epsilon, dtype=float)))
        return values if np.ndim(epsilon) else float(values[0])

    def _scale(self, done):
        return 0.3 * self.rate * done

    def _everywhere(self, positive):
        if not self.symmetric:
            return lambda e: positive(np.clip(e, -FARTHEST, FARTHEST))

        def mirrored(e):
            size = np.minimum(np.abs(e), FARTHEST)
            value = positive(size)
            return np.where(e < 0.0, -np.expm1(-size) + np.exp(-size) * value, value)

        return mirrored

    def _mean(self, known, e):
        """Return E_P[known(e - L)] for an array of arguments."""
        q, mu = self.rate, self.mu
        start = 0.5 * mu if self.kind == "uniform" else -REACH
        base = np.linspace(start, mu + REACH, 60)
        near = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 28)])
        centre = self.point(np.abs(e) if self.kind == "uniform" else e)
        marks = [np.tile(base, (len(e), 1)), centre[:, None] + near, centre[:, None] - near]
        edges = np.sort(np.clip(np.concatenate(marks, axis=1), start, mu + REACH), axis=1)
        half = 0.5 * np.diff(edges, axis=1)[:, :, None]
        x = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, None] + half * NODES[0]
        still, moved = (np.exp(-0.5 * (x - c) ** 2) / math.sqrt(2 * math.pi) for c in (0.0, mu))
        weights = half * NODES[1]
        loss, at = self.loss(x), e[:, None, None]
        terms = ((1 - q) * still + q * moved) * known(at - loss)
        if self.kind == "uniform":
            terms = terms + still * known(at + loss)
        total = np.sum(weights * terms, axis=(1, 2))
        if self.kind == "uniform":
            total = total + (1 - q) * math.erf(0.5 * mu / math.sqrt(2)) * known(e)
        return total


def two_releases(kind, rate, mu, epsilon):
    """Return the profile of two releases by adaptive quadrature of a closed form."""
    with mp.workdps(30):
        q, mu, epsilon = mp.mpf(rate), mp.mpf(mu), mp.mpf(epsilon)

        def tail(x):
            return mp.erfc(x / mp.sqrt(2)) / 2

        def log_ratio(x):
            return mp.log1p(q * mp.expm1(mu * x - mu * mu / 2))

        def loss(x):
            return log_ratio(x) - (log_ratio(-x) if kind == "poisson-replace-one" else 0)

        def point(e):
            if kind == "remove" and e <= mp.log1p(-q):
                return -mp.inf
            if kind != "poisson-replace-one":
                return (mp.log1p(mp.expm1(e) / q) + mu * mu / 2) / mu
            # (1 + c y) / (1 + c / y) = e^e is a quadratic equation for y = e^(mu x).
            c, more = q * mp.exp(-mu * mu / 2) / (1 - q), mp.expm1(e)
            return mp.log((more + mp.sqrt(more**2 + 4 * c * c * (1 + more))) / (2 * c)) / mu

        def single(e):
            if kind != "remove" and e < 0:
                return -mp.expm1(e) + mp.exp(e) * single(-e)
            x = point(e)
            if x == -mp.inf:
                return -mp.expm1(e)
            under_q = tail(x)
            if kind == "poisson-replace-one":
                under_q = (1 - q) * tail(x) + q * tail(x + mu)
            return (1 - q) * tail(x) + q * tail(x - mu) - mp.exp(e) * under_q

        def term(x):
            still = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
            moved = mp.exp(-((x - mu) ** 2) / 2) / mp.sqrt(2 * mp.pi)
            value = ((1 - q) * still + q * moved) * single(epsilon - loss(x))
            return value + still * single(epsilon + loss(x)) if kind == "uniform" else value

        start = mu / 2 if kind == "uniform" else mp.mpf(-14)
        passed = point(epsilon)
        near = [passed + s * mp.mpf(10) ** -k for k in range(0, 9, 2) for s in (-1, 1)]
        marks = [*near, passed, *range(-12, 20, 3), mu + 14]
        marks = sorted({start, *(mp.mpf(x) for x in marks if start < x <= mu + 14)})
        total = mp.quad(term, marks)
        if kind == "uniform":
            total += (1 - q) * mp.erf(mu / 2 / mp.sqrt(2)) * single(epsilon)
        return total
