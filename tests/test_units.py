"""Rows of one id are one unit, whatever holds the ids; errors say nothing of them."""

import datetime
import pickle
import unicodedata
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.mechanisms import PoissonSampler, RandomStream
from skdp.tables.units import LotsOfUnits, units_of


def partition(ids):
    found = {}
    for row, key in enumerate(ids):
        found.setdefault(key, []).append(row)
    return sorted(found.values())


def parts(units):
    each = np.split(units.order, units.starts[1:-1])
    for code, rows in enumerate(each):
        np.testing.assert_array_equal(units.codes[rows], code)
        assert list(rows) == sorted(rows)
    return sorted(rows.tolist() for rows in each)


def column(kind, ids):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    texts = [f"p{each}" for each in ids]
    return {
        "list": lambda: list(ids),
        "tuple": lambda: tuple(texts),
        "int8": lambda: np.array(ids, dtype=np.int8),
        "uint64": lambda: np.array(ids, dtype=np.uint64) + np.uint64(2**63),
        "float": lambda: np.array(ids, dtype=np.float32),
        "text": lambda: np.array(texts),
        "objects": lambda: np.array(texts, dtype=object),
        "large": lambda: [each + 10**30 for each in ids],
        "series": lambda: pd.Series(ids, index=ids),
        "nullable": lambda: pd.Series(ids, dtype="Int64"),
        "string": lambda: pd.Series(texts, dtype="string"),
        "category": lambda: pd.Series(texts, dtype="category"),
        "number category": lambda: pd.Series(ids, dtype="category"),
        "polars": lambda: pl.Series(ids),
        "polars text": lambda: pl.Series(texts),
        "polars category": lambda: pl.Series(texts, dtype=pl.Categorical),
        "strided": lambda: np.repeat(np.array(ids), 2)[::2],
    }[kind]()


KINDS = [
    *("list", "tuple", "int8", "uint64", "float", "text", "objects", "large", "series"),
    *("nullable", "string", "category", "number category", "polars", "polars text"),
    *("polars category", "strided"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_container_gives_the_same_units(kind):
    ids = [7, 3, 7, 100, 3, 3, 1, 100]
    units = units_of(column(kind, ids))
    assert parts(units) == partition(ids)
    assert units.n_units == 4 and units.counts.sum() == 8
    shuffled = units_of(column(kind, ids[::-1]))
    assert parts(shuffled) == partition(ids[::-1])
    np.testing.assert_array_equal(shuffled.codes[::-1], units.codes)  # places follow ids alone


KEYS = st.one_of(
    st.lists(st.one_of(st.integers(-5, 5), st.integers(-5, 5).map(float)), max_size=40),
    st.lists(st.integers(2**53 - 2, 2**53 + 2), max_size=40),
    st.lists(st.text("ab1", min_size=1, max_size=2), max_size=40),
)


@given(KEYS)
def test_units_are_the_classes_of_equality(ids):
    units = units_of(ids)
    assert parts(units) == partition(ids) or not ids
    again = pickle.loads(pickle.dumps(units))
    np.testing.assert_array_equal(again.codes, units.codes)


@settings(max_examples=40)
@given(st.lists(st.text(max_size=2), min_size=1, max_size=30))
def test_equal_texts_never_split(ids):
    codes = units_of(ids, null="own").codes
    for one, other in zip(range(len(ids)), range(1, len(ids)), strict=False):
        if ids[one] == ids[other] and ids[one].strip() and ids[one].isprintable():
            assert codes[one] == codes[other]


def test_ids_that_look_the_same_are_one_unit():
    ids = ["a1", "a1 ", " a1", "a1\u200b", "\uff41\uff11", "a1\x00", "a\u0301", "\u00e1", "A1"]
    np.testing.assert_array_equal(units_of(ids).codes, [1, 1, 1, 1, 1, 1, 2, 2, 0])
    unseen = ["\u034f", "\ufe0f", "\u3164", "\u17b4", "\u2800", "\U000e0100"]
    np.testing.assert_array_equal(units_of([f"A{mark}1" for mark in ["", *unseen]]).codes, 0)
    np.testing.assert_array_equal(units_of(["\u00e9", "e\u200b\u0301"]).codes, 0)
    np.testing.assert_array_equal(units_of(["A 1", "A \u200d 1"]).codes, 0)
    mixed = np.array([1, 1.0, np.int8(1), np.float32(1.0), np.uint64(1), -0.0, 0], dtype=object)
    np.testing.assert_array_equal(units_of(mixed).codes, [1, 1, 1, 1, 1, 0, 0])


def test_writings_of_one_character_are_one_unit():
    dashes = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) == "Pd"]
    digits = [c for c in map(chr, range(0x110000)) if unicodedata.decimal(c, None) == 7]
    assert len(dashes) > 20 and len(digits) > 50
    sets = {
        "7": digits,
        "-": [*dashes, "\u2212"],
        "'": ["\u2018", "\u2019", "\u201b", "\u02bc", "\uff07"],
        '"': ["\u201c", "\u201d", "\u201f", "\u00ab", "\u00bb"],
        " ": [c for c in map(chr, range(0x110000)) if unicodedata.category(c) == "Zs"],
    }
    for plain, others in sets.items():
        ids = [f"x{c}y" for c in [plain, *others]]
        np.testing.assert_array_equal(units_of(ids).codes, 0)
    # What the page does not promise stays apart.
    assert units_of(["A", "\u0410", "\u0391", "a"]).n_units == 4


