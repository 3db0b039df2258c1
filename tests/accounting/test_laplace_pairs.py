"""Laplace releases, bare and sampled, against quadrature of their definitions."""

import math

import mpmath as mp
import numpy as np
import pytest
from ball_moments import laplace_moment, precision
from covering import pairs as covered
from dp_accounting.pld import privacy_loss_distribution as oracle
from flint import arb

from skdp.accounting import LaplaceEvent, PLDAccountant, PoissonSampledEvent, RDPAccountant
from skdp.accounting.pld.grid_bounds import delta_interval, epsilon_interval
from skdp.accounting.pld.inversion_bounds import invert_delta, invert_epsilon
from skdp.accounting.pld.pairs.laplace import laplace_pair

ADJACENCIES = ("add-remove", "replace-one")
CASES = [
    ("laplace", 1.0, 0.5),
    ("laplace", 1.0, 5.0),
    ("laplace", 1.0, 1e-3),
    ("remove", 0.1, 2.0),
    ("remove", 1e-5, 0.3),
    ("add", 0.1, 2.0),
    ("add", 0.6, 0.4),
    ("poisson-replace-one", 0.1, 2.0),
    ("poisson-replace-one", 0.7, 0.3),
]


def densities(kind, rate, shift):
    """P and Q at x, by definition."""

    def laplace(x, at):
        return mp.exp(-abs(x - at)) / 2

    def mixture(x, at):
        return (1 - rate) * laplace(x, 0) + rate * laplace(x, at)

    if kind == "add":
        return lambda x: laplace(x, 0), lambda x: mixture(x, shift)
    if kind == "poisson-replace-one":
        return lambda x: mixture(x, shift), lambda x: mixture(x, -shift)
    return lambda x: mixture(x, shift), lambda x: laplace(x, 0)


def integral(function, shift):
    points = [-80, -shift, 0, shift, 80]  # where the densities have kinks
    return mp.quad(function, sorted(set(points)))


def exact_delta(kind, rate, shift, epsilon):
    """The hockey-stick divergence: bisect for where the loss crosses, and integrate there."""
    p, q = densities(kind, mp.mpf(rate), mp.mpf(shift))
    loss = lambda x: mp.log(p(x) / q(x)) - epsilon  # noqa: E731
    sign = -1 if kind == "add" else 1
    low, high = -mp.mpf(shift), mp.mpf(shift)
    if loss(sign * high) <= 0:
        return mp.mpf(0)
    if loss(sign * low) > 0:
        low = -mp.mpf(80)
    for _ in range(160):
        middle = (low + high) / 2
        low, high = (low, middle) if loss(sign * middle) > 0 else (middle, high)
    points = sorted({sign * high, *(x for x in (0, sign * mp.mpf(shift)) if sign * x > high)})
    points = sorted([*points, sign * mp.mpf(80)])
    return mp.quad(lambda x: p(x) - mp.exp(epsilon) * q(x), points)


def on_grid(indices, masses, infinite, step, origin, epsilon):
    losses = origin + step * indices
    above = losses > epsilon
    return infinite + float(np.dot(masses[above], -np.expm1(epsilon - losses[above])))


@pytest.mark.daily(3)
@pytest.mark.parametrize(("kind", "rate", "shift"), CASES)
def test_one_release_against_its_definition(kind, rate, shift):
    pair = laplace_pair(kind, rate, shift)
    with mp.workdps(30):
        for share in (0.0, 0.1, 0.45, 0.8, 0.97):
            epsilon = share * pair.largest_loss
            exact = float(exact_delta(kind, rate, shift, epsilon))
            lower, upper = pair.profile(epsilon)
            assert lower <= exact * (1 + 1e-15) and exact <= upper * (1 + 1e-15)
            assert upper - lower <= 1e-10 * exact
            if share == 0.0:
                assert exact <= pair.variation <= exact * (1 + 1e-12)
            low, high = delta_interval([(pair, 1)], epsilon)
            assert low <= exact * (1 + 1e-13) and exact <= high * (1 + 1e-13)
            assert high - low <= 2e-3 * exact
    assert pair.profile(pair.largest_loss) == (0.0, 0.0)


