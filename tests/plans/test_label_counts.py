"""A noisy count of labels inside a fit: its share of the budget, and weights of at most 1."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support import rows

from skdp import (
    DPSGDClassifier,
    GrpuaMLPClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.accounting import ObjectivePerturbationEvent, PLDAccountant
from skdp.losses import LogisticLoss
from skdp.mechanisms import RandomStream, analytic_gaussian_sigma, record_releases
from skdp.models import LinearModel
from skdp.plans.output_perturbation import OutputPerturbationPlan
from skdp.plans.recalibration import count_labels, label_counts, label_weights
from skdp.testing import replay_on_neighbour

PRIVATE = {"class_weight": "balanced", "prevalence": "private", "data_norm": 1.0}
CASES = [
    (OperaLogisticRegression, {}),
    (OperaLogisticRegression, {"delta": 0.0}),
    (OperaLogisticRegression, {"numerics": "discrete"}),
    (ObjectivePerturbationLogisticRegression, {}),
    (DPSGDClassifier, {"max_iter": 5, "adjacency": "add-remove"}),
    (DPSGDClassifier, {"max_iter": 5, "batch_size": 50, "adjacency": "replace-one"}),
    (GrpuaMLPClassifier, {"max_iter": 3, "hidden_layer_sizes": 2}),
]


@pytest.mark.parametrize(("cls", "settings"), CASES)
def test_the_count_and_the_fit_meet_the_target_together(cls, settings):
    """And the fit's own plan is not much worse for it."""
    fit = cls(epsilon=1.0, **PRIVATE, **settings)
    spent = fit.privacy_plan(600, 4)
    total = PLDAccountant(spent.adjacency).compose(spent.event).epsilon(fit.delta)
    assert 0.998 <= total.upper <= spent.epsilon == 1.0
    assert "noisy count of labels" in str(spent.assumptions)
    assert spent.mechanism.startswith("a noisy count of labels")
    count = label_counts(1.0, fit.delta, spent.adjacency, 2).event
    bare = fit.set_params(class_weight=None, prevalence=None).privacy_plan(600, 4).event
    if isinstance(bare, ObjectivePerturbationEvent):  # whose later Gaussian releases are one
        own = replace(spent.event, approximation=bare.approximation)
        squares = spent.event.approximation**2 - bare.approximation**2
        assert squares == pytest.approx(count.noise_multiplier**-2, rel=1e-2)
    else:
        assert spent.event.events[0] == count
        own = spent.event.events[1]
    alone = PLDAccountant(spent.adjacency).compose(own).epsilon(fit.delta)
    assert (0.94 if fit.delta == 0.0 else 0.98) <= alone.upper < 1.0


def test_gaussians_beside_each_other_add_squares():
    plan = label_counts(2.0, 1e-6, "add-remove", 3)
    sigma = analytic_gaussian_sigma(2.0, 1e-6) / math.sqrt(0.02)
    assert sigma <= plan.event.noise_multiplier <= sigma * (1 + 1e-5)
    fit = OperaLogisticRegression(epsilon=2.0, **PRIVATE, adjacency="add-remove")
    spent = fit.privacy_plan(600, 4, 3)
    both = math.hypot(*(1.0 / event.noise_multiplier for event in spent.event.events))
    assert both == pytest.approx(1.0 / analytic_gaussian_sigma(2.0, 1e-6), rel=1e-3)
    alone = fit._plan_shape((600, 4), 3)
    assert replace(alone, before=()).event == alone.own_event


