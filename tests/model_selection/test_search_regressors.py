"""Private searches among regressors: what a row can change of a score, and what is refused."""

import numpy as np
import pytest
from search_toys import Tally
from sklearn.dummy import DummyRegressor
from sklearn.pipeline import make_pipeline

from skdp import OperaLogisticRegression, PrivateRidge
from skdp.model_selection import (
    PrivateGridSearchCV,
    PrivateRandomizedSearchCV,
    RowScorer,
    make_row_scorer,
)
from skdp.model_selection._scoring import resolve_scoring
from skdp.model_selection._search import METHODS
from skdp.preprocessing import BoundedScaler
from skdp.reporting import privacy_statement
from skdp.testing import replay_on_neighbour

# Random stopping is priced by a theorem of its own, which takes seconds.
QUICK = [m if m in ("holdout", "cv") else pytest.param(m, marks=pytest.mark.slow) for m in METHODS]
RIDGE = PrivateRidge(target_bounds=(0.0, 4.0), data_norm=1.0)
HUGE = PrivateRidge(target_bounds=(0.0, 1e200))


def table(n=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    return X, 2.0 + X[:, 0] + rng.normal(0, 0.1, n)


def search(estimator=RIDGE, grid=None, **options):
    options = {"epsilon": 20.0, "delta": 1e-3, "cv": 3, "method": "holdout", **options}
    return PrivateGridSearchCV(estimator, grid or {"alpha": [0.0, 1e6]}, **options)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("method", QUICK)
def test_every_method_finds_the_better_regressor_at_the_planned_price(method, adjacency):
    X, y = table()
    tally = Tally()
    options = {"expected_candidates": 8 if method == "random-stopping" else "auto"}
    found = search(method=method, adjacency=adjacency, accountant=tally, **options).fit(X, y)
    if method != "random-stopping":  # which may never draw the better one
        assert found.best_params_ == {"alpha": 0.0} and found.score(X, y) > -0.3
    assert len(tally.charges) == 1 and found.privacy_spent_.epsilon <= 20.0
    assert found.predict(X).shape == (400,)
    planned = found.privacy_plan(400, 3).assumptions
    assert planned == found.privacy_spent_.assumptions and "label" not in str(planned)
    assert "'neg_mean_absolute_error' is a sum over rows of values in [-4, 0]" in str(
        privacy_statement(found)
    )


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "neg_mean_squared_error"])
@pytest.mark.parametrize("bounds", [(0.0, 4.0), [-1e-3, 1e-3], (-1e100, 1e100)])
def test_one_row_changes_a_total_by_at_most_one_and_can_by_one(scoring, bounds):
    scorer = resolve_scoring(scoring, RIDGE.__class__(target_bounds=bounds))
    low, high = bounds
    totals = []
    for target in (low, high, 1e300, -1e300, np.inf, np.nan, 0.3 * low + 0.7 * high):
        for said in (low, high, 1e300, -np.inf, np.nan):
            model = DummyRegressor(strategy="constant", constant=0.0).fit([[0.0]], [0.0])
            model.predict = lambda X, said=said: np.full(len(X), said)
            totals.append(scorer.total(model, np.zeros((1, 1)), np.array([target])))
    assert min(totals) == 0.0 and max(totals) == 1.0
    half = DummyRegressor(strategy="constant", constant=0.5 * (low + high)).fit([[0]], [0])
    wanted = 0.5 if scoring.endswith("absolute_error") else 0.75
    assert scorer.total(half, [[0]], [high]) == pytest.approx(wanted)


def test_on_a_neighbour_nothing_moves_further_than_declared():
    X, y = table(120)
    for method in ("holdout", "cv"):
        near = X.copy(), y.copy()
        near[0][7], near[1][7] = 0.5, 40.0
        found = search(method=method, random_state=0, noisy_scores=True, epsilon=5.0)
        assert replay_on_neighbour(found, X, y, *near)


