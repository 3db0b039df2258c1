"""Whatever charges a budget does so once, before any noise is drawn."""

import importlib
import inspect
import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from support import WithPublicRows, rows

import skdp
from skdp import inference, metrics, model_selection, preprocessing, statistics
from skdp.budget import BudgetAccountant
from skdp.exceptions import PrivacyWarning
from skdp.mechanisms import RandomStream, SparseVector
from skdp.preprocessing import CategoricalColumn, NumericColumn, TableSchema
from skdp.reporting import model_card, privacy_statement

X, Y = rows(60)
TARGETS = np.clip(X @ [0.5, -0.5, 0.2, 0.0], -1.0, 1.0)
FRAME = pd.DataFrame({"age": np.arange(60.0), "ward": np.array(["A", "B"])[Y]})
SCHEMA = TableSchema([NumericColumn("age", 0, 100), CategoricalColumn("ward", ["A", "B"])])
CLASSIFIER, REGRESSOR = LogisticRegression().fit(X, Y), LinearRegression().fit(X, TARGETS)
PUBLIC = {"classes": [0, 1], "data_norm": 1.0}
ADDING = {"adjacency": "add-remove"}
BOUNDS = {"lower": 0, "upper": 100}
SEARCHED = skdp.OperaLogisticRegression(epsilon=1.0, **PUBLIC, **ADDING)


def fit(cls, y=Y, **parameters):
    if cls.__name__.startswith(("DPSGD", "Grpua")):
        parameters["max_iter"] = 2
    return lambda accountant, **terms: cls(**parameters, **terms, accountant=accountant).fit(X, y)


def describe(call, *given, **terms):
    return lambda accountant, **more: call(
        *given, **terms, **more, epsilon=1.0, accountant=accountant
    )


def evaluate(cls, model, y, **parameters):
    return lambda accountant, **terms: cls(**parameters, **terms, accountant=accountant).evaluate(
        model, X, y
    )


WORK = {
    **{
        name: fit(getattr(skdp, name), **PUBLIC)
        for name in skdp.__all__
        if name.endswith(("SVC", "LogisticRegression", "SGDClassifier", "MLPClassifier"))
    },
    **{
        name: fit(getattr(skdp, name), TARGETS, target_bounds=(-1.0, 1.0), data_norm=1.0)
        for name in skdp.__all__
        if name.endswith(("HuberRegressor", "SGDRegressor", "Ridge", "LinearRegression"))
    },
    "PATEClassifier": fit(
        WithPublicRows,
        teacher=LogisticRegression(),
        n_teachers=5,
        n_queries=20,
        classes=[0, 1],
    ),
    "DPPCA": fit(preprocessing.DPPCA, n_components=2, data_norm=1.0),
    "DPQuantileClipper": fit(preprocessing.DPQuantileClipper, lower=-1.0, upper=1.0),
    "DPStandardScaler": fit(preprocessing.DPStandardScaler, lower=-1.0, upper=1.0),
    "PrivateGridSearchCV": fit(
        model_selection.PrivateGridSearchCV, estimator=SEARCHED, param_grid={"alpha": [0.1, 1.0]}
    ),
    "PrivateRandomizedSearchCV": fit(
        model_selection.PrivateRandomizedSearchCV,
        estimator=SEARCHED,
        param_distributions={"alpha": [0.1, 1.0]},
        n_iter=2,
    ),
    "PrivateCalibrator": fit(metrics.PrivateCalibrator, estimator=CLASSIFIER),
    "PrivateThreshold": fit(metrics.PrivateThreshold, estimator=CLASSIFIER),
    "PrivateEvaluation": evaluate(metrics.PrivateEvaluation, CLASSIFIER, Y),
    "PrivateInference": evaluate(inference.PrivateInference, CLASSIFIER, Y, data_norm=1.0),
    "PrivateRegressionEvaluation": evaluate(
        metrics.PrivateRegressionEvaluation,
        REGRESSOR,
        TARGETS,
        target_bounds=(-1.0, 1.0),
        largest_error=1.0,
    ),
    "SparseVector": lambda accountant: SparseVector(
        1.0, 1.0, RandomStream.from_entropy(), accountant=accountant
    ),
    "private_contingency_table": describe(
        statistics.private_contingency_table, FRAME[["ward"]], schema=SCHEMA
    ),
    "private_count": describe(statistics.private_count, FRAME["ward"] == "A"),
    "private_histogram": describe(statistics.private_histogram, FRAME["ward"], schema=SCHEMA),
    "private_mean": describe(statistics.private_mean, FRAME["age"], **BOUNDS),
    "private_quantile": describe(statistics.private_quantile, FRAME["age"], 0.5, **BOUNDS),
    "private_table_one": describe(statistics.private_table_one, FRAME, SCHEMA, by="ward"),
    "private_top_k": describe(statistics.private_top_k, FRAME["ward"], 1, schema=SCHEMA),
    "private_variance": describe(statistics.private_variance, FRAME["age"], **BOUNDS),
}


