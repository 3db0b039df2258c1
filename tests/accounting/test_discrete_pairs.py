"""Discrete Gaussian and discrete Laplace noise against sums of their definitions."""

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as oracle

from skdp.accounting import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    LaplaceEvent,
    PLDAccountant,
    PureDPEvent,
    RDPAccountant,
)
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.pld.composed_transforms import AtomsLoss
from skdp.accounting.pld.grid_bounds import LIMITS, delta_interval, epsilon_interval
from skdp.accounting.pld.pairs.cells import CellPair
from skdp.accounting.pld.pairs.discrete import (
    DiscreteLaplacePair,
    RandomisedResponsePair,
    discrete_gaussian_pair,
)

CASES = [
    ("gaussian", 1, 1.0),
    ("gaussian", 1, 0.2),
    ("gaussian", 3, 0.9),
    ("gaussian", 2, 7.5),
    ("gaussian", 5, 60.0),
    ("laplace", 1, 0.5),
    ("laplace", 1, 30.0),
    ("laplace", 4, 3.0),
    ("laplace", 7, 0.9),
]


def make(noise, sensitivity, scale):
    if noise == "gaussian":
        return discrete_gaussian_pair(sensitivity, scale)
    return DiscreteLaplacePair(sensitivity, sensitivity / scale)


def definition(noise, sensitivity, scale):
    """Outputs, their masses without shift and with it, from unnormalised densities."""
    reach = math.ceil((13.0 if noise == "gaussian" else 40.0) * scale) + 2
    x = range(-reach, sensitivity + reach + 1)
    if noise == "gaussian":
        weight = lambda k: mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(scale) ** 2))  # noqa: E731
        total = mp.fsum(weight(k) for k in range(-3 * reach, 3 * reach + 1))
    else:
        weight = lambda k: mp.exp(-mp.mpf(abs(k)) / mp.mpf(scale))  # noqa: E731
        ratio = mp.exp(-1 / mp.mpf(scale))
        total = (1 + ratio) / (1 - ratio)
    still = [weight(k) / total for k in x]
    moved = [weight(k - sensitivity) / total for k in x]
    return still, moved


@pytest.mark.parametrize(("shift", "sigma"), [(3, 0.9), (5, 60.0), (40, 20000.0)])
def test_masses_are_off_by_no_more_than_their_roundings(shift, sigma):
    """Those of the tails err most. Wide noise is cut into cells, here of 50 integers."""
    pair = discrete_gaussian_pair(shift, sigma)
    most = LIMITS.cell_error * pair.roundings(1e-250)
    if isinstance(pair, CellPair):
        first = np.round(np.linspace(-33.0, 33.0, 12) * sigma).astype(int)
        found = [pair._cells(np.array([x, x + 50.0]))[0] for x in first]
        cells = [range(x, x + 50) for x in first]
    else:
        numbers, found, _ = pair.atoms(1e-250)
        cells = [(int(x),) for x in numbers - shift]
    with mp.workdps(40):
        twice = 2 * mp.mpf(sigma) ** 2
        density = lambda k: mp.exp(-(mp.mpf(k) ** 2) / twice)  # noqa: E731
        # By Poisson summation the integral is the sum but for 1e-100, unless noise is narrow.
        total = mp.sqrt(mp.pi * twice) if sigma > 10 else mp.fsum(map(density, range(-50, 51)))
        for mass, cell in zip(found, cells, strict=True):
            exact = mp.fsum(map(density, cell)) / total
            assert abs(mass - exact) <= most * exact


def exact_delta(still, moved, epsilon):
    growth = mp.exp(epsilon)
    return mp.fsum(max(p - growth * q, 0) for p, q in zip(moved, still, strict=True))


@pytest.mark.parametrize(("noise", "sensitivity", "scale"), CASES)
def test_one_release_against_its_definition(noise, sensitivity, scale):
    pair = make(noise, sensitivity, scale)
    typical = sensitivity / scale if noise == "laplace" else 3 * sensitivity / scale
    with mp.workdps(30):
        still, moved = definition(noise, sensitivity, scale)
        for epsilon in (0.0, 0.11 * typical, 0.5 * typical, 0.93 * typical):
            exact = float(exact_delta(still, moved, epsilon))
            lower, upper = pair.profile(epsilon)
            assert lower <= exact * (1 + 1e-14) and exact <= upper * (1 + 1e-14)
            assert upper - lower <= 1e-9 * exact
            low, high = delta_interval([(pair, 1)], epsilon)
            assert low <= exact <= high
            assert high - low <= 1e-5 * exact
            if epsilon == 0.0:
                assert exact <= pair.variation <= exact * (1 + 1e-8)


