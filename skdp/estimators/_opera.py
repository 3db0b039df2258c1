"""Output perturbation estimators: OPERA logistic regression and smoothed-hinge SVC."""

from __future__ import annotations

from typing import Any

from skdp.choices import Adjacency, Auto, Calibrate, Numerics, Solver, UnitWeighting
from skdp.estimators._base import PrivateModel
from skdp.estimators._calibrated import CalibratedMixin
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._mixins import LogisticMixin, SmoothedHingeMixin
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_epsilon
from skdp.mechanisms.discrete_gaussian import Noise
from skdp.models import LinearModel
from skdp.parameters import check_choice, check_integer, check_real
from skdp.plans.defaults import PublicNumbers, default_output_penalty
from skdp.plans.output_perturbation import OutputPerturbationPlan
from skdp.reporting import PrivacySpent


class OperaModel(PrivateModel):
    """Output perturbation with the analytic Gaussian mechanism, or without a delta."""

    _offers_pure = True

    solver: Any
    max_iter: int
    learning_rate_init: float | None
    numerics: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("solver", self.solver, ("newton", "lbfgs", "gd"))
        check_choice("numerics", self.numerics, ("float", "discrete"))
        check_integer("max_iter", self.max_iter, at_least=1)
        check_real(
            "learning_rate_init", self.learning_rate_init, above=0.0, at_most=1e50, allowed=(None,)
        )

    def _build_plan(self, model: LinearModel, numbers: PublicNumbers) -> OutputPerturbationPlan:
        if self.numerics == "discrete":  # rounding errors grow with the number of rows
            self._refuse_any_number(numbers, "numerics='discrete'")
        penalty = self._choose("alpha", model.units.penalty)
        return OutputPerturbationPlan.build(
            model,
            penalty=default_output_penalty(model, numbers) if penalty is None else penalty,
            adjacency=self.adjacency,
            epsilon=float(numbers.target_epsilon),
            delta=float(self.delta),
            solver=self.solver,
            max_iter=self.max_iter,
            step_size=self._choose("learning_rate_init", model.units.step),
            numerics=self.numerics,
        )

    def _account(self, plan: OutputPerturbationPlan) -> PrivacySpent:
        # The noise is certified for the target; the inverse may round up beyond it.
        # What a table costs beside is in the plan's epsilon.
        achieved, accountant, proof = plan.epsilon, "pld", "docs/proofs/pure.md"
        if plan.delta == 0.0:
            law = "independent Laplace" if plan.grid > 0.0 else "one norm-exponential"
            law = f"{law} vector of scale {plan.sigma:.6g}"
        else:
            multiplier = Noise(plan.sensitivity, plan.sigma, plan.grid).multiplier
            if plan.table is None:
                achieved = min(analytic_gaussian_epsilon(multiplier, plan.delta), achieved)
            accountant, law = "gdp", f"one Gaussian vector of standard deviation {plan.sigma:.6g}"
            proof = "analytic Gaussian mechanism, Balle & Wang 2018, Theorem 8"
        if plan.solver == "gd":
            theorem = f"{plan.max_iter} steps of gradient descent (contraction bound)"
        else:
            theorem = "minimiser to a fixed gradient tolerance (strong convexity bound)"
        norm = "L1" if plan.delta == 0.0 < plan.grid else "L2"
        return self._record(
            plan,
            achieved,
            accountant,
            f"output perturbation: {theorem}, {norm} sensitivity {plan.sensitivity:.6g}, {law} "
            f"(scaled units{self._about_grid(plan)}; {proof})",
        )