@pytest.mark.parametrize(("kind", "rate", "shift"), CASES)
@pytest.mark.parametrize("aligned", [True, False])
def test_grids_enclose_the_pair_to_second_order(kind, rate, shift, aligned):
    pair = laplace_pair(kind, rate, shift)
    origin = pair.origin if aligned else 0.0
    gaps = []
    for cells in (32, 128):
        step = pair.lattice / cells
        upper = pair.grid(step, 1e-30, aligned)
        lower = pair.optimistic_grid(step, 1e-30, aligned)
        widest = 0.0
        for epsilon in np.linspace(0.0, 0.7 * pair.largest_loss, 23):
            exact = pair.profile(epsilon)
            above = on_grid(*upper, step, origin, epsilon)
            below = on_grid(*lower, step, origin, epsilon)
            rounding = 1e-11 * exact[1]
            assert below <= exact[1] + rounding and exact[0] <= above + rounding
            widest = max(widest, (above - below) / exact[1])
        gaps.append(widest)
        assert np.all(lower[1] >= 0.0) and np.all(upper[1] >= 0.0)
        assert math.fsum(upper[1]) == pytest.approx(1.0, abs=1e-12)
    if aligned:
        assert gaps[1] <= gaps[0] / 8.0 and gaps[1] < 2e-2


@pytest.mark.parametrize("kind", ["laplace", "remove", "add", "poisson-replace-one"])
@pytest.mark.parametrize("shift", [60.0, 237.78, 900.0])
@pytest.mark.parametrize("cells", [3, 8, 24, 64])
def test_grids_from_below_hold_in_cells_of_any_length(kind, shift, cells):
    """In cells of 80 nats rounding once hid that a curve falls inside."""
    rate = 1.0 if kind == "laplace" else 0.3
    pair = laplace_pair(kind, rate, shift)
    step = pair.lattice / cells
    lower = pair.optimistic_grid(step, 0.0, aligned=True)
    for epsilon in pair.largest_loss - step * np.array([0.02, 0.3, 0.9, 1.5, 2.2]):
        below = on_grid(*lower, step, pair.origin, epsilon)
        exact = pair.profile(epsilon)[1]
        assert below <= exact * (1 + 1e-12)
        if kind == "laplace" and epsilon >= 0.0:
            assert exact == pytest.approx(-math.expm1(0.5 * (epsilon - shift)), rel=1e-9)


@pytest.mark.parametrize(("kind", "rate", "shift"), [CASES[3], CASES[5], CASES[6], CASES[8]])
def test_grids_from_below_hold_at_the_smallest_losses(kind, rate, shift):
    pair = laplace_pair(kind, rate, shift)
    step, start = pair.lattice / 8, pair.span(0.0)[0]
    lower = pair.optimistic_grid(step, 0.0, aligned=True)
    assert math.fsum(lower[1]) == pytest.approx(1.0, abs=1e-12)
    with mp.workdps(30):
        for share in (0.05, 0.2, 0.5, 0.8, 0.95):
            epsilon = start + share * step
            below = on_grid(*lower, step, pair.origin, epsilon)
            exact = float(exact_delta(kind, rate, shift, epsilon))
            assert below <= exact * (1 + 1e-12)
            assert below >= exact - 0.2 * rate


@pytest.mark.parametrize(
    ("case", "theta", "goal"), covered(CASES, [0.4, 30.0], [(0.0, 1e-5), (1e-9, 2e-7)])
)
def test_lists_enclose_moments(case, theta, goal):
    (kind, rate, shift), (tail, gap) = case, goal
    above, below = (
        loss.log_transform(np.array([complex(theta)]))
        for loss in laplace_pair(kind, rate, shift).transforms(tail)
    )
    with precision(160):
        exact = laplace_moment(kind, rate, shift, complex(theta)).log().real
        upper, lower = arb(above[0][0].real), arb(below[0][0].real)
        assert lower - arb(below[1][0]) <= exact <= upper + arb(above[1][0])
        # Also relative to what the release adds, which is multiplied by large counts.
        assert upper - lower <= gap * exact + arb(1e-13)


