"""The best of a random number of runs: against exact finite mechanisms and published values."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from skdp.accounting import (
    ApproxDPEvent,
    BasicCompositionAccountant,
    ComposedEvent,
    GaussianEvent,
    GDPAccountant,
    LaplaceEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.analysis import analysis_of
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.counts import StoppingNumber, gamma_of_mean, mean_of_gamma
from skdp.accounting.pld.curves import ProfileCurve, profile_curve
from skdp.accounting.releases.selection import SelectionProfile
from skdp.exceptions import UnsupportedEventError

# One Gaussian run of parameter mu; shape, mean, gamma; epsilon at delta = 1e-6 by Renyi divergences
# on a fine grid of orders, and by the one-parameter profile bound on a grid of its parameter.
TABLE = [
    (0.25, 0.0, 10.0, 0.02691826, 1.901796, 1.729347),
    (0.25, 1.0, 10.0, 0.1, 2.271319, 1.983239),
    (0.25, 1.0, 50.0, 0.02, 2.673460, 2.411738),
    (0.5, 0.0, 10.0, 0.02691826, 3.868399, 3.531416),
    (0.5, 0.5, 10.0, 0.0625, 4.227582, 3.788467),
    (0.5, 1.0, 50.0, 0.02, 5.345833, 4.838109),
    (1.0, 0.0, 10.0, 0.02691826, 7.859735, 7.220870),
    (1.0, 1.0, 50.0, 0.02, 10.558627, 9.613090),
]
SHAPES = (-0.9, -0.5, 0.0, 0.5, 1.0, 4.0, math.inf)


def generating_function(number, x):
    """E[x^K], and what no run at all contributes is taken off."""
    if math.isinf(number.shape):
        return np.exp(-number.mean * (1.0 - x)) - math.exp(-number.mean)
    eta, gamma = number.shape, number.gamma
    base = 1.0 - (1.0 - gamma) * x
    if eta == 0.0:
        return np.log(base) / math.log(gamma)
    return (base**-eta - 1.0) / (gamma**-eta - 1.0)


def best_of(number, q):
    """Distribution of the best outcome; the last one is the best."""
    return np.diff(generating_function(number, np.append(0.0, np.minimum(np.cumsum(q), 1.0))))


def divergence(p, q, epsilon):
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))


def exact_curve(p, q):
    """The larger profile of both orders, with its kinks: linear in e^epsilon between them."""
    with np.errstate(divide="ignore"):
        losses = np.abs(np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(q, 1e-300)))
    nodes = np.unique(np.append(losses[losses < 600.0], [0.0, 600.0]))
    # Crossings of the two orders' profiles lie above the chord of their larger one: a bound still.
    values = [max(divergence(p, q, e), divergence(q, p, e)) for e in nodes]
    return ProfileCurve(nodes, np.array(values))


def random_pair(rng, size):
    kind = rng.integers(4)
    p, q = rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 1.0, 5.0])), 2)
    if kind == 1:  # close to each other
        q = p * np.exp(rng.uniform(0.05, 1.0) * rng.uniform(-1.0, 1.0, size))
        q /= q.sum()
    if kind == 2:  # the most telling outcome is the best, or the worst
        order = np.argsort(p / np.maximum(q, 1e-12))
        order = order if rng.integers(2) else order[::-1]
        p, q = p[order], q[order]
    if kind == 3:  # an outcome that gives all away, and it is the best
        share = 10.0 ** rng.uniform(-6.0, -1.0)
        p, q = np.append(p * (1.0 - share), share), np.append(q, 0.0)
    return p, q


def test_exact_finite_mechanisms_stay_below_the_bound():
    rng = np.random.default_rng(0)
    largest, unshifted = 0.0, 0
    for _ in range(250):
        p, q = random_pair(rng, int(rng.integers(2, 7)))
        shape = float(rng.choice(SHAPES))
        number = StoppingNumber(float(1.0 + 10.0 ** rng.uniform(-2.0, 2.0)), shape)
        curve = exact_curve(p, q)
        bound = SelectionProfile(curve, number)
        best, other = best_of(number, p), best_of(number, q)
        for epsilon in rng.uniform(0.0, 4.0, 6):
            true = max(divergence(best, other, epsilon), divergence(other, best, epsilon))
            # The rounding of the generating functions.
            assert true <= bound(epsilon) * (1.0 + 1e-9) + 1e-14
            if true > 1e-9:
                largest = max(largest, true / bound(epsilon))
                # A union bound alone, without the shift of epsilon, is no bound.
                unshifted += true > number.mean * float(curve(np.array([epsilon]))[0]) * 1.001
    assert largest > 0.8
    assert unshifted > 20


def test_atoms_and_their_split_into_ties_have_the_same_bound():
    # A tie broken by a coin is an outcome split in two of equal loss.
    number = StoppingNumber(8.0, 0.0)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.25, 0.35])
    split = np.array([0, 0, 1, 2, 2])
    weights = np.array([0.3, 0.7, 1.0, 0.5, 0.5])
    coarse = best_of(number, p), best_of(number, q)
    fine = best_of(number, p[split] * weights), best_of(number, q[split] * weights)
    bound = SelectionProfile(exact_curve(p, q), number)
    for epsilon in np.linspace(0.0, 1.5, 12):
        assert divergence(*coarse, epsilon) <= divergence(*fine, epsilon) + 1e-15
        assert divergence(*fine, epsilon) <= bound(epsilon) + 1e-15


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("mu", "shape", "mean", "gamma", "renyi", "simple"),
    [*TABLE[::2], *(pytest.param(*row, marks=pytest.mark.slow) for row in TABLE[1::2])],
)
def test_published_values(mu, shape, mean, gamma, renyi, simple):
    event = RepeatAndSelectEvent(GaussianEvent(1.0 / mu), mean, shape)
    number = StoppingNumber(mean, shape)
    assert number.gamma == pytest.approx(gamma, rel=1e-6)
    rest = 1.0 / number.gamma - 1.0
    found = minimize_scalar(
        lambda e: math.log(math.exp(e) + rest * gaussian_profile.delta(mu, e)),
        bounds=(0.0, 8.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    reference = gaussian_profile.epsilon(mu, 1e-6 / mean) + (1.0 + shape) * found.fun
    # The printed values minimised over a grid, which leaves them up to 1e-4 above.
    assert simple * (1.0 - 2e-4) <= reference <= simple * (1.0 + 1e-6)
    epsilon = PLDAccountant().compose(event).epsilon(1e-6)
    assert gaussian_profile.epsilon(mu, 1e-6) < epsilon < reference
    assert RDPAccountant().compose(event).epsilon(1e-6) == pytest.approx(renyi, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.25, 1.0])
@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, math.inf])
def test_gaussian_runs_whose_best_is_the_most_telling(mu, shape):
    """The true cost where the best output is the largest: below the bound, and not far."""
    number = StoppingNumber(10.0, shape)
    x = np.linspace(-14.0, 14.0 + mu, 400_001)
    cells = []
    for shift in (0.0, mu):
        q = np.diff(0.5 * np.array([math.erfc(-(y - shift) / math.sqrt(2.0)) for y in x]))
        cells.append(best_of(number, q / q.sum()))
    event = RepeatAndSelectEvent(GaussianEvent(1.0 / mu), 10.0, shape)
    accountant = PLDAccountant().compose(event)
    for epsilon in (0.0, mu, 2.0 * mu, 4.0 * mu):
        true = max(divergence(*cells, epsilon), divergence(*cells[::-1], epsilon))
        assert true <= accountant.delta(epsilon) + 1e-10  # rounding of that many cells
    target = max(divergence(*cells, mu * 4.0), divergence(*cells[::-1], mu * 4.0))
    assert 4.0 * mu <= accountant.epsilon(target) <= 4.0 * mu * 2.2


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 3.0, 40.0])
def test_pure_runs(shape, epsilon):
    number = StoppingNumber(7.0, shape)
    event = RepeatAndSelectEvent(PureDPEvent(epsilon), 7.0, shape)
    accountant = PLDAccountant().compose(event)
    pure = accountant.epsilon(0.0)
    if math.isfinite(shape):
        assert pure <= (2.0 + shape) * epsilon * (1.0 + 1e-9)
    # Attained, up to how often the best is first: answers of which the best lies.
    lie = 1.0 / (1.0 + math.exp(epsilon))
    weights = number.weight(np.array([lie, 1.0 - lie]))
    assert pure == pytest.approx(epsilon + math.log(weights[0] / weights[1]), rel=1e-6)
    assert accountant.epsilon(1e-12) <= pure
    assert accountant.delta(pure) == 0.0
    basic = BasicCompositionAccountant().compose(event, 2)
    assert basic.epsilon(0.0) == pytest.approx(2.0 * pure)


def test_one_run_is_the_run_itself():
    for shape in (-0.5, 0.0, 2.0):
        event = RepeatAndSelectEvent(GaussianEvent(2.0), 1.0, shape)
        assert PLDAccountant().compose(event).epsilon(1e-6) == pytest.approx(
            GDPAccountant().compose(GaussianEvent(2.0)).epsilon(1e-6), rel=1e-4
        )


@pytest.mark.slow
def test_more_runs_and_larger_shapes_cost_more():
    def cost(mean, shape):
        event = RepeatAndSelectEvent(GaussianEvent(3.0), mean, shape)
        return PLDAccountant().compose(event).epsilon(1e-6)

    assert cost(2, 0) < cost(5, 0) < cost(50, 0)
    assert cost(10, -0.5) < cost(10, 0) < cost(10, 1) < cost(10, 5) < cost(10, math.inf)
    # Many attempts, each rarely successful, are nearly Poisson.
    assert cost(10, 1e4) == pytest.approx(cost(10, math.inf), rel=0.02)


def test_poisson_renyi_counts_no_run_at_all():
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.3, 0.5, 0.2])
    number = StoppingNumber(0.3, math.inf)
    none = math.exp(-0.3)
    best, other = (np.append(best_of(number, x), none) for x in (p, q))
    epsilon = math.log(1.5)
    event = RepeatAndSelectEvent(PureDPEvent(epsilon), 0.3, math.inf)
    accountant = RDPAccountant().compose(event)
    for order in (1.5, 2.0, 8.0):
        true = math.log(float(np.sum(best**order * other ** (1.0 - order))))
        assert 0.0 < true <= accountant.log_moment(order)


def test_renyi_divergences_of_finite_mechanisms():
    rng = np.random.default_rng(1)
    epsilon = 0.7
    up = np.array([math.exp(epsilon), 1.0]) / (1.0 + math.exp(epsilon))
    for _ in range(40):
        shape, mean = float(rng.choice(SHAPES)), float(rng.uniform(1.1, 30.0))
        number = StoppingNumber(mean, shape)
        event = RepeatAndSelectEvent(PureDPEvent(epsilon), mean, shape)
        accountant = RDPAccountant().compose(event)
        none = math.exp(-mean) if math.isinf(shape) else 0.0
        p, q = (np.append(best_of(number, x), none) for x in (up, up[::-1]))
        kept = p > 0.0
        for order in (1.2, 3.0, 20.0):
            true = math.log(float(np.sum(p[kept] ** order * q[kept] ** (1.0 - order))))
            assert true <= accountant.log_moment(order) * (1.0 + 1e-12)


STEP = PoissonSampledEvent(0.02, GaussianEvent(1.1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "run",
    [
        RepeatedEvent(STEP, 500),
        ComposedEvent((RepeatedEvent(STEP, 30), GaussianEvent(4.0), PureDPEvent(0.1))),
        ComposedEvent((RepeatedEvent(UniformSampledEvent(5, 500, GaussianEvent(1.0)), 200),)),
        RepeatedEvent(LaplaceEvent(3.0), 5),
        ApproxDPEvent(0.3, 1e-9),
        RepeatAndSelectEvent(GaussianEvent(5.0), 3, 0),
    ],
)
def test_composed_runs(run):
    adjacency = "replace-one"
    alone = PLDAccountant(adjacency).compose(run)
    curve = profile_curve(run, adjacency)
    for delta in (0.1, 1e-3, 1e-6, 1e-9):
        epsilon = alone.epsilon(delta)
        # The table bounds the profile: never below the proved lower bound, nor far above.
        value = float(curve(np.array([float(epsilon)]))[0])
        assert alone.delta(epsilon).lower <= value <= delta * 1.02
    event = RepeatAndSelectEvent(run, 10, 0)
    accountant = PLDAccountant(adjacency).compose(event)
    simple = simple_bound(curve, StoppingNumber(10.0, 0.0))
    for delta in (1e-4, 1e-6):
        epsilon = accountant.epsilon(delta)
        assert alone.epsilon(delta) < epsilon <= simple + alone.epsilon(delta / 10.0) * 1.001
        assert accountant.delta(epsilon) <= delta
    twice = PLDAccountant(adjacency).compose(event, 2)
    assert accountant.epsilon(1e-6) < twice.epsilon(1e-6) < 2.001 * accountant.epsilon(5e-7)


def simple_bound(curve, number):
    """Least of (1 + eta) log(e^e + (1/gamma - 1) delta(e))."""
    e = np.linspace(0.0, 30.0, 30_001)
    terms = np.exp(e) + (1.0 / number.gamma - 1.0) * curve(e)
    return (1.0 + number.shape) * math.log(float(np.min(terms)))


def test_curves_are_symmetric_and_convex():
    curve = profile_curve(GaussianEvent(1.0), "add-remove")
    epsilon = np.linspace(-6.0, 8.0, 141)
    exact = [gaussian_profile.delta(1.0, abs(e)) for e in epsilon]
    exact = np.where(epsilon < 0.0, 1 - np.exp(epsilon) + np.exp(epsilon) * exact, exact)
    assert np.all(curve(epsilon) >= exact * (1.0 - 1e-12))
    assert np.all(curve(epsilon) <= exact * np.where(exact > 1e-13, 1.001, 1.1))
    assert np.all(np.diff(curve(epsilon)) <= 0.0)
    assert ProfileCurve(np.zeros(0), np.zeros(0))(np.array([-1.0, 0.0, 3.0])).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("mean", "shape", "match"),
    [
        (0.5, 0.0, "mean must be a finite number >= 1"),
        (0.0, math.inf, "mean must be a finite number > 0"),
        (math.inf, 1.0, "mean must be a finite"),
        (math.nan, 1.0, "mean must be a finite"),
        (2.0, -1.0, "shape must exceed -1"),
        (2.0, math.nan, "shape must exceed -1"),
        (1e300, -0.99, "too large for shape"),
    ],
)
def test_parameters_are_validated(mean, shape, match):
    with pytest.raises(ValueError, match=match):
        RepeatAndSelectEvent(GaussianEvent(1.0), mean, shape)


def test_others_refuse_by_name():
    event = RepeatAndSelectEvent(GaussianEvent(1.0), 5, 0)
    with pytest.raises(UnsupportedEventError, match=r"RepeatAndSelectEvent.*PLDAccountant has one"):
        GDPAccountant().compose(event)
    with pytest.raises(UnsupportedEventError, match="ApproxDPEvent"):
        RDPAccountant().compose(RepeatAndSelectEvent(ApproxDPEvent(0.1, 1e-6), 5, 0))
    sampled = RepeatAndSelectEvent(UniformSampledEvent(1, 9, GaussianEvent(1.0)), 5, 0)
    assert not PLDAccountant("add-remove").supports(sampled)
    assert PLDAccountant("replace-one").supports(sampled)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    mu=st.floats(1e-3, 20.0),
    log_mean=st.floats(0.0, 12.0),
    shape=st.floats(-0.8, 1e3) | st.just(math.inf),
    delta=st.floats(1e-15, 0.5),
)
def test_any_parameters_give_a_bound_above_one_run(mu, log_mean, shape, delta):
    event = RepeatAndSelectEvent(GaussianEvent(1.0 / mu), math.exp(log_mean), shape)
    accountant = PLDAccountant().compose(event)
    epsilon = accountant.epsilon(delta)
    assert epsilon >= gaussian_profile.epsilon(mu, min(delta * 1.001, 0.999)) * (1.0 - 1e-6)
    if math.isfinite(epsilon):
        assert accountant.delta(epsilon) <= delta * (1.0 + 1e-9)


@settings(max_examples=200, deadline=None)
@given(log_mean=st.floats(1e-9, 14.0), shape=st.floats(-0.9, 1e4))
def test_gamma_and_mean_are_inverse(log_mean, shape):
    mean = math.exp(log_mean)
    gamma = gamma_of_mean(mean, shape)
    assert 0.0 < gamma <= 1.0
    assert mean_of_gamma(gamma, shape) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize(
    "event",
    [
        RepeatAndSelectEvent(GaussianEvent(1.0), 10.0, 1.0),
        RepeatAndSelectEvent(PureDPEvent(0.5), 10.0, 1.0),
    ],
)
def test_the_profile_of_a_part_is_at_most_that_of_the_whole(event):
    """Profiles are convex in e^epsilon: what a bound lacks to that is taken off alone, too."""
    card = analysis_of(event, "replace-one")
    alone = PLDAccountant("replace-one").compose(event)
    twice = PLDAccountant("replace-one").compose(event, 2)
    more = PLDAccountant("replace-one").compose(event).compose(GaussianEvent(30.0))
    values = []
    for epsilon in (0.0, 0.05, 0.3, 1.0, 2.0):
        value = float(alone.delta(epsilon))
        assert value <= card.profile(epsilon)
        for whole in (twice, more):
            assert value <= float(whole.delta(epsilon)) * (1.0 + 1e-6)
        values.append((math.exp(epsilon), value))
    assert values[0][1] < 0.96 < card.profile(0.0)
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(values)]
    assert slopes[0] >= -1.0 and all(a <= b + 1e-9 for a, b in pairwise(slopes))
