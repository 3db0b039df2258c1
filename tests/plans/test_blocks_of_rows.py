"""Sums over rows are taken in blocks: no row is left out or counted twice at an edge."""

import numpy as np
import pytest
from scipy import sparse

from skdp import PrivateLinearRegression, PrivateRidge
from skdp.plans import moment_regression, second_moments
from skdp.plans.moment_regression import blocks_of, sum_moments
from skdp.plans.second_moments import row_blocks
from skdp.preprocessing import DPPCA, DPStandardScaler
from skdp.solvers import Rows
from skdp.solvers import rows as rows_of_solvers
from skdp.testing.replay import fit_frozen

# Blocks are cut so short that tables have a few, and n lies on both sides of their edges.
ENTRIES, COLUMNS = 48, 3
SIZES = [1, 15, 16, 17, 32, 33, 63, 64, 65, 129]


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(second_moments, "_BLOCK_ENTRIES", ENTRIES)
    monkeypatch.setattr(moment_regression, "_BLOCK_ENTRIES", ENTRIES)
    monkeypatch.setattr(rows_of_solvers, "_BLOCK_ELEMENTS", ENTRIES)


def numbered(n, make=np.array):
    """Return rows whose first entry is their number."""
    X = np.zeros((n, COLUMNS))
    X[:, 0] = np.arange(n) + 1.0
    return make(X)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
@pytest.mark.parametrize("n", SIZES)
def test_each_row_is_in_one_block_with_its_share(n, make):
    X, once = numbered(n, make), list(range(n))
    parts = [*row_blocks(X, np.arange(n) + 1.0)]
    for of_rows, shares in parts:
        first = (of_rows @ np.eye(COLUMNS))[:, 0]
        assert first.tolist() == shares.tolist()
    assert [int(share) - 1 for _, shares in parts for share in shares] == once
    rows = Rows.from_matrix(X, np.arange(n) / n, 1000.0, 0.0, "real")
    assert [i for part in blocks_of(rows, COLUMNS) for i in once[part]] == once
    assert [round(t * n) for _, targets, _ in rows.blocks() for t in targets] == once
    chosen = np.arange(0, n, 2)
    found = [round(t * n) for _, targets, _ in rows.blocks(chosen) for t in targets]
    assert found == chosen.tolist()


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
@pytest.mark.parametrize("n", SIZES[2:6])
def test_moments_count_each_row_once(n, make):
    rng = np.random.default_rng(n)
    X, y, weight = rng.uniform(-0.5, 0.5, (n, COLUMNS)), rng.uniform(-1, 1, n), rng.random(n)
    rows = Rows.from_matrix(make(X), y, 1.0, 0.0, "real", weight, n)
    record = np.column_stack([X, y])
    above = np.triu_indices(COLUMNS + 1)
    packing = np.where(above[0] == above[1], 1.0, np.sqrt(2.0))
    exact = (record.T * weight) @ record
    expected = [*(exact[above] * packing), *(weight @ record)]
    np.testing.assert_allclose(sum_moments(rows, 1.0, 1.0, 1.0), expected, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        PrivateRidge(target_bounds=(-1.0, 1.0), data_norm=1.0, random_state=0),
        PrivateLinearRegression(target_bounds=(-1.0, 1.0), data_norm=1.0, random_state=0),
        DPPCA(data_norm=1.0, center=True, random_state=0),
        DPStandardScaler(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_released_does_not_depend_on_blocks(model, monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-0.5, 0.5, (65, COLUMNS)), rng.uniform(-1.0, 1.0, 65)
    in_blocks = fit_frozen(model, X, y).trace
    for module in (second_moments, moment_regression):
        monkeypatch.setattr(module, "_BLOCK_ENTRIES", 1 << 20)
    whole = fit_frozen(model, X, y, replayed=in_blocks).trace
    assert len(in_blocks.releases) == len(whole.releases)
    for one, two in zip(in_blocks.releases, whole.releases, strict=True):
        np.testing.assert_allclose(one.value, two.value, rtol=1e-9, atol=1e-9)
