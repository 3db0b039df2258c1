"""Wrappers whose inner fits get rows twice, or rows chosen by labels, and what is said of them."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.reporting import privacy_statement
from skdp.reporting._examine import judge_rows_of_fits

GENERATOR = np.random.default_rng(4)
# The first column is the row's number.
X = np.c_[np.arange(60.0), GENERATOR.normal(size=(60, 3))]
Y = GENERATOR.integers(0, 3, 60)


class Witness(ClassifierMixin, BaseEstimator):
    """Keeps the tables that it was fitted on."""

    tables: ClassVar[list] = []

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.tables.append(np.array(X))
        self.classes_, counts = np.unique(y, return_counts=True)
        self.coef_ = np.arange(1.0, X.shape[1] + 1.0)[None]
        self.shares_ = counts / len(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


def partly_labelled(y):
    return np.where(y == Y[7], -1, y)


WRAPPERS = {
    "all rows, voting": (VotingClassifier([("a", Witness()), ("b", Witness())]), None),
    "all rows, one vs rest": (OneVsRestClassifier(Witness()), None),
    "all rows, codes": (OutputCodeClassifier(Witness(), random_state=0), None),
    "all rows, outputs": (MultiOutputClassifier(Witness()), lambda y: np.c_[y, y % 2]),
    "all rows, RFE": (RFE(Witness(), n_features_to_select=2), None),
    "bags without copies": (BaggingClassifier(Witness(), bootstrap=False, random_state=0), None),
    "half bags": (
        BaggingClassifier(Witness(), bootstrap=False, max_samples=0.5, random_state=0),
        None,
    ),
    "bags": (BaggingClassifier(Witness(), random_state=0), None),
    "one vs one": (OneVsOneClassifier(Witness()), None),
    "stacking": (StackingClassifier([("a", Witness())], final_estimator=Witness()), None),
    "calibration": (CalibratedClassifierCV(Witness(), cv=3), None),
    "self-training": (SelfTrainingClassifier(Witness(), threshold=0.3), partly_labelled),
}


def tables_of(wrapper, labels):
    Witness.tables.clear()
    wrapper.fit(X, labels)
    return list(Witness.tables)


@pytest.mark.parametrize("name", WRAPPERS)
def test_judged_are_those_whose_inner_tables_are_no_neighbours(name):
    wrapper, relabelled = WRAPPERS[name]
    changed = 7
    neighbour = Y.copy()
    neighbour[changed] = (Y[changed] + 1) % 3
    relabelled = relabelled or (lambda y: y)
    tables = tables_of(wrapper, relabelled(Y))
    others = tables_of(wrapper, relabelled(neighbour))
    sound = len(tables) == len(others)
    for one, other in zip(tables, others, strict=False):
        same = one.shape == other.shape and (one == other).all()
        sound &= bool(same) and len(np.unique(one, axis=0)) == len(one)
    verdict = judge_rows_of_fits(wrapper)
    assert (verdict is None) == sound
    assert verdict is None or (verdict.kind == "leaking" and verdict.remedy)


def test_boosting_over_private_classifiers_is_refused():
    with pytest.raises(ValueError, match="sample_weight"):
        AdaBoostClassifier(OperaLogisticRegression()).fit(X, Y)


def test_the_statement_counts_the_copies_in_bags():
    budget = BudgetAccountant(20.0, 1e-3)
    bags = BaggingClassifier(OperaLogisticRegression(accountant=budget), 2, random_state=0)
    bags.fit(X / 60.0, Y)
    copies = max(np.bincount(bag).max() for bag in bags.estimators_samples_)
    record = privacy_statement(bags, rows_per_unit=int(copies)).to_dict()
    assert not record["holds_for_the_whole"] and copies > 1
    assert f"up to {copies} times" in record["parts"][0]["reason"]
    assert f"rows_per_unit={copies}" in record["parts"][0]["remedy"]
    guarantee = record["guarantee"]
    assert guarantee["of_the_unit"]["epsilon"] > copies * 0.9 * guarantee["epsilon"]
    said = " ".join(privacy_statement(budget).to_dict()["not_covered"])
    assert "duplicate rows" in said and "one-vs-one" in said


def test_the_statement_of_one_vs_one_says_why():
    fitted = OneVsOneClassifier(OperaLogisticRegression()).fit(X / 60.0, Y)
    part = privacy_statement(fitted).to_dict()["parts"][0]
    assert part["kind"] == "leaking" and "rows of two labels" in part["reason"]
