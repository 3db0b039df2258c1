"""Regression coefficients from one look: clipped residuals, and the second moments of rows.

A row z has norm at most 1 with its constant column. Its residual is divided by a limit and clipped
to [-1, 1], which gives s. The row contributes ``s z``, ``z z^T``, ``1 - s^2``, and 1 if it is not
clipped, each times a factor, in one vector. Part III of ``docs/proofs/inference.md`` has proofs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.accounting.records import JsonRecord
from skdp.base.parameters import Adjacency, cached_property, check_bounds, check_real
from skdp.base.scikit_learn import fitted_model, last_and_meaning, responds
from skdp.estimators.labels import read_numbers
from skdp.inference._models import (
    LinearPart,
    bound_of_rows,
    linear_end,
    names_of,
    refuse_huge,
)
from skdp.inference._posterior import LookPosterior, look_posterior
from skdp.inference._release import (
    LookPlan,
    constant_value,
    norm_of_rows,
    pack_matrix,
    refuse_weights,
    scaled_rows,
)
from skdp.inference._result import MOSTLY_PRIOR
from skdp.losses.base import TargetKind
from skdp.mechanisms.contribution import ROUND_UP
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.release import Release
from skdp.plans.second_moments import unpack_matrix
from skdp.reporting.estimates import CoefficientIntervals
from skdp.solvers import Rows

Array = NDArray[np.float64]


class ErrorBounds(NamedTuple):
    """Factors of moments, of ``1 - s^2`` and of unclipped rows, and the norm of a record."""

    moments: float
    squares: float
    inside: float
    l2: float


ERROR_BOUNDS: dict[Adjacency, ErrorBounds] = {
    "add-remove": ErrorBounds(1.0 / 3.0, 1.0, 0.125, math.sqrt(1.0 + 1.0 / 9.0 + 1.0 / 64.0)),
    "replace-one": ErrorBounds(0.7071, 0.7071, 0.125, math.sqrt(4.0 + 1.0 / 64.0)),
}

# Residuals count up to this number of standard deviations.
_REACH = 1.5
# Scaled targets beyond are the same: their residuals are clipped.
_LARGEST_TARGET = 1e200
# Below this number of deviations of its noise, the share of unclipped records is unknown.
_LEAST_COUNT, _HIDDEN = 6.0, 1e-5
# Above this change of predictions, in sizes of errors, one step may not suffice.
_LARGEST_CHANGE = 0.5
_LABEL = "clipped residuals and second moments"


@dataclass(frozen=True)
class ErrorPlan(LookPlan):
    """A look at a regression; see `of`."""

    limit: float = 1.0  # of residuals, over half the range of the target

    @classmethod
    def of(cls, epsilon: float, delta: float, adjacency: Adjacency, limit: float) -> ErrorPlan:
        """Derive the noise; it depends neither on the table nor on the weights."""
        sums = Release(_LABEL, ERROR_BOUNDS[adjacency].l2 * ROUND_UP).least(epsilon, delta)
        return cls(sums, adjacency, "model", 1.0, limit)

    def describe(self) -> str:
        """Name sensitivity, noise and theorem, for the statement."""
        return (
            "sums of residuals of records times columns at public weights, clipped at a public "
            "limit, of products of columns, and of squares and numbers of residuals, in one "
            f"release ({self.sums.words}; scaled units; docs/proofs/inference.md)"
        )

    def sum(self, rows: Rows, theta: Array, codes: Any = None) -> Array:
        """Return the exact vector of rows with real targets; units have weights in the rows."""
        refuse_weights(theta)
        width, bounds = theta.size, ERROR_BOUNDS[self.adjacency]
        score, moments, counts = np.zeros(width), np.zeros((width, width)), np.zeros(2)
        for found in rows.map_parts(partial(_sum_part, theta, self.limit)):
            score += found[0]
            moments += found[1]
            counts += found[2]
        counts *= (bounds.squares, bounds.inside)
        return np.concatenate([score, bounds.moments * pack_matrix(moments), counts])

    def release(self, exact: Array, theta: Array, stream: RandomStream) -> ErrorLook:  # type: ignore[override]
        """Return the vector with noise, taken apart."""
        noisy, bounds, width = (
            self.sums.make(exact, stream),
            ERROR_BOUNDS[self.adjacency],
            theta.size,
        )
        moments = unpack_matrix(noisy[width:-2], width) / bounds.moments
        small, inside = noisy[-2:] / (bounds.squares, bounds.inside)
        noises = [self.sums.sigma / by for by in (1.0, *bounds[:3])]
        return ErrorLook(
            theta, noisy[:width], moments, float(small), float(inside), self.limit, *noises
        )


@dataclass(frozen=True, eq=False)
class ErrorLook:
    """Released sums in scaled units, and the deviations of their noise; all may be published."""

    theta: Array  # weights, of shape (d,)
    score: Array  # sum of s z, of shape (d,)
    moments: Array  # sum of z z^T, of shape (d, d)
    small: float  # sum of 1 - s^2
    inside: float  # number of records that are not clipped
    limit: float
    score_noise: float
    moments_noise: float  # on the diagonal; off it, less by the root of 2
    small_noise: float
    inside_noise: float


def _sum_part(theta: Array, limit: float, rows: Rows, chosen: None) -> tuple[Array, Array, Array]:
    width = theta.size
    score, moments, counts = np.zeros(width), np.zeros((width, width)), np.zeros(2)
    # Whatever overflows may not be told.
    with np.errstate(all="ignore"):
        for block, record, share in scaled_rows(rows, width):
            residual = np.clip((rows.targets[block] - record @ theta) / limit, -1.0, 1.0)
            share = np.broadcast_to(share, residual.shape)
            score += (residual * share) @ record
            counts += share @ (1.0 - residual**2), share @ (np.abs(residual) < 1.0)
            record *= np.sqrt(share)[:, np.newaxis]
            moments += record.T @ record
    return score, moments, counts


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionPart(LinearPart):
    """A linear regressor behind steps that treat each row by itself.

    Weights are for targets less `origin`, over half the range of their bounds.
    """

    target: str  # with its unit
    half: float
    origin: float
    limit: float
    kind: ClassVar[TargetKind] = "real"

    def encode(self, truth: Any) -> Array:
        """Return scaled targets."""
        with np.errstate(over="ignore"):
            scaled = (read_numbers(truth) - self.origin) / self.half
        return np.clip(scaled, -_LARGEST_TARGET, _LARGEST_TARGET)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Public bounds, for the statement."""
        size = f"residuals are clipped to the public size {self.limit * self.half:g}"
        return (*super().assumptions, size)

    @property
    def directions(self) -> Array:
        """Orthonormal directions of weights in which rows may vary, in columns."""
        meaning, n_features = self.known, self.coef.size
        kept = getattr(self.linear, "_kept", range(n_features))
        if meaning is None:
            basis = np.eye(n_features)[:, list(kept)]
        else:
            basis = meaning.basis(kept, self.constant > 0.0)
        last = np.eye(int(self.constant > 0.0))
        return np.asarray(sparse.block_diag([basis, last]).toarray())

    @property
    def known(self) -> Any:
        """Meaning of the columns, with lines in place of curves as in the model."""
        own = getattr(self.linear, "_meaning", None)
        return self.meaning if own is None else own

    def effects(self, reference: Mapping[str, Any]) -> tuple[dict[str, Any], Array, str]:
        """Return rows of a table, their functions of scaled weights, and where the intercept is."""
        n_features, at = self.coef.size, ""
        if self.known is None:
            if reference:
                raise KeyError("reference names columns of a schema, but the model has no schema.")
            told = [(str(name), "+1", False) for name in self.names]
            functions, where = np.eye(n_features), np.zeros(n_features)
        else:
            kept = getattr(self.linear, "_kept", range(n_features))
            rows, where, at = self.known.effects(reference, kept)
            told = [(each.name, each.step, each.is_reference) for _, each in rows]
            functions = np.array([each.weights for _, each in rows])
        functions = functions * (self.half / self.norm)
        if self.constant > 0.0:
            told.append(("(intercept)", "", False))
            functions = np.vstack([functions, where * (self.half / self.norm)])
            last = np.zeros(len(told))
            last[-1] = self.half * self.scaled_constant
            functions = np.column_stack([functions, last])
        names, steps, is_reference = (
            np.array(own, dtype=object) for own in zip(*told, strict=True)
        )
        words = {"name": names, "step": steps, "is_reference": is_reference.astype(bool)}
        return words, functions, at

    @property
    def scaled_constant(self) -> float:
        """Value of the constant column in rows of norm at most 1."""
        return self.constant / norm_of_rows(self.constant)


