"""Fits with discrete numerics: the same models, on a grid, charged for the noise that is added."""

import re
from fractions import Fraction

import numpy as np
import pytest
from support import rows

from skdp import (
    ObjectivePerturbationLogisticRegression,
    ObjectivePerturbationSVC,
    OperaLogisticRegression,
    OperaSVC,
)
from skdp.accounting.privacy_spent import DISCRETE_NOISE, REAL_NUMBERS
from skdp.mechanisms import record_releases
from skdp.reporting import PrivacySpent, privacy_statement
from skdp.testing import FrozenStream, replay_on_neighbour

CASES = [
    (OperaLogisticRegression, {}),
    (OperaLogisticRegression, {"solver": "gd", "alpha": 0.0}),
    (OperaSVC, {"solver": "lbfgs"}),
    (ObjectivePerturbationLogisticRegression, {}),
    (ObjectivePerturbationSVC, {}),
]


def fit(cls, settings, X, y):
    with record_releases() as trace:
        model = cls(random_state=FrozenStream.from_seed(0), **settings).fit(X, y)
    (release,) = trace.releases
    return model, release


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("cls", "settings"), CASES)
def test_all_that_is_released_is_on_the_grid_that_is_named(cls, settings, n_classes):
    X, y = rows(n=60, n_classes=n_classes)
    settings = {**settings, "numerics": "discrete", "classes": range(n_classes)}
    model, release = fit(cls, settings, X, y)
    spent = model.privacy_spent_
    grid = 2.0 ** int(re.search(r"2\*\*(-?\d+), rounding", spent.mechanism)[1])
    for number in (*release.output, *release.value, release.sigma):
        assert (Fraction(number) / Fraction(grid)).denominator == 1
    coef = release.output.reshape(len(model.coef_), -1)[:, :-1]
    assert np.array_equal(model.coef_, coef)
    ordinary, continuous = fit(cls, {**settings, "numerics": "float"}, X, y)
    # Nobody loses anything by it: the noise is nearly the same, and so are the weights.
    assert continuous.sigma <= release.sigma < continuous.sigma * (1.0 + 2e-5)
    assert ordinary.privacy_spent_.epsilon == pytest.approx(spent.epsilon, rel=1e-6)
    if cls in (OperaLogisticRegression, OperaSVC):
        assert np.max(np.abs(release.value - continuous.value)) < 1e-4 * release.sigma
        charged = release.sigma / release.sensitivity
        assert charged * (1.0 - 1e-9) < spent.event.noise_multiplier < charged
    else:
        assert ordinary.privacy_spent_.event == spent.event


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("cls", "settings"), CASES)
def test_replay_on_replaced_records(cls, settings, n_classes):
    X, y = rows(n=60, n_classes=n_classes)
    other, labels = X.copy(), y.copy()
    X[0] = [1.0, 0.0, 0.0, 0.0]
    other[0], labels[0] = -X[0], n_classes - 1 - y[0]
    estimator = cls(classes=range(n_classes), numerics="discrete", **settings)
    report = replay_on_neighbour(estimator, X, y, other, labels)
    assert 0.0 < report.largest_ratio <= 1.0


@pytest.mark.parametrize("numerics", ["float", "discrete"])
@pytest.mark.parametrize("cls", [OperaSVC, ObjectivePerturbationSVC])
def test_classes_share_no_noise(cls, numerics):
    """On rows of zeros the minimisers are those of the secret linear terms alone."""
    settings = {"classes": range(3), "numerics": numerics, "fit_intercept": False}
    _, release = fit(cls, settings, np.zeros((60, 5)), np.arange(60) % 3)
    noises = [release.output - release.value]
    noises += [release.value] if cls is ObjectivePerturbationSVC else []
    for noise in noises:
        assert np.min(np.abs(np.diff(np.sort(noise)))) > 1e-9 * np.std(noise)


def test_declared_sensitivities_stay_tight():
    X, y = np.zeros((60, 4)), np.ones(60, dtype=int)
    X[0, 0] = 1.0
    estimator = OperaSVC(classes=[0, 1], fit_intercept=False, numerics="discrete")
    assert replay_on_neighbour(estimator, X, y, -X, y).largest_ratio > 0.95


def test_statements_say_what_the_arithmetic_is():
    X, y = rows(n=60)
    models = {
        numerics: OperaLogisticRegression(numerics=numerics).fit(X, y)
        for numerics in ("float", "discrete")
    }
    said = {k: privacy_statement(model).to_dict()["arithmetic"] for k, model in models.items()}
    assert said == {"float": REAL_NUMBERS, "discrete": DISCRETE_NOISE}
    record = models["discrete"].privacy_spent_.to_dict()
    assert PrivacySpent.from_dict(record).arithmetic == DISCRETE_NOISE
    del record["arithmetic"]  # as before there was a choice
    assert PrivacySpent.from_dict(record).arithmetic == REAL_NUMBERS


@pytest.mark.parametrize("cls", [OperaLogisticRegression, ObjectivePerturbationSVC])
def test_other_numerics_are_refused_before_rows_are_used(cls):
    with pytest.raises(ValueError, match="numerics"):
        cls(numerics="exact").fit(*rows(n=20))


def test_too_many_steps_and_too_small_penalties_are_refused_with_a_remedy():
    steps = OperaSVC(numerics="discrete", solver="gd", alpha=0.0, max_iter=10**14)
    with pytest.raises(ValueError, match="smaller max_iter"):
        steps.privacy_plan(100, 1000)
    with pytest.raises(ValueError, match="larger alpha"):
        OperaSVC(numerics="discrete", alpha=1e-10).privacy_plan(100, 200_000)
