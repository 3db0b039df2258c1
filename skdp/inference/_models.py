"""The linear part of a fitted model, and its weights on rows of norm 1."""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import check_real
from skdp.base.scikit_learn import (
    BaseEstimator,
    columns_of,
    fitted_model,
    last_and_meaning,
    responds,
)
from skdp.inference._release import LARGEST_WEIGHT, constant_value, norm_of_rows
from skdp.plans.coefficient_noise import JointNoise
from skdp.running import around_runs
from skdp.tables.inputs import canonical_rows, validate_rows

Array = NDArray[np.float64]

# Public rows on which scores are compared with those of the coefficients, and how closely.
_TRIED, _CLOSE = 3, 1e-6
_ABOUT_BAND = (
    "sampling of rows and all privacy noise, from one look: the normal law with the covariance of "
    "the estimates"
)
_WITHHELD = (
    "the steps before the linear model failed on the rows, or did not return finite numbers in the "
    "columns of the model. Their message is withheld, because it may quote private values, and the "
    "charge stays: try the pipeline on made-up rows first."
)


class PublicWeights:
    """Coefficients of a two-class linear model that were published elsewhere.

    Parameters
    ----------
    coef : array-like of shape (n_features,)
        Log odds of ``classes[1]`` per unit of each column.
    intercept : float, default=0.0
        Log odds of a row of zeros.
    classes : sequence of two labels, default=(0, 1)
        Labels, sorted.
    feature_names : sequence of str or None, default=None
        Names of the columns.

    Raises
    ------
    ValueError, TypeError
        If the coefficients are not finite numbers, or there are not two classes.

    Examples
    --------
    >>> from skdp.inference import PublicWeights
    >>> PublicWeights([0.5, -1.0], intercept=-2.0).coef_
    array([[ 0.5, -1. ]])
    """

    fit_intercept = True

    def __init__(
        self,
        coef: ArrayLike,
        intercept: float = 0.0,
        *,
        classes: Any = (0, 1),
        feature_names: Any = None,
    ) -> None:
        self.coef_ = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        self.intercept_ = np.array([check_real("intercept", intercept)])
        self.classes_ = np.asarray(classes)
        if self.coef_.shape[0] != 1 or self.coef_.size == 0 or not np.isfinite(self.coef_).all():
            raise ValueError("coef must be a flat list of finite numbers, at least one.")
        if self.classes_.shape != (2,):
            raise ValueError(f"classes must be two labels, got {classes!r}.")
        self.n_features_in_ = self.coef_.shape[1]
        if feature_names is not None:
            self.feature_names_in_ = np.asarray(feature_names, dtype=object)


