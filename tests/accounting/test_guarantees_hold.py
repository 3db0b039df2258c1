"""Every accountant that claims an upper bound against the truth, and what claims none."""

import math

import pytest
from dp_accounting import NeighboringRelation, dp_event, rdp
from dp_accounting.pld import privacy_loss_distribution as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    AdvancedCompositionAccountant,
    BasicCompositionAccountant,
    GaussianEvent,
    GDPAccountant,
    GenericAccountant,
    MomentsAccountant,
    OptimalCompositionAccountant,
    PoissonSampledEvent,
    RDPAccountant,
    UniformSampledEvent,
)

BOUNDS = [
    (RDPAccountant, {}),
    (MomentsAccountant, {}),
    (GenericAccountant, {}),
    (GenericAccountant, {"conversion": "improved"}),
    (BasicCompositionAccountant, {}),
    (AdvancedCompositionAccountant, {}),
    (AdvancedCompositionAccountant, {"mean_term": "printed", "split": 0.5}),
    (AdvancedCompositionAccountant, {"mean_term": "squared", "split": 0.9}),
    (OptimalCompositionAccountant, {}),
    (OptimalCompositionAccountant, {"split": 0.5}),
]
RELATIONS = {
    "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": NeighboringRelation.REPLACE_ONE,
}
PLANS = [
    (0.01, 0.5, 10),
    (0.01, 1.0, 1000),
    (0.1, 5.0, 500),
    (0.3, 0.8, 3),
    (0.001, 0.6, 300),
    (0.9, 3.0, 20),
]


def optimistic(rate, multiplier, count, adjacency):
    """Privacy-loss distribution of the library's peer, discretised from below."""
    step = reference.from_gaussian_mechanism(
        multiplier,
        sampling_prob=rate,
        pessimistic_estimate=False,
        value_discretization_interval=1e-3 if count < 50 else 2e-4,
        neighboring_relation=RELATIONS[adjacency],
        use_connect_dots=False,
    )
    return step.self_compose(count)


@pytest.mark.oracle
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("rate", "multiplier", "count"), PLANS)
def test_upper_bounds_exceed_a_lower_bound_on_the_truth(adjacency, rate, multiplier, count):
    truth = optimistic(rate, multiplier, count, adjacency)
    event = PoissonSampledEvent(rate, GaussianEvent(multiplier))
    for cls, parameters in BOUNDS:
        plan = cls(adjacency, **parameters).compose(event, count)
        for delta in (1e-8, 1e-5, 1e-2):
            value = plan.epsilon(delta)
            assert value.is_guarantee
            assert value >= truth.get_epsilon_for_delta(delta)
        for epsilon in (0.1, 1.0, 5.0):
            assert plan.delta(epsilon) >= truth.get_delta_for_epsilon(epsilon) * (1 - 1e-6) - 1e-12


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("mu", "count"),
    [
        *((0.01, 1), (0.3, 10_000), (1.0, 1), (6.0, 10_000)),
        *(
            pytest.param(mu, count, marks=pytest.mark.oracle)
            for mu, count in ((0.01, 10_000), (0.3, 1), (1.0, 10_000), (6.0, 1))
        ),
    ],
)
def test_upper_bounds_exceed_the_exact_gaussian(mu, count):
    event = GaussianEvent(math.sqrt(count) / mu)
    exact = GDPAccountant().compose(event, count)
    for cls, parameters in BOUNDS:
        plan = cls(**parameters).compose(event, count)
        for delta in (1e-12, 1e-5, 0.1):
            assert plan.epsilon(delta) >= exact.epsilon(delta) * (1 - 1e-9)
            epsilon = exact.epsilon(delta)
            assert plan.delta(epsilon) >= exact.delta(epsilon) * (1 - 1e-6)


