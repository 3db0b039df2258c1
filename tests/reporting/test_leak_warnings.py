"""Warnings of what is learned beside private fits: where, once, of public facts alone."""

import gc
import pickle
import subprocess
import sys
import warnings
import weakref

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from support import rows

from skdp import OperaLogisticRegression, PrivateRidge
from skdp.audit import audit_epsilon, audit_in_one_run, membership_inference
from skdp.budget import BudgetAccountant
from skdp.data import open_parquet
from skdp.exceptions import PrivacyWarning
from skdp.metrics import (
    PrivateCalibrator,
    PrivateEvaluation,
    PrivateRegressionEvaluation,
    PrivateThreshold,
)
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import (
    BoundedScaler,
    CategoricalColumn,
    DPStandardScaler,
    LabelColumn,
    NumericColumn,
    PrivacyUnit,
    TableSchema,
)
from skdp.reporting import model_card, privacy_statement, register_onnx_converters
from skdp.tables.inputs import was_fitted_on
from skdp.testing import check_private_estimator

X, Y = rows(120)


def model(epsilon=1.0, **parameters):
    return OperaLogisticRegression(
        epsilon, 1e-6, **{"data_norm": 1.0, "classes": [0, 1], **parameters}
    )


def behind_a_scaler():
    return make_pipeline(StandardScaler(), model())


