"""The rows of a fit are one thing, made once, and immutable."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import DPSGDClassifier, OperaLogisticRegression, PrivateLinearRegression
from skdp.exceptions import RowsChangedError
from skdp.inference import PrivateInference
from skdp.mechanisms.random_stream import RandomStream
from skdp.metrics import PrivateCalibrator, PrivateEvaluation, PrivateRegressionEvaluation
from skdp.statistics import private_mean
from skdp.statistics._terms import Terms
from skdp.tables.places import taken_for_granted
from skdp.tables.records import Records
from skdp.tables.row_sources import RowSource

N_ROWS = 300
NUMBERS = np.arange(N_ROWS)
X = np.column_stack([NUMBERS / N_ROWS, np.ones(N_ROWS)])
ids = NUMBERS // 3
PUBLIC = FrozenEstimator(LogisticRegression().fit(X, NUMBERS % 2))


def read(**given):
    return Records.read(OperaLogisticRegression(), X, NUMBERS, encode=lambda y: (y, None), **given)


@pytest.mark.parametrize(
    ("model", "groups", "lazy"),
    [
        (OperaLogisticRegression(data_norm=2.0, calibrate="private"), None, False),
        (DPSGDClassifier(data_norm=2.0, max_iter=3, batch_size=50), ids, False),
        (PrivateLinearRegression(data_norm=2.0, target_bounds=(0, 1)), None, True),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_fit_makes_records_once_and_hands_them_to_the_model(model, groups, lazy, monkeypatch):
    made, bound, table = [], [], X
    if lazy:
        table = pytest.importorskip("dask.array", reason="needs dask").from_array(
            X, chunks=(100, 2)
        )
    once, bind = Records.read.__func__, Records.bind

    def watched(cls, *args, **options):
        made.append(once(cls, *args, **options))
        return made[-1]

    def bind_watched(records, of_model):
        bound.append(records)
        return bind(records, of_model)

    monkeypatch.setattr(Records, "read", classmethod(watched))
    monkeypatch.setattr(Records, "bind", bind_watched)
    model.fit(table, NUMBERS % 2, groups=groups)
    (own,), (used,) = made, bound
    assert used is own and own.by_unit == (groups is not None)
    assert bool(own.assumptions) == lazy
    assert own.n_rows == (N_ROWS if groups is None else ids.max() + 1) and own.n_features == 2
    with pytest.raises(FrozenInstanceError):
        own.X = X


def statistic(table, labels, groups):
    return private_mean(table[:, 0], lower=0.0, upper=1.0, epsilon=1.0)


def evaluated(work, model):
    def run(table, labels, groups):
        if hasattr(work, "fit"):
            return work.fit(table, labels, groups=groups)
        return work.evaluate(model.fit(X, NUMBERS % 2), table, labels, groups=groups)

    return run


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("kind", "work", "groups"),
    [
        (Terms, statistic, None),
        (PrivateEvaluation, evaluated(PrivateEvaluation(), LogisticRegression()), ids),
        (PrivateInference, evaluated(PrivateInference(data_norm=2.0), LogisticRegression()), ids),
        (PrivateCalibrator, evaluated(PrivateCalibrator(PUBLIC), None), ids),
        (
            PrivateRegressionEvaluation,
            evaluated(PrivateRegressionEvaluation(target_bounds=(0, 1)), LinearRegression()),
            None,
        ),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_what_is_no_fit_hands_records_on_as_well(kind, work, groups, lazy, monkeypatch):
    read, use, made, used, table = kind._read, kind._use_rows, [], [], X
    if lazy:
        table = pytest.importorskip("dask.array", reason="needs dask").from_array(
            X, chunks=(100, 2)
        )
    monkeypatch.setattr(kind, "_read", lambda *given: made.append(read(*given)) or made[-1])
    monkeypatch.setattr(kind, "_use_rows", lambda *given: used.append(given[2]) or use(*given))
    work(table, NUMBERS % 2, groups)
    (own,) = made
    assert isinstance(own, Records) and used == [own] and own.by_unit == (groups is not None)
    assert own.n_rows == (N_ROWS if groups is None else ids.max() + 1)
    known = taken_for_granted(table)
    assert bool(known) == lazy and set(known) <= set(own.assumptions)


def test_drawn_records_keep_their_targets_and_their_units():
    whole = read(groups=ids, most=2.0)
    assert np.allclose(whole.row_weight, 2.0 / 3.0) and whole.n_rows == ids.max() + 1
    for most in (1, 2):
        drawn = whole.draw(RandomStream.from_seed(0), most, False)
        np.testing.assert_allclose(drawn.X[:, 0] * N_ROWS, drawn.targets)
        assert drawn.n_rows == whole.n_rows and len(drawn.X) == most * whole.n_rows
        of_rows = np.arange(whole.n_rows) if drawn.units is None else drawn.units.codes
        np.testing.assert_array_equal(drawn.targets // 3, of_rows)
        assert (drawn.row_weight is None) == (most == 1)


def test_weights_multiply():
    weights = NUMBERS + 1.0
    np.testing.assert_array_equal(read().weigh(weights).row_weight, weights)
    shares = read(groups=ids).weigh(weights).row_weight
    np.testing.assert_allclose(shares, weights / 3.0)


def test_a_seed_is_tied_to_all_that_counts():
    model = OperaLogisticRegression(random_state=0)
    plain, by_unit = read(), read(groups=ids)
    other = Records(X, NUMBERS + 1)
    contexts = [records.context(model) for records in (plain, by_unit, other, Records(X))]
    assert len(set(contexts)) == 4


class Careless(RowSource):
    """Rows that say nothing of changes."""

    def __init__(self, rows):
        self.rows, self.shape, self.dtype = rows, rows.shape, rows.dtype
        self.row_bytes = 8.0 * rows.shape[1]

    def read(self, start, stop):
        return self.rows[start:stop].copy()


def test_sources_that_do_not_look_for_changes_are_looked_at():
    source = Careless(np.arange(12.0).reshape(6, 2))
    source.check_rows()  # nothing was noted
    source.note_rows()
    source.check_rows()
    source.rows[3, 1] += 1e-12
    with pytest.raises(RowsChangedError):
        source[np.array([1, 3])].check_rows()
    source.rows[3, 1] = 7.0
    source.check_rows()
