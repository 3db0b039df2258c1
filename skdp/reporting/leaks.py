"""Warnings about steps around private fits that learn from rows without a charge.

The verdicts are those of the statement. They depend on classes and parameters, never on rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skdp.reporting._examine import (
    SEARCH_LEAKS,
    STRATIFIED,
    Finding,
    examine,
    is_stratified,
    judge_rows_of_fits,
)
from skdp.running import callers_of, warn_once
from skdp.tables.inputs import was_fitted_on

_SCORES = (
    "it returns exact scores or predictions of private rows, and each of its fits is charged "
    "separately",
    "PrivateEvaluation of skdp.metrics, or a private search",
)


def warn_of_leaks(model: Any) -> None:
    """Warn if a model, fitted or not, has parts that are private and parts that leak."""
    findings = examine(model, priced=False)
    if any(finding.kind == "private" for finding in findings):
        _warn_of(findings)


def warn_of_callers(called: Iterable[Any]) -> None:
    """Warn if pipelines, searches or ensembles around a private fit learn from rows."""
    _warn_of([finding for each in called for finding in _examine_caller(each)])


def warn_of_ids(called: Any) -> None:
    """Warn that a pipeline or search does not pass its ids to a private fit."""
    name = f"{called}()" if isinstance(called, str) else type(called).__name__
    warn_once(
        f"{name}: it has ids but does not pass them to a private fit, which then protects only "
        "one row of a patient. Instead: fit schema.pipeline(estimator), or a search of "
        "skdp.model_selection; or pass the ids to each private step, by step__groups= or metadata "
        "routing."
    )


def _examine_caller(called: Any) -> list[Finding]:
    name = f"{called}()" if isinstance(called, str) else type(called).__name__
    if isinstance(called, str):
        return [Finding(name, "", "leaking", *_SCORES)]
    names = called.get_params(deep=False).keys()
    if {"estimator", "cv", "refit", "scoring"} <= names and judge_rows_of_fits(called) is None:
        leaks = [SEARCH_LEAKS[0], *([STRATIFIED] if is_stratified(called) else [])]
        return [Finding(f"{name}: {part}", name, "leaking", why, so) for part, why, so in leaks]
    return examine(called, name, priced=False)


def _warn_of(findings: list[Finding]) -> None:
    """Warn of each finding that leaks, with its remedy."""
    for finding in findings:
        if finding.kind == "leaking":
            named = finding.estimator in finding.name
            what = finding.name if named else f"{finding.name} ({finding.estimator})"
            warn_once(
                f"{what}: {finding.reason}. The private fit is charged, but its guarantee does not "
                f"cover this. Instead: {finding.remedy}."
            )


def warn_of_score(model: Any, X: Any) -> None:
    """Warn of a score on the rows of a fit that has charged a budget."""
    given = [(model, X), *(each[:2] for each in callers_of(model) if each.method == "score")]
    if any(was_fitted_on(*pair, charged=True) for pair in given):
        warn_once(
            f"{type(model).__name__}.score is given the rows of a fit that has charged a budget: "
            "the score is exact, no budget covers it, and it flatters the model. Do not publish "
            "it; use PrivateEvaluation or PrivateRegressionEvaluation of skdp.metrics on other "
            "rows."
        )


class WarnsOfScores:
    """Mixin that warns of exact scores on private rows; list it before scikit-learn's mixin."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or the coefficient of determination of a regressor.

        The score is exact and no budget covers it: do not publish it for private rows. It warns
        if the table is the one of a fit that has charged a budget.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            True labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row in the score.

        Returns
        -------
        score : float
            Accuracy or coefficient of determination.
        """
        warn_of_score(self, X)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]
