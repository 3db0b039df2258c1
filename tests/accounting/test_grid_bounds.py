"""The grid from below, and both sides together: where the truth is known, they enclose it."""

import math

import mpmath as mp
import numpy as np
import pytest
from exact_profiles import mixture_delta
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ApproxDPEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
)
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.pld.grid_bounds import (
    Target,
    compose_both,
    delta_interval,
    epsilon_interval,
    event_delta,
    find_crossing,
)
from skdp.accounting.pld.grid_composition import Neglected, compose_from_below, tilt_from_below
from skdp.accounting.pld.grid_estimates import LossEstimate
from skdp.accounting.pld.pairs.base import NodeMasses
from skdp.accounting.pld.pairs.cells import lowered, profile_at_nodes
from skdp.accounting.pld.pairs.discrete import (
    DiscreteLaplacePair,
    RandomisedResponsePair,
    discrete_gaussian_pair,
)
from skdp.accounting.pld.pairs.gaussian import gaussian_pair
from skdp.accounting.pld.pairs.laplace import laplace_pair


def curve(losses, masses, epsilons):
    """Hockey-stick divergence of atoms, at many epsilons."""
    terms = -np.expm1(np.minimum(epsilons[:, None] - losses[None, :], 0.0))
    return terms @ masses


def place_atoms(losses, masses, step, first, size):
    """Put atoms into cells by the definition of connecting dots: keep P and Q masses."""
    nodes = step * (first + np.arange(size))
    falling, rising = np.zeros(size - 1), np.zeros(size - 1)
    for loss, mass in zip(losses, masses, strict=True):
        cell = min(int(np.searchsorted(nodes, loss, side="right")) - 1, size - 2)
        # p_lo + p_hi = p and p_lo / y_lo + p_hi / y_hi = p / y.
        low, high = math.exp(nodes[cell] - loss), math.exp(nodes[cell + 1] - loss)
        up = (1 / low - 1) / (1 / low - 1 / high) * mass
        rising[cell] += up
        falling[cell] += mass - up
    placed = np.append(falling, 0.0) + np.append(0.0, rising)
    return nodes, NodeMasses(placed, 0.0, falling, rising)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(1e-6, 1)), min_size=1, max_size=30),
    st.sampled_from([0.5, 0.21, 0.04]),
    st.booleans(),
)
def test_lowered_curves_are_below_any_atoms(atoms, step, smooth):
    losses = np.array(sorted(loss for loss, _ in atoms))
    masses = np.array([mass for _, mass in atoms])
    if smooth:
        losses = np.concatenate([losses + shift for shift in np.linspace(0.0, 2.0, 60)])
        masses = np.tile(masses, 60)
    # A pair: the masses under Q, e^-l of those under P, must not exceed one in all.
    masses = masses / max(np.sum(masses), np.sum(masses * np.exp(-losses)))
    first = math.floor(losses.min() / step) - 1
    size = math.ceil(losses.max() / step) - first + 2
    nodes, placed = place_atoms(losses, masses, step, first, size)
    below = lowered(step, placed)
    assert np.all(below >= 0.0) and np.all(np.isfinite(below))
    epsilons = np.linspace(nodes[0] - 2.0, nodes[-1] + 0.5, 997)
    exact = curve(losses, masses, epsilons)
    assert np.all(curve(nodes, below, epsilons) <= exact * (1 + 1e-9) + 1e-15)
    assert np.all(curve(nodes, placed.masses, epsilons) >= exact * (1 - 1e-9) - 1e-15)


def test_lowered_curves_keep_what_is_known_at_zero():
    """A narrow pair within one cell on either side of zero reveals at least nothing."""
    losses = np.array([-0.001, 0.0005, 0.0012])
    masses = np.array([0.5, 0.25, 0.25])
    nodes, placed = place_atoms(losses, masses, 0.1, -2, 5)
    assert lowered(0.1, placed)[2:].sum() < 0.1
    kept = lowered(0.1, placed, zero=2)
    epsilons = np.linspace(-0.25, 0.3, 501)
    nothing = -np.expm1(np.minimum(epsilons, 0.0))
    found = curve(nodes, kept, epsilons)
    assert np.all(found <= np.maximum(curve(losses, masses, epsilons), nothing) + 1e-12)
    assert kept[2] > 0.99


