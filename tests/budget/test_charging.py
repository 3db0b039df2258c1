"""Which budget a fit charges: its own, its block's, or the one it was bound to."""

import copy
import pickle
import threading
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_toys import NoisyCount
from sklearn.base import BaseEstimator, clone

from skdp import OperaLogisticRegression, config_context
from skdp.accounting import PureDPEvent
from skdp.budget.charging import ChargesBudget, charge_fit, close_block, find_accountant, open_block
from skdp.model_selection import PrivateGridSearchCV
from skdp.reporting import PrivacySpent


class Recorder:
    """A budget that remembers what it was told, in a list shared by all copies."""

    charges: ClassVar[dict] = {}
    made: ClassVar[dict] = {}

    def __init__(self, name):
        self.name = name
        self.charges[name] = []
        self.made[name] = self

    def __reduce__(self):  # pickles reach the same budget
        return recorder_of, (self.name,)

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


def recorder_of(name):
    return Recorder.made[name]


@pytest.fixture
def budget(request):
    return Recorder(request.node.name)


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    X = generator.uniform(-0.5, 0.5, (60, 3))
    return X, (X[:, 0] > 0).astype(int)


def test_without_a_budget_nobody_counts(table):
    assert find_accountant() is None
    OperaLogisticRegression().fit(*table)


def test_a_charge_says_who_and_what(budget, table):
    model = OperaLogisticRegression(alpha=0.5, accountant=budget, random_state=0).fit(*table)
    event, details = budget.charges[budget.name][0]
    spent = model.privacy_spent_
    assert event == spent.event and budget.count == 1
    assert (details["epsilon"], details["delta"]) == (spent.epsilon, spent.delta)
    assert details["estimator"] == "OperaLogisticRegression" and details["seeded"]
    assert details["parameters"]["alpha"] == 0.5 and "random_state" not in details["parameters"]


def test_the_innermost_block_and_the_own_budget_come_first(budget, table):
    inner, own = Recorder("inner"), Recorder("own")
    with budget, inner:
        OperaLogisticRegression().fit(*table)
        OperaLogisticRegression(accountant=own).fit(*table)
    assert (budget.count, inner.count, own.count) == (0, 1, 1)


def test_blocks_end_when_an_exception_passes(budget):
    with pytest.raises(KeyError), budget, Recorder("inner"):
        raise KeyError
    assert find_accountant() is None


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


class Toy(ChargesBudget, BaseEstimator):
    def __init__(self, accountant=None):
        self.accountant = accountant

    def fit(self):
        event = PureDPEvent(1.0)
        charge_fit(
            self, PrivacySpent(1.0, 0.0, "replace-one", event, "basic", "toy", (), (), False)
        )


COPIES = {
    "construct": lambda _: Toy(),
    "clone": clone,
    "pickle": lambda toy: pickle.loads(pickle.dumps(toy)),
    "deepcopy": copy.deepcopy,
}
STEPS = st.tuples(
    st.sampled_from(["open a", "open b", "close", "fit", *COPIES]), st.booleans(), st.integers(0, 9)
)


def promised(blocks, bound, threaded):
    """Say which budget the guide promises: its name, "unclear" or None."""
    if blocks and not threaded:
        return blocks[-1].name
    elsewhere = blocks[-1].name if blocks else None
    return "unclear" if bound and elsewhere not in (None, bound) else bound or elsewhere


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_every_fit_charges_what_the_guide_promises(steps):
    budgets = {name: Recorder(name) for name in "ab"}
    toys, blocks = [(Toy(), None)], []
    try:
        for step, threaded, number in steps:
            run = in_a_thread if threaded else (lambda work: work())
            toy, bound = toys[number % len(toys)]
            goes = promised(blocks, bound, threaded)
            if step.startswith("open"):
                blocks.append(budgets[step[-1]].__enter__())
            elif step == "close" and blocks:
                blocks.pop().__exit__()
            elif step == "fit":
                before = {name: budget.count for name, budget in budgets.items()}
                outcome = run(toy.fit) if threaded or goes != "unclear" else in_main(toy.fit)
                assert isinstance(outcome, RuntimeError) == (goes == "unclear")
                charged = [name for name in budgets if budgets[name].count > before[name]]
                assert charged == [goes] * (goes in budgets)
            elif step in COPIES:
                kept = None if step == "construct" else bound
                copied = run(lambda: COPIES[step](toy))  # noqa: B023
                binds = promised(blocks, kept, threaded)
                toys.append((copied, kept if binds == "unclear" else binds))
    finally:
        while blocks:
            blocks.pop().__exit__()


def in_main(work):
    """Return what was raised."""
    with pytest.raises(RuntimeError, match="unclear which budget") as caught:
        work()
    return caught.value


def test_searches_stay_with_the_block_they_were_made_in(budget, table):
    with budget:
        search = PrivateGridSearchCV(NoisyCount(classes=[0, 1]), {"threshold": [0.0, 1.0]})
    with config_context(require_budget=True):
        search.fit(*table)
    assert budget.count == 1


def test_what_is_no_budget_is_refused(table):
    with pytest.raises(TypeError, match="BudgetAccountant"):
        OperaLogisticRegression(accountant=3).fit(*table)
