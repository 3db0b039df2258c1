"""What becomes of mistakes that analysts make: each is refused uncharged, warned of, or listed.

A review of the table by whoever holds it names those that cells alone would tell of. What remains
silent cannot be seen from public facts; the list says so.
"""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
    TargetEncoder,
    scale,
)
from sklearn.semi_supervised import SelfTrainingClassifier

import skdp
from skdp import OperaLogisticRegression, PrivateRidge
from skdp.budget import BudgetAccountant
from skdp.exceptions import (
    BudgetExceededError,
    BudgetRequiredError,
    LedgerMismatchError,
    LedgerMissingError,
    PrivacyWarning,
)
from skdp.metrics import PrivateCalibrator, PrivateEvaluation
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    DPPCA,
    CategoricalColumn,
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
)
from skdp.reporting import privacy_statement
from skdp.statistics import private_mean

RNG = np.random.default_rng(7)
N = 200
X = RNG.uniform(-0.5, 0.5, (N, 4))
Y = (X[:, 0] + RNG.normal(0.0, 0.3, N) > 0.0).astype(int)
HALF = N // 2
FRAME = pd.DataFrame(
    {
        "patient": np.repeat(np.arange(N // 4), 4),
        "age": RNG.integers(18, 95, N).astype(float),
        "height": RNG.normal(170.0, 10.0, N).round(1),
        "ward": RNG.choice(["A", "B", "C"], N),
        "cost": [f"{amount:,}" for amount in RNG.integers(200, 9000, N)],
        "died": Y,
    }
)
AGE, WARD = NumericColumn("age", 18, 110), CategoricalColumn("ward", ["A", "B", "C"])
DIED, PATIENT = LabelColumn("died", [0, 1]), PrivacyUnit("patient", 4, "patient")
PRIVATE = {"data_norm": 1.0, "classes": [0, 1]}


def model(epsilon=1.0, delta=1e-6, **parameters):
    return OperaLogisticRegression(epsilon, delta, **{**PRIVATE, **parameters})


def behind(*steps):
    """Fit a private classifier behind steps."""
    return lambda: make_pipeline(*steps, model()).fit(X, Y)


def within(wrap, y=Y):
    """Fit what is made of a private classifier."""
    return lambda: wrap(model()).fit(X, y)


def fit(X=X, y=Y, groups=None, weight=None, **parameters):
    """Fit a private classifier with its parameters, to a table."""
    more = {} if weight is None else {"sample_weight": weight}
    return lambda: model(**parameters).fit(X, y, groups=groups, **more)


def described(*columns, frame=FRAME):
    """Fit behind the schema of some columns, and return the review of the table."""

    def run():
        schema = TableSchema(columns, label=DIED)
        table = frame[[*(column.name for column in columns), "died"]]
        schema.pipeline(OperaLogisticRegression(1.0)).fit(*schema.split(table))
        return schema.review(table)

    return run


class Oversampler(BaseEstimator):
    """Stands for samplers of imbalanced-learn."""

    def fit_resample(self, X, y):
        return np.r_[X, X[y == 1]], np.r_[y, y[y == 1]]


# Stands for the pipeline of imbalanced-learn, which calls its samplers in fits alone.
SAMPLING = {"__name__": "imblearn.pipeline", "Base": Pipeline}
exec(
    """
class Pipeline(Base):
    def fit(self, X, y=None, **params):
        self.steps[-1][1].fit(*self.steps[0][1].fit_resample(X, y))
        return self
""",
    SAMPLING,
)


class OtherStep(TransformerMixin, BaseEstimator):
    """A step of somebody else, of which nothing is known."""

    def fit(self, X, y=None):
        self.largest_ = np.abs(X).max()
        return self

    def transform(self, X):
        return X / self.largest_


def evaluated(fitted_on, looked_at):
    """Fit to one table, and evaluate on another."""
    return lambda: PrivateEvaluation(0.2).evaluate(model(0.5).fit(*fitted_on), *looked_at)


def of_ledger(then):
    """Charge a budget in a file, and go on with what has become of the file."""

    def run():
        with TemporaryDirectory() as folder:
            path = Path(folder, "ward.db")
            budget = BudgetAccountant(1.0, 1e-5, ledger=path)
            model(0.3, accountant=budget).fit(X, Y)
            then(path, budget)

    return run


def deleted(path, budget):
    path.unlink()
    model(0.3, accountant=budget).fit(X, Y)


def too_much(path, budget):
    model(3.0, accountant=budget).fit(X, Y)


def other_terms(path, budget):
    BudgetAccountant(9.0, 1e-5, ledger=path)


class Mistake(NamedTuple):
    """A mistake, what becomes of it, and the first words that are said."""

    make: object
    outcome: object  # an error, "warned", "reviewed", "silent"
    words: str = ""


STEPS = {
    "a scaler": (StandardScaler(), "DPStandardScaler"),
    "a scaler to the range": (MinMaxScaler(), "BoundedScaler"),
    "an imputer": (SimpleImputer(), "missing= of a TableSchema"),
    "a selection of columns": (SelectKBest(k=2), "public list of columns"),
    "components": (PCA(2), "DPPCA"),
    "means of the label": (TargetEncoder(), "CategoricalColumn"),
    "quantiles as cuts": (KBinsDiscretizer(3), "NumericColumn(cuts="),
    "categories of the table": (OneHotEncoder(handle_unknown="ignore"), "OneHotEncoder(categories"),
    "a step of somebody else": (OtherStep(), "_learns_from_rows"),
    "a function of the whole table": (FunctionTransformer(scale), "each row by itself"),
}
WRAPPERS = {
    "calibration": (CalibratedClassifierCV, "PrivateCalibrator"),
    "a vote": (lambda one: VotingClassifier([("a", one)]), "add up"),
    "bags with copies": (lambda one: BaggingClassifier(one, 2), "bags are drawn with replacement"),
    "bags": (lambda one: BaggingClassifier(one, 2, bootstrap=False), "add up"),
    "a stack": (lambda one: StackingClassifier([("a", one)], cv=2), "folds are stratified"),
    "pairs of labels": (OneVsOneClassifier, "rows of two labels"),
    "elimination of columns": (RFE, "public list of columns"),
    "a tuned threshold": (
        lambda one: TunedThresholdClassifierCV(one, cv=2, thresholds=3),
        "PrivateThreshold",
    ),
    "a search": (lambda one: GridSearchCV(one, {}, cv=2), "PrivateGridSearchCV"),
}
MISTAKES = {
    **{name: Mistake(behind(step), "warned", said) for name, (step, said) in STEPS.items()},
    **{name: Mistake(within(wrap), "warned", said) for name, (wrap, said) in WRAPPERS.items()},
    "half of the labels guessed": Mistake(
        within(SelfTrainingClassifier, np.where(np.arange(N) % 2, Y, -1)),
        "warned",
        "SelfTrainingClassifier: predictions label rows",
    ),
    "rows made up by others": Mistake(
        lambda: SAMPLING["Pipeline"]([("more", Oversampler()), ("model", model())]).fit(X, Y),
        "warned",
        "step 'more' (Oversampler): it copies, synthesises or drops rows",
    ),
    "a scaler of some columns": Mistake(
        behind(make_column_transformer((StandardScaler(), [0]), sparse_threshold=0)),
        "warned",
        "columns 'standardscaler' (StandardScaler): it learns",
    ),
    "a scaler before private components": Mistake(
        lambda: make_pipeline(StandardScaler(), DPPCA(2, data_norm=1.0)).fit(X),
        "warned",
        "step 'standardscaler'",
    ),
    "an ordinary model behind a private step": Mistake(
        lambda: make_pipeline(DPStandardScaler(lower=-1, upper=1), LogisticRegression()).fit(X, Y),
        "warned",
        "step 'logisticregression'",
    ),
    "scores of folds": Mistake(
        lambda: cross_val_score(model(), X, Y, cv=KFold(3)),
        "warned",
        "cross_validate(): it returns",
    ),
    "a scaler in a private search": Mistake(
        lambda: PrivateGridSearchCV(
            make_pipeline(StandardScaler(), model()), {"operalogisticregression__alpha": [1, 2]}
        ).fit(X, Y),
        ValueError,
        "Step 'standardscaler' of the estimator, StandardScaler, is not private",
    ),
    "epsilon in a private search": Mistake(
        lambda: PrivateGridSearchCV(model(), {"epsilon": [1, 2]}).fit(X, Y),
        ValueError,
        "'epsilon' cannot be in the grid",
    ),
    # Numbers of privacy.
    "epsilon of 50": Mistake(fit(epsilon=50.0), "warned", "requests epsilon=50"),
    "no epsilon": Mistake(fit(epsilon=0.0), ValueError, "epsilon must be"),
    "a text as epsilon": Mistake(fit(epsilon="1"), (TypeError, ValueError), "epsilon must be"),
    "delta of a tenth": Mistake(fit(delta=0.1), "warned", "delta=0.1 is not below 1/n"),
    "delta of one": Mistake(fit(delta=1.0), ValueError, "delta must be"),
    "a seed": Mistake(fit(random_state=0), "warned", "takes its noise from random_state="),
    "a private search with a seed": Mistake(
        lambda: PrivateGridSearchCV(model(), {"alpha": [1, 2]}, method="fixed", random_state=0).fit(
            X, Y
        ),
        "warned",
        "PrivateGridSearchCV.fit takes its noise",
    ),
    "three rows": Mistake(fit(X[:3], Y[:3]), "warned", "the table has 3 rows"),
    "three patients": Mistake(
        fit(X[:12], Y[:12], groups=np.repeat([1, 2, 3], 4)), "warned", "the table has 3 ids"
    ),
    "no data_norm": Mistake(fit(data_norm=None), "warned", "was given no data_norm"),
    "a negative data_norm": Mistake(fit(data_norm=-1.0), ValueError, "data_norm must be"),
    "a data_norm that cuts all rows": Mistake(fit(data_norm=1e-3), "silent"),
    # Labels and rows.
    "labels as texts": Mistake(fit(y=Y.astype(str)), ValueError, "y holds labels that are not in"),
    "the wrong labels": Mistake(fit(y=Y + 1), ValueError, "y holds labels that are not in"),
    "one label": Mistake(
        fit(y=np.ones(N, int), classes=None), ValueError, "y holds one class only"
    ),
    "labels swapped": Mistake(fit(y=1 - Y), "silent"),
    "numbers as labels": Mistake(fit(y=X[:, 1], classes=None), ValueError, "Unknown label type"),
    "no labels": Mistake(fit(y=None), ValueError, "requires y"),
    "rows without labels": Mistake(fit(y=Y[:-1]), ValueError, "Found input variables"),
    "missing cells": Mistake(fit(np.where(X > 0.49, np.nan, X)), ValueError, "contains NaN"),
    "texts as cells": Mistake(fit(FRAME[["ward", "age"]]), ValueError, ""),
    "negative weights": Mistake(
        fit(weight=-np.ones(N)), TypeError, "does not support sample_weight"
    ),
    "boosting": Mistake(within(AdaBoostClassifier), ValueError, "sample_weight"),
    "a weight for no class": Mistake(fit(class_weight={2: 3.0}), TypeError, "class_weight"),
    "a negative class weight": Mistake(
        fit(class_weight={0: -1.0, 1: 1.0}), ValueError, "class_weight"
    ),
    "ids of other rows": Mistake(fit(groups=np.arange(3)), ValueError, "groups"),
    "ids as a column of numbers": Mistake(fit(np.c_[FRAME["patient"], X]), "silent"),
    "rows copied by hand": Mistake(fit(np.r_[X, X], np.r_[Y, Y]), "silent"),
    "a second fit": Mistake(lambda: model(0.5).fit(X, Y).fit(X, Y), "silent"),
    "no bounds of targets": Mistake(
        lambda: PrivateRidge(1.0, data_norm=1.0).fit(X, X[:, 0]), ValueError, "target_bounds"
    ),
    # The schema.
    "bounds that are one number": Mistake(
        lambda: NumericColumn("age", 50, 50),
        ValueError,
        "column 'age': upper: must exceed",
    ),
    "bounds in the wrong order": Mistake(
        lambda: NumericColumn("age", 120, 0), ValueError, "column 'age': upper: must exceed"
    ),
    "a category twice": Mistake(
        lambda: CategoricalColumn("ward", ["A", "A"]),
        ValueError,
        "column 'ward': categories: contains a value twice",
    ),
    "bounds left open": Mistake(
        described(NumericColumn("age"), WARD), ValueError, "column 'age': lower and upper: not giv"
    ),
    "a column that is not described": Mistake(
        lambda: TableSchema([AGE], label=DIED).split(FRAME), ValueError, "the table does not fit"
    ),
    "a column that is missing": Mistake(
        lambda: TableSchema([AGE, NumericColumn("weight", 0, 300)], label=DIED).split(
            FRAME[["age", "died"]]
        ),
        ValueError,
        "the table does not fit",
    ),
    "columns in another order": Mistake(
        lambda: (
            TableSchema([AGE, WARD], label=DIED)
            .pipeline(model(data_norm=None), positions=True)
            .fit(FRAME[["ward", "age"]], Y)
        ),
        ValueError,
        "the schema's columns are chosen by position",
    ),
    "columns of an array in another order": Mistake(
        lambda: (
            TableSchema([AGE, NumericColumn("height", 50, 250)], label=DIED)
            .pipeline(model(data_norm=None), positions=True)
            .fit(FRAME[["height", "age"]].to_numpy(), Y)
        ),
        "silent",
    ),
    "several rows a patient": Mistake(
        lambda: (
            TableSchema([AGE, WARD], label=DIED, unit=PATIENT)
            .pipeline(model(data_norm=None))
            .fit(FRAME[["age", "ward"]], Y)
        ),
        "warned",
        "one patient may have 4 rows",
    ),
    "cuts beyond bounds": Mistake(
        described(NumericColumn("age", 18, 110, cuts=[40, 65, 400])),
        "warned",
        "column 'age': cuts or spikes [400.0] lie outside",
    ),
    "bounds read off the table": Mistake(
        described(NumericColumn("age", FRAME["age"].min(), FRAME["age"].max())),
        "reviewed",
        "are the smallest and the largest cell to the last digit",
    ),
    "bounds in metres": Mistake(
        described(NumericColumn("height", 0.5, 2.5)), "reviewed", "100% of the cells are beyond"
    ),
    "bounds that are far too wide": Mistake(
        described(NumericColumn("height", 0, 1e6)), "reviewed", "98 of 100 cells are within"
    ),
    "a code for what is missing": Mistake(
        described(AGE, frame=FRAME.assign(age=FRAME["age"].where(FRAME.index % 10 > 0, 999.0))),
        "reviewed",
        "10% of the cells are beyond the bounds",
    ),
    "thousands separators": Mistake(
        described(
            NumericColumn("cost", 0, 1e4, missing="indicator"),
            frame=FRAME.astype({"cost": object}),
        ),
        "reviewed",
        "cells are texts that are not numbers",
    ),
    "thousands separators in a column of texts": Mistake(
        described(NumericColumn("cost", 0, 1e4), frame=FRAME.astype({"cost": "string"})),
        ValueError,
        "column 'cost' has type string: is numeric in the schema",
    ),
    "a category that is not listed": Mistake(
        described(CategoricalColumn("ward", ["A", "B"])), "reviewed", "are not on the list"
    ),
    "small letters": Mistake(
        described(CategoricalColumn("ward", ["a", "b", "c"])), "reviewed", "are not on the list"
    ),
    # Afterwards.
    "rows of the fit": Mistake(
        evaluated((X, Y), (X, Y)), "warned", "OperaLogisticRegression was fitted on these rows"
    ),
    "some rows of the fit": Mistake(
        evaluated((X[: HALF + 20], Y[: HALF + 20]), (X[HALF:], Y[HALF:])),
        "warned",
        "OperaLogisticRegression was fitted on these rows",
    ),
    "a model that is not fitted": Mistake(
        lambda: PrivateCalibrator(model()).fit(X, Y), ValueError, "PrivateCalibrator adjusts a fit"
    ),
    "a statement before the fit": Mistake(
        lambda: privacy_statement(model()), TypeError, "This OperaLogisticRegression has no privacy"
    ),
    "figures of score()": Mistake(
        lambda: model().fit(X, Y).score(X, Y), "warned", "OperaLogisticRegression.score is given"
    ),
    "swapped bounds of a mean": Mistake(
        lambda: private_mean(FRAME["age"], lower=110, upper=18, epsilon=1.0), ValueError, "upper"
    ),
    # The budget.
    "more than there is": Mistake(of_ledger(too_much), BudgetExceededError, "still fits"),
    "a ledger that was deleted": Mistake(of_ledger(deleted), LedgerMissingError, ""),
    "a ledger of another budget": Mistake(of_ledger(other_terms), LedgerMismatchError, ""),
    "a fit that nobody counts": Mistake(fit(), BudgetRequiredError, "has no budget to charge"),
}
# Facts that are public do not tell of these, and what is private must not.
SILENT = {
    "a data_norm that cuts all rows",
    "a second fit",
    "columns of an array in another order",
    "ids as a column of numbers",
    "labels swapped",
    "rows copied by hand",
}


def outcome_of(mistake):
    """Make a mistake, and return the error, the warnings, what was returned, and the charges."""
    budget = BudgetAccountant(200.0, 0.5)
    counted = mistake.outcome is not BudgetRequiredError
    found, error = None, None
    with (
        warnings.catch_warnings(record=True) as caught,
        budget if counted else skdp.config_context(require_budget=True),
    ):
        warnings.simplefilter("always")
        try:
            found = mistake.make()
        except Exception as raised:
            error = raised
    said = [each for each in caught if each.category is PrivacyWarning]
    return error, said, found, len(budget.entries())


@pytest.mark.daily(40)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_uncharged_or_warned_of_once(name):
    mistake = MISTAKES[name]
    error, said, found, charges = outcome_of(mistake)
    texts = [str(each.message) for each in said]
    if not isinstance(mistake.outcome, str):
        assert isinstance(error, mistake.outcome) and mistake.words in str(error), error
        assert charges == 0 and texts == []
        return
    assert error is None and charges > 0
    if mistake.outcome == "warned":
        assert sum(mistake.words in text for text in texts) == 1 and len(set(texts)) == len(texts)
        assert {each.filename for each in said} == {__file__}
    else:
        assert texts == []
    if mistake.outcome == "reviewed":
        assert [mistake.words in doubt for doubt in found] == [True], found


def test_what_is_silent_is_known():
    assert {name for name in MISTAKES if MISTAKES[name].outcome == "silent"} == SILENT
    assert len(MISTAKES) >= 80