@pytest.mark.daily(6)
@pytest.mark.parametrize(("noise", "sensitivity", "scale"), CASES)
@pytest.mark.parametrize("theta", [0.4, 12.0])
def test_transform_against_its_definition(noise, sensitivity, scale, theta):
    if noise == "gaussian" and theta > 1 and scale < 1:
        theta = 3.0  # so that the sum's tails suffice
    loss, _ = make(noise, sensitivity, scale).transforms(0.0)
    z = min(theta, loss.largest_tilt) + 1j * np.array([0.0, 0.7, 25.0])
    values, errors = loss.log_transform(z)
    with mp.workdps(30):
        wide = definition(noise, sensitivity, scale)
        if noise == "gaussian":
            reach = math.ceil((13 * scale + 2) + theta * sensitivity)
            centre = [mp.mpf(k) for k in range(-reach, reach + sensitivity + 1)]
            still = [mp.exp(-(k**2) / (2 * mp.mpf(scale) ** 2)) for k in centre]
            moved = [mp.exp(-((k - sensitivity) ** 2) / (2 * mp.mpf(scale) ** 2)) for k in centre]
            total = mp.fsum(moved)
            wide = [q / total for q in still], [p / total for p in moved]
        for k in range(3):
            w = mp.mpc(complex(z[k]))
            terms = (p * mp.exp(w * mp.log(p / q)) for q, p in zip(*wide, strict=True))
            exact = mp.fsum(terms)
            off = abs(mp.exp(mp.mpc(complex(values[k]))) / exact - 1)
            assert off <= errors[k] + mp.mpf(10) ** -15
            assert off <= 1e-12 * (abs(exact - 1) + 1)


def test_lists_need_not_have_all_mass():
    loss, _ = RandomisedResponsePair(0.5, 0.1).transforms(0.0)
    z = 2.0 + 1j * np.array([0.0, 3.0, 40.0])
    values, errors = loss.log_transform(z)
    exact = 0.9 * np.cosh((z + 0.5) * 0.5) / math.cosh(0.25)
    assert np.all(np.abs(np.exp(values) / exact - 1.0) <= errors) and np.all(errors < 1e-12)
    assert loss.failure == 0.1
    assert loss.decay(2.0, 8.0 * math.pi) == 0.0  # where both atoms have turned in full


def test_atoms_where_there_is_much_noise():
    numbers, masses, _ = DiscreteLaplacePair(3, 1e-4).atoms(0.0)
    with mp.workdps(40):
        ratio = mp.exp(-mp.mpf(1e-4) / 3)
        exact = [(1 - ratio) / (1 + ratio) * ratio**k for k in range(4)][::-1]
        exact[-1], exact[0] = 1 / (1 + ratio), ratio**3 / (1 + ratio)
    assert list(numbers) == [-3.0, -2.0, -1.0, 0.0]
    assert [float(p) for p in exact] == pytest.approx(masses, rel=1e-14)


@pytest.mark.parametrize(("noise", "sensitivity", "scale"), CASES)
@pytest.mark.parametrize("count", [2, 3])
def test_few_releases_against_sums(noise, sensitivity, scale, count):
    """All sums of losses, in integers, with masses from the definition."""
    with mp.workdps(30):
        still, moved = definition(noise, sensitivity, scale)
        losses = [float(mp.log(p / q)) for q, p in zip(still, moved, strict=True)]
        p = np.array([float(value) for value in moved])
    masses = p
    for _ in range(count - 1):
        masses = np.convolve(masses, p)
    # Losses are linear in the output; those of Laplace noise stop at both ends.
    if noise == "gaussian":
        total = count * losses[0] + (losses[1] - losses[0]) * np.arange(len(masses))
    else:
        numbers = np.round((np.array(losses) + sensitivity / scale) * scale / 2).astype(int)
        once = np.bincount(numbers, p)
        masses = once
        for _ in range(count - 1):
            masses = np.convolve(masses, once)
        total = -count * sensitivity / scale + 2 / scale * np.arange(len(masses))
    pairs = [(make(noise, sensitivity, scale), count)]
    top = count * sensitivity / scale if noise == "laplace" else float(total[-1]) * 0.3
    for epsilon in (0.0, 0.21 * top, 0.63 * top):
        above = total > epsilon
        exact = float(np.dot(masses[above], -np.expm1(epsilon - total[above])))
        if not 1e-12 < exact < 1.0 - 1e-9:
            continue
        lower, upper = delta_interval(pairs, epsilon)
        assert lower * (1 - 1e-10) <= exact <= upper * (1 + 1e-10)
        assert upper - lower <= 1e-5 * exact
        if epsilon > 0.0:
            low, high = epsilon_interval(pairs, exact)
            assert low * (1 - 1e-10) <= epsilon <= high * (1 + 1e-10)
            # Between far losses delta is so flat that epsilon cannot be told.
            assert high - low <= 1e-6 * epsilon or scale < 0.5


