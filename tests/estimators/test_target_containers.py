"""Targets of regressors in any container: read as the same numbers, or refused in words."""

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skdp
from skdp.budget import BudgetAccountant
from skdp.metrics import PrivateRegressionEvaluation
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import DPStandardScaler
from skdp.reporting import privacy_statement

N = 60
X = np.random.default_rng(0).normal(size=(N, 2))
Y = np.arange(N) % 8 / 8.0  # exact in every container
VALUE = 0.4142
ALL = [
    skdp.PrivateRidge,
    skdp.PrivateLinearRegression,
    skdp.OperaHuberRegressor,
    skdp.ObjectivePerturbationHuberRegressor,
    skdp.GrpuaHuberRegressor,
    skdp.DPSGDRegressor,
]
OPTIONS = {"target_bounds": (0.0, 1.0), "data_norm": 3.0}


def with_first(cell, dtype=object):
    return np.array([cell, *Y[1:]], dtype=dtype)


SAME = {
    "list": Y.tolist(),
    "half": Y.astype(np.float16),
    "long": Y.astype(np.longdouble),
    "column": Y[:, None],
    "nullable": pd.Series(Y).astype("Float64"),
    "categories": pd.Series(Y).astype("category"),
    "sparse series": pd.Series(pd.arrays.SparseArray(Y)),
    "polars": pl.Series(Y),
    "decimals": [decimal.Decimal(str(value)) for value in Y],
    "polars decimals": pl.Series([decimal.Decimal(str(value)) for value in Y], strict=False),
    "fractions": [fractions.Fraction(value) for value in Y],
    "texts": [str(value) for value in Y],
    "objects": Y.astype(object),
}
REFUSED = {
    "none": with_first(None),
    "nullable": pd.Series([None, *Y[1:]], dtype="Float64"),
    "polars null": pl.Series([None, *Y[1:]]),
    "missing decimal": [decimal.Decimal("nan"), *map(decimal.Decimal, Y[1:])],
    "signalling decimal": with_first(decimal.Decimal("sNaN")),
    "words": [f"much {VALUE}"] * N,
    "a word": with_first(f"much {VALUE}"),
    "bytes": Y.astype("S"),
    "times": np.arange(N).astype("M8[D]"),
    "durations": np.arange(N).astype("m8[D]"),
    "series of times": pd.Series(pd.date_range("2020", periods=N)),
    "times of polars": pl.Series([datetime.date(2020, 1, 1)] * N),
    "a time": with_first(datetime.datetime(2020, 1, 1)),
    "complex": Y.astype(complex),
    "a complex number": with_first(complex(VALUE)),
    "records": Y.astype([("stay", float)]),
    "one number": np.array(VALUE),
    "two columns": np.column_stack([Y, Y]),
    "ragged": [[VALUE], [VALUE, 1.0]] * (N // 2),
    "mapping": dict(enumerate(Y)),
    "infinite": with_first(float("inf")),
    "masked": np.ma.array(Y, mask=Y > 0.5),
    "a duration": with_first(np.timedelta64(5, "s")),
    "digits in bytes": with_first(b"0.5"),
}


def arrow(values):
    return pytest.importorskip("pyarrow").array(values)


def frozen_ridge(y):
    return skdp.PrivateRidge(**OPTIONS, delta=1e-3, random_state=7).fit(X, y).coef_


@pytest.mark.parametrize("kind", [*SAME, "arrow"])
def test_the_same_numbers_are_read_from_every_container(kind):
    y = arrow(Y) if kind == "arrow" else SAME[kind]
    np.testing.assert_allclose(frozen_ridge(y), frozen_ridge(Y), atol=1e-12)


@pytest.mark.parametrize("whole", [np.int8, bool, object, "Int64", "boolean"])
def test_whole_numbers_and_booleans_are_the_same_as_floats(whole):
    y = (Y > 0.5).astype(int)
    given = pd.Series(y).astype(whole) if isinstance(whole, str) else y.astype(whole)
    np.testing.assert_allclose(frozen_ridge(given), frozen_ridge(y.astype(float)), atol=1e-12)


def fit_of(cls):
    return lambda y: cls(**OPTIONS, delta=1e-3).fit(X, y)


def refuses(use, y):
    with BudgetAccountant(1e3, 0.5) as budget, pytest.raises((TypeError, ValueError)) as raised:
        use(y)
    assert not budget.entries()
    text = str(raised.value)
    assert str(VALUE) not in text and "2020" not in text and "000" not in text
    assert raised.value.__cause__ is None and raised.value.__context__ is None


@pytest.mark.parametrize(("number", "kind"), enumerate((*REFUSED, "arrow null")))
def test_all_others_are_refused_before_any_charge_and_not_quoted(number, kind):
    y = arrow([None, *Y[1:]]) if kind == "arrow null" else REFUSED[kind]
    for cls in (ALL[number % 6], ALL[(number + 2) % 6]):
        refuses(fit_of(cls), y)
    refuses(lambda y: PrivateGridSearchCV(skdp.PrivateRidge(**OPTIONS), {}).fit(X, y), y)
    evaluation = PrivateRegressionEvaluation(delta=1e-3, target_bounds=(0, 1))
    refuses(lambda y: evaluation.evaluate(Ridge().fit(X, Y), X, y), y)


@pytest.mark.parametrize("where", ["memory", "file", "dask"])
def test_masks_of_targets_are_refused_wherever_rows_are(where, tmp_path):
    rows = X
    if where == "file":
        np.save(tmp_path / "X.npy", X)
        rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    elif where == "dask":
        rows = pytest.importorskip("dask.array", reason="needs dask").from_array(X)
    for cls in ALL:
        refuses(lambda y, cls=cls: cls(**OPTIONS, delta=1e-3).fit(rows, y), REFUSED["masked"])
    classifier = skdp.OperaLogisticRegression(1.0, data_norm=1.0, classes=[0, 1])
    refuses(lambda y: classifier.fit(rows, y), np.ma.array(Y > 0.5, mask=Y > 0.9).astype(int))


TRANSFORMED = {
    "public": {"func": np.sqrt, "inverse_func": np.square, "check_inverse": False},
    "checked": {"func": np.sqrt, "inverse_func": np.square},
    "nothing": {"check_inverse": False},
    "learned": {"transformer": StandardScaler(), "check_inverse": False},
    "private": {
        "transformer": DPStandardScaler(lower=0.0, upper=1.0, delta=1e-3),
        "check_inverse": False,
    },
    "mixing": {"transformer": FunctionTransformer(lambda y: y - y.mean(), check_inverse=False)},
}


@pytest.mark.parametrize("kind", TRANSFORMED)
def test_searches_refuse_transformed_targets_before_any_charge(kind):
    model = TransformedTargetRegressor(skdp.PrivateRidge(**OPTIONS), **TRANSFORMED[kind])
    for method in ("holdout", "cv"):
        for candidate in (model, make_pipeline(model)):
            with (
                BudgetAccountant(1e3, 0.5) as budget,
                pytest.raises(
                    ValueError, match="transform y with a public function before the fit"
                ),
            ):
                PrivateGridSearchCV(candidate, {}, method=method).fit(X, Y)
            assert not budget.entries()


@pytest.mark.parametrize("kind", TRANSFORMED)
def test_statements_say_what_transformed_targets_took_from_rows(kind):
    inside = skdp.PrivateRidge(**OPTIONS, delta=1e-3)
    model = TransformedTargetRegressor(inside, **TRANSFORMED[kind]).fit(X, Y)
    text = str(privacy_statement(model))
    assert ("NO guarantee" in text) == (kind in ("learned", "mixing"))
    assert ("on every row; otherwise fit would warn" in text) == (kind in ("checked", "mixing"))
    assert text.count("DPStandardScaler): private") == (kind == "private")
    assert text.count("PrivateRidge): private") == 1


def test_statements_look_into_the_model_of_transformed_targets():
    learned = make_pipeline(StandardScaler(), skdp.PrivateRidge(**OPTIONS, delta=1e-3))
    model = TransformedTargetRegressor(learned, check_inverse=False).fit(X, Y)
    assert "(StandardScaler): leaking" in str(privacy_statement(model))
