"""Rows that are read where they lie move sums by no more than a row in memory may."""

import numpy as np
import pytest
from models_by_blocks import MODELS, N_COLUMNS, make_table
from sklearn.base import clone

import skdp.tables._partitions as partitions
import skdp.tables.row_sources as row_sources
from skdp.tables.places import row_source
from skdp.tables.row_sources import RowSource
from skdp.testing import replay_on_neighbour

REPLACED = ("output", "objective", "all rows", "subsets", "moments", "moments, steps")


def in_partitions(rows):
    dask = pytest.importorskip("dask.array", reason="needs dask")
    return dask.from_array(rows, chunks=(400, N_COLUMNS))


@pytest.fixture(params=["file", "partitions"])
def store(request, tmp_path, monkeypatch):
    """Return a function that puts a table where fits read it block by block."""
    monkeypatch.setattr(partitions, "_FEWEST_ROWS", 13)
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", 1)
    monkeypatch.setattr(row_sources, "BLOCK_BYTES", 8 * N_COLUMNS * 100)
    monkeypatch.setattr(row_sources, "WHOLE_BYTES", 0)
    if request.param == "partitions":
        return in_partitions

    def put(rows):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, rows)
        return np.load(path, mmap_mode="r")

    return put


@pytest.mark.daily(6)
@pytest.mark.parametrize("name", [*REPLACED, "small lots", "large lots"])
def test_neighbours_move_releases_as_far_as_is_said(store, name):
    X, y = make_table()
    model, labels = clone(MODELS[name]), y.copy()
    model = model.set_params(classes=[0, 1]) if "classes" in model.get_params() else model
    if name == "subsets":
        model.set_params(max_iter=300)  # so that one has the row
    other, place = X.copy(), 1234  # in a block of its own, far from the first
    if name in REPLACED:
        # The longest rows there are, each on its side of the line.
        X[place], other[place] = 1e6, -1e6
        labels[place] = y[place] = 1
    else:
        X[place], other[place] = 1e6, 0.0  # which stands for a row that is not there
        model = model.set_params(fit_intercept=False)
    report = replay_on_neighbour(model, store(X), y, store(other), labels)
    assert 0.0 < report.largest_ratio <= 1.0 + 1e-9


def test_the_table_of_the_test_is_read_in_blocks(store):
    X, _ = make_table()
    rows = row_source(store(X))
    assert isinstance(rows, RowSource) and not rows.is_one_block