class OperaLogisticRegression(CalibratedMixin, ClassWeightMixin, LogisticMixin, OperaModel):
    r"""Logistic regression with output perturbation (OPERA).

    Minimises ``mean(log-loss) + alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` and
    adds one vector of Gaussian noise to all coefficients and intercepts together. More than two
    classes are fitted by softmax regression and released as one vector.

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
        Public weight of each label, as ``{label: weight}``. The largest multiplies every bound on
        one record, and so the noise. ``"balanced"`` takes ``1 / (n_classes * prevalence)``.
    prevalence : dict, "private" or None, default=None
        Share of each label for ``"balanced"``: declared, as ``{label: share}``, or ``"private"``
        for a noisy count inside the fit, which takes 2 % of its squared mu (5 % of epsilon without
        a delta). The largest weight is 1 then. See ``docs/rare_outcomes.md``.
    alpha : float or "auto", default="auto"
        L2 penalty on all weights, the intercept included. ``"auto"`` chooses it from n, epsilon,
        delta, adjacency and `data_norm`. 0 needs ``solver="gd"``.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`.
    solver : {"newton", "lbfgs", "gd"}, default="newton"
        ``"newton"`` and ``"lbfgs"`` solve to a fixed gradient tolerance on every data set;
        ``"gd"`` is the paper's `max_iter` steps of gradient descent from zero.
    max_iter : int, default=100
        Number of steps of ``"gd"``; for the others a limit on the fast phase, after which a
        slower method with a guarantee takes over.
    learning_rate_init : float or None, default=None
        Step of ``"gd"`` on the mean loss; None takes the inverse smoothness.
    numerics : {"float", "discrete"}, default="float"
        ``"discrete"`` rounds the weights to a grid and adds discrete Gaussian noise, with delta=0
        discrete Laplace noise, drawn exactly; the guarantee then does not take doubles for real
        numbers. See ``docs/security.md``.
    calibrate : {"auto", "private"} or None, default="auto"
        Whether probabilities are set right by an intercept and a slope of log odds, of several
        classes by the slope alone. ``"private"`` reads them off a noisy histogram of scores by
        label that takes a twentieth of the budget; ``"auto"`` does where n is large enough for
        epsilon; None never does. See ``docs/probabilities.md``.
    unit_weighting : {"mean", "random-row", "sum"}, default="mean"
        What rows of one id in ``groups=`` count: together as one row, one of them alone, or each as
        one up to `max_unit_rows`, by which all noise grows.
    max_unit_rows : int or None, default=None
        Public bound on rows of each id. ``"mean"`` takes no more, drawn at random, or all without
        one, which ``numerics="discrete"`` and networks do not allow. ``"sum"`` needs it: of a unit
        with more rows each counts less.
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
    calibration_ : tuple of float
        Intercept and slope that were applied to the scores; (0, 1) where none were.
    privacy_spent_ : PrivacySpent
        The guarantee, its mechanism and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if `X` had any.

    See Also
    --------
    GrpuaLogisticRegression : Gradient perturbation.
    DPSGDClassifier : Clipped noisy gradients.

    Notes
    -----
    Under replace-one the sensitivity is ``(G + 2 n tau) / (n alpha)`` with G the largest
    distance of two records' gradients and tau the solver's fixed tolerance: :ref:`Theorem 1 of
    output perturbation <output-perturbation-1>`; of the whole fit, :ref:`Theorem 8
    <output-perturbation-8>`.

    References
    ----------
    Ding et al., "Private Empirical Risk Minimization with Analytic Gaussian Mechanism for
    Healthcare System", Algorithm 1 (with a smaller, newly proved sensitivity). Balle & Wang
    (2018), "Improving the Gaussian Mechanism for Differential Privacy", Theorem 8.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import OperaLogisticRegression
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> clf = OperaLogisticRegression(epsilon=1.0, delta=1e-5, data_norm=10.0).fit(X, y)
    >>> epsilon, delta = clf.privacy_spent_
    >>> epsilon <= 1.0
    True
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
        fit_intercept: bool = True,
        intercept_scaling: float | Auto = "auto",
        solver: Solver = "newton",
        max_iter: int = 100,
        learning_rate_init: float | None = None,
        numerics: Numerics = "float",
        calibrate: Calibrate | None = "auto",
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
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.max_iter = max_iter
        self.learning_rate_init = learning_rate_init
        self.numerics = numerics
        self.calibrate = calibrate
        self.unit_weighting = unit_weighting
        self.max_unit_rows = max_unit_rows
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose


class OperaSVC(ClassWeightMixin, SmoothedHingeMixin, OperaModel):
    r"""Linear support vector classifier with output perturbation (OPERA).

    Minimises ``mean(H(margin)) + alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)``
    where H is the hinge loss with its kink smoothed over ``1 +- half_width``, and adds one vector
    of Gaussian noise. More than two classes are fitted one against the rest and released as one
    vector, whose joint sensitivity is ``sqrt(K)`` times the binary one.

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
        L2 penalty on all weights, the intercept included. See `OperaLogisticRegression`.
    half_width : float, default=0.5
        Half-width h of the smoothed kink; the loss is ``1/(2h)``-smooth in the margin.
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
        ``"discrete"`` rounds the weights to a grid and adds discrete Gaussian noise, with delta=0
        discrete Laplace noise, drawn exactly; the guarantee then does not take doubles for real
        numbers. See ``docs/security.md``.
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
    Ding et al., "Private Empirical Risk Minimization with Analytic Gaussian Mechanism for
    Healthcare System", Algorithm 1 and section V-C. Balle & Wang (2018), Theorem 8. Proof:
    :ref:`Theorem 8 of output perturbation <output-perturbation-8>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import OperaSVC
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> OperaSVC(epsilon=2.0, delta=1e-5, data_norm=10.0).fit(X, y).classes_
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
        self.adjacency = adjacency
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.prevalence = prevalence
        self.alpha = alpha
        self.half_width = half_width
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
