"""Rare sampling with little noise: bounds with the largest losses set apart, against oracles."""

import math

import numpy as np
import pytest
from exact_profiles import LongComposition
from recursive_profiles import Recursion, two_releases

from skdp.accounting import (
    GaussianEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    UniformSampledEvent,
)
from skdp.accounting.pld.pairs.gaussian import gaussian_pair
from skdp.accounting.pld.pairs.laplace import laplace_pair
from skdp.accounting.pld.pairs.randomised_response import RandomisedResponsePair
from skdp.accounting.pld.parted_plans import PartedPlan
from skdp.accounting.pld.rare_bounds import rare_delta, rare_epsilon
from skdp.accounting.pld.rare_losses import RareLosses, ReversedProfile

KINDS = ("remove", "poisson-replace-one", "uniform")
SLIP = 5e-5  # relative, of the recursion
TINY = 1e-10  # of two releases in thirty digits, against rounding of parameters
ROWS = 10**7


def pair(kind, rate, mu):
    return gaussian_pair(kind + "-replace-one" if kind == "uniform" else kind, rate, mu)


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
        lower, upper = plan.delta(epsilon, rtol=rtol)
        assert lower * (1 - TINY) <= truth <= upper * (1 + TINY)
        assert upper - lower <= rtol * upper
        lower, upper = plan.epsilon(float(truth), rtol=rtol)
        assert lower * (1 - 1e-9) <= epsilon <= upper * (1 + 1e-9)
        assert upper - lower <= rtol * upper


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
        assert upper - lower <= 1e-3 * upper
        at_upper, at_lower = Recursion(kind, rate, mu).profile(count, [upper, lower])
        assert at_upper <= delta * (1 + SLIP) and at_lower >= delta * (1 - SLIP)
        bounds = plan.delta(upper)
        assert bounds.lower * (1 - SLIP) <= at_upper <= bounds.upper * (1 + SLIP)
        assert bounds.upper - bounds.lower <= 1e-3 * bounds.upper


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_forty_releases_one_after_the_other(kind):
    plan, rate = plan_of(kind, 5e-6, 1.7, 40)
    lower, upper = plan.epsilon(1e-11)
    assert upper - lower <= 1e-3 * upper
    at_upper, at_lower = Recursion(kind, rate, 1.7).profile(40, [upper, lower])
    assert at_upper <= 1e-11 * (1 + SLIP) and at_lower >= 1e-11 * (1 - SLIP)


