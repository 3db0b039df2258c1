"""Checks of noise and samplers accept the right law, and reject wrong ones.

False alarms are below 1e-9 a check; what is rejected here is so but for one case in a million.
"""

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import RandomStream
from skdp.testing import check_noise, check_sampler

LAWS = [
    stats.norm(scale=2.0),
    stats.laplace(loc=1.0, scale=0.5),
    stats.expon(),
    stats.uniform(),
    stats.binom(40, 0.03),
    stats.poisson(0.4),
    stats.rv_discrete(values=(np.arange(-30, 31), stats.norm.pdf(np.arange(-30, 31) / 3.0) / 3.0)),
]
RIGHT = stats.norm(scale=2.0)


def draws(law, shape=10_000, seed=0):
    return law.rvs(size=shape, random_state=np.random.default_rng(seed))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: getattr(law, "dist", law).name or "discrete")
@pytest.mark.parametrize("shape", [1, 9, (2500, 4)])
def test_the_right_law_is_accepted(law, shape):
    p_values = check_noise(draws(law, shape), law)
    assert set(p_values) == {"location", "scale", "shape", "tails", "dependence"}
    assert all(0.0 < p_value <= 1.0 for p_value in p_values.values())


@pytest.mark.slow
def test_p_values_are_not_too_small():
    """Of 1000 small samples at most as many fall below a level as a binomial count allows."""
    found = [check_noise(draws(RIGHT, (25, 2), seed), RIGHT) for seed in range(1000)]
    for name in found[0]:
        for level in (0.3, 0.05, 0.01):
            count = sum(p_values[name] <= level for p_values in found)
            assert stats.binom.sf(count - 1, 1000, level) > 1e-9, name


NORMAL = stats.norm().rvs(size=20_000, random_state=np.random.default_rng(1))
WRONG = {
    "scale": [2.0 * NORMAL[:100] * 0.5, 2.0 * NORMAL[:120] * 2.0, 2.0 * NORMAL[:6500] * 1.1],
    "location": [2.0 * NORMAL[:13_000] + 0.2],
    "shape": [draws(stats.laplace(scale=np.sqrt(2.0))), np.sign(NORMAL) * 2.0],
    "tails": [2.0 * np.clip(NORMAL, -2.7, 2.7)],
    "dependence": [
        2.0 * np.repeat(NORMAL[:500], 2),
        2.0 * np.tile(NORMAL[:500], 2),
        2.0 * np.column_stack([NORMAL[:1000], NORMAL[5000:6000], NORMAL[:1000]]),
        2.0 * np.column_stack([NORMAL[:1000], -NORMAL[:1000]]),
    ],
}


@pytest.mark.parametrize(
    ("name", "values"), [(name, each) for name, cases in WRONG.items() for each in cases]
)
def test_wrong_noise_is_rejected_by_the_test_for_it(name, values):
    with pytest.raises(AssertionError, match=rf"follow the law: .*{name} \(p = "):
        check_noise(values, RIGHT)


def test_values_that_a_law_cannot_take():
    for values, law in (
        ([0.5, np.nan], RIGHT),
        ([0.5, np.inf], RIGHT),
        ([0.5, -0.1], stats.expon()),
        ([1.0, 1.5], stats.poisson(1.0)),
    ):
        with pytest.raises(AssertionError, match="cannot take"):
            check_noise(values, law)


def test_functions_are_asked_for_draws():
    asked = []

    def draw(n):
        asked.append(n)
        return RandomStream.from_seed(0).standard_normal(n)

    check_noise(draw, stats.norm(), n_draws=77)
    assert asked == [77]
    with pytest.raises(AssertionError, match="scale"):
        check_noise(draw, stats.norm(scale=1.5), n_draws=1000)


# Samplers. Each draws from a matrix of inclusions.


def as_lots(included):
    return np.nonzero(included)[1], np.append(0, np.cumsum(included.sum(axis=1)))


def allocate(k, t, n_rows, copies=1):
    """Return a sampler that puts each row into k of t lots; with copies, like other rows."""
    rng = np.random.default_rng(2)

    def draw(n_lots):
        ranks = rng.random((n_lots // t, t, n_rows // copies)).argsort(axis=1).argsort(axis=1)
        return as_lots(np.tile((ranks < k).reshape(n_lots, -1), copies))

    return draw


def poisson(rate=0.2, n_rows=20, change=lambda included: included):
    rng = np.random.default_rng(3)
    return lambda n_lots: as_lots(change(rng.random((n_lots, n_rows)) < rate))


def shuffle_into_batches(n_lots):
    """Lots of shuffled rows in turn, as loaders of batches make them."""
    orders = np.random.default_rng(4).random((n_lots // 5, 20)).argsort(axis=1)
    return orders.ravel(), np.arange(n_lots + 1) * 4


def independent_subsets(n_lots):
    orders = np.random.default_rng(5).random((n_lots, 20)).argsort(axis=1)
    return orders[:, :4].ravel(), np.arange(n_lots + 1) * 4


def sticky(included):
    included[1::2] = included[::2]
    return included


def reused(included):
    included[len(included) // 2 :] = included[: len(included) // 2]
    return included


def paired(included):
    included[:, 1] = included[:, 0]
    return included


@pytest.mark.parametrize("k", [1, 2])
def test_random_allocation(k):
    check_sampler(allocate(k, 5, 12), 12, allocation=(k, 5))
    with pytest.raises(AssertionError, match="Not every choice is of"):
        check_sampler(allocate(k, 5, 12), 12, allocation=(k + 1, 5))
    with pytest.raises(AssertionError, match="neighbouring lots"):
        check_sampler(allocate(k, 5, 12, copies=12), 12, allocation=(k, 5))
    with pytest.raises(AssertionError, match="not those of the stated sampler"):
        check_sampler(allocate(k, 5, 20), 20, sample_rate=k / 5)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (poisson(0.21), "location of lot sizes"),
        (shuffle_into_batches, "scale of lot sizes"),
        (poisson(change=sticky), "neighbouring lots"),
        (poisson(change=reused), "far lots"),
        (poisson(change=paired), "pairs of rows"),
        (poisson(change=lambda included: included & (np.arange(20) != 3)), "single rows"),
        (lambda n: (np.zeros(2 * n, dtype=int), 2 * np.arange(n + 1)), "includes a row twice"),
    ],
)
def test_lots_that_are_not_poisson(draw, words):
    check_sampler(poisson(), 20, sample_rate=0.2)
    with pytest.raises(AssertionError, match=words):
        check_sampler(draw, 20, sample_rate=0.2)


def test_shuffled_batches_are_no_independent_subsets():
    check_sampler(independent_subsets, 20, batch_size=4)
    with pytest.raises(AssertionError, match="neighbouring lots"):
        check_sampler(shuffle_into_batches, 20, batch_size=4)
    with pytest.raises(AssertionError, match="Not every choice is of 5"):
        check_sampler(shuffle_into_batches, 20, batch_size=5)
