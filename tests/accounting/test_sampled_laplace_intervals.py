"""Sampled Laplace releases with little noise: narrow intervals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import LaplaceEvent, PLDAccountant, PoissonSampledEvent
from skdp.accounting.pld.gaussian_transforms import equidistant_sums
from skdp.accounting.pld.grid_bounds import delta_interval
from skdp.accounting.pld.inversion_bounds import with_gaussian
from skdp.accounting.pld.pairs.laplace import laplace_pair


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
