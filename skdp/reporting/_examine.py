"""Walk a fitted object and say of each part what it took from the rows."""

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
from skdp.reporting.steps import REMEDIES, StepVerdict, classify_step, private_claim

_BY_ITSELF = "a private classifier by itself"

# What becomes of the rows, for which reason the costs of the inner fits do not add up to a cost.
_DIVIDES_ROWS = {
    "CalibratedClassifierCV": (
        "its curves are fitted to rows without noise, on folds that the private labels stratify",
        REMEDIES["CalibratedClassifierCV"],
    ),
    "OneVsOneClassifier": (
        "each inner fit gets the rows of two labels: their number is private, and a row whose "
        "label changes leaves some fits and enters others",
        _BY_ITSELF,
    ),
    "SelfTrainingClassifier": (
        "rows get labels, and enter later fits, by predictions: their number is private, and "
        "transduction_ and labeled_iter_ tell of single rows",
        _BY_ITSELF + ", fitted on the rows whose labels are known",
    ),
    "StackingClassifier": (
        "its folds are stratified by the private labels, and the last estimator learns from "
        "predictions of models that saw other rows: one row moves the features of all",
        _BY_ITSELF,
    ),
    "TunedThresholdClassifierCV": (
        "its threshold is chosen by scores of rows without noise, on folds that the private labels "
        "stratify; best_score_ and cv_results_ are such scores",
        REMEDIES["TunedThresholdClassifierCV"],
    ),
}


def judge_rows_of_fits(fitted: Any) -> StepVerdict | None:
    """Name what breaks the accounting of fits inside; None where rows go in one for one."""
    name, package = type(fitted).__name__, type(fitted).__module__.partition(".")[0]
    if package == "imblearn" and name == "Pipeline":  # of which `examine` judges every step
        return StepVerdict("data-independent", "it keeps its steps and nothing else")
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
            f"bags are drawn with replacement: a row is {times} in one of them, and each fit takes "
            "its copies for different records",
            f"{_BY_ITSELF}; {counted}",
        )
    if name == "FixedThresholdClassifier":
        return StepVerdict("data-independent", "its threshold is a parameter")
    if name == "TransformedTargetRegressor":
        if not fitted.check_inverse:
            return StepVerdict("data-independent", "it keeps its two parts and nothing else")
        claim = "its inverse undoes its transformer on every row, as fit would warn otherwise"
        return StepVerdict("taken at your word", claim, assumption=f"taken at your word: {claim}")
    return StepVerdict("leaking", *_DIVIDES_ROWS[name]) if name in _DIVIDES_ROWS else None


def is_search(fitted: Any) -> bool:
    """Tell a search from other objects that keep scores of folds."""
    return "params" in getattr(fitted, "cv_results_", ())


SEARCH_LEAKS = (
    (
        "selection",
        "the candidate was chosen by scores computed from the rows without noise",
        "select with skdp.model_selection.PrivateGridSearchCV, or fix the parameters beforehand",
    ),
    (
        "cv_results_, best_score_",
        "scores of every fold and candidate, computed from the rows without noise",
        "do not publish them; PrivateGridSearchCV keeps none",
    ),
)
STRATIFIED = (
    "folds",
    "the folds are stratified by the private labels: changing one label moves other records to "
    "other folds, so that the bound on what one row changes fails for every fit",
    "give cv=KFold(n_splits, shuffle=True, random_state=...), which does not look at the labels",
)
_BALANCED = (
    "folds",
    "the folds are balanced by the private numbers of rows, or follow from all ids by a fixed "
    "seed: one unit decides to which folds others go, so that the bound on what it changes fails "
    "for every fit",
    "give cv=GroupKFold(n_splits, shuffle=True), which looks at ids alone, and no random_state, by "
    "which another id would move others",
)


@dataclass(frozen=True)
class Finding:
    """What one part of a fitted object did with the rows."""

    name: str  # where the part sits, for example ``"pipeline step 'scale'"``
    estimator: str  # class of the part; empty where it is none
    kind: str
    reason: str
    remedy: str = ""
    assumption: str = ""  # what the verdict takes for granted; empty if nothing
    spent: PrivacySpent | None = None  # what a private part spent
    # Whether `spent` is the record of a private search, which all steps of its model share.
    of_search: bool = False


def distinct_records(findings: list[Finding]) -> list[PrivacySpent]:
    """Return what the private parts spent, the record of one search once."""
    # By identity of the record, if it is that of a search, and else by that of the finding.
    found = {id(each.spent if each.of_search else each): each.spent for each in findings}
    return [spent for spent in found.values() if spent is not None]


def examine(fitted: Any, name: str = "estimator", priced: bool = True) -> list[Finding]:
    """Return the findings about an object, part by part; a private search is one part.

    It may not be fitted yet. Claims are held against their events where they are `priced`.
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
        # A model that was fitted before, and paid for by itself.
        below = getattr(fitted, getattr(fitted, "_stands_on", ""), None)
        return findings + ([] if below is None else examine(below, f"model inside {name}", priced))
    if is_search(fitted):
        return _examine_search(fitted, name, priced)
    verdict = judge_rows_of_fits(fitted) or classify_step(fitted)
    findings = [Finding(name, _class(fitted), *verdict)]
    parts = list(_parts(fitted))
    if parts:
        # A container that keeps nothing beside its parts needs no line of its own.
        within = [finding for label, part in parts for finding in examine(part, label, priced)]
        said = findings[0].kind != "data-independent" or findings[0].assumption
        return findings + within if said else within
    for number, (fit, record) in enumerate(_fits_inside(fitted), start=1):
        part = f"fit {number} inside {name}"
        findings.append(Finding(part, _class(fit), "private", record.mechanism, spent=record))
    return findings


def _afterwards(fitted: Any) -> str:
    """Say what was done to released coefficients without rows."""
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
    """Tell whether the folds of a search follow from labels."""
    cv = getattr(search, "cv", None)
    if cv is None or isinstance(cv, int):  # scikit-learn's default for classifiers
        return bool(is_classifier(search))
    return "Stratified" in type(cv).__name__


def _fits_inside(fitted: Any) -> Iterator[tuple[Any, PrivacySpent]]:
    """Yield private fits held by an ensemble, a calibrator or another meta-estimator."""
    seen: set[int] = set()
    # Parameters are templates; only what `fit` made is looked at.
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
            # A model that was fitted before, and paid for by itself.
            waiting.insert(0, getattr(value, getattr(value, "_stands_on", ""), None))
        elif isinstance(value, list | tuple):
            waiting[:0] = list(value)
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            waiting[:0] = list(vars(value).values())