def test_atoms_on_nodes_survive():
    masses = np.array([0.2, 0.0, 0.5, 0.3])
    nodes = NodeMasses(masses, 0.0, np.zeros(3), np.zeros(3))
    assert np.array_equal(lowered(0.3, nodes), masses)
    # At the upper end also next to cells that hold something.
    falling, rising = np.array([0.0, 0.01, 0.02]), np.array([0.0, 0.01, 0.02])
    spread = masses + np.append(falling, 0.0) + np.append(0.0, rising)
    kept = lowered(0.3, NodeMasses(spread, 0.0, falling, rising))
    assert kept[-1] >= 0.3 * (1 - 1e-12)


@pytest.mark.parametrize("step", [1e-4, 0.01, 3.0])
def test_profile_at_nodes_in_far_tails(step):
    losses = step * np.arange(400)
    masses = np.exp(-0.5 * np.arange(400) ** 2 / 100.0)
    exact = [math.fsum(m * -math.expm1(x - y) for m, y in zip(masses, losses, strict=True) if y > x)
             for x in losses[::37]]  # fmt: skip
    assert profile_at_nodes(step, masses)[::37] == pytest.approx(exact, rel=1e-11)


def binomial_delta(epsilon, count, target):
    p = 1 / (1 + math.exp(-epsilon))
    return math.fsum(
        math.comb(count, k) * p**k * (1 - p) ** (count - k)
        * -math.expm1(target - (2 * k - count) * epsilon)
        for k in range(count + 1)
        if (2 * k - count) * epsilon > target
    )  # fmt: skip


@pytest.mark.parametrize(("epsilon", "count"), [(0.16, 6), (0.05, 200), (2.4, 1), (3.0, 12)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.8, 0.95])
def test_pure_releases_are_pinched(epsilon, count, share):
    """Kairouz, Oh and Viswanath: the composition is a binomial sum."""
    target = share * epsilon * count
    exact = binomial_delta(epsilon, count, target)
    plan = PLDAccountant().compose(PureDPEvent(epsilon), count)
    lower, upper = plan.delta(target)
    assert lower * (1 - 1e-10) <= exact <= upper * (1 + 1e-10)
    assert upper - lower <= 1e-6 * exact
    if 1e-200 < exact < 0.9:
        low, high = plan.epsilon(exact)
        assert target <= high * (1 + 1e-12) and high <= target + 1e-3 * epsilon * count
        if share > 0:
            assert low * (1 - 1e-12) <= target and high - low <= 1e-6 * high


@pytest.mark.parametrize("step", [1e-2, 0.5, 40.0])
@pytest.mark.parametrize("mu", [25.0, 84.0, 500.0])
def test_losses_beyond_all_exponentials_are_rounded_down_from_below(mu, step):
    """A likelihood ratio of e^700 is no float; a cell of such losses must not end above."""
    pair = gaussian_pair("gaussian", 1.0, mu)
    indices, masses, _ = pair.optimistic_grid(step * mu / 25.0, 1e-12)
    losses = step * mu / 25.0 * indices
    for epsilon in 0.5 * mu * mu + mu * np.linspace(-3.0, 3.0, 13):
        found = float(np.dot(masses, -np.expm1(np.minimum(epsilon - losses, 0.0))))
        assert found <= gaussian_profile.delta(mu, epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("q", [1e-6, 0.3])
def test_profiles_of_replaced_records_at_losses_beyond_all_exponentials(q):
    """There (1-q) N(0) and q N(-mu) vanish against q N(mu), but not their share of the loss."""
    mu = 1000.0
    for x in (996.0, 1000.0, 1003.5):
        epsilon = mu * x - 0.5 * mu * mu + math.log(q / (1 - q))
        # P - e^epsilon Q above x is q (Phi(mu - x) - phi(x - mu) R(x)), with R(x) Mills's ratio.
        tail = 0.5 * math.erfc((x - mu) / math.sqrt(2.0))
        mills = (
            math.exp(-0.5 * (x - mu) ** 2) * (1 / x - 1 / x**3 + 3 / x**5) / math.sqrt(2 * math.pi)
        )
        lower, upper = gaussian_pair("poisson-replace-one", q, mu).profile(epsilon)
        assert lower <= q * (tail - mills) * (1 + 1e-6)
        assert q * (tail - mills) * (1 - 1e-6) <= upper <= lower * (1 + 1e-4)


def test_no_mass_is_lost_next_to_the_largest_loss():
    """Losses within rounding of the largest, log(1 - q), lie at all points up to 0.03 here."""
    pair = laplace_pair("add", 1.9882338829152252e-07, 35.0)
    _, masses, infinite = pair.grid(7.47e-5, 1e-12, aligned=True)
    assert masses.sum() + infinite >= 1 - 1e-12
    assert np.all(np.isfinite(laplace_pair("add", 1e-8, 1000.0).grid(1e-3, 1e-12)[1]))


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 0.69])
def test_the_event_that_some_loss_is_large_costs_no_more_than_the_composition(epsilon):
    """And nearly as much where records hardly ever take part."""
    pairs = [(RandomisedResponsePair(0.7, 1e-6), 1), (laplace_pair("remove", 1e-4, 2.0), 300)]
    below = event_delta(pairs, epsilon)
    assert below <= delta_interval(pairs, epsilon)[1]
    rare = [(gaussian_pair("remove", 1e-7, 5.0), 300)]
    exact = 300 * rare[0][0].profile(0.1)[0]
    assert 0.99 * exact < event_delta(rare, 0.1) < exact


