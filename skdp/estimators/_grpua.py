"""Gradient perturbation: GRPUA logistic regression."""

from __future__ import annotations

from skdp.choices import (
    Auto,
)
from skdp.estimators._calibrated import CalibratedMixin
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._mixins import LogisticMixin
from skdp.estimators._noisy_gradient import GrpuaLinearModel
from skdp.models import Model
from skdp.parameters import parameter
from skdp.plans.defaults import PublicNumbers, default_bounded_clip


class GrpuaLogisticRegression(CalibratedMixin, ClassWeightMixin, LogisticMixin, GrpuaLinearModel):
    r"""Logistic regression with gradient perturbation (GRPUA, repaired).

    Runs gradient descent on ``mean(log-loss) + alpha / 2 * |weights|^2`` with Gaussian noise on
    every step's sum of gradients. Rows of bounded norm bound the gradients; where noise is large
    they are clipped below that bound. More than two classes are fitted by softmax regression.

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

    max_grad_norm: float | Auto | None = parameter(
        'float, "auto" or None',
        """Norm to which each record's gradient is clipped; None clips nothing. ``"auto"`` takes
        at least half of the bound that `data_norm` gives, and more the larger n and epsilon are;
        it clips nothing unless steps are constant and ``calibration="pld"``.""",
        default="auto",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_length("max_grad_norm", 1e-6, 1e50, "A share of it is usual.", allowed=(None,))

    def _clipping_norm(self, model: Model, numbers: PublicNumbers) -> float | None:
        if self.max_grad_norm != "auto":
            return self._choose("max_grad_norm", model.units.feature)
        if (self.learning_rate, self.calibration) != ("constant", "pld"):
            return None  # these are theorems about the loss itself
        return default_bounded_clip(model, numbers.signal_to_noise)
