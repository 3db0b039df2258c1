"""Figures of tables: check values, scikit-learn's on exact counts, unbiased variance, coverage."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

from skdp.mechanisms import additive
from skdp.metrics import Figure, PrivateEvaluation, PrivateEvaluationResult
from skdp.metrics.calibration import calibration_cells, calibration_curve
from skdp.metrics.figures import AreaTest, average, not_ruled_out, ratio
from skdp.metrics.release import ScoreTables
from skdp.metrics.result import FIGURES
from skdp.plans.scores import ScoreBins, ScoreTable

Z = 1.959963984540054


def kernel_of(size):
    """Return wins with the correction of neighbours: theory's example."""
    kernel = np.tri(size, k=-1) + 0.5 * np.eye(size)
    place = np.arange(size - 1)
    kernel[place + 1, place] += 1 / 12
    kernel[place, place + 1] -= 1 / 12
    # Numbers are of the kernel as it is written: rows are positives, columns negatives.
    return kernel


def test_the_area_has_the_check_values_of_its_theorem():
    table = ScoreTable(np.array([[9.0, 6, 3, 1], [1, 2, 5, 8]]), 2.0 * np.eye(8), None)
    test = AreaTest(table, kernel_of(4))
    assert test.statistic(0.0) / 16 / 19 == pytest.approx(0.867050438596, abs=1e-12)
    values = [50.78333333, 1014.065833, -10.01666667, 932.8925]
    found = [f(a) for a in (0.7, 0.9) for f in (test.statistic, test.variance)]
    assert found == pytest.approx(values, rel=1e-9)
    low, high = not_ruled_out(test.statistic, test.variance, Z)
    assert low == pytest.approx(0.634632215, abs=1e-9) and high == 1.0


def result_of(scores, labels, bins, deviation=0.0):
    """Return the result of exact counts that are said to have noise of that deviation."""
    counts = np.zeros((1, 1, 2, bins.count))
    np.add.at(counts, (0, 0, labels, bins.places(scores)), 1.0)
    covariance = max(deviation, 1e-9) ** 2 * np.eye(2 * bins.count)
    classes = np.array([0, 1])
    tables = ScoreTables(
        (bins,), counts, covariance[None], None, 0.0, len(labels), classes, None, True
    )
    return PrivateEvaluationResult(tables, None, 0.95, bins.thresholds[0])


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    scores = expit(rng.normal(-1.0, 1.5, n))
    return scores, (rng.uniform(size=n) < expit(0.7 * logit(scores) + 0.2)).astype(int)


def truth(scores, labels):
    said = scores >= 0.5
    slope = LogisticRegression(C=1e12, tol=1e-10).fit(logit(scores)[:, None], labels).coef_[0, 0]
    return {
        "accuracy": metrics.accuracy_score(labels, said),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, said),
        "sensitivity": metrics.recall_score(labels, said),
        "specificity": metrics.recall_score(labels, said, pos_label=0),
        "ppv": metrics.precision_score(labels, said),
        "npv": metrics.precision_score(labels, said, pos_label=0),
        "prevalence": labels.mean(),
        "roc_auc": metrics.roc_auc_score(labels, scores),
        "average_precision": metrics.average_precision_score(labels, scores),
        "brier_score": metrics.brier_score_loss(labels, scores),
        "calibration_in_the_large": (labels - scores).mean(),
        "calibration_slope": slope,
    }


@pytest.mark.parametrize("atoms", [False, True])
def test_without_noise_figures_are_those_of_scikit_learn(atoms):
    scores, labels = draw(40_000)
    bins = ScoreBins.make(30, (0.5, 0.2))
    if atoms:
        scores = np.clip(np.round(scores, 1), 0.1, 0.9)
        bins = ScoreBins.at(np.arange(1, 10) / 10, (0.5,))
    result = result_of(scores, labels, bins)
    for name, value in truth(scores, labels).items():
        figure = getattr(result, name)
        exact = name in FIGURES[:7] or (
            atoms and name not in ("average_precision", "calibration_slope")
        )
        assert figure == pytest.approx(value, abs=1e-6 if exact else 2e-3), name
        assert figure.name == name and figure.interval[0] <= value <= figure.interval[1]
    assert result.expected_calibration_error == pytest.approx(0.06, abs=0.03)
    if not atoms:
        assert result.at(0.2).sensitivity == (scores[labels == 1] >= 0.2).mean()
    wanted = metrics.confusion_matrix(labels, scores >= 0.5)
    assert np.allclose(result.confusion_matrix, wanted)


