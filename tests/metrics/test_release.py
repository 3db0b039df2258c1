"""The release: its price, how far neighbours are apart, and the estimates that follow."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import DiscreteGaussianEvent, PLDAccountant, RepeatedEvent
from skdp.metrics.release import ReleasePlan, fuse, with_total
from skdp.scores.bins import ScoreBins, number_of_bins

ADJACENCIES = ["add-remove", "replace-one"]


def law(scale, reach=400):
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale) ** 2)
    return weights / weights.sum()


def exact_delta(scales, epsilon):
    """Return the profile of independent integers that rise by one each, by brute force."""
    one, other = np.ones(1), np.ones(1)
    for scale in scales:
        p = law(scale)
        one = np.outer(one, np.append(p, 0.0)).ravel()
        other = np.outer(other, np.append(0.0, p)).ravel()
        kept = one + other > 1e-18
        one, other = one[kept], other[kept]
    return np.maximum(one - math.exp(epsilon) * other, 0.0).sum()


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


@pytest.mark.parametrize("unit", [1, 2**30])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_plan_keeps_its_target(adjacency, n_classes, unit):
    plan = plan_of(1.0, adjacency, n_classes, unit=unit)
    assert 0.999 < PLDAccountant(adjacency).compose(plan.event).epsilon(1e-6).upper <= 1.0
    parts = [noise.query.l2_squared / float(noise.scale) ** 2 for noise in plan.noises]
    # All tables together are worth one with the noise of the theorem: 4.225 or 5.975.
    people = math.sqrt((1 if adjacency == "add-remove" else 2) / sum(parts))
    assert people == pytest.approx({"add-remove": 4.225, "replace-one": 5.975}[adjacency], rel=1e-3)


def test_both_tables_together_have_the_price_of_a_brute_force_sum():
    plan = plan_of(3.0, "add-remove")
    scales = [noise.people for noise in plan.noises]
    for epsilon in (1.0, 3.0):
        wanted = exact_delta(scales, epsilon)
        delta = PLDAccountant("add-remove").compose(plan.event).delta(epsilon)
        assert wanted * (1 - 1e-6) <= delta.upper <= wanted * (1 + 1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_neighbours_are_as_near_as_declared_and_no_nearer(n_classes):
    rng = np.random.default_rng(0)
    for adjacency in ADJACENCIES:
        plan, worst = plan_of(1.0, adjacency, n_classes), np.zeros(3)
        tables = plan.shape()[1]
        for _ in range(40):
            rows = [
                rng.integers(0, plan.bins.count, (6, tables)),
                *(rng.integers(0, n_classes, 6), np.zeros(6, int), rng.integers(0, n_classes, 6)),
            ]
            other = [part[1:] if adjacency == "add-remove" else part.copy() for part in rows]
            if adjacency == "replace-one":
                for part, most in zip(
                    other, (plan.bins.count, n_classes, 1, n_classes), strict=True
                ):
                    part[0] = rng.integers(0, most, part[0].shape)
            for place, (noise, one, two) in enumerate(
                zip(plan.noises, plan.count(*rows), plan.count(*other), strict=True)
            ):
                gap = one - two
                assert np.abs(gap).sum() <= noise.query.l1
                assert (gap**2).sum() <= noise.query.l2_squared
                assert np.abs(gap).max() <= 1  # as the price of one event an entry asks
                worst[place] = max(worst[place], (gap**2).sum() / noise.query.l2_squared)
        assert np.all(worst[: len(plan.noises)] == 1.0)


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
    tables = plan.assemble(empty, plan.coarsen(empty))
    rng, drawn = np.random.default_rng(0), []
    for _ in range(800):
        noisy = [
            table + noise.people * rng.standard_normal(table.shape)
            for table, noise in zip((empty, plan.coarsen(empty)), plan.noises, strict=True)
        ]
        drawn.append(plan.assemble(*noisy).counts)
    drawn = np.array(drawn)[:, :, 0].reshape(800, 2, -1)
    rows = rng.standard_normal((drawn.shape[2], 5))
    for part, subgroup in ((drawn[:, 0], "a"), (drawn.sum(axis=1), None)):
        wanted = np.diag(rows.T @ tables.table(subgroup).covariance @ rows)
        # Six standard errors of a variance of 800 draws are .3.
        assert np.allclose(np.var(part @ rows, axis=0), wanted, rtol=0.3)
