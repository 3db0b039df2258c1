"""The Bayesian accountant: its arithmetic, its labels, and what it keeps to itself."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from skdp.accounting import (
    ApproxDPEvent,
    BayesianAccountant,
    ComposedEvent,
    GaussianEvent,
    GenericAccountant,
    MomentsAccountant,
    PLDAccountant,
    PoissonSampledEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.exceptions import UnsupportedEventError

STEP = PoissonSampledEvent(0.02, GaussianEvent(1.5))


def distances(seed, size=40):
    return np.random.default_rng(seed).chisquare(3, size=size) / 3.0


def by_hand(observed, delta, gamma, rate, sigma, moments):
    """Section by section as published, with Student's quantile from another library."""
    steps = len(observed)
    best = math.inf
    for moment in moments:
        total = 0.0
        for squared in observed:
            d = squared / (2 * sigma**2)
            y = np.exp(rate**2 * moment * (moment + 1) * d)
            m = len(y)
            quantile = stats.t.isf(gamma / steps, m - 1)
            upper = y.mean() + y.std(ddof=1) * quantile / math.sqrt(m - 1)
            total += math.log(max(upper, 1.0))
        best = min(best, (total + math.log(1 / (delta - gamma))) / moment)
    return best


def test_arithmetic():
    observed = [distances(seed) for seed in range(6)]
    accountant = BayesianAccountant(gamma=2e-6)
    for squared in observed:
        accountant.observe(STEP, squared)
    wanted = by_hand(observed, 1e-5, 2e-6, 0.02, 1.5, range(1, 33))
    assert accountant.epsilon(1e-5) == pytest.approx(wanted, rel=1e-9)
    assert accountant.delta(accountant.epsilon(1e-5)) == pytest.approx(1e-5, rel=1e-6)
    assert accountant.epsilon(2e-6) == math.inf
    assert accountant.delta(math.inf) == pytest.approx(2e-6)


def test_equal_pairs_leave_the_moments_of_the_mixture():
    """Pairs that are all at the same distance have no spread: the sound sum is what remains."""
    exact = BayesianAccountant(subsampling="exact", gamma=1e-6)
    exact.observe(STEP, np.ones(10), count=50)
    worst = MomentsAccountant().compose(STEP, 50)
    assert exact.epsilon(1e-5 + 1e-6) == pytest.approx(worst.epsilon(1e-5), rel=1e-7)
    printed = BayesianAccountant(gamma=1e-6).observe(STEP, np.ones(10), count=50)
    assert printed.epsilon(1e-5) < exact.epsilon(1e-5)


def test_cost_grows_with_distance_count_and_doubt():
    def value(scale=1.0, count=10, gamma=1e-6, size=40):
        accountant = BayesianAccountant(gamma=gamma)
        return accountant.observe(STEP, scale * distances(1, size), count=count).epsilon(1e-5)

    assert value(0.5) < value(1.0) < value(2.0)
    assert value(count=5) < value(count=10) < value(count=1000)
    assert value(gamma=1e-6) < value(gamma=1e-9)
    assert value(size=400) < value(size=5)


def test_an_outlier_is_not_protected():
    """Twenty steps on a tight cluster look free; the record outside of it is exposed."""
    event = GaussianEvent(1.0)
    estimate = BayesianAccountant().observe(event, np.full(100, 1e-4), count=20).epsilon(1e-5)
    truth = PLDAccountant("replace-one").compose(event, 20).epsilon(1e-5)
    assert estimate < 0.1 * truth


def test_results_say_what_they_are():
    accountant = BayesianAccountant().compose(STEP, 3)
    for value in (accountant.epsilon(1e-5), accountant.delta(1.0)):
        assert not value.is_differential_privacy
        assert not value.is_upper_bound
        assert not value.is_guarantee
        assert "no differential privacy" in repr(value)


