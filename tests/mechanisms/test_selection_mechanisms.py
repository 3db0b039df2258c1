"""Selectors: exact probabilities, privacy by enumeration, and what they draw."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from skdp.mechanisms import (
    RandomStream,
    exponential_mechanism,
    laplace_mechanism,
    permute_and_flip,
    record_releases,
    report_noisy_max,
)
from skdp.testing import check_noise

# Every statistical test below fails a right implementation with probability below this.
FALSE_ALARM = 1e-7
SCORES = (90, 88, 85, 80, 60)


def flip_chances(scores, epsilon, sensitivity=1.0, monotone=False):
    """Chance of each index under permute-and-flip, by going through all orders."""
    scores = np.asarray(scores, dtype=float)
    factor = epsilon / sensitivity * (1.0 if monotone else 0.5)
    accept = np.exp(factor * (scores - scores.max()))
    chances = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for index in order:
            chances[index] += left * accept[index]
            left *= 1.0 - accept[index]
    return chances / math.factorial(len(scores))


def exponential_chances(scores, epsilon, monotone=False):
    return special.softmax((1.0 if monotone else 0.5) * epsilon * np.asarray(scores, dtype=float))


def laplace_chances(scores, epsilon, monotone=False):
    """Chance of each index to be the largest with Laplace noise, by quadrature between kinks."""
    scaled = (1.0 if monotone else 0.5) * epsilon * np.asarray(scores, dtype=float)
    ends = np.concatenate([[scaled.min() - 40.0], np.sort(scaled), [scaled.max() + 40.0]])
    nodes, weights = np.polynomial.legendre.leggauss(64)
    half = 0.5 * np.diff(ends)[:, None]
    at = (ends[:-1, None] + half + half * nodes).ravel()[:, None] - scaled
    tail = 0.5 * np.exp(-np.abs(at))
    below = np.where(at < 0.0, tail, 1.0 - tail)
    return [
        float(np.sum((half * weights).ravel() * tail[:, i] * np.delete(below, i, axis=1).prod(1)))
        for i in range(len(scaled))
    ]


def draws(select, count, *args, **options):
    stream = RandomStream.from_seed(11)
    return [select(SCORES, *args, stream, **options) for _ in range(count)]


def law(chances):
    return stats.rv_discrete(values=(range(len(SCORES)), chances))


@pytest.mark.parametrize(
    ("select", "options", "chances"),
    [
        (permute_and_flip, {}, flip_chances),
        (report_noisy_max, {}, flip_chances),
        (exponential_mechanism, {}, exponential_chances),
        (report_noisy_max, {"noise": "gumbel"}, exponential_chances),
        (report_noisy_max, {"noise": "laplace"}, laplace_chances),
    ],
)
def test_draws_have_the_exact_distribution_and_no_other(select, options, chances):
    found = draws(select, 1500, 0.4, 1.0, **options)
    check_noise(found, law(chances(SCORES, 0.4)))
    for wrong in (0.8, 0.2):  # twice or half the noise, such as a factor of two forgotten
        with pytest.raises(AssertionError, match="shape"):
            check_noise(found, law(chances(SCORES, wrong)))


def test_permute_and_flip_is_not_the_exponential_mechanism():
    with pytest.raises(AssertionError, match="follow the law"):
        check_noise(draws(permute_and_flip, 6000, 0.4, 1.0), law(exponential_chances(SCORES, 0.4)))


@pytest.mark.parametrize("select", [permute_and_flip, exponential_mechanism, report_noisy_max])
def test_sensitivity_and_monotone_scores_scale_the_noise(select):
    chances = exponential_chances if select is exponential_mechanism else flip_chances
    check_noise(draws(select, 1500, 1.2, 3.0), law(chances(SCORES, 0.4)))
    check_noise(draws(select, 1500, 0.2, 1.0, monotone=True), law(chances(SCORES, 0.4)))


LAWS = [flip_chances, exponential_chances, laplace_chances]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("chances", "near"), [(LAWS[0], 0.9), (LAWS[1], 0.8), (LAWS[2], 0.75)])
def test_privacy_by_enumeration(chances, near, monotone):
    """Integer scores that a record changes by at most 1: no ratio above e^epsilon, one close."""
    rng = np.random.default_rng(0)
    epsilon, largest, widest = 0.7, 0.0, 0.0
    for _ in range(120):
        scores = rng.integers(0, 8, rng.integers(2, 6))
        change = rng.integers(0 if monotone else -1, 2, len(scores))
        both = [chances(s, epsilon, monotone=monotone) for s in (scores, scores + change)]
        losses = np.log(np.divide(*both))
        largest, widest = max(largest, np.max(np.abs(losses))), max(widest, np.ptp(losses))
    assert near * epsilon < largest <= epsilon * (1.0 + 1e-12)
    # Losses of the exponential mechanism alone lie in an interval of that width.
    assert (widest <= epsilon * (1.0 + 1e-12)) == (chances is exponential_chances)


@settings(max_examples=30, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.floats(-9, 9), st.floats(-1, 1)), min_size=2, max_size=5),
    epsilon=st.floats(0.01, 5.0),
    monotone=st.booleans(),
)
def test_no_scores_have_a_ratio_above_e_to_the_epsilon(pairs, epsilon, monotone):
    scores = np.array([score for score, _ in pairs])
    moved = scores + [abs(change) if monotone else change for _, change in pairs]
    for chances in LAWS:
        both = [chances(s, epsilon, monotone=monotone) for s in (scores, moved)]
        assert np.max(np.abs(np.log(np.divide(*both)))) <= epsilon * (1.0 + 1e-9)


FINITE = st.floats(-1e308, 1e308)
POSITIVE = st.floats(1e-300, 1e300)


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(FINITE, min_size=1, max_size=6),
    epsilon=POSITIVE,
    sensitivity=POSITIVE,
    seed=st.integers(0, 100),
    monotone=st.booleans(),
)
def test_any_scores_give_an_index(scores, epsilon, sensitivity, seed, monotone):
    stream = RandomStream.from_seed(seed)
    for select in (permute_and_flip, exponential_mechanism, report_noisy_max):
        index = select(scores, epsilon, sensitivity, stream, monotone=monotone)
        assert type(index) is int
        assert 0 <= index < len(scores)


def test_ties_are_broken_evenly_and_far_scores_never_win():
    stream = RandomStream.from_seed(3)
    for select in (permute_and_flip, exponential_mechanism, report_noisy_max):
        found = [select([1e6, 1e6, 0.0], 1.0, 1.0, stream) for _ in range(2000)]
        counts = np.bincount(found, minlength=3)
        assert counts[2] == 0
        assert stats.binomtest(int(counts[0]), 2000).pvalue > FALSE_ALARM


@pytest.mark.parametrize("select", [permute_and_flip, exponential_mechanism, report_noisy_max])
def test_parameters_are_validated_and_scores_not_told(select):
    stream = RandomStream.from_seed(0)
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon must be"):
            select(SCORES, bad, 1.0, stream)
        with pytest.raises(ValueError, match="sensitivity must be"):
            select(SCORES, 1.0, bad, stream)
    with pytest.raises(ValueError, match="at least one"):
        select([], 1.0, 1.0, stream)
    for scores in ([1.0, math.nan, 77.125], [math.inf, 77.125]):
        with pytest.raises(ValueError, match="must be finite") as caught:
            select(scores, 1.0, 1.0, stream)
        assert "77.125" not in str(caught.value)
    with pytest.raises(ValueError, match="noise must be"):
        report_noisy_max(SCORES, 1.0, 1.0, stream, noise="normal")


def test_traces_record_and_replay_choices():
    with record_releases() as trace:
        first = permute_and_flip([3.0, 2.0], 0.1, 1.0, RandomStream.from_seed(0))
        noisy = laplace_mechanism([1.0, 2.0], 2.0, 0.5, random_state=0)
    with record_releases(replayed=trace) as again:
        assert permute_and_flip([2.0, 3.0], 0.1, 1.0, RandomStream.from_seed(1)) == first
        assert np.array_equal(laplace_mechanism([1.5, 2.0], 2.0, 0.5, random_state=1), noisy)
    choice, addition = again.releases
    # Scales are rounded up.
    assert (choice.norm, choice.sensitivity) == (math.inf, 1.0)
    assert 20.0 < choice.sigma < 20.0 * (1.0 + 1e-15)
    assert (addition.norm, addition.sensitivity) == (1.0, 2.0)
    assert 4.0 < addition.sigma < 4.0 * (1.0 + 1e-15)
    assert np.max(np.abs(choice.value - trace.releases[0].value)) == 1.0


# The Laplace mechanism and the draws that it is made of.


def test_laplace_noise_has_the_right_scale_and_no_other():
    noise = laplace_mechanism(np.zeros((10_000, 4)), 3.0, 1.5, random_state=4)
    check_noise(noise, stats.laplace(scale=2.0))
    for wrong in (stats.laplace(scale=1.9), stats.laplace(scale=2.1), stats.norm(scale=8.0**0.5)):
        with pytest.raises(AssertionError, match="follow the law"):
            check_noise(noise, wrong)


def test_laplace_mechanism_keeps_shapes_and_seeds():
    assert laplace_mechanism(5.0, 1.0, 1.0).shape == ()
    one, same, other = (laplace_mechanism([1.0], 1.0, e, random_state=3) for e in (0.5, 0.5, 0.25))
    assert one == same
    assert one != other
    assert laplace_mechanism([1.0], 1.0, 1.0) != laplace_mechanism([1.0], 1.0, 1.0)
    for sensitivity, epsilon in ((0.0, 1.0), (1.0, math.inf), (math.nan, 1.0)):
        with pytest.raises(ValueError, match="must be a finite number > 0"):
            laplace_mechanism([1.0], sensitivity, epsilon)
    with pytest.raises(ValueError, match="largest float"):
        laplace_mechanism([1.0], 1e200, 1e-200)


def test_draws_of_the_stream():
    stream = RandomStream.from_seed(8)
    check_noise(stream.exponential(100_000), stats.expon())
    check_noise(stream.gumbel(100_000), stats.gumbel_r())
    check_noise(stream.laplace(100_000), stats.laplace())
    for bound in (1, 3, 7):
        check_noise([stream.integer(bound) for _ in range(3000)], stats.randint(0, bound))
    for exponent in (0.0, 0.3, 1.0, 2.5):
        hits = [stream.bernoulli_exp(exponent) for _ in range(4000)]
        check_noise(hits, stats.bernoulli(math.exp(-exponent)))
    assert not stream.bernoulli_exp(1e300)
    assert not stream.bernoulli_exp(math.inf)


@pytest.mark.parametrize("exponent", [0.0, 2.0**-60, 0.3, 0.99])
def test_coins_fall_for_exactly_as_many_words_as_their_chance_says(exponent):
    class Given(RandomStream):
        def words(self, count):
            return np.array([self.waiting], dtype=np.uint64)

    stream, wanted = Given(bytes(32), seeded=True), int(math.exp(-exponent) * 2.0**64)
    for stream.waiting, falls in ((wanted - 1, True), (min(wanted, 2**64 - 1), wanted == 2**64)):
        assert stream.bernoulli_exp(exponent) == falls


@pytest.mark.parametrize("word", [0, 1, 2**64 - 2, 2**64 - 1])
def test_extreme_words_give_finite_numbers(word):
    class Constant(RandomStream):
        def words(self, count):
            return np.full(count, word, dtype=np.uint64)

    stream = Constant(bytes(32), seeded=True)
    for number in (stream.exponential(1), stream.gumbel(1), stream.laplace((1,))):
        assert np.isfinite(number[0])
    assert stream.exponential(1)[0] > 0.0 and 0.0 < stream.uniform(1)[0] < 1.0


def test_integers_leave_the_last_words_out():
    class Counting(RandomStream):
        given = (2**64 - 1, 2**64 - 2, 5)
        at = -1

        def words(self, count):
            type(self).at += 1
            return np.array([self.given[self.at]], dtype=np.uint64)

    # 2^64 = 1 modulo 3 and modulo 5: the last word belongs to no whole multiple.
    assert Counting(bytes(32), seeded=True).integer(5) == (2**64 - 2) % 5
