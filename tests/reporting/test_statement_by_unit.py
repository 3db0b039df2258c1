"""Statements of fits by unit, and of pipelines and ledgers that have fits of both kinds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline

from skdp import OperaLogisticRegression
from skdp.accounting import GaussianEvent, group_epsilon
from skdp.budget import BudgetAccountant
from skdp.metrics import PrivateCalibrator, PrivateEvaluation
from skdp.preprocessing import (
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
)
from skdp.reporting import privacy_statement
from skdp.reporting.profile import joint_accountant

pytestmark = pytest.mark.filterwarnings("ignore:delta=.* is not below 1/n")
PATIENT = PrivacyUnit("patient", max_rows=3)


def pipeline(*parts_by_unit, budget=None):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(100), 3)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    y = (X[:, 0] > 0).astype(int)
    model = make_pipeline(
        DPStandardScaler(0.1, accountant=budget),
        OperaLogisticRegression(0.5, data_norm=2.0, classes=[0, 1], accountant=budget),
    )
    return model.fit(X, y, **{f"{model.steps[part][0]}__groups": ids for part in parts_by_unit})


def test_a_pipeline_by_unit_protects_patients_without_group_privacy():
    plain, by_unit = (
        privacy_statement(pipeline(*parts), unit=PATIENT).to_dict() for parts in ((), (0, 1))
    )
    assert by_unit["holds_for_the_whole"] and by_unit["guarantee"]["unit"] == "patient"
    # At the price of rows, which count three times there.
    assert by_unit["guarantee"]["epsilon"] == pytest.approx(plain["guarantee"]["epsilon"])
    assert plain["guarantee"]["of_the_unit"]["epsilon"] > 2.0 * by_unit["guarantee"]["epsilon"]
    assert "of_the_unit" not in by_unit["guarantee"]
    assert "number of rows, the columns" not in str(by_unit)


@pytest.mark.parametrize("part", [0, 1])
def test_where_one_part_took_rows_for_records_it_counts_as_a_group(part):
    model = pipeline(part)
    found = privacy_statement(model, unit=PATIENT)
    guarantee = found.to_dict()["guarantee"]
    by_unit, by_row = model[part].privacy_spent_, model[1 - part].privacy_spent_
    accountant = joint_accountant([by_row])
    assert guarantee["epsilon"] == pytest.approx(
        by_unit.epsilon + float(group_epsilon(accountant, by_row.delta, 3))
    )
    assert guarantee["delta"] == pytest.approx(2e-6) and guarantee["rows_per_unit"] == 3
    assert found.to_dict()["holds_for_the_whole"]
    text = " ".join(str(found).split())
    assert "one patient with up to 3 rows" in text and "for all rows of an id" in text
    assert "the number of rows is public too" in text
    assert privacy_statement(model, rows_per_unit=3).to_dict()["guarantee"]["unit"] != "row"


@pytest.mark.parametrize("unit", ["patient", PrivacyUnit("patient", column="id")])
def test_without_a_bound_on_rows_there_is_no_figure_then(unit):
    """Not even if a schema leaves the bound at 1, which says nothing of rows beside ids."""
    found = privacy_statement(pipeline(0), unit=unit)
    assert found.to_dict()["guarantee"] is None and not found.to_dict()["holds_for_the_whole"]
    assert "no common guarantee" in str(found) and "rows_per_unit=" in str(found)


def test_a_ledger_knows_whom_each_charge_protects():
    with BudgetAccountant(10.0, 1e-3) as budget:
        pipeline(0, 1, budget=budget)
        record = privacy_statement(budget, unit="patient").to_dict()
        assert record["guarantee"]["rows_per_unit"] is None and budget.total.unit == "group"
        assert record["guarantee"]["unit"] == "patient" and record["holds_for_the_whole"]
        pipeline(1, budget=budget)
        assert [entry["unit"] for entry in budget.entries()] == ["group"] * 2 + ["row", "group"]
        mixed = privacy_statement(budget, unit=PATIENT)
        assert mixed.to_dict()["guarantee"] is None and "no common guarantee" in str(mixed)
        assert budget.total.unit == "mixed"


def test_records_are_rows_groups_or_mixed_and_nothing_else():
    budget = BudgetAccountant(2.0, 1e-3)
    with pytest.raises(ValueError, match="unit must be one of"):
        budget.reserve(GaussianEvent(9.0), unit="patient")
    assert not budget.entries()
    spent = OperaLogisticRegression(0.5).privacy_plan(100, 2)
    with pytest.raises(ValueError, match="unit must be one of"):
        replace(spent, unit="patient")
    budget.reserve(replace(spent, unit="mixed"))  # another ledger's total
    assert budget.total.unit == "mixed"
    assert privacy_statement(budget).to_dict()["guarantee"] is None


def test_a_plan_by_units_has_the_unit_of_what_it_paid_for():
    rng = np.random.default_rng(0)
    X, ids = rng.uniform(-0.5, 0.5, (60, 2)), np.arange(60) // 2
    with BudgetAccountant(3.0, 1e-3) as budget:
        model = OperaLogisticRegression(0.5, 1e-5, classes=[0, 1])
        model.fit(X, (X[:, 0] > 0).astype(int), groups=ids)
        private = PrivateCalibrator(FrozenEstimator(model), 0.5, 1e-5)
        planned = private.privacy_plan(30, groups=True)
        private.fit(X, (X[:, 0] > 0).astype(int), groups=ids)
    assert planned == private.privacy_spent_ and planned.unit == "group"
    assert budget.total.unit == "group"
    assert privacy_statement(private, unit="patient").to_dict()["holds_for_the_whole"]


def test_a_model_that_was_calibrated_counts_inside_of_wrappers_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = OperaLogisticRegression(0.5, 1e-5, classes=[0, 1]).fit(X, y)
    calibrator = PrivateCalibrator(FrozenEstimator(model), 0.5, 1e-5)
    epsilons = [
        privacy_statement(each.fit(X, y)).to_dict()["guarantee"]["epsilon"]
        for each in (calibrator, VotingClassifier([("calibrated", calibrator)]))
    ]
    assert epsilons[0] == pytest.approx(epsilons[1]) and epsilons[0] > 0.6


@pytest.mark.parametrize(
    ("folds", "leaks"),
    [
        (KFold(3), True),
        (GroupKFold(3), True),
        (GroupKFold(3, shuffle=True, random_state=0), True),
        (GroupKFold(3, shuffle=True), False),
    ],
)
def test_folds_that_rows_decide_leak_where_units_are_protected(folds, leaks):
    rng = np.random.default_rng(0)
    X, ids = rng.uniform(-0.5, 0.5, (60, 2)), np.arange(60) // 2
    model = OperaLogisticRegression(0.5, 1e-5, classes=[0, 1])
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(groups=True)
        found = GridSearchCV(model, {"alpha": [0.1]}, cv=folds)
        found.fit(X, (X[:, 0] > 0).astype(int), groups=ids)
    parts = privacy_statement(found).to_dict()["parts"]
    named = [part for part in parts if "balanced by the private numbers" in str(part)]
    assert len(named) == leaks


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.uniform(18.0, 100.0, 900), "died": rng.integers(0, 2, 900)})


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_statement_of_a_budget_keeps_the_unit_of_a_schema(frame, relation, rows, tmp_path):
    unit = PrivacyUnit("patient", max_rows=rows)
    schema = TableSchema(
        [NumericColumn("age", 18, 100)], label=LabelColumn("died", [0, 1]), unit=unit
    )
    path = tmp_path / "study.sqlite"
    with BudgetAccountant(3.0, 1e-5, adjacency=relation, ledger=path) as budget:
        model = schema.pipeline(OperaLogisticRegression(1.0, 1e-6))
        X, y = schema.split(frame)
        model.fit(X, y)
        PrivateEvaluation(1.0, 1e-6).evaluate(model, X, y)
        for subject in (budget, BudgetAccountant.open(path), model):
            guarantee = privacy_statement(subject).to_dict()["guarantee"]
            assert guarantee["unit"] == "patient" and guarantee["rows_per_unit"] == rows
            assert ("of_the_unit" in guarantee) == (rows > 1)
            assert privacy_statement(subject, unit=unit).to_dict()["guarantee"] == guarantee
        # Of a charge that names no unit it is not known whom it protects.
        OperaLogisticRegression(0.1, 1e-7).fit(X, y)
    assert privacy_statement(budget).to_dict()["guarantee"]["unit"] == "row"
    assert privacy_statement(budget, unit="visit").to_dict()["guarantee"]["unit"] == "visit"
