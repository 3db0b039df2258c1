"""Robust linear regression by output and gradient perturbation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skdp.choices import (
    Adjacency,
    Auto,
    NoiseCalibration,
    Numerics,
    Sampling,
    Solver,
    StepRule,
    UnitWeighting,
)
from skdp.estimators._noisy_gradient import GrpuaModel
from skdp.estimators._opera import OperaModel
from skdp.estimators._regressors import HuberMixin


class OperaHuberRegressor(HuberMixin, OperaModel):
    r"""Linear regression with the Huber loss and output perturbation (OPERA).

    Minimises the mean Huber loss with a penalty and adds one vector of Gaussian noise. That noise
    is the same in every direction; `ObjectivePerturbationHuberRegressor` mostly needs less.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of one fit, positive.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n. 0 takes norm-exponential
        noise instead of Gaussian noise, which is more in many dimensions: see ``docs/pure.md``.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target, which must be given. Targets beyond them are
        clipped, and so are predictions.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed. What is removed contributes
        nothing, while the public n stays the divisor.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Longer rows are scaled down to it. None takes
        1.0, and `fit` warns unless the rows come from a step of skdp that bounds them by that.
    width : float or "auto", default="auto"
        Residual, in units of the target, beyond which the loss goes on as a straight line. The
        noise of the weights grows with it; one and a half to two standard deviations of what
        remains unexplained is usual, as far as that is known without the table. ``"auto"`` takes an
        eighth of ``high - low``.
    alpha : float or "auto", default="auto"
        L2 penalty on all weights, the intercept included. It is ``alpha / 2 * (|coef|^2 +
        (intercept / intercept_scaling)^2)`` beside the mean loss, with the target in units of half
        its range. ``"auto"`` chooses it from n, epsilon, delta, adjacency and `data_norm`.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`.
    solver : {"newton", "lbfgs", "gd"}, default="newton"
        See `OperaLogisticRegression`.
    max_iter : int, default=100
        See `OperaLogisticRegression`.
    learning_rate_init : float or None, default=None
        Step of ``"gd"`` on the mean loss; None takes the inverse smoothness.
    numerics : {"float", "discrete"}, default="float"
        ``"discrete"`` rounds the weights to a grid and adds discrete Gaussian noise, drawn exactly;
        see `OperaLogisticRegression`.
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
        Private coefficients.
    intercept_ : float
        Private intercept.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if `X` had any.

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

    intercept_: float  # type: ignore[assignment]

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: Sequence[float] | None = None,
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        width: float | Auto = "auto",
        alpha: float | Auto = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float | Auto = "auto",
        solver: Solver = "newton",
        max_iter: int = 100,
        learning_rate_init: float | None = None,
        numerics: Numerics = "float",
        unit_weighting: UnitWeighting = "mean",
        max_unit_rows: int | None = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.width = width
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.max_iter = max_iter
        self.learning_rate_init = learning_rate_init
        self.numerics = numerics
        self.unit_weighting = unit_weighting
        self.max_unit_rows = max_unit_rows
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose


class GrpuaHuberRegressor(HuberMixin, GrpuaModel):
    r"""Linear regression with the Huber loss and gradient perturbation (GRPUA, repaired).

    Runs gradient descent on the mean Huber loss with a penalty, with Gaussian noise on every step's
    sum of gradients, which the loss bounds.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of one fit, positive.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target, which must be given. Targets beyond them are
        clipped, and so are predictions.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Longer rows are scaled down to it. None takes
        1.0, and `fit` warns unless the rows come from a step of skdp that bounds them by that.
    width : float or "auto", default="auto"
        Residual, in units of the target, beyond which the loss goes on as a straight line. The
        noise of the weights grows with it; one and a half to two standard deviations of what
        remains unexplained is usual, as far as that is known without the table. ``"auto"`` takes an
        eighth of ``high - low``.
    alpha : float or "auto", default="auto"
        L2 penalty on all weights, the intercept included. It is ``alpha / 2 * (|coef|^2 +
        (intercept / intercept_scaling)^2)`` beside the mean loss, with the target in units of half
        its range. ``"auto"`` chooses it from n, epsilon, delta, adjacency and `data_norm`.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`.
    batch_size : int or "auto", default="auto"
        Expected lot size, at most n; n means that every step reads all rows.
    max_iter : int or "auto", default="auto"
        Number of steps.
    learning_rate : {"constant", "strongly-convex", "convex"}, default="constant"
        Rule of step sizes; see `GrpuaLogisticRegression`.
    learning_rate_init : float or None, default=None
        Step of ``"constant"`` on the mean loss; None follows the noise level.
    radius : float or None, default=None
        Radius of a ball onto which weights, in units of half the target's range, are projected.
    average : bool or float, default=True
        Share of the last iterates that are averaged; True takes a default share, False releases
        the last iterate.
    sampling : {"poisson", "uniform"}, default="poisson"
        How lots are drawn: each row independently, or subsets of fixed size.
    calibration : {"pld", "composition", "hidden-state"}, default="pld"
        How noise is calibrated; see `GrpuaLogisticRegression`.
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
        Private coefficients.
    intercept_ : float
        Private intercept.
    n_iter_ : int
        Number of steps, from public numbers.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if `X` had any.

    See Also
    --------
    DPSGDRegressor : Clipped noisy gradients, of other losses too.

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

    intercept_: float  # type: ignore[assignment]

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: Sequence[float] | None = None,
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        width: float | Auto = "auto",
        alpha: float | Auto = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float | Auto = "auto",
        batch_size: int | Auto = "auto",
        max_iter: int | Auto = "auto",
        learning_rate: StepRule = "constant",
        learning_rate_init: float | None = None,
        radius: float | None = None,
        average: bool | float = True,
        sampling: Sampling = "poisson",
        calibration: NoiseCalibration = "pld",
        physical_batch_size: int | None = None,
        unit_weighting: UnitWeighting = "mean",
        max_unit_rows: int | None = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.width = width
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.radius = radius
        self.average = average
        self.sampling = sampling
        self.calibration = calibration
        self.physical_batch_size = physical_batch_size
        self.unit_weighting = unit_weighting
        self.max_unit_rows = max_unit_rows
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
