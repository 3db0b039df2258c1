"""Rare sampling with little noise: bounds hold where no width is promised, against oracles."""

import math

import numpy as np
import pytest
from recursive_profiles import Recursion, two_releases

from skdp.accounting import (
    GaussianEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    UniformSampledEvent,
)

KINDS = ("remove", "poisson-replace-one", "uniform")
SLIP = 5e-5  # relative, of the recursion
TINY = 1e-10  # of two releases in thirty digits, against rounding of parameters
ROWS = 10**7


def plan_of(kind, rate, mu, count):
    """Return an accountant, and the exact rate."""
    if kind == "uniform":
        batch = max(1, round(rate * ROWS))
        event, rate = UniformSampledEvent(batch, ROWS, GaussianEvent(2.0 / mu)), batch / ROWS
    else:
        event = PoissonSampledEvent(rate, GaussianEvent(1.0 / mu))
    adjacency = "add-remove" if kind == "remove" else "replace-one"
    return PLDAccountant(adjacency).compose(event, count), rate


TWO = [(1e-5, 1.3, 0.02), (2e-6, 2.0, 0.01), (3e-4, 4.0, 3.0), (4e-7, 0.7, 1e-5)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rate", "mu", "epsilon"), TWO)
def test_two_releases_in_thirty_digits(kind, rate, mu, epsilon):
    plan, rate = plan_of(kind, rate, mu, 2)
    truth = two_releases(kind, rate, mu, epsilon)
    assert Recursion(kind, rate, mu).profile(2, epsilon) == pytest.approx(float(truth), rel=1e-7)
    for rtol in (1e-3, 1e-5):
        # Deltas of 1e-9 and less, at rates above 1e-6: see the page on certified intervals.
        promised = rtol if mu == 4.0 or rate < 1e-6 else 0.5
        lower, upper = plan.delta(epsilon, rtol=rtol)
        assert lower * (1 - TINY) <= truth <= upper * (1 + TINY)
        assert upper - lower <= max(promised, 1e-4) * upper
        lower, upper = plan.epsilon(float(truth), rtol=rtol)
        assert lower * (1 - 1e-9) <= epsilon <= upper * (1 + 1e-9)
        assert upper - lower <= max(promised, 1e-4) * upper


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_few_releases_one_after_the_other(kind):
    generator = np.random.default_rng(KINDS.index(kind))
    for _ in range(2):
        rate = math.exp(generator.uniform(math.log(1e-7), math.log(1e-3)))
        mu = generator.uniform(0.6, 4.0)
        count = int(generator.integers(3, 9))
        delta = 10.0 ** -generator.uniform(4.0, 15.0) * min(1.0, 100 * rate * count)
        plan, rate = plan_of(kind, rate, mu, count)
        lower, upper = plan.epsilon(delta)
        assert upper - lower <= 3e-3 * upper
        at_upper, at_lower = Recursion(kind, rate, mu).profile(count, [upper, lower])
        assert at_upper <= delta * (1 + SLIP) and at_lower >= delta * (1 - SLIP)
        bounds = plan.delta(upper)
        assert bounds.lower * (1 - SLIP) <= at_upper <= bounds.upper * (1 + SLIP)
        if bounds.upper > 1e-11:
            assert bounds.upper - bounds.lower <= 1e-3 * bounds.upper


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_forty_releases_one_after_the_other(kind):
    plan, rate = plan_of(kind, 5e-6, 1.7, 40)
    lower, upper = plan.epsilon(1e-11)
    at_upper, at_lower = Recursion(kind, rate, 1.7).profile(40, [upper, lower])
    assert at_upper <= 1e-11 * (1 + SLIP) and at_lower >= 1e-11 * (1 - SLIP)


@pytest.mark.slow
def test_other_releases_besides():
    """Randomised response adds or takes away its loss, so the truth is a mean of two."""
    rate, mu, stated, delta = 3e-6, 1.6, 0.004, 1e-12
    plan, _ = plan_of("poisson-replace-one", rate, mu, 3)
    lower, upper = plan.compose(PureDPEvent(stated)).epsilon(delta)
    assert upper - lower <= 0.5 * upper
    exact = Recursion("poisson-replace-one", rate, mu)
    up = 1.0 / (1.0 + math.exp(-stated))

    less = exact.profile(3, [upper - stated, lower - stated])
    more = exact.profile(3, [upper + stated, lower + stated])
    at_upper, at_lower = up * less + (1.0 - up) * more
    assert at_upper <= delta * (1 + SLIP) and at_lower >= delta * (1 - SLIP)


@pytest.mark.slow
def test_gaussian_releases_and_two_kinds_of_sampling_besides():
    """More releases never lower either end below what fewer of them prove."""
    few = PLDAccountant().compose(PoissonSampledEvent(2e-6, GaussianEvent(0.6)), 4)
    one = few.epsilon(1e-12)
    more = few.compose(PoissonSampledEvent(1e-5, GaussianEvent(0.9)), 3).epsilon(1e-12)
    most = few.compose(GaussianEvent(300.0)).epsilon(1e-12)
    assert one.lower <= more.upper and more.lower <= most.upper
    for value in (one, more, most):
        assert 0.0 < value.lower < value.upper


def test_few_rare_releases_in_a_moment():
    """A short case for every day; the truth is the recursion's, which takes longer."""
    plan, _ = plan_of("remove", 3e-4, 4.0, 2)
    lower, upper = plan.delta(3.0)
    assert lower <= 9.7235e-5 <= upper * (1 + 1e-4)
    assert upper - lower <= 1e-3 * upper
