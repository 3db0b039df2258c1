"""The order of an evaluation, its charge, what it refuses, and that nothing private is in it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from skdp import config_context
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.exceptions import BudgetRequiredError, PrivacyWarning
from skdp.mechanisms import record_releases
from skdp.metrics import PrivateEvaluation
from skdp.testing.replay import differences

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 3))
Y = (X @ [1.0, -1.0, 0.5] + RNG.logistic(size=3000) > 0.4).astype(int)
THREE = Y + (X[:, 2] > 0.5)
MODEL = LogisticRegression().fit(X[:400], Y[:400])
MANY = LogisticRegression().fit(X[:400], THREE[:400])
WARDS = np.array(["A", "B"])[(X[:, 0] > 0).astype(int)]
# With so much epsilon noise on the integers is 0 but with probability e^-100000.
EXACT = {"epsilon": 1e6}


def test_with_little_noise_figures_are_those_of_the_rows():
    result = PrivateEvaluation(**EXACT).evaluate(MODEL, X, Y)
    assert result.accuracy == pytest.approx(MODEL.score(X, Y), abs=1e-6)
    many = PrivateEvaluation(**EXACT).evaluate(MANY, X, THREE)
    assert many.accuracy == pytest.approx(MANY.score(X, THREE), abs=1e-6)
    recalls = [np.mean(MANY.predict(X[label == THREE]) == label) for label in range(3)]
    assert many.balanced_accuracy == pytest.approx(np.mean(recalls), abs=1e-6)
    assert np.allclose(many.confusion_matrix.sum(axis=1), np.bincount(THREE), atol=1e-3)
    assert many.of(label=2).prevalence == pytest.approx(np.mean(THREE == 2), abs=1e-6)
    with pytest.raises(ValueError, match="label must be one of the classes"):
        _ = many.roc_auc


def test_margins_have_thresholds_and_areas_but_no_calibration():
    machine = LinearSVC().fit(X[:400], Y[:400])
    result = PrivateEvaluation(**EXACT).evaluate(machine, X, Y)
    assert result.accuracy == pytest.approx(machine.score(X, Y), abs=1e-6)
    with pytest.raises(ValueError, match="no probabilities"):
        _ = result.brier_score


def test_subgroups_are_cells_of_the_same_release():
    result = PrivateEvaluation(**EXACT, subgroups=["A", "B", "C"]).evaluate(
        MODEL, X, Y, subgroups=pd.Series(WARDS)
    )
    for ward in "AB":
        assert result.of(subgroup=ward).accuracy == pytest.approx(
            MODEL.score(X[WARDS == ward], Y[WARDS == ward]), abs=1e-5
        )
    assert result.of(subgroup="C").accuracy.interval == (0.0, 1.0)
    assert result.accuracy == pytest.approx(MODEL.score(X, Y), abs=1e-5)
    noisy = PrivateEvaluation(subgroups=["A", "B"]).evaluate(MODEL, X, Y, subgroups=WARDS)
    assert (
        noisy.privacy_spent_.event == PrivateEvaluation().evaluate(MODEL, X, Y).privacy_spent_.event
    )
    with pytest.raises(ValueError, match="subgroup must be one of"):
        noisy.of(subgroup="C")


def test_persons_count_once_with_all_their_rows():
    """Doubling a person's rows changes nothing but rounding; all its rows move one person."""
    ids = np.arange(3000) // 3
    evaluation = PrivateEvaluation(**EXACT)
    once = evaluation.evaluate(MODEL, X, Y, groups=ids)
    assert once.privacy_spent_.unit == "group"
    first = np.r_[0:3, 0:3000]
    again = evaluation.evaluate(MODEL, X[first], Y[first], groups=ids[first])
    assert once.tables.n == again.tables.n == 1000
    assert np.allclose(once.tables.counts, again.tables.counts, atol=1e-2)
    assert once.accuracy == pytest.approx(MODEL.score(X, Y), abs=1e-4)
    assert any("units" in text for text in once.privacy_spent_.assumptions)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_neighbours_are_as_near_as_declared(adjacency, persons):
    evaluation = PrivateEvaluation(adjacency=adjacency, random_state=0)
    ids = np.arange(300) // 3 if persons else None
    changed = slice(0, 3 if persons else 1)
    rows, labels = X[:300].copy(), Y[:300].copy()
    with record_releases() as first:
        evaluation.evaluate(MODEL, rows, labels, groups=ids)
    if adjacency == "replace-one":
        rows[changed], labels[changed] = -9.0 * np.sign(MODEL.coef_) * (2 * labels[0] - 1), 1
        labels[changed] -= labels[0] * 0
    else:
        rows, labels = rows[changed.stop :], labels[changed.stop :]
        ids = None if ids is None else ids[changed.stop :]
    with record_releases(first) as second:
        evaluation.evaluate(MODEL, rows, labels, groups=ids)
    assert [release.label for release in first.releases[-3:]] == ["bins", "cells", "offsets"]
    assert len(first.releases) == len(second.releases) == 14 + 3
    for one, two in zip(first.releases, second.releases, strict=True):
        gap = np.linalg.norm(one.value - two.value)
        assert gap <= one.sensitivity
        assert gap >= 0.5 * one.sensitivity or one.label in ("search", "offsets")


