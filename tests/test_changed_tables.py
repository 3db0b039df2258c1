"""A table that changes in use is refused after its charge, whatever reads it."""

import os
import time
from functools import partial

import numpy as np
import pytest
from covering import pairs
from models_by_blocks import MODELS, N_COLUMNS, N_ROWS, PUBLIC, make_table
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import skdp.tables._partitions as partitions
import skdp.tables.row_sources as row_sources
from skdp import (
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
    PATEClassifier,
)
from skdp.budget import BudgetAccountant
from skdp.data import open_parquet
from skdp.exceptions import RowsChangedError
from skdp.inference import PrivateInference
from skdp.metrics import (
    PrivateCalibrator,
    PrivateEvaluation,
    PrivateRegressionEvaluation,
    PrivateThreshold,
)
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    DPPCA,
    CategoricalColumn,
    DPQuantileClipper,
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
)
from skdp.statistics import private_contingency_table, private_table_one
from skdp.tables.digests import Digester

BUDGET = {"epsilon": 50.0, "delta": 0.1}
N_PARTS = 5
CHANGES = ["partitions", "rows", "labels", "ids"]
# How often a source gives the same before it changes: split or first pass, and some later one.
STEADY = [1, 2, 3]
TRANSFORMERS = {
    "standard": DPStandardScaler(epsilon=0.5, lower=-4.0, upper=4.0),
    "bounded rows": DPStandardScaler(epsilon=0.5, input_norm=2.0),
    "quantiles": DPQuantileClipper(epsilon=0.5),
    "directions": DPPCA(2, epsilon=0.5, data_norm=3.0),
}


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(partitions, "_FEWEST_ROWS", 13)
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", 1)
    monkeypatch.setattr(row_sources, "BLOCK_BYTES", 8 * N_COLUMNS * 100)


class Source:
    """Columns in partitions that come in another way each time they are computed."""

    def __init__(self, columns, change, steady=1):
        self.columns, self.change, self.steady = columns, change, steady
        self.calls = [0] * N_PARTS
        self.rng = np.random.default_rng(0)

    def load(self, k):
        late = max(0, self.calls[k] + 1 - self.steady)
        self.calls[k] += 1
        n_rows = len(self.columns["label"]) // N_PARTS
        own = (k + late) % N_PARTS if self.change == "partitions" else k
        found = {
            name: column[own * n_rows : (own + 1) * n_rows].copy()
            for name, column in self.columns.items()
        }
        if late and self.change == "rows":
            order = self.rng.permutation(n_rows)
            return {name: column[order] for name, column in found.items()}
        if late and self.change in ("labels", "ids"):
            name = self.change[:-1]
            found[name][[0, n_rows - 1]] = found[name][[n_rows - 1, 0]]
            if self.change == "labels":
                found[name][7] = 1 - found[name][7]
            else:
                found[name][7] += 1000 * late
        return found


def columns_of(table):
    X, y = table
    return {"rows": X, "label": y, "id": np.arange(N_ROWS) * 7 % 900}


