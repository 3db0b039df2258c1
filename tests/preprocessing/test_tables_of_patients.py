"""A schema's pipeline splits whatever table it is given, and ids reach every private step."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.data import open_parquet
from skdp.exceptions import PrivacyWarning, SchemaError
from skdp.metrics import PrivateEvaluation, PrivateThreshold
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    DPPCA,
    BoundedScaler,
    CategoricalColumn,
    DPQuantileClipper,
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
)

pd = pytest.importorskip("pandas", reason="needs pandas")
polars = pytest.importorskip("polars", reason="needs polars")

N = 600
SCHEMA = TableSchema(
    [NumericColumn("age", 0, 120), CategoricalColumn("ward", ["A", "B", "C"])],
    label=LabelColumn("ill", ["no", "yes"]),
    unit=PrivacyUnit("patient", column="id", max_rows=8),
)
PRIVATE = OperaLogisticRegression(1.0, 1e-6, random_state=0)
BEHIND = clone(PRIVATE).set_params(data_norm=2.0)
pytestmark = pytest.mark.filterwarnings("error:one patient may have:skdp.exceptions.PrivacyWarning")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 120, N)
    return pd.DataFrame(
        {
            "id": [f"p{number}" for number in rng.integers(0, 150, N)],
            "age": age,
            "ward": rng.choice(["A", "B", "C"], N),
            "ill": np.where(age + 20 * rng.normal(size=N) > 60, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def fitted(frame):
    return SCHEMA.pipeline(PRIVATE).fit(frame)


def units(model):
    return {step.privacy_spent_.unit for _, step in model[-1].steps}


def parquet(frame, folder):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    frame.to_parquet(folder / "table.parquet")
    return open_parquet(folder / "table.parquet")


# ------------------------------------------------------------------------------- ways to a fit
def test_every_way_to_give_a_table_gives_one_model(frame, fitted, tmp_path):
    frame.to_csv(tmp_path / "table.csv", index=False)
    X, y, ids = SCHEMA.split(frame, groups=True)
    no_label = frame.drop(columns="ill")
    ways = {
        "polars": (polars.from_pandas(frame),),
        "CSV": (SCHEMA.read_csv(tmp_path / "table.csv"),),
        "Parquet": (parquet(frame, tmp_path),),
        "labels beside the table": (frame, frame["ill"]),
        "labels alone": (no_label, y),
        "of polars": (polars.from_pandas(no_label), y),
        "columns in another order": (frame[["ill", "ward", "id", "age"]],),
    }
    for way, given in ways.items():
        model = SCHEMA.pipeline(PRIVATE).fit(*given)
        np.testing.assert_array_equal(model[-1].coef_, fitted[-1].coef_, err_msg=way)
        assert model[-1].privacy_spent_ == fitted[-1].privacy_spent_, way
        assert model.n_features_in_ == 2
    assert fitted[-1].privacy_spent_.unit == "group"
    model = SCHEMA.pipeline(PRIVATE).fit(X, y, groups=ids)
    np.testing.assert_array_equal(model[-1].coef_, fitted[-1].coef_)
    household = SCHEMA.pipeline(PRIVATE).fit(frame, groups=[text[:-1] for text in ids])[-1]
    assert household.privacy_spent_.unit == "group"
    assert not np.array_equal(household.coef_, fitted[-1].coef_)


def test_arrays_and_other_schemas_are_fitted_as_ever(frame):
    schema = SCHEMA.replace(unit=PrivacyUnit()).select(["age"])
    X, y = np.asarray(frame[["age"]]), frame["ill"]
    rows = schema.pipeline(PRIVATE, positions=True).fit(X, y)
    assert rows[-1].privacy_spent_.unit == "row"
    by_id = schema.pipeline(PRIVATE, positions=True).fit(X, y, groups=frame["id"])
    assert by_id[-1].privacy_spent_.unit == "group"
    for table in (frame[["age"]], frame[["age"]].assign(Ill="no")):
        with pytest.raises(SchemaError, match="column 'ill' is missing"):
            schema.pipeline(PRIVATE).fit(table)
    with pytest.raises(ValueError, match="requires y"):
        schema.pipeline(PRIVATE, positions=True).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match="lazy; collect it first"):
            SCHEMA.pipeline(PRIVATE).fit(polars.from_pandas(frame).lazy())
    refused = pytest.raises(ValueError, match=r"ward|not a column")  # by scikit-learn's version
    with refused, BudgetAccountant(9.0, 0.1) as budget:
        SCHEMA.pipeline(PRIVATE).fit(frame.drop(columns="ward"), frame["ill"])
    assert not budget.entries()
    no_ids = frame.drop(columns="id")
    with pytest.raises(SchemaError, match="unit: its column is not declared or not in"):
        SCHEMA.pipeline(PRIVATE).fit(no_ids)


STEPS = {
    "scaler": DPStandardScaler(0.5, lower=-1.0, upper=1.0),
    "directions": DPPCA(2, epsilon=0.5),
    "quantiles": DPQuantileClipper(epsilon=0.5, row_norm=1.0),
    "nested": make_pipeline(BoundedScaler(-1.0, 1.0), DPStandardScaler(0.5, lower=-1.0, upper=1.0)),
}


@pytest.mark.parametrize("name", STEPS)
def test_all_private_steps_are_given_the_ids(frame, name):
    X, y, ids = SCHEMA.split(frame, groups=True)
    model = SCHEMA.pipeline(make_pipeline(clone(STEPS[name]), BEHIND))
    with BudgetAccountant(9.0, 1e-3) as budget:
        for given, groups in (((frame,), {}), ((X, y), {"groups": ids})):
            found = clone(model).fit(*given, **groups)
    assert [entry["unit"] for entry in budget.entries()] == ["group"] * 4
    assert found[-1][-1].privacy_spent_.unit == "group"
    alone = SCHEMA.pipeline(clone(STEPS[name]))
    with BudgetAccountant(9.0, 1e-3) as budget:
        rows = alone.fit_transform(frame)
    assert rows.shape[0] == N and [entry["unit"] for entry in budget.entries()] == ["group"]


def test_ids_that_would_not_reach_a_private_step_are_refused_before_a_charge(frame, tmp_path):
    X, y, ids = SCHEMA.split(frame, groups=True)
    scaler = DPStandardScaler(lower=-1.0, upper=1.0)
    inside = make_column_transformer((scaler, [0, 1]), sparse_threshold=0)
    search = GridSearchCV(PRIVATE, {"alpha": [0.1, 1.0]})
    with BudgetAccountant(9.0, 0.1) as budget:
        for last in (make_pipeline(inside, PRIVATE), search):
            for given in ((frame,), (frame, y), (X, y, ids), (parquet(frame, tmp_path),)):
                with pytest.raises(ValueError, match="ids do not reach"):
                    SCHEMA.pipeline(last).fit(*given[:2], groups=given[2] if given[2:] else None)
        for bad in ({"groups": ids}, {}):
            with pytest.raises(
                ValueError, match=r"given pipeline__opera.*and also ids for all steps"
            ):
                SCHEMA.pipeline(make_pipeline(scaler, PRIVATE)).fit(
                    frame, y, pipeline__operalogisticregression__groups=ids, **bad
                )
        with pytest.raises(ValueError, match="and also ids for all steps"):
            SCHEMA.pipeline(PRIVATE).fit(frame, operalogisticregression__groups=ids)
        with pytest.raises(ValueError, match="given gridsearchcv__groups, and also ids for all"):
            SCHEMA.pipeline(search).fit(frame, y, gridsearchcv__groups=ids)  # to the splitter only
        with pytest.raises(ValueError, match="but no step accepts"):
            SCHEMA.pipeline(LogisticRegression()).fit(X, y, groups=ids)
    assert not budget.entries()
    assert SCHEMA.pipeline(LogisticRegression()).fit(frame).score(frame) > 0.5  # claims nothing


@pytest.mark.parametrize("asked", [None, False, True])
def test_with_metadata_routing_each_private_step_requests_ids(frame, asked):
    X, y, ids = SCHEMA.split(frame, groups=True)
    with sklearn.config_context(enable_metadata_routing=True), BudgetAccountant(9.0, 0.1) as budget:
        scaler = clone(STEPS["scaler"]).set_fit_request(groups=asked)
        private = clone(BEHIND).set_fit_request(groups=True)
        model = SCHEMA.pipeline(make_pipeline(scaler, private))
        for given in ({"X": frame}, {"X": X, "y": y, "groups": ids}):
            if asked:
                assert units(clone(model).fit(**given)) == {"group"}
            else:
                with pytest.raises(ValueError, match="set_fit_request"):
                    clone(model).fit(**given)
        if asked:
            folds = GroupKFold(3, shuffle=True)
            cross_validate(model, X, y, params={"groups": ids}, cv=folds, error_score="raise")
    assert len(budget.entries()) == (2 * 2 + 3 * 2 if asked else 0)
    assert not hasattr(model, "set_fit_request")


# ------------------------------------------------------------------------------- the warning
def test_the_warning_comes_at_fit_and_only_without_ids(frame):
    X, y, ids = SCHEMA.split(frame, groups=True)
    model = SCHEMA.pipeline(PRIVATE)  # whoever warned here would be an error, as with ids
    two = SCHEMA.pipeline(make_pipeline(clone(STEPS["scaler"]), BEHIND))
    model.fit(X, y, operalogisticregression__groups=ids)
    named = {"pipeline__operalogisticregression__groups": ids}
    two.fit(X, y, pipeline__dpstandardscaler__groups=ids, **named)
    search = PrivateGridSearchCV(model, {}, epsilon=5.0, method="holdout")
    evaluation = PrivateEvaluation()
    for use in (
        lambda: model.fit(X, y),
        lambda: two.fit(X, y, **named),
        lambda: search.fit(X, y),
        lambda: evaluation.evaluate(model, X, y),
    ):
        with pytest.warns(PrivacyWarning, match="one patient may have 8 rows") as caught:
            use()
        of_rows = [each for each in caught if "one patient may have" in str(each.message)]
        assert [str(each.filename) for each in of_rows] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SCHEMA.replace(unit=PrivacyUnit("patient")).pipeline(PRIVATE).fit(X, y)


# ------------------------------------------------------------------------------- what comes after
def test_fitted_pipelines_take_tables_with_other_columns(frame, fitted, tmp_path):
    X, y = SCHEMA.split(frame)
    tables = [X, frame, frame.drop(columns="ill"), polars.from_pandas(frame)]
    for table in (*tables, parquet(frame, tmp_path)):
        for method in ("predict", "predict_proba", "decision_function"):
            expected = getattr(fitted, method)(X)
            np.testing.assert_array_equal(getattr(fitted, method)(table), expected)
    no_ids = frame.drop(columns="id")
    for given in ((frame,), (frame, y), (no_ids,), (no_ids, y), (parquet(frame, tmp_path),)):
        assert fitted.score(*given) == fitted.score(X, y)


def test_evaluations_take_labels_and_ids_from_the_table(frame, fitted, tmp_path):
    X, y, ids = SCHEMA.split(frame, groups=True)
    evaluation = PrivateEvaluation(random_state=0)
    expected = evaluation.evaluate(fitted, X, y, groups=ids)
    assert expected.privacy_spent_.unit == "group"
    tables = ((frame,), (frame, y), (polars.from_pandas(frame),), (parquet(frame, tmp_path),))
    for given in tables:
        assert repr(evaluation.evaluate(fitted, *given)) == repr(expected)
    with pytest.raises(SchemaError, match="or give groups=ids"):
        evaluation.evaluate(fitted, frame.drop(columns="id"))
    threshold = PrivateThreshold(FrozenEstimator(fitted)).fit(frame)
    assert threshold.privacy_spent_.unit == "group"
    assert evaluation.evaluate(threshold, frame).privacy_spent_.unit == "group"
    for model, table in ((fitted, X.assign(id=ids)), (LogisticRegression().fit(X[["age"]], y), X)):
        with pytest.raises(ValueError, match=r"requires y|must have the 1 columns"):
            evaluation.evaluate(model, table)


@pytest.mark.parametrize("routed", [False, True])
def test_private_searches_over_a_pipeline_take_a_table(frame, routed, tmp_path):
    grid = {"operalogisticregression__alpha": [0.01, 0.1]}
    options = {"epsilon": 5.0, "method": "holdout", "random_state": 0}
    X, y, ids = SCHEMA.split(frame, groups=True)
    with sklearn.config_context(enable_metadata_routing=routed):
        private = OperaLogisticRegression()
        if routed:
            private.set_fit_request(groups=True)
        search = PrivateGridSearchCV(SCHEMA.pipeline(private), grid, **options)
        expected = clone(search).fit(X, y, groups=ids)
        tables = [(frame,)] if routed else [(frame, y), (parquet(frame, tmp_path),)]
        for given in tables:
            found = clone(search).fit(*given)
            assert found.privacy_spent_ == expected.privacy_spent_
            np.testing.assert_array_equal(
                found.best_estimator_[-1].coef_, expected.best_estimator_[-1].coef_
            )
    assert expected.privacy_spent_.unit == "group"
    assert PrivateEvaluation().evaluate(found, frame).privacy_spent_.unit == "group"


def test_searches_refuse_ids_that_single_candidates_would_find(frame):
    """They would protect patients, where the search has planned for rows."""
    X, y, ids = SCHEMA.split(frame, groups=True)
    whole = SCHEMA.pipeline(OperaLogisticRegression())
    options = {"epsilon": 5.0, "method": "holdout", "random_state": 0}
    around = make_pipeline(whole)
    assert PrivateGridSearchCV(around, {}, **options).fit(frame).privacy_spent_.unit == "group"
    behind = make_pipeline(FunctionTransformer(), whole)
    with BudgetAccountant(9.0, 0.1) as budget:
        for given in ((frame, y), (X, y)):
            search = PrivateGridSearchCV(behind, {}, **options)
            if given[0] is frame:
                with pytest.raises(ValueError, match="X has the column 'id'"):
                    search.fit(*given)
                assert not budget.entries()
        assert search.fit(X, y, groups=ids).privacy_spent_.unit == "group"


def test_searches_inside_and_around_a_pipeline_protect_patients(frame):
    inner = PrivateGridSearchCV(
        OperaLogisticRegression(), {"alpha": [0.01, 0.1]}, epsilon=5.0, method="holdout"
    )
    assert SCHEMA.pipeline(inner).fit(frame)[-1].privacy_spent_.unit == "group"
    grid = {"operalogisticregression__alpha": [0.01, 0.1]}
    with BudgetAccountant(99.0, 0.1) as budget:
        around = GridSearchCV(SCHEMA.pipeline(PRIVATE), grid, cv=2, error_score="raise")
        around.fit(frame, frame["ill"])
    assert [entry["unit"] for entry in budget.entries()] == ["group"] * 5


def test_pipelines_of_before_still_load(fitted, frame):
    old = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(old.predict(frame), fitted.predict(frame))


def test_ids_of_a_step_that_are_none_are_none(frame):
    X, y = frame.drop(columns="ill"), frame["ill"].to_numpy()
    model = SCHEMA.pipeline(PRIVATE).fit(X, y, operalogisticregression__groups=None)
    assert model[-1].privacy_spent_.unit == "group"
    with pytest.warns(PrivacyWarning, match="one patient may have 8 rows"):
        SCHEMA.pipeline(PRIVATE).fit(X[SCHEMA.inputs], y, operalogisticregression__groups=None)


def test_slices_that_begin_with_the_first_step_take_tables(frame, fitted):
    assert fitted[:].score(frame) == fitted.score(frame)
    assert clone(fitted)[:].fit(frame)[-1].privacy_spent_.unit == "group"
    rows, labels = fitted[:-1].transform(frame), frame["ill"].to_numpy()
    assert fitted[1:].score(rows, labels) == fitted.score(frame)


@pytest.mark.parametrize("others", ["raise", "ignore"])
def test_a_column_of_ids_that_occurs_twice_is_refused_by_name(frame, others):
    schema, twice = SCHEMA.replace(others=others), pd.concat([frame, frame[["id"]]], axis=1)
    for use in (
        lambda: schema.pipeline(PRIVATE).fit(twice.drop(columns="ill"), frame["ill"]),
        lambda: schema.split_holdout(twice, 0.5, 1),
    ):
        with pytest.raises(SchemaError, match="'id' occurs more than once"):
            use()


def test_plain_pipelines_are_warned_of_ids_that_the_schema_names(frame):
    X, y = frame.drop(columns="ill"), frame["ill"].to_numpy()
    plain = clone(make_pipeline(SCHEMA.preprocessor(), BEHIND))
    with pytest.warns(PrivacyWarning, match=r"Pipeline: it has ids.*does not pass them"):
        plain.fit(X, y)
    plain.fit(X, y, operalogisticregression__groups=frame["id"])
    assert plain[-1].privacy_spent_.unit == "group"
    plain.fit(X[SCHEMA.inputs], y)
    search = PrivateGridSearchCV(plain, {"operalogisticregression__alpha": [0.1]}, method="fixed")
    with pytest.raises(ValueError, match="'id', which a schema names for ids"):
        search.fit(X, y)


def test_evaluations_refuse_ids_that_they_would_not_use(frame):
    X, y = frame.drop(columns="ill"), frame["ill"].to_numpy()
    ordinary = SCHEMA.pipeline(LogisticRegression()).fit(frame)
    behind = make_pipeline(FunctionTransformer().fit(X), ordinary)
    evaluation = PrivateEvaluation(1.0, 1e-6)
    with pytest.raises(ValueError, match="'id', which a schema names for ids"):
        evaluation.evaluate(behind, X, y)
    told = evaluation.evaluate(behind, X, y, groups=frame["id"])
    assert told.privacy_spent_.unit == "group"


def test_ids_that_were_split_off_are_missed_without_a_number_of_rows(frame):
    schema = SCHEMA.replace(unit=PrivacyUnit("patient", column="id"))
    X, y, ids = schema.split(frame, groups=True)
    with pytest.warns(PrivacyWarning, match="ids of column 'id', which the schema names, are miss"):
        model = schema.pipeline(PRIVATE).fit(X, y)
    with pytest.warns(PrivacyWarning, match="ids of column 'id'"):
        PrivateEvaluation(1.0, 1e-6).evaluate(model, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema.pipeline(PRIVATE).fit(X, y, groups=ids)
        schema.pipeline(PRIVATE).fit(frame)
