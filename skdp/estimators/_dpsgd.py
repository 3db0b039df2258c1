"""Differentially private stochastic gradient descent, for classification and regression."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import (
    Auto,
    AutoOrAdaptive,
    Clipping,
    LearningRate,
    Lots,
    RegressionLoss,
    StepSolver,
    check_choice,
    check_real,
    parameter,
    released,
)
from skdp.estimators._base import UnitWeightingMixin
from skdp.estimators._calibrated import CalibratedMixin, ClassWeightMixin
from skdp.estimators._mixins import GivenNoiseMixin
from skdp.estimators._networks import NetworkMixin
from skdp.estimators._noisy_gradient import DescentModel
from skdp.estimators._regressors import LossRegressorMixin, refuse_rates, scale_of
from skdp.losses import ClippedSquaredLoss, HuberLoss, PoissonLoss, PseudoHuberLoss, QuantileLoss
from skdp.losses.base import Loss
from skdp.losses.real import RealLoss
from skdp.models import Model
from skdp.plans.defaults import PublicNumbers
from skdp.plans.dpsgd import build_dpsgd
from skdp.plans.noisy_gradient import DPSGDChoices, NoisyGradientPlan


class DPSGDModel(GivenNoiseMixin, UnitWeightingMixin, DescentModel):
    """Clipped noisy gradients, with calibrated or given noise."""

    _added_texts: ClassVar[dict[str, str]] = {
        "data_norm": "It sets the scale of the other defaults; the guarantee depends on "
        "`max_grad_norm`.",
    }

    max_grad_norm: float | AutoOrAdaptive = parameter(
        'float or "auto"',
        """Clipping norm of each record's gradient, in units of the loss per weight. ``"auto"``
        derives it from the noise level.""",
        default="auto",
    )
    sampling: Lots = parameter(
        '{"poisson", "allocation"}',
        """Sampling of batches. ``"poisson"``: each batch includes each record independently.
        ``"allocation"``: each epoch assigns each record to one of its batches at random. An epoch
        has ``n / batch_size`` batches (rounded, at least 2). The number of steps is rounded up to
        complete epochs. It needs less noise for few epochs under add-remove, and the same noise
        for many epochs or under replace-one. Its calibration takes seconds, or minutes for
        thousands of batches per epoch.""",
        default="poisson",
    )
    solver: StepSolver = parameter('{"sgd", "adam"}', "Update rule.", default="sgd")
    momentum: float | Auto = parameter(
        'float or "auto"', 'Heavy-ball coefficient of ``"sgd"``, in [0, 1).', default="auto"
    )
    beta_1: float = parameter(
        "float", 'Decay rate of the first moment of ``"adam"``, in [0, 1).', default=0.9
    )
    beta_2: float = parameter(
        "float", 'Decay rate of the second moment of ``"adam"``, in [0, 1).', default=0.999
    )
    learning_rate: LearningRate = parameter(
        '{"constant", "linear", "cosine"}',
        """Schedule of the step size. ``"linear"`` decays from `learning_rate_init` to
        `learning_rate_final` times it over the first `decay_share` of the steps, and then stays
        constant. ``"cosine"`` decays along half a cosine wave instead. The default first step of
        both is longer, to give the same mean step as ``"constant"``.""",
        default="constant",
    )
    learning_rate_init: float | None = parameter(
        "float or None",
        """First step size on the mean loss; None derives it from the noise level. For ``"adam"``
        it is in units of the weights, and None uses ``0.2 / data_norm``.""",
        default=None,
    )
    learning_rate_final: float = parameter(
        "float",
        "Last step size as a share of the first, for decaying schedules, in (0, 1].",
        default=0.1,
    )
    decay_share: float = parameter(
        "float", "Share of the steps over which the step size decays, in (0, 1].", default=0.5
    )
    noise_multiplier_: float = released(
        "float", "Standard deviation of the noise over the clipping norm; a public number."
    )

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

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        super()._publish(plan, records, released, spent)
        self.noise_multiplier_ = plan.noise_multiplier


class DPSGDClassifier(CalibratedMixin, ClassWeightMixin, NetworkMixin, DPSGDModel):
    r"""Logistic or softmax regression, or a network with such an output, trained by DP-SGD.

    Each step uses a Poisson batch: each record is included independently. Every record's gradient
    is clipped to `max_grad_norm`, Gaussian noise is added to the sum, and the sum is divided by the
    public expected batch size.

    Notes
    -----
    ``"auto"`` derives parameters from n, epsilon, delta, the adjacency and the number of classes.
    Small tables take 150 to 400 steps on all rows; larger ones use Poisson batches. The clipping
    norm grows with the signal-to-noise ratio. The rules are in ``docs/defaults.md``.

    A network divides rows by `data_norm` and multiplies them by 4, which gives them norm at most 4.
    Its `max_grad_norm`, `alpha`, `learning_rate_init` and `intercept_scaling` refer to these scaled
    rows. `coefs_` and `coefs_init` apply to the rows as they are given.

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

    _added_texts: ClassVar[dict[str, str]] = {
        "learning_rate_init": "Networks with Adam use 0.03 over the number of hidden layers.",
    }

    max_grad_norm: float | AutoOrAdaptive = parameter(
        'float, "auto" or "adaptive"',
        """Clipping norm of each record's gradient, in units of the loss per weight. ``"auto"``
        derives it from the noise level. ``"adaptive"`` (networks only) starts at that value and
        follows the 80 % quantile of the gradients' norms, by a noisy count in each step that the
        privacy cost includes.""",
        default="auto",
    )
    clipping: Clipping = parameter(
        '{"flat", "per-layer", "normalize"}',
        """Clipping of a network's gradients. ``"flat"`` clips the norm of the complete gradient.
        ``"per-layer"`` clips each layer to `max_grad_norm` over the square root of the number of
        layers. ``"normalize"`` divides gradients by their norm plus 0.01 and multiplies them by
        `max_grad_norm`.""",
        default="flat",
    )
    coef_: np.ndarray = released(
        "ndarray of shape (1, n_features) or (n_classes, n_features)",
        "Private coefficients of a linear model.",
    )
    intercept_: np.ndarray = released(
        "ndarray of shape (1,) or (n_classes,)", "Private intercepts of a linear model."
    )