def arrays(source):
    """Return rows, labels and ids whose partitions are made by one task each."""
    da = pytest.importorskip("dask.array", reason="needs dask")
    from dask import delayed

    loaded = [delayed(source.load, pure=False)(k) for k in range(N_PARTS)]
    found = []
    for name, column in source.columns.items():
        shape = (len(column) // N_PARTS, *column.shape[1:])
        parts = [da.from_delayed(part[name], shape, column.dtype) for part in loaded]
        found.append(da.concatenate(parts))
    return found


def frame_of(source, made_by):
    """Return a frame of Dask, made in one of the ways that let it read some columns only."""
    pd = pytest.importorskip("pandas", reason="needs pandas")
    dd = pytest.importorskip("dask.dataframe", reason="needs dask's frames")
    from dask import delayed

    def load(k, columns=None):
        found = source.load(k)
        rows = {f"x{j}": found["rows"][:, j] for j in range(N_COLUMNS)}
        frame = pd.DataFrame({**rows, "label": found["label"], "id": found["id"]})
        return frame if columns is None else frame[columns]

    meta = load(0).iloc[:0]
    source.calls = [0] * N_PARTS
    if made_by == "delayed":
        tasks = [delayed(load, pure=False)(k) for k in range(N_PARTS)]
        return dd.from_delayed(tasks, meta=meta)
    return dd.from_map(load, range(N_PARTS), meta=meta)


SCHEMA = TableSchema(
    [NumericColumn(f"x{j}", -4, 4) for j in range(N_COLUMNS)],
    label=LabelColumn("label", [0, 1]),
    unit=PrivacyUnit("person", column="id"),
)


@pytest.fixture
def refuses(monkeypatch):
    """Return a function that expects a call to be refused soon, with one charge."""
    dask = pytest.importorskip("dask", reason="needs dask")

    def check(call):
        start = time.monotonic()
        with dask.config.set(scheduler="synchronous"), BudgetAccountant(**BUDGET) as budget:
            with pytest.raises(RowsChangedError, match="persist") as caught:
                call()
            assert len(budget.entries()) == 1
        assert caught.value.__context__ is None or "x0" not in str(caught.value.__context__)
        assert time.monotonic() - start < 20.0

    return check


@pytest.mark.parametrize(("change", "steady"), pairs(CHANGES, STEADY))
def test_arrays_of_dask_that_change_are_refused(table, refuses, change, steady):
    rows, labels, ids = arrays(Source(columns_of(table), change, steady))
    model = OperaLogisticRegression(**PUBLIC, classes=[0, 1])
    refuses(lambda: model.fit(rows, labels, groups=ids))
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("name", MODELS)
def test_no_model_learns_from_rows_that_change(table, refuses, name):
    rows = arrays(Source(columns_of(table), "rows"))[0]
    refuses(lambda: clone(MODELS[name]).fit(rows, table[1]))


@pytest.mark.parametrize(
    ("name", "change"), [*((name, "rows") for name in TRANSFORMERS), ("standard", "ids")]
)
def test_no_transformer_learns_from_rows_that_change(table, refuses, name, change):
    rows, _, ids = arrays(Source(columns_of(table), change))
    transformer = clone(TRANSFORMERS[name])
    refuses(lambda: transformer.fit(rows, groups=ids))
    assert not [name for name in vars(transformer) if name.endswith("_")]


@pytest.mark.parametrize(
    ("change", "steady", "made_by"),
    [("partitions", 1, "map"), ("rows", 2, "delayed"), ("labels", 3, "map"), ("ids", 1, "delayed")],
)
def test_frames_that_change_are_refused(table, refuses, change, steady, made_by):
    frame = frame_of(Source(columns_of(table), change, steady), made_by)
    model = SCHEMA.pipeline(ObjectivePerturbationLogisticRegression(epsilon=1.0))
    refuses(lambda: model.fit(frame))


@pytest.mark.parametrize("made_by", ["delayed", "map"])
def test_labels_and_ids_of_a_frame_are_those_of_its_rows(table, made_by):
    dask = pytest.importorskip("dask", reason="needs dask")
    columns = columns_of(table)
    source = Source({**columns, "label": columns["id"] % 2, "id": columns["id"]}, "rows", 0)
    frame = frame_of(source, made_by)
    with dask.config.set(scheduler="synchronous"):
        X, y, ids = SCHEMA.split(frame, groups=True)
        np.testing.assert_array_equal(ids % 2, y)
        with pytest.raises(RowsChangedError):
            X.compute()


EVALUATIONS = {
    "evaluation": lambda m, X, y, g: PrivateEvaluation().evaluate(m, X, y, groups=g),
    "inference": lambda m, X, y, g: PrivateInference().evaluate(m, X, y, groups=g),
    "subgroups": lambda m, X, y, g: PrivateEvaluation(subgroups=[0, 1]).evaluate(
        m, X, y, subgroups=y
    ),
    "calibrator": lambda m, X, y, g: PrivateCalibrator(m).fit(X, y),
    "threshold": lambda m, X, y, g: PrivateThreshold(m).fit(X, y),
}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, "rows") for name in EVALUATIONS),
        *((name, "labels") for name in ("evaluation", "inference")),
    ],
)
def test_evaluations_refuse_rows_that_change(table, refuses, name, change):
    model = OperaLogisticRegression(**PUBLIC, random_state=0).fit(*table)
    rows, labels, ids = arrays(Source(columns_of(table), change))
    refuses(lambda: EVALUATIONS[name](model, rows, labels, ids))


@pytest.mark.parametrize("change", ["partitions", "ids"])
def test_evaluations_of_frames_refuse_rows_that_change(table, refuses, change):
    model = SCHEMA.pipeline(OperaLogisticRegression(epsilon=1.0, random_state=0))
    names = [f"x{j}" for j in range(N_COLUMNS)]
    pd = pytest.importorskip("pandas", reason="needs pandas")
    model.fit(pd.DataFrame(table[0], columns=names), table[1])
    frame = frame_of(Source(columns_of(table), change), "map")
    given = frame[names], frame["label"]
    for evaluation in (PrivateEvaluation(), PrivateInference()):
        refuses(partial(evaluation.evaluate, model, *given, groups=frame["id"]))


