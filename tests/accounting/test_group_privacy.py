"""Guarantees for several records at once."""

import math

import pytest

from skdp.accounting import (
    ApproxDPEvent,
    GaussianEvent,
    GDPAccountant,
    GenericAccountant,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
    group_delta,
    group_epsilon,
    group_privacy,
)


def test_generic_formula():
    assert group_privacy(0.5, 1e-6, 1) == (0.5, pytest.approx(1e-6, rel=1e-14))
    # Removing and adding: (2 eps, (1 + e^eps) delta).
    epsilon, delta = group_privacy(0.5, 1e-6, 2)
    assert epsilon == 1.0 and delta == pytest.approx((1 + math.exp(0.5)) * 1e-6, rel=1e-14)
    assert group_privacy(0.5, 1e-6, 4)[1] == pytest.approx(
        1e-6 * sum(math.exp(0.5 * k) for k in range(4)), rel=1e-14
    )
    assert group_privacy(1e-12, 1e-6, 10)[1] == pytest.approx(1e-5, rel=1e-9)
    assert group_privacy(3.0, 0.0, 100) == (300.0, 0.0)
    assert group_privacy(300.0, 1e-6, 100) == (30_000.0, 1.0)
    assert group_privacy(1.0, 0.5, 3)[1] == 1.0


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 20.0])
def test_gaussian_groups_are_exact(size, epsilon):
    single = GDPAccountant().compose(GaussianEvent(3.0), 2)
    whole = GDPAccountant().compose(GaussianEvent(3.0 / size), 2)
    assert group_delta(single, epsilon, size) == pytest.approx(whole.delta(epsilon), rel=1e-8)
    if size > 1:
        wanted = whole.epsilon(1e-5)
        assert wanted <= group_epsilon(single, 1e-5, size) * (1 + 1e-9)
        assert group_epsilon(single, 1e-5, size) <= wanted * (1 + 3e-6)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_chain_is_tight_where_the_profile_is_gaussian(size):
    """Through the profile alone: exact divergences are used at every link."""
    single = PLDAccountant().compose(GaussianEvent(3.0), 2)
    whole = GDPAccountant().compose(GaussianEvent(3.0 / size), 2)
    for epsilon in (0.5, 4.0):
        value = group_delta(single, epsilon, size)
        assert value >= whole.delta(epsilon) * (1 - 1e-9)
        assert value <= whole.delta(epsilon) * (1 + 1e-3)
        assert value < 0.96 * group_privacy(epsilon / size, single.delta(epsilon / size), size)[1]


@pytest.mark.parametrize(
    ("rate", "multiplier", "count", "direct"),
    [(0.01, 1.0, 1000, 2.8434416), (0.1, 4.0, 200, 2.9366053)],
)
def test_two_records_bound_a_replacement(rate, multiplier, count, direct):
    """No less than the direct accounting of replace-one, whose exact value is known."""
    plan = RDPAccountant().compose(PoissonSampledEvent(rate, GaussianEvent(multiplier)), count)
    replaced = RDPAccountant("replace-one").compose(plan.event)
    assert group_epsilon(plan, 1e-5, 2) >= replaced.epsilon(1e-5) > direct


def test_two_records_with_the_tightest_profile():
    """Between the direct accounting of replace-one and the generic formula, 3.16."""
    plan = PLDAccountant().compose(PoissonSampledEvent(0.1, GaussianEvent(4.0)), 200)
    assert 2.9366053 <= group_epsilon(plan, 1e-5, 2) <= 3.12


def test_pure_guarantees_scale():
    plan = PLDAccountant().compose(PureDPEvent(0.5))
    assert group_delta(plan, 1.5, 3) == 0.0
    assert group_epsilon(plan, 0.0, 3) == pytest.approx(1.5, rel=1e-6)
    assert group_epsilon(plan, 1e-9, 3) <= 1.5 * (1 + 1e-6)
    failing = PLDAccountant().compose(ApproxDPEvent(0.1, 1e-3))
    assert group_epsilon(failing, 1e-4, 2) == math.inf
    assert group_delta(failing, math.inf, 2) >= 1e-3


def test_flags_and_lower_bounds_are_passed_on():
    step = PoissonSampledEvent(0.01, GaussianEvent(1.0))
    printed = GenericAccountant(subsampling="printed").compose(step)
    assert not group_delta(printed, 1.0, 2).is_guarantee
    assert not group_epsilon(printed, 1e-5, 2).is_guarantee
    sound = PLDAccountant().compose(step)
    assert group_epsilon(sound, 1e-5, 2).is_guarantee
    assert group_epsilon(sound, 1e-5, 2).lower >= sound.epsilon(1e-5).lower


def test_arguments_are_validated():
    with pytest.raises(ValueError, match="size must be"):
        group_privacy(1.0, 0.1, 0)
    with pytest.raises(ValueError, match="size must be"):
        group_delta(GDPAccountant(), 1.0, 1.5)
    with pytest.raises(ValueError, match="epsilon must be"):
        group_privacy(-1.0, 0.1, 2)
    with pytest.raises(ValueError, match="delta must lie"):
        group_privacy(1.0, 1.1, 2)
