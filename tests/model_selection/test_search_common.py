"""scikit-learn's own checks of the private searches."""

import warnings

from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp import OperaLogisticRegression
from skdp.exceptions import PrivacyWarning
from skdp.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV


def instances():
    inner = OperaLogisticRegression(data_norm=10.0)
    points = {"alpha": [1e-3, 1e-2]}
    # With so large an epsilon noise is negligible, as some checks ask for good predictions.
    common = {"epsilon": 1e5, "random_state": 0}
    yield PrivateGridSearchCV(inner, points, expected_candidates=3, **common)
    yield PrivateRandomizedSearchCV(inner, points, n_iter=2, method="cv", cv=2, **common)
    yield PrivateRandomizedSearchCV(inner, points, n_iter=2, method="fixed", **common)


@parametrize_with_checks(list(instances()))
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks' tables are tiny, so that any usual delta is above 1/n.
        warnings.simplefilter("ignore", PrivacyWarning)
        check(estimator)
