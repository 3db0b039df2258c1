"""Parameters that are changed after a fit change nothing that the fitted object does."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from support import WithPublicRows

import skdp
from skdp.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skdp.preprocessing import (
    DPPCA,
    BoundedScaler,
    CategoricalColumn,
    DPQuantileClipper,
    DPStandardScaler,
    NumericColumn,
    RowNormClipper,
    SchemaEncoder,
)

MODEL = skdp.OperaLogisticRegression(data_norm=1.0)
GRID = {"alpha": [0.1, 1.0]}
COLUMNS = [NumericColumn("a", -1, 1), CategoricalColumn("b", [0, 1]), NumericColumn("c", cuts=[0])]
CLASSES = [getattr(skdp, name) for name in skdp.__all__ if name[0].isupper()]
REGRESSORS = (skdp.PrivateLinearRegression, skdp.PrivateRidge)
NEEDY = {skdp.PATEClassifier, *REGRESSORS}  # without defaults that fit
ESTIMATORS = [cls() for cls in CLASSES if cls not in NEEDY]
ESTIMATORS += [cls(target_bounds=(0.0, 1.0)) for cls in REGRESSORS]
ESTIMATORS += [WithPublicRows(DecisionTreeClassifier(), n_teachers=8)]
ESTIMATORS += [skdp.DPSGDClassifier(hidden_layer_sizes=(3,), activation="tanh", max_iter=5)]
TRANSFORMERS = [
    BoundedScaler(),
    DPPCA(2),
    DPPCA(2, center=True, whiten=True, data_norm=2.0),
    DPQuantileClipper(10.0),
    DPQuantileClipper(10.0, row_norm=None),
    DPStandardScaler(),
    DPStandardScaler(with_mean=False, row_norm=None),
    DPStandardScaler(with_std=False),
    RowNormClipper(0.1),
    RowNormClipper(method="scale"),
    SchemaEncoder(COLUMNS),
]
SEARCHES = [
    *(
        PrivateGridSearchCV(MODEL, GRID, epsilon=4.0, method=method)
        for method in ("random-stopping", "fixed", "holdout", "cv")
    ),
    PrivateGridSearchCV(MODEL, GRID, epsilon=4.0, method="cv", refit=False),
    PrivateRandomizedSearchCV(MODEL, GRID, n_iter=2, epsilon=4.0),
]
METHODS = (
    *("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"),
    "inverse_transform",
)


class Other:
    """A value that no parameter has, and that nothing can be done with."""


def answers(fitted, X):
    """Return what the fitted object says of rows, by the method's name."""
    said = {name: getattr(fitted, name)(X) for name in METHODS if hasattr(fitted, name)}
    if hasattr(fitted, "get_feature_names_out"):
        said["names"] = fitted.get_feature_names_out()
    return said


@pytest.mark.daily(4)
@pytest.mark.parametrize("thing", [*ESTIMATORS, *TRANSFORMERS, *SEARCHES], ids=str)
def test_parameters_count_at_the_next_fit(thing):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (80, 3))
    y = (X[:, 0] > 0.0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(thing).fit(X, y)
        before = answers(fitted, X)
        given = fitted.get_params(deep=False)
        for name in given:
            # A search that holds no estimator has no tags, which scikit-learn asks for.
            others = [skdp.OperaSVC()] if name == "estimator" else [Other(), None, False, "cv", 2.0]
            for other in others:
                fitted.set_params(**{name: other})
                after = answers(fitted, X)
                assert after.keys() == before.keys(), (name, other)
                for method, said in before.items():
                    np.testing.assert_array_equal(after[method], said, err_msg=f"{name} {method}")
            fitted.set_params(**{name: given[name]})