def test_everything_that_charges_is_tried():
    found = set()
    for package in (skdp, *map(importlib.import_module, (f"skdp.{p}" for p in skdp._SUBPACKAGES))):
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            begin = thing.__init__ if inspect.isclass(thing) else thing
            if inspect.isfunction(begin):
                budget = inspect.signature(begin).parameters.get("accountant")
                found |= {name} if budget is not None and budget.default is None else set()
    assert found == set(WORK)


@pytest.mark.parametrize("name", WORK)
def test_the_charge_comes_once_and_before_any_noise(name, monkeypatch):
    """Whoever ends the process at the charge, or refuses it, has learned nothing of the rows."""
    drawn, charges, said = [], [], {}
    fill, words = RandomStream._fill, RandomStream.words

    def watched_fill(self, out, loops):
        drawn.append(out.size)
        return fill(self, out, loops)

    def watched_words(self, count):
        found = words(self, count)
        if count <= 4:  # keys of streams, and seeds of public choices
            drawn.pop()
        return found

    class Budget:
        adjacency = "replace-one" if name == "PATEClassifier" else "add-remove"

        def reserve(self, event, **details):
            charges.append(len(drawn))
            said.update(details, event=event)

    monkeypatch.setattr(RandomStream, "_fill", watched_fill)
    monkeypatch.setattr(RandomStream, "words", watched_words)
    result = WORK[name](Budget())
    # Which rows a search holds out is drawn before, of their numbers alone.
    assert charges == ["Search" in name] and len(drawn) > charges[0]
    if name != "SparseVector":  # which has no record
        spent = result.privacy_spent_
        for part in ("event", "epsilon", "delta", "adjacency", "seeded", "unit"):
            assert said[part] == getattr(spent, part), part
        assert spent.adjacency == Budget.adjacency


RECORDED = sorted(WORK.keys() - {"SparseVector"})  # which has no relation


@pytest.mark.daily(15)
@pytest.mark.parametrize("name", RECORDED)
def test_a_relation_that_is_not_given_is_that_of_the_block(name):
    """And without a budget replaced rows."""
    assert WORK[name](None).privacy_spent_.adjacency == "replace-one"
    with BudgetAccountant(100.0, 1e-3, **ADDING) as budget:
        if name == "PATEClassifier":  # which needs ids for that
            with pytest.raises(ValueError, match=r"adjacency=.add-remove. \(which None follows"):
                WORK[name](None)
            assert budget.entries() == []
            return
        assert WORK[name](None).privacy_spent_.adjacency == "add-remove"
    assert [entry["adjacency"] for entry in budget.entries()] == ["add-remove"]


@pytest.mark.parametrize(
    "name", ["DPSGDClassifier", "private_mean", "PrivateEvaluation", "PrivateInference"]
)
def test_a_relation_that_is_given_stays(name):
    ours = BudgetAccountant(100.0, 1e-3, adjacency="replace-one")
    with ours:  # converted
        assert WORK[name](None, **ADDING).privacy_spent_.adjacency == "add-remove"
    with (
        BudgetAccountant(100.0, 1e-3, **ADDING) as theirs,
        pytest.raises(ValueError, match="cover"),
    ):
        WORK[name](None, adjacency="replace-one")
    assert len(ours.entries()) == 1 and theirs.entries() == []


def warnings_of_delta(name, delta):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WORK[name](None, delta=delta)
    return [said for said in caught if "1/n" in str(said.message)]


