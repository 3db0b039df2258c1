"""RowNormClipper bounds every row, exactly and whatever its scale, and learns nothing."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from skdp.plans.second_moments import bound_rows, scale_norms
from skdp.preprocessing import RowNormClipper

tables = st.sampled_from([np.float64, np.float32]).flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        st.tuples(st.integers(1, 5), st.integers(1, 6)),
        elements=st.floats(*((-1e38, 1e38) if dtype == np.float32 else (-1.7e308, 1.7e308)))
        if dtype == np.float64
        else st.floats(np.float32(-1e38).item(), np.float32(1e38).item(), width=32),
    )
)


def exact_square(row):
    return sum(Fraction(float(entry)) ** 2 for entry in row)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(X=tables, norm=st.floats(1e-50, 1e50), method=st.sampled_from(["clip", "scale"]))
@example(np.full((1, 3), 1e-44, np.float32), 1e-45, "clip")
def test_no_row_exceeds_the_norm_even_by_rounding(X, norm, method):
    for rows in (X, sparse.csr_matrix(X)):
        out = RowNormClipper(norm, method=method).fit_transform(rows)
        assert out.dtype == X.dtype
        for row in np.asarray(out.todense() if sparse.issparse(out) else out):
            assert exact_square(row) <= Fraction(norm) ** 2


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(X=tables, norm=st.floats(1e-3, 1e3))
def test_sparse_rows_get_what_dense_ones_get(X, norm):
    for method in ("clip", "scale"):
        clipper = RowNormClipper(norm, method=method)
        dense = clipper.fit_transform(X)
        for container in (sparse.csr_matrix, sparse.csr_array):
            out = clipper.fit_transform(container(X))
            assert out.format == "csr" and out.dtype == X.dtype
            np.testing.assert_allclose(out.toarray(), dense, rtol=1e-5, atol=1e-30)


def test_clip_leaves_short_rows_alone_and_scale_lengthens_them():
    X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-6.0, 8.0]])
    clipped = RowNormClipper(1.0).fit_transform(X)
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [0.3, 0.4], [0, 0], [-0.6, 0.8]], rtol=1e-14)
    np.testing.assert_array_equal(clipped[1:3], X[1:3])
    scaled = RowNormClipper(2.0, method="scale").fit_transform(X)
    np.testing.assert_allclose(scaled, [[1.2, 1.6], [1.2, 1.6], [0, 0], [-1.2, 1.6]], rtol=1e-14)


def test_the_input_is_not_changed_and_duplicates_are_added_up():
    rows = sparse.csr_matrix((np.array([3.0, 3.0]), np.array([0, 0]), np.array([0, 2])), (1, 2))
    out = RowNormClipper(1.0).fit_transform(rows)
    assert out.toarray()[0, 0] == pytest.approx(1.0)
    np.testing.assert_array_equal(rows.data, [3.0, 3.0])
    X = np.full((2, 2), 5.0)
    RowNormClipper(1.0).fit_transform(X)
    np.testing.assert_array_equal(X, 5.0)


def test_norms_neither_overflow_nor_underflow():
    X = np.array([[3e200, 4e200], [3e-200, 4e-200], [3e-320, 0.0], [0.0, 0.0], [3.0, 4.0]])
    for rows in (X, sparse.csr_matrix(X)):
        sizes, relative = scale_norms(rows)
        np.testing.assert_allclose(sizes * relative, [5e200, 5e-200, 3e-320, 0.0, 5.0], rtol=1e-13)
    largest = bound_rows(np.full((1, 9), 1.7e308), 3.0)
    np.testing.assert_allclose(largest, 1.0, rtol=1e-13)


@pytest.mark.parametrize("norm", [0.0, -1.0, np.inf, np.nan])
def test_bad_norm(norm):
    with pytest.raises(ValueError, match="norm"):
        RowNormClipper(norm).fit(np.zeros((2, 2)))


def test_bad_method():
    with pytest.raises(ValueError, match="method"):
        RowNormClipper(method="shrink").fit(np.zeros((2, 2)))


def test_published_norm_and_names():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    frame = pandas.DataFrame({"age": [50.0], "pressure": [120.0]})
    clipper = RowNormClipper(7.0).set_output(transform="pandas").fit(frame)
    assert clipper.data_norm_ == 7.0
    assert clipper.transform(frame).columns.tolist() == ["age", "pressure"]