@dataclass(frozen=True, eq=False)
class LinearPart:
    """A linear two-class model behind steps that treat each row by itself."""

    model: Any  # as it was given
    steps: tuple[Any, ...]
    linear: Any
    meaning: Any  # of the columns behind a schema, if known
    classes: NDArray[Any]
    coef: Array  # of shape (d,)
    intercept: float  # without the effect of class weights
    data_norm: float
    names: NDArray[Any]
    constant: float  # value of the constant column over `data_norm`; 0 without an intercept

    @property
    def norm(self) -> float:
        """Bound on rows with their constant column."""
        return self.data_norm * norm_of_rows(self.constant)

    @property
    def target(self) -> str:
        """Label whose log odds are estimated, such as "died = 1"."""
        label = getattr(getattr(fitted_model(self.model), "schema", None), "label", None)
        return f"{getattr(label, 'name', 'class')} = {self.classes.tolist()[1]}"

    @property
    def theta(self) -> Array:
        """Weights on rows of norm 1."""
        weights = self.coef * self.norm
        if self.constant == 0.0:
            return weights
        return np.append(weights, self.intercept * norm_of_rows(self.constant) / self.constant)

    @property
    def contrasts(self) -> Array:
        """Coefficients, then the intercept, as linear functions of weights on rows of norm 1."""
        factors = np.full(self.theta.size, 1.0 / self.norm)
        if self.constant > 0.0:
            factors[-1] = self.constant / norm_of_rows(self.constant)
        return np.diag(factors)

    def prior(self, deviation: float) -> Array:
        """Return deviations of weights on rows of norm 1, from log odds per half range."""
        equal = self.data_norm / math.sqrt(self.coef.size)  # of columns that share the bound
        half = np.full(self.coef.size, np.nan if self.meaning is None else self.meaning.half_ranges)
        half = np.where(half > 0.0, half, equal)
        found = deviation * self.norm / np.clip(half, 1e-6 * self.data_norm, self.data_norm)
        if self.constant == 0.0:
            return found
        return np.append(found, deviation * norm_of_rows(self.constant) / self.constant)

    def corrected(self, weights: Array, covariance: Array, spent: PrivacySpent) -> Any:
        """Return the model with a logistic regression of these scaled weights as last step."""
        back = np.zeros((self.coef.size + 1, weights.size))
        back[: weights.size] = self.contrasts
        values = back @ weights
        joint = SimpleNamespace(noise_covariance=covariance)
        found: Any = CorrectedModel(fit_intercept=self.constant > 0.0)
        before = None if isinstance(self.linear, PublicWeights) else self.linear
        vars(found).update(
            coef_=values[None, :-1],
            intercept_=values[-1:],
            classes_=self.classes,
            n_features_in_=self.coef.size,
            privacy_spent_=spent,
            _coef_noise_=JointNoise(_ABOUT_BAND, 1.0, exact=True, solution=joint, back=back),
            _row_bound=self.data_norm,
            _before=before,
        )
        if responds(self.linear, "feature_names_in_"):
            found.feature_names_in_ = self.linear.feature_names_in_
        return _replaced(self.model, found)

    def transform(self, X: Any) -> Any:
        """Return the columns of the linear model."""
        for step in self.steps:
            X = step.transform(X)
        return X

    def shown(self, X: Any) -> Any:
        """Return the columns of made-up rows, dense."""
        found = self.transform(X)
        return found.toarray() if hasattr(found, "toarray") else found

    def checked(self, X: Any) -> Any:
        """Return valid rows of the linear model; they are neither copied nor converted."""
        known: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C"}
        return canonical_rows(validate_rows(_Shape(self), X, reset=False, **known))

    def encoded(self, X: Any) -> Any:
        """Return the rows behind the steps; errors quote nothing of them."""
        try:
            with around_runs():
                return self.checked(self.transform(X))
        except (Exception, SystemExit):
            pass
        raise ValueError(_WITHHELD)


class CorrectedModel(LogisticRegression):
    """Logistic regression with the estimates of a look as coefficients; it cannot be fitted."""

    _stands_on = "_before"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Refuse: a fit would not be private."""
        raise TypeError("this model has the estimates of a look. Fit a private model instead.")


class _Shape(BaseEstimator):
    """Stand-in for a model in scikit-learn's checks of rows."""

    def __init__(self, part: LinearPart) -> None:
        self.n_features_in_ = part.coef.size
        if not part.steps and responds(part.linear, "feature_names_in_"):
            self.feature_names_in_ = part.linear.feature_names_in_


