"""Readings at different weights, their means, and the weights of the second stage."""

import numpy as np
import pytest

from skdp.inference._stages import (
    STAGES,
    Reading,
    combine_readings,
    count_remainders,
    posterior_of,
    second_weights,
    stage_step,
)


def test_shares_add_up_to_one():
    assert sum(STAGES) == pytest.approx(1.0)


def test_readings_are_averaged_by_precision():
    readings = [
        Reading(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 1.0),
        Reading(np.array([0.0, 5.0]), np.array([0.0, 10.0]), 2.0, 3.0 * np.eye(2), 0.6),
        Reading(np.array([0.0, 0.0]), np.array([0.0, 0.0]), 2.0, np.zeros((2, 2)), 0.6),
    ]
    found = combine_readings(readings)
    np.testing.assert_allclose(found.score, [2.0 * 4 / 6, 10.0 / 6])
    np.testing.assert_allclose(found.theta, [4 / 6, 5.0 / 6])
    assert found.score_noise == pytest.approx((1 + 0.25 + 0.25) ** -0.5)
    np.testing.assert_allclose(found.information, 1.5 * np.eye(2))
    assert found.matrix_noise == pytest.approx(0.6 / 2**0.5)
    assert found.squares is None


def test_a_combined_score_has_the_noise_that_it_states():
    rng = np.random.default_rng(0)
    noises = (3.0, 1.0, 7.0)
    drawn = [
        combine_readings([Reading(np.zeros(1), rng.normal(0, s, 1), s) for s in noises])
        for _ in range(4000)
    ]
    spread = np.std([each.score[0] for each in drawn])
    assert spread == pytest.approx(drawn[0].score_noise, rel=0.07)  # 6 deviations: 2e-9


def test_readings_without_noise_or_of_any_size_combine():
    zero, one = (Reading(np.full(1, t), np.full(1, t), t) for t in (0.0, 1.0))
    assert combine_readings([zero, one]).score_noise < 1e-200
    huge, tiny = (Reading(np.zeros(1), np.ones(1), s) for s in (1e200, 1e-200))
    assert combine_readings([huge, tiny]).score_noise == pytest.approx(1e-200)


@pytest.mark.parametrize("score_share", [0.1, 0.42, 0.7, 1.0])
@pytest.mark.parametrize("matrix_share", [0.5, 0.7, 0.9, 1.0])
def test_a_linear_change_of_the_information_cancels(score_share, matrix_share):
    """Along the way to the truth, information 1 + c u: combined readings find the truth."""
    change, way = 0.3, stage_step(score_share, matrix_share)
    assert 0.5 <= way <= 1.0 + 1e-12

    def score(u):  # the integral of the information from u to 1
        return (1.0 - u) + change * (1.0 - u**2) / 2.0

    combined = (1.0 - score_share) * score(0.0) + score_share * score(way)
    information = 1.0 + change * matrix_share * way
    distance = 1.0 - score_share * way
    assert combined / information == pytest.approx(distance, rel=1e-12)


def test_two_stages_remove_most_of_the_bias_of_one():
    """Curved scores without noise: the second stage is an order closer."""

    def look(theta):
        return Reading(
            theta, np.tanh(1.5 - theta), 1e-3, np.diag(np.cosh(1.5 - theta) ** -2.0), 1e-3
        )

    prior = np.full(2, 1e3)
    theta = np.array([0.9, 1.0])
    first = look(theta)
    second = look(second_weights([first], 1e-3 * (3 / 7) ** 0.5, prior))
    one = posterior_of(first, prior).coefficients.mean
    two = posterior_of(combine_readings([first, second]), prior).coefficients.mean
    assert np.all(np.abs(two - 1.5) < 0.35 * np.abs(one - 1.5))


def test_far_readings_lose_their_weight_and_close_ones_keep_it():
    """Noise grows by the remainder, by one factor; a reading at the estimates keeps its own."""
    information = 400.0 * np.eye(2)

    def look(theta):
        way = np.array([1.0, 0.5]) - theta
        return Reading(theta, information @ way, 5.0, information, 2.0, information, 3.0)

    readings = [look(np.array([-2.0, 0.5])), look(np.array([0.98, 0.5]))]
    far, close = count_remainders(readings, np.full(2, 1e3))
    assert far.score_noise > 50.0 * 5.0
    assert 5.0 <= close.score_noise < 1.01 * 5.0
    for name in ("matrix_noise", "squares_noise"):
        grown = getattr(far, name) / getattr(readings[0], name)
        assert grown == pytest.approx(far.score_noise / 5.0)
    np.testing.assert_allclose(combine_readings([far, close]).theta, [0.98, 0.5], atol=1e-2)


def test_the_reading_of_a_fit_has_no_posterior_alone():
    with pytest.raises(ValueError, match="information"):
        posterior_of(Reading(np.zeros(2), np.zeros(2), 1.0), np.ones(2))
