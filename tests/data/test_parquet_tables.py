"""Tables in Parquet files give what the same tables in memory give, whatever their row groups."""

import gc
import io
import pickle
import shutil
import tempfile
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skdp.tables._kept_rows as _kept_rows
import skdp.tables.row_sources as row_sources
from skdp import (
    DPSGDClassifier,
    DPSGDRegressor,
    GrpuaLogisticRegression,
    GrpuaMLPClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaHuberRegressor,
    OperaSVC,
    PrivateLinearRegression,
    PrivateRidge,
    VariationalLogisticRegression,
)
from skdp.budget import BudgetAccountant
from skdp.data.parquet import ParquetTable, open_parquet
from skdp.exceptions import RowsChangedError, SchemaError
from skdp.metrics import PrivateEvaluation
from skdp.plans import second_moments
from skdp.preprocessing import (
    DPPCA,
    BooleanColumn,
    CategoricalColumn,
    DPStandardScaler,
    IgnoredColumn,
    LabelColumn,
    NumericColumn,
    NumericLabel,
    OrdinalColumn,
    PrivacyUnit,
    RowNormClipper,
    SchemaEncoder,
    TableSchema,
)
from skdp.reporting import privacy_statement
from skdp.tables.row_sources import EncodedRows
from skdp.testing.replay import fit_frozen

pd = pytest.importorskip("pandas", reason="needs pandas")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")

N = 3000
UNIT = PrivacyUnit("patient", column="patient", max_rows=1)
SCHEMA = TableSchema(
    [
        NumericColumn("age", 0, 120),
        NumericColumn("lactate", 0, 20, missing="indicator", missing_codes=[-9]),
        CategoricalColumn("ward", ["A", "B", "C"], missing="indicator", unknown="indicator"),
        OrdinalColumn("stage", [1, 2, 3], missing="ignore"),
        BooleanColumn("smoker", missing="ignore"),
        CategoricalColumn("codes", ["x", "y"], missing="ignore"),
        IgnoredColumn("note"),
    ],
    label=LabelColumn("ill", [0, 1]),
    unit=UNIT,
    interactions=[("ward", "smoker")],
)
NUMBERS = SCHEMA.replace(
    columns=[*(c for c in SCHEMA.columns if c.name != "lactate"), IgnoredColumn("ill")],
    label=NumericLabel("lactate", 0, 20),
)


