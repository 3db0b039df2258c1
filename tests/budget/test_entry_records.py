"""What an entry says: plain values, no data, no seeds; and events survive the way to disk."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RandomAllocationEvent,
    RenyiEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.distributions import Gamma
from skdp.budget import BudgetAccountant
from skdp.budget.entries import (
    describe_parameters,
    make_json_ready,
    plain,
    read_event,
    write_event,
    write_up,
)
from skdp.budget.ledger.chain import canonical, digest, link, read_amounts, read_link, write_amounts

EVENTS = [
    PureDPEvent(0.1),
    ApproxDPEvent(0.1, 1e-7),
    RepeatedEvent(PoissonSampledEvent(0.1, GaussianEvent(1.5)), 7),
    UniformSampledEvent(10, 100, GaussianEvent(2.0)),
    RandomAllocationEvent(10, GaussianEvent(2.0)),
    ComposedEvent((DiscreteGaussianEvent(3.0, 2), PureDPEvent(5e-324))),
    RenyiEvent(Gamma(2.5, 0.8), Gamma(2.5, 1.0)),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_events_survive(event):
    text = json.dumps(write_event(event), allow_nan=False)
    assert read_event(json.loads(text)) == event


def test_numbers_that_are_not_finite_survive():
    from skdp.budget.entries import _map_numbers, _mark, _unmark

    tree = {"type": "X", "shape": math.inf, "parts": [{"mean": -math.inf}, 1.5, "inf"]}
    marked = _map_numbers(tree, _mark)
    json.dumps(marked, allow_nan=False)
    assert _map_numbers(marked, _unmark) == tree
    assert make_json_ready(tree)["shape"] == "inf"


def test_entries_are_read_back_as_they_were_made():
    budget = BudgetAccountant(math.inf, 1e-5)
    for event in EVENTS[:3]:
        made = budget.reserve(event, parameters={"alpha": 0.1, "auto": "x"}, seeded=True)
        assert made.event == event
        assert budget.entries()[-1] == made.to_dict()
        json.dumps(made.to_dict())


def test_parameters_hold_no_seed_and_no_data():
    model = OperaLogisticRegression(random_state=42, alpha=0.5, verbose=3)
    described = describe_parameters(model.get_params())
    assert described["alpha"] == 0.5 and not {"random_state", "verbose"} & described.keys()
    nested = describe_parameters({"estimator": DPSGDClassifier(random_state=42), "random_state": 7})
    assert nested["estimator"]["class"] == "DPSGDClassifier"
    assert "42" not in json.dumps(nested) and "7" not in nested
    grid = {"param_grid": {"model__random_state": [42], "alpha": [0.5]}, "a__random_state": 42}
    assert describe_parameters(grid) == {"param_grid": {"alpha": [0.5]}}
    assert plain(np.arange(5)) == "array of shape (5,)"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (np.bool_(False), False),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.array(2.5), 2.5),
        (math.inf, "inf"),
        (Fraction(1, 4), 0.25),
        ("x" * 300, "x" * 200 + "..."),
        ((1, 2), [1, 2]),
        ({2, 1}, [1, 2]),
        ({"a": {"b": 1}}, {"a": {"b": 1}}),
        (list(range(30)), [*range(20), "... 30 in all"]),
        (len, "len"),
        (int, "int"),
        (object(), "object"),
    ],
)
def test_plain_values(value, expected):
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


@settings(max_examples=40)
@given(st.recursive(st.floats() | st.text() | st.none(), st.lists, max_leaves=20))
def test_whatever_is_described_is_json(value):
    json.dumps(describe_parameters({"value": value}), allow_nan=False)


@given(st.fractions(min_value=0, max_value=10**6))
def test_amounts_survive_exactly_and_are_printed_from_above(amount):
    assert read_amounts(json.loads(json.dumps(write_amounts((amount,))))) == (amount,)
    shown = write_up(amount)
    assert Fraction(repr(shown)) >= amount
    assert Fraction(shown) <= amount * (1 + Fraction(1, 2**51)) + Fraction(1, 2**1070)


def test_amounts_beyond_numbers():
    assert write_up(Fraction(10) ** 400) == math.inf
    assert write_up(Fraction(1, 10)) == 0.1 and write_up(Fraction(0)) == 0.0


def test_links_commit_to_everything():
    content, hash_ = link({"b": 1, "a": "é"}, index=3, previous="p")
    assert content == '{"a":"\\u00e9","b":1,"index":3,"previous":"p"}' and hash_ == digest(content)
    good = {"hash_": hash_, "index": 3, "previous": "p"}
    assert read_link(content, **good) == ({"b": 1, "a": "é", "index": 3, "previous": "p"}, None)
    assert "edited" in read_link(content.replace("1", "2"), **good)[1]
    assert "edited" in read_link(None, **good)[1]
    assert "out of place" in read_link(content, **{**good, "index": 2})[1]
    assert "does not follow" in read_link(content, **{**good, "previous": "q"})[1]
    assert read_link(content, **{**good, "previous": None})[1] is None
    with pytest.raises(ValueError):
        canonical({"x": math.nan})
