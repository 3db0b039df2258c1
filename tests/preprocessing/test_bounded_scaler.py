"""BoundedScaler bounds rows by public numbers and learns nothing from them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skdp.preprocessing import BoundedScaler


@settings(max_examples=200, deadline=None)
@given(
    X=hnp.arrays(
        np.float64, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.floats(-1e38, 1e38)
    ),
    dtype=st.sampled_from([np.float64, np.float32, np.float16]),
    layout=st.sampled_from(["C", "F"]),
    row_norm=st.one_of(st.none(), st.floats(1e-50, 1e50)),
)
@example(np.full((1, 3), 9.0), np.float32, "C", 1.0)
@example(np.full((1, 3), 9.0), np.float32, "C", 1e-45)
@example(np.full((1, 3), 9.0), np.float64, "F", None)
def test_no_row_exceeds_the_published_norm_even_by_rounding(X, dtype, layout, row_norm):
    X = np.clip(X, *(np.array([-1, 1]) * np.finfo(dtype).max)).astype(dtype, order=layout)
    scaler = BoundedScaler(lower=-3.0, upper=5.0, row_norm=row_norm).fit(X)
    for row in scaler.transform(X):
        square = sum(Fraction(float(entry)) ** 2 for entry in row)
        assert square <= Fraction(scaler.data_norm_) ** 2


def test_bounds_map_to_plus_and_minus_one():
    scaler = BoundedScaler([0, 10], [4, 20], row_norm=None)
    out = scaler.fit_transform([[0.0, 10.0], [4.0, 20.0], [2.0, 15.0], [-9.0, 99.0]])
    np.testing.assert_array_equal(out, [[-1, -1], [1, 1], [0, 0], [-1, 1]])
    assert scaler.data_norm_ == pytest.approx(np.sqrt(2))


def test_nothing_depends_on_the_rows():
    X = np.random.default_rng(0).standard_normal((50, 3))
    one, other = (BoundedScaler(-1.0, 1.0).fit(data) for data in (X, 100 * X + 3))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0, 0], [1, 0], "lower < upper"),
        ([0, np.nan], [1, 1], "finite"),
        ([0], [1], "one number for each"),
        ([[0, 0]], [[1, 1]], "one number for each"),
    ],
)
def test_bad_bounds(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        BoundedScaler(lower, upper).fit(np.zeros((3, 2)))


def test_bad_row_norm():
    with pytest.raises(ValueError, match="row_norm"):
        BoundedScaler(row_norm=0.0).fit(np.zeros((3, 2)))


def test_feature_names_pass_through():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    frame = pandas.DataFrame({"age": [50.0], "pressure": [120.0]})
    scaler = BoundedScaler([0, 60], [100, 240]).set_output(transform="pandas")
    assert scaler.fit_transform(frame).columns.tolist() == ["age", "pressure"]
