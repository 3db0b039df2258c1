"""Private transformers with groups=: all rows of an id are one record, however many they are."""

import numpy as np
import pytest
from scipy import sparse
from search_toys import Tally
from sklearn.base import clone

from skdp.mechanisms import record_releases
from skdp.preprocessing import DPPCA, DPQuantileClipper, DPStandardScaler
from skdp.reporting import privacy_statement
from skdp.tables.units import units_of
from skdp.testing.replay import compare_releases, differences, fit_both, fit_frozen, listen

pytestmark = pytest.mark.filterwarnings("ignore:delta=.* is not below 1/n", "ignore:With n=")

# With each a row, and one that is as far from it as two rows can be.
PRIVATE = {
    "scaler": (DPStandardScaler(lower=-2.0, upper=2.0), [9, 9, 9], [-9, -9, -9]),
    "scaler of rows": (DPStandardScaler(input_norm=3.0, n_groups=1), [9, 9, 9], [-9, -9, -9]),
    "quantiles": (DPQuantileClipper(2.0, lower=-100, upper=100), [50, 50, 50], [-50, -50, -50]),
    "pca": (DPPCA(2, data_norm=3.0), [9, 0, 0], [0, 9, 0]),
    "centred pca": (DPPCA(2, data_norm=3.0, center=True), [9, 0, 0], [-1, 9, 0]),
}


@pytest.fixture(params=PRIVATE)
def case(request):
    return PRIVATE[request.param]


def _with_ids(X, ids):
    return X, None, ids


