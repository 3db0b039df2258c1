"""The profile of a composition to many digits: an inversion integral over balls.

Nothing is shared with the library: moments by rigorous quadrature, the integral along a vertical
line by a trapezoidal sum, far finer and longer than double precision can use.
"""

from ball_moments import gaussian_moment, precision
from flint import acb, arb


def delta(kind, rate, mu, count, epsilon, theta, period, frequencies):
    """Return the profile of ``count`` releases at ``epsilon``, integrating along ``theta``."""
    with precision(140):
        step, total = 2 * arb.pi() / arb(period), arb(0)
        for k in range(frequencies):
            z = acb(arb(theta), k * step)
            moment = gaussian_moment(kind, rate, mu, z, bits=140)
            term = (count * moment.log() - z * arb(float(epsilon))).exp() / (z * (z + 1))
            total += term.real * (0.5 if k == 0 else 1)
        return total * step / arb.pi()