def cells():
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 130, N)
    gaps = rng.random((3, N)) < 0.1
    return {
        "age": pa.array(age.astype(np.float32)),
        "lactate": pa.array(rng.gamma(2.0, 2.0, N), mask=gaps[0]),
        "ward": pa.array(rng.choice(["A", "B", "C", "D"], N), mask=gaps[1]).dictionary_encode(),
        "stage": pa.array(rng.integers(1, 4, N), mask=gaps[2] & (np.arange(N) > N // 2)),
        "smoker": pa.array(rng.random(N) < 0.4),
        "codes": pa.array([["x"], ["x", "y"], None] * (N // 3)),  # lists are on no list
        "note": pa.array(rng.bytes(N).hex()[:N]),
        "patient": pa.array(rng.integers(0, 900, N)),
        "ill": pa.array((age + 20 * rng.normal(size=N) > 60).astype(np.int8)),
    }


@pytest.fixture(scope="module")
def table():
    return pa.table({**cells(), "note": pa.array(["a", "b", None] * (N // 3))})


@pytest.fixture
def stored(table, tmp_path):
    """Return a function that opens the table, or another, from files of some row groups."""

    def store(rows, table=table, files=1):
        for k in range(files):
            part = table.slice(k * N // files, N // files)
            pq.write_table(part, tmp_path / f"{k}.parquet", row_group_size=rows)
        return open_parquet(tmp_path)

    return store


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Have blocks of 1001 rows."""
    monkeypatch.setattr(row_sources, "WHOLE_BYTES", 0)
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", 1001)
    monkeypatch.setattr(row_sources, "BLOCK_BYTES", 1)


def in_memory(table):
    return table.to_pandas(types_mapper=pd.ArrowDtype)


PUBLIC = {"epsilon": 1.0, "delta": 1e-5}
MODELS = {
    "output": OperaSVC(**PUBLIC),
    "objective": ObjectivePerturbationLogisticRegression(**PUBLIC),
    "all rows": GrpuaLogisticRegression(**PUBLIC, max_iter=4),
    "lots": DPSGDClassifier(**PUBLIC, batch_size=50, max_iter=30),
    "network": GrpuaMLPClassifier(**PUBLIC, hidden_layer_sizes=(3,), max_iter=3),
    "posterior": VariationalLogisticRegression(**PUBLIC, batch_size=400, max_iter=3),
    "numbers": OperaHuberRegressor(**PUBLIC),
    "numbers, lots": DPSGDRegressor(**PUBLIC, batch_size=300, max_iter=4),
    "moments": PrivateRidge(**PUBLIC),
    "moments, steps": PrivateLinearRegression(**PUBLIC),
}


def weights(model):
    found = model.coefs_ if getattr(model, "coefs_", None) else [model.coef_, model.intercept_]
    return np.concatenate([np.ravel(array) for array in found])


def assert_same(one, other, limit=1e-11):
    gap = np.abs(weights(one[-1]) - weights(other[-1])).max()
    assert gap <= limit * np.abs(weights(one[-1])).max()


@pytest.mark.daily(3)
@pytest.mark.parametrize("rows", [N, 257, 4000])
@pytest.mark.parametrize("name", MODELS)
def test_every_family_fits_as_in_memory(table, stored, name, rows):
    schema, frame = SCHEMA, in_memory(table)
    if name.startswith(("numbers", "moments")):
        schema, kept = NUMBERS, np.flatnonzero(~frame["lactate"].isna().to_numpy())
        table = table.take(kept[: len(kept) // 2 * 2])
        frame = in_memory(table)
    model = schema.pipeline(MODELS[name])
    found = stored(rows, table)
    X, y = schema.split(found)
    assert isinstance(X, ParquetTable) and X.columns == list(schema.features)
    expected = fit_frozen(clone(model), *schema.split(frame)).fitted
    # Networks take float32 rows for what they are; encoded ones are float64.
    other = fit_frozen(clone(model), X, y).fitted
    assert_same(expected, other)
    np.testing.assert_allclose(
        other.predict(found).astype(float), expected.predict(frame).astype(float), atol=1e-9
    )


@pytest.mark.daily(1)
@pytest.mark.parametrize("files", [3, 1])
def test_labels_and_ids_come_from_the_columns_that_the_schema_names(table, stored, files):
    found, frame = stored(211, files=files), in_memory(table)
    model = SCHEMA.pipeline(OperaSVC(**PUBLIC, random_state=1))
    X, y, ids = SCHEMA.split(frame, groups=True)
    expected = clone(model).fit(X, y, operasvc__groups=ids)
    other = clone(model).fit(found)
    assert other[-1].privacy_spent_.unit == "group"
    assert_same(expected, other)
    for one, other in zip(SCHEMA.split(found, groups=True)[1:], (y, ids), strict=True):
        np.testing.assert_array_equal(one, other)
    without = SCHEMA.replace(
        unit=PrivacyUnit(), columns=[*SCHEMA.columns, IgnoredColumn("patient")]
    )
    assert without.pipeline(OperaSVC(**PUBLIC)).fit(found)[-1].privacy_spent_.unit == "row"


def test_steps_behind_a_schema_read_blocks_too(monkeypatch, table, stored):
    steps = (RowNormClipper(1.0), DPPCA(3, **PUBLIC, data_norm=1.0), OperaSVC(**PUBLIC))
    frame, found = in_memory(table), stored(500)
    model = SCHEMA.pipeline(make_pipeline(*steps))
    expected = fit_frozen(clone(model), *SCHEMA.split(frame)[:2]).fitted
    monkeypatch.setattr(second_moments, "_BLOCK_ENTRIES", 5000)
    seen, read = [], ParquetTable.read
    monkeypatch.setattr(
        ParquetTable, "read", lambda self, *at: seen.append(at[1] - at[0]) or read(self, *at)
    )
    other = fit_frozen(clone(model), *SCHEMA.split(found)[:2]).fitted
    assert_same(expected[-1], other[-1])
    assert max(seen) == 1001


@pytest.mark.slow
def test_evaluations_read_blocks_too(table, stored):
    frame, found = in_memory(table), stored(500)
    expected = SCHEMA.pipeline(OperaSVC(**PUBLIC)).fit(*SCHEMA.split(frame))
    figures = [
        PrivateEvaluation(random_state=0).evaluate(expected, *SCHEMA.split(rows)[:2])
        for rows in (frame, found)
    ]
    assert float(figures[0].roc_auc) == float(figures[1].roc_auc)


@pytest.mark.filterwarnings("error:.*was given no data_norm")
def test_bounds_are_known_of_rows_that_are_yet_to_be_read(table, stored):
    encoder = SchemaEncoder([NumericColumn("age", 0, 120)])
    X, y = SCHEMA.split(stored(500))
    model = make_pipeline(encoder, OperaSVC(**PUBLIC)).fit(X[["age"]], y)
    frame = in_memory(table)[["age"]]
    np.testing.assert_array_equal(encoder.transform(X[["age"]]), encoder.transform(frame))
    assert model.predict(X[["age"]]).shape == (N,)


REFUSED = {
    "missing": ([NumericColumn("lactate", 0, 20)], "column 'lactate': missing: the policy"),
    "unknown": (
        [CategoricalColumn("ward", ["A", "B"], missing="ignore", unknown="refuse")],
        "ward",
    ),
    "type": (
        [CategoricalColumn("stage", ["I", "II"])],
        "column 'stage' has type int64.*lists text",
    ),
    "codes": ([CategoricalColumn("age", [2**24, 2**24 + 1])], "too coarse"),
    "absent": ([NumericColumn("height", 0, 250)], "column 'height' is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_have_the_words_of_memory_and_come_before_a_charge(table, stored, case):
    columns, words = REFUSED[case]
    names = {column.name for column in columns} | {"ill", "patient"}
    others = [IgnoredColumn(name) for name in table.column_names if name not in names]
    schema = SCHEMA.replace(columns=[*columns, *others], interactions=())
    messages = []
    with BudgetAccountant(epsilon=2.0, delta=1e-3) as budget:
        for given in (in_memory(table), stored(400)):
            with pytest.raises(SchemaError, match=words) as caught:
                schema.pipeline(OperaSVC(**PUBLIC)).fit(*schema.split(given))
            messages.append(str(caught.value))
    assert messages[0] == messages[1] and budget.spent() == (0.0, 0.0)


def test_a_label_that_is_not_listed_is_refused_without_its_value(table, stored):
    schema = SCHEMA.replace(label=LabelColumn("ill", [1, 2]))
    with pytest.raises(SchemaError, match="missing or not listed"):
        schema.pipeline(OperaSVC(**PUBLIC)).fit(stored(400))


def test_tables_without_a_schema_are_refused(stored):
    X, y = SCHEMA.split(stored(400))
    for model in (OperaSVC(**PUBLIC), RowNormClipper(), DPPCA(**PUBLIC)):
        with pytest.raises(TypeError, match="ParquetTable, whose columns a schema"):
            model.fit(X, y)
    with pytest.raises(SchemaError, match="column 'ill' is missing"):
        SCHEMA.pipeline(OperaSVC(**PUBLIC)).fit(X)


def test_a_fit_keeps_nothing_of_its_table(table, stored):
    found = stored(400)
    X, y = SCHEMA.split(found)
    model = SCHEMA.pipeline(OperaSVC(**PUBLIC)).fit(X, y)
    assert isinstance(model[:-1].transform(X), EncodedRows)
    size, here = len(pickle.dumps(model)), weakref.ref(X)
    assert size < len(pickle.dumps(clone(model))) + 5_000
    del X
    gc.collect()
    assert here() is None
    assert "Guarantee" in str(privacy_statement(model))


def count_passes(monkeypatch, model, found):
    """Fit on a table; return the model, how often its features are read, and folders of files."""
    rows, folders, read, make = [0], [], ParquetTable.read, tempfile.TemporaryFile

    def counted(self, start, stop):
        rows[0] += (stop - start) * (len(self.columns) > 1)
        return read(self, start, stop)

    with monkeypatch.context() as change:
        change.setattr(ParquetTable, "read", counted)
        note = lambda dir, **how: folders.append(dir) or make(dir=dir, **how)  # noqa: E731
        change.setattr(_kept_rows.tempfile, "TemporaryFile", note)
        fitted = clone(model).fit(found)
    return fitted, rows[0] / N, [at for at in folders if "__pycache__" not in str(at)]  # numba's


@pytest.mark.parametrize("name", ["all rows", "lots", "objective"])
def test_rows_are_encoded_twice_however_many_passes_there_are(
    monkeypatch, stored, tmp_path, tmp_path_factory, name
):
    model, found = SCHEMA.pipeline(clone(MODELS[name]).set_params(random_state=0)), stored(400)
    fitted, passes, folders = count_passes(monkeypatch, model, found)
    assert passes == 2 and folders == [tmp_path]
    assert [path.name for path in tmp_path.iterdir()] == ["0.parquet"]
    elsewhere = tmp_path_factory.mktemp("scratch")
    monkeypatch.setenv("SKDP_SCRATCH", str(elsewhere))
    assert count_passes(monkeypatch, model, found)[1:] == (2, [str(elsewhere)])
    # Without room, or without leave to write, the fit is the same to the last bit.
    monkeypatch.setenv("SKDP_SCRATCH", "0")
    others = [count_passes(monkeypatch, model, found)]
    monkeypatch.setenv("SKDP_SCRATCH", str(elsewhere / "missing"))
    others.append(count_passes(monkeypatch, model, found))
    monkeypatch.delenv("SKDP_SCRATCH")
    monkeypatch.setattr(_kept_rows.shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    others.append(count_passes(monkeypatch, model, found))
    for other, often, folders in others:
        assert often > 2 and not folders
        np.testing.assert_array_equal(weights(other[-1]), weights(fitted[-1]))


class Full(io.BytesIO):
    """A file on a disk that gets full."""

    def write(self, data):
        return super().write(memoryview(data).cast("B")[: 100_000 - self.tell()])


def test_kept_rows_are_those_that_are_made(monkeypatch, stored):
    X, _ = SCHEMA.split(stored(400))
    encoder = SCHEMA.preprocessor().fit(X)
    made = np.concatenate([block for _, _, block in encoder.transform(X).blocks()])
    source = encoder.transform(X)
    source.read(1001, 2002)  # is no pass
    for count in range(1, 4):
        assert (source._kept.rows is not None) == (count > 2)
        for start, stop, block in source.blocks():
            np.testing.assert_array_equal(block, made[start:stop])
    np.testing.assert_array_equal(source.take(np.array([0, 7, 2500])), made[[0, 7, 2500]])
    again = pickle.loads(pickle.dumps(source))
    assert again._kept.rows is None
    for _ in range(3):
        again.read(0, 5)  # begins a pass that nobody ends
    np.testing.assert_array_equal(again.in_memory(), made)
    clipped = RowNormClipper(0.5).fit_transform(again)
    for _ in range(3):
        clipped.in_memory()
    assert clipped._kept.rows is None and again._kept.rows is not None  # once is enough
    source, begun = encoder.transform(X), 2 * [(0, 1001)]
    for start, stop in begun:
        source.read(start, stop)
    with monkeypatch.context() as change:
        change.setattr(_kept_rows.os, "getpid", lambda: -1)  # as in a process that is forked here
        source.read(1001, 2002)
    source.read(2002, N)
    assert source._kept.rows is None
    np.testing.assert_array_equal(source.in_memory(), made)
    assert source._kept.rows is not None
    monkeypatch.setattr(_kept_rows.tempfile, "TemporaryFile", lambda **how: Full())
    source = encoder.transform(X)
    for _ in range(4):
        np.testing.assert_array_equal(source.in_memory(), made)
    assert source._kept.rows is None and source._kept._file is None  # which gives its room back


def test_a_table_that_changes_is_refused_though_its_rows_are_kept(monkeypatch, stored, table):
    found, carry_out = stored(400), OperaSVC._carry_out

    def change_first(self, *given):
        stored(400, table.take(np.arange(N)[::-1]))
        return carry_out(self, *given)

    monkeypatch.setattr(OperaSVC, "_carry_out", change_first)
    with pytest.raises(RowsChangedError):
        SCHEMA.pipeline(OperaSVC(**PUBLIC)).fit(found)


def test_kept_rows_of_a_table_that_changed_are_refused_before_a_charge(stored, table, tmp_path):
    X, y = SCHEMA.split(stored(400))
    rows = SCHEMA.preprocessor().fit(X).transform(X)
    for _ in range(3):
        rows.in_memory()
    assert rows._kept.rows is not None
    stored(400, table.take(np.arange(N)[::-1]))
    with BudgetAccountant(8.0, 1e-4) as budget:
        with pytest.raises(RowsChangedError):
            OperaSVC(**PUBLIC, data_norm=SCHEMA.data_norm).fit(rows, y)
        assert budget.spent() == (0.0, 0.0)
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(RowsChangedError):
        rows.take(np.array([1, 7]))


def test_equal_ids_are_one_text_in_memory(table, stored):
    names = pa.array([f"patient {k % 50}" for k in range(N)])
    place = table.column_names.index("patient")
    ids = SCHEMA.split(stored(400, table.set_column(place, "patient", names)), groups=True)[2]
    assert ids.tolist() == names.to_pylist()
    assert len(set(map(id, ids))) == 50 * 3  # of three blocks


def test_rows_are_those_of_the_files_wherever_reading_begins(table, stored):
    found, frame = stored(97, files=3), in_memory(table)
    again = pickle.loads(pickle.dumps(found))
    for source in (found[["ward", "age"]], again[["ward", "age"]]):
        for start, stop in [(0, 5), (5, 300), (1450, 1600), (2000, N), (0, N), (7, 7)]:
            pd.testing.assert_frame_equal(
                source.read(start, stop), frame[["ward", "age"]][start:stop].reset_index(drop=True)
            )
    index = np.array([3, 4, 1500, 2999])
    rows = pd.concat(list(found[["age"]].chosen(index)))["age"]
    np.testing.assert_array_equal(rows, frame["age"][index])


def test_lazy_rows_are_those_that_the_fit_at_the_time_makes(table, stored):
    clipper = RowNormClipper(0.5)
    encoded = SCHEMA.preprocessor().fit_transform(SCHEMA.split(stored(400))[0])
    clipped = clipper.fit_transform(encoded)
    clipper.set_params(norm=2.0).fit(np.asarray(encoded))
    assert np.linalg.norm(clipped, axis=1).max() <= 0.5
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clipped)), clipped)


def test_indexes_of_pandas_are_no_columns(tmp_path):
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0]}, index=[5, 3, 9])
    frame.to_parquet(tmp_path / "own.parquet")
    table = open_parquet(str(tmp_path / "own.parquet"))
    assert table.columns == ["age"] and table.shape == (3, 1)
    np.testing.assert_array_equal(table.read(1, 3)["age"], [2.0, 3.0])


def test_files_that_cannot_be_one_table_are_refused(tmp_path):
    one, other, text = (tmp_path / name for name in ("one", "other", "text"))
    with pytest.raises(ValueError, match="no file"):
        open_parquet(tmp_path)
    pq.write_table(pa.table({"age": [1, 2]}), one)
    pq.write_table(pa.table({"age": [1.0, 2.0]}), other)
    text.write_text("age\n31.4159\n")
    with pytest.raises(ValueError, match="differ in the names or the types"):
        open_parquet([one, other])
    with pytest.raises(ValueError, match="is no Parquet file"):
        open_parquet(text)
    table = open_parquet(one)
    pq.write_table(pa.table({"age": [1]}), one)
    with pytest.raises(ValueError, match="damaged, or changed in use"):
        table.read(0, 2)


@pytest.mark.parametrize("group", [65_536, 65_537, 150_000])
def test_rows_are_read_from_inside_a_long_row_group(tmp_path, group):
    numbers = np.arange(300_000)
    for k, part in enumerate(np.split(numbers, [130_000])):
        path = tmp_path / f"{k}.parquet"
        pq.write_table(pa.table({"x": part}), path, row_group_size=group)
    table = open_parquet(tmp_path)
    rng = np.random.default_rng(group)
    edges = [0, 1, 65_535, 65_536, 65_537, 131_072, 195_536, 299_999, *rng.integers(0, 300_000, 5)]
    for start in edges:
        stop = min(start + 70_000, 300_000)
        np.testing.assert_array_equal(table.read(start, stop)["x"], numbers[start:stop])
        more = min(stop + 9, 300_000)
        np.testing.assert_array_equal(table.read(stop, more)["x"], numbers[stop:more])


def test_no_row_counts_twice_and_no_file_is_left_out(table, stored, tmp_path):
    stored(400)
    folder = next(tmp_path.rglob("*.parquet")).parent
    named = sorted(folder.glob("*.parquet"))[0]
    with pytest.raises(ValueError, match="given a file twice"):
        open_parquet([folder, named])
    shutil.copy(named, folder / ".part.parquet")
    assert len(open_parquet(folder).read(0, N)) == N
    (folder / "more").mkdir()
    shutil.copy(named, folder / "more" / "x.parquet")
    with pytest.raises(ValueError, match="subfolders with Parquet files"):
        open_parquet(folder)


def test_ids_reach_all_that_learns_from_rows_or_the_table_is_refused(table, stored):
    found, budget = stored(400), BudgetAccountant(9.0, 0.1)
    private = OperaSVC(**PUBLIC, accountant=budget)
    with pytest.raises(ValueError, match="ids do not reach the inner steps of step 'gridsearchcv'"):
        SCHEMA.pipeline(GridSearchCV(private, {"alpha": [0.1, 1.0]})).fit(found)
    with pytest.raises(ValueError, match="and also ids for all steps"):
        SCHEMA.pipeline(private).fit(found, operasvc__groups=np.arange(N))
    nameless = SCHEMA.replace(unit=PrivacyUnit("person", column="person"))
    with pytest.raises(SchemaError, match="not in the schema"):
        nameless.pipeline(private).fit(found)
    assert not budget.entries()
    scaler = DPStandardScaler(**PUBLIC, lower=-1.0, upper=1.0, accountant=budget)
    model = SCHEMA.pipeline(make_pipeline(scaler, private.set_params(data_norm=1.0))).fit(found)
    assert {step.privacy_spent_.unit for _, step in model[-1].steps} == {"group"}
