"""Attacks that distinguish the training rows of a model from others.

Intervals are valid for rows drawn with or without replacement (``docs/proofs/membership.md``,
Theorem 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.numerics.trade_off import trade_off_lower
from skdp.accounting.records import JsonRecord, html_table
from skdp.audit.bounds import Array, rate_interval, rate_upper
from skdp.audit.runs import uncharged
from skdp.base.parameters import Attack, check_choice, check_integer, check_real, plain_arguments
from skdp.base.pipelines import walk
from skdp.base.scikit_learn import responds
from skdp.reporting.leaks import warn_of_leaks
from skdp.reporting.profile import Profile, profile_of
from skdp.running import shown

Interval = tuple[float, float]


def level(failure: float) -> float:
    """Return the level at which a binomial bound has `failure` also without replacement."""
    return -math.expm1(-failure)


def advantage(
    members: Array, others: Array, failure: float, rng: RandomState
) -> tuple[float, Interval]:
    """Return true minus false positives on half the rows, at the best threshold of the others."""
    tables = [np.array_split(rng.permutation(scores), 2) for scores in (members, others)]
    candidates = np.unique(np.concatenate([known for known, _ in tables]))
    true, false = (
        1.0 - np.searchsorted(np.sort(known), candidates, side="right") / known.size
        for known, _ in tables
    )
    threshold = candidates[np.argmax(true - false)]
    counts = [(int((tested > threshold).sum()), tested.size) for _, tested in tables]
    hits, alarms = (count / size for count, size in counts)
    hit, alarm = (rate_interval(*count, 2.0 * level(0.25 * failure)) for count in counts)
    return hits - alarms, (hit[0] - alarm[1], hit[1] - alarm[0])


def tpr_at(fpr: float, members: Array, others: Array, failure: float) -> tuple[float, Interval]:
    """Return the true-positive rate at a false-positive rate, and an interval for it."""
    share, size = level(0.25 * failure), others.size
    ranked, above = np.sort(others)[::-1], np.arange(size)
    rank = int(fpr * (size + 1))  # a further row is above the threshold as often as `fpr`, at most
    estimate = float((members > ranked[rank - 1]).mean()) if rank else 0.0
    lower, upper = 0.0, 1.0
    # Thresholds with so few of the others above them have a rate of at most `fpr`, surely;
    proved = int((rate_upper(above, size, share) <= fpr).sum())
    if proved:
        missed = int((members <= ranked[proved - 1]).sum())
        lower = 1.0 - float(rate_upper(missed, members.size, share))
    # and with so many at them or above, a larger one.
    exceeded = 1.0 - rate_upper(size - above - 1, size, share) > fpr
    if exceeded.any():
        reached = int((members >= ranked[np.argmax(exceeded)]).sum())
        upper = float(rate_upper(reached, members.size, share))
    return estimate, (max(lower, 0.0), upper)


@dataclass(frozen=True, eq=False, repr=False)
class MembershipResult(JsonRecord):
    """Success of a membership attack on a model, with the bounds that its claim implies.

    Metrics are about this model. With probability `confidence` over the choice of the tested rows,
    each interval covers the rate among all rows from which they were chosen. Bounds are on means
    over trainings: **one model may exceed them**, and this disproves nothing.

    Parameters
    ----------
    estimator : str
        Name of the model's class.
    attack : {"loss", "likelihood-ratio"}
        Attack.
    n_members, n_nonmembers : int
        Numbers of tested rows.
    confidence : float
        Minimum coverage probability of each interval.
    fpr, tpr : ndarray of shape (n_thresholds,)
        Receiver operating characteristic of all tested rows.
    auc : float
        Area under the curve.
    advantage : float
        True minus false positive rate on a random half of the rows, at the threshold that is best
        on the other half.
    advantage_interval : (float, float)
        Interval of the advantage, for rows that were not used to choose the threshold.
    tpr_at_fpr, tpr_intervals : dict
        True positive rates at the requested false positive rates, and their intervals, which
        include the uncertainty of the thresholds.
    claim : Profile or None
        Points of the claimed privacy curve; None without a claim for the complete model.

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
        """Return the largest mean true positive rate that the claim allows.

        Parameters
        ----------
        fpr : float or array-like
            Mean false positive rates, in [0, 1].

        Returns
        -------
        ndarray or None
            Bound for each rate; None without a claim.
        """
        if self.claim is None:
            return None
        # A member is replaced by another row, or removed and another row added.
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
        """Return each metric in words."""
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
            ("bounds", "none: there is no claim" if self.claim is None else "of means"),
        ]
        return html_table(f"Membership inference: {self.estimator}", rows)


