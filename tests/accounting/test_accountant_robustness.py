"""No legal plan makes an accountant fail, and bounds by different routes are consistent."""

import math
import warnings

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.accountants import accountants
from skdp.accounting.releases.stated import log_moment_randomised_response


def log_uniform(low, high):
    return st.floats(math.log(low), math.log(high)).map(math.exp)


GAUSSIAN = st.builds(GaussianEvent, log_uniform(1e-3, 1e5))
POISSON = st.builds(
    PoissonSampledEvent,
    st.one_of(st.sampled_from([0.0, 0.5, 0.999, 1.0]), log_uniform(1e-9, 1.0)),
    GAUSSIAN,
)
UNIFORM = st.integers(1, 10**7).flatmap(
    lambda n: st.builds(UniformSampledEvent, st.integers(1, n), st.just(n), GAUSSIAN)
)
KNOWN = st.one_of(
    st.builds(PureDPEvent, st.one_of(st.just(0.0), log_uniform(1e-6, 100.0))),
    st.builds(ApproxDPEvent, log_uniform(1e-6, 10.0), st.sampled_from([0.0, 1e-12, 1e-3, 1.0])),
)
COUNT = st.floats(0, 7).map(lambda x: int(10**x))


@st.composite
def plans(draw):
    adjacency = draw(st.sampled_from(["add-remove", "replace-one"]))
    leaf = st.one_of(GAUSSIAN, POISSON, KNOWN)
    if adjacency == "replace-one":
        leaf = st.one_of(leaf, UNIFORM)
    leaves = draw(st.lists(st.builds(RepeatedEvent, leaf, COUNT), min_size=1, max_size=2))
    return adjacency, ComposedEvent(tuple(leaves))


@pytest.mark.slow
@settings(max_examples=60)
@given(
    plan=plans(),
    delta=st.one_of(st.sampled_from([1e-300, 0.5, 0.99]), log_uniform(1e-15, 0.1)),
    epsilon=st.one_of(st.sampled_from([0.0, 1e3]), log_uniform(1e-6, 100.0)),
)
def test_any_legal_plan_has_a_bound(plan, delta, epsilon):
    """Nothing raises, and distributions of losses never say more than Renyi divergences."""
    adjacency, event = plan
    pld = PLDAccountant(adjacency).compose(event)
    rdp = RDPAccountant(adjacency).compose(event)
    found = pld.epsilon(delta), rdp.epsilon(delta)
    assert all(value >= 0.0 for value in found)
    assert all(0.0 <= accountant.delta(epsilon) <= 1.0 for accountant in (pld, rdp))
    if delta > 1e-12:
        assert found[0] <= found[1] * (1 + 2e-3) + 1e-12


NOISE = st.one_of(
    st.builds(LaplaceEvent, log_uniform(0.2, 1e4)),
    st.builds(DiscreteGaussianEvent, log_uniform(0.2, 1e4), st.integers(1, 20)),
    st.builds(DiscreteLaplaceEvent, log_uniform(0.2, 1e4), st.integers(1, 20)),
    st.builds(
        PoissonSampledEvent, log_uniform(1e-7, 1.0), st.builds(LaplaceEvent, log_uniform(0.2, 1e4))
    ),
)
LONG = st.floats(0, 10).map(lambda x: int(10**x))


DOCUMENTED = st.builds(GaussianEvent, log_uniform(0.2, 1e4))
LEAF = st.one_of(
    DOCUMENTED,
    st.builds(PoissonSampledEvent, log_uniform(1e-7, 1.0), DOCUMENTED),
    st.builds(UniformSampledEvent, st.integers(1, 10**7), st.just(10**7), DOCUMENTED),
    KNOWN,
    NOISE,
)
SLOWER = ("pld", "hidden-state")
QUICKER = tuple(name for name in accountants() if name not in SLOWER)


QUERIES = {
    "adjacency": st.sampled_from(["add-remove", "replace-one"]),
    "leaves": st.lists(st.tuples(LEAF, LONG), max_size=3),
    "deltas": st.tuples(log_uniform(1e-15, 0.1), st.floats(1.0, 100.0)),
    "epsilons": st.tuples(log_uniform(1e-6, 1e3), st.floats(1.0, 100.0)),
}


