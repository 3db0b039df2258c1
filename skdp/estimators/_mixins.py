"""What depends on the loss alone: probabilities, and the parameters of a loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from skdp.losses import LogisticLoss, SmoothedHingeLoss
from skdp.parameters import check_real


class ProbabilityMixin:
    """Class probabilities of models whose loss is a log-likelihood."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        scores = self.decision_function(X)  # type: ignore[attr-defined]
        if scores.ndim == 2:
            return softmax(scores, axis=1)
        return np.column_stack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the class probabilities, exact where these underflow.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities in the order of ``classes_``.
        """
        scores = self.decision_function(X)  # type: ignore[attr-defined]
        if scores.ndim == 2:
            return log_softmax(scores, axis=1)
        return np.column_stack([log_expit(-scores), log_expit(scores)])

    def _binary_loss(self) -> LogisticLoss:
        return LogisticLoss()


class SmoothedHingeMixin:
    """The smoothed hinge loss of the private support vector classifiers."""

    half_width: float

    def _binary_loss(self) -> SmoothedHingeLoss:
        return SmoothedHingeLoss(half_width=float(self.half_width))

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_real("half_width", self.half_width, at_least=1e-3, at_most=1e3)
