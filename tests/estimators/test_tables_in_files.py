"""Tables in files give what the same tables in memory give, block by block and without a copy."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from models_by_blocks import MODELS, N_COLUMNS, N_ROWS, PUBLIC, make_table, weights
from scipy import sparse
from sklearn.base import clone

import skdp.tables.row_sources as row_sources
from skdp import GrpuaLogisticRegression, OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.metrics import PrivateEvaluation, PrivateRegressionEvaluation
from skdp.tables.row_sources import MappedRows, mapped_rows
from skdp.testing.replay import fit_frozen


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture
def on_disk(tmp_path):
    """Return a function that maps an array or a CSR matrix from files, not to be written to."""

    def write(X, mode="r"):
        if sparse.issparse(X):
            parts = (write(part) for part in (X.data, X.indices, X.indptr))
            return type(X)(tuple(parts), shape=X.shape)
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, X)
        return np.load(path, mmap_mode=mode)

    return write


def read_by(monkeypatch, rows):
    """Have blocks of about so many dense rows of float64; None leaves files whole."""
    if rows is not None:
        monkeypatch.setattr(row_sources, "WHOLE_BYTES", 0)
        monkeypatch.setattr(row_sources, "FEWEST_ROWS", 288)
        monkeypatch.setattr(row_sources, "BLOCK_BYTES", 8 * N_COLUMNS * rows)


LAYOUTS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "Fortran": np.asfortranarray,
    "csr": sparse.csr_array,
}


@pytest.mark.daily(6)
@pytest.mark.parametrize(("name", "layout"), zip(MODELS, itertools.cycle(LAYOUTS), strict=False))
def test_blocks_of_any_size_give_what_memory_gives(monkeypatch, table, on_disk, name, layout):
    X, y = LAYOUTS[layout](table[0]), table[1]
    expected = fit_frozen(clone(MODELS[name]), X, y).fitted
    stored = on_disk(X), on_disk(y)
    # Networks of float32 rows are computed in float32, and round by a row's place in its block.
    close = 1e-5 if "network" in name and layout == "float32" else 1e-12
    for rows in (None, 288, 1000) if layout == "float64" else (288,):
        read_by(monkeypatch, rows)
        found = fit_frozen(clone(MODELS[name]), *stored).fitted
        limit = 0.0 if rows is None else close
        gap = np.abs(weights(found) - weights(expected)).max()
        assert gap <= limit * np.abs(weights(expected)).max()
    one, other = (getattr(m, "decision_function", m.predict) for m in (expected, found))
    scores = one(np.array(X) if layout != "csr" else X)
    np.testing.assert_allclose(other(stored[0]), scores, rtol=1e3 * close)


def test_single_precision_does_not_round_by_the_number_of_entries(monkeypatch, table, on_disk):
    X, y = sparse.csr_array(table[0].astype(np.float32)), table[1]
    model = MODELS["momentum, network"]
    expected = fit_frozen(clone(model), X.astype(np.float64), y).fitted
    read_by(monkeypatch, 288)
    found = fit_frozen(clone(model), on_disk(X), y).fitted
    np.testing.assert_allclose(weights(found), weights(expected), rtol=1e-9)


def test_wider_numbers_are_converted_unheard(table, on_disk):
    X = table[0].astype(np.longdouble)
    X[5, 1] = np.ldexp(np.longdouble(1), -1200)  # 0 in double precision
    with np.errstate(all="raise"):
        found = mapped_rows(on_disk(X)).read(0, 9)
    assert np.array_equal(found, X[:9].astype(float))


def test_seeds_groups_and_three_classes_are_as_in_memory(monkeypatch, table, on_disk):
    X, y = table[0], np.digitize(table[0][:, 1], [-0.2, 0.4])
    groups = np.arange(N_ROWS) * 7 % 900
    read_by(monkeypatch, 288)
    for model in (MODELS["output"], MODELS["small lots"]):
        seeded = clone(model).set_params(random_state=3)
        one, other = (clone(seeded).fit(table, y, groups=groups) for table in (X, on_disk(X)))
        np.testing.assert_allclose(weights(other), weights(one), rtol=1e-11)


def test_what_is_in_memory_already_or_copied_on_write_is_not_read_in_blocks(table, on_disk):
    X = table[0]
    assert mapped_rows(X) is None and mapped_rows(sparse.csr_array(X)) is None
    assert mapped_rows(on_disk(X)[[3, 1]]) is None
    copied = on_disk(X, "c")
    copied[0] = 9.0  # would be forgotten with the pages
    assert mapped_rows(copied) is None
    assert isinstance(mapped_rows(on_disk(X)[5:50]), MappedRows)


@pytest.mark.parametrize(
    ("bad", "words"), [([np.inf], "infinity"), ([np.inf, np.nan], "NaN"), ([np.nan], "NaN")]
)
@pytest.mark.parametrize("layout", ["float64", "csr"])
def test_bad_rows_are_refused_before_a_charge_with_the_same_words(
    monkeypatch, table, on_disk, bad, words, layout
):
    X = table[0].copy()
    for k, value in enumerate(bad):
        X[600 + 900 * k, 1] = value
    X = LAYOUTS[layout](X)
    read_by(monkeypatch, 288)
    budget = BudgetAccountant(epsilon=1.0, delta=1e-3)
    messages = []
    for rows in (X, on_disk(X)):
        with pytest.raises(ValueError, match=words) as caught:
            OperaLogisticRegression(**PUBLIC, accountant=budget).fit(rows, table[1])
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert budget.spent() == (0.0, 0.0)


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_damaged_and_duplicate_entries_are_found_in_blocks(monkeypatch, table, on_disk, part):
    read_by(monkeypatch, 288)
    X = sparse.csr_array(table[0])
    twice = sparse.csr_array(  # every entry in two halves
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape
    )
    one, other = (
        fit_frozen(clone(MODELS["output"]), rows, table[1]).fitted for rows in (X, on_disk(twice))
    )
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-11)
    stored = on_disk(X)
    damaged = getattr(X, part).copy()
    damaged[1500] = 10**6
    setattr(stored, part, on_disk(damaged))
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        clone(MODELS["output"]).fit(stored, table[1])


def test_calibrated_fits_and_evaluations_stream(monkeypatch, table, on_disk):
    X, y = table
    model = GrpuaLogisticRegression(**PUBLIC, max_iter=5, calibrate="private")
    one = fit_frozen(clone(model), X, y).fitted
    figures = PrivateEvaluation(random_state=0).evaluate(one, X, y)
    read_by(monkeypatch, 288)
    other = fit_frozen(clone(model), on_disk(X), y).fitted
    np.testing.assert_allclose(other.calibration_, one.calibration_, rtol=1e-10)
    seen = []
    monkeypatch.setattr(
        MappedRows, "raw", lambda self, *at, raw=MappedRows.raw: seen.append(at) or raw(self, *at)
    )
    streamed = PrivateEvaluation(random_state=0).evaluate(one, on_disk(X), y)
    assert float(streamed.roc_auc) == float(figures.roc_auc)
    assert max(stop - start for start, stop in seen) == 288


class OfWholeNumbers:
    """A model that looks numbers up, and takes ``*`` of a sparse matrix for a product."""

    def predict(self, X):
        return np.arange(9.0)[X * np.ones(N_COLUMNS, int) if sparse.issparse(X) else X[:, 0]]


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_evaluated_models_are_given_tables_of_their_kind(monkeypatch, table, on_disk, layout):
    X = layout(np.abs(table[0] > 0.5).astype(np.int64))
    read_by(monkeypatch, 288)
    evaluation = PrivateRegressionEvaluation(target_bounds=(0.0, 1.0), random_state=0)
    one, other = (evaluation.evaluate(OfWholeNumbers(), rows, table[1]) for rows in (X, on_disk(X)))
    assert float(one.mean_absolute_error) == float(other.mean_absolute_error)


_CHILD = """
import sys, threading, time
import numpy as np
from skdp import DPSGDClassifier, ObjectivePerturbationLogisticRegression, OperaLogisticRegression
from skdp.tables import row_sources
row_sources.WHOLE_BYTES = 0
X, y = (np.load(path, mmap_mode="r") for path in sys.argv[1:])
def resident():
    lines = [line.split() for line in open("/proc/self/status") if "Rss" in line or "VmRSS" in line]
    return {name: int(size) // 1024 for name, size, _ in lines}
public = dict(epsilon=1.0, data_norm=1.0)
def models(n):
    yield OperaLogisticRegression(**public)
    yield ObjectivePerturbationLogisticRegression(**public)
    yield DPSGDClassifier(**public, batch_size=n // 50, max_iter=50)
for model in models(9000):  # loads and compiles
    model.fit(np.array(X[:9000]), np.array(y[:9000])).predict_proba(np.array(X[:9]))
start, peak, done = resident(), {}, []
def watch():
    while not done:
        for name, size in resident().items():
            peak[name] = max(peak.get(name, 0), size - start[name])
        time.sleep(0.002)
thread = threading.Thread(target=watch); thread.start()
for model in models(len(X)):
    model.fit(X, y)
done.append(True); thread.join()
print(peak["RssAnon:"], peak["VmRSS:"])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
def test_fits_keep_neither_a_copy_nor_the_mapped_file_in_memory(tmp_path):
    n_rows, rng = 5_000_000, np.random.default_rng(0)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (n_rows, 20))  # 400 MB
    for start in range(0, n_rows, 100_000):
        X[start : start + 100_000] = rng.normal(size=(100_000, 20)) / 5
    np.save(tmp_path / "y.npy", (X[:, 0] > 0.1).astype(np.int8))
    X.flush()
    command = [sys.executable, "-W", "ignore", "-c", _CHILD, tmp_path / "X.npy", tmp_path / "y.npy"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    anonymous, resident = map(int, found.split())
    assert anonymous < 150 and resident < 250