@pytest.mark.slow
@settings(max_examples=80, deadline=None, derandomize=True)
@given(name=st.sampled_from(QUICKER), **QUERIES)
def test_quick_accountants_are_consistent(name, adjacency, leaves, deltas, epsilons):
    check_intervals(name, adjacency, leaves, deltas, epsilons)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(name=st.sampled_from(SLOWER), **QUERIES)
def test_slower_accountants_are_consistent(name, adjacency, leaves, deltas, epsilons):
    check_intervals(name, adjacency, leaves, deltas, epsilons)


def check_intervals(name, adjacency, leaves, deltas, epsilons):
    """No exception, nothing negative, nothing upside down, for whatever a class supports."""
    plan = accountants()[name](adjacency)
    for leaf, count in leaves:
        if plan.supports(leaf):
            # The optimal composition rule takes a minute for some plans of 10^6 releases.
            plan.compose(leaf, min(count, 1000) if name == "optimal" else count)
    small, large = deltas[0], min(deltas[0] * deltas[1], 0.9)
    at_small, at_large = plan.epsilon(small), plan.epsilon(large)
    low, high = plan.delta(epsilons[0]), plan.delta(epsilons[0] * epsilons[1])
    for value in (at_small, at_large, low, high):
        assert 0.0 <= value.lower <= value.upper
    assert low.upper <= 1.0
    # What is proved of one end holds at the other: bounds may cross only if one is wrong.
    assert at_large.lower <= at_small.upper
    assert high.lower <= low.upper
    if at_small.upper <= epsilons[0]:
        assert low.lower <= small
    if at_small.lower > epsilons[0]:
        assert low.upper >= small


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    rate=log_uniform(1e-4, 1.0),
    z=log_uniform(0.3, 30.0),
    count=st.floats(0, 4).map(lambda x: int(10**x)),
    delta=log_uniform(1e-10, 1e-2),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
)
def test_more_noise_and_rarer_sampling_cost_less(rate, z, count, delta, adjacency):
    def cost(rate, z):
        event = PoissonSampledEvent(rate, GaussianEvent(z))
        return PLDAccountant(adjacency).compose(event, count).epsilon(delta)

    base = cost(rate, z)
    assert cost(rate, 1.1 * z) <= base * (1 + 1e-4)
    assert cost(0.9 * rate, z) <= base * (1 + 1e-4)
    assert base <= cost(1.0, z) * (1 + 1e-4)


# The smallest and the largest floats, and some whose squares or cubes are neither.
EXTREME = st.sampled_from(
    (5e-324, 1e-310, 2.3e-308, 1e-300, 1e-160, 1e-20, 1e-9, 1e3, 1e10, 1e154, 1e200, 1e300, 1.7e308)
)
ANY = st.one_of(EXTREME, log_uniform(1e-3, 1e3))
SMALL = ANY.map(lambda x: min(x, 1.0))
INNER = st.one_of(st.builds(GaussianEvent, ANY), st.builds(LaplaceEvent, ANY))
ANY_LEAF = st.one_of(
    INNER,
    st.builds(PureDPEvent, ANY),
    st.builds(ApproxDPEvent, ANY, SMALL),
    st.builds(DiscreteGaussianEvent, ANY, st.integers(1, 3)),
    st.builds(DiscreteLaplaceEvent, ANY, st.integers(1, 3)),
    st.builds(PoissonSampledEvent, SMALL, INNER),
    st.builds(
        UniformSampledEvent, st.just(1), st.integers(2, 2**60), st.builds(GaussianEvent, ANY)
    ),
)
EXTREMES = {
    "adjacency": st.sampled_from(["add-remove", "replace-one"]),
    "leaves": st.lists(
        st.tuples(ANY_LEAF, st.sampled_from([1, 3, 10**6, 10**400])), min_size=1, max_size=2
    ),
    "delta": st.one_of(
        st.sampled_from([0.0, 5e-324, 1e-300, 1.0 - 2.0**-53]), log_uniform(1e-15, 0.9)
    ),
    "epsilon": st.one_of(st.just(0.0), ANY),
}
NOTHING = {"adjacency": "add-remove", "delta": 0.0, "epsilon": 0.0}


