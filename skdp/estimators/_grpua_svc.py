"""Gradient perturbation of the smoothed hinge: GRPUA SVC."""

from __future__ import annotations

from typing import ClassVar

from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._mixins import SmoothedHingeMixin
from skdp.estimators._noisy_gradient import GrpuaLinearModel


class GrpuaSVC(ClassWeightMixin, SmoothedHingeMixin, GrpuaLinearModel):
    r"""Linear support vector classifier with gradient perturbation (GRPUA, repaired).

    Runs gradient descent on ``mean(H(margin)) + alpha / 2 * |weights|^2``, where H is the hinge
    loss with its kink smoothed over ``1 +- half_width``, with Gaussian noise on every step's sum
    of gradients. More than two classes are fitted one against the rest in one joint descent,
    whose sensitivity is ``sqrt(K)`` times the binary one.

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

    _added_texts: ClassVar[dict[str, str]] = {
        "radius": "Each binary problem has a ball of its own.",
    }
