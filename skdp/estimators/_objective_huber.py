"""Robust linear regression by objective perturbation."""

from __future__ import annotations

from skdp.estimators._objective import ObjectiveModel
from skdp.estimators._regressors import HuberMixin


class ObjectivePerturbationHuberRegressor(HuberMixin, ObjectiveModel):
    r"""Linear regression with the Huber loss and objective perturbation.

    Minimises the mean Huber loss with a penalty plus a random linear function of the coefficients,
    and releases the minimiser with a little more noise. The noise grows with `width` and not with
    the range of the target, and is large only in directions in which the rows say little.

    See Also
    --------
    PrivateRidge : Least squares with intervals, many models from one release.

    Notes
    -----
    The sign of a residual is not known, which costs 3 % of noise at (1, 1e-6) and 13 % at
    (.1, 1e-3) over what a loss of known sign needs.

    References
    ----------
    Huber (1964), "Robust Estimation of a Location Parameter". Kifer, Smith & Thakurta (2012).
    Proofs: :ref:`Theorems 2 to 6 of objective perturbation <objective-perturbation-2>` with the
    constants of :ref:`Theorem 1 of regression losses <regression-losses-1>`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ObjectivePerturbationHuberRegressor
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3.0 + 2.0 * X[:, 0]
    >>> model = ObjectivePerturbationHuberRegressor(target_bounds=(0.0, 6.0), data_norm=1.0)
    >>> bool(model.fit(X, y).score(X, y) > .9)
    True
    """