@pytest.mark.daily(1)
@pytest.mark.parametrize(("rate", "sureness"), [(0.001, 1.0), (0.3, 3.0), (0.3, 0.3), (0.999, 1.0)])
def test_intervals_hold_whatever_lies_beyond_the_outermost_edges(rate, sureness):
    # With a million rows and no noise nothing but bins is left to be wrong about.
    rng = np.random.default_rng(1)
    labels = (rng.uniform(size=1_000_000) < rate).astype(int)
    odds = 1.3 * rng.normal(size=labels.size) + 1.69 * (labels - 0.5) + logit(rate)
    scores = expit(sureness * odds)
    bins = ScoreBins.make(44, (min(max(rate, 0.002), 0.998),))
    result = result_of(scores, labels, bins)
    in_the_large = result.calibration_in_the_large.interval
    low, high = result.roc_auc.interval
    assert low <= metrics.roc_auc_score(labels, scores) <= high
    assert in_the_large[0] <= (labels - scores).mean() <= in_the_large[1]
    cells = calibration_cells(bins)
    gaps = cells @ np.bincount(bins.places(scores), labels - scores, bins.count)
    low, high = result.expected_calibration_error.interval
    assert low <= np.abs(gaps).sum() / labels.size <= high
    edge = np.abs(logit(bins.edges)).max()
    some = slice(100_000)
    clipped = np.clip(sureness * odds[some], -edge, edge)[:, None]
    slope = LogisticRegression(C=1e12, tol=1e-10).fit(clipped, labels[some]).coef_[0, 0]
    assert result.calibration_slope == pytest.approx(slope, rel=0.12)


def test_curves_pass_through_the_points_of_scikit_learn():
    scores, labels = draw(5000)
    result = result_of(scores, labels, ScoreBins.make(20, (0.5,)))
    for point in result.roc_curve():
        said = scores >= point.threshold
        assert point.x == pytest.approx(said[labels == 0].mean())
        assert point.y == pytest.approx(said[labels == 1].mean())
    for point in result.precision_recall_curve()[4:]:
        said = scores >= point.threshold
        assert (point.x, point.y) == pytest.approx((said[labels == 1].mean(), labels[said].mean()))
    points = result.calibration_curve(largest_width=1.01)
    assert len(points) == 10 and all(low.x < high.x for low, high in pairwise(points))


@pytest.mark.parametrize(
    ("n", "centre", "sigma"), [(1500, 0.0, 5.0), (3000, -3.5, 5.0), (5000, 0.0, 20.0)]
)
def test_calibrated_models_look_calibrated(n, centre, sigma):
    """Points hold their distance from the line with probability .95 or about it.

    With .88 for each of at least 200 points, fewer than 70 % have a chance below 1e-9.
    """
    rng, bins = np.random.default_rng(0), ScoreBins.make(20, (0.5,))
    held, far, in_ten_cells = [], 0.0, 0.0
    for _ in range(100):
        scores = expit(rng.normal(centre, 1.0, n))
        labels = (rng.random(n) < scores).astype(int)
        places = bins.places(scores) + bins.count * labels
        counts = np.bincount(places, minlength=2 * bins.count) + rng.normal(0, sigma, 40)
        table = ScoreTable(counts.reshape(2, -1), sigma**2 * np.eye(40), bins)
        points = calibration_curve(table, Z, 0.2)
        assert all(y.width < 0.2 for _, y in points)
        held += [y.interval[0] <= x <= y.interval[1] for x, y in points]
        far = max([far, *(abs(x - y) for x, y in points)])
        of_all = [abs(x - y) for x, y in calibration_curve(table, Z, math.inf)]
        in_ten_cells = max(in_ten_cells, *of_all)
    assert len(held) >= 200 and np.mean(held) > 0.7
    assert far < 0.25 < 0.5 < in_ten_cells


