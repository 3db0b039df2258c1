"""Profiles of single releases, and of long compositions, that share nothing with the library.

Single releases: the definition, with mpmath. All pairs here have a likelihood ratio that rises
along the line, so that ``delta(epsilon) = P(x > t) - e^epsilon Q(x > t)``, where ``t`` is the point
at which it passes ``e^epsilon``.

Compositions: the same inversion integral as in `contour_oracle`, in the longest floating-point
format that numpy has, which is fast enough for hundreds of cases.
"""

import math

import mpmath as mp
import numpy as np

LONG = np.longdouble
PI = LONG(math.pi) + LONG(1.2246467991473532e-16)
LARGEST_COUNT = 500  # of frequencies
DIGITS = 60


def _gaussian_tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def _gaussian_density(x):
    return mp.exp(-x * x / 2)


def _laplace_tail(x):
    return mp.exp(-x) / 2 if x > 0 else 1 - mp.exp(x) / 2


def _laplace_density(x):
    return mp.exp(-abs(x))


NOISE = {
    "gaussian": (_gaussian_tail, _gaussian_density),
    "laplace": (_laplace_tail, _laplace_density),
}


def pair(kind, rate, shift):
    """Return the mixtures P and Q as lists of (weight, centre)."""
    q, s = mp.mpf(rate), mp.mpf(shift)
    still, moved, back = (1 - q, 0), (q, s), (q, -s)
    return {
        "remove": ([still, moved], [(1, 0)]),
        "add": ([(1, 0)], [still, back]),
        "replace": ([still, moved], [still, back]),
    }[kind]


def _zero(rising, low, high):
    """Return where a rising function passes zero, to forty digits: errors count squared in areas.

    Halving first, then false positions (Illinois): an end that stays has its value halved.
    """
    bottom, top, last = rising(low), rising(high), 0
    for step in range(160):
        middle = (low + high) / 2
        if step > 15 and step % 16:
            middle = (low * top - high * bottom) / (top - bottom)
        value = rising(middle)
        if abs(value) < mp.mpf("1e-40"):
            break
        if value > 0:
            high, top, bottom = middle, value, bottom / 2 if last > 0 else bottom
        else:
            low, bottom, top = middle, value, top / 2 if last < 0 else top
        last = value
    return middle


def mixture_delta(noise, kind, rate, shift, epsilon):
    """Return the profile of one release with the given noise, at scale one."""
    with mp.workdps(DIGITS):
        tail, density = NOISE[noise]
        p, q = pair(kind, rate, shift)
        factor = mp.exp(mp.mpf(epsilon))

        def mixed(function, mixture, x):
            return mp.fsum(w * function(x - centre) for w, centre in mixture if w > 0)

        def excess(x):
            return mp.log(mixed(density, p, x) / mixed(density, q, x)) - mp.mpf(epsilon)

        reach = mp.mpf(shift)  # beyond which the ratio is constant, or nearly so
        if noise == "gaussian":
            reach += 60 + (2 * mp.mpf(epsilon) + 60) / reach
        if excess(reach) <= 0:
            return mp.mpf(0)
        at = _zero(excess, -reach, reach)
        return mixed(tail, p, at) - factor * mixed(tail, q, at)


def gaussian_delta(mu, epsilon):
    """Return the profile of N(mu, 1) against N(0, 1)."""
    with mp.workdps(DIGITS):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        return _gaussian_tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * _gaussian_tail(
            epsilon / mu + mu / 2
        )


def discrete_delta(log_weight, reach, shift, epsilon):
    """Return the profile of integer noise, with unnormalised weights, shifted by ``shift``."""
    with mp.workdps(DIGITS):
        weights = {x: mp.exp(log_weight(x)) for x in range(-reach - shift, reach + shift + 1)}
        factor, total = mp.exp(mp.mpf(epsilon)), mp.fsum(weights.values())
        excess = (weights[x - shift] - factor * weights[x] for x in range(-reach, reach + 1))
        return mp.fsum(e for e in excess if e > 0) / total


def response_delta(stated, failure, epsilon):
    """Return the profile of randomised response that may also fail."""
    with mp.workdps(DIGITS):
        kept = (mp.exp(mp.mpf(stated)) - mp.exp(mp.mpf(epsilon))) / (1 + mp.exp(mp.mpf(stated)))
        return mp.mpf(failure) + (1 - mp.mpf(failure)) * max(kept, 0)


class OutOfReachError(ArithmeticError):
    """The integral would need too many frequencies."""