def said_of(call):
    """Return what a call warns of, however often."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [each for each in caught if each.category is PrivacyWarning]
    assert {each.filename for each in found} <= {__file__}
    return [str(each.message) for each in found]


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    LEAKING = behind_a_scaler().fit(X, Y)
    NUMBERS = make_pipeline(
        StandardScaler(), PrivateRidge(1.0, data_norm=1.0, target_bounds=(-1.0, 1.0))
    ).fit(X, X[:, 0])
WITHIN = {"target_bounds": (-1.0, 1.0), "largest_error": 1.0}
AUDIT = {"n_trials": 20, "random_state": 0}
SEARCH = PrivateGridSearchCV(model(), {"alpha": [0.1, 1.0]}, method="fixed")
# On tables of their own: whether rows are those of the fit is said as well.
OTHER_X, OTHER_Y = X + 0.0, Y + 0
PLACES = {
    "statement": lambda: privacy_statement(LEAKING),
    "evaluation": lambda: PrivateEvaluation().evaluate(LEAKING, OTHER_X, OTHER_Y),
    "frozen evaluation": lambda: PrivateEvaluation().evaluate(
        FrozenEstimator(LEAKING), OTHER_X, OTHER_Y
    ),
    "regression": lambda: PrivateRegressionEvaluation(**WITHIN).evaluate(
        NUMBERS, OTHER_X, OTHER_X[:, 0]
    ),
    "calibrator": lambda: PrivateCalibrator(LEAKING).fit(OTHER_X, OTHER_Y),
    "threshold": lambda: PrivateThreshold(LEAKING).fit(OTHER_X, OTHER_Y),
    "audit": lambda: audit_epsilon(
        behind_a_scaler(), X, Y, neighbour=(np.r_[-X[:1], X[1:]], Y), **AUDIT
    ),
    "audit in one run": lambda: audit_in_one_run(behind_a_scaler(), X, Y, random_state=0),
    "membership": lambda: membership_inference(LEAKING, X, Y, OTHER_X, OTHER_Y),
    "check": lambda: check_private_estimator(behind_a_scaler(), n_draws=2, on_fail=None),
    "fit": lambda: behind_a_scaler().fit(X, Y),
    "fit in a union": lambda: FeatureUnion(
        [("a", make_pipeline(StandardScaler(), DPStandardScaler(lower=-1, upper=1)))]
    ).fit(X),
    "fit of a nested pipeline": lambda: make_pipeline(
        make_pipeline(StandardScaler()), make_pipeline(model())
    ).fit(X, Y),
    "fit of a private search": lambda: make_pipeline(StandardScaler(), SEARCH).fit(X, Y),
    "fit behind a schema": lambda: (
        TableSchema([NumericColumn("a", -1, 1)])
        .pipeline(make_pipeline(StandardScaler(), OperaLogisticRegression(data_norm=1.0)))
        .fit(frame_of(X), Y)
    ),
}


def frame_of(X):
    return pytest.importorskip("pandas").DataFrame({"a": X[:, 0]})


def ended(call):
    """Call, and go on whatever an attack or a refusal says."""
    try:
        call()
    except (ValueError, TypeError, RuntimeError, AssertionError):
        return


@pytest.mark.parametrize("place", PLACES)
def test_the_step_is_named_once_wherever_it_is_seen(place):
    said = said_of(lambda: ended(PLACES[place]))
    assert [text for text in said if "'standardscaler' (StandardScaler)" in text] == said
    assert len(said) == 1 and "DPStandardScaler" in said[0] and "does not cover this" in said[0]


def test_cards_and_converters_say_it_as_well():
    pytest.importorskip("skops")
    assert len(said_of(lambda: model_card(LEAKING))) == 1
    pytest.importorskip("skl2onnx")
    assert len(said_of(lambda: register_onnx_converters(LEAKING))) == 1


class Own(TransformerMixin, BaseEstimator):
    _learns_from_rows = False

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def double(X):
    return X * 2.0


@pytest.mark.parametrize(
    "step",
    [
        Normalizer(),
        PolynomialFeatures(),
        FunctionTransformer(np.tanh),
        FunctionTransformer(double),
        BoundedScaler(-1.0, 1.0),
        DPStandardScaler(lower=-1.0, upper=1.0),
        Own(),
        "passthrough",
    ],
    ids=lambda step: type(step).__name__,
)
def test_what_learns_nothing_or_privately_is_silent(step):
    pipeline = make_pipeline(step, model())
    assert said_of(lambda: pipeline.fit(X, Y)) == []
    assert said_of(lambda: privacy_statement(pipeline)) == []
    assert said_of(lambda: PrivateEvaluation().evaluate(pipeline, OTHER_X, OTHER_Y)) == []


def test_public_models_are_nobodys_business():
    public = make_pipeline(StandardScaler(), LogisticRegression()).fit(OTHER_X, OTHER_Y)
    assert said_of(lambda: PrivateEvaluation().evaluate(public, X, Y)) == []
    assert said_of(lambda: PrivateCalibrator(public).fit(X, Y)) == []
    assert said_of(lambda: public.fit(X, Y)) == []


def test_a_line_is_warned_once_whatever_it_repeats():
    budget = BudgetAccountant(1e3, 1e-2)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model(random_state=0, accountant=budget)),
        {"operalogisticregression__alpha": [0.1, 1.0]},
        cv=KFold(3),
    )
    said = said_of(lambda: search.fit(X, Y))
    assert len(budget.entries()) == 7
    assert [text.split(":")[0].split(". ")[0] for text in said] == [
        "step 'standardscaler' (StandardScaler)",
        "GridSearchCV",
        "OperaLogisticRegression.fit takes its noise from random_state= and charges a budget",
    ]
    # Another line is another call; the folds of a classifier are stratified by its labels.
    assert len(said_of(lambda: search.set_params(cv=3).fit(X, Y))) == 4
    assert len(said_of(lambda: cross_val_score(behind_a_scaler(), X, Y, cv=4))) == 2
    assert len(said_of(lambda: CalibratedClassifierCV(model(), cv=3).fit(X, Y))) == 1


def test_an_error_instead_of_a_warning_comes_before_the_charge():
    budget = BudgetAccountant(10.0, 1e-3)
    with warnings.catch_warnings(), budget:
        warnings.simplefilter("error", PrivacyWarning)
        for make in (behind_a_scaler, lambda: model(random_state=0), lambda: model(epsilon=50.0)):
            one = make()
            for _ in range(2):  # and again where it is tried again
                with pytest.raises(PrivacyWarning):
                    one.fit(X, Y)
        with pytest.raises(PrivacyWarning, match="3 rows"):
            model().fit(X[:3], Y[:3])
    assert not budget.entries()


WORKERS = """
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skdp import OperaLogisticRegression
X = np.random.default_rng(0).normal(size=(60, 2))
model = OperaLogisticRegression(1.0, 1e-6, data_norm=1.0, classes=[0, 1])
if __name__ == "__main__":
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {}, cv=KFold(3), n_jobs=2)
    search.fit(X, (X[:, 0] > 0).astype(int))
