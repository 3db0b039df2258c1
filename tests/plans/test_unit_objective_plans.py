"""Plans of objective perturbation for units of any number of rows: noise, side conditions."""

import math
import re

import numpy as np
import pytest
from objective_densities import logistic, shared

from skdp.audit.bounds import choose_threshold, errors_above
from skdp.losses import ClippedLoss, LogisticLoss, OneVsRestLoss, SmoothedHingeLoss
from skdp.models import LinearModel, ScaledUnits
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan, least_noise_event

ADJACENCIES = ("add-remove", "replace-one")
# Computed independently; columns: units, penalty on the mean, epsilon, delta, then add-remove by
# determinants and of the logistic loss alone, replace-one likewise (None: no better than that).
REFERENCE = [
    (1000, 0.01, 0.1, 1e-3, 21.889409, 17.468665, 43.778819, None),
    (1000, 0.01, 1.0, 1e-3, 2.6303976, 2.5751285, 5.2607952, 5.1504719),
    (1000, 0.01, 1.0, 1e-6, 4.3251064, 4.2246794, 8.6502127, 8.4493592),
    (30000, 0.001, 0.1, 1e-3, 18.665541, 17.414208, 37.331081, 34.852503),
]


@pytest.mark.parametrize("row", REFERENCE)
def test_least_noise_has_the_reference_values(row):
    units, penalty, epsilon, delta, *noises = row
    curvature = 0.25 / (units * penalty)
    for k, expected in enumerate(noises):
        slope = "known-sign" if k % 2 == 0 else "logistic"
        adjacency = ADJACENCIES[k // 2]
        event = least_noise_event(curvature, slope, adjacency, epsilon, delta, rows_per_unit=None)
        wanted = noises[2] if expected is None else expected
        assert event.noise_multiplier == pytest.approx(wanted, rel=6e-8)
        assert event.profile_bound(epsilon, adjacency) <= delta
        capped = least_noise_event(curvature, slope, adjacency, epsilon, delta, rows_per_unit=2)
        one = least_noise_event(curvature, slope, adjacency, epsilon, delta)
        assert one.noise_multiplier <= capped.noise_multiplier * (1 + 1e-9)
        assert capped.noise_multiplier <= event.noise_multiplier * (1 + 1e-9)


@pytest.mark.parametrize(
    ("outputs", "share"),
    [(3, 0.0011), (10, 0.0058), pytest.param(100, 0.18, marks=pytest.mark.slow)],
)
def test_several_outputs_need_the_documented_share_more_than_for_rows(outputs, share):
    rows, units = (
        least_noise_event(
            0.0, "known-sign", "add-remove", 1.0, 1e-6, outputs=outputs, rows_per_unit=most
        ).noise_multiplier
        for most in (1, None)
    )
    assert units / rows - 1.0 == pytest.approx(share, rel=0.05)


def test_the_logistic_losss_own_bound_may_hold_for_little_noise_only():
    """Its start rises with the noise; what a calibration that starts far above would miss."""
    event = least_noise_event(0.0252, "logistic", "add-remove", 0.1, 1e-3, rows_per_unit=None)
    assert event.noise_multiplier < 17.6


def make_plan(loss, rows, epsilon=1.0, penalty=0.1, n_features=3, **settings):
    model = LinearModel(loss, 500, n_features, loss.n_outputs, 0.0, ScaledUnits(1.0))
    return ObjectivePerturbationPlan.build(
        model,
        penalty=penalty,
        epsilon=epsilon,
        rows_per_unit=rows,
        **{"adjacency": "replace-one", "delta": 1e-6, **settings},
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "loss",
    [
        LogisticLoss(),
        ClippedLoss(LogisticLoss(), 0.3),
        SmoothedHingeLoss(0.5),
        OneVsRestLoss(ClippedLoss(LogisticLoss(), 0.3), 3),
    ],
)
def test_plans_meet_their_target_at_hardly_more_noise(loss, adjacency):
    for epsilon, delta in ((0.3, 1e-6), (8.0, 1e-9)):
        given = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
        plan, one = (make_plan(loss, rows, **given) for rows in (None, 1))
        bound = plan.event.profile_bound(epsilon, adjacency)
        assert 0.999 * delta <= bound <= delta
        assert 0.99 < plan.tilt_sigma / one.tilt_sigma < 1.01
        assert one.event.rows_per_unit == 1
        joint = 2.0 * plan.tolerance / (plan.penalty * plan.sigma)
        assert joint <= plan.event.approximation


def test_the_price_of_units_does_not_depend_on_columns():
    for rows in (None, 3, 1):
        few, many = (make_plan(LogisticLoss(), rows, n_features=each) for each in (1, 50))
        assert few.event == many.event and few.event.rows_per_unit == rows


@pytest.mark.parametrize("rows", [2, None])
def test_error_says_how_much_larger_alpha_must_be(rows):
    loss = SmoothedHingeLoss(0.5)
    with pytest.raises(ValueError, match="one unit's loss may") as caught:
        make_plan(loss, rows, penalty=1e-4)
    needed = float(re.search(r"exceed (\S+) ", str(caught.value)).group(1))
    expected = 1.0 / (500 * 2 * math.expm1(0.5)) if rows else 1.0 / 500
    assert needed == pytest.approx(expected, rel=1e-5)
    assert make_plan(loss, rows, penalty=1.02 * needed).event.noise_multiplier < 1e3


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_an_audit_of_minimisers_comes_close_to_the_claim_and_not_above(adjacency):
    """Two rows of a unit next to a straight line; false alarms below 1e-6, and a seed."""
    rng = np.random.default_rng(0)
    epsilon, delta, cap, penalty, count = 1.0, 1e-2, 0.3, 1e4, 100_000
    event = least_noise_event(
        0.21 / penalty, "known-sign", adjacency, epsilon, delta, rows_per_unit=None
    )
    noise = event.noise_multiplier * cap
    where = np.linspace(-1.0, 1.0, 4001) * 8.0 * noise / penalty

    def scores(unit):
        gradient = penalty * where + sum(
            row * shared(logistic(cap), weight)[0](row * where) for row, weight in unit
        )
        return np.interp(-noise * rng.standard_normal(count), gradient, where)

    other = [(-1.0, 0.2), (-1.0, 0.8)] if adjacency == "replace-one" else []
    first, second = ((scores([(1.0, 0.5), (1.0, 0.5)]), scores(other)) for _ in range(2))
    threshold = choose_threshold(*first, 1e-7, "clopper-pearson", delta)
    found = float(errors_above(threshold, *second, 1e-7).epsilon_lower(delta))
    assert 0.75 * epsilon < found <= epsilon