def test_regressions_are_evaluated_on_one_table(table, refuses):
    model = clone(MODELS["moments"]).fit(*table)
    rows, labels, _ = arrays(Source(columns_of(table), "rows"))
    evaluation = PrivateRegressionEvaluation(target_bounds=(0.0, 1.0))
    refuses(lambda: evaluation.evaluate(model, rows, labels))


@pytest.mark.parametrize("made_by", ["delayed", "map"])
def test_statistics_read_all_columns_of_a_row_at_once(made_by):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    codes = np.arange(N_ROWS) % 3
    source = Source({"rows": np.zeros((N_ROWS, N_COLUMNS)), "label": codes, "id": codes}, "rows", 0)
    frame = frame_of(source, made_by)
    both = [CategoricalColumn(name, [0, 1, 2]) for name in ("label", "id")]
    known = {"schema": TableSchema(both), "epsilon": 1e5, "random_state": 0}
    counts = private_contingency_table(frame[["label", "id"]], **known)
    np.testing.assert_array_equal(counts.values, np.diag(np.bincount(codes)))
    counts = private_contingency_table([frame["label"], frame["id"]], **known)
    np.testing.assert_array_equal(counts.values, np.diag(np.bincount(codes)))
    schema = known.pop("schema")
    own = private_table_one(frame[["label", "id"]], schema, by="label", **known)
    whole = pd.DataFrame({"label": codes, "id": codes})
    assert str(own) == str(private_table_one(whole, schema, by="label", **known))


FITTED_IN_MEMORY = {
    "search": lambda: PrivateGridSearchCV(
        OperaLogisticRegression(**PUBLIC, classes=[0, 1]), {"alpha": [0.1, 1.0]}
    ),
    "votes": lambda: PATEClassifier(LogisticRegression(), n_teachers=5, epsilon=5.0),
}


