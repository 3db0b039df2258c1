"""Gradient perturbation of the smoothed hinge: GRPUA SVC."""

from __future__ import annotations

from typing import Any

from skdp.choices import Adjacency, Auto, NoiseCalibration, Sampling, StepRule, UnitWeighting
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._mixins import SmoothedHingeMixin
from skdp.estimators._noisy_gradient import GrpuaModel


class GrpuaSVC(ClassWeightMixin, SmoothedHingeMixin, GrpuaModel):
    r"""Linear support vector classifier with gradient perturbation (GRPUA, repaired).

    Runs gradient descent on ``mean(H(margin)) + alpha / 2 * |weights|^2``, where H is the hinge
    loss with its kink smoothed over ``1 +- half_width``, with Gaussian noise on every step's sum
    of gradients. More than two classes are fitted one against the rest in one joint descent,
    whose sensitivity is ``sqrt(K)`` times the binary one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of one fit, positive.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Longer rows are scaled down to it. None takes
        1.0, and `fit` warns unless the rows come from a step of skdp that bounds them by that.
    classes : array-like or None, default=None
        Public label set. None reads it from `y`, which the statement then says.
    class_weight : dict, "balanced" or None, default=None
        Public weights of labels; see `OperaLogisticRegression`.
    prevalence : dict, "private" or None, default=None
        Shares of labels for ``"balanced"``; see `OperaLogisticRegression`.
    alpha : float or "auto", default="auto"
        L2 penalty on all weights, the intercept included.
    half_width : float, default=0.5
        Half-width h of the smoothed kink; the loss is ``1/(2h)``-smooth in the margin.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`.
    batch_size : int or "auto", default="auto"
        Expected lot size; see `GrpuaLogisticRegression`.
    max_iter : int or "auto", default="auto"
        Number of steps; see `GrpuaLogisticRegression`.
    learning_rate : {"constant", "strongly-convex", "convex"}, default="constant"
        Step sizes; see `GrpuaLogisticRegression`.
    learning_rate_init : float or None, default=None
        Constant step on the mean loss; None follows the noise level.
    radius : float or None, default=None
        Radius of the ball that each binary problem's weights are projected onto.
    average : bool or float, default=True
        Share of the last iterates that are averaged.
    sampling : {"poisson", "uniform"}, default="poisson"
        How lots smaller than n are drawn.
    calibration : {"pld", "composition", "hidden-state"}, default="pld"
        How the noise is found; see `GrpuaLogisticRegression`.
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
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_iter_ : int
        Number of steps, from public numbers.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if `X` had any.

    Notes
    -----
    ``calibration="hidden-state"`` charges for the last iterate alone, under the conditions that
    `GrpuaLogisticRegression` lists; the smoothness of the loss is the squared row norm over twice
    `half_width`, so that a narrow kink means short steps.

    References
    ----------
    Ding et al., "Private Empirical Risk Minimization with Analytic Gaussian Mechanism for
    Healthcare System", Algorithm 2 and section V-C, with the noise of
    :ref:`Theorems 1 to 3 of gradient perturbation <gradient-perturbation-1>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import GrpuaSVC
    >>> X, y = make_blobs(500, centers=3, random_state=0)
    >>> GrpuaSVC(epsilon=2.0, delta=1e-5, data_norm=15.0).fit(X, y).coef_.shape
    (3, 2)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        adjacency: Adjacency = "replace-one",
        data_norm: float | None = None,
        classes: Any = None,
        class_weight: Any = None,
        prevalence: Any = None,
        alpha: float | Auto = "auto",
        half_width: float = 0.5,
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
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.prevalence = prevalence
        self.alpha = alpha
        self.half_width = half_width
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
