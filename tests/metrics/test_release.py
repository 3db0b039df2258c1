"""The release: its price, how far neighbours are apart, and the estimates that follow."""

import math

import numpy as np
import pytest
from covering import pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from skdp.accounting import DiscreteGaussianEvent, PLDAccountant, RepeatedEvent
from skdp.mechanisms import RandomStream, record_releases
from skdp.metrics.release import ReleasePlan, fuse, with_total
from skdp.plans.scores import ScoreBins, number_of_bins
from skdp.statistics.noise import UNIT

ADJACENCIES = ["add-remove", "replace-one"]
STEPS = 14


@pytest.mark.parametrize(
    ("variance", "add_remove", "replace_one", "continuous"),
    [
        (4, 0.0540072236942, 0.120956509164, 0.052440323),
        (25, 0.000497763031288, 0.00560280953774, 0.00051253608),
    ],
)
def test_one_table_has_the_exact_price(variance, add_remove, replace_one, continuous):
    """Continuous noise would cost less at the one variance, and more at the other."""
    event = DiscreteGaussianEvent(math.sqrt(variance), 1)
    for adjacency, whole, wanted in (
        ("add-remove", event, add_remove),
        ("replace-one", RepeatedEvent(event, 2), replace_one),
    ):
        delta = PLDAccountant(adjacency).compose(whole).delta(0.5)
        assert delta.lower <= wanted * (1 + 1e-9) and delta.upper >= wanted * (1 - 1e-9)
        assert delta.upper <= wanted * (1 + 1e-6)
    assert (add_remove > continuous) == (variance == 4)


def plan_of(epsilon, adjacency, n_classes=2, **others):
    others = {"thresholds": (0.5,), **others}
    return ReleasePlan.build(epsilon, 1e-6, adjacency, 2000, np.arange(n_classes), **others)


def worth(plan):
    """Return mu of all that is released, in the units of Gaussian noise: every count of it."""
    parts = [(release, 1) for release in plan.releases]
    parts += [] if plan.search is None else [(plan.search, STEPS)]
    squares = (times * release.l2**2 / (release.sigma**2 - 256.0) for release, times in parts)
    return math.sqrt(sum(squares))


OTHERS = [{}, {"score_values": [0.2, 0.7]}, {"probabilities": False}, {"subgroups": ("a", "b")}]


@pytest.mark.parametrize(
    ("adjacency", "n_classes", "others", "epsilon"),
    pairs(ADJACENCIES, [2, 4], OTHERS, [0.1, 1.0, 8.0]),
)
def test_the_plan_keeps_its_target(adjacency, n_classes, others, epsilon):
    plan = plan_of(epsilon, adjacency, n_classes, **others)
    found = PLDAccountant(adjacency).compose(plan.event)
    assert 0.999 * epsilon < found.epsilon(1e-6).upper <= epsilon
    # The event has the price of a Gaussian whose mu is counted from all that is drawn.
    mu, at = worth(plan), 0.8 * epsilon
    wanted = ndtr(0.5 * mu - at / mu) - math.exp(at) * ndtr(-0.5 * mu - at / mu)
    assert found.delta(at).upper == pytest.approx(wanted, rel=1e-6)
    # All together are worth one table with the noise of the theorem: 4.225 or 5.975.
    if epsilon == 1.0:
        people = math.sqrt(1 if adjacency == "add-remove" else 2) / mu
        wanted = {"add-remove": 4.225, "replace-one": 5.975}[adjacency]
        assert people == pytest.approx(wanted, rel=1e-3)


