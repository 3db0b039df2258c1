"""Differentially private stochastic gradient descent for numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from skdp.choices import (
    Adjacency,
    Auto,
    LearningRate,
    Lots,
    RegressionLoss,
    StepSolver,
    UnitWeighting,
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
from skdp.parameters import check_choice, check_real
from skdp.reporting import PrivacySpent

# Default width of the quantile's kink, as a share of the half of the target's bounds.
_QUANTILE_WIDTH = 0.05
_LOSSES = ("squared_error", "huber", "pseudo_huber", "quantile", "poisson")


class DPSGDRegressor(LossRegressorMixin, DPSGDModel):
    r"""Linear regression of means, medians, quantiles or counts, trained by DP-SGD.

    In each step, true Poisson lots are drawn, every record's gradient is clipped to
    `max_grad_norm`, Gaussian noise is added to the sum, and the sum is divided by the public
    expected lot size.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        Privacy parameter of one fit, positive. With `noise_multiplier` given it is a ceiling: a fit
        that would spend more is refused before rows are used; None sets no ceiling.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n.
    loss : str, default="squared_error"
        What is minimised. ``"squared_error"`` is the square of residuals, whose slope stays what it
        is where scores leave `target_bounds`, as predictions do; ``"huber"`` and
        ``"pseudo_huber"`` go on as straight lines beyond `width`; ``"quantile"`` is the pinball
        loss of `quantile`; ``"poisson"`` is the deviance of counts whose logarithm is linear, cut
        where rates exceed the upper bound.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target, which must be given. Targets beyond them are
        clipped, and so are predictions. With
        ``loss="poisson"`` the lower one is at least 0.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise over `max_grad_norm`. None calibrates it to
        (epsilon, delta).
    adjacency : {"replace-one", "add-remove"}, default="add-remove"
        Neighbouring tables: one row replaced, or one added or removed.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Longer rows are scaled down to it. None takes
        1.0, and `fit` warns unless the rows come from a step of skdp that bounds them by that. It
        sets the scale of the other defaults; the guarantee rests on `max_grad_norm`.
    width : float or "auto", default="auto"
        Of ``"huber"`` and ``"pseudo_huber"`` the residual, in units of the target, from which the
        slope stays about the same; of ``"quantile"`` the range of residuals over which its kink is
        smoothed. ``"auto"`` takes an eighth of ``high - low``, of ``"quantile"`` a fortieth.
    quantile : float, default=0.5
        Level of ``loss="quantile"``, between 0 and 1.
    alpha : float or "auto", default="auto"
        L2 penalty on all weights, the intercept included. It is ``alpha / 2 * (|coef|^2 +
        (intercept / intercept_scaling)^2)`` beside the mean loss, with the target in units of half
        its range. ``"auto"`` chooses it from n, epsilon, delta, adjacency and `data_norm`.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`.
    max_grad_norm : float or "auto", default="auto"
        Norm to which each record's gradient is clipped, in units of the loss per weight, with the
        target in units of half its range.
    batch_size : int or "auto", default="auto"
        Expected lot size, at most n; n means that every step reads all rows.
    sampling : {"poisson", "allocation"}, default="poisson"
        How lots are drawn; see `DPSGDClassifier`.
    max_iter : int or "auto", default="auto"
        Number of steps (lots).
    solver : {"sgd", "adam"}, default="sgd"
        Update rule.
    momentum : float or "auto", default="auto"
        Heavy-ball coefficient of ``"sgd"``, in [0, 1).
    beta_1, beta_2 : float, default=0.9, 0.999
        Decay of the moments of ``"adam"``, in [0, 1).
    learning_rate : {"constant", "linear", "cosine"}, default="constant"
        How step sizes decay; see `DPSGDClassifier`.
    learning_rate_init : float or None, default=None
        First step size on the mean loss; None follows the noise level. For ``"adam"`` it is in
        units of the weights, and None takes ``0.2 / data_norm``.
    learning_rate_final : float, default=0.1
        Last step size as a share of the first, where it decays, in (0, 1].
    decay_share : float, default=0.5
        Share of the steps over which the step size decays, in (0, 1].
    average : bool, float or "ema", default=True
        Share of the last iterates that are averaged; see `DPSGDClassifier`.
    physical_batch_size : int or None, default=None
        At most so many rows, or 288, are handled at once; it bounds memory, not the lots.
    unit_weighting : {"mean", "random-row", "sum"}, default="mean"
        What rows of one id in ``groups=`` count; see `OperaLogisticRegression`.
    max_unit_rows : int or None, default=None
        Public bound on rows of each id; see `OperaLogisticRegression`.
    accountant : BudgetAccountant or None, default=None
        Budget to charge before rows are used. None charges that of the ``with`` block in which it
        is made or fitted; without one the fit is not counted, or refused where `set_config`
        requires a budget.
    random_state : int, RandomState or None, default=None
        None draws all randomness from a cryptographic stream keyed by the operating system. A seed
        is for tests: the guarantee does not hold against whoever knows it.
    verbose : int, default=0
        If positive, print what the fit will spend.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Private coefficients; with ``loss="poisson"`` of the logarithm of the rate.
    intercept_ : float
        Private intercept, likewise.
    n_iter_ : int
        Number of steps, from public numbers.
    noise_multiplier_ : float
        Noise over the clipping norm; from public numbers.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if `X` had any.

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

    intercept_: float  # type: ignore[assignment]

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        *,
        loss: RegressionLoss = "squared_error",
        target_bounds: Sequence[float] | None = None,
        noise_multiplier: float | None = None,
        adjacency: Adjacency = "add-remove",
        data_norm: float | None = None,
        width: float | Auto = "auto",
        quantile: float = 0.5,
        alpha: float | Auto = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float | Auto = "auto",
        max_grad_norm: float | Auto = "auto",
        batch_size: int | Auto = "auto",
        sampling: Lots = "poisson",
        max_iter: int | Auto = "auto",
        solver: StepSolver = "sgd",
        momentum: float | Auto = "auto",
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        learning_rate: LearningRate = "constant",
        learning_rate_init: float | None = None,
        learning_rate_final: float = 0.1,
        decay_share: float = 0.5,
        average: bool | float | str = True,
        physical_batch_size: int | None = None,
        unit_weighting: UnitWeighting = "mean",
        max_unit_rows: int | None = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.target_bounds = target_bounds
        self.noise_multiplier = noise_multiplier
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.width = width
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_grad_norm = max_grad_norm
        self.batch_size = batch_size
        self.sampling = sampling
        self.max_iter = max_iter
        self.solver = solver
        self.momentum = momentum
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.learning_rate_final = learning_rate_final
        self.decay_share = decay_share
        self.average = average
        self.physical_batch_size = physical_batch_size
        self.unit_weighting = unit_weighting
        self.max_unit_rows = max_unit_rows
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

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

    def _publish(self, plan: Any, table: Any, released: Any, spent: PrivacySpent) -> None:
        super()._publish(plan, table, released, spent)
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