def read_linear(model: Any, data_norm: float | None) -> LinearPart:
    """Return the linear part of a fitted two-class model, or refuse the model."""
    steps, linear = _taken_apart(model)
    name = type(linear).__name__
    if not all(responds(linear, own) for own in ("coef_", "intercept_", "classes_")):
        raise TypeError(
            f"{name} has no coef_, intercept_ and classes_: odds ratios are those of a fitted "
            "linear classifier. Fit one, or pass PublicWeights(coef, intercept)."
        )
    classes = np.asarray(linear.classes_)
    if classes.ndim != 1 or classes.size != 2:
        raise ValueError(
            f"{name} has {classes.size} classes, but odds ratios are those of two. Fit a "
            "model of two classes, with one class against a reference class."
        )
    coef = np.asarray(linear.coef_, dtype=np.float64).ravel()
    intercept = float(np.asarray(linear.intercept_, dtype=np.float64).ravel()[0])
    _refuse_nonlinear(linear, coef, intercept)
    if data_norm is None and not responds(linear, "_row_bound"):
        raise ValueError(
            f"declare data_norm, a public bound on the norm of a row: {name} has none."
        )
    bound = float(linear._row_bound if data_norm is None else data_norm)
    fits_intercept = bool(getattr(linear, "fit_intercept", True))
    constant = constant_value(coef.size, fits_intercept)
    shift = _shift(linear, classes)
    if shift and not fits_intercept:
        raise ValueError(f"{name} has class weights but no intercept, which they would move.")
    _, meaning = last_and_meaning(model)
    names = _names(steps, linear, coef.size)
    own = coef, intercept - shift, bound, names, constant
    part = LinearPart(model, tuple(steps), linear, meaning, classes, *own)
    if not np.linalg.norm(part.theta) <= LARGEST_WEIGHT:
        raise ValueError(f"coefficients of {name} must be finite, and below {LARGEST_WEIGHT:g}.")
    return part


def _taken_apart(model: Any) -> tuple[list[Any], Any]:
    """Return the steps of nested pipelines and searches, and their last step."""
    steps: list[Any] = []
    while True:
        model = fitted_model(model.estimator if type(model) is FrozenEstimator else model)
        if responds(model, "steps"):
            steps += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
            model = model.steps[-1][1]
        elif type(model) is not FrozenEstimator:
            return steps, model


def _replaced(model: Any, last: Any) -> Any:
    """Return a shallow copy of a model, unwrapped, with another last step."""
    while type(model) is FrozenEstimator or responds(model, "best_estimator_"):
        model = fitted_model(model.estimator if type(model) is FrozenEstimator else model)
    if not responds(model, "steps"):
        return last
    model, (name, before) = copy.copy(model), model.steps[-1]
    model.steps = [*model.steps[:-1], (name, _replaced(before, last))]
    return model


def _refuse_nonlinear(linear: Any, coef: Array, intercept: float) -> None:
    """Refuse a model with other scores than those of its coefficients, by public rows."""
    names = ("_score_rows", "decision_function")
    score = next((getattr(linear, name) for name in names if responds(linear, name)), None)
    if score is None:
        return
    rows = np.cos(np.arange(_TRIED * coef.size)).reshape(_TRIED, coef.size)
    with np.errstate(all="ignore"):
        wanted, found = rows @ coef + intercept, np.asarray(score(rows)).ravel()
    if not np.allclose(found, wanted, rtol=_CLOSE, atol=_CLOSE):
        raise TypeError(
            f"the scores of {type(linear).__name__} are not coef_ times columns plus intercept_."
        )


def _shift(linear: Any, classes: NDArray[Any]) -> float:
    """Return the effect of public class weights on the intercept: the log of their ratio."""
    given = getattr(linear, "class_weight", None)
    if given is None:
        return 0.0
    weights = linear._label_weights() if responds(linear, "_label_weights") else given
    if not isinstance(weights, dict):
        raise ValueError(
            f"the class weights of {type(linear).__name__} were counted in the fit and are not "
            "stored, so that their effect on the intercept is unknown. Fit with public weights or "
            "prevalence={label: share}, or pass PublicWeights with a corrected intercept."
        )
    low, high = (float(weights.get(label, 1.0)) for label in classes.tolist())
    return math.log(high / low)


def _names(steps: list[Any], linear: Any, n_features: int) -> NDArray[Any]:
    """Return the names of columns, or numbered ones."""
    names = getattr(linear, "feature_names_in_", None)
    for step in steps:
        with suppress(Exception):
            own = getattr(step, "feature_names_in_", None)
            names = step.get_feature_names_out(own if names is None else names)
    found = None if names is None else np.asarray(names, dtype=object)
    if found is None or found.shape != (n_features,) or columns_of(linear) != n_features:
        return np.array([f"x{place}" for place in range(n_features)], dtype=object)
    return found