@pytest.mark.parametrize(("kind", "rate", "shift"), CASES)
def test_coarse_lists_bound_compositions_from_either_side(kind, rate, shift, monkeypatch):
    monkeypatch.setattr("skdp.accounting.pld.pairs.laplace._LISTED", (12, 12))
    pairs, delta = [(laplace_pair(kind, rate, shift), 40)], 1e-3 * min(rate, 1e-3)
    low, high = epsilon_interval(pairs, delta, 1e-5)
    lower, upper = invert_epsilon(pairs, 0.0, delta, 1e-3)
    assert 0.0 < lower < low <= high < upper < 1.2 * high
    found, (least, most) = invert_delta(pairs, 0.0, high, 1e-3), delta_interval(pairs, high, 1e-4)
    assert 0.0 < found[0] < least <= most < found[1]


def shifted_profile(shift, epsilon):
    """Profile of a Laplace pair at any real epsilon."""
    if epsilon >= shift:
        return 0.0
    if epsilon <= -shift:
        return 1 - mp.exp(epsilon)
    return 1 - mp.exp((epsilon - shift) / 2)


def two_releases(first, second, epsilon):
    """Mean of the second release's profile over the loss of the first."""
    t, s = mp.mpf(first), mp.mpf(second)
    points = sorted({-t, t, *(x for x in (epsilon - s, epsilon + s) if -t < x < t)})
    inner = mp.quad(
        lambda loss: mp.exp((loss - t) / 2) / 4 * shifted_profile(s, epsilon - loss), points
    )
    ends = shifted_profile(s, epsilon - t) / 2
    return ends + mp.exp(-t) / 2 * shifted_profile(s, epsilon + t) + inner


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.5), (3.0, 3.0), (1.0, 0.37), (0.01, 0.02)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.95])
def test_two_releases_against_quadrature(first, second, share):
    epsilon = share * (first + second)
    exact = float(two_releases(first, second, epsilon))
    pairs = [(laplace_pair("laplace", 1.0, t), 1) for t in (first, second)]
    lower, upper = delta_interval(pairs, epsilon)
    assert lower <= exact <= upper
    assert upper - lower <= 1e-3 * exact
    if exact < 0.5 and share > 0.0:
        low, high = epsilon_interval(pairs, exact, 1e-5)
        assert low <= epsilon * (1 + 1e-12) and epsilon <= high * (1 + 1e-12)
        assert high - low <= 1e-5 * epsilon


def test_spreading_a_shift_over_coordinates_reveals_less():
    one = laplace_pair("laplace", 1.0, 1.2)
    for first in (0.2, 0.6):
        for epsilon in (0.0, 0.3, 1.0, 1.15):
            assert two_releases(first, 1.2 - first, epsilon) <= one.profile(epsilon)[1]


@pytest.mark.slow
def test_replacements_are_dominated():
    """Whatever the record's two values, on a grid of outputs fine enough for the purpose."""
    x = np.linspace(-30.0, 30.0, 60_001)
    weight = (x[1] - x[0]) * 0.5 * np.exp(-np.abs(x))
    for rate, shift in ((0.3, 1.0), (0.05, 2.5)):
        pair = laplace_pair("poisson-replace-one", rate, shift)
        for first in np.linspace(-shift, shift, 9):
            for second in np.linspace(-shift, shift, 9):
                s = 1 - rate + rate * np.exp(np.abs(x) - np.abs(x - first))
                t = 1 - rate + rate * np.exp(np.abs(x) - np.abs(x - second))
                for epsilon in (0.0, 0.05, 0.3):
                    value = np.dot(weight, np.maximum(s - math.exp(epsilon) * t, 0.0))
                    assert value <= pair.profile(epsilon)[1] + 1e-6


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("rate", "z", "count"), [(1.0, 2.0, 10), (0.1, 1.0, 30), (0.02, 0.4, 200)])
def test_against_dp_accounting(adjacency, rate, z, count):
    event = LaplaceEvent(z) if rate == 1.0 else PoissonSampledEvent(rate, LaplaceEvent(z))
    if rate < 1.0 and adjacency == "replace-one":
        pytest.skip("theirs has add-remove only")
    single = oracle.from_laplace_mechanism(
        z,
        sampling_prob=rate,
        value_discretization_interval=2e-4,
    )
    theirs = single.self_compose(count)
    ours = PLDAccountant(adjacency).compose(event, count)
    for delta in (1e-2, 1e-5, 1e-8):
        lower, upper = ours.epsilon(delta, rtol=1e-4)
        pessimistic = theirs.get_epsilon_for_delta(delta)
        assert lower <= pessimistic
        assert upper == pytest.approx(pessimistic, rel=2e-3)
        assert 0.0 < upper - lower <= 2e-4 * upper


