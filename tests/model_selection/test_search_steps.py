"""Which estimators a search takes, and how their private steps share a budget."""

import numpy as np
import pytest
from search_toys import NoisyCentre, NoisyCount, Tally
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from support import rows

from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.base.pipelines import walk
from skdp.model_selection import PrivateGridSearchCV
from skdp.model_selection._steps import plan_fit, private_steps
from skdp.preprocessing import BoundedScaler

GRID = {"noisycount__threshold": [0.0, 0.2]}


def check_refused(words, estimator, grid, **options):
    with pytest.raises(ValueError, match=words) as caught:
        PrivateGridSearchCV(estimator, grid, **options).fit(*rows(60))
    return str(caught.value)


@pytest.mark.parametrize(
    ("leak", "remedy"),
    [
        (StandardScaler(), "BoundedScaler"),
        (SimpleImputer(), "strategy='constant'"),
        (OneHotEncoder(), "categories="),
        (FeatureUnion([("scale", StandardScaler())]), "BoundedScaler"),
        (make_column_transformer((StandardScaler(), [0])), "BoundedScaler"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_steps_that_learn_from_rows_are_refused_before_the_charge(leak, remedy):
    tally = Tally()
    model = make_pipeline(leak, NoisyCount())
    assert remedy in check_refused("not private", model, GRID, accountant=tally)
    assert not tally.charges


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        CalibratedClassifierCV(NoisyCount()),
        make_pipeline(BoundedScaler(), LogisticRegression()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_that_are_not_private_are_refused(estimator):
    check_refused("not private", estimator, {})


def test_a_pipeline_without_a_private_step_is_refused():
    check_refused("must contain a private step", make_pipeline(BoundedScaler(), Normalizer()), {})


class Unknown(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.seen_ = True
        return self

    def transform(self, X):
        return X


class Vouched(Unknown):
    _learns_from_rows = False


def test_a_class_can_vouch_for_itself():
    X, y = rows(60)
    model = make_pipeline(Vouched(), NoisyCount())
    search = PrivateGridSearchCV(model, GRID, method="holdout")
    assert search.fit(X, y).predict(X).shape == (60,)
    check_refused("not private", make_pipeline(Unknown(), NoisyCount()), GRID)


def test_column_lists_made_of_the_rows_are_refused():
    X, y = rows(60)
    for rule in (lambda table: [0], make_column_selector(dtype_include=float)):
        prepare = make_column_transformer((Normalizer(), rule), sparse_threshold=0)
        check_refused("list the columns", make_pipeline(prepare, NoisyCount()), GRID)
    pd = pytest.importorskip("pandas")
    digits = make_column_selector("[0-9]")
    chosen = make_column_transformer((Normalizer(), digits), sparse_threshold=0)
    search = PrivateGridSearchCV(make_pipeline(chosen, NoisyCount()), GRID, method="holdout")
    search.fit(pd.DataFrame(X, columns=[str(j) for j in range(X.shape[1])]), y)


def test_private_transformers_get_a_quarter_and_delta_is_shared():
    estimator = make_pipeline(NoisyCentre(), BoundedScaler(), NoisyCount())
    steps = private_steps(estimator, None)
    assert {step.name: step.weight for step in steps} == {"noisycentre": 0.25, "noisycount": 1.0}
    table = {"adjacency": "replace-one", "shape": (100, 3), "n_classes": 2}
    fit = plan_fit(steps, epsilon=2.0, delta=1e-5, **table)
    assert fit.epsilons == (0.5, 2.0) and fit.delta == 5e-6
    assert fit.guarantee == (2.5, 1e-5)
    again = private_steps(estimator, {"noisycentre": 2.0})
    assert [step.weight for step in again] == [2.0, 1.0]
    with pytest.raises(ValueError, match="must name private steps"):
        private_steps(estimator, {"boundedscaler": 2.0})


@pytest.mark.daily(1)
@pytest.mark.parametrize("method", ["random-stopping", "holdout", "cv"])
def test_private_steps_inside_column_transformers_are_paid_for(method):
    X, y = rows(80)
    prepare = make_column_transformer(
        (NoisyCentre(), [0, 1]),
        (FunctionTransformer(), [2]),
        remainder=NoisyCentre(epsilon=3.0),
        sparse_threshold=0,
    )
    model = make_pipeline(make_union(prepare, "passthrough"), NoisyCount())
    search = PrivateGridSearchCV(model, GRID, method=method, epsilon=5.0).fit(X, y)
    found = [part for _, part, _ in walk(search.best_estimator_) if hasattr(part, "privacy_spent_")]
    assert len(found) == 3
    for part in found:
        # Nothing of the search's tools stays; the price is that of the whole.
        assert part.accountant is None and part.random_state is None
        assert part.privacy_spent_ is search.privacy_spent_


@pytest.mark.parametrize("name", ["epsilon", "delta", "accountant", "random_state", "adjacency"])
def test_what_the_search_sets_cannot_be_searched_over(name):
    check_refused("the search sets it", OperaLogisticRegression(), {name: [None]})
    grid = {f"noisycount__{name}": [None]}
    check_refused("the search sets it", make_pipeline(NoisyCount()), grid)


def test_an_inner_accountant_is_refused():
    check_refused("must have accountant=None", NoisyCount(accountant=Tally()), {})


def test_steps_can_be_searched_over():
    X, y = rows(200)
    model = make_pipeline(BoundedScaler(), OperaLogisticRegression())
    grid = {"operalogisticregression": [OperaLogisticRegression(), DPSGDClassifier(max_iter=5)]}
    search = PrivateGridSearchCV(model, grid, method="cv", cv=2, epsilon=3.0).fit(X, y)
    assert search.best_estimator_[-1].adjacency == "replace-one"
    assert search.privacy_spent_.epsilon <= 3.0


def test_a_fixed_noise_multiplier_leaves_nothing_to_solve_for():
    model = DPSGDClassifier(noise_multiplier=2.0, max_iter=50)
    check_refused("noise", model, {"alpha": [0.1]})


class OnlyAddRemove(NoisyCount):
    def privacy_plan(self, n_samples, n_features, n_classes=2):
        self.adjacency = "add-remove"
        return self._spent(1.0)


def test_a_step_that_knows_another_relation_only_is_refused():
    check_refused("adjacency='add-remove'", OnlyAddRemove(), {"threshold": [0.0]})


class Wide(NoisyCount):
    def privacy_plan(self, n_samples, n_features, n_classes=2):
        self.epsilon /= 1.0 + 1e-3 * n_features
        return self._spent(1.0)


@pytest.mark.slow
def test_a_price_that_depends_on_unknown_columns_is_refused():
    model = make_pipeline(BoundedScaler(), Wide())
    check_refused("number of columns", model, {"wide__threshold": [0.0]})
    # By itself it sees the columns of the table.
    assert PrivateGridSearchCV(Wide(), {"threshold": [0.0]}).privacy_plan(60, 4).epsilon <= 1.0


@pytest.mark.parametrize("wrong", [0, 1])
def test_first_steps_that_print_alike_are_all_asked(wrong):
    upper = np.ones((2, 2001))
    upper[wrong, 1000] = -1.0
    model = make_pipeline(BoundedScaler(), OperaLogisticRegression(data_norm=1.0))
    grid = {"boundedscaler": [BoundedScaler(0.0, row) for row in upper]}
    X, y = np.zeros((40, 2001)), np.arange(40) % 2
    tally = Tally()
    search = PrivateGridSearchCV(model, grid, epsilon=1.0, method="fixed", accountant=tally)
    with pytest.raises(ValueError, match="lower < upper"):
        search.fit(X, y)
    assert not tally.charges
