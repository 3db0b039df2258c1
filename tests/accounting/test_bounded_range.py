"""Choices of bounded range: their profile is attained, and compositions are never undercut."""

import math

import numpy as np
import pytest
from scipy import stats

from skdp.accounting import (
    BoundedRangeEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
)
from skdp.accounting.analysis import analysis_of
from skdp.budget import BudgetAccountant


def two_outcomes(epsilon, top):
    """Chances of a release with losses `top` and `top - epsilon`, of the first, on both sides."""
    other = math.expm1(epsilon - top) / math.expm1(epsilon)
    return math.exp(top) * other, other


def composed_delta(epsilon, top, count, at):
    """Exact delta of independent releases of two outcomes."""
    one, other = two_outcomes(epsilon, top)
    firsts = np.arange(count + 1)
    here, there = (stats.binom.pmf(firsts, count, chance) for chance in (one, other))
    return float(np.maximum(here - math.exp(at) * there, 0.0).sum())


@pytest.mark.parametrize("epsilon", [1e-3, 0.4, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_release_of_two_outcomes_attains_each_point(epsilon, share):
    at = share * epsilon
    profile = BoundedRangeEvent(epsilon).profile_bound(at, "add-remove")
    tops = np.linspace(0.0, epsilon, 201)
    deltas = [composed_delta(epsilon, top, 1, at) for top in tops]
    assert max(deltas) <= profile * (1.0 + 1e-9)
    best = composed_delta(epsilon, 0.5 * (epsilon + at), 1, at)
    assert best == pytest.approx(profile, rel=1e-9)


@pytest.mark.parametrize("accountant", [PLDAccountant, RDPAccountant])
@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (0.5, 20), (1.0, 10)])
def test_compositions_cost_less_than_pure_privacy_and_no_less_than_the_truth(
    accountant, epsilon, count
):
    bounded = accountant().compose(BoundedRangeEvent(epsilon), count=count)
    pure = accountant().compose(PureDPEvent(epsilon), count=count)
    for at in (0.2 * epsilon, epsilon, 0.3 * count * epsilon):
        worst = max(
            composed_delta(epsilon, top, count, at) for top in np.linspace(0.01, 0.99, 50) * epsilon
        )
        assert worst <= bounded.delta(at) * (1.0 + 1e-9)
    assert bounded.epsilon(1e-4) < 0.95 * pure.epsilon(1e-4)


def test_divergences_are_never_undercut():
    for epsilon in (1e-200, 1e-4, 0.5, 4.0, 60.0):
        moments = analysis_of(BoundedRangeEvent(epsilon), "add-remove").log_moments()
        for order in (1.1, 2.0, 8.0, 64.0):
            worst = 0.0
            for share in np.linspace(0.02, 0.98, 25):
                other = two_outcomes(epsilon, share * epsilon)[1]
                losses = order * share * epsilon, order * (share - 1.0) * epsilon
                rest = math.log1p(-other) if other < 1.0 else -math.inf
                logs = math.log(other) + losses[0], rest + losses[1]
                worst = max(worst, np.logaddexp(*logs))
            assert worst <= moments.of(order) * (1.0 + 1e-9) + 1e-12
            assert moments.of(order) > 0.0
    assert moments.of(2.0) <= 60.0 * (1.0 + 1e-9)


def test_nothing_costs_nothing_and_samples_cost_less():
    assert PLDAccountant().compose(BoundedRangeEvent(0.0)).epsilon(0.0) == 0.0
    assert BoundedRangeEvent(1e-200).profile_bound(0.0, "add-remove") > 0.0
    whole = PLDAccountant().compose(BoundedRangeEvent(1.0)).delta(0.2)
    sampled = PLDAccountant().compose(PoissonSampledEvent(0.1, BoundedRangeEvent(1.0)))
    # Amplification turns 0.2 into log(1 + 0.1 (e^0.2 - 1)), a little more than 0.0218.
    assert 0.1 * whole <= sampled.delta(0.0218) <= 0.102 * whole
    with pytest.raises(ValueError, match="epsilon"):
        BoundedRangeEvent(-1.0)


def test_budgets_in_zcdp_charge_an_eighth_of_the_square():
    budget = BudgetAccountant(epsilon=3.0, delta=1e-6, composition="zcdp")
    for event, share in ((BoundedRangeEvent(0.2), 8), (PureDPEvent(0.2), 2)):
        cost = budget.reserve(event).cost
        assert float(sum(cost.values())) == pytest.approx(0.04 / share, rel=1e-2)
