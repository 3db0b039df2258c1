"""Intervals of regressors: noise by brute force, errors that nothing cuts, hard populations."""

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from covering import pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.mechanisms import RandomStream
from skdp.metrics import (
    Figure,
    PrivateEvaluationResult,
    PrivateMetricFrame,
    PrivateRegressionResult,
    error_figures,
)
from skdp.metrics.errors import ErrorPlan
from skdp.metrics.figures import not_ruled_out, quantile
from skdp.metrics.release import ReleasePlan
from skdp.metrics.result import figure_to_dict
from skdp.statistics.noise import UNIT

Z = quantile(0.95)
ADJACENCIES = ["add-remove", "replace-one"]


def plan_of(n=2000, epsilon=1.0, largest=10.0, subgroups=None, adjacency="add-remove", bins="auto"):
    options = {"bounds": (0.0, 10.0), "largest_error": largest, "subgroups": subgroups}
    return ErrorPlan.build(epsilon, 1e-6, adjacency, n, n_bins=bins, **options)


def shapes_of(plan):
    groups = len(plan.subgroups or (None,))
    table = (groups, plan.n_bins, plan.nodes.size)
    return (groups, len(plan.entries)), table, (groups, plan.nodes.size)


def drawn_noise(plan, rng):
    return [
        noise.people * rng.standard_normal(shape)
        for noise, shape in zip(plan.releases, shapes_of(plan), strict=True)
    ]


def moved_by(plan, of):
    """Return how numbers that follow from a release move with each released one, times its noise.

    What is assembled is a line in what is released: one number at a time is moved by a deviation.
    """
    shapes, moves = shapes_of(plan), []
    start = of(plan.assemble(*map(np.zeros, shapes)))
    for place, noise in enumerate(plan.releases):
        for at in range(math.prod(shapes[place])):
            released = [np.zeros(shape) for shape in shapes]
            released[place].flat[at] = noise.people
            moves.append(of(plan.assemble(*released)) - start)
    return np.array(moves)


@pytest.mark.parametrize(
    ("adjacency", "largest", "subgroups"), pairs(ADJACENCIES, [10.0, 3.0], [None, ("a", "b", "c")])
)
def test_the_covariance_of_sums_and_counts_is_what_brute_force_finds(adjacency, largest, subgroups):
    plan = plan_of(largest=largest, subgroups=subgroups, adjacency=adjacency, bins=10)
    shape = (3, 10, plan.nodes.size)
    weights = np.random.default_rng(0).uniform(-1.0, 2.0, shape)
    weights[0], weights[1] = 0.0, plan.nodes  # of one count, and of a column
    weights[0, 3, 2] = 1.0
    for subgroup in (None, *(subgroups or ())):

        def numbers(tables, subgroup=subgroup):
            part = tables.part(subgroup)
            return np.append(part.sums, (weights * part.counts).sum(axis=(1, 2)))

        moves = moved_by(plan, numbers)
        part = plan.assemble(*map(np.zeros, shapes_of(plan))).part(subgroup)
        values, covariance = part.joint(weights)
        np.testing.assert_allclose(covariance, moves.T @ moves, rtol=1e-9, atol=1e-6)
        assert values == pytest.approx((weights * part.counts).sum(axis=(1, 2)))
        # Of single counts and their sums over bins the variance is at most what is said.
        assert moves[:, -3] @ moves[:, -3] <= part.count_variance


