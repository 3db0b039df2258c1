"""Walk a fitted object and judge what each part learned from the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp.accounting.privacy_spent import PrivacySpent, refuse_disproved
from skdp.base.scikit_learn import fitted_model, responds
from skdp.reporting.steps import REMEDIES, StepVerdict, assumed, classify_step, private_claim

_BY_ITSELF = "a private classifier by itself"

# Why the costs of the inner fits do not add up to a cost for one row.
_DIVIDES_ROWS = {
    "CalibratedClassifierCV": (
        "its curves are fitted to the rows without noise, on folds stratified by private labels",
        REMEDIES["CalibratedClassifierCV"],
    ),
    "OneVsOneClassifier": (
        "each inner fit uses the rows of two labels: their number is private, and a change of one "
        "label moves a row from some fits to others",
        _BY_ITSELF,
    ),
    "SelfTrainingClassifier": (
        "predictions label rows and select them for later fits: their number is private, and "
        "transduction_ and labeled_iter_ describe single rows",
        _BY_ITSELF + ", fitted on the rows with known labels",
    ),
    "StackingClassifier": (
        "its folds are stratified by private labels, and the final estimator learns from "
        "predictions of models fitted on other rows: one row changes the features of all rows",
        _BY_ITSELF,
    ),
    "TunedThresholdClassifierCV": (
        "its threshold is chosen by exact scores of rows, on folds stratified by private labels; "
        "best_score_ and cv_results_ are such scores",
        REMEDIES["TunedThresholdClassifierCV"],
    ),
}


def judge_rows_of_fits(fitted: Any) -> StepVerdict | None:
    """Judge a wrapper by the rows that it gives to its fits; None if fits use each row once."""
    name, package = type(fitted).__name__, type(fitted).__module__.partition(".")[0]
    if package == "imblearn" and name == "Pipeline":  # `examine` judges each of its steps
        return StepVerdict("data-independent", "it stores only its steps")
    if package != "sklearn":
        return None
    if name in ("BaggingClassifier", "BaggingRegressor") and fitted.bootstrap:
        times, counted = "several times", "or bootstrap=False"
        # Which rows are in a bag was drawn without looking at them.
        if getattr(fitted, "estimators_", ()):
            copies = max(int(np.bincount(bag).max()) for bag in fitted.estimators_samples_)
            times = f"up to {copies} times"
            counted = f"rows_per_unit={copies} counts the copies as rows of one unit"
        return StepVerdict(
            "leaking",
            f"bags are drawn with replacement: a row may appear {times} in a bag, and each fit "
            "treats its copies as different records",
            f"{_BY_ITSELF}; {counted}",
        )
    if name == "FixedThresholdClassifier":
        return StepVerdict("data-independent", "its threshold is a parameter")
    if name == "TransformedTargetRegressor":
        if not fitted.check_inverse:
            return StepVerdict("data-independent", "it stores only its two parts")
        return assumed("its inverse undoes its transformer on every row; otherwise fit would warn")
    return StepVerdict("leaking", *_DIVIDES_ROWS[name]) if name in _DIVIDES_ROWS else None


def is_search(fitted: Any) -> bool:
    """Return whether an object is a search; others store scores of folds too."""
    return "params" in getattr(fitted, "cv_results_", ())


SEARCH_LEAKS = (
    (
        "selection",
        "the candidate was chosen by exact scores of the rows",
        "use skdp.model_selection.PrivateGridSearchCV, or fix the parameters in advance",
    ),
    (
        "cv_results_, best_score_",
        "they are exact scores of every fold and candidate",
        "do not publish them; PrivateGridSearchCV stores none",
    ),
)
STRATIFIED = (
    "folds",
    "the folds are stratified by private labels: a change of one label moves other records to "
    "other folds, and no fit has a valid bound on the influence of one row",
    "pass cv=KFold(n_splits, shuffle=True, random_state=...), which does not use the labels",
)
_BALANCED = (
    "folds",
    "the folds are balanced by the private numbers of rows, or follow from all ids by a fixed "
    "seed: one unit moves others to other folds, and no fit has a valid bound on its influence",
    "pass cv=GroupKFold(n_splits, shuffle=True), which uses only the ids, without random_state, "
    "because with a seed another id would move others",
)


@dataclass(frozen=True)
class Finding:
    """Verdict on one part of a fitted object."""

    name: str  # place of the part, for example ``"pipeline step 'scale'"``
    estimator: str  # class of the part; empty if it has none
    kind: str
    reason: str
    remedy: str = ""
    assumption: str = ""  # assumption of the verdict, if any
    spent: PrivacySpent | None = None  # record of a private part
    # Whether `spent` is the record of a private search, shared by all steps of its model.
    of_search: bool = False


def distinct_records(findings: list[Finding]) -> list[PrivacySpent]:
    """Return the records of the private parts, each search once."""
    # By identity of the record, if it is that of a search, and else by that of the finding.
    found = {id(each.spent if each.of_search else each): each.spent for each in findings}
    return [spent for spent in found.values() if spent is not None]


def examine(fitted: Any, name: str = "estimator", priced: bool = True) -> list[Finding]:
    """Return a finding for each part of an object, fitted or not; a private search is one part.

    With `priced`, claimed guarantees are checked against their events.
    """
    if type(fitted) is FrozenEstimator:
        return examine(fitted.estimator, name, priced)
    spent = getattr(fitted, "privacy_spent_", None)
    if isinstance(spent, PrivacySpent):
        if priced:
            refuse_disproved(spent.event, spent.adjacency, *spent)
        shared = getattr(fitted, "_shares_record_of_search", False) is True
        verdict = "private", spent.mechanism + _afterwards(fitted), "", private_claim(fitted)
        findings = [Finding(name, _class(fitted), *verdict, spent, shared)]
        # A model that was fitted before, with a charge of its own.
        below = getattr(fitted, getattr(fitted, "_stands_on", ""), None)
        return findings + ([] if below is None else examine(below, f"model inside {name}", priced))
    if is_search(fitted):
        return _examine_search(fitted, name, priced)
    verdict = judge_rows_of_fits(fitted) or classify_step(fitted)
    findings = [Finding(name, _class(fitted), *verdict)]
    parts = list(_parts(fitted))
    if parts:
        # A container that stores only its parts needs no separate line.
        within = [finding for label, part in parts for finding in examine(part, label, priced)]
        said = findings[0].kind != "data-independent" or findings[0].assumption
        return findings + within if said else within
    for number, (fit, record) in enumerate(_fits_inside(fitted), start=1):
        part = f"fit {number} inside {name}"
        findings.append(Finding(part, _class(fit), "private", record.mechanism, spent=record))
    return findings


def _afterwards(fitted: Any) -> str:
    """Describe changes to released coefficients that used no rows."""
    model = fitted_model(fitted)
    linear = model[-1] if isinstance(model, Pipeline) else model
    return getattr(getattr(linear, "_coef_noise_", None), "afterwards", "")


def _class(part: Any) -> str:
    return repr(part) if isinstance(part, str) or part is None else type(part).__name__


def _parts(fitted: Any) -> Iterator[tuple[str, Any]]:
    """Yield the named parts of scikit-learn's containers."""
    if isinstance(fitted, Pipeline):
        for label, step in fitted.steps:
            yield f"step {label!r}", step
    elif isinstance(fitted, ColumnTransformer):
        for label, transformer, _ in getattr(fitted, "transformers_", fitted.transformers):
            yield f"columns {label!r}", transformer
    elif isinstance(fitted, FeatureUnion):
        for label, transformer in fitted.transformer_list:
            yield f"features {label!r}", transformer
    elif type(fitted) is FixedThresholdClassifier:
        yield "model with a fixed threshold", getattr(fitted, "estimator_", fitted.estimator)
    elif type(fitted) is TransformedTargetRegressor:
        yield "transformer of targets", getattr(fitted, "transformer_", fitted.transformer)
        model = getattr(fitted, "regressor_", fitted.regressor)
        yield "model of transformed targets", model