@pytest.mark.parametrize(
    ("batch", "size", "mu", "epsilon", "one", "two"),
    [
        (1, 10, 1.0, 0.1, 0.0184719306881, 0.036050156115),
        (1, 20, 2.0, 0.2, 0.0192537957072, 0.0380595924037),
        (1, 2, 0.8, 0.3, 0.0758506322409, 0.143769682343),
    ],
)
def test_upper_bounds_exceed_exact_values_of_fixed_size_samples(batch, size, mu, epsilon, one, two):
    """One- and two-fold exact deltas, by quadrature."""
    event = UniformSampledEvent(batch, size, GaussianEvent(2.0 / mu))
    for cls, parameters in BOUNDS:
        for count, truth in ((1, one), (2, two)):
            plan = cls("replace-one", **parameters).compose(event, count)
            assert plan.delta(epsilon) >= truth * (1 - 1e-9)
    basic = BasicCompositionAccountant("replace-one").compose(event)
    assert basic.delta(epsilon) == pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize(
    ("rate", "multiplier"), [(0.01, 4.0), (0.01, 1.0), (0.1, 2.0), (0.001, 0.7), (0.5, 10.0)]
)
def test_divergences_agree_with_a_peer(rate, multiplier):
    """To 1e-6 at integer orders. Between them the peer adds absolute values of a signed series."""
    orders = [2.0, 2.5, 3.0, 3.7, 8.0, 16.0, 40.5, 64.0, 200.0]
    peer = rdp.RdpAccountant(orders)
    inner = dp_event.GaussianDpEvent(multiplier)
    peer.compose(dp_event.PoissonSampledDpEvent(rate, inner), 3)
    event = PoissonSampledEvent(rate, GaussianEvent(multiplier))
    for cls in (RDPAccountant, GenericAccountant, MomentsAccountant):
        plan = cls().compose(event, 3)
        for order, wanted in zip(orders, peer._rdp, strict=True):
            value = plan.log_moment(order) / (order - 1)
            assert value <= wanted * (1 + 1e-6)
            assert order % 1 or value == pytest.approx(wanted, rel=1e-6)


def test_printed_rules_understate_where_there_is_little_noise():
    """Both papers' formulas, one step: the truth is a certified lower bound."""
    truth = optimistic(0.01, 0.5, 1, "add-remove").get_epsilon_for_delta(1e-5)
    assert truth == pytest.approx(3.0253, abs=2e-3)
    event = PoissonSampledEvent(0.01, GaussianEvent(0.5))
    for accountant in (
        GenericAccountant(subsampling="printed"),
        AdvancedCompositionAccountant(mean_term="squared", split=0.5, subsampling="printed"),
        GDPAccountant(subsampling="clt"),
    ):
        value = accountant.compose(event).epsilon(1e-5)
        assert value < 0.6 * truth
        assert not value.is_upper_bound and not value.is_guarantee


ANY = [
    *((cls, parameters, True) for cls, parameters in BOUNDS),
    (GenericAccountant, {"subsampling": "printed"}, False),
    (AdvancedCompositionAccountant, {"subsampling": "printed", "split": 0.5}, False),
    (GDPAccountant, {"subsampling": "clt"}, False),
]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    which=st.sampled_from(ANY),
    log_rate=st.floats(-7, 0),
    log_multiplier=st.floats(math.log10(0.2), 4),
    log_count=st.floats(0, 10),
    log_delta=st.floats(-15, -0.1),
    log_epsilon=st.floats(-6, 3),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
    fixed=st.booleans(),
)
def test_no_surprises(
    which, log_rate, log_multiplier, log_count, log_delta, log_epsilon, adjacency, fixed
):
    """No exception, no NaN, nothing negative anywhere in the documented ranges."""
    cls, parameters, guarantee = which
    inner = GaussianEvent(10.0**log_multiplier)
    if fixed and adjacency == "replace-one":
        event = UniformSampledEvent(max(1, round(10.0 ** (log_rate + 7))), 10**7, inner)
    else:
        event = PoissonSampledEvent(10.0**log_rate, inner)
    plan = cls(adjacency, **parameters).compose(event, round(10.0**log_count))
    epsilon = plan.epsilon(10.0**log_delta)
    delta = plan.delta(10.0**log_epsilon)
    assert epsilon >= 0.0 and 0.0 <= delta <= 1.0
    assert 0.0 <= epsilon.lower <= epsilon.upper and 0.0 <= delta.lower <= delta.upper
    assert epsilon.is_guarantee == guarantee == delta.is_guarantee
