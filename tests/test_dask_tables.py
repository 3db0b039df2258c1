"""Tables of Dask give what they give in memory, and are read when they are needed."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.data import open_parquet
from skdp.exceptions import SchemaError
from skdp.metrics import PrivateEvaluation, PrivateRegressionEvaluation, PrivateThreshold
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    OrdinalColumn,
    PrivacyUnit,
    SchemaEncoder,
    TableSchema,
)
from skdp.statistics import (
    private_contingency_table,
    private_count,
    private_histogram,
    private_mean,
    private_quantile,
    private_table_one,
    private_top_k,
    private_variance,
)

pd = pytest.importorskip("pandas", reason="needs pandas")
da = pytest.importorskip("dask.array", reason="needs dask")
dd = pytest.importorskip("dask.dataframe", reason="needs dask's frames")

N = 90
SCHEMA = TableSchema(
    [
        NumericColumn("age", 0, 120, missing="indicator"),
        CategoricalColumn("ward", ["A", "B", "C"], missing="ignore"),
        OrdinalColumn("stage", [1, 2, 3]),
        BooleanColumn("smoker"),
    ],
    label=LabelColumn("ill", ["no", "yes"]),
    unit=PrivacyUnit("patient", column="patient"),
    interactions=[("ward", "smoker")],
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, N).astype(float)
    age[5] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "ward": rng.choice(["A", "B", "C"], N),
            "stage": rng.integers(1, 4, N),
            "smoker": rng.choice([False, True], N),
            "patient": rng.integers(0, 40, N),
            "ill": np.where(age > 50, "yes", "no"),
        }
    )


@pytest.fixture(params=[1, 7])
def parted(request, frame):
    return dd.from_pandas(frame, npartitions=request.param)


def told(frame, seen):
    """Return a frame of which each partition that is read is noted."""

    def read(part):
        seen.append(len(part))
        return part

    return dd.from_pandas(frame, npartitions=3).map_partitions(read, meta=frame.iloc[:0])


def test_a_schema_splits_and_encodes_partitions(frame, parted):
    X, y, groups = SCHEMA.split(frame, groups=True)
    lazy, labels, ids = SCHEMA.split(parted, groups=True)
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(ids, groups)
    assert labels.dtype == y.dtype and ids.dtype == groups.dtype
    preprocessor = SCHEMA.preprocessor()
    for encode in (preprocessor.fit_transform, preprocessor.transform):
        rows = encode(lazy)
        expected = SCHEMA.preprocessor().fit_transform(X)
        assert isinstance(rows, da.Array) and rows.shape[1] == expected.shape[1]
        assert rows.dtype == expected.dtype and rows.numblocks == (parted.npartitions, 1)
        np.testing.assert_array_equal(rows.compute(), expected)
    names = preprocessor.get_feature_names_out()
    np.testing.assert_array_equal(names, SCHEMA.preprocessor().fit(X).get_feature_names_out())


def test_columns_beside_the_features_are_dropped(frame, parted):
    preprocessor = SCHEMA.preprocessor()
    expected = SCHEMA.preprocessor().fit_transform(frame)
    np.testing.assert_array_equal(preprocessor.fit_transform(parted).compute(), expected)


def test_encoding_waits_until_rows_are_asked_for(frame):
    seen = []
    X, y = SCHEMA.split(told(frame, seen))
    assert sum(seen) == N and y.shape == (N,)
    seen.clear()
    rows = SCHEMA.preprocessor().fit(X).transform(X)
    assert seen == []
    assert rows.compute().shape[0] == N and sum(seen) == N


def test_arrays_are_encoded_by_positions():
    schema = TableSchema([NumericColumn("a", 0, 1), NumericColumn("b", 0, 1)])
    X = np.random.default_rng(1).uniform(size=(20, 2))
    rows = schema.preprocessor(positions=True).fit_transform(da.from_array(X, chunks=(6, 1)))
    assert rows.chunks == ((6, 6, 6, 2), (2,))
    expected = schema.preprocessor(positions=True).fit_transform(X)
    np.testing.assert_array_equal(rows.compute(), expected)


def test_what_is_refitted_later_does_not_change_rows_to_be_encoded():
    encoder = SchemaEncoder([NumericColumn("a", 0, 1)])
    X = pd.DataFrame({"a": [0.0, 1.0]})
    rows = encoder.fit_transform(dd.from_pandas(X, npartitions=1))
    encoder.set_params(columns=[NumericColumn("a", 0, 2)]).fit(X)
    assert rows.compute().ravel().tolist() == [-1.0, 1.0]


def test_empty_partitions_are_as_none(frame):
    lazy = dd.from_pandas(frame, npartitions=9)
    X, y = SCHEMA.split(lazy[lazy["patient"] == 7])
    few, labels = SCHEMA.split(frame[frame["patient"] == 7])
    np.testing.assert_array_equal(y, labels)
    rows = SCHEMA.preprocessor().fit_transform(X).compute()
    np.testing.assert_array_equal(rows, SCHEMA.preprocessor().fit_transform(few))
    none, labels = SCHEMA.split(lazy[lazy["patient"] < 0])
    assert labels.shape == (0,) and SCHEMA.preprocessor().fit_transform(none).compute().size == 0


def test_errors_are_those_of_memory_and_quote_no_cell(frame):
    wrong = frame.assign(ill=frame["ill"].replace("yes", "secret"))
    for table in (wrong, dd.from_pandas(wrong, npartitions=3)):
        with pytest.raises(SchemaError, match="missing or not listed") as refused:
            SCHEMA.split(table)
        assert "secret" not in str(refused.value)
    with pytest.raises(SchemaError, match="column 'age' is missing"):
        SCHEMA.split(dd.from_pandas(frame.drop(columns="age"), npartitions=3))
    strict = SCHEMA.replace(columns=[NumericColumn("age", 0, 120), *SCHEMA.columns[1:]])
    X, _ = strict.split(dd.from_pandas(frame, npartitions=3))
    with pytest.raises(SchemaError, match=re.escape("column 'age': missing: the policy is")):
        strict.preprocessor().fit_transform(X).compute()
    private = OperaLogisticRegression(epsilon=1.0)
    with pytest.raises(SchemaError, match=re.escape("column 'age': missing: the policy is")):
        strict.pipeline(private).fit(X, np.arange(len(frame)) % 2)


def test_what_dask_says_of_rows_is_withheld(frame):
    wrong = dd.from_pandas(frame.assign(age="secret"), npartitions=3)
    wrong["age"] = wrong["age"].astype(object).astype(float)
    with pytest.raises(RuntimeError, match="dask could not compute a partition") as refused:
        private_mean(wrong["age"], schema=SCHEMA, epsilon=1.0)
    assert "secret" not in str(refused.value) and refused.value.__context__ is None


def test_no_warning_tells_what_a_partition_holds(frame):
    strange = frame.assign(ward="Z")
    schema = SCHEMA.replace(
        columns=[
            SCHEMA.columns[0],
            CategoricalColumn("ward", ["A", "B", "C"], unknown="ignore"),
            *SCHEMA.columns[2:],
        ]
    )
    X, _ = schema.split(dd.from_pandas(strange, npartitions=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema.preprocessor().fit(X).transform(X).compute(scheduler="synchronous")


STATISTICS = {
    "count": lambda t, **k: private_count(t["age"], **k),
    "histogram": lambda t, **k: private_histogram(t["ward"], schema=SCHEMA, **k),
    "table": lambda t, **k: private_contingency_table(t[["ward", "stage"]], schema=SCHEMA, **k),
    "mean": lambda t, **k: private_mean(t["age"], schema=SCHEMA, **k),
    "variance": lambda t, **k: private_variance(t["age"], schema=SCHEMA, **k),
    "quantile": lambda t, **k: private_quantile(t["age"], schema=SCHEMA, **k),
    "top k": lambda t, **k: private_top_k(t["ward"], 1, schema=SCHEMA, **k),
    "table one": lambda t, **k: private_table_one(t, SCHEMA, by="ward", **k),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_are_those_of_memory(name, frame):
    budget = BudgetAccountant(10.0, 0.0)
    known = {"epsilon": 1.0, "random_state": 3}
    parted = dd.from_pandas(frame, npartitions=4)
    found = STATISTICS[name](parted, accountant=budget, **known)
    assert str(found) == str(STATISTICS[name](frame, **known))
    assert len(budget.entries()) == 1
    assert found.privacy_spent_.assumptions[-1].startswith("workers of Dask")


def test_statistics_of_a_dask_array():
    numbers = np.arange(50.0)
    known = {"lower": 0, "upper": 50, "epsilon": 1.0, "random_state": 0}
    found = private_mean(da.from_array(numbers, chunks=7), **known)
    assert str(found) == str(private_mean(numbers, **known))
    with pytest.raises(ValueError, match="column must have one dimension"):
        private_mean(da.from_array(np.ones((9, 2)), chunks=2), **known)


@pytest.fixture(scope="module")
def model(frame):
    X, y = SCHEMA.split(frame)
    return SCHEMA.pipeline(OperaLogisticRegression(epsilon=10.0, random_state=0)).fit(X, y)


def test_evaluations_are_those_of_memory(frame, parted, model):
    evaluation = PrivateEvaluation(epsilon=1.0, random_state=3)
    X, y, groups = SCHEMA.split(frame, groups=True)
    lazy = parted[SCHEMA.features]
    found = evaluation.evaluate(model, lazy, parted["ill"], groups=parted["patient"])
    assert repr(found) == repr(evaluation.evaluate(model, X, y, groups=groups))
    assert found.privacy_spent_.assumptions[-1].startswith("workers of Dask")


def test_evaluations_of_arrays_of_unknown_lengths():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    private = OperaLogisticRegression(epsilon=10.0, data_norm=3.0, classes=[0, 1], random_state=0)
    rows, labels = da.from_array(X, chunks=(17, 1)), da.from_array(y, chunks=25)
    kept = X[:, 1] > 0
    mask = rows[:, 1] > 0
    fitted = private.fit(X, y)
    evaluation = PrivateEvaluation(epsilon=1.0, random_state=3)
    found = evaluation.evaluate(fitted, rows[mask], labels[mask])
    assert repr(found) == repr(evaluation.evaluate(fitted, X[kept], y[kept]))


def test_models_are_adjusted_as_in_memory(frame, model):
    X, y = SCHEMA.split(frame)
    lazy = dd.from_pandas(frame, npartitions=4)
    adjusted = PrivateThreshold(model, epsilon=1.0, random_state=3)
    expected = adjusted.fit(X, y).threshold_
    assert adjusted.fit(lazy[SCHEMA.features], lazy["ill"]).threshold_ == expected


def test_what_is_wrong_with_an_evaluation_is_found_before_the_charge(frame, model):
    budget = BudgetAccountant(10.0, 1e-3)
    evaluation = PrivateEvaluation(epsilon=1.0, accountant=budget)
    lazy = dd.from_pandas(frame, npartitions=4)
    with pytest.raises(ValueError, match="one entry for each row"):
        evaluation.evaluate(model, lazy[SCHEMA.features], frame["ill"][:-1])
    assert budget.entries() == []


def test_what_a_model_says_at_a_partition_is_withheld(frame):
    class Telling:
        def predict(self, X):
            raise ValueError(f"the ages are {list(X['age'])}")

    lazy = dd.from_pandas(frame, npartitions=4)
    evaluation = PrivateRegressionEvaluation(target_bounds=(0, 120), epsilon=1.0)
    with pytest.raises(ValueError, match="the model failed on the rows") as refused:
        evaluation.evaluate(Telling(), lazy[["age"]], lazy["stage"])
    assert "ages" not in str(refused.value)


def test_pipelines_of_schemas_are_fitted_as_in_memory(frame, parted):
    X, y, groups = SCHEMA.split(frame, groups=True)
    lazy, labels, ids = SCHEMA.split(parted, groups=True)
    private = OperaLogisticRegression(epsilon=1.0, random_state=0)
    expected = SCHEMA.pipeline(private).fit(X, y, operalogisticregression__groups=groups)
    found = SCHEMA.pipeline(private).fit(lazy, labels, operalogisticregression__groups=ids)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-10)
    np.testing.assert_array_equal(found.predict(lazy).compute(), found.predict(X))


def test_a_pipeline_splits_whatever_table_it_is_given(frame, parted, tmp_path):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    frame.to_parquet(tmp_path / "table.parquet")
    private = OperaLogisticRegression(epsilon=1.0, random_state=0)
    model = SCHEMA.pipeline(private, encoding="auto", interactions=[])
    X, y, groups = SCHEMA.split(frame, groups=True)
    expected = clone(model).fit(X, y, operalogisticregression__groups=groups)[-1]
    assert expected.privacy_spent_.unit == "group"
    for table in (parted, open_parquet(tmp_path / "table.parquet")):
        found = clone(model).fit(table)[-1]
        assert found.privacy_spent_.unit == "group"
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)


def test_private_searches_take_tables_into_memory(frame):
    X, y = SCHEMA.split(frame)
    pipeline = SCHEMA.pipeline(OperaLogisticRegression(epsilon=1.0))
    alphas = {"operalogisticregression__alpha": [0.1, 1.0]}
    options = {"epsilon": 5.0, "delta": 1e-5, "method": "holdout", "random_state": 0}
    search = PrivateGridSearchCV(pipeline, alphas, **options)
    expected = search.fit(X, y).best_estimator_[-1].coef_
    lazy, labels = SCHEMA.split(dd.from_pandas(frame, npartitions=4))
    np.testing.assert_array_equal(search.fit(lazy, labels).best_estimator_[-1].coef_, expected)


def test_other_lazy_tables_are_refused_as_ever(frame):
    polars = pytest.importorskip("polars", reason="needs polars")
    with pytest.raises(TypeError, match="lazy; collect it first"):
        SCHEMA.preprocessor().fit(polars.DataFrame({"age": [1.0]}).lazy())


@pytest.mark.slow
def test_workers_of_a_cluster_give_the_same(frame, model, capfd):
    distributed = pytest.importorskip("distributed", reason="needs dask's distributed")
    X, y = SCHEMA.split(frame)
    known = {"epsilon": 1.0, "random_state": 3}
    expected = [str(STATISTICS[name](frame, **known)) for name in STATISTICS]
    evaluation = PrivateEvaluation(**known)
    figures = repr(evaluation.evaluate(model, X, y))
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster):
        lazy = dd.from_pandas(frame, npartitions=4)
        assert [str(STATISTICS[name](lazy, **known)) for name in STATISTICS] == expected
        assert repr(evaluation.evaluate(model, lazy[SCHEMA.features], lazy["ill"])) == figures
        rows, labels = SCHEMA.split(lazy)
        np.testing.assert_array_equal(labels, y)
        encoded = SCHEMA.preprocessor().fit_transform(rows).compute()
        np.testing.assert_array_equal(encoded, SCHEMA.preprocessor().fit_transform(X))
        with pytest.raises(SchemaError, match="missing or not listed"):
            SCHEMA.split(lazy.assign(ill="secret"))
    said = capfd.readouterr()
    assert "secret" not in said.out + said.err