"""


@pytest.mark.slow
def test_workers_do_not_repeat_it():
    run = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("(StandardScaler): it learns") == 1
    assert run.stderr.count("GridSearchCV: selection") == 1


def test_private_searches_audits_and_checks_speak_for_themselves():
    assert said_of(lambda: clone(SEARCH).fit(X, Y)) == []
    assert said_of(lambda: audit_epsilon(model(), X, Y, **AUDIT)) == []


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_no_warning_tells_of_cells_or_of_a_private_number_of_rows(adjacency):
    def said(X, Y):
        pipeline = make_pipeline(StandardScaler(), model(adjacency=adjacency, random_state=0))
        with BudgetAccountant(10.0, 1e-3, adjacency=adjacency):
            return said_of(lambda: pipeline.fit(X, Y))

    usual = said(X, Y)
    others = [(X * 1e-3, Y), (np.zeros_like(X), 1 - Y), (np.tile(X[:1], (120, 1)), Y)]
    assert all(said(*other) == usual for other in others) and len(usual) == 2
    few = said(X[:5], Y[:5])
    assert ("the table has 5 rows" in few[0]) == (adjacency == "replace-one")
    assert few[-2:] == usual


def test_rows_of_the_fit_are_known_by_their_place_alone():
    table, labels = X.copy(), Y.copy()
    fitted = model().fit(table[:60], labels[:60])

    def flatters(rows, of=fitted):
        said = said_of(
            lambda: PrivateEvaluation().evaluate(of, rows, np.tile([0, 1], len(rows))[: len(rows)])
        )
        assert all("was fitted on these rows" in text for text in said)
        return len(said)

    assert flatters(table) == flatters(table[50:]) == flatters(table[:60:2]) == 1
    assert flatters(table[60:]) == flatters(table[:60].copy()) == 0
    behind = make_pipeline(Normalizer(), model()).fit(table[:60], labels[:60])
    assert flatters(table[40:80], behind) == 1 and flatters(table[60:], behind) == 0
    searched = GridSearchCV(model(), {}, cv=KFold(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searched.fit(table[:60], labels[:60])
    assert was_fitted_on(searched, table) and not was_fitted_on(searched, table[60:])
    # Neither clones nor pickles carry it, and it keeps no table alive.
    assert not was_fitted_on(clone(fitted), table)
    assert not was_fitted_on(pickle.loads(pickle.dumps(fitted)), table)
    gone = weakref.ref(table)
    del table
    gc.collect()
    assert gone() is None and not was_fitted_on(fitted, X)


@pytest.mark.parametrize(
    "fitted",
    [model(), make_pipeline(Normalizer(), model()), clone(SEARCH)],
    ids=["alone", "behind", "searched"],
)
def test_scores_of_rows_that_a_budget_paid_for_are_warned_of(fitted):
    assert said_of(lambda: fitted.fit(X, Y).score(X, Y)) == []  # nobody counts
    with BudgetAccountant(10.0, 1e-3):
        fitted.fit(X, Y)
    said = said_of(lambda: [fitted.score(X[:50], Y[:50]) for _ in range(2)])
    assert len(said) == 1 and ".score is given the rows of a fit that has charged" in said[0]
    assert said_of(lambda: fitted.score(OTHER_X, OTHER_Y)) == []
    assert fitted.score(OTHER_X, OTHER_Y) == np.mean(fitted.predict(OTHER_X) == OTHER_Y)


def test_scores_count_weights_as_those_of_scikit_learn():
    fitted, weights = model().fit(X, Y), np.arange(120.0)
    right = fitted.predict(X) == Y
    assert fitted.score(X, Y, weights) == pytest.approx(right @ weights / weights.sum())


def test_frames_are_known_as_objects():
    frame = frame_of(X)
    pipeline = TableSchema([NumericColumn("a", -1, 1)]).pipeline(OperaLogisticRegression(1.0))
    pipeline.fit(frame, Y)
    assert was_fitted_on(pipeline, frame) and not was_fitted_on(pipeline, frame.copy())


def test_a_review_is_returned_and_never_warned_of():
    pd = pytest.importorskip("pandas")
    schema = TableSchema([NumericColumn("a", 0.25, 7.5), NumericColumn("b", 0, 1)])
    frame = pd.DataFrame({"a": [0.25, 7.5, 3.0, 4.0], "b": [0.1, 0.9, 0.5, 0.4]})
    found = []
    assert said_of(lambda: found.extend(schema.review(frame))) == []
    assert len(found) == 1 and "to the last digit" in found[0] and "'a'" in found[0]
    assert schema.review(frame.assign(a=[0.25, 7.4, 3.0, 4.0])) == []
    polars = pytest.importorskip("polars")
    assert schema.review(polars.from_pandas(frame)) == found
    infinite = frame.assign(a=[-np.inf, np.inf, np.inf, np.inf], c=1)
    assert said_of(lambda: found.extend(schema.review(infinite))) == []
    assert found[1].startswith("column 'c' is not in the schema") and "100%" in found[2]
    assert schema.review(frame.iloc[:0]) == []


def test_a_review_reads_tables_wherever_they_lie(tmp_path):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    pytest.importorskip("pyarrow")
    columns = [NumericColumn("a", 0, 1), CategoricalColumn("w", ["A", "B"])]
    schema = TableSchema(columns, unit=PrivacyUnit("patient", 2, "id"))
    frame = pd.DataFrame({"a": [0.1, 7.0, 0.9, 0.2], "w": [*"AbBA"], "id": [1, 1, 1, 2]})
    frame.to_parquet(tmp_path / "table.parquet")
    found = schema.review(frame)
    assert [text.split(":")[0] for text in found] == ["column 'a'", "column 'w'", "unit 'patient'"]
    assert schema.review(open_parquet(tmp_path / "table.parquet")) == found
    assert schema.review(dd.from_pandas(frame, npartitions=2)) == found


IDS = np.arange(len(X)) // 2


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        ("GridSearchCV", lambda: GridSearchCV(model(), {"alpha": [1]}, cv=2).fit(X, Y, groups=IDS)),
        ("cross_validate()", lambda: cross_val_score(model(), X, Y, cv=2, groups=IDS)),
        (
            "Pipeline",
            lambda: make_pipeline(
                DPStandardScaler(1.0, 1e-6, lower=-1, upper=1), model(data_norm=2.0)
            ).fit(X, Y, dpstandardscaler__groups=IDS),
        ),
    ],
    ids=["search", "function", "one step of two"],
)
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_ids_that_do_not_reach_a_private_fit_are_warned_of_once(name, fit):
    assert [text.startswith(f"{name}: it has ids") for text in said_of(fit)].count(True) == 1


def test_ids_that_reach_each_private_fit_are_not_warned_of():
    both = make_pipeline(DPStandardScaler(1.0, 1e-6, lower=-1, upper=1), model(data_norm=2.0))
    told = said_of(
        lambda: both.fit(X, Y, dpstandardscaler__groups=IDS, operalogisticregression__groups=IDS)
    )
    assert not [text for text in told if "it has ids" in text]


class WithFitOfItsOwn(OperaLogisticRegression):
    def fit(self, X, y, groups=None):
        return super().fit(X, y, groups=groups)


class Stranger:
    def __getattr__(self, name):
        raise RuntimeError("nobody asks")

    def fit(self):
        return model().fit(X, Y)


def test_objects_of_users_are_not_asked_for_attributes():
    assert Stranger().fit().n_features_in_ == X.shape[1]


class Wrapper(BaseEstimator):
    def __init__(self, inner=None):
        self.inner = inner

    def fit(self, X, y):
        self.inner_ = clone(self.inner).fit(X, y)
        return self


@pytest.mark.parametrize(
    "last",
    [WithFitOfItsOwn(1.0, 1e-6, data_norm=1.0, classes=[0, 1]), Wrapper(model())],
    ids=["derived", "wrapper"],
)
def test_estimators_of_users_hide_no_step_in_front(last):
    told = said_of(lambda: make_pipeline(StandardScaler(), last).fit(X, Y))
    assert sum("(StandardScaler)" in text for text in told) == 1


def test_a_table_of_a_schema_is_known_as_well():
    pd = pytest.importorskip("pandas")
    schema = TableSchema([NumericColumn("age", 0, 120)], label=LabelColumn("ill", [0, 1]))
    frame = pd.DataFrame({"age": np.linspace(0.0, 120.0, 200), "ill": np.tile([0, 1], 100)})
    fitted = schema.pipeline(model(data_norm=None, classes=None)).fit(frame)
    said = said_of(lambda: PrivateEvaluation().evaluate(fitted, frame))
    assert len(said) == 1 and "was fitted on these rows" in said[0]
    assert said_of(lambda: PrivateEvaluation().evaluate(fitted, frame.copy())) == []
