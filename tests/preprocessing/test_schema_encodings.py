"""Waves, spikes and interactions: bounded rows, names, files; schemas from bounds alone."""

import math
from itertools import pairwise

import numpy as np
import pytest

from skdp import OperaLogisticRegression
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    Interaction,
    NumericColumn,
    SchemaEncoder,
    TableSchema,
)

pandas = pytest.importorskip("pandas", reason="needs pandas")

TABLE = TableSchema(
    [
        NumericColumn("age", 18, 100, missing="indicator"),
        NumericColumn("pay", 0, 10_000, spikes=[1, 500, 1000], cuts=[100, 900], missing="ignore"),
        NumericColumn("grade", cuts=[2, 3]),
        NumericColumn("score", -4, 4, encoding="scaled"),
        CategoricalColumn("ward", ["A", "B", "C"], missing="ignore"),
        BooleanColumn("smoker"),
    ],
    interactions=[("age", "ward"), ["smoker", "pay"]],
)
AUTO = TABLE.with_encoding("auto")


def table(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(0, 120, n)),
            "pay": rng.uniform(-10, 20_000, n),
            "grade": rng.integers(1, 5, n),
            "score": rng.normal(0, 4, n),
            "ward": rng.choice(["A", "B", "C", "Z"], n),
            "smoker": rng.integers(0, 2, n),
        }
    )


# ------------------------------------------------------------------------------------------- waves
def test_waves_are_nearly_the_kernel_of_steps():
    """Without end the kernel would be 1 - 2|u - v|; the error is at most what is left out."""
    column = NumericColumn("x", 0, 1, scale="linear", encoding="waves")
    u = np.linspace(0, 1, 201)
    block = column.encode(u)
    np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1.0)
    kept = 8 / math.pi**2 * np.sum(1.0 / np.arange(1, 16, 2) ** 2)
    error = np.abs(block @ block.T - (1 - 2 * np.abs(u[:, None] - u)))
    assert 0.02 < error.max() <= 2 * (1 - kept) < 0.06
    assert block.shape[1] == len(column.feature_names()) == 16
    assert column.feature_names()[0] == "x cos1" and column.feature_names()[-1] == "x sin15"


def test_scales_of_waves():
    """The root by itself, of debts with the sign; as declared otherwise."""
    first = {"cos1": 0, "sin1": 8}
    for column, low, middle, high in (
        (NumericColumn("x", 0, 100, encoding="waves"), 0, 25, 100),
        (NumericColumn("x", -100, 100, encoding="waves"), -100, 0, 100),
        (NumericColumn("x", -100, 300, scale="linear", encoding="waves"), -100, 100, 300),
        (NumericColumn("x", 1, 100, scale="log", encoding="waves"), 1, 10, 100),
    ):
        block = column.encode(np.array([low - 1.0, low, middle, high, math.inf]))
        cosines = block[:, first["cos1"]] / block[0, 0]
        np.testing.assert_allclose(cosines, [1, 1, 0, -1, -1], atol=1e-12)
        np.testing.assert_allclose(block[:, 8] / block[0, 0], [0, 0, 1, 0, 0], atol=1e-12)


def test_a_number_of_cuts_is_spaced_on_the_scale():
    assert NumericColumn("x", 0, 16, cuts=3).cuts == (1, 4, 9)
    assert NumericColumn("x", 0, 16, cuts=np.int8(3), scale="linear").cuts == (4, 8, 12)
    np.testing.assert_allclose(NumericColumn("x", 1, 100, cuts=1, scale="log").cuts, [10])
    assert NumericColumn("x", 0, 1, cuts="auto") == NumericColumn("x", 0, 1, cuts=None)
    assert NumericColumn("x", 0, 1, cuts="auto").parts == ("scaled",)


def test_spikes_by_hand():
    column = NumericColumn("x", 0, 4, spikes=[1, 2])
    assert column.parts == ("waves", "spikes")  # nothing else is declared
    assert column.feature_names()[16:] == ["x amount<1", "x amount in [1, 2)", "x amount>=2"]
    block = column.encode(np.array([1.0, 9.0]))
    waves = NumericColumn("x", 0, 4, encoding="waves").encode(np.array([1.0, 9.0]))
    np.testing.assert_allclose(block[:, :16], waves / math.sqrt(2))
    third = 1 / math.sqrt(12)
    np.testing.assert_allclose(block[0, 16:], [-third, 2 * third, -third])


def test_waves_need_bounds():
    column = NumericColumn("x", cuts=[1], encoding="waves")
    assert column.left_open() == ("lower", "upper")
    with pytest.raises(ValueError, match="column 'x': lower and upper: not given"):
        column.encode(np.array([1.0]))


