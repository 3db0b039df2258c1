"""Models with monotone or smoothed functions: the nearest ones, from the same release."""

import pickle

import numpy as np
import pytest
from declared_columns import fitted, rows
from scipy.optimize import isotonic_regression
from sklearn.base import clone

from skdp.inspection import reshape_functions, shape_functions
from skdp.preprocessing import BoundedScaler
from skdp.reporting import coefficient_table, privacy_statement

RISING = dict.fromkeys(["age", "dose", "lab", "score", "stage", "smoker"], "increasing")


def at(function, cells):
    return function.evaluate(cells)[:, 0]


@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
def test_functions_become_monotone_and_nothing_else_changes(direction, classes):
    sign = 1.0 if direction == "increasing" else -1.0
    model = fitted(classes=classes)
    # With these signs every function has something to be changed.
    coef = np.random.default_rng(0).normal(size=model[-1].coef_.shape)
    coef[:, 9] = 1.0  # of "lab", a line
    model[-1].coef_ = kept = -sign * coef
    before = shape_functions(model)
    changed = reshape_functions(model, dict.fromkeys(RISING, direction))
    after = shape_functions(changed)
    for name in before:
        if name in RISING:
            assert (sign * np.diff(after[name].values, axis=0) > -1e-12).all()
            assert np.abs(after[name].values - before[name].values).max() > 1e-3
        else:
            np.testing.assert_array_equal(after[name].values, before[name].values)
    np.testing.assert_array_equal(kept, -sign * coef)
    cells, table = rows(100)
    total = after.intercept + sum(after[name].evaluate(cells[name]) for name in after)
    wanted = changed.decision_function(table).reshape(total.shape)
    np.testing.assert_allclose(total, wanted, atol=1e-12)
    scores = wanted[:, 0] > 0 if len(classes) == 2 else wanted.argmax(axis=1)
    np.testing.assert_array_equal(changed.predict(table), np.asarray(classes)[scores.astype(int)])


def test_it_is_the_nearest_monotone_function_of_the_cells():
    model = fitted()
    model[-1].coef_ = np.random.default_rng(3).normal(size=model[-1].coef_.shape)
    before, after = (
        shape_functions(each) for each in (model, reshape_functions(model, {"age": "decreasing"}))
    )
    cells = np.array([10.0, 30.0, 50.0, 70.0, 90.0])
    wanted = isotonic_regression(at(before["age"], cells), increasing=False).x
    np.testing.assert_allclose(at(after["age"], cells), wanted, atol=1e-12)
    # The projection keeps the mean under the law: the intercept moves by rounding alone.
    np.testing.assert_allclose(after.intercept, before.intercept, atol=1e-12)
    again = reshape_functions(
        reshape_functions(model, {"age": "decreasing"}), {"age": "decreasing"}
    )
    np.testing.assert_allclose(
        shape_functions(again)["age"].values, after["age"].values, atol=1e-12
    )


@pytest.mark.parametrize("scaled", [False, True])
def test_missing_cells_with_a_feature_keep_their_scores(scaled):
    model = fitted()
    if scaled:  # features of the missing are then nowhere zero
        scaler = BoundedScaler(-0.5, 0.8).fit(np.zeros((1, model[-1].n_features_in_)))
        model.steps.insert(1, ("scale", scaler))
    model[-1].coef_ = np.random.default_rng(5).normal(size=model[-1].coef_.shape)
    changed = reshape_functions(model, {"dose": "increasing", "stage": "decreasing"})
    functions = shape_functions(changed)
    assert np.diff(functions["dose"].values[:, 0]).min() > -1e-10
    assert np.diff(functions["stage"].values[:, 0]).max() < 1e-10
    _, table = rows(60)
    table[:, 1], table[:, 5] = np.nan, None
    np.testing.assert_allclose(
        changed.decision_function(table), model.decision_function(table), atol=1e-10
    )


def test_smoothing():
    model = fitted()
    before = shape_functions(model)["age"]
    fine = np.linspace(0.05, 99.95, 1000)
    nearness = np.exp(-0.5 * (np.subtract.outer(fine, fine) / 20.0) ** 2)
    wanted = (nearness @ at(before, fine) / nearness.sum(axis=1)).reshape(5, -1).mean(axis=1)
    changed = shape_functions(reshape_functions(model, {"age": 20.0, "stage": 1.0, "score": 1e4}))
    cells = np.array([10.0, 30.0, 50.0, 70.0, 90.0])
    size = np.ptp(before.values)
    np.testing.assert_allclose(at(changed["age"], cells), wanted - wanted.mean(), atol=0.01 * size)
    assert changed["score"].importance[0] < 1e-6
    nearly = shape_functions(reshape_functions(model, {"age": 0.01}))["age"]
    np.testing.assert_allclose(at(nearly, cells), at(before, cells), atol=0.01 * size)


def test_the_record_is_the_same_and_the_statement_says_what_was_done():
    model = fitted()
    changed = reshape_functions(reshape_functions(model, {"age": "increasing"}), {"age": 5.0})
    assert changed[-1].privacy_spent_ is model[-1].privacy_spent_
    text = " ".join(str(privacy_statement(changed)).split())
    for words in ("'age' (increasing), by public", "'age' (5.0), by public", "spends no budget"):
        assert words in text
    assert "afterwards" not in str(privacy_statement(model))
    functions = shape_functions(changed)
    assert (
        functions["age"].half_width is None
        and "bands of the original model" in functions.about_band
    )
    assert set(coefficient_table(changed)["noise_is"]) == {"unknown"}
    again = pickle.loads(pickle.dumps(changed))
    np.testing.assert_array_equal(again[-1].coef_, changed[-1].coef_)
    assert not hasattr(clone(changed)[-1], "coef_")
    _, table = rows(200)
    refitted = changed.fit(table, np.arange(200) % 2)
    assert shape_functions(refitted)["age"].half_width is not None
    assert "afterwards" not in str(privacy_statement(refitted))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"ward": "increasing"}, ValueError, "column 'ward' must have ordered values"),
        ({"ward": 1.0}, ValueError, "column 'ward' must have ordered values"),
        ({"height": 2.0}, KeyError, "'height' is not a column"),
        ({"age": "up"}, TypeError, "changes"),
        ({"age": 0.0}, ValueError, "changes"),
    ],
)
def test_what_cannot_be_changed_is_refused_by_name(changes, error, message):
    with pytest.raises(error, match=message):
        reshape_functions(fitted(), changes)