@pytest.mark.parametrize("largest", [10.0, 3.0])
@pytest.mark.parametrize("subgroup", [None, "a"])
def test_ends_of_intervals_are_where_the_noise_of_brute_force_has_them(largest, subgroup):
    """Rows count for little beside the noise, and what is released is what is expected."""
    rng, subgroups = np.random.default_rng(2), subgroup and ("a", "b")
    plan = plan_of(40_000, 0.02, largest, subgroups, bins=10)
    said = rng.normal(5.0, 1.5, plan.n)
    truth = np.clip(said + rng.normal(0.0, 1.0, plan.n), 0.0, 10.0)
    members = None if subgroup is None else np.arange(plan.n) % 2
    exact = [part / UNIT for part in plan.count(truth, said, None, members)]
    part = plan.assemble(*exact).part(subgroup)
    moves = moved_by(plan, lambda tables: tables.part(subgroup).sums)
    covariance, sums = moves.T @ moves, part.sums
    middle = sums[3] / sums[5]
    weights = {
        "mean_error": ([10.0, -10.0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1.0]),
        "mean_absolute_error": ([10.0, 10.0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1.0]),
        "root_mean_squared_error": ([0, 0, 100.0, 0, 0, 0], [0, 0, 0, 0, 0, 1.0]),
        "r2": ([0, 0, 4.0, 0, 0, 0], [0, 0, 0, -2.0 * middle, 1.0, middle**2]),
    }
    for name, pair in weights.items():
        over, under = (np.pad(np.array(each), (0, sums.size - 6)) for each in pair)
        high = getattr(error_figures, name)(part, Z).interval[1]
        if name == "r2":
            high = 1.0 - getattr(error_figures, name)(part, Z).interval[0]
            if math.isinf(high):  # noise alone says so
                continue
        elif name == "root_mean_squared_error":
            high = high**2
        line = over - high * under
        deviation = math.sqrt(line @ covariance @ line)
        gap = over @ sums - high * (under @ sums) if name != "r2" else None
        if gap is None:
            spread = sums[4] - sums[3] ** 2 / sums[5]
            gap = 4.0 * sums[2] - high * spread
        assert -gap == pytest.approx(Z * deviation, rel=0.06), name


@pytest.mark.parametrize(("largest", "subgroup"), [(10.0, "a"), (3.1, None)])
def test_ends_of_curves_are_where_the_noise_of_brute_force_has_them(largest, subgroup):
    """All predictions are right: nothing is drawn at other nodes, and little in cells."""
    rng, subgroups = np.random.default_rng(2), subgroup and ("a", "b")
    plan = plan_of(100_000, 0.02, largest, subgroups, bins=10)
    said = rng.uniform(0.0, 10.0, plan.n)
    members = None if subgroup is None else np.arange(plan.n) % 2
    exact = [part / UNIT for part in plan.count(said, said, None, members)]
    part = plan.assemble(*exact).part(subgroup)
    for node, point in enumerate(error_figures.error_histogram(part, Z)):
        high = point[1].interval[1]
        moves = moved_by(
            plan,
            lambda tables, node=node, high=high: (
                tables.part(subgroup).counts[:, node].sum() - high * tables.part(subgroup).sums[5]
            ),
        )
        sampling = part.n * high * (1.0 - high)
        gap = high * part.n - part.counts[:, node].sum()
        if high < 1.0:
            assert gap == pytest.approx(Z * math.sqrt(moves @ moves + sampling), rel=1e-6)
    curve = [*error_figures.calibration_curve(part, Z, math.inf), (None, None, 10.0)]
    single = [one for one, after in pairwise(curve) if after[2] < one[2] + 1.5]
    assert len(single) >= 3
    for middle, observed, least in single:  # cells of one bin, 1 wide
        at, high = round(least), (observed.interval[1] - middle) / largest
        size = largest * part.nodes
        before = np.append(size[1:], 0.0), np.append(0.0, size[:-1])
        kept = np.where(size < 0.0, before[0] > -at - 1.0, before[1] < 10.0 - at)
        weights = kept * (part.nodes - high)
        moves = moved_by(
            plan,
            lambda tables, at=at, weights=weights: tables.part(subgroup).counts[at] @ weights,
        )
        gap, sampling = -part.counts[at] @ weights, part.counts[at] @ weights**2
        assert gap == pytest.approx(Z * math.sqrt(moves @ moves + sampling), rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-3, 1.0, 30.0, 1e3]),
    st.sampled_from([0.5, 0.95, 1 - 1e-7]),
    st.sampled_from([10.0, 2.0, 0.05]),
    st.sampled_from([None, ("a", "b")]),
)
def test_points_of_regressors_are_within_their_intervals_whatever_the_noise(
    seed, times, confidence, largest, subgroups
):
    rng = np.random.default_rng(seed)
    plan = plan_of(int(rng.integers(1, 3000)), 1.0, largest, subgroups)
    released = [times * part for part in drawn_noise(plan, rng)]
    result = PrivateRegressionResult(plan.assemble(*released), None, confidence)
    for part in (result, *(result.of(name) for name in subgroups or ())):
        points = [*part.calibration_curve(), *part.error_histogram()]
        check_points([*part.figures().values(), *(point.y for point in points)])
        assert part.r2.interval[1] < 1.0 or not math.isnan(part.r2) or part.r2.width == math.inf
    if subgroups:
        frame = PrivateMetricFrame(result)
        check_points([*frame.difference().values(), *frame.ratio().values()])


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-3, 1.0, 30.0, 1e3]),
    st.sampled_from([0.5, 0.95, 1 - 1e-7]),
    st.sampled_from([None, [0.2, 0.5, 0.7]]),
    st.sampled_from([(0, 1), (0, 1, 2)]),
)
def test_points_of_classifiers_are_within_their_intervals_whatever_the_noise(
    seed, times, confidence, values, classes
):
    rng = np.random.default_rng(seed)
    options = {"thresholds": (0.5,), "score_values": values, "subgroups": ("a", "b")}
    n = int(rng.integers(1, 3000))
    plan = ReleasePlan.build(1.0, 1e-6, "add-remove", n, np.array(classes), **options)
    shape = plan.shape()
    codes, members = rng.integers(shape[1] + (shape[1] == 1), size=n), rng.integers(2, size=n)
    places = rng.integers(shape[3], size=(n, shape[1]))
    exact = plan.count(places, codes, members, codes)
    noisy = [
        part + times * noise.people * rng.standard_normal(part.shape)
        for part, noise in zip(exact, plan.releases, strict=True)
    ]
    result = PrivateEvaluationResult(plan.assemble(*noisy), None, confidence, 0.5)
    labels = (None, *(classes if len(classes) > 2 else ()))
    for part in (result.of(group, label) for group in (None, "a") for label in labels):
        figures = [*part.figures().values()]
        if len(classes) == 2 or part.label is not None:
            curves = part.roc_curve(), part.precision_recall_curve(), part.calibration_curve()
            figures += [point.y for curve in curves for point in curve]
        check_points(figures)


