"""The text of a parameter tells it from all others: with one seed, equal texts share noise."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdp.seeding import describe, fit_context

LONG = np.arange(5000.0)


def nudged(array):
    other = array.copy()
    other[2500] += 1e-12 * max(1.0, other[2500])
    return other


WRAPPINGS = {
    "alone": lambda array: array,
    "in a list": lambda array: [array, None],
    "in a tuple in a dictionary": lambda array: {"a": (1, [array])},
    "of objects": lambda array: np.array([*array.tolist(), None], dtype=object),
    "masked": lambda array: np.ma.masked_array(array, array == array[2500]),
    "sparse": lambda array: sparse.csr_array(array[None, :]),
    "in a law": lambda array: stats.rv_discrete(values=(array, np.full(5000, 2e-4))).freeze(),
    "in an estimator": lambda array: LogisticRegression(class_weight={0: array}),
    "in a pipeline": lambda array: make_pipeline(LogisticRegression(C=array)),
}


@pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)
def test_one_number_among_thousands_changes_the_text(wrap):
    assert describe(wrap(LONG)) != describe(wrap(nudged(LONG)))


@pytest.mark.parametrize("name", [name for name in WRAPPINGS if name != "in a law"])
def test_equal_values_have_one_text(name):
    assert describe(WRAPPINGS[name](LONG)) == describe(WRAPPINGS[name](LONG.copy()))


def test_shapes_types_and_order_count():
    values = [
        *(LONG, LONG.reshape(50, 100), LONG.astype(np.float32), LONG.astype(int), [LONG], (LONG,)),
        *({"a": 1, "b": 2}, {"b": 2, "a": 1}, 1, 1.0, True, "1", None),
        *({1, 2}, frozenset({1, 2}), np.array(["2020-01-01"], dtype="datetime64[D]")),
        *(np.float64, np.float32, LogisticRegression, np.array(None, dtype=object)),
    ]
    assert len({describe(value) for value in values}) == len(values)


def test_arrays_inside_a_list_are_part_of_what_a_fit_is():
    def context(array):
        return fit_context(LogisticRegression(class_weight=[array, array]), LONG[:, None])

    assert context(LONG) != context(nudged(LONG))
    assert context(LONG) == context(LONG.copy())
