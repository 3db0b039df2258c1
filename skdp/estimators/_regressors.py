"""What private regressors have in common: public bounds of the target, and losses of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np

from skdp.choices import Auto
from skdp.estimators._base import PrivateModel
from skdp.estimators.labels import read_numbers
from skdp.losses import HuberLoss
from skdp.parameters import (
    check_bounds,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.reporting.privacy_spent import PrivacySpent
from skdp.sklearn_bases import RegressorMixin
from skdp.tables.places import row_by_row

# Default width of a loss, as a share of the half of the target's bounds.
_WIDTH = 0.25


class PrivateRegressorMixin(RegressorMixin, PrivateModel):
    """Targets of regressors; comes before their base."""

    target_bounds: Sequence[float] | None = parameter(
        "tuple of float",
        """Public bounds (low, high) of the target, which must be given. Targets beyond them are
        clipped, and so are predictions.""",
        default=None,
    )
    coef_: np.ndarray = released("ndarray of shape (n_features,)", "Private coefficients.")
    intercept_: float = released("float", "Private intercept.")

    _fitted_bounds: tuple[float, float] = released()

    def privacy_plan(self, n_samples: int, n_features: int, groups: bool = False) -> PrivacySpent:
        """Return what `fit` would spend on a table of a given public shape.

        Nothing is charged and no data are needed: the noise of a fit depends on the parameters
        and on public numbers alone.

        Parameters
        ----------
        n_samples : int
            Number of rows, or of ids with `groups`.
        n_features : int
            Number of columns that the regressor will see.
        groups : bool, default=False
            Whether `fit` will be given ``groups=``.

        Returns
        -------
        PrivacySpent
            The record that `privacy_spent_` would be.

        Raises
        ------
        ValueError, TypeError
            For bad parameters, as `fit` does.
        """
        self._check_parameters()
        n_samples = check_integer("n_samples", n_samples, at_least=1)
        n_features = check_integer("n_features", n_features, at_least=1)
        return self._account(self._plan_shape((n_samples, n_features), 1, groups))

    @row_by_row
    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted numbers, within `target_bounds`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers.
        """
        return np.clip(self._scores(X), *self._fitted_bounds)

    def _as_sklearn(self) -> Any:
        from skdp.estimators._twins import regressor_twin

        return regressor_twin(self)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_bounds("target_bounds", self.target_bounds)

    @property
    def _bounds(self) -> tuple[float, float]:
        return check_bounds("target_bounds", self.target_bounds)

    def _encode_targets(self, y: np.ndarray) -> tuple[np.ndarray, None]:
        middle, half = self._target_scale
        return np.clip((np.clip(read_numbers(y), *self._bounds) - middle) / half, -1.0, 1.0), None

    def _about_targets(self) -> str:
        low, high = self._bounds
        return f"targets are clipped to the public target_bounds=({low:g}, {high:g})"

    @property
    def _target_scale(self) -> tuple[float, float]:
        """Return the targets that become 0, and 1 above it."""
        return scale_of(self._bounds)

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        self._fitted_bounds = self._bounds

    def _score_rows(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_)[:, np.newaxis] + self.intercept_


class LossRegressorMixin(PrivateRegressorMixin):
    """Regressors that minimise a mean loss of scores beside targets in [-1, 1]."""

    width: float | Auto = parameter(
        'float or "auto"',
        """Residual, in units of the target, beyond which the loss goes on as a straight line.
        The noise of the weights grows with it; one and a half to two standard deviations of what
        remains unexplained is usual, as far as that is known without the table. ``"auto"`` takes
        an eighth of ``high - low``.""",
        default="auto",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("width", self.width, above=0.0, allowed=("auto",))
        if self.width != "auto":
            remedy = "It is comparable to the half of target_bounds."
            share = self._width
            check_real("width / (high - low) * 2", share, at_least=1e-3, at_most=1e3, remedy=remedy)

    @property
    def _width(self) -> float:
        """Width of the loss in scaled units."""
        return _WIDTH if self.width == "auto" else float(self.width) / scale_of(self._bounds)[1]

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        super(PrivateRegressorMixin, self)._publish(plan, records, released, spent)
        super()._publish(plan, records, released, spent)
        middle, half = self._score_scale
        self.coef_ = half * self.coef_[0]
        self.intercept_ = float(middle + half * cast(Any, self.intercept_)[0])
        self._coef_noise_ = self._coef_noise_ * half

    @property
    def _score_scale(self) -> tuple[float, float]:
        """Return what is added to scores, and multiplies them before, in the user's units."""
        return self._target_scale


class HuberMixin(LossRegressorMixin):
    """Regressors that minimise the Huber loss."""

    _added_texts: ClassVar[dict[str, str]] = {
        "alpha": "It is ``alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` beside the "
        "mean loss, with the target in units of half its range.",
    }

    def _part_loss(self) -> HuberLoss:
        return HuberLoss(self._width)


def scale_of(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return middle and half of a range."""
    low, high = bounds
    return low + (high - low) / 2.0, (high - low) / 2.0