class LongComposition:
    """The profile of a composition of sampled Gaussians by an inversion integral.

    ``parts`` are (kind, rate, mu, count), with the kinds of `contour_oracle` or "uniform".
    """

    def __init__(self, parts):
        self.parts = [(kind, LONG(rate), LONG(mu), count) for kind, rate, mu, count in parts]

    def log_moment(self, z):
        """Return log E[e^(z L)] of the composition for arguments with one real part."""
        z = np.atleast_1d(np.asarray(z, dtype=np.clongdouble))
        total = np.zeros(len(z), dtype=np.clongdouble)
        with np.errstate(over="ignore", invalid="ignore"):
            for kind, rate, mu, count in self.parts:
                total += count * self._log_moment(kind, rate, mu, z)
        return total

    @staticmethod
    def _log_moment(kind, rate, mu, z):
        power = float(z[0].real) + 1.0
        if kind == "uniform":
            nodes, weights = np.polynomial.legendre.leggauss(24)
            width = LONG(min(1.0, 1.0 / float(mu)))
            panels = math.ceil((12.0 + float(mu) * power) / float(width))
            x = (
                mu / 2 + width * (np.arange(panels)[:, None] + (LONG(1) + nodes.astype(LONG)) / 2)
            ).ravel()
            weights = np.tile(weights.astype(LONG) * width / 2, panels)
        else:
            reach = {"remove": power, "add": 0.0, "poisson-replace-one": 2.0 * power}[kind]
            step = LONG(0.05)
            x = np.arange(-14.0, 14.0 + float(mu) * reach, 0.05).astype(LONG)
            x, weights = LONG(-14.0) + step * np.arange(len(x)), step
        density = weights * np.exp(-x * x / 2) / np.sqrt(2 * PI)

        def logs(points):
            return np.log1p(rate * np.expm1(mu * points - mu * mu / 2))

        up = logs(x)[None, :]
        z = z[:, None]
        if kind == "remove":
            excess = np.expm1((1 + z) * up) - (1 + z) * np.expm1(up)
        elif kind == "add":
            excess = np.expm1(-z * up) + z * np.expm1(up)
        elif kind == "uniform":
            excess = np.exp(up) * np.expm1(z * up) + np.expm1(-z * up)
        else:
            down = logs(-x)[None, :]
            excess = np.expm1((1 + z) * up - z * down) - (1 + z) * np.expm1(up)
            excess += z * np.expm1(down)
        mean = np.sum(density * excess, axis=1)
        square = mean.real**2 + mean.imag**2
        return np.log1p(2 * mean.real + square) / 2 + 1j * np.arctan2(mean.imag, 1 + mean.real)

    def delta(self, epsilon):
        """Return the profile, to about ten digits."""
        epsilon = LONG(epsilon)

        def exponent(theta):
            moment = float(self.log_moment(theta)[0].real - theta * epsilon)
            return moment if math.isfinite(moment) else math.inf

        def height(theta):
            return exponent(theta) - math.log(theta) - math.log1p(theta)

        theta = self._lowest(height)
        step = 0.02 * theta
        around = [exponent(theta + k * step) for k in (-1, 0, 1)]
        curvature = around[0] - 2 * around[1] + around[2]
        if not 0.0 < curvature < math.inf:
            raise OutOfReachError("moments overflow")
        deviation = math.sqrt(curvature) / step
        log_target = around[1] - math.log(theta * (theta + 1) * max(deviation, 1 / theta)) - 28.0
        period = self._period(theta, deviation, exponent, log_target)
        top = self.log_moment(theta)[0].real
        total, k = LONG(0), 0
        while True:
            frequencies = 2 * PI / LONG(period) * np.arange(k, k + 32)
            z = LONG(theta) + 1j * frequencies
            moments = self.log_moment(z) - top
            terms = np.exp(moments - 1j * frequencies * epsilon) / (z * (z + 1))
            if k == 0:
                terms[0] /= 2
            total += np.sum(terms.real)
            k += 32
            if np.max(np.abs(terms)) * k < 1e-13 * abs(total):
                break
            if k > LARGEST_COUNT:
                raise OutOfReachError(f"{k} frequencies do not do for {self.parts}")
        return float(np.exp(top - theta * epsilon) * total * 2 / LONG(period))

    @staticmethod
    def _lowest(height):
        """Return where a convex function of theta is least, roughly."""
        theta, best = 1.0, height(1.0)
        for factor in (4.0, 1.5, 1.1):
            for direction in (factor, 1.0 / factor):
                while (other := height(theta * direction)) < best:
                    theta, best = theta * direction, other
        return theta

    @staticmethod
    def _period(theta, deviation, exponent, log_target):
        """Return a period at which aliases on either side are negligible."""
        needed = []
        for sign in (1.0, -1.0):
            best = math.inf
            for distance in (0.5, 1.0, 2.0, 4.0, 8.0):
                other = theta + sign * distance / deviation
                if other <= 0.0:
                    continue
                best = min(best, (exponent(other) - log_target) / abs(other - theta))
            if sign < 0.0:
                best = min(best, -float(log_target) / theta)  # no profile exceeds one
            needed.append(best)
        if not all(map(math.isfinite, needed)):
            raise OutOfReachError("moments overflow")
        return max(needed)