def check_points(figures):
    for figure in figures:
        low, high = figure.interval
        assert low <= high, (figure.name, figure)
        slack = 1e-9 * max(1.0, abs(figure))
        assert math.isnan(figure) or low - slack <= figure <= high + slack, figure.name


@settings(max_examples=200)
@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.tuples(*[st.floats(-1e6, 1e6)] * 3),
    st.floats(0.01, 6.0),
)
def test_a_set_holds_its_root_or_the_limit_on_its_side(total, rows, parts, z):
    def variance(a):
        return parts[0] + parts[1] * a + parts[2] * a**2

    low, high = not_ruled_out(lambda a: total - rows * a, variance, z)
    assert 0.0 <= low <= high <= 1.0
    if total > total - rows:
        root = min(max(total / rows, 0.0), 1.0)
        assert low - 1e-6 <= root <= high + 1e-6
    else:
        assert (low, high) == (0.0, 1.0)


def test_nothing_to_divide_by_is_no_perfect_model():
    """Targets are all but equal and predictions far off: R2 is far below 0, or nothing is known."""
    plan, stream = plan_of(500), RandomStream.from_seed(3)
    for _ in range(40):
        exact = plan.count(np.full(500, 5.0), np.full(500, 9.0), None)
        figure = error_figures.r2(plan.release(exact, stream).part(), Z)
        assert figure.interval[0] == -math.inf and (math.isnan(figure) or figure < 0.0)


def test_a_figure_keeps_its_reason_and_shows_it():
    figure = Figure(math.nan, (0.0, 1.0), "recall", "too few rows")
    assert repr(pickle.loads(pickle.dumps(figure))) == "nan [0, 1] (too few rows)"
    assert figure_to_dict(figure)["reason"] == "too few rows"
    assert "reason" not in figure_to_dict(Figure(0.5, (0.0, 1.0), "recall"))


