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
from skdp.running import warn_once

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
