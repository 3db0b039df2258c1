"""The profile of a composition to many digits: an inversion integral in mpmath.

Nothing is shared with the library: moments by mpmath's trapezoidal sum in 30 digits, the integral
along a vertical line by another, both far finer and longer than double precision can use.
"""

import mpmath as mp


def log_moment(kind, rate, mu, z):
    """Return log E[e^(z L)] for one release."""
    q, mu = mp.mpf(rate), mp.mpf(mu)
    power = 1 + 2 * z.real if kind == "poisson-replace-one" else 1 + z.real
    step = mp.mpf("0.06")
    low, high = mp.mpf(-14), 14 + mu * (0 if kind == "add" else power)

    def ratio(x):
        return 1 - q + q * mp.exp(mu * x - mu * mu / 2)

    total, x = mp.mpc(0), low
    while x < high:
        density = mp.exp(-x * x / 2)
        if kind == "remove":
            total += density * mp.exp((1 + z) * mp.log(ratio(x)))
        elif kind == "add":
            total += density * mp.exp(-z * mp.log(ratio(x)))
        else:
            total += density * mp.exp((1 + z) * mp.log(ratio(x)) - z * mp.log(ratio(-x)))
        x += step
    return mp.log(total * step / mp.sqrt(2 * mp.pi))


def delta(kind, rate, mu, count, epsilon, theta, period, frequencies):
    """Return the profile of ``count`` releases at ``epsilon``, integrating along ``theta``."""
    with mp.workdps(30):
        step = 2 * mp.pi / period
        total = mp.mpf(0)
        for k in range(frequencies):
            z = mp.mpc(theta, k * step)
            term = mp.exp(count * log_moment(kind, rate, mu, z) - z * epsilon) / (z * (z + 1))
            total += term.real * (mp.mpf("0.5") if k == 0 else 1)
        return total * step / mp.pi