def test_patients_count_as_the_mean_of_their_rows():
    X, y = table(90)
    found = search(epsilon=60.0, noisy_scores=True).fit(X, y, groups=np.arange(90) // 3)
    assert found.privacy_spent_.unit == "group" and -1.5 < found.best_score_ < 0.5


@pytest.mark.parametrize(
    ("estimator", "options", "words"),
    [
        (RIDGE, {"scoring": "r2"}, "spread of the targets.*neg_mean_squared_error puts"),
        (RIDGE, {"scoring": "neg_root_mean_squared_error"}, "root of a sum"),
        (RIDGE, {"scoring": "neg_median_absolute_error"}, "ranked errors"),
        (RIDGE, {"scoring": "max_error"}, "single row"),
        (RIDGE, {"scoring": "accuracy"}, "is for classifiers"),
        (OperaLogisticRegression(), {"scoring": "neg_mean_squared_error"}, "is for regressors"),
        (PrivateRidge(), {}, "target_bounds must be"),
        (PrivateRidge(target_bounds=(1.0, 1.0)), {}, "low < high"),
        (HUGE, {"scoring": "neg_mean_squared_error"}, "too far apart"),
        (RIDGE, {"grid": {"target_bounds": [(0, 4), (0, 5)]}}, "make_row_scorer"),
        (
            make_pipeline(RIDGE),
            {"grid": {"privateridge": [OperaLogisticRegression()]}},
            "must have the same target_bounds",
        ),
    ],
)
def test_what_has_no_bound_is_refused_before_the_charge(estimator, options, words):
    tally = Tally()
    X, y = table(50)
    found = search(estimator, accountant=tally, **options)
    for refused in (lambda: found.fit(X, np.round(y)), lambda: found.privacy_plan(50, 3)):
        with pytest.raises(ValueError, match=words):
            refused()
    assert not tally.charges


def test_targets_that_are_no_numbers_are_refused_unquoted_before_the_charge():
    X, y = table(50)
    for bad in (np.nan, np.inf, "much"):
        tally = Tally()
        targets = y.astype(object)
        targets[3] = bad
        with pytest.raises(ValueError, match=r"numbers|NaN|infinity") as caught:
            search(make_pipeline(RIDGE), {"privateridge__alpha": [0, 1]}, accountant=tally).fit(
                X, targets
            )
        assert "much" not in str(caught.value) and not tally.charges


@pytest.mark.parametrize(
    "ends", [(1.0, 1.0), (1.0, 0.0), (np.nan, 1.0), (-np.inf, 0.0), (-1e308, 1e308)]
)
def test_scorers_without_bounds_are_none(ends):
    with pytest.raises(ValueError, match="finite with lower < upper"):
        RowScorer("ours", np.equal, "predict", *ends)


def test_scorers_that_sum_as_they_like_are_refused():
    class Sum(RowScorer):
        def total(self, estimator, X, y, shares=None):
            return 1e9 * y.sum()

    with pytest.raises(ValueError, match="influence of one row has no bound"):
        search(scoring=Sum("ours", np.equal, "predict", 0.0, 1.0)).privacy_plan(50, 3)


def test_own_scores_need_no_bounds_in_common_and_spaces_may_be_drawn_from():
    X, y = table()
    scorer = make_row_scorer(lambda truth, said: -abs(truth - said), lower=-1.0, upper=0.0)
    grid = {"privateridge__target_bounds": [(0.0, 4.0), (1.0, 3.0)]}
    model = make_pipeline(BoundedScaler([-0.5] * 3, [0.5] * 3), RIDGE.set_params(data_norm=None))
    options = {"epsilon": 20.0, "delta": 1e-3, "method": "holdout", "scoring": scorer}
    found = PrivateRandomizedSearchCV(model, grid, n_iter=2, **options)
    assert found.fit(X, y).best_params_["privateridge__target_bounds"] in grid.popitem()[1]


def test_no_row_of_any_score_counts_more_than_one():
    given = np.array([1e9, -1e9, np.nan, np.inf, -np.inf, 0.3])
    model = DummyRegressor().fit(np.zeros((6, 1)), np.zeros(6))
    for low, high in ((0.0, 1.0), (-3.0, 5.0)):
        scorer = RowScorer("careless", lambda truth, response: truth, "predict", low, high)
        each = [scorer.total(model, np.zeros((1, 1)), given[[k]]) for k in range(6)]
        share = (0.3 - low) / (high - low)
        assert each == pytest.approx([1.0, 0.0, 0.0, 1.0, 0.0, share])
        assert all(low <= value <= high for value in scorer.values(model, np.zeros((6, 1)), given))
