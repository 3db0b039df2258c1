"""Objective perturbation of the smoothed hinge: its SVC."""

from __future__ import annotations

from typing import ClassVar

from skdp.choices import Auto
from skdp.estimators._class_weights import ClassWeightMixin
from skdp.estimators._mixins import SmoothedHingeMixin
from skdp.estimators._objective import ObjectiveModel
from skdp.parameters import parameter


class ObjectivePerturbationSVC(ClassWeightMixin, SmoothedHingeMixin, ObjectiveModel):
    r"""Linear support vector classifier with objective perturbation.

    Minimises ``mean(H(margin)) + alpha / 2 * (|coef|^2 + (intercept / intercept_scaling)^2)`` plus
    a random linear function of the coefficients, where H is the hinge loss with its kink smoothed
    over ``1 +- half_width``, and releases the minimiser with a little more noise. More than two
    classes are fitted one against the rest and accounted for together.

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

    _added_texts: ClassVar[dict[str, str]] = {
        "half_width": "A wider kink needs less penalty.",
    }

    max_grad_norm: float | Auto | None = parameter(
        'float, "auto" or None',
        """Norm C to which each record's gradient is clipped, in units of the loss per weight: the
        loss of a row x goes on as a straight line where its slope exceeds ``C/|x|``. It bounds
        what one record can do, and so the noise. ``"auto"`` does not clip: the hinge is a clipped
        loss already.""",
        default="auto",
    )
