"""Optimal composition against the theorem in exact arithmetic, and against other accountants."""

import itertools
import math

import mpmath as mp
import pytest

from skdp.accounting import (
    AdvancedCompositionAccountant,
    ApproxDPEvent,
    BasicCompositionAccountant,
    GaussianEvent,
    GDPAccountant,
    LaplaceEvent,
    OptimalCompositionAccountant,
    PLDAccountant,
    PureDPEvent,
)
from skdp.accounting.numerics.randomised_response_profile import RandomisedResponseProfile


def exact_delta(epsilon, count, threshold):
    with mp.workdps(60):
        e, x = mp.mpf(epsilon), mp.mpf(threshold)
        terms = (
            mp.binomial(count, lies)
            * (mp.exp((count - lies) * e) - mp.exp(x + lies * e))
            / (1 + mp.exp(e)) ** count
            for lies in range(count + 1)
            if (count - 2 * lies) * e > x
        )
        return min(mp.mpf(1), mp.fsum(terms))


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
def test_profile_holds_the_exact_sum(epsilon, count):
    profile = RandomisedResponseProfile(epsilon, count)
    for share in (0.0, 0.05, 0.3, 0.7, 0.999):
        threshold = share * count * epsilon
        lower, upper = profile.delta(threshold)
        exact = exact_delta(epsilon, count, threshold)
        assert lower <= exact <= upper
        assert upper - lower <= 1e-9 * exact + 1e-15 * count * epsilon + 1e-299
    assert profile.delta(count * epsilon) == (0.0, 0.0)


@pytest.mark.parametrize("count", [1, 5, 20])
def test_theorem_as_printed(count):
    """Kairouz, Oh and Viswanath: (k - 2i) eps at 1 - (1 - delta)^k (1 - delta_i)."""
    epsilon, delta = 0.3, 1e-4
    plan = OptimalCompositionAccountant().compose(ApproxDPEvent(epsilon, delta), count)
    for i in range(count // 2 + 1):
        with mp.workdps(40):
            e = mp.mpf(epsilon)
            d_i = (
                mp.fsum(
                    mp.binomial(count, k)
                    * (mp.exp((count - k) * e) - mp.exp((count - 2 * i + k) * e))
                    for k in range(i)
                )
                / (1 + mp.exp(e)) ** count
            )
            wanted = 1 - (1 - mp.mpf(delta)) ** count * (1 - d_i)
        lower, upper = plan.delta((count - 2 * i) * epsilon)
        assert upper >= wanted * (1 - mp.mpf("1e-14"))
        assert lower <= wanted * (1 + mp.mpf("1e-14"))
        assert upper == pytest.approx(float(wanted), rel=1e-10)
        if i:
            back = plan.epsilon(float(wanted) * (1 + 1e-9))
            assert back == pytest.approx((count - 2 * i) * epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "count"), [(0.01, 10_000), (1e-3, 1_000_000), (0.5, 400), (3.0, 50), (12.0, 7)]
)
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_interval_is_narrow_and_consistent(epsilon, count, delta):
    profile = RandomisedResponseProfile(epsilon, count)
    lower, upper = profile.epsilon(delta)
    assert 0 <= lower <= upper <= count * epsilon
    assert upper - lower <= 1e-6 * upper
    assert profile.delta(upper)[1] <= delta
    assert lower == 0.0 or profile.delta(lower)[0] >= delta


def test_many_small_steps_tend_to_a_gaussian():
    """Randomised response with a tiny epsilon, often: mu = eps sqrt(k) (central limit)."""
    plan = OptimalCompositionAccountant().compose(PureDPEvent(1e-4), 10**8)
    lower, upper = plan.epsilon(1e-5)
    assert upper == pytest.approx(4.377178, rel=1e-5)
    assert upper - lower <= 1e-5 * upper