# Default width of the quantile's kink, as a share of the half of the target's bounds.
_QUANTILE_WIDTH = 0.05
_LOSSES = ("squared_error", "huber", "pseudo_huber", "quantile", "poisson")


class DPSGDRegressor(LossRegressorMixin, DPSGDModel):
    r"""Linear regression of means, medians, quantiles or counts, trained by DP-SGD.

    Each step uses a Poisson batch: each record is included independently. Every record's gradient
    is clipped to `max_grad_norm`, Gaussian noise is added to the sum, and the sum is divided by the
    public expected batch size.

    See Also
    --------
    PrivateRidge : Least squares with intervals.
    ObjectivePerturbationHuberRegressor : One minimisation, little to tune.

    Notes
    -----
    Exposures are not supported: an exposure that differs between rows is a private column. Divide
    counts by a public length of observation, or give its logarithm as a column.

    References
    ----------
    Abadi et al. (2016), "Deep Learning with Differential Privacy", Algorithm 1. Koenker & Bassett
    (1978), "Regression Quantiles". Proofs: :ref:`Theorems 4 and 5 of DP-SGD <dpsgd-4>`; for the
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
        "target_bounds": 'With ``loss="poisson"`` the lower bound must be at least 0.',
        "max_grad_norm": "The target is measured in units of half its range.",
        "alpha": "``alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` is added to the "
        "mean loss, with the target in units of half its range.",
    }

    loss: RegressionLoss | RealLoss = parameter(
        "str or object",
        """Loss to minimise. ``"squared_error"``: squared residuals, continued as a straight line
        where scores leave `target_bounds`. ``"huber"`` and ``"pseudo_huber"``: straight lines
        beyond `width`. ``"quantile"``: pinball loss at level `quantile`. ``"poisson"``: deviance of
        counts with a linear log-rate, limited where rates exceed the upper bound. An object of a
        class of `skdp.losses`, or of a custom class, receives residuals in units of half the
        target's range.""",
        default="squared_error",
    )
    width: float | Auto = parameter(
        'float or "auto"',
        """Width of the loss, in units of the target. For ``"huber"`` and ``"pseudo_huber"``, the
        residual beyond which the slope is about constant; ``"auto"`` is an eighth of ``high -
        low``. For ``"quantile"``, the range of residuals over which the kink is smoothed;
        ``"auto"`` is a fortieth.""",
        default="auto",
    )
    quantile: float = parameter(
        "float", 'Level of ``loss="quantile"``, between 0 and 1.', default=0.5
    )
    coef_: np.ndarray = released(
        "ndarray of shape (n_features,)",
        'Private coefficients; with ``loss="poisson"``, of the logarithm of the rate.',
    )
    intercept_: float = released("float", "Private intercept, on the same scale.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_loss(RealLoss, *_LOSSES)
        refuse_rates(self._given_loss)
        check_real("quantile", self.quantile, above=0.0, below=1.0)
        if self.max_grad_norm == "adaptive":
            raise ValueError(
                "max_grad_norm='adaptive' is supported only for networks. Use a number or 'auto'."
            )
        if self.loss == "poisson" and not 0.0 <= self._bounds[0]:
            raise ValueError(
                "target_bounds must not be negative with loss='poisson', got "
                f"{self.target_bounds!r}."
            )

    def _part_loss(self) -> Loss:
        if self._given_loss is not None:
            return self._given_loss
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
        # The unit of counts is half of the largest.
        return scale_of((0.0, self._bounds[1]) if self.loss == "poisson" else self._bounds)

    @property
    def _score_scale(self) -> tuple[float, float]:
        middle, half = self._target_scale
        return (math.log(half), 1.0) if self.loss == "poisson" else (middle, half)

    _fitted_quantile = 0.5  # models of earlier versions have no such attribute

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        super()._publish(plan, records, released, spent)
        self._fitted_loss, self._fitted_quantile = self.loss, float(self.quantile)

    def _words_of_score(self, target: str) -> str:
        if self._fitted_loss == "poisson":
            return f"the logarithm of the rate of {target}"
        if self._fitted_loss == "quantile":
            return f"the {self._fitted_quantile:g} quantile of {target}"
        return target

    def _scores(self, X: Any) -> np.ndarray:
        scores = super()._scores(X)
        if self._fitted_loss == "poisson":  # larger predictions are clipped
            return np.exp(np.minimum(scores, 709.0))
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags
