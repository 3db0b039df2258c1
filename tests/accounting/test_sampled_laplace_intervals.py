"""Sampled Laplace releases with little noise: many moments at once, and narrow intervals."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import LaplaceEvent, PLDAccountant, PoissonSampledEvent
from skdp.accounting.pld.grid.bounds import delta_interval
from skdp.accounting.pld.inversion_bounds import with_gaussian
from skdp.accounting.pld.pairs.laplace import laplace_pair
from skdp.accounting.pld.transforms.fourier_sums import equidistant_sums
from skdp.accounting.pld.transforms.laplace import _many_moments

CASES = [  # kind, rate, shift, theta, largest frequency
    ("remove", 0.0028, 0.75, 0.13, 11.0),
    ("add", 0.048, 6.0, 3.3, 500.0),
    ("poisson-replace-one", 6e-4, 6.4, 11.0, 2000.0),
    ("remove", 0.098, 5.0, 0.7, 400.0),
    ("add", 0.7, 2.0, 1.5, 500.0),
    ("poisson-replace-one", 1.6e-7, 4.2, 5.0, 300.0),
    ("remove", 3.9e-7, 4.6, 6e4, 3e6),
    ("poisson-replace-one", 0.3, 3.0, 4.0, 350.0),
    ("add", 6e-3, 20.0, 0.4, 100.0),
]


def exact_moment(kind, rate, shift, z):
    """E[e^(zL)] by adaptive quadrature of the definition."""
    q, s, z = mp.mpf(rate), mp.mpf(shift), mp.mpc(z)

    def ratio(u):
        return 1 - q + q * mp.exp(2 * u - s)

    def mean(f):
        turns = float(abs(z.imag) * mp.log(ratio(s) / ratio(0)))
        # Panels are equal in the loss, as that is what the integrand turns with.
        count = int(turns / 6) + 12
        first, last = mp.log(ratio(0)), mp.log(ratio(s))
        inner = [first + (last - first) * k / count for k in range(1, count)]
        points = [((mp.log((mp.exp(x) - 1 + q) / q)) + s) / 2 for x in inner]
        points = sorted([*points, *(s * k / 12 for k in range(13))])
        return (
            f(mp.mpf(0)) / 2
            + mp.exp(-s) / 2 * f(s)
            + mp.quad(lambda u: mp.exp(-u) / 2 * f(u), points)
        )

    if kind == "remove":
        return mean(lambda u: ratio(u) ** (z + 1))
    if kind == "add":
        return mean(lambda u: ratio(u) ** -z)
    c = ratio(0)
    return c * (mean(lambda u: (ratio(u) / c) ** (z + 1) + (ratio(u) / c) ** -z) - 1)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_many_moments_at_once(case):
    kind, rate, shift, theta, largest = case
    z = theta + 1j * largest / 2000 * np.arange(2001)
    values, errors = _many_moments(kind != "add", kind != "remove", rate, shift, z)
    for k in (1, 700, 2000):
        with mp.workdps(26):
            exact = exact_moment(kind, rate, shift, complex(z[k]))
            wrong = float(abs(mp.exp(mp.mpc(values[k])) / exact - 1))
            size = float(abs(mp.log(exact)))
        assert wrong <= errors[k]
        if size < 0.1:
            assert errors[k] <= 1e-9 * size + 1e-15


def test_equidistant_sums():
    rng = np.random.default_rng(0)
    losses, weights = rng.normal(size=70), rng.random(70)
    frequencies = 0.37 * np.arange(123)
    direct = np.sum(weights * np.expm1(1j * np.multiply.outer(frequencies, losses)), axis=1)
    np.testing.assert_allclose(equidistant_sums(losses, weights, frequencies), direct, atol=1e-11)


# Delta was known to a few percent only for these: adjacency, rate, multiplier, steps, epsilon.
PLANS = [
    ("add-remove", 1.5784749640999285e-07, 0.2442869560387331, 102771, 5e-4),
    ("add-remove", 3.8735342919342583e-07, 0.7638767279885802, 229770, 0.0012),
    ("replace-one", 0.005057829040621371, 0.2757308162029464, 670408, 560.0),
    ("add-remove", 0.000999468711890289, 0.20207361572317728, 207944, 15.0),
    ("add-remove", 0.016168969990054065, 0.26601502755804896, 14594, 100.0),
    ("add-remove", 0.0007904027277626525, 0.2861002562742423, 47124, 5.0),
    ("add-remove", 1.1711439665493393e-07, 0.23888163940834128, 2476, 1.5557e-4),
]


@pytest.mark.daily(1)
@pytest.mark.parametrize("plan", PLANS)
def test_little_noise_rarely(plan):
    adjacency, rate, multiplier, steps, epsilon = plan
    event = PoissonSampledEvent(rate, LaplaceEvent(multiplier))
    delta = PLDAccountant(adjacency).compose(event, steps).delta(epsilon)
    assert delta.upper - delta.lower <= 1e-3 * delta.upper
    # The grid knows nothing of transforms.
    if adjacency == "add-remove":
        pairs = [(laplace_pair("remove", rate, 1.0 / multiplier), steps)]
        lower, upper = delta_interval(with_gaussian(pairs, 0.0), epsilon, 1e-2)
        assert lower <= delta.upper
        other = [(laplace_pair("add", rate, 1.0 / multiplier), steps)]
        assert delta.lower <= max(upper, delta_interval(other, epsilon, 1e-2)[1])


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
    log_rate=st.floats(-7.0, -0.01),
    log_noise=st.floats(math.log10(0.2), 0.0),
    log_steps=st.floats(3.0, 6.0),
    log_delta=st.floats(-15.0, -1.0),
    share=st.floats(0.5, 1.0),
)
def test_intervals_are_narrow(adjacency, log_rate, log_noise, log_steps, log_delta, share):
    event = PoissonSampledEvent(10.0**log_rate, LaplaceEvent(10.0**log_noise))
    plan = PLDAccountant(adjacency).compose(event, int(10.0**log_steps))
    epsilon = plan.epsilon(10.0**log_delta)
    if not 1e-6 <= epsilon.upper <= 1e3:
        return
    assert epsilon.upper - epsilon.lower <= 1e-3 * epsilon.upper
    delta = plan.delta(share * epsilon.lower)
    assert delta.upper - delta.lower <= 1e-3 * delta.upper
    assert delta.upper >= 10.0**log_delta * (1.0 - 1e-9)
