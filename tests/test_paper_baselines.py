"""Baselines of the papers' experiments: noise by the formulas, and lazy noise of the right law."""

import math
import subprocess
import sys
from pathlib import Path

import ding_networks
import numpy as np
import pytest
from _baselines import OutPert, PrintedGrpua, PrintedOpera, SgdPert, gradient_descent, make_loss
from _ding_tables import Table
from scipy.sparse import csr_array
from scipy.stats import norm

SCRIPTS = Path(__file__).resolve().parents[1] / "examples" / "paper"
# Three rows that share one column, and a column that no row touches.
ROWS = np.array([[0.8, 0.6, 0.0, 0.0, 0.0], [0.0, 0.5, 0.8, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
SIGNS = np.array([1.0, -1.0, 1.0])
PENALTY, WIDTH, STEPS = 0.1, 20.0, 9
SIGMA = 2.0 * PENALTY * len(ROWS)


def exact_moments(sigma):
    """Mean and covariance of the last iterate of the plain loop, by recursion over its steps.

    The hinge is so wide that its slope is ``-(1 - m + h) / 2h`` at every margin that occurs (but
    for events beyond six deviations), so that steps are affine in w, and w_t is a mixture over the
    drawn rows whose first two moments follow from those of w_{t-1}.
    """
    d = ROWS.shape[1]
    mean, second = np.zeros(d), np.zeros((d, d))
    n = len(ROWS)
    for t in range(1, STEPS + 1):
        eta = 1.0 / (PENALTY * n * t)
        next_mean, next_second = np.zeros(d), np.zeros((d, d))
        for x, s in zip(ROWS, SIGNS, strict=True):
            matrix = (1.0 - eta * n * PENALTY) * np.eye(d) - eta * n * np.outer(x, x) / 2 / WIDTH
            constant = eta * n * s * x * (1.0 + WIDTH) / 2 / WIDTH
            cross = np.outer(matrix @ mean, constant)
            next_mean += (matrix @ mean + constant) / n
            next_second += matrix @ second @ matrix.T / n + np.outer(constant, constant) / n
            next_second += (cross + cross.T) / n
        mean, second = next_mean, next_second + eta**2 * sigma**2 * np.eye(d)
    return mean, second - np.outer(mean, mean)


def test_lazy_noise_has_the_law_of_the_plain_loop():
    """Means and covariances of 20,000 runs; false alarms below 1e-6, were the seed not fixed."""
    method = SgdPert(loss="hinge", half_width=WIDTH, penalty=PENALTY, random_state=0)
    runs = method.simulate(csr_array(ROWS), SIGNS, 20_000, STEPS, SIGMA)
    limit = norm.isf(1e-6 / 40)
    mean, covariance = exact_moments(SIGMA)
    centred = runs - mean
    assert np.all(np.abs(centred.mean(0)) < limit * np.sqrt(np.diag(covariance) / len(runs)))
    products = centred[:, :, np.newaxis] * centred[:, np.newaxis, :]
    errors = products.std(0) / math.sqrt(len(runs))
    assert np.all(np.abs(products.mean(0) - covariance) < limit * errors)
    # Another amount of noise, or none for the column that is never read, would be seen in each.
    other = exact_moments(1.2 * SIGMA)[1]
    assert np.all(np.abs(np.diag(products.mean(0) - other)) > limit * np.diag(errors))


def test_without_noise_the_kernel_is_the_plain_loop():
    x, weights = ROWS[0], np.zeros(5)
    loss = make_loss("hinge")
    for t in range(1, 40):
        margin = x @ weights
        slope = -0.5 * (min(max((1.0 - margin) / loss.half_width, -1.0), 1.0) + 1.0)
        weights = weights - (slope * x + 0.1 * weights) / (0.1 * t)
    method = SgdPert(loss="hinge", penalty=0.1)
    lazy = method.simulate(csr_array(ROWS[:1]), np.ones(1), 1, 39, 0.0)
    np.testing.assert_allclose(lazy[0], weights, rtol=1e-12)


@pytest.mark.parametrize(("loss", "beta"), [("logistic", 0.251), ("hinge", 1.001)])
def test_output_noise_is_that_of_the_formulas(loss, beta):
    """The printed sensitivity; classical noise; and 398.94 sensitivities where epsilon vanishes."""
    n, options = 1000, {"loss": loss, "penalty": 1e-3, "random_state": 0, "max_iter": 3}
    bound = 5 * (0.001 + beta) / (n * 0.001 * beta)
    classical = OutPert(0.1, 1e-3, **options)
    assert classical.sensitivity(n) == pytest.approx(bound, rel=1e-12)
    sigma = math.sqrt(2 * math.log(1250)) * bound / 0.1
    assert classical.noise_scale(n) == pytest.approx(sigma, rel=1e-12)
    assert PrintedOpera(1e-9, 1e-3, **options).noise_scale(n) == pytest.approx(
        398.942 * bound, rel=1e-5
    )
    X, signs = csr_array(np.tile(ROWS, (3, 1))), np.tile(SIGNS, 3)
    drawn = classical.release(X, signs, 4000)
    drawn = drawn - gradient_descent(X, signs, make_loss(loss), 1e-3, 3)
    # Chi-squared with 20,000 degrees of freedom: one deviation is 0.5 %, the margin six.
    assert np.sqrt((drawn**2).mean()) == pytest.approx(sigma * n / 9, rel=0.03)


@pytest.mark.parametrize("n", [50, 30_162, 45_222])
@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 1.0])
def test_noise_of_bassily_et_al_suffices(n, epsilon):
    """By composing the steps' privacy-loss distributions, which owes nothing to the formula."""
    method = SgdPert(epsilon, 1e-3)
    formula = 32 * n**2 * math.log(n / 1e-3) * math.log(1e3) / epsilon**2
    assert method.noise_scale(n) ** 2 == pytest.approx(formula)
    assert method.certified_epsilon(n) <= epsilon


def test_printed_grpua_is_refused_but_can_be_simulated():
    """At n = 50 the claimed total for steps of (0.1, 0.001) is 0.97; no small epsilon covers it."""
    method = PrintedGrpua(0.1, 1e-3, loss="hinge", penalty=PENALTY, random_state=0)
    assert method.noise_scale(50) == pytest.approx(17.404396, rel=1e-6)
    X, signs = csr_array(np.tile(ROWS[:2], (25, 1))), np.tile(SIGNS[:2], 25)
    with pytest.raises(ValueError, match="does not give this epsilon"):
        method.release(X, signs, 1)
    assert method.simulate(X, signs, 2, method.steps(50), method.noise_scale(50)).shape == (2, 5)


def test_classical_noise_is_refused_where_it_does_not_suffice():
    with pytest.raises(ValueError, match=r"not \(100, 0.001\)-private"):
        OutPert(100.0, 1e-3).noise_scale(1000)


def test_noise_of_sgdpert_is_certified_for_networks(monkeypatch):
    """Its fit spends at most epsilon when a row is replaced; printed GRPUA's far more."""
    monkeypatch.setattr(ding_networks, "HIDDEN", (2,))
    table = Table("tiny", *[csr_array(np.tile(ROWS, (3, 1))), np.tile(SIGNS, 3)] * 2)
    names = (ding_networks.SGDPERT, ding_networks.GRPUA)
    sound, printed = (ding_networks.run(name, 0.1, table, 0)[2] for name in names)
    assert 0.0 < sound <= 0.1 < 1.0 < printed


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(f"plot_ding_figure{k}" for k in range(2, 7)), "ding_table1"])
def test_scripts_run_on_a_sample(name, tmp_path):
    picture = tmp_path / "figure.png"
    arguments = ["--fast"]
    if name.startswith("plot"):
        pytest.importorskip("matplotlib", reason="needs the plot extra")
        arguments.append(str(picture))
    printed = subprocess.run(
        [sys.executable, str(SCRIPTS / f"{name}.py"), *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    if name.startswith("plot"):
        assert "GRPUA as printed, not private" in printed and "not in the paper" in printed
        assert 10_000 < picture.stat().st_size < 80_000
    else:
        assert "GRPUA: 244.8" in printed and "ns a step" in printed
