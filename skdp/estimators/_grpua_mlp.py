"""Gradient perturbation of networks."""

from __future__ import annotations

import math
from typing import Any

from skdp.choices import Activation, Adjacency, Auto, Calibrate, SampledNoiseCalibration, Sampling
from skdp.estimators._calibrated import CalibratedMixin
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._networks import NetworkMixin, layer_sizes
from skdp.estimators._noisy_gradient import GrpuaModel
from skdp.parameters import check_real
from skdp.plans.defaults import DEFAULT_RADIUS, PublicNumbers, default_clip
from skdp.plans.noisy_gradient import NoisyGradientPlan


class GrpuaMLPClassifier(CalibratedMixin, ClassWeightMixin, NetworkMixin, GrpuaModel):
    r"""Network of dense layers trained by gradient perturbation (GRPUA, repaired).

    Each step adds Gaussian noise to the sum of a lot's gradients, which are clipped, or bounded by
    keeping the weights close to where they start. The output is logistic, or softmax for more than
    two classes.

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
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Number of units of each hidden layer, at least one.
    activation : {"relu", "tanh", "identity"}, default="relu"
        Activation of the hidden layers.
    alpha : float or "auto", default="auto"
        L2 penalty on all weights, the intercept included. Of a network it is on their distance
        from the start.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Of a network it is whether layers have biases.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`. Of a network it is that behind every bias, 1 by default.
    max_grad_norm : float, "auto" or None, default="auto"
        Norm to which each record's gradient is clipped; ``"auto"`` follows the noise level. None
        clips none: noise is then for the
        largest gradient at weights inside the ball of `radius`, by a bound that grows quickly with
        radius and depth: that costs accuracy, see ``docs/networks.md``.
    radius : float or None, default=None
        Radius of the ball around the start that weights are projected onto after each step. None
        takes 1 where nothing is clipped, and else does not project.
    coefs_init : list of ndarray of shape (n_inputs, n_units), default=None
        Public weights to start from; see `DPSGDClassifier`.
    intercepts_init : list of ndarray of shape (n_units,), default=None
        Public biases to start from; None takes zeros.
    batch_size : int or "auto", default="auto"
        Expected lot size, at most n; ``"auto"`` takes all rows unless there are very many.
    max_iter : int or "auto", default="auto"
        Number of steps.
    learning_rate_init : float or None, default=None
        Step on the mean loss, with heavy-ball momentum 0.9; None follows the noise level.
    average : bool, float or "ema", default=True
        Share of the last iterates that are averaged; see `DPSGDClassifier`.
    sampling : {"poisson", "uniform"}, default="poisson"
        How lots smaller than n are drawn.
    calibration : {"pld", "composition"}, default="pld"
        How the noise is found; see `GrpuaLogisticRegression`, whose ``"hidden-state"`` takes a
        convex loss.
    physical_batch_size : int or None, default=None
        At most so many rows, or 288, are handled at once; it bounds memory, not the lots.
    calibrate : {"auto", "private"} or None, default="auto"
        Whether probabilities are set right by an intercept and a slope of log odds, of several
        classes by the slope alone. ``"private"`` reads them off a noisy histogram of scores by
        label that takes a twentieth of the budget; ``"auto"`` does where n is large enough for
        epsilon; None never does. See ``docs/probabilities.md``.
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
    coefs_ : list of ndarray of shape (n_inputs, n_units)
        Private weights, layer by layer.
    intercepts_ : list of ndarray of shape (n_units,)
        Private biases.
    activation_, out_activation_ : str
        Activation of the hidden layers and of the output, "logistic" or "softmax".
    n_layers_, n_outputs_ : int
        Number of layers, the columns included, and of outputs.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    calibration_ : tuple of float
        Intercept and slope that were applied to the scores; (0, 1) where none were.
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
    DPSGDClassifier : Networks with schedules, Adam and other ways of clipping.
    GrpuaLogisticRegression : A linear model, whose gradients the loss bounds.

    Notes
    -----
    `alpha`, `max_grad_norm`, `radius`, `learning_rate_init` and `intercept_scaling` are in the
    units of the network, as for `DPSGDClassifier`. What bounds the gradients, clipping or the ball,
    is told among the assumptions of ``privacy_spent_``.

    References
    ----------
    Ding et al., "Private Empirical Risk Minimization with Analytic Gaussian Mechanism for
    Healthcare System", Algorithm 2 and Figure 6, with noise for a proved bound. Proof:
    :ref:`Theorem 4 of networks <networks-4>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import GrpuaMLPClassifier
    >>> X, y = make_blobs(500, centers=3, random_state=0)
    >>> clf = GrpuaMLPClassifier(2.0, 1e-5, data_norm=15.0, hidden_layer_sizes=(8,)).fit(X, y)
    >>> [coef.shape for coef in clf.coefs_]
    [(2, 8), (8, 3)]
    """

    learning_rate = "constant"

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
        hidden_layer_sizes: Any = (100,),
        activation: Activation = "relu",
        alpha: float | Auto = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float | Auto = "auto",
        max_grad_norm: float | Auto | None = "auto",
        radius: float | None = None,
        coefs_init: Any = None,
        intercepts_init: Any = None,
        batch_size: int | Auto = "auto",
        max_iter: int | Auto = "auto",
        learning_rate_init: float | None = None,
        average: bool | float | str = True,
        sampling: Sampling = "poisson",
        calibration: SampledNoiseCalibration = "pld",
        physical_batch_size: int | None = None,
        calibrate: Calibrate | None = "auto",
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
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_grad_norm = max_grad_norm
        self.radius = radius
        self.coefs_init = coefs_init
        self.intercepts_init = intercepts_init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.learning_rate_init = learning_rate_init
        self.average = average
        self.sampling = sampling
        self.calibration = calibration
        self.physical_batch_size = physical_batch_size
        self.calibrate = calibrate
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not layer_sizes(self.hidden_layer_sizes):
            raise ValueError(
                "hidden_layer_sizes must list a layer at least; without any take "
                "GrpuaLogisticRegression."
            )
        allowed = ("auto", None)
        check_real(
            "max_grad_norm", self.max_grad_norm, at_least=1e-6, at_most=1e10, allowed=allowed
        )

    def _clipping_norm(self, model: Any, numbers: PublicNumbers) -> float | None:
        auto = self.max_grad_norm == "auto"
        return default_clip(model, numbers.signal_to_noise) if auto else self.max_grad_norm

    def _build_plan(self, model: Any, numbers: PublicNumbers) -> NoisyGradientPlan:
        radius = DEFAULT_RADIUS if self.radius is None else self.radius
        if self.max_grad_norm is None and math.isinf(model.zero_out_gap(radius)):
            raise ValueError(
                f"No useful bound on gradients holds within radius={radius:g} of the start: take a "
                "smaller radius or fewer layers, or give max_grad_norm."
            )
        return super()._build_plan(model, numbers)