def is_regressor(model: Any) -> bool:
    """Return whether the last step of a model is linear, and predicts no classes."""
    _, linear = linear_end(model)
    return responds(linear, "coef_") and not responds(linear, "classes_")


def read_regression(
    model: Any, data_norm: float | None, target_bounds: Any, error_sd: float | None
) -> RegressionPart:
    """Return the linear part of a fitted regressor, or refuse the model."""
    steps, linear = linear_end(model)
    name = type(linear).__name__
    coef = np.asarray(linear.coef_, dtype=np.float64)
    if coef.ndim > 1 and coef.shape[0] != 1:
        raise ValueError(f"{name} has {coef.shape[0]} targets: evaluate one at a time.")
    coef, intercept = coef.ravel(), float(np.ravel(linear.intercept_)[0])
    given = (
        target_bounds,
        *(getattr(linear, at, None) for at in ("_fitted_bounds", "target_bounds")),
    )
    low, high = check_bounds("target_bounds", next((at for at in given if at is not None), None))
    if error_sd is None:
        released = (getattr(linear, at, math.nan) for at in ("residual_std_", "scale_"))
        error_sd = next((at for at in released if 0.0 < at < math.inf), None)
    _refuse_other_scores(linear, coef, intercept, low, high)
    if error_sd is None:
        raise ValueError(
            f"declare error_sd, a rough standard deviation of the errors: {name} has released none."
        )
    constant = constant_value(coef.size, bool(getattr(linear, "fit_intercept", True)))
    half = high / 2.0 - low / 2.0
    origin = low + half if constant > 0.0 else intercept
    part = RegressionPart(
        steps=tuple(steps),
        linear=linear,
        meaning=last_and_meaning(model)[1],
        classes=np.empty(0),
        coef=coef / half,
        intercept=(intercept - origin) / half,
        data_norm=bound_of_rows(linear, data_norm),
        names=names_of(steps, linear, coef.size),
        constant=constant,
        target=_words_of_target(model),
        half=half,
        origin=origin,
        limit=_REACH * error_sd / half,
    )
    refuse_huge(part)
    return part


