"""A score is a function of its row alone, to the last bit, whatever stands beside the row."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import LinearSVC
from support import rows
from threadpoolctl import threadpool_limits

from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.mechanisms import record_releases
from skdp.metrics import PrivateEvaluation, PrivateRegressionEvaluation
from skdp.metrics.base import Judged, ask_model, examine_model
from skdp.model_selection import make_row_scorer
from skdp.models import network_scores
from skdp.plans import recalibration
from skdp.plans.recalibration import score_rows
from skdp.tables.row_scores import BLOCK_ROWS, Way, ask_rows, probe

EDGES = [*range(1, 10), 15, 16, 17, 31, 33, 64, 65, 127, 129, 240, 241, 255, 257, 400, 401]
EDGES += [511, 513, 599, 600, 601, 1023, 1025, 1199, 1200, 1201, 1999, 2000]
SIZES = [*EDGES, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 3]
D = 13
X, Y = rows(400, D)
MANY = rows(400, D, n_classes=5)[1]
PUBLIC = {"random_state": 0, "data_norm": 1.0}


def asked(model, name):
    """Return what an evaluation knows of rows."""

    def scores(table):
        method = getattr(model, name)
        way, _ = examine_model(model, method, table)
        n = table.shape[0] if hasattr(table, "shape") else len(table)
        few = table.head(1) if hasattr(table, "dask") and hasattr(table, "head") else table[:1]
        if hasattr(few, "compute"):
            n, few = table.compute().shape[0], few.compute()
        if hasattr(table, "dask") and not hasattr(table, "chunks"):
            n = len(table)
        width = np.asarray(method(few)).reshape(1, -1).shape[1]
        judged = Judged(table, np.zeros(n), ask=method, way=way)
        return ask_model(judged, width)

    return scores


def classified(model, name="predict_proba", labels=Y):
    return asked(model.fit(X, labels), name)


def network(table):
    rng = np.random.default_rng(0)
    coefs = [rng.normal(size=(D, 24)), rng.normal(size=(24, 3))]
    scores = recalibration._alone(
        lambda part: network_scores(part, coefs, [np.zeros(24), np.ones(3)], "tanh"), table
    )
    return scores(table)


def searched(model, method):
    """Return what a search adds up of rows."""
    scorer = make_row_scorer(
        lambda y, found: np.asarray(found) @ np.linspace(0.1, 0.9, np.shape(found)[1]),
        lower=-9.0,
        upper=9.0,
        response_method=method,
    )
    return lambda table: scorer.values(model, table, np.zeros(len(table)))


LOGISTIC = LogisticRegression().fit(X, MANY)
OURS = OperaLogisticRegression(classes=range(5), **PUBLIC).fit(X, MANY)
SCORERS = {
    "two classes": classified(LogisticRegression()),
    "five classes": asked(LOGISTIC, "predict_proba"),
    "margins": classified(LinearSVC(), "decision_function"),
    "pipeline": classified(make_pipeline(StandardScaler(), LogisticRegression())),
    "ours": asked(OURS, "predict_proba"),
    "our network": classified(
        DPSGDClassifier(hidden_layer_sizes=(16,), classes=range(5), max_iter=2, **PUBLIC),
        labels=MANY,
    ),
    "network": classified(MLPClassifier((24,), max_iter=9), labels=MANY),
    "regressor": asked(LinearRegression().fit(X, MANY), "predict"),
    "search": searched(LOGISTIC, "predict_proba"),
    "search of ours": searched(OURS, "decision_function"),
    "calibration": lambda table: score_rows(
        table, LOGISTIC.coef_.astype(float), LOGISTIC.intercept_.astype(float)
    ),
    "calibration of a network": network,
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def of_one_row(scores, row):
    return scores(row[None])[0]


@pytest.mark.parametrize("name", SCORERS)
def test_equal_rows_have_equal_scores_however_many_there_are(name):
    generator = np.random.default_rng(1)
    sizes = sorted({*SIZES, *generator.integers(2, 2000, size=5)})
    for dtype, n_threads in ((np.float64, 1), (np.float64, 2), (np.float32, 2)):
        row = X[n_threads].astype(dtype)
        expected = of_one_row(SCORERS[name], row)
        with threadpool_limits(n_threads):
            for n in sizes if (dtype, n_threads) == (np.float64, 1) else sizes[::4]:
                found = SCORERS[name](np.tile(row, (n, 1)))
                np.testing.assert_array_equal(found, np.broadcast_to(expected, found.shape))


@pytest.mark.parametrize("name", SCORERS)
def test_a_place_among_other_rows_is_irrelevant(name):
    generator = np.random.default_rng(2)
    row = X[3]
    expected = of_one_row(SCORERS[name], row)
    for n in (5, 401, BLOCK_ROWS + 1203):
        table = generator.normal(size=(n, D))
        places = np.unique([0, 1, n // 2, n - 3, n - 2, n - 1])
        table[places] = row
        found = SCORERS[name](table)
        np.testing.assert_array_equal(found[places], np.broadcast_to(expected, found[places].shape))


def mapped(table, order, folder):
    stored = np.memmap(folder / f"rows{order}", table.dtype, "w+", shape=table.shape, order=order)
    stored[:] = table
    stored.flush()
    return np.memmap(folder / f"rows{order}", table.dtype, "r", shape=table.shape, order=order)


KINDS = {
    "Fortran": lambda table, _: np.asfortranarray(table),
    "every second column": lambda table, _: np.repeat(table, 2, axis=1)[:, ::2],
    "memory map": lambda table, folder: mapped(table, "C", folder),
    "memory map, Fortran": lambda table, folder: mapped(table, "F", folder),
    "list": lambda table, _: table.tolist(),
    "pandas": lambda table, _: pd.DataFrame(table, columns=[f"x{k}" for k in range(D)]),
    "pandas, Fortran": lambda table, _: pd.DataFrame(np.asfortranarray(table)),
    "polars": lambda table, _: pl.DataFrame(table),
    "dask": lambda table, _: da.from_array(table, chunks=(max(1, len(table) // 3), 5)),
    "dask frame": lambda table, _: dd.from_pandas(
        pd.DataFrame(table, columns=[f"x{k}" for k in range(D)]), chunksize=301
    ),
    "CSR": lambda table, _: sparse.csr_array(table),
    "CSR matrix": lambda table, _: sparse.csr_matrix(table),
    "CSC": lambda table, _: sparse.csc_array(table),
    "COO": lambda table, _: sparse.coo_array(table),
}
CONTAINED = {
    "sklearn": asked(LOGISTIC, "predict_proba"),
    "ours": asked(OURS, "predict_proba"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:X (has|does not have) (valid )?feature names")
def test_containers_and_where_their_parts_end_are_irrelevant(kind, tmp_path):
    generator, dtype = np.random.default_rng(3), (np.float64, np.float32)[len(kind) % 2]
    table = generator.normal(size=(BLOCK_ROWS + 402, D)).astype(dtype)
    table[generator.random(table.shape) < 0.3] = 0.0
    table[[0, 399, 400, 900, -2, -1]] = X[5].astype(dtype)
    for scores in CONTAINED.values():
        whole = scores(KINDS[kind](table, tmp_path))
        if "C" not in kind:  # sums of sparse rows are others, row by row
            np.testing.assert_array_equal(whole, scores(table))
        for n in (1, 4, 401, 1201):
            np.testing.assert_array_equal(scores(KINDS[kind](table[:n], tmp_path)), whole[:n])
        np.testing.assert_array_equal(scores(KINDS[kind](table[1:], tmp_path)), whole[1:])


def crossing(model, name):
    """Return a row, a number n and a score that more of n + 1 such rows have than of n, or fewer.

    That is if all are scored at once, as they are not to be.
    """
    found = [(0, X[0], 400, 0.5)]
    for row in X[:30]:
        for n in (3, 7, 240, 400, 599, 600, 601, 1200):
            one, two = (getattr(model, name)(np.tile(row, (m, 1))) for m in (n, n + 1))
            one, two = (np.reshape(each, (len(each), -1))[:, -1] for each in (one, two))
            edge = max(one.max(), two.max())
            moved = abs(int(np.sum(one >= edge)) - int(np.sum(two >= edge)))
            found.append((moved, row, n, float(edge)))
    return max(found, key=lambda each: each[0])[1:]


def releases(evaluation, model, row, n, labels, groups=None):
    """Return exact tables of n equal rows and of one more, and the sensitivities declared."""
    found = []
    for m in (n, n + 1):
        with record_releases(found[0] if found else None) as trace:
            ids = None if groups is None else groups[:m]
            evaluation.evaluate(model, np.tile(row, (m, 1)), labels[:m], groups=ids)
        found.append(trace)
    return zip(*(trace.releases for trace in found), strict=True)


@pytest.mark.parametrize(
    ("adjacency", "groups"), [("add-remove", False), ("add-remove", True), ("replace-one", True)]
)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_tables_of_neighbours_are_as_near_as_declared(adjacency, groups, n_classes):
    model = LogisticRegression().fit(X, Y if n_classes == 2 else MANY)
    row, n, edge = crossing(model, "predict_proba")
    evaluation = PrivateEvaluation(thresholds=(edge,), adjacency=adjacency, random_state=0)
    ids = np.minimum(np.arange(n + 1), n - 1) if groups else None  # the last has a row, or two
    for one, two in releases(evaluation, model, row, n, np.zeros(n + 1, dtype=int), ids):
        assert np.linalg.norm(one.value - two.value) <= one.sensitivity


@pytest.mark.parametrize("groups", [False, True])
def test_errors_of_neighbours_are_as_near_as_declared(groups):
    model = LinearRegression().fit(X, MANY)
    row, n, edge = crossing(model, "predict")
    evaluation = PrivateRegressionEvaluation(
        target_bounds=(edge - 1.0, edge + 1.0),  # so that the middle is an edge of ten bins
        n_bins=10,
        adjacency="add-remove",
        random_state=0,
    )
    ids = np.minimum(np.arange(n + 1), n - 1) if groups else None
    for one, two in releases(evaluation, model, row, n, np.full(n + 1, edge), ids):
        assert np.linalg.norm(one.value - two.value) <= one.sensitivity


def test_totals_of_neighbours_are_within_one():
    model = LogisticRegression().fit(X, MANY)
    row, n, edge = crossing(model, "decision_function")
    scorer = make_row_scorer(
        lambda y, found: found[:, -1] >= edge, response_method="decision_function"
    )
    one, two = (scorer.total(model, np.tile(row, (m, 1)), np.zeros(m)) for m in (n, n + 1))
    assert 0.0 <= two - one <= 1.0


def test_totals_are_exact_sums():
    """In any order and in any parts they are the same number, and no unit adds more than 1."""
    scorer = make_row_scorer(lambda y, found: found[:, 1], response_method="predict_proba")
    model = LogisticRegression().fit(X, Y)
    table = np.random.default_rng(4).normal(size=(601, D))
    y = np.zeros(601)
    total = scorer.total(model, table, y)
    assert total == scorer.total(model, table[::-1], y)
    parts = (slice(k, k + 7) for k in range(0, 601, 7))
    assert total == sum(scorer.total(model, table[part], y[part]) for part in parts)
    best = make_row_scorer(lambda y, found: np.ones(len(y)))
    for k in range(1, 60):
        assert best.total(model, table[:k], y[:k], np.full(k, 1.0 / k)) <= 1.0


def test_forests_do_not_add_up_in_the_order_of_threads():
    forest = RandomForestClassifier(60, n_jobs=2, random_state=0).fit(X, Y)
    table = np.random.default_rng(5).normal(size=(500, D))
    asked_once = ask_rows(forest.predict_proba, table)
    for _ in range(5):
        np.testing.assert_array_equal(ask_rows(forest.predict_proba, table), asked_once)


class Careless:
    """Answers that depend on a row's place: by rounding in single precision, or always."""

    def __init__(self, size):
        self.size = size

    def score(self, table):
        found = np.asarray(table[:, 0])
        if self.size == "single":
            lane = 1e-7 if found.dtype == np.float32 else 0.0
        else:
            lane = self.size
        return found.astype(float) + lane * (np.arange(len(found)) % 4 == 3)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0.0, Way()), ("single", Way(wide=True)), (1e-9, Way(1))],
)
def test_where_places_matter_the_model_is_asked_otherwise(size, expected):
    table = X.astype(np.float32)
    found = probe(Careless(size).score, table)
    assert (found.way, found.known, found.mixes) == (expected, True, False)
    scores = ask_rows(Careless(size).score, np.tile(table[0], (9, 1)), way=found.way)
    assert np.unique(scores).size == 1