@pytest.mark.parametrize("name", FITTED_IN_MEMORY)
@pytest.mark.parametrize("change", ["partitions", "rows"])
def test_what_is_brought_into_memory_is_read_in_one_computation(table, name, change, monkeypatch):
    dask = pytest.importorskip("dask", reason="needs dask")
    numbers = np.arange(N_ROWS)
    X = np.column_stack([numbers, np.zeros((N_ROWS, N_COLUMNS - 1))])
    source = Source({"rows": X, "label": numbers % 2, "id": numbers // 2}, change, 0)
    rows, labels, ids = arrays(source)
    model, found = FITTED_IN_MEMORY[name](), {}
    public = {"X_public": X[:5]} if name == "votes" else {}
    monkeypatch.setattr(type(model), "_use_rows", lambda self, plan, table, progress: found)
    monkeypatch.setattr(
        type(model), "_publish", lambda self, plan, table, *_: found.update(t=table)
    )
    with dask.config.set(scheduler="synchronous"):
        model.fit(rows, labels, groups=ids, **public)
    read = found["t"]
    np.testing.assert_array_equal(read.X[:, 0] % 2, read.targets)
    of_rows = read.units.codes
    for unit in range(of_rows.max() + 1):
        assert np.unique(read.X[of_rows == unit, 0] // 2).size == 1
    assert any("workers of Dask" in text for text in model.privacy_spent_.assumptions)


def test_persisted_tables_and_steady_ones_are_taken(table):
    dask = pytest.importorskip("dask", reason="needs dask")
    model = OperaLogisticRegression(**PUBLIC, classes=[0, 1], random_state=0)
    expected = clone(model).fit(*table, groups=columns_of(table)["id"])
    rows, labels, ids = dask.persist(*arrays(Source(columns_of(table), "partitions", 99)))
    found = clone(model).fit(rows, labels, groups=ids)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)


# Files.


def put_back(path, stamp):
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def changes_later(monkeypatch, change, after=1):
    """Have a file change when a fit has read its rows so many times."""
    once = row_sources.BlockTable.map
    seen = []

    def watched(self, *given, **options):
        seen.append(1)
        if len(seen) == after:
            change()
        return once(self, *given, **options)

    monkeypatch.setattr(row_sources.BlockTable, "map", watched)


@pytest.mark.parametrize(
    ("name", "layout", "whole"),
    pairs(list(MODELS), ["dense", "Fortran", "csr"], [True, False]),
)
def test_mapped_files_that_change_are_refused(
    table, tmp_path, monkeypatch, refuses, name, layout, whole
):
    if whole:
        monkeypatch.undo()
    else:
        monkeypatch.setattr(row_sources, "WHOLE_BYTES", 0)
    X = sparse.csr_array(table[0]) if layout == "csr" else table[0]
    X = np.asfortranarray(X) if layout == "Fortran" else X
    path = tmp_path / "X.npy"
    np.save(path, X.data if layout == "csr" else X)
    rows = np.load(path, mmap_mode="r")
    stamp = path.stat()

    def change():
        written = np.load(path, mmap_mode="r+")
        last = (-1,) * written.ndim
        written[last] += 1.0
        written.flush()
        put_back(path, stamp)

    if layout == "csr":
        rows = sparse.csr_array((rows, X.indices, X.indptr), shape=X.shape)
    changes_later(monkeypatch, change)
    refuses(lambda: clone(MODELS[name]).fit(rows, table[1]))


def test_transformers_refuse_mapped_files_that_change(table, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", table[0])
    rows = np.load(tmp_path / "X.npy", mmap_mode="r+")
    scaler = clone(TRANSFORMERS["standard"])
    learn = type(scaler)._learn

    def learn_and_change(self, *given):
        learn(self, *given)
        rows[0, 0] += 1.0

    monkeypatch.setattr(type(scaler), "_learn", learn_and_change)
    budget = BudgetAccountant(**BUDGET)
    with pytest.raises(RowsChangedError):
        scaler.set_params(accountant=budget).fit(rows)
    assert len(budget.entries()) == 1 and not hasattr(scaler, "mean_")


@pytest.fixture
def stored(table, tmp_path):
    """Return the path of a Parquet file, and a function that writes others of its length."""
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    X, y = table
    columns = {f"x{j}": X[:, j] for j in range(N_COLUMNS)}
    whole = pa.table({**columns, "label": y, "id": np.arange(N_ROWS) * 7 % 900})
    path = tmp_path / "table.parquet"

    def write(found=whole):
        plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
        pq.write_table(found, path, row_group_size=400, **plain)

    write()
    return path, whole, write


def change_one_cell(path):
    """Write another number where one is stored, and put size and times of writing back."""
    stamp, held = path.stat(), bytearray(path.read_bytes())
    place = len(held) // 2
    held[place] ^= 1
    with open(path, "r+b") as file:
        file.write(held)
    put_back(path, stamp)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (stamp.st_size, stamp.st_mtime_ns)


@pytest.mark.parametrize(("after", "stamped"), [(1, False), (2, True), (3, False)])
def test_parquet_files_rewritten_with_equal_length_are_refused(
    stored, monkeypatch, refuses, after, stamped
):
    import skdp.data.parquet as parquet

    if not stamped:  # where no stamp tells
        monkeypatch.setattr(parquet, "_stamp", lambda path: (path.stat().st_size,))
    monkeypatch.setattr(row_sources, "WHOLE_BYTES", 0)
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", 1000)
    model = SCHEMA.pipeline(ObjectivePerturbationLogisticRegression(epsilon=1.0))
    changes_later(monkeypatch, lambda: change_one_cell(stored[0]), after + 2)  # behind the split
    refuses(lambda: model.fit(open_parquet(stored[0])))


def test_parquet_files_that_are_replaced_are_refused(stored, tmp_path):
    path, whole, write = stored
    table = open_parquet(path)
    first = table.read(0, 5)
    other = tmp_path / "other"
    stamp = path.stat()
    os.link(path, other)  # a second name changes no byte
    assert table.read(0, 5).equals(first)
    path.unlink()
    write(whole.take(np.arange(N_ROWS)[::-1]))
    put_back(path, stamp)
    with pytest.raises(RowsChangedError):
        table.read(0, 5)
    path.unlink()
    os.rename(other, path)
    assert table.read(0, 5).equals(first)


def test_a_small_parquet_table_is_read_once_or_refused(stored, monkeypatch):
    import skdp.data.parquet as parquet

    monkeypatch.setattr(parquet, "_stamp", lambda path: 0)
    X, _ = SCHEMA.split(open_parquet(stored[0]))
    change_one_cell(stored[0])
    with pytest.raises(RowsChangedError):
        SCHEMA.preprocessor().fit_transform(X)


def test_checksums_of_pages_are_checked(stored):
    pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    path, whole, _ = stored
    pq.write_table(whole, path, compression="none", use_dictionary=False, write_page_checksum=True)
    change_one_cell(path)
    with pytest.raises(RowsChangedError):
        open_parquet(path).read(0, N_ROWS)


# Digests.


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((700, 3)),
        lambda: np.zeros((700, 3), np.float32),
        lambda: np.zeros((1, 5), np.int8),
        lambda: np.zeros((2000, 7), order="F"),
        lambda: np.zeros((4000, 7))[::2],
    ],
)
def test_a_digest_tells_each_bit_and_each_order(make):
    digester, rng = Digester(), np.random.default_rng(0)
    known = digester.digest(make())
    assert digester.digest(make()) == known and Digester().digest(make()) != known
    for _ in range(200):
        other = make()
        at = tuple(rng.integers(0, size) for size in other.shape)
        one = other[at : at + 1] if other.ndim == 0 else other[at].reshape(1).copy()
        one.view(np.uint8)[rng.integers(0, one.nbytes)] ^= 1 << rng.integers(0, 8)
        other[at] = one[0]
        assert digester.digest(other) != known
    rows = rng.integers(0, 9, size=make().shape).astype(make().dtype)
    found = {digester.digest(rows[rng.permutation(len(rows))]) for _ in range(50)}
    assert len(rows) == 1 or len(found) == 50


def test_digests_of_memory_that_is_filled_anew_are_taken_anew():
    digester = Digester()
    memory = np.zeros((5000, 4))
    first = digester.digest_again(memory)
    assert digester.digest_again(memory[:]) == digester.digest(memory) == first
    memory[:] = np.random.default_rng(0).normal(size=memory.shape)
    assert digester.digest_again(memory) == digester.digest(memory) != first
    assert digester.digest_again(memory[:2500]) == digester.digest(memory[:2500].copy())


def test_partitions_that_share_their_memory_are_told_apart(table, refuses):
    da = pytest.importorskip("dask.array", reason="needs dask")
    from dask import delayed

    source, memory = Source(columns_of(table), "rows"), np.empty((N_ROWS // N_PARTS, N_COLUMNS))

    def fill(k):
        memory[:] = source.load(k)["rows"]
        return memory

    parts = [delayed(fill, pure=False)(k) for k in range(N_PARTS)]
    rows = da.concatenate([da.from_delayed(part, memory.shape, float) for part in parts])
    refuses(lambda: OperaLogisticRegression(**PUBLIC).fit(rows, table[1]))


def test_digests_of_frames_tell_cells_of_any_type():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    digester = Digester()
    columns = {
        "number": pd.Series([1.0, 2.0, np.nan]),
        "text": pd.Series(["a", "b", None]),
        "object": pd.Series([1, "b", None], dtype=object),
        "category": pd.Series(["a", "b", "a"], dtype="category"),
        "time": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", None])),
        "list": pd.Series([[1], [2], [3]]),
    }
    for name, column in columns.items():
        frame = pd.DataFrame({"x": [0.0, 0.0, 0.0], name: column})
        known = digester.digest(frame)
        assert digester.digest(frame.copy()) == known
        assert digester.digest(frame.set_index(pd.Index([7, 8, 9]))) == known
        assert digester.digest(frame.iloc[[1, 0, 2]]) != known
        assert digester.digest(frame.iloc[:2]) != known


def test_digests_tell_names_of_columns_and_take_them_in_any_order():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    digester, frame = Digester(), pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], 1: ["x", "y"]})
    known = digester.digest(frame)
    assert digester.digest(frame.rename(columns={"a": "b", "b": "a"})) != known
    assert digester.digest(frame[["b", 1, "a"]]) == known


