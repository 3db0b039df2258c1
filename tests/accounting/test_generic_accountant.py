"""The generic accountant: printed and exact subsampling, best real order, any distribution."""

import math

import mpmath as mp
import numpy as np
import pytest

from skdp.accounting import (
    GaussianEvent,
    GDPAccountant,
    GenericAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
    RenyiEvent,
    UniformSampledEvent,
)
from skdp.accounting.distributions import (
    DiagonalNormal,
    Exponential,
    Gamma,
    Laplace,
    MultivariateNormal,
    Normal,
    Uniform,
)

# q, sigma, T, delta, printed epsilon, certified lower bound on the truth under add-remove
PRINTED = [
    (0.01, 0.5, 1, 1e-5, 0.096171, 3.025308),
    (0.01, 0.5, 10, 1e-5, 0.305485, 4.360099),
    (0.01, 0.5, 100, 1e-5, 0.979705, 6.471166),
    (0.01, 0.7, 100, 1e-5, 0.695708, 2.362336),
    (0.01, 0.8, 1000, 1e-5, 1.974909, 3.091017),
    (0.01, 1, 100, 1e-5, 0.484853, 0.713036),
    (0.01, 1, 1000, 1e-5, 1.567427, 1.778240),
    (0.01, 1, 10000, 1e-5, 5.298526, 5.687724),
    (0.02, 1, 2000, 1e-6, 5.101576, 6.222350),
    (0.01, 1.5, 1000, 1e-5, 1.033840, 0.867565),
    (0.01, 2, 1000, 1e-5, 0.771214, 0.572039),
    (0.01, 4, 10000, 1e-5, 1.230881, 0.446929),
]


def step(rate, multiplier):
    return PoissonSampledEvent(rate, GaussianEvent(multiplier))


@pytest.mark.parametrize(("rate", "sigma", "count", "delta", "wanted", "truth"), PRINTED)
def test_printed_formula_is_reproduced_and_flagged(rate, sigma, count, delta, wanted, truth):
    printed = GenericAccountant(subsampling="printed").compose(step(rate, sigma), count)
    value = printed.epsilon(delta)
    assert value == pytest.approx(wanted, abs=6e-7)
    r = count * rate**2 / (2 * sigma**2)
    assert value == pytest.approx(r + 2 * math.sqrt(r * math.log(1 / delta)), rel=1e-12)
    assert not value.is_upper_bound and value.is_differential_privacy and not value.is_guarantee
    assert not printed.delta(1.0).is_guarantee
    if sigma <= 1:
        assert value < truth
    exact = GenericAccountant().compose(step(rate, sigma), count).epsilon(delta)
    assert exact.is_guarantee and exact >= truth


@pytest.mark.parametrize(
    ("sigma", "wanted", "true_delta"),
    [
        (0.5, 0.0961705182438, 0.00266490112636),
        (0.7, 0.0686524109904, 0.00107611414467),
        (1.0, 0.0480352591219, 0.000333453709876),
    ],
)
def test_printed_epsilon_of_one_step_has_a_hundred_times_the_delta(sigma, wanted, true_delta):
    value = GenericAccountant(subsampling="printed").compose(step(0.01, sigma)).epsilon(1e-5)
    assert value == pytest.approx(wanted, rel=1e-11)
    with mp.workdps(30):
        q, m, eps = mp.mpf("0.01"), 1 / mp.mpf(sigma), mp.mpf(float(value))
        x = mp.log((mp.exp(eps) - 1 + q) / q) / m + m / 2
        exact = (1 - q) * mp.ncdf(-x) + q * mp.ncdf(m - x) - mp.exp(eps) * mp.ncdf(-x)
    assert float(exact) == pytest.approx(true_delta, rel=1e-9)
    assert GenericAccountant().compose(step(0.01, sigma)).delta(value) >= true_delta


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 1e-2, 0.5])
@pytest.mark.parametrize("mu", [1e-5, 0.02, 1.0, 40.0, 3e4])
def test_best_order_of_a_gaussian_is_the_analytic_one(mu, delta):
    """K(l) = l (l + 1) mu^2 / 2 is least at l = sqrt(2 log(1/delta)) / mu."""
    value = GenericAccountant().compose(GaussianEvent(1 / mu)).epsilon(delta)
    log = -math.log(delta)
    assert value == pytest.approx(mu**2 / 2 + mu * math.sqrt(2 * log), rel=1e-9)
    assert value >= GDPAccountant().compose(GaussianEvent(1 / mu)).epsilon(delta)
    plan = GenericAccountant().compose(GaussianEvent(1 / mu))
    assert plan.delta(value) == pytest.approx(delta, rel=1e-6)


