"""scikit-learn's own tools around private estimators: every fit is in the ledger exactly once."""

import threading
import warnings

import joblib
import numpy as np
import pytest
from search_toys import fit_once
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from support import rows

from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.accounting import Event
from skdp.budget import BudgetAccountant
from skdp.exceptions import BudgetExceededError
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import BoundedScaler

FOLDS = KFold(3)
GRID = {"alpha": [0.05, 0.1, 0.2]}


@pytest.fixture(scope="module")
def table():
    return rows(120)


def budget(**options):
    return BudgetAccountant(**{"epsilon": 100.0, "delta": 1e-3, **options})


def private(accountant, **options):
    return OperaLogisticRegression(epsilon=0.1, accountant=accountant, **options)


@pytest.mark.parametrize(
    ("backend", "jobs"),
    [("sequential", 1), pytest.param("loky", 2, marks=pytest.mark.slow), ("threading", 2)],
)
def test_a_grid_search_charges_every_candidate_fold_and_the_refit(backend, jobs, table):
    accountant = budget()
    with joblib.parallel_config(backend=backend, n_jobs=jobs):
        search = GridSearchCV(private(accountant), GRID, cv=FOLDS).fit(*table)
    entries = accountant.entries()
    assert len(entries) == 3 * 3 + 1
    counts = {alpha: 0 for alpha in GRID["alpha"]}
    for entry in entries:
        counts[entry["parameters"]["alpha"]] += 1
    best = search.best_params_["alpha"]
    assert counts == {alpha: 3 + (alpha == best) for alpha in counts}
    accountant.verify()


def test_a_block_is_charged_by_clones_and_workers(table):
    accountant = budget()
    with joblib.parallel_config(backend="loky", n_jobs=2), accountant:
        GridSearchCV(OperaLogisticRegression(epsilon=0.1), GRID, cv=FOLDS).fit(*table)
        cross_val_score(OperaLogisticRegression(epsilon=0.1), *table, cv=FOLDS)
    assert len(accountant.entries()) == 10 + 3
    OperaLogisticRegression().fit(*table)
    assert len(accountant.entries()) == 13


@pytest.mark.parametrize(
    ("backend", "jobs"),
    # An error ends all workers, and new ones take seconds to start.
    [("sequential", 1), ("threading", 2), pytest.param("loky", 2, marks=pytest.mark.slow)],
)
def test_a_spent_budget_stops_a_search_that_raises(backend, jobs, table):
    accountant = budget(epsilon=0.4, delta=1e-4, composition="basic")
    search = GridSearchCV(private(accountant), GRID, cv=FOLDS, error_score="raise")
    before = set(threading.enumerate())
    with joblib.parallel_config(backend=backend, n_jobs=jobs), pytest.raises(BudgetExceededError):
        search.fit(*table)
    # What is cut short goes on in its thread, and puts the warnings back when it ends.
    for thread in set(threading.enumerate()) - before if backend == "threading" else ():
        thread.join(300)
    assert len(accountant.entries()) == 4
    assert not hasattr(search, "best_params_")


@pytest.mark.parametrize(
    ("backend", "jobs"), [("sequential", 1), pytest.param("loky", 2, marks=pytest.mark.slow)]
)
def test_a_spent_budget_fails_the_rest_with_a_warning(backend, jobs, table):
    accountant = budget(epsilon=0.5, delta=1e-4, composition="basic")
    search = GridSearchCV(private(accountant), GRID, cv=FOLDS, refit=False)
    with (
        joblib.parallel_config(backend=backend, n_jobs=jobs),
        pytest.warns(FitFailedWarning, match="4 fits failed"),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "One or more of the test scores", UserWarning)
        search.fit(*table)
    scores = [search.cv_results_[f"split{fold}_test_score"] for fold in range(3)]
    assert np.isnan(scores).sum() == 4
    assert len(accountant.entries()) == 5


def test_a_refit_that_does_not_fit_raises_whatever_the_error_score(table):
    accountant = budget(epsilon=0.9, delta=1e-4, composition="basic")
    with pytest.raises(BudgetExceededError):
        GridSearchCV(private(accountant), GRID, cv=FOLDS).fit(*table)
    assert len(accountant.entries()) == 9


def test_cross_validation_scores(table):
    accountant = budget()
    cross_val_score(private(accountant), *table, cv=FOLDS, n_jobs=2)
    result = cross_validate(private(accountant), *table, cv=FOLDS, n_jobs=2, return_estimator=True)
    assert len(accountant.entries()) == 6
    # What came back from a worker still charges the same ledger.
    result["estimator"][0].fit(*table)
    assert len(accountant.entries()) == 7


def test_one_against_the_rest():
    accountant = budget()
    X, y = rows(120, n_classes=3)
    OneVsRestClassifier(private(accountant), n_jobs=2).fit(X, y)
    assert len(accountant.entries()) == 3


@pytest.mark.parametrize(
    ("composition", "method"),
    [
        *(("gdp", "random-stopping"), ("zcdp", "cv"), ("rdp", "holdout")),
        *(("basic", "random-stopping"), ("approx", "cv")),
    ],
)
def test_a_private_search_is_one_entry_in_any_currency(composition, method, table):
    accountant = budget(epsilon=8.0, delta=1e-4, composition=composition)
    search = PrivateGridSearchCV(
        OperaLogisticRegression(), GRID, method=method, cv=2, accountant=accountant
    ).fit(*table)
    (entry,) = accountant.entries()
    assert Event.from_dict(entry["event"]) == search.privacy_spent_.event
    epsilon, delta = accountant.spent()
    assert epsilon <= 8.0 and delta <= 1e-4
    accountant.verify()


def test_a_private_search_in_a_block_is_one_entry(table):
    accountant = budget()
    with accountant:
        model = make_pipeline(BoundedScaler(), DPSGDClassifier(max_iter=10))
        grid = {"dpsgdclassifier__learning_rate_init": [0.1, 1.0]}
        search = PrivateGridSearchCV(model, grid, method="holdout", n_jobs=2).fit(*table)
    assert len(accountant.entries()) == 1
    assert search.best_estimator_[-1].privacy_spent_ is search.privacy_spent_


def test_a_budget_that_cannot_take_the_search_refuses_it_whole(table):
    accountant = budget(epsilon=0.5, delta=1e-6)
    search = PrivateGridSearchCV(OperaLogisticRegression(), GRID, accountant=accountant)
    with pytest.raises(BudgetExceededError):
        search.fit(*table)
    assert not accountant.entries() and not hasattr(search, "best_params_")


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_joblib(backend, table):
    accountant = budget()
    coefs = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(fit_once)(private(accountant), *table) for _ in range(4)
    )
    assert len(accountant.entries()) == 4
    assert len({coef.tobytes() for coef in coefs}) == 4  # each drew noise of its own
