"""What private regressors share, and robust regression by three methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import (
    Auto,
    ResidualLoss,
    check_bounds,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.base.scikit_learn import RegressorMixin
from skdp.estimators._base import PrivateModel
from skdp.estimators._noisy_gradient import GrpuaLinearModel
from skdp.estimators._objective import ObjectiveModel
from skdp.estimators._opera import OperaModel
from skdp.estimators.labels import read_numbers
from skdp.losses import HuberLoss, PoissonLoss
from skdp.losses.base import Loss
from skdp.losses.real import RealLoss
from skdp.reporting.leaks import WarnsOfScores
from skdp.tables.places import row_by_row

# Default width of a loss, as a share of the half of the target's bounds.
_WIDTH = 0.25


class PrivateRegressorMixin(WarnsOfScores, RegressorMixin, PrivateModel):
    """Targets and predictions of regressors; comes before their base."""

    target_bounds: Sequence[float] | None = parameter(
        "tuple of float",
        """Public bounds (low, high) of the target; required. Targets and predictions outside them
        are clipped.""",
        default=None,
    )
    coef_: np.ndarray = released("ndarray of shape (n_features,)", "Private coefficients.")
    intercept_: float = released("float", "Private intercept.")

    _fitted_bounds: tuple[float, float] = released()

    def privacy_plan(self, n_samples: int, n_features: int, groups: bool = False) -> PrivacySpent:
        """Return the privacy cost of `fit` on a table of a given public shape.

        Nothing is charged and no data are needed: the noise of a fit depends only on the
        parameters and on public numbers.

        Parameters
        ----------
        n_samples : int
            Number of rows, or of ids with `groups`.
        n_features : int
            Number of columns.
        groups : bool, default=False
            Whether `fit` will receive ``groups=``.

        Returns
        -------
        PrivacySpent
            The record that the fit would store in `privacy_spent_`.
        """
        self._check_parameters()
        n_samples = check_integer("n_samples", n_samples, at_least=1)
        n_features = check_integer("n_features", n_features, at_least=1)
        return self._account(self._plan_shape((n_samples, n_features), 1, groups))

    @row_by_row
    def predict(self, X: Any) -> np.ndarray:
        """Return predicted values, within `target_bounds`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted values.
        """
        return np.clip(self._scores(X), *self._fitted_bounds)

    def _words_of_score(self, target: str) -> str:
        """Return the words for a linear score, given words for the target."""
        return target

    def _as_sklearn(self) -> Any:
        from skdp.estimators._mixins import regressor_twin

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
        """Return the target that becomes 0, and the length that becomes 1."""
        return scale_of(self._bounds)

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        self._fitted_bounds = self._bounds

    def _score_rows(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_)[:, np.newaxis] + self.intercept_


class LossRegressorMixin(PrivateRegressorMixin):
    """Regressors that minimise a mean loss for targets scaled to [-1, 1]."""

    width: float | Auto = parameter(
        'float or "auto"',
        """Residual, in units of the target, beyond which the loss continues as a straight line.
        The noise of the weights grows with it. A usual choice is 1.5 to 2 standard deviations of
        the residuals, estimated without the table. ``"auto"`` uses an eighth of ``high - low``.""",
        default="auto",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("width", self.width, above=0.0, allowed=("auto",))
        if self.width != "auto":
            remedy = "It must be comparable to half the range of target_bounds."
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
        """Return the shift and the factor that convert scores to the user's units."""
        return self._target_scale


