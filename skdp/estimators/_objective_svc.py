"""Objective perturbation of the smoothed hinge: its SVC."""

from __future__ import annotations

from typing import Any

from skdp.choices import Adjacency, Auto, Numerics, SmoothSolver, UnitWeighting
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._mixins import SmoothedHingeMixin
from skdp.estimators._objective import ObjectiveModel


class ObjectivePerturbationSVC(ClassWeightMixin, SmoothedHingeMixin, ObjectiveModel):
    r"""Linear support vector classifier with objective perturbation.

    Minimises ``mean(H(margin)) + alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` plus
    a random linear function of the coefficients, where H is the hinge loss with its kink smoothed
    over ``1 +- half_width``, and releases the minimiser with a little more noise. More than two
    classes are fitted one against the rest and accounted for together.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy parameter of one fit, positive.
    delta : float, default=1e-6
        Privacy parameter of one fit, in (0, 1); keep it well below 1/n. 0 takes norm-exponential
        noise instead of Gaussian noise, which is more in many dimensions: see ``docs/pure.md``.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring tables: one row replaced, or one added or removed. What is removed contributes
        nothing, while the public n stays the divisor.
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
        L2 penalty on all weights, the intercept included. See
        `ObjectivePerturbationLogisticRegression`.
    half_width : float, default=0.5
        Half-width h of the smoothed kink; the loss is ``1/(2h)``-smooth in the margin. A wider kink
        needs less penalty.
    max_grad_norm : float, "auto" or None, default="auto"
        Norm to which each record's gradient is clipped; see
        `ObjectivePerturbationLogisticRegression`. ``"auto"`` does not clip: the hinge is a clipped
        loss already.
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
        the guarantee then does not take doubles for real numbers. See ``docs/security.md``. Not
        with delta=0.
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
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if `X` had any.

    References
    ----------
    Chaudhuri, Monteleoni & Sarwate (2011). Proofs: :ref:`Theorems 2, 3, 5 and 6 of objective
    perturbation <objective-perturbation-2>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import ObjectivePerturbationSVC
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> ObjectivePerturbationSVC(epsilon=2.0, delta=1e-5, data_norm=10.0).fit(X, y).classes_
    array([0, 1])
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
        max_grad_norm: float | Auto | None = "auto",
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
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.prevalence = prevalence
        self.alpha = alpha
        self.half_width = half_width
        self.max_grad_norm = max_grad_norm
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
