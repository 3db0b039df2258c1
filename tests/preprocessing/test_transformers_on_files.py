"""Transformers of tables in files: rows that are made as they are read are those of memory."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skdp.tables.row_sources as row_sources
from skdp import DPSGDClassifier, ObjectivePerturbationLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.mechanisms import record_releases
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    DPPCA,
    BooleanColumn,
    BoundedScaler,
    DPQuantileClipper,
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    RowNormClipper,
    ScatteringTransform,
    TableSchema,
)
from skdp.tables.row_sources import EncodedRows
from skdp.testing.replay import fit_frozen

PRIVATE = {"epsilon": 0.5, "delta": 1e-6}
STEPS = {
    "scaler": BoundedScaler(-4.0, 4.0),
    "clipper": RowNormClipper(1.5),
    "standard": DPStandardScaler(**PRIVATE, lower=-4.0, upper=4.0),
    "bounded rows": DPStandardScaler(**PRIVATE, input_norm=2.0),
    "quantiles": DPQuantileClipper(**PRIVATE),
    "directions": DPPCA(2, **PRIVATE, data_norm=3.0),
    "images": ScatteringTransform(image_shape=(4, 4), n_scales=1, normalize_groups=None),
}
N, D = 1300, 16


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    return X, (X[:, 0] + 0.5 * rng.normal(size=N) > 0).astype(np.int8)


@pytest.fixture
def on_disk(tmp_path):
    def write(X):
        if sparse.issparse(X):
            parts = (write(part) for part in (X.data, X.indices, X.indptr))
            return type(X)(tuple(parts), shape=X.shape)
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, X)
        return np.load(path, mmap_mode="r")

    return write


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(row_sources, "WHOLE_BYTES", 0)
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", 288)
    monkeypatch.setattr(row_sources, "BLOCK_BYTES", 1)


@pytest.mark.daily(5)
@pytest.mark.parametrize("layout", ["float64", "float32", "int16", "F"])
@pytest.mark.parametrize("name", STEPS)
def test_rows_and_releases_are_those_of_memory(table, on_disk, name, layout):
    X = (3 * table[0]).astype("float64" if layout == "F" else layout)
    X = np.asfortranarray(X) if layout == "F" else X
    values = []
    for given in (X, on_disk(X)):
        with record_releases() as trace:
            step = clone(STEPS[name])
            if hasattr(step, "random_state"):
                step.set_params(random_state=3)
            made = step.fit_transform(given)
        values.append((made, [release.value for release in trace.releases]))
    (one, sums), (other, lazy_sums) = values
    assert isinstance(other, EncodedRows) and other.shape == one.shape
    assert other.dtype == one.dtype
    np.testing.assert_allclose(np.asarray(other), one, rtol=1e-11, atol=1e-12)
    for a, b in zip(sums, lazy_sums, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-9)
    index = np.array([0, 287, 288, 1299])
    blocks = np.concatenate([block for _, _, block in other.blocks()])
    np.testing.assert_array_equal(other.take(index), blocks[index])
    clipped = RowNormClipper(0.7).fit_transform(other)
    blocks = np.concatenate([block for _, _, block in clipped.blocks()])
    np.testing.assert_array_equal(clipped.take(index), blocks[index])


@pytest.mark.daily(2)
@pytest.mark.parametrize("whole", [0, 1 << 30])
@pytest.mark.parametrize("twice", [False, True])
def test_sparse_rows_stay_sparse(monkeypatch, table, on_disk, twice, whole):
    monkeypatch.setattr(row_sources, "WHOLE_BYTES", whole)
    X = sparse.csr_array(np.where(np.abs(table[0]) > 1, table[0], 0.0))
    stored = X
    if twice:  # every entry in two halves
        halves = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2
        stored = sparse.csr_array(halves, shape=X.shape)
    model = make_pipeline(
        RowNormClipper(1.5), ObjectivePerturbationLogisticRegression(data_norm=1.5)
    )
    one, other = (fit_frozen(clone(model), rows, table[1]).fitted for rows in (X, on_disk(stored)))
    np.testing.assert_allclose(other[-1].coef_, one[-1].coef_, rtol=1e-11)
    with pytest.raises(TypeError, match="parse"):
        BoundedScaler().fit(on_disk(stored))


@pytest.mark.parametrize("lots", [False, True])
def test_chains_fit_as_in_memory_for_one_budget(table, on_disk, lots):
    public = {"epsilon": 1.0, "delta": 1e-6, "classes": [0, 1], "random_state": 1}
    model = ObjectivePerturbationLogisticRegression(**public)
    if lots:
        model = DPSGDClassifier(**public, batch_size=30, max_iter=20)
    chain = make_pipeline(*(clone(STEPS[k]) for k in ("scaler", "standard", "clipper")), model)
    chain.set_params(dpstandardscaler__random_state=1)
    X, y = table
    found = []
    for rows in (X, on_disk(X)):
        with BudgetAccountant(9.0, 1e-3) as budget:
            found.append(clone(chain).fit(rows, y))
        assert len(budget.entries()) == 2
    np.testing.assert_allclose(found[1][-1].coef_, found[0][-1].coef_, rtol=1e-10)
    np.testing.assert_array_equal(found[1].predict(on_disk(X)), found[0].predict(X))


@pytest.mark.daily(2)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["scaler", "standard"])
def test_rows_that_are_not_finite_are_refused_as_in_memory(table, on_disk, name, bad):
    X = table[0].copy()
    X[900, 3] = bad
    model = make_pipeline(
        clone(STEPS[name]), ObjectivePerturbationLogisticRegression(data_norm=4.0)
    )
    messages = []
    with BudgetAccountant(9.0, 1e-3) as budget:
        for rows in (X, on_disk(X)):
            with pytest.raises(ValueError, match="Input X contains") as caught:
                clone(model).fit(rows, table[1])
            messages.append(str(caught.value))
        # Also where only what is predicted is bad.
        scaler = clone(STEPS["scaler"]).fit(table[0])
        with pytest.raises(ValueError, match="Input X contains"):
            np.asarray(scaler.transform(on_disk(X)))
    assert messages[0] == messages[1] and budget.spent() == (0.0, 0.0)


def test_schemas_take_columns_of_files_by_place(table, on_disk):
    schema = TableSchema(
        [NumericColumn("a", -3, 3, missing="indicator"), BooleanColumn("b", missing="ignore")],
        label=LabelColumn("ill", [0, 1]),
        interactions=[("a", "b")],
    )
    X = np.column_stack([table[0][:, 0], table[0][:, 1] > 0]).astype(np.float32)
    X[::7, 0] = np.nan
    model = schema.pipeline(ObjectivePerturbationLogisticRegression(epsilon=1.0), positions=True)
    one, other = (fit_frozen(clone(model), rows, table[1]).fitted for rows in (X, on_disk(X)))
    np.testing.assert_allclose(other[-1].coef_, one[-1].coef_, rtol=1e-11)
    assert isinstance(other[:-1].transform(on_disk(X)), EncodedRows)


def test_a_list_that_no_cell_is_on_is_told_of_no_block(table, on_disk, recwarn):
    schema = TableSchema([BooleanColumn("a"), NumericColumn("b", 0, 1)])
    X = 9 + np.abs(table[0][:, :2])
    steps = schema.preprocessor(positions=True)
    made = steps.fit_transform(on_disk(X))
    np.testing.assert_array_equal(np.asarray(made), steps.fit_transform(X))
    assert not [w for w in recwarn if "public list" in str(w.message)]


@pytest.mark.slow
def test_small_tables_are_made_at_once_and_others_for_whoever_reads_no_blocks(
    monkeypatch, table, on_disk
):
    X, y = table
    scaler = BoundedScaler(-4.0, 4.0)
    lazy = scaler.fit_transform(on_disk(X))
    expected = LogisticRegression().fit(scaler.transform(X), y)
    np.testing.assert_array_equal(LogisticRegression().fit(lazy, y).coef_, expected.coef_)
    search = PrivateGridSearchCV(
        ObjectivePerturbationLogisticRegression(data_norm=1.0, classes=[0, 1]),
        {"alpha": [0.1, 1.0]},
        epsilon=3.0,
        random_state=0,
    )
    one, other = (clone(search).fit(rows, y) for rows in (scaler.transform(X), lazy))
    np.testing.assert_allclose(other.best_estimator_.coef_, one.best_estimator_.coef_, rtol=1e-9)
    monkeypatch.setattr(row_sources, "WHOLE_BYTES", X.nbytes)
    assert type(scaler.transform(on_disk(X))) is np.ndarray
