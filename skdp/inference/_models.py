"""The linear part of a fitted model, and its weights on rows of norm 1."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag
from sklearn.frozen import FrozenEstimator

from skdp.base.parameters import cached_property, check_real
from skdp.base.scikit_learn import BaseEstimator, fitted_model, last_and_meaning, responds
from skdp.estimators import ObjectivePerturbationLogisticRegression
from skdp.estimators.labels import encode_labels
from skdp.inference._release import (
    LARGEST_CONSTANT,
    LARGEST_WEIGHT,
    constant_value,
    norm_of_rows,
)
from skdp.inference._stages import Reading
from skdp.plans.defaults import INTERCEPT_VALUE
from skdp.plans.objective_perturbation import ObjectivePerturbationPlan
from skdp.solvers import Rows
from skdp.tables.inputs import canonical_rows, validate_rows

Array = NDArray[np.float64]
AnyReading = TypeVar("AnyReading", bound=Reading)

# Public rows on which scores are compared with those of the coefficients, and how closely.
_TRIED, _CLOSE = 3, 1e-6
# Above this epsilon, longer rows are worth more noise, until none counts less.
_LITTLE_NOISE = 10.0


class PublicWeights:
    """Coefficients of a linear model that were published elsewhere.

    Parameters
    ----------
    coef : array-like of shape (n_features,)
        Log odds of ``classes[1]``, or the target of a regression, per unit of each column.
    intercept : float, default=0.0
        Log odds, or the target, of a row of zeros.
    classes : sequence of two labels or None, default=(0, 1)
        Labels, in any order; None for a regression.
    feature_names : sequence of str or None, default=None
        Names of the columns.

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
        try:
            self.coef_ = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        except (TypeError, ValueError):
            self.coef_ = np.empty((0, 0))
        self.intercept_ = np.array([check_real("intercept", intercept)])
        if self.coef_.shape[0] != 1 or self.coef_.size == 0 or not np.isfinite(self.coef_).all():
            raise ValueError("coef must be a flat list of finite numbers, at least one.")
        if classes is not None:
            self.classes_ = np.asarray(classes)
            if self.classes_.shape != (2,) or len({*map(type, classes)}) > 1:
                raise ValueError(f"classes must be two labels of one type, got {classes!r}.")
            if not self.classes_[0] < self.classes_[1]:
                raise ValueError(
                    f"classes must be two labels in their order, got {classes!r}: coefficients are "
                    "for the second one. For the other order, change their signs."
                )
        self.n_features_in_ = self.coef_.shape[1]
        if feature_names is not None:
            self.feature_names_in_ = np.asarray(feature_names, dtype=object)
            if self.feature_names_in_.shape != (self.n_features_in_,):
                raise ValueError(f"feature_names must be {self.n_features_in_} names, like coef.")


