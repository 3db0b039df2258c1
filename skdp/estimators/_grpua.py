"""Gradient perturbation (GRPUA): logistic regression, SVC and networks."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from skdp.base.parameters import Auto, SampledNoiseCalibration, check_real, parameter, released
from skdp.estimators._calibrated import CalibratedMixin, ClassWeightMixin
from skdp.estimators._mixins import LogisticMixin, SmoothedHingeMixin
from skdp.estimators._networks import NetworkMixin, layer_sizes
from skdp.estimators._noisy_gradient import GrpuaLinearModel, GrpuaModel
from skdp.models import Model
from skdp.plans.defaults import DEFAULT_RADIUS, PublicNumbers, default_bounded_clip, default_clip
from skdp.plans.noisy_gradient import NoisyGradientPlan


class GrpuaLogisticRegression(CalibratedMixin, ClassWeightMixin, LogisticMixin, GrpuaLinearModel):
    r"""Logistic regression with gradient perturbation (GRPUA, repaired).

    Runs gradient descent on ``mean(log-loss) + alpha / 2 * |weights|^2`` and adds Gaussian noise to
    every step's sum of gradients. The norm of the rows bounds the gradients; if the noise is large,
    they are clipped below that bound. With more than two classes, the model is a softmax
    regression.

    Notes
    -----
    With ``calibration="hidden-state"`` the fit releases only its last iterate, and only that is
    charged. :ref:`Theorem 4 of hidden states <hidden-state-4>` (for batches, :ref:`Theorem 6
    <hidden-state-6>`) has these conditions:

    - a constant step of at most ``2 / M``, where M is the smoothness of the penalised loss;
      small Poisson batches need shorter steps;
    - no momentum and no averaging;
    - a penalty or a projection.

    The defaults then change: `alpha` is larger, the step is ``1 / M``, and there are more steps,
    each on all rows. Weights are projected onto a ball that contains every minimiser, and
    ``average=True`` means the last iterate. Parameters that contradict the theorem raise a
    ValueError that names each failed condition. The gain is large for many steps, and zero for
    too few: see ``docs/hidden_state.md``.

    See Also
    --------
    OperaLogisticRegression : Output perturbation.
    DPSGDClassifier : Clipped noisy gradients.

    References
    ----------
    Ding et al., "Private Empirical Risk Minimization with Analytic Gaussian Mechanism for
    Healthcare System", Algorithm 2. Its printed noise is too small by a factor of 2n and is not
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

    max_grad_norm: float | Auto | None = parameter(
        'float, "auto" or None',
        """Clipping norm of each record's gradient; None does not clip. ``"auto"`` uses at least
        half of the bound that `data_norm` gives, and more for larger n and epsilon. It clips only
        with ``learning_rate="constant"`` and ``calibration="pld"``.""",
        default="auto",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_length(
            "max_grad_norm", 1e-6, 1e50, "A fraction of data_norm is usual.", allowed=(None,)
        )

    def _clipping_norm(self, model: Model, numbers: PublicNumbers) -> float | None:
        if self.max_grad_norm != "auto":
            return self._choose("max_grad_norm", model.units.feature)
        if (self.learning_rate, self.calibration) != ("constant", "pld"):
            return None  # their theorems are about the unclipped loss
        return default_bounded_clip(model, numbers.signal_to_noise)


class GrpuaSVC(ClassWeightMixin, SmoothedHingeMixin, GrpuaLinearModel):
    r"""Linear support vector classifier with gradient perturbation (GRPUA, repaired).

    Runs gradient descent on ``mean(H(margin)) + alpha / 2 * |weights|^2`` and adds Gaussian noise
    to every step's sum of gradients. H is the hinge loss with its kink smoothed over
    ``1 +- half_width``. K > 2 classes are fitted one-vs-rest in one joint descent; its sensitivity
    is ``sqrt(K)`` times that of a binary problem.

    Notes
    -----
    ``calibration="hidden-state"`` charges only for the last iterate, under the conditions that
    `GrpuaLogisticRegression` lists. The smoothness of the loss is the squared row norm over twice
    `half_width`: a narrow kink means short steps.

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

    _added_texts: ClassVar[dict[str, str]] = {
        "radius": "Each binary problem has a separate ball.",
    }


class GrpuaMLPClassifier(CalibratedMixin, ClassWeightMixin, NetworkMixin, GrpuaModel):
    r"""Network of dense layers trained by gradient perturbation (GRPUA, repaired).

    Each step adds Gaussian noise to the sum of a batch's gradients. These are clipped, or bounded
    by keeping the weights close to their start. The output is logistic, or softmax for more than
    two classes.

    See Also
    --------
    DPSGDClassifier : Networks with schedules, Adam and other ways of clipping.
    GrpuaLogisticRegression : A linear model; the loss bounds its gradients.

    Notes
    -----
    `alpha`, `max_grad_norm`, `radius`, `learning_rate_init` and `intercept_scaling` are in the
    units of the network, as for `DPSGDClassifier`. The assumptions in ``privacy_spent_`` state
    whether clipping or the ball bounds the gradients.

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

    hidden_layer_sizes: Any = parameter(
        "int or sequence of int",
        "Number of units of each hidden layer; at least one layer.",
        default=(100,),
    )
    max_grad_norm: float | Auto | None = parameter(
        'float, "auto" or None',
        """Clipping norm of each record's gradient. ``"auto"`` derives it from the noise level.
        None does not clip: the noise then covers the largest gradient at any weights inside the
        ball of `radius`. Its bound grows quickly with radius and depth, which costs accuracy; see
        ``docs/networks.md``.""",
        default="auto",
    )
    learning_rate_init: float | None = parameter(
        "float or None",
        """Step size on the mean loss, with heavy-ball momentum 0.9; None derives it from the
        noise level.""",
        default=None,
    )
    radius: float | None = parameter(
        "float or None",
        """Radius of the ball around the start onto which weights are projected after each step.
        None uses 1 with ``max_grad_norm=None``, and otherwise does not project.""",
        default=None,
    )
    calibration: SampledNoiseCalibration = parameter(
        '{"pld", "composition"}',
        """Calibration of the noise; see `GrpuaLogisticRegression`. ``"hidden-state"`` needs a
        convex loss, so networks do not support it.""",
        default="pld",
    )
    coef_: np.ndarray = released()  # a network has lists instead
    intercept_: np.ndarray = released()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not layer_sizes(self.hidden_layer_sizes):
            raise ValueError(
                "hidden_layer_sizes must list at least one layer. Use GrpuaLogisticRegression for "
                "a linear model."
            )
        allowed = ("auto", None)
        check_real(
            "max_grad_norm", self.max_grad_norm, at_least=1e-6, at_most=1e10, allowed=allowed
        )

    def _clipping_norm(self, model: Any, numbers: PublicNumbers) -> float | None:
        if self.max_grad_norm == "auto":
            return default_clip(model, numbers.signal_to_noise)
        return self.max_grad_norm

    def _build_plan(self, model: Any, numbers: PublicNumbers) -> NoisyGradientPlan:
        radius = DEFAULT_RADIUS if self.radius is None else self.radius
        if self.max_grad_norm is None and math.isinf(model.zero_out_gap(radius)):
            raise ValueError(
                f"There is no useful bound on gradients within radius={radius:g} of the start. Use "
                "a smaller radius or fewer layers, or set max_grad_norm."
            )
        return super()._build_plan(model, numbers)