def test_nothing_of_the_rows_is_left_in_the_result():
    def result(rows, labels, replayed=None):
        with record_releases(replayed) as trace:
            return PrivateEvaluation(subgroups=["A", "B"]).evaluate(
                MODEL, rows, labels, subgroups=np.roll(WARDS[: len(rows)], len(rows))
            ), trace

    one, trace = result(X[:500], Y[:500])
    other, _ = result(X[500:1000], 1 - Y[500:1000], trace)
    assert repr(one.roc_auc) == repr(other.roc_auc)
    assert differences(one, other) == []


def test_a_budget_is_charged_before_rows_are_used():
    budget = BudgetAccountant(epsilon=1.1, delta=1e-5, adjacency="add-remove")
    with budget:
        result = PrivateEvaluation().evaluate(MODEL, X, Y)
    (entry,) = budget.entries()
    assert entry["label"] == "PrivateEvaluation.evaluate"
    assert entry["event"] == result.privacy_spent_.event.to_dict()
    called = []

    class Watched(LogisticRegression):
        def predict_proba(self, rows):
            called.append(rows)
            return super().predict_proba(rows)

    watched = Watched().fit(X[:400], Y[:400])
    with pytest.raises(BudgetExceededError):
        PrivateEvaluation(accountant=budget).evaluate(watched, X, Y)
    with config_context(require_budget=True), pytest.raises(BudgetRequiredError):
        PrivateEvaluation().evaluate(watched, X, Y)
    assert not any(np.isin(rows, X).any() for rows in called)  # made-up ones alone


class Chatty:
    """A model of someone else that fails, warns or speaks on private rows."""

    classes_ = np.array([0, 1])

    def __init__(self, answer):
        self.answer = answer

    def predict_proba(self, rows):
        print("row", rows[0])
        if self.answer is None:
            raise KeyError(f"bad value {rows[0]}")
        return self.answer(rows)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1.7e308])
