"""Patients with several rows: all rows of an id are one record, and their number stays private."""

import json
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from scipy.special import log_expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from support import ESTIMATORS, rows

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaMLPClassifier,
    GrpuaSVC,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
    PATEClassifier,
    VariationalLogisticRegression,
)
from skdp.budget import BudgetAccountant
from skdp.exceptions import PrivacyWarning
from skdp.losses import LogisticLoss
from skdp.mechanisms.trace import record_releases
from skdp.models import LinearModel
from skdp.preprocessing import DPStandardScaler, RowNormClipper
from skdp.reporting import PrivacySpent, privacy_statement
from skdp.tables.units import units_of
from skdp.testing.replay import FrozenStream, compare_releases, differences, fit_both, fit_frozen

MEAN = {"unit_weighting": "mean"}
RANDOM = {"unit_weighting": "random-row"}
FEW = {"unit_weighting": "mean", "max_unit_rows": 2}
SUM = {"unit_weighting": "sum", "max_unit_rows": 3}
REPLACED = {"adjacency": "replace-one"}
LOTS = {"max_iter": 30, "batch_size": 20}
CASES = [
    (OperaLogisticRegression, MEAN),
    (OperaLogisticRegression, {"solver": "gd", **SUM}),
    (OperaLogisticRegression, {"numerics": "discrete", **RANDOM}),
    (OperaLogisticRegression, {"numerics": "discrete", **FEW}),
    (OperaSVC, {"adjacency": "add-remove", "fit_intercept": False, **SUM}),
    (GrpuaLogisticRegression, {"max_iter": 12, **MEAN}),
    (GrpuaLogisticRegression, {"sampling": "uniform", **LOTS, **SUM}),
    pytest.param(
        GrpuaLogisticRegression,
        {"calibration": "hidden-state", **LOTS, **SUM},
        marks=pytest.mark.slow,
    ),
    (GrpuaSVC, {**LOTS, **MEAN}),
    (DPSGDClassifier, {**REPLACED, **LOTS, **MEAN}),
    (DPSGDClassifier, {"physical_batch_size": 300, **REPLACED, **LOTS, **SUM}),
    (DPSGDClassifier, {**REPLACED, "hidden_layer_sizes": (3,), **LOTS, **RANDOM}),
    (DPSGDClassifier, {**REPLACED, "hidden_layer_sizes": (3,), **LOTS, **FEW}),
    (GrpuaSVC, {"max_iter": 12, **FEW}),
    (ObjectivePerturbationLogisticRegression, RANDOM),
    (ObjectivePerturbationLogisticRegression, {"numerics": "discrete", **FEW}),
    (ObjectivePerturbationLogisticRegression, MEAN),
    (ObjectivePerturbationSVC, {"class_weight": {0: 1.0, 1: 2.5}, **SUM}),
    (GrpuaMLPClassifier, {"hidden_layer_sizes": (3,), **LOTS}),
    (VariationalLogisticRegression, {**REPLACED, **LOTS}),
]


