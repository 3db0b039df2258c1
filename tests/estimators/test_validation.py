"""Bad input: one clear error each, before anything is charged."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from support import Untouchable

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    OperaLogisticRegression,
    VariationalLogisticRegression,
)
from skdp.budget import BudgetAccountant
from skdp.exceptions import BudgetExceededError, PrivacyWarning


def own_name(estimator, name):
    """Return what an estimator calls a parameter: a prior is a penalty."""
    has_prior = estimator is VariationalLogisticRegression
    return "prior_precision" if has_prior and name == "alpha" else name


def refuses(estimator, X, y, message, error=ValueError, fit_params=None, **parameters):
    with pytest.raises(error, match=message):
        estimator(accountant=Untouchable(), **parameters).fit(X, y, **(fit_params or {}))


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("epsilon", [0, -1.0, np.inf, np.nan], ValueError),
        ("epsilon", ["1", [1.0], True], TypeError),
        ("delta", [1, -1e-6, 2.0, np.nan, 1e-260], ValueError),
        ("delta", [None, "1e-6"], TypeError),
        ("data_norm", [0, -1.0, np.inf, np.nan], ValueError),
        ("data_norm", ["1", True], TypeError),
        ("alpha", [-1e-3, np.inf], ValueError),
        ("alpha", ["automatic", None], TypeError),
        ("adjacency", ["replace_one", "remove", False], ValueError),
        ("fit_intercept", ["yes", 1, None], ValueError),
        ("intercept_scaling", [0.0, -1.0], ValueError),
        ("verbose", [-1], ValueError),
        ("random_state", ["seed"], ValueError),
    ],
)
def test_bad_shared_parameters(estimator, table, name, values, error):
    name = own_name(estimator, name)
    for value in values:
        refuses(estimator, *table, name, error=error, **{name: value})


@pytest.mark.parametrize(
    ("cls", "parameters", "message"),
    [
        (OperaLogisticRegression, {"solver": "saga"}, "solver must be one of 'newton'"),
        (OperaLogisticRegression, {"max_iter": 0}, "max_iter"),
        (OperaLogisticRegression, {"alpha": 0}, "larger alpha, or solver='gd'"),
        (OperaLogisticRegression, {"solver": "gd", "learning_rate_init": 100.0}, "too long"),
        (GrpuaLogisticRegression, {"batch_size": 0}, "batch_size"),
        (GrpuaLogisticRegression, {"batch_size": 301}, "at most the number of rows"),
        (GrpuaLogisticRegression, {"max_iter": 0}, "max_iter"),
        (GrpuaLogisticRegression, {"sampling": "shuffle"}, "sampling must be one of"),
        (GrpuaLogisticRegression, {"calibration": "rdp"}, "calibration"),
        (GrpuaLogisticRegression, {"learning_rate": "optimal"}, "learning_rate must be one of"),
        (GrpuaLogisticRegression, {"learning_rate": "strongly-convex", "alpha": 0}, "alpha > 0"),
        (
            GrpuaLogisticRegression,
            {"learning_rate": "convex", "radius": 1.0, "learning_rate_init": 1.0},
            "applies to learning_rate='constant' only",
        ),
        (GrpuaLogisticRegression, {"radius": 0.0}, "radius"),
        (GrpuaLogisticRegression, {"average": 1.5}, "average"),
        (
            GrpuaLogisticRegression,
            {"sampling": "uniform", "adjacency": "add-remove"},
            "fixed size, which is not supported",
        ),
        (DPSGDClassifier, {"noise_multiplier": 0.0}, "noise_multiplier"),
        (DPSGDClassifier, {"epsilon": None}, "epsilon=None requires noise_multiplier"),
        (DPSGDClassifier, {"noise_multiplier": 0.5, "epsilon": 0.1}, "exceeds epsilon=0.1"),
        (DPSGDClassifier, {"max_grad_norm": -1.0}, "max_grad_norm"),
        (DPSGDClassifier, {"solver": "rmsprop"}, "solver must be one of"),
        (DPSGDClassifier, {"momentum": 1.0}, "momentum"),
        (DPSGDClassifier, {"beta_1": 1.0}, "beta_1"),
        (DPSGDClassifier, {"learning_rate": "optimal"}, "learning_rate must be one of"),
        (DPSGDClassifier, {"decay_share": 0.0}, "decay_share"),
        (DPSGDClassifier, {"batch_size": 1000}, "at most the number of rows"),
        (DPSGDClassifier, {"physical_batch_size": 0}, "physical_batch_size"),
    ],
)
def test_bad_own_parameters(table, cls, parameters, message):
    refuses(cls, *table, message, **parameters)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_rows(estimator, table, value):
    X, y = table
    X[17, 2] = value
    refuses(estimator, X, y, "NaN|infinity")
    refuses(estimator, sparse.csr_array(X), y, "NaN|infinity")


def test_shapes(estimator, table):
    X, y = table
    refuses(estimator, X, y[:-1], "inconsistent numbers of samples")
    refuses(estimator, X[:0], y[:0], "0 sample")
    refuses(estimator, X[:, :0], y, "0 feature")
    refuses(estimator, X[:, 0], y, "2D array")
    refuses(estimator, X, np.column_stack([y, y]), "1d array|Multioutput")


def test_labels(estimator, table):
    X, y = table
    refuses(estimator, X, np.zeros_like(y), "one class only")
    refuses(estimator, X, X[:, 0], "continuous|Unknown label type")
    refuses(estimator, X, y, "not in classes=", classes=[1, 2])
    refuses(estimator, X, y, "not in classes=", classes=["0", "1"])
    refuses(estimator, X, y, "distinct", classes=[0, 0, 1])
    refuses(estimator, X, y, "two labels", classes=[0])
    refuses(estimator, X, np.where(y == 1, np.nan, y), "NaN|Unknown label")


def test_messages_name_no_private_label(estimator, table):
    X, y = table
    labels = np.where(y == 1, "secret diagnosis", "healthy")
    with pytest.raises(ValueError, match="not in classes=") as caught:
        estimator(classes=["healthy", "ill"]).fit(X, labels)
    assert "secret" not in str(caught.value)


def test_sample_weight_is_refused_with_the_reason(estimator, table):
    X, y = table
    weights = {"sample_weight": np.ones(len(y))}
    refuses(estimator, X, y, "multiplies the influence of one record", TypeError, weights)
    refuses(estimator, X, y, "accepts X, y and groups", TypeError, {"weights": 1})


def test_a_refused_fit_leaves_the_last_one_as_it_was(estimator, table):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table[0]).rename(columns=str)
    turned = frame[frame.columns[::-1]]
    budget = BudgetAccountant(1.0, 1e-4)
    model = estimator(epsilon=0.9, accountant=budget).fit(frame, table[1])
    expected = model.predict(frame)
    for other in (turned, turned.iloc[:, 1:]):
        with pytest.raises(BudgetExceededError):
            model.fit(other, table[1])
        with pytest.raises(ValueError, match="feature names"):
            model.predict(other)
        assert np.array_equal(model.predict(frame), expected)
    fresh = estimator(accountant=budget)
    with pytest.raises(BudgetExceededError):
        fresh.fit(frame, table[1])
    with pytest.raises(NotFittedError):
        fresh.predict(frame)


def test_messages_quote_no_row(estimator, table):
    X, y = table
    text = X.astype(object)
    text[3, 1] = "HIV positive"
    for bad in (X[:, 0], text, X + 1j, [["HIV positive"] * 4] * len(y)):
        with pytest.raises(ValueError, match=r".") as caught:
            estimator(accountant=Untouchable()).fit(bad, y)
        message = str(caught.value)
        assert "HIV" not in message and f"{X[0, 0]:.3f}" not in message
        assert "[" not in message.replace("categories=[...]", "")


def test_finite_entries_may_not_add_up_to_infinity(estimator, table):
    X, y = table
    rows = sparse.csr_array(X)
    data, indices = rows.data.copy(), rows.indices.copy()
    data[:2], indices[:2] = 1.7e308, 0
    bad = sparse.csr_array((data, indices, rows.indptr), shape=X.shape)
    refuses(estimator, bad, y, "contains infinity, as the sum")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data_norm", 1e-320),
        ("data_norm", 1e200),
        ("alpha", 1e300),
        ("intercept_scaling", 1e300),
        ("intercept_scaling", 1e-300),
    ],
)
def test_extreme_numbers_are_refused_before_the_charge(estimator, table, name, value):
    name = own_name(estimator, name)
    refuses(estimator, *table, name, **{name: value})


@pytest.mark.parametrize(
    ("cls", "parameters", "message"),
    [
        (OperaLogisticRegression, {"alpha": 1e-300}, "larger alpha"),
        (OperaLogisticRegression, {"solver": "gd", "learning_rate_init": 1e300}, "at most 1e"),
        (DPSGDClassifier, {"learning_rate_init": 1e300}, "learning_rate_init"),
        (DPSGDClassifier, {"learning_rate_init": 40.0, "alpha": 0.1}, "without bound"),
        (GrpuaLogisticRegression, {"learning_rate_init": 40.0, "alpha": 0.1}, "without bound"),
        (DPSGDClassifier, {"max_grad_norm": 1e-9}, "max_grad_norm / data_norm"),
        (DPSGDClassifier, {"noise_multiplier": 1e-200}, "noise_multiplier"),
    ],
)
def test_numbers_that_cannot_work_are_refused_before_the_charge(table, cls, parameters, message):
    refuses(cls, *table, message, **parameters)


def test_step_limits_are_in_the_users_units(table):
    X, y = table
    with pytest.raises(ValueError, match=r"learning_rate_init=100 .*0\.00056"):
        OperaLogisticRegression(solver="gd", learning_rate_init=100.0, data_norm=100.0).fit(X, y)


def test_labels_that_cannot_be_compared(estimator, table):
    X, y = table
    mixed = np.where(y == 1, None, "a")
    refuses(estimator, X, mixed, "cannot be compared|Unknown label type")
    refuses(estimator, X, y, "one type", classes=[0, "a"])
    refuses(estimator, X, y, "one type", classes=[None, "a"])


def test_warning_points_at_the_call_of_fit(estimator, table):
    with pytest.warns(PrivacyWarning) as caught:
        estimator(delta=0.5).fit(*table)
    assert caught[0].filename == __file__
