"""Discrete Gaussian noise: drawn with exact probabilities, and worth what it is priced at."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from covering import pairs
from scipy import stats

from skdp.accounting import DiscreteGaussianEvent, GaussianEvent, PLDAccountant
from skdp.mechanisms import GaussianMechanism, RandomStream
from skdp.mechanisms.discrete import (
    _RANDOM_ROUNDING,
    UniformIntegers,
    bernoulli_exp,
    discrete_gaussians,
    secret_on_grid,
)
from skdp.mechanisms.release import Release

# Every statistical test below fails a right implementation with probability below this.
FALSE_ALARM = 1e-7


class Unevaluated:
    """A uniform integer of which only a comparison is known; each outcome is a branch."""

    def __init__(self, bound, path):
        self.bound, self.path = bound, path

    def __lt__(self, above):
        return self.path.take(Fraction(above, self.bound))


class Path:
    """One way through a sampler: outcomes that are prescribed, with their exact probability."""

    def __init__(self, outcomes):
        self.outcomes, self.probability = iter(outcomes), Fraction(1)

    def below(self, bound):
        return Unevaluated(bound, self)

    def take(self, chance):
        outcome = next(self.outcomes)
        self.probability *= chance if outcome else 1 - chance
        return outcome


@pytest.mark.parametrize(("above", "below"), [(0, 3), (1, 1), (1, 7), (3, 4), (3, 2), (7, 3)])
def test_bernoulli_probabilities_are_exact(above, below):
    """All ways through the sampler that end within some coins; the rest is less than they leave."""
    succeeds = fails = Fraction(0)
    waiting = [()]
    for _ in range(14):
        longer = []
        for outcomes in waiting:
            for last in (False, True):
                path = Path((*outcomes, last))
                try:
                    result = bernoulli_exp(path, above, below)
                except StopIteration:
                    if path.probability > 0:
                        longer.append((*outcomes, last))
                    continue
                succeeds += path.probability if result else 0
                fails += 0 if result else path.probability
        waiting = longer
    with mp.workdps(40):
        wanted = mp.exp(-mp.mpf(above) / below)
        lower, upper = (mp.mpf(x.numerator) / x.denominator for x in (succeeds, 1 - fails))
        assert lower <= wanted <= upper and upper - lower < 1e-3


@pytest.mark.parametrize("bound", [1, 2, 5, 7, 64, 100, 300])
def test_uniform_integers_are_exactly_uniform(bound):
    """Each byte string of the length that one number takes comes once."""
    size = ((bound - 1).bit_length() + 7) // 8

    class Everything:
        given = False

        def words(self, count):
            assert not self.given
            self.given = True
            return np.frombuffer(b"".join(bytes(s) for s in strings), dtype=np.uint8)

    strings = list(itertools.product(range(256), repeat=size))
    integers, drawn = UniformIntegers(Everything()), []
    try:
        while len(drawn) < 256**size:
            drawn.append(integers.below(bound))
    except AssertionError:
        pass
    counts = np.bincount(drawn, minlength=bound)
    assert counts.size == bound and len(set(counts)) == 1


@pytest.mark.parametrize("scale", [2**21 + 1, 3 * 2**90])
def test_large_scales_are_normal_down_to_their_last_digits(scale):
    draws = discrete_gaussians(RandomStream.from_seed(2), scale, 10_000)
    normal = np.array([float(x) for x in draws]) / scale
    assert stats.kstest(normal, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(normal / 1.2, "norm").pvalue < 1e-12
    digits = np.bincount([x % 64 for x in draws], minlength=64)
    assert stats.chisquare(digits).pvalue > FALSE_ALARM


def exact_profile(scale, moved, epsilon):
    """Hockey-stick divergence of two discrete Gaussians, term by term."""
    x = np.arange(-12 * scale - moved, 12 * scale + 1)
    one, other = (np.exp(-0.5 * ((x + m) / scale) ** 2) for m in (moved, 0))
    return np.maximum(one - math.exp(epsilon) * other, 0.0).sum() / one.sum()


@pytest.mark.parametrize(("scale", "moved"), [(100, 10), (100, 200), (300, 299)])
def test_noise_is_worth_no_more_than_its_exact_law(scale, moved):
    event = GaussianEvent(Release("x", float(moved), scale=float(scale), grid=1.0).multiplier)
    priced = PLDAccountant().compose(event)
    for epsilon in (0.0, 0.5 * moved / scale, 3.0 * moved / scale):
        exact = exact_profile(scale, moved, epsilon)
        assert 1e-6 < exact <= float(priced.delta(epsilon)) <= 1.2 * exact


@pytest.mark.parametrize("moved", [2**18, 2**20 + 1])
def test_fine_grids_cost_what_continuous_noise_costs(moved):
    """Against the pairs of discrete Gaussian noise, which know nothing of continuous noise."""
    scale = 2**20
    priced = PLDAccountant().compose(Release("x", moved, scale=float(scale), grid=1.0).event)
    exact = PLDAccountant().compose(DiscreteGaussianEvent(scale / moved, moved))
    for epsilon in (0.1, 1.0, 3.0):
        lower, upper = exact.delta(epsilon).lower, exact.delta(epsilon).upper
        assert lower <= float(priced.delta(epsilon)) <= upper * (1.0 + 1e-5)


@pytest.mark.parametrize(
    ("multiplier", "sensitivity", "count"),
    pairs([1e-4, 0.3, 4.0, 1e8], [1e-12, 0.77, 1e6], [1, 7, 10**5]),
)
def test_noise_on_a_grid_is_worth_what_is_asked(sensitivity, multiplier, count):
    noise = Release("x", sensitivity).on_grid(multiplier, count)
    assert math.frexp(noise.grid)[0] == 0.5, "a power of two"
    scale = Fraction(noise.sigma) / Fraction(noise.grid)
    assert scale.denominator == 1 and scale > 2**20
    # What the theorem says, in exact arithmetic: the squares, to avoid roots.
    moved = Fraction(noise.sensitivity) / Fraction(noise.grid)
    least = (Fraction(sensitivity) / Fraction(noise.grid)) ** 2 + count
    assert (moved - Fraction(sensitivity) / Fraction(noise.grid)) ** 2 >= count, least
    continuous = scale**2 - _RANDOM_ROUNDING**2
    assert continuous >= (Fraction(noise.multiplier) * moved) ** 2
    assert noise.multiplier >= multiplier
    assert noise.sigma <= sensitivity * multiplier * (1.0 + 3e-6), "hardly more noise"


@pytest.mark.parametrize("sigma", [1e-9, 0.3, 7e5])
def test_a_secret_on_a_grid_is_near_continuous_noise(sigma):
    scaled, grid, near = secret_on_grid(sigma, 16)
    steps = Fraction(scaled) / Fraction(grid)
    assert steps.denominator == 1 and 2**45 < steps < 2**47
    assert steps**2 - _RANDOM_ROUNDING**2 >= (Fraction(sigma) / Fraction(grid)) ** 2
    assert 4 * 80 * _RANDOM_ROUNDING * grid <= near < 2e-10 * sigma
    assert scaled <= sigma * (1.0 + 1e-10)


def mechanism(grid, sigma, seed=0):
    stream = RandomStream.from_seed(seed)
    return GaussianMechanism(sensitivity=1.0, sigma=sigma, stream=stream, label="test", grid=grid)


def test_releases_are_sums_of_integers():
    grid, value = 2.0**-20, np.array([0.3, -2.0, 1e-9, 12345.678])
    released = mechanism(grid, 1.0).release(value)
    noise = discrete_gaussians(RandomStream.from_seed(0), 2**20, 4)
    assert released.tolist() == [
        (round(v / grid) + z) * grid for v, z in zip(value, noise, strict=True)
    ]
    drawn = mechanism(grid, 1.0).noise((2, 2))
    assert drawn.ravel().tolist() == [z * grid for z in noise]


def test_sums_beyond_doubles_are_rounded_as_sums():
    """What is released is a function of the sum, not of both terms."""
    released = mechanism(1.0, 2.0**70).release(np.array([2.0**52 + 1.0]))
    (noise,) = discrete_gaussians(RandomStream.from_seed(0), 2**70, 1)
    assert released[0] == float(2**52 + 1 + noise) and abs(noise) > 2**60


@pytest.mark.parametrize("count", [1, 9])
def test_the_sensitivity_of_rounding_is_attained(count):
    noise = Release("x", 0.9).on_grid(2.0, count)
    half, far = 0.5 + 1e-6, math.floor(0.9 / noise.grid / math.sqrt(count)) - 2
    one, other = np.full(count, half) * noise.grid, np.full(count, -half - far) * noise.grid
    assert np.linalg.norm(one - other) <= 0.9
    rounded = [noise.grid * np.rint(v / noise.grid) for v in (one, other)]
    moved = np.linalg.norm(rounded[0] - rounded[1])
    rounding = (noise.sensitivity - 0.9) / noise.grid
    gained = (moved - np.linalg.norm(one - other)) / noise.grid
    assert (1.0 - 1e-5) * rounding < gained <= rounding
