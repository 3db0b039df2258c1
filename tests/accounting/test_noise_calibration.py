"""Calibration: the target is met, nearly exhausted, and equal to the published noise."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ComposedEvent,
    GaussianEvent,
    PLDAccountant,
    PoissonSampledEvent,
    PureDPEvent,
    RDPAccountant,
    calibrate_event,
    calibrate_noise_multiplier,
    composition_noise_multiplier,
    dpsgd_epsilon,
)
from skdp.exceptions import CalibrationError, UnsupportedEventError
from skdp.mechanisms import analytic_gaussian_sigma

# n, steps, epsilon, delta, then sigma / S for: composition with the printed mean term and delta
# halved; composition at its best; numerical composition. S is twice the contribution bound.
NOISE_TABLE = [
    (1000, 10**3, 0.1, 1e-3, 4.34242, 4.25493, 0.96809),
    (1000, 10**3, 0.1, 1e-6, 9.01463, 8.96484, 1.5629),
    (1000, 10**3, 1, 1e-3, 1.44023, 1.39551, 0.51784),
    (1000, 10**3, 1, 1e-6, 2.40701, 2.37174, 0.69952),
    (1000, 10**4, 0.1, 1e-3, 12.7141, 12.6015, 2.1460),
    (1000, 10**4, 0.1, 1e-6, 25.8546, 25.7721, 4.0327),
    (1000, 10**4, 1, 1e-3, 2.79213, 2.72894, 0.67706),
    (1000, 10**4, 1, 1e-6, 4.68122, 4.62181, 0.84676),
    (1000, 10**6, 0.1, 1e-3, 137.592, 137.142, 17.806),
    (1000, 10**6, 0.1, 1e-6, 263.533, 263.043, 36.705),
    (1000, 10**6, 1, 1e-3, 18.3397, 17.8999, 2.9781),
    (1000, 10**6, 1, 1e-6, 31.6965, 31.2459, 4.6261),
    (30000, 30000, 0.1, 1e-3, 1.77114, 1.7349, 0.50917),
    (30000, 30000, 0.1, 1 / 9e8, 4.37281, 4.35515, 0.79300),
    (30000, 30000, 1, 1e-3, 0.910644, 0.883347, 0.38450),
    (30000, 30000, 1, 1 / 9e8, 1.8095, 1.79172, 0.60426),
    (30000, 300000, 0.1, 1e-3, 3.78675, 3.75614, 0.73589),
    (30000, 300000, 0.1, 1 / 9e8, 9.62192, 9.60212, 1.3245),
    (30000, 300000, 1, 1e-3, 1.41728, 1.38752, 0.44084),
    (30000, 300000, 1, 1 / 9e8, 2.78129, 2.75834, 0.63637),
    (30000, 9 * 10**8, 0.1, 1e-3, 167.334, 166.692, 17.806),
    (30000, 9 * 10**8, 0.1, 1 / 9e8, 425.864, 425.382, 50.423),
    (30000, 9 * 10**8, 1, 1e-3, 21.5162, 20.9745, 2.9786),
    (30000, 9 * 10**8, 1, 1 / 9e8, 48.6042, 48.1121, 5.8790),
]


@pytest.mark.parametrize("row", NOISE_TABLE, ids=lambda row: "-".join(map(str, row[:4])))
def test_numerical_noise_lies_between_its_published_bounds(row):
    """Two evaluations pin the calibrated noise to [0.999, 1.002] of the published one."""
    n, steps, epsilon, delta, _, _, z = row

    def cost(scale):
        return dpsgd_epsilon(
            2 * z * scale, 1 / n, steps, delta, adjacency="replace-one", sampling="uniform"
        )

    assert cost(1.002) <= epsilon <= cost(0.999)


@pytest.mark.parametrize("row", NOISE_TABLE, ids=lambda row: "-".join(map(str, row[:4])))
def test_composition_noise_is_the_published_one(row):
    n, steps, epsilon, delta, half, best, z = row
    target = (epsilon, delta, 1 / n, steps)
    printed = composition_noise_multiplier(*target, mean_term="printed", split=0.5)
    assert printed == pytest.approx(2 * half, rel=1e-5)
    assert composition_noise_multiplier(*target) == pytest.approx(2 * best, rel=1e-5)
    assert composition_noise_multiplier(*target) > 2 * z


@pytest.mark.parametrize("row", [NOISE_TABLE[k] for k in (0, 5, 9, 20, 23)], ids=str)
def test_calibration_meets_the_published_noise(row):
    n, steps, epsilon, delta, _, _, z = row
    how = {"adjacency": "replace-one", "sampling": "uniform"}
    found = calibrate_noise_multiplier(epsilon, delta, 1 / n, steps, **how)
    assert found == pytest.approx(2 * z, rel=1e-3)
    assert dpsgd_epsilon(found, 1 / n, steps, delta, **how) <= epsilon


def test_full_batches_are_calibrated_exactly():
    for adjacency, moved in (("add-remove", 1), ("replace-one", 2)):
        z = calibrate_noise_multiplier(1.0, 1e-5, 1.0, 100, adjacency=adjacency)
        assert z == pytest.approx(10 * moved * analytic_gaussian_sigma(1.0, 1e-5), rel=1e-4)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    log_epsilon=st.floats(-3, 2.5),
    log_delta=st.floats(-25, -3),
    log_rate=st.floats(-9, 0),
    log_steps=st.floats(0, 10),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
    accountant=st.sampled_from(["pld", "rdp"]),
)
def test_calibrated_cost_never_exceeds_the_target(
    log_epsilon, log_delta, log_rate, log_steps, adjacency, accountant
):
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    plan = {"sample_rate": math.exp(log_rate), "steps": int(math.exp(log_steps))}
    how = {"adjacency": adjacency, "accountant": accountant}
    z = calibrate_noise_multiplier(epsilon, delta, **plan, **how)
    cost = dpsgd_epsilon(z, delta=delta, **plan, **how)
    assert cost <= epsilon
    assert cost >= epsilon * (1 - 1e-4) or z <= 1.0001e-3


def test_generic_calibration_of_a_mixed_plan():
    def plan(z):
        step = PoissonSampledEvent(0.05, GaussianEvent(z))
        return ComposedEvent((PureDPEvent(0.2), step, GaussianEvent(5 * z)))

    for accountant in ("pld", "rdp", PLDAccountant, RDPAccountant):
        z = calibrate_event(plan, 0.7, 1e-6, accountant=accountant)
        cls = {"pld": PLDAccountant, "rdp": RDPAccountant}.get(accountant, accountant)
        cost = cls().compose(plan(z)).epsilon(1e-6)
        assert 0.7 * (1 - 1e-4) <= cost <= 0.7


def test_impossible_targets_are_explained():
    def plan(z):
        return ComposedEvent((PureDPEvent(1.0), GaussianEvent(z)))

    with pytest.raises(CalibrationError, match=r"epsilon=0.5.*Raise epsilon"):
        calibrate_event(plan, 0.5, 1e-6)


def test_enough_already_at_the_least_noise():
    assert calibrate_event(lambda z: GaussianEvent(z), 1e3, 1e-6, bracket=(2.0, 9.0)) == 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must lie"),
        ({"sample_rate": 0.0}, "sample_rate must lie"),
        ({"steps": 0.5}, "count must be an integer"),
        ({"sampling": "shuffled"}, "sampling must be"),
        ({"accountant": "moments"}, "accountant must be one of"),
        ({"adjacency": "zero-out"}, "adjacency must be one of"),
    ],
)
def test_bad_parameters_are_named(change, message):
    plan = {"epsilon": 1.0, "delta": 1e-5, "sample_rate": 0.1, "steps": 10, **change}
    with pytest.raises(ValueError, match=message):
        calibrate_noise_multiplier(**plan)


def test_unsupported_sampling_is_refused_by_name():
    with pytest.raises(UnsupportedEventError, match="UniformSampledEvent"):
        calibrate_noise_multiplier(1.0, 1e-5, 0.1, 10, sampling="uniform")
    with pytest.raises(UnsupportedEventError, match="PoissonSampledEvent"):
        dpsgd_epsilon(1.0, 0.1, 10, 1e-5, accountant="gdp")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"delta": 0.0}, "delta must lie"),
        ({"sample_rate": 2.0}, "sample_rate must lie"),
        ({"steps": 0}, "steps must be"),
        ({"mean_term": "cosh"}, "mean_term must be"),
        ({"split": 1.0}, "split must be"),
        ({"split": "worst"}, "split must be"),
    ],
)
def test_bad_parameters_of_composition_are_named(change, message):
    plan = {"epsilon": 1.0, "delta": 1e-5, "sample_rate": 0.1, "steps": 10, **change}
    with pytest.raises(ValueError, match=message):
        composition_noise_multiplier(**plan)


def test_composition_noise_is_sound():
    """The closed-form noise never costs more than its target by the numerical accountant."""
    for epsilon, delta, rate, steps in ((0.5, 1e-5, 0.02, 50), (3.0, 1e-3, 0.5, 8), (1, 0.1, 1, 1)):
        z = composition_noise_multiplier(epsilon, delta, rate, steps)
        how = {"adjacency": "replace-one", "sampling": "uniform"}
        assert dpsgd_epsilon(z, rate, steps, delta, **how) <= epsilon