def test_order_of_the_accountants():
    for count, delta in itertools.product((1, 7, 300), (1e-9, 1e-4)):
        values = [
            cls().compose(ApproxDPEvent(0.2, 1e-13), count).epsilon(delta)
            for cls in (
                OptimalCompositionAccountant,
                AdvancedCompositionAccountant,
                BasicCompositionAccountant,
            )
        ]
        assert values == sorted(values)
        lower, upper = PLDAccountant().compose(ApproxDPEvent(0.2, 1e-13), count).epsilon(delta)
        assert values[0].lower <= upper * (1 + 1e-9)
        assert values[0].upper >= lower * (1 - 1e-9)
        assert upper == pytest.approx(values[0], rel=1e-3)


def test_different_guarantees_are_bracketed():
    plan = OptimalCompositionAccountant().compose(ApproxDPEvent(0.1, 1e-9), 30)
    plan.compose(PureDPEvent(0.3), 5)
    lower, upper = plan.epsilon(1e-5)
    truth = PLDAccountant().compose(plan.event).epsilon(1e-5)
    assert lower < truth < upper
    assert plan.delta(1.0).lower < PLDAccountant().compose(plan.event).delta(1.0)
    # Whoever knows of the five only cannot do better on the whole.
    assert lower >= OptimalCompositionAccountant().compose(PureDPEvent(0.3), 5).epsilon(1e-5).lower


def test_known_noise_is_not_taken_for_the_worst():
    """Laplace noise does better than its guarantee: the lower bound must not count it."""
    plan = OptimalCompositionAccountant().compose(LaplaceEvent(10.0), 100)
    truth = PLDAccountant().compose(plan.event).epsilon(1e-5)
    lower, upper = plan.epsilon(1e-5)
    assert lower == 0.0
    assert upper > truth
    assert plan.delta(1.0).lower == 0.0
    more = plan.compose(PureDPEvent(0.5), 4)
    assert more.epsilon(1e-5).lower == pytest.approx(
        OptimalCompositionAccountant().compose(PureDPEvent(0.5), 4).epsilon(1e-5).lower
    )


def test_failures_compose_as_a_product():
    plan = OptimalCompositionAccountant().compose(ApproxDPEvent(0.1, 1e-4), 10)
    failure = 1 - (1 - 1e-4) ** 10
    assert plan.epsilon(0.999 * failure) == math.inf
    assert plan.epsilon(0.999 * failure).lower == math.inf
    assert math.isfinite(plan.epsilon(failure * 1.0001))
    assert plan.delta(math.inf) == pytest.approx(failure, rel=1e-12)
    assert OptimalCompositionAccountant().compose(ApproxDPEvent(0.1, 1.0)).delta(5.0) == 1.0


@pytest.mark.parametrize("split", [0.5, "best"])
def test_gaussian_steps_are_bounded(split):
    for multiplier, count in ((1.0, 1), (5.0, 10), (100.0, 2000)):
        for delta in (1e-9, 1e-3):
            plan = OptimalCompositionAccountant(split=split).compose(
                GaussianEvent(multiplier), count
            )
            exact = GDPAccountant().compose(GaussianEvent(multiplier), count).epsilon(delta)
            lower, upper = plan.epsilon(delta)
            assert lower == 0.0 and upper >= exact
            assert plan.delta(upper) == pytest.approx(delta, rel=1e-2)


def test_where_terms_are_too_many_moments_stand_in():
    with pytest.raises(OverflowError, match="too many"):
        RandomisedResponseProfile(1e-7, 10**13)
    plan = OptimalCompositionAccountant().compose(PureDPEvent(1e-7), 10**13)
    lower, upper = plan.epsilon(1e-5)
    mu = 1e-7 * math.sqrt(10**13)
    exact = GDPAccountant().compose(GaussianEvent(1 / mu)).epsilon(1e-5)
    assert lower <= exact <= upper <= 1.1 * exact
    assert plan.delta(upper) == pytest.approx(1e-5, rel=0.01)


def test_parameters_are_validated_and_survive():
    with pytest.raises(ValueError, match="split must be"):
        OptimalCompositionAccountant(split=2.0)
    plan = OptimalCompositionAccountant(split=0.25).compose(GaussianEvent(3.0))
    assert OptimalCompositionAccountant.from_dict(plan.to_dict()).split == 0.25
