"""Differentially private stochastic gradient descent for linear classifiers and networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skdp.choices import (
    Activation,
    Adjacency,
    Auto,
    AutoOrAdaptive,
    Calibrate,
    Clipping,
    LearningRate,
    Lots,
    StepSolver,
    UnitWeighting,
)
from skdp.estimators._calibrated import CalibratedMixin
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._mixins import GivenNoiseMixin
from skdp.estimators._networks import NetworkMixin
from skdp.estimators._noisy_gradient import NoisyGradientModel
from skdp.models import Model
from skdp.parameters import check_choice, check_real
from skdp.plans.choices import DPSGDChoices
from skdp.plans.defaults import PublicNumbers
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.noisy_gradient import NoisyGradientPlan
from skdp.reporting import PrivacySpent


class DPSGDModel(GivenNoiseMixin, NoisyGradientModel):
    """Clipped noisy gradients, with the noise that meets a target, or with the user's."""

    max_grad_norm: Any
    sampling: Any
    solver: Any
    momentum: Any
    beta_1: float
    beta_2: float
    learning_rate: Any
    learning_rate_final: float
    decay_share: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        remedy = "A record's gradient has norm up to about data_norm."
        self._check_length("max_grad_norm", 1e-6, 1e50, remedy, ("adaptive",))
        check_choice("sampling", self.sampling, ("poisson", "allocation"))
        check_choice("solver", self.solver, ("sgd", "adam"))
        check_choice("learning_rate", self.learning_rate, ("constant", "linear", "cosine"))
        check_real("momentum", self.momentum, at_least=0.0, below=1.0, allowed=("auto",))
        for name in ("beta_1", "beta_2"):
            check_real(name, getattr(self, name), at_least=0.0, below=1.0)
        for name in ("learning_rate_final", "decay_share"):
            check_real(name, getattr(self, name), above=0.0, at_most=1.0)

    def _build_plan(self, model: Model, numbers: PublicNumbers) -> NoisyGradientPlan:
        self._check_batch_size(numbers.n_rows)
        if self.noise_multiplier is not None:
            # A ceiling on epsilon must not change what runs.
            numbers = replace(numbers, epsilon=None)
        units = model.units
        # Adam divides out the gradient's scale: its steps are lengths of weights.
        scaled = units.weight if self.solver == "adam" else units.step
        adapts = self.max_grad_norm == "adaptive"
        choices = DPSGDChoices(
            penalty=self._choose("alpha", units.penalty),
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=None if adapts else self._choose("max_grad_norm", units.gradient),
            batch_size=self._choose("batch_size"),
            max_iter=self._choose("max_iter"),
            solver=self.solver,
            momentum=self._choose("momentum"),
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            learning_rate=self.learning_rate,
            initial_step=self._choose("learning_rate_init", scaled),
            final_share=self.learning_rate_final,
            decay_share=self.decay_share,
            average=self.average,
            sampling=self.sampling,
            adaptive=adapts,
        )
        return self._set_execution(build_dpsgd(model, numbers, choices))

    def _publish(self, plan: Any, table: Any, released: np.ndarray, spent: PrivacySpent) -> None:
        super()._publish(plan, table, released, spent)
        self.noise_multiplier_ = plan.noise_multiplier


