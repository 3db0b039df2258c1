"""What the fitted state of a pipeline's step tells of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Kind = Literal["private", "data-independent", "leaking"]


class StepVerdict(NamedTuple):
    """Whether a step's fitted state depends on private rows, and what to do if it does."""

    kind: Kind
    reason: str
    remedy: str = ""


_STATELESS = "its output for a row depends on that row and on its parameters alone"
_COUNTS_COLUMNS = "fit looks at the number of columns alone"

# scikit-learn's transformers that learn nothing from the rows, whatever their parameters are.
_DATA_INDEPENDENT = {
    "AdditiveChi2Sampler": _STATELESS,
    "Binarizer": _STATELESS,
    "FeatureHasher": _STATELESS,
    "FunctionTransformer": _STATELESS + ", if its function keeps no state",
    "HashingVectorizer": _STATELESS,
    "Normalizer": _STATELESS,
    "PolynomialCountSketch": _COUNTS_COLUMNS,
    "PolynomialFeatures": _COUNTS_COLUMNS,
    "GaussianRandomProjection": _COUNTS_COLUMNS,
    "SparseRandomProjection": _COUNTS_COLUMNS,
}

_REMEDIES = {
    "StandardScaler": "BoundedScaler with public bounds, or DPStandardScaler",
    "MinMaxScaler": "BoundedScaler with public bounds, or DPQuantileClipper",
    "MaxAbsScaler": "BoundedScaler with public bounds, or DPQuantileClipper",
    "RobustScaler": "BoundedScaler with public bounds, or DPQuantileClipper",
    "QuantileTransformer": "DPQuantileClipper",
    "PCA": "DPPCA",
    "TruncatedSVD": "DPPCA",
    "SimpleImputer": "SimpleImputer(strategy='constant', fill_value=...) with a public value",
    "OneHotEncoder": "OneHotEncoder(categories=[...]) with public lists of categories",
    "OrdinalEncoder": "OrdinalEncoder(categories=[...]) with public lists of categories",
    "LogisticRegression": "OperaLogisticRegression or another private classifier",
    "LinearSVC": "OperaSVC or another private classifier",
    "SVC": "OperaSVC or another private classifier",
    "CalibratedClassifierCV": "a private classifier with predict_proba, uncalibrated",
}
_GENERAL_REMEDY = (
    "replace it by a step that uses public knowledge only or is private itself; if it learns "
    "nothing from the rows, give its class the attribute _learns_from_rows = False"
)


def classify_step(step: Any) -> StepVerdict:
    """Say whether a step's fitted state is private, independent of the rows, or leaks them.

    Parameters
    ----------
    step : estimator, "passthrough", "drop" or None
        A step, fitted or not; of a container, such as a pipeline, each part is to be asked for.

    Returns
    -------
    StepVerdict
        ``kind`` is "private" for what charges a budget, "data-independent" for what is known to
        learn nothing from the rows, and "leaking" for all else, unknown classes among them. A class
        vouches for itself by an attribute ``_learns_from_rows = False``.
    """
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return StepVerdict("data-independent", "it passes columns on or drops them")
    if callable(getattr(step, "privacy_plan", None)):
        return StepVerdict("private", "its fit is a differentially private release")
    if getattr(step, "_learns_from_rows", True) is False:
        return StepVerdict("data-independent", "its class declares that fit learns no values")
    name = type(step).__name__
    if type(step).__module__.partition(".")[0] == "sklearn":
        if name in _DATA_INDEPENDENT:
            return StepVerdict("data-independent", _DATA_INDEPENDENT[name])
        if name in _DEPENDS_ON_PARAMETERS:
            reason = _DEPENDS_ON_PARAMETERS[name](step)
            if reason:
                return StepVerdict("data-independent", reason)
    return StepVerdict(
        "leaking",
        "it learns from the rows without noise, or is not known not to",
        _REMEDIES.get(name, _GENERAL_REMEDY),
    )


def _encoder(step: Any) -> str:
    listed = step.categories is not None and not isinstance(step.categories, str)
    # Grouping and dropping rare categories counts rows, even with listed categories.
    counts = getattr(step, "min_frequency", None) or getattr(step, "max_categories", None)
    return "its categories are listed in its parameters" if listed and not counts else ""


def _imputer(step: Any) -> str:
    keeps_all = step.keep_empty_features and not step.add_indicator
    public = step.strategy == "constant" and keeps_all
    return "it fills in a public constant" if public else ""


def _sampler(step: Any) -> str:
    # gamma="scale" is computed from the variance of the rows.
    return "" if isinstance(step.gamma, str) else _COUNTS_COLUMNS


def _spline(step: Any) -> str:
    public = not isinstance(step.knots, str)
    return "its knots are listed in its parameters" if public else ""


_DEPENDS_ON_PARAMETERS: dict[str, Callable[[Any], str]] = {
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "RBFSampler": _sampler,
    "SimpleImputer": _imputer,
    "SplineTransformer": _spline,
}
