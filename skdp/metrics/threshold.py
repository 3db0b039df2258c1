"""`PrivateCalibrator` and `PrivateThreshold`: fitted models adjusted by one charged table."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from skdp.base.parameters import (
    CalibrationMethod,
    ThresholdMetric,
    check_choice,
    check_real,
    parameter,
    released,
)
from skdp.metrics.adjusted import AdjustsModel
from skdp.metrics.release import ScoreTables
from skdp.plans.scores import best_bin, fit_logistic, log_odds, smoothed


class PrivateCalibrator(AdjustsModel):
    """Fitted private model with probabilities recalibrated on private rows for one charge.

    Notes
    -----
    The rows enter through one released table of labels by scores, as in `PrivateEvaluation`
    (discrete Gaussian noise, L2 sensitivity 1, or the square root of 2 under replace-one;
    :ref:`Theorem 2 of evaluation <evaluation-2>`). The rest is post-processing. A logistic curve is
    fitted to the noisy counts, using their known covariance, and shrunk towards the identity to
    limit the effect of noise. With few rows and a small epsilon, probabilities at best stay
    unchanged. With more than two classes, each is calibrated against the others, and probabilities
    are scaled to sum to 1.

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
        """Adjustment of the log odds of each table: ``"sigmoid"`` learns an intercept and a slope,
        ``"temperature"`` only the slope.""",
        default="sigmoid",
    )
    intercept_: np.ndarray = released(
        "ndarray of shape (n_tables,)",
        "Shifts of log odds, for one table with two classes, or else for one per class.",
    )
    slope_: np.ndarray = released("ndarray of shape (n_tables,)", "Slopes of log odds, positive.")

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


class PrivateThreshold(AdjustsModel):
    """Fitted private model of two classes, with a threshold chosen on private rows for one charge.

    Notes
    -----
    The rows enter through one released table of labels by scores, with the guarantee of
    `PrivateEvaluation` (:ref:`Theorem 2 of evaluation <evaluation-2>`); the choice is
    post-processing. Counts are shrunk towards those of a logistic curve, by the share of their
    distance that noise explains. The best edge of bins is then the threshold. If only costs
    decide, the threshold of a calibrated model is public: ``costs[0] / sum(costs)`` needs no rows
    and no budget.

    References
    ----------
    James & Stein (1961), "Estimation with quadratic loss".
    Youden (1950), "Index for rating diagnostic tests".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.metrics import recall_score
    >>> from skdp import ObjectivePerturbationLogisticRegression
    >>> from skdp.metrics import PrivateThreshold
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(9000, 2))
    >>> y = (rng.random(9000) < 1 / (1 + np.exp(4 - 6 * X[:, 0]))).astype(int)  # one in ten
    >>> model = ObjectivePerturbationLogisticRegression(data_norm=1.0).fit(X[:3000], y[:3000])
    >>> chosen = PrivateThreshold(FrozenEstimator(model)).fit(X[3000:6000], y[3000:6000])
    >>> recalls = [recall_score(y[6000:], found.predict(X[6000:])) for found in (model, chosen)]
    >>> bool(recalls[1] > recalls[0] + 0.2)
    True
    """

    _released = ("threshold_",)

    _added_texts: ClassVar[dict[str, str]] = {
        "estimator": "It has two classes.",
        "n_bins": "Candidate thresholds are their edges.",
    }

    metric: ThresholdMetric = parameter(
        '{"youden", "f1", "cost"}',
        """Criterion for the threshold: sensitivity + specificity - 1, the F1 score of
        ``classes_[1]``, or the cost of errors.""",
        default="youden",
    )
    costs: tuple[float, float] = parameter(
        "pair of floats",
        """Costs of a false positive and of a false negative, both positive. Used by
        ``metric="cost"``.""",
        default=(1.0, 1.0),
    )
    threshold_: float = released(
        "float",
        """Least value of ``predict_proba`` that is predicted positive; of ``decision_function`` for
        a model without probabilities.""",
    )

    def _adjust(self, found: np.ndarray) -> np.ndarray:
        own = hasattr(self.estimator_, "predict_proba")
        return found - (log_odds(np.array(self.threshold_)) if own else self.threshold_)

    def _thresholds(self) -> tuple[float, ...]:
        """Return the threshold of a calibrated model; that edge has the most precise counts."""
        return (float(self.costs[0] / sum(self.costs)) if self.metric == "cost" else 0.5,)

    def _check_parameters(self) -> None:
        check_choice("metric", self.metric, ("youden", "f1", "cost"))
        if np.shape(self.costs) != (2,):
            raise ValueError(f"costs must be a pair of numbers, got {self.costs!r}.")
        for name, cost in zip(("false positives", "false negatives"), self.costs, strict=True):
            check_real(f"cost of {name}", cost, at_least=1e-6, at_most=1e6)
        super()._check_parameters()
        if len(self.estimator.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                "adjust a model of one class against the others."
            )

    def _learn(self, tables: ScoreTables) -> None:
        table = tables.table()
        found = table.bins.lower_ends[best_bin(smoothed(table), self.metric, self.costs)]
        self.threshold_ = float(found if tables.probabilities else log_odds(found))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
