"""Gradient perturbation of networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.choices import Auto, SampledNoiseCalibration
from skdp.estimators._calibrated import CalibratedMixin
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._networks import NetworkMixin, layer_sizes
from skdp.estimators._noisy_gradient import GrpuaModel
from skdp.parameters import check_real, parameter, released
from skdp.plans.defaults import DEFAULT_RADIUS, PublicNumbers, default_clip
from skdp.plans.noisy_gradient import NoisyGradientPlan


class GrpuaMLPClassifier(CalibratedMixin, ClassWeightMixin, NetworkMixin, GrpuaModel):
    r"""Network of dense layers trained by gradient perturbation (GRPUA, repaired).

    Each step adds Gaussian noise to the sum of a lot's gradients, which are clipped, or bounded by
    keeping the weights close to where they start. The output is logistic, or softmax for more than
    two classes.

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

    hidden_layer_sizes: Any = parameter(
        "int or sequence of int",
        "Number of units of each hidden layer, at least one.",
        default=(100,),
    )
    max_grad_norm: float | Auto | None = parameter(
        'float, "auto" or None',
        """Norm to which each record's gradient is clipped; ``"auto"`` follows the noise level.
        None clips none: noise is then for the largest gradient at weights inside the ball of
        `radius`, by a bound that grows quickly with radius and depth: that costs accuracy, see
        ``docs/networks.md``.""",
        default="auto",
    )
    learning_rate_init: float | None = parameter(
        "float or None",
        "Step on the mean loss, with heavy-ball momentum 0.9; None follows the noise level.",
        default=None,
    )
    radius: float | None = parameter(
        "float or None",
        """Radius of the ball around the start that weights are projected onto after each step.
        None takes 1 where nothing is clipped, and else does not project.""",
        default=None,
    )
    calibration: SampledNoiseCalibration = parameter(
        '{"pld", "composition"}',
        """How the noise is found; see `GrpuaLogisticRegression`, whose ``"hidden-state"`` takes
        a convex loss.""",
        default="pld",
    )
    coef_: np.ndarray = released()  # a network has lists instead
    intercept_: np.ndarray = released()

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
        if self.max_grad_norm == "auto":
            return default_clip(model, numbers.signal_to_noise)
        return self.max_grad_norm

    def _build_plan(self, model: Any, numbers: PublicNumbers) -> NoisyGradientPlan:
        radius = DEFAULT_RADIUS if self.radius is None else self.radius
        if self.max_grad_norm is None and math.isinf(model.zero_out_gap(radius)):
            raise ValueError(
                f"No useful bound on gradients holds within radius={radius:g} of the start: take a "
                "smaller radius or fewer layers, or give max_grad_norm."
            )
        return super()._build_plan(model, numbers)
