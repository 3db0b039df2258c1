"""What containers keep themselves, and what is trusted of classes that wrap or inherit."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder
from sklearn.semi_supervised import SelfTrainingClassifier
from support import rows

from skdp import OperaLogisticRegression
from skdp.model_selection import PrivateGridSearchCV
from skdp.model_selection._search import METHODS
from skdp.preprocessing import DPPCA, BoundedScaler, RowNormClipper
from skdp.reporting import privacy_statement
from skdp.reporting._examine import examine
from skdp.reporting.steps import classify_step
from skdp.testing.replay import differences, fit_both

pd = pytest.importorskip("pandas")

LISTED = {"categories": [[0.0, 1.0, 2.0]] * 2, "handle_unknown": "ignore"}
SPARSE_CODES = OneHotEncoder(**LISTED)
DENSE_CODES = OneHotEncoder(**LISTED, sparse_output=False)


def coded(unknown):
    """Return codes that are all listed but, it may be, one row's."""
    X = np.tile([[0.0, 2.0]], (60, 1))
    X[7] = 9.0 if unknown else X[7]
    return X, np.arange(60) % 2


@pytest.mark.parametrize("wrap", [make_pipeline, make_union], ids=["pipeline", "union"])
def test_the_density_of_all_rows_is_no_public_number(wrap):
    # One third of the output is not zero, or a bit less.
    columns = make_column_transformer((SPARSE_CODES, [0, 1]), sparse_threshold=0.331)
    model = make_pipeline(wrap(columns), OperaLogisticRegression())
    fitted = fit_both(model, coded(False), coded(True))
    assert any("sparse_output_" in path for path in differences(*fitted))
    statement = privacy_statement(fitted[0])
    assert "sparse_threshold=0" in statement and "NO guarantee for the whole" in statement
    for method in METHODS:
        with pytest.raises(ValueError, match="sparse_threshold=0"):
            PrivateGridSearchCV(model, {}, method=method).fit(*coded(False))
    safe = clone(model).set_params(
        **{key: 0 for key in model.get_params() if key.endswith("__sparse_threshold")}
    )
    fitted = fit_both(safe, coded(False), coded(True))
    assert differences(*fitted) == []
    assert privacy_statement(fitted[0]).to_dict()["holds_for_the_whole"]


def test_the_type_of_a_column_is_no_public_choice_of_columns():
    whole = pd.DataFrame({"a": np.arange(60), "b": np.linspace(-1, 1, 60)})
    gap = whole.astype({"a": float})
    gap.loc[7, "a"] = np.nan
    step = make_column_transformer(
        (BoundedScaler(), make_column_selector(dtype_include="int64")),
        (FunctionTransformer(), make_column_selector(dtype_include="float64")),
        sparse_threshold=0,
    )
    fitted = fit_both(step, (whole,), (gap,))
    assert any("transformers_" in path for path in differences(*fitted))
    assert "make_column_selector(pattern=...)" in privacy_statement(fitted[0])


PARTS = [
    *("passthrough", "drop", SPARSE_CODES, DENSE_CODES, BoundedScaler(), RowNormClipper()),
    *(FunctionTransformer(sparse.csr_matrix), FunctionTransformer(), DPPCA(n_components=1)),
    *(make_pipeline(BoundedScaler(), "passthrough"), make_pipeline(DENSE_CODES, Normalizer())),
    make_union(DENSE_CODES, BoundedScaler()),
    make_union(DENSE_CODES, "passthrough"),
    make_column_transformer((SPARSE_CODES, [0, 1]), sparse_threshold=0.5),
]
INPUTS = [
    np.asarray,
    sparse.csr_matrix,
    lambda X: pd.DataFrame(X, columns=list("abcd")),
    lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X), columns=list("abcd")),
]


@settings(max_examples=60, deadline=None)
@given(
    one=st.sampled_from(PARTS),
    other=st.sampled_from(PARTS),
    make=st.sampled_from(INPUTS),
    by_name=st.booleans(),
    threshold=st.sampled_from([0, 0.3, 1.0]),
)
def test_column_transformers_that_are_vouched_for_are_never_sparse(
    one, other, make, by_name, threshold
):
    places = [["a", "b"], ["c", "d"]] if by_name else [[0, 1], [2, 3]]
    step = make_column_transformer(
        *zip([one, other], places, strict=True), sparse_threshold=threshold
    )
    found = classify_step(step).kind
    assert threshold or found != "leaking"
    table = np.zeros((40, 4))
    table[0] = 1.0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step.fit(make(table))
    except (ValueError, TypeError):
        return
    # Without any part there is no such attribute.
    assert not getattr(step, "sparse_output_", False) or found == "leaking"
    assert classify_step(step).kind == found


class OwnPipeline(Pipeline):
    """May do anything with the rows."""


class OwnScaler(BoundedScaler):
    """Inherits a declaration that does not hold."""

    def fit(self, X, y=None):
        self.mean_ = np.mean(X)
        return super().fit(X, y)


@pytest.mark.parametrize(
    "step",
    [
        BaggingClassifier(OperaLogisticRegression()),
        CalibratedClassifierCV(OperaLogisticRegression()),
        OneVsOneClassifier(OperaLogisticRegression()),
        OneVsRestClassifier(OperaLogisticRegression()),
        SelfTrainingClassifier(OperaLogisticRegression()),
        StackingClassifier([("one", OperaLogisticRegression())]),
        TransformedTargetRegressor(),
        VotingClassifier([("one", OperaLogisticRegression())]),
        OwnPipeline([("one", OperaLogisticRegression())]),
        OwnScaler(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_what_wraps_or_inherits_is_not_vouched_for(step):
    assert classify_step(step).kind == "leaking"
    with pytest.raises(ValueError, match="not private"):
        PrivateGridSearchCV(make_pipeline(step, OperaLogisticRegression()), {}).fit(*rows(60))


def test_a_pipeline_of_another_class_is_listed_beside_its_parts():
    model = OwnPipeline([("one", OperaLogisticRegression())]).fit(*rows(60))
    assert [finding.kind for finding in examine(model)] == ["leaking", "private"]


def test_a_cache_is_not_covered(tmp_path):
    model = make_pipeline(BoundedScaler(), OperaLogisticRegression(), memory=str(tmp_path))
    assert "memory=" in privacy_statement(model.fit(*rows(60)))
    model = make_pipeline(BoundedScaler(), OperaLogisticRegression())
    assert "memory=" not in privacy_statement(model.fit(*rows(60)))


def test_inner_steps_of_a_pipeline_get_no_frame():
    """What an encoder gives is sparse, and passed on as it is, also where columns have names."""
    encoder = OneHotEncoder(categories=[[0.0, 1.0, 2.0]], handle_unknown="ignore")
    inner = Pipeline([("code", encoder), ("pass", make_union("passthrough"))])
    assert classify_step(ColumnTransformer([("a", inner, ["a"])])).kind == "leaking"
    alone = Pipeline([("pass", make_union("passthrough"))])
    assert classify_step(ColumnTransformer([("a", alone, ["a"])])).kind == "data-independent"
