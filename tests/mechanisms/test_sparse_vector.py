"""The sparse vector technique: what it answers, what it costs, and which variants are wrong."""

import copy
import itertools
import math
import os
import pickle

import numpy as np
import pytest
import sparse_vectors as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skdp.accounting import PureDPEvent
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.mechanisms import RandomStream, SparseVector, record_releases
from skdp.testing import check_noise

# Every statistical test below fails a right implementation with probability below this.
FALSE_ALARM = 1e-7


def streams(length, most):
    """All answers of a stream that has not ended before its last query."""
    for answers in itertools.product((False, True), repeat=length):
        if sum(answers) < most or (sum(answers) == most and answers[-1]):
            yield answers


@pytest.mark.parametrize("monotone", [False, True])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_ratio_of_exact_chances_exceeds_e_to_the_epsilon(monotone, data):
    most, epsilon = data.draw(st.integers(1, 3)), data.draw(st.floats(0.05, 4.0))
    number = st.floats(-3.0, 3.0)
    move = st.floats(0.0 if monotone else -1.0, 1.0)
    pairs = data.draw(st.lists(st.tuples(number, move), min_size=2, max_size=4))
    one = np.array([value for value, _ in pairs])
    other = one + np.array([moved for _, moved in pairs])
    variant = oracle.right(epsilon, most, monotone)
    for answers in streams(len(pairs), most):
        here, there = (oracle.chance(variant, values, answers) for values in (one, other))
        assert abs(math.log(here / there)) <= epsilon * (1.0 + 1e-7)


# What was published, at epsilon 1: the neighbours' queries, and answers that tell them apart.
ONE, OTHER = np.repeat([0.0, 1.0], 3), np.repeat([1.0, 0.0], 3)
TELLING = (False,) * 3 + (True,) * 3
WRONG = {
    "Lee and Clifton": (oracle.lee_clifton(1.0, 3), 3.39, ONE, OTHER, TELLING),
    "Chen et al.": (oracle.chen(1.0), 2.35, ONE, OTHER, TELLING),
    "Stoddard et al.": (oracle.stoddard(1.0), math.inf, ONE[2:4], OTHER[2:4], TELLING[2:4]),
}


@pytest.mark.parametrize("name", WRONG)
def test_published_variants_are_wrong(name):
    variant, stated, one, other, telling = WRONG[name]
    chances = [oracle.chance(variant, values, telling) for values in (one, other)]
    loss = math.log(chances[0] / chances[1]) if chances[1] else math.inf
    assert loss == pytest.approx(stated, abs=0.005)


def test_half_the_noise_is_for_monotone_queries_only():
    one, other = np.repeat([-2.0, -1.0], [100, 1]), np.repeat([-1.0, -2.0], [100, 1])
    answers = (False,) * 100 + (True,)
    for variant, least, most in (
        (oracle.forgets_two(1.0, 1), 1.49, 1.5),
        (oracle.right(1.0, 1), 0.9, 1.0),
    ):
        here, there = (oracle.chance(variant, values, answers) for values in (one, other))
        assert least < math.log(here / there) <= most


def answered(count, monotone=False, epsilon=1.0, sensitivity=1.0):
    stream = RandomStream.from_seed(12)
    found = []
    for _ in range(count):
        sparse = SparseVector(epsilon, sensitivity, stream, max_positives=2, monotone=monotone)
        answers = [sparse.is_above(value) for value in (1.0, -1.0)]
        found.append(2 * answers[0] + answers[1])
    return found


def law(variant):
    chances = [
        oracle.chance(variant, np.array([1.0, -1.0]), answers) for answers in streams(2, np.inf)
    ]
    return stats.rv_discrete(values=(range(4), chances))


@pytest.mark.parametrize("monotone", [False, True])
def test_answers_have_the_exact_law_and_no_other(monotone):
    found = answered(1500, monotone, epsilon=8.0)
    check_noise(found, law(oracle.right(8.0, 2, monotone)))
    for wrong in (oracle.right(8.0, 2, not monotone), oracle.right(5.0, 2, monotone)):
        with pytest.raises(AssertionError, match="follow the law"):
            check_noise(found, law(wrong))


def test_the_noise_of_the_threshold_has_its_law_and_no_other():
    stream = RandomStream.from_seed(3)
    drawn = [SparseVector(1.5, 2.0, stream, max_positives=3) for _ in range(500)]
    noise = np.array([float(each._threshold_noise * each._grid) for each in drawn])
    scale = 2.0 * oracle.right(1.5, 3).threshold
    check_noise(noise, stats.laplace(scale=scale))
    with pytest.raises(AssertionError, match="follow the law"):
        check_noise(noise, stats.laplace(scale=1.5 * scale))


