"""Pictures of what attacks have shown, beside what is claimed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri

from skdp.accounting.numerics.trade_off import trade_off_lower
from skdp.audit.membership_result import MembershipResult
from skdp.audit.result import AuditResult
from skdp.reporting.drawing import ResultDisplay

_RATES = expit(np.linspace(-16.0, 16.0, 513))  # dense at both ends, on logarithmic axes too


class MembershipDisplay(ResultDisplay):
    """Receiver operating characteristic of an attack on membership, and what the claim allows.

    Parameters
    ----------
    result : MembershipResult
        What is shown. The bound is on the mean over trainings: a single model may exceed it.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.
    line_, bound_line_ : matplotlib Line2D
        The attack, and the bound (None if nothing is claimed).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.audit import MembershipDisplay, membership_inference
    >>> X, y = make_classification(400, flip_y=0.3, random_state=0)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200])
    >>> result = membership_inference(tree, X[:200], y[:200], X[200:], y[200:], random_state=0)
    >>> display = MembershipDisplay.from_result(result, scale="log")
    >>> display.ax_.get_xscale(), display.bound_line_
    ('log', None)
    """

    result: MembershipResult
    _axes = ("false-positive rate", "true-positive rate")

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        result = self.result
        label = f"{result.attack} attack, AUC {result.auc:.2f}"
        (self.line_,) = ax.plot(result.fpr, result.tpr, **{"label": label} | style)
        found = np.array(list(result.tpr_at_fpr.values()))
        ends = np.array(list(result.tpr_intervals.values())).reshape(-1, 2).T
        ax.errorbar(
            *(list(result.tpr_at_fpr), found, np.abs(ends - found)),
            **{"fmt": "o", "color": self.line_.get_color(), "capsize": 3},
            label=f"intervals, confidence {result.confidence:g}",
        )
        self.bound_line_ = None
        if result.claim is not None:
            label = "most that the claim allows, on average"
            bound = result.tpr_bound(_RATES)
            (self.bound_line_,) = ax.plot(_RATES, bound, color="black", label=label)
        ax.plot(_RATES, _RATES, color="grey", linestyle=":", label="guessing")


class AuditDisplay(ResultDisplay):
    """Errors of an audit's test, beside the least that the claim allows.

    With the confidence of the audit, the rates of its test lie in the rectangle, or of
    ``method="binomial"`` their mean below its corner. A corner below the claimed curve disproves
    the claim. Guesses by ``"f-dp"`` have no such rates.

    Parameters
    ----------
    result : AuditResult
        What is shown.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.
    line_, mu_line_ : matplotlib Line2D
        The claimed trade-off curve, and that of the lower bound on mu.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.audit import AuditDisplay, audit_epsilon
    >>> X, y = np.zeros((10, 1)), np.arange(10) % 2  # made-up rows
    >>> classifier = OperaLogisticRegression(epsilon=8.0, delta=1e-5, data_norm=1.0, alpha=10.0)
    >>> result = audit_epsilon(classifier, X, y, n_trials=50, random_state=0)
    >>> display = AuditDisplay.from_result(result)
    >>> display.ax_.get_ylabel()
    'its miss rate'
    """

    result: AuditResult
    _axes = ("false-positive rate of a test", "its miss rate")

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        result = self.result
        claim = f"claim: epsilon {result.claimed:.3g} at delta {result.delta:.3g}"
        epsilons, deltas = np.array(result.profile).T
        allowed = trade_off_lower(epsilons, deltas, _RATES)
        (self.line_,) = ax.plot(_RATES, allowed, **{"color": "black", "label": claim} | style)
        shown = ndtr(ndtri(1.0 - _RATES) - result.mu_lower)
        label = f"mu, at least {result.mu_lower:.3g}"
        (self.mu_line_,) = ax.plot(_RATES, shown, linestyle="--", label=label)
        colour = self.mu_line_.get_color()
        alarms, misses = result.false_positive_rate, result.false_negative_rate
        if alarms is not None:
            ax.fill_between([0.0, alarms], misses, color=colour, alpha=0.25, lw=0)
            label = f"rates of the test, at most, confidence {result.confidence:g}"
            ax.plot(alarms, misses, "o", color=colour, label=label)
        ax.plot(_RATES, 1.0 - _RATES, color="grey", linestyle=":", label="guessing")
