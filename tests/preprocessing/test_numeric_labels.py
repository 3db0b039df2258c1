"""Labels that are numbers: bounds reach the regressor, cells are read one by one, misfits fail."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from skdp import OperaLogisticRegression, PrivateRidge
from skdp.budget import BudgetAccountant
from skdp.exceptions import SchemaError
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import LabelColumn, NumericColumn, NumericLabel, TableSchema

STAY = NumericLabel("stay", 0, 30, unit="days", source="tariff")
SCHEMA = TableSchema([NumericColumn("age", 18, 100)], label=STAY)
FRAME = pd.DataFrame({"age": [20.0, 50, 80, 99] * 500, "stay": [1, 2, 70, -3] * 500})


def test_bounds_reach_the_regressor_and_targets_are_floats_within_them():
    X, y = SCHEMA.split(FRAME)
    assert y.dtype == np.float64 and y[:4].tolist() == [1.0, 2.0, 30.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SCHEMA.pipeline(PrivateRidge(epsilon=1.0), encoding="auto").fit(X, y)
    assert model[-1].target_bounds == (0.0, 30.0) and model[-1].n_features_in_ == 16
    narrower = SCHEMA.pipeline(PrivateRidge(target_bounds=(0, 10)))
    assert narrower[-1].target_bounds == (0, 10)  # what is given stays
    search = SCHEMA.pipeline(PrivateGridSearchCV(PrivateRidge(), {"alpha": [0.0, 1.0]}))
    assert search[-1].estimator.target_bounds == (0.0, 30.0)


class Plain(RegressorMixin, BaseEstimator):
    """A regressor of someone else's, which takes no bounds."""


@pytest.mark.parametrize(
    ("label", "estimator", "wanted"),
    [
        (STAY, OperaLogisticRegression(), "regressor"),
        (STAY, PrivateGridSearchCV(OperaLogisticRegression(), {}), "regressor"),
        (LabelColumn("ill", [0, 1]), PrivateRidge(), "classifier"),
        (LabelColumn("ill", [0, 1]), Plain(), "classifier"),
        (LabelColumn("ill"), PrivateRidge(), "classifier"),
    ],
)
def test_a_label_of_the_other_kind_is_refused_before_any_charge(label, estimator, wanted):
    with BudgetAccountant(epsilon=1.0, delta=1e-5) as budget:
        with pytest.raises(SchemaError, match=f"Use a {wanted}"):
            SCHEMA.replace(label=label).pipeline(estimator)
    assert not budget.entries()


def test_written_and_read_again_it_is_the_same_and_says_its_bounds():
    for again in (TableSchema.from_json(SCHEMA.to_json()), TableSchema.from_yaml(SCHEMA.to_yaml())):
        assert again == SCHEMA
    assert SCHEMA.to_dict()["label"]["kind"] == "numeric"
    assert "label 'stay' in [0, 30]" in repr(SCHEMA)
    assert "<td>[0, 30]</td><td>days</td>" in SCHEMA._repr_html_()
    for kind in ("ordinal", [], {}):
        with pytest.raises(ValueError, match="label: kind"):
            TableSchema.from_dict({**SCHEMA.to_dict(), "label": {"name": "y", "kind": kind}})


def test_drafts_leave_bounds_open_and_tuples_are_bounds():
    draft = TableSchema.draft({"age": "numeric", "stay": "numeric"}, label="stay")
    assert draft.left_open()["stay"] == ("lower", "upper")
    assert "label 'stay' with lower and upper left open, one unit" in repr(draft)
    classes = TableSchema.draft({"age": "numeric", "ill": "boolean"}, label="ill")
    assert "label 'ill' with classes left open, one unit" in repr(classes)
    assert "label 'stay' with upper left open" in repr(draft.replace(label=NumericLabel("stay", 0)))
    assert TableSchema.from_dict(draft.to_dict()) == draft
    with pytest.raises(SchemaError, match="lower and upper"):
        SCHEMA.replace(label=NumericLabel("stay")).pipeline(PrivateRidge())
    bounds = {"age": (18, 100), "stay": (0, 30), "ill": [0, 1]}
    assert TableSchema.from_bounds(bounds, label="stay").label == NumericLabel("stay", 0, 30)
    assert TableSchema.from_bounds(bounds, label="ill").label == LabelColumn("ill", [0, 1])


@pytest.mark.parametrize("cell", [None, "much", np.nan, b"3"])
def test_no_cell_is_quoted_and_none_but_a_missing_one_decides(cell):
    with pytest.raises(SchemaError, match="missing or not a number") as caught:
        STAY.encode(np.array([1.0, cell], dtype=object))
    assert "much" not in str(caught.value)
    far = STAY.encode(np.array([np.inf, -np.inf, 10**400, "7.5", True], dtype=object))
    assert far.tolist() == [30.0, 0.0, 30.0, 7.5, 1.0]
    with pytest.raises(SchemaError, match="its type is not"):
        SCHEMA.split(FRAME.assign(stay=np.datetime64("2020-01-01", "ns")))


def test_texts_of_a_file_become_numbers(tmp_path):
    FRAME.head(3).to_csv(tmp_path / "table.csv", index=False)
    _, y = SCHEMA.split(SCHEMA.read_csv(tmp_path / "table.csv"))
    assert y.tolist() == [1.0, 2.0, 30.0]
