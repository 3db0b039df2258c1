"""`PrivateCalibrator`: probabilities of a fitted model, calibrated by one priced table."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from skdp.choices import CalibrationMethod
from skdp.metrics.adjusted import AdjustsModel
from skdp.metrics.release import ScoreTables
from skdp.parameters import check_choice, parameter, released
from skdp.scores.curve import fit_logistic


class PrivateCalibrator(AdjustsModel):
    """Probabilities of a fitted private model, calibrated on private rows for one charge.

    Notes
    -----
    The rows enter through one released table of labels by scores, as in `PrivateEvaluation`
    (discrete Gaussian noise, L2 sensitivity 1 or the root of 2; :ref:`Theorem 2 of evaluation
    <evaluation-2>`); all else is post-processing. A logistic curve is fitted to the noisy counts by
    their known covariance and shrunk towards the identity, so that noise alone changes little: with
    few rows and a small epsilon probabilities stay as they were, at best. Of more than two classes
    each is calibrated against the others, and probabilities are scaled to sum to 1.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.metrics import PrivateCalibrator
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(6000, 2))
    >>> y = (rng.random(6000) < 1 / (1 + np.exp(-6 * X[:, 0]))).astype(int)
    >>> model = OperaLogisticRegression(data_norm=1.0, alpha=0.1, calibrate=None)
    >>> model = model.fit(X[:3000], y[:3000])
    >>> calibrated = PrivateCalibrator(FrozenEstimator(model), epsilon=1.0)
    >>> bool(calibrated.fit(X[3000:], y[3000:]).slope_[0] > 2)  # strong ridge is underconfident
    True
    """

    _released = ("intercept_", "slope_")
    _calibrates = True

    method: CalibrationMethod = parameter(
        '{"sigmoid", "temperature"}',
        "Learn an intercept and a slope of log odds for each table, or the slope alone.",
        default="sigmoid",
    )
    intercept_: np.ndarray = released(
        "ndarray of shape (n_tables,)",
        "Shifts of log odds: of one table for two classes, else of one for each class.",
    )
    slope_: np.ndarray = released("ndarray of shape (n_tables,)", "Slopes, which are positive.")

    def _adjust(self, found: np.ndarray) -> np.ndarray:
        return found * self.slope_ + self.intercept_

    def _probabilities(self, X: Any) -> np.ndarray:
        found = self.decision_function(X)
        if found.ndim == 1:
            return np.column_stack([expit(-found), expit(found)])
        shares = expit(np.maximum(found, -100.0))
        return shares / shares.sum(axis=1, keepdims=True)

    def _check_parameters(self) -> None:
        check_choice("method", self.method, ("sigmoid", "temperature"))
        super()._check_parameters()

    def _learn(self, tables: ScoreTables) -> None:
        labels = [None] if len(self.classes_) == 2 else self.classes_.tolist()
        curves = [
            fit_logistic(tables.table(label=label), self.method == "sigmoid") for label in labels
        ]
        self.intercept_, self.slope_ = np.array(curves).T