# ------------------------------------------------------------------------------- whole schemas
def test_the_automatic_encoding_keeps_what_is_declared():
    assert [column.encoding for column in AUTO.columns[:4]] == ["waves", "waves", "auto", "scaled"]
    assert AUTO.data_norm == TABLE.data_norm and AUTO.with_encoding() == AUTO
    assert TABLE.with_encoding("declared") == TABLE and TABLE["pay"].parts == ("steps",)
    model = TABLE.pipeline(OperaLogisticRegression(random_state=0), encoding="auto")
    np.testing.assert_array_equal(
        model[0].fit_transform(table()), AUTO.preprocessor().fit_transform(table())
    )
    with pytest.raises(ValueError, match="encoding must be 'auto' or 'declared', got 'steps'"):
        TABLE.pipeline(OperaLogisticRegression(), encoding="steps")


def test_interactions_by_hand():
    part = Interaction((AUTO["age"], AUTO["ward"]))
    cells = np.array([30.0, math.nan]), np.array(["B", "A"], dtype=object)
    one = NumericColumn("age", 18, 100, cuts=7, encoding="cells", missing="indicator")
    ward = AUTO["ward"].encode(cells[1])
    block = part.encode(*cells)
    np.testing.assert_allclose(block[0], np.kron(one.encode(cells[0])[0], ward[0]))
    np.testing.assert_allclose(block[1], np.kron([0] * 8 + [1], ward[1]))
    assert part.feature_names()[-1] == "age missing * ward=C" and len(block[0]) == 27
    features = AUTO.preprocessor().set_output(transform="pandas").fit_transform(table())
    pair = features[part.feature_names()].to_numpy()
    frame = table()
    np.testing.assert_array_equal(
        pair, part.encode(frame["age"].to_numpy(), frame["ward"].to_numpy(dtype=object))
    )
    assert "smoker=True * pay in [100, 900)" in features  # at the declared cuts
    array = frame.astype(object).to_numpy()
    by_position = AUTO.preprocessor(positions=True).fit_transform(array)
    np.testing.assert_array_equal(by_position, features.to_numpy())


def test_interactions_count_in_the_norm():
    assert TABLE.norm_bound == pytest.approx(math.sqrt(6 + 2))
    plain = TABLE.replace(interactions=())
    model = plain.pipeline(OperaLogisticRegression(), interactions=[("age", "pay")])
    assert model[-1].data_norm == pytest.approx(math.sqrt(7))
    assert plain.with_weights(age=3.0).replace(interactions=[("age", "pay")]).norm_bound == (
        pytest.approx(math.sqrt(9 + 5 + 1))
    )
    encoder = SchemaEncoder((AUTO["age"], AUTO["ward"]), product=True).fit(np.zeros((1, 2), object))
    assert encoder.data_norm_ == 1.0
    smaller = TABLE.select(["age", "ward", "pay"])
    assert smaller.interactions == (("age", "ward"),)


def test_the_norm_is_reached():
    row = pandas.DataFrame([(50, 700, 2, 9, "B", 1)], columns=TABLE.features)
    for schema in (TABLE.replace(NumericColumn("age", 18, 50)), AUTO):
        features = schema.preprocessor().fit_transform(row)
        np.testing.assert_allclose(np.linalg.norm(features), schema.norm_bound)


# ------------------------------------------------------------------------------------- from bounds
def test_schemas_from_bounds():
    schema = TableSchema.from_bounds(
        {"age": (18, 100), "ward": ["A", "B", "C"], "smoker": ["no", "yes"], "ill": [0, 1]},
        label="ill",
        name="clinic",
    )
    assert [column.kind for column in schema.columns] == ["numeric", "categorical", "boolean"]
    assert schema.left_open() == {} and schema.label.classes == (0, 1) and schema.name == "clinic"
    assert schema["age"].parts == ("waves",) and schema["age"].missing == "indicator"
    assert TableSchema.from_bounds({"a": (0, 1)}, missing="refuse")["a"].missing == "refuse"


def test_the_order_of_cells_is_that_of_numbers():
    cuts = NumericColumn("x", -50, 900, cuts=20).cuts
    assert len(cuts) == 20 and all(one < other for one, other in pairwise(cuts))


def test_cells_of_a_line_are_spaced_like_the_line():
    part = Interaction((NumericColumn("age", 0, 80), BooleanColumn("smoker")))
    assert [name for name in part.feature_names() if ">=70" in name]
