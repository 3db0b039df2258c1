"""The statement of estimators, pipelines and searches: verdicts, costs and forms."""

import dataclasses
import gc
import json
import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from skdp import DPSGDClassifier, GrpuaLogisticRegression, OperaLogisticRegression
from skdp.accounting import (
    ComposedEvent,
    GaussianEvent,
    OneOfEvent,
    PLDAccountant,
    UniformSampledEvent,
)
from skdp.accounting.events import samples
from skdp.budget import BudgetAccountant
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import BoundedScaler, DPStandardScaler, PrivacyUnit
from skdp.reporting import privacy_statement
from skdp.reporting.statement import _SAMPLERS
from skdp.reporting.steps import classify_step


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    X = generator.uniform(-0.5, 0.5, (90, 3))
    return X, (X[:, 0] > 0).astype(int)


def kinds(statement):
    return [part["kind"] for part in statement.to_dict()["parts"]]


def test_a_sound_pipeline_has_a_guarantee(table):
    model = make_pipeline(BoundedScaler(), OperaLogisticRegression(epsilon=0.7)).fit(*table)
    statement = privacy_statement(model)
    record = statement.to_dict()
    assert record["holds_for_the_whole"] and kinds(statement) == ["data-independent", "private"]
    spent = model[-1].privacy_spent_.epsilon
    assert record["guarantee"]["epsilon"] == pytest.approx(spent, rel=1e-12)
    assert "Guarantee: (0.7, 1e-06)-differential privacy" in statement


def test_the_curve_is_that_of_the_event(table):
    statement = privacy_statement(OperaLogisticRegression().fit(*table))
    for point in statement.to_dict()["guarantee"]["curve"]:
        gaussian = PLDAccountant("replace-one").compose(GaussianEvent(4.224678889327))
        assert point["epsilon"] == pytest.approx(gaussian.epsilon(point["delta"]), rel=1e-6)


def test_leaks_are_named_with_their_remedy_and_void_the_guarantee(table):
    statement = privacy_statement(
        make_pipeline(StandardScaler(), OperaLogisticRegression()).fit(*table)
    )
    assert kinds(statement) == ["leaking", "private"]
    assert not statement.to_dict()["holds_for_the_whole"]
    assert "NO guarantee for the whole" in statement and "DPStandardScaler" in statement
    assert "Guarantee: (" not in statement


def test_columns_and_unions_are_walked(table):
    columns = ColumnTransformer(
        [
            ("scaled", BoundedScaler(), [0]),
            ("dropped", "drop", [1]),
            ("pca", make_pipeline(BoundedScaler(), PCA(1)), [1, 2]),
        ],
        remainder="passthrough",
        sparse_threshold=0,
    )
    union = FeatureUnion([("columns", columns), ("same", FunctionTransformer())])
    statement = privacy_statement(make_pipeline(union, OperaLogisticRegression()).fit(*table))
    assert kinds(statement) == [
        *("data-independent", "data-independent", "data-independent", "leaking"),
        *("data-independent", "private"),
    ]


def test_an_ordinary_search_leaks_by_its_scores_and_its_folds(table):
    stratified = GridSearchCV(OperaLogisticRegression(), {"alpha": [0.1, 1.0]}, cv=3).fit(*table)
    statement = privacy_statement(stratified)
    for words in ("cv_results_", "stratified", "PrivateGridSearchCV", "6 fits", "no ledger"):
        assert words in statement
    plain = GridSearchCV(OperaLogisticRegression(), {"alpha": [0.1]}, cv=KFold(3)).fit(*table)
    assert "stratified" not in privacy_statement(plain)
    assert not privacy_statement(plain).to_dict()["holds_for_the_whole"]


@pytest.mark.parametrize("wrap", [CalibratedClassifierCV, BaggingClassifier])
def test_fits_inside_a_meta_estimator_are_found_and_composed(table, wrap):
    size = {"cv": 2} if wrap is CalibratedClassifierCV else {"n_estimators": 2}
    statement = privacy_statement(wrap(OperaLogisticRegression(), **size).fit(*table))
    record = statement.to_dict()
    assert kinds(statement) == ["leaking", "private", "private"]
    assert record["guarantee"]["delta"] == 2e-6
    twice = PLDAccountant("replace-one").compose(GaussianEvent(4.224678889327), 2)
    assert record["guarantee"]["epsilon"] == pytest.approx(twice.epsilon(2e-6), rel=1e-6)


