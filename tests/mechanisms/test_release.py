"""Releases: the lemmas on sums of records, attained; noise and its price by closed forms."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from skdp.accounting import (
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    NormExponentialEvent,
    RepeatedEvent,
)
from skdp.mechanisms import ContributionBound, RandomStream, record_releases
from skdp.mechanisms.release import Release, compose

RELATIONS = ["add-remove", "replace-one"]


def moved(parts, adjacency):
    """Return how far sums are apart that differ in one of some records, in both norms."""
    pairs = (
        itertools.product(parts, parts) if adjacency == "replace-one" else ((p, 0) for p in parts)
    )
    gaps = [np.subtract(one, other) for one, other in pairs]
    return max(np.abs(gap).sum() for gap in gaps), max(np.linalg.norm(gap) for gap in gaps)


@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("unit", [0, 1, 2**30])
def test_shares_attain_their_sensitivities_and_no_more(unit, adjacency):
    rng, total = np.random.default_rng(0), unit or 1
    release = Release.shares("x", adjacency, unit)
    corners = [*(total * np.eye(4)), np.zeros(4)]
    for parts, attained in ((corners, True), (total * rng.dirichlet(np.ones(4), 60), False)):
        l1, l2 = moved(parts, adjacency)
        assert l1 <= release.l1 * (1.0 + 1e-14) and l2 <= release.l2
        assert not attained or (l1 == release.l1 and l2 > (1.0 - 1e-12) * release.l2)


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_means_of_a_set_move_sums_no_further_than_the_set_does(adjacency):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(30, 3))
    means = rng.dirichlet(np.full(30, 0.1), 100) @ points
    norm, gap = (moved(points, relation)[1] for relation in RELATIONS)
    release = Release.bounded("x", ContributionBound(norm, gap, "a set"), adjacency)
    assert moved(means, adjacency)[1] <= release.l2 == moved(points, adjacency)[1]
    # Of two arms: their vectors have no entry in common.
    arms = [np.concatenate(pair) for p in points for pair in ((p, 0 * p), (0 * p, p))]
    assert moved(arms, adjacency)[1] <= max(release.l2, math.sqrt(2.0) * norm)


def test_each_law_has_its_event():
    real, counts = Release("x", 2.0), Release.shares("x", "replace-one")
    assert real.continuous(3.0).event == GaussianEvent(3.0)
    assert replace(real, times=4).continuous(3.0).event == RepeatedEvent(GaussianEvent(3.0), 4)
    assert counts.laplace(3.0).event == DiscreteLaplaceEvent(1.5, 2)
    assert counts.gaussian(3.0).event == RepeatedEvent(DiscreteGaussianEvent(3.0, 1), 2)
    fine = Release.shares("x", "replace-one", 2**20).gaussian(3.0).event
    assert fine.noise_multiplier == pytest.approx(3.0 / math.sqrt(2.0), rel=1e-9)
    pure = real.without_delta(0.5, 3, discrete=False).event
    assert isinstance(pure, NormExponentialEvent)
    assert pure.noise_multiplier == pytest.approx(2.0, rel=1e-12)
    with pytest.raises(ValueError, match="counts that change by one"):
        real.gaussian(3.0)


def test_equal_events_are_counted_and_others_listed():
    one, other = Release("x", 1.0).continuous(2.0), Release("y", 1.0).continuous(3.0)
    assert compose([one]) == one.event
    assert compose([one, one]) == RepeatedEvent(one.event, 2)
    assert compose([one, other]) == ComposedEvent((one.event, other.event))


def test_integers_beyond_doubles_are_released_as_integers():
    release = Release.number("x", 1, 2**30).laplace(1e-9)
    exact = np.array([2**60 + 1, 2**60 + 2])
    with record_releases() as trace:
        noisy = release.make(exact, RandomStream.from_seed(0))
    noise = release.mechanism(RandomStream.from_seed(0)).steps(2)
    assert noisy.tolist() == [float(int(v) + z) for v, z in zip(exact, noise, strict=True)]
    (seen,) = trace.releases
    assert (seen.label, seen.norm, seen.sensitivity) == ("x", 1.0, 1.0)
    # On a grid other than 1, integers are numbers like all others.
    real = Release("x", 1.0).on_grid(1e-3, 2)
    assert np.abs(real.make(np.array([3, -7]), RandomStream.from_seed(0)) - [3, -7]).max() < 0.1


def test_words_name_norm_size_law_and_scale():
    counts = Release.shares("x", "replace-one", 2**20)
    said = (
        counts.laplace(3.0).words,
        counts.gaussian(3.0).words,
        Release("x", 2.0).continuous(3.0).words,
    )
    assert said == (
        "L1 sensitivity 2 (records), discrete Laplace noise of scale 3",
        "L2 sensitivity 1.41421 (records), discrete Gaussian noise of scale 3",
        "L2 sensitivity 2, Gaussian noise of scale 6",
    )