def test_digests_tell_rows_from_columns_however_an_array_lies_in_memory():
    digester, table = Digester(), np.random.default_rng(0).normal(size=(600, 600))
    known = digester.digest(table)
    assert digester.digest(np.asfortranarray(table)) == known
    assert digester.digest(np.asfortranarray(table.T)) != known


@pytest.mark.parametrize(
    "pair", [(1, "1"), (1, True), (b"a", "a"), (1, 1.0), (None, "None"), (0.0, False)]
)
def test_digests_tell_objects_of_two_kinds_apart(pair):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    digester, columns = Digester(), []
    for cells in (pair, pair[::-1], pair):
        columns.append(np.array([None, None, "x"], dtype=object))
        columns[-1][:2] = cells
    one, turned, again = (digester.digest(column) for column in columns)
    assert one == again != turned
    assert digester.digest(pd.Series(columns[0])) == one != digester.digest(pd.Series(columns[1]))


def test_memory_between_long_numbers_decides_nothing():
    digester, numbers = Digester(), np.arange(1, 700, dtype=np.longdouble) / 3
    for filled in (0, 255):
        memory = np.full(numbers.nbytes, filled, np.uint8).view(np.longdouble)
        np.add(numbers, 0, out=memory)
        assert digester.digest(memory) == digester.digest(numbers)
    other = numbers.copy()
    other[7] = np.nextafter(other[7], np.longdouble(np.inf))
    assert digester.digest(other) != digester.digest(numbers)
