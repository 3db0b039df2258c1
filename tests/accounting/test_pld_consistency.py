"""The two directions of the PLD accountant agree, and repetitions cost no more than they are."""

import math

import pytest

from skdp.accounting import (
    ApproxDPEvent,
    GaussianEvent,
    PLDAccountant,
    PoissonSampledEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.numerics import gaussian_profile


def composed(event, count, adjacency="add-remove"):
    return PLDAccountant(adjacency).compose(event, count)


@pytest.mark.parametrize(
    ("rate", "z", "count", "delta"),
    [
        pytest.param(2.87e-5, 0.928, 10_000, 6.1e-15, marks=pytest.mark.slow),
        pytest.param(2.93e-5, 0.666, 10_000, 9.0e-9, marks=pytest.mark.slow),
        (4.22e-4, 0.964, 100_000, 2.3e-14),
        (2.2194e-4, 0.73038, 1_000_000, 3.16e-13),
        (0.01, 1.0, 1000, 1e-5),
        (0.01, 4.0, 10_000, 1e-12),
        (0.2, 8.0, 300, 1e-6),
    ],
)
def test_delta_of_epsilon_comes_back(rate, z, count, delta):
    """Also with heavy tails, where the losses that matter are hard to find from epsilon."""
    plan = composed(PoissonSampledEvent(rate, GaussianEvent(z)), count)
    epsilon = plan.epsilon(delta)
    at_epsilon = plan.delta(epsilon)
    assert at_epsilon <= 1.02 * delta
    # Bounds need not fall where the truth does, but they stay close to it.
    assert plan.delta(1.2 * epsilon) <= 2.0 * at_epsilon


@pytest.mark.parametrize("count", [255, 256, 257, 281, 353, 521, 1009, 65_537])
@pytest.mark.parametrize("mu", [0.5, 3.0])
def test_long_repetitions_are_not_rounded_up(count, mu):
    """A sampling rate of nearly one is nearly exactly Gaussian, at any number of steps."""
    almost = PoissonSampledEvent(1.0 - 2.0**-50, GaussianEvent(math.sqrt(count) / mu))
    for delta in (1e-12, 1e-5, 0.01):
        exact = gaussian_profile.epsilon(mu, delta)
        bound = composed(almost, count).epsilon(delta)
        assert exact * (1 - 1e-9) <= bound <= exact * (1 + 5e-4)


def test_splitting_a_repetition_changes_little():
    event = UniformSampledEvent(10, 1000, GaussianEvent(2.0))
    whole = composed(event, 1000, "replace-one").epsilon(1e-6)
    parts = composed(RepeatedEvent(event, 300), 1, "replace-one").compose(event, 700)
    assert parts.epsilon(1e-6) == pytest.approx(whole, rel=1e-9)


def test_failures_add_up_beyond_every_epsilon():
    plan = PLDAccountant().compose(ApproxDPEvent(1.0, 1e-17), 10).compose(GaussianEvent(1.0))
    assert 1e-16 * (1 - 1e-12) <= plan.delta(math.inf) <= 1.001e-16
    assert PLDAccountant().compose(ApproxDPEvent(0.1, 1.0)).delta(math.inf) == 1.0
    assert PLDAccountant().compose(GaussianEvent(1.0)).delta(math.inf) == 0.0


@pytest.mark.parametrize("z", [1e-200, 1e-308, 1e-160])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_next_to_no_noise_shows_who_is_sampled(z, adjacency):
    plan = composed(PoissonSampledEvent(0.001, GaussianEvent(z)), 3, adjacency)
    exact = -math.expm1(3 * math.log1p(-0.001))
    assert exact <= plan.delta(5.0) <= exact * (1 + 1e-6)
    assert plan.epsilon(1e-5) == math.inf


@pytest.mark.parametrize("count", [10**16, 10**18])
def test_astronomic_counts_have_a_bound(count):
    plan = composed(PoissonSampledEvent(0.5, GaussianEvent(1e9)), count)
    assert plan.epsilon(1e-6) >= 0.0
