"""scikit-learn's own checks, with defaults and with an epsilon that makes noise negligible."""

import warnings

import pytest
from scikit_checks import OF_NUMBERS, check_settings
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_checks
from support import WithPublicRows

from skdp import (
    DPSGDClassifier,
    DPSGDRegressor,
    GrpuaHuberRegressor,
    GrpuaLogisticRegression,
    GrpuaMLPClassifier,
    GrpuaSVC,
    ObjectivePerturbationHuberRegressor,
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaHuberRegressor,
    OperaLogisticRegression,
    OperaSVC,
    PATEClassifier,
    PrivateLinearRegression,
    PrivateRidge,
    VariationalLogisticRegression,
)
from skdp.exceptions import PrivacyWarning
from skdp.preprocessing import BoundedScaler

OPERA = (OperaLogisticRegression, OperaSVC)
OBJECTIVE = (ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC)
# Without noise these fail one check for the reason below; with a little, seeds decide.
SCALED_DOWN = (*OBJECTIVE, GrpuaSVC)
HUBER = (OperaHuberRegressor, ObjectivePerturbationHuberRegressor, GrpuaHuberRegressor)
MOMENTS = (PrivateRidge, PrivateLinearRegression)
NETWORKS = (DPSGDClassifier, GrpuaMLPClassifier)
NOISY = (GrpuaLogisticRegression, GrpuaSVC, DPSGDClassifier)


def instances():
    yield BoundedScaler(lower=-10.0, upper=10.0)
    for estimator in OPERA + OBJECTIVE + NOISY:
        yield estimator()
    for estimator in NETWORKS:
        yield estimator(20.0, hidden_layer_sizes=(8,), max_iter=10)
    yield VariationalLogisticRegression(max_iter=10)
    for regressor in MOMENTS:
        yield regressor(target_bounds=(-600.0, 600.0), data_norm=20.0)


def nearly_without_noise():
    for estimator in OPERA + OBJECTIVE + NOISY:
        yield estimator(epsilon=1e12 if estimator in SCALED_DOWN else 1e6, data_norm=10.0)
    for estimator in NETWORKS:
        # With more steps scores reach hundreds, and probabilities underflow to zero.
        bare = {"epsilon": 1e6, "data_norm": 10.0, "calibrate": None}
        yield estimator(hidden_layer_sizes=(8,), max_iter=40, **bare)
    yield VariationalLogisticRegression(max_iter=100, epsilon=1e6, data_norm=10.0)
    for regressor in MOMENTS:
        yield regressor(1e6, target_bounds=(-600.0, 600.0), data_norm=20.0)
    yield from regressors()
    # Votes of a few teachers, which is all that the checks' tables allow, drown in the usual noise.
    yield WithPublicRows(DecisionTreeClassifier(max_depth=3), n_teachers=3, epsilon=1e6)


def regressors():
    for estimator in (*HUBER, DPSGDRegressor):
        yield estimator(1e6, target_bounds=(-4.0, 4.0), data_norm=10.0)
    yield DPSGDRegressor(1e6, loss="poisson", target_bounds=(0.0, 8.0), data_norm=10.0)


def expected_failures(estimator):
    """Return the checks that privacy forbids to pass, each with its reason."""
    reasons = {}
    if isinstance(estimator, OPERA + OBJECTIVE + HUBER[:2]):
        reasons["check_non_transformer_estimators_n_iter"] = (
            "the number of iterations to a fixed tolerance depends on private rows, so that "
            "n_iter_ would be an unaccounted release"
        )
    if isinstance(estimator, MOMENTS) and estimator.epsilon == 1.0:
        reasons["check_regressors_train"] = "a score of .5 on 200 rows takes more than epsilon = 1"
    linear = not getattr(estimator, "hidden_layer_sizes", ())
    if isinstance(estimator, OPERA + OBJECTIVE + NOISY) and linear:
        if estimator.epsilon == 1.0:
            reasons["check_class_weight_classifiers"] = (
                "weights of 1000 and 0.0001 multiply the noise by 1000, and there are 50 rows"
            )
        elif isinstance(estimator, SCALED_DOWN):
            reasons["check_class_weight_classifiers"] = (
                "its rows are several times as long as data_norm, to which fits scale them down "
                "and predictions do not; it passes with data_norm=60 (test_class_weights.py)"
            )
    return reasons


@check_settings(
    list(instances()),
    numbers_elsewhere=(
        *(OperaSVC, ObjectivePerturbationLogisticRegression, GrpuaLogisticRegression, GrpuaSVC),
        *(GrpuaMLPClassifier, PrivateRidge),
    ),
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
def test_scikit_learn_checks(estimator, check):
    run(check, estimator)


@pytest.mark.slow
@check_settings(
    list(nearly_without_noise()),
    elsewhere={type(estimator) for estimator in instances()},
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
def test_scikit_learn_checks_nearly_without_noise(estimator, check):
    run(check, estimator)


def run(check, estimator):
    with warnings.catch_warnings():
        # The checks' tables are tiny, so that any usual delta is above 1/n.
        warnings.simplefilter("ignore", PrivacyWarning)
        check(estimator)


def test_checks_that_run_again_are_checks():
    assert not [name for name in OF_NUMBERS if not hasattr(estimator_checks, name)]


def test_every_public_estimator_is_checked():
    import skdp

    public = {getattr(skdp, name) for name in skdp.__all__ if name[0].isupper()}
    for kind in (instances, nearly_without_noise):
        checked = {type(estimator) for estimator in (*kind(), *regressors())}
        assert checked - {BoundedScaler, WithPublicRows} | {PATEClassifier} == public