@pytest.mark.daily(12)
@pytest.mark.parametrize(
    ("release", "order", "adjacency"),
    covered(
        [(1.0, 0.7), (1.0, 1e4), (0.2, 0.7), (1e-4, 20.0)], [1.001, 2.0, 7.5, 40.0], ADJACENCIES
    ),
)
def test_renyi_divergence_against_quadrature(release, order, adjacency):
    rate, z = release
    event = LaplaceEvent(z) if rate == 1.0 else PoissonSampledEvent(rate, LaplaceEvent(z))
    kinds = {"replace-one": ["poisson-replace-one"]}.get(adjacency, ["remove", "add"])
    with mp.workdps(30):
        exact = 0
        for kind in ["laplace"] if rate == 1.0 else kinds:
            p, q = densities(kind, mp.mpf(rate), 1 / mp.mpf(z))
            moment = integral(lambda x, p=p, q=q: q(x) * (p(x) / q(x)) ** order, 1 / mp.mpf(z))
            exact = max(exact, mp.log(moment))
        value = RDPAccountant(adjacency).compose(event).log_moment(order)
        assert exact <= value <= exact * (1 + mp.mpf("1e-10"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("z", "plan", "adjacency"),
    covered([0.2, 1.0, 1e4], [(1.0, 10**10), (1e-7, 10**10), (0.5, 10**6)], ADJACENCIES),
)
def test_long_plans_stay_between_their_bounds(z, plan, adjacency):
    rate, count = plan
    event = LaplaceEvent(z) if rate == 1.0 else PoissonSampledEvent(rate, LaplaceEvent(z))
    plan = PLDAccountant(adjacency).compose(event, count)
    renyi = RDPAccountant(adjacency).compose(event, count).epsilon(1e-6)
    lower, upper = plan.epsilon(1e-6)
    assert 0.0 <= lower <= upper <= renyi * (1 + 1e-9)
    assert upper >= 0.85 * renyi or renyi < 1e-3


def test_little_noise():
    assert PLDAccountant().compose(LaplaceEvent(1e-160), 2).epsilon(1e-5) >= 2e160 * (1 - 1e-9)
    assert PLDAccountant().compose(LaplaceEvent(1e-5)).epsilon(1e-5) == pytest.approx(1e5)
    seen = PLDAccountant().compose(PoissonSampledEvent(0.1, LaplaceEvent(1e-3)), 3)
    assert seen.delta(5.0) == pytest.approx(1 - 0.9**3, rel=1e-9)


def test_pure_releases_need_no_delta():
    plan = PLDAccountant().compose(LaplaceEvent(2.0), 3)
    assert plan.epsilon(0.0) == pytest.approx(1.5, rel=1e-12)
    assert plan.delta(1.5) == 0.0
    sampled = PLDAccountant().compose(PoissonSampledEvent(0.1, LaplaceEvent(1.0)))
    assert sampled.epsilon(0.0) == pytest.approx(math.log(1 + 0.1 * (math.e - 1)), rel=1e-12)
    replaced = PLDAccountant("replace-one").compose(PoissonSampledEvent(1.0, LaplaceEvent(1.0)))
    assert replaced.epsilon(0.0) == pytest.approx(2.0, rel=1e-12)
    assert PLDAccountant().compose(PoissonSampledEvent(0.0, LaplaceEvent(1.0))).delta(0.0) == 0.0