def sparse(**options):
    return SparseVector(1.0, 1.0, RandomStream.from_seed(0), **options)


def test_a_stream_ends_and_says_so_without_looking():
    stream = sparse(max_positives=2)
    assert stream.event == PureDPEvent(1.0)
    assert [stream.is_above(value) for value in (1e6, -1e6, 1e6)] == [True, False, True]
    assert stream.positives_left == 0
    for value in (-1e9, math.nan):
        with pytest.raises(RuntimeError, match="another SparseVector"):
            stream.is_above(value)


def test_the_threshold_is_noised_once_and_queries_each_time():
    """With hardly any noise on queries, all answers agree; with one scale for both, not."""
    once = SparseVector(1.0, 1.0, RandomStream.from_seed(2), max_positives=400)
    answers = [once.is_above(0.0) for _ in range(400)]
    assert 100 < sum(answers) < 300  # chance: 1e-7 if the threshold's noise is near 0
    level = once._threshold_noise * float(once._grid)
    share = stats.laplace(scale=float(once._scale * once._grid)).sf(level)
    assert stats.binomtest(sum(answers), 400, share).pvalue > FALSE_ALARM


def test_the_whole_stream_is_charged_before_any_query():
    budget = BudgetAccountant(epsilon=1.5, delta=1e-6)
    stream = sparse(max_positives=3, accountant=budget)
    (entry,) = budget.entries()
    assert (entry["label"], entry["seeded"]) == ("SparseVector", True)
    assert entry["event"] == stream.event.to_dict()
    for value in (5.0, -3.0, 9.0):
        stream.is_above(value)
    assert budget.entries() == [entry]
    with pytest.raises(BudgetExceededError):
        sparse(accountant=budget)


def test_parameters_are_checked_before_the_charge_and_values_not_told():
    budget = BudgetAccountant(epsilon=1.0, delta=1e-6)
    stream = RandomStream.from_seed(0)
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon must be"):
            SparseVector(bad, 1.0, stream, accountant=budget)
        with pytest.raises(ValueError, match="sensitivity must be"):
            SparseVector(1.0, bad, stream, accountant=budget)
    for bad in (0, 10**400):
        with pytest.raises(ValueError, match="max_positives"):
            SparseVector(1.0, 1.0, stream, max_positives=bad, accountant=budget)
    with pytest.raises(ValueError, match="monotone"):
        SparseVector(1.0, 1.0, stream, monotone="False", accountant=budget)
    with pytest.raises(ValueError, match="largest float"):
        SparseVector(1e-200, 1e200, stream, accountant=budget)
    fresh = SparseVector(1.0, 1.0, stream, accountant=budget)  # nothing was charged so far
    for bad in (math.nan, math.inf, 77.125e300, "77.125"):
        with pytest.raises(ValueError, match="must be finite") as caught:
            fresh.is_above(bad)
        assert "77.125" not in str(caught.value)


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_answers_are_not_given_twice(duplicate):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(sparse())
    with pytest.raises(AttributeError):
        sparse().positives_left = 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Processes are forked on POSIX alone.")
def test_a_forked_process_is_not_answered():
    alarm = sparse()
    child = os.fork()
    if child == 0:
        try:
            alarm.is_above(1.0)
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert alarm.is_above(1e9)


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(1e-100, 1e300),
    sensitivity=st.floats(1e-300, 1e100),
    value=st.floats(-1e300, 1e300),
    threshold=st.floats(-1e300, 1e300),
    most=st.integers(1, 10**6),
)
def test_any_query_is_answered(epsilon, sensitivity, value, threshold, most):
    stream = RandomStream.from_seed(1)
    one = SparseVector(epsilon, sensitivity, stream, max_positives=most)
    assert type(one.is_above(value, threshold)) is bool


def test_traces_record_and_replay_answers():
    with record_releases() as trace:
        first = [sparse(max_positives=9).is_above(value) for value in (0.3, -0.2)]
    with record_releases(replayed=trace) as again:
        other = SparseVector(1.0, 1.0, RandomStream.from_seed(9))
        assert other.is_above(-0.5) == first[0]
        assert other.positives_left == 1 - first[0]
    release = again.releases[0]
    assert (release.norm, release.sensitivity) == (math.inf, 1.0)
    assert release.value == -0.5
