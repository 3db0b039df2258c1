"""What is drawn is what was found, and what is claimed."""

import builtins

import numpy as np
import pytest
from scipy.stats import norm

from skdp.audit import AuditDisplay, AuditResult, MembershipDisplay, MembershipResult
from skdp.reporting.profile import Profile

matplotlib = pytest.importorskip("matplotlib", reason="needs the plot extra")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

MU = 1.5
EPSILONS = np.linspace(0.0, 8.0, 101)
DELTAS = norm.cdf(MU / 2 - EPSILONS / MU) - np.exp(EPSILONS) * norm.cdf(-MU / 2 - EPSILONS / MU)
AUDIT = AuditResult(
    **dict(mu_lower=1.2, epsilon_lower=4.0, delta=1e-5, claimed=8.0, adjacency="replace-one"),
    **dict(mu_claimed=MU, basis="gaussian-guarantee", violated=False, confidence=0.999),
    **dict(false_positive_rate=0.3, false_negative_rate=float(norm.cdf(norm.isf(0.3) - 1.2))),
    **dict(profile=tuple(zip(EPSILONS, DELTAS, strict=True)), estimator="OperaSVC"),
    **dict(release="model", method="gaussian-dp", n_trials=100),
)


def membership(claim=None):
    rates = np.linspace(0, 1, 11)
    return MembershipResult(
        **dict(estimator="Tree", attack="loss", n_members=100, n_nonmembers=1000),
        **dict(confidence=0.95, fpr=rates, tpr=np.sqrt(rates), auc=0.67, advantage=0.25),
        **dict(advantage_interval=(0.1, 0.4), tpr_at_fpr={0.001: 0.03, 0.01: 0.1}),
        **dict(tpr_intervals={0.001: (0.0, 0.2), 0.01: (0.05, 0.3)}, claim=claim),
    )


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def legend_of(display):
    return " / ".join(text.get_text() for text in display.ax_.get_legend().get_texts())


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_an_attack_is_drawn_with_its_bound(scale):
    result = membership(Profile(EPSILONS, DELTAS, "replace-one"))
    display = MembershipDisplay.from_result(result, scale=scale, color="red")
    assert np.array_equal(display.line_.get_xydata().T, [result.fpr, result.tpr])
    assert display.line_.get_color() == "red"
    rates, bound = display.bound_line_.get_xydata().T
    exact = norm.cdf(MU - norm.isf(rates))
    assert (bound >= exact - 1e-12).all() and np.allclose(bound, exact, atol=2e-3)
    assert rates.min() < 1e-5 and display.ax_.get_xscale() == display.ax_.get_yscale() == scale
    assert "loss attack, AUC 0.67" in legend_of(display) and "on average" in legend_of(display)
    display.figure_.canvas.draw()


def test_an_attack_without_a_claim_has_no_bound():
    _, ax = plt.subplots()
    display = MembershipDisplay(membership()).plot(ax)
    assert display.bound_line_ is None and display.ax_ is ax and display.figure_ is ax.figure
    assert "claim" not in legend_of(display)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_an_audit_is_drawn_with_its_claim(scale):
    display = AuditDisplay.from_result(AUDIT, scale=scale)
    rates, claimed = display.line_.get_xydata().T
    assert (claimed <= norm.cdf(norm.isf(rates) - MU) + 1e-12).all()
    # The curve of mu_lower goes through the corner.
    rates, shown = display.mu_line_.get_xydata().T
    assert np.interp(0.3, rates, shown) == pytest.approx(AUDIT.false_negative_rate, abs=1e-3)
    corners = display.ax_.collections[0].get_paths()[0].get_extents()
    assert (corners.x1, corners.y1) == (0.3, AUDIT.false_negative_rate)
    assert "epsilon 8 at delta 1e-05" in legend_of(display)


def test_unknown_scales_and_missing_matplotlib_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="scale must be"):
        AuditDisplay(AUDIT).plot(scale="logit")
    imported = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="skdp\\[plot\\]"):
        AuditDisplay(AUDIT).plot()
