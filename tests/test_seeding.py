"""The text of a parameter tells it from all others: with one seed, equal texts share noise."""

import copy
import functools
import inspect
import math
import os
import pathlib
import re
import subprocess
import sys
import threading
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, special, stats
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.tables.records import describe, fit_context

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


@pytest.mark.parametrize("name", WRAPPINGS)
def test_equal_values_have_one_text(name):
    assert describe(WRAPPINGS[name](LONG)) == describe(WRAPPINGS[name](LONG.copy()))


def test_shapes_types_and_order_count():
    values = [
        *(LONG, LONG.reshape(50, 100), LONG.astype(np.float32), LONG.astype(int), [LONG], (LONG,)),
        *({"a": 1, "b": 2}, {"b": 2, "a": 1}, 1, 1.0, True, "1", None),
        *({1, 2}, frozenset({1, 2}), np.array(["2020-01-01"], dtype="datetime64[D]")),
        *(np.float64, np.float32, LogisticRegression, np.array(None, dtype=object)),
        *(len, math.exp, np.exp, special.expit, math, Pair.method, Pair(1, 2).method),
        *(lambda x: x + 1, lambda x: x + 2, lambda x: len(x), lambda x: abs(x)),
        *(lambda x: [x for _ in "a"], lambda x: [x for _ in "b"], lambda x=1: x, lambda *, x=1: x),
        *(stats.norm(), stats.norm(1.0), stats.norm, stats.expon(), slice(1), slice(2)),
    ]
    assert len({describe(value) for value in values}) == len(values)


def test_arrays_inside_a_list_are_part_of_what_a_fit_is():
    def context(array):
        return fit_context(LogisticRegression(class_weight=[array, array]), LONG[:, None])

    assert context(LONG) != context(nudged(LONG))
    assert context(LONG) == context(LONG.copy())


@dataclass
class Pair:
    left: Any
    right: Any

    def method(self):
        return self.left


def fill(size, *places):
    array = np.empty(size, dtype=object)
    array[: len(places)] = places
    return array


CONTAINERS = {
    "list": lambda value: [1, value],
    "tuple": lambda value: (1, value),
    "dictionary": lambda value: {"a": value, 2: None},
    "view": lambda value: types.MappingProxyType({"a": value}),
    "objects": lambda value: fill(2, None, (value,)),
    "partial": lambda value: functools.partial(max, value, key=len),
    "keyword": lambda value: functools.partial(max, key=value),
    "dataclass": lambda value: Pair(1, value),
    "method": lambda value: Pair(value, 1).method,
    "closure": lambda value: lambda: value,
    "default": lambda value: lambda x=value: x,
    "estimator": lambda value: LogisticRegression(class_weight=value),
    "frozen": lambda value: FrozenEstimator(Pair(value, 1)),
}
ENDS = {
    "plain": lambda value: value,
    "array": lambda value: np.append(np.zeros(3000), value),
    "half": lambda value: np.float32(value),
    "law": lambda value: stats.norm(loc=value),
    "table": lambda value: stats.rv_discrete(values=([0, value], [0.25, 0.75])),
    "set": lambda value: {f"{value}", "b", "c", value},
}
numbers = st.sampled_from([0.5, 0.5 + 2.0**-20, 1.0, 3.0])
recipes = st.tuples(
    st.lists(st.sampled_from(sorted(CONTAINERS)), max_size=4),
    st.sampled_from(sorted(ENDS)),
    numbers,
)


def make(recipe):
    containers, end, number = recipe
    return functools.reduce(
        lambda value, name: CONTAINERS[name](value), containers, ENDS[end](number)
    )


@settings(max_examples=100)
@given(recipes, recipes, numbers)
def test_texts_are_equal_if_and_only_if_contents_are(recipe, other, number):
    text = describe(make(recipe))
    assert text == describe(make(recipe))
    assert not re.search("0x[0-9a-f]{6}", text)
    for another in (other, (*recipe[:2], number)):
        assert (describe(make(another)) == text) == (another == recipe)


