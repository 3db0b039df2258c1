"""Samplers draw exactly the lots that are accounted for."""

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import PoissonSampler, RandomStream, UniformSubsetSampler
from skdp.testing import check_noise, check_sampler

FALSE_ALARM = 1e-7


@pytest.mark.daily(1)
@pytest.mark.parametrize("rate", [0.003, 0.1, 0.6, 0.97])
def test_poisson_lots_are_independent_bernoulli(rate):
    sampler = PoissonSampler(40, rate, RandomStream.from_seed(1))
    check_sampler(sampler.draw, 40, sample_rate=rate)
    with pytest.raises(AssertionError, match="lot sizes"):
        check_sampler(sampler.draw, 40, sample_rate=0.7 * rate)


def test_poisson_lots_may_be_empty():
    indices, offsets = PoissonSampler(3, 1e-4, RandomStream.from_seed(0)).draw(10)
    assert np.all(np.diff(offsets) >= 0) and offsets.size == 11 and indices.size < 10


def test_poisson_tiny_rate_over_a_huge_table():
    sampler = PoissonSampler(10**12, 1e-10, RandomStream.from_seed(0))
    indices, _ = sampler.draw(50)
    assert indices.max() < 10**12
    assert stats.poisson.cdf(indices.size, 5000) > FALSE_ALARM
    assert stats.poisson.sf(indices.size, 5000) > FALSE_ALARM


def test_poisson_reads_a_lot_not_the_table():
    class Counting(RandomStream):
        drawn = 0

        def words(self, count):
            Counting.drawn += count
            return super().words(count)

    stream = Counting(bytes(32), seeded=True)
    PoissonSampler(10**9, 1e-6, stream).draw(1)
    assert Counting.drawn < 3000


@pytest.mark.parametrize(("n_rows", "size"), [(7, 1), (7, 3), (7, 6), (30, 5)])
def test_uniform_subsets_are_independent_and_of_fixed_size(n_rows, size):
    sampler = UniformSubsetSampler(n_rows, size, RandomStream.from_seed(3))
    lots = [sampler.draw(10_000) for _ in range(2)]
    indices = np.concatenate([indices for indices, _ in lots])
    check_sampler(lambda n: (indices, size * np.arange(n + 1)), n_rows, batch_size=size)


def test_uniform_subsets_are_all_equally_likely():
    indices, _ = UniformSubsetSampler(6, 3, RandomStream.from_seed(4)).draw(40_000)
    codes = np.unique((2**indices).reshape(-1, 3).sum(axis=1), return_inverse=True)[1]
    check_noise(codes, stats.randint(0, 20))


@pytest.mark.parametrize("size", [0, 11, -1])
def test_lots_are_not_larger_than_the_table(size):
    """Compiled code would follow row numbers outside it."""
    with pytest.raises(ValueError, match="batch_size must lie in"):
        UniformSubsetSampler(10, size, RandomStream.from_seed(0))


@pytest.mark.parametrize(("n_rows", "rate"), [(0, 0.5), (9, 0.0), (9, 1.0), (9, float("nan"))])
def test_sample_rates_are_probabilities(n_rows, rate):
    with pytest.raises(ValueError, match="sample_rate in"):
        PoissonSampler(n_rows, rate, RandomStream.from_seed(0))
