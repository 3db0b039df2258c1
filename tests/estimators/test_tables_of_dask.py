"""Tables of dask give what the same tables in memory give, whatever workers do."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from models_by_blocks import MODELS, N_COLUMNS, N_ROWS, PUBLIC, make_table, weights
from sklearn.base import clone

import skdp.tables._partitions as partitions
import skdp.tables.row_sources as row_sources
from skdp import DPSGDClassifier, GrpuaLogisticRegression, OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.exceptions import BudgetExceededError
from skdp.losses import ClippedLoss, LogisticLoss, SoftmaxLoss
from skdp.metrics import PrivateEvaluation
from skdp.solvers import RegularisedObjective, Rows
from skdp.tables.places import row_source
from skdp.testing.replay import fit_frozen

da = pytest.importorskip("dask.array", reason="needs dask")
MODELS = {
    **MODELS,
    "three classes": GrpuaLogisticRegression(**PUBLIC, max_iter=5, classes=[0, 1, 2]),
    "calibrated": GrpuaLogisticRegression(**PUBLIC, max_iter=5, calibrate="private"),
}


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch):
    """Let partitions be as small as tests have them, and few rows be brought here at once."""
    monkeypatch.setattr(partitions, "_FEWEST_ROWS", 13)
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", 1)
    monkeypatch.setattr(row_sources, "BLOCK_BYTES", 8 * N_COLUMNS * 100)


def cut(X, count, columns=2):
    """Return an array of dask of so many partitions, whose columns are cut as well."""
    return da.from_array(X, chunks=(-(-len(X) // count), columns))


def by_hand(X, *sizes, declared=None, dtype=float):
    """Return an array of dask whose blocks are what they are, whatever it declares."""
    from dask import delayed

    ends = np.cumsum(sizes)
    blocks = [delayed(block) for block in np.split(X, ends[:-1])]
    shapes = zip(blocks, declared or sizes, strict=True)
    return da.concatenate(
        [da.from_delayed(block, (size, X.shape[1]), dtype) for block, size in shapes]
    )


@pytest.mark.daily(5)
@pytest.mark.parametrize("count", [7, 200])
@pytest.mark.parametrize("name", MODELS)
def test_any_number_of_partitions_gives_what_memory_gives(table, name, count):
    X, y = table
    expected = fit_frozen(clone(MODELS[name]), X, y).fitted
    rows = cut(X, count)
    found = fit_frozen(clone(MODELS[name]), rows, da.from_array(y, chunks=400)).fitted
    gap = np.abs(weights(found) - weights(expected)).max()
    assert gap <= 1e-10 * np.abs(weights(expected)).max()
    for method in ("predict", "predict_proba", "decision_function", "predict_interval"):
        if hasattr(found, method):
            lazy, known = getattr(found, method)(rows), getattr(found, method)(X)
            assert isinstance(lazy, da.Array) and lazy.shape == known.shape
            assert lazy.dtype == known.dtype and lazy.numblocks[0] == rows.numblocks[0]
            close = {} if known.dtype.kind in "iu" else {"rtol": 1e-9, "atol": 1e-12}
            np.testing.assert_allclose(lazy.compute(), known, **close)


@pytest.mark.parametrize("weighting", ["random-row", "mean"])
def test_seeds_and_patients_that_span_partitions_are_as_in_memory(table, weighting):
    X, y = table
    groups = np.arange(N_ROWS) * 7 % 900  # no id has its rows in one partition
    given = {"unit_weighting": weighting, "random_state": 3}
    models = [clone(MODELS[name]).set_params(**given) for name in ("output", "large lots")]
    models[1].set_params(batch_size=700)
    if weighting == "mean":
        models[1].set_params(max_unit_rows=2, hidden_layer_sizes=(3,))
    for model in models:
        one = clone(model).fit(X, y, groups=groups)
        other = clone(model).fit(cut(X, 9), y, groups=da.from_array(groups, chunks=700))
        np.testing.assert_allclose(weights(other), weights(one), rtol=1e-10)
        assert other.privacy_spent_.unit == "group"


def test_other_types_unknown_sizes_and_empty_partitions_are_taken(table):
    X, y = table
    whole = np.round(4 * X).astype(np.int16)
    expected = fit_frozen(clone(MODELS["output"]), whole.astype(float), y).fitted
    rows = by_hand(whole, 900, 0, 1700, dtype=np.int16)
    for lazy in (rows, rows[rows[:, 0] > -(10**4)]):
        found = fit_frozen(clone(MODELS["output"]), lazy, y).fitted
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
        np.testing.assert_array_equal(found.predict(lazy), expected.predict(whole))
    assert np.isnan(rows[rows[:, 0] > 0].shape[0])  # what was given is as it was


def test_rows_are_found_by_their_numbers_and_numbers_of_numbers(table):
    X = table[0]
    rows = row_source(cut(X, 5))
    index = np.array([7, 7, 2000, 13, 2599])
    assert np.array_equal(rows.take(np.sort(index)), X[np.sort(index)])
    chosen = rows[index]
    assert np.array_equal(chosen[0:5], X[index])
    assert np.array_equal(chosen[np.array([4, 0])][0:2], X[index[[4, 0]]])


def seen(block, chosen, *columns):
    """Return numbers of rows, which they hold, and what came with them."""
    chosen = slice(None) if chosen is None else chosen
    return np.column_stack([block[chosen, 0], *(column[chosen] for column in columns)])


@pytest.mark.parametrize("count", [1, 63, 64, 65, 66, 130])
def test_each_partition_is_used_once_and_in_order(count):
    numbers = np.arange(20.0 * count)
    rows = row_source(da.from_array(np.tile(numbers[:, None], 3), chunks=(20, -1)))
    assert len(rows._blocks) == count
    parts = list(rows.map(seen, (numbers,)))
    assert len(parts) == count
    np.testing.assert_array_equal(np.concatenate(parts), np.tile(numbers[:, None], 2))
    np.testing.assert_array_equal(rows.column(lambda block, chosen: block[:, 0]), numbers)


@pytest.mark.parametrize(("count", "drawn"), [(1, 5000), (7, 1500)])
def test_rows_that_were_drawn_keep_their_order_and_their_columns(count, drawn):
    numbers = np.arange(float(N_ROWS))
    whole = row_source(cut(np.tile(numbers[:, None], 3), count))
    rng = np.random.default_rng(drawn)
    index = rng.integers(0, N_ROWS, drawn)
    for rows in (whole[index], whole[np.arange(N_ROWS)[::-1]][N_ROWS - 1 - index]):
        expected = numbers[index]
        beside = rng.normal(size=drawn)
        np.testing.assert_array_equal(rows[3:70][:, 0], expected[3:70])
        np.testing.assert_array_equal(rows.in_memory()[:, 0], expected)
        some = np.sort(rng.choice(drawn, 40, replace=False))
        np.testing.assert_array_equal(rows.take(some)[:, 0], expected[some])
        made = rows.column(lambda block, chosen: block[:, 0])
        np.testing.assert_array_equal(made, expected)
        for wanted in (None, some, np.sort(rng.choice(drawn, drawn - 9, replace=False))):
            kept = slice(None) if wanted is None else wanted
            found = np.concatenate(list(rows.map(seen, (made, beside), wanted)))
            known = np.column_stack([expected, expected, beside])[kept]
            order, other = (np.lexsort(table.T) for table in (found, known))
            np.testing.assert_array_equal(found[order], known[other])


@pytest.mark.parametrize("index", [None, np.arange(2, N_ROWS, 2)])
@pytest.mark.parametrize("loss", [ClippedLoss(LogisticLoss(), 0.3), SoftmaxLoss(3)])
def test_values_and_curvature_of_chosen_rows_are_as_in_memory(table, loss, index):
    X, y = table
    targets = (y % 3).astype(np.int32) if loss.n_outputs > 1 else 2 * y - 1
    one, other = (
        RegularisedObjective(Rows.from_matrix(rows, targets, 1.0, 0.5), loss, 0.1)
        for rows in (X, row_source(cut(X, 7)))
    )
    at = np.linspace(-1.0, 2.0, one.n_weights)
    for method in ("value_and_gradient", "hessian"):
        known, found = (getattr(objective, method)(at, index) for objective in (one, other))
        for a, b in zip(known, found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)
    known, found = (objective.hessian_operator(at, index)(at) for objective in (one, other))
    np.testing.assert_allclose(found, known, rtol=1e-10)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_bad_rows_are_refused_before_a_charge_with_the_same_words(table, bad):
    X = table[0].copy()
    X[2000, 1] = bad
    budget = BudgetAccountant(epsilon=1.0, delta=1e-3)
    messages = []
    for rows in (X, cut(X, 7)):
        with pytest.raises(ValueError, match=r"NaN|infinity") as caught:
            OperaLogisticRegression(**PUBLIC, accountant=budget).fit(rows, table[1])
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert budget.spent() == (0.0, 0.0)


def test_partitions_that_are_not_what_they_declare_are_refused_unheard(table):
    X, y = table
    budget = BudgetAccountant(epsilon=1.0, delta=1e-3)

    def quoting(block):
        raise ValueError(f"row {X[5]}") if block.shape[0] > 1 else KeyError(X[5, 0])

    cases = [
        by_hand(X, 1000, 1600, declared=[1600, 1000]),
        da.ma.masked_greater(cut(X, 3), 0.5),
        by_hand(X[:, :3], 1000, 1600)[:, [0, 1, 2, 2]].map_blocks(lambda b: b[:, :2], dtype=float),
        cut(X, 3).map_blocks(quoting, dtype=float, meta=np.empty((0, 0))),
    ]
    for rows in cases:
        with pytest.raises(RuntimeError, match="could not compute a partition") as caught:
            OperaLogisticRegression(**PUBLIC, accountant=budget).fit(rows, y)
        assert caught.value.__context__ is None
    with pytest.raises(TypeError, match="of numbers"):
        OperaLogisticRegression(**PUBLIC).fit(cut(X.astype(object), 3), y)
    for rows, words in [
        (cut(X, 3)[:, :0], "0 feature"),
        (cut(X, 3)[:, 0], "Expected 2D"),
        (cut(X + 0j, 3), "Complex"),
        (cut(X, 3)[:, :, None], "dim 3"),
        (cut(X, 3)[:0], "0 sample"),
        (cut(X, 3)[:99], "inconsistent"),
    ]:
        with pytest.raises(ValueError, match=words):
            OperaLogisticRegression(**PUBLIC, accountant=budget).fit(rows, y)
    assert budget.spent() == (0.0, 0.0)


@pytest.mark.parametrize("kind", ["M8[D]", complex, object, "S4"])
def test_partitions_of_other_types_than_declared_are_refused(table, kind):
    X, y = table
    wrong = X.astype(np.int64).astype(kind) if kind == "M8[D]" else X.astype(kind)
    rows = by_hand(wrong, 1000, len(X) - 1000)
    with BudgetAccountant(9.0, 0.1) as budget, pytest.raises(RuntimeError, match="withheld"):
        OperaLogisticRegression(**PUBLIC, classes=[0, 1]).fit(rows, y)
    assert not budget.entries()


def test_a_refused_charge_leaves_partitions_alone_but_for_the_check(table):
    X, y = table
    seen = []
    rows = cut(X, 6, 4).map_blocks(lambda block: seen.append(1) or block, meta=np.empty((0, 0)))
    budget = BudgetAccountant(epsilon=0.5, delta=1e-3)
    with pytest.raises(BudgetExceededError):
        OperaLogisticRegression(**PUBLIC, accountant=budget).fit(rows, y)
    assert len(seen) == 6
    OperaLogisticRegression(**PUBLIC).fit(rows, y)
    assert len(seen) > 6 + 2 * 6 and len(seen) % 6 == 0


def test_what_is_trusted_is_said(table):
    X, y = table
    model = OperaLogisticRegression(**PUBLIC)
    said = [clone(model).fit(rows, y).privacy_spent_.assumptions for rows in (X, cut(X, 3))]
    assert said[1][: len(said[0])] == said[0]
    assert any("workers of Dask" in text for text in said[1][len(said[0]) :])
    lazy = da.from_array(y, chunks=500)
    for labels, ids in ((lazy, None), (y, lazy), (lazy, lazy)):
        found = clone(model).fit(X, labels, groups=ids).privacy_spent_.assumptions
        assert sum("workers of Dask" in text for text in found) == 1


def test_workers_are_given_models_without_budgets(table, tmp_path):
    X, y = table
    with BudgetAccountant(epsilon=9.0, delta=1e-3, ledger=tmp_path / "private-ledger"):
        model = OperaLogisticRegression(**PUBLIC).fit(X, y)
        lazy = model.predict(cut(X, 3))
        sent = pickle.dumps(dict(lazy.__dask_graph__()))
    assert b"private-ledger" not in sent and b"Accountant" not in sent


def test_evaluations_take_partitions(table):
    X, y = table
    model = OperaLogisticRegression(**PUBLIC).fit(X, y)
    one, other = (
        PrivateEvaluation(random_state=0).evaluate(model, rows, y) for rows in (X, cut(X, 5))
    )
    assert float(one.roc_auc) == float(other.roc_auc)


def test_dask_is_not_imported_before_it_is_met():
    code = "import sys, skdp; assert not {'dask', 'distributed'} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_two_worker_processes_give_the_same_and_one_charge(tmp_path, killed, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs dask's distributed scheduler")
    from dask import delayed

    monkeypatch.undo()  # workers know no other numbers

    def of_file(path, start, stop, pause):  # in here, as workers cannot import this module
        time.sleep(pause)
        return np.array(np.load(path, mmap_mode="r")[start:stop])

    rng, n_rows, count = np.random.default_rng(0), 60_000, 12
    X = rng.normal(size=(n_rows, 4)) / 3
    y = (X[:, 0] > 0.1).astype(int)
    np.save(tmp_path / "X.npy", X)
    size = n_rows // count
    parts = [
        da.from_delayed(
            delayed(of_file)(tmp_path / "X.npy", k * size, (k + 1) * size, 0.02 * killed),
            (size, 4),
            float,
        )
        for k in range(count)
    ]
    lazy = da.concatenate(parts)
    budget = BudgetAccountant(epsilon=9.0, delta=1e-3)
    models = [
        GrpuaLogisticRegression(**PUBLIC, max_iter=8, accountant=budget),
        DPSGDClassifier(**PUBLIC, batch_size=30_000, max_iter=8, accountant=budget),
    ]
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        for number, model in enumerate(models, start=1):
            expected = fit_frozen(clone(model).set_params(accountant=None), X, y).fitted
            victims = client.run(os.getpid)
            timer = threading.Timer(1.0, os.kill, (min(victims.values()), signal.SIGKILL))
            if killed:
                timer.start()
            found = fit_frozen(model, lazy, y).fitted
            if killed:
                assert not timer.is_alive()
                client.wait_for_workers(2)
                assert set(client.run(os.getpid).values()) != set(victims.values())
            np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
            np.testing.assert_array_equal(found.predict(lazy).compute(), expected.predict(X))
            assert len(budget.entries()) == number