def test_answers_that_move_with_other_rows_are_found():
    assert probe(lambda table: table[:, 0] - table[:, 0].mean(), X).mixes
    assert probe(lambda table: table[:, 0].argsort().argsort(), X).mixes
    assert probe(lambda table: np.random.default_rng().normal(size=len(table)), X).mixes
    assert not probe(lambda table: 1 / 0, X).known


FRAMES = {
    "by columns": pd.DataFrame,
    "by rows": lambda table: pd.DataFrame(np.ascontiguousarray(table), copy=False),
    "column by column": lambda table: pd.DataFrame(dict(enumerate(table.T))),
    "in two parts": lambda table: pd.concat(
        [pd.DataFrame(table[:, :5]), pd.DataFrame(np.array(table[:, 5:]), copy=False)],
        axis=1,
        ignore_index=True,
    ),
    "polars": pl.DataFrame,
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("learner", [GaussianNB(), make_pipeline(Normalizer(), LinearSVC())])
@pytest.mark.filterwarnings("ignore:X (has|does not have) (valid )?feature names")
def test_a_row_that_is_alone_in_its_block_has_the_score_that_it_has_among_others(kind, learner):
    """Frames of one row do not say in which order their numbers lie."""
    name = "predict_proba" if hasattr(learner, "predict_proba") else "decision_function"
    scores = asked(learner.fit(FRAMES[kind](X), Y), name)
    for table in np.random.default_rng(5).normal(size=(2, BLOCK_ROWS + 2, D)):
        whole = scores(FRAMES[kind](table))
        np.testing.assert_array_equal(scores(FRAMES[kind](table[:-1])), whole[:-1])
        np.testing.assert_array_equal(scores(FRAMES[kind](table[:1])), whole[:1])


SINGLE = X[:300].astype(np.float32)
ONE = LogisticRegression().fit(X.astype(np.float32), MANY)
COLUMN = (X[:300, 0] > 0.5).astype(np.int8)


def framed(column):
    return pd.DataFrame(SINGLE, columns=[f"x{k}" for k in range(D)]).assign(extra=column)


FRAMED = make_pipeline(SimpleImputer(), LogisticRegression()).fit(framed(COLUMN), MANY[:300])


@pytest.mark.parametrize(
    ("model", "table", "other"),
    [
        (ONE, list(SINGLE), [*SINGLE[:-1], X[0]]),
        (ONE, [list(row) for row in SINGLE], [*map(list, SINGLE), X[0].tolist()]),
        (ONE, [*map(tuple, SINGLE), tuple(X[0])], [*map(tuple, SINGLE)]),
        (FRAMED, framed(COLUMN), framed([*COLUMN[:-1], np.nan])),
    ],
)
def test_the_type_of_one_row_rounds_no_other(model, table, other):
    """In double precision all scores of a model in single precision would be others."""
    one, two = (asked(model, "predict_proba")(rows) for rows in (table, other))
    np.testing.assert_array_equal(one[:299], two[:299])


def test_every_row_has_an_answer():
    with pytest.raises(ValueError, match="one entry for each row"):
        ask_rows(lambda table: table[:1], X)
