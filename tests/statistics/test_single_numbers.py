"""No number of a release of integers moves by more than its release says, nor do all together."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from skdp.accounting import DiscreteGaussianEvent, PLDAccountant
from skdp.mechanisms import record_releases
from skdp.mechanisms.release import Release
from skdp.metrics import PrivateEvaluation, PrivateRegressionEvaluation
from skdp.statistics import (
    private_contingency_table,
    private_count,
    private_histogram,
    private_mean,
    private_quantile,
    private_variance,
)
from skdp.statistics.noise import UNIT

RELATIONS = ("add-remove", "replace-one")
AGES = np.array([34, 57, 100, 0, 12, 71, 5, 88, 45, 99, 1, 60])
WARDS = np.array(list("ABCBACDABDAB"))
PLACES = {"lower": 0, "upper": 100}


def evaluate(classes):
    X = np.random.default_rng(0).standard_normal((60, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5) * (classes == 3)
    model = LogisticRegression().fit(X, y)

    def run(rows, **terms):
        evaluation = PrivateEvaluation(delta=1e-6, n_bins=10, **terms)
        evaluation.evaluate(model, X[rows], y[rows])

    return run


def evaluate_errors(rows, **terms):
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = Ridge().fit(X, X[:, 0])
    evaluation = PrivateRegressionEvaluation(
        delta=1e-6, target_bounds=(-3.0, 3.0), largest_error=1.0, **terms
    )
    evaluation.evaluate(model, X[rows], X[rows, 0] + X[rows, 1])


def statistic(function, column, **given):
    def run(rows, **terms):
        function(column[rows], mechanism="gaussian", delta=1e-6, **given, **terms)

    return run


RELEASES = {
    "count": statistic(private_count, WARDS == "A"),
    "histogram": statistic(private_histogram, WARDS, categories=["A", "B", "C"], other="other"),
    "table": lambda rows, **terms: private_contingency_table(
        [WARDS[rows], WARDS[(np.array(rows) + 3) % 12]],
        categories=[["A", "B"], ["B", "C"]],
        mechanism="gaussian",
        delta=1e-6,
        **terms,
    ),
    "mean": statistic(private_mean, AGES, **PLACES),
    "variance": statistic(private_variance, AGES, **PLACES),
    "quantile": statistic(private_quantile, AGES, q=0.3, resolution=10.0, **PLACES),
    "two classes": evaluate(2),
    "three classes": evaluate(3),
    "errors": evaluate_errors,
}


@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("name", RELEASES)
def test_no_entry_moves_by_more_than_its_release_says(name, adjacency, monkeypatch):
    seen, make = [], Release.make

    def watched(self, exact, stream):
        seen[-1].append((self, exact.ravel().tolist()))
        return make(self, exact, stream)

    monkeypatch.setattr(Release, "make", watched)

    def run(rows, first=None):
        seen.append([])
        with record_releases(first) as trace:
            RELEASES[name](rows, epsilon=1.0, adjacency=adjacency, random_state=0)
        return trace

    rows, largest = list(range(12)), 0
    first = run(rows)
    for place in range(4):
        new = [rows[(place + 5) % 12]] if adjacency == "replace-one" else []
        run([*rows[:place], *new, *rows[place + 1 :]], first)
        assert len(seen[0]) == len(seen[-1]) > 0
        for (release, one), (_, two) in zip(seen[0], seen[-1], strict=True):
            moved = [abs(a - b) for a, b in zip(one, two, strict=True)]
            most = release.unit if release.largest is None else release.largest
            assert max(moved) <= most and sum(moved) <= release.l1
            assert sum(m * m for m in moved) <= release.l2**2
            if release.law == "gaussian" and release.unit == 1:  # counted one by one
                assert most == 1 and release.l2**2 <= release.l1 * (1.0 + 1e-12)
            largest = max(largest, max(moved) / most)
    assert largest > 0.2


def test_noise_for_counts_is_refused_to_numbers_that_move_by_more():
    moved = ((7, 49, None), (4, 4, 2))
    others = [Release.integers("x", *most, 1, largest=each) for *most, each in moved]
    for release in (Release.number("x", 7), *others):
        with pytest.raises(ValueError, match="counts that change by one"):
            release.gaussian(3.0)
    # What the refused event would have said of a number that moves by 7, and what it costs.
    said = PLDAccountant("replace-one").compose(DiscreteGaussianEvent(30.0, 1), 7).epsilon(1e-6)
    true = PLDAccountant("replace-one").compose(DiscreteGaussianEvent(30.0 / 7, 7)).epsilon(1e-6)
    assert true > 2.0 * said
    assert Release.number("x", 1).gaussian(3.0).event == DiscreteGaussianEvent(3.0, 1)
    for change, unit in ((7, 9), (UNIT, UNIT), (5 * UNIT, UNIT)):
        noise = Release.number("x", change, unit).gaussian(3.0)
        worth = noise.event.noise_multiplier / (3.0 * unit / change)
        assert 0.5 < worth <= 1.0
        assert unit == 9 or math.isclose(worth, 1.0, rel_tol=1e-6)
