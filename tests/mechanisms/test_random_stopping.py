"""Random numbers of runs: probabilities, moments and draws."""

import math

import mpmath
import numpy as np
import pytest

from skdp.mechanisms import RandomStopping, RandomStream
from skdp.testing import check_noise


def reference(mean, shape, k):
    """Chance of k runs by the definition, in extended precision."""
    with mpmath.workdps(40):
        if math.isinf(shape):
            return mpmath.exp(-mpmath.mpf(mean)) * mpmath.mpf(mean) ** k / mpmath.factorial(k)
        gamma = mpmath.mpf(RandomStopping(mean, shape).gamma)
        if k < 1:
            return mpmath.mpf(0)
        if shape == 0:
            return (1 - gamma) ** k / (k * mpmath.log(1 / gamma))
        eta = mpmath.mpf(shape)
        product = mpmath.mpf(1)
        for j in range(k):
            product *= (j + eta) / (j + 1)
        return (1 - gamma) ** k / (gamma**-eta - 1) * product


CASES = [(10, 0), (10, 1), (2.5, -0.5), (30, 0.5), (4, 7.5), (10, math.inf), (0.4, math.inf)]


@pytest.mark.parametrize(("mean", "shape"), CASES)
def test_probabilities_and_mean(mean, shape):
    runs = RandomStopping(mean, shape)
    for k in (0, 1, 2, 3, 10, 40):
        assert runs.probability(k) == pytest.approx(float(reference(mean, shape, k)), rel=1e-11)
    assert runs.probability(-1) == 0.0
    chances = np.array([runs.probability(k) for k in range(400)])
    if mean * 20 < 400 and shape > 0:
        assert chances.sum() == pytest.approx(1.0, abs=1e-8)
        assert chances @ np.arange(400) == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize(("mean", "shape"), [(10, 0), (50, -0.5), (1000, 1), (1e4, 0)])
def test_heavy_tails_add_up(mean, shape):
    blocks = list(RandomStopping(mean, shape)._blocks())
    total = math.fsum(float(chances.sum()) for _, chances in blocks)
    first = math.fsum(float(c @ (k + np.arange(len(c)))) for k, c in blocks)
    assert total == pytest.approx(1.0, abs=1e-11)
    assert first == pytest.approx(mean, rel=1e-10)


def test_known_parameters():
    assert RandomStopping(10, 1).gamma == pytest.approx(0.1, rel=1e-12)
    assert RandomStopping(10, 0).gamma == pytest.approx(0.02691826, rel=1e-6)
    assert RandomStopping(10, 0.5).gamma == pytest.approx(0.0625, rel=1e-12)
    assert RandomStopping(10, math.inf).gamma is None
    assert RandomStopping(1, 3).gamma == 1.0
    assert RandomStopping(1, 3).draw(RandomStream.from_seed(0)) == 1


class Law:
    """The distribution of the number of runs, by its probabilities."""

    def __init__(self, runs, largest):
        self.chances = np.array([runs.probability(k) for k in range(largest + 1)])

    def pmf(self, k):
        return self.chances[np.asarray(k, dtype=int)]

    def cdf(self, k):
        return np.cumsum(self.chances)[np.asarray(k, dtype=int)]

    def sf(self, k):
        return 1.0 - self.cdf(k)


@pytest.mark.daily(1)
@pytest.mark.parametrize(("mean", "shape"), CASES[::3])
def test_draws_have_the_distribution_and_no_other(mean, shape):
    stream = RandomStream.from_seed(5)
    runs = RandomStopping(mean, shape)
    drawn = np.array([runs.draw(stream) for _ in range(12_000)])
    check_noise(drawn, Law(runs, drawn.max()))
    # A wrong mean, a wrong shape, and a number that is one too large.
    wrong = [(drawn, RandomStopping(mean * 1.35 + 0.1, shape)), (drawn + 1, runs)]
    other = 3.0 if math.isinf(shape) and mean > 1 else (2.0 * shape + 1.7)
    if math.isfinite(other):
        wrong.append((drawn, RandomStopping(max(mean, 1.0), other)))
    for values, law in wrong:
        with pytest.raises(AssertionError, match="follow the law"):
            check_noise(values, Law(law, values.max()))


def test_the_largest_uniform_ends():
    class AllOnes(RandomStream):
        def words(self, count):
            return np.full(count, 2**64 - 1, dtype=np.uint64)

    stream = AllOnes(bytes(32), seeded=True)
    for mean, shape in (*CASES, (1e5, 1), (1.0, 0)):
        assert RandomStopping(mean, shape).draw(stream) >= 0


@pytest.mark.parametrize(
    ("mean", "shape", "match"),
    [(0.9, 0, "mean"), (0, math.inf, "mean"), (math.nan, 1, "mean"), (5, -1, "shape")],
)
def test_parameters_are_validated(mean, shape, match):
    with pytest.raises(ValueError, match=f"RandomStopping: {match}"):
        RandomStopping(mean, shape)
