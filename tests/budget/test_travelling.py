"""Pickles of what was fitted hold no place of their maker; workers still find the ledger."""

import getpass
import io
import os
import pickle
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
from operator import methodcaller

import dask
import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from support import rows

from skdp import DPSGDClassifier, OperaLogisticRegression, PATEClassifier, PrivateRidge
from skdp.budget import BudgetAccountant, BudgetRequiredError
from skdp.inference import PrivateInference
from skdp.metrics import PrivateCalibrator, PrivateEvaluation
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
)
from skdp.reporting import privacy_statement
from skdp.statistics import private_count

X, Y = rows(60)


def opera(**parameters):
    return OperaLogisticRegression(1.0, 1e-6, data_norm=1.0, classes=[0, 1], **parameters)


def of_schema():
    schema = TableSchema(
        [NumericColumn(f"x{j}", -1.0, 1.0, source="a test") for j in range(X.shape[1])],
        label=LabelColumn("y", [0, 1]),
        unit=PrivacyUnit("patient"),
    )
    return schema.pipeline(OperaLogisticRegression(1.0, 1e-6), positions=True).fit(X, Y)


RELEASED = {
    "model": lambda budget: opera().fit(X, Y),
    "own budget": lambda budget: opera(accountant=budget).fit(X, Y),
    "own plan": lambda budget: opera(accountant=budget.plan([opera().privacy_plan(*X.shape)])).fit(
        X, Y
    ),
    "not fitted": lambda budget: opera(accountant=budget),
    "pipeline": lambda budget: make_pipeline(
        DPStandardScaler(0.1, 1e-7, lower=-1.0, upper=1.0), opera()
    ).fit(X, Y),
    "schema": lambda budget: of_schema(),
    "search": lambda budget: GridSearchCV(opera(), {"alpha": [0.1, 1.0]}, cv=KFold(2)).fit(X, Y),
    "calibrated": lambda budget: CalibratedClassifierCV(opera(), cv=2).fit(X, Y),
    "private search": lambda budget: PrivateGridSearchCV(
        opera(), {"alpha": [0.1, 1.0]}, epsilon=2.0, method="fixed", accountant=budget
    ).fit(X, Y),
    "calibrator": lambda budget: PrivateCalibrator(opera().fit(X, Y), 1.0).fit(X, Y),
    "evaluation": lambda budget: PrivateEvaluation(1.0, 1e-6),
    "result": lambda budget: PrivateEvaluation(1.0, 1e-6).evaluate(opera().fit(X, Y), X, Y),
    "inference": lambda budget: PrivateInference(1.0, 1e-6),
    "odds ratios": lambda budget: PrivateInference(1.0, 1e-6).evaluate(opera().fit(X, Y), X, Y),
    "statistic": lambda budget: private_count(X[:, 0], epsilon=0.1),
    "teachers": lambda budget: PATEClassifier(
        LogisticRegression(), n_teachers=5, epsilon=4.0, classes=[0, 1]
    ).fit(X, Y, X_public=X[:8]),
    "regressor": lambda budget: PrivateRidge(1.0, 1e-6, data_norm=1.0, target_bounds=(0, 1)).fit(
        X, Y
    ),
}


def dumped(released):
    """Return the bytes of a pickle by two hands."""
    file = io.BytesIO()
    joblib.dump(released, file)
    return pickle.dumps(released) + file.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RELEASED)
def test_no_pickle_says_where_it_was_made(name, tmp_path):
    budget = BudgetAccountant(1e3, 1e-3, ledger=tmp_path / "very-private-study.sqlite")
    with budget:
        released = RELEASED[name](budget)
        inside = dumped(released)
    told = inside + dumped(released)
    for secret in ("very-private-study", str(tmp_path), os.getcwd(), socket.gethostname()):
        assert secret.encode() not in told, secret
    user = getpass.getuser().encode()
    assert len(user) < 5 or user not in told  # short names are in many words
    # The object itself is as it was.
    assert budget.entries() == [] or budget.ledger.exists()