@given(st.text(max_size=4))
def test_what_stands_for_an_id_stands_for_itself(text):
    ids = units_of([text], null="own").ids
    assert units_of(list(ids)).ids == ids


def test_missing_ids_are_refused_or_units_of_their_own():
    pd = pytest.importorskip("pandas")
    columns = [
        ["a", None, "a", None],
        ["a", float("nan"), "a", " "],
        np.array([3.0, np.nan, 3.0, np.nan]),
        pd.Series([3, pd.NA, 3, None], dtype="Int64"),
        pd.Series(["a", None, "a", None], dtype="category"),
        pytest.importorskip("polars").Series([3, None, 3, None]),
        np.array(["a", "", "a", ""]),
        pd.Series([3, pd.NaT, 3, pd.NaT], dtype=object),
        np.ma.array([3, 9, 3, 9], mask=[0, 1, 0, 1]),
        deque(["a", float("nan"), "a", None]),
    ]
    for ids in columns:
        with pytest.raises(ValueError, match="missing ids"):
            units_of(ids)
        np.testing.assert_array_equal(units_of(ids, null="own").codes, [0, 1, 0, 2])
    with pytest.raises(ValueError, match="null must be one of"):
        units_of([1], null="mean")


WRONG = [
    [1, "1"],
    [1, "1", None],
    ["secret7", 777],
    np.array([1.5, 777.25]),
    [float("inf")],
    [2**53 + 1, float(2**53 + 1)],
    deque(["1", 1.0]),
    [True, False],
    np.array([True, False]),
    np.array([b"secret7"]),
    [b"secret7"],
    np.array(["2020-02-02"], dtype="datetime64[ns]"),
    [datetime.date(1777, 7, 7)],
    [[777], [777]],
    [(777, 1), 1],
    [[777], 1],
    [{777: 1}],
    np.zeros((2, 1), dtype=int),
    "secret7",
    777,
    {777, 1},
    [777j],
]


@pytest.mark.parametrize("ids", WRONG, ids=lambda ids: type(ids).__name__)
def test_other_ids_are_refused_without_a_word_of_them(ids):
    with pytest.raises((TypeError, ValueError)) as caught:
        units_of(ids)
    assert "7" not in str(caught.value) and "groups" in str(caught.value)


