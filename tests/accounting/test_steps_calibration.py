"""How many steps fit: never one too many, hardly one too few, and what is said if none fits."""

import math
import re

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as dp_pld
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    RDPAccountant,
    calibrate_steps,
    dpsgd_epsilon,
)
from skdp.exceptions import CalibrationError, UnsupportedEventError


def check(epsilon, delta, z, rate, **how):
    steps = calibrate_steps(epsilon, delta, z, rate, **how)
    cost = dpsgd_epsilon(z, rate, steps, delta, **how)
    assert isinstance(steps, int) and steps >= 1
    assert cost <= epsilon
    if cost < epsilon * (1 - 1e-4):
        assert dpsgd_epsilon(z, rate, steps + 1, delta, **how) > epsilon
    return steps


def exact_steps(epsilon, delta, z):
    """Count full-batch steps by the closed-form profile, in 60 digits."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf("1e-3"), mpmath.mpf(60)
        for _ in range(100):
            mu = (low + high) / 2
            a = mu / 2 - epsilon / mu
            if mpmath.ncdf(a) - mpmath.exp(epsilon) * mpmath.ncdf(a - mu) <= delta:
                low = mu
            else:
                high = mu
        return (z * low) ** 2


@pytest.mark.parametrize(
    ("epsilon", "delta", "z"),
    [(1.0, 1e-5, 10.0), (0.1, 1e-6, 100.0), (8.0, 1e-12, 30.0), (2.0, 1e-5, 1e6)],
)
@pytest.mark.parametrize("accountant", ["pld", "gdp"])
def test_full_batches_are_counted_exactly(epsilon, delta, z, accountant):
    exact = exact_steps(epsilon, delta, z)
    for adjacency, moved in (("add-remove", 1), ("replace-one", 4)):
        found = check(epsilon, delta, z, 1.0, adjacency=adjacency, accountant=accountant)
        most = int(exact / moved)
        # Relative differences of steps are up to twice those of epsilon here.
        assert most - 2e-4 * most <= found <= most


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("epsilon", "delta", "z", "rate"),
    [(1.0, 1e-5, 4.0, 0.01), (2.3, 1e-5, 1.1, 0.004), (6.65, 1e-5, 0.7, 0.02)],
)
def test_an_independent_accountant_agrees(epsilon, delta, z, rate):
    """Its excess, seen by refining its grid, is below 3e-5 here; ours stays within 1e-4."""
    steps = check(epsilon, delta, z, rate)
    step = dp_pld.from_gaussian_mechanism(z, sampling_prob=rate, value_discretization_interval=4e-5)
    cost = step.self_compose(steps).get_epsilon_for_delta(delta)
    one_step = 0.5 / steps  # of epsilon, relatively: at least what one step costs here
    assert epsilon * (1 - 1e-4 - 2 * one_step) <= cost <= epsilon * (1 + 3e-5)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_small_numbers_agree_with_counting(adjacency):
    how = {"adjacency": adjacency, "accountant": RDPAccountant}
    for epsilon in (0.4, 0.8):
        count = 0
        while dpsgd_epsilon(2.0, 0.02, count + 1, 1e-5, **how) <= epsilon:
            count += 1
        found = check(epsilon, 1e-5, 2.0, 0.02, **how)
        assert count * (1 - 1e-3) <= found <= count


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    log_epsilon=st.floats(-7, 4.6),
    log_delta=st.floats(-34.5, -2.3),
    log_rate=st.floats(-16, 0),
    log_noise=st.floats(-1, 7),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
)
def test_extreme_targets_are_met_or_refused(log_epsilon, log_delta, log_rate, log_noise, adjacency):
    plan = (math.exp(log_epsilon), math.exp(log_delta), math.exp(log_noise), math.exp(log_rate))
    try:
        check(*plan, adjacency=adjacency, accountant="rdp")
    except CalibrationError as error:
        assert re.search(r"not even one step .*nearest possible|more than 10\^15", str(error))


@pytest.mark.parametrize(
    ("epsilon", "delta", "z", "rate"),
    [(1.0, 1e-5, 40.0, 1e-4), (0.05, 1e-10, 20.0, 1e-4), (5.0, 1e-7, 1.5, 0.1)],
)
@pytest.mark.parametrize("sampling", ["poisson", "uniform"])
def test_many_steps_and_few(epsilon, delta, z, rate, sampling):
    check(epsilon, delta, z, rate, adjacency="replace-one", sampling=sampling)


def test_answers_up_to_ten_thousand_million():
    for epsilon in (0.3, 1.0):
        # Near the central limit mu = rate sqrt(steps (e^(1/z^2) - 1)).
        steps = check(epsilon, 1e-6, 20.0, 4e-5, accountant="rdp")
        assert 10**9 < steps < 10**11
    assert check(1.0, 1e-6, 1e5, 1.0, accountant="gdp") > 10**8


@pytest.mark.parametrize("sampling", ["poisson", "uniform"])
def test_the_remedies_that_an_error_names_are_sound(sampling):
    how = {"adjacency": "replace-one", "sampling": sampling}
    with pytest.raises(CalibrationError, match="not even one step") as caught:
        calibrate_steps(0.1, 1e-5, 1.0, 0.05, **how)
    text = str(caught.value)
    number = r"([0-9.e+-]+[0-9])"
    nearest = re.search(rf"epsilon={number} at this delta, or delta={number} at this epsilon", text)
    larger_epsilon, larger_delta = map(float, nearest.groups())
    assert calibrate_steps(larger_epsilon, 1e-5, 1.0, 0.05, **how) == 1
    assert calibrate_steps(0.1, larger_delta, 1.0, 0.05, **how) == 1
    remedy = re.search(rf"noise_multiplier={number} or with sample_rate={number}", text)
    noise, rate = map(float, remedy.groups())
    assert calibrate_steps(0.1, 1e-5, noise, 0.05, **how) == 1
    assert calibrate_steps(0.1, 1e-5, 1.0, rate, **how) == 1
    # Hardly less than that would do.
    for plan in (
        (0.999 * larger_epsilon, 1e-5, 1.0, 0.05),
        (0.1, 0.99 * larger_delta, 1.0, 0.05),
        (0.1, 1e-5, 0.999 * noise, 0.05),
        (0.1, 1e-5, 1.0, 1.001 * rate),
    ):
        with pytest.raises(CalibrationError):
            calibrate_steps(*plan, **how)


def test_full_batches_name_no_rate_that_is_not_accounted_for():
    with pytest.raises(CalibrationError, match=r"met with noise_multiplier=[0-9.]+\.$"):
        calibrate_steps(0.1, 1e-5, 1.0, 1.0, accountant="gdp")


def test_unlimited_steps_are_an_error():
    with pytest.raises(CalibrationError, match=r"more than 10\^15 steps"):
        calibrate_steps(1.0, 1e-5, 1e9, 1.0, accountant="gdp")
    with pytest.raises(ValueError, match="at 0 nothing is released"):
        calibrate_steps(1.0, 1e-5, 1.0, 0.0)


def test_unsupported_steps_are_refused_by_name():
    with pytest.raises(UnsupportedEventError, match="UniformSampledEvent"):
        calibrate_steps(1.0, 1e-5, 1.0, 0.1, sampling="uniform")
    with pytest.raises(UnsupportedEventError, match="PoissonSampledEvent"):
        calibrate_steps(1.0, 1e-5, 1.0, 0.1, accountant="gdp")
