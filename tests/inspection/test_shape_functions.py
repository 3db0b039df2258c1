"""Functions add up to the decision function, on public grids; others are refused."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from declared_columns import COLUMNS, fitted, rows, schema
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPSGDClassifier, OperaLogisticRegression, OperaSVC
from skdp.inspection import ShapeFunctionDisplay, reshape_functions, shape_functions
from skdp.preprocessing import (
    BoundedScaler,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    RowNormClipper,
    TableSchema,
)
from skdp.reporting import coefficient_table

N_COLUMNS = len(COLUMNS)


def between(step, model=None):
    """Return a fitted pipeline with a step before the classifier."""
    model = fitted() if model is None else model
    encoder, linear = model[0], model[-1]
    rows_seen = encoder.transform(rows(50)[1])
    step = step.fit(rows_seen)
    return Pipeline([("encode", encoder), ("step", step), ("linear", linear)])


CASES = {
    "two classes": fitted,
    "three classes": lambda: fitted(classes=("a", "b", "c")),
    "one against the rest": lambda: fitted(OperaSVC(2.0), classes=(3, 1, 2)),
    "clipped rows": lambda: fitted(clip_norm=0.7),
    "no intercept": lambda: fitted(OperaLogisticRegression(2.0, fit_intercept=False)),
    "a clipper that cuts nothing": lambda: between(RowNormClipper(3.0)),
    "a scaler": lambda: between(BoundedScaler(-0.5, 0.8)),
    "a scaler and a clipper": None,
    "not private": lambda: fitted(LogisticRegression()),
}


@pytest.mark.parametrize("case", CASES)
def test_functions_and_intercept_add_up_to_the_decision_function(case):
    if case == "a scaler and a clipper":
        model = between(BoundedScaler(-0.5, 0.8))
        clipper = RowNormClipper(1.0).fit(np.zeros((1, model[-1].n_features_in_)))
        model.steps.insert(2, ("clip", clipper))
    else:
        model = CASES[case]()
    cells, table = rows(300)
    functions = shape_functions(model)
    assert list(functions) != [] and len(functions) == N_COLUMNS
    total = functions.intercept + sum(functions[name].evaluate(cells[name]) for name in functions)
    wanted = model.decision_function(table).reshape(total.shape)
    np.testing.assert_allclose(total, wanted, rtol=0, atol=1e-12 * (1 + np.abs(wanted).max()))
    assert functions.intercept.shape == (total.shape[1],)
    assert (functions["age"].half_width is None) == (case == "not private")


def test_functions_are_centred_on_the_declared_range_and_list_all_cells():
    functions = shape_functions(fitted())
    for name, function in functions.items():
        assert abs(function.weights.sum() - 1) < 1e-12 and (function.weights >= 0).all()
        assert np.abs(function.weights @ function.values).max() < 1e-12
        np.testing.assert_allclose(function.evaluate(function.grid), function.values, atol=1e-12)
        mean_square = function.weights @ function.values**2
        np.testing.assert_allclose(function.importance**2, mean_square, atol=1e-12)
        assert name in repr(function) and len(repr(function)) < 200
    assert functions["age"].grid[[0, -1]].tolist() == [0.0, 100.0]
    # 1 stands for a missing value, and is no number of the range.
    assert 1.0 < functions["lab"].grid[0] < 15 and functions["lab"].grid[-1] == 1000.0
    assert functions["score"].grid[[0, -1]].tolist() == [0.5, 3.5]
    assert functions["stage"].grid.tolist() == [1, 2, 3, "late"]
    assert set(functions["ward"].others) == {"missing", "unknown"}
    assert functions["age"].others == {} and set(functions["dose"].others) == {"missing"}
    one_cut = (NumericColumn("age", cuts=[10.0]), *COLUMNS[1:])
    grid = shape_functions(fitted(columns=one_cut))["age"].grid
    assert grid[[0, -1]].tolist() == [5.0, 15.0]


def test_nothing_of_a_row_but_the_released_coefficients_is_in_them():
    one, other = fitted(), fitted()
    other[-1].coef_ = one[-1].coef_ * 0.0
    _, table = rows(400, seed=9)
    refitted = clone(one).fit(table, np.arange(400) % 2)
    for model in (other, refitted):
        for a, b in zip(
            shape_functions(one).values(), shape_functions(model).values(), strict=True
        ):
            assert a.grid.tolist() == b.grid.tolist()
            assert a.half_width.tolist() == b.half_width.tolist()
            assert a.importance_half_width == b.importance_half_width
    assert one[-1]._coef_noise_ == refitted[-1]._coef_noise_


def test_they_can_be_pickled_and_a_clone_of_the_model_has_none():
    model = fitted()
    functions = shape_functions(model)
    again = pickle.loads(pickle.dumps(functions))
    cells = rows(20)[0]["ward"]
    np.testing.assert_array_equal(again["ward"].evaluate(cells), functions["ward"].evaluate(cells))
    assert again.exact and again.about_band == functions.about_band
    same = shape_functions(pickle.loads(pickle.dumps(model)))
    assert same["age"].half_width.tolist() == functions["age"].half_width.tolist()
    with pytest.raises(ValueError, match="not fitted"):
        shape_functions(clone(model))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fitted(DPSGDClassifier(hidden_layer_sizes=2, max_iter=2)), "DPSGDClassifier"),
        (lambda: between(RowNormClipper(1.0)), "norm=1, .* divides rows .* at least 2.64575"),
        (lambda: between(RowNormClipper(9.0, method="scale")), "divides rows"),
        (lambda: between(StandardScaler()), "features after StandardScaler"),
        (lambda: fitted()[-1], "are encoded by OperaLogisticRegression"),
    ],
)
def test_what_is_no_sum_of_functions_of_columns_is_refused(make, message):
    with pytest.raises(TypeError, match=message):
        shape_functions(make())


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="level"):
        shape_functions(fitted(), level=1.0)


def test_coefficients_by_name():
    table = coefficient_table(fitted(classes=("a", "b", "c")))
    names = schema().preprocessor(positions=True).fit(rows(5)[1]).get_feature_names_out()
    assert table["name"].tolist() == [*names, "(intercept)"] * 3
    assert table["class"].tolist() == np.repeat(list("abc"), names.size + 1).tolist()
    assert set(table["noise_is"]) == {"exact"} and (table["noise_std"] > 0).all()
    plain = coefficient_table(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    assert np.isnan(plain["noise_std"]).all() and set(plain["noise_is"]) == {"unknown"}
    with pytest.raises(TypeError, match="not a fitted linear model"):
        coefficient_table(StandardScaler().fit([[0.0], [1.0]]))


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    model = fitted(classes=("a", "b", "c"))
    display = ShapeFunctionDisplay.from_estimator(model, ["age", "ward"], alpha=0.5)
    assert list(display.lines_) == ["age", "ward"] and len(display.lines_["age"]) == 3
    assert display.axes_[0].get_xlabel() == "age (years)"
    assert display.axes_[0].get_ylabel().split() == "added to log odds of each class of y".split()
    ticks = [label.get_text() for label in display.axes_[1].get_yticklabels()]
    assert ticks == ["A", "B", "C", "missing", "unknown"]
    _, ax = plt.subplots()
    assert ShapeFunctionDisplay(shape_functions(model), ["dose"]).plot(ax).axes_[0] is ax
    with pytest.raises(ValueError, match="ax must contain 2 axes"):
        display.plot(ax)
    assert len(ShapeFunctionDisplay.from_estimator(fitted(LogisticRegression())).axes_) == 7
    plt.close("all")


@pytest.mark.parametrize("classes", [(0, 1), ("a", "b", "c")])
@pytest.mark.parametrize("given", [False, True])
def test_texts_of_pictures_do_not_overlap(classes, given):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    wards = [f"ward number {k} of the old clinic" for k in range(40)]
    columns = [CategoricalColumn("ward", wards, missing="indicator"), NumericColumn("age", 0, 9)]
    declared = TableSchema(columns, label=LabelColumn("died", list(classes)))
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"ward": rng.choice(wards, 300), "age": rng.uniform(0, 9, 300)})
    model = declared.pipeline(OperaLogisticRegression(epsilon=1e3))
    model.fit(table, rng.choice(list(classes), 300))
    axes = plt.subplots(1, 2, figsize=(8, 6))[1] if given else None
    display = ShapeFunctionDisplay.from_estimator(model, ["ward", "age"], ax=axes)
    display.figure_.canvas.draw()
    labels = [text.get_window_extent() for text in display.axes_[0].get_yticklabels()]
    assert len(labels) > 40
    assert not any(one.overlaps(other) for one, other in pairwise(labels))
    if len(classes) > 2 and not given:
        (legend,) = display.figure_.legends
        box = legend.get_window_extent()
        assert not any(box.overlaps(ax.get_window_extent()) for ax in display.axes_)
    elif len(classes) == 2:
        assert display.axes_[0].get_xlabel().splitlines()[-1].endswith("died = 1")
    plt.close("all")


def test_columns_that_act_together_are_one_part():
    model = fitted(interactions=[("age", "ward"), ("stage", "smoker", "lab")])
    functions = shape_functions(model)
    cells, table = rows(200)
    total = functions.intercept
    for name, function in functions.items():
        own = [cells[part] for part in name.split(" * ")]
        total = total + function.evaluate(own[0] if len(own) == 1 else np.array(own, object).T)
    wanted = model.decision_function(table).reshape(total.shape)
    np.testing.assert_allclose(total, wanted, atol=1e-12)
    pair = functions["age * ward"]
    assert pair.kind == "interaction" and [cells.size for cells in pair.axes][1] == 3
    assert pair.values.shape == (pair.axes[0].size * 3, 1)
    assert np.abs(pair.weights @ pair.values).max() < 1e-12
    with pytest.raises(ValueError, match="must have ordered values, got kind 'interaction'"):
        reshape_functions(model, {"age * ward": "increasing"})
    pytest.importorskip("matplotlib").use("Agg")
    display = ShapeFunctionDisplay.from_estimator(model, ["age * ward"])
    assert display.axes_[0].get_ylabel() == "ward"
    with pytest.raises(ValueError, match="at most two columns"):
        ShapeFunctionDisplay.from_estimator(model, ["stage * smoker * lab"])