def patients(seed=0, n_units=60, most=6, n_classes=2):
    """Return rows, labels and ids of patients with 1 to `most` rows each, in mixed order."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(n_units), rng.integers(1, most + 1, n_units)))
    return *rows(n=ids.size, n_classes=n_classes, seed=seed), ids


def neighbour(table, rng, unit=7, absent=False):
    """Replace all rows of one patient by other ones, of another number, and at other places."""
    X, y, ids = table
    kept = ids != unit
    count = int(rng.integers(1, 12))
    new = rng.standard_normal((count, X.shape[1]))
    new *= 0.0 if absent else 1.0 / np.linalg.norm(new, axis=1, keepdims=True)
    labels = rng.integers(0, 2, count)
    return (
        np.vstack([new[:1], X[kept], new[1:]]),
        np.concatenate([labels[:1], y[kept], labels[1:]]),
        np.concatenate([[unit], ids[kept], np.full(count - 1, unit)]),
    )


def replay(estimator, one, other, seed=0):
    first = fit_frozen(clone(estimator), *one, seed=seed)
    second = fit_frozen(clone(estimator), *other, seed=seed, replayed=first.trace)
    return compare_releases(first.trace.releases, second.trace.releases)


@pytest.mark.parametrize(("cls", "settings"), CASES)
def test_replay_on_a_replaced_patient(cls, settings):
    estimator = cls(classes=[0, 1], delta=1e-3, data_norm=1.0, **settings)
    absent = settings.get("adjacency") == "add-remove"
    for seed in range(3):
        one = patients(seed)
        replay(estimator, one, neighbour(one, np.random.default_rng(seed), absent=absent), seed)


def opposite(count, other_count, n_units=50):
    """Return tables where one patient's rows point one way, or the opposite; others say nothing."""
    tables = []
    for sign, k in ((1.0, count), (-1.0, other_count)):
        X = np.zeros((n_units - 1 + k, 3))
        X[:k, 0] = sign
        ids = np.concatenate([np.zeros(k, dtype=int), np.arange(1, n_units)])
        tables.append((X, np.ones(len(X), dtype=int), ids))
    return tables


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (OperaSVC, {"alpha": 5.0, **MEAN}),
        (OperaSVC, {"alpha": 5.0, **SUM}),
        (OperaSVC, {"alpha": 5.0, "solver": "gd", **SUM}),
        (OperaSVC, {"alpha": 5.0, **RANDOM}),
        (GrpuaSVC, {"max_iter": 2, **SUM}),
        (
            DPSGDClassifier,
            {"max_iter": 2, "max_grad_norm": 0.1, "adjacency": "replace-one", **MEAN},
        ),
        (DPSGDClassifier, {"max_iter": 2, "max_grad_norm": 0.1, "adjacency": "replace-one", **SUM}),
    ],
)
def test_the_sensitivity_of_a_patient_is_attained(cls, settings):
    """A patient of 3 or more rows for another moves sums by 70 % of the declared bound or more."""
    estimator = cls(classes=[0, 1], delta=1e-3, data_norm=1.0, fit_intercept=False, **settings)
    report = replay(estimator, *opposite(3, 5))
    assert 0.7 < report.largest_ratio <= 1.0 + 1e-9
    if settings == {"alpha": 5.0, **MEAN}:  # without groups the same change is not within it
        one, other = opposite(5, 5)
        with pytest.raises(AssertionError, match="more than its declared"):
            replay(estimator, one[:2], other[:2])


@pytest.mark.parametrize("weighting", [MEAN, RANDOM, SUM], ids=lambda each: each["unit_weighting"])
@pytest.mark.parametrize("cls", [OperaLogisticRegression, GrpuaSVC, DPSGDClassifier])
def test_patients_of_one_row_are_rows(cls, weighting):
    X, y = rows(n=80)
    # So few steps are drawn at once either way.
    settings = {} if cls is OperaLogisticRegression else {"max_iter": 4, "batch_size": 20}
    estimator = cls(classes=[0, 1], delta=1e-3, data_norm=1.0, **settings)
    grouped = clone(estimator).set_params(**{**weighting, "max_unit_rows": None})
    if weighting is SUM:
        grouped.set_params(max_unit_rows=1)
    ids = np.arange(80)
    one, other = (
        each.set_params(random_state=FrozenStream.from_seed(3)).fit(X, y, **groups)
        for each, groups in ((estimator, {}), (grouped, {"groups": ids}))
    )
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=1e-12, atol=1e-14)
    assert one.privacy_spent_.epsilon == other.privacy_spent_.epsilon
    assert (one.privacy_spent_.unit, other.privacy_spent_.unit) == ("row", "group")


@pytest.mark.parametrize("weighting", [MEAN, SUM], ids=lambda each: each["unit_weighting"])
def test_without_noise_it_is_the_weighted_regression(weighting):
    X, y, ids = patients(n_units=100)
    alpha, counts = 0.02, np.bincount(ids)[ids]
    model = OperaLogisticRegression(
        1e9,
        1e-2,
        data_norm=1.0,
        alpha=alpha,
        intercept_scaling=1.0,
        random_state=0,
        calibrate=None,
        **weighting,
    ).fit(X, y, groups=ids)
    share = 1.0 / counts if weighting is MEAN else np.minimum(1.0, 3.0 / counts)
    signs, Z = 2 * y - 1, np.column_stack([X, np.ones(len(X))])

    def objective(w):
        return -(share @ log_expit(signs * (Z @ w))) / 100 + 0.5 * alpha * w @ w

    exact = minimize(objective, np.zeros(5), tol=1e-12).x
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), exact, atol=2e-3)
    plain = LogisticRegression(C=1.0 / (alpha * 100)).fit(X, y, sample_weight=share)
    assert np.corrcoef(plain.coef_, model.coef_)[0, 1] > 0.99


