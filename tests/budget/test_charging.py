"""Which budget a fit charges: its own, its block's, or the one it was bound to."""

import pickle
import threading
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import OperaLogisticRegression
from skdp.budget.charging import active_accountant, close_block, open_block
from skdp.preprocessing import BoundedScaler


class Recorder:
    """A budget that remembers what it was told, in a list shared by all copies."""

    charges: ClassVar[dict] = {}

    def __init__(self, name):
        self.name = name
        self.charges[name] = []

    def reserve(self, event, **details):
        self.charges[self.name].append((event, details))

    def __deepcopy__(self, memo):
        return self

    def __enter__(self):
        open_block(self)
        return self

    def __exit__(self, *exception):
        close_block(self)

    @property
    def count(self):
        return len(self.charges[self.name])


@pytest.fixture
def budget(request):
    return Recorder(request.node.name)


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    X = generator.uniform(-0.5, 0.5, (60, 3))
    return X, (X[:, 0] > 0).astype(int)


def test_without_a_budget_nobody_counts(table):
    assert active_accountant() is None
    OperaLogisticRegression().fit(*table)


def test_a_charge_says_who_and_what(budget, table):
    model = OperaLogisticRegression(alpha=0.5, accountant=budget, random_state=0).fit(*table)
    event, details = budget.charges[budget.name][0]
    spent = model.privacy_spent_
    assert event == spent.event and budget.count == 1
    assert (details["epsilon"], details["delta"]) == (spent.epsilon, spent.delta)
    assert details["estimator"] == "OperaLogisticRegression" and details["seeded"]
    assert details["parameters"]["alpha"] == 0.5 and "random_state" not in details["parameters"]


def test_a_block_is_charged_and_its_end_is_its_end(budget, table):
    with budget:
        make_pipeline(BoundedScaler(), OperaLogisticRegression()).fit(*table)
    OperaLogisticRegression().fit(*table)
    assert budget.count == 1


def test_the_innermost_block_and_the_own_budget_come_first(budget, table):
    inner, own = Recorder("inner"), Recorder("own")
    with budget, inner:
        OperaLogisticRegression().fit(*table)
        OperaLogisticRegression(accountant=own).fit(*table)
    assert (budget.count, inner.count, own.count) == (0, 1, 1)


def test_blocks_end_when_an_exception_passes(budget):
    with pytest.raises(KeyError), budget, Recorder("inner"):
        raise KeyError
    assert active_accountant() is None


@pytest.mark.parametrize("copy", [clone, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_made_in_a_block_stay_with_its_budget(budget, table, copy):
    with budget:
        inside = copy(OperaLogisticRegression())
    clone(inside).fit(*table)
    copy(OperaLogisticRegression()).fit(*table)
    assert budget.count == 1


def in_a_thread(work):
    """Run in a thread with no block of its own and return what it returned or raised."""
    outcome = []

    def guarded():
        try:
            outcome.append(work())
        except RuntimeError as error:
            outcome.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    return outcome[0]


def test_threads_work_for_the_only_open_block(budget, table):
    with budget:
        in_a_thread(lambda: OperaLogisticRegression().fit(*table))
    assert budget.count == 1


def test_a_thread_that_could_mean_two_budgets_is_refused(budget, table):
    ready, done = threading.Event(), threading.Event()

    def other_block():
        with Recorder("elsewhere"):
            ready.set()
            done.wait()

    thread = threading.Thread(target=other_block)
    thread.start()
    try:
        ready.wait()
        with budget:
            OperaLogisticRegression().fit(*table)
            outcome = in_a_thread(lambda: OperaLogisticRegression().fit(*table))
    finally:
        done.set()
        thread.join()
    assert isinstance(outcome, RuntimeError) and "unclear which budget" in str(outcome)
    assert budget.count == 1


def test_what_is_no_budget_is_refused(table):
    with pytest.raises(TypeError, match="BudgetAccountant"):
        OperaLogisticRegression(accountant=3).fit(*table)
