"""Privacy-loss distributions against closed forms, quadrature and dp-accounting."""

import math

import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as oracle

from skdp.accounting import (
    ApproxDPEvent,
    GaussianEvent,
    GDPAccountant,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    UniformSampledEvent,
    dpsgd_epsilon,
)
from skdp.accounting.pld.grid_bounds import delta_interval, epsilon_interval
from skdp.accounting.pld.inversion_bounds import invert_epsilon
from skdp.accounting.pld.pairs.gaussian import gaussian_pair


def assert_upper(value, exact, rel):
    """Demand an upper bound, but not a loose one."""
    assert exact * (1 - 1e-11) <= value <= exact * (1 + rel)


def test_bare_gaussians_are_exact():
    pld = PLDAccountant().compose(GaussianEvent(3.0), 5).compose(GaussianEvent(1.1))
    gdp = GDPAccountant().compose(GaussianEvent(3.0), 5).compose(GaussianEvent(1.1))
    assert pld.epsilon(1e-7) == gdp.epsilon(1e-7)
    assert pld.delta(2.0) == gdp.delta(2.0)


@pytest.mark.parametrize(("mu", "count"), [(1.0, 1), (5.0, 1), (0.05, 200), (0.01, 10_000)])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12])
def test_transform_of_gaussians_is_above_the_closed_form(mu, count, delta):
    exact = GDPAccountant().compose(GaussianEvent(1 / mu), count)
    pairs = [(gaussian_pair("gaussian", 1.0, mu), count)]
    epsilon = exact.epsilon(delta)
    assert_upper(epsilon_interval(pairs, delta, 1e-4)[1], epsilon, 3e-4)
    assert_upper(delta_interval(pairs, epsilon)[1], delta, 3e-3)


@pytest.mark.parametrize("delta", [1e-5, 1e-12])
def test_many_gaussian_steps(delta):
    """A hundred thousand on the grid; a thousand million by inversion."""
    mu, count = 1e-3, 10**5
    exact = GDPAccountant().compose(GaussianEvent(1 / mu), count).epsilon(delta)
    pairs = [(gaussian_pair("gaussian", 1.0, mu), count)]
    assert_upper(epsilon_interval(pairs, delta, 1e-4)[1], exact, 3e-4)
    exact = GDPAccountant().compose(GaussianEvent(1e5), 10**9).epsilon(delta)
    pairs = [(gaussian_pair("gaussian", 1.0, 1e-5), 10**9)]
    assert_upper(invert_epsilon(pairs, 0.0, delta, 1e-4)[1], exact, 1e-4)


