"""Robust linear regression by objective perturbation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skdp.choices import Adjacency, Auto, Numerics, SmoothSolver, UnitWeighting
from skdp.estimators._objective import ObjectiveModel
from skdp.estimators._regressors import HuberMixin


class ObjectivePerturbationHuberRegressor(HuberMixin, ObjectiveModel):
    r"""Linear regression with the Huber loss and objective perturbation.

    Minimises the mean Huber loss with a penalty plus a random linear function of the coefficients,
    and releases the minimiser with a little more noise. The noise grows with `width` and not with
    the range of the target, and is large only in directions in which the rows say little.

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
        its range. ``"auto"`` chooses it from n, epsilon, delta, adjacency and `data_norm`. It must
        not be too small for epsilon; the error says how small it may be.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`.
    solver : {"newton", "lbfgs"}, default="newton"
        See `ObjectivePerturbationLogisticRegression`.
    max_iter : int, default=100
        See `ObjectivePerturbationLogisticRegression`.
    numerics : {"float", "discrete"}, default="float"
        ``"discrete"`` rounds the weights to a grid and adds discrete Gaussian noise, drawn exactly;
        see `ObjectivePerturbationLogisticRegression`.
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
    PrivateRidge : Least squares with intervals, many models from one release.

    Notes
    -----
    The sign of a residual is not known, which costs 3 % of noise at (1, 1e-6) and 13 % at
    (.1, 1e-3) over what a loss of known sign needs.

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
        solver: SmoothSolver = "newton",
        max_iter: int = 100,
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
        self.numerics = numerics
        self.unit_weighting = unit_weighting
        self.max_unit_rows = max_unit_rows
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