def draw_table(rng, plan, people):
    """Return rows of four persons, some at the ends of bins, where offsets are largest."""
    n_classes, shape = len(plan.classes), plan.shape()
    rows = 4 * people
    scores = rng.uniform(size=(rows, shape[1]))
    for at, bins in enumerate(plan.bins):
        ends = np.concatenate([[0.0], bins.edges, np.nextafter(bins.edges, 0.0), [1.0]])
        scores[rows // 2 :, at] = rng.choice(ends, rows - rows // 2)
    codes, predicted = rng.integers(0, n_classes, (2, rows))
    members = rng.integers(0, shape[0], rows)
    found = [scores, codes, members, predicted]
    if rng.random() < 0.5:  # the first person's rows are alike
        for part in found:
            part[:people] = part[0]
    return found, np.repeat(np.arange(4), people)


def extreme_rows(plan, people, high):
    """Return rows of one person at one end of the bin with the largest offsets."""
    middle, half = plan.bins[0].middles
    widest = int((half * np.maximum(middle, 1.0 - middle)).argmax())
    ends = np.concatenate([[0.0], np.nextafter(plan.bins[0].edges, 0.0), [1.0]])
    score = ends[widest + 1] if high else np.concatenate([[0.0], plan.bins[0].edges])[widest]
    code = int(middle[widest] < 0.5) if len(plan.classes) == 2 else 0
    zero = np.zeros(people, dtype=int)
    return [np.full((people, plan.shape()[1]), score), zero + code, zero, zero + int(high)]


@pytest.mark.parametrize(
    ("adjacency", "n_classes", "subgroups", "people"),
    pairs(ADJACENCIES, [2, 3], [None, ("a", "b")], [1, 3]),
)
def test_neighbours_are_as_near_as_declared_and_no_nearer(adjacency, n_classes, subgroups, people):
    """Of every vector that is released, wherever the search has put the bins."""
    rng = np.random.default_rng(0)
    first = plan_of(1.0, adjacency, n_classes, subgroups=subgroups)
    worst, offsets = np.zeros(len(first.releases)), 0.0
    for turn in range(40):
        tables = first.shape()[1]
        located = [(rng.normal(0.0, 3.0), rng.choice([0.02, 0.3, 2.0])) for _ in range(tables)]
        plan = first.placed(located)
        rows, ids = draw_table(rng, plan, people)
        if turn < 4:
            rows = [
                np.concatenate([a, b[people:]])
                for a, b in zip(extreme_rows(plan, people, turn % 2 == 0), rows, strict=True)
            ]
        other, own = [part[people:] for part in rows], ids[people:]
        if adjacency == "replace-one":
            kept = extreme_rows(plan, people, turn % 2 != 0)
            if turn >= 4:
                kept = [part[:people] for part in draw_table(rng, plan, people)[0]]
            other = [np.concatenate([a, b]) for a, b in zip(kept, other, strict=True)]
            own = ids
        weights = [UNIT // np.bincount(part)[part] for part in (ids, own)]
        for place, (noise, one, two) in enumerate(
            zip(
                plan.releases,
                plan.count(*rows, weights[0]),
                plan.count(*other, weights[1]),
                strict=True,
            )
        ):
            gap = (one - two).astype(object)
            assert np.abs(gap).sum() <= noise.l1
            assert (gap**2).sum() <= noise.l2**2
            assert np.abs(gap).max() <= (noise.largest or UNIT)
            worst[place] = max(worst[place], (gap**2).sum() / noise.l2**2)
            if noise.label == "offsets":
                offsets = max(offsets, np.abs(gap).max() / UNIT)
    assert np.all(worst[:-1] > 1.0 - 1e-6)
    # Each offset moves by as much as is declared; both together do where one bin is the widest.
    assert offsets > (1.0 if adjacency == "add-remove" else 2.0) - 1e-6


@pytest.mark.parametrize(("adjacency", "n_classes", "people"), pairs(ADJACENCIES, [2, 3], [1, 3]))
def test_counts_of_the_search_move_by_one(adjacency, n_classes, people):
    """A person more, or another one: every noisy count of the search, replayed."""
    plan = plan_of(1.0, adjacency, n_classes)
    tables, rng = plan.shape()[1], np.random.default_rng(0)
    scores = rng.uniform(size=(30 * people, tables))
    scores[:people] = 0.0
    ids = np.repeat(np.arange(30), people)
    other, own = scores[people:], ids[people:] - 1
    if adjacency == "replace-one":
        other, own = np.concatenate([np.ones((people, tables)), other]), ids
    traces = [None]
    for rows, groups in ((scores, ids), (other, own)):
        weights = None if people == 1 else UNIT // np.bincount(groups)[groups]
        with record_releases(traces[-1]) as trace:
            located = plan.locate(rows, weights, RandomStream.from_seed(0))
        traces.append(trace)
    one, two = (trace.releases for trace in traces[1:])
    assert len(one) == len(two) == STEPS
    assert plan.search.l2**2 == pytest.approx(tables * UNIT**2, rel=1e-13)
    gaps = np.array([first.value - second.value for first, second in zip(one, two, strict=True)])
    assert np.abs(gaps).max() <= UNIT and np.abs(gaps).max() > UNIT - people
    assert one[0].sensitivity >= np.linalg.norm(gaps, axis=1).max()
    # A new plan costs what the first one did: only its bins differ.
    assert located.event == plan.event and located.releases == plan.releases


def test_declared_values_need_no_search():
    values = {"score_values": [0.2, 0.7]}
    plan = plan_of(1.0, "add-remove", **values)
    assert plan.search is None and plan.locate(np.ones((3, 1)), None, None) is plan
    assert [noise.label for noise in plan.releases] == ["bins", "cells"]
    margins = plan_of(1.0, "add-remove", probabilities=False)
    assert [noise.label for noise in margins.releases] == ["bins", "cells"]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.001, 0.999), min_size=1, max_size=12, unique=True),
    st.integers(10, 44),
    st.floats(-12.0, 12.0),
    st.floats(0.01, 12.0),
)
def test_bins_are_where_the_scores_are(thresholds, count, centre, spread):
    """As many as asked for, all different, thresholds among them, a third within two spreads."""
    bins = ScoreBins.make(count, tuple(thresholds), (centre, spread))
    # Tables of several classes have as many bins each, wherever those lie.
    assert bins.count == ScoreBins.make(count, tuple(thresholds)).count
    assert bins.count == max(count, len(thresholds) + 3) and np.all(np.diff(bins.edges) > 0.0)
    assert set(thresholds) <= set(bins.edges.tolist())
    middle, half = bins.middles
    assert np.all(middle >= half * (1.0 - 1e-12)) and np.all(half > 0.0)
    for matrix in (*bins.spreads, *bins.ordered(np.ones(bins.count, dtype=bool))):
        assert np.allclose(matrix.sum(axis=0), 1.0)
    alone = ScoreBins.make(count, (0.5,), (0.0, spread))
    near = np.abs(np.log(alone.edges / (1.0 - alone.edges))) <= 2.0 * spread
    assert near.sum() >= (count - 1) // 4 or spread > 2.0


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.floats(0.001, 0.999), min_size=1, max_size=5, unique=True),
    st.integers(6, 44),
    st.floats(0.0, 1.0),
    st.booleans(),
)
def test_a_row_is_positive_at_the_thresholds_that_its_score_reaches(thresholds, count, score, ties):
    thresholds = tuple(thresholds)
    bins = ScoreBins.make(count, thresholds)
    if ties:
        bins = ScoreBins.at(np.arange(11) / 10, thresholds)
        score = round(score, 1)
    for value in (score, *(thresholds if not ties else ())):
        place = int(bins.places(np.array([value]))[0])
        said = [place >= first for first in bins.first_positive]
        assert said == [value >= threshold for threshold in thresholds]
    # Declared cells are unions of bins, and no row is lost within a bin.
    assert np.all(np.diff(bins.coarse) >= 0) and bins.coarse[0] == 0
    assert bins.coarse[-1] + 1 <= len(thresholds) + 1
    for spread in bins.spreads:
        assert np.allclose(spread.sum(axis=0), 1.0)