def test_the_unit_with_several_rows(table):
    model = OperaLogisticRegression().fit(*table)
    statement = privacy_statement(model, unit="patient", rows_per_unit=3)
    found = statement.to_dict()["guarantee"]["of_the_unit"]
    # Three times the sensitivity: a Gaussian release with a third of the multiplier.
    exact = PLDAccountant("replace-one").compose(GaussianEvent(4.224678889327 / 3)).epsilon(1e-6)
    assert exact * (1 - 1e-6) <= found["epsilon"] <= 1.1 * exact and found["delta"] == 1e-6
    assert "one patient with up to 3 rows" in statement
    assert privacy_statement(model, unit=PrivacyUnit("patient", max_rows=3)) == statement
    with pytest.raises(ValueError, match="rows_per_unit"):
        privacy_statement(model, rows_per_unit=0)


def test_sampling_is_named(table):
    one = privacy_statement(DPSGDClassifier(batch_size=20, max_iter=3).fit(*table))
    assert "Poisson batches" in one
    assert "Sampling: none" in privacy_statement(OperaLogisticRegression().fit(*table))


@pytest.mark.slow
def test_sampling_is_named_wherever_it_is_inside(table):
    model = GrpuaLogisticRegression(
        batch_size=20, max_iter=3, calibration="hidden-state", average=False
    ).fit(*table)
    assert "Sampling: independent Poisson batches" in privacy_statement(model)
    step = UniformSampledEvent(20, 90, GaussianEvent(5.0))
    either = OneOfEvent((GaussianEvent(5.0), ComposedEvent((step, GaussianEvent(9.0)))))
    model.privacy_spent_ = dataclasses.replace(model.privacy_spent_, event=either, accountant="pld")
    assert "Sampling: fixed-size batches" in privacy_statement(model)


def test_every_sampler_has_words():
    kinds = {
        name
        for name, kind in vars(samples).items()
        if getattr(kind, "__module__", "") == samples.__name__
    }
    assert kinds == set(_SAMPLERS)


def test_forms(table):
    model = OperaLogisticRegression(classes=["<a>", "b"])
    statement = privacy_statement(model.fit(table[0], np.where(table[1], "<a>", "b")))
    assert json.loads(statement.to_json()) == statement.to_dict()
    assert pickle.loads(pickle.dumps(statement)).to_dict() == statement.to_dict()
    page = statement._repr_html_()
    assert page.startswith("<div>") and "OperaLogisticRegression" in page and "<a>" not in page
    assert isinstance(statement, str) and max(map(len, statement.splitlines())) <= 110


def test_seeds_are_named_where_any_part_has_one(table):
    statement = privacy_statement(OperaLogisticRegression(random_state=0).fit(*table))
    assert "does NOT hold" in statement and statement.to_dict()["seeded"]


def test_what_has_no_statement(table):
    with pytest.raises(TypeError, match=r"no privacy_spent_.*privacy_plan"):
        privacy_statement(OperaLogisticRegression())
    with pytest.raises(TypeError, match="no privacy_spent_"):
        privacy_statement(make_pipeline(BoundedScaler(), LogisticRegression()))
    with pytest.raises(TypeError, match="no privacy_spent_"):
        privacy_statement(7)
    nothing = privacy_statement(make_pipeline(StandardScaler(), LogisticRegression()).fit(*table))
    assert "no part of it was fitted privately" in nothing


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ("passthrough", "data-independent"),
        (None, "data-independent"),
        (OneHotEncoder(), "leaking"),
        (OneHotEncoder(categories=[[1, 2]]), "data-independent"),
        (OneHotEncoder(categories=[[1, 2]], min_frequency=3), "leaking"),
        (SimpleImputer(), "leaking"),
        (SimpleImputer(strategy="constant", fill_value=0), "leaking"),
        (
            SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
            "data-independent",
        ),
        (RBFSampler(gamma=1.0), "data-independent"),
        (RBFSampler(gamma="scale"), "leaking"),
        (GaussianRandomProjection(), "leaking"),
        (GaussianRandomProjection(2), "data-independent"),
        (HashingVectorizer(), "data-independent"),
        (HashingVectorizer(analyzer=list), "taken at your word"),
        (CountVectorizer(vocabulary=["a"]), "data-independent"),
        (CountVectorizer(), "leaking"),
        (TfidfVectorizer(vocabulary=["a"], use_idf=False), "data-independent"),
        (TfidfVectorizer(vocabulary=["a"], use_idf=False, tokenizer=list), "taken at your word"),
        (TfidfVectorizer(vocabulary=["a"]), "leaking"),
        (TfidfVectorizer(use_idf=False), "leaking"),
        (TfidfTransformer(use_idf=False), "data-independent"),
        (TfidfTransformer(), "leaking"),
        (OperaLogisticRegression(), "private"),
        (object(), "leaking"),
    ],
)
def test_verdicts(step, kind):
    verdict = classify_step(step)
    assert verdict.kind == kind and verdict.reason
    assert bool(verdict.remedy) == (kind == "leaking")
    assert kind != "taken at your word" or verdict.assumption.startswith("assumed, not checked: ")