@pytest.mark.parametrize(
    ("kind", "side", "mu", "rate", "delta", "step"),
    [
        ("gaussian", "remove", 8.859561923262278, 1.0, 8.9e-216, 1.1076682240766735),
        ("gaussian", "remove", 0.0024751528829875377, 1.0, 1.9e-122, 2.9484194765873857e-05),
        ("gaussian", "remove", 0.001089988461108417, 1.0, 2.4e-216, 1.7056447054345105e-05),
        (
            "poisson-replace-one",
            "replace",
            0.0010511807064518004,
            0.20443517945623835,
            9.1e-104,
            4e-5,
        ),
        ("remove", "remove", 2.5, 1e-4, 1e-200, 0.03),
    ],
)
def test_nodes_hold_however_far_out_the_tails_are(kind, side, mu, rate, delta, step):
    """Errors of normal tails grow with their exponents; they count where P and Q cancel."""
    bounds = compose_both(Target.at_delta([(gaussian_pair(kind, rate, mu), 1)], delta), step)
    nodes = bounds.upper.indices[bounds.upper.indices * step + bounds.origin >= 0.0]
    for index in nodes[:: max(1, nodes.size // 70)]:
        epsilon = bounds.origin + float(index) * step
        truth = mixture_delta("gaussian", side, rate, mu, epsilon)
        if truth > 1e-290:
            assert bounds.delta_from_below(epsilon) <= truth <= bounds.delta_from_above(epsilon)


def test_weights_below_normal_floats_prove_nothing():
    pair = laplace_pair("add", 0.5626169188903574, 79.48771381345493)
    bounds = compose_both(Target.at_delta([(pair, 1)], 2.54e-208), 0.01946765218623918)
    for epsilon in np.linspace(0.09, 0.13, 120):
        truth = mixture_delta("laplace", "add", pair.rate, pair.shift, epsilon)
        assert bounds.delta_from_below(epsilon) <= truth


def test_no_epsilon_is_below_a_largest_loss_that_is_met_more_often():
    draw = np.random.default_rng(7)
    for _ in range(150):
        rate, noise = 10.0 ** draw.uniform(-4, 0), 10.0 ** draw.uniform(-2, 2)
        accountant = PLDAccountant().compose(PoissonSampledEvent(rate, LaplaceEvent(noise)))
        with mp.workdps(60):
            largest = mp.log1p(mp.mpf(rate) * mp.expm1(1 / mp.mpf(noise)))
            assert mp.mpf(accountant.epsilon(1e-170)) >= largest - mp.mpf(10) ** -50


@pytest.mark.parametrize("log_shift", [-3, -1, 0.5, 1.5])
def test_profiles_of_sampled_laplace_noise_up_to_their_largest_loss(log_shift):
    draw = np.random.default_rng(3)
    for kind in ("remove", "add"):
        for _ in range(10):
            rate = 10.0 ** draw.uniform(-8, 0)
            pair = laplace_pair(kind, rate, 10.0 ** (log_shift + draw.uniform(0, 0.3)))
            for share in (0.3, 1 - 1e-9, 1 - 3e-15, math.nextafter(1.0, 0.0)):
                epsilon = share * pair.largest_loss
                truth = mixture_delta("laplace", kind, rate, pair.shift, epsilon)
                lower, upper = pair.profile(epsilon)
                assert 0.0 <= lower <= truth <= upper


def test_failures_are_kept_from_below():
    plan = PLDAccountant().compose(ApproxDPEvent(0.7, 1e-3), 2)
    p = 1 / (1 + math.exp(-0.7))
    failure = 1 - (1 - 1e-3) ** 2
    for eps in (0.2, 0.9):
        finite = p * p * -math.expm1(eps - 1.4)
        exact = failure + (1 - failure) * finite
        lower, upper = plan.delta(eps)
        assert exact * (1 - 1e-6) <= lower <= exact * (1 + 1e-10) and exact <= upper * (1 + 1e-10)
    lower, upper = plan.epsilon(1e-6)
    assert lower == upper == math.inf


@pytest.mark.parametrize(("mu", "count"), [(1.0, 1), (0.25, 16), (0.1, 256), (3.0, 2)])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-10, 1e-15])
def test_gaussians_are_enclosed(mu, count, delta):
    exact = gaussian_profile.epsilon(mu * math.sqrt(count), delta)
    pairs = [(gaussian_pair("gaussian", 1.0, mu), count)]
    lower, upper = epsilon_interval(pairs, delta)
    assert lower <= exact and exact * (1 - 1e-9) <= upper
    assert upper - lower <= 1e-3 * exact
    lower, upper = delta_interval(pairs, exact)
    assert lower * (1 - 1e-8) <= delta and delta * (1 - 1e-8) <= upper
    assert upper - lower <= 2e-3 * delta


