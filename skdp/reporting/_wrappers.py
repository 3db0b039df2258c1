"""Meta-estimators that give their inner fits other tables than their own, row for row."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.reporting.steps import REMEDIES, StepVerdict

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
    name = type(fitted).__name__
    if type(fitted).__module__.partition(".")[0] != "sklearn":
        return None
    if name in ("BaggingClassifier", "BaggingRegressor") and fitted.bootstrap:
        # Which rows are in a bag was drawn without looking at them.
        copies = max(int(np.bincount(bag).max()) for bag in fitted.estimators_samples_)
        return StepVerdict(
            "leaking",
            f"bags are drawn with replacement: a row is up to {copies} times in one of them, and "
            "each fit takes its copies for different records",
            f"{_BY_ITSELF}; rows_per_unit={copies} counts the copies as rows of one unit",
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
