"""Curves against closed forms; what is no guarantee says so in the legend."""

import builtins
import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.pipeline import make_pipeline

from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.accounting import Accountant, GaussianEvent, GDPAccountant, PLDAccountant, PureDPEvent
from skdp.accounting.numerics.trade_off import trade_off_lower, trade_off_upper
from skdp.mechanisms import analytic_gaussian_epsilon
from skdp.preprocessing import BoundedScaler
from skdp.reporting import PrivacyCurveDisplay

matplotlib = pytest.importorskip("matplotlib", reason="needs the plot extra")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ALPHAS = np.linspace(0.0, 1.0, 401)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


class Guess(Accountant):
    """A stand-in whose answers are proved by nobody."""

    name = "guess"
    is_upper_bound = False

    def _supports_leaf(self, leaf):
        return True

    def _epsilon(self, delta):
        return 1.0

    def _delta(self, epsilon):
        return math.exp(-epsilon) / 10


class Diagnostic(Guess):
    name = "diagnostic"
    is_differential_privacy = False


def gaussian_trade_off(mu, alphas):
    return norm.cdf(norm.isf(alphas) - mu)


def gaussian_delta(mu, epsilons):
    return norm.cdf(mu / 2 - epsilons / mu) - np.exp(epsilons) * norm.cdf(-mu / 2 - epsilons / mu)


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 2.5, 6.0])
def test_trade_off_bounds_enclose_the_gaussian_one(mu):
    epsilons = np.linspace(0.0, mu * (mu / 2 + 6), 150)
    deltas = gaussian_delta(mu, epsilons)
    exact = gaussian_trade_off(mu, ALPHAS)
    lower = trade_off_lower(epsilons, deltas, ALPHAS)
    upper = trade_off_upper(epsilons, deltas, deltas, ALPHAS)
    assert (lower <= exact + 1e-14).all() and (exact <= upper + 1e-14).all()
    assert (upper - lower).max() < 2e-3
    # With few points both remain bounds, and with loose bounds on delta too.
    few, loose = epsilons[::25], gaussian_delta(mu, epsilons[::25])
    lower = trade_off_lower(few, 1.02 * loose, ALPHAS)
    upper = trade_off_upper(few, 0.98 * loose, 1.02 * loose, ALPHAS)
    assert (lower <= exact + 1e-14).all() and (exact <= upper + 1e-14).all()
    assert (upper <= 1 - ALPHAS + 1e-15).all()


def test_trade_off_of_randomised_response_is_exact():
    accountant = PLDAccountant().compose(PureDPEvent(1.2))
    display = PrivacyCurveDisplay.from_accountant(accountant, kind="trade-off")
    alpha = display.x
    exact = np.maximum(1 - np.exp(1.2) * alpha, np.exp(-1.2) * (1 - alpha))
    assert np.allclose(display.lower, exact, rtol=0, atol=1e-6)


def test_epsilon_against_delta():
    deltas = [1e-9, 1e-6, 1e-3]
    accountant = GDPAccountant().compose(GaussianEvent(2.0))
    display = PrivacyCurveDisplay.from_accountant(accountant, grid=deltas)
    assert list(display.x) == deltas
    exact = [analytic_gaussian_epsilon(2.0, delta, 1.0) for delta in deltas]
    assert np.allclose(display.upper, exact, rtol=1e-9)
    assert np.array_equal(display.line_.get_ydata(), display.upper)
    assert display.ax_.get_xscale() == "log"
    assert legend_of(display) == ["GDPAccountant (add-remove)"]


def test_epsilon_against_steps_adds_to_the_history_and_leaves_it_alone():
    accountant = GDPAccountant("replace-one").compose(GaussianEvent(4.0))
    before = accountant.to_dict()
    display = PrivacyCurveDisplay.from_steps(
        accountant, GaussianEvent(8.0), [0, 4, 12], delta=1e-5, name="phase two"
    )
    assert accountant.to_dict() == before
    sigmas = [4.0, math.sqrt(8.0), 2.0]  # mu^2 = 1/16 + steps/64
    exact = [analytic_gaussian_epsilon(sigma, 1e-5, 1.0) for sigma in sigmas]
    assert np.allclose(display.upper, exact, rtol=1e-9)
    assert legend_of(display) == ["phase two (replace-one)"]
    assert display.ax_.get_xlabel() == "steps"