def test_nothing_is_drawn_where_nothing_is_known():
    table = ScoreTable(np.ones((2, 20)), 1e6 * np.eye(40), ScoreBins.make(20, (0.5,)))
    assert calibration_curve(table, Z, 0.2) == []
    assert len(calibration_curve(table, Z, 1.01)) == 10


def test_the_variance_of_the_area_is_unbiased():
    """The mean of 4,000 estimates lies within six standard errors: a false alarm below 1e-8."""
    rng = np.random.default_rng(1)
    means = np.array([[30.0, 20, 9, 4], [2, 6, 10, 15]])
    kernel, factor = kernel_of(4), rng.normal(size=(8, 8))
    covariance = np.kron(np.eye(2), (factor @ factor.T)[:4, :4])
    area = means[1] @ kernel @ means[0] / means[0].sum() / means[1].sum()
    found = []
    for drawn in rng.multivariate_normal(np.zeros(8), covariance, 4000):
        counts = rng.poisson(means) + drawn.reshape(2, 4)
        test = AreaTest(ScoreTable(counts, covariance, None), kernel)
        found.append([test.statistic(area), test.variance(area)])
    statistic, variance = np.array(found).T
    assert abs(statistic.mean()) < 6 * statistic.std() / math.sqrt(4000)
    errors = statistic**2 - variance
    assert abs(errors.mean()) < 6 * errors.std() / math.sqrt(4000)


def test_shares_have_wilsons_interval_and_fiellers():
    share = ratio("x", np.array([8.0, 2]), np.zeros((2, 2)), np.array([1.0, 0]), np.ones(2), Z)
    assert share.interval == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    noisy = np.diag([4.0, 4.0])
    low, high = ratio("x", np.array([80.0, 20]), noisy, np.array([1.0, 0]), np.ones(2), Z).interval
    for end in (low, high):
        spread = 100 * end * (1 - end) + 4 * (1 - end) ** 2 + 4 * end**2
        assert (80 - 100 * end) ** 2 == pytest.approx(Z**2 * spread)
    hopeless = ratio("x", np.array([3.0, -4]), 100 * noisy, np.array([1.0, 0]), np.ones(2), Z)
    assert hopeless.interval == (0.0, 1.0) and math.isnan(hopeless)


def test_means_of_figures_add_squares_of_reaches():
    parts = [Figure(0.5, (0.47, 0.53), "a"), Figure(0.7, (0.66, 0.74), "b")]
    assert average("m", parts).interval == pytest.approx((0.575, 0.625))
    assert average("m", [Figure(1.0, (0.98, 1.0), "a"), parts[1]]).interval[1] == 0.87


@settings(max_examples=5, deadline=None)
@given(
    st.lists(st.floats(-60, 300), min_size=24, max_size=24),
    st.floats(0.5, 40),
    st.booleans(),
)
def test_whatever_is_released_has_figures(counts, deviation, atoms):
    """No table makes a figure fail, leave its range or miss its own interval by much."""
    bins = ScoreBins.at(np.linspace(0, 1, 12), (0.5,)) if atoms else ScoreBins.make(12, (0.5,))
    result = result_of(np.zeros(1), np.zeros(1, dtype=int), bins, deviation)
    table = np.array(counts).reshape(1, 1, 2, 12)
    result = dataclasses.replace(result, tables=dataclasses.replace(result.tables, counts=table))
    for name in FIGURES:
        figure = getattr(result, name)
        low, high = figure.interval
        least, most = (-1.0, 1.0) if name == "calibration_in_the_large" else (0.0, 1.0)
        if name == "calibration_slope":
            least, most = -math.inf, math.inf
        assert least <= low <= high <= most, name
        assert math.isnan(figure) or least <= figure <= most, name