def _words_of_target(model: Any) -> str:
    label = getattr(getattr(fitted_model(model), "schema", None), "label", None)
    unit = getattr(label, "unit", "")
    return f"{getattr(label, 'name', '')} ({unit})" if unit else getattr(label, "name", "")


def _refuse_other_scores(linear: Any, coef: Array, intercept: float, *bounds: float) -> None:
    """Refuse a model with other predictions than those of its coefficients, by public rows."""
    if not responds(linear, "predict"):
        return
    rows = np.cos(np.arange(3 * coef.size)).reshape(3, coef.size)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        wanted, found = rows @ coef + intercept, np.ravel(linear.predict(rows))
    if not np.allclose(np.clip(found, *bounds), np.clip(wanted, *bounds), rtol=1e-6, atol=1e-6):
        name = type(linear).__name__
        raise TypeError(f"predictions of {name} are not coef_ times columns plus intercept_.")


@dataclass(frozen=True, eq=False, repr=False)
class RegressionResult(JsonRecord):
    """Coefficients of a linear regression with intervals, computed from one look.

    All numbers follow from `look`, which was released once: reading them is free. With a schema,
    coefficients are in the units of its columns, or for a level compared with its reference level.

    Parameters
    ----------
    look : ErrorLook
        Released sums in scaled units, and their noise.
    part : RegressionPart
        Public facts about the model.
    prior_sd : float
        Standard deviation of the prior of each coefficient, in half ranges of the target per half
        range of the column.
    n_records : int
        Public number of records.
    privacy_spent_ : PrivacySpent
        Guarantee, mechanism and assumptions.
    confidence : float
        Coverage probability of the intervals; change it with ``dataclasses.replace``.
    reference : mapping or None
        Reference values by name of a schema's column; change it with ``dataclasses.replace``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateRidge
    >>> from skdp.inference import PrivateInference
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0] + rng.normal(0.0, 0.3, 20_000)
    >>> model = PrivateRidge(epsilon=1.0, target_bounds=(0.0, 6.0), data_norm=1.0).fit(X, y)
    >>> table = PrivateInference(epsilon=1.0, error_sd=0.3).evaluate(model, X, y).coefficients
    >>> bool(1.9 < table["low"][0] < 2.0 < table["high"][0] < 2.1)
    True
    """

    look: ErrorLook
    part: RegressionPart
    prior_sd: float
    n_records: int
    privacy_spent_: PrivacySpent
    confidence: float = 0.95
    reference: Mapping[str, Any] | None = None

    @property
    def _slope(self) -> float:
        """Share of unclipped records; almost 0 if noise hides it."""
        look = self.look
        hidden = look.inside < _LEAST_COUNT * look.inside_noise
        return 1e-6 if hidden else min(1.0, look.inside / self.n_records)

    @property
    def _square(self) -> float:
        """Mean of s^2 for the degrees of freedom, at least the deviation of its noise."""
        look, n = self.look, self.n_records
        mean = float(np.clip(1.0 - look.small / n, min(1.0, look.small_noise / n), 1.0))
        return mean * n / max(1, n - self.part.directions.shape[1])

    @property
    def error_std(self) -> float:
        """Root mean square of the clipped residuals at the weights of the look."""
        return self.look.limit * self.part.half * math.sqrt(self._square)

    @cached_property
    def posterior(self) -> LookPosterior:
        """Law of the weights along `directions`, given the look."""
        look, basis = self.look, self.part.directions
        # With these factors, the variance of the score is its slope, as for odds ratios.
        gain = self._slope / look.limit
        factor = gain / self._square
        return look_posterior(
            basis.T @ look.theta,
            factor * (basis.T @ look.score),
            factor * gain * (basis.T @ look.moments @ basis),
            factor * look.score_noise,
            factor * gain * look.moments_noise,
            np.sqrt((basis**2).T @ self.part.prior(self.prior_sd) ** 2),
        )

    @property
    def change_of_predictions(self) -> float:
        """Root mean square change of predictions by the look, over `error_std`.

        Above 0.5, intervals may be too narrow: evaluate again at corrected weights.
        """
        constant = self.part.scaled_constant
        if constant == 0.0:
            return math.nan
        return self.posterior.change_of_margins(constant) * self.part.half / self.error_std

    @cached_property
    def coefficients(self) -> CoefficientIntervals:
        """Table of effects, and the intercept last."""
        words, functions, at = self.part.effects(self.reference or {})
        basis, theta = self.part.directions, self.look.theta
        posterior, rows = self.posterior, functions @ basis
        if self.part.constant > 0.0:  # what the directions leave out, and the middle of the target
            missing = functions[-1] @ (theta - basis @ (basis.T @ theta)) + self.part.origin
            shift = np.append(np.zeros(rows.shape[1] - 1), missing / rows[-1, -1])
            posterior = replace(posterior, theta=posterior.theta + shift)
        tail = 0.5 - 0.5 * self.confidence
        low, high = posterior.quantiles(rows, [tail, 1.0 - tail]).T
        share = self.posterior.prior_share(rows)
        numbers = {"coefficient": rows @ posterior.mean, "low": low, "high": high}
        numbers |= {"p_value": posterior.p_values(rows), "prior_share": share}
        fixed = ~rows.any(axis=1)
        for name, column in numbers.items():
            column[fixed & ~words["is_reference"]] = np.nan
            column[words["is_reference"]] = np.nan if name == "p_value" else 0.0
        weak = (share > MOSTLY_PRIOR) & ~fixed
        numbers["p_value"][weak] = np.nan
        return CoefficientIntervals(
            {**words, **numbers},
            estimate="coefficient",
            confidence=self.confidence,
            target=self.part.target,
            intercept_at=at,
            reason=self._reason(words["name"][weak]),
        )

    def _reason(self, weak: Any) -> str:
        """Return limits of the intervals, and why some have no p-value."""
        found = []
        if self._slope < _HIDDEN:
            found.append(
                "The noise hides how many residuals are within 1.5 times error_sd: declare a larger "
                "error_sd, or use more records."
            )
        if weak.size:
            found.append(
                f"The prior decides, since the noise hides the data: {', '.join(map(str, weak))}."
            )
        if self.change_of_predictions > _LARGEST_CHANGE:
            found.append(
                "The look changes predictions by more than half the size of errors: intervals may "
                "be too narrow. Fit with a larger share of the budget."
            )
        return " ".join(found)

    def to_frame(self) -> Any:
        """Return the table as a pandas frame, one row per effect.

        Returns
        -------
        DataFrame
            Columns "name", "step", "is_reference", "coefficient", "low", "high", "p_value" and
            "prior_share", the posterior variance over the prior variance. "p_value" is NaN for
            references, and where the prior decides.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return self.coefficients.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return the table and the released numbers as plain, JSON-ready values."""
        table = {name: np.asarray(column).tolist() for name, column in self.coefficients.items()}
        return {
            "confidence": self.confidence,
            "coefficients": {
                name: [None if value != value else value for value in column]
                for name, column in table.items()
            },
            "intercept_at": self.coefficients.intercept_at,
            "reason": self.coefficients.reason,
            "error_std": self.error_std,
            "n_records": self.n_records,
            "look": {name: np.asarray(value).tolist() for name, value in vars(self.look).items()},
            "prior_sd": self.prior_sd,
            "privacy_spent": self.privacy_spent_.to_dict(),
        }

    def __repr__(self) -> str:
        return f"RegressionResult: {self.privacy_spent_!r}\n{self.coefficients!r}"

    def _repr_html_(self) -> str:
        return self.coefficients._repr_html_()
