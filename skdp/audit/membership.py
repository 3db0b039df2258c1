"""Attacks that tell the rows a model was fitted to from others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.special import logsumexp
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from skdp.audit.bounds import Array
from skdp.audit.membership_rates import advantage, tpr_at
from skdp.audit.membership_result import MembershipResult
from skdp.audit.runs import uncharged
from skdp.choices import Attack
from skdp.parameters import check_choice, check_integer, check_real, plain_arguments
from skdp.pipelines import walk
from skdp.progress import shown
from skdp.reporting.profile import profile_of
from skdp.sklearn_bases import responds

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
    """Attack the membership of a fitted classifier's training rows, and bound what is possible.

    The attacker is shown rows with their labels, and takes those of whose labels the model is
    surest for those that it was fitted to. Of a private model the result also has the bounds that
    its claimed privacy curve puts on every such attack, on average over trainings.

    **The result is not private**: it is computed from the rows without noise, and no budget covers
    it. None is charged, also not by shadow models. Publish it for public rows only.

    Parameters
    ----------
    estimator : classifier or pipeline
        Fitted, private or not, with `decision_function` or `predict_proba`; not changed.
    X_members : array-like, sparse matrix or data frame of shape (n_members, n_features)
        Rows that it was fitted to, all or a random choice of them; at least 10.
    y_members : array-like of shape (n_members,)
        Their labels.
    X_nonmembers : array-like, sparse matrix or data frame of shape (n_nonmembers, n_features)
        Rows that it was not fitted to, as a random split leaves them; at least 40. To prove
        anything at 0.1 % false positives takes some 4,400.
    y_nonmembers : array-like of shape (n_nonmembers,)
        Their labels.
    attack : {"loss", "likelihood-ratio"}, default="loss"
        ``"loss"`` (Yeom et al.) goes by the log-odds of the label; ``"likelihood-ratio"`` (Carlini
        et al., offline) by how far they exceed those of models without the row. These are clones
        fitted to random halves of one half of the nonmembers; the other half is tested.
    n_shadow_models : int, default=16
        Number of such clones, at least 1.
    fpr : sequence of float, default=(0.001, 0.01)
        False-positive rates, in (0, 1), at which to report the true-positive rate.
    confidence : float, default=0.95
        Probability, in (0, 1), with which each interval holds.
    n_jobs : int or None, default=None
        Number of clones to fit at the same time, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Makes halves and clones repeatable.

    Returns
    -------
    MembershipResult
        The curve, its figures with intervals, and their bounds.

    Notes
    -----
    Bounds are given where :func:`skdp.reporting.privacy_statement` finds no leak, and hold if
    members and others are exchangeable: members are exchanged for others, so that a claim under
    add-remove counts twice. Proofs: :ref:`Theorems 1 and 2 of membership
    <membership-1>`, and of the intervals :ref:`Theorems 3 and 4 <membership-3>`.

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
        raise ValueError("None of the labels is one of the classifier's classes_.")
    check_consistent_length(X_members, y_members)
    check_consistent_length(X_nonmembers, y_nonmembers)
    if len(y_members) < 10 or len(y_nonmembers) < 40:
        raise ValueError("Give at least 10 members and 40 nonmembers.")
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
        raise TypeError(f"{type(estimator).__name__} is no classifier.")
    check_is_fitted(estimator)
    check_choice("attack", attack, ("loss", "likelihood-ratio"))
    check_integer("n_shadow_models", shadows, at_least=1)
    check_real("confidence", confidence, above=0.0, below=1.0)
    for rate in fpr:
        check_real("fpr", rate, above=0.0, below=1.0)
    searches = (hasattr(step.estimator, "cv_results_") for step in walk(estimator))
    if attack == "likelihood-ratio" and any(searches):
        raise TypeError(
            "Shadow models are no searches: give best_estimator_. The bounds from its own claim "
            "leave out what choosing it has cost."
        )


def _halves(X: Any, y: Any, rng: RandomState) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    X_one, X_other, y_one, y_other = train_test_split(X, y, train_size=0.5, random_state=rng)
    return (X_one, y_one), (X_other, y_other)


def _fit_shadows(
    estimator: Any, pool: tuple[Any, Any], count: int, n_jobs: int | None, rng: RandomState
) -> list[Any]:
    """Return clones fitted to random halves of a pool, with seeds of their own."""
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
    """Return the log-odds that a model gives to each row's label."""
    if responds(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        scores = np.column_stack([0.0 * scores, scores]) if scores.ndim == 1 else scores
    else:
        scores = np.log(np.maximum(model.predict_proba(X), _LEAST_PROBABILITY))
    own = np.asarray(y)[:, None] == model.classes_
    if own.shape != scores.shape:
        raise ValueError("The decision function must have one column a class, or one for two.")
    # A class that a shadow model has not seen has no probability.
    label = np.where(own.any(axis=1), scores.max(axis=1, where=own, initial=-np.inf), 0.0)
    rest = np.asarray(logsumexp(np.where(own, -np.inf, scores), axis=1))
    return np.where(own.any(axis=1), label - rest, np.log(_LEAST_PROBABILITY))