@dataclass(frozen=True, eq=False)
class LinearPart:
    """Log odds of a class, linear in columns, behind steps that treat each row by itself."""

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
    code: int = 1  # place of the class among the labels
    against: int | None = 0  # place of the class that it is compared with; None for all others
    others: tuple[LinearPart, ...] = ()  # further comparisons of a model of several classes
    of_fit: Reading | None = None  # the score that the fit has released

    def __post_init__(self) -> None:
        if not np.linalg.norm(self.theta) <= LARGEST_WEIGHT:
            name = type(self.linear).__name__
            raise ValueError(f"weights of {name} must be finite, below {LARGEST_WEIGHT:g}.")

    @property
    def kept(self) -> Any:
        """Places of the columns that the model uses."""
        return getattr(self.linear, "_kept", range(self.coef.size))

    @property
    def shift(self) -> Array:
        """Known weights that estimates are moved by, in the basis."""
        return np.zeros(self.basis.shape[1])

    def encode(self, truth: Any) -> NDArray[Any]:
        """Return labels as places among the classes."""
        return encode_labels(truth, self.classes, "the classes of the model")[1]

    def table(self, rows: Rows, labels: NDArray[Any], shares: Array) -> Rows:
        """Return rows with signs as targets, without those of other classes."""
        signs = np.where(labels == self.code, np.int8(1), np.int8(-1))
        taken = (labels == self.code) | (labels == self.against) | (self.against is None)
        return rows.with_targets(signs, "signs", shares * taken)

    @property
    def norm(self) -> float:
        """Bound on rows with their constant column."""
        return self.data_norm * norm_of_rows(self.constant)

    @property
    def target(self) -> str:
        """Label whose log odds are estimated, such as "died = 1", and its comparison if several."""
        label = getattr(getattr(fitted_model(self.model), "schema", None), "label", None)
        labels = self.classes.tolist()
        other = "the rest" if self.against is None else labels[self.against]
        against = f" against {other}" if len(labels) > 2 else ""
        return f"{getattr(label, 'name', 'class')} = {labels[self.code]}{against}"

    @property
    def theta(self) -> Array:
        """Weights on rows of norm 1."""
        weights = self.coef * self.norm
        if self.constant == 0.0:
            return weights
        return np.append(weights, self.intercept * norm_of_rows(self.constant) / self.constant)

    @property
    def _factors(self) -> Array:
        """Coefficients, then the intercept, over weights on rows of norm 1."""
        factors = np.full(self.coef.size, 1.0 / self.norm)
        if self.constant == 0.0:
            return factors
        return np.append(factors, self.constant / norm_of_rows(self.constant))

    @cached_property
    def basis(self) -> Array:
        """Orthonormal directions in which rows may vary, and the constant column, (d, k)."""
        # Levels of a category add up to a constant, which rows do not tell from the intercept: the
        # noise of the information in such a direction would add to that of all scores.
        has_intercept = self.constant > 0.0
        if self.meaning is None:
            own = np.eye(self.coef.size)[:, list(self.kept)]
        else:
            own = self.meaning.basis(self.kept, has_intercept).toarray()
        return block_diag(own, np.eye(int(has_intercept)))

    @property
    def contrasts(self) -> Array:
        """Coefficients, then the intercept, as linear functions of weights in the basis, (d, k)."""
        return self._factors[:, np.newaxis] * self.basis

    def reduced(self, look: AnyReading) -> AnyReading:
        """Return a look in the basis, whose noise has the same law."""
        basis = self.basis
        theta = basis.T @ look.theta
        if self.meaning is not None and self.constant > 0.0:  # what rows do not tell from it
            lost = (look.theta - basis @ theta) * self._factors
            _, row, _ = self.meaning.effects({}, range(self.coef.size))
            theta[-1] += lost[:-1] @ row / self._factors[-1]
        matrices: dict[str, Any] = {"information": look.information, "squares": look.squares}
        for name, matrix in matrices.items():
            matrices[name] = None if matrix is None else basis.T @ matrix @ basis
        return replace(look, theta=theta, score=basis.T @ look.score, **matrices)

    def prior(self, deviation: float) -> Array:
        """Return deviations of weights in the basis, from log odds per half range of a column."""
        equal = self.data_norm / math.sqrt(self.coef.size)  # of columns that share the bound
        half = np.full(self.coef.size, np.nan if self.meaning is None else self.meaning.half_ranges)
        half = np.clip(np.where(half > 0.0, half, equal), 1e-6 * self.data_norm, None)
        whole = half if self.constant == 0.0 else np.append(half, 1.0)
        found: Array = np.sqrt((self.basis**2).T @ (deviation / whole / self._factors) ** 2)
        return found

    def transform(self, X: Any, dense: bool = True) -> Any:
        """Return the columns of the linear model."""
        for step in self.steps:
            X = step.transform(X)
        return X.toarray() if dense and hasattr(X, "toarray") else X

    def checked(self, X: Any) -> Any:
        """Return valid rows of the linear model; they are neither copied nor converted."""
        shape: Any = BaseEstimator()  # the stand-in for a model of anyone
        shape.n_features_in_ = self.coef.size
        if not self.steps and responds(self.linear, "feature_names_in_"):
            shape.feature_names_in_ = self.linear.feature_names_in_
        known: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C"}
        return canonical_rows(validate_rows(shape, X, reset=False, **known))


