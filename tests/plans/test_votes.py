"""Noise on votes: published values, what is released, and what is paid for it."""

import numpy as np
import pytest

from skdp.accounting import LaplaceEvent, PLDAccountant, RepeatedEvent
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import record_releases
from skdp.plans.votes import UNANSWERED, Threshold, VotePlan


def plan(aggregation="gaussian", queries=100, noise=40.0, threshold=None, adjacency="replace-one"):
    return VotePlan(250, queries, aggregation, adjacency, noise, threshold)


def epsilon(votes):
    return PLDAccountant(adjacency=votes.adjacency).compose(votes.event).epsilon(1e-5)


@pytest.mark.parametrize(
    ("target", "sigma"),
    [(0.5, 99.445047), (1, 52.759099), (2, 28.196766), (4, 15.289938), (8, 8.488521)],
)
def test_calibrated_noise(target, sigma):
    found = plan(queries=100).calibrated(target, 1e-5)
    assert found.noise == pytest.approx(sigma, rel=1e-4)
    assert epsilon(found) <= target


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("queries", "sigma", "expected"),
    [(100, 40.0, 1.356467), (1000, 40.0, 4.983306), (1000, 100.0, 1.760057)],
)
def test_gaussian_votes_cost_the_same_under_both_relations(adjacency, queries, sigma, expected):
    found = epsilon(plan(queries=queries, noise=sigma, adjacency=adjacency))
    assert found == pytest.approx(expected, abs=1e-6)


def test_votes_behind_a_threshold():
    votes = plan("confident-gaussian", 1000, 40.0, Threshold(200.0, 150.0 / 40.0, 286))
    assert epsilon(votes) == pytest.approx(2.601487, abs=1e-6)
    tests, answers = 1000 / 150.0**2, 2 * 286 / 40.0**2
    share = tests / (tests + answers)
    assert Threshold.with_share(share, 200.0, 1000, 286).ratio == pytest.approx(150.0 / 40.0)


def test_laplace_votes_are_paid_for_as_two_counts():
    votes = plan("laplace", 100, 20.0)
    assert 2.892 < epsilon(votes) < 2.895
    # Randomised response composes to 4.306791; one count, which is wrong, would cost less.
    single = PLDAccountant("replace-one").compose(RepeatedEvent(LaplaceEvent(20.0), 100))
    assert single.epsilon(1e-5) < 0.75 * epsilon(votes)


@pytest.mark.parametrize("aggregation", ["gaussian", "laplace"])
def test_votes_have_the_noise_that_is_charged(aggregation):
    (votes,) = plan(aggregation, 4000, 40.0).releases
    noise = votes.make(np.zeros((4000, 4)), RandomStream.from_seed(0))
    found = np.std(noise) if aggregation == "gaussian" else np.mean(np.abs(noise))
    assert found == pytest.approx(40.0, rel=0.05)  # six standard errors


def neighbours(n_queries=30, n_classes=4, seed=0):
    """Return counts of 250 votes, and those with one teacher's votes moved at every query."""
    rng = np.random.default_rng(seed)
    votes = rng.integers(n_classes, size=(250, n_queries))
    other = votes.copy()
    other[0] = rng.integers(n_classes, size=n_queries)
    tables = [np.eye(n_classes)[each].sum(axis=0) for each in (votes, other)]
    assert not np.array_equal(*tables)
    return tables


@pytest.mark.parametrize("aggregation", ["gaussian", "laplace", "confident-gaussian"])
def test_releases_move_by_no_more_than_they_declare_and_cost_what_is_charged(aggregation):
    one, other = neighbours()
    threshold = Threshold.with_share(0.2, 60.0, 30, 12) if "confident" in aggregation else None
    votes = plan(aggregation, 30, 5.0, threshold)
    with record_releases() as first:
        found = votes.label(one, RandomStream.from_seed(1))
    with record_releases(first) as second:
        np.testing.assert_array_equal(votes.label(other, RandomStream.from_seed(2)), found)
    assert len(first.releases) == len(second.releases) == (2 if threshold else 1)
    for a, b in zip(first.releases, second.releases, strict=True):
        moved = a.value - b.value
        assert 0.0 < np.linalg.norm(moved.ravel(), a.norm) <= a.sensitivity
        each = np.linalg.norm(moved.reshape(len(moved), -1), axis=1)
        assert each.max() <= np.sqrt(2.0) * (1.0 + 1e-12)
    spent = sum((each.sensitivity / each.sigma) ** 2 for each in first.releases)
    if aggregation != "laplace":
        mu = epsilon(votes)
        paid = 30 * 2.0 / 25.0 if threshold is None else 12 * 2.0 / 25.0 / 0.8
        assert spent <= paid * (1.0 + 1e-9) and mu > 0.0


def test_answers_are_those_above_the_threshold_and_no_more_than_are_paid_for():
    counts = np.array([[9.0, 1.0], [5.0, 5.0], [2.0, 8.0], [7.0, 3.0], [10.0, 0.0]])
    for most, expected in ((5, [0, UNANSWERED, 1, UNANSWERED, 0]), (2, [0, -1, 1, -1, -1])):
        votes = plan("confident-gaussian", 5, 1e-3, Threshold(7.5, 1.0, most))
        np.testing.assert_array_equal(votes.label(counts, RandomStream.from_seed(0)), expected)
    votes = plan("confident-gaussian", 5, 1e-3, Threshold(50.0, 1.0, 5))
    assert np.all(votes.label(counts, RandomStream.from_seed(0)) == UNANSWERED)
    with pytest.raises(ValueError, match="max_answers=6 exceeds the 5 queries"):
        Threshold.with_share(0.1, 7.5, 5, 6)