def phi(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def poisson_replace_delta(q, mu, eps):
    """Closed form of one Poisson-sampled step under replace-one."""
    x = (math.asinh(math.sinh(eps / 2) * math.exp(mu**2 / 2) * (1 - q) / q) + eps / 2) / mu
    return (
        (1 - q) * phi(-x) + q * phi(mu - x) - math.exp(eps) * ((1 - q) * phi(-x) + q * phi(-mu - x))
    )


@pytest.mark.parametrize(
    ("q", "mu", "eps", "remove", "add", "replace"),
    [
        (0.01, 1.0, 0.005, 0.002635150845899, 0.0009631443353053, 0.00473592063511),
        (0.01, 1.0, 0.1, 7.290037695761e-5, 0.0, 9.331845682732e-5),
        (0.1, 0.5, 0.05, 0.006907064072234, 0.001545985993919, 0.01913232095152),
        (0.001, 2.0, 0.01, 0.000267105457598, 0.0, 0.0002819610272195),
        (0.02, 1.0, 0.0, 0.007658498450961, 0.007658498450961, 0.01365378984274),
    ],
)
def test_one_sampled_step(q, mu, eps, remove, add, replace):
    event = PoissonSampledEvent(q, GaussianEvent(1 / mu))
    assert_upper(PLDAccountant().compose(event).delta(eps), max(remove, add), 1e-3)
    assert_upper(PLDAccountant("replace-one").compose(event).delta(eps), replace, 1e-3)
    assert poisson_replace_delta(q, mu, eps) == pytest.approx(replace, rel=1e-8)
    for kind, exact in (("remove", remove), ("add", add)):
        value = delta_interval([(gaussian_pair(kind, q, mu), 1)], eps)[1]
        assert_upper(value, exact, 1e-3)


@pytest.mark.parametrize(
    ("b", "n", "mu", "eps", "once", "twice"),
    [
        (1, 10, 1.0, 0.1, 0.0184719306881, 0.036050156115),
        (1, 20, 2.0, 0.2, 0.0192537957072, 0.0380595924037),
        (1, 2, 0.8, 0.3, 0.0758506322409, 0.143769682343),
    ],
)
def test_symmetric_pair_of_fixed_size_sampling(b, n, mu, eps, once, twice):
    event = UniformSampledEvent(b, n, GaussianEvent(2 / mu))
    p = b / n
    unamplified = math.log1p(math.expm1(eps) / p)
    exact = p * (
        phi(mu / 2 - unamplified / mu) - math.exp(unamplified) * phi(-mu / 2 - unamplified / mu)
    )
    assert exact == pytest.approx(once, rel=1e-9)
    assert_upper(PLDAccountant("replace-one").compose(event).delta(eps), once, 1e-3)
    assert_upper(PLDAccountant("replace-one").compose(event, 2).delta(eps), twice, 1e-3)


def test_larger_composed_direction_is_not_a_bound_for_fixed_size_sampling():
    """The adaptive witness: 'remove, then remove or add' beats the larger fixed direction."""
    rate, mu, eps = 0.1, 1.0, 0.1
    directions = [
        delta_interval([(gaussian_pair(kind, rate, mu), 2)], eps)[1] for kind in ("remove", "add")
    ]
    event = UniformSampledEvent(1, 10, GaussianEvent(2 / mu))
    symmetric = PLDAccountant("replace-one").compose(event, 2).delta(eps)
    assert max(directions) == pytest.approx(0.0333396, rel=1e-3)
    assert max(directions) < 0.0346948 < symmetric


@pytest.mark.parametrize(
    ("q", "z", "steps", "poisson", "replace", "uniform"),
    [
        (0.01, 1, 1000, 1.8282436, 2.8434416, 14.8206671),
        (0.01, 2, 1000, 0.6220485, 1.2052014, 2.1989110),
        (0.01, 4, 10_000, 0.9469993, 1.9931386, 2.5615750),
        (0.1, 4, 200, 1.4216740, 2.9366053, 3.7207619),
        (0.02, 8, 5000, 0.6388040, 1.3562877, 1.5210590),
        (0.01, 4, 40_000, 2.033077, 4.377212, 5.681667),
    ],
)
def test_three_ways_of_sampling(q, z, steps, poisson, replace, uniform):
    def epsilon(**how):
        return dpsgd_epsilon(z, q, steps, 1e-5, **how)

    assert epsilon() == pytest.approx(poisson, rel=1e-3)
    assert epsilon(adjacency="replace-one") == pytest.approx(replace, rel=1e-3)
    assert epsilon(adjacency="replace-one", sampling="uniform") == pytest.approx(uniform, rel=1e-3)


SAMPLED_RUNS = [
    (0.01, 0.5, 10, 1e-5),
    (0.01, 0.7, 100, 1e-5),
    (0.02, 1.0, 2000, 1e-6),
    (0.3, 5.0, 300, 1e-8),
]


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("q", "z", "steps", "delta", "adjacency"),
    [
        pytest.param(*run, adjacency, marks=[] if (i + j) % 2 else pytest.mark.oracle)
        for i, run in enumerate(SAMPLED_RUNS)
        for j, adjacency in enumerate(["add-remove", "replace-one"])
    ],
)
def test_against_dp_accounting(q, z, steps, delta, adjacency):
    relation = (
        NeighboringRelation.ADD_OR_REMOVE_ONE
        if adjacency == "add-remove"
        else NeighboringRelation.REPLACE_ONE
    )

    def theirs(pessimistic, interval):
        single = oracle.from_gaussian_mechanism(
            z,
            sampling_prob=q,
            neighboring_relation=relation,
            value_discretization_interval=interval,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        return single.self_compose(steps).get_epsilon_for_delta(delta)

    ours = dpsgd_epsilon(z, q, steps, delta, adjacency=adjacency)
    assert ours >= theirs(False, 5e-4)
    assert ours == pytest.approx(theirs(True, 5e-4 if steps <= 100 else 2e-4), rel=1e-3)


def test_heterogeneous_plan_against_dp_accounting():
    pieces = [
        oracle.from_gaussian_mechanism(2.0, value_discretization_interval=1e-4),
        oracle.from_gaussian_mechanism(
            1.2, sampling_prob=0.05, value_discretization_interval=1e-4
        ).self_compose(30),
        oracle.from_randomized_response(
            2 / (1 + math.exp(0.4)), 2, value_discretization_interval=1e-4
        ).self_compose(2),
    ]
    total = pieces[0].compose(pieces[1]).compose(pieces[2])
    ours = (
        PLDAccountant()
        .compose(GaussianEvent(2.0))
        .compose(PoissonSampledEvent(0.05, GaussianEvent(1.2)), 30)
        .compose(PureDPEvent(0.4), 2)
    )
    for delta in (1e-3, 1e-6, 1e-9):
        assert ours.epsilon(delta) == pytest.approx(total.get_epsilon_for_delta(delta), rel=1e-3)


def test_approximate_dp_adds_its_failure():
    accountant = PLDAccountant().compose(ApproxDPEvent(0.7, 1e-3))
    p = 1 / (1 + math.exp(-0.7))
    for eps in (0.0, 0.3, 0.69):
        exact = 1e-3 + (1 - 1e-3) * p * -math.expm1(eps - 0.7)
        assert_upper(accountant.delta(eps), exact, 1e-3)
    assert accountant.delta(0.7) == pytest.approx(1e-3, rel=1e-9)


@pytest.mark.parametrize("q", [1 - 1e-9, 1 - 1e-6])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_almost_full_batches_tend_to_gaussians(q, adjacency):
    nearly = dpsgd_epsilon(5.0, q, 20, 1e-6, adjacency=adjacency)
    fully = dpsgd_epsilon(5.0, 1.0, 20, 1e-6, adjacency=adjacency)
    assert nearly == pytest.approx(fully, rel=2e-4)


@pytest.mark.slow
def test_rare_sampling_tends_to_one_exposure():
    """With q T far below delta, delta alone pays for the record's being seen at all."""
    assert dpsgd_epsilon(0.5, 1e-9, 1000, 1e-5) == 0.0
    assert dpsgd_epsilon(0.5, 1e-9, 1000, 1e-9) > 0.0