@pytest.mark.parametrize(
    ("cls", "settings", "share"),
    [
        (*CASES[0], 1.0),
        (*CASES[0], 0.5),
        (CASES[0][0], {**CASES[0][1], "unit_weighting": "sum", "max_unit_rows": 4}, 0.25),
        (*CASES[2], 1.0),
    ],
)
def test_a_fit_weighs_labels_by_what_it_released(cls, settings, share):
    X, y = rows(n=600)
    y = np.where(np.arange(600) % 10 > 0, 0, y)  # about 5 % of ones
    by_unit = share < 1.0
    groups = np.arange(600) // 2 if by_unit else None
    with record_releases() as trace:
        fit = cls(epsilon=50.0, random_state=0, **PRIVATE, **settings).fit(X, y, groups=groups)
    counts = trace.releases[0]
    np.testing.assert_array_equal(counts.value, np.bincount(y) * share)
    weights = counts.output.min() / counts.output
    assert weights.max() == 1.0 and weights[0] < 0.3
    assert fit.privacy_spent_.unit == ("group" if by_unit else "row")
    assert (fit.predict(X) == 1).mean() > 0.2  # without weights it is next to none


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_units_move_the_count_by_no_more_than_declared(adjacency):
    plan = label_counts(1.0, 1e-6, adjacency, 3)
    codes, sizes = np.array([0, 0, 0, 1, 2, 2, 2]), np.array([3, 1, 3])
    shares = np.repeat(1.0 / sizes, sizes)
    counts = count_labels(codes, 3, shares)
    np.testing.assert_allclose(counts, 1.0, atol=1e-6)
    assert counts.max() <= 1.0
    other = count_labels(np.where(codes == 0, 1, codes), 3, shares)
    without = count_labels(codes[3:], 3, shares[3:])
    moved = other if adjacency == "replace-one" else without
    assert np.linalg.norm(counts - moved) <= plan.sensitivity
    assert np.linalg.norm(counts - moved) >= 0.999 * plan.sensitivity


def test_weights_are_at_most_one_whatever_the_noise():
    plan = label_counts(1.0, 1e-6, "add-remove", 2)
    for counts in ([-900.0, 5000.0], [0.0, 0.0], [1e6, 3.0], [40.0, 41.0]):
        weights = label_weights(np.array(counts), plan.sigma)
        assert weights.max() == 1.0 and weights.min() > 0.0
    # A count is taken for at least its noise.
    weights = label_weights(np.array([-900.0, 5000.0]), plan.sigma)
    assert weights[1] == pytest.approx(plan.sigma / 5000.0)
    released = plan.make(np.array([300.0, 50.0]), RandomStream.from_seed(0))
    assert abs(released - [300.0, 50.0]).max() < 9 * plan.sigma


def test_replays_stay_within_the_declared_sensitivities():
    X, y = rows(n=60)
    X[0], y[0] = [1.0, 0.0, 0.0, 0.0], 1
    other, labels = X.copy(), y.copy()
    other[0] *= -1.0
    labels[0] = 0
    fit = OperaLogisticRegression(classes=[0, 1], fit_intercept=False, **PRIVATE)
    assert 0.99 < replay_on_neighbour(fit, X, y, X, labels).largest_ratio <= 1.0  # the count
    assert replay_on_neighbour(fit, X, y, other, y).largest_ratio <= 1.0


def test_what_makes_no_sense_is_refused():
    X, y = rows(n=60)
    with pytest.raises(ValueError, match="requires class_weight='balanced'"):
        OperaLogisticRegression(prevalence="private").fit(X, y)
    with pytest.raises(ValueError, match="prevalence must be"):
        OperaLogisticRegression(prevalence="counted", class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="noise_multiplier cannot be given"):
        DPSGDClassifier(noise_multiplier=2.0, **PRIVATE).fit(X, y)
    with pytest.raises(ValueError, match="prevalence='private'"):
        OperaLogisticRegression(class_weight="balanced").fit(X, y)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_noise_of_counts_is_that_of_their_event(delta):
    plan = label_counts(1.0, delta, "replace-one", 3)
    draws = np.concatenate(
        [plan.make(np.zeros(3), RandomStream.from_seed(seed)) for seed in range(500)]
    )
    # 1,500 draws; of the Laplace law the mean size is the scale.
    found = np.std(draws) if delta > 0.0 else np.mean(np.abs(draws))
    assert found == pytest.approx(plan.sigma, rel=0.16)


def test_releases_beside_a_fit_are_found_by_their_label_alone():
    counts = label_counts(1.0, 1e-6, "replace-one", 2)
    other = replace(counts, label="of somebody else")
    plan = OutputPerturbationPlan.build(
        LinearModel(LogisticLoss(), 100, 2, 1, 0.5),
        **{"penalty": 0.1, "adjacency": "replace-one", "epsilon": 1.0, "delta": 1e-6},
        **{"solver": "newton", "max_iter": 9},
    )
    assert plan.named(counts.label) is None
    assert replace(plan, before=(other,), after=(other,)).named(counts.label) is None
    assert replace(plan, before=(other, counts)).named(counts.label) is counts
    with pytest.raises(ValueError, match="names 2 releases"):
        replace(plan, before=(counts,), after=(counts,)).named(counts.label)
