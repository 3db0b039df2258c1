"""Posterior, probabilities and intervals of private variational inference."""

import numpy as np
import pytest
from scipy import integrate
from scipy.optimize import minimize
from scipy.special import expit, log_expit, ndtr
from support import rows

from skdp import VariationalLogisticRegression
from skdp.audit import audit_epsilon, audit_in_one_run
from skdp.estimators._variational import log_expected_share
from skdp.plans.variational import account_for_noise, pass_through
from skdp.reporting import privacy_statement


def simulated(n, seed, d=4, n_new=400):
    """Return rows of norm at most 3, labels that a logistic model draws, and fresh rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + n_new, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True) / 3.0)
    truth = expit(X @ rng.normal(scale=1.0, size=d))
    y = (rng.random(n + n_new) < truth).astype(int)
    return X[:n], y[:n], X[n:], truth[n:]


def closest_gaussian(X, y, precision):
    """Return means and deviations of the best posterior with independent weights, by scipy."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(40)
    shares, signs, d = shares / shares.sum(), 2.0 * y - 1.0, X.shape[1]

    def bound(values):
        mean, variance = values[:d], np.exp(2.0 * values[d:])
        margins = (signs * (X @ mean))[:, None] + np.sqrt(X**2 @ variance)[:, None] * nodes
        slopes, share = -(signs[:, None] * expit(-margins)) @ shares, expit(margins)
        curvatures = (share * (1.0 - share)) @ shares
        prior = 0.5 * precision @ (mean**2 + variance) - values[d:].sum()
        of_mean = X.T @ slopes + precision * mean
        of_log = variance * ((X**2).T @ curvatures + precision) - 1.0
        return prior - (log_expit(margins) @ shares).sum(), np.concatenate([of_mean, of_log])

    start = np.concatenate([np.zeros(d), np.full(d, -2.0)])
    best = minimize(bound, start, jac=True, method="BFGS", options={"gtol": 1e-6}).x
    return best[:d], np.exp(best[d:])


@pytest.mark.parametrize("noise_aware", [False, True])
def test_without_noise_it_is_the_closest_gaussian(noise_aware):
    X, y, *_ = simulated(2000, 0)
    fit = VariationalLogisticRegression(
        1e6,
        1e-5,
        data_norm=3.0,
        prior_precision=1.0,
        intercept_scaling=1.5,
        max_grad_norm=10.0,
        noise_aware=noise_aware,
        random_state=0,
    ).fit(X, y)
    columns = np.column_stack([X, np.full(len(y), 1.5)])
    mean, deviation = closest_gaussian(columns, y, np.ones(5))
    found = np.append(fit.coef_, fit.intercept_ / 1.5)
    assert found == pytest.approx(mean, abs=0.2 * deviation.min())
    found = np.append(fit.coef_std_, fit.intercept_std_ / 1.5)
    assert found == pytest.approx(deviation, rel=0.02)


def test_probabilities_are_averages_over_the_posterior():
    means = np.array([0.0, 1.0, -3.0, 8.0, -40.0, 2.0])
    for deviation in (0.0, 0.3, 1.99, 2.0, 60.0):
        found = np.exp(log_expected_share(means, np.full(6, deviation)))
        other = np.exp(log_expected_share(-means, np.full(6, deviation)))
        assert found + other == pytest.approx(np.ones(6), abs=1e-9)
        if deviation == 0.0:
            assert found == pytest.approx(expit(means), abs=1e-12)
            continue
        for mean, value in zip(means, found, strict=True):
            # Over the logistic variable: smooth at any deviation.
            exact = integrate.quad(
                lambda t, mean=mean, scale=deviation: (
                    expit(t) * expit(-t) * ndtr((mean - t) / scale)
                ),
                *(-45.0, 45.0),
                points=[mean],
                epsabs=1e-11,
                limit=500,
            )[0]
            assert value == pytest.approx(exact, abs=1e-7)


def test_predictions_agree_with_samples_of_the_posterior():
    X, y, X_new, _ = simulated(500, 1)
    fit = VariationalLogisticRegression(1.0, 1e-5, data_norm=3.0, random_state=0).fit(X, y)
    rng = np.random.default_rng(0)
    weights = fit.coef_ + fit.coef_std_ * rng.standard_normal((200_000, 4))
    weights0 = fit.intercept_ + fit.intercept_std_ * rng.standard_normal(200_000)
    samples = expit(X_new[:5] @ weights.T + weights0)
    found = fit.predict_proba(X_new[:5])
    assert found.sum(axis=1) == pytest.approx(np.ones(5))
    # Deviations are at most .5 / sqrt(200,000); six of them.
    assert found[:, 1] == pytest.approx(samples.mean(axis=1), abs=6 * 0.5 / 200_000**0.5)
    ends = np.quantile(samples, [0.05, 0.95], axis=1).T
    assert fit.predict_interval(X_new[:5], confidence=0.9) == pytest.approx(ends, abs=0.02)
    assert (fit.predict(X_new) == (fit.predict_proba(X_new)[:, 1] > 0.5)).all()


def test_more_than_two_labels():
    X, y = rows(n=400, n_classes=3)
    fit = VariationalLogisticRegression(1e4, 1e-5, data_norm=1.0, random_state=0).fit(X, y)
    assert fit.coef_std_.shape == (3, 4) and fit.intercept_std_.shape == (3,)
    assert fit.predict_interval(X).shape == (400, 3, 2)
    shares = fit.predict_proba(X)
    assert shares.sum(axis=1) == pytest.approx(np.ones(400))
    assert (shares.argmax(axis=1) == fit.predict(X)).all() and fit.score(X, y) > 0.8


