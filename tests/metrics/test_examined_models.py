"""Models that look at more than one row are refused before the charge, or a statement says so."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from support import rows

from skdp.budget import BudgetAccountant
from skdp.metrics import (
    PrivateCalibrator,
    PrivateEvaluation,
    PrivateRegressionEvaluation,
    PrivateThreshold,
)

X, Y = rows(300, 4)


def scale(table):
    return (table - np.mean(table, axis=0)) / np.std(table, axis=0)


def halve(table):
    return 0.5 * table


class Ranks(ClassifierMixin, BaseEstimator):
    """A classifier that puts rows in an order."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict_proba(self, X):
        share = np.argsort(np.argsort(X[:, 0])) / len(X)
        return np.column_stack([1.0 - share, share])


class Rescaled(BaseEstimator):
    """A transformer of someone else, with an error that tests of scikit-learn do not find."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X / np.abs(X).max()


class Centred(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return X[:, 0] - X[:, 0].mean()


def logistic(*steps):
    return make_pipeline(*steps, LogisticRegression()).fit(X, Y)


CARELESS = {
    "a function": (logistic(FunctionTransformer(scale)), "'functiontransformer'"),
    "a function of some columns": (
        logistic(ColumnTransformer([("scaled", FunctionTransformer(scale), [1, 2])])),
        "FunctionTransformer",
    ),
    "a frozen function": (
        FrozenEstimator(logistic(StandardScaler(), FunctionTransformer(scale))),
        "FunctionTransformer",
    ),
    "a searched function": (
        GridSearchCV(logistic(FunctionTransformer(scale)), {}, cv=2).fit(X, Y),
        "FunctionTransformer",
    ),
    "a step of someone else": (
        logistic(StandardScaler(), Rescaled()),
        "step 'rescaled', Rescaled,",
    ),
    "ranks": (Ranks().fit(X, Y), "Ranks has"),
}
LEARNERS = {
    "evaluation": lambda model: PrivateEvaluation().evaluate(model, X, Y),
    "calibrator": lambda model: PrivateCalibrator(FrozenEstimator(model)).fit(X, Y),
    "threshold": lambda model: PrivateThreshold(FrozenEstimator(model)).fit(X, Y),
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("case", CARELESS)
def test_models_that_look_at_the_whole_table_are_refused_before_the_charge(case, learner):
    model, named = CARELESS[case]
    with BudgetAccountant(epsilon=1.0, delta=1e-5, adjacency="add-remove") as budget:
        with pytest.raises(ValueError, match="depends on other rows") as raised:
            LEARNERS[learner](model)
        assert budget.entries() == []
    assert named in str(raised.value)
    assert "as StandardScaler does" in str(raised.value)  # the way out


REGRESSORS = {
    "a function": make_pipeline(FunctionTransformer(scale), LinearRegression()).fit(X, Y),
    "a regressor": Centred().fit(X, Y),
    "an inverse": TransformedTargetRegressor(
        LinearRegression(), func=halve, inverse_func=scale, check_inverse=False
    ).fit(X, Y),
}


@pytest.mark.parametrize("case", REGRESSORS)
def test_such_regressors_are_refused_before_the_charge(case):
    with BudgetAccountant(epsilon=1.0, delta=1e-5, adjacency="add-remove") as budget:
        with pytest.raises(ValueError, match="depends on other rows"):
            PrivateRegressionEvaluation(target_bounds=(0, 1)).evaluate(REGRESSORS[case], X, Y)
        assert budget.entries() == []


def taken_at_your_word(found):
    said = found.privacy_spent_.assumptions
    return [text for text in said if text.startswith("assumed, not checked")]


FRAME = pd.DataFrame({"dose": X[:, 0], "ward": np.where(X[:, 1] > 0, "A", "B")})
ONE_HOT = ColumnTransformer([("ward", OneHotEncoder(), ["ward"])], remainder="passthrough")
TEXTS = np.where(X[:, 0] > 0, "word1 word2", "word3 word4").tolist()
GOOD = {
    "fitted scaler": (logistic(StandardScaler()), X, []),
    "Dask": (logistic(), da.from_array(X, chunks=100), []),
    "Dask's frame": (
        LogisticRegression().fit(FRAME[["dose"]], Y),
        dd.from_pandas(FRAME[["dose"]], npartitions=2),
        [],
    ),
    "polars": (logistic(), pl.DataFrame(X), []),
    "CSR": (logistic(), sparse.csr_array(X), []),
    "rows of single precision": (logistic(), X.astype(np.float32), []),
    "lists": (logistic(), X.tolist(), []),
    "trees": (HistGradientBoostingClassifier(max_iter=5).fit(X, Y), X, []),
    "a function of rows": (
        logistic(FunctionTransformer(halve)),
        X,
        ["FunctionTransformer's function treats each row by itself"],
    ),
    "a frame of numbers": (
        LogisticRegression().fit(FRAME[["dose"]], Y),
        FRAME[["dose"]],
        [],
    ),
    "a frame of words": (
        make_pipeline(ONE_HOT, LogisticRegression()).fit(FRAME, Y),
        FRAME,
        ["made-up rows could not be used"],
    ),
    "texts": (make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, Y), TEXTS, []),
}


@pytest.mark.parametrize("case", GOOD)
def test_others_are_taken_and_what_was_not_tried_is_said(case):
    model, table, said = GOOD[case]
    found = taken_at_your_word(PrivateEvaluation().evaluate(model, table, Y))
    assert len(found) == len(said)
    for text, wanted in zip(found, said, strict=True):
        assert wanted in text


def test_a_record_foretold_says_the_same():
    for model in (logistic(StandardScaler()), logistic(FunctionTransformer(halve))):
        calibrator = PrivateCalibrator(FrozenEstimator(model)).fit(X, Y)
        assert calibrator.privacy_spent_ == calibrator.privacy_plan(len(X), X.shape[1])
