"""Other tables than those of numbers are refused without quoting a cell, before any charge."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from support import ESTIMATORS

import skdp
from skdp.budget import BudgetAccountant
from skdp.inputs import validate_private_data
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    DPPCA,
    BoundedScaler,
    DPQuantileClipper,
    DPStandardScaler,
    RowNormClipper,
)

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


@pytest.mark.parametrize("estimator", FITS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("X", OTHERS, ids=lambda each: type(each).__name__)
def test_other_tables_are_refused(estimator, X):
    public = {"X_public": np.eye(2)} if isinstance(estimator, skdp.PATEClassifier) else {}
    with (
        BudgetAccountant(1e3, 0.5) as budget,
        pytest.raises((TypeError, ValueError), match="frame") as raised,
    ):
        clone(estimator).fit(X, Y, **public)
    assert len(budget.entries()) == 0
    assert str(CELL) not in str(raised.value) and raised.value.__cause__ is None


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
    with pytest.raises(ValueError, match="numeric table"):
        skdp.OperaLogisticRegression(data_norm=1.0).fit([[10**400], [2], [3], [4]], Y)