def test_noise_passes_through_as_in_a_simulation():
    """Linear steps on a quadratic, run with noise, have the gain and the variance computed."""
    fit = VariationalLogisticRegression(1.0, 1e-5, data_norm=1.0)
    plan = fit._plan_shape((1000, 2), 2)
    curvatures = np.array([[1e-4, 1e-3, 0.02]])
    gain, variance = pass_through(plan, curvatures)
    rng, runs = np.random.default_rng(0), 20_000
    slope = curvatures + plan.rule.penalty
    weights, velocity, total = np.zeros((3, runs, 3))
    shares = plan.averaging_weights(0, plan.steps)
    for rate, share in zip(plan.schedule.rates(0, plan.steps), shares, strict=True):
        noise = plan.sigma / plan.rule.divisor * rng.standard_normal((runs, 3))
        velocity = plan.rule.momentum * velocity + slope * (weights - 7.0) + noise
        weights = weights - rate * velocity
        total = total + share * weights
    average = total / shares.sum()
    deviation = np.sqrt(variance[0])
    # Six deviations of a mean, and of a variance.
    assert np.abs(average.mean(axis=0) - 7.0 * gain[0]).max() < 6.0 * deviation.max() / runs**0.5
    assert average.var(axis=0) == pytest.approx(variance[0], rel=6.0 * (2.0 / runs) ** 0.5)


def test_rows_that_say_nothing_leave_the_prior():
    fit = VariationalLogisticRegression(1.0, 1e-5, data_norm=1.0, fit_intercept=False)
    plan = fit._plan_shape((1000, 3), 2)
    flat = np.zeros((1, 3))
    mean, deviation = account_for_noise(plan, flat + 5.0, flat, learns_prior=False)
    assert mean == pytest.approx(flat)
    assert deviation == pytest.approx(flat + plan.model.prior_precision**-0.5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("parameters", [{"epsilon": 1e-4}, {"learning_rate_init": 1e4}])
def test_noise_and_steps_of_any_size_leave_a_posterior(parameters):
    X, y = rows()
    for seed in range(5):
        fit = VariationalLogisticRegression(delta=1e-5, data_norm=1.0, random_state=seed)
        fit.set_params(**parameters).fit(X, y)
        assert np.isfinite(fit.coef_).all() and (fit.coef_std_ > 0.0).all()
        assert np.isfinite(fit.predict_log_proba(X)).all()


@pytest.mark.slow
def test_intervals_cover_and_plain_ones_do_not():
    """Of 90 % intervals, on seeded tables with independent columns, where nothing is cut."""
    covered = {True: [], False: []}
    for seed in range(40):
        X, y, X_new, truth = simulated(1000, 100 + seed)
        for aware in covered:
            fit = VariationalLogisticRegression(
                1.0, 1e-5, data_norm=3.0, noise_aware=aware, max_grad_norm=4.0, random_state=seed
            ).fit(X, y)
            low, high = fit.predict_interval(X_new, confidence=0.9).T
            covered[aware].append(np.mean((low <= truth) & (truth <= high)))
    assert 0.8 <= np.mean(covered[True]) <= 0.99
    assert np.mean(covered[False]) < np.mean(covered[True]) - 0.1


def test_samples_of_a_posterior_without_noise_are_refused_before_the_rows():
    with pytest.raises(ValueError, match="has no guarantee"):
        VariationalLogisticRegression(privacy="sampling").fit(None, None)
    for parameters in ({"prior_precision": 0.0}, {"noise_aware": 2}, {"privacy": "none"}):
        with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
            VariationalLogisticRegression(**parameters).fit(*rows())
    fit = VariationalLogisticRegression(random_state=0).fit(*rows())
    with pytest.raises(ValueError, match="confidence"):
        fit.predict_interval(rows()[0], confidence=1.0)


def test_the_statement_names_what_is_released():
    fit = VariationalLogisticRegression(random_state=0, data_norm=1.0).fit(*rows())
    spent = fit.privacy_spent_
    assert {"coef_", "coef_std_", "intercept_", "intercept_std_"} <= set(spent.released)
    assert spent.event == VariationalLogisticRegression(data_norm=1.0).privacy_plan(300, 4).event
    assert "noisy gradients" in str(privacy_statement(fit))


@pytest.mark.slow
def test_white_box_audits_do_not_exceed_the_claim():
    X, y = rows(n=100)
    result = audit_epsilon(
        VariationalLogisticRegression(12.0, 1e-5, data_norm=1.0, max_iter=5),
        *(X, y),
        n_trials=200,
        release="all",
        random_state=0,
    )
    # Seeded; away from zero, so that it has seen something.
    assert 0.5 < result.epsilon_lower <= 12.0


def test_an_audit_in_one_run_reads_its_columns():
    X, y = rows()
    result = audit_in_one_run(
        VariationalLogisticRegression(8.0, 1e-5, data_norm=1.0, max_iter=20),
        *(X, y),
        n_canaries=200,
        release="all",
        random_state=0,
    )
    assert 0.1 < result.epsilon_lower <= 8.0


def test_logarithms_of_tiny_probabilities_are_exact():
    # The expectation of e^z, where the logistic function is that but for a factor of nearly one.
    for mean, deviation in ((-60.0, 2.0), (-1e6, 2.0), (-45.0, 3.0), (-60.0, 1.0)):
        found = log_expected_share(np.array([mean]), np.array([deviation]))
        assert found[0] == pytest.approx(mean + deviation**2 / 2.0, rel=1e-9)
    ends = [log_expected_share(np.array([-50.0]), np.array([s])) for s in (1.75 - 1e-12, 1.75)]
    assert ends[0][0] == pytest.approx(ends[1][0], abs=1e-8)