@pytest.mark.slow
def test_other_processes_have_the_same_texts():
    program = f"import {__name__} as t; print([t.describe(t.make(r)) for r in t.EVERYTHING])"
    paths = [str(pathlib.Path(__file__).parents[1]), *sys.path]
    own = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(paths)}
    printed = subprocess.check_output([sys.executable, "-c", program], env=own, text=True)
    assert printed.strip() == str([describe(make(recipe)) for recipe in EVERYTHING])


EVERYTHING = [([name], end, 0.5) for name in CONTAINERS for end in ENDS]


def test_what_was_drawn_before_is_no_part_of_a_law():
    law = stats.loguniform(0.1, 1.0)
    before = describe(law)
    law.rvs(3)
    np.random.RandomState(0).shuffle([1, 2])
    np.random.rand()  # noqa: NPY002  copies keep the state of the shared generator
    assert describe(copy.deepcopy(law)) == describe(law) == before


def test_what_a_part_was_fitted_to_counts():
    one, other = (
        make_pipeline(FrozenEstimator(StandardScaler().fit(X)))
        for X in (LONG[:, None], LONG[:9, None])
    )
    assert describe(one) == describe(copy.deepcopy(one)) != describe(other)


def test_what_holds_itself_has_a_text():
    ring = [1]
    ring.append(ring)
    assert describe(ring) == describe(copy.deepcopy(ring)) != describe([1, [1]])


def test_what_cannot_be_taken_apart_is_new_each_time():
    lock = threading.Lock()
    assert len({describe(lock), describe(lock), describe([lock]), describe([lock])}) == 4


def test_arguments_and_attributes_of_functions_count():
    def first(x, y):
        return x

    def second(x, *y):
        return x

    second.__qualname__ = first.__qualname__
    assert describe(first) != describe(second)
    before = describe(first)
    first.limit = 3
    assert describe(first) != before


@pytest.mark.slow
def test_objects_that_know_each_other_end_and_share_no_noise():
    nodes = [types.SimpleNamespace(name=k) for k in range(14)]
    for node in nodes:
        node.others = list(nodes)
    deep = []
    for _ in range(5000):
        deep = [deep]
    for value in (nodes, deep):
        assert describe(value) != describe(value)


def private_classes():
    """Yield all public classes that draw noise in a fit."""
    import skdp
    from skdp import metrics, model_selection, preprocessing

    for module in (skdp, preprocessing, model_selection, metrics):
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, type) and "random_state" in inspect.signature(found).parameters:
                yield found


@pytest.mark.parametrize("kind", private_classes(), ids=lambda kind: kind.__name__)
def test_a_fit_that_differs_in_any_parameter_draws_other_noise(kind):
    needed = inspect.signature(kind).parameters.values()
    model = kind(**{p.name: None for p in needed if p.default is p.empty})
    if not hasattr(model, "get_params"):
        pytest.skip("its streams are tested with what it evaluates")
    context, X = functools.partial(fit_context, model), np.ones((3, 2))
    before = context(X)
    for name, value in model.get_params(deep=False).items():
        setattr(model, name, f"not {value!r}")
        same = name in ("accountant", "random_state", "verbose")
        assert (context(X) == before) is same, name
        setattr(model, name, value)
    assert context(X) == before


@pytest.mark.parametrize("number", range(3))
def test_a_fit_that_differs_in_any_number_or_its_place_draws_other_noise(number):
    model, labels, units = LogisticRegression(), np.array([0, 1, 1]), np.array([0, 1, 2])
    for X in (np.eye(3), sparse.csr_array(np.eye(3)), np.eye(3, dtype=np.float32)):
        before, other = fit_context(model, X, labels, units), X.copy()
        other[number, number] = np.nextafter(other[number, number], other.dtype.type(2))
        assert fit_context(model, other, labels, units) != before
        for column in (labels, units):
            column[number] += 1
            assert fit_context(model, X, labels, units) != before
            column[number] -= 1
        assert fit_context(model, X, labels, units) == before
    # Of two sparse tables all stored numbers may agree, in the same columns, but not the rows.
    data, columns = [1.0, 2.0, 3.0], [0, 1, 2]
    ends = [[0, 1, 2, 3], [0, 0, 1, 3], [0, 2, 2, 3]][number]
    one, two = (sparse.csr_array((data, columns, e), shape=(3, 3)) for e in (ends, [0, 3, 3, 3]))
    assert fit_context(model, one) != fit_context(model, two)
