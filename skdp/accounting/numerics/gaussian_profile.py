"""The exact privacy profile of the Gaussian mechanism, in log space.

A Gaussian mechanism with a sensitivity of ``mu`` standard deviations of its noise is exactly
``(epsilon, delta)``-DP for (Balle and Wang, 2018, Theorem 8)

    delta(epsilon; mu) = Phi(a) - e^epsilon Phi(b),   a = mu/2 - epsilon/mu,   b = a - mu.

Both terms are nearly equal for small ``mu``, and both underflow far in the tail. As ``e^epsilon
phi(b) = phi(a)``, the difference is ``phi(a) (R(-a) - R(-b))``. Here ``R(x) = Phi(-x) / phi(x) =
integral over u > 0 of e^(-x u - u^2/2)`` is the Mills ratio, a scaled complementary error function.
If the two ratios agree to 1 %, their difference is integrated as the positive function
``e^(-x u - u^2/2) (1 - e^(-mu u))``, without cancellation. Results are rounded to the safe side:
`delta` and `epsilon` up, `mu` down.
"""

import math
import sys

import numpy as np
from scipy.special import erfcx, erfinv

from skdp.accounting.numerics.arithmetic import UNIT_ROUNDOFF, narrow_bracket, unit_gauss_legendre

_SQRT2 = math.sqrt(2.0)
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_SAFETY = 4e-12  # relative: far above the rounding error of the solvers, far below 1e-9
_QUADRATURE = 1e-13  # relative error of the 64-point rule, generously
_NEAR = 0.99  # ratio of the two terms above which their difference is integrated
_MAX_ITERATIONS = 200  # of a solver
_FAR = 1e150  # deviations, whose squares would overflow


def _log_mills_difference(x: float, mu: float) -> float:
    """Return log(R(x) - R(x + mu)) by quadrature."""
    upper = 90.0 / (x + math.sqrt(x * x + 90.0))  # where the exponent has reached -45
    nodes, weights = unit_gauss_legendre(64)
    u = upper * nodes
    integral = upper * float(np.dot(weights, np.exp(-u * (x + 0.5 * u)) * -np.expm1(-mu * u)))
    return math.log(integral) if integral > 0.0 else -math.inf


def log_delta(mu: float, epsilon: float) -> float:
    """Return ``log delta(epsilon; mu)``, rounded to nearest."""
    return _evaluate(mu, epsilon)[0]


def _evaluate(mu: float, epsilon: float) -> tuple[float, float]:
    """Return log delta and an error bound that includes rounding of ``mu``."""
    if mu <= 0.0 or epsilon == math.inf:
        return -math.inf, 0.0
    if mu == math.inf:
        return 0.0, 0.0
    t = epsilon / mu
    a = 0.5 * mu - t
    minus_b = 0.5 * mu + t
    if not abs(a) < _FAR:
        return (-math.inf if t > mu else 0.0), 0.0
    far = float(erfcx(minus_b / _SQRT2))
    rounding = 32.0 * UNIT_ROUNDOFF
    if a > 0.0:
        density = math.exp(-0.5 * a * a)
        complement = 0.5 * density * (float(erfcx(a / _SQRT2)) + far)
        if complement < _NEAR:
            error = complement * (1.0 + a * a) + density * minus_b
            return math.log1p(-complement), rounding * error / (1.0 - complement)
    error = rounding * (2.0 + abs(a) * minus_b)
    if a <= 0.0:
        near = float(erfcx(-a / _SQRT2))
        if near <= 0.0:
            return -math.inf, error
        if far < _NEAR * near:
            log_near = -0.5 * a * a + math.log(0.5 * near)
            return log_near + math.log1p(-far / near), error / (1.0 - far / near)
    log_value = -0.5 * a * a - _LOG_SQRT_2PI + _log_mills_difference(-a, mu)
    return min(0.0, log_value), error + _QUADRATURE


def delta(mu: float, epsilon: float) -> float:
    """Bound ``delta(epsilon; mu)`` from above, to 1e-9 relative if normal.

    Positive if ``mu > 0``, as is the true value.
    """
    return delta_bounds(mu, epsilon)[1]


def delta_bounds(mu: float, epsilon: float) -> tuple[float, float]:
    """Bound ``delta(epsilon; mu)``, for ``mu, epsilon >= 0``."""
    if mu <= 0.0:
        return 0.0, 0.0
    log_value, error = _evaluate(mu, epsilon)
    error += 4.0 * UNIT_ROUNDOFF
    upper = max(math.exp(min(0.0, log_value + error)), sys.float_info.min)
    lower = math.exp(log_value - error)
    return (lower if lower >= sys.float_info.min else 0.0), upper


def epsilon(mu: float, delta: float) -> float:
    """Bound the smallest epsilon for a delta from above."""
    return epsilon_bounds(mu, delta)[1]


def epsilon_bounds(mu: float, delta: float) -> tuple[float, float]:
    """Bound the smallest ``epsilon`` for ``delta < 1``.

    Both bounds are infinite if ``delta`` is zero and ``mu`` is not.
    """
    if mu <= 0.0:
        return 0.0, 0.0
    if delta <= 0.0 or mu == math.inf:
        return math.inf, math.inf
    target = math.log(delta)
    if sum(_evaluate(mu, 0.0)) <= target:
        return 0.0, 0.0
    # Chernoff: delta(eps) <= exp(-(eps - mu^2/2)^2 / (2 mu^2)), so this starts beyond the root, and
    # because log delta is concave in epsilon, Newton's iterates descend to it monotonically.
    low, high = 0.0, mu * (0.5 * mu + math.sqrt(-2.0 * target))
    if not math.isfinite(high):
        return 0.0, math.inf
    x, slope, error = high, -1.0, 0.0
    for _ in range(_MAX_ITERATIONS):
        value, error = _evaluate(mu, x)
        a, minus_b = 0.5 * mu - x / mu, 0.5 * mu + x / mu
        second_term = -0.5 * a * a + math.log(0.5 * float(erfcx(minus_b / _SQRT2)))
        slope = -math.exp(min(700.0, second_term - value)) if value > -math.inf else -1.0
        if value <= target:
            high = x
        else:
            low = x
        step = (target - value) / slope if value > -math.inf else math.inf
        following = x + step
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - x) <= 1e-15 * x:
            break
        x = following
    margin = (error + 4.0 * UNIT_ROUNDOFF * -target) / -slope
    return max(x * (1.0 - _SAFETY) - margin, 0.0), x * (1.0 + _SAFETY) + margin


def mu(epsilon: float, delta: float) -> float:
    """Return a lower bound on the largest mu for a delta in (0, 1).

    Noise of scale ``sensitivity / mu`` meets the target. Tight to 1e-9 relative.
    """
    target = math.log(delta)
    spread = math.sqrt(-2.0 * target)
    # Two lower bounds on the root: Chernoff's, and the total variation at epsilon = 0.
    chernoff = 2.0 * epsilon / (spread + math.sqrt(spread * spread + 2.0 * epsilon))
    low = high = math.log(max(chernoff, 2.0 * _SQRT2 * float(erfinv(delta))))
    while log_delta(math.exp(high), epsilon) <= target:
        low, high = high, high + 1.0
    low, _ = narrow_bracket(
        lambda y: target - log_delta(math.exp(y), epsilon) or 1.0, low, high, 1e-14, 1e-14
    )
    return math.exp(low) * (1.0 - _SAFETY)


def sigma(epsilon: float, delta: float) -> float:
    """Return an upper bound on the smallest noise scale per sensitivity."""
    return 1.0 / mu(epsilon, delta)
