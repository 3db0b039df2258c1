"""An `adjacency` that is not given is that of the budget that a fit charges."""

import importlib
import inspect
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from support import rows

import skdp
from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.budget import BudgetAccountant, plan_fits
from skdp.exceptions import BudgetExceededError
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import DPStandardScaler

X, Y = rows(60)
SHAPE = {"n_samples": 60, "n_features": 4}
RELATIONS = ("replace-one", "add-remove")
OTHER = dict(zip(RELATIONS, RELATIONS[::-1], strict=True))


def budget_of(adjacency, epsilon=100.0):
    return BudgetAccountant(epsilon, 1e-3, adjacency=adjacency)


def descent(**parameters):
    return DPSGDClassifier(1.0, 1e-5, data_norm=1.0, max_iter=5, **parameters)


def test_no_relation_is_the_default_of_whatever_charges():
    found = {}
    for package in (skdp, *map(importlib.import_module, (f"skdp.{p}" for p in skdp._SUBPACKAGES))):
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            begin = thing.__init__ if inspect.isclass(thing) else thing
            taken = inspect.signature(begin).parameters if inspect.isfunction(begin) else {}
            if (
                "adjacency" in taken
                and "accountant" in taken
                and taken["accountant"].default is None
            ):
                found[name] = taken["adjacency"].default
    assert len(found) > 30 and set(found.values()) == {None}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", [descent, DPStandardScaler, OperaLogisticRegression])
def test_the_relation_is_that_of_the_budget_that_is_charged(kind, relation):
    """The rule that decides on the budget decides on the relation, parameters staying as given."""
    budget, other = budget_of(relation), budget_of(OTHER[relation])
    with budget:
        inside = kind()
        for made in (inside, clone(kind()), clone(inside)):
            assert made.privacy_plan(**SHAPE).adjacency == relation
    # Outside of it: where it was made decides, then the block where it is fitted, then what it has.
    for made in (inside, clone(inside), pickle.loads(pickle.dumps(inside))):
        assert made.adjacency is None
        assert made.fit(X, Y).privacy_spent_.adjacency == relation
        assert made.adjacency is None
    assert len(budget.entries()) == 3
    with other:
        assert inside.fit(X, Y).privacy_spent_.adjacency == OTHER[relation]
        assert kind(accountant=budget).fit(X, Y).privacy_spent_.adjacency == relation
        assert kind(adjacency=relation).privacy_plan(**SHAPE).adjacency == relation
    plan = budget.plan(plan_fits(kind(accountant=budget), **SHAPE))
    assert kind(accountant=plan).fit(X, Y).privacy_spent_.adjacency == relation
    assert plan.left() == []


@pytest.mark.parametrize("relation", RELATIONS)
def test_another_process_resolves_as_this_one_does(relation, tmp_path):
    budget = BudgetAccountant(9.0, 1e-3, adjacency=relation, ledger=tmp_path / "budget.skdp")
    with budget:
        pickled = pickle.dumps([descent(), clone(DPStandardScaler())])
    work = (
        "import pickle, sys, numpy as np\n"
        "X = np.linspace(-.5, .5, 80).reshape(20, 4)\n"
        "for each in pickle.loads(sys.stdin.buffer.read()):\n"
        "    print(each.adjacency, each.fit(X, np.arange(20) % 2).privacy_spent_.adjacency)\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", work]
    said = subprocess.run(command, input=pickled, capture_output=True, check=True).stdout
    assert said.decode().split() == ["None", relation] * 2
    assert [entry["adjacency"] for entry in budget.entries()] == [relation] * 2


def test_what_is_asked_of_a_budget_fits_it():
    """Of a mechanism that has the budget's own numbers, whichever relation that counts in."""
    for relation in RELATIONS:
        budget = BudgetAccountant(1.0, 1e-5, adjacency=relation)
        model = DPSGDClassifier(1.0, 1e-5)
        assert budget.check(model, **SHAPE) == (0.0, 0.0) and budget.fits(model, **SHAPE) == 1
        assert budget.allocate(1, model, **SHAPE)[0] == pytest.approx(1.0, rel=4e-3)
        with budget:
            spent = DPSGDClassifier(1.0, 1e-5, data_norm=1.0).fit(X, Y).privacy_spent_
        assert spent.adjacency == relation and 0.99 < spent.epsilon <= 1.0
        assert budget.spent() == (1.0, 1e-5) and budget.remaining() == (0.0, 0.0)