class Scores:
    """A model whose scores are its rows."""

    classes_ = np.array([0, 1])

    def predict_proba(self, rows):
        return np.column_stack([1.0 - rows, rows])


def rounded_noise(monkeypatch, seed=0, exact=False):
    """Draw noise from normal numbers, rounded: thousands of evaluations take seconds."""
    rng = np.random.default_rng(seed)

    def draw(stream, scale, count):
        deviation = 0.0 if exact else float(scale)
        return np.rint(rng.normal(0.0, deviation, count)).astype(np.int64).tolist()

    monkeypatch.setattr(additive, "discrete_gaussians", draw)
    return rng


# Scores and labels of a large population, number of rows drawn, epsilon, and figures that are
# looked at: the first are weak models, then rare errors of which none may be drawn, and leaves.
NARROW = ("roc_auc", "average_precision", "calibration_in_the_large", "brier_score")
SUMS = ("brier_score", "calibration_in_the_large", "accuracy")
HARD = {
    "narrow": (lambda x, u: (-0.2 + 0.1 * x, -0.2 + 0.5 * x), 4000, 1.0, NARROW),
    "very narrow": (lambda x, u: (0.05 * x, 0.3 * x), 4000, 1.0, NARROW),
    "narrow beyond": (lambda x, u: (-7.5 + 0.2 * x, -1.0 + 0.5 * x), 4000, 1.0, NARROW),
    "wide": (lambda x, u: (1.5 * x, 1.5 * x), 4000, 1.0, NARROW),
    "rare errors": (
        lambda x, u: (5 - 10 * (x > 0), 40 * (1 - 2.0 * ((x > 0) != (u < 0.004)))), 400, 8.0, SUMS
    ),
    "leaves": (lambda x, u: (np.floor(4.0 * u) - 2.0 + 0.5 * (u > 0.9), np.floor(4.0 * u) - 2.0),
               4000, 1.0, NARROW),
    "one value": (lambda x, u: (0.0 * x, 0.0 * x), 1000, 3.0, SUMS),
}  # fmt: skip


@pytest.mark.daily(3)
@pytest.mark.parametrize("kind", HARD)
def test_intervals_hold_where_scores_are_hard_to_count(kind, monkeypatch):
    """With a coverage of .94 fewer than 78 of 100 draws hold once in 10^8."""
    law, n, epsilon, names = HARD[kind]
    rng = rounded_noise(monkeypatch)
    normal, uniform = rng.normal(size=80_000), rng.uniform(size=80_000)
    odds, risk = law(normal, uniform)
    scores, labels = expit(odds), (rng.uniform(size=80_000) < expit(risk)).astype(int)
    evaluation = PrivateEvaluation(epsilon, random_state=0)
    real = truth_of(names, scores, labels)
    held = dict.fromkeys(names, 0)
    for _ in range(100):
        rows = rng.integers(scores.size, size=n)
        result = evaluation.evaluate(Scores(), scores[rows], labels[rows])
        for name, value in real.items():
            low, high = getattr(result, name).interval
            held[name] += low <= value <= high
    assert min(held.values()) >= 78, held


def truth_of(names, scores, labels):
    found = {
        "accuracy": metrics.accuracy_score(labels, scores >= 0.5),
        "brier_score": metrics.brier_score_loss(labels, scores),
        "calibration_in_the_large": (labels - scores).mean(),
        "average_precision": metrics.average_precision_score(labels, scores),
        "roc_auc": metrics.roc_auc_score(labels, scores),
    }
    return {name: found[name] for name in names}


def test_a_result_tells_that_scores_take_few_values(monkeypatch):
    rng = rounded_noise(monkeypatch)
    leaves = np.array([0.2, 0.35, 0.6, 0.8])[rng.integers(4, size=4000)]
    labels = (rng.uniform(size=4000) < leaves).astype(int)
    for values in (None, np.unique(leaves)):
        evaluation = PrivateEvaluation(score_values=values, random_state=0)
        result = evaluation.evaluate(Scores(), leaves, labels)
        for shown in (repr(result), result._repr_html_(), result.to_json()):
            assert ("few values" in shown) == (values is None)
        assert ("few values" in result.roc_auc.reason) == (values is None)
    for odds in (rng.normal(size=4000), 0.05 * rng.normal(size=4000)):
        result = PrivateEvaluation(random_state=0).evaluate(Scores(), expit(odds), labels)
        assert "few values" not in repr(result) and result.roc_auc.reason == ""