class DPSGDClassifier(CalibratedMixin, ClassWeightMixin, NetworkMixin, DPSGDModel):
    r"""Logistic or softmax regression, or a network with such an output, trained by DP-SGD.

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
    noise_multiplier : float or None, default=None
        Standard deviation of the noise over `max_grad_norm`. None calibrates it to
        (epsilon, delta).
    adjacency : {"replace-one", "add-remove"}, default="add-remove"
        Neighbouring tables: one row replaced, or one added or removed.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Longer rows are scaled down to it. None takes
        1.0, and `fit` warns unless the rows come from a step of skdp that bounds them by that. It
        sets the scale of the other defaults; the guarantee rests on `max_grad_norm`.
    classes : array-like or None, default=None
        Public label set. None reads it from `y`, which the statement then says.
    class_weight : dict, "balanced" or None, default=None
        Public weights of labels; see `OperaLogisticRegression`.
    prevalence : dict, "private" or None, default=None
        Shares of labels for ``"balanced"``; see `OperaLogisticRegression`.
    hidden_layer_sizes : int or sequence of int, default=()
        Number of units of each hidden layer. Empty is a linear model: networks are never chosen for
        you, since under noise they often lose to the line; see ``docs/networks.md``.
    activation : {"relu", "tanh", "identity"}, default="relu"
        Activation of the hidden layers.
    alpha : float or "auto", default="auto"
        L2 penalty on all weights, the intercept included. Of a network it is on their distance
        from the start.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Of a network it is whether layers have biases.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`. Of a network it is the value behind every bias, and
        ``"auto"`` takes 1.
    max_grad_norm : float, "auto" or "adaptive", default="auto"
        Norm to which each record's gradient is clipped, in units of the loss per weight.
        ``"adaptive"``, of networks, begins at that of ``"auto"`` and follows by noisy counts,
        for which each step pays, the norm that four gradients in five do not exceed.
    clipping : {"flat", "per-layer", "normalize"}, default="flat"
        What is clipped of a network: the norm of the whole gradient; that of each layer, to
        `max_grad_norm` over the root of their number; or gradients are divided by their norm, plus
        0.01, and multiplied by `max_grad_norm`.
    coefs_init : list of ndarray of shape (n_inputs, n_units), default=None
        Weights of a network to start from, as `coefs_` has them. They must be public: none may be
        learned from the rows without noise. None takes orthogonal matrices, the same for all
        tables, and zeros in the last layer.
    intercepts_init : list of ndarray of shape (n_units,), default=None
        Biases to start from, public as well; None takes zeros.
    batch_size : int or "auto", default="auto"
        Expected lot size, at most n; the sample rate is ``batch_size / n``. n means that every
        step reads all rows.
    sampling : {"poisson", "allocation"}, default="poisson"
        How lots are drawn: each row independently into each lot; or each row into one random lot of
        each epoch, which has ``n / batch_size`` lots, rounded, and at least 2. The number of steps
        is then rounded up to whole epochs. For few epochs under add-remove that needs less noise,
        for many or under replace-one as much; noise takes seconds to calibrate,
        and minutes for thousands of lots an epoch.
    max_iter : int or "auto", default="auto"
        Number of steps (lots).
    solver : {"sgd", "adam"}, default="sgd"
        Update rule.
    momentum : float or "auto", default="auto"
        Heavy-ball coefficient of ``"sgd"``, in [0, 1).
    beta_1, beta_2 : float, default=0.9, 0.999
        Decay of the moments of ``"adam"``, in [0, 1).
    learning_rate : {"constant", "linear", "cosine"}, default="constant"
        ``"linear"`` decays from `learning_rate_init` to `learning_rate_final` times it over the
        first `decay_share` of the steps and stays there; ``"cosine"`` does along half a wave. The
        default first step is longer then, so that the mean step is that of ``"constant"``.
    learning_rate_init : float or None, default=None
        First step size on the mean loss; None follows the noise level. For ``"adam"`` it is in
        units of the weights, and None takes ``0.2 / data_norm``, or 0.03 over the number
        of hidden layers.
    learning_rate_final : float, default=0.1
        Last step size as a share of the first, where it decays, in (0, 1].
    decay_share : float, default=0.5
        Share of the steps over which the step size decays, in (0, 1].
    average : bool, float or "ema", default=True
        Share of the last iterates that are averaged; True takes a default share, False
        releases the last iterate, and ``"ema"`` averages all, with weights that decay as fast as
        the default share is short. Averaging is free: all iterates are paid for.
    physical_batch_size : int or None, default=None
        At most so many rows, or 288, are handled at once; it bounds memory, not the lots.
    calibrate : {"auto", "private"} or None, default="auto"
        Whether probabilities are set right by an intercept and a slope of log odds, of several
        classes by the slope alone. ``"private"`` reads them off a noisy histogram of scores by
        label that takes a twentieth of the budget; ``"auto"`` does where n is large enough for
        epsilon; None never does. See ``docs/probabilities.md``.
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
        Private coefficients of a linear model.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Its private intercepts.
    coefs_ : list of ndarray of shape (n_inputs, n_units)
        Private weights of a network, layer by layer.
    intercepts_ : list of ndarray of shape (n_units,)
        Its private biases.
    activation_, out_activation_ : str
        Activation of a network's hidden layers and of its output, "logistic" or "softmax".
    n_layers_, n_outputs_ : int
        Number of a network's layers, the columns included, and of its outputs.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    calibration_ : tuple of float
        Intercept and slope that were applied to the scores; (0, 1) where none were.
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

    Notes
    -----
    Everything left to ``"auto"`` follows from n, epsilon, delta, the adjacency and the number of
    classes: all rows in each of 150 to 400 steps while the table is small, Poisson lots beyond;
    a clipping norm that grows with the signal-to-noise ratio. The rules are in
    ``docs/defaults.md``.

    Of a network `max_grad_norm`, `alpha`, `learning_rate_init` and `intercept_scaling` refer to its
    own inputs: rows divided by `data_norm` and multiplied by 4, so that they have norm at most 4,
    in any units of the features. `coefs_` and `coefs_init` are for the rows as they are given.

    See Also
    --------
    GrpuaLogisticRegression : Noisy gradients without clipping.
    OperaLogisticRegression : Output perturbation.

    References
    ----------
    Abadi et al. (2016), "Deep Learning with Differential Privacy", Algorithm 1. Zhu, Dong & Wang
    (2022) for the dominating pairs that are composed. Proof: :ref:`Theorems 4 and 5 of
    DP-SGD <dpsgd-4>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import DPSGDClassifier
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> clf = DPSGDClassifier(epsilon=1.0, delta=1e-5, data_norm=10.0).fit(X, y)
    >>> clf.privacy_spent_.epsilon <= 1.0
    True
    """

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        *,
        noise_multiplier: float | None = None,
        adjacency: Adjacency = "add-remove",
        data_norm: float | None = None,
        classes: Any = None,
        class_weight: Any = None,
        prevalence: Any = None,
        hidden_layer_sizes: Any = (),
        activation: Activation = "relu",
        alpha: float | Auto = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float | Auto = "auto",
        max_grad_norm: float | AutoOrAdaptive = "auto",
        clipping: Clipping = "flat",
        coefs_init: Any = None,
        intercepts_init: Any = None,
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
        calibrate: Calibrate | None = "auto",
        unit_weighting: UnitWeighting = "mean",
        max_unit_rows: int | None = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
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
        self.clipping = clipping
        self.coefs_init = coefs_init
        self.intercepts_init = intercepts_init
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
        self.calibrate = calibrate
        self.unit_weighting = unit_weighting
        self.max_unit_rows = max_unit_rows
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
