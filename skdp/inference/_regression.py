"""Regression coefficients from one look: clipped residuals, and the second moments of rows.

A row z has norm at most 1 with its constant column. Its residual is divided by a limit and clipped
to [-1, 1], which gives s. The row contributes ``s z``, ``z z^T``, ``1 - s^2``, and 1 if it is not
clipped, each times a factor, in one vector. Part III of ``docs/proofs/inference.md`` has proofs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.base.parameters import Adjacency, check_bounds, check_real
from skdp.base.scikit_learn import fitted_model, responds
from skdp.estimators.labels import read_numbers
from skdp.inference._models import LinearPart, linear_end, read_columns, refuse_nonlinear
from skdp.inference._release import Bounds, Look, LookPlan
from skdp.inference._result import InferenceResult
from skdp.plans.second_moments import unpack_matrix
from skdp.solvers import Rows

Array = NDArray[np.float64]


# Factors of moments and of 1 - s^2, and the norm of a record; the factor of unclipped rows.
INSIDE = 0.125
ERROR_BOUNDS: dict[Adjacency, Bounds] = {
    "add-remove": Bounds(1.0 / 3.0, 1.0, math.sqrt(1.0 + 1.0 / 9.0 + INSIDE**2)),
    "replace-one": Bounds(0.7071, 0.7071, math.sqrt(4.0 + INSIDE**2)),
}

# Residuals count up to this number of standard deviations.
_REACH = 1.5
# Scaled targets beyond are the same: their residuals are clipped.
_LARGEST_TARGET = 1e200
# Below this number of deviations of its noise, the share of unclipped records is unknown.
_LEAST_COUNT, _UNKNOWN = 6.0, 1e-6


@dataclass(frozen=True)
class ErrorPlan(LookPlan):
    """A look at a regression, in one stage."""

    limit: float = 1.0  # of residuals, over half the range of the target
    n_records: int = 1

    stages: ClassVar[tuple[float, ...]] = (1.0,)  # moments do not depend on weights
    bounds_of: ClassVar[Mapping[Any, Bounds]] = {
        (relation, "model"): bounds for relation, bounds in ERROR_BOUNDS.items()
    }

    def describe(self) -> str:
        """Name sensitivity, noise and theorem, for the statement."""
        return (
            f"sums of residuals, clipped at the public {self.limit:.6g} half ranges of the target, "
            "times columns at public weights, of products of columns, and of squares and numbers "
            f"of residuals, in one release ({self.sums.words}; scaled units; "
            "docs/proofs/inference.md)"
        )

    @property
    def factors(self) -> tuple[float, ...]:
        """Factors of moments, of no squared scores, of 1 - s^2 and of unclipped rows."""
        bounds = ERROR_BOUNDS[self.adjacency]
        return bounds.information, 0.0, bounds.squares, INSIDE

    def weigh(self, product: Array, target: Array, share: Any) -> tuple[Array, Array, Array]:
        """Return weights of rows in the score and in the moments, and the sums of two numbers."""
        residual = np.clip((target - product) / self.limit, -1.0, 1.0)
        share = np.broadcast_to(share, residual.shape)
        counts = np.array([share @ (1.0 - residual**2), share @ (np.abs(residual) < 1.0)])
        return residual * share, share, counts

    def _taken_apart(self, noisy: Array, theta: Array, noise: float) -> Look:
        """Return score and moments with factors that make the former's variance its slope."""
        bounds, n, width = ERROR_BOUNDS[self.adjacency], self.n_records, theta.size
        small, inside = noisy[-2:] / (bounds.squares, INSIDE) / n
        hidden = inside < _LEAST_COUNT * noise / INSIDE / n
        slope = _UNKNOWN if hidden else min(1.0, inside)
        square = min(1.0, max(1.0 - small, noise / bounds.squares / n)) * n / max(1, n - width)
        gain = slope / self.limit
        factor = gain / square
        moments = factor * gain / bounds.information
        score = factor * noisy[:width], factor * noise
        matrix = moments * unpack_matrix(noisy[width:-2], width), moments * noise
        size = self.limit * math.sqrt(square)
        return ErrorLook(theta, *score, *matrix, slope=slope, size=size, n_records=n)


@dataclass(frozen=True, eq=False)
class ErrorLook(Look):
    """A look at a regression; score and information are over the variance of residuals."""

    slope: float = 1.0  # share of unclipped records, or almost 0 if noise hides it
    size: float = 1.0  # root mean square of clipped residuals, in half ranges of the target
    n_records: int = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionPart(LinearPart):
    """A linear regressor behind steps that treat each row by itself.

    Coefficients are for targets less `origin`, over half the range of their bounds.
    """

    bounds: tuple[float, float]
    half: float
    origin: float
    limit: float

    @property
    def target(self) -> str:
        """Target with its unit, from the schema."""
        label = getattr(getattr(fitted_model(self.model), "schema", None), "label", None)
        unit = getattr(label, "unit", "")
        named = getattr(label, "name", "") + (f" ({unit})" if unit else "")
        return named or getattr(self.meaning, "target", "")

    @property
    def contrasts(self) -> Array:
        """Coefficients in units of the target, as linear functions of weights in the basis."""
        return self.half * super().contrasts

    @property
    def shift(self) -> Array:
        """Weights of the origin of the target, which estimates are moved by."""
        found = np.zeros(self.basis.shape[1])
        if self.constant > 0.0:
            found[-1] = self.origin / self.contrasts[-1, -1]
        return found

    def encode(self, truth: Any) -> Array:
        """Return scaled targets."""
        with np.errstate(all="ignore"):
            scaled = (read_numbers(truth) - self.origin) / self.half
        return np.clip(scaled, -_LARGEST_TARGET, _LARGEST_TARGET)

    def table(self, rows: Rows, targets: Array, shares: Array) -> Rows:
        """Return rows with targets."""
        return rows.with_targets(targets, "real", shares)


