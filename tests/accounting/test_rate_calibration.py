"""The largest sample rate: within the target, hardly below it, and whole batches if uniform."""

import math
import re

import pytest
from dp_accounting.pld import privacy_loss_distribution as dp_pld
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import calibrate_noise_multiplier, calibrate_sample_rate, dpsgd_epsilon
from skdp.exceptions import CalibrationError, UnsupportedEventError


def check(epsilon, delta, z, steps, **how):
    rate = calibrate_sample_rate(epsilon, delta, z, steps, **how)
    cost = dpsgd_epsilon(z, rate, steps, delta, **how)
    assert 0 < rate <= 1
    assert cost <= epsilon
    assert cost >= epsilon * (1 - 1e-4) or rate == 1.0
    return rate


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "z", "steps"),
    [(0.1, 1e-6, 3.0, 100), (1.0, 1e-5, 4.0, 10**4), (8.0, 1e-9, 0.8, 1000), (1.0, 1e-5, 60, 10)],
)
def test_rate_and_noise_are_inverse(epsilon, delta, z, steps, adjacency):
    rate = check(epsilon, delta, z, steps, adjacency=adjacency)
    if rate < 1.0:
        back = calibrate_noise_multiplier(epsilon, delta, rate, steps, adjacency=adjacency)
        assert back == pytest.approx(z, rel=2e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "z", "steps"),
    [
        (1.0, 1e-5, 4.0, 10**4),
        (2.0508, 1e-6, 5.0, 500),
        pytest.param(6.65378, 1e-5, 0.7, 500, marks=pytest.mark.oracle),
    ],
)
def test_an_independent_accountant_agrees_on_rates(epsilon, delta, z, steps):
    """Its excess, seen by refining its grid, is below 3e-5 here; ours stays within 1e-4."""
    rate = check(epsilon, delta, z, steps)
    step = dp_pld.from_gaussian_mechanism(z, sampling_prob=rate, value_discretization_interval=4e-5)
    cost = step.self_compose(steps).get_epsilon_for_delta(delta)
    assert epsilon * (1 - 1e-4) <= cost <= epsilon * (1 + 3e-5)


def test_full_batches_are_enough_for_large_noise():
    for accountant in ("pld", "rdp", "gdp"):
        assert check(1.0, 1e-5, 100.0, 10, accountant=accountant) == 1.0


def test_an_accountant_of_full_batches_refuses_smaller_ones_by_name():
    with pytest.raises(UnsupportedEventError, match="PoissonSampledEvent"):
        calibrate_sample_rate(1.0, 1e-5, 1.0, 10, accountant="gdp")
    with pytest.raises(UnsupportedEventError, match="UniformSampledEvent"):
        calibrate_sample_rate(1.0, 1e-5, 1.0, 10, sampling="uniform", dataset_size=10)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    log_epsilon=st.floats(-7, 4.6),
    log_delta=st.floats(-34.5, -2.3),
    log_noise=st.floats(-1, 7),
    log_steps=st.floats(0, 23),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
)
def test_extreme_rates_are_found_or_refused(
    log_epsilon, log_delta, log_noise, log_steps, adjacency
):
    plan = (math.exp(log_epsilon), math.exp(log_delta), math.exp(log_noise))
    try:
        check(*plan, int(math.exp(log_steps)), adjacency=adjacency, accountant="rdp")
    except CalibrationError as error:
        assert re.search(r"no sample_rate down to .*nearest possible", str(error))


@pytest.mark.parametrize("size", [7, 1000, 60_000, 10**8])
def test_uniform_batches_hold_whole_records(size):
    how = {"adjacency": "replace-one", "sampling": "uniform"}
    for epsilon, z, steps in ((1.0, 4.0, 3), (3.0, 2.0, 20), (1.0, 4.0, 2000)):
        try:
            rate = calibrate_sample_rate(epsilon, 1e-5, z, steps, dataset_size=size, **how)
        except CalibrationError:
            assert dpsgd_epsilon(z, 1 / size, steps, 1e-5, **how) > epsilon
            continue
        batch = round(rate * size)
        assert rate == batch / size
        cost = dpsgd_epsilon(z, rate, steps, 1e-5, **how)
        assert cost <= epsilon
        if batch < size and cost < epsilon * (1 - 1e-4):
            assert dpsgd_epsilon(z, (batch + 1) / size, steps, 1e-5, **how) > epsilon


def test_a_batch_of_one_that_costs_too_much_is_explained():
    how = {"adjacency": "replace-one", "sampling": "uniform", "dataset_size": 100}
    with pytest.raises(CalibrationError, match=r"no sample_rate down to 0\.01 ") as caught:
        calibrate_sample_rate(1.0, 1e-9, 0.5, 10, **how)
    text = str(caught.value)
    epsilon, delta, noise = (
        float(re.search(rf"{name}=([0-9.e+-]+[0-9])( at this|\.$)", text).group(1))
        for name in ("epsilon", "delta", "noise_multiplier")
    )
    assert calibrate_sample_rate(epsilon, 1e-9, 0.5, 10, **how) == 0.01
    assert calibrate_sample_rate(1.0, delta, 0.5, 10, **how) == 0.01
    assert calibrate_sample_rate(1.0, 1e-9, noise, 10, **how) == 0.01


@pytest.mark.parametrize(
    ("change", "message"), [({}, "must be given"), ({"dataset_size": 0}, "must be an integer")]
)
def test_uniform_batches_need_a_size(change, message):
    with pytest.raises(ValueError, match=f"dataset_size {message}"):
        calibrate_sample_rate(1.0, 1e-5, 1.0, 10, sampling="uniform", **change)
