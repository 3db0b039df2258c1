"""Probabilities that one noisy table of scores sets right, inside the fit."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from support import rows

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    GrpuaMLPClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.accounting import GaussianEvent, PLDAccountant
from skdp.accounting.numerics import gaussian_profile
from skdp.budget import BudgetAccountant
from skdp.mechanisms import RandomStream
from skdp.mechanisms.trace import record_releases
from skdp.plans.protocol import cost
from skdp.plans.recalibration import (
    BINS,
    count_scores,
    release_line,
    score_rows,
    table_of_scores,
)
from skdp.testing import replay_on_neighbour

LINEAR = (
    OperaLogisticRegression,
    ObjectivePerturbationLogisticRegression,
    GrpuaLogisticRegression,
    DPSGDClassifier,
)


def noisy(n=2000, seed=0, slope=5.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, (rng.random(n) < expit(slope * X[:, 0] - 1.0)).astype(int)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("cls", "settings", "groups"),
    [
        (OperaLogisticRegression, {}, False),
        (OperaLogisticRegression, {"numerics": "discrete"}, False),
        (OperaLogisticRegression, {}, True),
        (ObjectivePerturbationLogisticRegression, {}, False),
        (ObjectivePerturbationLogisticRegression, {}, True),
        (GrpuaLogisticRegression, {"calibration": "hidden-state"}, False),
        (DPSGDClassifier, {}, True),
        (DPSGDClassifier, {"batch_size": 500, "max_iter": 100}, False),
        (GrpuaMLPClassifier, {"hidden_layer_sizes": 5}, False),
    ],
)
def test_fit_and_table_spend_the_target_and_no_more(cls, settings, groups, adjacency):
    model = cls(1.0, adjacency=adjacency, data_norm=1.0, calibrate="private", **settings)
    spent = model.privacy_plan(20_000, 6, groups=groups)
    plan = model._plan_shape((20_000, 6), 2, groups)
    assert 0.999 <= cost(plan, 1e-6) <= 1.0
    assert 0.999 <= spent.epsilon <= 1.0
    assert spent.event == plan.event
    assert plan.after[0].multiplier == pytest.approx(
        1.0 / (gaussian_profile.mu(1.0, 1e-6) * math.sqrt(0.05)), rel=1e-5
    )
    assert "histogram" in spent.mechanism
    assert "calibration_" in spent.released


def test_a_table_beside_objective_perturbation_is_priced_as_the_pairs_compose():
    model = ObjectivePerturbationLogisticRegression(1.0, data_norm=1.0, calibrate=None)
    plan = model._plan_shape((20_000, 6), 2)
    event = plan.event
    noise = table_of_scores("replace-one", 0.05)
    both = replace(plan, after=(noise,)).event
    accountant = PLDAccountant(adjacency="replace-one")
    composed = accountant.compose(event).compose(GaussianEvent(noise.multiplier)).epsilon(1e-6)
    bound = both.profile_bound(float(composed), "replace-one")
    assert bound == pytest.approx(1e-6, rel=5e-3)


def test_without_enough_signal_or_when_off_events_are_bare():
    for cls in LINEAR:
        small = cls(0.1, data_norm=1.0)
        off = cls(0.1, data_norm=1.0, calibrate=None)
        assert small.privacy_plan(500, 4).event == off.privacy_plan(500, 4).event
        large = cls(1.0, data_norm=1.0).privacy_plan(10**5, 4)
        assert "histogram" in large.mechanism


def test_reasons_are_given_by_name():
    with pytest.raises(ValueError, match="'noise' is not supported"):
        OperaLogisticRegression(calibrate="noise").privacy_plan(100, 2)
    with pytest.raises(ValueError, match="delta=0"):
        OperaLogisticRegression(delta=0.0, calibrate="private").privacy_plan(100, 2)
    with pytest.raises(ValueError, match="composition"):
        GrpuaLogisticRegression(calibration="composition", calibrate="private").privacy_plan(100, 2)
    pure = OperaLogisticRegression(delta=0.0).privacy_plan(10**6, 2)
    assert "histogram" not in pure.mechanism


def test_noise_of_the_user_stays_and_the_default_adds_nothing_to_it():
    given = {"noise_multiplier": 5.0, "data_norm": 1.0, "max_iter": 100}
    auto = DPSGDClassifier(None, **given).privacy_plan(10**5, 3)
    bare = DPSGDClassifier(None, calibrate=None, **given).privacy_plan(10**5, 3)
    both = DPSGDClassifier(None, calibrate="private", **given).privacy_plan(10**5, 3)
    assert auto.event == bare.event
    assert both.event.events[0] == bare.event
    ratio = gaussian_profile.mu(both.epsilon, 1e-6) / gaussian_profile.mu(bare.epsilon, 1e-6)
    assert ratio == pytest.approx(1.0 / math.sqrt(0.95), rel=1e-3)
    ceiling = bare.epsilon * 1.001
    with pytest.raises(ValueError, match="exceeds epsilon"):
        DPSGDClassifier(ceiling, calibrate="private", **given).privacy_plan(10**5, 3)


def test_a_record_adds_at_most_one_to_the_table():
    rng = np.random.default_rng(0)
    for width in (1, 3):
        scores, codes = rng.normal(size=(200, width)), rng.integers(0, max(2, width), 200)
        whole = count_scores(scores, codes, None)
        parts = [count_scores(scores[k : k + 1], codes[k : k + 1], None) for k in range(200)]
        np.testing.assert_array_equal(sum(parts), whole)
        assert max(part.sum() for part in parts) == 1.0
        units = np.full(200, 1.0 / 200)  # one person's rows
        assert 0.999 * whole.sum() / 200 <= count_scores(scores, codes, units).sum() <= 1.0
    assert not count_scores(np.zeros((3, 1)), np.array([0, 1, 1]), None).any()


def test_pairs_of_classes_tell_the_temperature():
    """Labels drawn by softmax of scores, which are handed in half as large."""
    rng = np.random.default_rng(1)
    scores = 2.0 * rng.normal(size=(20_000, 4))
    codes = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    table = count_scores(scores / 2.0, codes, None)
    noise = table_of_scores("add-remove", 0.5)
    intercept, slope = release_line(table, noise, RandomStream.from_seed(2), False)
    assert intercept == 0.0
    assert slope == pytest.approx(2.0, rel=0.08)


@pytest.mark.parametrize("cls", LINEAR)
def test_probabilities_are_calibrated_and_agree_with_decisions(cls):
    X, y = noisy()
    model = cls(8.0, data_norm=1.0, random_state=3).fit(X, y)
    scores = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), scores)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(scores))
    np.testing.assert_array_equal(model.predict(X), scores > 0)
    fresh, labels = noisy(20_000, seed=1)
    line = LogisticRegression(C=np.inf).fit(model.decision_function(fresh)[:, None], labels)
    assert 0.75 < line.coef_[0, 0] < 1.33
    assert abs(line.intercept_[0]) < 0.3
    assert model.calibration_[1] > 0.0


def test_folding_is_the_line_that_is_published():
    X, y = noisy()
    line = (0.3, 2.0)

    class Fixed(OperaLogisticRegression):
        def _use_rows(self, *given):
            return *super()._use_rows(*given), line

    bare = OperaLogisticRegression(8.0, data_norm=1.0, random_state=RandomStream.from_seed(0))
    kept = {}
    for name in (OperaLogisticRegression, Fixed):
        with record_releases() as trace:
            model = name(**{**bare.get_params(), "calibrate": None}).fit(X, y)
        kept[name] = model, trace.releases[0].output
    model, weights = kept[Fixed]
    coef, intercept = model._plan_shape(X.shape, 2).model.unpack(weights)
    np.testing.assert_allclose(model.coef_, 2.0 * coef)
    np.testing.assert_allclose(model.intercept_, 2.0 * intercept + 0.3)
    model, weights = kept[OperaLogisticRegression]
    coef, _ = model._plan_shape(X.shape, 2).model.unpack(weights)
    np.testing.assert_array_equal(model.coef_, coef)
    assert model.calibration_ == (0.0, 1.0)


def test_classes_that_weigh_more_keep_their_weight():
    X, y = noisy(20_000, slope=4.0)  # the noise moves slope and intercept by less than .01
    weights = {"class_weight": {0: 1.0, 1: 5.0}, "data_norm": 1.0}
    model = OperaLogisticRegression(20.0, calibrate="private", **weights).fit(X, y)
    weighted = np.where(y == 1, 5.0, 1.0)
    line = LogisticRegression(C=np.inf).fit(
        model.decision_function(X)[:, None], y, sample_weight=weighted
    )
    assert 0.8 < line.coef_[0, 0] < 1.25
    assert abs(line.intercept_[0]) < 0.25


@pytest.mark.parametrize("cls", LINEAR)
def test_replays_stay_within_the_sensitivity_of_the_table(cls):
    X, y = noisy(300)
    X2, y2 = X.copy(), y.copy()
    X2[7], y2[7] = -X[7], 1 - y[7]
    model = cls(4.0, adjacency="replace-one", data_norm=1.0, classes=[0, 1], calibrate="private")
    if hasattr(model, "batch_size"):
        model.set_params(max_iter=3)
    report = replay_on_neighbour(model, X, y, X2, y2)
    assert report.sensitivities[-1] == pytest.approx(math.sqrt(2.0), rel=1e-5)
    assert report.distances[-1] == pytest.approx(math.sqrt(2.0), rel=1e-9)


@pytest.mark.parametrize(
    ("cls", "composition"),
    [
        *((OperaLogisticRegression, name) for name in ("mixed", "zcdp", "basic")),
        *((DPSGDClassifier, name) for name in ("gdp", "rdp", "approx")),
    ],
)
def test_budgets_take_fits_of_exactly_their_size(cls, composition):
    X, y = noisy(1500)
    budget = BudgetAccountant(1.0, 1e-6, composition=composition, adjacency="replace-one")
    model = cls(1.0, adjacency="replace-one", data_norm=1.0, accountant=budget)
    model.set_params(calibrate="private")
    model.fit(X, y)
    assert budget.spent()[0] <= 1.0 + 1e-9


@pytest.mark.parametrize("cls", [OperaLogisticRegression, DPSGDClassifier])
def test_a_huge_row_is_not_heard(cls):
    X, y = rows(60, 4)
    X[0] = 1e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cls(data_norm=1.0, classes=[0, 1], calibrate="private", random_state=0).fit(X, y)


def test_the_default_refuses_nothing_that_is_possible_without_a_table():
    for options in ({"epsilon": 0.1, "delta": 0.9}, {"epsilon": 1.0, "alpha": 6.9e-5}):
        model = ObjectivePerturbationLogisticRegression(
            **{"max_grad_norm": None, "data_norm": 1.0, "calibrate": None, **options}
        )
        bare = model.privacy_plan(20_000, 10)
        spent = model.set_params(calibrate="auto").privacy_plan(20_000, 10)
        assert spent.epsilon <= max(bare.epsilon, options["epsilon"])


def test_scores_are_functions_of_their_rows_to_the_last_bit():
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(1001, 30)), rng.normal(size=(2, 30))
    whole = score_rows(X, coef, np.zeros(2))
    np.testing.assert_allclose(whole, X @ coef.T, rtol=1e-12, atol=1e-13)
    for start in (1, 2, 3, 7):
        np.testing.assert_array_equal(score_rows(X[start:], coef, np.zeros(2)), whole[start:])


@pytest.mark.parametrize(
    ("options", "by_unit"),
    [
        ({}, False),
        ({"class_weight": {0: 3.0, 1: 5.0}}, False),
        ({"unit_weighting": "sum", "max_unit_rows": 4}, True),
        ({"class_weight": {0: 3.0, 1: 5.0}, "max_unit_rows": 2}, True),
    ],
)
def test_no_record_adds_more_than_one_to_the_table_of_a_fit(options, by_unit):
    X, y = noisy(600)
    groups = np.arange(600) // 5 if by_unit else None
    model = OperaLogisticRegression(4.0, data_norm=1.0, calibrate="private", **options)
    with record_releases() as trace:
        model.fit(X, y, groups=groups)
    table = trace.releases[-1]
    n = 120 if by_unit else 600
    weights = model.class_weight or {0: 1.0, 1: 1.0}
    shares = np.array([weights[label] / max(weights.values()) for label in y])
    assert table.value.min() >= 0.0 and table.value.sum() <= n
    if "max_unit_rows" not in options:
        assert table.value.sum() == pytest.approx(shares.sum(), rel=1e-5)
    else:  # no more than one a unit, and hardly less
        assert table.value.sum() >= 0.55 * n


def test_noise_of_the_table_is_that_of_its_event():
    noise = table_of_scores("replace-one", 0.02)
    counts = np.full((2, BINS.count), 1e6)
    with record_releases() as trace:
        for seed in range(60):
            release_line(counts, noise, RandomStream.from_seed(seed), True)
    assert {release.sigma for release in trace.releases} == {noise.sigma}
    draws = np.concatenate([(r.output - r.value).ravel() for r in trace.releases])
    # 1,440 draws: a deviation that is off by a sixth has a chance below 1e-8.
    assert np.std(draws) == pytest.approx(noise.sigma, rel=0.16)
    assert noise.sigma / noise.sensitivity == pytest.approx(50.0, rel=1e-3)
