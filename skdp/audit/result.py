"""Results of audits, and their displays."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri

from skdp.accounting.numerics.trade_off import trade_off_lower
from skdp.accounting.records import JsonRecord, html_table
from skdp.audit.membership import MembershipResult
from skdp.reporting.drawing import ResultDisplay


@dataclass(frozen=True, repr=False)
class AuditResult(JsonRecord):
    """Lower bounds on the privacy loss shown by an attack, and the claim.

    All bounds follow from one test between two neighbouring tables, with upper bounds on its two
    error rates, or from the guesses of `audit_in_one_run`. They are jointly valid with the stated
    confidence. A lower bound above the claim disproves it. One below proves nothing: another pair
    of tables or a better attack might show more.

    Parameters
    ----------
    mu_lower : float
        The fit is not mu-GDP (Dong, Roth & Su 2022) for any smaller mu, whatever its noise.
    epsilon_lower : float
        Smallest epsilon at `delta` that is not disproved, in the sense of `basis`.
    delta : float
        Claimed delta.
    claimed : float
        Claimed epsilon at `delta`.
    adjacency : {"replace-one", "add-remove"}
        Adjacency relation.
    mu_claimed : float
        The mu of the Gaussian profile through (claimed, delta); for a Gaussian guarantee, its mu.
    basis : {"gaussian-guarantee", "tested-event"}
        Meaning of `epsilon_lower`. ``"tested-event"``: the fit is not (epsilon, `delta`)-private
        for any smaller epsilon, whatever its noise. ``"gaussian-guarantee"``, for fits that claim
        mu-GDP: no such guarantee has a smaller epsilon at `delta`.
    violated : bool
        Whether the claim is disproved: `epsilon_lower` is above `claimed`, or the errors are
        smaller than the claimed privacy curve allows at another delta.
    confidence : float
        Minimum probability with which all bounds are valid.
    false_positive_rate, false_negative_rate : float or None
        Upper bounds on the error rates of the test. With ``method="binomial"`` both are a bound on
        their mean; with ``"f-dp"`` they are None.
    profile : tuple of (float, float)
        Points (epsilon, delta) of the claimed privacy curve that were compared with them.
    estimator : str
        Name of the audited class.
    release : {"model", "all"}
        Values that the attacker saw.
    method : {"gaussian-dp", "clopper-pearson", "f-dp", "binomial", "gaussian"}
        Bound for which the test was chosen, or method of an audit in one run.
    n_trials : int
        Number of runs on each table; the second half tests.
    n_canaries : int or None
        Number of canaries of an audit in one run.
    n_guesses, n_right : int or None
        Numbers of guesses about canaries, and of correct guesses.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.audit import audit_epsilon
    >>> X, y = np.zeros((10, 1)), np.arange(10) % 2  # made-up rows
    >>> classifier = OperaLogisticRegression(epsilon=8.0, delta=1e-5, data_norm=1.0, alpha=10.0)
    >>> result = audit_epsilon(classifier, X, y, n_trials=50, random_state=0)
    >>> result.violated, round(result.claimed, 6), result.n_trials
    (False, 8.0, 50)
    """

    mu_lower: float
    epsilon_lower: float
    delta: float
    claimed: float
    adjacency: str
    mu_claimed: float
    basis: str
    violated: bool
    confidence: float
    false_positive_rate: float | None
    false_negative_rate: float | None
    profile: tuple[tuple[float, float], ...]
    estimator: str
    release: str
    method: str
    n_trials: int
    n_canaries: int | None = None
    n_guesses: int | None = None
    n_right: int | None = None

    @property
    def tightness(self) -> float:
        """Share of the claimed mu that the attack has shown.

        Above 1, a Gaussian claim is false. For other claims, `mu_claimed` belongs to a Gaussian
        profile through one of their points, and the share proves nothing.
        """
        return self.mu_lower / self.mu_claimed

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain, JSON-ready values."""
        return asdict(self) | {"tightness": self.tightness}

    def __repr__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not disproved"
        return (
            f"AuditResult({self.estimator}: claim {verdict}, epsilon_lower="
            f"{self.epsilon_lower:.4g} of {self.claimed:.4g} at delta={self.delta:.3g}, mu_lower="
            f"{self.mu_lower:.4g} of {self.mu_claimed:.4g}, confidence={self.confidence:g})"
        )

    def _repr_html_(self) -> str:
        record = self.to_dict()
        del record["profile"]
        rows = (
            (name.replace("_", " "), f"{value:.6g}" if isinstance(value, float) else str(value))
            for name, value in record.items()
        )
        return html_table(repr(self), rows)


_RATES = expit(np.linspace(-16.0, 16.0, 513))  # dense at both ends, also on logarithmic axes


class MembershipDisplay(ResultDisplay):
    """Receiver operating characteristic of a membership attack, with the bound of the claim.

    Parameters
    ----------
    result : MembershipResult
        Result to show. The bound is on the mean over trainings: a single model may exceed it.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the last plot.
    line_, bound_line_ : matplotlib Line2D
        Curves of the attack and of the bound (None without a claim).

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
            label = "bound of the claim, on average"
            bound = result.tpr_bound(_RATES)
            (self.bound_line_,) = ax.plot(_RATES, bound, color="black", label=label)
        ax.plot(_RATES, _RATES, color="grey", linestyle=":", label="guessing")


class AuditDisplay(ResultDisplay):
    """Errors of an audit's test, with the smallest that the claim allows.

    With the confidence of the audit, the error rates of its test are inside the rectangle; with
    ``method="binomial"``, their mean is below its corner. A corner below the claimed curve
    disproves the claim. Guesses with ``"f-dp"`` have no such rates.

    Parameters
    ----------
    result : AuditResult
        Result to show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the last plot.
    line_, mu_line_ : matplotlib Line2D
        Curves of the claimed trade-off and of the lower bound on mu.

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
