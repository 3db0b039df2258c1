"""Warnings of what is learned from rows beside private fits, which these do not pay for.

The verdicts are those of the statement. What is looked at are classes and parameters, never rows.
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
    "what it returns comes from predictions for private rows without noise, and each of its fits "
    "is charged by itself",
    "PrivateEvaluation of skdp.metrics, or a private search",
)


def warn_of_leaks(model: Any) -> None:
    """Warn if a model, fitted or not, has parts that are private and parts that leak."""
    findings = examine(model, priced=False)
    if any(finding.kind == "private" for finding in findings):
        _warn_of(findings)


def warn_of_callers(called: Iterable[Any]) -> None:
    """Warn of what pipelines, searches and ensembles around a private fit take from rows."""
    _warn_of([finding for each in called for finding in _examine_caller(each)])


def warn_of_ids(called: Any) -> None:
    """Warn of ids that a pipeline or search has, of which a private fit in it is told nothing."""
    name = f"{called}()" if isinstance(called, str) else type(called).__name__
    warn_once(
        f"{name}: it has ids, and a private fit in it is not told them: it takes each row for a "
        "record, and protects one row of a person alone. Instead: fit schema.pipeline(estimator), "
        "or a search of skdp.model_selection; or give the ids to each private step, by "
        "step__groups= or metadata routing."
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
                f"{what}: {finding.reason}. The private fit is charged, and its guarantee does not "
                f"cover this. Instead: {finding.remedy}."
            )


def warn_of_score(model: Any, X: Any) -> None:
    """Warn of a figure of the very rows that a budget has paid to learn from."""
    given = [(model, X), *(each[:2] for each in callers_of(model) if each.method == "score")]
    if any(was_fitted_on(*pair, charged=True) for pair in given):
        warn_once(
            f"{type(model).__name__}.score is given the rows of a fit that has charged a budget: "
            "the figure has no noise, nobody has paid for it, and it flatters the model. Keep it "
            "to yourself, or take PrivateEvaluation of skdp.metrics, or "
            "PrivateRegressionEvaluation, on other rows."
        )


class WarnsOfScores:
    """Mixin of predictors, before that of scikit-learn: exact figures of private rows leak."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or the coefficient of determination of a regressor.

        It has no noise, and no budget pays for it: of private rows, do not publish it. Of rows
        whose fit has charged a budget it warns, if it is given the same table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True labels or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts.

        Returns
        -------
        score : float
            The figure.
        """
        warn_of_score(self, X)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]