@pytest.mark.parametrize("rtol", [1e-3, 1e-4, 1e-5])
def test_tolerance_is_met(rtol):
    pairs = [
        (laplace_pair("laplace", 1.0, 0.7), 5),
        (discrete_gaussian_pair(1, 2.0), 4),
        (RandomisedResponsePair(0.3), 5),
    ]
    for delta in (1e-2, 1e-6, 1e-12):
        lower, upper = epsilon_interval(pairs, delta, rtol)
        assert 0.0 < lower <= upper <= lower * (1 + rtol)


@pytest.mark.parametrize("size", [48, 128, 512])
def test_short_windows_still_give_lower_bounds(size):
    """Weight that does not fit reappears in the window, and must not count."""
    mu, count, step = 0.5, 64, 0.02
    pair = gaussian_pair("gaussian", 1.0, mu)
    estimate = LossEstimate([(pair, count)], 1e-20)
    indices, masses, _ = pair.optimistic_grid(step, 1e-20)
    for tilt in (0.0, 0.5, 2.0):
        part = tilt_from_below(indices, masses, step, tilt)
        tails = math.log(1e-12), math.log(1e-9)
        neglected = Neglected(estimate.window(tilt, *tails), *tails, size)
        loss = compose_from_below([(part, count)], 0.0, neglected)
        for epsilon in (0.0, 2.0, 6.0, 12.0, 20.0):
            exact = gaussian_profile.delta(mu * math.sqrt(count), epsilon)
            assert loss.delta_from_below(epsilon) <= exact


def test_bounds_hold_for_any_tilt():
    pairs = [(RandomisedResponsePair(0.4), 30)]
    exact = binomial_delta(0.4, 30, 3.0)
    for tilt in (0.0, 0.3, 3.0, 20.0):
        bounds = compose_both(Target(pairs, 1e-6, tilt), pairs[0][0].lattice)
        lower, upper = bounds.delta(3.0)
        assert lower * (1 - 1e-10) <= exact <= upper * (1 + 1e-10)


def shifted_profile(shift, rate, epsilon):
    """Profile of Laplace noise, sampled with a rate and removed, at any real epsilons."""
    ratio = np.maximum(1.0 + np.expm1(epsilon) / rate, 1e-300)
    inner = np.log(ratio)
    middle = -rate * np.expm1(np.minimum((inner - shift) / 2, 0.0))
    return np.where(inner > -shift, middle, -np.expm1(epsilon))


