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
from skdp.model_selection import PrivateGridSearchCV
from skdp.model_selection._steps import plan_fit, private_steps
from skdp.pipelines import walk
from skdp.preprocessing import BoundedScaler

GRID = {"noisycount__threshold": [0.0, 0.2]}


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
    search = PrivateGridSearchCV(make_pipeline(leak, NoisyCount()), GRID, accountant=tally)
    with pytest.raises(ValueError, match="not private") as caught:
        search.fit(*rows(60))
    assert remedy in str(caught.value) and not tally.charges


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
    with pytest.raises(ValueError, match="not private"):
        PrivateGridSearchCV(estimator, {}).fit(*rows(60))


def test_a_pipeline_without_a_private_step_is_refused():
    with pytest.raises(ValueError, match="no private step"):
        PrivateGridSearchCV(make_pipeline(BoundedScaler(), Normalizer()), {}).fit(*rows(60))


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
    for step, fits in ((Vouched(), True), (Unknown(), False)):
        search = PrivateGridSearchCV(make_pipeline(step, NoisyCount()), GRID, method="holdout")
        if fits:
            assert search.fit(X, y).predict(X).shape == (60,)
        else:
            with pytest.raises(ValueError, match="not private"):
                search.fit(X, y)


def test_column_lists_made_of_the_rows_are_refused():
    X, y = rows(60)
    for rule in (lambda table: [0], make_column_selector(dtype_include=float)):
        prepare = make_column_transformer((Normalizer(), rule), sparse_threshold=0)
        with pytest.raises(ValueError, match="list the columns"):
            PrivateGridSearchCV(make_pipeline(prepare, NoisyCount()), GRID).fit(X, y)
    pd = pytest.importorskip("pandas")
    chosen = make_column_transformer(
        (Normalizer(), make_column_selector("[0-9]")), sparse_threshold=0
    )
    search = PrivateGridSearchCV(make_pipeline(chosen, NoisyCount()), GRID, method="holdout")
    search.fit(pd.DataFrame(X, columns=[str(j) for j in range(X.shape[1])]), y)


def test_private_transformers_get_a_quarter_and_delta_is_shared():
    estimator = make_pipeline(NoisyCentre(), BoundedScaler(), NoisyCount())
    steps = private_steps(estimator, None)
    assert [(step.name, step.weight) for step in steps] == [
        ("noisycentre", 0.25),
        ("noisycount", 1.0),
    ]
    fit = plan_fit(
        steps, epsilon=2.0, delta=1e-5, adjacency="replace-one", shape=(100, 3), n_classes=2
    )
    assert fit.epsilons == (0.5, 2.0) and fit.delta == 5e-6
    assert fit.guarantee == (2.5, 1e-5)
    again = private_steps(estimator, {"noisycentre": 2.0})
    assert [step.weight for step in again] == [2.0, 1.0]
    with pytest.raises(ValueError, match="no private steps"):
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
    search = PrivateGridSearchCV(
        make_pipeline(make_union(prepare, "passthrough"), NoisyCount()),
        GRID,
        method=method,
        epsilon=5.0,
    ).fit(X, y)
    found = [part for _, part, _ in walk(search.best_estimator_) if hasattr(part, "privacy_spent_")]
    assert len(found) == 3
    for part in found:
        # Nothing of the search's tools stays; the price is that of the whole.
        assert part.accountant is None and part.random_state is None
        assert part.privacy_spent_ is search.privacy_spent_


@pytest.mark.parametrize("name", ["epsilon", "delta", "accountant", "random_state", "adjacency"])
def test_what_the_search_sets_cannot_be_searched_over(name):
    with pytest.raises(ValueError, match="the search sets it"):
        PrivateGridSearchCV(OperaLogisticRegression(), {name: [None]}).fit(*rows(60))
    with pytest.raises(ValueError, match="the search sets it"):
        PrivateGridSearchCV(make_pipeline(NoisyCount()), {f"noisycount__{name}": [None]}).fit(
            *rows(60)
        )


def test_an_inner_accountant_is_refused():
    with pytest.raises(ValueError, match="give it to the search"):
        PrivateGridSearchCV(NoisyCount(accountant=Tally()), {}).fit(*rows(60))


def test_steps_can_be_searched_over():
    X, y = rows(200)
    search = PrivateGridSearchCV(
        make_pipeline(BoundedScaler(), OperaLogisticRegression()),
        {"operalogisticregression": [OperaLogisticRegression(), DPSGDClassifier(max_iter=5)]},
        method="cv",
        cv=2,
        epsilon=3.0,
    ).fit(X, y)
    assert search.best_estimator_[-1].adjacency == "replace-one"
    assert search.privacy_spent_.epsilon <= 3.0


def test_a_fixed_noise_multiplier_leaves_nothing_to_solve_for():
    search = PrivateGridSearchCV(
        DPSGDClassifier(noise_multiplier=2.0, max_iter=50), {"alpha": [0.1]}
    )
    with pytest.raises(ValueError, match="noise"):
        search.fit(*rows(60))


class OnlyAddRemove(NoisyCount):
    def privacy_plan(self, n_samples, n_features, n_classes=2):
        self.adjacency = "add-remove"
        return self._spent(1.0)


def test_a_step_that_knows_another_relation_only_is_refused():
    with pytest.raises(ValueError, match="adjacency='add-remove'"):
        PrivateGridSearchCV(OnlyAddRemove(), {"threshold": [0.0]}).fit(*rows(60))


class Wide(NoisyCount):
    def privacy_plan(self, n_samples, n_features, n_classes=2):
        self.epsilon /= 1.0 + 1e-3 * n_features
        return self._spent(1.0)


@pytest.mark.slow
def test_a_price_that_depends_on_unknown_columns_is_refused():
    with pytest.raises(ValueError, match="number of columns"):
        PrivateGridSearchCV(make_pipeline(BoundedScaler(), Wide()), {"wide__threshold": [0.0]}).fit(
            *rows(60)
        )
    X, y = rows(60)
    PrivateGridSearchCV(NoisyCount(), {"threshold": [0.0]}, method="holdout").fit(X, y)
    assert np.isfinite(X).all()
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