def test_a_larger_budget_spends_what_a_model_states():
    budget = BudgetAccountant(3.0, 1e-5)
    with budget:
        spent = DPSGDClassifier(1.0, 1e-5, data_norm=1.0).fit(X, Y).privacy_spent_
    assert spent.adjacency == "replace-one" and 0.99 < spent.epsilon <= 1.0
    # What is left of delta is kept for others; at the model's own delta it is its epsilon.
    assert budget.spent()[0] < 1.05
    assert budget.total.epsilon_at(1e-5) == pytest.approx(spent.epsilon, rel=1e-4)


def test_forecasts_of_steps_and_searches_follow_the_budget_that_is_asked():
    budget = budget_of("add-remove", 3.0)
    steps = make_pipeline(DPStandardScaler(epsilon=0.5), descent())
    grid = GridSearchCV(descent(), {"alpha": [0.1, 1.0]}, cv=2)
    private = PrivateGridSearchCV(descent(), {"alpha": [0.1, 1.0]}, epsilon=1.0)
    for work in (steps, grid, private):
        assert budget.fits(work, **SHAPE) >= 1
        # Outside of it, the same work counts replaced rows, of which the budget takes none.
        assert {spent.adjacency for spent in plan_fits(work, **SHAPE)} == {"replace-one"}
    with pytest.raises(ValueError, match="does not cover adding"):
        budget.check(plan_fits(steps, **SHAPE))
    assert descent().privacy_plan(**SHAPE).adjacency == "replace-one"


def test_a_refusal_says_what_a_relation_that_was_given_comes_to():
    budget = BudgetAccountant(1.0, 1e-5)
    model = descent(adjacency="add-remove", accountant=budget)
    said = (
        r" counts under add-remove, this budget under replace-one: "
        r"\(epsilon=1, delta=1e-05\) becomes \(epsilon=2, delta=3\.7\de-05\)\. Omit adjacency= to"
    )
    with pytest.raises(BudgetExceededError, match=said):
        model.fit(X, Y)
    with pytest.raises(BudgetExceededError, match=said):
        budget.check(model, **SHAPE)
    plan = BudgetAccountant(3.0, 1e-5).plan([descent().privacy_plan(**SHAPE)])
    with pytest.raises(BudgetExceededError, match=said):
        model.set_params(accountant=plan).fit(X, Y)
    with pytest.raises(BudgetExceededError) as caught:
        descent(accountant=BudgetAccountant(0.5, 1e-5)).fit(X, Y)
    assert "counts under" not in str(caught.value)


def test_a_release_counts_in_one_relation_whatever_happens_meanwhile():
    """A block that another thread opens during a fit must not mix two relations in one price."""
    budget = budget_of("add-remove")

    class Slow(DPStandardScaler):
        def _build_plan(self, *shape):
            plan = super()._build_plan(*shape)
            thread = threading.Thread(target=budget.__enter__)
            thread.start()
            thread.join()
            return plan

    scaler = Slow()
    try:  # the plan is one of replaced rows, which says nothing of added ones
        with pytest.raises(ValueError, match="does not cover adding"):
            scaler.fit(X)
    finally:
        budget.__exit__()
    assert budget.entries() == [] and not hasattr(scaler, "mean_")


def test_pickles_keep_the_relation_that_they_were_stored_with():
    """In older ones a default is stored as if it had been given."""
    for relation in RELATIONS:
        model = descent().fit(X, Y)
        state = {**model.__getstate__(), "adjacency": relation}
        again = DPSGDClassifier.__new__(DPSGDClassifier)
        again.__setstate__(state)
        assert again.adjacency == relation and np.array_equal(again.coef_, model.coef_)
        with budget_of("replace-one"):
            assert again.fit(X, Y).privacy_spent_.adjacency == relation
            assert clone(again).privacy_plan(**SHAPE).adjacency == relation


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_seed_does_not_tell_whether_the_relation_was_given(relation):
    with budget_of(relation):
        fits = [descent(random_state=0, adjacency=a).fit(X, Y) for a in (None, relation)]
        search = PrivateGridSearchCV(descent(), {"alpha": [0.1, 1.0]}, random_state=0, epsilon=4.0)
        scores = [
            clone(search).set_params(adjacency=a).fit(X, Y).best_score_ for a in (None, relation)
        ]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert scores[0] == scores[1]


def test_an_invalid_relation_is_refused():
    for value in ("both", False, 0):
        with pytest.raises(
            ValueError, match="adjacency must be one of 'add-remove', 'replace-one'"
        ):
            descent(adjacency=value).fit(X, Y)