def test_numbers_of_bins_are_those_of_the_design():
    assert number_of_bins(500, 36.3) == 10
    assert (number_of_bins(15_000, 4.225), number_of_bins(50_000, 1.544)) == (28, 42)


def test_fused_tables_are_the_best_linear_estimate():
    """Against generalised least squares on all numbers at once, with the sum as an exact one."""
    rng, cells, variances = np.random.default_rng(0), np.array([0, 0, 1, 1, 1, 2]), (4.0, 3.0)
    fine, coarse = rng.normal(20, 9, (2, 1, 2, 6)), rng.normal(60, 9, (2, 1, 2, 3))
    counts, noise = fuse(fine, coarse, cells, variances)
    found = with_total(counts[:, 0], noise, 500)
    sums = np.kron(np.eye(4), cells == np.arange(3)[:, None])
    design = np.vstack([np.eye(24), sums, np.ones((1, 24))])
    weights = np.concatenate([np.full(24, 1 / 4.0), np.full(12, 1 / 3.0), [1e9]])
    target = np.concatenate([fine.ravel(), coarse.ravel(), [500]])
    precision = design.T @ (weights[:, None] * design)
    wanted = np.linalg.solve(precision, design.T @ (weights * target))
    assert np.allclose(found.ravel(), wanted, atol=1e-4)
    assert found.sum() == pytest.approx(500)


def test_covariances_are_those_of_the_noise():
    plan = plan_of(1.0, "add-remove", subgroups=("a", "b"))
    empty = np.zeros(plan.shape())
    exact = empty, plan.coarsen(empty)
    tables = plan.assemble(*exact)
    rng, drawn = np.random.default_rng(0), []
    for _ in range(800):
        noisy = [
            table + noise.people * rng.standard_normal(table.shape)
            for table, noise in zip(exact, plan.releases, strict=False)
        ]
        drawn.append(plan.assemble(*noisy).counts)
    drawn = np.array(drawn)[:, :, 0].reshape(800, 2, -1)
    rows = rng.standard_normal((drawn.shape[2], 5))
    for part, subgroup in ((drawn[:, 0], "a"), (drawn.sum(axis=1), None)):
        wanted = np.diag(rows.T @ tables.table(subgroup).covariance @ rows)
        # Six standard errors of a variance of 800 draws are .3.
        assert np.allclose(np.var(part @ rows, axis=0), wanted, rtol=0.3)