def _in_words(found: float, bound: Any, interval: Interval | None = None) -> str:
    words = f"{found:.4g}"
    if interval is not None:
        words += f" ({interval[0]:.3g} to {interval[1]:.3g})"
    return words if bound is None else f"{words}, claim allows {bound:.4g} on average"


_LEAST_PROBABILITY = 1e-12  # trees say zero


@plain_arguments
def membership_inference(
    estimator: Any,
    X_members: Any,
    y_members: Any,
    X_nonmembers: Any,
    y_nonmembers: Any,
    *,
    attack: Attack = "loss",
    n_shadow_models: int = 16,
    fpr: Sequence[float] = (0.001, 0.01),
    confidence: float = 0.95,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> MembershipResult:
    """Attack a fitted classifier by membership inference, and bound the attack's success.

    The attacker sees rows with labels and guesses that those with the surest labels are training
    rows. For a private model, the result also contains the bounds that its claimed privacy curve
    implies for every such attack, on average over trainings.

    **The result is not private**: it and its shadow models use the rows without noise, and no
    budget is charged or covers it. Publish it only for public rows.

    Parameters
    ----------
    estimator : classifier or pipeline
        Fitted model, private or not, with `decision_function` or `predict_proba`; not changed.
    X_members : array-like, sparse matrix or data frame of shape (n_members, n_features)
        Training rows of the model, all or a random choice; at least 10.
    y_members : array-like of shape (n_members,)
        Their labels.
    X_nonmembers : array-like, sparse matrix or data frame of shape (n_nonmembers, n_features)
        Other rows, from the same random split; at least 40. Proofs at 0.1 % false positives need
        some 4,400.
    y_nonmembers : array-like of shape (n_nonmembers,)
        Labels of the nonmembers.
    attack : {"loss", "likelihood-ratio"}, default="loss"
        Attack. ``"loss"`` (Yeom et al.) uses the log odds of the label. ``"likelihood-ratio"``
        (Carlini et al., offline) compares them with those of models without the row: clones fitted
        to random halves of one half of the nonmembers. The other half is tested.
    n_shadow_models : int, default=16
        Number of these clones, at least 1.
    fpr : sequence of float, default=(0.001, 0.01)
        False positive rates, in (0, 1), at which to report the true positive rate.
    confidence : float, default=0.95
        Coverage probability of each interval, in (0, 1).
    n_jobs : int or None, default=None
        Number of clones to fit in parallel, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Seed for repeatable halves and clones.

    Returns
    -------
    MembershipResult
        The curve, metrics with intervals, and their bounds.

    Notes
    -----
    There are bounds if :func:`skdp.reporting.privacy_statement` finds no leak. They are valid if
    members and others are exchangeable. Members are exchanged for others: a claim under add-remove
    counts twice. Proofs: :ref:`Theorems 1 and 2 of membership <membership-1>`, and for the
    intervals :ref:`Theorems 3 and 4 <membership-3>`.

    References
    ----------
    Yeom et al. (2018), "Privacy Risk in Machine Learning". Carlini et al. (2022), "Membership
    Inference Attacks From First Principles".

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.audit import membership_inference
    >>> X, y = make_classification(400, flip_y=0.3, random_state=0)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200])
    >>> result = membership_inference(tree, X[:200], y[:200], X[200:], y[200:], random_state=0)
    >>> result.auc > 0.6, result.advantage_interval[0] > 0.0, result.auc_bound
    (True, True, None)
    """
    _check(estimator, attack, n_shadow_models, fpr, confidence)
    y_members, y_nonmembers = column_or_1d(y_members), column_or_1d(y_nonmembers)
    if not np.isin(np.concatenate([y_members, y_nonmembers]), estimator.classes_).any():
        raise ValueError("y contains no label of the classifier's classes_.")
    check_consistent_length(X_members, y_members)
    check_consistent_length(X_nonmembers, y_nonmembers)
    if len(y_members) < 10 or len(y_nonmembers) < 40:
        raise ValueError("At least 10 members and 40 nonmembers are required.")
    rng = check_random_state(random_state)
    models: list[Any] = []
    if attack == "likelihood-ratio":
        pool, (X_nonmembers, y_nonmembers) = _halves(X_nonmembers, y_nonmembers, rng)
        models = _fit_shadows(estimator, pool, n_shadow_models, n_jobs, rng)
    members, others = (
        _confidence(estimator, X, y)
        - (np.mean([_confidence(model, X, y) for model in models], axis=0) if models else 0.0)
        for X, y in ((X_members, y_members), (X_nonmembers, y_nonmembers))
    )
    failure = 1.0 - confidence
    truth = np.repeat([1, 0], [members.size, others.size])
    scores = np.concatenate([members, others])
    alarms, hits, _ = roc_curve(truth, scores)
    gain, interval = advantage(members, others, failure, rng)
    low = {rate: tpr_at(rate, members, others, failure) for rate in fpr}
    return MembershipResult(
        estimator=type(estimator).__name__,
        attack=attack,
        n_members=members.size,
        n_nonmembers=others.size,
        confidence=confidence,
        fpr=alarms,
        tpr=hits,
        auc=float(roc_auc_score(truth, scores)),
        advantage=gain,
        advantage_interval=interval,
        tpr_at_fpr={rate: found[0] for rate, found in low.items()},
        tpr_intervals={rate: found[1] for rate, found in low.items()},
        claim=profile_of(estimator),
    )


def _check(estimator: Any, attack: str, shadows: int, fpr: Any, confidence: float) -> None:
    if not is_classifier(estimator):
        raise TypeError(f"estimator must be a classifier, got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    warn_of_leaks(estimator)
    check_choice("attack", attack, ("loss", "likelihood-ratio"))
    check_integer("n_shadow_models", shadows, at_least=1)
    check_real("confidence", confidence, above=0.0, below=1.0)
    for rate in fpr:
        check_real("fpr", rate, above=0.0, below=1.0)
    searches = (hasattr(step.estimator, "cv_results_") for step in walk(estimator))
    if attack == "likelihood-ratio" and any(searches):
        raise TypeError(
            "Searches are not supported as shadow models: pass best_estimator_. The bounds then "
            "follow from its claim and exclude the cost of the search."
        )


def _halves(X: Any, y: Any, rng: RandomState) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    X_one, X_other, y_one, y_other = train_test_split(X, y, train_size=0.5, random_state=rng)
    return (X_one, y_one), (X_other, y_other)


def _fit_shadows(
    estimator: Any, pool: tuple[Any, Any], count: int, n_jobs: int | None, rng: RandomState
) -> list[Any]:
    """Return clones fitted to random halves of a pool, with separate seeds."""
    tasks = []
    for _ in range(count):
        model = uncharged(estimator)
        seeds = [key for key in model.get_params() if key.split("__")[-1] == "random_state"]
        model.set_params(**{key: int(rng.randint(2**31)) for key in seeds})
        tasks.append(delayed(model.fit)(*_halves(*pool, rng)[0]))
    with shown("membership_inference", count) as done:

        class Told(Parallel):
            def print_progress(self) -> None:
                done(self.n_completed_tasks)
                super().print_progress()

        return Told(n_jobs=n_jobs)(tasks)


def _confidence(model: Any, X: Any, y: Any) -> Array:
    """Return the log odds that a model gives to each row's label."""
    if responds(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        scores = np.column_stack([0.0 * scores, scores]) if scores.ndim == 1 else scores
    else:
        scores = np.log(np.maximum(model.predict_proba(X), _LEAST_PROBABILITY))
    own = np.asarray(y)[:, None] == model.classes_
    if own.shape != scores.shape:
        raise ValueError(
            "The decision function must have one column per class, or one for two classes."
        )
    # A class that a shadow model has not seen has probability 0.
    label = np.where(own.any(axis=1), scores.max(axis=1, where=own, initial=-np.inf), 0.0)
    rest = np.asarray(logsumexp(np.where(own, -np.inf, scores), axis=1))
    return np.where(own.any(axis=1), label - rest, np.log(_LEAST_PROBABILITY))