def read_linear(
    model: Any, data_norm: float | None, reference: Any = None, epsilon: float = math.inf
) -> LinearPart:
    """Return the linear part of a fitted classifier for a look of one epsilon, or refuse it."""
    _, linear = linear_end(model)
    name = type(linear).__name__
    if not all(responds(linear, own) for own in ("coef_", "intercept_", "classes_")):
        raise TypeError(
            f"{name} has no coef_, intercept_ and classes_: odds ratios are those "
            "of a fitted linear classifier. Fit one, or pass PublicWeights(coef, intercept)."
        )
    classes = np.asarray(linear.classes_)
    coef = np.array(linear.coef_, dtype=np.float64, ndmin=2)  # steps that run later may change it
    intercept = np.broadcast_to(np.asarray(linear.intercept_, dtype=np.float64), len(coef))
    refuse_nonlinear(linear, coef, intercept)
    pairs, logs = compared_classes(linear, classes.tolist(), reference)
    if len(coef) == 1:
        coef, intercept = np.vstack([0.0 * coef, coef]), np.append(0.0, intercept)
    if len(coef) != len(classes):
        raise ValueError(f"{name} must have a row of coef_ for each class.")
    columns = read_columns(model, data_norm, coef.shape[1], epsilon)
    intercept, parts = intercept - logs, []
    for code, base in pairs:
        less, by = (0.0, 0.0) if base is None else (coef[base], intercept[base])
        weights = {"coef": coef[code] - less, "intercept": float(intercept[code] - by)}
        parts.append(LinearPart(**weights, classes=classes, code=code, against=base, **columns))
    return replace(parts[0], others=tuple(parts[1:]))


def read_columns(
    model: Any, data_norm: float | None, n_features: int, epsilon: float = math.inf
) -> dict[str, Any]:
    """Return public facts about the columns of a linear model, for a look of one epsilon."""
    (steps, linear), meaning = linear_end(model), last_and_meaning(model)[1]
    if data_norm is None and not responds(linear, "_row_bound"):
        name = type(linear).__name__
        raise ValueError(
            f"declare data_norm, a public bound on the norm of a row: {name} has none."
        )
    meaning = None if meaning is None or meaning.n_features != n_features else meaning
    n_columns = n_features if meaning is None else len(meaning.parts)
    constant = constant_value(n_columns, bool(getattr(linear, "fit_intercept", True)))
    bound = linear._row_bound if data_norm is None else data_norm
    norm = check_real("data_norm", bound, at_least=1e-50, at_most=1e50)
    if data_norm is None and released_score(linear):  # which has its value of the column
        value = linear._choose("intercept_scaling", lambda given: given / linear._row_bound)
        constant = min(LARGEST_CONSTANT, INTERCEPT_VALUE if value is None else float(value))
    elif data_norm is None and meaning is not None:
        norm = usual_norm(meaning, norm, epsilon)
    names = getattr(linear, "feature_names_in_", None)
    for step in steps:
        with suppress(Exception):
            own = getattr(step, "feature_names_in_", None)
            names = step.get_feature_names_out(own if names is None else names)
    if names is None or np.shape(names) != (n_features,):
        names = [f"x{place}" for place in range(n_features)]
    return {
        "model": model,
        "steps": tuple(steps),
        "linear": linear,
        "meaning": meaning,
        "data_norm": norm,
        "names": np.asarray(names, dtype=object),
        "constant": constant,
    }


def usual_norm(meaning: Any, norm: float, epsilon: float) -> float:
    """Return the norm of a row whose numbers are spread over their ranges, at most a bound."""
    longest, usual = meaning.norms
    spread = usual**2 * max(1.0, epsilon / _LITTLE_NOISE)
    return math.sqrt(min(norm**2, max(norm, longest) ** 2 - longest**2 + spread))


