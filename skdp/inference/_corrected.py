"""The estimates of a look as a fitted model."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp.accounting import GaussianEvent
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.scikit_learn import fitted_model, responds
from skdp.inference._models import LinearPart, PublicWeights
from skdp.inference._posterior import LookPosterior
from skdp.plans.coefficient_noise import JointNoise

_ABOUT_BAND = (
    "sampling of rows and all privacy noise, from one look: the normal law with the covariance of "
    "the estimates"
)


class _Corrected:
    """Model with the estimates of a look as coefficients; it cannot be fitted."""

    # The statement includes the cost of the model that was looked at.
    _stands_on = "_before"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Refuse: a fit would not be private."""
        raise TypeError("this model has the estimates of a look. Fit a private model instead.")


class CorrectedModel(_Corrected, LogisticRegression):
    """Logistic regression with the estimates of a look."""


class CorrectedRegression(_Corrected, LinearRegression):
    """Linear regression with the estimates of a look."""


def corrected_model(part: LinearPart, law: LookPosterior, spent: PrivacySpent, **known: Any) -> Any:
    """Return the model of a look, with the estimates in a model of scikit-learn as last step."""
    found: Any = CorrectedRegression(fit_intercept=part.constant > 0.0)
    back: NDArray[np.float64] = np.zeros((part.coef.size + 1, law.theta.size))
    back[: len(part.contrasts)] = part.contrasts
    *coef, intercept = back @ law.coefficients.mean
    known = {"coef_": np.array(coef), "intercept_": float(intercept), **known}
    if len(part.classes):
        if len(part.classes) > 2:
            raise TypeError("model_ is for two classes.")
        found = CorrectedModel(fit_intercept=part.constant > 0.0)
        known = {key: np.array([value]) for key, value in known.items()}
        known["classes_"] = part.classes
    joint = SimpleNamespace(noise_covariance=law.coefficients.covariance)
    # Otherwise there was no fit, or the record includes it.
    alone = isinstance(spent.event, GaussianEvent) and not isinstance(part.linear, PublicWeights)
    vars(found).update(
        **known,
        n_features_in_=part.coef.size,
        privacy_spent_=spent,
        _coef_noise_=JointNoise(_ABOUT_BAND, 1.0, exact=True, solution=joint, back=back),
        _row_bound=part.data_norm,
        _before=part.linear if alone else None,
    )
    if responds(part.linear, "feature_names_in_"):
        found.feature_names_in_ = part.linear.feature_names_in_
    return _replaced(part.model, found)


def _replaced(model: Any, last: Any) -> Any:
    """Return a shallow copy of a model, unwrapped, with another last step."""
    while type(model) is FrozenEstimator or responds(model, "best_estimator_"):
        model = fitted_model(model.estimator if type(model) is FrozenEstimator else model)
    if not responds(model, "steps"):
        return last
    model, (name, before) = copy.copy(model), model.steps[-1]
    model.steps = [*model.steps[:-1], (name, _replaced(before, last))]
    return model