def test_a_wrong_number_of_ids_is_refused_without_numbers():
    with pytest.raises(ValueError, match="one id for each row") as caught:
        units_of([1, 2, 3], 4)
    assert not any(mark.isdigit() for mark in str(caught.value))


def test_weights_of_a_unit_add_up_to_its_public_bound():
    units = units_of([1, 2, 2, 2, 3, 3])
    np.testing.assert_allclose(units.weights(), [1, 1 / 3, 1 / 3, 1 / 3, 0.5, 0.5])
    np.testing.assert_allclose(units.weights(2), [1, 2 / 3, 2 / 3, 2 / 3, 1, 1])
    assert np.bincount(units.codes, units.weights(2)).max() <= 2.0 * (1.0 + 1e-15)


def test_a_random_row_is_any_of_its_unit():
    units = units_of(["b", "a", "b", "a", "b"])
    np.testing.assert_array_equal(units.draw_rows(np.array([[0.0, 0.99]]))[0], [1, 4])
    np.testing.assert_array_equal(units.draw_rows(np.array([[0.5, 0.4]]))[0], [3, 2])
    np.testing.assert_array_equal(units.draw_rows(np.nextafter([[1.0, 1.0]], 0.0))[0], [3, 4])


def test_rows_of_a_unit_are_drawn_without_replacement():
    """Each pair of four rows alike: P(fails) < 1e-7, by normal tails at 6."""
    units = units_of(np.repeat(np.arange(6001), [4] * 6000 + [1]))
    rows, own, shares = units.draw(RandomStream.from_seed(0), 2, True)
    assert own.counts.tolist() == [2] * 6001 and shares[-2:].tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(units.codes[rows], own.codes)
    np.testing.assert_array_equal(np.bincount(own.codes, shares), 1.0)
    pairs = np.sort(rows[:-2].reshape(-1, 2) % 4, axis=1)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    found = np.bincount(pairs[:, 0] * 4 + pairs[:, 1])[[1, 2, 3, 6, 7, 11]]
    assert np.abs(found - 1000).max() < 6 * np.sqrt(1000 * 5 / 6)
    few, own, shares = units.draw(RandomStream.from_seed(0), 3, False)
    assert own.counts.tolist() == [3] * 6000 + [1] and np.unique(few).size == few.size
    np.testing.assert_allclose(np.bincount(own.codes, shares), 1.0)


def test_lots_hold_whole_units_at_the_rate_of_units():
    """Lots of units are Poisson: P(fails) < 1e-7 for each of three sums, by normal tails at 6."""
    rng = np.random.default_rng(0)
    ids = rng.choice(50, 400, p=np.arange(1, 51) / 1275)
    ids[:50] = np.arange(50)
    units = units_of(rng.permutation(ids))
    stream, rate, steps = RandomStream.from_seed(1), 0.1, 4000
    indices, offsets = LotsOfUnits(PoissonSampler(50, rate, stream), units).draw(steps)
    assert offsets[0] == 0 and offsets[-1] == indices.size and offsets.size == steps + 1
    step = np.repeat(np.arange(steps), np.diff(offsets))
    assert np.unique(step * units.codes.size + indices).size == indices.size
    found = np.bincount(step * 50 + units.codes[indices], minlength=steps * 50).reshape(steps, 50)
    chosen = found > 0
    np.testing.assert_array_equal(found, chosen * units.counts)
    deviations = (chosen.mean(axis=0) - rate) / np.sqrt(rate * (1 - rate) / steps)
    assert np.abs(deviations).max() < 6.0
    sizes = chosen.sum(axis=1)  # binomial: independent units
    assert abs(sizes.var() / (50 * rate * (1 - rate)) - 1.0) < 6.0 * np.sqrt(2.1 / steps)
    products = np.corrcoef(chosen.T)[np.triu_indices(50, 1)]
    assert np.abs(products).max() < 6.5 / np.sqrt(steps)