def _examine_search(search: Any, name: str, priced: bool) -> list[Finding]:
    leaks = list(SEARCH_LEAKS)
    if is_stratified(search):
        leaks.append(STRATIFIED)
    cv: Any = getattr(search, "cv", None)
    if type(cv).__name__ == "GroupKFold" and (not cv.shuffle or cv.random_state is not None):
        leaks.append(_BALANCED)
    findings = [
        Finding(f"{name}: {part}", _class(search), "leaking", reason, remedy)
        for part, reason, remedy in leaks
    ]
    if responds(search, "best_estimator_"):
        inside = examine(search.best_estimator_, f"{name}: refit of the best candidate", priced)
        by_unit = any(part.spent is not None and part.spent.unit == "group" for part in inside)
        if by_unit and "Group" not in type(cv).__name__ and _BALANCED not in leaks:
            findings.append(Finding(f"{name}: folds", _class(search), "leaking", *_BALANCED[1:]))
        findings += inside
    return findings


def is_stratified(search: Any) -> bool:
    """Return whether the folds of a search depend on labels."""
    cv = getattr(search, "cv", None)
    if cv is None or isinstance(cv, int):  # scikit-learn's default for classifiers
        return bool(is_classifier(search))
    return "Stratified" in type(cv).__name__


def _fits_inside(fitted: Any) -> Iterator[tuple[Any, PrivacySpent]]:
    """Yield private fits inside an ensemble, a calibrator or another meta-estimator."""
    seen: set[int] = set()
    # Parameters are templates; only attributes set by `fit` are searched.
    own = getattr(fitted, "__dict__", {})
    waiting = [value for key, value in own.items() if key.endswith("_")]
    while waiting:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        spent = getattr(value, "privacy_spent_", None)
        if isinstance(spent, PrivacySpent):
            yield value, spent
            # A model that was fitted before, with a charge of its own.
            waiting.insert(0, getattr(value, getattr(value, "_stands_on", ""), None))
        elif isinstance(value, list | tuple):
            waiting[:0] = list(value)
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            waiting[:0] = list(vars(value).values())
