"""scikit-learn's own checks of the private searches."""

import warnings

import pytest
from scikit_checks import check_settings

from skdp import OperaLogisticRegression
from skdp.exceptions import PrivacyWarning
from skdp.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV

INNER = OperaLogisticRegression(data_norm=10.0)
POINTS = {"alpha": [1e-3, 1e-2]}
# With so large an epsilon noise is negligible, as some checks ask for good predictions.
COMMON = {"epsilon": 1e5, "random_state": 0}


@pytest.mark.slow
@check_settings(
    [
        PrivateGridSearchCV(INNER, POINTS, expected_candidates=3, **COMMON),
        PrivateRandomizedSearchCV(INNER, POINTS, n_iter=2, method="cv", cv=2, **COMMON),
        PrivateRandomizedSearchCV(INNER, POINTS, n_iter=2, method="fixed", **COMMON),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks' tables are tiny, so that any usual delta is above 1/n.
        warnings.simplefilter("ignore", PrivacyWarning)
        check(estimator)