@pytest.mark.daily(1)
@pytest.mark.parametrize(("sensitivity", "z"), [(1, 20_000.0), (7, 2500.0), (1000, 30.0)])
def test_wide_noise_against_its_atoms(sensitivity, z):
    sigma = z * sensitivity
    pair = discrete_gaussian_pair(sensitivity, sigma)
    x = np.arange(-40 * sigma, 40 * sigma + sensitivity + 1).round()
    scale = sigma * math.sqrt(2 * math.pi)
    p = np.exp(-0.5 * ((x - sensitivity) / sigma) ** 2) / scale
    losses = sensitivity / sigma**2 * (x - 0.5 * sensitivity)
    for epsilon in (0.0, 0.5 / z, 3.0 / z):
        above = losses > epsilon
        exact = float(np.dot(p[above], -np.expm1(epsilon - losses[above])))
        lower, upper = delta_interval([(pair, 1)], epsilon)
        assert lower * (1 - 1e-9) <= exact <= upper * (1 + 1e-9)
        assert upper - lower <= 2e-3 * exact


def test_very_wide_noise_tends_to_gaussian():
    plan = PLDAccountant().compose(DiscreteGaussianEvent(1e4, 10**6), 10**8)
    exact = gaussian_profile.epsilon(1.0, 1e-6)
    assert exact * (1 - 1e-6) <= plan.epsilon(1e-6) <= exact * (1 + 1e-3)


@pytest.mark.parametrize(
    ("event", "count"),
    [
        (DiscreteGaussianEvent(2.0), 20),
        (DiscreteGaussianEvent(1.0, 3), 5),
        (DiscreteLaplaceEvent(2.0), 20),
        (DiscreteLaplaceEvent(1.5, 4), 30),
    ],
)
def test_against_dp_accounting(event, count):
    scale = event.noise_multiplier * event.sensitivity
    if isinstance(event, DiscreteGaussianEvent):
        maker, parameter = oracle.from_discrete_gaussian_mechanism, scale
    else:
        maker, parameter = oracle.from_discrete_laplace_mechanism, 1.0 / scale
    theirs = maker(parameter, event.sensitivity, value_discretization_interval=1e-4)
    theirs = theirs.self_compose(count)
    plan = PLDAccountant().compose(event, count)
    for delta in (1e-2, 1e-5, 1e-8):
        lower, upper = plan.epsilon(delta)
        pessimistic = theirs.get_epsilon_for_delta(delta)
        assert lower <= pessimistic
        assert upper == pytest.approx(pessimistic, rel=2e-3)
        assert upper - lower <= 1e-6 * upper


def test_one_step_of_laplace_noise_is_randomised_response():
    for delta in (1e-3, 1e-7):
        ours = PLDAccountant().compose(DiscreteLaplaceEvent(2.0), 40).epsilon(delta)
        pure = PLDAccountant().compose(PureDPEvent(0.5), 40).epsilon(delta)
        assert ours.lower == pytest.approx(pure.upper, rel=1e-7)


def test_many_steps_of_laplace_noise_are_merged_to_more():
    coarse = PLDAccountant().compose(DiscreteLaplaceEvent(2.0, 50_000), 3).epsilon(1e-4)
    fine = PLDAccountant().compose(DiscreteLaplaceEvent(2.0, 10**7), 3).epsilon(1e-4)
    assert coarse.lower * (1 - 1e-6) <= fine <= coarse.upper * (1 + 1e-3)