RUNNERS = {
    "thread": lambda model: ThreadPoolExecutor(1).submit(pickle.dumps, model).result(),
    "pool of threads": lambda model: ThreadPool(1).map(pickle.dumps, [model])[0],
    "process": lambda model: get_context("fork").Pool(1).apply(pickle.dumps, (model,)),
    "graph": lambda model: dask.delayed(pickle.dumps)(model).compute(scheduler="threads"),
    "joblib": lambda model: Parallel(2, backend="threading")(
        delayed(pickle.dumps)(model) for _ in "12"
    )[0],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
def test_what_a_worker_dumps_says_no_place_either(run, tmp_path):
    budget = BudgetAccountant(9.0, 1e-4, ledger=tmp_path / "very-private-study.sqlite")
    model = opera(accountant=budget).fit(X, Y)
    assert b"very-private-study" not in run(model)


ELSEWHERE = """
import pickle, sys, os, warnings
import numpy as np
from sklearn.base import clone
from skdp.reporting import privacy_statement
from skdp.budget import BudgetAccountant, BudgetRequiredError
warnings.simplefilter("ignore")
model = pickle.load(open(sys.argv[1], "rb"))
X = np.load(sys.argv[2])
print(model.predict(X).tolist())
assert "Guarantee: (1, 1e-06)" in privacy_statement(model)
before = sorted(os.listdir("."))
for one in (model, clone(model)):
    try:
        one.fit(X, X[:, 0] > 0)
    except BudgetRequiredError as error:
        assert str(error).startswith("OperaLogisticRegression.fit has no budget to charge"), error
        assert "with budget" in str(error)
    else:
        raise AssertionError("an uncounted fit")
assert sorted(os.listdir(".")) == before
again = pickle.loads(pickle.dumps(model))
with BudgetAccountant(3.0, 1e-5) as budget:
    again.fit(X, X[:, 0] > 0)
    assert len(budget.entries()) == 1
model.set_params(accountant=budget).fit(X, X[:, 0] > 0)
assert len(budget.entries()) == 2
"""


@pytest.mark.parametrize(
    "way", [pytest.param("given", marks=pytest.mark.slow), "made inside", "fitted inside"]
)
def test_elsewhere_a_model_predicts_and_a_refit_asks_for_a_budget(way, tmp_path):
    model = opera()
    with BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "study.sqlite") as budget:
        if way != "fitted inside":
            model = opera(accountant=budget if way == "given" else None)
        model.fit(X, Y)
    (tmp_path / "model").write_bytes(pickle.dumps(model))
    np.save(tmp_path / "X.npy", X)
    os.remove(budget.ledger)
    other = tmp_path / "other"
    other.mkdir()
    run = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "model"), str(tmp_path / "X.npy")]
    done = subprocess.run(run, cwd=other, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(model.predict(X).tolist())


def test_in_one_process_a_loaded_model_charges_what_it_did(tmp_path):
    budget = BudgetAccountant(9.0, 1e-4, ledger=tmp_path / "study.sqlite")
    with budget:
        bound = opera().fit(X, Y)
    own = opera(accountant=budget).fit(X, Y)
    for number, model in enumerate((bound, own), start=3):
        loaded = pickle.loads(pickle.dumps(model))
        clone(loaded).fit(X, Y)
        assert len(budget.entries()) == number
    assert pickle.loads(pickle.dumps(own)).accountant.ledger == budget.ledger


def test_a_ledger_that_is_opened_later_is_found(tmp_path):
    budget = BudgetAccountant(9.0, 1e-4, ledger=tmp_path / "study.sqlite")
    told = pickle.dumps(opera(accountant=budget).fit(X, Y))
    where = budget.ledger
    del budget
    model = pickle.loads(told)
    assert model.accountant is None
    with pytest.raises(BudgetRequiredError, match="has no budget to charge"):
        model.fit(X, Y)
    again = BudgetAccountant.open(where)
    model.fit(X, Y)
    assert len(again.entries()) == 2


def test_what_is_loaded_in_a_block_is_bound_to_it_where_its_own_budget_is_not(tmp_path):
    budget = BudgetAccountant(9.0, 1e-4, ledger=tmp_path / "study.sqlite")
    with budget:
        told = pickle.dumps(opera().fit(X, Y))
    del budget
    with BudgetAccountant(9.0, 1e-4) as other:
        pickle.loads(told).fit(X, Y)
        bound = pickle.loads(told)
    bound.fit(X, Y)
    assert len(other.entries()) == 2


@pytest.mark.parametrize(
    "backend", ["loky", pytest.param("multiprocessing", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("own", [True, False])
def test_fitted_models_that_travel_charge_the_same_ledger(own, backend, tmp_path):
    budget = BudgetAccountant(99.0, 1e-3, ledger=tmp_path / "study.sqlite")
    with budget:
        fitted = opera(accountant=budget if own else None).fit(X, Y)
    models = [fitted, clone(fitted), DPSGDClassifier(accountant=budget, data_norm=1.0)]
    found = Parallel(n_jobs=2, backend=backend)(
        delayed(methodcaller("fit", X, Y))(model) for model in models
    )
    assert len(budget.entries()) == 4
    found[0].fit(X, Y)  # what comes back stays with it
    assert len(budget.entries()) == 5
    assert "Guarantee" in privacy_statement(found[0])
