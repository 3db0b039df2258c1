"""Gradient perturbation: GRPUA logistic regression."""

from __future__ import annotations

from typing import Any

from skdp.choices import (
    Adjacency,
    Auto,
    Calibrate,
    NoiseCalibration,
    Sampling,
    StepRule,
    UnitWeighting,
)
from skdp.estimators._calibrated import CalibratedMixin
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._mixins import LogisticMixin
from skdp.estimators._noisy_gradient import GrpuaModel
from skdp.models import Model
from skdp.plans.defaults import PublicNumbers, default_bounded_clip


class GrpuaLogisticRegression(CalibratedMixin, ClassWeightMixin, LogisticMixin, GrpuaModel):
    r"""Logistic regression with gradient perturbation (GRPUA, repaired).

    Runs gradient descent on ``mean(log-loss) + alpha / 2 * |weights|^2`` with Gaussian noise on
    every step's sum of gradients. Rows of bounded norm bound the gradients; where noise is large
    they are clipped below that bound. More than two classes are fitted by softmax regression.

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
    max_grad_norm : float, "auto" or None, default="auto"
        Norm to which each record's gradient is clipped; None clips nothing. ``"auto"`` takes at
        least half of the bound that `data_norm` gives, and more the larger n and epsilon are; it
        clips nothing unless steps are constant and ``calibration="pld"``.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or "auto", default="auto"
        Value of the constant column behind the intercept; it is part of the row norm. ``"auto"``
        takes a fixed share of `data_norm`.
    batch_size : int or "auto", default="auto"
        Expected lot size, at most n. 1 is the paper's; ``"auto"`` takes all rows unless there
        are very many, since noise per step matters more than the number of steps.
    max_iter : int or "auto", default="auto"
        Number of steps; the paper's is n squared.
    learning_rate : {"constant", "strongly-convex", "convex"}, default="constant"
        Step sizes: `learning_rate_init` with heavy-ball momentum 0.9; ``1 / (alpha t)``, at most
        the inverse smoothness; or ``R / sqrt(t G^2)`` with projection onto the ball of radius R
        and G^2 a bound on the second moment of a noisy gradient.
    learning_rate_init : float or None, default=None
        Constant step on the mean loss; None follows the noise level.
    radius : float or None, default=None
        Radius of the ball that weights are projected onto after each step. None projects for
        ``learning_rate="convex"`` only, onto a ball as large as the noise lets weights reach.
    average : bool or float, default=True
        Share of the last iterates that are averaged; True takes a default share, False
        releases the last iterate.
    sampling : {"poisson", "uniform"}, default="poisson"
        How lots smaller than n are drawn: each row independently, or a uniform subset of fixed
        size without replacement (the paper's).
    calibration : {"pld", "composition", "hidden-state"}, default="pld"
        How the noise is found. ``"pld"``: numerical composition of privacy-loss distributions,
        which pays for every iterate. ``"composition"``: the paper's route, the analytic Gaussian
        mechanism in each step with amplification by subsampling and advanced composition; it
        takes several times the noise, and the report shows the smaller epsilon that this noise
        really costs. ``"hidden-state"`` pays for the last iterate alone, so that noise stops
        growing with the number of steps; see Notes.
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
        Private coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts.
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

    Notes
    -----
    With ``calibration="hidden-state"`` the fit releases its last iterate alone and charges for
    nothing else. The theorem (:ref:`Theorem 4 of hidden states <hidden-state-4>`; of lots,
    :ref:`Theorem 6 <hidden-state-6>`) needs a constant step of at most ``2 / M`` (M the smoothness
    of the penalised loss), no momentum, no averaging, and a penalty or a projection. Defaults then
    follow it: `alpha` is larger, the step is ``1 / M``, more steps are taken and each reads all
    rows, weights are projected onto a ball that holds every minimiser, and ``average=True`` means
    the last iterate. Poisson lots need shorter steps where they are small. Parameters that
    contradict the theorem raise a ValueError that names each failed condition. The gain is large
    for many steps, and none where steps are too few to forget: see ``docs/hidden_state.md``.

    See Also
    --------
    OperaLogisticRegression : Output perturbation.
    DPSGDClassifier : Clipped noisy gradients.

    References
    ----------
    Ding et al., "Private Empirical Risk Minimization with Analytic Gaussian Mechanism for
    Healthcare System", Algorithm 2; its printed noise is too small by a factor of 2n and is not
    used. Proof of the repaired version: :ref:`Theorems 1 to 3 of gradient perturbation
    <gradient-perturbation-1>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdp import GrpuaLogisticRegression
    >>> X, y = make_blobs(500, centers=2, random_state=0)
    >>> clf = GrpuaLogisticRegression(epsilon=1.0, delta=1e-5, data_norm=10.0).fit(X, y)
    >>> clf.privacy_spent_.adjacency
    'replace-one'
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
        max_grad_norm: float | Auto | None = "auto",
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
        self.max_grad_norm = max_grad_norm
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
        self.calibrate = calibrate
        self.unit_weighting = unit_weighting
        self.max_unit_rows = max_unit_rows
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_length("max_grad_norm", 1e-6, 1e50, "A share of it is usual.", allowed=(None,))

    def _clipping_norm(self, model: Model, numbers: PublicNumbers) -> float | None:
        if self.max_grad_norm != "auto":
            return self._choose("max_grad_norm", model.units.feature)
        if (self.learning_rate, self.calibration) != ("constant", "pld"):
            return None  # these are theorems about the loss itself
        return default_bounded_clip(model, numbers.signal_to_noise)
