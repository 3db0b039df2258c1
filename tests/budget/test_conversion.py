"""Converted guarantees dominate the exact profiles, in both orders, and are not much larger."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from exact_profiles import (
    LongComposition,
    discrete_delta,
    gaussian_delta,
    mixture_delta,
    response_delta,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    HiddenStateAccountant,
    LaplaceEvent,
    LastIterateEvent,
    OneOfEvent,
    PLDAccountant,
    PoissonSampledEvent,
    ProfileEvent,
    PureDPEvent,
    RenyiEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.analysis import analysis_of
from skdp.accounting.distributions import Normal
from skdp.accounting.numerics import gaussian_profile
from skdp.budget.currencies import Charge, make_filter
from skdp.budget.currencies.gaussian import approximate_gaussian, replace_runs
from skdp.budget.request import convert_adjacency
from skdp.exceptions import UnsupportedEventError

SLACK = 1e-7
EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 12.0, 60)])


def covers(found, epsilon):
    """Return the converted profile at one epsilon, exactly."""
    with mp.workdps(40):
        square = mp.mpf(found.mu_squared.numerator) / found.mu_squared.denominator
        slack = mp.mpf(found.slack.numerator) / found.slack.denominator
        curve = gaussian_delta(mp.sqrt(square), epsilon) if square else mp.mpf(0)
        return slack + (1 - slack) * curve


def check_cover(found, oracle, epsilons=EPSILONS):
    with mp.workdps(50):
        for epsilon in epsilons:
            assert oracle(epsilon) <= covers(found, epsilon) * (1 + mp.mpf("1e-25"))


def needed(oracle, slack, epsilons=EPSILONS):
    """Return the least mu that covers the oracle at some points: no conversion can do better."""
    heights = [(float(e), float((oracle(e) - slack) / (1 - slack))) for e in epsilons]
    return max(gaussian_profile.mu(e, d) for e, d in heights if 1e-300 < d < 1.0)


def test_pure_releases_have_the_known_mu():
    square, slack = approximate_gaussian(PureDPEvent(1.0), "replace-one", SLACK)
    assert float(square) ** 0.5 == pytest.approx(1.232035385, abs=5e-10)
    assert slack == 0
    found = approximate_gaussian(ApproxDPEvent(1.0, 1e-6), "replace-one", SLACK)
    assert found == (square, Fraction(1, 10**6))


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-9, 60.0), st.sampled_from([0.0, 1e-9, 0.01]))
def test_stated_guarantees_are_dominated(epsilon, delta):
    event = ApproxDPEvent(epsilon, delta) if delta else PureDPEvent(epsilon)
    found = approximate_gaussian(event, "add-remove", SLACK)

    def oracle(at):
        return response_delta(epsilon, repr(delta), at)  # as typed, in decimal

    check_cover(found, oracle, [0.0, *(epsilon * k / 7 for k in range(1, 8)), 2 * epsilon])
    # The curves touch at epsilon = 0.
    mu = math.sqrt(found.mu_squared)
    with mp.workdps(60):
        least = float(2 * mp.sqrt(2) * mp.erfinv(mp.tanh(mp.mpf(epsilon) / 2)))
    assert mu == pytest.approx(least, rel=1e-9)


SAMPLED = [
    ("gaussian", "add-remove", 0.1, 0.8),
    ("gaussian", "replace-one", 0.1, 0.8),
    ("gaussian", "add-remove", 0.01, 3.0),
    ("gaussian", "replace-one", 0.5, 0.3),
    ("laplace", "add-remove", 0.2, 0.7),
    ("laplace", "replace-one", 0.2, 0.7),
]


@pytest.mark.daily(1)
@pytest.mark.parametrize("noise, adjacency, rate, shift", SAMPLED)
def test_single_sampled_releases_are_dominated_in_both_orders(noise, adjacency, rate, shift):
    inner = (GaussianEvent if noise == "gaussian" else LaplaceEvent)(1.0 / shift)
    found = approximate_gaussian(PoissonSampledEvent(rate, inner), adjacency, SLACK)
    kinds = ("remove", "add") if adjacency == "add-remove" else ("replace",)

    def oracle(at):
        return max(mixture_delta(noise, kind, rate, shift, at) for kind in kinds)

    check_cover(found, oracle)
    assert found.slack <= SLACK
    best = needed(oracle, SLACK if found.slack else 0.0)
    assert math.sqrt(found.mu_squared) <= 1.05 * best


@pytest.mark.oracle
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rate, shift, count", [(0.02, 1.0, 300), (0.1, 0.3, 100)])
def test_long_runs_are_dominated_in_both_orders(adjacency, rate, shift, count):
    event = RepeatedEvent(PoissonSampledEvent(rate, GaussianEvent(1.0 / shift)), count)
    found = approximate_gaussian(event, adjacency, SLACK)
    assert 0.0 < found.slack <= SLACK
    kinds = ("remove", "add") if adjacency == "add-remove" else ("poisson-replace-one",)
    runs = [LongComposition([(kind, rate, shift, count)]) for kind in kinds]

    def oracle(at):
        return mp.mpf(max(float(run.delta(at)) for run in runs))

    mu = math.sqrt(found.mu_squared)
    reach = gaussian_profile.epsilon(mu, SLACK)
    epsilons = np.linspace(0.05, 1.2, 12) * reach
    check_cover(found, lambda at: oracle(at) * (1 - mp.mpf("1e-9")), epsilons)
    assert mu <= 1.06 * needed(oracle, SLACK, epsilons)


@pytest.mark.parametrize("shift", [0.05, 1.0, 6.0])
def test_laplace_noise_is_dominated_and_needs_no_slack(shift):
    found = approximate_gaussian(LaplaceEvent(1.0 / shift), "replace-one", SLACK)
    assert found.slack == 0

    def oracle(at):
        return max(mp.mpf(0), 1 - mp.exp((mp.mpf(at) - mp.mpf(shift)) / 2))

    epsilons = [shift * k / 50 for k in range(51)]
    check_cover(found, lambda at: oracle(at) * (1 - mp.mpf("1e-15")), epsilons)
    assert math.sqrt(found.mu_squared) <= 1.02 * needed(oracle, 0.0, epsilons)
    pure = approximate_gaussian(PureDPEvent(shift), "replace-one", SLACK)
    assert found.mu_squared < pure.mu_squared


@pytest.mark.parametrize("sigma, sensitivity", [(0.7, 1), (3.0, 1), (6.0, 3)])
def test_discrete_noise_is_dominated(sigma, sensitivity):
    event = DiscreteGaussianEvent(sigma / sensitivity, sensitivity)
    found = approximate_gaussian(event, "replace-one", SLACK)

    def oracle(at):
        weight = discrete_delta(
            lambda x: -(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2), 90, sensitivity, at
        )
        return weight * (1 - mp.mpf("1e-12"))

    check_cover(found, oracle, np.linspace(0.0, 6.0, 25))
    event = DiscreteLaplaceEvent(sigma / sensitivity, sensitivity)
    found = approximate_gaussian(event, "replace-one", SLACK)
    assert found.slack == 0

    def two_sided(at):
        weight = discrete_delta(lambda x: -abs(mp.mpf(x)) / mp.mpf(sigma), 400, sensitivity, at)
        return weight * (1 - mp.mpf("1e-12"))

    check_cover(found, two_sided, np.linspace(0.0, sensitivity / sigma, 10))


MIXED = [
    ComposedEvent((GaussianEvent(3.0), PureDPEvent(0.3), ApproxDPEvent(0.1, 1e-9))),
    RepeatedEvent(PureDPEvent(0.05), 40),
    RepeatedEvent(LaplaceEvent(20.0), 50),
    ComposedEvent(
        (RepeatedEvent(PoissonSampledEvent(0.05, GaussianEvent(2.0)), 10), LaplaceEvent(5.0))
    ),
    UniformSampledEvent(10, 100, GaussianEvent(2.0)),
]


@pytest.mark.parametrize("event", MIXED)
def test_plans_are_converted_jointly(event):
    found = approximate_gaussian(event, "replace-one", SLACK)
    accountant = PLDAccountant("replace-one").compose(event)
    reach = gaussian_profile.epsilon(math.sqrt(found.mu_squared), 1e-5)
    for epsilon in np.linspace(0.0, reach, 12):
        assert accountant.delta(float(epsilon)).lower <= covers(found, float(epsilon))
    leaves = [approximate_gaussian(leaf, "replace-one", SLACK) for leaf in parts(event)]
    assert found.mu_squared <= sum(leaf.mu_squared for leaf in leaves) * Fraction(10001, 10000)


def parts(event):
    if isinstance(event, RepeatedEvent):
        return parts(event.event) * event.count
    if isinstance(event, ComposedEvent):
        return [leaf for inner in event.events for leaf in parts(inner)]
    return [event]


def test_gaussian_releases_are_converted_exactly():
    def square(event, adjacency="replace-one"):
        found = approximate_gaussian(event, adjacency, SLACK)
        assert found.slack == 0
        return found.mu_squared

    assert square(GaussianEvent(4.0)) == Fraction(1, 16)
    assert square(RepeatedEvent(GaussianEvent(4.0), 9)) == Fraction(9, 16)
    assert square(PoissonSampledEvent(1.0, GaussianEvent(4.0))) == Fraction(1, 4)
    assert square(PoissonSampledEvent(1.0, GaussianEvent(4.0)), "add-remove") == Fraction(1, 16)
    assert square(UniformSampledEvent(5, 5, GaussianEvent(4.0))) == Fraction(1, 4)
    assert square(PoissonSampledEvent(0.0, GaussianEvent(4.0))) == 0
    assert square(ComposedEvent(())) == 0
    assert square(OneOfEvent((GaussianEvent(4.0), GaussianEvent(8.0)))) == Fraction(1, 16)
    third = square(GaussianEvent(3.0))
    assert Fraction(1, 9) <= third <= Fraction(1, 9) * (1 + Fraction(1, 2**70))


def test_runs_of_which_the_last_iterate_is_seen():
    whole = LastIterateEvent(GaussianEvent(100.0), 1000, 0.25, strong_convexity=2e-3)
    found = approximate_gaussian(whole, "replace-one", SLACK)
    assert found.slack == 0
    assert float(found.mu_squared) == pytest.approx(analysis_of(whole, "add-remove").mu() ** 2)
    step = PoissonSampledEvent(0.01, GaussianEvent(10.0))
    run = LastIterateEvent(step, 20_000, 0.25, strong_convexity=2e-3, dataset_size=10_000)
    for adjacency in ("replace-one", "add-remove"):
        found = approximate_gaussian(run, adjacency, SLACK)
        steps = approximate_gaussian(RepeatedEvent(step, 20_000), adjacency, SLACK)
        assert found.mu_squared < steps.mu_squared
        # At the delta where the window was chosen the accountant does hardly better.
        bound = HiddenStateAccountant(adjacency).compose(run).epsilon(1e-5)
        assert bound <= gaussian_profile.epsilon(math.sqrt(found.mu_squared), 1e-5 - SLACK) * 1.1


def test_what_stands_for_a_run_may_fail_and_that_is_paid_for():
    step = PoissonSampledEvent(0.01, GaussianEvent(10.0))
    run = LastIterateEvent(step, 20_000, 0.25, strong_convexity=2e-3, dataset_size=1000)
    others, failing = replace_runs(run, "replace-one", SLACK)
    paid = approximate_gaussian(others, "replace-one", SLACK).slack
    found = approximate_gaussian(run, "replace-one", SLACK).slack
    assert found >= paid + Fraction(failing) > paid  # exactly: it is very rare


@pytest.mark.parametrize("currency", ["mixed", "gdp", "zcdp", "rdp", "basic", "approx"])
@pytest.mark.parametrize("count", [1, 3])
def test_whatever_fails_is_paid_for(currency, count):
    """A release that shows everything with probability d needs at least d of delta."""
    budget = make_filter(currency, 4.0, 1e-5, "replace-one")
    least = 1 - (1 - Fraction(1e-7)) ** count
    for event in (ApproxDPEvent(0.1, 1e-7), ApproxDPEvent(0.0, 1e-7)):
        charge = Charge(RepeatedEvent(event, count))
        assert budget.price(charge, budget.nothing)[-1] >= least
        if not budget.needs_pairs:
            beside = Charge(ComposedEvent((GaussianEvent(20.0), charge.event)))
            assert budget.price(beside, budget.nothing)[-1] >= least


@pytest.mark.parametrize("currency", ["gdp", "zcdp", "mixed"])
def test_prices_of_converted_releases_cover_their_whole_profile(currency):
    """Beside the curve, what is above it: a release whose failures were free would cost less."""
    event = RepeatedEvent(PoissonSampledEvent(0.02, GaussianEvent(2.0)), 50)
    budget = make_filter(currency, 4.0, 1e-5, "replace-one")
    cost = budget.price(Charge(event), budget.nothing)
    mu = math.sqrt(cost[0] * getattr(budget, "mu_squared", 1))
    profile = PLDAccountant(adjacency="replace-one").compose(event)
    above = [profile.delta(e).lower - gaussian_profile.delta(mu, e) for e in EPSILONS[40::2]]
    assert 0.0 < max(above) <= cost[-1]


@dataclass(frozen=True)
class _KnownCurve(ProfileEvent):
    """A release with the profile of a Gaussian one that may fail."""

    mu: float
    failure: float = 0.0
    only: str = ""

    def profile_bound(self, epsilon, adjacency):
        curve = gaussian_profile.delta(self.mu, epsilon)
        return self.failure + (1.0 - self.failure) * curve

    def supports_adjacency(self, adjacency):
        return self.only in ("", adjacency)


@pytest.mark.daily(1)
@pytest.mark.parametrize("failure", [0.0, 1e-9])
def test_events_with_a_known_profile(failure):
    event = _KnownCurve(0.4, failure)
    found = approximate_gaussian(event, "replace-one", SLACK)
    assert 0.4 <= math.sqrt(found.mu_squared) <= 0.405
    assert found.slack <= SLACK + 1.001 * failure
    twice = approximate_gaussian(RepeatedEvent(event, 2), "replace-one", SLACK)
    assert 0.4 * math.sqrt(2) <= math.sqrt(twice.mu_squared) <= 0.41 * math.sqrt(2)
    for name in ("gdp", "zcdp", "rdp"):
        budget = make_filter(name, 4.0, 1e-5, "replace-one")
        cost = budget.price(Charge(event), budget.nothing)
        alike = budget.price(Charge(GaussianEvent(2.5)), budget.nothing)
        assert alike[0] <= cost[0] <= alike[0] * Fraction(103, 100)
    with pytest.raises(UnsupportedEventError):
        approximate_gaussian(_KnownCurve(0.4, 0.0, "add-remove"), "replace-one", SLACK)


def test_one_of_several_costs_the_largest():
    choice = OneOfEvent((PureDPEvent(0.3), ApproxDPEvent(0.2, 1e-6)))
    basic = make_filter("basic", 1.0, 1e-5, "replace-one")
    assert basic.price(Charge(choice), basic.nothing) == (Fraction(3, 10), Fraction(1, 10**6))
    zcdp = make_filter("zcdp", 3.0, 1e-5, "replace-one")
    alone = zcdp.price(Charge(PureDPEvent(0.3)), zcdp.nothing)
    assert zcdp.price(Charge(choice), zcdp.nothing) == (alone[0], Fraction(1, 10**6))
    gdp = make_filter("gdp", 3.0, 1e-5, "replace-one")
    cost = gdp.price(Charge(OneOfEvent((PureDPEvent(0.3), GaussianEvent(4.0)))), gdp.nothing)
    pure = gdp.price(Charge(PureDPEvent(0.3)), gdp.nothing)
    assert pure[0] * Fraction(999, 1000) <= cost[0] <= pure[0] * Fraction(105, 100)


def test_events_known_by_divergences():
    event = RenyiEvent(Normal(0.0, 4.0), Normal(1.0, 4.0))
    found = approximate_gaussian(event, "replace-one", SLACK)
    assert 0.25 <= math.sqrt(found.mu_squared) <= 0.45  # a conversion from divergences loses
    rdp = make_filter("rdp", 3.0, 1e-5, "replace-one")
    cost = rdp.price(Charge(event), rdp.nothing)
    assert float(cost[0]) == pytest.approx(rdp.order / 32, rel=1e-9)
    assert cost[1] == 0
    together = ComposedEvent((event, PureDPEvent(0.1), _KnownCurve(0.1)))
    assert approximate_gaussian(together, "replace-one", SLACK).mu_squared > found.mu_squared


def test_slack_is_chosen_from_what_is_left():
    event = RepeatedEvent(PoissonSampledEvent(0.02, GaussianEvent(2.0)), 20)
    budget = make_filter("gdp", 8.0, 1e-5, "replace-one")
    spent, used = budget.nothing, []
    for _ in range(40):
        cost = budget.price(Charge(event), spent)
        assert budget.fits(spent, cost)
        spent = tuple(a + b for a, b in zip(spent, cost, strict=True))
        used.append(cost)
    assert all(a[1] >= b[1] for a, b in pairwise(used))
    assert len({cost[1] for cost in used}) <= 12  # so that conversions can be remembered
    assert used[-1][0] <= used[0][0] * Fraction(13, 10)
    gone = (Fraction(0), budget.limits[1])
    assert not budget.fits(gone, budget.price(Charge(event), gone))


def convert(event, **guarantee):
    return convert_adjacency(event, "add-remove", "replace-one", **guarantee)


def test_the_same_relation_changes_nothing():
    event = RepeatedEvent(GaussianEvent(3.0), 2)
    for relation in ("add-remove", "replace-one"):
        assert convert_adjacency(event, relation, relation) is event
    with pytest.raises(ValueError, match="does not cover adding"):
        convert_adjacency(event, "replace-one", "add-remove")
    with pytest.raises(ValueError, match="wanted"):
        convert_adjacency(event, "replace-one", "zero-out")


def test_replacing_is_removing_and_adding():
    assert convert(GaussianEvent(3.0)) == GaussianEvent(1.5)
    assert convert(LaplaceEvent(3.0)) == LaplaceEvent(1.5)
    assert convert(DiscreteGaussianEvent(3.0, 2)) == DiscreteGaussianEvent(1.5, 4)
    assert convert(DiscreteLaplaceEvent(3.0, 1)) == DiscreteLaplaceEvent(1.5, 2)
    assert convert(PureDPEvent(0.1)) == PureDPEvent(0.2)
    sampled = PoissonSampledEvent(0.1, GaussianEvent(2.0))
    assert convert(RepeatedEvent(sampled, 5)) == RepeatedEvent(sampled, 5)
    mixed = ComposedEvent((sampled, GaussianEvent(4.0)))
    assert convert(mixed) == ComposedEvent((sampled, GaussianEvent(2.0)))
    run = LastIterateEvent(GaussianEvent(10.0), 50, 0.5)
    assert convert(run).step == GaussianEvent(5.0) and convert(run).steps == 50
    assert convert(GaussianEvent(5e-323)).noise_multiplier * 2 <= 5e-323


@settings(max_examples=100, deadline=None)
@given(st.floats(0.0, 50.0), st.floats(0.0, 0.5))
def test_group_privacy_of_two_is_rounded_up(epsilon, delta):
    found = convert(ApproxDPEvent(epsilon, delta))
    with mp.workdps(40):
        typed = mp.mpf(repr(epsilon))
        assert mp.mpf(repr(found.epsilon)) >= 2 * typed
        failure = mp.mpf(repr(getattr(found, "delta", 0.0)))
        assert failure >= min(1, mp.mpf(repr(delta)) * (1 + mp.exp(typed)))
    assert found.epsilon == pytest.approx(2 * epsilon)


def test_other_events_are_converted_by_a_guarantee():
    event = _KnownCurve(0.4)
    epsilon = gaussian_profile.epsilon(0.4, 1e-6)
    found = convert(event, delta=1e-6)
    assert isinstance(found, ApproxDPEvent)
    assert found.epsilon == pytest.approx(2 * epsilon, rel=1e-3)
    assert found.delta == pytest.approx(1e-6 * (1 + math.exp(epsilon)), rel=1e-2)
    assert convert(event, epsilon=2.0, delta=1e-6) == convert(
        ComposedEvent((event,)), epsilon=2.0, delta=1e-6
    )
    with pytest.raises(ValueError, match="Set delta of the charge"):
        convert(event)
    with pytest.raises(ValueError, match="only delta="):
        convert(event, epsilon=0.1, delta=1e-9)
    with pytest.raises(ValueError, match="no proved guarantee under"):
        convert(UniformSampledEvent(5, 10, GaussianEvent(1.0)), delta=1e-6)