class HuberMixin(LossRegressorMixin):
    """Regressors that minimise the Huber loss, or a custom one."""

    loss: ResidualLoss | RealLoss = parameter(
        '"huber" or object',
        """Loss of a residual. ``"huber"`` has the given `width`. Or an object of a class of
        `skdp.losses`, such as ``PseudoHuberLoss(0.25)``, or of a custom class that satisfies the
        conditions of the theorem; it receives targets scaled to [-1, 1].""",
        default="huber",
    )

    _added_texts: ClassVar[dict[str, str]] = {
        "alpha": "``alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` is added to the "
        "mean loss, with the target in units of half its range.",
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_loss(RealLoss, "huber")
        refuse_rates(self._given_loss)

    def _part_loss(self) -> Loss:
        return self._given_loss or HuberLoss(self._width)


def refuse_rates(loss: Loss | None) -> None:
    """Refuse a loss with logarithms as scores: predictions would not be converted."""
    if isinstance(loss, PoissonLoss):
        raise ValueError(
            "loss=PoissonLoss(...) is not supported, since its scores are logarithms. Use "
            "DPSGDRegressor(loss='poisson')."
        )


def scale_of(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the middle and half the length of a range."""
    low, high = bounds
    return low + (high - low) / 2.0, (high - low) / 2.0


class OperaHuberRegressor(HuberMixin, OperaModel):
    r"""Linear regression with the Huber loss and output perturbation (OPERA).

    Minimises the mean Huber loss with a penalty and adds one vector of Gaussian noise. The noise is
    the same in every direction; `ObjectivePerturbationHuberRegressor` usually needs less.

    See Also
    --------
    ObjectivePerturbationHuberRegressor : Noise in the objective.
    PrivateRidge : Least squares with intervals.

    References
    ----------
    Huber (1964), "Robust Estimation of a Location Parameter". Proofs: :ref:`Theorem 8 of output
    perturbation <output-perturbation-8>` with the constants of :ref:`Theorem 1 of regression losses
    <regression-losses-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaHuberRegressor
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0]
    >>> model = OperaHuberRegressor(epsilon=10.0, target_bounds=(0.0, 6.0), data_norm=1.0)
    >>> bool(model.fit(X, y).score(X, y) > .9)
    True
    """


class GrpuaHuberRegressor(HuberMixin, GrpuaLinearModel):
    r"""Linear regression with the Huber loss and gradient perturbation (GRPUA, repaired).

    Runs gradient descent on the mean Huber loss with a penalty and adds Gaussian noise to every
    step's sum of gradients. The loss bounds the gradients.

    See Also
    --------
    DPSGDRegressor : Clipped noisy gradients, also for other losses.

    References
    ----------
    Huber (1964), "Robust Estimation of a Location Parameter". Proofs: :ref:`Theorems 1 to 3 of
    gradient perturbation <gradient-perturbation-1>` with the constants of :ref:`Theorem 1 of
    regression losses <regression-losses-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GrpuaHuberRegressor
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0]
    >>> model = GrpuaHuberRegressor(epsilon=1.0, target_bounds=(0.0, 6.0), data_norm=1.0)
    >>> bool(model.fit(X, y).score(X, y) > .9)
    True
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "radius": "Measured in units of half the target's range.",
    }


class ObjectivePerturbationHuberRegressor(HuberMixin, ObjectiveModel):
    r"""Linear regression with the Huber loss and objective perturbation.

    Minimises the mean Huber loss with a penalty plus a random linear function of the coefficients,
    and releases the minimiser with a little more noise. The noise grows with `width`, not with the
    range of the target, and is large only in directions in which the rows carry little information.

    See Also
    --------
    PrivateRidge : Least squares with intervals, and many models from one release.

    Notes
    -----
    Residuals have no known sign. Compared with losses of known sign, noise is 3 % larger at
    (epsilon, delta) = (1, 1e-6), and 13 % larger at (0.1, 1e-3).

    References
    ----------
    Huber (1964), "Robust Estimation of a Location Parameter". Kifer, Smith & Thakurta (2012).
    Proofs: :ref:`Theorems 2 to 6 of objective perturbation <objective-perturbation-2>` with the
    constants of :ref:`Theorem 1 of regression losses <regression-losses-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ObjectivePerturbationHuberRegressor
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0]
    >>> model = ObjectivePerturbationHuberRegressor(target_bounds=(0.0, 6.0), data_norm=1.0)
    >>> bool(model.fit(X, y).score(X, y) > .9)
    True
    """
