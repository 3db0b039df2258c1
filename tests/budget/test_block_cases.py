"""Which fits a `with budget:` block charges: one test for each case that the guide lists."""

import contextlib
import contextvars
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from ledger_workers import fit_and_report, fit_own
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import skdp
from skdp import OperaSVC
from skdp.budget import BudgetAccountant
from skdp.budget import config as notices
from skdp.exceptions import BudgetRequiredError
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import BoundedScaler, DPStandardScaler

METHODS = multiprocessing.get_all_start_methods()  # "spawn" is there everywhere
needs_fork = pytest.mark.skipif("fork" not in METHODS, reason="needs fork")
ROWS = np.linspace(0.0, 1.0, 40).reshape(20, 2)
UNCLEAR = "It is uncl"


@pytest.fixture
def budget():
    return BudgetAccountant(2.0, 1e-3, composition="basic", name="one")


@pytest.fixture
def other():
    return BudgetAccountant(2.0, 1e-3, composition="basic", name="other")


def charges(*budgets):
    return tuple(len(budget.entries()) for budget in budgets)


def scaler(**parameters):
    return DPStandardScaler(epsilon=1.0, delta=1e-6, **parameters)


def in_a_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


# Estimators and threads.


def search_of(estimator):
    return PrivateGridSearchCV(
        estimator, {"operasvc__alpha": [0.1, 1.0]}, epsilon=0.5, delta=1e-6, scoring="accuracy"
    )


def test_search_around_an_estimator_of_a_block_charges_its_budget(budget, other):
    y = np.arange(20) % 2
    svc = {"classes": [0, 1], "data_norm": 2.0}
    with budget:
        bound = make_pipeline(BoundedScaler([0, 0], [1, 1]), OperaSVC(**svc))
        inside = search_of(bound)
    search = search_of(bound)
    for each in (search, clone(search), pickle.loads(pickle.dumps(search)), inside):
        each.fit(ROWS, y)
    assert charges(budget, other) == (4, 0)
    with other:
        search.fit(ROWS, y)
    assert charges(budget, other) == (4, 1)
    with other, pytest.raises(RuntimeError, match=UNCLEAR):  # as a fit of these estimators
        in_a_thread(lambda: search.fit(ROWS, y))
    assert charges(budget, other) == (4, 1)
    with other:
        scaler_of_other = scaler()
    mixed = make_pipeline(scaler_of_other, bound[-1])
    with pytest.raises(RuntimeError, match=UNCLEAR):
        search_of(mixed).fit(ROWS, y)
    assert charges(budget, other) == (4, 1)


def test_search_among_estimators_of_a_block_charges_its_budget(budget):
    with budget:
        bound = OperaSVC(classes=[0, 1], data_norm=2.0)
    outside = make_pipeline(OperaSVC(classes=[0, 1], data_norm=2.0))
    for grid in ({"operasvc": [bound, outside[-1]]}, [{"operasvc": [bound]}]):
        search = PrivateGridSearchCV(outside, grid, epsilon=0.5, delta=1e-6, scoring="accuracy")
        search.fit(ROWS, np.arange(20) % 2)
    assert charges(budget) == (2,)


def test_search_counts_in_the_adjacency_of_the_budget_that_it_charges():
    budget = BudgetAccountant(2.0, 1e-3, adjacency="add-remove")
    with budget:
        bound = make_pipeline(OperaSVC(classes=[0, 1], data_norm=2.0))
    search = search_of(bound).fit(ROWS, np.arange(20) % 2)
    assert search.privacy_spent_.adjacency == "add-remove"
    assert [entry["adjacency"] for entry in budget.entries()] == ["add-remove"]


def test_what_is_bound_decides_between_open_blocks_of_other_threads(budget, other):
    with budget:
        inside = scaler()
    with other, pytest.raises(RuntimeError, match=UNCLEAR):
        in_a_thread(lambda: inside.fit(ROWS))
    in_a_thread(lambda: inside.fit(ROWS))
    assert charges(budget, other) == (1, 0)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fits_in_one_block_never_charge_another(budget, other, n_jobs):
    """Of estimators made in another block: joblib makes some of its tasks in threads of its own."""
    with budget:
        inside = OperaSVC(0.05, 1e-6, data_norm=1.0)
    y = np.arange(20) % 3
    bag = BaggingClassifier(inside, n_estimators=4, bootstrap=False, n_jobs=n_jobs)
    for work in (OneVsRestClassifier(inside, n_jobs=n_jobs), bag):
        with other, contextlib.suppress(RuntimeError), joblib.parallel_config("threading"):
            work.fit(ROWS, y)
    assert charges(budget) == (0,) and (n_jobs == 2 or charges(other) == (7,))