def test_calibration_errors_hold_where_scores_lie_at_one_end_of_a_bin(monkeypatch):
    """One in ten scores lies far beyond the others, around which bins are placed."""
    rng = rounded_noise(monkeypatch, exact=True)
    labels = (np.arange(20_000) % 10 == 0).astype(int)
    scores = expit(np.where(labels == 1, 7.0, -6.0) + 0.4 * rng.normal(size=labels.size))
    result = PrivateEvaluation(random_state=0).evaluate(Scores(), scores, labels)
    bins = result.table.bins
    gaps = calibration_cells(bins) @ np.bincount(bins.places(scores), labels - scores, bins.count)
    low, high = result.expected_calibration_error.interval
    assert low <= np.abs(gaps).sum() / labels.size <= high


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_slopes_allow_for_what_lies_beyond_narrow_bins(epsilon, monkeypatch):
    """One in twenty log odds is far from the others: at the outermost edge they would double it."""
    rng = rounded_noise(monkeypatch)
    far = rng.uniform(size=20_000) < 0.05
    odds = np.where(far, rng.normal(3.0, 0.3, 20_000), rng.normal(-3.0, 0.05, 20_000))
    labels = (rng.uniform(size=20_000) < expit(odds)).astype(int)
    result = PrivateEvaluation(epsilon, random_state=0).evaluate(Scores(), expit(odds), labels)
    low, high = result.calibration_slope.interval
    assert low <= 1.0 <= high and "beyond" in result.calibration_slope.reason


def test_slopes_are_withheld_where_many_scores_lie_beyond_narrow_bins(monkeypatch):
    rng = rounded_noise(monkeypatch)
    centres = rng.choice([-4.0, 0.0, 4.0], size=20_000, p=[0.15, 0.7, 0.15])
    odds = rng.normal(centres, 0.05)
    labels = (rng.uniform(size=odds.size) < expit(odds)).astype(int)
    result = PrivateEvaluation(3.0, random_state=0).evaluate(Scores(), expit(odds), labels)
    slope = result.calibration_slope
    assert math.isnan(slope) and "beyond" in slope.reason


@pytest.mark.parametrize("weights", [False, True])
def test_brier_score_and_calibration_are_exact_wherever_in_bins_scores_lie(weights, monkeypatch):
    rng = rounded_noise(monkeypatch, exact=True)
    scores = np.concatenate([expit(rng.normal(-1.0, 2.0, 900)), [0.0, 1.0], np.full(98, 0.31)])
    labels = (rng.uniform(size=1000) < 0.4).astype(int)
    ids = np.repeat(np.arange(1000), rng.integers(1, 4, 1000)) if weights else np.arange(1000)
    groups = {"groups": ids} if weights else {}
    result = PrivateEvaluation(random_state=0).evaluate(
        Scores(), scores[ids], labels[ids], **groups
    )
    for name, value in truth_of(NARROW[2:], scores, labels).items():
        assert getattr(result, name) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("n", "epsilon"), [(800, 0.5), (20_000, 1.0)])
def test_intervals_hold_as_often_as_they_say(n, epsilon, monkeypatch):
    """With a coverage of .94 some figure holds in fewer than 35 of 50 draws once in a million."""
    scores, labels = draw(40_000, seed=3)
    real, rng = truth(scores, labels), rounded_noise(monkeypatch)
    evaluation = PrivateEvaluation(epsilon, random_state=0)
    held = dict.fromkeys(real, 0)
    for _ in range(50):
        rows = rng.integers(scores.size, size=n)
        result = evaluation.evaluate(Scores(), scores[rows], labels[rows])
        for name, value in real.items():
            low, high = getattr(result, name).interval
            held[name] += low <= value <= high
    assert min(held.values()) >= 35, held
