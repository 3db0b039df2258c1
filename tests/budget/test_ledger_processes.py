"""One ledger for all processes: what fits is granted, and what was granted is never lost."""

import gc
import multiprocessing
import os
import pickle
import random
import signal
import threading
import time

import joblib
import pytest
from ledger_workers import (
    charge_and_report,
    charge_many,
    charge_together,
    charge_with_evidence,
    in_child,
    redeem_all,
    run_processes,
)
from support import rows

from skdp import OperaLogisticRegression
from skdp.accounting import GaussianEvent, PureDPEvent
from skdp.budget import BudgetAccountant, BudgetRequiredError, LedgerMissingError

METHODS = [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()]
needs_fork = pytest.mark.skipif("fork" not in METHODS, reason="needs fork")


@needs_fork
def test_no_process_takes_all_grants(tmp_path):
    budget = BudgetAccountant(0.6, 0.0, ledger=tmp_path / "ledger.sqlite")
    barrier = multiprocessing.get_context("fork").Barrier(3)
    granted = run_processes("fork", 3, charge_together, budget, barrier, 60)
    assert sum(granted) == 60 and min(granted) > 0


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_temporary_ledgers_are_reached_from_processes(method):
    budget = BudgetAccountant(0.05, 0.0)
    granted = run_processes(method, 2, charge_and_report, budget, 4)
    assert sum(granted) == 5 == budget.verify().entries
    assert budget.ledger.exists()


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_workers_charge_the_same_ledger(backend):
    budget = BudgetAccountant(0.07, 0.0)
    with joblib.parallel_config(backend=backend):
        granted = joblib.Parallel(n_jobs=2)(
            joblib.delayed(charge_many)(budget, 5) for _ in range(2)
        )
    assert sum(granted) == 7 == len(budget.entries())
    assert budget.spent() == (0.07, 0.0)


def test_plans_are_redeemed_once_by_all_processes(tmp_path):
    budget = BudgetAccountant(3.0, 1e-5, ledger=tmp_path / "ledger.sqlite")
    plan = budget.plan([GaussianEvent(20.0)] * 9)
    granted = run_processes(METHODS[0], 3, redeem_all, plan, GaussianEvent(20.0), 6)
    assert sum(granted) == 9 and plan.left() == []
    assert [e["kind"] for e in budget.entries()] == ["plan"] + ["planned"] * 9


def test_pickles_of_one_process_share_the_file_object():
    budget = BudgetAccountant(1.0, 0.0)
    path, again = budget.ledger, pickle.loads(pickle.dumps(budget))
    del budget
    again.reserve(PureDPEvent(0.5))  # it holds the temporary file now
    assert path.exists()
    del again
    assert not path.exists()


def test_pickles_that_outlive_a_temporary_ledger_refuse():
    X, y = rows()
    budget = BudgetAccountant(5.0, 1e-4)
    model = OperaLogisticRegression(epsilon=0.5, delta=1e-6, accountant=budget).fit(X, y)
    stored = pickle.dumps(budget), pickle.dumps(model)
    expected = model.predict(X)
    del budget, model
    later, fitted = map(pickle.loads, stored)
    assert (fitted.predict(X) == expected).all() and "LedgerMissingError" in repr(later)
    with pytest.raises(LedgerMissingError, match=r"does not exist.*ledger='FILE'"):
        fitted.fit(X, y)  # this process still knows which ledger was meant
    with pytest.raises(LedgerMissingError):
        later.spent()
    assert not later.ledger.exists()
    del later, fitted
    gc.collect()  # what tracebacks hold
    model = pickle.loads(stored[1])
    with pytest.raises(BudgetRequiredError):
        model.fit(X, y)


def test_hashing_a_budget_does_not_depend_on_what_is_spent():
    # joblib.Memory, and so Pipeline(memory=...), keys its cache by the pickles of parameters.
    budget = BudgetAccountant(1.0, 0.0)
    before = joblib.hash(budget)
    budget.reserve(PureDPEvent(0.5))
    assert joblib.hash(budget) == before != joblib.hash(BudgetAccountant(1.0, 0.0))


@needs_fork
def test_a_child_that_ends_leaves_the_temporary_ledger():
    budget = BudgetAccountant(1.0, 0.0)

    def charge():
        nonlocal budget
        budget.reserve(PureDPEvent(0.25))
        del budget  # the child's last reference

    assert in_child(charge) == "None"
    assert budget.spent() == (0.25, 0.0)


@needs_fork
def test_threads_of_a_fork_may_charge():
    budget = BudgetAccountant(1.0, 0.0)

    def charge():
        thread = threading.Thread(target=budget.reserve, args=(PureDPEvent(0.25),), daemon=True)
        thread.start()
        thread.join(20.0)
        return thread.is_alive()

    assert in_child(charge) == "False"
    assert budget.spent() == (0.25, 0.0)


@needs_fork
def test_forks_while_threads_charge():
    budget = BudgetAccountant(1000.0, 0.0)
    done = threading.Event()

    def work():
        while not done.is_set():
            budget.reserve(PureDPEvent(0.01))

    def charge():
        signal.alarm(600)
        return charge_many(budget, 2, label="child")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert in_child(charge) == "2"
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert budget.verify().entries == len(budget.entries())
    assert sum(entry["label"] == "child" for entry in budget.entries()) == 20


def kill_rounds(tmp_path, rounds, seed):
    """Kill charging processes; every release that may have happened must be in the ledger."""
    path, evidence = tmp_path / "ledger.sqlite", tmp_path / "evidence"
    budget = BudgetAccountant(1000.0, 0.0, ledger=path)
    delays = random.Random(seed)
    released = recorded = 0
    evidence.touch()
    for turn in range(rounds):
        size = evidence.stat().st_size
        child = os.fork()
        if child == 0:
            try:
                charge_with_evidence(budget, evidence)
            finally:
                os._exit(1)
        # Every other child may charge at least once, however busy the machine is.
        while turn % 2 and evidence.stat().st_size == size:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        time.sleep(delays.uniform(0.0, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        entries = BudgetAccountant.open(path).verify().entries
        text = evidence.read_text().split()
        released = int(text[-1]) if text else 0
        assert [int(line) for line in text] == sorted({int(line) for line in text})
        # At most the one charge of each killed process was not released.
        assert entries >= released and entries >= recorded
        recorded = entries
        assert entries - len(text) <= rounds
    assert [e["index"] for e in budget.entries()] == list(range(1, recorded + 1))
    assert {int(line) for line in text} <= set(range(1, recorded + 1))
    assert len(text) >= rounds // 2
    budget.reserve(PureDPEvent(1.0))


@needs_fork
@pytest.mark.slow
def test_killed_processes_lose_no_charge(tmp_path):
    kill_rounds(tmp_path, rounds=100, seed=1)
