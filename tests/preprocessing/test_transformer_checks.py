"""scikit-learn's own checks of the transformers, with defaults and with negligible noise."""

import warnings

from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.exceptions import PrivacyWarning
from skdp.preprocessing import DPPCA, DPQuantileClipper, DPStandardScaler, RowNormClipper


def instances():
    yield RowNormClipper()
    yield RowNormClipper(norm=3.0, method="scale")
    yield DPStandardScaler()
    yield DPStandardScaler(1e6, lower=-10.0, upper=10.0, row_norm=None)
    yield DPQuantileClipper()
    yield DPQuantileClipper(1e6, row_norm=None)
    yield DPPCA()
    yield DPPCA(1, 1e6, data_norm=10.0, center=True, whiten=True)


@parametrize_with_checks(list(instances()), xfail_strict=True)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks' tables are tiny: any usual delta is above 1/n, any usual epsilon too small.
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.filterwarnings("ignore", message="With n=.* rows, epsilon")
        check(estimator)
