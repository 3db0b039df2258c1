"""Reference levels of categories: features, norms, missing and unknown cells, files."""

import numpy as np
import pytest
from drawn_schemas import schemas
from hypothesis import given, settings

from skdp.exceptions import SchemaError
from skdp.preprocessing import BooleanColumn, CategoricalColumn, Interaction, TableSchema

LEVELS = ["A", "B", "C"]


def encode(cells, **fields):
    column = CategoricalColumn("ward", LEVELS, **{"drop": "first", **fields})
    return column.encode(np.array(cells, dtype=object)), column.feature_names()


@pytest.mark.parametrize(("drop", "kept"), [("first", "BC"), ("A", "BC"), ("B", "AC"), ("C", "AB")])
@pytest.mark.parametrize("encoding", ["centred", "one-hot"])
def test_a_dropped_level_has_no_feature(drop, kept, encoding):
    found, names = encode(LEVELS, drop=drop, encoding=encoding, weight=2.0)
    assert names == [f"ward={level}" for level in kept]
    wanted = [[2.0 * (level == other) for other in kept] for level in LEVELS]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("cell", [None, "elsewhere"])
def test_a_cell_without_a_value_is_not_the_reference(cell):
    ignored, _ = encode([cell, "A"], missing="ignore")
    # It counts as the mean of the levels, as in a centred block, and not as the first.
    np.testing.assert_allclose(ignored, [[1 / 3, 1 / 3], [0.0, 0.0]])
    mean, _ = encode(LEVELS)
    np.testing.assert_allclose(ignored[0], mean.mean(axis=0))
    flagged, names = encode([cell, "A"], missing="indicator", unknown="indicator")
    assert names[2:] == ["ward missing", "ward unknown"]
    assert flagged[:, :2].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert flagged[0, 2:].tolist() == [float(cell is None), float(cell is not None)]
    filled, _ = encode([None, "A", "B"], missing="fill", fill_value="B")
    assert filled.tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
    with pytest.raises(SchemaError, match="refuse"):
        encode([cell], missing="refuse", unknown="refuse")


def test_levels_are_given_as_they_are_listed():
    assert CategoricalColumn("x", [1, 2], drop=2.0).reference == 2
    assert CategoricalColumn("x", ["last", "first"], drop="first").reference == "first"
    draft = CategoricalColumn("x", None, drop="first")
    assert draft.left_open() == ("categories",) and draft.feature_names() == []
    for wrong in ("D", True, ["A"], float("nan"), None.__class__):
        with pytest.raises(SchemaError, match="drop"):
            CategoricalColumn("ward", LEVELS, drop=wrong)


def test_schemas_say_which_level_is_the_reference():
    schema = TableSchema([CategoricalColumn("ward", LEVELS, drop="B")])
    assert "one-hot without" in schema._repr_html_() and "drop='B'" in repr(schema["ward"])
    assert TableSchema.from_json(schema.to_json()) == schema
    assert schema.data_norm == 1.0
    both = Interaction((schema["ward"], BooleanColumn("smoker")))
    assert both.feature_names() == ["ward=A * smoker=True", "ward=C * smoker=True"]


@settings(max_examples=30, deadline=None)
@given(schema=schemas())
def test_what_features_mean_follows_from_every_schema(schema):
    """Made-up cells are never refused, and differ along orthonormal directions alone."""
    names = schema.features
    if not names:
        return
    meaning = schema.preprocessor(positions=True)._meaning_after(None)
    everything = list(range(meaning.n_features))
    assert set(names) <= set(meaning.places)
    for intercept in (True, False):
        basis = meaning.basis(everything, intercept).toarray()
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)
        effects, at, _ = meaning.effects({}, everything)
        for _, effect in effects:
            if effect.step != "product of features":
                left = effect.weights - basis @ (basis.T @ effect.weights)
                assert np.linalg.norm(left) <= 1e-6 * (1e-9 + np.linalg.norm(effect.weights))
        assert at.shape == (meaning.n_features,)