def test_patients_sums_of_clipped_rows_are_those_of_each_patient():
    X, y, ids = patients(n_units=20)
    units = units_of(ids)
    model = LinearModel(LogisticLoss(), 20, 4, 1, 0.2, heaviest=2.0, by_unit=True)
    (problem,) = model.bind(X, y, row_weight=units.weights(2), n_units=20)
    weights, clip = np.array([3.0, -2.0, 1.0, 0.5, -1.0]), 0.2
    total = np.zeros(5)
    problem.sum_clipped(weights, None, clip, total)
    by_hand = np.zeros((20, 5))
    for row, unit in enumerate(ids):
        z = np.append(X[row], 0.2)
        gradient = -(2 * y[row] - 1) * np.exp(log_expit(-(2 * y[row] - 1) * (z @ weights))) * z
        gradient *= min(1.0, clip / np.linalg.norm(gradient))
        by_hand[unit] += gradient * min(1.0, 2.0 / np.sum(ids == unit))
    np.testing.assert_allclose(total, by_hand.sum(axis=0), atol=1e-12)
    assert np.linalg.norm(by_hand, axis=1).max() <= 2.0 * clip


@pytest.mark.parametrize(("cls", "settings"), CASES)
def test_nothing_tells_how_many_rows_there_are(cls, settings, capsys):
    estimator = cls(classes=[0, 1], data_norm=1.0, verbose=1, **settings)
    one = patients(1)
    many = tuple(np.concatenate([part, part[one[2] == 7]]) for part in one)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        first, second = fit_both(estimator, one, many)
    assert differences(first, second) == []
    printed = capsys.readouterr().out
    assert printed and printed == 2 * printed[: len(printed) // 2]
    texts = [
        text
        for fitted in (first, second)
        for text in (
            repr(vars(fitted)),
            repr(pickle.dumps(fitted)),
            fitted.privacy_spent_.to_json(),
        )
    ]
    for table in (one, many):
        assert not any(f" {len(table[0])} " in text for text in texts)


def test_units_not_rows_decide_the_plan():
    X, y, ids = patients(n_units=50, most=9)
    model = OperaLogisticRegression(classes=[0, 1], data_norm=1.0, delta=1e-3)
    spent = model.fit(X, y, groups=ids).privacy_spent_
    assert spent == model.privacy_plan(50, 4, groups=True)
    assert spent != model.privacy_plan(len(ids), 4, groups=True)
    assert model.privacy_plan(50, 4).mechanism == spent.mechanism
    lots = DPSGDClassifier(batch_size=10, max_iter=5, data_norm=1.0, delta=1e-3, classes=[0, 1])
    event = lots.fit(X, y, groups=ids).privacy_spent_.event.to_dict()
    assert event["event"]["sample_rate"] == 10 / 50
    with pytest.warns(PrivacyWarning, match="1/n=0.02"):
        clone(model).set_params(delta=0.03).fit(X, y, groups=ids)
    with pytest.raises(ValueError, match="which is 50; got 51"):
        lots.set_params(batch_size=51).fit(X, y, groups=ids)


@pytest.mark.parametrize("cls", [ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC])
def test_minimisers_are_priced_for_units_of_any_number_of_rows(cls):
    shape = (400, 6)
    several, one, none = (
        cls(1.0, alpha=0.05, data_norm=1.0, **weighting)._plan_shape(shape, 2, by_unit)
        for weighting, by_unit in ((MEAN, True), (RANDOM, True), (MEAN, False))
    )
    assert several.event.rows_per_unit is None and one.event.rows_per_unit == 1
    assert one.event == none.event and several.tilt_sigma > one.tilt_sigma
    pure = [
        cls(1.0, 0.0, alpha=0.004, data_norm=1.0, **MEAN)._plan_shape(shape, 2, by_unit).tilt_sigma
        for by_unit in (True, False)
    ]
    assert pure[0] > 1.005 * pure[1]


def test_all_noise_is_for_the_largest_sum():
    grpua = GrpuaLogisticRegression(alpha=1e-3, data_norm=1.0, max_iter=5, **SUM)
    plans = [
        each._plan_shape((100, 4), 2, True) for each in (grpua, clone(grpua).set_params(**MEAN))
    ]
    assert plans[0].sigma == pytest.approx(3.0 * plans[1].sigma)
    opera = OperaSVC(alpha=0.1, data_norm=1.0, half_width=0.5, **SUM)
    plans = [
        each._plan_shape((100, 4), 2, True) for each in (opera, clone(opera).set_params(**MEAN))
    ]
    assert plans[0].sigma == pytest.approx(3.0 * plans[1].sigma, rel=1e-3)
    ungrouped = opera._plan_shape((100, 4), 2)  # the cap is of units alone
    assert ungrouped.sigma == plans[1].sigma


def test_bounds_on_rounding_rest_on_the_public_number_of_rows():
    opera = OperaLogisticRegression(data_norm=1.0, numerics="discrete", unit_weighting="mean")
    few, many = (
        clone(opera).set_params(max_unit_rows=most)._plan_shape((10**5, 4), 2, True)
        for most in (1, 10**6)
    )
    assert many.model.most_rows == 10**11 and many.tolerance > 2.0 * few.tolerance
    network = DPSGDClassifier(data_norm=1.0, hidden_layer_sizes=(3,), **FEW)
    model = network._plan_shape((60, 4), 2, True).model
    X, y, ids = patients()
    units, rows_of = units_of(ids), np.repeat(np.arange(60), 2)
    own, drawn, shares = units.draw(FrozenStream.from_seed(0), 2, True)
    (problem,) = model.bind(X[own], y[own], row_weight=shares, n_units=60)
    np.testing.assert_array_equal(drawn.codes, rows_of)
    margin, found = model.layers.rounding_margin, problem._sums
    assert margin(np.float64, found._most_rows) == margin(np.float64, 120)


ERRORS = [
    (OperaLogisticRegression, {"unit_weighting": "median"}, "unit_weighting must be"),
    (OperaLogisticRegression, {"unit_weighting": "sum"}, "max_unit_rows must be an integer"),
    (OperaLogisticRegression, {"max_unit_rows": 0}, "max_unit_rows must be at least 1"),
    (OperaLogisticRegression, {"numerics": "discrete"}, "unit_weighting='random-row'"),
    (ObjectivePerturbationLogisticRegression, {"numerics": "discrete"}, "unit_weighting='random"),
    (DPSGDClassifier, {"hidden_layer_sizes": (3,)}, "unit_weighting='random-row'"),
    (
        DPSGDClassifier,
        {"hidden_layer_sizes": (3,), "max_grad_norm": "adaptive", **FEW},
        "Adaptive clipping is proved for one row",
    ),
]


@pytest.mark.parametrize(("cls", "settings", "words"), ERRORS)
def test_what_is_not_proved_is_refused_before_a_charge(cls, settings, words, tmp_path):
    budget = BudgetAccountant(1.0, 1e-4, ledger=tmp_path / "ledger")
    X, y, ids = patients()
    with pytest.raises((ValueError, TypeError), match=words):
        cls(accountant=budget, data_norm=1.0, **settings).fit(X, y, groups=ids)
    assert budget.entries() == []


@pytest.mark.parametrize("wrong", [[1, "1"], None, "short"])
def test_wrong_ids_are_refused_before_a_charge(wrong, tmp_path):
    budget = BudgetAccountant(1.0, 1e-4, ledger=tmp_path / "ledger")
    X, y, ids = patients()
    groups = ids[:-1] if wrong == "short" else [wrong] * len(ids)
    if isinstance(wrong, list):
        groups = np.array(wrong * len(ids), dtype=object)[: len(ids)]
    for cls in (OperaLogisticRegression, VariationalLogisticRegression):
        with pytest.raises((ValueError, TypeError), match="groups") as caught:
            cls(accountant=budget, data_norm=1.0).fit(X, y, groups=groups)
        assert str(len(ids)) not in str(caught.value)
    with pytest.raises(ValueError, match="inconsistent") as caught:
        OperaLogisticRegression(data_norm=1.0).fit(X, y[:-1], groups=ids)
    assert str(len(ids)) not in str(caught.value)
    assert budget.entries() == []


def test_other_groupings_share_no_noise():
    X, y, ids = patients(n_units=40)
    model = OperaLogisticRegression(classes=[0, 1], data_norm=1.0, random_state=5)
    fits = [clone(model).fit(X, y, groups=each).coef_ for each in (ids, ids[::-1].copy())]
    fits.append(clone(model).fit(X, y).coef_)
    again = clone(model).fit(X, y, groups=ids).coef_
    np.testing.assert_array_equal(fits[0], again)
    renamed = clone(model).fit(X, y, groups=[f"p{each:03}" for each in ids]).coef_
    np.testing.assert_array_equal(fits[0], renamed)  # the same partition is the same fit
    gaps = [np.abs(fits[0] - other).max() for other in fits[1:]]
    assert min(gaps) > 1e-3
    noises = []
    for each in (ids, ids[::-1].copy()):
        with record_releases() as trace:
            clone(model).fit(X, y, groups=each)
        noises.append(trace.releases[0].output - trace.releases[0].value)
    assert np.abs(noises[0] - noises[1]).min() > 1e-9


def test_each_estimator_takes_groups():
    X, y, ids = patients()
    for cls in (*ESTIMATORS, GrpuaMLPClassifier):
        weighting = RANDOM if "unit_weighting" in cls().get_params() else {}
        steps = {"max_iter": 5} if "batch_size" in cls().get_params() else {}
        model = cls(data_norm=1.0, delta=1e-3, **weighting, **steps).fit(X, y, groups=list(ids))
        assert model.privacy_spent_.unit == "group"
        assert "one of them, drawn at random" in " ".join(model.privacy_spent_.assumptions)


def test_groups_reach_steps_and_folds_by_routing():
    X, y, ids = patients(n_units=90)
    step = OperaLogisticRegression(classes=[0, 1], delta=1e-3)
    with sklearn.config_context(enable_metadata_routing=True):
        step.set_fit_request(groups=True)
        model = make_pipeline(RowNormClipper(1.0), step).fit(X, y, groups=ids)
        assert model[-1].privacy_spent_.unit == "group"
        search = GridSearchCV(
            model, {"operalogisticregression__alpha": [0.1, 1.0]}, cv=GroupKFold(3, shuffle=True)
        )
        search.fit(X, y, groups=ids)
        assert search.best_estimator_[-1].privacy_spent_.unit == "group"
        found = cross_validate(
            model,
            X,
            y,
            params={"groups": ids},
            cv=GroupKFold(3, shuffle=True),
            return_estimator=True,
        )
        fold = found["estimator"][0][-1].privacy_spent_
        assert fold == step.set_params(data_norm=1.0).privacy_plan(60, 4, groups=True)
    plain = make_pipeline(RowNormClipper(1.0), OperaLogisticRegression(classes=[0, 1], delta=1e-3))
    plain.fit(X, y, operalogisticregression__groups=ids)
    assert plain[-1].privacy_spent_.unit == "group"


def test_the_statement_speaks_of_the_unit_and_multiplies_nothing():
    X, y, ids = patients()
    model = OperaLogisticRegression(classes=[0, 1], data_norm=1.0, delta=1e-3).fit(X, y, groups=ids)
    statement = privacy_statement(model, unit="patient", rows_per_unit=40)
    guarantee = statement.to_dict()["guarantee"]
    assert guarantee["rows_per_unit"] is None and "of_the_unit" not in guarantee
    assert guarantee["epsilon"] == pytest.approx(1.0, rel=1e-9)
    assert "one patient, with all rows that share its id in groups=" in " ".join(statement.split())
    assert "number of units is public" in " ".join(statement.split())
    spent = model.privacy_spent_
    again = PrivacySpent.from_dict(json.loads(spent.to_json()))
    assert again == spent and "all rows that share an id" in spent._repr_html_()
    by_row = clone(model).fit(X, y)
    multiplied = privacy_statement(by_row, unit="patient", rows_per_unit=2).to_dict()["guarantee"]
    assert multiplied["of_the_unit"]["epsilon"] > 1.0


def test_rows_and_units_have_no_common_figure():
    X, y, ids = patients()
    scaler = DPStandardScaler(lower=-1.0, upper=1.0, delta=1e-3, **REPLACED)
    steps = make_pipeline(scaler, RowNormClipper(1.0), OperaLogisticRegression(delta=1e-3))
    steps.fit(X, y, operalogisticregression__groups=ids)
    statement = privacy_statement(steps)
    assert statement.to_dict()["guarantee"] is None
    assert "There is no common guarantee" in statement


def test_pate_takes_ids_that_look_the_same_for_one_and_counts_them():
    X, y = rows(n=400)
    ids = np.repeat([f"p{number}" for number in range(40)], 10).astype(object)
    odd = ids.copy()
    odd[::2] = [f"{each}\u00ad " for each in ids[::2]]
    model = PATEClassifier(
        LogisticRegression(), n_teachers=4, delta=0.02, n_queries=8, classes=[0, 1]
    )
    votes = []
    for each in (ids, odd):
        with record_releases() as trace:
            fitted = clone(model).fit(X, y, X_public=X[:8], groups=each)  # 1/40 is above delta
        votes.append(trace.releases[0].value)
        assert fitted.privacy_spent_.unit == "group"
    np.testing.assert_array_equal(*votes)


def test_weights_are_not_taken_for_ids():
    X, y = rows(n=60)
    with pytest.raises(TypeError, match="positional"):
        OperaLogisticRegression(classes=[0, 1]).fit(X, y, np.ones(60))
