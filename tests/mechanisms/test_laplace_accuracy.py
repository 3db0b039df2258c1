"""How large Laplace noise gets: closed forms, what is drawn, and the bound of textbooks."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdp.mechanisms import RandomStream, laplace_accuracy, laplace_mechanism
from skdp.mechanisms.discrete import discrete_laplaces

# Every statistical test below fails a right implementation with probability below this.
FALSE_ALARM = 1e-7


def within(error, rate, k, discrete):
    """Chance that k errors are at most that large, in 60 digits."""
    with mp.workdps(60):
        rate = mp.mpf(rate)
        if discrete:
            tail = 2 * mp.exp(-rate * (mp.floor(error) + 1)) / (1 + mp.exp(-rate))
        else:
            tail = mp.exp(-rate * error)
        return (1 - tail) ** k


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(1e-3, 50.0),
    beta=st.one_of(st.floats(1e-30, 0.999999), st.floats(1e-3, 0.5)),
    k=st.one_of(st.integers(1, 5), st.integers(1, 10**12)),
    sensitivity=st.sampled_from([1.0, 2.0, 7.0, 0.3]),
)
def test_it_is_the_least_error_that_suffices(epsilon, beta, k, sensitivity):
    rate, options = mp.mpf(epsilon) / sensitivity, {"sensitivity": sensitivity}
    with mp.workdps(60):
        enough = 1 - mp.mpf(beta)
        exact = laplace_accuracy(epsilon, beta, k, **options)
        assert within(exact, rate, k, False) >= enough
        assert within(exact * (1 - 1e-12), rate, k, False) < enough
        assert exact <= laplace_accuracy(epsilon, beta, k, bound="union", **options)
        steps = laplace_accuracy(epsilon, beta, k, noise="discrete", **options)
        assert steps == int(steps) and within(steps, rate, k, True) >= enough
        # But for numbers that rounding cannot tell from whole ones.
        assert steps == 0.0 or within(steps - 1 - steps * 1e-12, rate, k, True) < enough
        union = laplace_accuracy(epsilon, beta, k, noise="discrete", bound="union", **options)
        assert steps <= union


@pytest.mark.parametrize("k", [1, 50])
def test_errors_are_as_large_as_it_says(k):
    beta, runs = 0.2, 4000
    stream = RandomStream.from_seed(1)
    noise = laplace_mechanism(np.zeros((runs, k)), 2.0, 0.5, random_state=3)
    largest = np.abs(noise).max(axis=1)
    for bound, expected in (("exact", True), ("union", k == 1)):
        error = laplace_accuracy(0.5, beta, k, sensitivity=2.0, bound=bound)
        chance = stats.binomtest(int(np.sum(largest > error)), runs, beta).pvalue
        assert (chance > FALSE_ALARM) or not expected
    steps = np.abs(discrete_laplaces(stream, 4, 40 * k)).reshape(40, k).max(axis=1)
    error = laplace_accuracy(0.25, beta, k, noise="discrete")
    assert stats.binomtest(int(np.sum(steps > error)), 40, beta, "greater").pvalue > FALSE_ALARM


def test_extremes_and_errors():
    assert laplace_accuracy(1e300, 0.5, sensitivity=1e-300, noise="discrete") == 0.0
    assert laplace_accuracy(1.0, 1e-300, 2**53) == laplace_accuracy(
        1.0, 1e-300, 2**53, bound="union"
    )
    for bad in (
        {"epsilon": 0.0},
        {"beta": 1.0},
        {"beta": 0.0},
        {"k": 0},
        {"k": 2**54},
        {"sensitivity": -1.0},
        {"noise": "normal"},
        {"bound": "none"},
        {"epsilon": 1e-200, "sensitivity": 1e200},
    ):
        with pytest.raises(ValueError):
            laplace_accuracy(**({"epsilon": 1.0, "beta": 0.1} | bad))
