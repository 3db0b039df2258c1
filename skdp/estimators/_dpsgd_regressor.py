"""Differentially private stochastic gradient descent for numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from skdp.choices import (
    Auto,
    RegressionLoss,
)
from skdp.estimators._dpsgd import DPSGDModel
from skdp.estimators._regressors import LossRegressorMixin, scale_of
from skdp.losses import (
    ClippedSquaredLoss,
    HuberLoss,
    PoissonLoss,
    PseudoHuberLoss,
    QuantileLoss,
)
from skdp.losses.base import Loss
from skdp.parameters import check_choice, check_real, parameter, released
from skdp.reporting.privacy_spent import PrivacySpent

# Default width of the quantile's kink, as a share of the half of the target's bounds.
_QUANTILE_WIDTH = 0.05
_LOSSES = ("squared_error", "huber", "pseudo_huber", "quantile", "poisson")


class DPSGDRegressor(LossRegressorMixin, DPSGDModel):
    r"""Linear regression of means, medians, quantiles or counts, trained by DP-SGD.

    In each step, true Poisson lots are drawn, every record's gradient is clipped to
    `max_grad_norm`, Gaussian noise is added to the sum, and the sum is divided by the public
    expected lot size.

    See Also
    --------
    PrivateRidge : Least squares with intervals.
    ObjectivePerturbationHuberRegressor : One minimisation, little to tune.

    Notes
    -----
    An exposure is not offered: where it differs between rows it is a private column. Divide counts
    by a public length of observation, or give its logarithm as a column.

    References
    ----------
    Abadi et al. (2016), "Deep Learning with Differential Privacy", Algorithm 1. Koenker & Bassett
    (1978), "Regression Quantiles". Proofs: :ref:`Theorems 4 and 5 of DP-SGD <dpsgd-4>`; of the
    losses, :ref:`Theorem 1 of regression losses <regression-losses-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSGDRegressor
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0]
    >>> model = DPSGDRegressor(epsilon=1.0, target_bounds=(0.0, 6.0), data_norm=1.0)
    >>> bool(model.fit(X, y).score(X, y) > .9)
    True
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "target_bounds": 'With ``loss="poisson"`` the lower one is at least 0.',
        "max_grad_norm": "The target is in units of half its range.",
        "alpha": "It is ``alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` beside the "
        "mean loss, with the target in units of half its range.",
    }

    loss: RegressionLoss = parameter(
        "str",
        """What is minimised. ``"squared_error"`` is the square of residuals, whose slope stays
        what it is where scores leave `target_bounds`, as predictions do; ``"huber"`` and
        ``"pseudo_huber"`` go on as straight lines beyond `width`; ``"quantile"`` is the pinball
        loss of `quantile`; ``"poisson"`` is the deviance of counts whose logarithm is linear,
        cut where rates exceed the upper bound.""",
        default="squared_error",
    )
    width: float | Auto = parameter(
        'float or "auto"',
        """Of ``"huber"`` and ``"pseudo_huber"`` the residual, in units of the target, from which
        the slope stays about the same; of ``"quantile"`` the range of residuals over which its
        kink is smoothed. ``"auto"`` takes an eighth of ``high - low``, of ``"quantile"`` a
        fortieth.""",
        default="auto",
    )
    quantile: float = parameter(
        "float", 'Level of ``loss="quantile"``, between 0 and 1.', default=0.5
    )
    coef_: np.ndarray = released(
        "ndarray of shape (n_features,)",
        'Private coefficients; with ``loss="poisson"`` of the logarithm of the rate.',
    )
    intercept_: float = released("float", "Private intercept, likewise.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, _LOSSES)
        check_real("quantile", self.quantile, above=0.0, below=1.0)
        if self.max_grad_norm == "adaptive":
            raise ValueError("max_grad_norm='adaptive' is of networks only.")
        if self.loss == "poisson" and not 0.0 <= self._bounds[0]:
            raise ValueError(
                f"loss='poisson' is of counts: target_bounds must not be negative, got "
                f"{self.target_bounds!r}."
            )

    def _part_loss(self) -> Loss:
        if self.loss == "squared_error":
            return ClippedSquaredLoss()
        if self.loss == "poisson":
            return PoissonLoss()
        if self.loss == "quantile":
            width = _QUANTILE_WIDTH if self.width == "auto" else self._width
            return QuantileLoss(width, float(self.quantile))
        return (HuberLoss if self.loss == "huber" else PseudoHuberLoss)(self._width)

    @property
    def _target_scale(self) -> tuple[float, float]:
        # Counts are told in halves of the largest.
        return scale_of((0.0, self._bounds[1]) if self.loss == "poisson" else self._bounds)

    @property
    def _score_scale(self) -> tuple[float, float]:
        middle, half = self._target_scale
        return (math.log(half), 1.0) if self.loss == "poisson" else (middle, half)

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        super()._publish(plan, records, released, spent)
        self._fitted_loss = self.loss

    def _scores(self, X: Any) -> np.ndarray:
        scores = super()._scores(X)
        if self._fitted_loss == "poisson":  # beyond, predictions are clipped anyway
            return np.exp(np.minimum(scores, 709.0))
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags
