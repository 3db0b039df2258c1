"""Private searches with groups=: parts are drawn by unit, fits and scores are of units."""

import numpy as np
import pytest
import sklearn
from search_toys import NoisyCount, Tally
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline

from skdp import ObjectivePerturbationLogisticRegression, OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.mechanisms import RandomStream
from skdp.model_selection import PrivateGridSearchCV
from skdp.model_selection._runs import Table, assign_folds, assign_holdout
from skdp.model_selection._scoring import make_row_scorer, resolve_scoring
from skdp.model_selection._search import METHODS
from skdp.preprocessing import DPPCA, BoundedScaler, DPStandardScaler
from skdp.reporting import privacy_statement
from skdp.tables.units import units_of
from skdp.testing.replay import compare_releases, differences, fit_both, fit_frozen, listen

N_UNITS = 40
SEEN = []
QUICK = ["holdout", *(pytest.param(m, marks=pytest.mark.slow) for m in METHODS if m != "holdout")]


def table(seed=0, most=5, n_units=N_UNITS):
    """Return rows, the last column of which is the number of the unit, labels and ids."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(n_units), rng.integers(1, most + 1, n_units)))
    X = np.column_stack([rng.uniform(-0.5, 0.5, (ids.size, 3)), ids / 100.0])
    return X, (X[:, 0] > 0).astype(int), ids


class Spy(OperaLogisticRegression):
    """Notes whose rows it was given."""

    def fit(self, X, y, groups=None):
        SEEN.append((np.round(100 * X[:, 3]).astype(int), groups))
        return super().fit(X, y, groups=groups)


def search(estimator=None, method="holdout", **options):
    estimator = OperaLogisticRegression(classes=[0, 1]) if estimator is None else estimator
    grid = {"alpha": [0.1, 1.0]}
    if hasattr(estimator, "steps"):
        grid = {f"{estimator.steps[-1][0]}__{key}": value for key, value in grid.items()}
    options = {"epsilon": 5.0, "delta": 1e-3, "cv": 4, "expected_candidates": 2, **options}
    return PrivateGridSearchCV(estimator, grid, method=method, **options)


def containers(ids):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    texts = [f"patient {each}" for each in ids]
    return [ids, ids.tolist(), texts, pd.Series(texts, dtype="category"), pl.Series(ids)]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("n_units", [9, 40])
def test_no_part_splits_a_unit_whatever_holds_the_ids(adjacency, n_units):
    for seed in range(2):
        X, y, ids = table(seed, n_units=n_units)
        parts = [
            *assign_folds(n_units, 3, adjacency, RandomStream.from_seed(seed)),
            *assign_holdout(n_units, 0.2, adjacency, RandomStream.from_seed(seed)),
        ]
        for groups in containers(ids):
            units = units_of(groups)
            whole = Table(X, y, units=units, row_weight=units.weights(), groups=groups)
            for numbers in parts:
                part = whole.part(numbers)
                inside = np.round(100 * part.X[:, 3]).astype(int)
                assert np.unique(inside).size == len(numbers)
                assert inside.size == np.isin(ids, inside).sum()  # all rows of its units
                pairs = set(zip(units_of(part.groups).codes, inside, strict=True))
                assert len(pairs) == len(numbers)  # and their ids
                assert part.row_weight.sum() == pytest.approx(len(numbers))


@pytest.mark.parametrize("method", QUICK)
def test_parts_are_of_units_and_every_fit_is_told_their_ids(method):
    """However many rows there are, and whoever's, sizes of parts follow from 40 units."""
    for seed in range(2):
        SEEN.clear()
        X, y, ids = table(seed, most=4 * seed + 1)
        model = search(Spy(data_norm=1.0, classes=[0, 1]), method).fit(X, y, groups=ids)
        assert SEEN and model.privacy_spent_.unit == "group"
        assert {np.unique(inside).size for inside, _ in SEEN} <= {32, 30, 40}
        for inside, told in SEEN:
            assert inside.size == np.isin(ids, inside).sum()
            np.testing.assert_array_equal(told, inside)


def test_a_unit_scores_the_mean_of_its_rows():
    X, y, ids = table()
    units = units_of(ids)
    whole = Table(X, y, units=units, row_weight=units.weights(), groups=ids)
    model = OperaLogisticRegression(epsilon=50.0, data_norm=1.0).fit(X, y)
    part = whole.part(np.arange(10, 30))
    right = model.predict(X) == y
    expected = sum(right[ids == each].mean() for each in range(10, 30))
    for scorer in (resolve_scoring("accuracy"), make_row_scorer(lambda y, p: y == p)):
        found = scorer.total(model, part.X, part.targets, part.row_weight)
        # Each row is rounded down, so that sums are exact.
        assert expected - part.targets.size * 2.0**-22 <= found <= expected + 1e-12


def changed(X, y, ids, unit, rows):
    """Return the table with other rows of one unit, wrongly labelled, and with another number."""
    kept = ids != unit
    labels = np.append(y[kept], (rows[:, 0] <= 0).astype(int))
    return np.vstack([X[kept], rows]), labels, np.append(ids[kept], np.full(len(rows), unit))


@pytest.mark.parametrize("method", QUICK)
def test_replay_on_a_neighbouring_unit(method):
    """One unit differs in all its rows and their number; scores move by nearly all they may."""
    X, y, ids = table()
    pipeline = make_pipeline(
        DPStandardScaler(lower=-0.5, upper=0.5), OperaLogisticRegression(classes=[0, 1])
    )
    ratios = []
    units = (0, 3) if method == "holdout" else (0, 3, 11, 17)
    for unit in units:
        model = search(pipeline, method, noisy_scores=method in ("holdout", "cv"))
        recorded = fit_frozen(clone(model), X, y, ids).trace
        rows = np.tile([0.5, 0.0, 0.0, unit / 100.0], (9, 1))
        other = changed(X, y, ids, unit, rows)
        replayed = fit_frozen(clone(model), *other, replayed=recorded).trace
        ratios.append(compare_releases(recorded.releases, replayed.releases).largest_ratio)
    assert 0.7 < max(ratios) <= 1.0 + 1e-9


@pytest.mark.parametrize("method", QUICK)
def test_nothing_tells_how_many_rows_there_are(method):
    X, y, ids = table()
    model = search(method=method, refit=True, delta=0.03)
    more = changed(X, y, ids, 3, np.full((300, 4), 0.1))
    with listen() as said:
        fitted = fit_both(model, (X, y, ids), more)
    assert differences(*fitted) == []
    warned = [text for kind, *_, text in said if kind == "warning"]
    assert warned and warned[: len(warned) // 2] == warned[len(warned) // 2 :]
    assert not [each for each in said if each[0] != "warning"]


OTHER = pytest.param(ObjectivePerturbationLogisticRegression, marks=pytest.mark.slow)


@pytest.mark.parametrize("cls", [OperaLogisticRegression, OTHER])
def test_the_plan_is_what_a_fit_spends(cls):
    X, y, ids = table()
    pipeline = make_pipeline(DPStandardScaler(lower=-0.5, upper=0.5), cls(classes=[0, 1]))
    fitted = search(pipeline).fit(X, y, groups=ids)
    spent = fitted.privacy_spent_
    assert spent == search(pipeline).privacy_plan(N_UNITS, 4, groups=True)
    assert "units are divided into parts" in str(spent.assumptions)
    assert "of rows" not in str(spent.assumptions).replace("The number of rows is private", "")
    assert {step.privacy_spent_.unit for _, step in fitted.best_estimator_.steps} == {"group"}


def test_ids_reach_the_steps_of_columns_by_routing_alone():
    X, y, ids = table()
    columns = make_column_transformer(
        (DPStandardScaler(lower=-0.5, upper=0.5), [0, 1]), (BoundedScaler(), [2, 3])
    )
    model = search(make_pipeline(columns.set_params(sparse_threshold=0), OperaLogisticRegression()))
    with pytest.raises(ValueError, match="only with metadata routing"):
        model.fit(X, y, groups=ids)
    with sklearn.config_context(enable_metadata_routing=True):
        model.estimator[0].transformers[0][1].set_fit_request(groups=True)
        model.estimator[-1].set_fit_request(groups=True)
        fitted = model.fit(X, y, groups=ids)
    assert fitted.privacy_spent_.unit == "group"


@pytest.mark.parametrize("request_them", [False, None])
def test_a_step_that_would_take_each_row_for_a_unit_is_refused(request_them):
    X, y, ids = table()
    budget = Tally()
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            DPPCA(2, data_norm=1.0).set_fit_request(groups=request_them),
            OperaLogisticRegression().set_fit_request(groups=True),
        )
        with pytest.raises(ValueError, match="set_fit_request"):
            search(pipeline, accountant=budget).fit(X, y, groups=ids)
    toy = PrivateGridSearchCV(NoisyCount(), {"threshold": [0.0]}, accountant=budget)
    with pytest.raises(ValueError, match="NoisyCount would treat each row as a unit"):
        toy.fit(X, y, groups=ids)
    for wrong in (ids[1:], [None] * len(ids)):
        with pytest.raises(ValueError, match="groups"):
            search(accountant=budget).fit(X, y, groups=wrong)
    assert budget.charges == []


