"""Ledgers that Dask's workers ask for over the cluster: no charge is lost, or made twice."""

import os
import pickle
import sys
import threading
import types
import weakref

import joblib
import numpy as np
import pytest
from cluster_workers import leave_the_machine, reserve
from ledger_workers import in_child
from sklearn.model_selection import GridSearchCV, cross_val_score

from skdp import ObjectivePerturbationLogisticRegression
from skdp.accounting import PureDPEvent
from skdp.budget import BudgetAccountant, BudgetExceededError, LedgerUnreachableError
from skdp.budget.desk import Desk
from skdp.budget.ledger import home
from skdp.budget.ledger.server import ServerPlace
from skdp.budget.ledger.store import Ledger
from skdp.exceptions import LedgerError, LedgerMissingError

HOME = "the process that has the ledger"


class Client:
    """A Dask client as skdp sees one; events reach those who listen, or get lost on the way."""

    def __init__(self, cluster, name):
        self.cluster, self.id, self.loop = cluster, f"Client-{name}", self

    def add_callback(self, function, *arguments):
        function(*arguments)

    def subscribe_topic(self, topic, handler):
        self.cluster.handlers[topic] = handler

    def log_event(self, topic, message):
        self.cluster.sent.append(message)
        if topic in self.cluster.handlers and not self.cluster.loses(message):
            self.cluster.handlers[topic]((0.0, message))


class Cluster:
    """Two processes played by threads: the main one is a worker, all others are the home."""

    def __init__(self):
        self.handlers, self.sent = {}, []
        self.loses = lambda message: False
        self.worker, self.client = Client(self, "worker-1"), Client(self, "1")
        self.handlers[HOME] = lambda event: home._hear(weakref.ref(self.client), event)

    def get_client(self):
        if threading.current_thread() is threading.main_thread():
            return self.worker
        raise ValueError("no client")