@pytest.mark.parametrize(
    ("kind", "rate", "mu", "count", "epsilon"),
    [
        ("remove", 0.004, 0.91, 15_000, 2.3),
        ("remove", 0.01, 0.5, 300, 0.2),
        ("poisson-replace-one", 0.01, 0.5, 2000, 1.0),
        ("uniform", 0.01, 0.5, 5000, 1.0),
    ],
)
def test_many_releases_against_the_contour_integral(kind, rate, mu, count, epsilon):
    """Where the other engine and its oracle do as well, this one is no less right."""
    truth = LongComposition([(kind, rate, mu, count)]).delta(epsilon)
    for rtol in (1e-3, 1e-5):
        lower, upper = rare_delta([(pair(kind, rate, mu), count)], 0.0, epsilon, rtol)
        assert lower * (1 - 1e-8) <= truth <= upper * (1 + 1e-8)
        assert upper - lower <= rtol * upper
    below, above = rare_epsilon([(pair(kind, rate, mu), count)], 0.0, truth, 1e-4, (0.0, math.inf))
    assert below * (1 - 1e-8) <= epsilon <= above * (1 + 1e-8)
    assert above - below <= 1e-4 * above


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [5, 3000])
def test_grid_and_inversion_agree(kind, count):
    plan = PartedPlan([(pair(kind, 2e-5, 1.2), count)], 0.0)
    epsilon = 0.05
    rare = plan._part(epsilon, 1e-4)
    on_grid, inverted = (
        method(rare, epsilon, 3e-4).bounds(epsilon) for method in (plan._gridded, plan._inverted)
    )
    assert on_grid[0] <= inverted[1] and inverted[0] <= on_grid[1]
    assert inverted[1] - inverted[0] <= 3e-4 * inverted[1]
    if count == 5:
        assert on_grid[1] - on_grid[0] <= 3e-4 * on_grid[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_doubt_is_needed_and_enough(kind):
    """With a level just above epsilon the others may well bring the sum down again."""
    rate, mu, epsilon = 0.02, 2.0, 0.01
    exact = Recursion(kind, rate, mu)
    truth = exact.profile(3, epsilon)
    pairs = [(pair(kind, rate, mu), 3)]
    short = 0
    for factor in (1.05, 2.5, 100.0):
        plan = PartedPlan(pairs, 0.0)
        rare = RareLosses(pairs, 0.0, factor * epsilon)
        for found in (plan._gridded(rare, epsilon, 1e-3), plan._inverted(rare, epsilon, 1e-3)):
            if found is None:
                continue
            lower, upper = found.bounds(epsilon)
            assert lower * (1 - SLIP) <= truth <= upper * (1 + SLIP)
            short += found._without_doubt(epsilon)[1] < truth * (1 - 10 * SLIP)
    assert short > 0


def test_reversed_profile_bounds_the_other_direction():
    pairs = [(gaussian_pair("remove", 0.01, 1.0), 50)]
    reverse = ReversedProfile(pairs, 0.0)
    assert not reverse.symmetric
    other = LongComposition([("add", 0.01, 1.0, 50)])
    for margin in (0.05, 0.1, 0.2):
        assert other.delta(margin) <= reverse.profile(margin) <= 1.0
    assert reverse.profile(0.3) < 1e-3
    assert reverse.profile(-50 * math.log1p(-0.01) * 1.001) == 0.0


def test_other_releases_besides():
    """Randomised response adds or takes away its loss, so the truth is a mean of two."""
    rate, mu, stated, delta = 3e-6, 1.6, 0.004, 1e-12
    plan, _ = plan_of("poisson-replace-one", rate, mu, 3)
    lower, upper = plan.compose(PureDPEvent(stated)).epsilon(delta)
    assert upper - lower <= 1e-3 * upper
    exact = Recursion("poisson-replace-one", rate, mu)
    up = 1.0 / (1.0 + math.exp(-stated))

    less = exact.profile(3, [upper - stated, lower - stated])
    more = exact.profile(3, [upper + stated, lower + stated])
    at_upper, at_lower = up * less + (1.0 - up) * more
    assert at_upper <= delta * (1 + SLIP) and at_lower >= delta * (1 - SLIP)


def test_gaussian_releases_and_two_kinds_of_sampling_besides():
    """More releases never lower either end below what fewer of them prove."""
    few = PLDAccountant().compose(PoissonSampledEvent(2e-6, GaussianEvent(0.6)), 4)
    one = few.epsilon(1e-12)
    more = few.compose(PoissonSampledEvent(1e-5, GaussianEvent(0.9)), 3).epsilon(1e-12)
    most = few.compose(GaussianEvent(300.0)).epsilon(1e-12)
    assert one.lower <= more.upper and more.lower <= most.upper
    for value in (one, more, most):
        assert 0.0 < value.upper - value.lower <= 1e-3 * value.upper


def test_where_the_method_does_not_apply():
    bounded = [(laplace_pair("remove", 1e-4, 2.0), 5), (RandomisedResponsePair(0.1), 2)]
    assert rare_delta(bounded, 0.0, 0.01, 1e-3) == (0.0, 1.0)
    assert rare_epsilon(bounded, 0.0, 1e-6, 1e-3, (0.1, 2.0)) == (0.1, 2.0)
    assert rare_delta([(pair("remove", 1e-4, 1.0), 5)], 0.0, 700.0, 1e-3) == (0.0, 1.0)
    assert rare_delta([(pair("remove", 1e-4, 1e3), 5)], 0.0, 1.0, 1e-3) == (0.0, 1.0)