def test_errors_larger_than_the_largest_one_count_as_they_are():
    """Of 20 draws at .95 fewer than 10 hold with probability 1e-8; cut errors have R2 of .8."""
    rng = np.random.default_rng(0)
    said = rng.uniform(20.0, 60.0, 200_000)
    far = rng.random(said.size) < 0.02
    truth = np.clip(said + np.where(far, 90.0, 2.0 * rng.normal(size=said.size)), 0.0, 200.0)
    wanted = 1.0 - ((truth - said) ** 2).mean() / truth.var()
    rmse, mae = ((truth - said) ** 2).mean() ** 0.5, np.abs(truth - said).mean()
    options = {"bounds": (0.0, 200.0), "largest_error": 10.0}
    plan, held = ErrorPlan.build(1.0, 1e-6, "add-remove", 20_000, **options), np.zeros(3)
    for _ in range(20):
        drawn = rng.integers(said.size, size=plan.n)
        exact = [part / UNIT for part in plan.count(truth[drawn], said[drawn], None)]
        noisy = [a + b for a, b in zip(exact, drawn_noise(plan, rng), strict=True)]
        result = PrivateRegressionResult(plan.assemble(*noisy), None, 0.95)
        figures = result.r2, result.root_mean_squared_error, result.mean_absolute_error
        for place, value in enumerate((wanted, rmse, mae)):
            low, high = figures[place].interval
            held[place] += low <= value <= high
        assert abs(result.r2 - wanted) < 0.3 and result.r2.width < 0.8
    assert (held >= 10).all()


KINDS = {
    "rare, not foreseen": lambda rng, n: (np.where(rng.random(n) < 1e-3, 10.0, 0.5), 0.5),
    "rare, foreseen": lambda rng, n: [np.where(rng.random(n) < 4e-3, 9.0, 0.5)] * 2,
    "far too small a largest error": lambda rng, n: (rng.normal(5.0, 1.5, n), 5.3),
    "worse than a constant": lambda rng, n: (rng.normal(5.0, 0.05, n), rng.uniform(0.0, 10.0, n)),
    "tied": lambda rng, n: (rng.integers(3, size=n), 1.0),
    "long tails": lambda rng, n: (0.5 * rng.pareto(2.2, n), 0.4 + 0.1 * rng.random(n)),
    "all but perfect": lambda rng, n: [5.0 + rng.normal(0.0, [[0.02], [0.01]], (2, n))][0],
}


@pytest.mark.parametrize(("kind", "epsilon"), zip(KINDS, [1.0, 8.0] * 4, strict=False))
def test_intervals_hold_for_populations_that_are_hard(kind, epsilon):
    """Of 60 draws at .94 fewer than 44 hold with probability 1e-7 for one figure."""
    rng = np.random.default_rng(0)
    truth, said = (
        np.clip(np.broadcast_to(part, 100_001), 0.0, 10.0) for part in KINDS[kind](rng, 100_001)
    )
    subgroups = ("few", "most") if kind == "tied" else None
    plan = plan_of(1500, epsilon, 0.3 if "too small" in kind else 2.0, subgroups)
    error, held = truth - said, {}
    wanted = {
        "r2": 1.0 - (error**2).mean() / truth.var(),
        "mean_absolute_error": np.abs(error).mean(),
        "median_absolute_error": np.median(np.abs(error)),
        "root_mean_squared_error": (error**2).mean() ** 0.5,
        "mean_error": error.mean(),
    }
    for _ in range(60):
        drawn = rng.integers(truth.size, size=plan.n)
        members = subgroups and (rng.random(plan.n) > 0.1).astype(int)
        exact = [part / UNIT for part in plan.count(truth[drawn], said[drawn], None, members)]
        noisy = [a + b for a, b in zip(exact, drawn_noise(plan, rng), strict=True)]
        result = PrivateRegressionResult(plan.assemble(*noisy), None, 0.95)
        for name, figure in result.of(subgroups and "few").figures().items():
            low, high = figure.interval
            held[name] = held.get(name, 0) + (low - 1e-9 <= wanted[name] <= high + 1e-9)
    assert min(held.values()) >= 44, held


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("subgroups", [None, ("a", "b")])
def test_sums_of_cut_errors_are_paid_for_in_the_same_event(adjacency, subgroups):
    """Squares of sensitivities are 1/8 more than without, and 1/2 under replace-one."""
    with_them, without = (
        plan_of(largest=largest, subgroups=subgroups, adjacency=adjacency).releases[0]
        for largest in (2.0, 10.0)
    )
    more = (with_them.l2**2 - without.l2**2) / UNIT**2
    assert more == pytest.approx(1 / 8 if adjacency == "add-remove" else 1 / 2, rel=1e-6)
