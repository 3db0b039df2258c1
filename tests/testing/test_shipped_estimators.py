"""What third parties' estimators must pass, all that is shipped passes.

A right estimator fails with a probability below 1e-6 a check.
"""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from support import ESTIMATORS

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaMLPClassifier,
    GrpuaSVC,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
    PrivateLinearRegression,
    PrivateRidge,
)
from skdp.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skdp.model_selection._search import METHODS
from skdp.preprocessing import (
    DPPCA,
    BoundedScaler,
    DPQuantileClipper,
    DPStandardScaler,
    RowNormClipper,
)
from skdp.testing import check_private_estimator

FAST = [
    OperaLogisticRegression(),
    GrpuaSVC(max_iter=5),
    ObjectivePerturbationSVC(),
    PrivateLinearRegression(target_bounds=(0.0, 1.0)),
    PrivateRidge(target_bounds=(0.0, 1.0)),
    DPPCA(2, center=True),
    DPStandardScaler(lower=-1.0, upper=1.0),
    DPQuantileClipper(lower=-1.0, upper=1.0),
    make_pipeline(BoundedScaler(lower=-1.0, upper=1.0), DPStandardScaler(), OperaSVC()),
]
OTHERS = [
    OperaSVC(numerics="discrete"),
    ObjectivePerturbationSVC(numerics="discrete"),
    *(kind() for kind in ESTIMATORS),
    OperaLogisticRegression(solver="gd"),
    GrpuaLogisticRegression(calibration="hidden-state", max_iter=5),
    GrpuaLogisticRegression(sampling="uniform", batch_size=20, max_iter=5),
    DPSGDClassifier(solver="adam", max_iter=5),
    DPSGDClassifier(batch_size=20, max_iter=5),
    DPSGDClassifier(hidden_layer_sizes=(4, 3), clipping="per-layer", max_iter=5),
    DPSGDClassifier(hidden_layer_sizes=(4,), max_grad_norm="adaptive", max_iter=5),
    GrpuaMLPClassifier(hidden_layer_sizes=(4,), max_grad_norm=None, max_iter=5),
    DPPCA(2, whiten=True),
    DPStandardScaler(with_mean=False),
    make_pipeline(RowNormClipper(), DPPCA(3), GrpuaSVC(max_iter=5)),
    make_pipeline(
        make_column_transformer((BoundedScaler(), [0, 1]), (DPStandardScaler(), [2, 3])),
        ObjectivePerturbationSVC(),
    ),
]


def names(estimator):
    return "".join(repr(estimator).split())[:60]


def passes(estimator, *table, **options):
    results = check_private_estimator(estimator, *table, **options)
    assert {result["status"] for result in results} == {"passed"}


@pytest.mark.daily(2)
@pytest.mark.parametrize("estimator", FAST, ids=names)
def test_it_passes(estimator):
    passes(estimator, n_draws=60)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", OTHERS, ids=names)
def test_it_passes_as_well(estimator):
    passes(estimator, n_draws=400)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "method"),
    [*((PrivateGridSearchCV, method) for method in METHODS), (PrivateRandomizedSearchCV, "cv")],
)
def test_searches_pass(kind, method):
    search = kind(
        make_pipeline(DPPCA(2), OperaSVC(classes=[0, 1])),  # to which a row of zeros adds nothing
        {"operasvc__alpha": [0.1, 1.0]},
        method=method,
        cv=2,
        expected_candidates=2,
        **({} if kind is PrivateGridSearchCV else {"n_iter": 2}),
    )
    passes(search, n_draws=60)


def test_tables_and_neighbours_of_ones_own():
    generator = np.random.default_rng(0)
    X, y = generator.standard_normal((40, 3)), np.arange(40) % 3
    other = X.copy()
    other[9] *= -50.0
    passes(OperaSVC(), X, y, n_draws=60, neighbours=[((X, y), (other, y)), ((other, y), (X, y))])


@pytest.mark.slow
def test_numbers_that_are_equal_on_a_grid_are_not_taken_for_reused():
    """Of 4,000 weights some noise is the same by chance, and more so over several fits."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4000))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = OperaSVC(epsilon=8.0, numerics="discrete")
    check_private_estimator(model, X, rng.integers(0, 2, 30))
