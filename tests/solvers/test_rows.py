"""Rows: clipping to the public norm, checks, and no copies."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from skdp.solvers import Rows

rng = np.random.default_rng(3)


def exact_norm(row):
    square = sum(Fraction(float(v)) ** 2 for v in row)
    # Fractions neither overflow nor round; the root of a scaled numerator does neither as well.
    shift = 10**700
    return Fraction(math.isqrt(int(square * shift * shift)), shift)


@pytest.mark.parametrize("data_norm", [1.0, 0.37, 1e6])
def test_scales_are_the_smaller_of_two_and_rows_end_in_the_unit_ball(layout, data_norm):
    X = rng.normal(size=(60, 33)) * 10.0 ** rng.uniform(-3, 8, (60, 1))
    X[0] = 0.0
    X[1] /= np.linalg.norm(X[1]) / data_norm
    M = layout(X)
    rows = Rows.from_matrix(M, np.ones(60, np.int8), data_norm)
    stored = np.asarray(M.todense() if sparse.issparse(M) else M)
    for row, scale in zip(stored, rows.row_scale, strict=True):
        norm = exact_norm(row)
        scaled = Fraction(scale) * norm
        assert scaled <= 1
        assert Fraction(scale) * Fraction(data_norm) <= 1 + Fraction(1, 10**15)
        ideal = min(1 / Fraction(data_norm), 1 / norm if norm else 1 / Fraction(data_norm))
        assert abs(float(Fraction(scale) / ideal) - 1) < 1e-14


@settings(max_examples=60, deadline=None)
@given(
    X=hnp.arrays(np.float64, (2, 5), elements=st.floats(-1.7e308, 1.7e308)),
    narrow=st.booleans(),
    data_norm=st.floats(1e-50, 1e50),
)
@example(np.full((2, 5), 1.7e308), False, 1e50)
@example(np.full((2, 5), 1.7e308), False, 1e-50)
@example(np.full((2, 5), 5e-324), False, 1e-50)
@example(np.full((2, 5), 1e-45), True, 1e-50)
def test_no_scaled_row_is_longer_than_one_even_by_rounding(X, narrow, data_norm):
    X = np.clip(X, -3e38, 3e38).astype(np.float32) if narrow else X
    for M in (X, sparse.csr_matrix(X)):
        scales = Rows.from_matrix(M, np.ones(2, np.int8), data_norm).row_scale
        for row, scale in zip(X, scales, strict=True):
            square = sum(Fraction(float(v)) ** 2 for v in row)
            assert Fraction(scale) ** 2 * square <= 1


def test_matrices_are_not_copied_even_when_read_only(layout):
    X = layout(rng.normal(size=(50, 20)))
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    for part in parts:
        part.flags.writeable = False
    rows = Rows.from_matrix(X, np.ones(50, np.int8), 1.0, 0.5)
    kept = rows.matrix if rows.is_sparse else (rows.matrix,)
    for part, view in zip(parts, kept, strict=True):
        assert np.shares_memory(part, view)
        np.testing.assert_array_equal(part, view)


def test_duplicate_entries_of_a_csr_matrix_count_as_their_sum():
    M = sparse.csr_matrix(([3.0, -3.0, 4.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    assert Rows.from_matrix(M, [1.0], 1.0).row_scale[0] == pytest.approx(0.25, rel=1e-14)
    assert M.nnz == 3


def test_shapes():
    X = rng.normal(size=(9, 4))
    rows = Rows.from_matrix(X, np.ones(9, np.int8), 2.0, 0.5)
    assert (rows.n_rows, rows.n_features, rows.n_columns) == (9, 4, 5)
    assert rows.n_weights(3) == 15
    assert rows.row_norm_bound == pytest.approx(math.sqrt(1.25))
    bare = Rows.from_matrix(X, np.ones(9, np.int8), 2.0)
    assert bare.n_columns == 4 and bare.row_norm_bound == 1.0


def test_the_type_of_targets_tells_labels_from_codes():
    X = rng.normal(size=(3, 2))
    rows = Rows.from_matrix(X, np.array([1.0, -1.0, 1.0]), 1.0)
    assert rows.targets.dtype == np.int8
    other = rows.with_targets(np.array([0, 2, 1]))
    assert other.targets.dtype == np.int32 and other.row_scale is rows.row_scale
    assert rows.targets.dtype == np.int8


@pytest.mark.parametrize(
    "change, message",
    [
        ({"data_norm": 0.0}, "data_norm"),
        ({"data_norm": np.inf}, "data_norm"),
        ({"intercept_value": -1.0}, "intercept_value"),
        ({"X": np.ones((3, 2), dtype=int)}, "float32 or float64"),
        ({"X": np.ones(3)}, "1 dimensions"),
        ({"X": np.asfortranarray(np.ones((3, 2)))}, "C-contiguous"),
        ({"X": sparse.csc_matrix(np.ones((3, 2)))}, "CSR"),
        ({"targets": np.ones(4, np.int8)}, "targets"),
        ({"targets": np.array([0, 1, 1], np.int8)}, "Labels"),
        ({"targets": np.array([-1, 1, 1])}, "Class codes"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {
        "X": np.ones((3, 2)),
        "targets": np.ones(3, np.int8),
        "data_norm": 1.0,
        "intercept_value": 0.0,
    } | change
    with pytest.raises(ValueError, match=message):
        Rows.from_matrix(**arguments)