def table(n_units=60, most=6, seed=0):
    """Return rows and ids; unit 7 has rows in several places."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_units), rng.integers(1, most + 1, n_units))
    ids = rng.permutation(np.append(ids, [7, 7]))
    return rng.standard_normal((ids.size, 3)), ids


def with_unit(X, ids, rows):
    """Return the table with other rows of unit 7."""
    kept = ids != 7
    return np.vstack([X[kept], rows]), np.append(ids[kept], np.full(len(rows), 7))


def releases_of(transformer, X, ids, replayed=None):
    return fit_frozen(clone(transformer), X, None, ids, replayed=replayed).trace


def test_a_replaced_unit_moves_sums_by_no_more_than_declared_and_nearly_that(case):
    transformer, row, far = case
    X, ids = table()
    recorded = releases_of(transformer, *with_unit(X, ids, np.tile(row, (5, 1))))
    ratios = []
    for rows in (np.tile(row, (3, 1)), np.tile(far, (40, 1)), np.eye(3), 9.0 * np.eye(3) - 3.0):
        other = releases_of(transformer, *with_unit(X, ids, rows), recorded)
        ratios.append(compare_releases(recorded.releases, other.releases).largest_ratio)
    assert ratios[0] < 1e-9 and 0.7 < max(ratios) <= 1.0 + 1e-9


def test_a_removed_unit_moves_sums_by_no_more_than_declared_and_nearly_that(case):
    """The public number of units changes what noisy sums are divided by, and no sum."""
    transformer = clone(case[0]).set_params(adjacency="add-remove")
    X, ids = table()
    ratios = []
    for rows in (np.tile(case[1], (5, 1)), np.eye(3), np.zeros((1, 3))):
        X, ids = with_unit(X, ids, rows)
        there = releases_of(transformer, X, ids).releases[0]
        gone = releases_of(transformer, X[ids != 7], ids[ids != 7]).releases[0]
        ratios.append(np.linalg.norm(there.value - gone.value) / there.sensitivity)
    assert 0.7 < max(ratios) <= 1.0 + 1e-9


def test_what_is_released_is_of_the_means_of_units(case):
    """Units of equal rows are single rows; a row more of them changes nothing."""
    transformer = case[0]
    rng = np.random.default_rng(2)
    single, times = rng.standard_normal((50, 3)), rng.integers(1, 7, 50)
    plain = fit_frozen(clone(transformer), single).trace.releases
    X, ids = np.repeat(single, times, axis=0), np.repeat(np.arange(50), times)
    order = rng.permutation(ids.size)
    for rows, names in ((X, ids), (X[order], [f"p{each}" for each in ids[order]])):
        found = fit_frozen(clone(transformer), rows, None, names).trace.releases
        assert len(found) == len(plain)
        for one, other in zip(plain, found, strict=True):
            np.testing.assert_allclose(one.value, other.value, rtol=1e-12, atol=1e-11)
            assert (one.sigma, one.sensitivity) == (other.sigma, other.sensitivity)


def test_rows_of_a_unit_count_alike():
    X, ids = table()
    scaler = DPStandardScaler(lower=-2.0, upper=2.0, with_std=False)
    value = releases_of(scaler, X, ids).releases[0].value
    units = np.clip(X, -2.0, 2.0) / 2.0
    means = [units[ids == each].mean(axis=0) for each in np.unique(ids)]
    np.testing.assert_allclose(value[0], np.sum(means, axis=0), atol=1e-12)


def test_sparse_rows_of_units():
    X, ids = table()
    X[np.abs(X) < 0.5] = 0.0
    pca = DPPCA(2, data_norm=2.0, center=True)
    dense = releases_of(pca, X, ids).releases[0].value
    for make in (sparse.csr_array, sparse.csr_matrix):
        found = releases_of(pca, make(X), ids).releases[0].value
        np.testing.assert_allclose(found, dense, atol=1e-12)


def test_nothing_tells_how_many_rows_there_are(case):
    """All that is left and said is the same to the last bit, once the noise is frozen."""
    X, ids = table()
    tables = [
        _with_ids(*with_unit(X, ids, rows))
        for rows in (np.full((1, 3), 9.0), np.zeros((400, 3)), np.full((7, 3), -1e-9))
    ]
    template = clone(case[0]).set_params(delta=0.05)
    for other in tables[1:]:
        with listen() as said:
            fitted = fit_both(template, tables[0], other)
        assert differences(*fitted) == []
        warned = [text for kind, *_, text in said if kind == "warning"]
        assert warned[: len(warned) // 2] == warned[len(warned) // 2 :] and "0.0167" in str(warned)
        assert str(privacy_statement(fitted[0])) == str(privacy_statement(fitted[1]))


def test_the_record_speaks_of_units(case):
    X, ids = table()
    fitted = clone(case[0]).fit(X, groups=ids)
    spent = fitted.privacy_spent_
    assert spent == clone(case[0]).privacy_plan(60, 3, groups=True)
    assert spent.unit == "group" and "number of units" in str(spent.assumptions)
    assert clone(case[0]).fit(X).privacy_spent_.unit == "row"
    assert spent.event == clone(case[0]).privacy_plan(60, 3).event


@pytest.mark.parametrize("ids", [[1] * 9, None, ["a", None], [1, "a"]], ids=str)
def test_bad_ids_are_refused_before_any_charge(case, ids):
    X, good = table()
    ids = good[:, None] if ids is None else (ids * good.size)[: good.size if len(ids) == 2 else 9]
    budget = Tally()
    with pytest.raises((ValueError, TypeError), match="groups") as refused:
        clone(case[0]).set_params(accountant=budget).fit(X, groups=ids)
    assert budget.charges == [] and str(len(X)) not in str(refused.value)


def test_a_seed_with_other_units_draws_other_noise(case):
    X, ids = table()
    noises = []
    for groups in (ids, np.where(ids == 1, 0, ids)):
        with record_releases() as trace:
            clone(case[0]).set_params(random_state=1).fit(X, groups=groups)
        noises.append(trace.releases[0].output - trace.releases[0].value)
    assert np.abs(noises[0] - noises[1]).max() > 0.1


def test_fit_transform_passes_ids_on():
    X, ids = table()
    scaler = DPStandardScaler(lower=-2.0, upper=2.0)
    assert scaler.fit_transform(X, groups=ids).shape == X.shape
    assert scaler.privacy_spent_.unit == "group" and units_of(ids).n_units == 60