@pytest.mark.parametrize("name", sorted(WORK.keys() - {"SparseVector", "private_top_k"}))
def test_a_delta_of_one_over_n_is_warned_of_once(name):
    """All have a delta but those above. Whoever called them is pointed at."""
    (said,) = warnings_of_delta(name, 1.0 / 60.0)
    assert said.category is PrivacyWarning and said.filename == __file__
    assert "delta=0.0166667 is not below 1/n" in str(said.message)
    n_is_private = name.startswith("private")
    assert warnings_of_delta(name, 9.9e-4 if n_is_private else 1.0 / 61.0) == []
    if name.startswith(("Opera", "ObjectivePerturbation", "private")):  # which offer it
        assert warnings_of_delta(name, 0.0) == []


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_no_warning_tells_a_private_number_of_rows(adjacency):
    def said(n_rows, delta):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            statistics.private_count(["a"] * n_rows, epsilon=1.0, delta=delta, adjacency=adjacency)
        return [str(one.message) for one in caught]

    for delta in (0.1, 1e-3, 9e-4):
        (few, more), none = (said(60, delta), said(5000, delta)), said(0, delta)
        assert (few == more == none) == (adjacency == "add-remove")
        assert bool(few) == (delta >= 1e-3 if adjacency == "add-remove" else delta >= 1.0 / 60.0)


@pytest.mark.parametrize(
    ("details", "part"),
    [
        ({"random_state": 0}, ("seeded", True)),
        ({"adjacency": "add-remove"}, ("adjacency", "add-remove")),
        ({"adjacency": "replace-one"}, ("adjacency", "replace-one")),
    ],
)
def test_a_charge_says_what_the_noise_is_worth(details, part):
    budget = BudgetAccountant(4.0, 1e-5, adjacency="replace-one", composition="basic")
    model = skdp.OperaLogisticRegression(accountant=budget, **PUBLIC, **details).fit(X, Y)
    (entry,) = budget.entries()
    assert entry[part[0]] == getattr(model.privacy_spent_, part[0]) == part[1]
    # A budget of replaced rows counts two changes of a fit that bounds one row that is added.
    assert budget.spent()[0] == pytest.approx(2.0 if part[1] == "add-remove" else 1.0, rel=1e-6)


def test_a_charge_says_that_persons_are_protected():
    budget = BudgetAccountant(4.0, 1e-5)
    model = skdp.PrivateRidge(target_bounds=(-1.0, 1.0), data_norm=1.0, accountant=budget)
    model.fit(X, TARGETS, groups=np.arange(60) // 2)
    (entry,) = budget.entries()
    assert entry["unit"] == "group" == model.privacy_spent_.unit == budget.total.unit


def check_card(result, shown):
    pytest.importorskip("skops")
    if hasattr(result, "get_params") and "NO guarantee" not in privacy_statement(result):
        assert f"(epsilon = {shown[0]}, delta = {shown[1]})" in model_card(result).render()


@pytest.mark.parametrize(
    "relation", ["replace-one", pytest.param("add-remove", marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RECORDED)
def test_every_place_has_the_figure_that_was_asked_for_and_charged(name, relation):
    if name == "PATEClassifier" and relation == "add-remove":
        pytest.skip("needs ids")
    budget = BudgetAccountant(100.0, 1e-3, adjacency=relation)
    with budget:
        result = WORK[name](budget)
        dumped = pickle.dumps(result)
    spent = result.privacy_spent_
    epsilon, delta = spent
    (entry,) = budget.entries()
    assert (entry["epsilon"], entry["delta"]) == (epsilon, delta)
    assert entry["parameters"].get("epsilon", epsilon) == epsilon
    shown = f"{epsilon:.6g}", f"{delta:.3g}"
    statement, text = privacy_statement(result), " ".join(privacy_statement(result).split())
    guarantee = statement.to_dict()["guarantee"]
    assert (guarantee["epsilon"], guarantee["delta"]) == (epsilon, delta)
    assert f"({shown[0]}, {shown[1]})-differential privacy" in text
    assert {point["epsilon"] for point in guarantee["curve"] if point["delta"] == delta} == {
        epsilon
    }
    for part in statement.to_dict()["parts"]:
        assert part.get("epsilon", epsilon) == epsilon
    for place in (repr(spent), spent._repr_html_(), statement._repr_html_()):
        assert shown[0] in place and shown[1] in place
    check_card(result, shown)
    # The sharper figure is a detail, and never more than what is promised.
    proved = float(spent.epsilon_at(delta))
    assert proved <= epsilon and guarantee["proved_epsilon"] <= epsilon
    assert ("Sharper bound" in text) == (f"{guarantee['proved_epsilon']:.6g}" != shown[0])
    again = pickle.loads(pickle.dumps(spent))
    assert again == spent and type(spent).from_dict(spent.to_dict()) == spent
    for secret in (budget.ledger.name, os.getcwd()):
        assert secret.encode() not in dumped