@pytest.mark.daily(16)
@pytest.mark.parametrize(("noise", "sensitivity", "scale"), CASES)
@pytest.mark.parametrize("order", [1.001, 1.7, 4.0, 9.3])
def test_renyi_divergence_against_sums(noise, sensitivity, scale, order):
    event_type = DiscreteGaussianEvent if noise == "gaussian" else DiscreteLaplaceEvent
    event = event_type(scale / sensitivity, sensitivity)
    with mp.workdps(40):
        reach = math.ceil(16 * scale + order * sensitivity) + 4
        if noise == "laplace":
            reach = math.ceil(60 * scale) + sensitivity
        power = 2 if noise == "gaussian" else 1
        spread = 2 * mp.mpf(scale) ** 2 if noise == "gaussian" else mp.mpf(scale)
        x = range(-reach, reach + 1)
        log_q = [-(mp.mpf(abs(k)) ** power) / spread for k in x]
        log_p = [-(mp.mpf(abs(k - sensitivity)) ** power) / spread for k in x]
        total = mp.fsum(mp.exp(value) for value in log_q)
        terms = (order * p + (1 - order) * q for p, q in zip(log_p, log_q, strict=True))
        exact = mp.log(mp.fsum(mp.exp(value) for value in terms) / total)
        value = RDPAccountant().compose(event).log_moment(order)
        assert exact * (1 - mp.mpf("1e-13")) <= value
        assert value <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("1e-13")


def test_little_discrete_noise():
    plan = PLDAccountant().compose(DiscreteGaussianEvent(0.01))
    assert plan.epsilon(1e-5) == pytest.approx(5000.0, rel=1e-6)
    assert PLDAccountant().compose(DiscreteGaussianEvent(1e-5)).delta(1.0) == 1.0
    assert PLDAccountant().compose(DiscreteLaplaceEvent(1e-5)).epsilon(0.0) == pytest.approx(1e5)


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("noise", "count"),
    [
        pytest.param(noise, count, marks=[] if noise == 1e11 else pytest.mark.slow)
        for noise in (1e9, 1e11, 1e12)
        for count in (1, 2, 100)
    ],
)
def test_noise_far_above_the_shift_is_followed_to_the_last_digits(noise, count):
    """It is Gaussian noise then, to a billionth, and moves masses by less than their rounding."""
    mu = math.sqrt(count) / noise
    accountant = PLDAccountant().compose(DiscreteGaussianEvent(noise), count)
    for epsilon in (0.3 * mu, 2.0 * mu, 5.0 * mu):
        lower, upper = accountant.delta(epsilon)
        truth = gaussian_profile.delta(mu, epsilon)
        assert lower <= truth * (1 + 1e-7) and truth * (1 - 1e-7) <= upper <= 1.01 * truth


@pytest.mark.parametrize("exponent", [3.0, 499.0, 501.0, 3e4, 9e5])
def test_lists_are_tilted_within_their_errors_however_far(exponent):
    rng = np.random.default_rng(round(exponent))
    for count in (2, 3, 40):
        losses = np.sort(rng.normal(size=count)) * 10.0 ** rng.integers(-6, 2)
        masses = rng.dirichlet(np.full(count, 0.05)) + 1e-200
        loss, size = AtomsLoss(losses, masses), np.max(np.abs(losses))
        theta = exponent / size
        assert theta <= loss.largest_tilt
        z = theta + 1j * np.array([0.0, 0.1, 3.0]) / size
        values, errors = loss.log_transform(z)
        with mp.workdps(60):
            for value, error, at in zip(values, errors, z, strict=True):
                pairs = zip(masses.tolist(), losses.tolist(), strict=True)
                moment = mp.fsum(p * mp.exp(mp.mpc(complex(at)) * x) for p, x in pairs)
                off = abs(mp.log(moment * mp.exp(-mp.mpc(complex(value)))))
                assert off <= error <= 1e-13 * (1.0 + exponent)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_many_small_releases_beside_a_large_one_are_priced_tightly(relation):
    """The small ones need a large tilt, at which the large atom is far beyond doubles."""
    many = (
        (PureDPEvent(1.0), LaplaceEvent(1e6), 10**6, 1e-8),
        (PureDPEvent(1.0), LaplaceEvent(3e6), 10**6, 1e-8),
        (PureDPEvent(100.0), PureDPEvent(1e-4), 10**5, 1e-8),
    )
    found = []
    for large, small, count, delta in many:
        accountant = PLDAccountant(adjacency=relation).compose(large).compose(small, count=count)
        lower, upper = accountant.epsilon(delta)
        assert lower <= upper <= lower * (1.0 + 1e-4)
        assert accountant.delta(upper) <= delta
        found.append(upper)
    assert found[1] < found[0]
