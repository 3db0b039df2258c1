"""Sparse rows: damaged ones are refused, and all sound ones mean what the dense table does."""

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.pipeline import make_pipeline
from support import ESTIMATORS, rows

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import DPPCA, RowNormClipper
from skdp.testing import FrozenStream

X, y = rows(n=60, d=4)
X[np.abs(X) < 0.2] = 0.0
DAMAGED = "damaged sparse matrix"


class Untouchable:
    def reserve(self, *args, **kwargs):
        raise AssertionError("charged before validation")

    def __deepcopy__(self, memo):
        return self


def damaged(name):
    """Return a matrix whose arrays were written to after it was built."""
    kind, part, place, value = {
        "beyond": ("csr", "indices", 3, 4),
        "far beyond": ("csr", "indices", 3, 2**30 + 77),
        "negative": ("csr", "indices", 3, -1),
        "rows of csc": ("csc", "indices", 3, 777_777),
        "blocks": ("bsr", "indices", 3, 777_777),
        "rows of coo": ("coo", "row", 3, 777_777),
        "columns of coo": ("coo", "col", 3, -777_777),
        "not monotone": ("csr", "indptr", 7, 100),
        "negative pointer": ("csr", "indptr", 7, -3),
        "too many": ("csr", "indptr", 60, 777_777),
        "none and not monotone": ("csr", "indptr", 60, 0),
        "late start": ("csr", "indptr", 0, 1),
        "list": ("lil", "rows", 3, [777_777]),
    }[name]
    matrix = sparse.csr_matrix(X).asformat(kind)
    if kind == "lil":
        matrix.data[place] = [1.0]
    getattr(matrix, part)[place] = value
    return matrix


DAMAGES = [
    *("beyond", "far beyond", "negative", "rows of csc", "blocks", "rows of coo", "late start"),
    *("columns of coo", "not monotone", "negative pointer", "too many", "none and not monotone"),
    "list",
]


def refuses(call, *arguments):
    with pytest.raises(ValueError, match=DAMAGED) as caught:
        call(*arguments)
    assert not any(text in str(caught.value) for text in ("777", "1073", "100"))
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_matrices_are_refused_before_the_charge(name):
    for estimator in ESTIMATORS:
        refuses(estimator(data_norm=1.0, accountant=Untouchable()).fit, damaged(name), y)
    refuses(DPPCA(2, data_norm=1.0, accountant=Untouchable()).fit, damaged(name))
    for candidate in (OperaLogisticRegression(), make_pipeline(RowNormClipper(), ESTIMATORS[0]())):
        search = PrivateGridSearchCV(candidate, {}, accountant=Untouchable())
        refuses(search.fit, damaged(name), y)


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_matrices_are_refused_after_the_fit(name):
    model = OperaLogisticRegression(data_norm=1.0).fit(X, y)
    for method in (model.predict, model.predict_proba, model.decision_function):
        refuses(method, damaged(name))
    refuses(DPPCA(2, data_norm=1.0).fit(X).transform, damaged(name))
    refuses(RowNormClipper().fit, damaged(name))
    refuses(RowNormClipper().fit(X).transform, damaged(name))


def stored(draw):
    """Return the table in some sparse form, with the freedom that the form has."""
    kind = draw(st.sampled_from(["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]))
    array = sparse.csr_array if draw(st.booleans()) else sparse.csr_matrix
    matrix = array(X).tocoo()
    row, column, data = matrix.row, matrix.col, matrix.data
    if kind == "csr":
        data, row, column = (
            np.concatenate([part, part[:9], [value]])
            for part, value in ((data.copy(), 0.0), (row, 5), (column, 1))
        )
        data[:9] -= 0.125  # entries stored twice, and a zero that is stored
        data[-10:-1] = 0.125
        shuffled = np.random.default_rng(draw(st.integers(0, 99))).permutation(len(data))
        order = shuffled[np.argsort(row[shuffled], kind="stable")]
        pointers = np.searchsorted(row[order], np.arange(61))
        wide = draw(st.sampled_from([np.int32, np.int64]))
        matrix = array((data[order], column[order].astype(wide), pointers.astype(wide)), X.shape)
    else:
        matrix = matrix.asformat(kind)
    if draw(st.booleans()):
        for part in ("data", "indices", "indptr", "row", "col", "offsets"):
            if isinstance(getattr(matrix, part, None), np.ndarray) and kind not in ("lil", "coo"):
                getattr(matrix, part).flags.writeable = False
    return matrix


def fitted(estimator, table):
    return (
        estimator(2.0, 1e-3, data_norm=1.0, random_state=FrozenStream(bytes(32), seeded=False))
        .fit(table, y)
        .coef_
    )


DENSE = {}


@settings(max_examples=15, deadline=None)
@given(st.data(), st.sampled_from([ESTIMATORS[0], ESTIMATORS[-1]]))
def test_every_sparse_form_gives_the_model_of_the_dense_table(data, estimator):
    expected = DENSE.setdefault(estimator, fitted(estimator, X))
    matrix = stored(data.draw)
    before = matrix.copy()
    np.testing.assert_allclose(fitted(estimator, matrix), expected, rtol=1e-6, atol=1e-9)
    assert abs(matrix - before).sum() == 0.0
    np.testing.assert_allclose(
        RowNormClipper(0.5).fit_transform(matrix).toarray(), RowNormClipper(0.5).fit_transform(X)
    )


TIMES = {
    "list": [[datetime.timedelta(1)] * 2] * 30,
    "list of numpy's": [[np.timedelta64(1, "D")] * 2] * 30,
    "objects": np.full((30, 2), np.datetime64("2020-01-01"), dtype=object),
    "bytes": np.full((30, 2), b"0.5", dtype=object),
    "array": np.full((30, 2), 1, dtype="m8[D]"),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_are_no_numbers_in_any_table(kind):
    labels = [0, 1] * 15
    with BudgetAccountant(9.0, 0.1) as budget, pytest.raises(ValueError, match="holds times"):
        OperaLogisticRegression(data_norm=1.0, classes=[0, 1]).fit(TIMES[kind], labels)
    assert not budget.entries()


def test_columns_are_no_tables_as_ever():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    with pytest.raises(ValueError, match="X must be a numeric table"):
        OperaLogisticRegression(data_norm=1.0).fit(pandas.Series([0.5, 1.0]), [0, 1])
