"""What an attack on membership found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting.numerics.trade_off import trade_off_lower
from skdp.audit.bounds import Array
from skdp.reporting.profile import Profile
from skdp.reporting.records import JsonRecord, html_table

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False, repr=False)
class MembershipResult(JsonRecord):
    """How well an attack tells a model's training rows from others, beside what its claim allows.

    Figures are about this model: each interval covers, with probability `confidence` over the
    choice of the tested rows, the rate among all rows that they were chosen from. Bounds are on
    means over trainings: **one model may exceed them**, and that disproves nothing.

    Parameters
    ----------
    estimator : str
        Name of the model's class.
    attack : {"loss", "likelihood-ratio"}
        The attack.
    n_members, n_nonmembers : int
        Numbers of rows that were tested.
    confidence : float
        Probability, at least, with which each interval holds.
    fpr, tpr : ndarray of shape (n_thresholds,)
        The receiver operating characteristic of all tested rows.
    auc : float
        The area below it.
    advantage : float
        True minus false positives, on a random half of the rows, of the threshold that is best on
        the other half.
    advantage_interval : (float, float)
        Its interval, for rows that had no part in choosing the threshold.
    tpr_at_fpr, tpr_intervals : dict
        True-positive rates at the false-positive rates that were asked for, and their intervals,
        which pay for not knowing the thresholds.
    claim : Profile or None
        Points of the claimed privacy curve; None if nothing is claimed for the model as a whole.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.audit import membership_inference
    >>> X, y = make_classification(400, flip_y=0.3, random_state=0)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200])
    >>> result = membership_inference(tree, X[:200], y[:200], X[200:], y[200:], random_state=0)
    >>> result.estimator, result.n_members, result.claim
    ('DecisionTreeClassifier', 200, None)
    """

    estimator: str
    attack: str
    n_members: int
    n_nonmembers: int
    confidence: float
    fpr: Array
    tpr: Array
    auc: float
    advantage: float
    advantage_interval: Interval
    tpr_at_fpr: dict[float, float]
    tpr_intervals: dict[float, Interval]
    claim: Profile | None

    def tpr_bound(self, fpr: ArrayLike) -> Array | None:
        """Return the largest mean true-positive rate that the claim allows.

        Parameters
        ----------
        fpr : float or array-like
            Mean false-positive rates, in [0, 1].

        Returns
        -------
        ndarray or None
            A bound for each of them; None if nothing is claimed.
        """
        if self.claim is None:
            return None
        # A member is replaced by another row, or removed and another one added.
        for _ in range(2 if self.claim.adjacency == "add-remove" else 1):
            misses = trade_off_lower(self.claim.epsilons, self.claim.deltas, np.ravel(fpr))
            fpr = np.reshape(1.0 - misses, np.shape(fpr))
        return np.asarray(fpr)

    @property
    def advantage_bound(self) -> float | None:
        """Largest mean advantage that the claim allows."""
        if self.claim is None:
            return None
        epsilons, deltas, adjacency = self.claim
        if adjacency == "add-remove":
            return 1.0 - 2.0 * float(trade_off_lower(epsilons, deltas, np.array([0.5]))[0])
        return float(np.min(1.0 - 2.0 * (1.0 - deltas) / (1.0 + np.exp(epsilons))))

    @property
    def auc_bound(self) -> float | None:
        """Largest mean area that the claim allows."""
        return None if self.advantage_bound is None else 0.5 + 0.5 * self.advantage_bound

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain, JSON-ready values."""
        bounds = {rate: self.tpr_bound(rate) for rate in self.tpr_at_fpr}
        return asdict(self) | {
            "fpr": self.fpr.tolist(),
            "tpr": self.tpr.tolist(),
            "claim": self.claim and [part.tolist() for part in self.claim[:2]],
            "adjacency": self.claim and self.claim.adjacency,
            "tpr_bounds": {rate: bound and float(bound) for rate, bound in bounds.items()},
            "advantage_bound": self.advantage_bound,
            "auc_bound": self.auc_bound,
        }

    def _figures(self) -> list[tuple[str, str]]:
        """Return each figure in words."""
        gain = _in_words(self.advantage, self.advantage_bound, self.advantage_interval)
        figures = [("AUC", _in_words(self.auc, self.auc_bound)), ("advantage", gain)]
        for rate, found in self.tpr_at_fpr.items():
            words = _in_words(found, self.tpr_bound(rate), self.tpr_intervals[rate])
            figures.append((f"TPR at FPR {rate:g}", words))
        return figures

    def __repr__(self) -> str:
        figures = "; ".join(f"{name} {words}" for name, words in self._figures())
        return f"MembershipResult({self.estimator}, {self.attack} attack: {figures})"

    def _repr_html_(self) -> str:
        rows = [
            ("attack", self.attack),
            ("rows", f"{self.n_members} members, {self.n_nonmembers} others"),
            *self._figures(),
            ("confidence", f"{self.confidence:g} for each interval"),
            ("bounds", "none: nothing is claimed" if self.claim is None else "of means"),
        ]
        return html_table(f"Membership inference: {self.estimator}", rows)


def _in_words(found: float, bound: Any, interval: Interval | None = None) -> str:
    words = f"{found:.4g}"
    if interval is not None:
        words += f" ({interval[0]:.3g} to {interval[1]:.3g})"
    return words if bound is None else f"{words}, claim allows {bound:.4g} on average"