def test_two_names_of_one_file_are_one_budget(tmp_path):
    budget = BudgetAccountant(9.0, 1e-3, composition="basic", ledger=tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with BudgetAccountant.open(tmp_path / "link"):
        inside = scaler()
    with budget:
        in_a_thread(lambda: inside.fit(ROWS))
    assert charges(budget) == (1,)


def test_an_interrupted_notice_is_taken_back(budget, monkeypatch):
    replace = os.replace

    def interrupted(*names):
        replace(*names)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), budget:
        pass
    monkeypatch.undo()
    assert not notices._posted and not notices._file.exists()


def test_binding_leaves_the_estimator_as_it_is(budget):
    outside = scaler()
    with budget:
        inside = scaler()
    assert repr(inside) == repr(outside) and inside.get_params() == outside.get_params()
    assert vars(outside).keys() == outside.get_params().keys()
    assert all(name.startswith("_") for name in vars(inside).keys() - vars(outside).keys())


def test_a_thread_that_starts_late(budget):
    late = threading.Event()

    def work(fit):
        late.wait()
        return fit()

    with ThreadPoolExecutor(4) as pool:
        with budget:
            inside = scaler()
            bound = pool.submit(work, lambda: inside.fit(ROWS))
            context = contextvars.copy_context()
            told = pool.submit(work, lambda: context.run(fit_own))
        own = pool.submit(work, fit_own)
        late.set()
    assert bound.result() and told.result()[1] is None
    # Nothing tells the last one of the block: only strict mode notices.
    assert own.result()[1] is None and charges(budget) == (2,)
    with skdp.config_context(require_budget=True):
        assert in_a_thread(fit_own)[1] == "BudgetRequiredError"


def test_an_estimator_constructed_where_it_is_unclear_is_not_bound(budget, other):
    with budget:
        first = scaler()
    with other:
        second = in_a_thread(lambda: clone(first))
    second.fit(ROWS)
    with other:
        second.fit(ROWS)
    assert charges(budget, other) == (1, 1)


# Processes.


def run_process(method, target=fit_and_report):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=target, args=(queue,))
    process.start()
    report = queue.get(timeout=300)
    process.join()
    return report


@pytest.mark.parametrize(
    "method",
    [pytest.param("fork", marks=needs_fork)]
    + [pytest.param(m, marks=pytest.mark.slow) for m in METHODS if m != "fork"],
)
def test_a_process_that_constructs_its_own(budget, method):
    with budget:
        assert run_process(method)[1] is None
    assert charges(budget) == (1,)


@needs_fork
def test_a_process_pool_that_is_older_than_the_block(budget, other):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(fit_own)[1] is None  # no block, no charge
        with budget:
            answers = [pool.apply(fit_own)[1] for _ in range(4)]
        assert answers == [None, None, "BudgetExceededError", "BudgetExceededError"]
        with other:
            pool.apply(fit_own)
        with budget, other:
            pool.apply(fit_own)
        with skdp.config_context(require_budget=True):
            assert pool.apply(fit_own)[1] == "BudgetRequiredError"
        assert pool.apply(fit_own)[1] is None
    assert charges(budget, other) == (2, 2)


@needs_fork
def test_a_process_pool_that_was_forked_in_another_block(budget, other):
    with budget:
        pool = multiprocessing.get_context("fork").Pool(1)
    with pool:
        assert pool.apply(fit_own)[1] is None  # still charged to the block it was forked in
        with other:
            assert pool.apply(fit_own)[1] == UNCLEAR
            pool.apply(scaler().fit, (ROWS,))  # which is bound to one of them
    assert charges(budget, other) == (1, 1)


def run_loky(times):
    return joblib.Parallel(n_jobs=2, backend="loky")(
        joblib.delayed(fit_own)() for _ in range(times)
    )


def check_loky(budget, before):
    with budget:
        reports = run_loky(6)
    assert {pid for pid, _ in reports} <= before if before else True
    found = sorted(str(refused) for _, refused in reports)
    assert found == [*["BudgetExceededError"] * 4, *["None"] * 2]
    assert charges(budget) == (2,)