@pytest.mark.slow
@settings(max_examples=120, deadline=None, derandomize=True)
@given(name=st.sampled_from(QUICKER), **EXTREMES)
def test_quick_accountants_take_any_float(name, adjacency, leaves, delta, epsilon):
    check_extremes(name, adjacency, leaves, delta, epsilon)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(**EXTREMES)
@example(leaves=[(GaussianEvent(1e154), 1), (LaplaceEvent(1e154), 1)], **NOTHING)
@example(leaves=[(PureDPEvent(5e-324), 1), (DiscreteGaussianEvent(1e154, 3), 1)], **NOTHING)
@example(leaves=[(PureDPEvent(5e-324), 1), (DiscreteGaussianEvent(1e12, 3), 1)], **NOTHING)
def test_the_pld_accountant_takes_any_float(adjacency, leaves, delta, epsilon):
    check_extremes("pld", adjacency, leaves, delta, epsilon)


def check_extremes(name, adjacency, leaves, delta, epsilon):
    """No exception, no warning, and no bound below what the first leaf alone costs."""
    plan = accountants()[name](adjacency)
    for leaf, count in leaves:
        if plan.supports(leaf):
            plan.compose(leaf, min(count, 1000) if name == "optimal" else count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at_delta, at_epsilon, at_zero = plan.epsilon(delta), plan.delta(epsilon), plan.delta(0.0)
    for value in (at_delta, at_epsilon, at_zero):
        assert 0.0 <= value.lower <= value.upper
    assert at_epsilon.upper <= at_zero.upper * (1 + 2e-3) <= 1.0 + 2e-3
    leaf = leaves[0][0]
    if not (plan.is_upper_bound and plan.supports(leaf)):
        return
    exact = total_variation(leaf)
    if exact is not None:
        assert at_zero.upper >= exact
        if exact > delta * (1 + 1e-9):
            assert at_delta.upper > 0.0


def total_variation(leaf):
    """The exact delta at an epsilon of 0, where it has a short formula."""
    with mpmath.workdps(50):
        if isinstance(leaf, PureDPEvent):
            return mpmath.tanh(mpmath.mpf(leaf.epsilon) / 2)
        if isinstance(leaf, LaplaceEvent):
            return -mpmath.expm1(-1 / (2 * mpmath.mpf(leaf.noise_multiplier)))
        if isinstance(leaf, GaussianEvent) and leaf.noise_multiplier > 1e-300:
            return mpmath.erf(1 / mpmath.mpf(leaf.noise_multiplier) / mpmath.sqrt(8))
    return None


def test_parts_that_hardly_matter_do_no_harm():
    alone = PLDAccountant().compose(PureDPEvent(0.25))
    both = PLDAccountant().compose(PureDPEvent(0.25)).compose(PureDPEvent(5e-324))
    assert both.epsilon(1e-5).upper == pytest.approx(alone.epsilon(1e-5).upper, rel=1e-3)
    assert both.delta(0.1).upper == pytest.approx(alone.delta(0.1).upper, rel=1e-3)
    thrice = PLDAccountant().compose(RepeatedEvent(PureDPEvent(5e-324), 3))
    assert 0.0 < thrice.delta(0.0).upper < 1e-90
    assert PLDAccountant().compose(GaussianEvent(1e200)).delta(0.0) > 3.98e-201
    plan = PLDAccountant().compose(PoissonSampledEvent(0.01, GaussianEvent(1.0)), 100)
    assert plan.epsilon(1e-280).upper < plan.epsilon(5e-324).upper < 100.0


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e-9, 1e-3, 0.5, 30.0, 599.0, 1e4, 1e300])
@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 64.0, 1e5])
def test_moments_of_randomised_response(epsilon, order):
    found = log_moment_randomised_response(epsilon, order)
    with mpmath.workdps(400 if epsilon < 1e-100 else 60):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        exact = (a - 1) * e
        if a * e < 1e9:
            exact = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2))
        assert found >= exact
        assert found <= exact * (1 + mpmath.mpf(1e-12)) or found < 3e-308
