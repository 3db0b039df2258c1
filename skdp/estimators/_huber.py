"""Robust linear regression by output and gradient perturbation."""

from __future__ import annotations

from typing import ClassVar

from skdp.estimators._noisy_gradient import GrpuaLinearModel
from skdp.estimators._opera import OperaModel
from skdp.estimators._regressors import HuberMixin


class OperaHuberRegressor(HuberMixin, OperaModel):
    r"""Linear regression with the Huber loss and output perturbation (OPERA).

    Minimises the mean Huber loss with a penalty and adds one vector of Gaussian noise. That noise
    is the same in every direction; `ObjectivePerturbationHuberRegressor` mostly needs less.

    See Also
    --------
    ObjectivePerturbationHuberRegressor : Noise in the objective.
    PrivateRidge : Least squares with intervals.

    References
    ----------
    Huber (1964), "Robust Estimation of a Location Parameter". Proofs: :ref:`Theorem 8 of output
    perturbation <output-perturbation-8>` with the constants of :ref:`Theorem 1 of regression losses
    <regression-losses-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaHuberRegressor
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0]
    >>> model = OperaHuberRegressor(epsilon=10.0, target_bounds=(0.0, 6.0), data_norm=1.0)
    >>> bool(model.fit(X, y).score(X, y) > .9)
    True
    """


class GrpuaHuberRegressor(HuberMixin, GrpuaLinearModel):
    r"""Linear regression with the Huber loss and gradient perturbation (GRPUA, repaired).

    Runs gradient descent on the mean Huber loss with a penalty, with Gaussian noise on every step's
    sum of gradients, which the loss bounds.

    See Also
    --------
    DPSGDRegressor : Clipped noisy gradients, of other losses too.

    References
    ----------
    Huber (1964), "Robust Estimation of a Location Parameter". Proofs: :ref:`Theorems 1 to 3 of
    gradient perturbation <gradient-perturbation-1>` with the constants of :ref:`Theorem 1 of
    regression losses <regression-losses-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GrpuaHuberRegressor
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0]
    >>> model = GrpuaHuberRegressor(epsilon=1.0, target_bounds=(0.0, 6.0), data_norm=1.0)
    >>> bool(model.fit(X, y).score(X, y) > .9)
    True
    """

    _added_texts: ClassVar[dict[str, str]] = {
        "radius": "It is in units of half the target's range.",
    }
