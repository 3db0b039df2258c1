"""Functions and classes that are not known here: tried on synthetic rows, or taken at a word."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_toys import NoisyCount
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    maxabs_scale,
    minmax_scale,
    normalize,
    quantile_transform,
    robust_scale,
    scale,
)
from support import rows

from skdp import OperaLogisticRegression
from skdp.model_selection import PrivateGridSearchCV
from skdp.reporting import privacy_statement
from skdp.reporting.steps import classify_step

WORD = "assumed, not checked: FunctionTransformer's function treats each row by itself"
COUNTER = itertools.count()
WEIGHTS = np.random.default_rng(0).normal(size=(3, 2))


def halved(X):
    return X / 2.0


def broken(X):
    raise KeyError("only for its own columns")


MIXES = {
    "scale": scale,
    "minmax": minmax_scale,
    "maxabs": maxabs_scale,
    "robust": robust_scale,
    "quantiles": quantile_transform,
    "norms of columns": lambda X: normalize(X, axis=0),
    "mean": lambda X: X.mean(axis=0, keepdims=True),
    "filled with means": lambda X: np.where(np.isnan(X), np.nanmean(X, axis=0), X),
    "clipped to the largest": lambda X: np.minimum(X, np.nanmax(X) / 2.0),
    "sorted columns": lambda X: np.sort(X, axis=0),
    "lags": lambda X: np.roll(X, 1, axis=0),
    "differences to the first": lambda X: X - X[0],
    "sums so far": lambda X: np.cumsum(X, axis=0),
    "rows dropped": lambda X: X[~np.isnan(X).any(axis=1)],
    "transposed": np.transpose,
    "divided by n": lambda X: X / len(X),
    "in place": lambda X: np.subtract(X, X.mean(axis=0), out=X),
    "counter": lambda X: X + next(COUNTER),
}
ROW_BY_ROW = {
    "halved": halved,
    "product of matrices": lambda X: X @ WEIGHTS,
    "normalised rows": normalize,
    "sorted rows": lambda X: np.sort(X, axis=1),
    "gaps filled": np.nan_to_num,
    "in place": lambda X: np.multiply(X, 2.0, out=X),
    "of python": np.frompyfunc(lambda x: float(x) ** 2, 1, 1),
    "broken": broken,
    "single precision": lambda X: np.asarray(X, np.float32) @ np.ones((X.shape[1], 50), "f4"),
}


@pytest.mark.parametrize("name", MIXES)
def test_a_function_that_mixes_rows_is_caught(name):
    step = FunctionTransformer(MIXES[name])
    assert classify_step(step).kind == "leaking"
    with pytest.raises(ValueError, match="not private: the output of its function"):
        PrivateGridSearchCV(make_pipeline(step, NoisyCount()), {}).fit(*rows(60))


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_a_function_that_passes_or_raises_is_an_assumption(name):
    verdict = classify_step(FunctionTransformer(ROW_BY_ROW[name]))
    assert (verdict.kind, verdict.assumption) == ("taken at your word", WORD)


@settings(max_examples=30, deadline=None)
@given(st.floats(-5, 5), st.floats(0.1, 3), st.sampled_from([np.mean, np.max, np.std, np.median]))
def test_statistics_of_columns_are_found_however_they_enter(shift, power, statistic):
    def alone(X):
        return np.abs(X - shift) ** power

    def mixed(X):
        return alone(X) + 1e-3 * np.tanh(statistic(X))

    assert classify_step(FunctionTransformer(alone)).kind == "taken at your word"
    assert classify_step(FunctionTransformer(mixed)).kind == "leaking"


def test_numpy_functions_of_single_numbers_are_known():
    for function in (None, np.sqrt, np.log1p):
        verdict = classify_step(FunctionTransformer(function))
        assert verdict.kind == "data-independent" and not verdict.assumption


def test_the_statement_names_what_it_takes_for_granted():
    X, y = rows(60)
    model = make_pipeline(FunctionTransformer(scale), OperaLogisticRegression()).fit(X, y)
    assert "NO guarantee for the whole" in privacy_statement(model)
    model = make_pipeline(FunctionTransformer(halved), OperaLogisticRegression()).fit(X, y)
    statement = privacy_statement(model)
    record = statement.to_dict()
    assert record["holds_for_the_whole"] and WORD in record["assumptions"]
    assert record["parts"][0]["kind"] == "taken at your word"  # for tools that parse it
    assert "taken at your word" not in statement and "assumed, not checked" in statement


def test_columns_of_a_frame_are_tried_by_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows(60)[0], columns=list("abcd"))
    centred = FunctionTransformer(lambda table: table[["a"]] - table["a"].mean()).fit(frame)
    doubled = FunctionTransformer(lambda table: 2 * table[["a"]]).fit(frame)
    assert classify_step(centred).kind == "leaking"
    assert classify_step(doubled).kind == "taken at your word"


class Vouching(TransformerMixin, BaseEstimator):
    _learns_from_rows = False

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


class Heir(Vouching):
    def fit(self, X, y=None):
        self.mean_ = np.mean(X)
        return super().fit(X, y)


def test_a_class_vouches_for_itself_alone():
    verdict = classify_step(Vouching())
    assert verdict.kind == "taken at your word" and "Vouching" in verdict.assumption
    assert classify_step(Heir()).kind == "leaking"


def test_a_search_lists_what_it_takes_for_granted():
    search = PrivateGridSearchCV(
        make_pipeline(FunctionTransformer(halved), Vouching(), NoisyCount()),
        {"functiontransformer": ["passthrough", FunctionTransformer(halved)]},
        method="holdout",
    )
    X, y = rows(60)
    for spent in (search.fit(X, y).privacy_spent_, search.privacy_plan(60, 4)):
        taken = [text for text in spent.assumptions if text.startswith("assumed, not checked")]
        assert taken == [
            "assumed, not checked: Vouching learns nothing from the rows and transforms each by "
            "itself",
            "assumed, not checked: the fit of NoisyCount is as private as its record states",
            WORD,
        ]


class Undo:
    """Keeps what it is given."""

    def __call__(self, X):
        self.seen = X
        return X**3


def test_the_inverse_that_fit_tries_is_taken_at_a_word():
    step = FunctionTransformer(np.cbrt, inverse_func=Undo())
    assert classify_step(step).kind == "taken at your word"
    assert "inverse_func undoes it" in classify_step(step).assumption
    assert classify_step(step.set_params(check_inverse=False)).kind == "data-independent"


def test_arguments_that_print_alike_are_told_apart():
    def add(X, given):
        return X + (scale(X) if given[1000] else 0.0)

    calm, wild = np.zeros(2001), np.zeros(2001)
    wild[1000] = 1.0
    steps = [FunctionTransformer(add, kw_args={"given": given}) for given in (calm, wild, calm)]
    assert [classify_step(step).kind for step in steps] == [
        *("taken at your word", "leaking", "taken at your word")
    ]