def test_pipelines_and_ordinary_searches_route_ids():
    """The ledger has a charge by units for every inner fit."""
    X, y, ids = table()
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            DPStandardScaler(0.1, lower=-0.5, upper=0.5).set_fit_request(groups=True),
            OperaLogisticRegression(0.1).set_fit_request(groups=True),
        )
        with BudgetAccountant(100.0, 1e-3) as budget:
            pipeline.fit(X, y, groups=ids)
            grid = {"operalogisticregression__alpha": [0.1, 1.0]}
            folds = GroupKFold(4, shuffle=True)
            ordinary = GridSearchCV(pipeline, grid, cv=folds).fit(X, y, groups=ids)
            assert len(budget.entries()) == 2 + 2 * (2 * 4 + 1)
            private = search(pipeline).set_fit_request(groups=True)
            make_pipeline(BoundedScaler(), private).fit(X, y, groups=ids)
            by_size = GridSearchCV(pipeline, {}, cv=GroupKFold(4)).fit(X, y, groups=ids)
    assert "balanced by the private numbers" not in privacy_statement(ordinary)
    assert "balanced by the private numbers" in " ".join(privacy_statement(by_size).split())
    for fitted in (pipeline, ordinary.best_estimator_):
        assert {step.privacy_spent_.unit for _, step in fitted.steps} == {"group"}


def test_ids_for_single_steps_are_refused_before_the_charge():
    X, y, ids = table()
    with BudgetAccountant(100.0, 1e-2) as budget:
        private = search(make_pipeline(BoundedScaler(), OperaLogisticRegression(classes=[0, 1])))
        with pytest.raises(TypeError, match="only for all steps, as groups="):
            private.fit(X, y, operalogisticregression__groups=ids)
        with sklearn.config_context(enable_metadata_routing=True):
            leaf = OperaLogisticRegression(classes=[0, 1]).set_fit_request(groups="person")
            for asked in (leaf, make_pipeline(BoundedScaler(), leaf)):
                with pytest.raises(TypeError, match="only for all steps, as groups="):
                    search(asked).fit(X, y, person=ids)
    assert not budget.entries()


def test_a_seed_with_other_units_draws_other_noise():
    X, y, ids = table()
    models = [search(random_state=1).fit(X, y, groups=each) for each in (ids, ids % 39)]
    assert not np.array_equal(models[0].best_estimator_.coef_, models[1].best_estimator_.coef_)