ATOMS = [
    [(RandomisedResponsePair(0.3), 5), (RandomisedResponsePair(0.7123), 3)],
    [(RandomisedResponsePair(1e-3), 7), (DiscreteLaplacePair(4, 1.1), 3)],
    [(discrete_gaussian_pair(1, 1.3), 2), (RandomisedResponsePair(0.0123), 9)],
]
NOISES = [None, ("laplace", 1.0, 0.7), ("laplace", 1.0, 0.01), ("remove", 0.2, 1.5)]


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("atomic", "noise"),
    [
        pytest.param(atomic, noise, marks=[] if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, atomic in enumerate(ATOMS)
        for j, noise in enumerate(NOISES)
    ],
)
def test_atoms_that_share_no_grid(atomic, noise):
    """The truth by listing all sums of losses, with the profile of at most one other release."""
    losses, masses = np.zeros(1), np.ones(1)
    for pair, count in atomic:
        numbers, p, _ = pair.atoms(1e-40)
        for _ in range(count):
            sums = np.round(losses[:, None] + pair.origin + pair.lattice * numbers, 13)
            losses, where = np.unique(sums, return_inverse=True)
            masses = np.bincount(where.ravel(), (masses[:, None] * p).ravel())
    pairs = list(atomic)
    if noise is not None:
        pairs.append((laplace_pair(*noise), 1))
    for epsilon in (0.05, 0.8, 1.9, 3.0):
        if noise is None:
            exact = float(np.dot(masses, -np.expm1(np.minimum(epsilon - losses, 0.0))))
        else:
            exact = float(np.dot(masses, shifted_profile(noise[2], noise[1], epsilon - losses)))
        lower, upper = delta_interval(pairs, epsilon)
        assert lower * (1 - 1e-9) <= exact <= upper * (1 + 1e-9) + 1e-30
        assert upper - lower <= 0.02 * exact
        if exact > 1e-12:
            low, high = epsilon_interval(pairs, exact)
            assert low * (1 - 1e-10) <= epsilon <= high * (1 + 1e-10)
            assert high - low <= 1e-2 * epsilon


def test_a_single_release_is_a_lower_bound():
    heavy, light = RandomisedResponsePair(3.0), laplace_pair("laplace", 1.0, 1e-3)
    alone, _ = find_crossing(
        lambda e: event_delta([(light, 5), (heavy, 1)], e) - 1e-3, 1.0, 1e6, 1e-14
    )
    p = 1 / (1 + math.exp(-3.0))
    assert p * -math.expm1(alone - 3.0) == pytest.approx(1e-3, rel=1e-9)


EVENTS = st.one_of(
    st.builds(LaplaceEvent, st.floats(0.2, 1e4)),
    st.builds(DiscreteGaussianEvent, st.floats(0.2, 200.0), st.integers(1, 9)),
    st.builds(DiscreteLaplaceEvent, st.floats(0.2, 1e4), st.integers(1, 9)),
    st.builds(PureDPEvent, st.floats(0.0, 4.0)),
    st.builds(ApproxDPEvent, st.floats(0.0, 2.0), st.floats(0.0, 1e-3)),
    st.builds(GaussianEvent, st.floats(0.2, 1e4)),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(EVENTS, st.integers(1, 80)), min_size=1, max_size=3),
    st.floats(-15, -0.5),
    st.floats(0.0, 1.2),
)
def test_intervals_are_intervals(parts, log_delta, share):
    plan = PLDAccountant()
    for event, count in parts:
        plan.compose(event, count)
    delta = 10.0**log_delta
    lower, upper = plan.epsilon(delta)
    assert 0.0 <= lower <= upper
    target = share * upper if math.isfinite(upper) else 1.0
    low, high = plan.delta(target)
    assert 0.0 <= low <= high <= 1.0
    # The truth is monotone, so that bounds on it cannot contradict each other.
    if target < lower * (1 - 1e-9):
        assert high >= delta * (1 - 1e-9)
    if target > upper * (1 + 1e-9):
        assert low <= delta * (1 + 1e-9)


@pytest.mark.parametrize("factor", [1.0, 1.01, 1.1])
def test_epsilon_is_zero_where_delta_needs_none(factor):
    accountant = PLDAccountant("add-remove")
    accountant.compose(PoissonSampledEvent(0.3, GaussianEvent(0.5)), 2)
    delta = accountant.delta(0.0).upper
    assert accountant.epsilon(min(0.999, 1.001 * factor * delta)).upper < 1e-6