def compared_classes(
    linear: Any, labels: list[Any], reference: Any
) -> tuple[list[tuple[int, int | None]], list[float]]:
    """Return places of compared classes, and by how much class weights moved intercepts."""
    name, given = type(linear).__name__, getattr(linear, "class_weight", None)
    if given is None:
        given = {}
    elif responds(linear, "_label_weights"):
        given = linear._label_weights()
    if not isinstance(given, dict):
        raise ValueError(
            f"the class weights of {name} were counted in the fit and are not stored, so that their"
            " effect on the intercept is unknown. Fit with class_weight={label: weight} or "
            "prevalence={label: share}, or pass PublicWeights with a corrected intercept."
        )
    logs = [math.log(float(given.get(label, 1.0))) for label in labels]
    if any(logs) and not getattr(linear, "fit_intercept", True):
        raise ValueError(f"{name} has class weights but no intercept, which they would move.")
    if len(labels) == 2:
        if reference not in (None, "rest", labels[0]):
            raise ValueError(
                f"{name} has two classes, {labels!r}: odds are those of the second one, and "
                f"reference must be None or {labels[0]!r}, got {reference!r}."
            )
        return [(1, 0)], logs
    if reference not in (*labels, "rest"):
        raise ValueError(
            f"{name} has the classes {labels!r}: declare as reference= the one that others are "
            f"compared with, or 'rest' to compare each with all others, got {reference!r}."
        )
    base = labels.index(reference) if reference in labels else None
    if base is None and any(logs):
        raise ValueError("reference='rest' is not supported for a model with class weights.")
    return [(code, base) for code in range(len(labels)) if code != base], logs


def linear_end(model: Any) -> tuple[list[Any], Any]:
    """Return the steps of nested pipelines and searches, and their last step."""
    steps: list[Any] = []
    while True:
        model = fitted_model(model.estimator if type(model) is FrozenEstimator else model)
        if responds(model, "steps"):
            steps += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
            model = model.steps[-1][1]
        elif type(model) is not FrozenEstimator:
            return steps, model


def refuse_nonlinear(
    linear: Any,
    coef: Array,
    intercept: Array,
    names: tuple[str, ...] = ("_score_rows", "decision_function"),
    low: float = -math.inf,
    high: float = math.inf,
) -> None:
    """Refuse a model whose first method in the list has other scores, within bounds."""
    score = next((getattr(linear, name) for name in names if responds(linear, name)), None)
    if score is None:
        return
    rows = np.cos(np.arange(_TRIED * coef.shape[1])).reshape(_TRIED, -1)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        wanted = np.clip(rows @ coef.T + intercept, low, high)
        found = np.clip(np.asarray(score(rows)).reshape(len(rows), -1), low, high)
    if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=_CLOSE, atol=_CLOSE):
        raise TypeError(
            f"the scores of {type(linear).__name__} are not coef_ times columns plus intercept_."
        )


def released_score(linear: Any) -> bool:
    """Return whether the weights of a fit give its score: nothing was clipped or changed."""
    return (
        type(linear) is ObjectivePerturbationLogisticRegression
        and linear.max_grad_norm is None
        and linear.class_weight is None
        and linear.calibration_ == (0.0, 1.0)
        and linear.unit_weighting == "mean"
        and linear.max_unit_rows is None
        and linear.delta > 0.0
        and linear.fit_intercept
        and linear.numerics == "float"
    )


def reading_of_fit(part: Any, shape: tuple[int, int], by_unit: bool) -> Reading | None:
    """Return the released score for a table of the fit's rows; None if its plan was another one.

    It is a function of released weights: section 6 of ``docs/proofs/inference.md``.
    """
    linear, spent = part.linear, part.linear.privacy_spent_
    try:
        plan: ObjectivePerturbationPlan = linear._plan_shape(shape, 2, by_unit)
    except ValueError:  # of parameters that were changed after the fit
        return None
    unit = "group" if by_unit else "row"
    same = plan.event == spent.event and plan.adjacency == spent.adjacency and unit == spent.unit
    scale = plan.model.units.data_norm, plan.model.intercept_value
    if not same or scale != (part.data_norm, part.constant):
        return None
    # Rows of the fit have the same direction, and are longer by this.
    length = part.norm / part.data_norm
    penalty = plan.model.n_rows * plan.penalty
    curvature = 0.25 * plan.model.n_rows * plan.model.row_norm**2
    noise = math.hypot(plan.tilt_sigma, (curvature + penalty) * plan.sigma)
    weights = part.theta / length
    return part.reduced(Reading(part.theta, penalty * weights / length, noise / length))