def is_regressor(model: Any) -> bool:
    """Return whether the last step of a model is linear, and predicts no classes."""
    _, linear = linear_end(model)
    return responds(linear, "coef_") and not responds(linear, "classes_")


def read_regression(
    model: Any, data_norm: float | None, target_bounds: Any, error_sd: float | None
) -> RegressionPart:
    """Return the linear part of a fitted regressor, or refuse it."""
    _, linear = linear_end(model)
    name = type(linear).__name__
    coef = np.array(linear.coef_, dtype=np.float64, ndmin=2)
    intercept = np.ravel(linear.intercept_).astype(np.float64)
    if len(coef) != 1:
        raise ValueError(f"{name} has {len(coef)} targets: evaluate one at a time.")
    places = "_fitted_bounds", "target_bounds"
    given = (target_bounds, *(getattr(linear, place, None) for place in places))
    low, high = check_bounds("target_bounds", next((at for at in given if at is not None), None))
    if error_sd is None:
        released = (getattr(linear, at, math.nan) for at in ("residual_std_", "scale_"))
        error_sd = next((at for at in released if 0.0 < at < math.inf), None)
    if error_sd is None:
        raise ValueError(
            f"declare error_sd, a rough standard deviation of the errors: {name} has released none."
        )
    half = high / 2.0 - low / 2.0
    remedy = "It must be comparable to the range of target_bounds."
    limit = _REACH * error_sd / half
    check_real("error_sd / (high - low)", limit, at_least=1e-9, at_most=1e9, remedy=remedy)
    refuse_nonlinear(linear, coef, intercept, ("predict",), low, high)
    columns = read_columns(model, data_norm, coef.shape[1])
    origin = low + half if columns["constant"] > 0.0 else float(intercept[0])
    part = RegressionPart(
        **columns,
        coef=coef[0] / half,
        intercept=float(intercept[0] - origin) / half,
        classes=np.empty(0),
        bounds=(low, high),
        half=half,
        origin=origin,
        limit=limit,
    )
    meaning = getattr(linear, "_meaning", None)  # with lines in place of curves
    return part if meaning is None else replace(part, meaning=meaning)


class RegressionResult(InferenceResult):
    """Coefficients of a linear regression with intervals, from one look.

    As `InferenceResult`, without odds ratios: coefficients are in units of the target.

    Parameters
    ----------
    look, part, prior_deviation, prior_sd, privacy_spent_
        As for `InferenceResult`.

    Notes
    -----
    Estimates are those of the Huber loss: residuals count up to 1.5 times the declared `error_sd`.
    They are those of least squares if errors are symmetric around 0 given the columns. If errors
    do not depend on the columns, this is true for all coefficients except the intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivateLinearRegression
    >>> from skdp.inference import PrivateInference
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0] + rng.normal(0.0, 0.3, 20_000)
    >>> model = PrivateLinearRegression(target_bounds=(0.0, 6.0), data_norm=1.0).fit(X, y)
    >>> table = PrivateInference(epsilon=1.0, error_sd=0.3).evaluate(model, X, y).table(level=0.999)
    >>> bool(1.9 < table["low"][0] < 2.0 < table["high"][0] < 2.1)
    True
    """

    look: ErrorLook
    part: RegressionPart
    _ratio: ClassVar[str] = ""
    _moved: ClassVar[str] = "Predictions change, in sizes of errors,"
    _estimated: ClassVar[str] = "coefficients that fit clipped residuals best"
    _range: ClassVar[str] = "half ranges of the target per half the range of a column"
    _far: ClassVar[float] = 2.0
    _most_curved: ClassVar[float] = math.inf  # the information is that at any weights

    @property
    def _known(self) -> dict[str, Any]:
        """Bounds, size of errors and fixed intercept of the model."""
        part = self.part
        known = {"_fitted_bounds": part.bounds, "scale_": part.limit * part.half / _REACH}
        return known | ({"intercept_": part.origin} if part.constant == 0.0 else {})

    @property
    def advice(self) -> list[str]:
        """Sentences on what limits the intervals, and remedies; empty if nothing does."""
        found = super().advice
        if self.look.slope == _UNKNOWN:
            found.append(
                "The noise hides how many residuals are within 1.5 times error_sd: declare a "
                "larger error_sd, or use more records."
            )
        return found
