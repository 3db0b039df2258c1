"""Functions of private regressors: sums, words, bands of the noise."""

import numpy as np
import pytest
from declared_columns import COLUMNS, rows
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression

from skdp import (
    DPSGDRegressor,
    GrpuaHuberRegressor,
    ObjectivePerturbationHuberRegressor,
    OperaHuberRegressor,
    PrivateLinearRegression,
    PrivateRidge,
)
from skdp.inspection import ShapeFunctionDisplay, reshape_functions, shape_functions
from skdp.preprocessing import NumericLabel, TableSchema
from skdp.reporting import coefficient_table

SCHEMA = TableSchema(COLUMNS, label=NumericLabel("stay", 0, 30, unit="days"))
FEW = TableSchema([COLUMNS[0], COLUMNS[4]], label=SCHEMA.label)
STAY = "stay (days)"
hidden_state = {"calibration": "hidden-state", "max_iter": 5}
quantile, poisson = {"loss": "quantile", "quantile": 0.9}, {"loss": "poisson"}
REGRESSORS = {
    "ridge": (PrivateRidge(50.0), STAY, True),
    "hidden ridge": (PrivateRidge(0.1), STAY, False),
    "linear": (PrivateLinearRegression(), STAY, False),
    "opera": (OperaHuberRegressor(), STAY, True),
    "objective": (ObjectivePerturbationHuberRegressor(), STAY, True),
    "grpua": (GrpuaHuberRegressor(max_iter=5), STAY, False),
    "hidden state": (GrpuaHuberRegressor(**hidden_state), STAY, True),
    "quantile": (DPSGDRegressor(max_iter=5, **quantile), f"the 0.9 quantile of {STAY}", False),
    "poisson": (
        DPSGDRegressor(max_iter=5, **poisson),
        f"the logarithm of the rate of {STAY}",
        False,
    ),
}


def targets(table):
    ages = np.clip(table[:, 0].astype(float), 0, 100)
    return 2.0 + 0.2 * ages + 3.0 * (table[:, 4 if table.shape[1] > 2 else 1] == "B")


def fit(regressor, schema=SCHEMA, n=400):
    table = rows(n, seed=1)[1]
    table = table if schema is SCHEMA else table[:, [0, 4]]
    return schema.pipeline(regressor, positions=True).fit(table, targets(table))


@pytest.mark.parametrize("case", REGRESSORS)
def test_functions_add_up_to_the_prediction(case):
    regressor, words, has_band = REGRESSORS[case]
    model = fit(regressor, n=3000 if case == "ridge" else 400)
    functions = shape_functions(model)
    cells, table = rows(300)
    total = functions.intercept[0] + sum(
        functions[name].evaluate(cells[name])[:, 0] for name in functions
    )
    wanted = np.clip(np.exp(total) if case == "poisson" else total, 0.0, 30.0)
    np.testing.assert_allclose(model.predict(table), wanted, rtol=1e-9, atol=1e-9)
    assert functions.target == words and functions.classes.size == 0
    found = functions["age"].half_width
    assert (found is not None) == has_band and functions.about_band
    assert (functions.intercept_half_width is not None) == has_band
    changed = reshape_functions(model, {"age": "decreasing"})
    assert np.diff(shape_functions(changed)["age"].values[:, 0]).max() <= 1e-9
    assert shape_functions(changed)["age"].half_width is None
    assert np.isfinite(changed.predict(table)).all()
    assert set(coefficient_table(changed)["noise_is"]) == {"unknown"}


@pytest.mark.parametrize(
    ("name", "adjacency", "runs"),
    [
        ("ridge", "replace-one", 40),
        pytest.param("ridge", "replace-one", 300, marks=pytest.mark.slow),
        pytest.param("ridge", "add-remove", 300, marks=pytest.mark.slow),
        pytest.param("opera", "replace-one", 300, marks=pytest.mark.slow),
        pytest.param("opera", "add-remove", 300, marks=pytest.mark.slow),
    ],
)
def test_the_band_is_the_noise(name, adjacency, runs):
    """Mean squares over the band's in fits of the same rows; false alarm 1e-6 a cell."""
    shared = {"adjacency": adjacency, "delta": 1e-3}
    make = {
        "opera": lambda epsilon: OperaHuberRegressor(epsilon, alpha=0.1, width=4.0, **shared),
        "ridge": lambda epsilon: PrivateRidge(epsilon, **shared),
    }[name]
    model = fit(make(20.0), FEW, 2000)
    encoder, last = model[0], model[-1]
    table = rows(2000, seed=1)[1][:, [0, 4]]
    X, y, meaning = encoder.transform(table), targets(table), getattr(last, "_meaning", None)
    exact = shape_functions(fit(make(1e9), FEW, 2000))
    cells = {"age": np.array([5.0, 50.0, 90.0]), "ward": np.array(["A", "C"], dtype=object)}
    squares = []
    for seed in range(runs):
        last.set_params(random_state=seed).fit(X, y)
        if meaning is not None:
            last._hear(meaning)
        found = shape_functions(model)
        off = [found[own].evaluate(c) - exact[own].evaluate(c) for own, c in cells.items()]
        places = [np.searchsorted(found["age"].grid, cells["age"]), [0, 2]]
        reach = [found[own].half_width[at] for own, at in zip(cells, places, strict=True)]
        squares.append((np.concatenate(off)[:, 0] / np.concatenate(reach) * 1.96) ** 2)
    least, most = chi2.ppf([5e-7, 1.0 - 5e-7], runs) / runs
    # Of second moments to first order: a tenth either way.
    slack = 1.1 if name == "ridge" else 1.0
    mean = np.mean(squares, axis=0)
    assert (least / slack < mean).all() and (mean < most * slack).all()


def test_pictures_are_in_the_unit_of_the_target():
    pytest.importorskip("matplotlib").use("Agg")
    display = ShapeFunctionDisplay.from_estimator(fit(OperaHuberRegressor()), ["age", "ward"])
    assert display.axes_[0].get_ylabel() == "added to stay (days)"
    assert display.axes_[0].get_legend() is None
    plain = SCHEMA.replace(label=None).pipeline(LinearRegression(), positions=True)
    table = rows(200, seed=1)[1]
    functions = shape_functions(plain.fit(table, targets(table)))
    assert functions.target == "the prediction" and functions["age"].half_width is None