@pytest.fixture
def cluster(monkeypatch):
    cluster = Cluster()
    monkeypatch.setattr(home, "_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(home, "_SILENCE_SECONDS", 0.3)
    module = types.SimpleNamespace(get_client=cluster.get_client)
    monkeypatch.setitem(sys.modules, "distributed", module)
    return cluster


def at_worker(budget):
    """Return a budget as a worker gets it that was pickled by the process of its ledger."""
    moved = pickle.loads(pickle.dumps(budget))
    moved.desk.home = HOME
    return moved


def calls(cluster):
    return [message for message in cluster.sent if "call" in message]


def test_a_worker_charges_the_ledger_of_its_home(cluster):
    budget = BudgetAccountant(1.0, 0.0)
    entry = reserve(at_worker(budget), 0.25)
    assert [row["label"] for row in budget.entries()] == [entry.label] == ["on a worker"]
    assert budget.spent() == (0.25, 0.0) and len(calls(cluster)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_no_cluster_to_ask(cluster):
    budget = BudgetAccountant(1.0, 0.0)
    moved = at_worker(budget)
    assert in_child(lambda: (reserve(moved, 0.25), len(calls(cluster)))[1]) == "0"
    assert budget.spent() == (0.25, 0.0) and not calls(cluster)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_that_becomes_a_worker_is_not_the_home_of_its_parents_ledgers(cluster, monkeypatch):
    """It may be on a machine without the file by the time it charges."""
    budget, module = BudgetAccountant(1.0, 0.0), sys.modules["distributed"]
    moved, parent = at_worker(budget), home._own_name()
    moved.desk.home = parent
    monkeypatch.delitem(sys.modules, "distributed")  # neither process has met the cluster yet

    def charge():
        sys.modules["distributed"] = module
        cluster.handlers[parent] = cluster.handlers[HOME]
        reserve(moved, 0.25)
        return len(calls(cluster))

    assert in_child(charge) == "1"
    assert budget.spent() == (0.25, 0.0)


def test_refusals_arrive_as_they_are(cluster):
    budget = BudgetAccountant(1.0, 0.0)
    with pytest.raises(BudgetExceededError) as here:
        budget.reserve(PureDPEvent(2.0), label="on a worker")
    with pytest.raises(BudgetExceededError) as there:
        reserve(at_worker(budget), 2.0)
    assert str(there.value) == str(here.value)
    assert there.value.remaining == here.value.remaining == (1.0, 0.0)
    assert budget.entries() == []


def test_plans_are_redeemed_at_home(cluster):
    budget = BudgetAccountant(1.0, 0.0)
    index = budget.plan([PureDPEvent(0.25)]).index
    moved = at_worker(budget).redeem(index)
    assert reserve(moved, 0.25).kind == "planned"
    with pytest.raises(BudgetExceededError, match="all 1 of this kind are redeemed"):
        reserve(moved, 0.25)
    assert budget.spent() == (0.25, 0.0) and len(calls(cluster)) == 2


@pytest.mark.parametrize("lost", ["requests", "answers"])
def test_what_is_lost_on_the_way_is_sent_again_and_charged_once(cluster, lost):
    budget = BudgetAccountant(1.0, 0.0)
    losses = iter([True, True, False])
    cluster.loses = lambda message: (
        ("call" in message) == (lost == "requests") and next(losses, False)
    )
    reserve(at_worker(budget), 0.25)
    assert budget.spent() == (0.25, 0.0) and len(calls(cluster)) > 1


def test_a_home_that_is_silent_is_given_up(cluster):
    budget = BudgetAccountant(1.0, 0.0)
    cluster.loses = lambda message: True
    with pytest.raises(LedgerUnreachableError, match=r"did not answer .* no row was read"):
        reserve(at_worker(budget), 0.25)
    assert home._waiting == {}


def test_a_charge_may_take_longer_than_a_home_may_be_silent(cluster, monkeypatch):
    budget = BudgetAccountant(1.0, 0.0)
    serve = home._serve
    waited = threading.Event()
    monkeypatch.setattr(home, "_serve", lambda *given: (waited.wait(1.0), serve(*given)))
    assert reserve(at_worker(budget), 0.25).index == 1
    assert len(calls(cluster)) > 3 and budget.spent() == (0.25, 0.0)


def test_a_ledger_that_is_gone_is_not_made_anew(cluster):
    budget = BudgetAccountant(1.0, 0.0)
    budget.ledger.unlink()
    with pytest.raises(LedgerMissingError):
        reserve(at_worker(budget), 0.25)
    assert len(calls(cluster)) == 1


def test_an_error_that_cannot_travel_is_told(cluster, monkeypatch):
    def fail(*_, **__):
        raise ValueError(lambda: None)

    monkeypatch.setattr(Ledger, "opened", fail)
    with pytest.raises(LedgerError, match="ValueError: <function"):
        reserve(at_worker(BudgetAccountant(1.0, 0.0)), 0.25)


def test_only_clients_make_their_process_a_home(cluster, monkeypatch):
    budget = BudgetAccountant(1.0, 0.0)
    assert pickle.loads(pickle.dumps(budget)).desk.home is None  # a worker's own
    assert pickle.loads(pickle.dumps(at_worker(budget))).desk.home == HOME  # handed on
    monkeypatch.setattr(cluster, "worker", cluster.client)
    assert pickle.loads(pickle.dumps(at_worker(budget))).desk.home == home._own_name()
    assert home._own_name() in cluster.handlers
    file = budget.desk.file
    away = Ledger(ServerPlace("postgresql://ann@db.example.org/study"), "", file.genesis)
    assert Desk(away).state()["home"] is None  # workers reach a server by themselves


def test_the_home_itself_sends_nothing(cluster, monkeypatch):
    budget = BudgetAccountant(1.0, 0.0)
    monkeypatch.setattr(cluster, "worker", cluster.client)
    reserve(pickle.loads(pickle.dumps(budget)), 0.25)
    assert budget.spent() == (0.25, 0.0) and cluster.sent == []


@pytest.mark.slow
def test_a_search_on_a_cluster_charges_the_clients_ledger():
    distributed = pytest.importorskip("distributed", reason="needs dask's distributed")
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    private = ObjectivePerturbationLogisticRegression(
        epsilon=1.0, delta=0.0, data_norm=3.0, classes=[0, 1]
    )

    def search(**budget):
        estimator = private.set_params(**budget)
        searching = GridSearchCV(estimator, {"alpha": [0.1, 1.0]}, cv=3, error_score="raise")
        with joblib.parallel_config("dask"):
            return searching.fit(X, y)

    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        client.run(leave_the_machine)
        budget, inner, small = (BudgetAccountant(total, 0.0) for total in (10.0, 10.0, 3.0))
        search(accountant=budget)
        assert budget.spent() == (7.0, 0.0)  # six fits on workers, one here
        with inner:
            search(accountant=None)
        assert inner.spent() == (7.0, 0.0)
        with pytest.raises(BudgetExceededError, match="3 of its other fits") as refused:
            search(accountant=small)
        assert refused.value.search == ("GridSearchCV", 3) and len(small.entries()) == 3
        spent = [private.privacy_plan(n_samples=40, n_features=3)] * 3
        plan = budget.plan(spent)
        cross_val_score(private.set_params(accountant=plan), X, y, error_score="raise", cv=3)
        assert plan.left() == []
        entries = client.gather(client.map(reserve, [inner] * 30, [0.1] * 30, pure=False))
        assert sorted(entry.index for entry in entries) == list(range(8, 38))
        refusals = client.map(reserve, [inner] * 4, [0.1] * 4, pure=False)
        assert all(isinstance(each.exception(), BudgetExceededError) for each in refusals)