def test_a_class_of_the_same_name_is_not_trusted():
    class FunctionTransformer:
        pass

    assert classify_step(FunctionTransformer()).kind == "leaking"


def test_a_ledger_lists_its_charges(table):
    budget = BudgetAccountant(3.0, 1e-5, composition="basic", name="study")
    with budget:
        OperaLogisticRegression(epsilon=0.5).fit(*table)
        DPStandardScaler(epsilon=0.25).fit(table[0])
    statement = privacy_statement(budget, unit="patient")
    record = statement.to_dict()
    assert (record["guarantee"]["epsilon"], record["guarantee"]["delta"]) == budget.spent()
    assert [part["epsilon"] for part in record["parts"]] == pytest.approx([0.5, 0.25], rel=1e-3)
    assert "GaussianEvent(noise_multiplier=" in statement and "basic filter" in statement
    assert "DPStandardScaler.fit" in statement._repr_html_()


def test_fits_that_share_a_ledger_quote_it(table):
    budget = BudgetAccountant(3.0, 1e-5, composition="basic")
    model = OperaLogisticRegression(epsilon=0.5, accountant=budget).fit(*table)
    model.fit(*table)
    statement = privacy_statement(model)
    assert "2 charges on the same budget" in statement
    assert statement.to_dict()["ledger"]["spent"]["epsilon"] == budget.spent()[0]


def test_a_private_search_is_one_private_part(table):
    search = PrivateGridSearchCV(
        OperaLogisticRegression(), {"alpha": [0.1, 1.0]}, epsilon=2.0, delta=1e-5
    )
    statement = privacy_statement(make_pipeline(BoundedScaler(), search).fit(*table))
    assert kinds(statement) == ["data-independent", "private"]
    assert statement.to_dict()["guarantee"]["epsilon"] <= 2.0
    assert "best_params_" in statement


def test_a_statement_does_not_need_the_ledger_that_the_fit_charged(table):
    budget = BudgetAccountant(3.0, 1e-5, name="gone")
    model = OperaLogisticRegression(epsilon=0.5, accountant=budget).fit(*table)
    budget.ledger.unlink()
    statement = privacy_statement(model)
    assert statement.to_dict()["ledger"] == {"name": "gone", "unreadable": "LedgerMissingError"}
    assert "cannot be read (LedgerMissingError)" in statement
    assert statement.to_dict()["guarantee"]["epsilon"] == pytest.approx(0.5)
    assert "LedgerMissingError" in statement._repr_html_()
    pickled = pickle.dumps(model)
    del model, budget
    gc.collect()
    statement = privacy_statement(pickle.loads(pickled))  # which names no ledger
    assert statement.to_dict()["ledger"] is None and "Guarantee: (0.5, 1e-06)" in statement


def test_what_learned_nothing_is_not_said_to_leak(table):
    statement = privacy_statement(BoundedScaler().fit(table[0]))
    assert kinds(statement) == ["data-independent"]
    assert "Nothing was learned from the rows" in statement and "NO guarantee" not in statement
    assert "NO guarantee" in privacy_statement(StandardScaler().fit(table[0]))


@pytest.mark.slow
def test_steps_of_a_search_share_its_record(table):
    search = PrivateGridSearchCV(
        make_pipeline(DPStandardScaler(), OperaLogisticRegression()),
        {"operalogisticregression__alpha": [0.1, 1.0]},
        epsilon=2.0,
        delta=1e-5,
    ).fit(*table)
    model = search.best_estimator_
    assert kinds(privacy_statement(model)) == ["private", "private"]
    assert privacy_statement(model).to_dict()["guarantee"]["epsilon"] <= 2.0
    model[-1].fit(*table)  # one more fit, with a record of its own
    assert privacy_statement(model).to_dict()["guarantee"]["epsilon"] > 2.0