@pytest.mark.slow
def test_joblibs_workers_that_are_older_than_the_block(budget):
    before = set()
    while len(before) < 2:  # one may take all tasks while the other starts
        before |= {pid for pid, _ in run_loky(6)}
    check_loky(budget, before)
    with skdp.config_context(require_budget=True):
        assert {refused for _, refused in run_loky(2)} == {"BudgetRequiredError"}


@pytest.mark.slow
def test_joblibs_workers_that_are_younger_than_the_block(budget):
    get_reusable_executor().shutdown()
    check_loky(budget, None)


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_other_backends_of_joblib(budget, backend):
    with budget, joblib.parallel_config(backend=backend):
        reports = joblib.Parallel(n_jobs=2)(joblib.delayed(fit_own)() for _ in range(3))
    assert sorted(str(refused) for _, refused in reports) == ["BudgetExceededError", "None", "None"]
    assert charges(budget) == (2,)


def run_script(**environment):
    code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom ledger_workers import fit_own\n"
    oracles = str(Path(__file__).parents[1] / "oracles")
    command = [sys.executable, "-c", code + "print(fit_own()[1])", oracles]
    own = {**os.environ, **environment}
    return subprocess.check_output(command, text=True, env=own).strip()


@pytest.mark.slow
def test_a_program_that_is_started_in_a_block(budget):
    with budget.plan([scaler().privacy_plan(20, 2)]) as plan:
        assert run_script() == "None" and plan.left() == []
    assert [entry["kind"] for entry in budget.entries()] == ["plan", "planned"]


@pytest.mark.slow
def test_a_program_whose_environment_is_taken_away(budget):
    with budget, skdp.config_context(require_budget=True):
        assert run_script(SKDP_NOTICES="") == "None"
        assert run_script(SKDP_NOTICES="", SKDP_REQUIRE_BUDGET="1") == "BudgetRequiredError"
    assert charges(budget) == (0,)


@needs_fork
def test_grandchildren_work_for_the_nearest_block(budget, other):
    def between(queue):
        with other:
            queue.put(run_process("fork"))

    with budget:
        assert run_process("fork", between)[1] is None
    assert charges(budget, other) == (0, 1)


def test_budgets_that_only_their_process_reaches_are_refused_elsewhere():
    class Counting:
        def reserve(self, event, **details):
            raise AssertionError

    skdp.budget.charging.open_block(mine := Counting())
    try:
        assert run_process(METHODS[0])[1] == UNCLEAR
    finally:
        skdp.budget.charging.close_block(mine)


def test_notices_leave_no_file(budget):
    with budget, skdp.config_context(require_budget=True):
        assert notices._file.exists() and notices._file.parent.stat().st_mode & 0o077 == 0
    assert not notices._file.exists()


# Strict mode.


def test_strict_mode_refuses_what_nobody_counts(budget):
    with skdp.config_context(require_budget=True):
        assert skdp.get_config() == {"require_budget": True}
        with pytest.raises(BudgetRequiredError, match=r"accountant=.*with budget:"):
            scaler().fit(ROWS)
        scaler().privacy_plan(20, 2)
        scaler(accountant=budget).fit(ROWS)
        with skdp.config_context(require_budget=False):
            scaler().fit(ROWS)
            assert in_a_thread(fit_own)[1] == "BudgetRequiredError"
        with skdp.config_context():
            assert in_a_thread(fit_own)[1] == "BudgetRequiredError"
    scaler().fit(ROWS)
    assert charges(budget) == (1,)


def test_strict_mode_for_a_whole_process(monkeypatch):
    skdp.set_config(require_budget=True)
    try:
        skdp.set_config()
        assert fit_own()[1] == in_a_thread(fit_own)[1] == "BudgetRequiredError"
        assert run_process(METHODS[0])[1] == "BudgetRequiredError"
    finally:
        skdp.set_config(require_budget=False)
    assert fit_own()[1] is None
    monkeypatch.setenv("SKDP_REQUIRE_BUDGET", "1")
    skdp.set_config(require_budget=False)
    assert fit_own()[1] == "BudgetRequiredError"
    with skdp.config_context(require_budget=False):
        assert fit_own()[1] is None
        assert "fork" not in METHODS or run_process("fork")[1] == "BudgetRequiredError"
    with pytest.raises(TypeError, match="require_budget"):
        skdp.set_config(require_budget="yes")
