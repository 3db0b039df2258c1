"""Samplers draw exactly the lots that are accounted for."""

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import PoissonSampler, RandomStream, UniformSubsetSampler

FALSE_ALARM = 1e-7


def inclusion_matrix(sampler, steps):
    indices, offsets = sampler.draw(steps)
    included = np.zeros((steps, sampler.n_rows), dtype=int)
    for step in range(steps):
        lot = indices[offsets[step] : offsets[step + 1]]
        assert np.unique(lot).size == lot.size, "a row came twice"
        included[step, lot] = 1
    assert offsets[0] == 0 and offsets[-1] == indices.size
    return included


@pytest.mark.parametrize("rate", [0.003, 0.1, 0.6, 0.97])
def test_poisson_inclusions_are_independent_bernoulli(rate):
    n_rows, steps = 40, 20_000
    included = inclusion_matrix(PoissonSampler(n_rows, rate, RandomStream.from_seed(1)), steps)
    # Each row's count, and the total, are binomial.
    for counts, trials in ((included.sum(axis=0), steps), (included.sum(), steps * n_rows)):
        assert np.min(stats.binom.cdf(counts, trials, rate)) > FALSE_ALARM / n_rows
        assert np.min(stats.binom.sf(counts - 1, trials, rate)) > FALSE_ALARM / n_rows
    # Lot sizes are binomial too, which shuffling into fixed-size batches would not give.
    sizes = np.bincount(included.sum(axis=1), minlength=n_rows + 1)
    expected = stats.binom.pmf(np.arange(n_rows + 1), n_rows, rate) * steps
    common = expected > 5
    observed = np.append(sizes[common], sizes[~common].sum())
    theory = np.append(expected[common], expected[~common].sum())
    keep = theory > 0
    assert stats.chisquare(observed[keep], theory[keep] * steps / theory[keep].sum()).pvalue > (
        FALSE_ALARM
    )


def test_poisson_pairs_are_uncorrelated_within_and_across_steps():
    included = inclusion_matrix(PoissonSampler(10, 0.3, RandomStream.from_seed(2)), 50_000)
    centred = included - 0.3
    deviation = 0.21 / np.sqrt(50_000)
    within = (centred.T @ centred / 50_000)[np.triu_indices(10, 1)]
    across = (centred[1:].T @ centred[:-1] / 50_000).ravel()
    assert np.max(np.abs(within)) < 6.5 * deviation
    assert np.max(np.abs(across)) < 6.5 * deviation


def test_poisson_test_would_notice_a_wrong_rate():
    included = inclusion_matrix(PoissonSampler(40, 0.1, RandomStream.from_seed(1)), 20_000)
    assert stats.binom.sf(included.sum() - 1, 20_000 * 40, 0.095) < FALSE_ALARM


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
def test_uniform_subsets_have_fixed_size_and_equal_inclusion(n_rows, size):
    steps = 30_000
    sampler = UniformSubsetSampler(n_rows, size, RandomStream.from_seed(3))
    included = np.vstack([inclusion_matrix(sampler, steps // 2) for _ in range(2)])
    assert np.all(included.sum(axis=1) == size)
    share = size / n_rows
    counts = included.sum(axis=0)
    assert np.min(stats.binom.cdf(counts, steps, share)) > FALSE_ALARM / n_rows
    assert np.min(stats.binom.sf(counts - 1, steps, share)) > FALSE_ALARM / n_rows


def test_uniform_subsets_are_all_equally_likely():
    included = inclusion_matrix(UniformSubsetSampler(6, 3, RandomStream.from_seed(4)), 40_000)
    codes = included @ (2 ** np.arange(6))
    counts = np.unique(codes, return_counts=True)[1]
    assert counts.size == 20
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize("size", [0, 11, -1])
def test_lots_are_not_larger_than_the_table(size):
    """Compiled code would follow row numbers outside it."""
    with pytest.raises(ValueError, match="batch_size must lie in"):
        UniformSubsetSampler(10, size, RandomStream.from_seed(0))


@pytest.mark.parametrize(("n_rows", "rate"), [(0, 0.5), (9, 0.0), (9, 1.0), (9, float("nan"))])
def test_sample_rates_are_probabilities(n_rows, rate):
    with pytest.raises(ValueError, match="sample_rate in"):
        PoissonSampler(n_rows, rate, RandomStream.from_seed(0))