def test_a_score_that_overflows_is_not_told(number, capsys):
    answer = np.column_stack([1.0 - Y, Y]).astype(float)
    answer[7] = number
    places = {row: place for place, row in enumerate(X[:, 0])}
    model = Chatty(lambda rows: answer[[places[row] for row in rows[:, 0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = PrivateEvaluation().evaluate(model, X, Y)
    assert result.accuracy > 0.9


SHAPES = [lambda n: n, lambda n: (5, 2), lambda n: (n, 3)]
WRONG = [None, *(lambda rows, shape=shape: np.ones(shape(len(rows))) for shape in SHAPES)]


@pytest.mark.parametrize("answer", WRONG)
def test_what_a_failing_model_says_is_withheld(answer, capsys):
    with pytest.raises(ValueError, match="the charge stays") as raised:
        PrivateEvaluation().evaluate(Chatty(answer), X, Y)
    assert raised.value.__context__ is None
    assert capsys.readouterr().out == ""


BAD = {
    "epsilon": ({"epsilon": 0.0}, {}),
    "delta": ({"delta": 0.0}, {}),
    "adjacency": ({"adjacency": "both"}, {}),
    "n_bins": ({"n_bins": 3}, {}),
    "thresholds must lie": ({"thresholds": (0.5, 1.0)}, {}),
    "thresholds must be distinct": ({"thresholds": (0.5, 0.5)}, {}),
    "thresholds must be a list": ({"thresholds": 0.5}, {}),
    "score_values must lie": ({"score_values": [0.1, 1.7]}, {}),
    "subgroups must be distinct": ({"subgroups": ["A", "A"]}, {}),
    "both or neither": ({"subgroups": ["A"]}, {}),
    "not declared": ({"subgroups": ["A"]}, {"subgroups": ["secret"] * 3000}),
    "not in classes": ({}, {"y": np.where(Y == 1, 77, 0)}),
    "classes that the model": ({"classes": [0, 1, 2]}, {}),
    "one entry for each row": ({}, {"y": Y[1:]}),
    "3 columns": ({}, {"X": X[:, 1:]}),
    "y is empty": ({}, {"X": X[:0], "y": Y[:0]}),
    "missing ids": ({}, {"groups": [None] * 3000}),
}


@pytest.mark.parametrize("message", BAD)
def test_errors_come_before_charges_and_quote_no_value(message):
    parameters, changed = BAD[message]
    budget = BudgetAccountant(epsilon=10.0, delta=1e-5)
    with budget, pytest.raises(ValueError, match=message) as raised:
        PrivateEvaluation(**parameters).evaluate(**{"model": MODEL, "X": X, "y": Y, **changed})
    assert len(budget.entries()) == 0
    assert "77" not in str(raised.value) and "secret" not in str(raised.value)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_an_evaluation_counts_neighbours_as_its_budget_does(relation):
    budget = BudgetAccountant(epsilon=1.01, delta=1e-5, adjacency=relation)
    given = PrivateEvaluation(1.0, adjacency=relation).evaluate(MODEL, X, Y).privacy_spent_
    with budget:  # which the other relation would exceed, or be refused by
        spent = PrivateEvaluation(1.0).evaluate(MODEL, X, Y).privacy_spent_
    with BudgetAccountant(2.0, 1e-5, adjacency=relation).plan([spent]):
        planned = PrivateEvaluation(1.0).evaluate(MODEL, X, Y).privacy_spent_
    assert spent.adjacency == planned.adjacency == relation
    assert spent.event == given.event
    assert PrivateEvaluation().evaluate(MODEL, X, Y).privacy_spent_.adjacency == "replace-one"


def test_models_without_what_is_needed_are_refused():
    with pytest.raises(TypeError, match="predict_proba"):
        PrivateEvaluation().evaluate(object(), X, Y)
    with pytest.raises(ValueError, match="not fitted"):
        PrivateEvaluation(classes=[0, 1]).evaluate(LogisticRegression(), X, Y)
    paired = SVC(decision_function_shape="ovo").fit(X[:60], np.arange(60) % 3)
    with pytest.raises(ValueError, match="use 'ovr'"):
        PrivateEvaluation().evaluate(paired, X, Y)
    with pytest.warns(PrivacyWarning, match="1/n"):
        PrivateEvaluation(delta=0.01).evaluate(MODEL, X, Y)


def test_seeds_repeat_a_release_and_are_said():
    evaluation = PrivateEvaluation(random_state=3)
    one, two = (clone(evaluation).evaluate(MODEL, X, Y).tables.counts for _ in range(2))
    assert np.array_equal(one, two)
    flipped = 1 - Y
    other = evaluation.evaluate(MODEL, X, flipped)
    # With shared noise the tables would differ by whole numbers where labels were exchanged.
    assert not np.allclose(one[..., ::-1, :] - other.tables.counts, 0.0, atol=1e-6)
    assert other.privacy_spent_.seeded


def test_widths_are_known_beforehand():
    rng = np.random.default_rng(5)
    odds = rng.normal(0.0, 1.19, 4000) + 1.19**2 * (rng.integers(0, 2, 4000) - 0.5)

    class Odds:
        classes_ = np.array([0, 1])

        def predict_proba(self, rows):
            return np.column_stack([1.0 - rows, rows])

    scores = 1.0 / (1.0 + np.exp(-odds))
    labels = (rng.uniform(size=4000) < scores).astype(int)
    found = PrivateEvaluation(random_state=1).evaluate(Odds(), scores, labels)
    expected = PrivateEvaluation().expected_widths(4000, 0.5, auc=0.8)
    for name, width in expected.items():
        assert getattr(found, name).width == pytest.approx(width, rel=0.4), name
    rare = PrivateEvaluation(epsilon=0.1).expected_widths(4000, 0.02)
    assert rare["sensitivity"] > 0.9 > rare["accuracy"]
    many = PrivateEvaluation(classes=[0, 1, 2]).expected_widths(4000, 0.3)
    assert many["roc_auc"] > PrivateEvaluation().expected_widths(4000, 0.3)["roc_auc"]