EVENTS = [
    RenyiEvent(Normal(0, 1.2), Normal(0.3, 1.0)),
    RenyiEvent(Laplace(0, 1), Laplace(0.5, 1)),
    RenyiEvent(Exponential(1.0), Exponential(1.3)),
    RenyiEvent(Gamma(2.5, 0.8), Gamma(2.5, 1.0)),
    RenyiEvent(DiagonalNormal((0, 0), (1, 2)), DiagonalNormal((0.2, 0.1), (1, 2.2))),
    RenyiEvent(MultivariateNormal((0, 0), np.eye(2)), MultivariateNormal((0.1, 0.2), np.eye(2))),
]


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("conversion", ["chernoff", "improved"])
def test_search_finds_the_best_order(event, conversion):
    plan = GenericAccountant(conversion=conversion).compose(event, 5)
    for delta in (1e-9, 1e-3):
        dense = []
        for moment in np.geomspace(1e-3, 1e10, 30_001):
            value = 5 * event.log_moment(moment + 1.0) - math.log(delta)
            if conversion == "improved":
                value += moment * math.log1p(-1 / (moment + 1)) - math.log(moment + 1)
            dense.append(value / moment)
        assert plan.epsilon(delta) == pytest.approx(min(dense), rel=1e-6)
        assert plan.epsilon(delta) <= min(dense) * (1 + 1e-9)
        assert plan.delta(plan.epsilon(delta)) == pytest.approx(delta, rel=1e-4)


def test_larger_direction_counts_release_by_release():
    """Left from right and right from left: each alone would say less of the two together."""
    one = RenyiEvent(Normal(0, 1.0), Normal(0, 1.5))
    two = RenyiEvent(Normal(0, 1.5), Normal(0, 1.0))
    both = GenericAccountant().compose(one).compose(two)
    twice = GenericAccountant().compose(one, 2)
    assert both.epsilon(1e-5) == twice.epsilon(1e-5)
    assert both.log_moment(1.5) == 2 * max(one.log_moment(1.5), two.log_moment(1.5))


def test_pure_noise_matches_its_known_guarantee():
    """Laplace noise at shift 0.5 is 0.5-DP; the bound at tiny delta cannot be much more."""
    plan = GenericAccountant().compose(RenyiEvent(Laplace(0, 1), Laplace(0.5, 1)))
    assert 0.5 <= plan.epsilon(1e-12) <= 0.5 * (1 + 1e-6)


def test_unbounded_divergence_has_no_epsilon():
    plan = GenericAccountant().compose(RenyiEvent(Uniform(0, 1), Uniform(0.1, 1.1)))
    assert plan.epsilon(1e-3) == math.inf
    assert plan.delta(1.0) == 1.0


def test_outcomes_compose_with_other_releases():
    alone = GenericAccountant("replace-one").compose(EVENTS[0])
    more = GenericAccountant("replace-one").compose(EVENTS[0])
    more.compose(UniformSampledEvent(1, 10, GaussianEvent(3.0)), 3).compose(PureDPEvent(0.1))
    assert more.epsilon(1e-5) > alone.epsilon(1e-5)


@pytest.mark.parametrize(
    ("rate", "sigma", "count", "delta"),
    [(0.01, 4.0, 10_000, 1e-5), (0.01, 0.5, 10, 1e-5), (0.3, 2.0, 100, 1e-9), (1e-4, 0.4, 5, 1e-6)],
)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_conversions_in_order(adjacency, rate, sigma, count, delta):
    def value(accountant):
        return accountant.compose(step(rate, sigma), count).epsilon(delta)

    chernoff = value(GenericAccountant(adjacency))
    improved = value(GenericAccountant(adjacency, conversion="improved"))
    assert improved < chernoff
    assert improved == pytest.approx(value(RDPAccountant(adjacency)), rel=1e-4)


def test_parameters_are_validated_and_survive():
    with pytest.raises(ValueError, match="subsampling must be"):
        GenericAccountant(subsampling="poisson")
    with pytest.raises(ValueError, match="conversion must be"):
        GenericAccountant(conversion="cks")
    plan = GenericAccountant("replace-one", subsampling="printed", conversion="improved")
    plan.compose(UniformSampledEvent(1, 10, GaussianEvent(1.0)), 3)
    again = GenericAccountant.from_dict(plan.to_dict())
    assert (again.subsampling, again.conversion) == ("printed", "improved")
    assert again.epsilon(1e-5) == plan.epsilon(1e-5) and not again.epsilon(1e-5).is_guarantee
    assert "subsampling='printed'" in repr(again)