@pytest.mark.parametrize(
    ("cls", "words"), [(Guess, "no bound"), (Diagnostic, "no differential privacy")]
)
@pytest.mark.parametrize("kind", ["epsilon-delta", "trade-off"])
def test_what_is_no_guarantee_says_so(cls, words, kind):
    accountant = cls().compose(GaussianEvent(1.0))
    display = PrivacyCurveDisplay.from_accountant(accountant, kind=kind)
    assert legend_of(display) == [f"{cls.__name__} (add-remove, {words})"]
    assert display.line_.get_linestyle() == "--"
    for again in (display.plot(name="renamed"), display.plot(label="renamed", ls=":")):
        assert legend_of(again) == [f"renamed (add-remove, {words})"]
    assert display.line_.get_linestyle() == ":"
    assert legend_of(display.plot(name="")) == [f"add-remove, {words}"]


def test_from_estimator_shows_the_reported_guarantee():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    y = (X[:, 0] > 0).astype(int)
    model = make_pipeline(
        BoundedScaler(-np.ones(4), np.ones(4)), DPSGDClassifier(1.0, 1e-5, batch_size=30)
    ).fit(X, y)
    display = PrivacyCurveDisplay.from_estimator(model, grid=[1e-8, 1e-5, 1e-4])
    assert display.upper[1] <= 1.0 < display.upper[0]
    assert legend_of(display) == ["DPSGDClassifier (replace-one)"]
    opera = OperaLogisticRegression(1.0, 1e-5, data_norm=2.0).fit(X, y)
    ax = display.ax_
    both = PrivacyCurveDisplay.from_estimator(opera, ax=ax, name="OPERA", color="k", grid=[1e-5])
    assert both.ax_ is ax and both.figure_ is ax.figure and both.line_.get_color() == "k"
    assert legend_of(both)[1] == "OPERA (replace-one)"
    trade_off = PrivacyCurveDisplay.from_estimator(opera, kind="trade-off")
    mu = 1.0 / 3.730631634816  # the analytic Gaussian mechanism at (1, 1e-5)
    exact = gaussian_trade_off(mu, trade_off.x)
    assert (trade_off.lower <= exact + 1e-9).all()
    assert (exact - trade_off.lower).max() < 1e-3


def test_refusals():
    with pytest.raises(TypeError, match="privacy_spent_"):
        PrivacyCurveDisplay.from_estimator(OperaLogisticRegression())
    with pytest.raises(ValueError, match="from_steps"):
        PrivacyCurveDisplay.from_accountant(GDPAccountant(), kind="epsilon-steps")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    found = builtins.__import__

    def missing(name, *arguments, **keywords):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return found(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", missing)
    accountant = GDPAccountant().compose(GaussianEvent(1.0))
    display = PrivacyCurveDisplay(x=[0.1], lower=None, upper=[1.0])
    for call in (
        display.plot,
        lambda: PrivacyCurveDisplay.from_accountant(accountant),
        lambda: PrivacyCurveDisplay.from_steps(accountant, GaussianEvent(1.0), [1], delta=0.1),
        lambda: PrivacyCurveDisplay.from_estimator(OperaLogisticRegression()),
    ):
        with pytest.raises(ImportError, match=r"skdp\[plot\]"):
            call()


@pytest.mark.parametrize("steps", [100, [1.5], ["1"]])
def test_numbers_of_steps_are_never_rounded(steps):
    with pytest.raises(ValueError, match="steps must be a sequence of whole numbers"):
        PrivacyCurveDisplay.from_steps(PLDAccountant(), GaussianEvent(4.0), steps, delta=1e-5)