def test_composed_releases_cost_the_worst_case():
    moments = np.arange(1.0, 65.0)
    composed = BayesianAccountant(moments=moments, subsampling="exact").compose(STEP, 500)
    sound = GenericAccountant().compose(STEP, 500)
    assert composed.epsilon(1e-5) == pytest.approx(sound.epsilon(1e-5), rel=0.01)
    assert composed.epsilon(1e-5) >= sound.epsilon(1e-5)
    both = composed.observe(STEP, distances(0), count=5)
    assert both.epsilon(1e-5) > sound.epsilon(1e-5)
    failing = BayesianAccountant().compose(ApproxDPEvent(0.1, 1e-6)).observe(STEP, distances(0))
    assert failing.delta(math.inf) == pytest.approx(2e-6)


def test_history_and_repr_hold_nothing_seen():
    accountant = BayesianAccountant().compose(GaussianEvent(5.0))
    accountant.observe(STEP, np.full(7, 0.123456789), count=4)
    assert accountant.event == ComposedEvent((GaussianEvent(5.0), RepeatedEvent(STEP, 4)))
    assert "0.1234" not in repr(accountant)


def test_round_trip_keeps_observations():
    accountant = BayesianAccountant("replace-one", subsampling="exact", moments=(1, 4), gamma=1e-7)
    accountant.compose(GaussianEvent(9.0)).observe(STEP, distances(3), count=2)
    accountant.observe(UniformSampledEvent(1, 9, GaussianEvent(2.0)), distances(4))
    again = BayesianAccountant.from_dict(json.loads(json.dumps(accountant.to_dict())))
    assert again.epsilon(1e-5) == accountant.epsilon(1e-5)
    assert (again.moments, again.gamma, again.event) == ((1.0, 4.0), 1e-7, accountant.event)


def test_whole_batches_need_no_amplification():
    for subsampling in ("printed", "exact"):
        bare = BayesianAccountant(subsampling=subsampling).observe(GaussianEvent(3.0), distances(2))
        full = BayesianAccountant(subsampling=subsampling).observe(
            PoissonSampledEvent(1.0, GaussianEvent(3.0)), distances(2)
        )
        assert bare.epsilon(1e-5) == full.epsilon(1e-5)
    nothing = PoissonSampledEvent(0.0, GaussianEvent(0.1))
    empty = BayesianAccountant().observe(nothing, distances(2))
    assert empty.epsilon(1e-5) == pytest.approx(-math.log(9e-6) / 32, rel=1e-9)


@pytest.mark.parametrize("huge", [1e3, 1e200, 1e308])
def test_huge_distances_cost_much_and_break_nothing(huge):
    accountant = BayesianAccountant().observe(GaussianEvent(0.1), [0.0, huge])
    assert accountant.epsilon(1e-5) > 1e4
    assert accountant.delta(1.0) == 1.0


def test_arguments_are_validated():
    with pytest.raises(ValueError, match="gamma must lie in"):
        BayesianAccountant(gamma=0.0)
    with pytest.raises(ValueError, match="moments must be finite"):
        BayesianAccountant(moments=())
    with pytest.raises(ValueError, match="needs integer moments"):
        BayesianAccountant(subsampling="exact", moments=(1.5,))
    accountant = BayesianAccountant()
    for bad in ([0.12345], [[0.12345, 1.0]], [0.12345, -1.0], [0.12345, math.nan]):
        with pytest.raises(ValueError, match="squared_distances") as caught:
            accountant.observe(STEP, bad)
        assert "0.12345" not in str(caught.value)
    with pytest.raises(ValueError, match="count"):
        accountant.observe(STEP, [1.0, 2.0], count=0)
    with pytest.raises(UnsupportedEventError, match="Gaussian release"):
        accountant.observe(ApproxDPEvent(1.0, 0.0), [1.0, 2.0])
    with pytest.raises(UnsupportedEventError, match="add-remove"):
        accountant.observe(UniformSampledEvent(1, 9, GaussianEvent(2.0)), [1.0, 2.0])
    assert accountant.event == ComposedEvent(())
