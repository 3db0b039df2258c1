"""Noise of norm-exponential law, its scale, its event, and the Laplace noise that dominates it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from covering import pairs
from scipy import integrate, stats

from skdp.accounting import (
    DiscreteLaplaceEvent,
    LaplaceEvent,
    NormExponentialEvent,
    PLDAccountant,
    RDPAccountant,
)
from skdp.accounting.numerics.arithmetic import read_decimal
from skdp.mechanisms import RandomStream, record_releases
from skdp.mechanisms.additive import (
    LARGEST_LENGTH,
    NormExponentialMechanism,
)
from skdp.mechanisms.release import Release
from skdp.testing import check_noise
from skdp.testing._case import as_normals

SCALE = 2.5


def mechanism(stream, sigma=SCALE, grid=0.0):
    return NormExponentialMechanism(
        sensitivity=1.0, sigma=sigma, stream=stream, label="test", grid=grid
    )


def draws(stream, count, dimension):
    source = mechanism(stream)
    return np.array([source.noise(dimension) for _ in range(count)])


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_lengths_are_gamma_and_directions_uniform(dimension):
    """Each of the two tests rejects a right law once in 1e9 times."""
    noise = draws(RandomStream.from_entropy(), 3000, dimension)
    check_noise(np.linalg.norm(noise, axis=1), stats.gamma(dimension, scale=SCALE))
    # Lengths apart, it is a normal vector, which has a uniform direction independent of its length.
    check_noise(np.array([as_normals(each / SCALE) for each in noise]), stats.norm())


@pytest.mark.parametrize("wrong", [stats.gamma(3, scale=SCALE * 1.25), stats.gamma(4, scale=SCALE)])
def test_another_scale_or_shape_of_the_length_is_noticed(wrong):
    noise = draws(RandomStream.from_seed(0), 3000, 3)
    with pytest.raises(AssertionError, match="do not follow"):
        check_noise(np.linalg.norm(noise, axis=1), wrong)


def test_independent_laplace_noise_is_noticed():
    """It has the right marginal in one dimension, and another length and direction in more."""
    noise = RandomStream.from_seed(0).laplace((3000, 3))
    with pytest.raises(AssertionError, match="do not follow"):
        check_noise(np.array([as_normals(each) for each in noise]), stats.norm())


def test_all_numbers_of_an_array_are_one_vector():
    """Two halves that were drawn apart would have independent lengths."""
    source = mechanism(RandomStream.from_seed(0))
    noise = np.array([source.noise((2, 3)) for _ in range(2000)])
    one, other = np.linalg.norm(noise, axis=2).T
    assert np.corrcoef(one, other)[0, 1] > 0.2  # 0 of independent ones, within 0.12 at 1e-7
    check_noise(np.linalg.norm(noise.reshape(-1, 6), axis=1), stats.gamma(6, scale=SCALE))


class LongestStream(RandomStream):
    """All bits are such that exponentials are as long as they can be."""

    __slots__ = ()

    def words(self, count):
        return np.zeros(count, dtype=np.uint64) + np.uint64(count > 1)


def test_no_noise_is_longer_than_is_promised():
    longest = float(np.sum(LongestStream(bytes(32), seeded=True).exponential(5)))
    assert 0.99 * 5 * LARGEST_LENGTH < longest <= 5 * LARGEST_LENGTH


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "count"),
    pairs([0.1, 1 / 3, 0.7, 1e-6, 1e6], [1.0, 0.3, 7.1e-9], [0, 1, 12]),
)
def test_scale_and_event_meet_the_target_exactly(epsilon, sensitivity, count):
    noise = Release("x", sensitivity).without_delta(epsilon, count, discrete=count > 0)
    if count:
        steps, scale = (
            Fraction(each) / Fraction(noise.grid) for each in (noise.sensitivity, noise.sigma)
        )
        assert steps.denominator == scale.denominator == 1
        moved = Fraction(sensitivity) * Fraction(math.sqrt(count)) / Fraction(noise.grid)
        assert moved + count <= steps <= (moved + count) * Fraction(1 + 1e-5)
        assert noise.grid <= 2.0**-20 * min(noise.sigma, noise.sensitivity)
    event = noise.event
    assert type(event) is (DiscreteLaplaceEvent if count else NormExponentialEvent)
    assert Fraction(event.noise_multiplier) <= Fraction(noise.sigma) / Fraction(noise.sensitivity)
    for read in (Fraction, read_decimal):
        assert 1 <= read(event.noise_multiplier) * read(epsilon) < 1 + Fraction(2e-6)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-308])
def test_scales_beyond_floats_are_refused(epsilon, discrete):
    with pytest.raises(ValueError, match="larger epsilon"):
        Release("x", 1e10).without_delta(epsilon, 3, discrete)


def test_releases_are_traced_with_their_norm():
    value = np.array([0.1, -3.0, 5.0])
    with record_releases() as trace:
        mechanism(RandomStream.from_seed(0)).release(value)
        output = mechanism(RandomStream.from_seed(0), sigma=8.0, grid=0.25).release(value)
    vector, grid = trace.releases
    assert (vector.norm, vector.exponential) == (2.0, True) and grid.norm == 1.0
    assert np.array_equal(grid.value, [0.0, -3.0, 5.0]) and np.all(output % 0.25 == 0.0)


def test_noise_on_a_grid_is_discrete_laplace():
    source = mechanism(RandomStream.from_entropy(), sigma=8.0, grid=0.25)
    check_noise(source.noise(3000) / 0.25, stats.dlaplace(0.25 / 8.0))


def exact_delta(shift, epsilon, dimension):
    """Return the hockey-stick divergence of the noise and the same noise moved along an axis."""
    if dimension == 1:
        return 1.0 - math.exp(0.5 * (epsilon - shift))

    def inner(rest):
        """Integrate along the axis, at a distance from it."""
        length = lambda x: math.hypot(x, rest)  # noqa: E731
        gain = lambda x: math.exp(-length(x - shift)) - math.exp(epsilon - length(x))  # noqa: E731
        loss = lambda x: length(x) - length(x - shift) - epsilon  # noqa: E731
        low, high = -60.0, 60.0
        if loss(high) <= 0.0:
            return 0.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if loss(middle) <= 0.0 else (low, middle)
        return integrate.quad(gain, high, 60.0 + high, points=[shift + 1.0], limit=200)[0]

    weight = lambda rest: rest ** (dimension - 2) * inner(rest)  # noqa: E731
    sphere = 2.0 * math.pi ** (0.5 * (dimension - 1)) / math.gamma(0.5 * (dimension - 1))
    surface = 2.0 * math.pi ** (0.5 * dimension) / math.gamma(0.5 * dimension)
    total = integrate.quad(weight, 0.0, 60.0, limit=200, epsrel=1e-7)[0]
    return sphere * total / (surface * math.gamma(dimension))


@pytest.mark.parametrize(
    ("dimension", "reference"),
    [
        (1, 0.295312),
        *(pytest.param(*row, marks=pytest.mark.slow) for row in ((3, 0.134995), (10, 0.033472))),
    ],
)
def test_one_dimension_dominates_all(dimension, reference):
    bound = PLDAccountant().compose(NormExponentialEvent(1.0)).delta(0.3).upper
    exact = exact_delta(1.0, 0.3, dimension)
    assert exact == pytest.approx(reference, abs=2e-6)
    assert exact <= bound * (1.0 + 1e-9) and bound == pytest.approx(0.295312, abs=1e-6)


@pytest.mark.parametrize("accountant", [PLDAccountant, RDPAccountant])
def test_it_composes_like_laplace_noise(accountant):
    one, other = (
        accountant().compose(kind(4.0), count=20).epsilon(1e-6).upper
        for kind in (NormExponentialEvent, LaplaceEvent)
    )
    assert one == other
