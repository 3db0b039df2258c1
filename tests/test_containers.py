"""Other tables than those of numbers are refused without quoting a cell, before any charge."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support import ESTIMATORS

import skdp
from skdp.budget import BudgetAccountant
from skdp.inference import PrivateInference
from skdp.metrics import PrivateCalibrator, PrivateEvaluation, PrivateRegressionEvaluation
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    DPPCA,
    BoundedScaler,
    DPQuantileClipper,
    DPStandardScaler,
    NumericColumn,
    RowNormClipper,
    TableSchema,
)
from skdp.statistics import private_histogram, private_mean, private_quantile
from skdp.tables.inputs import validate_private_data

CELL = 31.4159
CELLS = {"age": [CELL, 20.0, 30.0, 40.0], "dose": [1.0, 2.0, 3.0, 4.0]}
Y = [0, 1, 0, 1]


class Interchanged:
    """A frame that other libraries can read, and numpy cannot."""

    def __dataframe__(self, **_):
        raise AssertionError(f"nobody converts it: {CELL}")


class Streamed:
    def __arrow_c_stream__(self, *_):
        raise AssertionError(f"nobody converts it: {CELL}")


OTHERS = [CELLS, pl.LazyFrame(CELLS), Interchanged(), Streamed()]
FITS = [
    *(cls(classes=[0, 1]) for cls in ESTIMATORS),
    skdp.GrpuaMLPClassifier(classes=[0, 1]),
    skdp.PrivateRidge(target_bounds=(0.0, 1.0)),
    skdp.PATEClassifier(LogisticRegression(), classes=[0, 1]),
    PrivateGridSearchCV(skdp.OperaLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}),
    DPStandardScaler(lower=0.0, upper=99.0),
    DPQuantileClipper(lower=0.0, upper=99.0),
    DPPCA(n_components=1, data_norm=99.0),
    BoundedScaler(0.0, 99.0),
    RowNormClipper(99.0),
]


def refuses(estimator, tables, words):
    """Each table is refused before any charge, and no cell is quoted."""
    public = {"X_public": np.eye(2)} if isinstance(estimator, skdp.PATEClassifier) else {}
    for X, y in tables:
        with (
            BudgetAccountant(1e3, 0.5) as budget,
            pytest.raises((TypeError, ValueError), match=words) as raised,
        ):
            clone(estimator).fit(X, y, **public)
        assert len(budget.entries()) == 0
        assert str(CELL) not in str(raised.value) and raised.value.__cause__ is None


@pytest.mark.parametrize("estimator", FITS, ids=lambda each: type(each).__name__)
def test_other_tables_are_refused(estimator):
    refuses(estimator, [(X, Y) for X in OTHERS], "frame")


MASKED = np.ma.array(np.column_stack(list(CELLS.values())), mask=[[1, 0], [0, 0]] * 2)
MASKED_Y = np.ma.array(Y, mask=[1, 0, 0, 0])
EVALUATED = LogisticRegression().fit(MASKED.data, Y)
NUMBERS = [
    skdp.PrivateLinearRegression,
    skdp.OperaHuberRegressor,
    skdp.ObjectivePerturbationHuberRegressor,
    skdp.GrpuaHuberRegressor,
    skdp.DPSGDRegressor,
]
MASKED_FITS = [
    *FITS,
    *(cls(target_bounds=(0.0, 1.0)) for cls in NUMBERS),
    PrivateGridSearchCV(skdp.PrivateRidge(target_bounds=(0.0, 1.0)), {"alpha": [0.0, 1.0]}),
    PrivateGridSearchCV(
        make_pipeline(BoundedScaler(0.0, 99.0), skdp.OperaLogisticRegression(classes=[0, 1])), {}
    ),
]


@pytest.mark.parametrize("estimator", MASKED_FITS, ids=lambda each: type(each).__name__)
def test_masked_arrays_are_refused_before_any_charge(estimator):
    of_labels = [] if hasattr(estimator, "transform") else [(MASKED.data, MASKED_Y)]
    refuses(estimator, [(MASKED, Y), (list(MASKED), Y), *of_labels], "is a masked array")


@pytest.mark.parametrize(
    "released",
    [
        lambda: PrivateEvaluation().evaluate(EVALUATED, MASKED, Y),
        lambda: PrivateEvaluation().evaluate(EVALUATED, MASKED.data, MASKED_Y),
        lambda: PrivateInference(data_norm=99.0).evaluate(EVALUATED, MASKED, Y),
        lambda: PrivateInference(data_norm=99.0).evaluate(EVALUATED, MASKED.data, MASKED_Y),
        lambda: PrivateRegressionEvaluation(target_bounds=(0, 1)).evaluate(
            DummyRegressor().fit(MASKED.data, Y), MASKED, Y
        ),
        lambda: PrivateRegressionEvaluation(target_bounds=(0, 1)).evaluate(
            DummyRegressor().fit(MASKED.data, Y), MASKED.data, MASKED_Y
        ),
        lambda: PrivateCalibrator(EVALUATED).fit(MASKED, Y),
        lambda: PrivateCalibrator(EVALUATED).fit(MASKED.data, MASKED_Y),
        lambda: private_mean(MASKED[:, 0], lower=0, upper=99, epsilon=1.0),
        lambda: private_histogram(MASKED_Y, categories=[0, 1], epsilon=1.0),
        lambda: private_quantile(MASKED[:, 0], 0.5, lower=0, upper=99, epsilon=1.0),
        lambda: (
            TableSchema([NumericColumn("age", 0, 99), NumericColumn("dose", 0, 9)])
            .preprocessor()
            .fit(MASKED)
        ),
    ],
)
def test_masked_arrays_are_refused_by_all_that_releases(released):
    with (
        BudgetAccountant(1e3, 0.5) as budget,
        pytest.raises((TypeError, ValueError), match="mask") as raised,
    ):
        released()
    assert len(budget.entries()) == 0 and str(CELL) not in str(raised.value)


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]"])
def test_columns_of_times_are_refused_by_their_type(kind):
    times = np.arange(8).reshape(4, 2).astype(kind)
    of_polars = pl.DataFrame({"age": [1.0] * 4, "stay": [datetime.timedelta(1)] * 4})
    tables = [times, pd.DataFrame(times), pd.DataFrame(times).assign(age=1.0), of_polars]
    try:
        import pyarrow
    except ImportError:
        pass
    else:
        tables.append(
            pyarrow.table({"age": [1.0] * 4, "born": [datetime.datetime(2020, 1, 1)] * 4})
        )
    for X in tables:
        with pytest.raises(ValueError, match="holds times"):
            skdp.OperaLogisticRegression(data_norm=1.0).fit(X, Y)


def test_frames_and_arrow_tables_are_taken():
    frames = [pd.DataFrame(CELLS), pl.DataFrame(CELLS)]
    try:
        import pyarrow
    except ImportError:
        pass
    else:
        frames += [pyarrow.table(CELLS), pyarrow.RecordBatch.from_pydict(CELLS)]
    wanted = np.column_stack(list(CELLS.values()))
    for frame in frames:
        assert np.array_equal(validate_private_data(BoundedScaler(), frame), wanted)


def test_whole_numbers_beyond_doubles_are_refused_as_other_tables_are():
    with pytest.raises(ValueError, match="within the floats"):
        skdp.OperaLogisticRegression(data_norm=1.0).fit([[10**400], [2], [3], [4]], Y)
